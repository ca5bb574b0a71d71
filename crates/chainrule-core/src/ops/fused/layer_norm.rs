//! `layer_norm`: each row normalised by its own mean and variance. `rms_norm` is the same op
//! without the mean.

use super::learned::{Learned, with_learned};
use super::row_norm::{Over, RowNorm, mean};
use crate::kernels::norm::layer::Norm;
use crate::ops::prelude::*;

/// Checks the arguments of both normalisations and applies the op.
#[track_caller]
pub(super) fn normalized(
    x: &Tensor,
    op: RowNorm,
    row: Shape,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
) -> Result<Tensor> {
    let shape = x.shape();
    if row.rank() == 0 || !shape.ends_with(&row) {
        let why =
            format!("the last axes must be those that are normalised, {row}, and one at least");
        return Err(Error::shape(op.name(), &[&shape, &row], why));
    }
    if let Some(other) = [weight, bias].into_iter().flatten().find(|t| t.shape() != row) {
        let why = format!("weight and bias must have the shape of the normalised axes, {row}");
        return Err(Error::shape(op.name(), &[&shape, &other.shape()], why));
    }
    apply(op, &with_learned(x, weight, bias))
}

methods! {
    /// Each row normalised by its own mean and variance,
    /// `weight * (x - mean) / sqrt(var + eps) + bias` (Ba, Kiros and Hinton 2016). A row is the
    /// last axes, whose shape is given, as in PyTorch; weight and bias have that shape. For f32 and
    /// f64.
    ///
    /// The variance is divided by the number of elements of the row. A row of equal elements
    /// becomes the bias; with an `eps` of 0 it becomes NaN, as does one with an infinity or NaN.
    /// Gradient, with `h` the normalised row and `u = weight * g`:
    /// `dx = (u - mean(u) - h * mean(u * h)) / sqrt(var + eps)`, `dweight = sum(g * h)` and
    /// `dbias = sum(g)` over the rows.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f64, 3.0], [10.0, 50.0]]);
    /// assert_eq!(x.layer_norm(2, None, None, 0.0).to_vec::<f64>(), [-1.0, 1.0, -1.0, 1.0]);
    /// ```
    pub fn layer_norm / try_layer_norm<S: IntoShape>(&self, normalized_shape: S, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Tensor {
        let row = normalized_shape.into_shape("layer_norm")?;
        let (norm, over) = (Norm::Layer, Over::Last(row.rank()));
        let op = RowNorm { id: OpId::layer_norm, norm, over, eps, learned: Learned::of(weight, bias) };
        normalized(self, op, row, weight, bias)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "layer_norm",
    family: Family::Fused,
    signature: "x.layer_norm(normalized_shape, weight, bias, eps)",
    python: &[Binding::with(
        "layer_norm",
        &[
            Parameter::ints("normalized_shape"),
            Parameter::tensor("weight").or_none(),
            Parameter::tensor("bias").or_none(),
            Parameter::float("eps", 1e-5),
        ],
        |x, a| {
            let shape = a.sizes("layer_norm", 0)?;
            x.try_layer_norm(&shape[..], a.maybe_tensor(1), a.maybe_tensor(2), a.float(3))
        },
    )
    .only_functional()],
    formula: "weight * (x - mean) / sqrt(var + eps) + bias, over the last axes",
    gradient: "dx = (u - mean(u) - h * mean(u * h)) / sqrt(var + eps); dweight = sum(g * h); dbias = sum(g), where u = weight * g and h = (x - mean) / sqrt(var + eps)",
    at_kinks: "a row of equal elements gives the bias; with eps 0 it gives NaN",
    samples,
    mistakes: MISTAKES,
};

/// Shapes that both normalisations are sampled on, with the number of axes that form a row.
pub(super) const SHAPES: [(&str, &[usize], usize); 8] = [
    ("rows", &[3, 5], 1),
    ("a row of two axes", &[2, 3, 4], 2),
    ("33 rows of 17", &[33, 17], 1),
    ("a row longer than the lanes", &[2, 70], 1),
    ("a vector", &[6], 1),
    ("rows of one element", &[4, 1], 1),
    ("rows of no elements", &[3, 0], 1),
    ("no rows", &[0, 3], 1),
];

fn samples(g: &mut Generator) -> Vec<Sample> {
    let mut out = Vec::new();
    for (note, shape, axes) in SHAPES {
        let row = &shape[shape.len() - axes..];
        let inputs = vec![normal(g, shape) * 2.0 + 1.0, between(g, 0.5, 1.5, row), normal(g, row)];
        out.push(Sample::new(note, inputs, move |x| {
            x[0].try_layer_norm(row, Some(&x[1]), Some(&x[2]), 1e-5)
        }));
    }
    out.push(Sample::new("plain", vec![normal(g, [4, 3])], |x| {
        x[0].try_layer_norm(3, None, None, 1e-3)
    }));
    let bias_only = vec![normal(g, [4, 3]), normal(g, [3])];
    out.push(Sample::new("bias only", bias_only, |x| {
        x[0].try_layer_norm(3, None, Some(&x[1]), 1e-3)
    }));
    let transposed = vec![normal(g, [3, 4]), normal(g, [3])];
    out.push(Sample::new("a transposed view, weight only", transposed, |x| {
        x[0].try_t()?.try_layer_norm(3, Some(&x[1]), None, 1e-3)
    }));
    out
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "statistics taken for constants",
        what: "mean and variance were taken for constants: dx = weight * g / sqrt(var + eps)",
        rule: |op, at, g, wanted| with_dx(op, at, g, wanted, |_, s| s.u.try_div(&s.root)),
    },
    MEAN_PATH,
    VARIANCE_PATH,
    EPS_OUTSIDE,
    Mistake {
        name: "reduced over the wrong axis",
        what: "the two means of the backward were taken over the rows instead of along each row",
        rule: |op, at, g, wanted| {
            with_dx(op, at, g, wanted, |_, s| {
                let mean = |x: &Tensor| x.try_sum(0, true)?.try_div(x.shape()[0] as f64);
                let through = s.hat.try_mul(&mean(&s.u.try_mul(&s.hat)?)?)?;
                s.u.try_sub(&mean(&s.u)?)?.try_sub(&through)?.try_div(&s.root)
            })
        },
    },
    Mistake {
        name: "gradient of the weight from the input",
        what: "dweight = sum(g * x): the input was taken for the normalised input",
        rule: weight_from_input,
    },
];

pub(super) const MEAN_PATH: Mistake = Mistake {
    name: "mean path forgotten",
    what: "the mean was taken for a constant: dx lacks - mean(u), so its rows do not sum to 0",
    rule: |op, at, g, wanted| {
        with_dx(op, at, g, wanted, |_, s| s.u.try_sub(&s.through_variance()?)?.try_div(&s.root))
    },
};

pub(super) const VARIANCE_PATH: Mistake = Mistake {
    name: "variance path forgotten",
    what: "dx = (u - mean(u)) / sqrt(var + eps): that the variance depends on x was forgotten",
    rule: |op, at, g, wanted| {
        with_dx(op, at, g, wanted, |this, s| this.centred(&s.u)?.try_div(&s.root))
    },
};

pub(super) const EPS_OUTSIDE: Mistake = Mistake {
    name: "epsilon outside the root",
    what: "the backward divides by the root of the variance plus eps, where the forward took the root of variance plus eps",
    rule: |op, at, g, wanted| {
        with_dx(op, at, g, wanted, |this, s| {
            // Rounding may have made a variance of 0 slightly negative.
            let var = s.root.try_square()?.try_sub(this.eps)?.try_relu()?;
            let outside = var.try_sqrt()?.try_add(this.eps)?;
            this.centred(&s.u)?.try_sub(&s.through_variance()?)?.try_div(&outside)
        })
    },
};

/// Parts of the backward of a row, as `RowNorm::as_rows` has it.
pub(super) struct Steps {
    /// The upstream gradient times the weight.
    pub u: Tensor,
    /// The normalised rows.
    pub hat: Tensor,
    /// Their divisor.
    pub root: Tensor,
}

impl Steps {
    /// `h * mean(u * h)`.
    fn through_variance(&self) -> Result<Tensor> {
        self.hat.try_mul(&mean(&self.u.try_mul(&self.hat)?)?)
    }
}

/// The gradients with another one of the input.
pub(super) fn with_dx(
    op: &dyn Op,
    at: &Saved<'_>,
    g: &Tensor,
    wanted: Wanted,
    dx: fn(&RowNorm, &Steps) -> Result<Tensor>,
) -> Result<Grads> {
    let (this, shape, mut grads) = (this(op)?, g.shape(), op.vjp(at, g, wanted)?);
    let d = this.centred(&this.as_rows(&at.input(0))?)?;
    let root = this.root(&d)?;
    let mut u = this.as_rows(g)?;
    if this.learned.gain {
        u = u.try_mul(&this.over_channels(&shape, &at.input(1))?)?;
    }
    let steps = Steps { u, hat: d.try_div(&root)?, root };
    grads[0] = Some(dx(this, &steps)?.try_reshape(shape)?);
    Ok(grads)
}

/// `dweight = sum(g * x)`.
pub(super) fn weight_from_input(
    op: &dyn Op,
    at: &Saved<'_>,
    g: &Tensor,
    wanted: Wanted,
) -> Result<Grads> {
    let mut grads = op.vjp(at, g, wanted)?;
    if this(op)?.learned.gain {
        let products = this(op)?.as_rows(&g.try_mul(at.input(0))?)?.try_sum([0, 3], false)?;
        grads[1] = Some(products.try_reshape(at.input_shape(1))?);
    }
    Ok(grads)
}

pub(super) fn this(op: &dyn Op) -> Result<&RowNorm> {
    op.downcast()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PyTorch 2.15 gives them.
    #[test]
    fn edges_are_those_of_pytorch() {
        let x = Tensor::from([[3.0f32, 3.0, 3.0], [f32::INFINITY, 1.0, 2.0], [f32::NAN, 1.0, 2.0]]);
        let y = x.layer_norm(3, None, None, 1e-5).to_vec::<f32>();
        assert_eq!(y[..3], [0.0; 3]);
        assert!(y[3..].iter().all(|y| y.is_nan()), "{y:?}");
        assert!(x.layer_norm(3, None, None, 0.0).to_vec::<f32>().iter().all(|y| y.is_nan()));
        let y = Tensor::from([1.0f32, 2.0, 3.0]).layer_norm(3, None, None, -1.0);
        assert!(y.to_vec::<f32>().iter().all(|y| y.is_nan()));
        assert_eq!(Tensor::zeros([2, 0]).layer_norm(0, None, None, 1e-5).shape(), [2, 0]);
    }

    #[test]
    fn errors_show_the_shapes() {
        let x = Tensor::zeros([2, 3]);
        let text = x.try_layer_norm(2, None, None, 1e-5).unwrap_err().to_string();
        assert!(text.contains("layer_norm: shapes [2, 3] and [2]"), "{text}");
        assert!(x.try_layer_norm((), None, None, 1e-5).is_err());
        assert!(x.try_layer_norm([1, 2, 3], None, None, 1e-5).is_err());
        let text = x.try_layer_norm(3, Some(&Tensor::zeros(2)), None, 1e-5).unwrap_err();
        assert!(text.to_string().contains("weight and bias must have"), "{text}");
        let ints = Tensor::arange(0, 3);
        assert!(ints.try_layer_norm(3, None, None, 1e-5).is_err());
    }

    /// Rows far from zero keep their digits: against the same numbers in f64.
    #[test]
    fn f32_is_accurate_for_long_rows_far_from_zero() {
        for n in [1usize, 7, 17, 129, 1000, 5000] {
            let g = &mut Generator::manual_seed(n as u64);
            let x = (normal(g, [3, n]) + 100.0).to_dtype(DType::F32);
            let got = x.layer_norm(n, None, None, 1e-5);
            let want = x.to_dtype(DType::F64).layer_norm(n, None, None, 1e-5);
            let apart = (got.to_dtype(DType::F64) - want).abs();
            let worst = apart.to_vec::<f64>().into_iter().fold(0.0, f64::max);
            assert!(worst <= 8e-7, "rows of {n}: {worst:e} apart");
        }
    }
}
