//! `std`: the standard deviation over axes.

use super::var::{mean_beside, var_grad, var_tangent, variance};
use crate::kernels::math;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Std {
    axes: Axes,
    correction: usize,
    keepdim: bool,
}

impl Op for Std {
    row!(std);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_std({0}, {axes}, {correction}, {keepdim})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Fold {
            fold: Fold::Std { correction: self.correction },
            axes: self.axes,
            keepdim: self.keepdim,
        }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let shape = self.axes.reduce(&inputs[0].shape, self.keepdim);
        Ok(Meta::new(shape, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn also_gives(&self, other: &dyn Op) -> Option<usize> {
        mean_beside(other, self.axes)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(0).and(Saves::OUTPUT).and(Saves::EXTRA)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let g = cotangent.try_mul(&half_reciprocal(&at.output())?)?;
        let grad = var_grad(at, &g, self.axes, self.correction)?;
        Ok(smallvec![Some(grad)])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let dvar = var_tangent(&at.input(0), dx, self.axes, self.correction, self.keepdim)?;
        dvar.try_mul(&half_reciprocal(&at.output())?)
    }
}

/// `1 / (2 y)`, and 0 where `y` is 0.
fn half_reciprocal(y: &Tensor) -> Result<Tensor> {
    let is_zero = y.try_eq(0.0)?.try_to_dtype(y.dtype())?;
    let not_zero = y.try_ne(0.0)?.try_to_dtype(y.dtype())?;
    not_zero.try_mul(0.5)?.try_div(&y.try_add(&is_zero)?)
}

impl WholeKernel for Std {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let outcome = variance(self.name(), &inputs[0], self.axes, self.correction, out)?;
        let mut value = Value::uninit(self.name(), out)?;
        match (array(&outcome.value), output(&mut value)) {
            (Array::F32(var), Output::F32(out)) => math::sqrt_slice(var, out),
            (Array::F64(var), Output::F64(out)) => math::sqrt_slice(var, out),
            _ => unreachable!("infer admits no other dtypes"),
        }
        let extra = outcome.extra;
        Ok(Outcome { value: value.share(), extra })
    }
}

methods! {
    /// The standard deviation over `axes` (a number, a list, or `..` for all): the square root of
    /// [`Tensor::var`] with the same arguments.
    ///
    /// For f32 and f64. Gradient: `dx = g * (x - mean) / ((n - correction) * std)`; where all
    /// elements are equal it is 0, as in PyTorch (the standard deviation has a kink there). With
    /// `correction >= n` it is as useless as that of the variance.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 3.0], [2.0, 2.0]]);
    /// assert_eq!(x.std(1, 0, false).to_vec::<f32>(), [1.0, 0.0]);
    /// ```
    pub fn std / try_std<A: IntoAxes>(&self, axes: A, correction: usize, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("std", &self.shape())?;
        apply(Std { axes, correction, keepdim }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "std",
    family: Family::Reduce,
    signature: "x.std(axes, correction, keepdim)",
    python: &[Binding::by_hand(
        "std",
        "two names and two places for the correction, which need not be whole",
    )],
    formula: "sqrt(sum((x - mean)^2) / (n - correction))",
    gradient: "dx = g * (x - mean) / ((n - correction) * std)",
    at_kinks: "where all elements are equal the gradient is 0; with correction >= n the result is an infinity or NaN",
    samples: |g| {
        type StdCase = (&'static str, &'static [usize], &'static [i64], usize, bool);
        let cases: [StdCase; 6] = [
            ("last axis", &[3, 17], &[-1], 1, false),
            ("first axis, kept", &[5, 4], &[0], 0, true),
            ("middle axis", &[2, 3, 4], &[1], 1, false),
            ("axes apart", &[2, 3, 4], &[0, 2], 1, true),
            ("all axes", &[3, 4], &[0, 1], 0, false),
            ("no rows", &[0, 3], &[1], 1, false),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, shape, axes, correction, keepdim)| {
                Sample::new(note, vec![normal(g, shape)], move |x| {
                    x[0].try_std(axes, correction, keepdim)
                })
            })
            .collect();
        out.push(Sample::new("a transposed view", vec![normal(g, [4, 3, 2])], |x| {
            x[0].try_transpose(0, 2)?.try_std(1, 1, false)
        }));
        // The deviation of one element, or of equal ones, is 0: a kink.
        let one = Sample::new("0-d", vec![normal(g, ())], |x| x[0].try_std(.., 0, false));
        let equal = Sample::new("equal elements", vec![Tensor::from([[2.0, 2.0, 2.0]])], |x| {
            x[0].try_std(1, 1, false)
        });
        let why = "a single number has the deviation 0 wherever it is; the rule is that of equal elements";
        out.extend([one.smooth_at_kink(why), equal.at_kink()]);
        out
    },
    mistakes: &[
        Mistake {
            name: "gradient of the variance",
            what: "the square root is forgotten: the gradient of the variance is passed on",
            rule: |op, at, g, _| {
                let op = of(op)?;
                Ok(smallvec![Some(var_grad(at, g, op.axes, op.correction)?)])
            },
        },
        Mistake {
            name: "wrong correction",
            what: "the gradient divides by n - 1 where the deviation divides by n, or the other way round",
            rule: |op, at, g, _| {
                let op = of(op)?;
                let g = g.try_mul(&half_reciprocal(&at.output())?)?;
                let other = 1 - op.correction.min(1);
                Ok(smallvec![Some(var_grad(at, &g, op.axes, other)?)])
            },
        },
    ],
};

fn of(op: &dyn Op) -> Result<&Std> {
    op.downcast()
}

#[cfg(test)]
mod tests {
    use crate::{Tensor, autograd};

    /// PyTorch 2.15: 0 for the gradient, and for its own.
    #[test]
    fn where_all_elements_are_equal_the_gradient_is_0() {
        let x = Tensor::from([2.0, 2.0]).parameter();
        let y = x.std(0, 1, false);
        assert_eq!(y.item(), 0.0);
        let dx = autograd::grad_with(&y, &[&x], &autograd::GradOptions::create_graph())
            .unwrap()
            .remove(0)
            .unwrap();
        assert_eq!(dx.to_vec::<f64>(), [0.0, 0.0]);
        let ddx = autograd::grad(&dx.sum_all(), &[&x]).unwrap().remove(0);
        assert_eq!(ddx.unwrap().to_vec::<f64>(), [0.0, 0.0]);
    }

    /// As PyTorch 2.15 gives them, up to the sign of zeros.
    #[test]
    fn corrections_up_to_and_beyond_n_do_as_pytorch() {
        for (correction, finite) in [(2, false), (3, true)] {
            let x = Tensor::from([[1.0, 3.0], [2.0, 2.0]]).parameter();
            let y = x.std(1, correction, false);
            y.sum_all().backward();
            let (y, dx) = (y.to_vec::<f64>(), x.grad().unwrap().to_vec::<f64>());
            assert!(y[0] == f64::INFINITY && y[1].is_nan());
            assert!(dx[..2].iter().all(|d| if finite { *d == 0.0 } else { d.is_nan() }));
            assert!(dx[2..].iter().all(|d| d.is_nan()));
        }
    }
}
