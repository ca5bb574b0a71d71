//! `repeat_interleave`: each position of an axis several times in a row.

use crate::ops::prelude::*;

methods! {
    /// Each position of `axis` repeated in a row: `y[.., k, ..] = x[.., k / times, ..]`. For
    /// other counts at each position see [`Tensor::repeat_interleave_with`]; for whole tensors one
    /// after the other [`Tensor::repeat`].
    ///
    /// Any dtype. Gradient: the sum of the gradients of the copies.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// assert_eq!(x.repeat_interleave(2, 0).to_vec::<f32>(), [1.0, 1.0, 2.0, 2.0]);
    /// ```
    pub fn repeat_interleave / try_repeat_interleave(&self, times: usize, axis: i64) -> Tensor {
        let name = "repeat_interleave";
        let shape = self.shape();
        let axis = shape.axis(name, axis)?;
        let size = |n: usize| {
            let mut out = shape;
            out.dims_mut()[axis] = n;
            out
        };
        let Some(out) = shape[axis].checked_mul(times).map(size).filter(|s| s.checked_numel().is_some()) else {
            let why = format!("axis {axis} {times} times has more elements than memory has addresses");
            return Err(Error::shape(name, &[&shape], why));
        };
        // The axes before and after as one each: with a new one there are never too many.
        let before: usize = shape[..axis].iter().product();
        let after: usize = shape[axis + 1..].iter().product();
        let x = self.try_reshape([before, shape[axis], 1, after])?;
        x.try_expand([before, shape[axis], times, after])?.try_reshape(out)
    }

    /// Each position of `axis` as many times in a row as `times` says: i64 counts, one for each
    /// position. PyTorch's `repeat_interleave` with a tensor.
    ///
    /// Errors for another number of counts, and a negative count. Any dtype. Gradient: the sum of
    /// the gradients of the copies.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1.0f32, 2.0, 3.0]);
    /// let y = x.repeat_interleave_with(&Tensor::from([2i64, 0, 1]), 0);
    /// assert_eq!(y.to_vec::<f32>(), [1.0, 1.0, 3.0]);
    /// ```
    pub fn repeat_interleave_with / try_repeat_interleave_with(&self, times: &Tensor, axis: i64) -> Tensor {
        let name = "repeat_interleave";
        let shape = self.shape();
        let axis = shape.axis(name, axis)?;
        if !times.dtype().is_integer() {
            return Err(Error::dtype(name, &[times.dtype()], "the counts must be i64; convert with to_dtype"));
        }
        if times.shape() != [shape[axis]] {
            let why = format!("the counts must be a vector, one for each position of axis {axis}");
            return Err(Error::shape(name, &[&shape, &times.shape()], why));
        }
        let counts = times.try_to_vec::<i64>()?;
        if let Some(at) = counts.iter().position(|&n| n < 0) {
            let why = format!("the count {} at position {at} is negative; counts start at 0", counts[at]);
            return Err(Error::argument(name, why));
        }
        let total = counts.iter().try_fold(0i64, |t, &n| t.checked_add(n)).unwrap_or(i64::MAX);
        let mut value = Value::uninit(name, Meta::new([total].into_shape(name)?, DType::I64))?;
        let mut rest = value.elements_mut::<i64>();
        for (i, &n) in counts.iter().enumerate() {
            let (now, later) = rest.split_at_mut(n as usize);
            now.fill(i as i64);
            rest = later;
        }
        self.try_index_select(axis as i64, &Tensor::constant(value))
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "repeat_interleave",
    family: Family::Shape,
    signature: "x.repeat_interleave(times, axis), x.repeat_interleave_with(&counts, axis)",
    python: &[Binding::by_hand("repeat_interleave", "the repeats are a number or a tensor")],
    formula: "y[.., k, ..] = x[.., k / times, ..]",
    gradient: "dx[.., k / times, ..] += g[.., k, ..]",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], usize, i64); 5] = [
            ("rows", &[3, 2], 2, 0),
            ("columns", &[2, 3], 3, -1),
            ("middle axis", &[2, 3, 2], 2, 1),
            ("no times", &[2, 3], 0, 1),
            ("of nothing", &[2, 0], 2, 0),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, shape, times, axis)| {
                let x = vec![normal(g, shape)];
                Sample::new(note, x, move |x| x[0].try_repeat_interleave(times, axis))
            })
            .collect();
        let counts: [(&str, &[usize], &[i64], i64); 2] =
            [("counts", &[3, 2], &[2, 0, 3], 0), ("counts of columns", &[2, 3], &[0, 1, 2], 1)];
        out.extend(counts.map(|(note, shape, times, axis)| {
            let times = Tensor::from(times.to_vec());
            let x = vec![normal(g, shape)];
            Sample::new(note, x, move |x| x[0].try_repeat_interleave_with(&times, axis))
        }));
        out
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_checked() {
        let x = Tensor::zeros([2, 3]);
        let text = |r: Result<Tensor>| r.unwrap_err().kind().to_string();
        let with = |n: &[i64]| x.try_repeat_interleave_with(&Tensor::from(n.to_vec()), 0);
        assert_eq!(
            text(with(&[1, -1])),
            "repeat_interleave: the count -1 at position 1 is negative; counts start at 0"
        );
        assert!(text(with(&[1])).contains("one for each position of axis 0"));
        assert!(with(&[i64::MAX, i64::MAX]).is_err() && with(&[1 << 50, 1]).is_err());
        assert!(x.try_repeat_interleave_with(&Tensor::from([1.0f32, 2.0]), 0).is_err());
        assert!(x.try_repeat_interleave(usize::MAX, 0).is_err());
        assert!(x.try_repeat_interleave(1 << 50, 0).is_err());
        assert!(Tensor::zeros(()).try_repeat_interleave(2, 0).is_err());
        assert_eq!(Tensor::zeros([1; 8]).repeat_interleave(3, 4).numel(), 3);
    }
}
