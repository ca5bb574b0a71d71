//! The part that an op plays in a model, for code that examines a training step from outside.

/// The part of an op in a model. Checks of a training step follow values by it, and listings use
/// it: an op that plays one of these parts says so in its own file, and is treated like the others
/// of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// None of the others.
    Plain,
    /// The elements of the only input as they are, in other places.
    Moves,
    /// The inputs, one after the other.
    Joins,
    /// Each element as it is, or something else in its place: `where`, `tril`.
    Selects,
    /// Elements clamped between bounds.
    Bounds,
    /// Elements zeroed by chance, the others scaled.
    Dropout,
    /// Random bits that the draws within another op's kernel begin with.
    Seed,
    /// Constant between jumps: comparisons, rounding.
    Steps,
    /// Elements or rows picked by indices.
    Picks,
    /// A logarithm, of any base.
    Logarithm,
    /// A product of two matrices.
    Product,
    /// The product with a weight `[out, in]`, and a bias.
    LinearLayer,
    /// Queries, keys and values.
    Attention,
    /// Elements less their mean, divided by their spread.
    Norm(NormRole),
    /// A loss.
    Loss(LossRole),
}

/// The elements that a normalisation takes the statistics of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormRole {
    /// Each channel over all examples.
    Batch,
    /// Each row of the last axes.
    Layer,
    /// Each row of the last axes, without its mean.
    RootMeanSquare,
    /// Groups of channels of each example.
    Group,
}

/// The kinds of prediction and target that a loss takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRole {
    /// Logits and class indices.
    CrossEntropy,
    /// Logits and probabilities of classes.
    SoftCrossEntropy,
    /// Logarithms of probabilities and class indices.
    NegativeLogLikelihood,
    /// Logits and probabilities of yes or no.
    BinaryLogits,
}
