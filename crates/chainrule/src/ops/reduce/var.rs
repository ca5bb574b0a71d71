//! `var` and `std`: variance and standard deviation over axes, in two passes, and their backward as one kernel.

use crate::kernels::reduce::moments;
use crate::ops::prelude::*;
use crate::tensor::run::adjacent;

/// The variance, or its root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Var {
    axes: Axes,
    correction: usize,
    keepdim: bool,
    root: bool,
}

impl Var {
    /// What the squared deviations are divided by: never below 0.
    fn divisor(&self, shape: &Shape) -> f64 {
        self.axes.count(shape).saturating_sub(self.correction) as f64
    }

    fn kept(&self, shape: &Shape, t: &Tensor) -> Result<Tensor> {
        t.try_reshape(self.axes.reduce(shape, true))
    }

    /// What arrives at the variance, with kept axes: for the root `g / (2 std)`, and 0 where that is 0, as in PyTorch.
    fn at_variance(&self, at: &Saved<'_>, g: &Tensor) -> Result<Tensor> {
        let shape = at.input_shape(0);
        if !self.root {
            return self.kept(&shape, g);
        }
        let std = at.output();
        let slope = g.try_div(&std.try_mul(2.0)?)?;
        self.kept(&shape, &std.try_ne(0.0)?.try_where(&slope, 0.0)?)
    }
}

impl Op for Var {
    fn name(&self) -> &'static str {
        if self.root { "std" } else { "var" }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(self.axes.reduce(&inputs[0].shape, self.keepdim), dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        let all = Saves::INPUTS.and(Saves::EXTRA);
        all.and(Saves::OUTPUT.when(self.root))
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let x = at.input(0);
        let g = self.at_variance(at, cotangent)?;
        // What the kernel computed is a constant; to be differentiated again, the mean must depend on x.
        let mean = if at.is_linked() { x.try_mean(self.axes, true)? } else { at.extra(0) };
        let divisor = self.divisor(&at.input_shape(0));
        if divisor == 0.0 {
            // As PyTorch has it: no sign, and NaN at the mean.
            let slope = x.try_ne(&mean)?.try_where(&x.ones_like().try_mul(f64::INFINITY)?, f64::NAN)?;
            return Ok(smallvec![Some(slope.try_mul(&g)?)]);
        }
        Ok(smallvec![Some(apply(Centred { factor: 2.0 / divisor }, &[&x, &mean, &g])?)])
    }

    /// `2 / (n - correction) * sum((x - mean) * (dx - mean of dx))`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let centre = |x: &Tensor| x.try_sub(&x.try_mean(self.axes, true)?);
        let dx = tangents[0].as_ref().expect("the only tangent");
        let product = centre(&at.input(0))?.try_mul(&centre(dx)?)?.try_sum(self.axes, self.keepdim)?;
        let dv = product.try_mul(2.0)?.try_div(self.divisor(&at.input_shape(0)))?;
        if !self.root {
            return Ok(dv);
        }
        let std = at.output();
        std.try_ne(0.0)?.try_where(&dv.try_div(&std.try_mul(2.0)?)?, 0.0)
    }
}

impl WholeKernel for Var {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, extent) = adjacent(&inputs[0], self.axes)?;
        let kept = Meta::new(self.axes.reduce(inputs[0].shape(), true), out.dtype);
        let (mut var, mut mean) = (Value::uninit(self.name(), out)?, Value::uninit(self.name(), kept)?);
        let divisor = self.divisor(inputs[0].shape());
        let Extent { count, inner, .. } = extent;
        match (array(&x), output(&mut mean), output(&mut var)) {
            (Array::F32(x), Output::F32(mean), Output::F32(var)) => {
                moments::moments(x, count, inner, divisor as f32, mean, var);
                if self.root {
                    var.iter_mut().for_each(|v| *v = v.sqrt());
                }
            }
            (Array::F64(x), Output::F64(mean), Output::F64(var)) => {
                moments::moments(x, count, inner, divisor, mean, var);
                if self.root {
                    var.iter_mut().for_each(|v| *v = v.sqrt());
                }
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(Outcome { value: var, extra: smallvec![Arc::new(mean)] })
    }
}

/// `factor * (x - mean) * g` in one pass: the backward of a variance.
#[derive(Debug, Clone, Copy)]
struct Centred {
    factor: f64,
}

impl Op for Centred {
    fn name(&self) -> &'static str {
        "var_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(broadcast_shapes(self.name(), inputs)?, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (x, mean, g) = (at.input(0), at.input(1), at.input(2));
        let dx = cotangent.try_mul(&g)?.try_mul(self.factor)?;
        let dmean = wanted.get(1).then(|| dx.try_neg()).transpose()?;
        let dg = wanted.get(2).then(|| apply(*self, &[&x, &mean, cotangent])).transpose()?;
        Ok(smallvec![Some(dx), dmean, dg])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (x, mean, g) = (at.input(0), at.input(1), at.input(2));
        let shape = at.output_meta().shape;
        let mut sum = Tensor::try_full(shape, 0.0, x.dtype())?;
        if let Some(dx) = &tangents[0] {
            sum = sum.try_add(&dx.try_mul(&g)?)?;
        }
        if let Some(dmean) = &tangents[1] {
            sum = sum.try_sub(&dmean.try_mul(&g)?)?;
        }
        if let Some(dg) = &tangents[2] {
            sum = sum.try_add(&x.try_sub(&mean)?.try_mul(dg)?)?;
        }
        sum.try_mul(self.factor)
    }
}

impl MapKernel for Centred {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        match (inputs, out) {
            ([Input::F32(x), Input::F32(mean), Input::F32(g)], Output::F32(out)) => {
                moments::centred(*x, *mean, *g, self.factor as f32, n, out)
            }
            ([Input::F64(x), Input::F64(mean), Input::F64(g)], Output::F64(out)) => {
                moments::centred(*x, *mean, *g, self.factor, n, out)
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// The variance over `axes`: squared deviations from the mean, summed and divided by `n - correction`. With `keepdim` the axes stay. For f32
    /// and f64.
    ///
    /// `correction` 1 is the unbiased one (Bessel), 0 the biased. With `correction` of n or more it divides by 0, as in PyTorch. Gradient:
    /// `dx = g * 2 (x - mean) / (n - correction)`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1.0f32, 2.0, 3.0, 4.0]);
    /// assert_eq!(x.var(.., 0, false).item(), 1.25);
    /// ```
    pub fn var / try_var<A: IntoAxes>(&self, axes: A, correction: usize, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("var", &self.shape())?;
        apply(Var { axes, correction, keepdim, root: false }, &[self])
    }

    /// The standard deviation over `axes`, the root of [`Tensor::var`]. For f32 and f64.
    ///
    /// Gradient: `dx = g * (x - mean) / ((n - correction) * std)`, and 0 where the deviation is 0, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, 3.0]).std(.., 0, false).item(), 1.0);
    /// ```
    pub fn std / try_std<A: IntoAxes>(&self, axes: A, correction: usize, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("std", &self.shape())?;
        apply(Var { axes, correction, keepdim, root: true }, &[self])
    }
}

/// The classic mistakes, which both share.
const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "wrong correction",
        what: "the gradient is divided by n where the variance was divided by n - 1",
        rule: |op, at, g, wanted| {
            let var = (op as &dyn std::any::Any).downcast_ref::<Var>().expect("the rule of var");
            let shape = at.input_shape(0);
            let factor = var.divisor(&shape) / (var.axes.count(&shape) + 1 - var.correction) as f64;
            let grads = op.vjp(at, g, wanted)?;
            Ok(grads.into_iter().map(|g| g.map(|g| g * factor)).collect())
        },
    },
    Mistake {
        name: "mean forgotten",
        what: "the gradient is 2 x / (n - correction): the mean was not subtracted",
        rule: |op, at, g, _| {
            let var = (op as &dyn std::any::Any).downcast_ref::<Var>().expect("the rule of var");
            let factor = 2.0 / var.divisor(&at.input_shape(0));
            let g = var.at_variance(at, g)?;
            Ok(smallvec![Some(at.input(0).try_mul(&g)? * factor)])
        },
    },
];

/// As for the other reductions, but where there is a variance at all: over two elements or more.
fn samples(g: &mut Generator, call: fn(&Tensor, &[i64], bool) -> Result<Tensor>) -> Vec<Sample> {
    let cases: [(&str, &[usize], &[i64], bool); 6] = [
        ("last axis", &[3, 17], &[-1], false),
        ("first axis, kept", &[5, 4], &[0], true),
        ("middle axis", &[2, 3, 4], &[1], false),
        ("axes apart", &[2, 3, 4], &[0, 2], true),
        ("all axes", &[3, 4], &[0, 1], false),
        ("no rows", &[0, 3], &[1], false),
    ];
    let mut out: Vec<Sample> = cases
        .map(|(note, shape, axes, keepdim)| Sample::new(note, vec![normal(g, shape)], move |x| call(&x[0], axes, keepdim)))
        .into();
    out.push(Sample::new("a transposed view", vec![normal(g, [4, 3, 2])], move |x| {
        call(&x[0].try_transpose(0, 2)?, &[1], false)
    }));
    out
}

pub(super) const VAR: Entry = Entry {
    name: "var",
    family: Family::Reduce,
    signature: "x.var(axes, correction, keepdim)",
    formula: "sum of (x - mean)^2 over the axes / (n - correction)",
    gradient: "dx = g * 2 (x - mean) / (n - correction)",
    at_kinks: "with correction >= n the divisor is 0: the value is NaN or infinite, and so is the gradient",
    samples: |g| samples(g, |x, axes, keepdim| x.try_var(axes, 1, keepdim)),
    mistakes: MISTAKES,
};

pub(super) const STD: Entry = Entry {
    name: "std",
    family: Family::Reduce,
    signature: "x.std(axes, correction, keepdim)",
    formula: "root of x.var(axes, correction)",
    gradient: "dx = g * (x - mean) / ((n - correction) * std)",
    at_kinks: "where the deviation is 0, the gradient is 0",
    samples: |g| samples(g, |x, axes, keepdim| x.try_std(axes, 1, keepdim)),
    mistakes: MISTAKES,
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// The values that PyTorch gives.
    #[test]
    fn edges_are_those_of_pytorch() {
        let grad = |x: &Tensor, y: Tensor| {
            y.backward();
            (y.item(), x.grad().unwrap().to_vec::<f32>())
        };
        let x = Tensor::from([2.0f32, 2.0, 2.0]).parameter();
        assert_eq!(grad(&x, x.std(.., 1, false)), (0.0, vec![0.0; 3]));
        let x = Tensor::from([2.0f32]).parameter();
        let (value, dx) = grad(&x, x.var(.., 1, false));
        assert!(value.is_nan() && dx[0].is_nan());
        let x = Tensor::from([2.0f32, 3.0]).parameter();
        assert_eq!(grad(&x, x.var(.., 3, false)), (f64::INFINITY, vec![f32::INFINITY; 2]));
    }
}
