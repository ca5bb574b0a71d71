//! `unique`: the different elements, and how they make up the whole.

use crate::kernels::sort::{self, Part, Sorted};
use crate::ops::prelude::*;
use crate::tensor::widen;

fn parts<T: Sorted + Stored>(x: &[T], shape: Shape) -> Result<(Tensor, Tensor, Tensor)> {
    let mut order = vec![0; x.len()];
    sort::order(x, x.len(), 1, false, Part::All, &mut order);
    let mut starts = Vec::new();
    let inverse = Value::build("unique", shape, |group| starts = sort::groups(x, &order, group))?;
    let size = [starts.len()].into_shape("unique")?;
    let values = Value::build("unique", size, |out: &mut [T]| {
        out.iter_mut().zip(&starts).for_each(|(out, &at)| *out = x[order[at] as usize]);
    })?;
    let ends = starts.iter().copied().skip(1).chain([order.len()]);
    let counts: Vec<i64> = starts.iter().zip(ends).map(|(a, b)| (b - a) as i64).collect();
    Ok((Tensor::constant(values), Tensor::constant(inverse), Tensor::from(counts)))
}

methods! {
    /// The different elements in rising order; for each element of `x` the position of its value
    /// among them, in the shape of `x`; and how often each occurs. For all dtypes. PyTorch's
    /// `unique` of the flattened tensor with `return_inverse` and `return_counts`.
    ///
    /// NaN equals nothing, so each is a value of its own, at the end; -0 and 0 are one value, that
    /// of the first. Constants for differentiation.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (values, inverse, counts) = Tensor::from([[3i64, 1], [1, 2]]).unique();
    /// assert_eq!(values.to_vec::<i64>(), [1, 2, 3]);
    /// assert_eq!(inverse.to_vec::<i64>(), [2, 0, 0, 1]);
    /// assert_eq!(counts.to_vec::<i64>(), [2, 1, 1]);
    /// ```
    pub fn unique / try_unique(&self) -> (Tensor, Tensor, Tensor) {
        self.catch_up()?;
        log::check_read("unique", &self.value_ref())?;
        if self.dtype() == DType::U64 {
            let turned = widen::turned(&self.value(), DType::I64)?;
            let (values, inverse, counts) = Tensor::constant(turned).try_unique()?;
            let values = widen::turned(&values.value(), DType::U64)?;
            return Ok((Tensor::constant(values), inverse, counts));
        }
        let x = self.widened()?.value().contiguous()?;
        let (values, inverse, counts) = match array(&x) {
            Array::F32(x) => parts(x, self.shape()),
            Array::F64(x) => parts(x, self.shape()),
            Array::I64(x) => parts(x, self.shape()),
            Array::Bool(x) => parts(x, self.shape()),
        }?;
        Ok((values.try_to_dtype(self.dtype())?, inverse, counts))
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "unique",
    family: Family::Reduce,
    signature: "x.unique()",
    python: &[Binding::by_hand("unique", "one result to three")],
    formula: "the different elements in rising order, where each element is among them, and how often each occurs",
    gradient: "",
    at_kinks: "each NaN is a value of its own, at the end",
    samples: |g| {
        vec![Sample::new("a matrix", vec![normal(g, [3, 4])], |x| Ok(x[0].try_unique()?.0))]
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn nan_zeros_and_nothing() {
        let nan = f32::NAN;
        let (values, inverse, counts) = Tensor::from([3.0, nan, 1.0, nan, -0.0, 0.0, 3.0]).unique();
        let values = values.to_vec::<f32>();
        assert!(values[0].is_sign_negative() && values[3].is_nan() && values[4].is_nan());
        assert_eq!(values[..3], [0.0, 1.0, 3.0]);
        assert_eq!(inverse.to_vec::<i64>(), [2, 3, 1, 4, 0, 0, 2]);
        assert_eq!(counts.to_vec::<i64>(), [2, 1, 2, 1, 1]);
        let (values, inverse, counts) = Tensor::zeros([0, 3]).unique();
        assert_eq!((values.numel(), inverse.shape().dims(), counts.numel()), (0, &[0, 3][..], 0));
    }

    #[test]
    fn bools_views_and_one_element() {
        let (values, inverse, counts) = Tensor::from([[true, false], [true, true]]).t().unique();
        assert_eq!(values.to_vec::<bool>(), [false, true]);
        assert_eq!(inverse.to_vec::<i64>(), [1, 1, 0, 1]);
        assert_eq!(counts.to_vec::<i64>(), [1, 3]);
        let (values, inverse, _) = Tensor::scalar(7i64).unique();
        assert_eq!((values.to_vec::<i64>(), inverse.rank()), (vec![7], 0));
    }
}
