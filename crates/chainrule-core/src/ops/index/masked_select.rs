//! `masked_select` and `masked_scatter`: the elements where a mask is true, as a vector, and the
//! reverse.

use super::place::{Overwrite, Target};
use super::{expect_mask, nonzero};
use crate::ops::prelude::*;

methods! {
    /// The elements at which `mask` is true, in row-major order, as a vector. The mask is bool; it
    /// and the tensor broadcast. Any dtype. Gradient: each element of `g` comes to the place that
    /// it came from.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, -2.0], [3.0, -4.0]]);
    /// assert_eq!(x.masked_select(&x.gt(0)).to_vec::<f32>(), [1.0, 3.0]);
    /// ```
    pub fn masked_select / try_masked_select(&self, mask: &Tensor) -> Tensor {
        let name = "masked_select";
        expect_mask(name, mask)?;
        let shape = broadcast_shapes(name, &[self.meta(), mask.meta()])?;
        let places = nonzero::places(&mask.try_expand(shape)?)?;
        self.try_expand(shape)?.try_reshape([shape.numel()])?.try_index_select(0, &Tensor::from(places))
    }

    /// The tensor with elements of `source`, in row-major order, where `mask` is true. The mask is
    /// bool and broadcasts with the tensor; the source has the same dtype, any shape, and at least
    /// as many elements as the mask has true ones: what is left over is not used.
    ///
    /// Gradient: `dx` is `g` with zeros where the mask is true, and the elements of the source that
    /// were used get the `g` there.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::zeros([4]);
    /// let mask = Tensor::from([true, false, false, true]);
    /// assert_eq!(
    ///     x.masked_scatter(&mask, &Tensor::from([7.0f32, 8.0])).to_vec::<f32>(),
    ///     [7.0, 0.0, 0.0, 8.0]
    /// );
    /// ```
    pub fn masked_scatter / try_masked_scatter(&self, mask: &Tensor, source: &Tensor) -> Tensor {
        let name = "masked_scatter";
        expect_mask(name, mask)?;
        let shape = broadcast_shapes(name, &[self.meta(), mask.meta()])?;
        let places = nonzero::places(&mask.try_expand(shape)?)?;
        let (count, have) = (places.len(), source.numel());
        if count > have {
            let why = format!("the mask is true at {count} places, the source has {have} elements; it needs as many at least");
            return Err(Error::shape(name, &[&shape, &source.shape()], why));
        }
        let used = source.try_reshape([have])?.try_narrow(0, 0, count)?;
        let flat = self.try_expand(shape)?.try_reshape([shape.numel()])?;
        let op = Overwrite { id: OpId::index_copy, target: Target::Rows(0) };
        apply(op, &[&flat, &used, &Tensor::from(places)])?.try_reshape(shape)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "masked_select",
    family: Family::Index,
    signature: "x.masked_select(&mask), x.masked_scatter(&mask, &source)",
    python: &[
        Binding::with("masked_select", &[Parameter::tensor("mask")], |x, a| {
            x.try_masked_select(a.tensor(0))
        }),
        Binding::with(
            "masked_scatter",
            &[Parameter::tensor("mask"), Parameter::tensor("source")],
            |x, a| x.try_masked_scatter(a.tensor(0), a.tensor(1)),
        )
        .no_function()
        .in_place()
        .formula("the elements of the source, one after the other, where the mask holds; else x"),
    ],
    formula: "the elements of x where the mask is true; masked_scatter puts those of a source there",
    gradient: "dx = g at the places that it came from, else 0; for masked_scatter dx = g where the mask is false, dsource = g where it is true",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], &[usize]); 5] = [
            ("a mask of one shape", &[3, 17], &[3, 17]),
            ("a row as mask", &[3, 6], &[6]),
            ("a mask that stretches x", &[4], &[5, 1]),
            ("0-d", &[], &[4]),
            ("empty", &[0, 3], &[3]),
        ];
        let mut out = Vec::new();
        for (note, shape, of) in cases {
            let mask = normal(g, of).gt(0.0);
            let x = vec![normal(g, shape)];
            out.push(Sample::new(note, x, move |x| x[0].try_masked_select(&mask)));
        }
        let mask = normal(g, [3, 4]).gt(0.0);
        out.push(Sample::new("scatter", vec![normal(g, [3, 4]), normal(g, [2, 7])], move |x| {
            x[0].try_masked_scatter(&mask, &x[1])
        }));
        out
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_nothing() {
        let x = Tensor::zeros([3]);
        let all = Tensor::from([true; 3]);
        let text = |r: Result<Tensor>| r.unwrap_err().kind().to_string();
        assert_eq!(
            text(x.try_masked_scatter(&all, &Tensor::ones([2]))),
            "masked_scatter: shapes [3] and [2]: the mask is true at 3 places, the source has 2 elements; it needs as many at least"
        );
        assert!(text(x.try_masked_scatter(&all, &Tensor::arange(0, 3))).contains("one dtype"));
        assert!(text(x.try_masked_select(&x)).contains("bool"));
        assert!(text(x.try_masked_select(&Tensor::from([true; 2]))).contains("broadcast"));
        assert_eq!(x.masked_select(&Tensor::from([false; 3])).shape(), [0]);
        assert_eq!(Tensor::zeros([0, 3]).masked_scatter(&all, &x).shape(), [0, 3]);
    }
}
