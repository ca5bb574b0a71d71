//! Tensors as flat numbers that ranks sum, also for the layers above.

use chainrule_exchange::{Values, ValuesLayout};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Settings beside data and options that affect bits: they must be equal on all ranks.
pub fn facts_of_the_program() -> [(&'static str, String); 2] {
    let level = chainrule_core::kernels::simd::level().name();
    let version = env!("CARGO_PKG_VERSION");
    let facts = [("version", version), ("set of vector instructions (CHAINRULE_SIMD)", level)];
    facts.map(|(name, value)| (name, value.to_string()))
}

/// Elements of a float tensor; halves are summed in f32.
pub fn values(t: &Tensor) -> Result<Values> {
    match t.dtype() {
        DType::F64 | DType::F32 => read(t),
        _ => read(&t.try_to_dtype(DType::F32)?),
    }
}

fn read(t: &Tensor) -> Result<Values> {
    t.try_with_bytes(|mut bytes| layout(t).read(&mut bytes))?.ok_or_else(|| {
        Error::argument(
            "exchange",
            format!("the elements of {} {} are not all there", t.dtype(), t.shape()),
        )
    })
}

/// Layout of the elements of such a tensor.
pub fn layout(like: &Tensor) -> ValuesLayout {
    match like.dtype() {
        DType::F64 => ValuesLayout::F64(like.numel()),
        _ => ValuesLayout::F32(like.numel()),
    }
}

/// The elements as a tensor of the shape and dtype of `like`.
pub fn tensor(values: &Values, like: &Tensor) -> Result<Tensor> {
    wide(values, like)?.try_to_dtype(like.dtype())
}

/// The elements divided by `n` as a tensor of the shape and dtype of `like`.
pub(crate) fn quotient(values: &Values, n: usize, like: &Tensor) -> Result<Tensor> {
    match (values, like.dtype()) {
        (Values::F32(x), DType::F32) => {
            let n = n as f32;
            filled(like, x.iter().map(|x| (x / n).to_le_bytes()))
        }
        (Values::F64(x), DType::F64) => {
            let n = n as f64;
            filled(like, x.iter().map(|x| (x / n).to_le_bytes()))
        }
        _ => wide(values, like)?.try_div(n as f64)?.try_to_dtype(like.dtype()),
    }
}

/// An uninitialised tensor of the shape and dtype of `like`, all of whose elements are written.
fn filled<const N: usize>(
    like: &Tensor,
    elements: impl ExactSizeIterator<Item = [u8; N]>,
) -> Result<Tensor> {
    Tensor::try_filled(like.shape(), like.dtype(), |out| {
        let (out, _) = out.as_chunks_mut();
        if out.len() != elements.len() {
            let why = format!("{} numbers for {} elements", elements.len(), out.len());
            return Err(Error::argument("exchange", why));
        }
        out.iter_mut().zip(elements).for_each(|(o, x)| *o = x);
        Ok(())
    })
}

/// The elements as a tensor of the shape of `like`, in their own dtype.
pub(crate) fn wide(values: &Values, like: &Tensor) -> Result<Tensor> {
    match values {
        Values::F32(x) => Tensor::try_from_slice(x, like.shape()),
        Values::F64(x) => Tensor::try_from_slice(x, like.shape()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Generator;

    fn bits(t: &Tensor) -> Vec<u64> {
        t.to_f64_vec().into_iter().map(f64::to_bits).collect()
    }

    #[test]
    fn a_quotient_has_the_bits_of_the_division() {
        let g = &mut Generator::manual_seed(5);
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
            let x = Tensor::randn([7, 131], DType::F32, g).to_dtype(dtype);
            let total = values(&x).unwrap();
            for n in [1, 2, 3, 7, 12, 1000] {
                let want = wide(&total, &x).unwrap().div(n as f64).to_dtype(dtype);
                let got = quotient(&total, n, &x).unwrap();
                assert_eq!((got.dtype(), bits(&got)), (dtype, bits(&want)), "{n}");
            }
        }
        let other = Values::F32(vec![1.0; 3]);
        assert!(quotient(&other, 2, &Tensor::from([1.0f32])).is_err());
    }

    #[test]
    fn a_leaf_takes_bytes_in_its_place_or_in_another() {
        let bytes = Tensor::from([5.0f32, 6.0]).try_to_bytes().unwrap();
        let w = Tensor::from([1.0f32, 2.0]).parameter();
        let place = w.memory().unwrap().address();
        w.try_set_bytes(&bytes).unwrap();
        assert_eq!((w.memory().unwrap().address(), w.to_vec::<f32>()), (place, vec![5.0, 6.0]));
        // Another owner of the storage keeps its value.
        let held = w.detach();
        w.try_set_bytes(&bytes.iter().rev().copied().collect::<Vec<_>>()).unwrap();
        assert_eq!(held.to_vec::<f32>(), [5.0, 6.0]);
        assert_ne!(w.to_vec::<f32>(), [5.0, 6.0]);
        assert!(w.try_set_bytes(&bytes[1..]).is_err() && held.try_set_bytes(&bytes).is_err());
    }
}
