//! The verdict on a function whose own backward is suspected: a custom op, or a function that has
//! one in it.

use std::sync::Arc;

use super::case::Case;
use super::numbers::{Closeness, largest};
use super::reading::{Reading, read, sizes_of};
use super::{Verdict, explain_given};
use crate::autograd::walk::{Walk, reachable};
use crate::autograd::{CustomOp, custom_of, vjp};
use crate::error::{Error, Result};
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};
use crate::{probe, require_f64, richardson};

/// The most elements, since differences are taken for one element at a time.
const MOST: usize = 10_000;
/// Precision of differences.
const ROUGH: Closeness = Closeness { relative: 1e-6, floor: 1e-9 };

/// Explains the gradients of `f`, some of which are wrong, by those of `reference`: the same
/// function in ops of the engine. For a custom op that is its forward pass, whose steps autograd
/// differentiates by itself.
///
/// A random gradient comes into the output from above, always the same one. All ops of `reference`
/// are places where the mistake may lie, as in [`verdict`](super::verdict()). The inputs are floats
/// of any dtype; f64 gives the most precise verdict. The backward of a custom op in `f` is
/// followed, too, as [`backward`](crate::backward()) does: [`Verdict::corrections`] has its wrong
/// lines.
///
/// Errors if the two give different values, as then their gradients are those of different
/// functions; and as `f` and `reference` do.
///
/// ```
/// use chainrule::{Tensor, autograd, check};
/// // A custom op whose backward takes the derivative of tanh for 1 - y.
/// let squash = autograd::custom(
///     "squash",
///     |x| x[0].try_tanh(),
///     |ctx, g| Ok(vec![Some(g.try_mul(1.0 - ctx.output())?)]),
/// );
/// let x = Tensor::from([0.3, -1.2, 2.0]);
/// let verdict = check::explain(|x| squash.apply(&[&x[0]]).unwrap(), |x| x[0].tanh(), &[x])?;
/// assert_eq!(verdict.diagnoses()[0].mistake(), "square forgotten");
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn explain(
    f: impl FnOnce(&[Tensor]) -> Tensor,
    reference: impl FnOnce(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
) -> Result<Verdict> {
    let (mut verdict, customs) = by_reference(f, reference, inputs, true)?;
    if !verdict.is_right() {
        verdict.follow(customs);
    }
    Ok(verdict)
}

/// As [`explain`], from the numbers alone: the code of custom ops is not followed, since that may
/// run it often. Without `others` only the classic mistakes are tried, which takes a fraction of
/// the time.
///
/// ```
/// use chainrule::{Tensor, autograd, check};
/// let half = autograd::custom(
///     "half",
///     |x| x[0].try_square(),
///     |ctx, g| Ok(vec![Some(g.try_mul(&ctx.inputs()[0])?)]),
/// );
/// let x = Tensor::from([0.3, -1.2, 2.0]);
/// let f = |x: &[Tensor]| half.apply(&[&x[0]]).unwrap();
/// let verdict = check::explain_numbers(f, |x| x[0].square(), &[x], false)?;
/// assert_eq!(verdict.diagnoses()[0].mistake(), "missing factor");
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn explain_numbers(
    f: impl FnOnce(&[Tensor]) -> Tensor,
    reference: impl FnOnce(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    others: bool,
) -> Result<Verdict> {
    by_reference(f, reference, inputs, others).map(|(verdict, _)| verdict)
}

fn by_reference(
    f: impl FnOnce(&[Tensor]) -> Tensor,
    reference: impl FnOnce(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    others: bool,
) -> Result<(Verdict, Vec<Custom>)> {
    let leaves: Vec<Tensor> =
        inputs.iter().map(|x| x.detach().try_parameter()).collect::<Result<_>>()?;
    let output = reference(&leaves);
    let upstream = probe(output.shape(), output.dtype(), &mut Generator::manual_seed(1))?;
    let own: Vec<Tensor> =
        inputs.iter().map(|x| x.detach().try_parameter()).collect::<Result<_>>()?;
    let value = f(&own);
    let customs = customs(&value);
    let wrong = gradients(&value, &upstream, &own)?;
    let (expected, found) = (output.to_f64_vec(), value.to_f64_vec());
    let close = Closeness::of(output.dtype(), largest(&expected));
    if value.shape() != output.shape() || !close.same(&expected, &found) {
        let why = format!(
            "the function and its reference give different values ({} and {}), so their gradients differ with reason",
            value.shape(),
            output.shape()
        );
        return Err(Error::argument("explain", why));
    }
    let given: Vec<(&Tensor, &Tensor)> = leaves.iter().zip(&wrong).collect();
    let verdict = explain_given(Case::new(&[(&output, upstream)], &given)?, others)?;
    Ok((verdict, customs))
}

/// The gradients of leaves, zero where nothing arrives.
fn gradients(value: &Tensor, upstream: &Tensor, leaves: &[Tensor]) -> Result<Vec<Tensor>> {
    if value.shape() != upstream.shape() || !value.requires_grad() {
        return Ok(leaves.iter().map(Tensor::zeros_like).collect());
    }
    let walk = Walk { keep_graph: true, targets: Some(leaves), ..Walk::default() };
    let found = walk.run(&[(value, upstream.clone())])?;
    Ok(found.into_iter().zip(leaves).map(|(g, x)| g.unwrap_or_else(|| x.zeros_like())).collect())
}

/// The custom ops behind a value, with their inputs.
fn customs(value: &Tensor) -> Vec<Custom> {
    let of = |node: &Arc<Node>| {
        let op = custom_of(node.op.as_ref())?;
        let saved = lock(&node.saved).clone();
        let inputs: Option<Vec<_>> = saved.inputs.into_iter().collect();
        let tensor = |v| Tensor::from_parts(v, Source::None);
        Some((op, inputs?.into_iter().map(tensor).collect()))
    };
    reachable([value.source()].into_iter(), 0).iter().filter_map(of).collect()
}

/// A custom op and its inputs.
pub(super) type Custom = (Arc<dyn CustomOp>, Vec<Tensor>);

/// Reads the gradients of a function about which nothing is known. For each input it gives what the
/// gradient's numbers show in comparison with differences of the function; nothing where they
/// agree.
///
/// The right gradients are taken by [`richardson`], one element at a time, so this suits small
/// inputs: about twenty calls of `f` for each element. At a kink differences do not give the right
/// gradient; there the gradient is believed. A random gradient comes into the output from above,
/// always the same one.
///
/// Errors for inputs that are not f64 or have more than 10,000 elements.
///
/// ```
/// use chainrule::{Tensor, autograd, check};
/// let half = autograd::custom(
///     "mean of squares",
///     |x| x[0].try_square()?.try_mean_all(),
///     |ctx, g| Ok(vec![Some(ctx.inputs()[0].try_mul(g)?.try_mul(2.0)?)]),
/// );
/// let x = Tensor::from([1.0, -2.0, 0.5]);
/// let read = check::explain_opaque(|x| half.apply(&[&x[0]]).unwrap(), &[x])?;
/// assert!(read[0][0].to_string().contains("3 times the right"));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn explain_opaque(
    f: impl Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
) -> Result<Vec<Vec<Reading>>> {
    require_f64("explain_opaque", inputs)?;
    if let Some(x) = inputs.iter().find(|x| x.numel() > MOST) {
        let why = format!(
            "an input of {} elements is too large for differences of each; take a smaller one, or `explain` with a reference",
            x.numel()
        );
        return Err(Error::argument("explain_opaque", why));
    }
    let inputs: Vec<Tensor> = inputs.iter().map(Tensor::detach).collect();
    let value = f(&inputs);
    let upstream = probe(value.shape(), value.dtype(), &mut Generator::manual_seed(1))?;
    let (_, given) = vjp(&f, &inputs, &upstream)?;
    let scalar = |x: &[Tensor]| (f(x) * &upstream).sum_all();
    let mut out = Vec::new();
    for (i, given) in given.iter().enumerate() {
        let given = given.to_f64_vec();
        let right = by_differences(&scalar, &inputs, i, &given)?;
        let shape = inputs[i].shape();
        let close = Closeness { floor: ROUGH.floor * largest(&right).max(1.0), ..ROUGH };
        out.push(read(&right, &given, &shape, close, &sizes_of(&shape)));
    }
    Ok(out)
}

/// The gradient of input `i`, element by element.
fn by_differences(
    f: &impl Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    i: usize,
    given: &[f64],
) -> Result<Vec<f64>> {
    let mut directions: Vec<Tensor> = inputs.iter().map(Tensor::zeros_like).collect();
    let mut right = Vec::with_capacity(given.len());
    for (at, &given) in given.iter().enumerate() {
        let mut direction = vec![0.0; inputs[i].numel()];
        direction[at] = 1.0;
        directions[i] = Tensor::try_from_slice(&direction, inputs[i].shape())?;
        let found = richardson(f, inputs, &directions)?;
        right.push(if found.kinks.is_empty() { found.value.item() } else { given });
    }
    Ok(right)
}
