//! `kron`: every element of one tensor times all of another. Made of `mul`, with its rules.

use crate::ops::prelude::*;

methods! {
    /// The Kronecker product: the tensor `b` times each element of `a`, as blocks: for matrices
    /// `y[i * p + k, j * q + l] = a[i, j] * b[k, l]`, where `b` is `p` by `q`. The one with fewer
    /// axes gets axes of size 1 in front; four axes at most.
    ///
    /// Gradient: each element of `a` gets the sum of its block of `g` times `b`, and the other way
    /// round.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::eye(2).kron(&Tensor::from([[1.0f32, 2.0]]));
    /// assert_eq!(y.to_vec::<f32>(), [1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0]);
    /// ```
    pub fn kron / try_kron(&self, other: &Tensor) -> Tensor {
        let (a, b) = (self.shape(), other.shape());
        let rank = a.rank().max(b.rank());
        if 2 * rank > MAX_RANK {
            let why = format!("takes at most {} axes", MAX_RANK / 2);
            return Err(Error::shape("kron", &[&a, &b], why));
        }
        // Each axis becomes two: the first has the size of a, the second that of b.
        let (mut left, mut right, mut out) = ([1; MAX_RANK], [1; MAX_RANK], [1; MAX_RANK]);
        for k in 0..rank {
            let size = |s: &Shape| (k + s.rank()).checked_sub(rank).map_or(1, |i| s[i]);
            (left[2 * k], right[2 * k + 1]) = (size(&a), size(&b));
            // A product that overflows is refused for want of memory.
            out[k] = size(&a).saturating_mul(size(&b));
        }
        let (left, right) = (&left[..2 * rank], &right[..2 * rank]);
        self.try_reshape(left)?.try_mul(&other.try_reshape(right)?)?.try_reshape(&out[..rank])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "kron",
    family: Family::Linalg,
    signature: "a.kron(&b)",
    python: &[Binding::with("kron", &[Parameter::tensor("other")], |x, a| x.try_kron(a.tensor(0)))],
    formula: "y[i * p + k, j * q + l] = a[i, j] * b[k, l], for b of p by q",
    gradient: "da[i, j] = sum over k, l of g[i * p + k, j * q + l] * b[k, l]; db[k, l] = sum over i, j of g[..] * a[i, j]",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], &[usize]); 5] = [
            ("matrices", &[2, 3], &[3, 2]),
            ("vector and matrix", &[2], &[3, 2]),
            ("matrix and vector", &[2, 3], &[4]),
            ("0-d", &[], &[2, 2]),
            ("empty", &[0, 2], &[2, 2]),
        ];
        cases
            .into_iter()
            .map(|(note, a, b)| {
                Sample::new(note, vec![normal(g, a), normal(g, b)], |x| x[0].try_kron(&x[1]))
            })
            .collect()
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// Values of NumPy's `kron`.
    #[test]
    fn blocks() {
        let a = Tensor::from([[1i64, 2], [3, 4]]);
        let y = a.kron(&Tensor::from([[0i64, 1], [1, 1]]));
        assert_eq!(y.shape(), [4, 4]);
        assert_eq!(y.to_vec::<i64>(), [0, 1, 0, 2, 1, 1, 2, 2, 0, 3, 0, 4, 3, 3, 4, 4]);
        assert_eq!(Tensor::ones([2]).kron(&Tensor::ones([3, 2])).shape(), [3, 4]);
        assert!(Tensor::ones([1; 5]).try_kron(&a).is_err());
    }
}
