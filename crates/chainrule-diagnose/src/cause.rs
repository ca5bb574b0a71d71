//! The named causes.

use crate::description::{Named, words};

words! {
    /// Why a program does not learn.
    Cause: "cause" {
        /// The last layer cannot give what the loss or the targets need.
        OutputActivation = "output_activation",
        /// The loss is meant for other targets.
        Loss = "loss",
        /// There are too few or too many units for the targets.
        OutputUnits = "output_units",
        /// The loss compares each output with each target.
        LossBroadcast = "loss_broadcast",
        /// The softmax goes along the wrong axis.
        Axis = "axis",
        /// The loss is a sum, so that the step grows with the batch.
        LossReduction = "loss_reduction",
        /// The loss takes logarithms of 0.
        LossNumerics = "loss_numerics",
        /// The steps go uphill.
        LrSign = "lr_sign",
        /// Hidden layers are linear, or let nothing through.
        HiddenActivation = "hidden_activation",
        /// Weights start too small or too large.
        InitScale = "init_scale",
        /// Weights start equal.
        InitConstant = "init_constant",
        /// The rate is too high.
        LrHigh = "lr_high",
        /// The rate is too low.
        LrLow = "lr_low",
        /// The rate decays to nothing before the end.
        LrDecay = "lr_decay",
        /// Gradients are shortened too much.
        Clipping = "clipping",
        /// Another optimizer is needed, or its momentum, decay rates or state are wrong.
        Optimizer = "optimizer",
        /// The training is too short.
        EpochsFew = "epochs_few",
        /// Batches are too small or too large.
        BatchSize = "batch_size",
        /// Inputs are not scaled.
        InputScale = "input_scale",
        /// Targets are not scaled.
        TargetScale = "target_scale",
        /// Labels do not belong to their inputs.
        Labels = "labels",
        /// The inputs say nothing of the targets, or are damaged.
        Data = "data",
        /// Rows are in an order that training or validation must not have.
        DataOrder = "data_order",
        /// The validation measures something else.
        Validation = "validation",
        /// One class has far more rows than another.
        Unbalanced = "unbalanced",
        /// Dropout or weight decay holds the model back.
        Regularisation = "regularisation",
        /// The training rows are memorised.
        Overfitting = "overfitting",
        /// The loss fell and then stayed well above what can be reached.
        Plateau = "plateau",
        /// Layers are too narrow.
        Capacity = "capacity",
        /// Layers are in the wrong order.
        Architecture = "architecture",
    }
}

impl Cause {
    /// The cause in a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Cause::OutputActivation => {
                "the last layer cannot give what the loss and the targets need"
            }
            Cause::Loss => "the loss is one for other targets",
            Cause::OutputUnits => "the output has the wrong number of units",
            Cause::LossBroadcast => "the loss compares each output with each target",
            Cause::Axis => "the softmax goes over the batch instead of the classes",
            Cause::LossReduction => {
                "the loss is a sum over rows, so that steps grow with the batch"
            }
            Cause::LossNumerics => "the loss takes logarithms of numbers that become 0",
            Cause::LrSign => "the rate is negative: steps go uphill",
            Cause::HiddenActivation => "the activations of hidden layers hold the signal back",
            Cause::InitScale => "the weights begin with the wrong size",
            Cause::InitConstant => "the weights of a layer begin equal",
            Cause::LrHigh => "the learning rate is too high",
            Cause::LrLow => "the learning rate is too low",
            Cause::LrDecay => "the learning rate decays to nothing before the end",
            Cause::Clipping => "clipping shortens nearly every gradient",
            Cause::Optimizer => "the optimizer does not get there",
            Cause::EpochsFew => "the training is too short",
            Cause::BatchSize => "the batch has the wrong size",
            Cause::InputScale => "the inputs are not scaled",
            Cause::TargetScale => "the targets are not scaled",
            Cause::Labels => "the labels do not belong to their inputs",
            Cause::Data => "the inputs say nothing of the targets",
            Cause::DataOrder => "the rows are in an order that splits classes apart",
            Cause::Validation => "the rows of the validation are among those trained on",
            Cause::Unbalanced => "the classes are unbalanced",
            Cause::Regularisation => "dropout or weight decay holds the model down",
            Cause::Overfitting => "the model learns its rows by heart",
            Cause::Plateau => "the loss stopped falling early and stayed",
            Cause::Capacity => "a layer is too narrow",
            Cause::Architecture => "the layers are in the wrong order",
        }
    }

    /// How a training with this cause ends if nothing changes.
    pub fn in_the_end(self) -> &'static str {
        match self {
            Cause::OutputActivation => {
                "answers stay within what the last layer can give, and the loss stops there"
            }
            Cause::Loss => "the loss leads to other answers than the right ones",
            Cause::OutputUnits => "some targets have no answer of their own, whatever is learned",
            Cause::LossBroadcast => "every answer becomes the mean of all targets",
            Cause::Axis => "answers depend on the other rows of their batch",
            Cause::LossReduction => "steps overshoot, and other batch sizes need other rates",
            Cause::LossNumerics => "a logarithm of 0 makes the loss and all weights NaN",
            Cause::LrSign => "the loss grows without end",
            Cause::HiddenActivation => "the layers before learn next to nothing",
            Cause::InitScale => "layers pass a signal that is too small or too large to learn from",
            Cause::InitConstant => "the units of the layer stay equal, as if there were one",
            Cause::LrHigh => "steps overshoot: the loss jumps about, grows, or units die",
            Cause::LrLow => "the run ends long before the weights are where they should be",
            Cause::LrDecay => "the weights stop where the rate has become nothing",
            Cause::Clipping => "steps keep one length, whatever the gradient is",
            Cause::Optimizer => "the steps do not lead down in the time that there is",
            Cause::EpochsFew => "the run ends while the loss still falls",
            Cause::BatchSize => "steps are too few, or too noisy",
            Cause::InputScale => "large columns drown the others, or saturate the first layer",
            Cause::TargetScale => "the run is spent on reaching the size of the targets",
            Cause::Labels => "labels can only be learned by heart, and new rows are guessed",
            Cause::Data => "no better answer than a constant can be learned from these rows",
            Cause::DataOrder => "the last class that was seen wins",
            Cause::Validation => "the measure is better than the model",
            Cause::Unbalanced => "the most frequent class is always the answer",
            Cause::Regularisation => "the model is kept from fitting even the rows trained on",
            Cause::Overfitting => "new rows are answered worse the longer it trains",
            Cause::Plateau => "more of the same steps change nothing",
            Cause::Capacity => "the model cannot express the answer",
            Cause::Architecture => "the answers are spoilt whatever the weights are",
        }
    }

    /// All causes.
    pub fn all() -> impl Iterator<Item = Cause> {
        Cause::ALL.iter().map(|(_, cause)| *cause)
    }

    /// The cause with this word.
    pub fn of(word: &str) -> Option<Cause> {
        Cause::ALL.iter().find(|(w, _)| *w == word).map(|(_, cause)| *cause)
    }

    /// Its word in the JSON output.
    pub fn kind(self) -> &'static str {
        self.word()
    }
}
