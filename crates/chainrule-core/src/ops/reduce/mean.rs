//! `mean`: the mean over axes.

use crate::kernels::reduce;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Mean {
    pub axes: Axes,
    pub keepdim: bool,
}

impl Op for Mean {
    row!(mean);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.mean({0}, axis={axes}, keepdims={keepdim})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Fold { fold: Fold::Mean, axes: self.axes, keepdim: self.keepdim }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let shape = self.axes.reduce(&inputs[0].shape, self.keepdim);
        Ok(Meta::new(shape, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce(self.axes, self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let shape = at.input_shape(0);
        let kept = cotangent.try_reshape(self.axes.reduce(&shape, true))?;
        let share = kept.try_div(self.axes.count(&shape))?;
        Ok(smallvec![Some(share.try_expand(shape)?)])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let n = self.axes.count(&at.input_shape(0));
        let dx = tangents[0].as_ref().expect("the only tangent");
        dx.try_sum(self.axes, self.keepdim)?.try_mul(1.0 / n as f64)
    }

    fn without_kept_axes(&self) -> Option<Arc<dyn Op>> {
        self.keepdim.then(|| Arc::new(Mean { axes: self.axes, keepdim: false }) as Arc<dyn Op>)
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
    /// The mean over `axes` (a number, a list, or `..` for all): the sum, divided by the number of
    /// elements. With `keepdim` the axes stay, with size 1.
    ///
    /// For f32 and f64; integers and bools are an error, as in PyTorch. The mean of nothing is NaN.
    /// Gradient: `dx = g / n`, expanded over the axes, where n elements become one.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 6.0]]);
    /// assert_eq!(x.mean(0, false).to_vec::<f32>(), [2.0, 4.0]);
    /// assert_eq!(x.mean(.., false).item(), 3.0);
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
    python: &[Binding::reduction("mean", |x, a| {
        let (x, axes, keepdim) = a.reduced(x)?;
        x.try_mean(axes, keepdim)
    })],
    formula: "sum of x over the axes / n",
    gradient: "dx = g / n, expanded over the axes",
    at_kinks: "the mean of nothing is NaN",
    samples: |g| reduce_samples(g, |x, axes, keepdim| x.try_mean(axes, keepdim)),
    mistakes: &[
        Mistake {
            name: "missing 1/n",
            what: "the gradient is not divided by the number of elements, as for a sum",
            rule: |op, at, g, wanted| scaled(op, at, g, wanted, |n| n),
        },
        Mistake {
            name: "divided twice",
            what: "the gradient is divided by the number of elements twice",
            rule: |op, at, g, wanted| scaled(op, at, g, wanted, |n| 1.0 / n),
        },
    ],
};

/// The gradient times a function of the number of elements that become one.
fn scaled(
    op: &dyn Op,
    at: &Saved<'_>,
    g: &Tensor,
    wanted: Wanted,
    factor: fn(f64) -> f64,
) -> Result<Grads> {
    let n = at.input_shape(0).numel() as f64 / at.output_meta().shape.numel() as f64;
    let mut grads = op.vjp(at, g, wanted)?;
    grads[0] = grads[0].take().map(|g| g * factor(n));
    Ok(grads)
}

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    #[test]
    fn the_mean_of_nothing_is_nan_and_its_gradient_empty() {
        let x = Tensor::zeros([2, 0]).parameter();
        let y = x.mean(1, false);
        assert!(y.to_vec::<f32>().iter().all(|y| y.is_nan()));
        y.sum_all().backward();
        assert_eq!(x.grad().unwrap().shape(), [2, 0]);
        assert_eq!(Tensor::zeros([0, 2]).mean(1, false).shape(), [0]);
    }

    #[test]
    fn integers_have_no_mean() {
        let error = Tensor::from([1i64]).try_mean(0, false).unwrap_err();
        let want = "mean: dtype i64: defined for floats; convert with to_dtype first";
        assert_eq!(error.kind().to_string(), want);
        let bools = Tensor::full([2], 1.0, DType::Bool);
        assert!(bools.try_mean_all().is_err());
    }
}
