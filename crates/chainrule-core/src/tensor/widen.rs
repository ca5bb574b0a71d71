//! Dtypes that are stored and not computed with: i32, u8, f16 and their like.
//!
//! An op on them infers its result as on any other. Then its inputs are widened to the computing
//! dtype ([`DType::computing`]), its kernel runs on those, and the result is converted to the
//! inferred dtype: integers wrap around, halves are rounded once. Views and copies move the
//! elements as they are. The rules of differentiation see widened tensors too
//! ([`Saved`](super::op::Saved)), and the walk converts each gradient back to the dtype of its
//! input, so that a rule of many steps rounds a half once, as a kernel does.

use std::sync::Arc;

use smallvec::SmallVec;

use super::op::{Kernel, Op, Outcome};
use super::run::{Values, compute_widened};
use super::value::{Meta, Value};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::cast;
use crate::ops::OpId;

/// Whether an op with these inputs and this result has to go through this module.
#[inline]
pub(super) fn concerns(values: &[Arc<Value>], out: Meta) -> bool {
    out.dtype.is_widened() || values.iter().any(|v| v.dtype().is_widened())
}

/// The result of `op`, which is known to be of this shape and dtype.
#[cold]
pub(super) fn compute(op: &dyn Op, values: &[Arc<Value>], out: Meta) -> Result<Outcome> {
    if matches!(op.kernel(), Kernel::View(_)) || op.takes_stored() {
        return compute_widened(op, values, out);
    }
    if op.id() == Some(OpId::to_dtype) {
        return cast(&values[0], out.dtype).map(Outcome::from);
    }
    let mut wide = Values::new();
    let ordered = |dtype: DType| op.orders() && dtype == DType::U64;
    for v in values {
        wide.push(match ordered(v.dtype()) {
            true => turned(v, DType::I64)?.share(),
            false => brought(v, v.dtype().computing())?,
        });
    }
    let wide_out = Meta::new(out.shape, out.dtype.computing());
    let mut outcome = compute_widened(op, &wide, wide_out)?;
    outcome.value = match ordered(out.dtype) {
        true => turned(&outcome.value, out.dtype)?.share(),
        false => brought(&outcome.value, out.dtype)?,
    };
    let replaced: SmallVec<[_; 4]> = (0..outcome.extra.len()).map(|i| op.replaces(i + 1)).collect();
    for (extra, input) in outcome.extra.iter_mut().zip(replaced) {
        if let Some(input) = input {
            *extra = brought(extra, values[input].dtype())?;
        }
    }
    Ok(outcome)
}

/// The value in a dtype: itself, or a conversion.
pub(crate) fn brought(value: &Arc<Value>, dtype: DType) -> Result<Arc<Value>> {
    if value.dtype() == dtype { Ok(value.clone()) } else { cast(value, dtype).map(Value::share) }
}

/// A u64 as an i64 in the same order, and back: the sign bit is flipped.
pub(crate) fn turned(value: &Value, dtype: DType) -> Result<Value> {
    let mut out = Value::uninit("to_dtype", Meta::new(*value.shape(), dtype))?;
    let all = out.elements_mut::<u64>();
    value.copy_to::<u64>(all);
    all.iter_mut().for_each(|x| *x ^= 1 << 63);
    Ok(out)
}

/// The elements in another dtype, in row-major order.
pub(crate) fn cast(value: &Value, dtype: DType) -> Result<Value> {
    let mut out = Value::uninit("to_dtype", Meta::new(*value.shape(), dtype))?;
    let value = value.row_major()?;
    cast::cast(value.dtype(), value.bytes(), dtype, out.bytes_mut());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use crate::autograd::{self, walk::Walk};
    use crate::{DType, Generator, Tensor};

    fn random(shape: &[usize], seed: u64) -> Tensor {
        Tensor::randn(shape, DType::F32, &mut Generator::manual_seed(seed)).to_dtype(DType::F16)
    }

    fn rounded(wide: &Tensor) -> Vec<f64> {
        wide.to_vec::<f32>().iter().map(|&x| f16::from_f32(x).to_f64()).collect()
    }

    #[test]
    fn results_of_halves_are_those_of_f32_rounded() {
        let (a, b) = (random(&[5, 7], 1), random(&[7, 3], 2));
        let (wa, wb) = (a.to_dtype(DType::F32), b.to_dtype(DType::F32));
        for (half, wide) in [
            (a.matmul(&b), wa.matmul(&wb)),
            (a.t().softmax(0), wa.t().softmax(0)),
            (a.sum(0, false), wa.sum(0, false)),
            (a.narrow(1, 1, 4).exp(), wa.narrow(1, 1, 4).exp()),
        ] {
            assert_eq!(half.dtype(), DType::F16);
            assert_eq!(half.to_f64_vec(), rounded(&wide));
        }
    }

    /// `x^4` has the gradient `4 x^3`: in steps of halves, it would be rounded between them.
    #[test]
    fn a_rule_of_several_steps_rounds_once() {
        let x = random(&[200], 3).parameter();
        x.pow(4).sum_all().backward();
        let got = x.grad().unwrap();
        let wide = x.detach().to_dtype(DType::F32);
        assert_eq!(got.dtype(), DType::F16);
        assert_eq!(got.to_f64_vec(), rounded(&(wide.pow(3) * 4.0)));
    }

    #[test]
    fn second_derivatives_and_tangents_of_halves() {
        let x = Tensor::from([f16::from_f32(1.5), f16::from_f32(-2.0)]).parameter();
        let y = (&x * &x * &x).sum_all();
        let walk =
            Walk { create_graph: true, targets: Some(std::slice::from_ref(&x)), ..Walk::default() };
        let one = Tensor::full((), 1.0, DType::F16);
        let g = walk.run(&[(&y, one)]).unwrap().remove(0).unwrap();
        assert_eq!((g.dtype(), g.to_f64_vec()), (DType::F16, vec![6.75, 12.0]));
        g.sum_all().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f16>(), [9.0, -12.0].map(f16::from_f32));
        let t = Tensor::from([f16::ONE, f16::ONE]);
        let (_, dy) = autograd::jvp(|x| &x[0] * &x[0], &[x.detach()], &[t]).unwrap();
        assert_eq!(dy.to_vec::<f16>(), [3.0, -4.0].map(f16::from_f32));
    }

    #[test]
    fn gradients_cross_casts_and_broadcasts() {
        let w = Tensor::from([bf16::from_f32(2.0)]).parameter();
        let x = Tensor::from([1.0f32, 2.0, 3.0]);
        let y = &w * &x;
        assert_eq!(y.dtype(), DType::F32);
        y.sum_all().backward();
        assert_eq!(w.grad().unwrap().to_vec::<bf16>(), [bf16::from_f32(6.0)]);
    }

    #[test]
    fn integers_wrap_index_and_compare() {
        let x = Tensor::from([250u8, 5, 7]);
        assert_eq!((&x + 10).to_vec::<u8>(), [4, 15, 17]);
        assert_eq!((x.dtype(), x.sum_all().dtype()), (DType::U8, DType::I64));
        assert_eq!(x.gt(6).to_vec::<bool>(), [true, false, true]);
        let at = Tensor::from([2i8, 0]);
        assert_eq!(x.index_select(0, &at).to_vec::<u8>(), [7, 250]);
        let (values, order) = x.sort(0, false);
        assert_eq!(
            (values.to_vec::<u8>(), order.to_vec::<i64>()),
            (vec![5, 7, 250], vec![1, 2, 0])
        );
        assert_eq!(Tensor::cat(&[&x, &x], 0).dtype(), DType::U8);
        assert_eq!(x.to_vec::<i64>(), [250, 5, 7]);
        assert!(x.try_to_vec::<f32>().is_err());
        assert_eq!(Tensor::from([1i32, 2]).dtype(), DType::I64);
    }

    #[test]
    fn u64_keeps_its_order_and_its_quotients() {
        let all = [0, 1, 7, i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX];
        let x = Tensor::from(all);
        assert_eq!(x.flip([0]).sort(0, false).0.to_vec::<u64>(), all);
        assert_eq!(x.max(0, false).to_vec::<u64>(), [u64::MAX]);
        for d in &all[1..] {
            let by = Tensor::from([*d]);
            assert_eq!(x.floor_divide(&by).to_vec::<u64>(), all.map(|x| x / d));
            assert_eq!(x.remainder(&by).to_vec::<u64>(), all.map(|x| x % d));
            assert_eq!(x.lt(&by).to_vec::<bool>(), all.map(|x| x < *d));
        }
        for places in [0u32, 1, 62, 63] {
            let by = Tensor::from([u64::from(places)]);
            assert_eq!(x.bitwise_right_shift(&by).to_vec::<u64>(), all.map(|x| x >> places));
        }
    }

    /// The texts of NumPy 2.4 for float16.
    #[test]
    fn halves_are_shown_in_their_own_digits() {
        let shown = |x: &[f64]| Tensor::from(x.to_vec()).to_dtype(DType::F16).to_string();
        assert_eq!(shown(&[0.1, 1.0 / 3.0]), "tensor([0.1   , 0.3333], dtype=f16)");
        assert_eq!(shown(&[1.5, -2.25]), "tensor([ 1.5 , -2.25], dtype=f16)");
        assert_eq!(shown(&[65504.0, 1.0]), "tensor([6.55e+04, 1.00e+00], dtype=f16)");
        assert_eq!(shown(&[999.5, 1.25]), "tensor([999.5 ,   1.25], dtype=f16)");
    }
}
