//! Checks of layers whose backward pass is written by hand.

use std::sync::{Mutex, PoisonError};

use chainrule_core::DType;
use chainrule_nn::nn::explicit::Explicit;

use crate::autograd::custom;
use crate::error::Result;
use crate::gradcheck::{GradCheck, gradcheck};
use crate::tensor::{Tensor, no_grad};

/// Checks the backward pass of a layer without a tape, at the input `x` and its own parameters:
/// the gradient of `x`, and that of each parameter in the order of [`Explicit::parameters`].
///
/// The layer runs as a [custom op](crate::autograd::custom()) of `x` and its parameters, so that
/// [`gradcheck`] judges it by differences and by the laws of a backward pass: values in f64 are
/// right to about 1e-7, those of f32 within their rounding. Values and gradients of the parameters
/// are as before when it ends. Errors as the layer does on `x`.
///
/// ```
/// use chainrule::nn::explicit::{Explicit, ExplicitLinear, ExplicitNet, ExplicitTanh};
/// use chainrule::{DType, Generator, Result, Tensor, check};
///
/// let g = &mut Generator::manual_seed(0);
/// let x = Tensor::randn([5, 3], DType::F32, g);
/// let net = ExplicitNet::new().with(ExplicitLinear::new(3, 4, g)).with(ExplicitTanh::default());
/// let report = check::gradcheck_explicit(net, &x)?;
/// assert!(report.passed(), "{report}");
///
/// /// `y = x^2` without the factor 2 in its backward pass.
/// #[derive(Default)]
/// struct Square(Option<Tensor>);
///
/// impl Explicit for Square {
///     fn try_forward(&mut self, x: &Tensor) -> Result<Tensor> {
///         self.0 = Some(x.detach());
///         x.detach().try_square()
///     }
///
///     fn try_backward(&mut self, dout: &Tensor) -> Result<Tensor> {
///         dout.try_mul(self.0.as_ref().unwrap())
///     }
/// }
///
/// assert!(!check::gradcheck_explicit(Square::default(), &x)?.passed());
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn gradcheck_explicit(layer: impl Explicit + 'static, x: &Tensor) -> Result<GradCheck> {
    let parameters = layer.parameters();
    let before: Vec<(Tensor, Option<Tensor>)> =
        parameters.iter().map(|p| (p.detach(), p.grad())).collect();
    let inputs: Vec<Tensor> =
        std::iter::once(x.detach()).chain(before.iter().map(|(value, _)| value.clone())).collect();
    let report = run(layer, parameters.clone(), &inputs);
    for (parameter, (value, grad)) in parameters.iter().zip(before) {
        parameter.try_set(&value)?;
        parameter.set_grad(grad)?;
    }
    report
}

fn run(
    layer: impl Explicit + 'static,
    parameters: Vec<Tensor>,
    inputs: &[Tensor],
) -> Result<GradCheck> {
    let layer =
        std::sync::Arc::new(Mutex::new(Parts { layer, parameters, dtype: inputs[0].dtype() }));
    let also = std::sync::Arc::clone(&layer);
    let op = custom(
        "explicit layer",
        move |inputs| layer.lock().unwrap_or_else(PoisonError::into_inner).forward(inputs),
        move |ctx, g| {
            let mut parts = also.lock().unwrap_or_else(PoisonError::into_inner);
            // The layer keeps the values of its last call, which may have been at another point.
            parts.forward(ctx.inputs())?;
            parts.backward(g, ctx.inputs())
        },
    );
    let call = |inputs: &[Tensor]| op.apply(&inputs.iter().collect::<Vec<_>>());
    gradcheck(call, inputs).run()
}

struct Parts<L> {
    layer: L,
    parameters: Vec<Tensor>,
    /// The dtype of the layer's own input; the check's values are in f64.
    dtype: DType,
}

impl<L: Explicit> Parts<L> {
    /// The result for an input and values of the parameters.
    fn forward(&mut self, inputs: &[Tensor]) -> Result<Tensor> {
        for (parameter, value) in self.parameters.iter().zip(&inputs[1..]) {
            parameter.try_set(&value.detach().try_to_dtype(parameter.dtype())?)?;
        }
        let x = inputs[0].detach().try_to_dtype(self.dtype)?;
        let y = no_grad(|| self.layer.try_forward(&x))?;
        y.detach().try_to_dtype(inputs[0].dtype())
    }

    /// The gradients of the input and of the parameters; one that the layer does not set is
    /// missing.
    fn backward(&mut self, g: &Tensor, inputs: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        for parameter in &self.parameters {
            parameter.set_grad(None)?;
        }
        let dx = self.layer.try_backward(&g.detach().try_to_dtype(self.dtype)?)?;
        let gradients = std::iter::once(Some(dx)).chain(self.parameters.iter().map(Tensor::grad));
        let wide = |(gradient, input): (Option<Tensor>, &Tensor)| {
            gradient.map(|gradient| gradient.try_to_dtype(input.dtype())).transpose()
        };
        gradients.zip(inputs).map(wide).collect()
    }
}
