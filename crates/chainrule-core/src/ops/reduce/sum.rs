//! `sum`: the sum over axes.

use crate::kernels::reduce;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Sum {
    pub axes: Axes,
    pub keepdim: bool,
}

impl Op for Sum {
    row!(sum);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.sum({0}, axis={axes}, keepdims={keepdim})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Fold { fold: Fold::Sum, axes: self.axes, keepdim: self.keepdim }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let x = infer_number_unary(self.name(), inputs)?;
        Ok(Meta::new(self.axes.reduce(&x.shape, self.keepdim), x.dtype))
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
        Ok(smallvec![Some(kept.try_expand(shape)?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        tangents[0].as_ref().expect("the only tangent").try_sum(self.axes, self.keepdim)
    }

    fn without_kept_axes(&self) -> Option<Arc<dyn Op>> {
        self.keepdim.then(|| Arc::new(Sum { axes: self.axes, keepdim: false }) as Arc<dyn Op>)
    }
}

impl ReduceKernel for Sum {
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>) {
        let Extent { count, inner, .. } = extent;
        match (x, out) {
            (Array::F32(x), Output::F32(out)) => reduce::sum(x, count, inner, out),
            (Array::F64(x), Output::F64(out)) => reduce::sum(x, count, inner, out),
            (Array::I64(x), Output::I64(out)) => reduce::sum(x, count, inner, out),
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// The sum over `axes` (a number, a list, or `..` for all). With `keepdim` the axes stay, with
    /// size 1.
    ///
    /// An empty sum is 0; bools are counted as i64; integers wrap around. Gradient: `dx = g`,
    /// expanded over the axes. Rows are summed in 16 lanes and long sums in blocks, in an order
    /// that the sizes alone decide: threads change no bit.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.sum(0, false).to_vec::<f32>(), [4.0, 6.0]);
    /// assert_eq!(x.sum(-1, true).shape(), [2, 1]);
    /// ```
    pub fn sum / try_sum<A: IntoAxes>(&self, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("sum", &self.shape())?;
        apply(Sum { axes, keepdim }, &[&self.try_to_dtype(self.dtype().of_sum())?])
    }

    /// The sum of all elements, a 0-d tensor: [`Tensor::sum`] over all axes.
    pub fn sum_all / try_sum_all(&self) -> Tensor {
        self.try_sum(.., false)
    }
}

/// Sums a gradient over the axes along which an operand of `shape` was broadcast.
#[doc(hidden)]
pub fn sum_to(gradient: &Tensor, shape: &Shape) -> Result<Tensor> {
    let from = gradient.shape();
    let lead = from.rank() - shape.rank();
    let stretched =
        (0..from.rank()).filter(|&a| a < lead || (shape[a - lead] == 1 && from[a] != 1));
    let axes: Vec<usize> = stretched.collect();
    let summed =
        if axes.is_empty() { gradient.clone() } else { gradient.try_sum(axes.as_slice(), true)? };
    if summed.shape() == *shape { Ok(summed) } else { summed.try_reshape(shape) }
}

pub(super) const ENTRY: Entry = Entry {
    name: "sum",
    family: Family::Reduce,
    signature: "x.sum(axes, keepdim)",
    python: &[Binding::reduction("sum", |x, a| {
        let (x, axes, keepdim) = a.reduced(x)?;
        a.cast(2, &x.try_sum(axes, keepdim)?)
    })],
    formula: "sum of x over the axes",
    gradient: "dx = g, expanded over the axes",
    at_kinks: "",
    samples: |g| reduce_samples(g, |x, axes, keepdim| x.try_sum(axes, keepdim)),
    mistakes: &[Mistake {
        name: "mean where a sum is due",
        what: "the gradient is divided by the number of summed elements",
        rule: |op, at, g, wanted| {
            let n = at.input_shape(0).numel() as f64 / at.output_meta().shape.numel() as f64;
            let grads = op.vjp(at, g, wanted)?;
            Ok(grads.into_iter().map(|g| g.map(|g| g * (1.0 / n))).collect())
        },
    }],
};

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    #[test]
    fn integers_wrap_bools_are_counted_and_nothing_is_0() {
        assert_eq!(Tensor::from([i64::MAX, 1]).sum_all().to_vec::<i64>(), [i64::MIN]);
        let count = Tensor::from([3, 1, 3]).eq(3).sum_all();
        assert_eq!((count.dtype(), count.item()), (DType::I64, 2.0));
        assert_eq!(Tensor::zeros([2, 0]).sum(1, false).to_vec::<f32>(), [0.0, 0.0]);
        assert_eq!(Tensor::zeros([0, 2]).sum(0, true).to_vec::<f32>(), [0.0, 0.0]);
    }

    /// Every set of axes of a view, against sums over single elements.
    #[test]
    fn axes_in_every_position_of_a_view() {
        let x = Tensor::arange(0, 2 * 3 * 4 * 5).reshape([2, 3, 4, 5]).permute(&[2, 0, 3, 1]);
        let shape = x.shape();
        for set in 0..16usize {
            let axes: Vec<usize> = (0..4).filter(|a| set >> a & 1 == 1).collect();
            let y = x.sum(axes.as_slice(), true);
            let mut want = vec![0i64; y.numel()];
            for i in 0..x.numel() {
                let (mut rest, mut at) = (i, [0; 4]);
                for a in (0..4).rev() {
                    at[a] = rest % shape[a];
                    rest /= shape[a];
                }
                let to = (0..4).fold(
                    0,
                    |to, a| {
                        if axes.contains(&a) { to } else { to * shape[a] + at[a] }
                    },
                );
                want[to] += x.at::<i64>(&at);
            }
            assert_eq!(y.to_vec::<i64>(), want, "{axes:?}");
        }
    }
}
