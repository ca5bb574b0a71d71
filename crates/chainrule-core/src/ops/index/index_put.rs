//! `index_put`: values put, or added, where an index points. It is made of the op of `index_copy`
//! or `index_add`.

use super::index::{CASES, Index, Plan};
use super::place::{Accumulate, Overwrite, Target};
use crate::ops::prelude::*;

methods! {
    /// This tensor with `values` where `indices` point, in place of its own or, with `accumulate`,
    /// added to them: what `x[indices] = values` or `x[indices] += values` would make of it. The
    /// tensor itself does not change. Indices as in [`Tensor::index`].
    ///
    /// `values` is a tensor of the same dtype that broadcasts to the shape of `x.index(indices)`,
    /// or a scalar. Any dtype, with `accumulate` numbers. **If a place is named several times, the
    /// last value in row-major order stays** (PyTorch promises nothing), and the gradient goes to
    /// that one; with `accumulate` all are added. Gradient: `dx` is `g` with zeros at the places,
    /// or `g` itself with `accumulate`; each value gets the `g` at its place, or 0 if a later one
    /// overwrote it.
    ///
    /// ```
    /// use chainrule::{Tensor, ix};
    /// let x = Tensor::zeros([2, 3]);
    /// let (i, j) = (Tensor::from([0i64, 1]), Tensor::from([2i64, 0]));
    /// assert_eq!(
    ///     x.index_put(ix![&i, &j], 7.0, false).to_vec::<f32>(),
    ///     [0.0, 0.0, 7.0, 7.0, 0.0, 0.0]
    /// );
    /// let y = x.index_put(ix![.., 1..], &Tensor::from([1.0f32, 2.0]), true);
    /// assert_eq!(y.to_vec::<f32>(), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    /// ```
    pub fn index_put / try_index_put<V: IntoTensor>(&self, indices: &[Index], values: V, accumulate: bool) -> Tensor {
        let name = "index_put";
        let (shape, values) = (self.shape(), values.into_tensor(self)?);
        let plan = Plan::new(name, &shape, indices)?;
        let places = if plan.whole() { plan.places(name, &plan.sliced(self)?.shape())? } else { None };
        let Some(places) = places else {
            // The places of all elements, picked by the same index.
            let at = Tensor::arange(0, shape.numel() as i64).try_reshape(shape)?.try_index(indices)?;
            let values = stretched(&values, &at.shape())?.try_reshape([at.numel()])?;
            let flat = self.try_reshape([shape.numel()])?;
            return put(&flat, &values, &at.try_reshape([at.numel()])?, 0, accumulate)?.try_reshape(shape);
        };
        let (inner, order) = places.result(name, &shape)?;
        let values = match order {
            None => stretched(&values, &inner)?,
            Some(order) => {
                let mut outer = inner;
                let mut back = vec![0; order.len()];
                for (to, &from) in order.iter().enumerate() {
                    outer.dims_mut()[to] = inner[from as usize];
                    back[from as usize] = to as i64;
                }
                stretched(&values, &outer)?.try_permute(&back)?
            }
        };
        let values = values.try_reshape(places.merged(&shape, places.flat.numel()).as_slice())?;
        let x = self.try_reshape(places.merged(&shape, places.span(&shape)).as_slice())?;
        put(&x, &values, &places.flat, 1, accumulate)?.try_reshape(shape)
    }
}

fn stretched(values: &Tensor, to: &Shape) -> Result<Tensor> {
    values.try_expand(*to).map_err(|_| {
        let why = format!("the values must broadcast to the shape that the index gives, {to}");
        Error::shape("index_put", &[&values.shape()], why)
    })
}

#[track_caller]
fn put(x: &Tensor, values: &Tensor, at: &Tensor, axis: usize, accumulate: bool) -> Result<Tensor> {
    let target = Target::Rows(axis);
    match accumulate {
        true => apply(Accumulate { id: OpId::index_add, target }, &[x, values, at]),
        false => apply(Overwrite { id: OpId::index_copy, target }, &[x, values, at]),
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "index_put",
    family: Family::Index,
    signature: "x.index_put(ix![&i, &j], &values, accumulate)",
    python: &[Binding::by_hand("index_put", "any mixture of slices and tensors")
        .no_function()
        .in_place()],
    formula: "y = x, but y[i[k], j[k]] = v[k]; with accumulate y[i[k], j[k]] += v[k]",
    gradient: "dx = g with 0 at the places named, or g with accumulate; dv[k] = g[i[k], j[k]], but 0 where a later one overwrote it",
    at_kinks: "",
    samples: |g| {
        let mut out = Vec::new();
        for (note, indices) in CASES {
            let indices = indices();
            let x = normal(g, [3, 4, 5]);
            let shape = x.index(&indices).shape();
            let (v, again) = (normal(g, shape), indices.clone());
            out.push(Sample::new(note, vec![x.clone(), v], move |x| {
                x[0].try_index_put(&indices, &x[1], false)
            }));
            let note: &'static str = match note {
                "two arrays that broadcast" => "added, two arrays that broadcast",
                "two arrays apart" => "added, two arrays apart",
                "a mask of two axes" => "added, a mask of two axes",
                _ => continue,
            };
            out.push(Sample::new(note, vec![x, normal(g, ())], move |x| {
                x[0].try_index_put(&again, &x[1], true)
            }));
        }
        out
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slice;
    use crate::ops::index::index::ix;

    #[test]
    fn repeated_places() {
        let x = Tensor::zeros([2, 2]).parameter();
        let (i, j) = (Tensor::from([0i64, -1, 0]), Tensor::from([1i64, 0, 1]));
        let v = Tensor::from([1.0f32, 2.0, 3.0]).parameter();
        let y = x.index_put(ix![&i, &j], &v, false);
        assert_eq!(y.to_vec::<f32>(), [0.0, 3.0, 2.0, 0.0]);
        assert_eq!(x.index_put(ix![&i, &j], &v, true).to_vec::<f32>(), [0.0, 4.0, 2.0, 0.0]);
        y.backward_with().gradient(&Tensor::from([[1.0f32, 2.0], [3.0, 4.0]])).run().unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f32>(), [1.0, 0.0, 0.0, 4.0]);
        assert_eq!(v.grad().unwrap().to_vec::<f32>(), [0.0, 3.0, 2.0]);
    }

    /// Every kind of index against a loop over the places that the same index picks of all places.
    #[test]
    fn every_kind_writes_where_it_reads() {
        let g = &mut Generator::manual_seed(5);
        for (note, indices) in CASES {
            let indices = indices();
            let x = normal(g, [3, 4, 5]);
            let places = Tensor::arange(0, 60).reshape([3, 4, 5]).index(&indices);
            let v = normal(g, places.shape());
            let (mut put, mut sum) = (x.to_vec::<f64>(), x.to_vec::<f64>());
            for (&at, &v) in places.to_vec::<usize>().iter().zip(&v.to_vec::<f64>()) {
                put[at] = v;
                sum[at] += v;
            }
            assert_eq!(x.index_put(&indices, &v, false).to_vec::<f64>(), put, "{note}");
            assert_eq!(x.index_put(&indices, &v, true).to_vec::<f64>(), sum, "{note}, added");
            // The same of a view that steps backward, and with values of fewer axes.
            let turned = x.flip(..).flip(..);
            assert_eq!(turned.index_put(&indices, &v, false).to_vec::<f64>(), put, "{note}");
            let all = v.shape().iter().copied().last().unwrap_or(1);
            let row = normal(g, [all]);
            let wide = row.expand(v.shape());
            let (a, b) = (x.index_put(&indices, &row, true), x.index_put(&indices, &wide, true));
            assert_eq!(a.to_vec::<f64>(), b.to_vec::<f64>(), "{note}");
        }
    }

    #[test]
    fn slices_and_errors() {
        let x = Tensor::arange(0, 4).reshape([2, 2]);
        assert_eq!(x.index_put(ix![0], 9, false).to_vec::<i64>(), [9, 9, 2, 3]);
        assert_eq!(x.index_put(&[], 9, true).to_vec::<i64>(), [9, 10, 11, 12]);
        let y = x.index_put(ix![Slice::Ellipsis, &Tensor::from([1i64])], 9, false);
        assert_eq!(y.to_vec::<i64>(), [0, 9, 2, 9]);
        let mask = x.gt(1);
        assert_eq!(x.index_put(ix![&mask], 0, false).to_vec::<i64>(), [0, 1, 0, 0]);
        let text = |r: Result<Tensor>| r.unwrap_err().kind().to_string();
        let three = Tensor::from([1i64, 2, 3]);
        assert_eq!(
            text(x.try_index_put(ix![0], &three, false)),
            "index_put: shape [3]: the values must broadcast to the shape that the index gives, [2]"
        );
        assert!(text(x.try_index_put(ix![&three], 0, false)).starts_with("index_put: index 2 at"));
        assert!(text(x.try_index_put(ix![0], 1.5, false)).contains("one dtype"));
        assert!(
            x.try_index_put(&[Slice::Ellipsis.into(), Slice::Ellipsis.into()], 0, false).is_err()
        );
        assert!(mask.try_index_put(ix![0], &mask, true).is_err());
    }
}
