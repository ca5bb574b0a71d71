//! The record of each mistake.

use super::Mistake;

/// One mistake of the workflow, for readers.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// The mistake.
    pub mistake: Mistake,
    /// A short name.
    pub name: &'static str,
    /// The mistake.
    pub what: &'static str,
    /// Its signature.
    pub signature: &'static str,
    /// Its fix.
    pub fix: &'static str,
    /// The test that plants it.
    pub test: &'static str,
}

impl Mistake {
    /// All of them, in the order of the catalogue.
    pub fn all() -> impl Iterator<Item = Mistake> {
        CATALOGUE.iter().map(|record| record.mistake)
    }

    /// The record of the mistake.
    pub fn record(self) -> &'static Record {
        CATALOGUE.iter().find(|record| record.mistake == self).expect("a test sees to it")
    }

    /// Its short name.
    pub fn name(self) -> &'static str {
        self.record().name
    }
}

/// Every mistake is planted in at least two loops of the benchmark, which this test runs.
const TEST: &str =
    "chainrule_lab::loops::tests::each_planted_mistake_is_named_and_clean_runs_are_silent";

/// The catalogue.
pub static CATALOGUE: &[Record] = &[
    Record {
        mistake: Mistake::MissingZeroGrad,
        name: "missing zero_grad",
        what: "the gradients that one step has used are still there when the next backward adds to them: steps grow, and go where the loss fell long ago",
        signature: "the gradient after backward is the one before it plus this step's own, and the one before is what the last step used",
        fix: "call optimizer.zero_grad() once for each optimizer.step(), before the backward pass (to accumulate on purpose, once for each group of backward passes)",
        test: TEST,
    },
    Record {
        mistake: Mistake::StaleGradient,
        name: "stale gradient of an intermediate",
        what: "zero_grad clears parameters, not intermediates: a retained gradient adds up over several backward passes through one graph",
        signature: "after backward the intermediate's gradient is the old one plus this pass's own, while the parameters' are this pass's alone",
        fix: "call zero_grad() on the retained intermediates too, or compute the forward pass anew before each backward",
        test: TEST,
    },
    Record {
        mistake: Mistake::DetachedBranch,
        name: "detached branch",
        what: "a value was cut off from the tape on its way to the loss (detach, no_grad, a copy by way of plain numbers, an op without a gradient): the parameters before it are not trained",
        signature: "a parameter that the optimizer holds takes part in the forward pass, and its gradient is None (not zero) at every step",
        fix: "keep the value on the tape: drop the detach or no_grad, compute with tensor operations; or freeze() the parameters if the cut is meant",
        test: TEST,
    },
    Record {
        mistake: Mistake::ParameterNotHeld,
        name: "parameter not held by the optimizer",
        what: "a parameter gets gradients, but no optimizer updates it: it keeps its random starting value",
        signature: "a gradient that is not zero at every step, and a value that does not change by a bit",
        fix: "give the optimizer all of model.parameters(), after the last layer was made; or freeze() the parameter if it is meant to stay",
        test: TEST,
    },
    Record {
        mistake: Mistake::DoubleSoftmax,
        name: "softmax before cross-entropy",
        what: "cross-entropy takes logits and applies softmax itself; of probabilities it makes nearly even ones, so the loss cannot get near 0 and gradients are small",
        signature: "the rows given to the loss lie between 0 and 1 and sum to 1",
        fix: "give the loss the logits, before softmax (before sigmoid for the binary loss)",
        test: TEST,
    },
    Record {
        mistake: Mistake::AttentionScale,
        name: "attention scale forgotten",
        what: "products of queries and keys of width d grow with sqrt(d); without the factor 1/sqrt(d) softmax saturates and its gradient vanishes",
        signature: "between the product and its softmax there is no factor near 1/sqrt(d)",
        fix: "multiply the scores by 1.0 / (d as f64).sqrt(), d being the width of a head, or call attention() with its default scale",
        test: TEST,
    },
    Record {
        mistake: Mistake::MaskAfterSoftmax,
        name: "mask after softmax",
        what: "weights are set to 0 after they were normalised: the rest sums to less than 1, and what is hidden still takes its share in the denominator",
        signature: "the rows of the masked weights do not sum to 1, those before the mask do",
        fix: "mask the scores with minus infinity before softmax",
        test: TEST,
    },
    Record {
        mistake: Mistake::SoftmaxAxis,
        name: "softmax over the wrong axis",
        what: "the weights sum to 1 along another axis than the one that they are used along (queries for keys, examples for classes)",
        signature: "sums along the axis of use are not 1, those along another axis are",
        fix: "take softmax over the keys (the last axis of the scores), or over the classes",
        test: TEST,
    },
    Record {
        mistake: Mistake::RunningStatistics,
        name: "running statistics in training",
        what: "a batch norm normalises by its running mean and variance in training: no gradient flows through the statistics, and activations are not normalised",
        signature: "in training, mean and variance of a normalisation do not depend on the batch",
        fix: "call model.train() before training (and after every evaluation); by hand, normalise by the batch's own mean and variance",
        test: TEST,
    },
    Record {
        mistake: Mistake::BatchStatistics,
        name: "batch statistics in evaluation",
        what: "a batch norm uses the statistics of the batch in evaluation: the answer for one example depends on which others it came with",
        signature: "with other examples beside it the same example gets another output",
        fix: "call model.eval() before evaluation; by hand, use the running statistics",
        test: TEST,
    },
    Record {
        mistake: Mistake::DropoutInEvaluation,
        name: "dropout in evaluation",
        what: "dropout still drops in evaluation: outputs are random, and worse than they could be",
        signature: "two evaluations of one input differ, and the first difference is a mask's",
        fix: "call model.eval() before evaluation; by hand, leave the mask out",
        test: TEST,
    },
    Record {
        mistake: Mistake::SummedLoss,
        name: "loss summed where a mean is meant",
        what: "the loss adds up over the batch: gradients are as many times too large as the batch has examples, and change with its size",
        signature: "each example's loss enters with weight 1 instead of 1/n",
        fix: "take the mean over the batch (the default reduction), or divide by the number of examples",
        test: TEST,
    },
    Record {
        mistake: Mistake::UnusedInput,
        name: "input not used",
        what: "the loss does not depend on an input, or not on some of its columns: a wrong variable, or a slice that takes too little",
        signature: "no op on the way to the loss reads the input (or the column)",
        fix: "pass the input on to the model, whole",
        test: TEST,
    },
    Record {
        mistake: Mistake::ShiftedLabels,
        name: "labels shifted",
        what: "targets are off by some places: a language model is asked for a symbol that it sees, or for the one after next",
        signature: "targets equal the inputs at a shift other than 1 (one that the model could only copy, or one that leaves the next symbol out)",
        fix: "let target[t] be input[t + 1]: x = text[.., ..t], y = text[.., 1..t + 1]",
        test: TEST,
    },
];
