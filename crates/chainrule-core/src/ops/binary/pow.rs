//! `pow`: powers, element by element, and the backward to the base as one kernel.

use crate::kernels::map::ternary;
use crate::kernels::map::{self, Rows};
use crate::kernels::math::{self, Real};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Pow;

impl Op for Pow {
    elementwise!(pow, infer_number_binary);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} ** {1}".into())
    }

    fn numpy_promotes(&self) -> bool {
        true
    }

    fn reading(&self) -> Reading {
        Reading::Pow
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::OUTPUT.when(wanted.get(1)))
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (a, b) = (at.input(0), at.input(1));
        let da = wanted.get(0).then(|| apply(PowGrad, &[&a, &b, cotangent])).transpose()?;
        let db = wanted
            .get(1)
            .then(|| cotangent.try_mul(at.output().try_mul(log_base(&a, &b)?)?))
            .transpose()?;
        Ok(smallvec![da, db])
    }

    /// `d(a^b) = a^b (b da / a + ln a db)`, but `b a^(b-1) da` where `a^b` is 0 or infinite and
    /// cannot be divided by `a`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (a, b, y) = (at.input(0), at.input(1), at.output());
        let by_a = tangents[0].as_ref().map(|da| {
            let lowered = b.try_mul(a.try_pow(&b - 1)?)?;
            let divided = y.try_mul(&b)?.try_div(&a)?;
            let size = y.try_abs()?;
            let slope = size.try_lt(f64::INFINITY)?.try_where(&divided, &lowered)?;
            let slope = size.try_gt(0)?.try_where(&slope, lowered)?;
            da.try_mul(b.try_eq(0)?.try_where(&slope.zeros_like(), slope)?)
        });
        let by_b = tangents[1].as_ref().map(|db| {
            let slope = y.try_mul(a.try_log()?)?;
            let masked = a.try_eq(0)?.try_where(&slope.zeros_like(), &slope)?;
            db.try_mul(b.try_ge(0)?.try_where(&masked, slope)?)
        });
        sum_of_parts([by_a, by_b])
    }
}

/// `ln a`, but 0 where `a` is 0 and `b` is not negative: near such a point `a^b` stays 0 or 1.
fn log_base(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let safe = a.try_eq(0)?.try_where(&a.ones_like(), a)?;
    b.try_ge(0)?.try_where(&safe, a)?.try_log()
}

impl MapKernel for Pow {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        match (inputs, out) {
            ([Input::F32(a), Input::F32(b)], Output::F32(out)) => power(a, b, n, out),
            ([Input::F64(a), Input::F64(b)], Output::F64(out)) => power(a, b, n, out),
            ([Input::I64(a), Input::I64(b)], Output::I64(out)) => {
                map::binary(a, b, n, out, integer_power)
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

/// Row by row, with the loops for one exponent where a row has just one.
fn power<T: Real>(a: &Rows<'_, T>, b: &Rows<'_, T>, n: usize, out: &mut [T]) {
    if n == 0 {
        return;
    }
    for (i, out) in out.chunks_exact_mut(n).enumerate() {
        let (a_row, e_row) = (&a.data[i * a.step..], &b.data[i * b.step..]);
        match (a.splat, b.splat) {
            (true, true) => {
                math::pow_splat(&a_row[..1], e_row[0], &mut out[..1]);
                out.fill(out[0]);
            }
            (true, false) => math::pow_of_splat(a_row[0], &e_row[..n], out),
            (false, true) => math::pow_splat(&a_row[..n], e_row[0], out),
            (false, false) => math::pow(&a_row[..n], &e_row[..n], out),
        }
    }
}

/// The power by repeated squaring, with wrap-around. A negative exponent, which `try_pow` rejects,
/// gives the integer part.
fn integer_power(a: i64, b: i64) -> i64 {
    if b < 0 {
        return match a {
            1 => 1,
            -1 if b % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut power, mut square, mut rest) = (1i64, a, b);
    while rest > 0 {
        if rest & 1 == 1 {
            power = power.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    power
}

/// `g * b * a^(b-1)`, and 0 where `b` is 0: the backward to the base, in one pass.
#[derive(Debug, Parameters)]
struct PowGrad;

impl Op for PowGrad {
    fn name(&self) -> &'static str {
        "pow_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_pow_grad({0}, {1}, {2})".into())
    }

    /// The slope, and the product with the gradient.
    fn flops(&self, _: &[Shape], outputs: &[Shape]) -> Option<u64> {
        Some(2 * numel(&outputs[0]))
    }

    fn reading(&self) -> Reading {
        Reading::Slope(reading::SlopeReading::Pow)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        Ok(Meta::new(broadcast_shapes(self.name(), inputs)?, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    /// To the base it is itself, one power lower; to the exponent `g a^(b-1) (1 + b ln a)`, which
    /// is 0 where `a` is 0 and `b > 1`.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (a, b, g) = (at.input(0), at.input(1), at.input(2));
        let lower = b.try_sub(1)?;
        let da = wanted.get(0).then(|| {
            let slope = apply(PowGrad, &[&a, &lower, &cotangent.try_mul(g.try_mul(&b)?)?])?;
            b.try_eq(0)?.try_where(&slope.zeros_like(), slope)
        });
        let db = wanted.get(1).then(|| {
            let power = cotangent.try_mul(&g)?.try_mul(a.try_pow(&lower)?)?;
            let log = b.try_gt(1)?.try_where(&log_base(&a, &b)?, a.try_log()?)?;
            power.try_mul(b.try_mul(log)? + 1.0)
        });
        let dg = wanted.get(2).then(|| apply(PowGrad, &[&a, &b, cotangent])).transpose()?;
        Ok(smallvec![da.transpose()?, db.transpose()?, dg])
    }

    /// The rule of the product on `g * b * p` with `p = a^(b-1)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (a, b, g) = (at.input(0), at.input(1), at.input(2));
        let zero = a.like(0.0);
        let power = a.try_pow(&b - 1)?;
        let by_a = tangents[0].as_ref().map(|da| {
            let factor = &b * (&b - 1);
            let slope = factor.try_mul(a.try_pow(&b - 2)?)?;
            da.try_mul(&g)?.try_mul(factor.try_eq(0)?.try_where(&zero, slope)?)
        });
        let by_b = tangents[1].as_ref().map(|db| {
            let bent = &b * &power * a.try_log()?;
            let masked = b.try_gt(1)?.try_where(&zero, &bent)?;
            let bent = a.try_eq(0)?.try_where(&masked, bent)?;
            db.try_mul(&g)?.try_mul(&power + bent)
        });
        let by_g = tangents[2].as_ref().map(|dg| {
            let slope = b.try_mul(&power)?;
            dg.try_mul(b.try_eq(0)?.try_where(&zero, slope)?)
        });
        sum_of_parts([by_a, by_b, by_g])?.try_expand(at.output_meta().shape)
    }
}

impl MapKernel for PowGrad {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        match (inputs, out) {
            ([Input::F32(a), Input::F32(b), Input::F32(g)], Output::F32(out)) => {
                power_grad(a, b, g, n, out)
            }
            ([Input::F64(a), Input::F64(b), Input::F64(g)], Output::F64(out)) => {
                power_grad(a, b, g, n, out)
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

/// `1 / sqrt(x)` as C99's `pow` has it at -0 and at minus infinity.
#[inline(always)]
fn inverse_root<T: Real>(x: T) -> T {
    let y = T::ONE / (x + T::ZERO).sqrt();
    if x == -T::INFINITY { T::ZERO } else { y }
}

/// The common exponents have loops of their own, without a call of the power function.
fn power_grad<T: Real>(a: &Rows<'_, T>, b: &Rows<'_, T>, g: &Rows<'_, T>, n: usize, out: &mut [T]) {
    let real = T::from_f64;
    let slope = |a: T, b: T, g: T| match b == T::ZERO {
        true => T::ZERO,
        false => g * (b * a.pow::<false>(b - T::ONE)),
    };
    if !(b.splat && b.step == 0) || b.data.is_empty() {
        return ternary([a, b, g], n, out, slope);
    }
    let e = b.data[0];
    match e.to_f64() {
        0.0 => out.fill(T::ZERO),
        1.0 => map::binary(a, g, n, out, |_, g| g),
        2.0 => map::binary(a, g, n, out, |a, g| g * (a + a)),
        3.0 => map::binary(a, g, n, out, |a, g| g * (e * (a * a))),
        0.5 => map::binary(a, g, n, out, |a, g| g * (e * inverse_root(a))),
        -0.5 => map::binary(a, g, n, out, |a, g| {
            let root = inverse_root(a);
            g * (e * (root * root * root))
        }),
        -1.0 => map::binary(a, g, n, out, |a, g| {
            let inverse = T::ONE / a;
            -(g * (inverse * inverse))
        }),
        -2.0 => map::binary(a, g, n, out, |a, g| {
            let inverse = T::ONE / a;
            g * (real(-2.0) * (inverse * inverse * inverse))
        }),
        _ => map::binary(a, g, n, out, |a, g| slope(a, e, g)),
    }
}

methods! {
    /// The power `a^b`, element by element with broadcasting. For f32, f64 and i64 (which wraps
    /// around, and takes no negative exponent: an error). Exponents 0, 1, 2, 3, 0.5, -0.5, -1 and
    /// -2 given as one number are fast, and so is their backward. Bools take one bool as exponent:
    /// all are true to the power `false`.
    ///
    /// Special cases are C99's: `0^0 = 1`, a negative base takes an integer exponent and gives NaN
    /// with any other, and the root of -0 or minus infinity is positive (where PyTorch's `x ** 0.5`
    /// gives -0 and NaN, its `x ** tensor(0.5)` the same as here).
    ///
    /// Gradient: `da = g * b * a^(b-1)`, 0 where `b = 0`; `db = g * a^b * ln a`, 0 where `a = 0`
    /// and `b >= 0`; as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([4.0f32, 0.25]);
    /// assert_eq!(x.pow(-0.5).to_vec::<f32>(), [0.5, 2.0]);
    /// ```
    pub fn pow / try_pow<T: IntoTensor>(&self, exponent: T) -> Tensor {
        let b = exponent.into_tensor(self)?;
        if b.rank() == 0 && [self.dtype(), b.dtype()] == [DType::Bool; 2] {
            return self.try_bitwise_or(b.try_logical_not()?);
        }
        if self.dtype().promote(b.dtype()).is_integer() && any_negative(&b) {
            let why = "integers take no negative exponent; convert with to_dtype, or give a float exponent";
            return Err(Error::argument("pow", why));
        }
        apply_promoted(Pow, self, b)
    }
}

fn any_negative(exponents: &Tensor) -> bool {
    exponents.dtype().is_integer() && exponents.to_f64_vec().iter().any(|&e| e < 0.0)
}

pub(super) const ENTRY: Entry = Entry {
    name: "pow",
    family: Family::Binary,
    signature: "a.pow(b), a.pow(&b)",
    python: &[Binding::with("pow", &[Parameter::operand("exponent")], |x, a| {
        match *a.operand(0) {
            Argument::Float(p) => x.try_pow(p),
            Argument::Int(p) => x.try_pow(p),
            _ => a.meet(x, 0).and_then(|(x, p)| x.try_pow(&p)),
        }
    })
    .in_place()],
    formula: "a^b",
    gradient: "da = g * b * a^(b-1); db = g * a^b * ln a",
    at_kinks: "0^0 = 1; da = 0 where b = 0; db = 0 where a = 0 and b >= 0; a root at 0 has an infinite gradient",
    samples: |g| {
        let mut samples = binary_samples(g, |g, s| between(g, 0.5, 2.0, s), |a, b| a.try_pow(b));
        let whole = [
            ("squared", 2.0),
            ("cubed", 3.0),
            ("inverted", -1.0),
            ("inverted and squared", -2.0),
            ("to the power 1", 1.0),
            ("to the power 0", 0.0),
            ("to the power 5", 5.0),
        ];
        for (note, e) in whole {
            let size = between(g, 0.5, 2.0, [3, 5]);
            let x = normal(g, [3, 5]).lt(0.0).where_(&-&size, size);
            samples.push(Sample::new(note, vec![x], move |x| x[0].try_pow(e)));
        }
        let broken = [("root", 0.5), ("inverse root", -0.5), ("to the power 1.7", 1.7)];
        for (note, e) in broken {
            let x = between(g, 0.5, 2.0, [3, 5]);
            samples.push(Sample::new(note, vec![x], move |x| x[0].try_pow(e)));
        }
        let x = normal(g, [4]);
        let call = |x: &[Tensor]| Tensor::scalar(2.5f64).try_pow(&x[0]);
        samples.push(Sample::new("a constant base", vec![x], call));
        let zeros = vec![Tensor::from([0.0f64, 0.0]), Tensor::from([0.0f64, 2.0])];
        samples.push(Sample::new("base 0", zeros, |x| x[0].try_pow(&x[1])).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "missing factor",
            what: "the factor b of b * a^(b-1) was forgotten",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[0] = Some(g.try_mul(at.input(0).try_pow(at.input(1) - 1)?)?);
                Ok(grads)
            },
        },
        Mistake {
            name: "power not lowered",
            what: "the gradient of the base is g * b * a^b instead of g * b * a^(b-1)",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[0] = grads[0].take().map(|da| da * at.input(0));
                Ok(grads)
            },
        },
        Mistake {
            name: "exponent forgotten",
            what: "the exponent was taken for a constant: it gets no gradient",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[1] = None;
                Ok(grads)
            },
        },
        Mistake {
            name: "logarithm forgotten",
            what: "the gradient of the exponent is g * a^b, without ln a",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[1] = Some(g.try_mul(at.input(0).try_pow(at.input(1))?)?);
                Ok(grads)
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;
    use crate::{DType, Generator, Tensor, autograd};

    #[test]
    #[rustfmt::skip]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        // a, b, a^b, and da and db for an upstream gradient of 3, as PyTorch's a ** b gives them
        // for two tensors.
        let table = [
            [0.0, 0.0, 1.0, 0.0, 0.0],
            [0.0, 1.0, 0.0, 3.0, 0.0],
            [0.0, 2.0, 0.0, 0.0, 0.0],
            [0.0, 0.5, 0.0, inf, 0.0],
            [0.0, -1.0, inf, -inf, -inf],
            [0.0, -0.5, inf, -inf, -inf],
            [0.0, nan, nan, nan, nan],
            [0.0, inf, 0.0, nan, 0.0],
            [0.0, -inf, inf, -inf, -inf],
            [-0.0, 0.0, 1.0, 0.0, 0.0],
            [-0.0, 1.0, -0.0, 3.0, 0.0],
            [-0.0, 2.0, 0.0, -0.0, 0.0],
            [-0.0, 0.5, 0.0, inf, 0.0],
            [-0.0, -1.0, -inf, -inf, inf],
            [-0.0, -0.5, inf, -inf, -inf],
            [-0.0, nan, nan, nan, nan],
            [-0.0, inf, 0.0, nan, 0.0],
            [-0.0, -inf, inf, -inf, -inf],
            [1.0, 0.0, 1.0, 0.0, 0.0],
            [1.0, 1.0, 1.0, 3.0, 0.0],
            [1.0, 2.0, 1.0, 6.0, 0.0],
            [1.0, 0.5, 1.0, 1.5, 0.0],
            [1.0, -1.0, 1.0, -3.0, 0.0],
            [1.0, -0.5, 1.0, -1.5, 0.0],
            [1.0, nan, 1.0, nan, 0.0],
            [1.0, inf, 1.0, inf, 0.0],
            [1.0, -inf, 1.0, -inf, 0.0],
            [-2.0, 0.0, 1.0, 0.0, nan],
            [-2.0, 1.0, -2.0, 3.0, nan],
            [-2.0, 2.0, 4.0, -12.0, nan],
            [-2.0, 0.5, nan, nan, nan],
            [-2.0, -1.0, -0.5, -0.75, nan],
            [-2.0, -0.5, nan, nan, nan],
            [-2.0, nan, nan, nan, nan],
            [-2.0, inf, inf, inf, nan],
            [-2.0, -inf, 0.0, nan, nan],
            [nan, 0.0, 1.0, 0.0, nan],
            [nan, 1.0, nan, 3.0, nan],
            [nan, 2.0, nan, nan, nan],
            [nan, 0.5, nan, nan, nan],
            [nan, -1.0, nan, nan, nan],
            [nan, -0.5, nan, nan, nan],
            [nan, nan, nan, nan, nan],
            [nan, inf, nan, nan, nan],
            [nan, -inf, nan, nan, nan],
            [inf, 0.0, 1.0, 0.0, inf],
            [inf, 1.0, inf, 3.0, inf],
            [inf, 2.0, inf, inf, inf],
            [inf, 0.5, inf, 0.0, inf],
            [inf, -1.0, 0.0, -0.0, nan],
            [inf, -0.5, 0.0, -0.0, nan],
            [inf, nan, nan, nan, nan],
            [inf, inf, inf, inf, inf],
            [inf, -inf, 0.0, nan, nan],
        ];
        let column = |i: usize| table.map(|row| row[i]);
        check_edges(
            |a, b| a.pow(b),
            [&column(0), &column(1)],
            &column(2),
            [&column(3), &column(4)],
        );
    }

    /// The loops for one exponent against those for a tensor of exponents, at the edges and at
    /// random points.
    #[test]
    fn one_exponent_is_like_many() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let mut points = vec![0.0, -0.0, -2.0, nan, inf, -inf, 1e-30, -1e-30, 1e30];
        let mut g = Generator::manual_seed(1);
        points.extend(Tensor::randn([20], DType::F64, &mut g).to_vec::<f64>());
        for e in [0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0, 1.7, -1.5, nan] {
            let one = Tensor::from(points.clone()).parameter();
            let many = Tensor::from(points.clone()).parameter();
            let (y, z) = (one.pow(e), many.pow(Tensor::full([points.len()], e, DType::F64)));
            y.sum_all().backward();
            z.sum_all().backward();
            let pairs = [(y.detach(), z.detach()), (one.grad().unwrap(), many.grad().unwrap())];
            for (what, (y, z)) in ["value", "gradient"].iter().zip(pairs) {
                for ((x, y), z) in points.iter().zip(y.to_vec::<f64>()).zip(z.to_vec::<f64>()) {
                    let same = y == z || (y.is_nan() && z.is_nan());
                    assert!(same || (y - z).abs() <= 1e-15 * z.abs(), "{what} {x}^{e}: {y}, {z}");
                }
            }
        }
    }

    #[test]
    fn second_derivatives_at_0_are_those_of_pytorch() {
        let inf = f64::INFINITY;
        for (e, first, second) in
            [(2.0, 0.0, 2.0), (1.0, 1.0, 0.0), (0.0, 0.0, 0.0), (0.5, inf, -inf), (3.0, 0.0, 0.0)]
        {
            let x = Tensor::from([0.0f64]).parameter();
            let y = x.pow(e).sum_all();
            let dx = autograd::grad_with(&y, &[&x], &autograd::GradOptions::create_graph())
                .unwrap()
                .remove(0)
                .unwrap();
            let ddx = autograd::grad(&dx.sum_all(), &[&x]).unwrap();
            let ddx = ddx[0].as_ref().unwrap().item();
            assert_eq!((dx.item(), ddx), (first, second), "{e}");
        }
    }

    #[test]
    fn integers_take_whole_exponents() {
        // Values of PyTorch, of which the last wraps around.
        let a = Tensor::from([2i64, -2, 0, 0, 3]);
        let b = Tensor::from([3i64, 3, 0, 2, 64]);
        let want = [8, -8, 1, 0, 8_733_086_111_712_066_817];
        assert_eq!(a.pow(&b).to_vec::<i64>(), want);
        assert_eq!(a.pow(2).to_vec::<i64>(), [4, 4, 0, 0, 9]);
        let root = Tensor::from([4i64]).pow(0.5);
        assert_eq!((root.dtype(), root.item()), (DType::F32, 2.0));
        let error = a.try_pow(-1).unwrap_err().to_string();
        assert!(error.contains("pow") && error.contains("negative"), "{error}");
        let bools = Tensor::from([true]);
        assert!(bools.try_pow(&bools).is_err());
    }

    #[test]
    fn bools_take_one_bool() {
        let x = Tensor::from([true, false]);
        assert_eq!(x.pow(Tensor::scalar(true)).to_vec::<bool>(), [true, false]);
        assert_eq!(x.pow(Tensor::scalar(false)).to_vec::<bool>(), [true, true]);
        let error = x.try_pow(&x).unwrap_err().to_string();
        assert!(error.contains("pow") && error.contains("bools"), "{error}");
    }

    #[test]
    fn rows_and_columns_of_exponents_broadcast() {
        let a = Tensor::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let column = Tensor::from([[2.0f32], [-1.0]]);
        let want = [1.0, 4.0, 9.0, 0.25, 0.2, 1.0 / 6.0];
        assert_eq!(a.pow(&column).to_vec::<f32>(), want);
        let row = Tensor::from([0.0f32, 1.0, 2.0]);
        let want = [1.0, 2.0, 9.0, 1.0, 5.0, 36.0];
        assert_eq!(a.pow(&row).to_vec::<f32>(), want);
        let two = Tensor::scalar(2.0f32);
        assert_eq!(two.pow(&row).to_vec::<f32>(), [1.0, 2.0, 4.0]);
    }
}
