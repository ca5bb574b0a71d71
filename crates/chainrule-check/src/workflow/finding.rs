//! Findings of a session.

use std::fmt;
use std::panic::Location;

use chainrule_monitor::Symptom;

use super::catalogue::Record;
use crate::invariants::TestedInvariant;

/// The mistakes of a training loop that are recognised, each by a detector of its own. The
/// [`Record`] of each describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Mistake {
    /// Gradients are not forgotten between steps.
    MissingZeroGrad,
    /// The gradient of an intermediate adds up over backward passes.
    StaleGradient,
    /// A part of the model is cut off from the tape.
    DetachedBranch,
    /// A parameter gets a gradient and is never updated.
    ParameterNotHeld,
    /// Probabilities are given to a loss that takes logits.
    DoubleSoftmax,
    /// Scores of attention are not divided by the root of the head's width.
    AttentionScale,
    /// Attention weights are masked after they were normalised.
    MaskAfterSoftmax,
    /// Softmax runs over another axis than the one that is summed over.
    SoftmaxAxis,
    /// Running statistics normalise in training.
    RunningStatistics,
    /// Statistics of the batch normalise in evaluation.
    BatchStatistics,
    /// Dropout drops in evaluation.
    DropoutInEvaluation,
    /// The loss is a sum over the batch.
    SummedLoss,
    /// An input has no part in the loss.
    UnusedInput,
    /// Targets lie beside the inputs that they belong to.
    ShiftedLabels,
}

/// A mistake that was found, with its evidence.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The mistake.
    pub mistake: Mistake,
    /// The training step at which it was seen first, from 1.
    pub step: usize,
    /// Subject of the finding: a parameter's name, an op.
    pub what: String,
    /// The line that made the mistake, where the tape has it.
    pub location: Option<&'static Location<'static>>,
    /// The measurement, in words.
    pub evidence: String,
    /// The same as numbers that can be computed again, each with its meaning.
    pub numbers: Vec<(&'static str, f64)>,
}

impl Finding {
    /// The mistake's entry in the catalogue.
    pub fn record(&self) -> &'static Record {
        self.mistake.record()
    }

    /// The fix.
    pub fn fix(&self) -> &'static str {
        self.record().fix
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.record().name, self.what)?;
        if let Some(at) = self.location {
            write!(f, " at {}:{}:{}", at.file(), at.line(), at.column())?;
        }
        writeln!(f, " (seen at step {})", self.step)?;
        writeln!(f, "  evidence: {}", self.evidence)?;
        write!(f, "  fix: {}", self.fix())
    }
}

/// All that a session has found; `Display` writes it out.
#[derive(Clone, Debug, Default)]
pub struct WorkflowReport {
    /// Number of training steps watched.
    pub steps: usize,
    /// Number of evaluations watched.
    pub evaluations: usize,
    /// In the order in which they were seen.
    pub findings: Vec<Finding>,
    /// Symptoms in the numbers, the surest first.
    pub symptoms: Vec<Symptom>,
    /// Laws of gradients that did not hold, if they were to be checked: there a backward rule is
    /// wrong, not the loop.
    pub broken: Vec<TestedInvariant>,
}

impl WorkflowReport {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.symptoms.is_empty() && self.broken.is_empty()
    }

    /// The finding of this mistake, if it was found.
    pub fn get(&self, mistake: Mistake) -> Option<&Finding> {
        self.findings.iter().find(|found| found.mistake == mistake)
    }
}

impl fmt::Display for WorkflowReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "watched {} steps and {} evaluations: ", self.steps, self.evaluations)?;
        if self.is_clean() {
            return write!(f, "no mistake found");
        }
        let found = self.findings.len() + self.symptoms.len() + self.broken.len();
        write!(f, "{found} found")?;
        self.findings.iter().try_for_each(|found| write!(f, "\n\n{found}"))?;
        self.symptoms.iter().try_for_each(|seen| write!(f, "\n\n{seen}"))?;
        self.broken.iter().try_for_each(|seen| write!(f, "\n\n{seen}"))
    }
}

/// Findings of the detectors: each mistake at each place once.
#[derive(Default)]
pub(super) struct Findings {
    pub step: usize,
    pub all: Vec<Finding>,
    /// Mistakes declared to be on purpose.
    pub meant: Vec<Mistake>,
}

impl Findings {
    pub fn add(
        &mut self,
        mistake: Mistake,
        what: String,
        location: Option<&'static Location<'static>>,
        evidence: String,
        numbers: Vec<(&'static str, f64)>,
    ) {
        let same = |f: &Finding| f.mistake == mistake && f.what == what && f.location == location;
        if self.meant.contains(&mistake) || self.all.iter().any(same) {
            return;
        }
        self.all.push(Finding { mistake, step: self.step, what, location, evidence, numbers });
    }
}
