//! `index_add`: slices added at indexed positions of an axis.

use super::place::{Accumulate, Target};
use crate::ops::prelude::*;

methods! {
    /// This tensor with slices of `source` added: `y[.., indices[k], ..] += source[.., k, ..]`, in
    /// the order of the indices. The tensor itself does not change. For PyTorch's `alpha` multiply
    /// the source.
    ///
    /// `indices` is i64 with one axis; the source has the shape of `x`, but along `axis` a position
    /// for each index. An index outside the axis, also a negative one, is an error. Numbers of any
    /// dtype, the same for both. Gradient: `dx = g`, and `dsource` has the slices of `g` that
    /// `indices` names.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::zeros([3, 1]);
    /// let y = x.index_add(0, &Tensor::from([2i64, 2]), &Tensor::from([[1.0f32], [10.0]]));
    /// assert_eq!(y.to_vec::<f32>(), [0.0, 0.0, 11.0]);
    /// ```
    pub fn index_add / try_index_add(&self, axis: i64, indices: &Tensor, source: &Tensor) -> Tensor {
        let target = Target::Rows(self.shape().axis("index_add", axis)?);
        apply(Accumulate { id: OpId::index_add, target }, &[self, source, indices])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "index_add",
    family: Family::Index,
    signature: "x.index_add(axis, &indices, &source)",
    python: &[Binding::with(
        "index_add",
        &[
            Parameter::int("dim"),
            Parameter::tensor("index"),
            Parameter::tensor("source"),
            Parameter::operand("alpha").or(1).by_name(),
        ],
        |x, a| {
            along_axis(x, a.int(0), |x| {
                let source = match a.operand(3) {
                    Argument::Int(1) => a.tensor(2).clone(),
                    alpha => a.tensor(2).try_mul(&alpha.beside(a.tensor(2))?)?,
                };
                x.try_index_add(a.int(0), &with_axis(a.tensor(1))?, &with_axis(&source)?)
            })
        },
    )
    .in_place()],
    formula: "y = x; y[.., indices[k], ..] += source[.., k, ..]",
    gradient: "dx = g; dsource[.., k, ..] = g[.., indices[k], ..]",
    at_kinks: "",
    samples: |g| {
        type IndexAddCase = (&'static str, &'static [usize], i64, &'static [i64], &'static [usize]);
        let cases: [IndexAddCase; 5] = [
            ("rows, one of them twice", &[4, 3], 0, &[2, 0, 2], &[3, 3]),
            ("columns", &[2, 3], -1, &[1, 1, 0, 2], &[2, 4]),
            ("middle axis", &[2, 3, 17], 1, &[2, 1], &[2, 2, 17]),
            ("no indices", &[3, 2], 0, &[], &[0, 2]),
            ("no columns", &[3, 0], 0, &[1], &[1, 0]),
        ];
        cases
            .into_iter()
            .map(|(note, shape, axis, indices, of)| {
                let indices = Tensor::from(indices.to_vec());
                Sample::new(note, vec![normal(g, shape), normal(g, of)], move |x| {
                    x[0].try_index_add(axis, &indices, &x[1])
                })
            })
            .collect()
    },
    mistakes: &[Mistake {
        name: "gradient from the wrong place",
        what: "the slices of the source get the gradients of the positions before those named",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            let axis = Accumulate::axis_of(op)?;
            let back = g.try_roll(&[1], &[axis])?;
            grads[1] = Some(back.try_index_select(axis, &at.input(2))?);
            Ok(grads)
        },
    }],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_an_error() {
        let x = Tensor::zeros([3, 2]);
        let i = Tensor::from([0i64, 2]);
        let error = |axis, i: &Tensor, s: &Tensor| {
            x.try_index_add(axis, i, s).unwrap_err().kind().to_string()
        };
        let two = Tensor::ones([2, 2]);
        assert_eq!(
            error(0, &Tensor::from([0i64, 3]), &two),
            "index_add: index 3 at position 1 is outside axis 0 of size 3; indices run from 0 to 2"
        );
        assert!(error(0, &Tensor::from([0i64, -1]), &two).contains("index -1"));
        assert!(error(0, &i, &Tensor::ones([2])).contains("one position for each index"));
        assert!(error(0, &i, &Tensor::ones([3, 2])).contains("but for axis 0"));
        assert!(error(0, &two, &two).contains("i64"));
        assert!(error(0, &Tensor::from([[0i64, 1]]), &two).contains("one axis"));
        assert!(error(0, &i, &two.to_dtype(DType::F64)).contains("one dtype"));
        assert!(error(2, &i, &two).contains("no axis 2"));
        let y = Tensor::from([1i64, 2]).index_add(0, &Tensor::from([1i64]), &Tensor::from([5i64]));
        assert_eq!(y.to_vec::<i64>(), [1, 7]);
    }
}
