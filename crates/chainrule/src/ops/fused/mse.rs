//! `mse`: the mean of squared differences, and the backward of it as one kernel.

use super::backward_only;
use crate::kernels::math::Real;
use crate::kernels::softmax::Row;
use crate::ops::prelude::*;
use crate::tensor::op::Definition;

#[derive(Debug)]
pub(crate) struct Mse;

impl Op for Mse {
    fn name(&self) -> &'static str {
        "mse"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let (x, target) = (inputs[0].shape, inputs[1].shape);
        if x != target {
            let why = "prediction and target must have the same shape; reshape one (broadcasting them is hardly ever meant)";
            return Err(Error::shape(self.name(), &[&x, &target], why));
        }
        Ok(Meta::new(Shape::SCALAR, float_inputs(self.name(), inputs)?))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let dx = apply(MseGrad, &[&at.input(0), &at.input(1), cotangent])?;
        let dt = wanted.get(1).then(|| dx.try_neg()).transpose()?;
        Ok(smallvec![Some(dx), dt])
    }

    /// By way of the squares: `mean(2 d * dd)`, where `d` is the difference.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dd = match tangents {
            [Some(dx), Some(dt)] => dx.try_sub(dt)?,
            [Some(dx), None] => dx.clone(),
            [None, Some(dt)] => dt.try_neg()?,
            _ => unreachable!("at least one tangent is given"),
        };
        let d = at.input(0).try_sub(at.input(1))?;
        let n = d.numel() as f64;
        let products = d.try_mul(&dd)?;
        products.try_add(&products)?.try_sum_all()?.try_div(n)
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|x| {
            let d = x[0].try_sub(&x[1])?;
            d.try_mul(&d)?.try_sum_all()?.try_div(d.numel() as f64)
        }))
    }
}

impl WholeKernel for Mse {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, t) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let mut value = Value::uninit(self.name(), out)?;
        match (array(&x), array(&t), output(&mut value)) {
            (Array::F32(x), Array::F32(t), Output::F32(o)) => o[0] = mean_square(x, t),
            (Array::F64(x), Array::F64(t), Output::F64(o)) => o[0] = mean_square(x, t),
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(value.into())
    }
}

/// The mean of the squared differences, summed in blocks whose sums add up in f64; NaN for none.
fn mean_square<T: Row>(x: &[T], t: &[T]) -> T {
    const BLOCK: usize = 256;
    let mut differences = [T::ZERO; BLOCK];
    let mut total = 0.0;
    for (x, t) in x.chunks(BLOCK).zip(t.chunks(BLOCK)) {
        let d = &mut differences[..x.len()];
        for ((d, &x), &t) in d.iter_mut().zip(x).zip(t) {
            *d = x - t;
        }
        total += T::row_dot(d, d).to_f64();
    }
    T::from_f64(total / x.len() as f64)
}

/// `2 (x - target) * g / n`: the backward of the mean square for `x`; its negative is the target's.
#[derive(Debug)]
struct MseGrad;

impl Op for MseGrad {
    fn name(&self) -> &'static str {
        "mse_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    backward_only!();
}

impl WholeKernel for MseGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, t) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let g = &inputs[2];
        let mut value = Value::uninit(self.name(), out)?;
        match (array(&x), array(&t), output(&mut value)) {
            (Array::F32(x), Array::F32(t), Output::F32(o)) => scaled(x, t, g.first(), o),
            (Array::F64(x), Array::F64(t), Output::F64(o)) => scaled(x, t, g.first(), o),
            _ => unreachable!("a gradient has the dtype of its tensor"),
        }
        Ok(value.into())
    }
}

fn scaled<T: Real>(x: &[T], t: &[T], g: T, out: &mut [T]) {
    let factor = T::from_f64(2.0 * g.to_f64() / x.len() as f64);
    for ((o, &x), &t) in out.iter_mut().zip(x).zip(t) {
        *o = (x - t) * factor;
    }
}

methods! {
    /// The mean of `(x - target)^2` over all elements, a 0-d tensor. For f32 and f64.
    ///
    /// The shapes must be equal: a `[n, 1]` beside a `[n]` is an error, not a matrix of differences. Different dtypes are promoted. The mean
    /// of no elements is NaN. Gradient: `dx = 2 g (x - target) / n`, and its negative for the target.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let loss = Tensor::from([1.0f32, 2.0]).mse(&Tensor::from([0.0f32, 4.0]));
    /// assert_eq!(loss.item(), 2.5);
    /// ```
    pub fn mse / try_mse(&self, target: &Tensor) -> Tensor {
        let dtype = self.dtype().promote(target.dtype());
        if self.dtype() == dtype && target.dtype() == dtype {
            return apply(Mse, &[self, target]);
        }
        apply(Mse, &[&self.try_to_dtype(dtype)?, &target.try_to_dtype(dtype)?])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "mse",
    family: Family::Fused,
    signature: "x.mse(&target)",
    formula: "mean((x - target)^2)",
    gradient: "dx = 2 g (x - target) / n; dtarget = -dx",
    at_kinks: "the mean of no elements is NaN",
    samples: |g| {
        let shapes: [(&str, &[usize]); 4] = [
            ("matrix", &[3, 5]),
            ("0-d", &[]),
            ("one row", &[1, 17]),
            ("several blocks", &[3, 301]),
        ];
        let mut out: Vec<Sample> = shapes
            .map(|(note, shape)| {
                let inputs = vec![normal(g, shape), normal(g, shape)];
                Sample::new(note, inputs, |x| x[0].try_mse(&x[1]))
            })
            .into();
        out.push(Sample::new("a matrix against its transpose", vec![normal(g, [3, 3])], |x| {
            x[0].try_mse(&x[0].try_t()?)
        }));
        out
    },
    mistakes: &[
        Mistake {
            name: "factor 2 forgotten",
            what: "the derivative of a square was taken for the difference itself",
            rule: |op, at, g, wanted| op.vjp(at, &g.try_mul(0.5)?, wanted),
        },
        Mistake {
            name: "missing 1/n",
            what: "the gradient of a sum of squares where the loss is their mean",
            rule: |op, at, g, wanted| {
                let n = at.input(0).numel() as f64;
                op.vjp(at, &g.try_mul(n)?, wanted)
            },
        },
        Mistake {
            name: "sign",
            what: "prediction and target are exchanged in the difference",
            rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
        },
    ],
};
