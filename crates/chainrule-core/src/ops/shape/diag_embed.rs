//! `diag_embed`: vectors on a diagonal of matrices of zeros; the reverse of `diagonal`.

use super::diagonal;
use super::window::Unwindow;
use crate::ops::prelude::*;

methods! {
    /// Square matrices with the last axis of `x` on a diagonal, and zeros elsewhere:
    /// `y[.., k, .., k + offset, ..] = x[.., k]`, with the rows in `axis1` and the columns in
    /// `axis2` of the result. PyTorch's `diag_embed`, whose defaults are `(0, -2, -1)`.
    ///
    /// The matrices have `n + |offset|` rows. Errors for a 0-d tensor, and if the two axes are one.
    /// Any dtype. Gradient: the diagonal of `g`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::from([1.0f32, 2.0]).diag_embed(1, -2, -1);
    /// assert_eq!(y.to_vec::<f32>(), [0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0]);
    /// ```
    pub fn diag_embed / try_diag_embed(&self, offset: i64, axis1: i64, axis2: i64) -> Tensor {
        let name = "diag_embed";
        let from = self.shape();
        let Some((&n, batch)) = from.split_last() else {
            return Err(Error::shape(name, &[&from], "a 0-d tensor has no axis to put on a diagonal"));
        };
        let shift = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
        // A sum that overflows is refused for want of memory.
        let side = n.saturating_add(shift);
        let mut shape = from.with_axis(name, 0, side)?;
        let (a, b) = (shape.axis(name, axis1)?, shape.axis(name, axis2)?);
        let mut rest = batch.iter();
        for (k, d) in shape.dims_mut().iter_mut().enumerate() {
            *d = if k == a || k == b { side } else { *rest.next().unwrap_or(&side) };
        }
        let window = diagonal::window(name, &shape, offset, axis1, axis2)?;
        apply(window.reversed(shape), &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "diag_embed",
    family: Family::Shape,
    signature: "x.diag_embed(offset, axis1, axis2)",
    python: &[Binding::with(
        "diag_embed",
        &[
            Parameter::int("offset").or(0),
            Parameter::int("dim1").or(-2),
            Parameter::int("dim2").or(-1),
        ],
        |x, a| x.try_diag_embed(a.int(0), a.int(1), a.int(2)),
    )],
    formula: "y[.., k, .., k + offset, ..] = x[.., k], and 0 elsewhere",
    gradient: "dx[.., k] = g[.., k, .., k + offset, ..]",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], i64, i64, i64); 5] = [
            ("main", &[3], 0, 0, 1),
            ("above, of a batch", &[2, 3], 2, -2, -1),
            ("below, axes apart", &[2, 3], -1, 2, 0),
            ("no vectors", &[0, 3], 0, -2, -1),
            ("vectors of nothing", &[2, 0], 1, 0, 1),
        ];
        cases
            .into_iter()
            .map(|(note, shape, offset, a, b)| {
                let x = vec![normal(g, shape)];
                Sample::new(note, x, move |x| x[0].try_diag_embed(offset, a, b))
            })
            .collect()
    },
    mistakes: &[Mistake {
        name: "gradient from the wrong place",
        what: "the gradient is read along the main diagonal, wherever the vector was put",
        rule: |op, _, g, _| {
            let op = op.downcast::<Unwindow>()?;
            let mut main = op.window.clone();
            main.start = [0; MAX_RANK];
            Ok(smallvec![Some(apply(main, &[g])?)])
        },
    }],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_dtypes_and_errors() {
        let x = Tensor::from([[1i64, 2], [3, 4]]);
        let y = x.diag_embed(0, 0, -1);
        assert_eq!(y.shape(), [2, 2, 2]);
        assert_eq!(y.to_vec::<i64>(), [1, 0, 3, 0, 0, 2, 0, 4]);
        let b = Tensor::from([true, true]).diag_embed(-1, 0, 1);
        assert!(b.to_vec::<bool>()[3]);
        assert_eq!(b.to_vec::<bool>().iter().filter(|b| **b).count(), 2);
        assert!(x.try_diag_embed(0, 1, 1).is_err());
        assert!(x.try_diag_embed(0, 3, 1).is_err());
        for offset in [i64::MIN, i64::MAX, 1 << 40] {
            assert!(x.try_diag_embed(offset, 0, 1).is_err());
        }
        assert!(Tensor::zeros(()).try_diag_embed(0, 0, 1).is_err());
        assert!(Tensor::zeros([1; 8]).try_diag_embed(0, 0, 1).is_err());
    }
}
