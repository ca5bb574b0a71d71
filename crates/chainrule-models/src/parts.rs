//! Building blocks of models, constructed from loaded weights.

use chainrule_core::dtype::DType;
use chainrule_core::error::{Error, Result};
use chainrule_core::tensor::Tensor;
use chainrule_nn::nn::{LayerNorm, Linear, Module, RmsNorm, StateDict};

/// A token embedding, `[vocabulary, width]`.
#[derive(Debug, Module)]
pub struct TokenTable {
    pub weight: Tensor,
}

/// Activation function of an MLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    Gelu,
    GeluTanh,
    Relu,
    Silu,
}

impl Activation {
    /// By its name in a configuration.
    pub fn parse(name: &str) -> Result<Activation, String> {
        Ok(match name {
            "gelu" => Activation::Gelu,
            "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" => Activation::GeluTanh,
            "relu" => Activation::Relu,
            "silu" | "swish" => Activation::Silu,
            other => {
                return Err(format!(
                    "the activation `{other}` is not known; there are gelu, gelu_new, \
                     gelu_pytorch_tanh, gelu_fast, relu, silu, swish"
                ));
            }
        })
    }

    pub fn of(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Activation::Gelu => x.try_gelu(),
            Activation::GeluTanh => x.try_gelu_tanh(),
            Activation::Relu => x.try_relu(),
            Activation::Silu => x.try_silu(),
        }
    }
}

/// Loaded weights by name, each of which becomes a parameter once.
pub struct Taking {
    state: StateDict,
}

impl Taking {
    pub fn new(state: StateDict) -> Taking {
        Taking { state }
    }

    /// The parameter of this name, in f32. Errors if it is missing or of another shape.
    pub fn take(&mut self, name: &str, shape: &[usize]) -> Result<Tensor> {
        let error = |why: String| Error::argument("weights", why);
        let tensor = self.state.remove(name).ok_or_else(|| {
            error(format!("there is no `{name}`, which the configuration asks for"))
        })?;
        if tensor.shape() != *shape {
            let found = tensor.shape();
            let why =
                format!("`{name}` has the shape {found}, and the configuration asks for {shape:?}");
            return Err(error(why));
        }
        if tensor.dtype() != DType::F32 {
            return Err(error(format!("`{name}` is {}, and no floats", tensor.dtype())));
        }
        tensor.try_parameter()
    }

    pub fn table(&mut self, name: &str, symbols: usize, width: usize) -> Result<TokenTable> {
        Ok(TokenTable { weight: self.take(&format!("{name}.weight"), &[symbols, width])? })
    }

    pub fn linear(&mut self, name: &str, [from, to]: [usize; 2], bias: bool) -> Result<Linear> {
        let weight = self.take(&format!("{name}.weight"), &[to, from])?;
        let bias = bias.then(|| self.take(&format!("{name}.bias"), &[to])).transpose()?;
        Ok(Linear { weight, bias })
    }

    pub fn layer_norm(&mut self, name: &str, width: usize, eps: f64) -> Result<LayerNorm> {
        let weight = self.take(&format!("{name}.weight"), &[width])?;
        let bias = Some(self.take(&format!("{name}.bias"), &[width])?);
        Ok(LayerNorm { weight, bias, eps })
    }

    pub fn rms_norm(&mut self, name: &str, width: usize, eps: f64) -> Result<RmsNorm> {
        Ok(RmsNorm { weight: self.take(&format!("{name}.weight"), &[width])?, eps })
    }

    /// An error for unused weights, since they would have changed the result.
    pub fn finish(self) -> Result<()> {
        let Some(name) = self.state.keys().next() else { return Ok(()) };
        let why = format!(
            "`{name}` and {} more have no place in the model that config.json describes",
            self.state.len() - 1
        );
        Err(Error::argument("weights", why))
    }
}
