//! `unflatten`: one axis split into several; the reverse of `flatten`. A reshape, with the rules of
//! that op.

use crate::ops::prelude::*;

methods! {
    /// One axis split into axes of these sizes, whose product is its size; one of them may be -1. A
    /// view where the memory allows. Gradient: `dx = g` in the shape of `x`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::zeros([2, 12]);
    /// assert_eq!(x.unflatten(1, [3, -1]).shape(), [2, 3, 4]);
    /// ```
    pub fn unflatten / try_unflatten<S: IntoSizes>(&self, axis: i64, sizes: S) -> Tensor {
        let shape = self.shape();
        let axis = shape.axis("unflatten", axis)?;
        let mut sizes = sizes.into_sizes();
        let error = |why: String| Err(Error::shape("unflatten", &[&shape], why));
        if sizes.is_empty() {
            return error("no sizes to split the axis into; give one at least".into());
        }
        let open: Vec<usize> = (0..sizes.len()).filter(|&i| sizes[i] == -1).collect();
        let known = sizes.iter().filter(|&&s| s != -1);
        let product = known.clone().try_fold(1i64, |n, &s| n.checked_mul(s)).unwrap_or(i64::MAX);
        let n = shape[axis] as i64;
        let fits = match open.as_slice() {
            [] => product == n,
            [_] => product > 0 && n % product == 0,
            _ => false,
        };
        if known.clone().any(|&s| s < 0) || !fits {
            return error(format!("axis {axis} of size {n} cannot be split into {sizes:?}"));
        }
        if let [i] = open[..] {
            sizes[i] = n / product;
        }
        let size = |d: &usize| *d as i64;
        let before = shape[..axis].iter().map(size);
        let all: Vec<i64> = before.chain(sizes).chain(shape[axis + 1..].iter().map(size)).collect();
        self.try_reshape(all.as_slice().into_shape("unflatten")?)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "unflatten",
    family: Family::Shape,
    signature: "x.unflatten(axis, sizes)",
    python: &[Binding::by_hand("unflatten", "its result is a view, which aliases")],
    formula: "x with one axis split into several",
    gradient: "dx = g in the shape of x",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], i64, &[i64]); 4] = [
            ("last axis", &[2, 6], -1, &[2, 3]),
            ("what is left over", &[6, 3], 0, &[-1, 3]),
            ("into ones", &[1], 0, &[1, 1]),
            ("empty", &[0, 4], 1, &[2, 2]),
        ];
        cases
            .into_iter()
            .map(|(note, shape, axis, sizes)| {
                Sample::new(note, vec![normal(g, shape)], move |x| x[0].try_unflatten(axis, sizes))
            })
            .collect()
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_must_fit() {
        let x = Tensor::zeros([2, 12]);
        let text = |sizes: &[i64]| x.try_unflatten(1, sizes).unwrap_err().kind().to_string();
        assert_eq!(
            text(&[5, -1]),
            "unflatten: shape [2, 12]: axis 1 of size 12 cannot be split into [5, -1]"
        );
        for sizes in [&[-1, -1][..], &[3, 5], &[0, -1], &[-2, -6], &[i64::MAX, 2], &[]] {
            assert!(x.try_unflatten(1, sizes).is_err());
        }
        assert!(x.try_unflatten(0, [1i64; 8].as_slice()).is_err());
        assert!(x.try_unflatten(2, [1]).is_err());
        assert_eq!(Tensor::zeros([0]).unflatten(0, [0, 3]).shape(), [0, 3]);
        assert_eq!(Tensor::zeros([0]).unflatten(0, [-1, 3]).shape(), [0, 3]);
    }
}
