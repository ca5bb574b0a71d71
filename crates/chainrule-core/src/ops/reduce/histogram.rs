//! `histogram`: how many elements fall into each of some bins.

use crate::kernels::count;
use crate::kernels::math::Real;
use crate::ops::prelude::*;

fn counted<T: Real + Stored>(
    x: &[T],
    bins: usize,
    range: Option<(f64, f64)>,
) -> Result<(Tensor, Tensor)> {
    let (low, high) = match range {
        Some(range) => range,
        None if x.is_empty() => (0.0, 1.0),
        None => count::range(x).ok_or_else(|| {
            let why = "not all elements are finite; give the range, which leaves those out";
            Error::argument("histogram", why)
        })?,
    };
    if !(low.is_finite() && high.is_finite() && low <= high) {
        let why = format!("the range {low} to {high} must be finite and rise");
        return Err(Error::argument("histogram", why));
    }
    let (low, high) = if low == high { (low - 0.5, high + 0.5) } else { (low, high) };
    let over = || Error::argument("histogram", format!("{bins} bins are too many"));
    let of = |n: usize| [n].into_shape("histogram").map_err(|_| over());
    let edges = of(bins.checked_add(1).ok_or_else(over)?)?;
    let edges = Value::build("histogram", edges, |out: &mut [T]| count::edges(low, high, out))?;
    let cuts: &[T] = edges.slice().expect("just made");
    let numbers = Value::build("histogram", of(bins)?, |out: &mut [i64]| {
        out.fill(0);
        count::histogram(x, cuts, out);
    })?;
    let counts = Tensor::constant(numbers).try_to_dtype(T::DTYPE)?;
    Ok((counts, Tensor::constant(edges)))
}

methods! {
    /// The number of elements in each of `bins` equal parts of `range`, and the edges of the parts,
    /// one more: both in the dtype of `x`.
    ///
    /// For f32 and f64. A part holds its lower edge, and the last its upper one too; what is
    /// outside, NaN included, is left out. Without a range it goes from the smallest to the largest
    /// element, all of which must be finite then. A range of width 0 is widened by a half on both
    /// sides. A constant for differentiation.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1.0f32, 1.5, 2.0, 3.0, 4.0, 9.0]);
    /// let (counts, edges) = x.histogram(3, Some((1.0, 4.0)));
    /// assert_eq!(counts.to_vec::<f32>(), [2.0, 1.0, 2.0]);
    /// assert_eq!(edges.to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0]);
    /// ```
    pub fn histogram / try_histogram(&self, bins: usize, range: Option<(f64, f64)>) -> (Tensor, Tensor) {
        if bins == 0 {
            return Err(Error::argument("histogram", "0 bins hold nothing; ask for one at least"));
        }
        self.catch_up()?;
        log::check_read("histogram", &self.value_ref())?;
        if self.dtype().is_half() {
            let (counts, edges) = self.widened()?.try_histogram(bins, range)?;
            return Ok((counts.try_to_dtype(self.dtype())?, edges.try_to_dtype(self.dtype())?));
        }
        let x = self.widened()?.value().contiguous()?;
        match array(&x) {
            Array::F32(x) => counted(x, bins, range),
            Array::F64(x) => counted(x, bins, range),
            _ => {
                let why = "defined for floats; for integers use bincount, or convert with to_dtype";
                Err(Error::dtype("histogram", &[self.dtype()], why))
            }
        }
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "histogram",
    family: Family::Reduce,
    signature: "x.histogram(bins, range)",
    python: &[Binding::by_hand("histogram", "bins or edges, weights, densities").no_function()],
    formula: "the number of elements in each of equal parts of the range, and their edges",
    gradient: "",
    at_kinks: "a part holds its lower edge, the last both; what is outside is left out, and so is NaN",
    samples: |g| {
        vec![Sample::new("a matrix", vec![normal(g, [3, 17])], |x| {
            Ok(x[0].try_histogram(5, None)?.0)
        })]
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    fn of(x: Vec<f64>, range: Option<(f64, f64)>) -> (Vec<f64>, Vec<f64>) {
        let (counts, edges) = Tensor::from(x).histogram(3, range);
        (counts.to_vec(), edges.to_vec())
    }

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn ranges_of_width_0_nothing_and_nan() {
        let (counts, edges) = of(vec![2.0, 2.0], None);
        assert_eq!((counts, edges[0], edges[3]), (vec![0.0, 2.0, 0.0], 1.5, 2.5));
        let (counts, edges) = of(vec![], None);
        assert_eq!((counts, edges[0], edges[3]), (vec![0.0; 3], 0.0, 1.0));
        let (counts, _) = of(vec![f64::NAN, 1.0], Some((0.0, 1.0)));
        assert_eq!(counts, [0.0, 0.0, 1.0]);
        let (counts, edges) = of(vec![2.0, 2.0], Some((2.0, 2.0)));
        assert_eq!((counts, edges[0]), (vec![0.0, 2.0, 0.0], 1.5));
        let x = vec![1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 0.9];
        assert_eq!(of(x, Some((1.0, 4.0))), (vec![2.0, 1.0, 2.0], vec![1.0, 2.0, 3.0, 4.0]));
    }

    #[test]
    fn errors() {
        let x = Tensor::from([1.0f32, 2.0]);
        assert_eq!(x.histogram(2, None).0.dtype(), DType::F32);
        for (bins, range) in [
            (0, None),
            (3, Some((2.0, 1.0))),
            (3, Some((0.0, f64::INFINITY))),
            (3, Some((f64::NAN, 1.0))),
            (usize::MAX, None),
            (1 << 62, None),
        ] {
            assert!(x.try_histogram(bins, range).is_err(), "{bins} {range:?}");
        }
        assert!(Tensor::from([f32::NAN]).try_histogram(2, None).is_err());
        assert!(Tensor::from([1i64]).try_histogram(2, None).is_err());
    }
}
