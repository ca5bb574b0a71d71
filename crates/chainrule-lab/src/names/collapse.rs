//! The two long ways of the backward pass, each as one formula.

use super::backward::{Gradients, gain_and_bias, hidden_layer, one_hot, output_layer};
use super::forward::{Batch, Parameters, Pass};
use crate::tensor::{Tensor, no_grad};

/// The gradient of the logits in one step: `(softmax(logits) - onehot(targets)) / n`.
///
/// With `p` the softmax of a row and `y` its target, the loss of the row is
/// `-log p_y = log(sum of e^x_j) - x_y`. The slope of the first term with respect to `x_i` is
/// `e^x_i / sum of e^x_j = p_i`, that of the second 1 at `i = y`. Each row is thus pulled up at its
/// target and pushed down everywhere by its probability, and the two balance.
pub fn cross_entropy_collapse(logits: &Tensor, batch: &Batch) -> Tensor {
    no_grad(|| (logits.softmax(1) - one_hot(&batch.targets, logits)) / batch.size() as f64)
}

/// The gradient through batch norm in one step, with `g` the one that comes in, `r` the normalised
/// values and `v` the variance (divided by n - 1): `bngain (v + eps)^-1/2 / n * (n g - sum of g - n
/// / (n - 1) * r * sum of g r)`, sums over the batch.
///
/// Without statistics it would be `bngain (v + eps)^-1/2 g`. The mean moves with every value and
/// takes the mean of `g` away; the variance moves in proportion to `r` and takes away what of `g`
/// points along `r`.
pub fn batch_norm_collapse(p: &Parameters, at: &Pass, dhpreact: &Tensor) -> Tensor {
    no_grad(|| {
        let n = at.hprebn.size(0) as f64;
        let (g, r) = (dhpreact, &at.bnraw);
        let along = n / (n - 1.0) * r * (g * r).sum(0, true);
        &p.bngain * &at.bnvar_inv / n * (n * g - g.sum(0, true) - along)
    })
}

/// The gradients of the seven parameters by way of the two formulas: all that training needs.
pub fn backward_collapsed(p: &Parameters, at: &Pass, batch: &Batch) -> Gradients {
    no_grad(|| {
        let dlogits = cross_entropy_collapse(&at.logits, batch);
        let mut all = output_layer(p, at, &dlogits);
        let dhpreact = all.pop().expect("the last one").1;
        let (dbngain, dbnbias) = gain_and_bias(at, &dhpreact);
        let dhprebn = batch_norm_collapse(p, at, &dhpreact);
        all.extend([("bngain", dbngain), ("bnbias", dbnbias)]);
        all.extend(hidden_layer(p, at, batch, &dhprebn));
        all.retain(|(name, _)| p.list().iter().any(|(parameter, _)| parameter == name));
        all
    })
}
