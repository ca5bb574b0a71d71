//! `scatter`: elements put at indexed places along an axis.

use super::place::{Overwrite, Target};
use crate::Slice;
use crate::ops::prelude::*;

methods! {
    /// This tensor with elements of `source` in place of its own: on axis 1 of three,
    /// `y[i, indices[i, j, k], k] = source[i, j, k]`. `source` is a tensor, or a scalar for all
    /// places. The tensor itself does not change. PyTorch's `scatter`.
    ///
    /// `indices` is i64, has as many axes as `x`, and is no longer than `x` on the other axes, nor
    /// than the source on any. An index outside the axis, also a negative one, is an error. Any
    /// dtype, the same for both. **If a place is named several times, the last one in row-major
    /// order of the indices stays** (PyTorch promises nothing), and the gradient goes to that one.
    /// Gradient: `dx` is `g` with zeros at the places, and each element of the source that stayed
    /// gets the `g` at its place.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::zeros([2, 3]);
    /// let y = x.scatter(1, &Tensor::from([[2i64], [0]]), &Tensor::from([[7.0f32], [8.0]]));
    /// assert_eq!(y.to_vec::<f32>(), [0.0, 0.0, 7.0, 8.0, 0.0, 0.0]);
    /// ```
    pub fn scatter / try_scatter<S: IntoTensor>(&self, axis: i64, indices: &Tensor, source: S) -> Tensor {
        let target = Target::Elements(self.shape().axis("scatter", axis)?);
        let source = fitted(source.into_tensor(self)?, indices)?;
        apply(Overwrite { id: OpId::scatter, target }, &[self, &source, indices])
    }
}

/// The part of the source that the indices reach, where it is longer; a 0-d source for each of
/// them.
#[track_caller]
pub(super) fn fitted(source: Tensor, indices: &Tensor) -> Result<Tensor> {
    let (from, to) = (source.shape(), indices.shape());
    if from == to {
        return Ok(source);
    }
    if from.rank() == 0 {
        return source.try_expand(to);
    }
    let longer = from.rank() == to.rank() && from.iter().zip(to.iter()).all(|(f, t)| f >= t);
    match longer {
        true => source.try_slice(&to.iter().map(|&n| Slice::from(..n)).collect::<Vec<_>>()),
        // A misfit is an error of the op.
        false => Ok(source),
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "scatter",
    family: Family::Index,
    signature: "x.scatter(axis, &indices, &source)",
    python: &[Binding::with(
        "scatter",
        &[Parameter::int("dim"), Parameter::tensor("index"), Parameter::operand("src")],
        |x, a| {
            along_axis(x, a.int(0), |x| {
                let index = with_axis(a.tensor(1))?;
                match a.operand(2).number() {
                    Some(value) => x.try_scatter(a.int(0), &index, value),
                    None => x.try_scatter(a.int(0), &index, &with_axis(&a.operand(2).beside(x)?)?),
                }
            })
        },
    )
    .in_place()],
    formula: "y = x, but y[i, indices[i, j, k], k] = source[i, j, k], for axis 1 of three",
    gradient: "dx = g with 0 at the places named; dsource[i, j, k] = g[i, indices[i, j, k], k], but 0 where a later one overwrote it",
    at_kinks: "",
    samples: |g| {
        type ScatterCase = (&'static str, &'static [usize], i64, &'static [usize], &'static [i64]);
        let cases: [ScatterCase; 6] = [
            ("a column", &[3, 4], 1, &[3, 1], &[2, 0, 3]),
            ("a place named twice", &[2, 3], -1, &[2, 3], &[0, 2, 0, 1, 1, 1]),
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
                    x[0].try_scatter(axis, &indices, &x[1])
                })
            })
            .collect();
        let indices = Tensor::from([4i64, 1, 4]);
        let same = indices.clone();
        out.push(Sample::new("0-d source", vec![normal(g, [5]), normal(g, ())], move |x| {
            x[0].try_scatter(0, &indices, &x[1])
        }));
        out.push(Sample::new("a longer source", vec![normal(g, [5]), normal(g, [4])], move |x| {
            x[0].try_scatter(0, &same, &x[1])
        }));
        out
    },
    mistakes: &[
        Mistake {
            name: "gradient of what was overwritten",
            what: "x gets the gradient of the places too at which the source stands",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[0] = Some(g.clone());
                Ok(grads)
            },
        },
        Mistake {
            name: "gradient of those that lost",
            what: "each element of the source gets the gradient of its place, also one that a later one overwrote",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[1] = Some(g.try_gather(Overwrite::axis_of(op)?, &at.input(2))?);
                Ok(grads)
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_stays_and_gets_the_gradient() {
        let x = Tensor::from([1.0f32, 2.0, 3.0]).parameter();
        let s = Tensor::from([10.0f32, 20.0, 30.0]).parameter();
        let y = x.scatter(0, &Tensor::from([1i64, 2, 1]), &s);
        assert_eq!(y.to_vec::<f32>(), [1.0, 30.0, 20.0]);
        y.backward_with().gradient(&Tensor::from([5.0f32, 6.0, 7.0])).run().unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f32>(), [5.0, 0.0, 0.0]);
        assert_eq!(s.grad().unwrap().to_vec::<f32>(), [0.0, 7.0, 6.0]);
    }

    #[test]
    fn scalars_dtypes_and_errors() {
        let x = Tensor::arange(0, 6).reshape([2, 3]);
        let one = Tensor::from([[1i64], [2]]);
        assert_eq!(x.scatter(1, &one, 9).to_vec::<i64>(), [0, 9, 2, 3, 4, 9]);
        assert_eq!(x.to_vec::<i64>(), [0, 1, 2, 3, 4, 5]);
        let b =
            Tensor::from([false, false]).scatter(0, &Tensor::from([1i64]), Tensor::from([true]));
        assert_eq!(b.to_vec::<bool>(), [false, true]);
        let error = |i: &Tensor, s: &Tensor| x.try_scatter(1, i, s).unwrap_err().kind().to_string();
        assert_eq!(
            error(&Tensor::from([[0i64], [3]]), &one),
            "scatter: index 3 at position 1 is outside axis 1 of size 3; indices run from 0 to 2"
        );
        assert!(error(&Tensor::from([[-1i64], [0]]), &one).contains("index -1"));
        assert!(
            error(&Tensor::from([[0i64, 1], [0, 1]]), &one).contains("no longer than the source")
        );
        assert!(error(&Tensor::from([0i64]), &one).contains("as many axes"));
        assert!(error(&one, &one.to_dtype(DType::F32)).contains("one dtype"));
        assert!(error(&one.to_dtype(DType::F32), &one).contains("i64"));
        assert!(x.try_scatter(2, &one, 1).is_err());
        assert!(x.try_scatter(1, &one, 1.5).is_err());
    }
}
