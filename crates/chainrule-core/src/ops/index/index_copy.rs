//! `index_copy` and `index_fill`: slices or a number put at indexed positions of an axis.

use super::place::{Overwrite, Target};
use crate::ops::prelude::*;

methods! {
    /// This tensor with slices of `source` in place of its own:
    /// `y[.., indices[k], ..] = source[.., k, ..]`. The tensor itself does not change.
    ///
    /// Shapes and errors as for [`Tensor::index_add`]; any dtype. The last of equal indices stays,
    /// and the gradient goes to its slice. Gradient: `dx` is `g` with zeros at the positions named,
    /// and the slices that stayed get the `g` there.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::zeros([3]);
    /// let y = x.index_copy(0, &Tensor::from([2i64, 0]), &Tensor::from([1.0f32, 2.0]));
    /// assert_eq!(y.to_vec::<f32>(), [2.0, 0.0, 1.0]);
    /// ```
    pub fn index_copy / try_index_copy(&self, axis: i64, indices: &Tensor, source: &Tensor) -> Tensor {
        let target = Target::Rows(self.shape().axis("index_copy", axis)?);
        apply(Overwrite { id: OpId::index_copy, target }, &[self, source, indices])
    }

    /// This tensor with `value` (a scalar or a 0-d tensor, converted to its dtype) at all positions
    /// of `axis` that `indices` names. Errors as for [`Tensor::index_add`]. Gradient: `dx` is `g`
    /// with zeros there, and `dvalue` the sum of `g` there.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let y = Tensor::zeros([3]).index_fill(0, &Tensor::from([0i64, 2]), 7.0);
    /// assert_eq!(y.to_vec::<f32>(), [7.0, 0.0, 7.0]);
    /// ```
    pub fn index_fill / try_index_fill<V: IntoTensor>(&self, axis: i64, indices: &Tensor, value: V) -> Tensor {
        let name = "index_fill";
        let mut shape = self.shape();
        let axis = shape.axis(name, axis)?;
        let value = value.into_tensor(self)?.try_to_dtype(self.dtype())?;
        if value.rank() != 0 || indices.rank() != 1 {
            let why = "the value must be 0-d and the indices have one axis";
            return Err(Error::shape(name, &[&shape, &value.shape(), &indices.shape()], why));
        }
        shape.dims_mut()[axis] = indices.numel();
        let op = Overwrite { id: OpId::index_copy, target: Target::Rows(axis) };
        apply(op, &[self, &value.try_expand(shape)?, indices])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "index_copy",
    family: Family::Index,
    signature: "x.index_copy(axis, &indices, &source), x.index_fill(axis, &indices, value)",
    python: &[
        Binding::with(
            "index_copy",
            &[Parameter::int("dim"), Parameter::tensor("index"), Parameter::tensor("source")],
            |x, a| {
                along_axis(x, a.int(0), |x| {
                    x.try_index_copy(a.int(0), &with_axis(a.tensor(1))?, &with_axis(a.tensor(2))?)
                })
            },
        )
        .in_place(),
        Binding::with(
            "index_fill",
            &[Parameter::int("dim"), Parameter::tensor("index"), Parameter::operand("value")],
            |x, a| {
                along_axis(x, a.int(0), |x| {
                    x.try_index_fill(a.int(0), &with_axis(a.tensor(1))?, &a.operand(2).beside(x)?)
                })
            },
        )
        .in_place()
        .formula("y[.., index[i], ..] = value"),
    ],
    formula: "y = x, but y[.., indices[k], ..] = source[.., k, ..]",
    gradient: "dx = g with 0 at the positions named; dsource[.., k, ..] = g[.., indices[k], ..], but 0 where a later one overwrote it",
    at_kinks: "",
    samples: |g| {
        type IndexCopyCase =
            (&'static str, &'static [usize], i64, &'static [i64], &'static [usize]);
        let cases: [IndexCopyCase; 5] = [
            ("rows, one of them twice", &[4, 3], 0, &[2, 0, 2], &[3, 3]),
            ("columns", &[2, 4], -1, &[1, 3, 0], &[2, 3]),
            ("middle axis", &[2, 3, 17], 1, &[2, 1], &[2, 2, 17]),
            ("no indices", &[3, 2], 0, &[], &[0, 2]),
            ("no columns", &[3, 0], 0, &[1], &[1, 0]),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, shape, axis, indices, of)| {
                let indices = Tensor::from(indices.to_vec());
                Sample::new(note, vec![normal(g, shape), normal(g, of)], move |x| {
                    x[0].try_index_copy(axis, &indices, &x[1])
                })
            })
            .collect();
        out.push(Sample::new(
            "fill with a 0-d value",
            vec![normal(g, [3, 4]), normal(g, ())],
            |x| x[0].try_index_fill(1, &Tensor::from([3i64, 0, 3]), &x[1]),
        ));
        out
    },
    mistakes: &[
        Mistake {
            name: "gradient of what was overwritten",
            what: "x gets the gradient of the positions too at which the source stands",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[0] = Some(g.clone());
                Ok(grads)
            },
        },
        Mistake {
            name: "gradient of those that lost",
            what: "each slice of the source gets the gradient of its position, also one that a later one overwrote",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[1] = Some(g.try_index_select(Overwrite::axis_of(op)?, &at.input(2))?);
                Ok(grads)
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    /// PyTorch gives `[0, 3, 0]` for three copies to position 1.
    #[test]
    fn the_last_one_stays() {
        let s = Tensor::from([1.0f32, 2.0, 3.0]).parameter();
        let y = Tensor::zeros([3]).index_copy(0, &Tensor::from([1i64, 1, 1]), &s);
        assert_eq!(y.to_vec::<f32>(), [0.0, 3.0, 0.0]);
        y.sum_all().backward();
        assert_eq!(s.grad().unwrap().to_vec::<f32>(), [0.0, 0.0, 1.0]);
        let y = Tensor::from([1i64, 2]).index_fill(0, &Tensor::from([1i64]), 1.5);
        assert_eq!(y.to_vec::<i64>(), [1, 1]);
        let x = Tensor::zeros([3]);
        assert!(x.try_index_fill(0, &Tensor::from([3i64]), 1.0).is_err());
        assert!(x.try_index_fill(0, &Tensor::from([0i64]), Tensor::zeros([1])).is_err());
        assert!(x.try_index_fill(0, &Tensor::from([[0i64]]), 1.0).is_err());
    }
}
