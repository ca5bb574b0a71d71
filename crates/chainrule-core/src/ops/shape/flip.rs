//! `flip`: the order along axes turned round, as a view. A slice, with the rules of that op.

use crate::Slice;
use crate::ops::prelude::*;

methods! {
    /// The elements in the opposite order along these axes, as a view. Any dtype. Gradient: `dx` is
    /// `g` flipped back.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.flip(1).to_vec::<f32>(), [2.0, 1.0, 4.0, 3.0]);
    /// assert_eq!(x.flip(..).to_vec::<f32>(), [4.0, 3.0, 2.0, 1.0]);
    /// ```
    pub fn flip / try_flip<A: IntoAxes>(&self, axes: A) -> Tensor {
        let shape = self.shape();
        let axes = axes.into_axes("flip", &shape)?;
        let back = |a: usize| Slice::from(..).step(if axes.contains(a) { -1 } else { 1 });
        let slices: Vec<Slice> = (0..shape.rank()).map(back).collect();
        self.try_slice(&slices)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "flip",
    family: Family::Shape,
    signature: "x.flip(axes)",
    python: &[Binding::with("flip", &[Parameter::sizes("dims")], |x, a| x.try_flip(a.ints(0)))],
    formula: "y[.., k, ..] = x[.., n - 1 - k, ..]",
    gradient: "dx[.., k, ..] = g[.., n - 1 - k, ..]",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], &[i64]); 5] = [
            ("last axis", &[2, 17], &[-1]),
            ("all axes", &[2, 3, 2], &[0, 1, 2]),
            ("middle axis", &[2, 3, 4], &[1]),
            ("0-d", &[], &[]),
            ("empty", &[0, 3], &[0, 1]),
        ];
        cases
            .into_iter()
            .map(|(note, shape, axes)| {
                Sample::new(note, vec![normal(g, shape)], move |x| x[0].try_flip(axes))
            })
            .collect()
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn axes_are_checked() {
        let x = Tensor::arange(0, 6).reshape([2, 3]);
        assert_eq!(x.flip([0, 1]).flip(0).to_vec::<i64>(), [2, 1, 0, 5, 4, 3]);
        assert!(x.try_flip([0, -2]).is_err());
        assert!(x.try_flip(2).is_err());
    }
}
