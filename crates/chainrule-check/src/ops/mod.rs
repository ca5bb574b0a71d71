//! Every op of the table, checked on its samples: [`ops`](ops()) and what it gives.

pub(crate) mod layouts;
mod name;
mod table;
#[cfg(test)]
mod tests;

pub use name::entry;

use super::gradcheck::{Outcome, PairCheck, Problem, gradcheck};
use crate::error::Result;
use crate::rng::Generator;
use chainrule_core::DType;
use chainrule_core::ops::{Entry, Family, OpId, Sample};
use layouts::{LAYOUTS, same_in_layout, same_when_expanded};

/// Samples and probes are drawn from this seed unless another one is given.
const SEED: u64 = 2_147_483_647;

/// Ops on matrices that have no result or no gradient where all rows are equal.
const NEED_DIFFERENT_ROWS: &[OpId] = &[
    #[cfg(feature = "linalg")]
    OpId::solve,
    #[cfg(feature = "linalg")]
    OpId::inverse,
    #[cfg(feature = "linalg")]
    OpId::qr,
    #[cfg(feature = "linalg")]
    OpId::det,
];

/// Whether the op has no result or gradient where all rows are equal.
pub(crate) fn needs_different_rows(entry: &Entry) -> bool {
    NEED_DIFFERENT_ROWS.iter().any(|id| std::ptr::eq(id.entry(), entry))
}

/// The report of [`ops`](ops()). `Display` writes it as a table.
#[derive(Clone, Debug)]
pub struct OpsReport {
    /// One for each op, in the order of the table.
    pub ops: Vec<OpReport>,
}

/// Report of the checks of one op.
#[derive(Clone, Debug)]
pub struct OpReport {
    /// The op's name in the table; several methods may share one entry.
    pub name: &'static str,
    /// Its family.
    pub family: Family,
    /// On how many samples it was checked.
    pub samples: usize,
    /// Counts of each property; in the order of [`Property::ALL`].
    pub counts: [Count; Property::ALL.len()],
    /// The largest relative error of reverse against forward mode.
    pub largest_error: f64,
    /// Properties that did not hold.
    pub failures: Vec<Failure>,
}

/// Checks and failures of a property.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of checks.
    pub checked: usize,
    /// Number of failures.
    pub failed: usize,
}

/// A property that did not hold on a sample.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The property.
    pub property: Property,
    /// Name of the sample: its particular.
    pub sample: &'static str,
    /// The difference found.
    pub what: String,
}

/// A property that each op is checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// The gradient agrees with differences.
    First,
    /// The gradient of the gradient agrees with differences.
    Second,
    /// Forward and reverse mode agree, at first and second order, at kinks too.
    Modes,
    /// Inputs that are transposed, backward or strided views give what copies give.
    Views,
    /// Stretched inputs give what copies give, and their gradients are summed.
    Broadcast,
    /// A point on a kink is told to be one, and no other point is.
    Kinks,
}

impl Property {
    /// All of them.
    pub const ALL: [Property; 6] = [
        Property::First,
        Property::Second,
        Property::Modes,
        Property::Views,
        Property::Broadcast,
        Property::Kinks,
    ];

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Property::First => "order 1",
            Property::Second => "order 2",
            Property::Modes => "jvp = vjp",
            Property::Views => "views",
            Property::Broadcast => "broadcast",
            Property::Kinks => "kinks",
        }
    }
}

/// Checks every op of the [table](chainrule_core::ops::table) on its samples.
///
/// For each sample, [`gradcheck`](super::gradcheck()) at first and second order, which compares
/// reverse mode with forward mode and with differences and finds kinks; and the same numbers in
/// other layouts and stretched, which must give what plain copies give. Ops without a gradient are
/// checked for their values alone.
///
/// ```
/// let report = chainrule::check::op("tanh")?;
/// assert!(report.passed() && report.samples > 0);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn ops() -> OpsReport {
    OpsReport { ops: chainrule_core::ops::table().map(|entry| of_entry(entry, SEED)).collect() }
}

/// Checks one op of the table, by the name of its entry or of one of its methods.
///
/// Errors for a name that is not in the table, and names the nearest ones.
pub fn op(name: &str) -> Result<OpReport> {
    name::entry(name).map(|entry| of_entry(entry, SEED))
}

impl OpsReport {
    /// Whether everything held.
    pub fn passed(&self) -> bool {
        self.ops.iter().all(OpReport::passed)
    }
}

impl OpReport {
    /// Whether everything held.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// Checks and failures of a property.
    pub fn count(&self, property: Property) -> Count {
        self.counts[property as usize]
    }

    fn note(&mut self, property: Property, sample: &Sample, failures: Vec<String>) {
        let count = &mut self.counts[property as usize];
        count.checked += 1;
        count.failed += usize::from(!failures.is_empty());
        let failure = |what| Failure { property, sample: sample.note, what };
        self.failures.extend(failures.into_iter().map(failure));
    }
}

/// Checks an entry of the table on samples drawn from a seed.
pub fn of_entry(entry: &Entry, seed: u64) -> OpReport {
    let samples = (entry.samples)(&mut Generator::manual_seed(seed));
    let mut report = OpReport {
        name: entry.name,
        family: entry.family,
        samples: samples.len(),
        counts: Default::default(),
        largest_error: 0.0,
        failures: Vec::new(),
    };
    for sample in &samples {
        let floats = sample.floats();
        if floats.is_empty() {
            continue;
        }
        if !entry.gradient.is_empty() {
            derivatives(&mut report, sample, seed);
        }
        let generator = &mut Generator::manual_seed(seed ^ 1);
        let found = |f: Result<Vec<String>>| f.unwrap_or_else(|e| vec![e.to_string()]);
        if floats.iter().all(|x| x.dtype() == DType::F64) {
            let all =
                (0..LAYOUTS).flat_map(|which| found(same_in_layout(sample, which, generator)));
            let all = all.collect();
            report.note(Property::Views, sample, all);
        }
        let singular = needs_different_rows(entry) && floats[0].rank() == 2;
        if !sample.kink && !singular {
            let all = found(same_when_expanded(sample, generator));
            report.note(Property::Broadcast, sample, all);
        }
    }
    report
}

/// Order 1 and 2, the two modes, and kinks.
fn derivatives(report: &mut OpReport, sample: &Sample, seed: u64) {
    let order = if sample.twice { 2 } else { 1 };
    let checker = gradcheck(|x| sample.try_on(x), &sample.floats()).order(order);
    let found = match checker.first_seed(seed).seeds(1).run() {
        Ok(found) => found,
        Err(e) => return report.note(Property::First, sample, vec![e.to_string()]),
    };
    let finite = |p: &&Problem| !(sample.kink && matches!(p, Problem::NotFinite { .. }));
    let problems: Vec<String> =
        found.problems.iter().filter(finite).map(Problem::to_string).collect();
    let edge =
        !found.problems.is_empty() || found.pairs.iter().any(|p| p.outcome == Outcome::NotFinite);
    if !problems.is_empty() || found.pairs.is_empty() {
        return report.note(Property::First, sample, problems);
    }
    let by_design = sample.by_design.is_some();
    let apart =
        |p: &PairCheck| p.forward.is_some() && (p.error > found.tolerance || p.error.is_nan());
    for (property, order) in [(Property::First, 1), (Property::Second, 2)] {
        let of_order = || found.pairs.iter().filter(move |p| p.order == order);
        if of_order().next().is_none() || by_design {
            continue;
        }
        let infinite = |p: &PairCheck| sample.kink && p.outcome == Outcome::NotFinite;
        let wrong = of_order().filter(|p| !p.passed() && !apart(p) && !infinite(p));
        report.note(property, sample, wrong.map(PairCheck::to_string).collect());
    }
    let modes =
        found.pairs.iter().filter(|p| p.forward.is_some() && p.outcome != Outcome::NotFinite);
    for pair in modes.clone() {
        report.largest_error = report.largest_error.max(pair.error);
    }
    if modes.clone().next().is_some() {
        report.note(
            Property::Modes,
            sample,
            modes.filter(|p| apart(p)).map(PairCheck::to_string).collect(),
        );
    }
    let edge = edge || by_design || sample.smooth.is_some();
    let kinks: Vec<String> = found.kinks().map(PairCheck::to_string).collect();
    match (sample.kink, kinks.is_empty()) {
        (true, true) if !edge => {
            report.note(
                Property::Kinks,
                sample,
                vec![format!("a kink is passed in silence: {found}")],
            );
        }
        (true, _) => report.note(Property::Kinks, sample, Vec::new()),
        (false, _) => report.note(Property::Kinks, sample, kinks),
    }
}
