//! `movedim` and `swapdims`: axes moved to other places. Both are permutations, with the rules of
//! that op.

use crate::ops::prelude::*;

methods! {
    /// The axes `source` moved to the places `destination`; the others keep their order. A view.
    /// PyTorch's `movedim`, NumPy's `moveaxis`.
    ///
    /// Errors for lists of different lengths and for an axis or a place named twice. Gradient:
    /// `dx = g` with the axes moved back.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::zeros([2, 3, 4]);
    /// assert_eq!(x.movedim(&[0], &[-1]).shape(), [3, 4, 2]);
    /// ```
    pub fn movedim / try_movedim(&self, source: &[i64], destination: &[i64]) -> Tensor {
        let shape = self.shape();
        let moved = source.into_axes("movedim", &shape)?;
        destination.into_axes("movedim", &shape)?;
        if source.len() != destination.len() {
            let why = format!("{} axes for {} places; give one for each", source.len(), destination.len());
            return Err(Error::shape("movedim", &[&shape], why));
        }
        let mut order = vec![-1; shape.rank()];
        for (&from, &to) in source.iter().zip(destination) {
            order[shape.axis("movedim", to)?] = shape.axis("movedim", from)? as i64;
        }
        let mut others = (0..shape.rank()).filter(|&a| !moved.contains(a));
        for place in order.iter_mut().filter(|p| **p < 0) {
            *place = others.next().expect("as many axes as places") as i64;
        }
        self.try_permute(&order)
    }

    /// Two axes exchanged: another name of [`Tensor::transpose`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::zeros([2, 3, 4]).swapdims(0, -1).shape(), [4, 3, 2]);
    /// ```
    pub fn swapdims / try_swapdims(&self, a: i64, b: i64) -> Tensor {
        self.try_transpose(a, b)
    }

    /// Two axes exchanged: another name of [`Tensor::transpose`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::zeros([2, 3]).swapaxes(0, 1).shape(), [3, 2]);
    /// ```
    pub fn swapaxes / try_swapaxes(&self, a: i64, b: i64) -> Tensor {
        self.try_transpose(a, b)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "movedim",
    family: Family::Shape,
    signature: "x.movedim(&source, &destination), x.swapdims(a, b), x.swapaxes(a, b)",
    python: &[
        Binding::by_hand("movedim", "its result is a view, which aliases").also(&["moveaxis"])
    ],
    formula: "x with axes moved to other places",
    gradient: "dx = g with the axes moved back",
    at_kinks: "",
    samples: |g| {
        vec![
            Sample::new("first to last", vec![normal(g, [2, 3, 4])], |x| {
                x[0].try_movedim(&[0], &[-1])
            }),
            Sample::new("two axes", vec![normal(g, [2, 3, 4])], |x| {
                x[0].try_movedim(&[2, 0], &[0, 1])
            }),
            Sample::new("exchanged", vec![normal(g, [2, 3])], |x| x[0].try_swapdims(0, 1)),
            Sample::new("0-d", vec![normal(g, ())], |x| x[0].try_movedim(&[], &[])),
            Sample::new("empty", vec![normal(g, [0, 2])], |x| x[0].try_movedim(&[1], &[0])),
        ]
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// Shapes of PyTorch's `movedim`.
    #[test]
    fn the_others_keep_their_order() {
        let x = Tensor::zeros([2, 3, 4, 5]);
        assert_eq!(x.movedim(&[1, 3], &[-1, 0]).shape(), [5, 2, 4, 3]);
        assert_eq!(x.movedim(&[3], &[1]).shape(), [2, 5, 3, 4]);
        assert!(x.try_movedim(&[0, 0], &[1, 2]).is_err());
        assert!(x.try_movedim(&[0, 1], &[2, -2]).is_err());
        assert!(x.try_movedim(&[0, 1], &[2]).is_err());
        assert!(x.try_movedim(&[4], &[0]).is_err());
    }
}
