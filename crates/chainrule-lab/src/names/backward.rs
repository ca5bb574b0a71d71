//! The backward pass of the names model, written by hand: read `forward` from its last line to its
//! first.
//!
//! `dx` stands for the gradient of the loss with respect to `x`; it has the shape of `x`. Two
//! things come up again and again. A tensor broadcast on the way forward has its gradient summed on
//! the way back. A tensor used twice gets a part from each use, and the parts are added.

use super::forward::{Batch, EPS, Parameters, Pass};
use crate::tensor::{Tensor, no_grad};

/// The gradient of each intermediate and parameter, with their names.
pub type Gradients = Vec<(&'static str, Tensor)>;

/// All 26 gradients, in the order of the backward pass.
pub fn backward(p: &Parameters, at: &Pass, batch: &Batch) -> Gradients {
    no_grad(|| {
        let mut all = cross_entropy(at, batch);
        let dlogits = last(&all);
        all.extend(output_layer(p, at, &dlogits));
        let dhpreact = last(&all);
        all.extend(batch_norm(p, at, &dhpreact));
        let dhprebn = last(&all);
        all.extend(hidden_layer(p, at, batch, &dhprebn));
        all
    })
}

fn last(gradients: &Gradients) -> Tensor {
    gradients.last().expect("each part gives some").1.clone()
}

/// From the loss to the logits.
fn cross_entropy(at: &Pass, batch: &Batch) -> Gradients {
    let n = batch.size() as f64;

    // loss = -mean of logprobs[i, target of i]: the slope is -1/n there, and 0 everywhere else.
    let dlogprobs = -1.0 / n * one_hot(&batch.targets, &at.logprobs);

    // logprobs = log(probs)
    let dprobs = &dlogprobs / &at.probs;

    // probs = counts * counts_sum_inv, where the one number of a row was broadcast along the row.
    let dcounts_sum_inv = (&at.counts * &dprobs).sum(1, true);
    let dcounts_by_product = &at.counts_sum_inv * &dprobs;

    // counts_sum_inv = counts_sum^-1
    let dcounts_sum = -at.counts_sum.pow(-2.0) * &dcounts_sum_inv;

    // counts_sum = counts.sum(1): each count of the row gets it, beside what came through the
    // product.
    let dcounts = dcounts_by_product + &dcounts_sum;

    // counts = exp(norm_logits), and exp is its own slope.
    let dnorm_logits = &at.counts * &dcounts;

    // norm_logits = logits - logit_maxes, the maxima broadcast along the rows. They are there for
    // safety only: this is 0 but for rounding.
    let dlogit_maxes = -dnorm_logits.sum(1, true);

    // logit_maxes = max of each row: the gradient goes to the element that won.
    let dlogits = &dnorm_logits + one_hot(&at.winners.squeeze(1), &at.logits) * &dlogit_maxes;

    vec![
        ("logprobs", dlogprobs),
        ("probs", dprobs),
        ("counts_sum_inv", dcounts_sum_inv),
        ("counts_sum", dcounts_sum),
        ("counts", dcounts),
        ("norm_logits", dnorm_logits),
        ("logit_maxes", dlogit_maxes),
        ("logits", dlogits),
    ]
}

/// From the logits to the input of tanh.
pub(super) fn output_layer(p: &Parameters, at: &Pass, dlogits: &Tensor) -> Gradients {
    // logits = h W2 + b2. Shapes leave no choice: [n, hidden] can only be [n, symbols] times
    // [symbols, hidden].
    let dh = dlogits.matmul(&p.w2.t());
    let dw2 = at.h.t().matmul(dlogits);
    let db2 = dlogits.sum(0, false);

    // h = tanh(hpreact), whose slope is 1 - h^2.
    let dhpreact = (1.0 - at.h.square()) * &dh;
    vec![("b2", db2), ("W2", dw2), ("h", dh), ("hpreact", dhpreact)]
}

/// From the result of batch norm to its input.
fn batch_norm(p: &Parameters, at: &Pass, dhpreact: &Tensor) -> Gradients {
    let n = at.hprebn.size(0) as f64;

    // hpreact = bngain * bnraw + bnbias, gain and bias broadcast over the rows.
    let (dbngain, dbnbias) = gain_and_bias(at, dhpreact);
    let dbnraw = &p.bngain * dhpreact;

    // bnraw = bndiff * bnvar_inv
    let dbnvar_inv = (&at.bndiff * &dbnraw).sum(0, true);
    let dbndiff_by_product = &at.bnvar_inv * &dbnraw;

    // bnvar_inv = (bnvar + eps)^-0.5
    let dbnvar = -0.5 * (&at.bnvar + EPS).pow(-1.5) * &dbnvar_inv;

    // bnvar = sum of bndiff2 over the rows / (n - 1): each row gets the same.
    let dbndiff2 = 1.0 / (n - 1.0) * dbnvar.expand(at.bndiff2.shape());

    // bndiff2 = bndiff^2, the second use of bndiff.
    let dbndiff = dbndiff_by_product + 2.0 * &at.bndiff * &dbndiff2;

    // bndiff = hprebn - bnmeani, the mean broadcast over the rows.
    let dbnmeani = -dbndiff.sum(0, true);

    // bnmeani = sum of hprebn over the rows / n, the second use of hprebn.
    let dhprebn = &dbndiff + 1.0 / n * &dbnmeani;

    vec![
        ("bnbias", dbnbias),
        ("bngain", dbngain),
        ("bnraw", dbnraw),
        ("bnvar_inv", dbnvar_inv),
        ("bnvar", dbnvar),
        ("bndiff2", dbndiff2),
        ("bndiff", dbndiff),
        ("bnmeani", dbnmeani),
        ("hprebn", dhprebn),
    ]
}

/// The gradients of gain and bias: what they meet in each row, summed over the rows.
pub(super) fn gain_and_bias(at: &Pass, dhpreact: &Tensor) -> (Tensor, Tensor) {
    ((&at.bnraw * dhpreact).sum(0, true), dhpreact.sum(0, true))
}

/// From the hidden layer before batch norm to the vectors of the symbols.
pub(super) fn hidden_layer(
    p: &Parameters,
    at: &Pass,
    batch: &Batch,
    dhprebn: &Tensor,
) -> Gradients {
    // hprebn = embcat W1 + b1
    let dembcat = dhprebn.matmul(&p.w1.t());
    let dw1 = at.embcat.t().matmul(dhprebn);
    let db1 = dhprebn.sum(0, false);

    // embcat lays the vectors of a context side by side; the other way they are taken apart again.
    let demb = dembcat.reshape(at.emb.shape());

    // emb = C[contexts]: a row of C that was taken several times gets all their gradients, added.
    let rows = batch.contexts.reshape(-1);
    let vectors = demb.reshape([-1, p.c.size(1) as i64]);
    let dc = p.c.zeros_like().index_add(0, &rows, &vectors);
    vec![("b1", db1), ("W1", dw1), ("embcat", dembcat), ("emb", demb), ("C", dc)]
}

/// 1 at the given column of each row, in the shape and dtype of `like`.
pub(super) fn one_hot(columns: &Tensor, like: &Tensor) -> Tensor {
    columns.one_hot(like.size(1)).to_dtype(like.dtype())
}
