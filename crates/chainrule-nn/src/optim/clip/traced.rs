//! Clipping inside a trace: instructions with the same bits.

use crate::param::Parameters;
use std::borrow::Cow;
use std::sync::Arc;

use super::{check, norm_of, not_finite};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::optim::unique;
use crate::shape::Shape;
use crate::tensor::op::{Kernel, Op, Outcome, WholeKernel};
use crate::tensor::run::apply;
use crate::tensor::value::{Meta, Value};
use crate::tensor::{Tensor, log};

/// Parameters that have a gradient, with it; an error for one from before the trace.
fn gradients(parameters: &[Tensor]) -> Result<Vec<(Tensor, Tensor)>> {
    let pairs = unique(parameters.to_vec()).into_iter().filter_map(|p| Some((p.grad()?, p)));
    let known = |(g, p): (Tensor, Tensor)| {
        log::graded(p.source(), Some(&g))?;
        Ok((p, g))
    };
    pairs.map(known).collect()
}

/// Scales the gradients by `min(1, max_norm / (norm + 1e-6))`: a factor of 1 changes no bit. The
/// norm, if there are gradients.
pub(super) fn clip(
    op: &'static str,
    parameters: &[Tensor],
    max_norm: f64,
    p: f64,
    finite: bool,
) -> Result<Option<Tensor>> {
    check(op, max_norm, p)?;
    let _cause = log::enter(log::Cause::Update);
    let pairs = gradients(parameters)?;
    if pairs.is_empty() {
        return Ok(None);
    }
    let inputs: Vec<&Tensor> = pairs.iter().map(|(_, g)| g).collect();
    let norm = apply(GradNorm { p, finite: finite.then_some(op) }, &inputs)?.named("grad_norm");
    let factor = Tensor::scalar(max_norm).try_div(&norm.try_add(1e-6)?)?;
    let factor = factor.try_minimum(1.0)?.named("clip_factor");
    for (parameter, g) in pairs {
        let clipped = g.try_mul(&factor.try_to_dtype(g.dtype())?)?;
        parameter.set_grad(Some(clipped))?;
    }
    Ok(Some(norm))
}

/// Clamps the elements of all gradients.
pub(super) fn clamp(parameters: &[Tensor], limit: f64) -> Result<()> {
    let _cause = log::enter(log::Cause::Update);
    for (parameter, g) in gradients(parameters)? {
        parameter.set_grad(Some(g.try_clamp(-limit, limit)?))?;
    }
    Ok(())
}

/// Norm of the concatenated inputs, in f64.
#[derive(Debug, Parameters)]
struct GradNorm {
    p: f64,
    /// Name for the error if the norm is not finite.
    finite: Option<&'static str>,
}

impl Op for GradNorm {
    fn name(&self) -> &'static str {
        "grad_norm"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_grad_norm({p}, {*})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        if let Some(other) = inputs.iter().find(|m| !m.dtype.is_float()) {
            return Err(Error::dtype(self.name(), &[other.dtype], "gradients are floats"));
        }
        Ok(Meta::new(Shape::SCALAR, DType::F64))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl WholeKernel for GradNorm {
    fn run(&self, inputs: &[Arc<Value>], _: Meta) -> Result<Outcome> {
        let norm = norm_of(inputs, self.p)?;
        match self.finite {
            Some(op) if !norm.is_finite() => Err(not_finite(op, norm)),
            _ => Ok(Value::scalar(norm).into()),
        }
    }
}
