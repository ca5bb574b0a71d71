//! `searchsorted` and `bucketize`: where values belong in a sorted sequence.

use crate::kernels::sort;
use crate::ops::prelude::*;

/// The inputs: the sequence, and the values.
#[derive(Debug, Parameters)]
pub(crate) struct SearchSorted {
    op: &'static str,
    right: bool,
}

impl Op for SearchSorted {
    fn name(&self) -> &'static str {
        self.op
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::searchsorted)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_searchsorted({0}, {1}, {right})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let (sequence, values) = (inputs[0].shape, inputs[1].shape);
        let leading = |s: &Shape| s[..s.rank().saturating_sub(1)].to_vec();
        let one_each =
            || sequence.rank() == values.rank() && leading(&sequence) == leading(&values);
        if sequence.rank() == 0 || (sequence.rank() != 1 && !one_each()) {
            let why = "the sequence must have one axis, or one row for each row of the values";
            return Err(Error::shape(self.op, &[&sequence, &values], why));
        }
        Ok(Meta::new(values, DType::I64))
    }

    fn orders(&self) -> bool {
        true
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl WholeKernel for SearchSorted {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (sequence, values) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let count = sequence.shape().last().copied().unwrap_or(0);
        let width = match sequence.shape().rank() {
            1 => values.numel(),
            _ => values.shape().last().copied().unwrap_or(1),
        };
        let mut value = Value::uninit(self.op, out)?;
        let o = value.elements_mut::<i64>();
        let right = self.right;
        by_dtype!(sequence.dtype(), [F32, F64, I64, Bool], |T| sort::search(
            sequence.elements::<T>(),
            count,
            values.elements(),
            width,
            right,
            o
        ));
        Ok(value.into())
    }
}

fn search(op: &'static str, sequence: &Tensor, values: &Tensor, right: bool) -> Result<Tensor> {
    let dtype = sequence.dtype().promote(values.dtype());
    let (sequence, values) = (sequence.detach(), values.detach());
    let inputs = [&sequence.try_to_dtype(dtype)?, &values.try_to_dtype(dtype)?];
    apply(SearchSorted { op, right }, &inputs)
}

methods! {
    /// For each of the values the position in this sequence at which it could be put in, so that
    /// the order stays: before equal elements, or after them if `right`. The shape of the values,
    /// i64.
    ///
    /// The sequence rises along its last axis, which is not checked. It has one axis, or as many as
    /// the values with the same sizes but for the last: then each row is searched for its own
    /// values. Different dtypes are promoted. NaN belongs at the end. A constant for
    /// differentiation.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let sequence = Tensor::from([1.0f32, 3.0, 3.0, 5.0]);
    /// let values = Tensor::from([0.0f32, 3.0, 9.0]);
    /// assert_eq!(sequence.searchsorted(&values, false).to_vec::<i64>(), [0, 1, 4]);
    /// assert_eq!(sequence.searchsorted(&values, true).to_vec::<i64>(), [0, 3, 4]);
    /// ```
    pub fn searchsorted / try_searchsorted(&self, values: &Tensor, right: bool) -> Tensor {
        search("searchsorted", self, values, right)
    }

    /// The number of the bucket of each element, i64: `boundaries[i - 1] < x <= boundaries[i]` for
    /// bucket `i`, or `boundaries[i - 1] <= x < boundaries[i]` if `right`. The boundaries have one
    /// axis, along which they rise.
    ///
    /// It is [`Tensor::searchsorted`] with the operands exchanged.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let boundaries = Tensor::from([1.0f32, 3.0, 5.0]);
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 9.0]]);
    /// assert_eq!(x.bucketize(&boundaries, false).to_vec::<i64>(), [0, 1, 1, 3]);
    /// assert_eq!(x.bucketize(&boundaries, true).to_vec::<i64>(), [1, 1, 2, 3]);
    /// ```
    pub fn bucketize / try_bucketize(&self, boundaries: &Tensor, right: bool) -> Tensor {
        if boundaries.rank() != 1 {
            let shapes = [&self.shape(), &boundaries.shape()];
            return Err(Error::shape("bucketize", &shapes, "the boundaries must have one axis"));
        }
        search("bucketize", boundaries, self, right)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "searchsorted, bucketize",
    family: Family::Index,
    signature: "sequence.searchsorted(&values, right), x.bucketize(&boundaries, right)",
    python: &[Binding::by_hand("searchsorted", "sides, sorters, and numbers as values")
        .no_method()
        .no_function()],
    formula: "the first position at which a value keeps the order of a sorted sequence, or the last if right",
    gradient: "",
    at_kinks: "NaN belongs at the end",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn nan_rows_and_dtypes() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let sequence = Tensor::from([1.0, 2.0, nan]);
        let values = Tensor::from([nan, 5.0, 2.0, 0.0, inf]);
        assert_eq!(sequence.searchsorted(&values, false).to_vec::<i64>(), [3, 3, 1, 0, 3]);
        assert_eq!(sequence.searchsorted(&values, true).to_vec::<i64>(), [3, 3, 3, 0, 3]);
        let rows = Tensor::from([[1.0f32, 2.0, 3.0], [2.0, 2.0, 2.0]]);
        let values = Tensor::from([[2.0f32, 3.0], [2.0, 1.0]]).parameter();
        let places = rows.searchsorted(&values, false);
        assert_eq!((places.to_vec::<i64>(), places.requires_grad()), (vec![1, 2, 0, 0], false));
        let sequence = Tensor::from([1.5f32, 3.0, 5.0]);
        assert_eq!(Tensor::from([1i64, 2]).bucketize(&sequence, false).to_vec::<i64>(), [0, 1]);
        assert_eq!(sequence.searchsorted(&Tensor::scalar(2i64), false).item(), 1.0);
    }

    #[test]
    fn nothing_and_errors() {
        let none = Tensor::zeros([0]);
        assert_eq!(none.searchsorted(&Tensor::zeros([2]), true).to_vec::<i64>(), [0, 0]);
        assert_eq!(Tensor::zeros([3]).searchsorted(&none, true).shape(), [0]);
        assert_eq!(
            Tensor::zeros([2, 0]).searchsorted(&Tensor::ones([2, 1]), false).to_vec::<i64>(),
            [0, 0]
        );
        let error = Tensor::zeros([2, 3]).try_searchsorted(&Tensor::zeros([3]), false).unwrap_err();
        let want = "searchsorted: shapes [2, 3] [3]: the sequence must have one axis, or one row for each row of the values";
        assert_eq!(error.kind().to_string().replace(" and ", " "), want);
        assert!(Tensor::scalar(1.0f32).try_searchsorted(&none, false).is_err());
        assert!(none.try_bucketize(&Tensor::zeros([1, 3]), false).is_err());
    }
}
