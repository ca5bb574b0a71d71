//! `scatter_add`: elements added at indexed places along an axis.

use super::place::{Accumulate, Target};
use super::scatter::fitted;
use crate::ops::prelude::*;

methods! {
    /// This tensor with elements of `source` added: on axis 1 of three,
    /// `y[i, indices[i, j, k], k] += source[i, j, k]`, in the order of the indices. Shapes as for
    /// [`Tensor::scatter`]; the tensor itself does not change. Numbers of any dtype, the same for
    /// both.
    ///
    /// Gradient: `dx = g`, and each element of the source gets the `g` at its place.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1.0f32, 1.0]);
    /// let y = x.scatter_add(0, &Tensor::from([1i64, 1]), &Tensor::from([10.0f32, 20.0]));
    /// assert_eq!(y.to_vec::<f32>(), [1.0, 31.0]);
    /// ```
    pub fn scatter_add / try_scatter_add<S: IntoTensor>(&self, axis: i64, indices: &Tensor, source: S) -> Tensor {
        let target = Target::Elements(self.shape().axis("scatter_add", axis)?);
        let source = fitted(source.into_tensor(self)?, indices)?;
        apply(Accumulate { id: OpId::scatter_add, target }, &[self, &source, indices])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "scatter_add",
    family: Family::Index,
    signature: "x.scatter_add(axis, &indices, &source)",
    python: &[Binding::with(
        "scatter_add",
        &[Parameter::int("dim"), Parameter::tensor("index"), Parameter::tensor("src")],
        |x, a| {
            along_axis(x, a.int(0), |x| {
                x.try_scatter_add(a.int(0), &with_axis(a.tensor(1))?, &with_axis(a.tensor(2))?)
            })
        },
    )
    .in_place()],
    formula: "y = x; y[i, indices[i, j, k], k] += source[i, j, k], for axis 1 of three",
    gradient: "dx = g; dsource[i, j, k] = g[i, indices[i, j, k], k]",
    at_kinks: "",
    samples: |g| {
        type ScatterAddCase =
            (&'static str, &'static [usize], i64, &'static [usize], &'static [i64]);
        let cases: [ScatterAddCase; 5] = [
            ("a place named twice", &[2, 3], -1, &[2, 4], &[0, 0, 2, 0, 1, 1, 1, 2]),
            ("rows, fewer columns", &[3, 4], 0, &[2, 3], &[2, 0, 1, 2, 1, 1]),
            ("middle axis", &[2, 3, 2], 1, &[1, 2, 2], &[2, 0, 2, 1]),
            ("no indices", &[3, 2], 1, &[3, 0], &[]),
            ("no rows", &[0, 2], 1, &[0, 1], &[]),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, shape, axis, of, indices)| {
                let indices = Tensor::from_slice(indices, of);
                Sample::new(note, vec![normal(g, shape), normal(g, of)], move |x| {
                    x[0].try_scatter_add(axis, &indices, &x[1])
                })
            })
            .collect();
        let indices = Tensor::from([4i64, 1, 4]);
        out.push(Sample::new("0-d source", vec![normal(g, [5]), normal(g, ())], move |x| {
            x[0].try_scatter_add(0, &indices, &x[1])
        }));
        out
    },
    mistakes: &[Mistake {
        name: "gradient cut at the places",
        what: "x gets no gradient at the places named, as if the source replaced what is there",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            grads[0] = Some(g.try_scatter(Accumulate::axis_of(op)?, &at.input(2), 0.0)?);
            Ok(grads)
        },
    }],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_and_bools_are_refused() {
        let x = Tensor::from([i64::MAX, 0]);
        let y = x.scatter_add(0, &Tensor::from([0i64, 1, 1]), 1);
        assert_eq!(y.to_vec::<i64>(), [i64::MIN, 2]);
        let b = Tensor::from([true]);
        assert!(b.try_scatter_add(0, &Tensor::from([0i64]), &b).is_err());
        let error = x.try_scatter_add(0, &Tensor::from([2i64]), 1).unwrap_err();
        assert!(error.to_string().contains("index 2 at position 0 is outside axis 0 of size 2"));
    }
}
