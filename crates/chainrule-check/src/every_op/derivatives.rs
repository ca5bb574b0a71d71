//! The reverse rules against differences and against the forward rules, and both once more on the
//! derivative itself.

use super::{On, each_sample, probe, probe_like};
use crate::autograd::vjp;
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::{dot_product, richardson};
use chainrule_core::ops::{Entry, Sample};

/// Tolerance between the two modes, relative to the magnitude of the terms of the inner products.
const MODES: f64 = 1e-12;

/// Tolerance between reverse mode and differences, relative to the directional derivative.
const DIFFERENCES: f64 = 1e-7;

/// The smallest step of the differences is about 2^-13; if values are right to a few last bits,
/// slopes are right to this many times the values.
const FLOOR: f64 = 64.0 * f64::EPSILON * 8192.0;

/// The same for forward against reverse mode. It matters where a derivative is pure rounding, such
/// as that of x / x.
const MODES_FLOOR: f64 = 64.0 * f64::EPSILON;

/// The sum of the magnitudes of a sample's values, weighted by a Gaussian probe: the scale of what
/// cancels in its derivatives.
fn size(sample: &Sample, g: &mut Generator) -> f64 {
    let value = sample.on(&sample.floats());
    let v = probe_like(&value, g).to_f64_vec();
    value.to_f64_vec().iter().zip(v).map(|(y, v)| (y * v).abs()).sum()
}

/// Reverse mode against differences, for each input on its own.
fn against_differences(
    f: impl Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    size: f64,
    g: &mut Generator,
) -> Vec<String> {
    let value = f(inputs);
    let v = probe_like(&value, g);
    let weighted = |y: &Tensor| {
        let (y, v) = (y.to_f64_vec(), v.to_f64_vec());
        y.into_iter().zip(v).map(|(y, v)| y * v).collect::<Vec<f64>>()
    };
    let size = size.max(weighted(&value).iter().map(|x| x.abs()).sum());
    let (_, gradients) = vjp(&f, inputs, &v).unwrap_or_else(|e| panic!("{e}"));
    let mut failures = Vec::new();
    for (i, gradient) in gradients.iter().enumerate() {
        let mut directions: Vec<Tensor> = inputs.iter().map(Tensor::zeros_like).collect();
        directions[i] = probe_like(&inputs[i], g);
        let scalar = |x: &[Tensor]| Tensor::scalar(weighted(&f(x)).iter().sum::<f64>());
        let found = richardson(scalar, inputs, &directions).unwrap_or_else(|e| panic!("{e}"));
        let (difference, error) = (found.value.item(), found.error.item());
        let pairs = gradient.to_f64_vec().into_iter().zip(directions[i].to_f64_vec());
        let reverse: f64 = pairs.map(|(g, u)| g * u).sum();
        let allowed = DIFFERENCES * reverse.abs().max(difference.abs()) + FLOOR * size;
        let both =
            format!("reverse mode {reverse:e}, differences {difference:e}, allowed {allowed:.1e}");
        let agree = (reverse - difference).abs() <= allowed;
        if !found.kinks.is_empty() {
            failures
                .push(format!("input {i}: the differences see a kink (error {error:.1e}); {both}"));
        } else if !agree {
            failures.push(format!("input {i}: {both}"));
        } else if error > allowed {
            failures.push(format!("input {i}: the differences are not sure ({error:.1e}); {both}"));
        }
    }
    failures
}

/// Forward mode against reverse mode.
fn against_forward(
    f: impl Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    size: f64,
    g: &mut Generator,
) -> Vec<String> {
    let test = dot_product(f, inputs, g).unwrap_or_else(|e| panic!("{e}"));
    let allowed = MODES * test.scale + MODES_FLOOR * size;
    if (test.forward - test.reverse).abs() <= allowed {
        return Vec::new();
    }
    vec![format!(
        "<v, J u> = {:e} by forward mode, {:e} by reverse mode, allowed {allowed:.1e}",
        test.forward, test.reverse
    )]
}

/// The derivative of a sample as a function: `<w, gradient of <v, f>>` with fixed probes.
fn derivative<'a>(sample: &'a Sample, g: &mut Generator) -> impl Fn(&[Tensor]) -> Tensor + 'a {
    let value = sample.on(&sample.floats());
    let v = probe(value.shape(), value.dtype(), g);
    let w: Vec<Tensor> = sample.floats().iter().map(|x| probe_like(x, g)).collect();
    move |x| {
        let (_, gradients) = vjp(|x| sample.on(x), x, &v).unwrap_or_else(|e| panic!("{e}"));
        let parts = gradients.iter().zip(&w).map(|(g, w)| (g * w).sum_all());
        parts.reduce(|a, b| a + b).expect("at least one float input")
    }
}

#[test]
fn reverse_mode_agrees_with_differences() {
    let excepted = |_: &Entry, s: &Sample| s.by_design.is_some();
    let smooth = |e: &Entry, s: &Sample| !s.kink && !s.floats().is_empty() && !excepted(e, s);
    each_sample("reverse mode against differences", smooth, |_, s, g| {
        against_differences(|x| s.on(x), &s.floats(), size(s, g), g)
    });
}

#[test]
fn forward_mode_agrees_with_reverse_mode() {
    each_sample(
        "forward against reverse mode",
        |_, s| !s.floats().is_empty(),
        |_, s, g| against_forward(|x| s.on(x), &s.floats(), size(s, g), g),
    );
}

#[test]
fn second_order_reverse_mode_agrees_with_differences() {
    let smooth = |s: &Sample| !s.kink && s.twice && !s.floats().is_empty();
    each_sample(
        "second order, reverse mode against differences",
        |_, s| smooth(s),
        |_, s, g| against_differences(derivative(s, g), &s.floats(), size(s, g), g),
    );
}

#[test]
fn second_order_forward_mode_agrees_with_reverse_mode() {
    let smooth = |s: &Sample| !s.kink && s.twice && !s.floats().is_empty();
    each_sample(
        "second order, forward against reverse mode",
        |_, s| smooth(s),
        |_, s, g| against_forward(derivative(s, g), &s.floats(), size(s, g), g),
    );
}
