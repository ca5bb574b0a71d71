//! Negative indices, as an op: so that an index which is another in each run of a program is
//! counted from the end in each.

use super::expect_indices;
use crate::kernels::gather::first_outside;
use crate::ops::prelude::*;
use crate::tensor::log;

/// The indices with negative ones counted from the end of something of this size; an error for
/// those outside.
#[derive(Clone, Debug, Parameters)]
struct Wrap {
    /// The op that they are for.
    op: &'static str,
    size: usize,
    /// The thing that has that size.
    what: String,
}

/// As [`Wrap`] says: at once, and in a trace as an instruction.
#[track_caller]
pub(super) fn wrapped(
    op: &'static str,
    indices: &Tensor,
    size: usize,
    what: impl Into<String>,
) -> Result<Tensor> {
    expect_indices(op, &indices.meta())?;
    // In a small dtype there may be no room for the position that is meant.
    let indices = &indices.try_to_dtype(DType::I64)?;
    let wrap = Wrap { op, size, what: what.into() };
    if log::is_on() {
        return apply(wrap, &[indices]);
    }
    indices.catch_up()?;
    let value = indices.value().contiguous()?;
    let list: &[i64] = value.slice().expect("made contiguous");
    if first_outside(list, size).is_none() {
        return Ok(indices.clone());
    }
    Ok(Tensor::constant(wrap.value(list, indices.shape())?))
}

impl Wrap {
    fn value(&self, list: &[i64], shape: Shape) -> Result<Value> {
        let n = self.size as i64;
        let outside = |i: &i64| !(-n..n).contains(i);
        if let Some(at) = list.iter().position(outside) {
            let range = match n {
                0 => "it is empty".to_string(),
                _ => format!("indices run from {} to {}", -n, n - 1),
            };
            let (index, what) = (list[at], &self.what);
            let why =
                format!("index {index} at position {at} is outside {what} of size {n}; {range}");
            return Err(Error::argument(self.op, why));
        }
        let wrap = |(out, &i): (&mut i64, &i64)| *out = if i < 0 { i + n } else { i };
        Value::build(self.op, shape, |out| out.iter_mut().zip(list).for_each(wrap))
    }
}

impl Op for Wrap {
    fn name(&self) -> &'static str {
        "wrap"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.where({0} < 0, {0} + {size}, {0})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        expect_indices(self.op, &inputs[0])?;
        Ok(inputs[0])
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl WholeKernel for Wrap {
    fn run(&self, inputs: &[Arc<Value>], _: Meta) -> Result<Outcome> {
        let value = inputs[0].contiguous()?;
        let list: &[i64] = value.slice().expect("made contiguous");
        Ok(self.value(list, *inputs[0].shape())?.into())
    }
}
