//! Derivatives as functions: `grad`, `value_and_grad`, `vjp`, `jvp`, `jacobian`, `hessian`, `hvp`.

use std::collections::HashMap;

use super::backward::upstream;
use super::walk::{Walk, reachable};
use crate::error::{Error, Result};
use crate::tensor::node::{Mode, Source, lock};
use crate::tensor::op::{Saved, shown, shown_meta};
use crate::tensor::{Tensor, enable_grad};

/// Options of [`grad_with`].
#[derive(Clone, Default)]
pub struct GradOptions {
    /// The upstream gradient, of the shape and dtype of `y`; a single element has 1 by default.
    pub gradient: Option<Tensor>,
    /// Whether the pass is recorded, so that the gradients can be differentiated again; `false` by
    /// default.
    pub create_graph: bool,
}

impl GradOptions {
    /// Recorded: the gradients can be differentiated again.
    pub fn create_graph() -> GradOptions {
        GradOptions { create_graph: true, ..GradOptions::default() }
    }
}

/// The gradients of a single element `y` with respect to `inputs`, which may be leaves or
/// intermediates. No `.grad()` changes, the graph is kept. An input that `y` does not depend on
/// gives `None`.
///
/// ```
/// use chainrule::{Tensor, autograd};
/// let x = Tensor::from([3.0f64]).parameter();
/// let y = (&x * &x).sum_all();
/// assert_eq!(autograd::grad(&y, &[&x])?[0].as_ref().unwrap().item(), 6.0);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn grad(y: &Tensor, inputs: &[&Tensor]) -> Result<Vec<Option<Tensor>>> {
    grad_with(y, inputs, &GradOptions::default())
}

/// [`grad`] with options: recorded, or from any `y` with its upstream gradient.
///
/// ```
/// use chainrule::{Tensor, autograd};
/// use chainrule::autograd::GradOptions;
/// let x = Tensor::from([3.0f64]).parameter();
/// let y = (&x * &x * &x).sum_all();
/// let dx = autograd::grad_with(&y, &[&x], &GradOptions::create_graph())?[0].clone().unwrap();
/// let ddx = autograd::grad(&dx.sum_all(), &[&x])?[0].clone().unwrap();
/// assert_eq!((dx.item(), ddx.item()), (27.0, 18.0));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn grad_with(
    y: &Tensor,
    inputs: &[&Tensor],
    options: &GradOptions,
) -> Result<Vec<Option<Tensor>>> {
    let upstream = upstream("grad", y, options.gradient.clone())?;
    pull(y, upstream, inputs, options.create_graph)
}

fn pull(
    y: &Tensor,
    upstream: Tensor,
    inputs: &[&Tensor],
    create_graph: bool,
) -> Result<Vec<Option<Tensor>>> {
    if let Some(i) = inputs.iter().position(|t| !t.requires_grad()) {
        let why = format!("input {i} is a constant; make it with parameter() before it is used");
        return Err(Error::gradient("grad", why));
    }
    let targets: Vec<Tensor> = inputs.iter().map(|&t| t.clone()).collect();
    let walk = Walk { create_graph, keep_graph: true, targets: Some(&targets), ..Walk::default() };
    walk.run(&[(y, upstream)])
}

/// Fresh leaves with the values of `inputs`, linked to them if they carry gradients, so that
/// derivatives can be nested.
fn fresh(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    inputs.iter().map(|t| if t.requires_grad() { t.alias() } else { t.try_parameter() }).collect()
}

/// `f(inputs)` and its gradients: `f` must return a single element.
///
/// ```
/// use chainrule::{Tensor, autograd::value_and_grad};
/// let x = Tensor::from([2.0f64]);
/// let (value, grads) = value_and_grad(|x| (&x[0] * &x[0]).sum_all(), &[x]).unwrap();
/// assert_eq!((value.item(), grads[0].item()), (4.0, 4.0));
/// ```
pub fn value_and_grad(
    f: impl FnOnce(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
) -> Result<(Tensor, Vec<Tensor>)> {
    let nested = inputs.iter().any(Tensor::requires_grad);
    let leaves = fresh(inputs)?;
    let y = enable_grad(|| f(&leaves));
    if y.numel() != 1 {
        return Err(Error::shape(
            "value_and_grad",
            &[&y.shape()],
            "the function must return a single element; use vjp for others",
        ));
    }
    let grads = pull_dense(&y, y.ones_like(), &leaves, nested)?;
    Ok((if nested { y } else { y.detach() }, grads))
}

/// The pull-back, with zeros where no gradient flows.
fn pull_dense(
    y: &Tensor,
    upstream: Tensor,
    leaves: &[Tensor],
    create_graph: bool,
) -> Result<Vec<Tensor>> {
    if !y.requires_grad() {
        return Ok(leaves.iter().map(Tensor::zeros_like).collect());
    }
    let refs: Vec<&Tensor> = leaves.iter().collect();
    let grads = pull(y, upstream, &refs, create_graph)?;
    Ok(grads
        .into_iter()
        .zip(leaves)
        .map(|(g, leaf)| g.unwrap_or_else(|| leaf.zeros_like()))
        .collect())
}

/// `f(inputs)` and `J^T cotangent`: reverse mode.
pub fn vjp(
    f: impl FnOnce(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    cotangent: &Tensor,
) -> Result<(Tensor, Vec<Tensor>)> {
    let nested = inputs.iter().any(Tensor::requires_grad) || cotangent.requires_grad();
    let leaves = fresh(inputs)?;
    let y = enable_grad(|| f(&leaves));
    if y.meta() != cotangent.meta() {
        let why = "the cotangent must have the shape and dtype of the function's value";
        return Err(Error::shape("vjp", &[&y.shape(), &cotangent.shape()], why));
    }
    let grads = pull_dense(&y, cotangent.clone(), &leaves, nested)?;
    Ok((if nested { y } else { y.detach() }, grads))
}

/// The gradients of `<v, f(inputs)>` with respect to the inputs, for a function with several
/// results of which some have no cotangent. Inputs that are not floats are passed on, and get no
/// gradient.
pub fn pull_back_all(
    f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[Tensor],
    cotangents: &[Option<Tensor>],
) -> Result<Vec<Option<Tensor>>> {
    let float = |x: &Tensor| x.dtype().is_float();
    let all = inputs.iter().chain(cotangents.iter().flatten());
    let nested = all.into_iter().any(Tensor::requires_grad);
    let leaf = |x: &Tensor| match float(x) {
        true => Ok(fresh(std::slice::from_ref(x))?.remove(0)),
        false => Ok(x.clone()),
    };
    let leaves: Vec<Tensor> = inputs.iter().map(leaf).collect::<Result<_>>()?;
    let ys = enable_grad(|| f(&leaves))?;
    let pairs = ys.iter().zip(cotangents).filter(|(y, _)| y.requires_grad());
    let roots: Vec<(&Tensor, Tensor)> = pairs.filter_map(|(y, v)| Some((y, v.clone()?))).collect();
    let targets: Vec<Tensor> = leaves.iter().filter(|x| float(x)).cloned().collect();
    let walk =
        Walk { create_graph: nested, keep_graph: true, targets: Some(&targets), ..Walk::default() };
    let mut found = walk.run(&roots)?.into_iter();
    let dense = |x: &Tensor| found.next().flatten().unwrap_or_else(|| x.zeros_like());
    let mut dense = dense;
    Ok(leaves.iter().map(|x| float(x).then(|| dense(x))).collect())
}

/// `f(inputs)` and `J tangents`: forward mode, by the ops' forward rules, which are written
/// independently of the reverse ones.
///
/// ```
/// use chainrule::{Tensor, autograd::jvp};
/// let x = Tensor::from([2.0f64, 3.0]);
/// let t = Tensor::from([1.0f64, 0.0]);
/// let (_, dy) = jvp(|x| &x[0] * &x[0], &[x], &[t]).unwrap();
/// assert_eq!(dy.to_vec::<f64>(), [4.0, 0.0]);
/// ```
pub fn jvp(
    f: impl FnOnce(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    tangents: &[Tensor],
) -> Result<(Tensor, Tensor)> {
    if inputs.len() != tangents.len() {
        let why =
            format!("{} inputs but {} tangents; give one for each", inputs.len(), tangents.len());
        return Err(Error::argument("jvp", why));
    }
    if let Some((x, t)) = inputs.iter().zip(tangents).find(|(x, t)| x.meta() != t.meta()) {
        let why = "a tangent must have the shape and dtype of its input";
        return Err(Error::shape("jvp", &[&x.shape(), &t.shape()], why));
    }
    let nested = inputs.iter().chain(tangents).any(Tensor::requires_grad);
    let leaves = fresh(inputs)?;
    let recorded = !Mode::get().has(Mode::NO_GRAD);
    let y = {
        let _guard = Mode::get().with(Mode::SAVE_ALL).without(Mode::NO_GRAD).enter();
        f(&leaves)
    };
    // Captured leaves have gradients too.
    let nested = nested || recorded && leads_beside(&y, &leaves);
    let dy = push_forward(&y, &leaves, tangents, nested)?;
    Ok((if nested { y } else { y.detach() }, dy))
}

/// Whether `y` depends on a leaf outside `leaves`, such as a parameter that a function captured.
#[doc(hidden)]
pub fn leads_beside(y: &Tensor, leaves: &[Tensor]) -> bool {
    let beside = |source: &Source| {
        matches!(source, Source::Leaf(_))
            && leaves.iter().all(|leaf| leaf.source().number() != source.number())
    };
    let behind = reachable(std::iter::once(y.source()), 0);
    beside(y.source()) || behind.iter().any(|node| node.inputs.iter().any(beside))
}

/// Pushes the tangents of `leaves` through the recorded graph of `y`, each node after its inputs.
pub(super) fn push_forward(
    y: &Tensor,
    leaves: &[Tensor],
    tangents: &[Tensor],
    link: bool,
) -> Result<Tensor> {
    Ok(push_forward_all(std::slice::from_ref(y), leaves, tangents, link)?.remove(0))
}

/// As `push_forward`, to several results at once.
pub fn push_forward_all(
    ys: &[Tensor],
    leaves: &[Tensor],
    tangents: &[Tensor],
    link: bool,
) -> Result<Vec<Tensor>> {
    let mode = Mode::get();
    let _guard = if link { mode.without(Mode::NO_GRAD) } else { mode.with(Mode::NO_GRAD) }.enter();
    let mut known: HashMap<u64, Tensor> =
        leaves.iter().zip(tangents).map(|(leaf, t)| (leaf.source().number(), t.clone())).collect();
    let lowest = known.keys().copied().min().unwrap_or(u64::MAX);
    for node in reachable(ys.iter().map(Tensor::source), lowest) {
        let of = |input: &Source| known.get(&input.number()).cloned();
        let mut tangents: Vec<Option<Tensor>> = node.inputs.iter().map(of).collect();
        if tangents.iter().all(Option::is_none) || known.contains_key(&node.number) {
            continue;
        }
        let saved = lock(&node.saved).clone();
        let at = Saved::new(&node, &saved, link);
        for tangent in tangents.iter_mut().flatten() {
            *tangent = shown(&*node.op, tangent.clone())?;
        }
        let mut tangent = node.op.jvp(&at, &tangents)?;
        if tangent.meta() == shown_meta(&*node.op, node.meta) {
            tangent = tangent.try_to_dtype(node.meta.dtype)?;
        }
        if tangent.meta() != node.meta {
            let why = "its forward rule gave a tangent of another shape or dtype";
            return Err(Error::shape(node.op.name(), &[&node.meta.shape, &tangent.shape()], why));
        }
        known.insert(node.number, tangent);
    }
    let tangent = |y: &Tensor| known.get(&y.source().number()).cloned();
    Ok(ys.iter().map(|y| tangent(y).unwrap_or_else(|| y.zeros_like())).collect())
}

/// The Jacobian of `f` at `x` by reverse mode: shape `f(x).shape` followed by `x.shape`.
///
/// ```
/// use chainrule::{Tensor, autograd::jacobian};
/// let x = Tensor::from([2.0f64, 3.0]);
/// let j = jacobian(|x| x * x, &x).unwrap();
/// assert_eq!(j.to_vec::<f64>(), [4.0, 0.0, 0.0, 6.0]);
/// ```
pub fn jacobian(f: impl FnOnce(&Tensor) -> Tensor, x: &Tensor) -> Result<Tensor> {
    let nested = x.requires_grad();
    let leaf = fresh(std::slice::from_ref(x))?.remove(0);
    let y = enable_grad(|| f(&leaf));
    let mut rows = Vec::with_capacity(y.numel());
    for i in 0..y.numel() {
        let one_hot =
            Tensor::arange(0, y.numel() as i64).try_eq(i as i64)?.try_to_dtype(y.dtype())?;
        let row =
            pull_dense(&y, one_hot.try_reshape(y.shape())?, std::slice::from_ref(&leaf), nested)?;
        rows.extend(row);
    }
    let shape: Vec<usize> = y.shape().iter().chain(x.shape().iter()).copied().collect();
    if rows.is_empty() {
        return Tensor::try_full(shape, 0.0, x.dtype());
    }
    let rows: Vec<&Tensor> = rows.iter().collect();
    Tensor::try_stack(&rows, 0)?.try_reshape(shape)
}

/// The Hessian of `f` at `x`, where `f` returns a single element: shape `x.shape` twice.
pub fn hessian(f: impl Fn(&Tensor) -> Tensor, x: &Tensor) -> Result<Tensor> {
    let mut failed = None;
    let slope = |x: &Tensor| match value_and_grad(|x| f(&x[0]), std::slice::from_ref(x)) {
        Ok((_, mut grads)) => grads.remove(0),
        Err(e) => {
            failed = Some(e);
            x.zeros_like()
        }
    };
    let hessian = jacobian(slope, x)?;
    failed.map_or(Ok(hessian), Err)
}

/// The product of the Hessian of `f` at `x` with `v`, forward over reverse: about the cost of two
/// gradients.
///
/// ```
/// use chainrule::{Tensor, autograd::hvp};
/// let (x, v) = (Tensor::from([2.0f64, 3.0]), Tensor::from([1.0f64, 1.0]));
/// let hv = hvp(|x| (x * x * x).sum_all(), &x, &v).unwrap();
/// assert_eq!(hv.to_vec::<f64>(), [12.0, 18.0]);
/// ```
pub fn hvp(f: impl Fn(&Tensor) -> Tensor, x: &Tensor, v: &Tensor) -> Result<Tensor> {
    let mut failed = None;
    let slope = |x: &[Tensor]| match value_and_grad(|x| f(&x[0]), x) {
        Ok((_, mut grads)) => grads.remove(0),
        Err(e) => {
            failed = Some(e);
            x[0].zeros_like()
        }
    };
    let (_, hv) = jvp(slope, std::slice::from_ref(x), std::slice::from_ref(v))?;
    failed.map_or(Ok(hv), Err)
}
