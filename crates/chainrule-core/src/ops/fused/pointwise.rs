//! Losses that are a function of each element of the prediction and the target: one op for all of
//! them, which computes the function and reduces it in one pass, and one for the backward. A loss
//! is an implementation of [`Pointwise`] in a file of its own.

use std::fmt::Debug;

use super::reduction::Reduction;
use crate::kernels::math::Real;
use crate::kernels::pair::{PairFn, map_pairs, sum_pairs};
use crate::kernels::softmax::Row;
use crate::ops::prelude::*;
use crate::tensor::op::Definition;

/// A loss of one element of the prediction, `x`, and one of the target, `t`.
pub(super) trait Pointwise: Parameters + Copy + Debug + Send + Sync + 'static {
    /// The row of the table.
    const ID: OpId;

    /// The name of the loss.
    const NAME: &'static str;

    /// The name of its backward in listings: `mse_grad`.
    const GRAD: &'static str;

    /// As [`Op::numpy`]: the loss of an element, its derivative by `x`, and that by `t`.
    const NUMPY: [&'static str; 3];

    /// Operations for each element, of the loss with the sum and of a derivative.
    const STEPS: [u64; 2] = [6, 3];

    /// Its part in a model.
    const ROLE: Role = Role::Plain;

    /// Whether the target has a gradient.
    const TO_TARGET: bool = true;

    /// The loss.
    fn loss<const FMA: bool, T: Real>(self, x: T, t: T) -> T;

    /// Its derivative by `x`.
    fn slope<const FMA: bool, T: Real>(self, x: T, t: T) -> T;

    /// Its derivative by `t`; of a loss of the difference, minus that by `x`.
    fn target_slope<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        -self.slope::<FMA, T>(x, t)
    }

    /// The error for elements outside the domain.
    fn check<T: Real>(self, x: &[T], t: &[T]) -> Result<()> {
        let _ = (x, t);
        Ok(())
    }

    /// The losses of all elements in primitive ops.
    fn in_steps(self, x: &Tensor, t: &Tensor) -> Result<Tensor>;

    /// The tangent of the losses for those of `x` and `t`, written independently of the slopes.
    fn tangent(
        self,
        x: &Tensor,
        t: &Tensor,
        dx: Option<&Tensor>,
        dt: Option<&Tensor>,
    ) -> Result<Tensor>;
}

/// The loss as a function for the loops.
#[derive(Clone, Copy)]
struct LossValue<L>(L);

/// Its derivative by the prediction.
#[derive(Clone, Copy)]
struct LossSlope<L>(L);

/// Its derivative by the target.
#[derive(Clone, Copy)]
struct TargetSlope<L>(L);

impl<L: Pointwise> PairFn for LossValue<L> {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        self.0.loss::<FMA, T>(x, t)
    }
}

impl<L: Pointwise> PairFn for LossSlope<L> {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        self.0.slope::<FMA, T>(x, t)
    }
}

impl<L: Pointwise> PairFn for TargetSlope<L> {
    #[inline(always)]
    fn at<const FMA: bool, T: Real>(self, x: T, t: T) -> T {
        self.0.target_slope::<FMA, T>(x, t)
    }
}

/// The losses of all elements, reduced. Inputs: prediction and target, of one shape.
#[derive(Debug, Parameters)]
struct PointwiseLoss<L> {
    loss: L,
    reduction: Reduction,
}

impl<L: Pointwise> Op for PointwiseLoss<L> {
    fn name(&self) -> &'static str {
        L::NAME
    }

    fn id(&self) -> Option<OpId> {
        Some(L::ID)
    }

    fn role(&self) -> Role {
        L::ROLE
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(format!("_loss({}, {{reduction}})", L::NUMPY[0]).into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(L::STEPS[0], inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let (x, target) = (inputs[0].shape, inputs[1].shape);
        if x != target {
            let why = "prediction and target must have the same shape; reshape one (broadcasting them is hardly ever meant)";
            return Err(Error::shape(self.name(), &[&x, &target], why));
        }
        if self.reduction == Reduction::BatchMean && x.rank() == 0 {
            let why = "a 0-d prediction has no first axis to divide by; take the mean or the sum";
            return Err(Error::shape(self.name(), &[&x], why));
        }
        Ok(Meta::new(self.reduction.shape(x), float_inputs(self.name(), inputs)?))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let inputs = [&at.input(0), &at.input(1), cotangent];
        let grad = |target: bool| {
            let wanted = wanted.get(usize::from(target)) && (L::TO_TARGET || !target);
            let PointwiseLoss { loss, reduction } = *self;
            wanted.then(|| apply(PointwiseGrad { loss, reduction, target }, &inputs)).transpose()
        };
        Ok(smallvec![grad(false)?, grad(true)?])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (x, t) = (at.input(0), at.input(1));
        let dt = tangents[1].as_ref().filter(|_| L::TO_TARGET);
        let losses = match (&tangents[0], dt) {
            (None, None) => x.zeros_like(),
            (dx, dt) => self.loss.tangent(&x, &t, dx.as_ref(), dt)?,
        };
        self.reduction.apply(&losses, self.reduction.divisor(&x.shape()))
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| {
            let x = &inputs[0];
            let losses = self.loss.in_steps(x, &inputs[1])?;
            self.reduction.apply(&losses, self.reduction.divisor(&x.shape()))
        }))
    }
}

impl<L: Pointwise> WholeKernel for PointwiseLoss<L> {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, t) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let divisor = self.reduction.divisor(x.shape());
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64], |T| self.forward(
            x.elements::<T>(),
            t.elements(),
            divisor,
            value.elements_mut()
        )?);
        Ok(value.into())
    }
}

impl<L: Pointwise> PointwiseLoss<L> {
    fn forward<T: Row>(&self, x: &[T], t: &[T], divisor: f64, out: &mut [T]) -> Result<()> {
        self.loss.check(x, t)?;
        match self.reduction {
            Reduction::None => map_pairs(x, t, T::ONE, None, out, LossValue(self.loss)),
            _ => out[0] = T::from_f64(sum_pairs(x, t, LossValue(self.loss)) / divisor),
        }
        Ok(())
    }
}

/// The backward for the prediction, or for the target, from both and the upstream gradient.
#[derive(Debug, Parameters)]
struct PointwiseGrad<L> {
    loss: L,
    reduction: Reduction,
    target: bool,
}

impl<L: Pointwise> Op for PointwiseGrad<L> {
    fn name(&self) -> &'static str {
        L::GRAD
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(
            format!("_loss_grad({}, {{2}}, {{reduction}})", L::NUMPY[1 + usize::from(self.target)])
                .into(),
        )
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(L::STEPS[1], inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

impl<L: Pointwise> WholeKernel for PointwiseGrad<L> {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, t, g) = (inputs[0].contiguous()?, inputs[1].contiguous()?, inputs[2].contiguous()?);
        let divisor = self.reduction.divisor(&out.shape);
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64], |T| self.backward(
            x.elements::<T>(),
            t.elements(),
            g.elements(),
            divisor,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

impl<L: Pointwise> PointwiseGrad<L> {
    fn backward<T: Real>(&self, x: &[T], t: &[T], g: &[T], divisor: f64, out: &mut [T]) {
        let (scale, g) = match self.reduction {
            Reduction::None => (T::ONE, Some(g)),
            _ => (T::from_f64(g[0].to_f64() / divisor), None),
        };
        match self.target {
            false => map_pairs(x, t, scale, g, out, LossSlope(self.loss)),
            true => map_pairs(x, t, scale, g, out, TargetSlope(self.loss)),
        }
    }
}

/// The loss of prediction and target, which are brought to their common dtype: a target of integers
/// or bools to that of the prediction.
#[track_caller]
pub(super) fn pointwise<L: Pointwise>(
    loss: L,
    x: &Tensor,
    target: &Tensor,
    reduction: Reduction,
) -> Result<Tensor> {
    let dtype = x.dtype().promote(target.dtype());
    let op = PointwiseLoss { loss, reduction };
    if x.dtype() == dtype && target.dtype() == dtype {
        return apply(op, &[x, target]);
    }
    apply(op, &[&x.try_to_dtype(dtype)?, &target.try_to_dtype(dtype)?])
}

/// Losses of the elements times a weight that broadcasts to them, a constant; then the reduction.
#[track_caller]
pub(super) fn weighted<L: Pointwise>(
    loss: L,
    x: &Tensor,
    target: &Tensor,
    weight: &Tensor,
    reduction: Reduction,
) -> Result<Tensor> {
    let losses = pointwise(loss, x, target, Reduction::None)?;
    let weight = constant(L::NAME, "weight", weight, &losses)?;
    reduction.apply(&losses.try_mul(&weight)?, reduction.divisor(&losses.shape()))
}

/// A weight as a constant with the dtype of `like`, if it broadcasts to the shape of that.
#[track_caller]
pub(super) fn constant(
    op: &'static str,
    name: &str,
    weight: &Tensor,
    like: &Tensor,
) -> Result<Tensor> {
    let shape = like.shape();
    if weight.shape().broadcast(&shape) != Some(shape) {
        let why = format!("the {name} must broadcast to the shape of the prediction");
        return Err(Error::shape(op, &[&shape, &weight.shape()], why));
    }
    weight.detach().try_to_dtype(like.dtype())
}

/// The tangent of `x - t`.
pub(super) fn difference(dx: Option<&Tensor>, dt: Option<&Tensor>) -> Result<Tensor> {
    match (dx, dt) {
        (Some(dx), Some(dt)) => dx.try_sub(dt),
        (Some(dx), None) => Ok(dx.clone()),
        (None, Some(dt)) => dt.try_neg(),
        (None, None) => unreachable!("at least one tangent is given"),
    }
}

/// The call of a loss in its samples.
type LossCall = fn(&Tensor, &Tensor, Reduction) -> Result<Tensor>;

/// Samples of a loss: every reduction, 0-d, empty, several blocks. `draw` makes a prediction and a
/// target.
pub(super) fn loss_samples<L: Pointwise>(
    g: &mut Generator,
    draw: impl Fn(&mut Generator, &[usize]) -> (Tensor, Tensor),
    call: LossCall,
) -> Vec<Sample> {
    let cases: [(&str, &[usize], Reduction); 7] = [
        ("matrix", &[3, 5], Reduction::Mean),
        ("0-d", &[], Reduction::Mean),
        ("one row, summed", &[1, 17], Reduction::Sum),
        ("each element", &[2, 3, 4], Reduction::None),
        ("mean of the batch", &[4, 3], Reduction::BatchMean),
        ("several blocks", &[3, 301], Reduction::Mean),
        ("empty, summed", &[0, 3], Reduction::Sum),
    ];
    let sample = |(note, shape, reduction): (&'static str, &[usize], Reduction)| {
        let (x, t) = draw(g, shape);
        if L::TO_TARGET {
            return Sample::new(note, vec![x, t], move |x| call(&x[0], &x[1], reduction));
        }
        Sample::new(note, vec![x], move |x| call(&x[0], &t.try_to_dtype(x[0].dtype())?, reduction))
    };
    cases.into_iter().map(sample).collect()
}

/// The mean's divisor forgotten.
pub(super) const MISSING_MEAN: Mistake = Mistake {
    name: "missing 1/n",
    what: "the gradient of the sum of the losses where the loss is their mean",
    rule: |op, at, g, wanted| {
        let n = at.input(0).numel() as f64;
        op.vjp(at, &g.try_mul(n)?, wanted)
    },
};

/// Everything the wrong way round.
pub(super) const SIGN: Mistake = Mistake {
    name: "sign",
    what: "prediction and target are exchanged in the difference",
    rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
};

/// The gradient with `dx`, scaled as the reduction does it, in place of the right one for the
/// prediction.
pub(super) fn wrong_slope(
    op: &dyn Op,
    at: &Saved<'_>,
    g: &Tensor,
    wanted: Wanted,
    wrong: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Grads> {
    let mut grads = op.vjp(at, g, wanted)?;
    let n = match at.output_meta().shape.rank() {
        0 => at.input(0).numel() as f64,
        _ => 1.0,
    };
    grads[0] = Some(wrong(&at.input(0), &at.input(1))?.try_mul(g)?.try_div(n)?);
    Ok(grads)
}
