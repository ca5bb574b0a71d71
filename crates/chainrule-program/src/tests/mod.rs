//! Programs against the eager mode, bit for bit.

mod bad;
mod draws;
mod entries;
pub(crate) mod expressions;
mod fusion;
mod graded;
mod identity;
mod indices;
mod keys;
pub(crate) mod names;
mod products;
pub(crate) mod training;
mod whole_steps;

use super::*;
use chainrule_core::{DType, Generator, Tensor};

/// The elements as bits; all NaNs are one.
fn bits(t: &Tensor) -> Vec<u64> {
    let f64s = t.to_f64_vec().into_iter();
    f64s.map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
}

/// The first difference between results of a program and those of the eager mode.
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

/// The first result farther off than rounding allows, relative to the size of the whole array; NaN
/// and infinities stay where they are.
fn distance(got: &[Tensor], want: &[Tensor], most: f64) -> Option<String> {
    if got.len() != want.len() {
        return Some(format!("{} results for {}", got.len(), want.len()));
    }
    let pairs = got.iter().zip(want).enumerate();
    let far = |(i, (a, b)): (usize, (&Tensor, &Tensor))| {
        let (x, y) = (a.to_f64_vec(), b.to_f64_vec());
        let same = |(x, y): (&f64, &f64)| x == y || x.is_nan() && y.is_nan();
        let odd = |(x, y): &(&f64, &f64)| !x.is_finite() || !y.is_finite();
        let finite = |(x, y): &(&f64, &f64)| x.is_finite() && y.is_finite();
        let apart: f64 = x.iter().zip(&y).filter(finite).map(|(x, y)| (x - y).powi(2)).sum();
        let norm: f64 = x.iter().zip(&y).filter(finite).map(|(_, y)| y.powi(2)).sum();
        let close = apart.sqrt() <= most * norm.sqrt();
        let fits = a.meta() == b.meta() && close && x.iter().zip(&y).filter(odd).all(same);
        (!fits).then(|| format!("result {i}: {x:?} for {y:?}"))
    };
    pairs.filter_map(far).next()
}

/// A function and its gradients: the result, then the gradient of each float input, from upstream
/// numbers that are all different.
pub(crate) fn with_gradients(
    f: impl Fn(&[Tensor]) -> chainrule_core::Result<Tensor>,
    inputs: &[Tensor],
) -> chainrule_core::Result<Vec<Tensor>> {
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
