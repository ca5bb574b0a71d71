//! The same op on the same numbers in another layout gives the same value and the same gradients.

use crate::autograd::{GradOptions, grad_with};
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_core::ops::Sample;
use chainrule_core::{DType, Slice};

/// The value of a sample and the gradients of its inputs, from a fixed upstream gradient.
pub(crate) fn value_and_gradients(
    sample: &Sample,
    inputs: &[Tensor],
    v: &Tensor,
) -> Result<(Tensor, Vec<Tensor>)> {
    let y = sample.try_on(inputs)?;
    let gradients = if y.requires_grad() {
        let v = v.to_dtype(y.dtype());
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let options = GradOptions { gradient: Some(v), ..GradOptions::default() };
        grad_with(&y, &inputs, &options)?
    } else {
        vec![None; inputs.len()]
    };
    let dense = |(g, x): (Option<Tensor>, &Tensor)| g.unwrap_or_else(|| x.zeros_like());
    let gradients = gradients.into_iter().zip(inputs).map(dense).collect();
    Ok((y.detach(), gradients))
}

/// A leaf, and the view of it that is wanted.
type LeafView = (&'static str, Tensor, fn(&Tensor) -> Tensor);

/// Leaves that hold `x` in another order or with gaps, each with the view that gives `x` back.
fn layouts(x: &Tensor) -> Vec<LeafView> {
    fn turned(x: &Tensor) -> Tensor {
        x.permute(&(0..x.rank() as i64).rev().collect::<Vec<_>>())
    }
    fn flipped(x: &Tensor) -> Tensor {
        let back = Slice::Range { start: None, end: None, step: -1 };
        x.slice(&vec![back; x.rank()])
    }
    fn thinned(x: &Tensor) -> Tensor {
        x.slice(&[Slice::Ellipsis, Slice::Range { start: Some(1), end: None, step: 2 }])
    }
    fn copied(x: &Tensor) -> Tensor {
        Tensor::from_slice(&x.to_vec::<f64>(), x.shape())
    }
    if x.rank() == 0 {
        let pair = Tensor::from([x.item() + 7.0, x.item()]);
        return vec![("a position of a larger leaf", pair, |leaf| leaf.slice(&[Slice::At(1)]))];
    }
    // Every second position along the last axis; the positions between hold numbers that must not
    // be read.
    let shape: Vec<usize> = x.shape().iter().copied().chain([1]).collect();
    let mut doubled = x.shape().to_vec();
    *doubled.last_mut().expect("rank 1 or more") *= 2;
    let wide = x.reshape(shape.as_slice());
    let gaps = Tensor::cat(&[&(&wide * 0.5 + 7.0), &wide], -1).reshape(doubled.as_slice());
    vec![
        ("transposed", copied(&turned(x)), turned),
        ("backward", copied(&flipped(x)), flipped),
        ("every second", copied(&gaps), thinned),
    ]
}

/// Number of layouts.
pub(crate) const LAYOUTS: usize = 3;

/// One layout for all inputs: value and gradients as from contiguous inputs. Differences are
/// returned.
pub(crate) fn same_in_layout(
    sample: &Sample,
    which: usize,
    g: &mut Generator,
) -> Result<Vec<String>> {
    let floats = sample.floats();
    let plain: Vec<Tensor> = floats.iter().map(|x| copy(x).parameter()).collect();
    let y = sample.try_on(&plain)?;
    let v = Tensor::try_randn(y.shape(), DType::F64, g)?;
    let (value, gradients) = value_and_gradients(sample, &plain, &v)?;
    let (mut name, mut leaves, mut views) = ("", Vec::new(), Vec::new());
    for x in &floats {
        let mut all = layouts(x);
        let (n, leaf, view) = all.swap_remove(which.min(all.len() - 1));
        name = n;
        leaves.push(leaf.parameter());
        views.push(view);
    }
    let seen: Vec<Tensor> = leaves.iter().zip(&views).map(|(leaf, view)| view(leaf)).collect();
    let y = sample.try_on(&seen)?;
    let mut failures: Vec<String> =
        difference(&format!("value, {name}"), &y, &value, 1e-13).into_iter().collect();
    if y.requires_grad() {
        y.backward_with().gradient(&v.to_dtype(y.dtype())).run()?;
    }
    for (i, (leaf, view)) in leaves.iter().zip(&views).enumerate() {
        let g = leaf.grad().unwrap_or_else(|| leaf.zeros_like());
        let what = format!("gradient of input {i}, {name}");
        failures.extend(difference(&what, &view(&g), &gradients[i], 1e-13));
        // Nothing flows to the positions that the view leaves out.
        let (all, part) = (size(&g), size(&gradients[i]));
        if (all - part).abs() > 1e-12 * part {
            failures.push(format!("{what}: {all:e} in the leaf, {part:e} in its view"));
        }
    }
    Ok(failures)
}

/// The sum of magnitudes.
fn size(x: &Tensor) -> f64 {
    x.to_f64_vec().iter().map(|x| x.abs()).sum()
}

pub(crate) fn copy(x: &Tensor) -> Tensor {
    Tensor::from_slice(&x.to_f64_vec(), x.shape()).to_dtype(x.dtype())
}

/// Inputs that are one row (or element) broadcast along the first axis: they give what a copy
/// gives, and the leaf gets the sum. Differences are returned.
pub(crate) fn same_when_expanded(sample: &Sample, g: &mut Generator) -> Result<Vec<String>> {
    let floats = sample.floats();
    if floats.iter().any(|x| x.rank() == 0 || x.shape()[0] == 0) {
        return Ok(Vec::new());
    }
    let leaves: Vec<Tensor> = floats.iter().map(|x| copy(&x.narrow(0, 0, 1)).parameter()).collect();
    let expand = |(leaf, x): (&Tensor, &Tensor)| leaf.expand(x.shape());
    let seen: Vec<Tensor> = leaves.iter().zip(&floats).map(expand).collect();
    let plain: Vec<Tensor> = seen.iter().map(|x| copy(x).parameter()).collect();
    let y = sample.try_on(&plain)?;
    let v = Tensor::try_randn(y.shape(), DType::F64, g)?;
    let (value, gradients) = value_and_gradients(sample, &plain, &v)?;
    let y = sample.try_on(&seen)?;
    let mut failures: Vec<String> =
        difference("value, expanded", &y, &value, 1e-13).into_iter().collect();
    if y.requires_grad() {
        y.backward_with().gradient(&v.to_dtype(y.dtype())).run()?;
    }
    for (i, leaf) in leaves.iter().enumerate() {
        let g = leaf.grad().unwrap_or_else(|| leaf.zeros_like());
        let what = format!("gradient of input {i}, expanded");
        // The sum of terms that cancel is right to their size only.
        let wanted = gradients[i].sum(0, true);
        let apart = size(&(&g - &wanted));
        let close = apart <= 1e-13 * size(&gradients[i]);
        if !close {
            failures
                .push(format!("{what}: {apart:e} apart in total, of {:e}", size(&gradients[i])));
        }
    }
    Ok(failures)
}

/// The largest magnitude; NaN if there is one.
pub(crate) fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |m: f64, v| if v.is_nan() || m.is_nan() { f64::NAN } else { m.max(v.abs()) })
}

/// The difference of two tensors of one shape, if it is more than `tolerance` times the largest
/// magnitude; equal infinities are equal.
pub(crate) fn difference(
    what: &str,
    got: &Tensor,
    want: &Tensor,
    tolerance: f64,
) -> Option<String> {
    difference_above(what, got, want, tolerance, 0.0)
}

/// As [`difference`], with an absolute error up to `floor` allowed too: a value that cancels is
/// right to the size of its terms only.
pub(crate) fn difference_above(
    what: &str,
    got: &Tensor,
    want: &Tensor,
    tolerance: f64,
    floor: f64,
) -> Option<String> {
    if got.shape() != want.shape() {
        return Some(format!("{what}: shape {} for {}", got.shape(), want.shape()));
    }
    let (got, want) = (got.to_f64_vec(), want.to_f64_vec());
    let finite: Vec<f64> = want.iter().copied().filter(|x| x.is_finite()).collect();
    let allowed = tolerance * largest(&finite) + floor;
    let close = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= allowed;
    let pairs = got.iter().zip(&want);
    let worst = pairs.enumerate().filter(|(_, (a, b))| !close(**a, **b)).max_by(|x, y| {
        let apart = |(a, b): (&f64, &f64)| (a - b).abs();
        apart(x.1).total_cmp(&apart(y.1))
    })?;
    let (i, (a, b)) = worst;
    Some(format!("{what}, element {i}: {a:e} for {b:e} (allowed {allowed:.1e})"))
}
