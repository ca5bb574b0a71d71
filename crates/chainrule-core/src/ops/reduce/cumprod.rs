//! `cumprod`: the running product along an axis.

use super::recurrence::{Recurrence, along, shifted};
use crate::kernels::scan::{self, Direction};
use crate::ops::prelude::*;

/// The running product; without the element itself where the direction says so, which is what the
/// gradients of products need.
#[derive(Clone, Copy, Debug, Parameters)]
pub(crate) struct CumProd {
    pub(super) axis: usize,
    pub(super) way: Direction,
}

impl Op for CumProd {
    row!(cumprod);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_cumulate(np.multiply, {0}, {axis}, {reverse}, {exclusive})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(1, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_number_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::OUTPUT)
    }

    /// An element occurs in its own product and in those after it: before it stands the product of
    /// what comes before, and behind it `s[i] = g[i] + x[i + 1] s[i + 1]`, from the end. Nothing is
    /// divided by, so that zeros do no harm.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let x = at.input(0);
        let CumProd { axis, way: Direction { reverse, exclusive } } = *self;
        let back = Recurrence { axis, reverse: !reverse, lagged: !exclusive };
        let behind = apply(back, &[&x, cotangent])?;
        let (before, behind) = match exclusive {
            true => (at.output(), shifted(&behind, axis, !reverse)?),
            false => {
                let way = Direction { reverse, exclusive: true };
                (apply(CumProd { axis, way }, &[&x])?, behind)
            }
        };
        Ok(smallvec![Some(before.try_mul(&behind)?)])
    }

    /// The product rule, step by step: `dy[i] = x[i] dy[i - 1] + dx[i] y[i - 1]`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        let CumProd { axis, way: Direction { reverse, exclusive } } = *self;
        let way = Direction { reverse, exclusive: true };
        let before = if exclusive { at.output() } else { apply(CumProd { axis, way }, &[&x])? };
        let along = Recurrence { axis, reverse, lagged: false };
        let dy = apply(along, &[&x, &dx.try_mul(&before)?])?;
        if exclusive { shifted(&dy, axis, reverse) } else { Ok(dy) }
    }
}

impl WholeKernel for CumProd {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let (count, inner) = along(&out.shape, self.axis);
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64, I64], |T| scan::cumprod(
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
    /// The running product along `axis`: `y[i] = x[0] * ... * x[i]`.
    ///
    /// Bools become i64; integers wrap around; products of f32 are carried in f64. Gradient:
    /// `dx[i]` is the sum over `k >= i` of `g[k]` times the product of `x[0]` to `x[k]` without
    /// `x[i]`. Nothing is divided by, so it is right where elements are 0, also when it is
    /// differentiated again. Beside infinities and NaN it is what those products give, also where
    /// PyTorch divides and has NaN.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([2.0f32, 0.0, 4.0]).parameter();
    /// let y = x.cumprod(0);
    /// assert_eq!(y.to_vec::<f32>(), [2.0, 0.0, 0.0]);
    /// y.sum_all().backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [1.0, 10.0, 0.0]);
    /// ```
    pub fn cumprod / try_cumprod(&self, axis: i64) -> Tensor {
        let axis = self.shape().axis("cumprod", axis)?;
        let op = CumProd { axis, way: Direction { reverse: false, exclusive: false } };
        apply(op, &[&self.try_to_dtype(self.dtype().of_sum())?])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cumprod",
    family: Family::Reduce,
    signature: "x.cumprod(axis)",
    python: &[Binding::with("cumprod", &[ALONG, Parameter::dtype().by_name()], |x, a| {
        a.cast(1, &along_axis(&a.cast(1, x)?, a.int(0), |x| x.try_cumprod(a.int(0)))?)
    })],
    formula: "y[i] = x[0] * ... * x[i]",
    gradient: "dx[i] = sum over k >= i of g[k] * the product of x[0] to x[k] without x[i]",
    at_kinks: "right with zeros; beside infinities and NaN what the products of the others give",
    samples: |g| {
        let mut out = axis_samples(g, |x, axis| x.try_cumprod(axis));
        let zeros = Tensor::from([[2.0, 0.0, 4.0], [0.0, 3.0, 0.0], [0.5, -1.0, 2.0]]);
        out.push(Sample::new("zeros", vec![zeros], |x| x[0].try_cumprod(1)));
        for (note, reverse) in [("without itself", false), ("without itself, from the end", true)] {
            let x = normal(g, [3, 4]);
            out.push(Sample::new(note, vec![x], move |x| {
                let way = Direction { reverse, exclusive: true };
                apply(CumProd { axis: 1, way }, &[&x[0]])
            }));
        }
        out
    },
    mistakes: &[
        Mistake {
            name: "divided by x",
            what: "the products without x[i] are taken by dividing by it, which gives NaN where it is 0",
            rule: |op, at, g, _| {
                let CumProd { axis, way } = *of(op)?;
                let way = Direction { reverse: !way.reverse, exclusive: way.exclusive };
                let flowing = g.try_mul(at.output())?;
                // The reversed running sum, as a recurrence with factors of 1.
                let back = Recurrence { axis, reverse: way.reverse, lagged: false };
                let sum = apply(back, &[&flowing.ones_like(), &flowing])?;
                let sum = if way.exclusive { sum.try_sub(&flowing)? } else { sum };
                Ok(smallvec![Some(sum.try_div(at.input(0))?)])
            },
        },
        Mistake {
            name: "own place only",
            what: "each element gets the gradient of its own product, without those of the products after it",
            rule: |op, at, g, _| {
                let CumProd { axis, way } = *of(op)?;
                let way = Direction { exclusive: true, ..way };
                Ok(smallvec![Some(apply(CumProd { axis, way }, &[&at.input(0)])?.try_mul(g)?)])
            },
        },
    ],
};

fn of(op: &dyn Op) -> Result<&CumProd> {
    op.downcast()
}

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn zeros_in_a_row() {
        for (x, y, dx) in [
            ([2.0, 3.0, 4.0], [2.0, 6.0, 24.0], [16.0, 10.0, 6.0]),
            ([2.0, 0.0, 4.0], [2.0, 0.0, 0.0], [1.0, 10.0, 0.0]),
            ([0.0, 0.0, 4.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
        ] {
            let x = Tensor::from(x).parameter();
            let out = x.cumprod(0);
            assert_eq!(out.to_vec::<f64>(), y);
            out.sum_all().backward();
            assert_eq!(x.grad().unwrap().to_vec::<f64>(), dx);
        }
    }

    #[test]
    fn dtypes_and_errors() {
        let y = Tensor::from([true, true, false]).cumprod(0);
        assert_eq!((y.dtype(), y.to_vec::<i64>()), (DType::I64, vec![1, 1, 0]));
        assert_eq!(Tensor::from([i64::MAX, 2]).cumprod(0).to_vec::<i64>(), [i64::MAX, -2]);
        assert!(Tensor::zeros([2]).try_cumprod(-2).is_err());
        assert_eq!(Tensor::zeros([0, 2]).cumprod(0).shape(), [0, 2]);
    }
}
