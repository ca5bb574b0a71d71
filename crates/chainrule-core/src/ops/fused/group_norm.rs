//! `group_norm`: groups of channels of each sample normalised by their mean and variance.

use super::layer_norm::{EPS_OUTSIDE, MEAN_PATH, VARIANCE_PATH, weight_from_input, with_dx};
use super::learned::{Learned, with_learned};
use super::row_norm::{Over, RowNorm};
use crate::kernels::norm::layer::Norm;
use crate::ops::prelude::*;

methods! {
    /// Each group of channels of each sample normalised by its mean and variance,
    /// `gain * (x - mean) / sqrt(var + eps) + bias`. Channels lie on axis 1 (`[n, c]`, `[n, c, l]`,
    /// ...), `c / groups` neighbouring ones make a group. For f32 and f64.
    ///
    /// The variance is the biased one; gain and bias have shape `[c]`. `groups` must divide the
    /// channels, and there must be two values at least, as in PyTorch. One group is a layer
    /// normalisation over all but the batch, as many groups as channels make
    /// [`Tensor::instance_norm`]. Gradient, with `h` the normalised input and means over a group:
    /// `dx = (gain g - mean(gain g) - h mean(gain g h)) / sqrt(var + eps)`, `dgain = sum(g * h)`,
    /// `dbias = sum(g)`.
    ///
    /// Source: Y. Wu and K. He, "Group normalization", 2018.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f64, 3.0, 10.0, 30.0]]);
    /// let y = x.group_norm(2, None, None, 0.0);
    /// assert_eq!(y.to_vec::<f64>(), [-1.0, 1.0, -1.0, 1.0]);
    /// ```
    pub fn group_norm / try_group_norm(&self, groups: usize, gain: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Tensor {
        let shape = self.shape();
        expect_channels("group_norm", &shape, eps)?;
        let channels = shape[1];
        if groups == 0 || !channels.is_multiple_of(groups) {
            let why = format!("the number of groups must divide the {channels} channels; it is {groups}");
            return Err(Error::shape("group_norm", &[&shape], why));
        }
        if shape.numel() == groups {
            let why = "a single value for each group has no variance; use a larger batch or fewer groups";
            return Err(Error::shape("group_norm", &[&shape], why));
        }
        normalised(OpId::group_norm, groups, self, gain, bias, eps)
    }
}

pub(super) fn expect_channels(op: &'static str, shape: &Shape, eps: f64) -> Result<()> {
    if shape.rank() < 2 {
        let why = "the input needs two axes at least: samples, then channels";
        return Err(Error::shape(op, &[shape], why));
    }
    if !(0.0..f64::INFINITY).contains(&eps) {
        return Err(Error::argument(op, format!("eps must be a number from 0 up; it is {eps}")));
    }
    Ok(())
}

#[track_caller]
pub(super) fn normalised(
    id: OpId,
    groups: usize,
    x: &Tensor,
    gain: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    let shape = x.shape();
    if let Some(other) = [gain, bias].into_iter().flatten().find(|t| t.shape() != [shape[1]]) {
        let why =
            format!("gain and bias must have one element for each of the {} channels", shape[1]);
        return Err(Error::shape(id.name(), &[&shape, &other.shape()], why));
    }
    let (norm, over) = (Norm::Layer, Over::Groups(groups));
    let op = RowNorm { id, norm, over, eps, learned: Learned::of(gain, bias) };
    apply(op, &with_learned(x, gain, bias))
}

pub(super) const ENTRY: Entry = Entry {
    name: "group_norm",
    family: Family::Fused,
    signature: "x.group_norm(groups, gain, bias, eps)",
    python: &[Binding::with(
        "group_norm",
        &[
            Parameter::count("num_groups"),
            Parameter::tensor("weight").or_none(),
            Parameter::tensor("bias").or_none(),
            Parameter::float("eps", 1e-5),
        ],
        |x, a| x.try_group_norm(a.count(0), a.maybe_tensor(1), a.maybe_tensor(2), a.float(3)),
    )
    .only_functional()],
    formula: "gain * (x - mean) / sqrt(var + eps) + bias, over groups of channels of each sample",
    gradient: "dx = (gain g - mean(gain g) - h * mean(gain g h)) / sqrt(var + eps); dgain = sum(g * h); dbias = sum(g), where h = (x - mean) / sqrt(var + eps)",
    at_kinks: "a single value for each group is an error",
    samples,
    mistakes: MISTAKES,
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let cases: [(&str, &[usize], usize); 6] = [
        ("channels alone", &[3, 6], 2),
        ("one group", &[2, 3, 4], 1),
        ("groups of two", &[2, 4, 17], 2),
        ("every channel", &[2, 3, 5], 3),
        ("images", &[2, 4, 3, 3], 2),
        ("no samples", &[0, 4, 3], 2),
    ];
    let mut out = Vec::new();
    for (note, shape, groups) in cases {
        let c = shape[1];
        let inputs = vec![normal(g, shape) * 2.0 + 1.0, between(g, 0.5, 1.5, [c]), normal(g, [c])];
        out.push(Sample::new(note, inputs, move |x| {
            x[0].try_group_norm(groups, Some(&x[1]), Some(&x[2]), 1e-2)
        }));
    }
    out.push(Sample::new("plain", vec![normal(g, [3, 4, 2])], |x| {
        x[0].try_group_norm(2, None, None, 1e-2)
    }));
    let bias_only = vec![normal(g, [3, 4]), normal(g, [4])];
    out.push(Sample::new("bias only", bias_only, |x| {
        x[0].try_group_norm(1, None, Some(&x[1]), 1e-2)
    }));
    let transposed = vec![normal(g, [4, 3, 5]), normal(g, [4])];
    out.push(Sample::new("a transposed view, gain only", transposed, |x| {
        x[0].try_transpose(0, 1)?.try_group_norm(2, Some(&x[1]), None, 1e-2)
    }));
    out
}

pub(super) const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "coupling forgotten",
        what: "mean and variance were taken for constants: dx = g * gain / sqrt(var + eps)",
        rule: |op, at, g, wanted| with_dx(op, at, g, wanted, |_, s| s.u.try_div(&s.root)),
    },
    MEAN_PATH,
    VARIANCE_PATH,
    EPS_OUTSIDE,
    Mistake {
        name: "gradient of the gain from the input",
        what: "dgain = sum(g * x): the input was taken for the normalised input",
        rule: weight_from_input,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_wrong() {
        let error = |result: Result<Tensor>| result.unwrap_err().kind().to_string();
        let x = Tensor::zeros([2, 6, 3]);
        assert!(error(x.try_group_norm(4, None, None, 1e-5)).contains("6 channels"));
        assert!(error(x.try_group_norm(0, None, None, 1e-5)).starts_with("group_norm: "));
        assert!(error(x.try_group_norm(2, None, None, -1.0)).contains("eps"));
        let short = Tensor::zeros([5]);
        assert!(error(x.try_group_norm(2, Some(&short), None, 1e-5)).contains("[5]"));
        assert!(error(x.try_group_norm(2, None, Some(&short), 1e-5)).contains("[5]"));
        assert!(short.try_group_norm(1, None, None, 1e-5).is_err());
        assert!(Tensor::zeros([1, 2]).try_group_norm(2, None, None, 1e-5).is_err());
        assert!(x.to_dtype(DType::I64).try_group_norm(2, None, None, 1e-5).is_err());
    }

    /// Two samples of one value each: PyTorch lets them pass, and the result is the bias.
    #[test]
    fn single_values_of_two_samples() {
        let (x, bias) = (Tensor::from([[1.0f64, 2.0], [3.0, 4.0]]), Tensor::from([5.0f64, 6.0]));
        let y = x.group_norm(2, None, Some(&bias), 1e-5);
        assert_eq!(y.to_vec::<f64>(), [5.0, 6.0, 5.0, 6.0]);
    }

    #[test]
    fn nothing_to_normalise() {
        for shape in [&[0, 4, 3][..], &[2, 4, 0], &[2, 0, 3]] {
            let gain = Tensor::ones([shape[1]]).parameter();
            let y = Tensor::zeros(shape).group_norm(2, Some(&gain), None, 1e-5);
            assert_eq!(y.shape(), *shape);
            y.sum_all().backward();
            assert_eq!(gain.grad().unwrap().to_vec::<f32>(), vec![0.0; shape[1]]);
        }
    }
}
