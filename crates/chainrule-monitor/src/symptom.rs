//! A symptom of a training, as the monitor tells it.

use std::fmt;

use serde_json::{Value, json};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal, $says:literal, $fix:literal;)*) => {
        /// Kind of a [`Symptom`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum SymptomKind {
            $($(#[$doc])* $kind,)*
        }

        impl SymptomKind {
            /// All kinds.
            pub const ALL: &[SymptomKind] = &[$(SymptomKind::$kind,)*];

            /// The name in files and in Python.
            pub fn name(self) -> &'static str {
                match self {
                    $(SymptomKind::$kind => $name,)*
                }
            }

            /// The meaning and what comes of it.
            pub fn consequence(self) -> &'static str {
                match self {
                    $(SymptomKind::$kind => $says,)*
                }
            }

            /// The change that mends it.
            pub fn fix(self) -> &'static str {
                match self {
                    $(SymptomKind::$kind => $fix,)*
                }
            }
        }
    };
}

kinds! {
    /// A loss, value or gradient is infinite or NaN.
    NotFinite "not_finite", "a number is infinite or NaN, and every later update spreads it",
        "lower the learning rate, or guard the logarithm, division or root that gave it";
    /// Updates climb along the gradient.
    WrongSign "wrong_sign", "updates go up the gradient: the loss is maximised",
        "minimise the loss: remove the minus before it, or maximize=True";
    /// The rate is so high that the loss grows or stays.
    RateTooHigh "rate_too_high", "updates overshoot, so the loss grows or does not fall",
        "divide the learning rate by 10, and again until the loss falls";
    /// The rate is so low that nothing moves.
    RateTooLow "rate_too_low", "updates are too small beside the weights to change the loss",
        "multiply the learning rate by 10 to 1000";
    /// Parameters have gradients, and no step changes them.
    NotUpdated "not_updated", "gradients arrive, but no step changes these weights",
        "pass these parameters to the optimizer, give it a rate above 0, and call step()";
    /// Parameters never get a gradient.
    NoGradient "no_gradient", "no gradient reaches these weights, so they stay as they began",
        "use them in the loss, without detach() or no_grad() between, and call backward()";
    /// Gradients of earlier steps are added to those of later ones.
    NotZeroed "not_zeroed", "gradients of all steps so far are summed",
        "call optimizer.zero_grad() before backward()";
    /// Almost all of every gradient is cut off.
    Clipping "clipping", "every gradient is cut to a small part of its norm",
        "raise the largest norm, or remove the clipping";
    /// Gradients fall towards the first layers.
    Vanishing "vanishing_gradient", "layers before this one get next to no gradient and do not learn",
        "use ReLU, normalisation, residual connections or a larger initialisation";
    /// Gradients grow towards the first layers.
    Exploding "exploding_gradient", "gradients grow from layer to layer, so no rate suits all of them",
        "use a smaller initialisation, normalisation or clipping";
    /// Weights of a layer are all equal, and so are their updates.
    Symmetric "symmetric_init", "all units of the layer compute the same and learn the same",
        "initialise the weights at random";
    /// Units give zero for all examples.
    DeadUnits "dead_units", "units that are zero for all examples get no gradient and stay so",
        "lower the learning rate, initialise again, or use leaky ReLU";
    /// Units are at the ends of a bounded function.
    Saturated "saturated_units", "units at the bounds of their function pass no gradient on",
        "scale the inputs or the initial weights down, or use ReLU";
    /// The model gives the same for all examples.
    ConstantOutput "constant_output", "the output is the same for all examples",
        "look at the layers before it: dead units, zero weights, inputs that are all alike";
    /// Weights shrink to nothing.
    WeightsVanish "weights_vanish", "the weights shrink towards zero whatever the data say",
        "lower the weight decay";
    /// The loss grew far beyond where it began.
    LossRises "loss_rises", "the loss is larger than at the beginning",
        "lower the learning rate, and check the sign of the loss";
    /// The loss has not moved from the beginning.
    NoProgress "no_progress", "the loss is where it was at the beginning",
        "check that targets belong to their inputs, then try --find-lr or other rates";
    /// A single step had a far larger loss.
    Spike "loss_spike", "one batch had a far larger loss than those around it",
        "look at that batch, and clip the gradients";
    /// Validation becomes worse while training becomes better.
    Overfitting "overfitting", "the model learns the examples by heart",
        "stop at the best measurement, use more data, dropout or weight decay";
}

/// Something that goes wrong in a training, with its place, its evidence and what mends it.
#[derive(Clone, Debug, PartialEq)]
pub struct Symptom {
    /// Its kind.
    pub kind: SymptomKind,
    /// The module or parameter; empty for the whole.
    pub place: String,
    /// The step since which it holds.
    pub since: u64,
    /// Numbers that show it, by name.
    pub evidence: Vec<(&'static str, f64)>,
    /// Certainty, from 0 to 1.
    pub confidence: f64,
}

impl Symptom {
    /// As a JSON object: `kind`, `place`, `since`, `evidence`, `confidence`, `consequence`, `fix`.
    pub fn to_json(&self) -> Value {
        let evidence: serde_json::Map<String, Value> =
            self.evidence.iter().map(|(name, x)| ((*name).to_owned(), json!(x))).collect();
        json!({
            "kind": self.kind.name(), "place": self.place, "since": self.since, "evidence": evidence,
            "confidence": self.confidence, "consequence": self.kind.consequence(), "fix": self.kind.fix(),
        })
    }
}

impl fmt::Display for Symptom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.name().replace('_', " "))?;
        if !self.place.is_empty() {
            write!(f, " at `{}`", self.place)?;
        }
        write!(f, " since step {}: {}", self.since, self.kind.consequence())?;
        let shown: Vec<String> =
            self.evidence.iter().map(|(name, x)| format!("{name} {}", short(*x))).collect();
        if !shown.is_empty() {
            write!(f, " ({})", shown.join(", "))?;
        }
        write!(f, "; {} [{:.0} % sure]", self.kind.fix(), self.confidence * 100.0)
    }
}

/// A number in few characters.
fn short(x: f64) -> String {
    match x.abs() {
        a if a.fract() == 0.0 && a < 1e6 => format!("{x}"),
        a if (1e-3..1e5).contains(&a) => format!("{x:.4}"),
        _ => format!("{x:.2e}"),
    }
}
