//! The names model and its loss, in steps so small that each has a backward of one line.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::models::{NamesMlp, NamesMlpConfig};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// The eps added to the variance before its root is taken.
pub(super) const EPS: f64 = 1e-5;

/// The parameters of the names model. On the tape they bear the names `C`, `W1`, `b1`, `W2`, `b2`,
/// `bngain` and `bnbias`.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// A vector for each symbol, `[symbols, embedding]`.
    pub c: Tensor,
    /// The weight of the hidden layer, `[context * embedding, hidden]`.
    pub w1: Tensor,
    /// The bias of the hidden layer, `[hidden]`.
    pub b1: Tensor,
    /// The weight of the output layer, `[hidden, symbols]`.
    pub w2: Tensor,
    /// The bias of the output layer, `[symbols]`.
    pub b2: Tensor,
    /// The gain of batch norm, `[1, hidden]`.
    pub bngain: Tensor,
    /// The bias of batch norm, `[1, hidden]`.
    pub bnbias: Tensor,
}

impl Parameters {
    /// Draws them as [`NamesMlp::new`] does, with 27 symbols, a context of 3, vectors of 10 and 64
    /// hidden units: 4137 numbers. The draws are f32 and are then converted.
    pub fn new(dtype: DType, generator: &mut Generator) -> Result<Parameters> {
        let sizes = NamesMlpConfig { hidden: 64, ..NamesMlpConfig::default() };
        Parameters::of(&NamesMlp::try_new(sizes, generator)?, dtype)
    }

    /// Copies of those of a model.
    pub fn of(model: &NamesMlp, dtype: DType) -> Result<Parameters> {
        let copy = |t: &Tensor, name| {
            Ok::<_, Error>(t.detach().try_to_dtype(dtype)?.try_parameter()?.named(name))
        };
        Ok(Parameters {
            c: copy(&model.embedding, "C")?,
            w1: copy(&model.w1, "W1")?,
            b1: copy(&model.b1, "b1")?,
            w2: copy(&model.w2, "W2")?,
            b2: copy(&model.b2, "b2")?,
            bngain: copy(&model.bngain, "bngain")?,
            bnbias: copy(&model.bnbias, "bnbias")?,
        })
    }

    /// All seven with their names.
    pub fn list(&self) -> [(&'static str, &Tensor); 7] {
        [
            ("C", &self.c),
            ("W1", &self.w1),
            ("b1", &self.b1),
            ("W2", &self.w2),
            ("b2", &self.b2),
            ("bngain", &self.bngain),
            ("bnbias", &self.bnbias),
        ]
    }

    fn check(&self, batch: &Batch) -> Result<()> {
        let (symbols, embedding) = (self.c.size(0), self.c.size(1));
        let (inputs, hidden) = (self.w1.size(0), self.w1.size(1));
        let right: [(&Tensor, &[usize]); 5] = [
            (&self.b1, &[hidden]),
            (&self.w2, &[hidden, symbols]),
            (&self.b2, &[symbols]),
            (&self.bngain, &[1, hidden]),
            (&self.bnbias, &[1, hidden]),
        ];
        if right.iter().any(|(t, shape)| t.shape() != **shape)
            || inputs != batch.contexts.size(1) * embedding
        {
            let shapes: Vec<_> = self.list().iter().map(|(_, t)| t.shape()).collect();
            let shapes: Vec<_> = shapes.iter().chain([&batch.shape]).collect();
            let why = "the parameters C, W1, b1, W2, b2, bngain, bnbias and the contexts do not fit each other";
            return Err(Error::shape("names", &shapes, why));
        }
        Ok(())
    }
}

/// A batch: contexts of symbols, and the symbol that follows each.
#[derive(Clone, Debug)]
pub struct Batch {
    pub(super) contexts: Tensor,
    pub(super) targets: Tensor,
    shape: chainrule_core::Shape,
}

impl Batch {
    /// From contexts `[n, context]` and targets `[n]`, both i64; `n` must be 2 at least, since one
    /// example has no variance.
    pub fn new(contexts: Tensor, targets: Tensor) -> Result<Batch> {
        let shape = contexts.shape();
        if contexts.rank() != 2 || targets.shape() != [shape[0]] || shape[0] < 2 {
            let why = "contexts must be [n, context] and targets [n], with n of 2 at least";
            return Err(Error::shape("names", &[&shape, &targets.shape()], why));
        }
        if [contexts.dtype(), targets.dtype()] != [DType::I64; 2] {
            let why = "contexts and targets are numbers of symbols: i64";
            return Err(Error::dtype("names", &[contexts.dtype(), targets.dtype()], why));
        }
        Ok(Batch { contexts, targets, shape })
    }

    /// The number of examples.
    pub fn size(&self) -> usize {
        self.shape[0]
    }

    /// The contexts, `[n, context]`.
    pub fn contexts(&self) -> &Tensor {
        &self.contexts
    }

    /// The targets, `[n]`.
    pub fn targets(&self) -> &Tensor {
        &self.targets
    }
}

/// Everything that the model computes for a batch, step by step.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // the names are those of the steps in `forward`
pub struct Pass {
    pub emb: Tensor,
    pub embcat: Tensor,
    pub hprebn: Tensor,
    pub bnmeani: Tensor,
    pub bndiff: Tensor,
    pub bndiff2: Tensor,
    pub bnvar: Tensor,
    pub bnvar_inv: Tensor,
    pub bnraw: Tensor,
    pub hpreact: Tensor,
    pub h: Tensor,
    pub logits: Tensor,
    pub logit_maxes: Tensor,
    /// In which column each row of the logits has its maximum, `[n, 1]`.
    pub winners: Tensor,
    pub norm_logits: Tensor,
    pub counts: Tensor,
    pub counts_sum: Tensor,
    pub counts_sum_inv: Tensor,
    pub probs: Tensor,
    pub logprobs: Tensor,
    pub loss: Tensor,
}

/// Runs the model in small steps. An error if a context or target is no symbol, or the shapes do
/// not fit.
pub fn forward(p: &Parameters, batch: &Batch) -> Result<Pass> {
    p.check(batch)?;
    let n = batch.size() as f64;

    // A vector for each symbol of the context, side by side, and the hidden layer.
    let emb = p.c.try_embedding(&batch.contexts)?;
    let embcat = emb.reshape([batch.size(), p.w1.size(0)]);
    let hprebn = embcat.matmul(&p.w1) + &p.b1;

    // Batch norm.
    let bnmeani = 1.0 / n * hprebn.sum(0, true);
    let bndiff = &hprebn - &bnmeani;
    let bndiff2 = bndiff.pow(2.0);
    let bnvar = 1.0 / (n - 1.0) * bndiff2.sum(0, true);
    let bnvar_inv = (&bnvar + EPS).pow(-0.5);
    let bnraw = &bndiff * &bnvar_inv;
    let hpreact = &p.bngain * &bnraw + &p.bnbias;

    let h = hpreact.tanh();
    let logits = h.matmul(&p.w2) + &p.b2;

    // Cross-entropy. The maximum is taken out so that exp cannot overflow.
    let (logit_maxes, winners) = logits.max_axis(1, true);
    let norm_logits = &logits - &logit_maxes;
    let counts = norm_logits.exp();
    let counts_sum = counts.sum(1, true);
    let counts_sum_inv = counts_sum.pow(-1.0);
    let probs = &counts * &counts_sum_inv;
    let logprobs = probs.log();
    let loss = -(logprobs.try_gather(1, &batch.targets.reshape([batch.size(), 1]))?.mean_all());

    let pass = Pass {
        emb,
        embcat,
        hprebn,
        bnmeani,
        bndiff,
        bndiff2,
        bnvar,
        bnvar_inv,
        bnraw,
        hpreact,
        h,
        logits,
        logit_maxes,
        winners,
        norm_logits,
        counts,
        counts_sum,
        counts_sum_inv,
        probs,
        logprobs,
        loss: loss.named("loss"),
    };
    pass.list().iter().for_each(|(name, t)| {
        t.named(name);
    });
    Ok(pass)
}

impl Pass {
    /// The 19 intermediates with their names, in the order in which they were computed.
    pub fn list(&self) -> [(&'static str, &Tensor); 19] {
        [
            ("emb", &self.emb),
            ("embcat", &self.embcat),
            ("hprebn", &self.hprebn),
            ("bnmeani", &self.bnmeani),
            ("bndiff", &self.bndiff),
            ("bndiff2", &self.bndiff2),
            ("bnvar", &self.bnvar),
            ("bnvar_inv", &self.bnvar_inv),
            ("bnraw", &self.bnraw),
            ("hpreact", &self.hpreact),
            ("h", &self.h),
            ("logits", &self.logits),
            ("logit_maxes", &self.logit_maxes),
            ("norm_logits", &self.norm_logits),
            ("counts", &self.counts),
            ("counts_sum", &self.counts_sum),
            ("counts_sum_inv", &self.counts_sum_inv),
            ("probs", &self.probs),
            ("logprobs", &self.logprobs),
        ]
    }
}
