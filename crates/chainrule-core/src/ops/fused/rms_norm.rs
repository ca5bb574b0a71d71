//! `rms_norm`: each row divided by the root of its mean square. The op and its kernels are those of
//! `layer_norm`, without the mean.

use super::layer_norm::{EPS_OUTSIDE, SHAPES, normalized, weight_from_input, with_dx};
use super::learned::Learned;
use super::row_norm::{Over, RowNorm};
use crate::kernels::norm::layer::Norm;
use crate::ops::prelude::*;

methods! {
    /// Each row divided by the root of its mean square, `weight * x / sqrt(mean(x^2) + eps)` (Zhang
    /// and Sennrich 2019). A row is the last axes, whose shape is given, as in PyTorch; the weight
    /// has that shape. Without an `eps` it is the dtype's machine epsilon. For f32 and f64.
    ///
    /// A row of zeros stays zeros; with an `eps` of 0 it becomes NaN. Gradient, with `h` the
    /// normalised row and `u = weight * g`: `dx = (u - h * mean(u * h)) / sqrt(mean(x^2) + eps)`
    /// and `dweight = sum(g * h)` over the rows.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f64, 7.0], [-6.0, 8.0]]);
    /// let y = x.rms_norm(2, None, Some(0.0)).to_vec::<f64>();
    /// let expected = [0.2, 1.4, -6.0 / 50f64.sqrt(), 8.0 / 50f64.sqrt()];
    /// assert!(y.iter().zip(expected).all(|(y, e)| (y - e).abs() < 1e-15));
    /// ```
    pub fn rms_norm / try_rms_norm<S: IntoShape>(&self, normalized_shape: S, weight: Option<&Tensor>, eps: Option<f64>) -> Tensor {
        let row = normalized_shape.into_shape("rms_norm")?;
        let eps = eps.unwrap_or(match self.dtype() {
            DType::F64 => f64::EPSILON,
            _ => f64::from(f32::EPSILON),
        });
        let (norm, over) = (Norm::Rms, Over::Last(row.rank()));
        let op = RowNorm { id: OpId::rms_norm, norm, over, eps, learned: Learned::of(weight, None) };
        normalized(self, op, row, weight, None)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "rms_norm",
    family: Family::Fused,
    signature: "x.rms_norm(normalized_shape, weight, eps)",
    python: &[Binding::with(
        "rms_norm",
        &[
            Parameter::ints("normalized_shape"),
            Parameter::tensor("weight").or_none(),
            Parameter::maybe_float("eps"),
        ],
        |x, a| x.try_rms_norm(&a.sizes("rms_norm", 0)?[..], a.maybe_tensor(1), a.maybe_float(2)),
    )
    .only_functional()],
    formula: "weight * x / sqrt(mean(x^2) + eps), over the last axes",
    gradient: "dx = (u - h * mean(u * h)) / sqrt(mean(x^2) + eps); dweight = sum(g * h), where u = weight * g and h = x / sqrt(mean(x^2) + eps)",
    at_kinks: "a row of zeros stays zeros; with eps 0 it gives NaN",
    samples,
    mistakes: &[
        Mistake {
            name: "root taken for a constant",
            what: "dx = weight * g / sqrt(mean(x^2) + eps): that the root depends on x was forgotten",
            rule: |op, at, g, wanted| with_dx(op, at, g, wanted, |_, s| s.u.try_div(&s.root)),
        },
        EPS_OUTSIDE,
        Mistake {
            name: "gradient of the weight from the input",
            what: "dweight = sum(g * x): the input was taken for the normalised input",
            rule: weight_from_input,
        },
    ],
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let mut out = Vec::new();
    for (note, shape, axes) in SHAPES {
        let row = &shape[shape.len() - axes..];
        let inputs = vec![normal(g, shape) * 2.0 + 1.0, between(g, 0.5, 1.5, row)];
        out.push(Sample::new(note, inputs, move |x| {
            x[0].try_rms_norm(row, Some(&x[1]), Some(1e-5))
        }));
    }
    out.push(Sample::new("plain", vec![normal(g, [4, 3])], |x| {
        x[0].try_rms_norm(3, None, Some(1e-3))
    }));
    let transposed = vec![normal(g, [3, 4]), normal(g, [3])];
    out.push(Sample::new("a transposed view", transposed, |x| {
        x[0].try_t()?.try_rms_norm(3, Some(&x[1]), Some(1e-3))
    }));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PyTorch 2.15 gives them; there the finite elements of a row with an infinity become 0,
    /// too.
    #[test]
    fn edges_are_those_of_pytorch() {
        let x = Tensor::from([[f32::INFINITY, 1.0, 2.0], [f32::NAN, 1.0, 2.0], [3.0, 3.0, 3.0]]);
        let y = x.rms_norm(3, None, Some(0.0)).to_vec::<f32>();
        assert!(y[0].is_nan() && y[1..3] == [0.0; 2], "{y:?}");
        assert!(y[3..6].iter().all(|y| y.is_nan()) && y[6..] == [1.0; 3], "{y:?}");
        let zeros = Tensor::zeros([1, 3]);
        assert_eq!(zeros.rms_norm(3, None, None).to_vec::<f32>(), [0.0; 3]);
        assert!(zeros.rms_norm(3, None, Some(0.0)).to_vec::<f32>()[0].is_nan());
        let y = Tensor::from([1.0f32, 2.0, 3.0]).rms_norm(3, None, None).to_vec::<f32>();
        for (y, expected) in y.into_iter().zip([0.4629, 0.9258, 1.3887]) {
            assert!((y - expected).abs() < 1e-4, "{y} {expected}");
        }
        assert!(Tensor::zeros([2, 3]).try_rms_norm(2, None, None).is_err());
    }
}
