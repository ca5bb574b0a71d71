//! `cummax`: the largest element so far along an axis, and where it stands.

use super::recurrence::along;
use crate::kernels::reduce::extremum::Ranked;
use crate::kernels::scan;
use crate::ops::index::{gathered_jvp, gathered_vjp};
use crate::ops::prelude::*;
use crate::tensor::node::Source;

/// The largest or the smallest so far.
#[derive(Debug, Parameters)]
pub(crate) struct CumExtreme {
    axis: usize,
    least: bool,
}

impl Op for CumExtreme {
    fn name(&self) -> &'static str {
        if self.least { "cummin" } else { "cummax" }
    }

    fn id(&self) -> Option<OpId> {
        Some(if self.least { OpId::cummin } else { OpId::cummax })
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(if self.least {
            "_cumulative_extreme({0}, {axis}, True)"
        } else {
            "_cumulative_extreme({0}, {axis}, False)"
        }))
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(1, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(inputs[0])
    }

    fn orders(&self) -> bool {
        true
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::EXTRA
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        gathered_vjp(at, self.axis, cotangent)
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        gathered_jvp(at, self.axis, tangents)
    }
}

impl WholeKernel for CumExtreme {
    /// The extra value is the positions.
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let (count, inner) = along(&out.shape, self.axis);
        let mut value = Value::uninit(self.name(), out)?;
        let mut at = Value::uninit(self.name(), Meta::new(out.shape, DType::I64))?;
        let index = at.elements_mut::<i64>();
        let least = self.least;
        fn takes<T: Ranked>(least: bool) -> impl Fn(T, T) -> bool {
            move |new, old| if least { new <= old } else { new >= old }
        }
        by_dtype!(x.dtype(), [F32, F64, I64, Bool], |T| scan::extremes(
            x.elements::<T>(),
            count,
            inner,
            value.elements_mut(),
            index,
            takes(least)
        ));
        Ok(Outcome { value: value.share(), extra: smallvec![at.share()] })
    }
}

/// The largest or smallest so far, and the positions.
#[track_caller]
pub(super) fn extremes(x: &Tensor, axis: usize, least: bool) -> Result<(Tensor, Tensor)> {
    let (values, extra) = apply_extra(CumExtreme { axis, least }, &[x])?;
    Ok((values, Tensor::from_parts(extra[0].clone(), Source::None)))
}

methods! {
    /// The largest element so far along `axis`, and its position (i64). For all dtypes.
    ///
    /// The last of equal elements is meant, as in PyTorch's `cummax`; NaN is larger than
    /// everything. Gradient: each `g` is added at the returned position.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (values, positions) = Tensor::from([1.0f32, 3.0, 2.0, 3.0]).cummax(0);
    /// assert_eq!(values.to_vec::<f32>(), [1.0, 3.0, 3.0, 3.0]);
    /// assert_eq!(positions.to_vec::<i64>(), [0, 1, 1, 3]);
    /// ```
    pub fn cummax / try_cummax(&self, axis: i64) -> (Tensor, Tensor) {
        extremes(self, self.shape().axis("cummax", axis)?, false)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cummax",
    family: Family::Reduce,
    signature: "x.cummax(axis)",
    python: &[Binding::pair("cummax", &[ALONG], |x, a| {
        along_axis_pair(x, a.int(0), |x| x.try_cummax(a.int(0)))
    })],
    formula: "y[i] = the largest of x[0] to x[i], and its last position",
    gradient: "dx[p[i]] += g[i], where p[i] is that position",
    at_kinks: "of ties the last gets the gradient; NaN is the largest",
    samples: |g| {
        let mut out = axis_samples(g, |x, axis| Ok(x.try_cummax(axis)?.0));
        let ties = Tensor::from([[1.0, 3.0, 3.0, 2.0]]);
        out.push(Sample::new("ties", vec![ties], |x| Ok(x[0].try_cummax(1)?.0)).at_kink());
        out
    },
    mistakes: MISTAKES,
};

pub(super) const MISTAKES: &[Mistake] = &[Mistake {
    name: "own place only",
    what: "each element gets the gradient of its own place, whatever stood there",
    rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
}];

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// The positions that PyTorch 2.15 gives.
    #[test]
    fn the_last_of_ties_and_nans() {
        let nan = f64::NAN;
        for (x, want) in
            [([1.0, 3.0, 3.0, 2.0], [0, 1, 2, 2]), ([1.0, nan, 2.0, nan], [0, 1, 1, 3])]
        {
            let x = Tensor::from(x).parameter();
            let (values, positions) = x.cummax(0);
            assert_eq!(positions.to_vec::<i64>(), want);
            assert_eq!(values.at::<f64>(&[3]).is_nan(), want[3] == 3);
            values.sum_all().backward();
            let counts = want.iter().fold([0.0; 4], |mut n, &i| {
                n[i as usize] += 1.0;
                n
            });
            assert_eq!(x.grad().unwrap().to_vec::<f64>(), counts);
        }
        let x = Tensor::from([[3i64, 1], [2, 5]]);
        assert_eq!(x.cummax(0).0.to_vec::<i64>(), [3, 1, 3, 5]);
        assert!(x.try_cummax(2).is_err());
    }
}
