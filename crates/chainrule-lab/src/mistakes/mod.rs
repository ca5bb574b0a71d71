//! The public benchmark of the catalogue: every mistake, planted wherever it can be made, must be
//! noticed and named.
//!
//! A mistake is planted in the walker itself. It is detected if forward mode, whose rules are
//! written independently, disagrees with the gradients that come out; it is named if
//! [`verdict`](chainrule_check::verdict()) says so, which sees the wrong numbers and the tape, and
//! nothing else.

mod models;
mod plant;
mod points;
mod table;
#[cfg(test)]
mod tests;
mod trial;
mod written;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::op::Op;
use chainrule_check::ops::entry;
use chainrule_core::ops::table as ops;
pub use plant::Planting;
pub(crate) use plant::gradients;
pub use table::{Counts, MistakeRow, Table};
use trial::{Bench, Trial};

type Function = Box<dyn Fn(&[Tensor]) -> Result<Tensor>>;

/// A function of f64 tensors at a point.
pub(crate) struct Subject {
    pub name: String,
    pub f: Function,
    pub inputs: Vec<Tensor>,
    pub is_model: bool,
}

impl Subject {
    fn model(
        name: &str,
        inputs: Vec<Tensor>,
        f: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
    ) -> Subject {
        Subject { name: name.to_string(), f: Box::new(f), inputs, is_model: true }
    }
}

/// Options of [`mistakes`].
#[derive(Clone, Debug)]
pub struct Mistakes {
    /// Draws all inputs, shapes and probes.
    pub seed: u64,
    /// Only this op, if one is named.
    pub op: Option<String>,
    /// At how many points without a mistake the checks must keep quiet.
    pub points: usize,
}

impl Default for Mistakes {
    fn default() -> Self {
        Mistakes { seed: 1, op: None, points: 10_000 }
    }
}

/// Number of times that the composed models are drawn.
const MODELS: usize = 3;
/// For which of the mistakes in a model the verdict is also asked with the gradients of the
/// parameters alone, which takes long.
const PARAMETERS_EVERY: usize = 5;

/// Plants every mistake of the first class in each op that it applies to, alone and inside three
/// composed models, and counts what is noticed and named; then looks for false alarms where nothing
/// is planted.
///
/// Errors if no op has the name asked for.
pub fn mistakes(options: &Mistakes) -> Result<Table> {
    let g = &mut Generator::manual_seed(options.seed);
    let entries = match &options.op {
        Some(name) => vec![entry(name)?],
        None => ops().collect(),
    };
    let mut table = Table::default();
    for entry in entries.iter().filter(|e| !e.gradient.is_empty()) {
        let own = |op: &dyn Op| entry.mistakes.is_empty() || entry.is_of(op);
        for subject in points::of_op(entry, g)? {
            plant(&subject, own, g, &mut table)?;
        }
    }
    let admitted = |op: &dyn Op| entries.iter().any(|entry| entry.is_of(op));
    for _ in 0..MODELS {
        for subject in models::all(g)? {
            plant(&subject, |op| options.op.is_none() || admitted(op), g, &mut table)?;
        }
    }
    points::quiet(&entries, options.points, g, &mut table)?;
    Ok(table)
}

/// Plants everything in one subject.
fn plant(
    subject: &Subject,
    admit: impl Fn(&dyn Op) -> bool,
    g: &mut Generator,
    table: &mut Table,
) -> Result<()> {
    let Some(bench) = Bench::new(subject, g)? else { return Ok(()) };
    if !bench.is_finite() {
        return Ok(());
    }
    for (i, planting) in bench.plantings(admit, g)?.iter().enumerate() {
        let parameters_too = subject.is_model && i % PARAMETERS_EVERY == 0;
        let trial = quietly(|| bench.run(planting, parameters_too));
        if let Some(Some(trial)) = trial {
            table.add(subject, trial);
        }
    }
    Ok(())
}

/// The result of `f`; `None` if it panics, as a wrong rule may on shapes that do not fit.
fn quietly<T>(f: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(f)).ok()
}
