//! `cumsum`: the running sum along an axis.

use super::recurrence::along;
use crate::kernels::scan::{self, Direction};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct CumSum {
    axis: usize,
    way: Direction,
}

impl Op for CumSum {
    row!(cumsum);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_cumulate(np.add, {0}, {axis}, {reverse}, {exclusive})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(1, inputs, outputs)
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_number_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let way = Direction { reverse: !self.way.reverse, ..self.way };
        Ok(smallvec![Some(apply(CumSum { axis: self.axis, way }, &[cotangent])?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        apply(CumSum { axis: self.axis, way: self.way }, &[dx])
    }
}

impl WholeKernel for CumSum {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let (count, inner) = along(&out.shape, self.axis);
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64, I64], |T| scan::cumsum(
            x.elements::<T>(),
            count,
            inner,
            self.way,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

methods! {
    /// The running sum along `axis`: `y[i] = x[0] + ... + x[i]`.
    ///
    /// Bools are counted as i64; integers wrap around; sums of f32 are carried in f64. Gradient:
    /// `dx[i] = g[i] + ... + g[n - 1]`, the running sum from the end.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.cumsum(1).to_vec::<f32>(), [1.0, 3.0, 3.0, 7.0]);
    /// assert_eq!(x.cumsum(0).to_vec::<f32>(), [1.0, 2.0, 4.0, 6.0]);
    /// ```
    pub fn cumsum / try_cumsum(&self, axis: i64) -> Tensor {
        let axis = self.shape().axis("cumsum", axis)?;
        let op = CumSum { axis, way: Direction { reverse: false, exclusive: false } };
        apply(op, &[&self.try_to_dtype(self.dtype().of_sum())?])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cumsum",
    family: Family::Reduce,
    signature: "x.cumsum(axis)",
    python: &[Binding::with("cumsum", &[ALONG, Parameter::dtype().by_name()], |x, a| {
        a.cast(1, &along_axis(&a.cast(1, x)?, a.int(0), |x| x.try_cumsum(a.int(0)))?)
    })],
    formula: "y[i] = x[0] + ... + x[i]",
    gradient: "dx[i] = g[i] + ... + g[n - 1]",
    at_kinks: "",
    samples: |g| axis_samples(g, |x, axis| x.try_cumsum(axis)),
    mistakes: &[
        Mistake {
            name: "wrong direction",
            what: "the gradient is summed from the beginning, as the values are",
            rule: |op, _, g, _| {
                let CumSum { axis, way } = of(op)?;
                Ok(smallvec![Some(apply(CumSum { axis: *axis, way: *way }, &[g])?)])
            },
        },
        Mistake {
            name: "own place only",
            what: "each element gets the gradient of its own place, without those of the sums after it",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
        },
        Mistake {
            name: "own place left out",
            what: "each element gets the gradients of the sums after it, without that of its own",
            rule: |op, _, g, _| {
                let way = Direction { reverse: true, exclusive: true };
                Ok(smallvec![Some(apply(CumSum { axis: of(op)?.axis, way }, &[g])?)])
            },
        },
    ],
};

fn of(op: &dyn Op) -> Result<&CumSum> {
    op.downcast()
}

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    #[test]
    fn dtypes_and_errors() {
        let count = Tensor::from([true, false, true]).cumsum(0);
        assert_eq!((count.dtype(), count.to_vec::<i64>()), (DType::I64, vec![1, 1, 2]));
        let wrapped = Tensor::from([i64::MAX, 1]).cumsum(-1);
        assert_eq!(wrapped.to_vec::<i64>(), [i64::MAX, i64::MIN]);
        let error = Tensor::zeros([2]).try_cumsum(1).unwrap_err();
        let want = "cumsum: shape [2]: there is no axis 1; axes run from -1 to 0";
        assert_eq!(error.kind().to_string(), want);
        assert!(Tensor::scalar(1.0f32).try_cumsum(0).is_err());
        assert_eq!(Tensor::zeros([2, 0]).cumsum(1).shape(), [2, 0]);
    }

    #[test]
    fn nan_and_infinities_last() {
        let y = Tensor::from([1.0, f64::INFINITY, 2.0, f64::NEG_INFINITY, 0.0]).cumsum(0);
        let y = y.to_vec::<f64>();
        assert_eq!(y[..3], [1.0, f64::INFINITY, f64::INFINITY]);
        assert!(y[3].is_nan() && y[4].is_nan());
    }
}
