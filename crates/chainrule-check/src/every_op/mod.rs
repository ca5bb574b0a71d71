//! Checks of every op, generated from the table. Each test looks at one property of all ops,
//! collects every failure with the op, the sample and both values, and fails with the list.

mod coverage;
mod derivatives;
mod expressions;
mod fused;
mod mistakes;
mod random_shapes;
mod recurrence;
mod variants;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::ops::layouts::{difference, difference_above, largest};
use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_core::ops::{Entry, Sample, table};
use chainrule_core::{DType, Shape};

/// Samples and probes are the same on every run.
const SEED: u64 = 2_147_483_647;

/// Visits every sample of every op that has a gradient and that `admit` admits; fails with all that
/// `visit` returns or panics with.
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

/// The result of `visit`, or the text of its panic.
fn caught(visit: impl FnOnce() -> Vec<String>) -> Vec<String> {
    catch_unwind(AssertUnwindSafe(visit)).unwrap_or_else(|panic| vec![panic_text(&*panic)])
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
    format!("panicked: {}", text.unwrap_or_default())
}

/// `try_on`, or a panic with the op's error.
trait On {
    fn on(&self, floats: &[Tensor]) -> Tensor;
}

impl On for Sample {
    fn on(&self, floats: &[Tensor]) -> Tensor {
        self.try_on(floats).unwrap_or_else(|e| panic!("{e}"))
    }
}

/// Gaussian numbers with the shape and dtype of `x`.
fn probe_like(x: &Tensor, g: &mut Generator) -> Tensor {
    probe(x.shape(), x.dtype(), g)
}

fn probe(shape: Shape, dtype: DType, g: &mut Generator) -> Tensor {
    Tensor::randn(shape, DType::F64, g).to_dtype(dtype)
}
