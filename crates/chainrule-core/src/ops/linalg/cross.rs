//! `cross`: the product of vectors in space. Made of `roll`, `mul` and `sub`, with their rules.

use crate::ops::prelude::*;

methods! {
    /// The cross product of the vectors along `axis`, which has size 3 in both:
    /// `y[i] = a[i + 1] * b[i + 2] - a[i + 2] * b[i + 1]`, with positions counted round. The
    /// operands have equal numbers of axes; the others broadcast. PyTorch's `linalg.cross`.
    ///
    /// Gradient: `da = b x g`, `db = g x a`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (x, y) = (Tensor::from([1.0f32, 0.0, 0.0]), Tensor::from([0.0f32, 1.0, 0.0]));
    /// assert_eq!(x.cross(&y, -1).to_vec::<f32>(), [0.0, 0.0, 1.0]);
    /// ```
    pub fn cross / try_cross(&self, other: &Tensor, axis: i64) -> Tensor {
        let (a, b) = (self.shape(), other.shape());
        let at = a.axis("cross", axis)?;
        if a.rank() != b.rank() || a[at] != 3 || b[at] != 3 {
            let why = format!("both must have as many axes, and size 3 along axis {at}");
            return Err(Error::shape("cross", &[&a, &b], why));
        }
        broadcast_shapes("cross", &[self.meta(), other.meta()])?;
        let next = |t: &Tensor, by: i64| t.try_roll(&[-by], &[axis]);
        let plus = next(self, 1)?.try_mul(&next(other, 2)?)?;
        plus.try_sub(&next(self, 2)?.try_mul(&next(other, 1)?)?)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cross",
    family: Family::Linalg,
    signature: "a.cross(&b, axis)",
    python: &[Binding::by_hand("cross", "the operands are broadcast first").no_function()],
    formula: "y[i] = a[i + 1] * b[i + 2] - a[i + 2] * b[i + 1], positions mod 3",
    gradient: "da = b x g; db = g x a",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], &[usize], i64); 4] = [
            ("vectors", &[3], &[3], 0),
            ("rows that broadcast", &[4, 3], &[1, 3], -1),
            ("columns", &[3, 5], &[3, 5], 0),
            ("empty", &[0, 3], &[1, 3], 1),
        ];
        cases
            .into_iter()
            .map(|(note, a, b, axis)| {
                let inputs = vec![normal(g, a), normal(g, b)];
                Sample::new(note, inputs, move |x| x[0].try_cross(&x[1], axis))
            })
            .collect()
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn values_and_errors() {
        // NumPy's cross([1, 2, 3], [4, 5, 6]).
        let (a, b) = (Tensor::from([1i64, 2, 3]), Tensor::from([4i64, 5, 6]));
        assert_eq!(a.cross(&b, 0).to_vec::<i64>(), [-3, 6, -3]);
        assert!(a.try_cross(&Tensor::from([1i64, 2]), 0).is_err());
        assert!(Tensor::ones([2, 3]).try_cross(&Tensor::ones([3]), -1).is_err());
        assert!(Tensor::ones([2, 3]).try_cross(&Tensor::ones([4, 3]), -1).is_err());
        assert!(a.try_cross(&b, 1).is_err());
    }
}
