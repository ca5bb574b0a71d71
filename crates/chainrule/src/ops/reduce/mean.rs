//! `mean`: the mean over axes.

use crate::kernels::reduce;
use crate::ops::prelude::*;

#[derive(Debug)]
pub(crate) struct Mean {
    axes: Axes,
    keepdim: bool,
}

impl Op for Mean {
    fn name(&self) -> &'static str {
        "mean"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(self.axes.reduce(&inputs[0].shape, self.keepdim), dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce(self.axes, self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let shape = at.input_shape(0);
        let share = cotangent.try_mul(1.0 / self.axes.count(&shape) as f64)?;
        let kept = share.try_reshape(self.axes.reduce(&shape, true))?;
        Ok(smallvec![Some(kept.try_expand(shape)?)])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let sum = tangents[0].as_ref().expect("the only tangent").try_sum(self.axes, self.keepdim)?;
        sum.try_div(self.axes.count(&at.input_shape(0)) as f64)
    }
}

impl ReduceKernel for Mean {
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>) {
        let Extent { count, inner, .. } = extent;
        match (x, out) {
            (Array::F32(x), Output::F32(out)) => {
                reduce::sum(x, count, inner, out);
                out.iter_mut().for_each(|o| *o /= count as f32);
            }
            (Array::F64(x), Output::F64(out)) => {
                reduce::sum(x, count, inner, out);
                out.iter_mut().for_each(|o| *o /= count as f64);
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// The mean over `axes` (a number, a list, or `..` for all). With `keepdim` the axes stay, with size 1. For f32 and f64.
    ///
    /// The mean of nothing is NaN. Gradient: `dx = g / n`, expanded over the axes, where n is the number of elements in each mean.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.mean(0, false).to_vec::<f32>(), [2.0, 3.0]);
    /// ```
    pub fn mean / try_mean<A: IntoAxes>(&self, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("mean", &self.shape())?;
        apply(Mean { axes, keepdim }, &[self])
    }

    /// The mean of all elements, a 0-d tensor: [`Tensor::mean`] over all axes.
    pub fn mean_all / try_mean_all(&self) -> Tensor {
        self.try_mean(.., false)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "mean",
    family: Family::Reduce,
    signature: "x.mean(axes, keepdim)",
    formula: "sum of x over the axes / n",
    gradient: "dx = g / n, expanded over the axes",
    at_kinks: "the mean of nothing is NaN",
    samples: |g| reduce_samples(g, |x, axes, keepdim| x.try_mean(axes, keepdim)),
    mistakes: &[
        Mistake {
            name: "missing 1/n",
            what: "the gradient is not divided by the number of elements",
            rule: |op, at, g, wanted| {
                let n = at.input_shape(0).numel() as f64 / at.output_meta().shape.numel() as f64;
                let grads = op.vjp(at, g, wanted)?;
                Ok(grads.into_iter().map(|g| g.map(|g| g * n)).collect())
            },
        },
        Mistake {
            name: "divided twice",
            what: "the gradient is divided by n two times, here and again in the loss",
            rule: |op, at, g, wanted| {
                let n = at.input_shape(0).numel() as f64 / at.output_meta().shape.numel() as f64;
                let grads = op.vjp(at, g, wanted)?;
                Ok(grads.into_iter().map(|g| g.map(|g| g * (1.0 / n))).collect())
            },
        },
    ],
};
