//! Programs against the eager mode, bit for bit.

mod bad;
mod draws;
mod entries;
pub(in crate::program) mod expressions;
pub(in crate::program) mod names;
mod training;

use super::*;
use crate::{DType, Generator, Tensor};

/// The elements as bits; all NaNs are one.
fn bits(t: &Tensor) -> Vec<u64> {
    let f64s = t.to_f64_vec().into_iter();
    f64s.map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
}

/// What differs between what a program gives and what the eager mode gives.
fn difference(got: &[Tensor], want: &[Tensor]) -> Option<String> {
    if got.len() != want.len() {
        return Some(format!("{} results for {}", got.len(), want.len()));
    }
    let pairs = got.iter().zip(want).enumerate();
    pairs
        .filter(|(_, (a, b))| a.meta() != b.meta() || bits(a) != bits(b))
        .map(|(i, (a, b))| format!("result {i}: {:?} for {:?}", a.to_f64_vec(), b.to_f64_vec()))
        .next()
}

/// A function and its gradients: the result, then the gradient of each float input, from upstream numbers that are all different.
pub(in crate::program) fn with_gradients(
    f: impl Fn(&[Tensor]) -> crate::Result<Tensor>,
    inputs: &[Tensor],
) -> crate::Result<Vec<Tensor>> {
    let own = |x: &Tensor| if x.dtype().is_float() { x.parameter() } else { x.clone() };
    let inputs: Vec<Tensor> = inputs.iter().map(own).collect();
    let y = f(&inputs)?;
    if !y.requires_grad() {
        return Ok(vec![y]);
    }
    let n = y.numel();
    let upstream = Tensor::linspace(-0.75, 1.0, n.max(1)).to_dtype(y.dtype());
    let upstream = if n == 0 { y.zeros_like() } else { upstream.try_reshape(y.shape())? };
    (&y * upstream).sum_all().try_backward()?;
    Ok([y].into_iter().chain(inputs.iter().filter_map(Tensor::grad)).collect())
}
