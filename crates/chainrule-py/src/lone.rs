//! PyTorch lets a tensor without axes stand for one of one element, along the axes 0 and -1.

use chainrule::{Result, Tensor};

/// Runs `f` on the tensor; one without axes gets an axis for it, and the result loses that again.
pub fn along(t: &Tensor, axis: i64, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    match is_lone(t, axis) {
        true => without_axes(f(&t.try_reshape([1i64])?)?),
        false => f(t),
    }
}

/// As [`along`], for two results.
pub fn along_pair(
    t: &Tensor,
    axis: i64,
    f: impl FnOnce(&Tensor) -> Result<(Tensor, Tensor)>,
) -> Result<(Tensor, Tensor)> {
    if !is_lone(t, axis) {
        return f(t);
    }
    let (a, b) = f(&t.try_reshape([1i64])?)?;
    Ok((without_axes(a)?, without_axes(b)?))
}

/// An index or a source beside such a tensor, with an axis at least.
pub fn with_axis(t: Tensor) -> Result<Tensor> {
    if t.rank() == 0 { t.try_reshape([1i64]) } else { Ok(t) }
}

fn is_lone(t: &Tensor, axis: i64) -> bool {
    t.rank() == 0 && matches!(axis, 0 | -1)
}

fn without_axes(t: Tensor) -> Result<Tensor> {
    t.try_reshape(Vec::<i64>::new())
}
