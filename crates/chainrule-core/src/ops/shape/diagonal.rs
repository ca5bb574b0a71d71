//! `diagonal` (a view), `diag` and `matrix_trace`.

use super::window::{Move, Window};
use crate::ops::prelude::*;

methods! {
    /// The elements on a diagonal of the matrices in `axis1` and `axis2`, as a view: the two axes
    /// go, and a new last one runs along the diagonal. `y[.., k] = x[.., k, .., k + offset, ..]`; a
    /// negative offset lies below the main diagonal, which has offset 0. PyTorch's `diagonal`.
    ///
    /// A diagonal that lies outside is empty. Errors if the two axes are one. Any dtype. Gradient:
    /// `dx` is `g` on the diagonal among zeros.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// assert_eq!(x.diagonal(0, 0, 1).to_vec::<f32>(), [1.0, 5.0]);
    /// assert_eq!(x.diagonal(1, 0, 1).to_vec::<f32>(), [2.0, 6.0]);
    /// ```
    pub fn diagonal / try_diagonal(&self, offset: i64, axis1: i64, axis2: i64) -> Tensor {
        apply(window("diagonal", &self.shape(), offset, axis1, axis2)?, &[self])
    }

    /// The square matrix with a vector on a diagonal, or that diagonal of a matrix:
    /// [`Tensor::diag_embed`] or [`Tensor::diagonal`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// assert_eq!(x.diag(0).to_vec::<f32>(), [1.0, 0.0, 0.0, 2.0]);
    /// assert_eq!(x.diag(0).diag(0).to_vec::<f32>(), [1.0, 2.0]);
    /// ```
    pub fn diag / try_diag(&self, offset: i64) -> Tensor {
        match self.rank() {
            1 => self.try_diag_embed(offset, 0, 1),
            2 => self.try_diagonal(offset, 0, 1),
            _ => Err(Error::shape("diag", &[&self.shape()], "takes a vector or a matrix; for others use diagonal or diag_embed")),
        }
    }

    /// The sum of the main diagonal of a matrix: PyTorch's `trace`, a name that the tape's
    /// [`Tensor::trace`] has here. Gradient: `g` on the diagonal among zeros.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]).matrix_trace().item(), 5.0);
    /// ```
    pub fn matrix_trace / try_matrix_trace(&self) -> Tensor {
        if self.rank() != 2 {
            let why = "takes a matrix; for a batch sum the diagonal";
            return Err(Error::shape("matrix_trace", &[&self.shape()], why));
        }
        self.try_diagonal(0, 0, 1)?.try_sum(0, false)
    }
}

/// The diagonal of arrays of this shape, for `op`.
pub(super) fn window(
    op: &'static str,
    shape: &Shape,
    offset: i64,
    axis1: i64,
    axis2: i64,
) -> Result<Window> {
    let (a, b) = (shape.axis(op, axis1)?, shape.axis(op, axis2)?);
    if a == b {
        let why = format!("axes {axis1} and {axis2} are the same; a diagonal crosses two");
        return Err(Error::shape(op, &[shape], why));
    }
    let mut start = [0; MAX_RANK];
    let shift = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
    start[if offset < 0 { a } else { b }] = shift;
    let left = |axis: usize| shape[axis].saturating_sub(start[axis]);
    let count = left(a).min(left(b));
    let kept: Vec<usize> = (0..shape.rank()).filter(|&k| k != a && k != b).collect();
    let mut sizes: Vec<usize> = kept.iter().map(|&k| shape[k]).collect();
    sizes.push(count);
    let mut moves: smallvec::SmallVec<[Move; MAX_RANK]> =
        kept.iter().enumerate().map(|(of, &along)| Move { of, along, by: 1 }).collect();
    moves.extend([a, b].map(|along| Move { of: kept.len(), along, by: 1 }));
    let out = Shape::new(&sizes);
    let reverse = Name::of(OpId::diag_embed, "diag_embed");
    Ok(Window { id: OpId::diagonal, reverse, start, moves, out, overlaps: false })
}

pub(super) const ENTRY: Entry = Entry {
    name: "diagonal",
    family: Family::Shape,
    signature: "x.diagonal(offset, axis1, axis2), x.diag(offset), x.matrix_trace()",
    python: &[
        Binding::by_hand("diagonal", "its result is a view, which aliases"),
        Binding::with("diag", &[Parameter::int("diagonal").or(0)], |x, a| x.try_diag(a.int(0)))
            .formula("the diagonal of a matrix, or the matrix with that diagonal"),
        Binding::with("trace", &[], |x, _| x.try_matrix_trace()).formula("the sum of the diagonal"),
    ],
    formula: "y[.., k] = x[.., k, .., k + offset, ..]",
    gradient: "dx[.., k, .., k + offset, ..] = g[.., k], and 0 elsewhere",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], i64, i64, i64); 6] = [
            ("main", &[3, 4], 0, 0, 1),
            ("above", &[3, 4], 2, 0, 1),
            ("below, of a batch", &[2, 4, 3], -1, -2, -1),
            ("axes apart and exchanged", &[3, 2, 4], 1, 2, 0),
            ("outside", &[2, 3], 5, 0, 1),
            ("empty", &[0, 3], 0, 0, 1),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, shape, offset, a, b)| {
                let x = vec![normal(g, shape)];
                Sample::new(note, x, move |x| x[0].try_diagonal(offset, a, b))
            })
            .collect();
        out.push(Sample::new("trace", vec![normal(g, [3, 4])], |x| x[0].try_matrix_trace()));
        out
    },
    mistakes: &[Mistake {
        name: "gradient in the wrong place",
        what: "the gradient of a diagonal beside the main one is put at the start of the main one",
        rule: |op, at, g, _| {
            let mut main = Window::of(op)?.clone();
            main.start = [0; MAX_RANK];
            Ok(smallvec![Some(apply(main.reversed(at.input_shape(0)), &[g])?)])
        },
    }],
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element against index arithmetic.
    #[test]
    fn diagonals_of_any_two_axes() {
        let x = Tensor::arange(0, 3 * 4 * 5).reshape([3, 4, 5]);
        for (a, b) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
            let other = 3 - a - b;
            for offset in -5..=5i64 {
                let y = x.diagonal(offset, a as i64, b as i64 - 3);
                let mut count = 0;
                for (i, j) in (0..x.shape()[a] as i64).map(|i| (i, i + offset)) {
                    if !(0..x.shape()[b] as i64).contains(&j) {
                        continue;
                    }
                    for o in 0..x.shape()[other] {
                        let mut at = [o; 3];
                        (at[a], at[b]) = (i as usize, j as usize);
                        assert_eq!(y.at::<i64>(&[o, count]), x.at::<i64>(&at));
                    }
                    count += 1;
                }
                assert_eq!(y.shape(), [x.shape()[other], count], "{a} {b} {offset}");
                // The reverse puts it back: nothing else is left of the diagonal's sum.
                let back = y.diag_embed(offset, 0, -1);
                assert_eq!(back.diagonal(offset, 0, -1).to_vec::<i64>(), y.to_vec::<i64>());
                assert_eq!(back.sum_all().item(), y.sum_all().item());
            }
        }
    }

    #[test]
    fn outside_and_errors() {
        let x = Tensor::zeros([2, 3]);
        for offset in [3, 5, -2, i64::MIN, i64::MAX] {
            assert_eq!(x.diagonal(offset, 0, 1).shape(), [0]);
        }
        assert_eq!(x.diagonal(-1, 1, 0).shape(), [2]);
        let text = x.try_diagonal(0, 1, -1).unwrap_err().kind().to_string();
        assert_eq!(
            text,
            "diagonal: shape [2, 3]: axes 1 and -1 are the same; a diagonal crosses two"
        );
        assert!(x.try_diagonal(0, 0, 2).is_err());
        assert!(Tensor::zeros([2; 3]).try_matrix_trace().is_err());
        assert!(Tensor::zeros(()).try_diag(0).is_err());
        assert_eq!(Tensor::from([[1i64, 2, 3], [4, 5, 6]]).matrix_trace().to_vec::<i64>(), [6]);
    }
}
