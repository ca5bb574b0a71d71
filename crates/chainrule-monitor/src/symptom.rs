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

            /// Its meaning and its consequence.
            pub fn consequence(self) -> &'static str {
                match self {
                    $(SymptomKind::$kind => $says,)*
                }
            }

            /// The change that fixes it.
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
    /// The training ended while the loss still fell.
    TooFewSteps "too_few_steps", "the training ended while the loss still fell",
        "train for more epochs, or multiply the learning rate by 3 to 10";
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
    /// Outputs begin far too large.
    InitScale "init_scale", "answers begin sure and wrong, so the loss begins far above chance",
        "use a smaller initialisation: glorot or he, with zeros for the last layer's bias";
    /// A layer between others has a function that suits the last one.
    HiddenActivation "hidden_activation", "a softmax between layers lets through next to nothing",
        "use ReLU between layers, and softmax at the end alone";
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
    /// The loss fell, and stays where it is.
    Plateau "plateau", "the loss fell and has stayed where it is since",
        "lower the learning rate by a schedule, or give the model more capacity";
    /// The last layer's function does not suit the loss.
    OutputActivation "output_activation", "the last layer's function does not suit the loss",
        "give the loss the last linear layer's output, without softmax, sigmoid, tanh or ReLU";
    /// A loss of log-probabilities gets something else.
    LogForgotten "log_forgotten", "the loss takes log-probabilities and gets other numbers",
        "end the model with log_softmax, or use a cross-entropy of logits";
    /// Each output is compared with each target.
    LossBroadcast "loss_broadcast", "each output is compared with the targets of all examples",
        "give outputs and targets one shape: squeeze(-1) or unsqueeze(-1)";
    /// A loss of another kind than the targets.
    Loss "loss", "the loss is not one for such targets, and its gradient is small or misleading",
        "use a cross-entropy for classes, and squares or sizes of differences for numbers";
    /// The loss is a sum over the examples, or divided twice.
    LossReduction "loss_reduction", "gradients grow or shrink with the size of the batch",
        "take the mean over the examples, once";
    /// Targets that teach nothing.
    Labels "labels", "the targets teach nothing: they are all the same, or unrelated to the inputs",
        "look at how the targets are made and read, and at a few pairs of input and target";
    /// One class has nearly all of the examples.
    Unbalanced "unbalanced", "one class has nearly all examples, and the others are hardly learned",
        "weight the classes in the loss, or draw them equally often";
    /// Each batch has the examples of one class.
    DataOrder "data_order", "examples come in the order of their classes, so that some are missing when it counts",
        "shuffle the examples, before they are split and in each epoch";
    /// Inputs are far from the size that layers are made for.
    InputScale "input_scale", "large inputs saturate units and make steps overshoot",
        "standardise the inputs: subtract the mean, divide by the standard deviation";
    /// Targets are far from the size of outputs.
    TargetScale "target_scale", "outputs begin near zero and have far to go to such targets",
        "standardise the targets, and scale the answers back";
    /// All steps see the same examples.
    SameBatch "same_batch", "every step sees the same examples, though there are others",
        "take the next batch in each step: loop over the loader";
    /// The rate falls to nothing before the training is done.
    RateDecays "rate_decays", "the learning rate falls to nothing long before the end",
        "step the schedule once in an epoch, or let it fall more slowly";
    /// A setting of the optimizer is outside of its range.
    OptimizerSetting "optimizer_setting", "the optimizer's averages cannot work with this setting",
        "use the defaults: momentum 0.9, betas (0.9, 0.999), eps 1e-8";
    /// Gradients are zeroed between backward and the step.
    ZeroedEarly "zeroed_early", "gradients are there after backward() and gone at step()",
        "call zero_grad() before backward(), and step() after it";
    /// The model is in evaluation mode while it is trained.
    EvaluationMode "evaluation_mode", "the model trains in evaluation mode: dropout and statistics rest",
        "call model.train() before the training steps, after each evaluation too";
    /// The model is in training mode while it is evaluated.
    TrainingMode "training_mode", "the model is evaluated in training mode: dropout acts, statistics move",
        "call model.eval() before the evaluation and model.train() after it";
    /// An example's output depends on another example, or on what it is to predict.
    Dependence "dependence", "outputs depend on what they must not see",
        "look for a reshape that should be a transpose, a softmax or mean over the batch, a mask";
    /// Dropout leaves next to nothing.
    Dropout "dropout", "dropout takes almost all of a layer away",
        "lower the probability: 0.1 to 0.5";
    /// Validation becomes worse while training becomes better.
    Overfitting "overfitting", "the model learns the examples by heart",
        "stop at the best measurement, use more data, dropout or weight decay";
}

/// Something that goes wrong in a training, with its place, its evidence and its fix.
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
    /// Whether the loss is a sum over the examples.
    pub(crate) fn is_sum(&self) -> bool {
        self.kind == SymptomKind::LossReduction && self.evidence.iter().any(|(_, x)| *x > 1.0)
    }

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

/// A number in a few characters.
fn short(x: f64) -> String {
    match x.abs() {
        a if a.fract() == 0.0 && a < 1e6 => format!("{x}"),
        a if (1e-3..1e5).contains(&a) => format!("{x:.4}"),
        _ => format!("{x:.2e}"),
    }
}
