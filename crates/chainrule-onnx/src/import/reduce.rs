//! Reductions and cumulative ops.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use super::call::{Call, NodeResult, axis, dims, one};
use super::wrong;

/// The axes of a reduction; none for a no-op.
fn axes(c: &Call<'_>, rank: usize) -> Result<Option<Vec<i64>>> {
    let given = c.ints_at(1, "axes")?.unwrap_or_default();
    for &a in &given {
        axis(a, rank)?;
    }
    Ok(match given.is_empty() {
        true if c.flag("noop_with_empty_axes") => None,
        true => Some((0..rank as i64).collect()),
        false => Some(given),
    })
}

fn reduced(
    c: &Call<'_>,
    before: impl Fn(&Tensor) -> Result<Tensor>,
    f: impl Fn(&Tensor, &[i64], bool) -> Result<Tensor>,
    after: impl Fn(&Tensor) -> Result<Tensor>,
) -> NodeResult {
    let x = c.x(0)?;
    let keep = c.int("keepdims", 1) != 0;
    let Some(axes) = axes(c, x.rank())? else {
        // The elementwise part of the op still applies.
        return one(after(&before(x)?)?);
    };
    let y = after(&f(&before(x)?, &axes, keep)?)?;
    one(y.try_to_dtype(x.dtype())?)
}

fn same(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn summed(x: &Tensor, axes: &[i64], keep: bool) -> Result<Tensor> {
    x.try_sum(axes, keep)
}

/// Maxima or minima; an empty one is the limit of the dtype.
fn extreme(c: &Call<'_>, largest: bool) -> NodeResult {
    let of = |x: &Tensor, axes: &[i64], keep: bool| {
        let chosen = axes.iter().map(|&a| axis(a, x.rank())).collect::<Result<Vec<_>>>()?;
        if chosen.iter().all(|&a| x.shape()[a] > 0) {
            return if largest { x.try_amax(axes, keep) } else { x.try_amin(axes, keep) };
        }
        let sizes = dims(x);
        let left = (0..sizes.len()).filter(|a| keep || !chosen.contains(a));
        let shape: Vec<usize> =
            left.map(|a| if chosen.contains(&a) { 1 } else { sizes[a] }).collect();
        let end = if largest { f64::NEG_INFINITY } else { f64::INFINITY };
        match x.dtype().is_float() {
            true => Tensor::try_full(shape.as_slice(), end, x.dtype()),
            // Bools are 0 and 1.
            false if c.x(0)?.dtype() == DType::Bool => {
                Tensor::try_full(shape.as_slice(), f64::from(u8::from(!largest)), x.dtype())
            }
            false => Err(wrong("no elements have a largest one")),
        }
    };
    let as_number = |x: &Tensor| match x.dtype() {
        DType::Bool => x.try_to_dtype(DType::U8),
        _ => Ok(x.clone()),
    };
    reduced(c, as_number, of, same)
}

pub(super) fn max(c: &Call<'_>) -> NodeResult {
    extreme(c, true)
}

pub(super) fn min(c: &Call<'_>) -> NodeResult {
    extreme(c, false)
}

pub(super) fn sum(c: &Call<'_>) -> NodeResult {
    reduced(c, same, summed, same)
}

pub(super) fn mean(c: &Call<'_>) -> NodeResult {
    let of = |x: &Tensor, axes: &[i64], keep: bool| match x.dtype().is_float() {
        true => x.try_mean(axes, keep),
        false => x.try_to_dtype(DType::F64)?.try_mean(axes, keep),
    };
    reduced(c, same, of, same)
}

pub(super) fn prod(c: &Call<'_>) -> NodeResult {
    reduced(c, same, |x, axes, keep| x.try_prod(axes, keep), same)
}

pub(super) fn l1(c: &Call<'_>) -> NodeResult {
    reduced(c, |x| x.try_abs(), summed, same)
}

pub(super) fn l2(c: &Call<'_>) -> NodeResult {
    let root = |x: &Tensor| match x.dtype().is_float() {
        true => x.try_sqrt(),
        false => x.try_to_dtype(DType::F64)?.try_sqrt(),
    };
    reduced(c, |x| x.try_mul(x), summed, root)
}

pub(super) fn sum_square(c: &Call<'_>) -> NodeResult {
    reduced(c, |x| x.try_mul(x), summed, same)
}

fn float(x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_float() { Ok(x.clone()) } else { x.try_to_dtype(DType::F64) }
}

pub(super) fn log_sum(c: &Call<'_>) -> NodeResult {
    reduced(c, float, summed, |x| x.try_log())
}

pub(super) fn log_sum_exp(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    // The log-sum-exp of a single element is the element.
    match axes(c, x.rank())? {
        None => one(x.clone()),
        Some(_) => reduced(c, float, |x, axes, keep| x.try_logsumexp(axes, keep), same),
    }
}

fn arg(c: &Call<'_>, largest: bool) -> NodeResult {
    let x = c.x(0)?;
    let at = c.axis("axis", 0, x.rank())? as i64;
    let keep = c.int("keepdims", 1) != 0;
    let last = c.flag("select_last_index");
    let x = if last { x.try_flip(&[at][..])? } else { x.clone() };
    let found = if largest { x.try_argmax(at, keep)? } else { x.try_argmin(at, keep)? };
    one(match last {
        true => found.try_neg()?.try_add(Tensor::scalar(x.size(at) as i64 - 1))?,
        false => found,
    })
}

pub(super) fn arg_max(c: &Call<'_>) -> NodeResult {
    arg(c, true)
}

pub(super) fn arg_min(c: &Call<'_>) -> NodeResult {
    arg(c, false)
}

/// A cumulative sum or product.
fn running(c: &Call<'_>, neutral: f64, f: impl Fn(&Tensor, i64) -> Result<Tensor>) -> NodeResult {
    let x = c.x(0)?;
    let at = c.int_at(1)?.ok_or_else(|| wrong("its axis is missing"))?;
    let at = axis(at, x.rank())? as i64;
    let backwards = c.flag("reverse");
    let mut y = if backwards { x.try_flip(&[at][..])? } else { x.clone() };
    let size = y.size(at);
    if c.flag("exclusive") && size > 0 {
        let mut first = dims(&y);
        first[at as usize] = 1;
        let first = Tensor::try_full(first.as_slice(), neutral, y.dtype())?;
        y = Tensor::try_cat(&[&first, &y.try_narrow(at, 0, size - 1)?], at)?;
    }
    y = f(&y, at)?;
    one(if backwards { y.try_flip(&[at][..])? } else { y }.try_to_dtype(x.dtype())?)
}

pub(super) fn cum_sum(c: &Call<'_>) -> NodeResult {
    running(c, 0.0, |x, at| x.try_cumsum(at))
}

pub(super) fn cum_prod(c: &Call<'_>) -> NodeResult {
    running(c, 1.0, |x, at| x.try_cumprod(at))
}

pub(super) fn top_k(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let k = match c.int_at(1)? {
        Some(k) => k,
        None => c.int("k", 0),
    };
    let k = usize::try_from(k).map_err(|_| wrong(format!("{k} elements")))?;
    let at = c.axis("axis", -1, x.rank())? as i64;
    let largest = c.int("largest", 1) != 0;
    let (values, places) = x.try_topk(k, at, largest, c.int("sorted", 1) != 0)?;
    Ok(vec![values, places])
}

/// A function along one axis; before opset 13 along all axes from there on.
fn along(c: &Call<'_>, f: impl Fn(&Tensor, i64) -> Result<Tensor>) -> NodeResult {
    let x = c.x(0)?;
    if c.opset() >= 13 {
        let at = c.axis("axis", -1, x.rank())?;
        return one(f(x, at as i64)?);
    }
    let at = c.axis("axis", 1, x.rank().max(2))?;
    let rows: usize = x.shape()[..at.min(x.rank())].iter().product();
    let flat = x.try_reshape(&[rows as i64, -1][..])?;
    one(f(&flat, 1)?.try_reshape(x.shape())?)
}

pub(super) fn softmax(c: &Call<'_>) -> NodeResult {
    along(c, |x, at| x.try_softmax(at))
}

pub(super) fn log_softmax(c: &Call<'_>) -> NodeResult {
    along(c, |x, at| x.try_log_softmax(at))
}

/// One-hot of the first maximum.
pub(super) fn hardmax(c: &Call<'_>) -> NodeResult {
    along(c, |x, at| {
        let places = x.try_argmax(at, true)?;
        let zero = x.zeros_like();
        zero.try_scatter(at, &places, &places.ones_like().try_to_dtype(x.dtype())?)
    })
}
