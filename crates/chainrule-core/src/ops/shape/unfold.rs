//! `unfold`: sliding windows along an axis, as a view.

use super::window::{Move, Window};
use crate::ops::prelude::*;

methods! {
    /// All windows of `size` positions along `axis` that start `step` apart, as a view: the axis
    /// then counts the windows, and a new last axis holds the positions of each.
    /// `y[.., k, .., j] = x[.., k * step + j, ..]`. PyTorch's `Tensor.unfold`.
    ///
    /// There are `(n - size) / step + 1` windows, rounded down: what does not fill a window is left
    /// out. Errors for a step of 0 and a window larger than the axis. Any dtype. Gradient: each
    /// element of `g` is added at the place that it was seen at, so that windows that overlap add
    /// up.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::arange(0, 5);
    /// let y = x.unfold(0, 3, 1);
    /// assert_eq!(y.shape(), [3, 3]);
    /// assert_eq!(y.to_vec::<i64>(), [0, 1, 2, 1, 2, 3, 2, 3, 4]);
    /// ```
    pub fn unfold / try_unfold(&self, axis: i64, size: usize, step: usize) -> Tensor {
        apply(plan(&self.shape(), axis, size, step)?, &[self])
    }
}

fn plan(shape: &Shape, axis: i64, size: usize, step: usize) -> Result<Window> {
    let name = "unfold";
    let axis = shape.axis(name, axis)?;
    let error = |why: String| Err(Error::shape(name, &[shape], why));
    if step == 0 {
        return error("a step of 0 stays in place; use 1 at least".into());
    }
    let n = shape[axis];
    if size > n {
        return error(format!("a window of {size} does not fit in axis {axis} of size {n}"));
    }
    let mut out = shape.with_axis(name, shape.rank(), size)?;
    let windows = (n - size) / step + 1;
    out.dims_mut()[axis] = windows;
    // A step over a single window may be any number.
    let by = |a: usize| if a == axis && windows > 1 { step } else { 1 };
    let mut moves: smallvec::SmallVec<[Move; MAX_RANK]> =
        (0..shape.rank()).map(|a| Move { of: a, along: a, by: by(a) }).collect();
    moves.push(Move { of: shape.rank(), along: axis, by: 1 });
    let overlaps = step < size && windows > 1;
    let reverse = Name::rule("unfold_grad");
    Ok(Window { id: OpId::unfold, reverse, start: [0; MAX_RANK], moves, out, overlaps })
}

pub(super) const ENTRY: Entry = Entry {
    name: "unfold",
    family: Family::Shape,
    signature: "x.unfold(axis, size, step)",
    python: &[Binding::by_hand("unfold", "its result is a view, which aliases").no_function()],
    formula: "y[.., k, .., j] = x[.., k * step + j, ..]",
    gradient: "dx[.., k * step + j, ..] += g[.., k, .., j]",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], i64, usize, usize); 7] = [
            ("windows that overlap", &[3, 7], 1, 3, 2),
            ("first axis", &[5, 4], 0, 2, 1),
            ("windows apart", &[2, 9], -1, 2, 3),
            ("middle axis", &[2, 5, 3], 1, 4, 1),
            ("one window", &[4, 2], 0, 4, 9),
            ("windows of nothing", &[3], 0, 0, 2),
            ("no rows", &[0, 4], 1, 3, 1),
        ];
        cases
            .into_iter()
            .map(|(note, shape, axis, size, step)| {
                let x = vec![normal(g, shape)];
                Sample::new(note, x, move |x| x[0].try_unfold(axis, size, step))
            })
            .collect()
    },
    mistakes: &[Mistake {
        name: "overwritten instead of accumulated",
        what: "an element that several windows see gets the gradient of the last of them only",
        rule: |op, at, g, _| {
            let mut window = Window::of(op)?.clone();
            window.overlaps = false;
            Ok(smallvec![Some(apply(window.reversed(at.input_shape(0)), &[g])?)])
        },
    }],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_the_largest_arguments() {
        let x = Tensor::zeros([2, 5]);
        let text = |r: Result<Tensor>| r.unwrap_err().kind().to_string();
        assert_eq!(
            text(x.try_unfold(-1, 6, 1)),
            "unfold: shape [2, 5]: a window of 6 does not fit in axis 1 of size 5"
        );
        assert!(text(x.try_unfold(0, 1, 0)).contains("a step of 0"));
        assert!(x.try_unfold(2, 1, 1).is_err());
        assert!(x.try_unfold(0, usize::MAX, 1).is_err());
        assert_eq!(x.unfold(1, 5, usize::MAX).shape(), [2, 1, 5]);
        assert!(Tensor::zeros([1; 8]).try_unfold(0, 1, 1).is_err());
        assert!(Tensor::zeros(()).try_unfold(0, 1, 1).is_err());
    }

    /// Every element against the formula, on every axis.
    #[test]
    fn every_window_holds_what_the_formula_says() {
        let x = Tensor::arange(0, 5 * 6 * 7).reshape([5, 6, 7]);
        for axis in 0..3 {
            for (size, step) in [(1, 1), (2, 1), (3, 2), (2, 4), (5, 3)] {
                let y = x.unfold(axis as i64, size, step);
                let mut want = x.shape().to_vec();
                want[axis] = (x.shape()[axis] - size) / step + 1;
                want.push(size);
                assert_eq!(y.shape().dims(), want);
                for place in 0..y.numel() {
                    let mut rest = place;
                    let mut at = [0; 4];
                    for a in (0..4).rev() {
                        at[a] = rest % want[a];
                        rest /= want[a];
                    }
                    let mut from = [at[0], at[1], at[2]];
                    from[axis] = at[axis] * step + at[3];
                    assert_eq!(y.at::<i64>(&at), x.at::<i64>(&from));
                }
            }
        }
    }

    /// PyTorch gives `[n + 1, 0]` for windows of nothing.
    #[test]
    fn windows_of_nothing() {
        assert_eq!(Tensor::zeros([5]).unfold(0, 0, 1).shape(), [6, 0]);
    }

    /// A moving sum is a product with ones: overlapping views go into a product as they are.
    #[test]
    fn a_window_is_an_operand_like_any_other() {
        let x = Tensor::arange(0, 6).to_dtype(DType::F32);
        let sums = x.unfold(0, 3, 1).matmul(&Tensor::ones([3]));
        assert_eq!(sums.to_vec::<f32>(), [3.0, 6.0, 9.0, 12.0]);
        let both = x.unfold(0, 3, 1).t().matmul(&x.unfold(0, 3, 1));
        assert_eq!(both.to_vec::<f32>(), [14., 20., 26., 20., 30., 40., 26., 40., 54.]);
    }
}
