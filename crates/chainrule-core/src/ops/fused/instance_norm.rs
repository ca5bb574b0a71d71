//! `instance_norm`: each channel of each sample normalised by its mean and variance; a group norm
//! whose groups are the channels.

use super::group_norm::{MISTAKES, expect_channels, normalised};
use crate::ops::prelude::*;

methods! {
    /// Each channel of each sample normalised by its mean and variance,
    /// `gain * (x - mean) / sqrt(var + eps) + bias`. Channels lie on axis 1, and there must be two
    /// values at least in each: `[n, c, l]`, `[n, c, h, w]`. For f32 and f64.
    ///
    /// The variance is the biased one; gain and bias have shape `[c]`. The gradients are those of
    /// [`Tensor::group_norm`].
    ///
    /// Source: D. Ulyanov, A. Vedaldi and V. Lempitsky, "Instance normalization: the missing
    /// ingredient for fast stylization", 2016.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[[1.0f64, 3.0], [10.0, 30.0]]]);
    /// let y = x.instance_norm(None, None, 0.0);
    /// assert_eq!(y.to_vec::<f64>(), [-1.0, 1.0, -1.0, 1.0]);
    /// ```
    pub fn instance_norm / try_instance_norm(&self, gain: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Tensor {
        let shape = self.shape();
        expect_channels("instance_norm", &shape, eps)?;
        if shape[2..].iter().product::<usize>() == 1 {
            let why = "a single value for each channel of a sample has no variance: the input must be [n, channels, ...] with two values at least";
            return Err(Error::shape("instance_norm", &[&shape], why));
        }
        normalised(OpId::instance_norm, shape[1], self, gain, bias, eps)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "instance_norm",
    family: Family::Fused,
    signature: "x.instance_norm(gain, bias, eps)",
    python: &[Binding::by_hand("instance_norm", "it takes arguments that change nothing")
        .no_method()
        .no_function()],
    formula: "gain * (x - mean) / sqrt(var + eps) + bias, over each channel of each sample",
    gradient: "dx = gain (g - mean(g) - h * mean(g h)) / sqrt(var + eps); dgain = sum(g * h); dbias = sum(g), where h = (x - mean) / sqrt(var + eps)",
    at_kinks: "a single value for each channel is an error",
    samples: |g| {
        let cases: [(&str, &[usize]); 3] =
            [("sequences", &[2, 3, 5]), ("images", &[2, 3, 3, 4]), ("no channels", &[2, 0, 3])];
        let mut out = Vec::new();
        for (note, shape) in cases {
            let c = shape[1];
            let inputs = vec![normal(g, shape) + 1.0, between(g, 0.5, 1.5, [c]), normal(g, [c])];
            out.push(Sample::new(note, inputs, |x| {
                x[0].try_instance_norm(Some(&x[1]), Some(&x[2]), 1e-2)
            }));
        }
        out.push(Sample::new("plain", vec![normal(g, [3, 2, 4])], |x| {
            x[0].try_instance_norm(None, None, 1e-2)
        }));
        out
    },
    mistakes: MISTAKES,
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn single_values_are_an_error() {
        for shape in [&[2, 3][..], &[2, 3, 1], &[3]] {
            assert!(Tensor::zeros(shape).try_instance_norm(None, None, 1e-5).is_err());
        }
        let y = Tensor::zeros([0, 2, 3]).instance_norm(None, None, 1e-5);
        assert_eq!(y.shape(), [0, 2, 3]);
    }
}
