//! The law of parts: the gradient of a batch is the weighted sum of the gradients of its parts.

use super::{Invariant, InvariantReport, rounding};
use crate::autograd::grad;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::tensor::role::{NormRole, Role};
use crate::tensor::watch::Watching;

static PARTS: Invariant = Invariant {
    name: "gradients of a batch are the weighted sum of its parts'",
    formula: "d loss(batch) / dw = sum_k c_k d loss(part k) / dw",
    preconditions: "no example has a part in the results of another (no batch statistics), and nothing is random (no dropout)",
};

/// Combination of the parts' losses into that of the whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Combine {
    /// The loss is a mean over examples: parts count by their size.
    Mean,
    /// The loss is a sum over examples.
    Sum,
    /// Each part has the given weight: for examples that are weighted or ignored.
    Weights(Vec<f64>),
}

/// The law that the gradient of a batch is the weighted sum of the gradients of its parts, for each
/// of `parameters`.
///
/// `f` gives the loss of some examples; `inputs` are tensors with the examples on axis 0, of which
/// it gets a stretch each. `sizes` cuts the batch: they sum to the number of examples. Place: the
/// parameter, by the distance of the two gradients. The bound is `(16 + sqrt(n) / 4) * eps` times
/// the sum of the examples' own gradients' sizes, each weighed as in the whole; so each example is
/// run by itself too.
///
/// Errors if the law's preconditions are not met, with the reason: `f` is random, the loss of the
/// whole is not that of its parts (batch statistics, or another way to combine them), or a batch
/// norm that takes the batch's statistics ran.
///
/// ```
/// use chainrule::check::invariants::{Combine, parts};
/// use chainrule::{DType, Generator, Tensor};
/// let g = &mut Generator::manual_seed(1);
/// let (x, y) = (Tensor::randn([6, 3], DType::F32, g), Tensor::randn([6, 1], DType::F32, g));
/// let w = Tensor::randn([3, 1], DType::F32, g).parameter();
/// let loss = |part: &[Tensor]| part[0].matmul(&w).tanh().mse(&part[1]);
/// let report = parts(loss, &[&x, &y], &[&w], &[4, 2], Combine::Mean)?;
/// assert!(report.holds(), "{report}");
///
/// let normed = |part: &[Tensor]| part[0].matmul(&w).batch_norm(None, None, 1e-5, 0).mse(&part[1]);
/// let error = parts(normed, &[&x, &y], &[&w], &[4, 2], Combine::Mean).unwrap_err();
/// assert!(error.to_string().contains("batch_norm"));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn parts(
    f: impl Fn(&[Tensor]) -> Tensor,
    inputs: &[&Tensor],
    parameters: &[&Tensor],
    sizes: &[usize],
    combine: Combine,
) -> Result<InvariantReport> {
    const OP: &str = "parts";
    let n = inputs.first().and_then(|x| x.shape().first().copied()).unwrap_or(0);
    if n == 0 || sizes.iter().sum::<usize>() != n || sizes.contains(&0) {
        let why = format!(
            "the sizes must be positive and sum to the {n} examples on axis 0 of the first input; they are {sizes:?}"
        );
        return Err(Error::argument(OP, why));
    }
    if let Some(x) = inputs.iter().find(|x| x.shape().first() != Some(&n)) {
        let why = format!("every input must have the {n} examples on axis 0");
        return Err(Error::shape(OP, &[&x.shape()], why));
    }
    let weights = match &combine {
        Combine::Mean => sizes.iter().map(|&k| k as f64 / n as f64).collect(),
        Combine::Sum => vec![1.0; sizes.len()],
        Combine::Weights(weights) if weights.len() == sizes.len() => weights.clone(),
        Combine::Weights(weights) => {
            let why = format!("there are {} parts and {} weights", sizes.len(), weights.len());
            return Err(Error::argument(OP, why));
        }
    };
    let run = |start: usize, size: usize| -> Result<(f64, Vec<Vec<f64>>)> {
        let part =
            inputs.iter().map(|x| x.try_narrow(0, start, size)).collect::<Result<Vec<_>>>()?;
        let loss = f(&part);
        let grads = grad(&loss, parameters)?;
        let dense = grads.into_iter().zip(parameters).map(|(g, p)| match g {
            Some(g) => g.to_f64_vec(),
            None => vec![0.0; p.numel()],
        });
        Ok((loss.try_item()?, dense.collect()))
    };
    let watching = Watching::start();
    let (loss, whole) = run(0, n)?;
    let batch_norm =
        watching.take().ran.into_iter().find(|ran| ran.role == Role::Norm(NormRole::Batch));
    drop(watching);
    refuse_random(loss, run(0, n)?.0)?;
    if let Some(ran) = batch_norm {
        let why = "`batch_norm` took the statistics of the batch, so examples have a part in each other's gradients and the law does not apply; call model.eval() first";
        return Err(Error::argument(OP, why).at(ran.location));
    }
    let mut sum: Vec<Vec<f64>> = whole.iter().map(|g| vec![0.0; g.len()]).collect();
    let (mut of_parts, mut of_sizes, mut start) = (0.0, 0.0, 0);
    let mut terms = vec![0.0; whole.len()];
    for (&size, &weight) in sizes.iter().zip(&weights) {
        let (loss, grads) = run(start, size)?;
        of_parts += weight * loss;
        of_sizes += (weight * loss).abs();
        for (sum, grad) in sum.iter_mut().zip(&grads) {
            sum.iter_mut().zip(grad).for_each(|(s, g)| *s += weight * g);
        }
        let each = if combine == Combine::Sum { weight } else { weight / size as f64 };
        for i in start..start + size {
            let grads = if size == 1 { grads.clone() } else { run(i, 1)?.1 };
            terms.iter_mut().zip(&grads).for_each(|(t, g)| *t += each.abs() * norm(g));
        }
        start += size;
    }
    let dtype = parameters.first().map_or(chainrule_core::DType::F32, |p| p.dtype());
    let apart = (loss - of_parts).abs();
    if apart.is_nan() || apart > rounding(dtype, 256.0, n, of_sizes + loss.abs()) {
        let why = format!(
            "the loss of the batch is {loss:.6e}, that of its parts makes {of_parts:.6e}: either examples have a part in each other's results (batch statistics), and the law does not apply, or the losses of parts are to be combined in another way than {combine:?}"
        );
        return Err(Error::argument(OP, why));
    }
    Ok(InvariantReport::of(
        &PARTS,
        whole.iter().zip(&sum).zip(terms).map(|((a, b), terms)| {
            let apart: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
            (norm(&apart), rounding(dtype, 16.0, n, terms))
        }),
    ))
}

fn refuse_random(first: f64, again: f64) -> Result<()> {
    if first == again || (first.is_nan() && again.is_nan()) {
        return Ok(());
    }
    let why = format!(
        "two runs of the same batch give the losses {first:.6e} and {again:.6e}: something in it is random (dropout?), and the law does not apply; call model.eval() first"
    );
    Err(Error::argument("parts", why))
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}
