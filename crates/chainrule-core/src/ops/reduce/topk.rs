//! `topk`: the largest or smallest few elements along an axis, and where they stand.

use super::sort::{MISTAKES, Sort, sorted as arranged};
use crate::kernels::sort::Part;
use crate::ops::prelude::*;

methods! {
    /// The `k` largest elements along `axis` (the smallest, unless `largest`), and their positions
    /// (i64). For all dtypes.
    ///
    /// With `sorted` they come in their order, the most extreme first; else in any. The first of
    /// equal elements are taken; NaN is larger than everything. A `k` beyond the size of the axis
    /// is an error. Gradient: each `g` is put at the position of its element, 0 elsewhere.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (values, positions) = Tensor::from([3.0f32, 1.0, 4.0, 2.0]).topk(2, 0, true, true);
    /// assert_eq!(values.to_vec::<f32>(), [4.0, 3.0]);
    /// assert_eq!(positions.to_vec::<i64>(), [2, 0]);
    /// ```
    pub fn topk / try_topk(&self, k: usize, axis: i64, largest: bool, sorted: bool) -> (Tensor, Tensor) {
        let shape = self.shape();
        let axis = shape.axis("topk", axis)?;
        if k > shape[axis] {
            let why = format!("k = {k} elements asked for, but axis {axis} has {}", shape[axis]);
            return Err(Error::shape("topk", &[&shape], why));
        }
        arranged(self, Sort { axis, descending: largest, part: Part::First(k, sorted) })
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "topk",
    family: Family::Reduce,
    signature: "x.topk(k, axis, largest, sorted)",
    python: &[Binding::pair(
        "topk",
        &[
            Parameter::count("k"),
            Parameter::int("dim").or(-1),
            Parameter::flag("largest", true),
            Parameter::flag("sorted", true),
        ],
        |x, a| {
            along_axis_pair(x, a.int(1), |x| x.try_topk(a.count(0), a.int(1), a.flag(2), a.flag(3)))
        },
    )],
    formula: "y[i] = x[p[i]], the k largest or smallest, and their positions p",
    gradient: "dx[p[i]] = g[i], 0 elsewhere",
    at_kinks: "of equal elements the first are taken; NaN is the largest",
    samples: |g| {
        let mut out = axis_samples(g, |x, axis| {
            let size = x.shape()[x.shape().axis("topk", axis)?];
            Ok(x.try_topk(size.min(2), axis, axis != 0, axis != 1)?.0)
        });
        out.push(Sample::new("all of them", vec![normal(g, [2, 5])], |x| {
            Ok(x[0].try_topk(5, 1, true, true)?.0)
        }));
        out.push(Sample::new("none of them", vec![normal(g, [2, 5])], |x| {
            Ok(x[0].try_topk(0, 1, true, true)?.0)
        }));
        let ties = Tensor::from([[1.0, 3.0, 3.0, 3.0]]);
        let tied = Sample::new("ties", vec![ties], |x| Ok(x[0].try_topk(2, 1, true, true)?.0));
        out.push(tied.at_kink());
        out
    },
    mistakes: MISTAKES,
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// The values that PyTorch 2.15 gives. It takes any of equal ones.
    #[test]
    fn nan_is_the_largest() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let x = Tensor::from([3.0, nan, -0.0, 0.0, -inf, nan, inf, 3.0]);
        assert_eq!(x.topk(4, 0, true, true).1.to_vec::<i64>(), [1, 5, 6, 0]);
        let (values, positions) = x.topk(4, 0, false, true);
        assert_eq!(values.to_vec::<f32>(), [-inf, 0.0, 0.0, 3.0]);
        assert_eq!(positions.to_vec::<i64>(), [4, 2, 3, 0]);
        assert_eq!(x.topk(0, 0, true, true).0.shape(), [0]);
    }

    #[test]
    fn in_any_order_they_are_the_same_elements() {
        let x = Tensor::arange(0, 300).reshape([100, 3]);
        for k in [1, 2, 50, 99, 100] {
            let (values, positions) = x.topk(k, 0, true, false);
            let mut all = values.select_column(0);
            all.sort_unstable();
            let want: Vec<i64> = (100 - k as i64..100).map(|i| 3 * i).collect();
            assert_eq!(all, want);
            assert_eq!(x.gather(0, &positions).to_vec::<i64>(), values.to_vec::<i64>());
        }
    }

    impl Tensor {
        fn select_column(&self, j: usize) -> Vec<i64> {
            (0..self.shape()[0]).map(|i| self.at::<i64>(&[i, j])).collect()
        }
    }

    #[test]
    fn errors() {
        let error = Tensor::zeros([2, 3]).try_topk(4, 1, true, true).unwrap_err();
        let want = "topk: shape [2, 3]: k = 4 elements asked for, but axis 1 has 3";
        assert_eq!(error.kind().to_string(), want);
        assert!(Tensor::scalar(1.0f32).try_topk(1, 0, true, true).is_err());
    }
}
