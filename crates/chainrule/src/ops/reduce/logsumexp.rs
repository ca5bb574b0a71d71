//! `logsumexp`: the logarithm of a sum of exponentials, without overflow.

use crate::kernels::softmax;
use crate::ops::prelude::*;

#[derive(Debug)]
pub(crate) struct LogSumExp {
    axes: Axes,
    keepdim: bool,
}

impl Op for LogSumExp {
    fn name(&self) -> &'static str {
        "logsumexp"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(self.axes.reduce(&inputs[0].shape, self.keepdim), dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce(self.axes, self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::OUTPUT)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let kept = self.axes.reduce(&at.input_shape(0), true);
        let share = at.input(0).try_sub(&at.output().try_reshape(kept)?)?.try_exp()?;
        Ok(smallvec![Some(share.try_mul(&cotangent.try_reshape(kept)?)?)])
    }

    /// The mean of the tangents weighted by `exp(x - largest x)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let x = at.input(0);
        if self.axes.count(&x.shape()) == 0 {
            return Tensor::try_full(at.output_meta().shape, 0.0, x.dtype());
        }
        let weight = x.try_sub(&x.detach().try_max(self.axes, true)?)?.try_exp()?;
        let dx = weight.try_mul(tangents[0].as_ref().expect("the only tangent"))?;
        dx.try_sum(self.axes, self.keepdim)?.try_div(&weight.try_sum(self.axes, self.keepdim)?)
    }
}

impl ReduceKernel for LogSumExp {
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>) {
        match (x, out) {
            (Array::F32(x), Output::F32(out)) => rows(x, extent, out),
            (Array::F64(x), Output::F64(out)) => rows(x, extent, out),
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

/// Brings the reduced axis to the end, where the kernel takes it, if it is not there.
fn rows<T: softmax::Row + Stored>(x: &[T], extent: Extent, out: &mut [T]) {
    let Extent { count, inner, .. } = extent;
    if inner == 1 || count == 0 {
        return softmax::logsumexp_rows(x, count, out);
    }
    let mut turned = vec![T::default(); count * inner];
    if turned.is_empty() {
        return;
    }
    for (x, out) in x.chunks_exact(count * inner).zip(out.chunks_exact_mut(inner)) {
        for (i, row) in x.chunks_exact(inner).enumerate() {
            for (j, &v) in row.iter().enumerate() {
                turned[j * count + i] = v;
            }
        }
        softmax::logsumexp_rows(&turned, count, out);
    }
}

methods! {
    /// The logarithm of the sum of `e^x` over `axes` (a number, a list, or `..` for all), without overflow. With `keepdim` the axes stay. For
    /// f32 and f64.
    ///
    /// Of nothing it is -inf. Gradient: `dx = g * softmax(x)`; NaN where all elements are -inf, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1000.0f32, 1000.0]);
    /// assert!((x.logsumexp(.., false).item() - 1000.6931).abs() < 1e-3);
    /// ```
    pub fn logsumexp / try_logsumexp<A: IntoAxes>(&self, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("logsumexp", &self.shape())?;
        apply(LogSumExp { axes, keepdim }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "logsumexp",
    family: Family::Reduce,
    signature: "x.logsumexp(axes, keepdim)",
    formula: "log of the sum of e^x over the axes",
    gradient: "dx = g * e^(x - logsumexp(x))",
    at_kinks: "where all elements are -inf the value is -inf and the gradient NaN",
    samples: |g| reduce_samples(g, |x, axes, keepdim| x.try_logsumexp(axes, keepdim)),
    mistakes: &[
        Mistake {
            name: "not normalised",
            what: "the gradient is g * e^x: the division by the sum is missing",
            rule: |op, at, g, _| {
                let op = (op as &dyn std::any::Any).downcast_ref::<LogSumExp>().expect("the rule of logsumexp");
                let kept = op.axes.reduce(&at.input_shape(0), true);
                Ok(smallvec![Some(at.input(0).try_exp()?.try_mul(&g.try_reshape(kept)?)?)])
            },
        },
        Mistake {
            name: "gradient of a sum",
            what: "every element gets the whole gradient",
            rule: |op, at, g, _| {
                let op = (op as &dyn std::any::Any).downcast_ref::<LogSumExp>().expect("the rule of logsumexp");
                let shape = at.input_shape(0);
                Ok(smallvec![Some(g.try_reshape(op.axes.reduce(&shape, true))?.try_expand(shape)?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// Values and gradients that PyTorch gives.
    #[test]
    fn edges_are_those_of_pytorch() {
        let run = |x: [f32; 2]| {
            let x = Tensor::from(x).parameter();
            let y = x.logsumexp(.., false);
            y.backward();
            (y.item(), x.grad().unwrap().to_vec::<f32>())
        };
        let (value, dx) = run([f32::NEG_INFINITY; 2]);
        assert!(value == f64::NEG_INFINITY && dx.iter().all(|d| d.is_nan()));
        let (value, dx) = run([f32::INFINITY, 1.0]);
        assert!(value == f64::INFINITY && dx[0].is_nan() && dx[1] == 0.0);
        let empty = Tensor::zeros([0, 3]).logsumexp(0, false);
        assert_eq!(empty.to_vec::<f32>(), [f32::NEG_INFINITY; 3]);
    }
}
