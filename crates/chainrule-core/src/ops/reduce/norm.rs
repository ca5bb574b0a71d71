//! `norm`: the p-norm over axes.

use crate::kernels::reduce::powers;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Norm {
    p: f64,
    axes: Axes,
    keepdim: bool,
}

impl Op for Norm {
    row!(norm);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_norm({0}, {p}, {axes}, {keepdim})".into())
    }

    fn reading(&self) -> Reading {
        Reading::Fold { fold: Fold::Norm { p: self.p }, axes: self.axes, keepdim: self.keepdim }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let shape = inputs[0].shape;
        if self.p.is_nan() {
            return Err(Error::argument(self.name(), "p is NaN; give a number or an infinity"));
        }
        if (self.p < 0.0 || self.p.is_infinite()) && self.axes.count(&shape) == 0 {
            let why = format!("nothing has no norm of p = {}; check the shape before", self.p);
            return Err(Error::shape(self.name(), &[&shape], why));
        }
        Ok(Meta::new(self.axes.reduce(&shape, self.keepdim), dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce(self.axes, self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        let output = Saves::OUTPUT.when(self.p != 0.0 && self.p != 1.0);
        Saves::INPUTS.and(output)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let x = at.input(0);
        let kept = self.axes.reduce(&x.shape(), true);
        let g = cotangent.try_reshape(kept)?;
        let y = self.output(at, kept)?;
        Ok(smallvec![gradient(self.p, self.axes, &x, y.as_ref(), &g)?])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let x = at.input(0);
        let y = self.output(at, self.axes.reduce(&x.shape(), true))?;
        tangent(self.p, self.axes, self.keepdim, &x, y.as_ref(), dx)
    }
}

impl Norm {
    /// The result with the axes kept, where a rule needs it.
    fn output(&self, at: &Saved<'_>, kept: Shape) -> Result<Option<Tensor>> {
        let needed = self.p != 0.0 && self.p != 1.0;
        needed.then(|| at.output().try_reshape(kept)).transpose()
    }
}

const NEEDED: &str = "the norm is needed unless p is 0 or 1";

/// The gradient of `x` from the norm `y` over `axes` and its gradient `g`, both with the axes kept;
/// none for `p` = 0.
pub(in crate::ops) fn gradient(
    p: f64,
    axes: Axes,
    x: &Tensor,
    y: Option<&Tensor>,
    g: &Tensor,
) -> Result<Option<Tensor>> {
    if p == 0.0 {
        return Ok(None);
    }
    if p == 1.0 {
        return sign(x)?.try_mul(g).map(Some);
    }
    let y = y.expect(NEEDED);
    if p.is_infinite() {
        let there = extreme(x, y)?;
        let share = g.try_div(&there.try_sum(axes, true)?)?;
        return sign(x)?.try_mul(&share.try_mul(&there)?).map(Some);
    }
    if p == 2.0 {
        return x.try_div(&y.try_add(&flag(&y.try_eq(0.0)?, y)?)?)?.try_mul(g).map(Some);
    }
    // Zeros are taken out before and after the powers, whose own slopes are infinite there.
    let (size, zero) = (x.try_abs()?, x.try_eq(0.0)?);
    let power = zero.try_where(&size.ones_like(), &size)?.try_pow(p - 1.0)?;
    let power = power.try_mul(&sign(x)?)?;
    let none = y.try_eq(0.0)?;
    let safe = none.try_where(&y.ones_like(), y)?.try_pow(1.0 - p)?;
    let scale = safe.try_mul(&flag(&y.try_ne(0.0)?, y)?)?;
    power.try_mul(&scale.try_mul(g)?).map(Some)
}

/// The tangent of the norm of `x`: the mean of the tangents with the weights `(|x| / y)^p / x`, or
/// of those that are largest or smallest.
pub(in crate::ops) fn tangent(
    p: f64,
    axes: Axes,
    keepdim: bool,
    x: &Tensor,
    y: Option<&Tensor>,
    dx: &Tensor,
) -> Result<Tensor> {
    let up = dx.try_mul(&sign(x)?)?;
    let sum = |t: &Tensor| t.try_sum(axes, keepdim);
    if p == 0.0 {
        return sum(&dx.try_mul(0.0)?);
    }
    if p == 1.0 {
        return sum(&up);
    }
    let y = y.expect(NEEDED);
    if p.is_infinite() {
        let there = extreme(x, y)?;
        return sum(&up.try_mul(&there)?)?.try_div(&sum(&there)?);
    }
    let zero = y.try_eq(0.0)?;
    let ratio = x.try_abs()?.try_div(&zero.try_where(&y.ones_like(), y)?)?;
    let still = x.try_eq(0.0)?;
    let weight = still.try_where(&ratio.ones_like(), &ratio)?.try_pow(p - 1.0)?;
    let moving = flag(&y.try_ne(0.0)?, y)?;
    sum(&up.try_mul(&weight)?.try_mul(&moving)?)
}

/// 1 where the condition holds, else 0, in the dtype of `like`.
pub(in crate::ops) fn flag(condition: &Tensor, like: &Tensor) -> Result<Tensor> {
    condition.try_to_dtype(like.dtype())
}

/// 1, -1 or 0, a constant; 0 for NaN.
fn sign(x: &Tensor) -> Result<Tensor> {
    flag(&x.try_gt(0.0)?, x)?.try_sub(&flag(&x.try_lt(0.0)?, x)?)
}

/// 1 where the magnitude is `y`, or both are NaN.
fn extreme(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let both = flag(&x.try_ne(x)?, x)?.try_mul(&flag(&y.try_ne(y)?, y)?)?;
    flag(&x.try_abs()?.try_eq(y)?, x)?.try_add(&both)
}

impl ReduceKernel for Norm {
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>) {
        let Extent { count, inner, .. } = extent;
        match (x, out) {
            (Array::F32(x), Output::F32(out)) => powers::norm(x, count, inner, self.p, out),
            (Array::F64(x), Output::F64(out)) => powers::norm(x, count, inner, self.p, out),
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// The `p`-norm over `axes` (a number, a list, or `..` for all): `sum(|x|^p)^(1/p)`. With
    /// `keepdim` the axes stay, with size 1.
    ///
    /// For f32 and f64; f32 is summed in f64. `p` is any number: of infinity it is the largest
    /// magnitude, of minus infinity the smallest, of 0 the number of elements that are not 0. The
    /// norm of no elements is 0, and an error for an infinite or negative `p`. Gradient:
    /// `dx = g * sign(x) * (|x| / y)^(p - 1)`; 0 where the norm or the element is 0; for infinite
    /// `p` the elements of that magnitude share it equally; for `p` = 0 there is none.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[3.0f32, -4.0], [0.0, 0.0]]).parameter();
    /// let y = x.norm(2.0, 1, false);
    /// assert_eq!(y.to_vec::<f32>(), [5.0, 0.0]);
    /// y.sum_all().backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.6, -0.8, 0.0, 0.0]);
    /// ```
    pub fn norm / try_norm<A: IntoAxes>(&self, p: f64, axes: A, keepdim: bool) -> Tensor {
        let axes = axes.into_axes("norm", &self.shape())?;
        apply(Norm { p, axes, keepdim }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "norm",
    family: Family::Reduce,
    signature: "x.norm(p, axes, keepdim)",
    python: &[Binding::by_hand("norm", "p may be a word")],
    formula: "sum(|x|^p)^(1/p) over the axes",
    gradient: "dx = g * sign(x) * (|x| / y)^(p - 1)",
    at_kinks: "0 where the norm or the element is 0; of p = infinity ties share the gradient equally",
    samples,
    mistakes: &[
        Mistake {
            name: "root forgotten",
            what: "the gradient of the sum of powers is passed on: x where x / y is due, for p = 2",
            rule: |op, at, g, _| {
                let (x, op) = (at.input(0), of(op)?);
                let kept = g.try_reshape(op.axes.reduce(&x.shape(), true))?;
                let power = x.try_abs()?.try_pow(op.p - 1.0)?.try_mul(&sign(&x)?)?;
                Ok(smallvec![Some(power.try_mul(&kept)?)])
            },
        },
        Mistake {
            name: "sign forgotten",
            what: "the magnitude of the gradient goes to elements of either sign",
            rule: |op, at, g, wanted| {
                let grads = op.vjp(at, g, wanted)?;
                let right = sign(&at.input(0))?;
                grads.into_iter().map(|d| d.map(|d| d.try_mul(&right)).transpose()).collect()
            },
        },
    ],
};

/// Every kind of `p`; away from 0, where most have a kink.
fn samples(g: &mut Generator) -> Vec<Sample> {
    let mut out = reduce_samples(g, |x, axes, keepdim| x.try_norm(2.0, axes, keepdim));
    let cases = [
        ("p = 1", 1.0, true),
        ("p = 3", 3.0, true),
        ("p = 0.5", 0.5, true),
        ("p = 1.5", 1.5, true),
        ("p = -1", -1.0, true),
        ("p = infinity", f64::INFINITY, true),
        ("p = minus infinity", f64::NEG_INFINITY, true),
        ("p = 0", 0.0, true),
    ];
    for (note, p, twice) in cases {
        let size = between(g, 0.5, 2.0, [3, 5]);
        let x = normal(g, [3, 5]).gt(0.0).where_(&size, -&size);
        let mut sample = Sample::new(note, vec![x], move |x| x[0].try_norm(p, 1, p > 1.0));
        sample.twice = twice;
        out.push(sample);
    }
    let zeros = || vec![Tensor::from([[3.0, 0.0, -4.0], [0.0, 0.0, 0.0]])];
    out.push(Sample::new("zeros, p = 2", zeros(), |x| x[0].try_norm(2.0, 1, false)).at_kink());
    out.push(Sample::new("zeros, p = 0.5", zeros(), |x| x[0].try_norm(0.5, 1, false)).at_kink());
    let ties = vec![Tensor::from([[2.0, -2.0, 1.0]])];
    let tied = Sample::new("ties", ties, |x| x[0].try_norm(f64::INFINITY, 1, false));
    out.push(tied.at_kink());
    out
}

fn of(op: &dyn Op) -> Result<&Norm> {
    op.downcast()
}

#[cfg(test)]
mod tests {
    use crate::{Tensor, autograd};

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    /// Order, elements, norm and gradient that PyTorch 2.15 gives; NaN stands for NaN.
    const CASES: [(f64, [f64; 3], f64, [f64; 3]); 25] = [
        (-INF, [3.0, -4.0, 0.0], 0.0, [0.0, -0.0, 0.0]),
        (-INF, [NAN, 1.0, -2.0], NAN, [0.0, 0.0, -0.0]),
        (-INF, [INF, 1.0, -2.0], 1.0, [0.0, 1.0, -0.0]),
        (-1.0, [3.0, -4.0, 0.0], 0.0, [0.0, -0.0, 0.0]),
        (-1.0, [NAN, 1.0, -2.0], NAN, [NAN, NAN, NAN]),
        (
            -1.0,
            [INF, 1.0, -2.0],
            0.6666666666666666,
            [0.0, 0.4444444444444444, -0.1111111111111111],
        ),
        (-1.0, [2.0, -2.0, 1.0], 0.5, [0.0625, -0.0625, 0.25]),
        (0.5, [3.0, -4.0, 0.0], 13.928203230275509, [2.154700538379252, -1.8660254037844386, 0.0]),
        (0.5, [0.0, 0.0, 0.0], 0.0, [0.0, 0.0, 0.0]),
        (0.5, [NAN, 1.0, -2.0], NAN, [NAN, NAN, NAN]),
        (0.5, [INF, 1.0, -2.0], INF, [NAN, INF, -INF]),
        (1.0, [3.0, -4.0, 0.0], 7.0, [1.0, -1.0, 0.0]),
        (1.0, [NAN, 1.0, -2.0], NAN, [0.0, 1.0, -1.0]),
        (1.5, [3.0, -4.0, 0.0], 5.584250376480029, [0.7329564758289748, -0.8463452372482761, 0.0]),
        (1.5, [0.0, 0.0, 0.0], 0.0, [0.0, 0.0, 0.0]),
        (1.5, [INF, 1.0, -2.0], INF, [NAN, 0.0, -0.0]),
        (2.0, [3.0, -4.0, 0.0], 5.0, [0.6, -0.8, 0.0]),
        (2.0, [0.0, 0.0, 0.0], 0.0, [0.0, 0.0, 0.0]),
        (2.0, [NAN, 1.0, -2.0], NAN, [NAN, NAN, NAN]),
        (2.0, [INF, 1.0, -2.0], INF, [NAN, 0.0, -0.0]),
        (3.0, [0.0, 0.0, 0.0], 0.0, [0.0, 0.0, 0.0]),
        (
            3.0,
            [2.0, -2.0, 1.0],
            2.571281590658235,
            [0.6050074330960554, -0.6050074330960554, 0.15125185827401386],
        ),
        (INF, [0.0, 0.0, 0.0], 0.0, [0.0, 0.0, 0.0]),
        (INF, [NAN, 1.0, -2.0], NAN, [0.0, 0.0, -0.0]),
        (INF, [2.0, -2.0, 1.0], 2.0, [0.5, -0.5, 0.0]),
    ];

    #[test]
    fn edges_do_as_pytorch() {
        let same = |a: f64, b: f64| {
            a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-14 * b.abs()
        };
        for (p, x, want, dx) in CASES {
            let leaf = Tensor::from(x).parameter();
            let y = leaf.norm(p, 0, false);
            y.backward();
            let got = leaf.grad().unwrap().to_vec::<f64>();
            assert!(same(y.item(), want), "{p} {x:?}: {}", y.item());
            assert!(got.iter().zip(dx).all(|(&a, b)| same(a, b)), "{p} {x:?}: {got:?}");
        }
    }

    #[test]
    fn at_0_all_derivatives_are_0() {
        for p in [0.5, 1.0, 1.5, 2.0, 3.0, INF] {
            let x = Tensor::zeros([3]).parameter();
            let dx = autograd::grad_with(
                &x.norm(p, 0, false),
                &[&x],
                &autograd::GradOptions::create_graph(),
            )
            .unwrap()
            .remove(0)
            .unwrap();
            assert_eq!(dx.to_vec::<f32>(), [0.0; 3], "{p}");
            if dx.requires_grad() {
                let ddx = autograd::grad(&dx.sum_all(), &[&x]).unwrap().remove(0);
                let ddx = ddx.map_or(vec![0.0; 3], |d| d.to_vec::<f32>());
                assert!(ddx.iter().all(|d| d.is_finite()), "{p}: {ddx:?}");
            }
        }
    }

    #[test]
    fn nothing_large_numbers_and_errors() {
        assert_eq!(Tensor::zeros([2, 0]).norm(2.0, 1, false).to_vec::<f32>(), [0.0, 0.0]);
        assert!(Tensor::zeros([2, 0]).try_norm(INF, 1, false).is_err());
        assert!(Tensor::zeros([2, 0]).try_norm(-1.0, 1, false).is_err());
        assert!(Tensor::zeros([2]).try_norm(NAN, 0, false).is_err());
        assert!(Tensor::from([1i64]).try_norm(2.0, 0, false).is_err());
        assert_eq!(Tensor::from([3e30f32, 4e30]).norm(2.0, .., false).item() as f32, 5e30);
        assert_eq!(
            Tensor::from([0.0f32, -4.0, NAN as f32]).norm(0.0, 0, true).to_vec::<f32>(),
            [2.0]
        );
    }
}
