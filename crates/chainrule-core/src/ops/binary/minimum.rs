//! `minimum`: the smaller of two tensors, element by element.

use super::maximum::{Extremum, NO_MASK, TIE_TWICE, swapped};
use crate::ops::prelude::*;

methods! {
    /// The smaller of `a` and `b`, element by element with broadcasting; NaN if either is. For f32,
    /// f64 and i64.
    ///
    /// Gradient: `g` to the smaller operand; at a tie half of it to each, and all of it to each
    /// where either is NaN, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (a, b) = (Tensor::from([1.0f32, 5.0]), Tensor::from([3.0f32, 2.0]));
    /// assert_eq!(a.minimum(&b).to_vec::<f32>(), [1.0, 2.0]);
    /// ```
    pub fn minimum / try_minimum<T: IntoTensor>(&self, other: T) -> Tensor {
        apply_promoted(Extremum { least: true }, self, other)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "minimum",
    family: Family::Binary,
    signature: "a.minimum(&b)",
    python: &[Binding::two("minimum", |a, b| {
        or_of_bools(a, b, |a, b| a.try_minimum(b), |a, b| a.try_logical_and(b))
    })
    .out_of_place()],
    formula: "min(a, b)",
    gradient: "da = g where a < b, g/2 where a = b, else 0; db the other way round",
    at_kinks: "at a tie each operand gets half the gradient; NaN in either gives NaN, and the whole gradient to both",
    samples: |g| {
        let mut samples = binary_samples(g, |g, s| normal(g, s), |a, b| a.try_minimum(b));
        let ties = vec![Tensor::from([1.0f64, 0.0]), Tensor::from([1.0f64, -0.0])];
        samples.push(Sample::new("ties", ties, |x| x[0].try_minimum(&x[1])).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "operands swapped",
            what: "the larger operand gets the gradient, as in maximum",
            rule: swapped,
        },
        TIE_TWICE,
        NO_MASK,
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;
    use crate::Tensor;

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |a, b| a.minimum(b),
            [
                &[1.0, 1.0, 2.0, nan, nan, 1.0, 0.0, -0.0, inf],
                &[1.0, 2.0, 1.0, nan, 1.0, nan, -0.0, 0.0, inf],
            ],
            &[1.0, 1.0, 1.0, nan, nan, nan, -0.0, 0.0, inf],
            [
                &[1.5, 3.0, 0.0, 3.0, 3.0, 3.0, 1.5, 1.5, 1.5],
                &[1.5, 0.0, 3.0, 3.0, 3.0, 3.0, 1.5, 1.5, 1.5],
            ],
        );
    }

    #[test]
    fn integers_keep_their_dtype_and_bools_are_an_error() {
        let a = Tensor::from([3i64, -4]).minimum(0);
        assert_eq!(a.to_vec::<i64>(), [0, -4]);
        let t = Tensor::from([true]);
        assert!(t.try_minimum(&t).is_err());
    }
}
