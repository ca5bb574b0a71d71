//! The course of a training: its losses, parameters, gradients and updates, judged by the detectors
//! of the monitor.

use std::collections::HashMap;

use chainrule_monitor::{Monitor, Symptom, SymptomKind};

use super::parameters::{Parameter, Parameters};
use crate::tensor::Tensor;

/// Symptoms that no [`Mistake`](super::Mistake) tells.
const TOLD: [SymptomKind; 12] = [
    SymptomKind::NotFinite,
    SymptomKind::WrongSign,
    SymptomKind::RateTooHigh,
    SymptomKind::RateTooLow,
    SymptomKind::Vanishing,
    SymptomKind::Exploding,
    SymptomKind::Symmetric,
    SymptomKind::DeadUnits,
    SymptomKind::Saturated,
    SymptomKind::WeightsVanish,
    SymptomKind::LossRises,
    SymptomKind::NoProgress,
];

/// Symptoms that are read from the course of the loss, which differs from batch to batch.
const OF_THE_LOSS: [SymptomKind; 5] = [
    SymptomKind::WrongSign,
    SymptomKind::RateTooHigh,
    SymptomKind::RateTooLow,
    SymptomKind::LossRises,
    SymptomKind::NoProgress,
];

/// Steps after which the course of the loss is more than the differences between batches.
const STEPS: u64 = 20;

/// A growth of the loss that differences between batches cannot explain, after however few steps.
const RUNAWAY: f64 = 1000.0;

/// The monitor of a session.
pub(super) struct TrainingCourse {
    monitor: Monitor,
    /// The loss of the current step.
    pending: Option<f64>,
    first: Option<f64>,
    largest: f64,
}

impl Default for TrainingCourse {
    fn default() -> TrainingCourse {
        let monitor = Monitor::new().every(1).with_sparse_histograms();
        TrainingCourse { monitor, pending: None, first: None, largest: 0.0 }
    }
}

impl TrainingCourse {
    /// A step whose tensors are not looked at.
    pub fn loss(&mut self, loss: f64) {
        self.note(loss);
        self.monitor.step(Some(loss), None);
    }

    fn note(&mut self, loss: f64) {
        self.first.get_or_insert(loss);
        self.largest = self.largest.max(loss.abs());
    }

    fn has_course(&self) -> bool {
        let first = self.first.unwrap_or(f64::INFINITY).abs();
        self.monitor.steps() >= STEPS || self.largest > RUNAWAY * first
    }

    pub fn forward(
        &mut self,
        loss: f64,
        parameters: &Parameters,
        gradients: &HashMap<u64, Tensor>,
    ) {
        self.note(loss);
        self.pending = Some(loss);
        for (name, p) in named(parameters) {
            self.monitor.parameter(&name, &p.tensor(), gradients.get(&p.leaf.number));
        }
    }

    pub fn step(&mut self, parameters: &Parameters) {
        for (name, p) in named(parameters) {
            self.monitor.updated(&name, &p.tensor());
        }
        self.monitor.step(self.pending.take(), None);
    }

    pub fn symptoms(&self) -> Vec<Symptom> {
        let mut all = self.monitor.findings();
        let has_course = self.has_course();
        let is_told = |kind| TOLD.contains(&kind) && (has_course || !OF_THE_LOSS.contains(&kind));
        all.retain(|seen| seen.confidence > 0.5 && is_told(seen.kind));
        all
    }
}

/// The parameters that are trained, each with a name that no other has.
fn named(parameters: &Parameters) -> impl Iterator<Item = (String, &Parameter)> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let all = parameters.all.iter().filter(|p| p.held.is_some() && p.requires_grad());
    all.map(move |p| {
        let count = counts.entry(&p.name).or_default();
        *count += 1;
        match *count {
            1 => (p.name.clone(), p),
            n => (format!("{} ({n})", p.name), p),
        }
    })
}
