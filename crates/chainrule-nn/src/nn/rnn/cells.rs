//! Cells on the concatenation of input and state, and the layer that runs one over a sequence from
//! a learned initial state.

use super::{joined, moments};
use crate::error::{Error, Result, raise};
use crate::nn::{Layer, Linear, Module};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// The cell of a recurrent layer.
pub trait Cell: Module {
    /// The width of the input.
    fn inputs(&self) -> usize;

    /// The width of the state.
    fn hidden(&self) -> usize;

    /// The next state, from an input `[batch, inputs]` and a state `[batch, hidden]`.
    fn try_step(&self, x: &Tensor, h: &Tensor) -> Result<Tensor>;
}

/// `h' = tanh(W [x, h] + b)`: one linear layer of the concatenated input and state.
///
/// Computes a step of [`Rnn`](super::Rnn) with one weight and one bias. Initialised as [`Linear`].
///
/// ```
/// use chainrule::nn::{Cell, RnnCell};
/// use chainrule::{Generator, Tensor};
/// let cell = RnnCell::new(3, 5, &mut Generator::manual_seed(0));
/// let h = cell.try_step(&Tensor::zeros([2, 3]), &Tensor::zeros([2, 5]))?;
/// assert_eq!(h.shape(), [2, 5]);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Debug, Module)]
pub struct RnnCell {
    /// From `[x, h]` to the next state.
    pub xh_to_h: Linear,
}

impl RnnCell {
    /// A cell of `hidden` units with `inputs` inputs, in f32.
    #[track_caller]
    pub fn new(inputs: usize, hidden: usize, generator: &mut Generator) -> RnnCell {
        match RnnCell::try_new(inputs, hidden, generator) {
            Ok(cell) => cell,
            Err(e) => raise(e),
        }
    }

    /// Like [`RnnCell::new`], but returns the error.
    pub fn try_new(inputs: usize, hidden: usize, generator: &mut Generator) -> Result<RnnCell> {
        Ok(RnnCell { xh_to_h: gate("RnnCell", inputs, hidden, generator)? })
    }
}

impl Cell for RnnCell {
    fn inputs(&self) -> usize {
        inputs(&self.xh_to_h)
    }

    fn hidden(&self) -> usize {
        hidden(&self.xh_to_h)
    }

    fn try_step(&self, x: &Tensor, h: &Tensor) -> Result<Tensor> {
        self.xh_to_h.try_forward(&Tensor::try_cat(&[x, h], -1)?)?.try_tanh()
    }
}

/// The gated recurrent unit of Cho et al. 2014, on the concatenated input and state:
///
/// `r = sigmoid(W_r [x, h] + b_r)`; `z = sigmoid(W_z [x, h] + b_z)`;
/// `n = tanh(W_n [x, r * h] + b_n)`; `h' = (1 - z) * h + z * n`.
///
/// It differs from [`Gru`](super::Gru): the reset gate acts before the product, and `z` weights the
/// candidate, not the old state.
///
/// ```
/// use chainrule::nn::{GruCell, Layer, Unrolled};
/// use chainrule::{Generator, Tensor};
/// let layer = Unrolled::new(GruCell::new(3, 5, &mut Generator::manual_seed(0)));
/// assert_eq!(layer.forward(&Tensor::zeros([2, 7, 3])).shape(), [2, 7, 5]);
/// ```
#[derive(Debug, Module)]
pub struct GruCell {
    /// From `[x, h]` to the update gate.
    pub xh_to_z: Linear,
    /// From `[x, h]` to the reset gate.
    pub xh_to_r: Linear,
    /// From `[x, r * h]` to the candidate.
    pub xh_to_hbar: Linear,
}

impl GruCell {
    /// A cell of `hidden` units with `inputs` inputs, in f32.
    #[track_caller]
    pub fn new(inputs: usize, hidden: usize, generator: &mut Generator) -> GruCell {
        match GruCell::try_new(inputs, hidden, generator) {
            Ok(cell) => cell,
            Err(e) => raise(e),
        }
    }

    /// Like [`GruCell::new`], but returns the error.
    pub fn try_new(inputs: usize, hidden: usize, generator: &mut Generator) -> Result<GruCell> {
        let mut gate = || gate("GruCell", inputs, hidden, generator);
        Ok(GruCell { xh_to_z: gate()?, xh_to_r: gate()?, xh_to_hbar: gate()? })
    }
}

impl Cell for GruCell {
    fn inputs(&self) -> usize {
        inputs(&self.xh_to_z)
    }

    fn hidden(&self) -> usize {
        hidden(&self.xh_to_z)
    }

    fn try_step(&self, x: &Tensor, h: &Tensor) -> Result<Tensor> {
        let xh = Tensor::try_cat(&[x, h], -1)?;
        let r = self.xh_to_r.try_forward(&xh)?.try_sigmoid()?;
        let z = self.xh_to_z.try_forward(&xh)?.try_sigmoid()?;
        let reset = Tensor::try_cat(&[x, &r.try_mul(h)?], -1)?;
        let new = self.xh_to_hbar.try_forward(&reset)?.try_tanh()?;
        // (1 - z) h + z n, with one product less.
        h.try_add(&z.try_mul(&new.try_sub(h)?)?)
    }
}

fn gate(op: &'static str, inputs: usize, hidden: usize, g: &mut Generator) -> Result<Linear> {
    if inputs == 0 || hidden == 0 {
        let why = format!("needs at least one input and one unit, got {inputs} and {hidden}");
        return Err(Error::argument(op, why));
    }
    Linear::try_new(inputs.saturating_add(hidden), hidden, g)
}

fn hidden(gate: &Linear) -> usize {
    gate.weight.shape()[0]
}

fn inputs(gate: &Linear) -> usize {
    gate.weight.shape()[1].saturating_sub(hidden(gate))
}

/// A cell run over a sequence `[batch, time, inputs]`, from a learned initial state; the output is
/// the states `[batch, time, hidden]`.
///
/// ```
/// use chainrule::nn::{Layer, Module, RnnCell, Unrolled};
/// use chainrule::{Generator, Tensor};
/// let layer = Unrolled::new(RnnCell::new(3, 5, &mut Generator::manual_seed(0)));
/// assert_eq!(layer.forward(&Tensor::zeros([2, 7, 3])).shape(), [2, 7, 5]);
/// assert_eq!(layer.named_parameters()[0].0, "start");
/// ```
#[derive(Debug, Module)]
pub struct Unrolled<C: Cell> {
    /// Initial state, `[1, hidden]`. Zeros when new.
    pub start: Tensor,
    /// The cell.
    pub cell: C,
}

impl<C: Cell> Unrolled<C> {
    /// From an initial state of zeros, in f32.
    pub fn new(cell: C) -> Unrolled<C> {
        Unrolled { start: Tensor::zeros([1, cell.hidden()]).parameter(), cell }
    }
}

impl<C: Cell> Layer for Unrolled<C> {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        let shape = x.shape();
        if shape.rank() != 3 || shape[2] != self.cell.inputs() || shape[1] == 0 {
            let why = format!(
                "the input must be [batch, time, {}], with a time of 1 at least",
                self.cell.inputs()
            );
            return Err(Error::shape("Unrolled", &[&shape], why));
        }
        let mut h = self.start.try_expand([shape[0], self.cell.hidden()])?;
        let mut steps = moments(&x.try_transpose(0, 1)?)?;
        for x in &mut steps {
            h = self.cell.try_step(x, &h)?;
            *x = h.clone();
        }
        joined(&steps)?.try_transpose(0, 1)
    }
}
