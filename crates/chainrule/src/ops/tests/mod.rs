//! What every op goes through, generated from the table. Each test looks at one property of all ops, collects every failure with the op,
//! the sample and both values, and fails with the list.

mod coverage;
mod derivatives;
mod expressions;
mod fused;
mod mistakes;
mod random_shapes;
mod variants;

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Entry, Sample, table};
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::{DType, Shape};

/// Samples and probes are the same on every run.
const SEED: u64 = 2_147_483_647;

/// Visits every sample of every op that has a gradient and that `admit` admits; fails with all that `visit` returns or panics with.
fn each_sample(
    property: &str,
    admit: impl Fn(&Entry, &Sample) -> bool,
    visit: impl Fn(&Entry, &Sample, &mut Generator) -> Vec<String>,
) {
    let mut failures = Vec::new();
    for entry in table().filter(|e| !e.gradient.is_empty()) {
        let samples = (entry.samples)(&mut Generator::manual_seed(SEED));
        for sample in samples.iter().filter(|s| admit(entry, s)) {
            let found = caught(|| visit(entry, sample, &mut Generator::manual_seed(SEED + 1)));
            let name = |why| format!("{} ({}): {why}", entry.name, sample.note);
            failures.extend(found.into_iter().map(name));
        }
    }
    report(property, failures);
}

/// Fails with all failures, if there are any.
#[track_caller]
fn report(property: &str, failures: Vec<String>) {
    assert!(
        failures.is_empty(),
        "{property}: {} failures\n  {}",
        failures.len(),
        failures.join("\n  ")
    );
}

/// What `visit` returns, or the text of its panic.
fn caught(visit: impl FnOnce() -> Vec<String>) -> Vec<String> {
    catch_unwind(AssertUnwindSafe(visit)).unwrap_or_else(|panic| vec![panic_text(&*panic)])
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
    format!("panicked: {}", text.unwrap_or_default())
}

impl Sample {
    /// The inputs that gradients can be asked of.
    fn floats(&self) -> Vec<Tensor> {
        let float = |x: &&Tensor| x.dtype().is_float();
        self.inputs.iter().filter(float).cloned().collect()
    }

    /// The call with other float inputs; integers and bools stay. Panics with the op's error.
    fn on(&self, floats: &[Tensor]) -> Tensor {
        let mut floats = floats.iter();
        let pick = |x: &Tensor| match x.dtype().is_float() {
            true => floats.next().expect("one for each float input").clone(),
            false => x.clone(),
        };
        let inputs: Vec<Tensor> = self.inputs.iter().map(pick).collect();
        (self.call)(&inputs).unwrap_or_else(|e| panic!("{e}"))
    }
}

/// Gaussian numbers with the shape and dtype of `x`.
fn probe_like(x: &Tensor, g: &mut Generator) -> Tensor {
    probe(x.shape(), x.dtype(), g)
}

fn probe(shape: Shape, dtype: DType, g: &mut Generator) -> Tensor {
    Tensor::randn(shape, DType::F64, g).to_dtype(dtype)
}

/// The largest magnitude; NaN if there is one.
fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |m: f64, v| if v.is_nan() || m.is_nan() { f64::NAN } else { m.max(v.abs()) })
}

/// What differs between two tensors of one shape by more than `tolerance` times the largest magnitude; equal infinities are equal.
fn difference(what: &str, got: &Tensor, want: &Tensor, tolerance: f64) -> Option<String> {
    difference_above(what, got, want, tolerance, 0.0)
}

/// As [`difference`], where an absolute error up to `floor` is allowed too: what cancels is right to the size of its terms only.
fn difference_above(
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
