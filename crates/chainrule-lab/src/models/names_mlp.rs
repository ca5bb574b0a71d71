//! The character-level names model: embedding, hidden layer with batch norm and tanh, output layer.

use crate::dtype::DType;
use crate::error::{Error, Result, raise};
use crate::nn::{Module, Training};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// The sizes of a [`NamesMlp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamesMlpConfig {
    /// The number of symbols.
    pub symbols: usize,
    /// Symbols that the model sees.
    pub context: usize,
    /// The width of a symbol's vector.
    pub embedding: usize,
    /// The number of hidden units.
    pub hidden: usize,
}

impl Default for NamesMlpConfig {
    /// 27 symbols, context 3, embedding 10, hidden 200: 12,297 parameters.
    fn default() -> Self {
        NamesMlpConfig { symbols: 27, context: 3, embedding: 10, hidden: 200 }
    }
}

/// The eps added to a variance before its root is taken.
const EPS: f64 = 1e-5;

/// Predicts the next symbol of a name from the last few (Bengio et al. 2003, with batch norm).
///
/// `hprebn = C[x] W1 + b1`; `hpreact = gain * (hprebn - mean) / sqrt(var + eps) + bias` with the
/// batch's mean and variance (n - 1); `h = tanh(hpreact)`; `logits = h W2 + b2`. In evaluation mode
/// mean and variance are those of the last [`NamesMlp::calibrate`]. The intermediates bear these
/// names.
///
/// ```
/// use chainrule::nn::Module;
/// use chainrule_lab::models::{NamesMlp, NamesMlpConfig};
/// use chainrule::{Generator, Tensor};
/// let model = NamesMlp::new(NamesMlpConfig::default(), &mut Generator::manual_seed(2147483647));
/// assert_eq!(model.parameter_count(), 12297);
/// let logits = model.forward(&Tensor::from([[0i64, 0, 5], [0, 5, 13]]));
/// assert_eq!(logits.shape(), [2, 27]);
/// ```
#[derive(Debug, Module)]
pub struct NamesMlp {
    /// A vector for each symbol.
    #[module(name = "C")]
    pub embedding: Tensor,
    /// The weight of the hidden layer, `[context * embedding, hidden]`.
    #[module(name = "W1")]
    pub w1: Tensor,
    /// The bias of the hidden layer. Batch norm takes it out again, so its gradient is 0 but for
    /// rounding.
    pub b1: Tensor,
    /// The weight of the output layer, `[hidden, symbols]`.
    #[module(name = "W2")]
    pub w2: Tensor,
    /// The bias of the output layer.
    pub b2: Tensor,
    /// The gain of batch norm, `[1, hidden]`.
    pub bngain: Tensor,
    /// The bias of batch norm, `[1, hidden]`.
    pub bnbias: Tensor,
    /// The mean for evaluation, `[1, hidden]`.
    #[module(buffer)]
    pub bnmean: Tensor,
    /// The variance for evaluation, `[1, hidden]`.
    #[module(buffer)]
    pub bnvar: Tensor,
    #[module(skip)]
    config: NamesMlpConfig,
    /// Whether batch norm is written in primitive ops rather than as the fused one.
    #[module(skip)]
    primitive: bool,
    training: Training,
}

impl NamesMlp {
    /// A model with random weights: C, W1, b1, W2, b2, gain and bias of batch norm are drawn in
    /// this order.
    #[track_caller]
    pub fn new(config: NamesMlpConfig, generator: &mut Generator) -> NamesMlp {
        match NamesMlp::try_new(config, generator) {
            Ok(model) => model,
            Err(e) => raise(e),
        }
    }

    /// Like [`NamesMlp::new`], but returns the error.
    pub fn try_new(config: NamesMlpConfig, generator: &mut Generator) -> Result<NamesMlp> {
        let NamesMlpConfig { symbols, context, embedding, hidden } = config;
        if [symbols, context, embedding, hidden].contains(&0) {
            return Err(Error::argument(
                "NamesMlp",
                format!("every size must be 1 at least, got {config:?}"),
            ));
        }
        let fan_in = context * embedding;
        let mut randn =
            |rows: usize, cols: usize| Tensor::try_randn([rows, cols], DType::F32, generator);
        let vectors = randn(symbols, embedding)?;
        // The gain of tanh over the root of fan-in, so that the hidden units start neither dead nor
        // saturated.
        let w1 = randn(fan_in, hidden)?.try_mul(5.0 / 3.0)?.try_div((fan_in as f64).sqrt())?;
        let b1 = randn(1, hidden)?.try_mul(0.1)?.try_reshape(hidden)?;
        let w2 = randn(hidden, symbols)?.try_mul(0.1)?;
        let b2 = randn(1, symbols)?.try_mul(0.1)?.try_reshape(symbols)?;
        let bngain = randn(1, hidden)?.try_mul(0.1)?.try_add(1.0)?;
        let bnbias = randn(1, hidden)?.try_mul(0.1)?;
        Ok(NamesMlp {
            embedding: vectors.try_parameter()?,
            w1: w1.try_parameter()?,
            b1: b1.try_parameter()?,
            w2: w2.try_parameter()?,
            b2: b2.try_parameter()?,
            bngain: bngain.try_parameter()?,
            bnbias: bnbias.try_parameter()?,
            bnmean: Tensor::zeros([1, hidden]).buffer(),
            bnvar: Tensor::ones([1, hidden]).buffer(),
            config,
            primitive: false,
            training: Training::default(),
        })
    }

    /// Writes batch norm in primitive ops instead of the fused one: slower, and every step of it
    /// can be looked at.
    pub fn with_primitive_batch_norm(mut self) -> NamesMlp {
        self.primitive = true;
        self
    }

    /// The sizes.
    pub fn config(&self) -> NamesMlpConfig {
        self.config
    }

    /// The logits `[n, symbols]` of contexts `[n, context]`.
    #[track_caller]
    pub fn forward(&self, contexts: &Tensor) -> Tensor {
        match self.try_forward(contexts) {
            Ok(logits) => logits,
            Err(e) => raise(e),
        }
    }

    /// Like [`NamesMlp::forward`], but returns the error.
    pub fn try_forward(&self, contexts: &Tensor) -> Result<Tensor> {
        let hprebn = self.try_hidden(contexts)?;
        let hpreact = if !self.training.is_on() {
            self.normalise(&hprebn, &self.bnmean, &self.bnvar)?
        } else if self.primitive {
            self.normalise(&hprebn, &hprebn.try_mean(0, true)?, &hprebn.try_var(0, 1, true)?)?
        } else {
            let (gain, bias) = (self.bngain.try_squeeze(0)?, self.bnbias.try_squeeze(0)?);
            hprebn.try_batch_norm(Some(&gain), Some(&bias), EPS, 1)?
        };
        let h = hpreact.named("hpreact").try_tanh()?.named("h");
        Ok(h.try_matmul(&self.w2)?.try_add(&self.b2)?.named("logits"))
    }

    /// The hidden layer before batch norm.
    fn try_hidden(&self, contexts: &Tensor) -> Result<Tensor> {
        let width = (self.config.context * self.config.embedding) as i64;
        let emb = self.embedding.try_embedding(contexts)?.named("emb");
        let embcat = emb.try_reshape([-1, width])?.named("embcat");
        Ok(embcat.try_matmul(&self.w1)?.try_add(&self.b1)?.named("hprebn"))
    }

    fn normalise(&self, x: &Tensor, mean: &Tensor, var: &Tensor) -> Result<Tensor> {
        let centred = self.bngain.try_mul(x.try_sub(mean)?)?;
        centred.try_mul(var.try_add(EPS)?.try_pow(-0.5)?)?.try_add(&self.bnbias)
    }

    /// Takes mean and variance of the hidden layer over these contexts (the whole training set) for
    /// evaluation.
    pub fn calibrate(&self, contexts: &Tensor) -> Result<()> {
        let hidden = crate::tensor::no_grad(|| self.try_hidden(contexts))?;
        self.bnmean.try_set(&hidden.try_mean(0, true)?)?;
        self.bnvar.try_set(&hidden.try_var(0, 1, true)?)
    }

    /// As [`NamesMlp::calibrate`], but with `rows` contexts at a time: the memory does not depend
    /// on how many there are.
    ///
    /// Sums are taken in f64, part by part, so the result does not depend on the size of the parts
    /// but for the last digit. With fewer than two contexts there is no variance: an error.
    pub fn calibrate_in_parts(&self, contexts: &Tensor, rows: usize) -> Result<()> {
        let n = contexts.shape().first().copied().unwrap_or(0);
        if n < 2 || rows == 0 {
            let why =
                format!("needs two contexts and parts of one row at least, got {n} and {rows}");
            return Err(Error::argument("calibrate_in_parts", why));
        }
        let sum = |each: &dyn Fn(Tensor) -> Result<Tensor>| -> Result<Vec<f64>> {
            let mut sums = vec![0.0; self.config.hidden];
            for start in (0..n).step_by(rows) {
                let part = contexts.try_narrow(0, start, rows.min(n - start))?;
                let part = each(self.try_hidden(&part)?)?.try_sum(0, false)?;
                sums.iter_mut().zip(part.to_f64_vec()).for_each(|(s, x)| *s += x);
            }
            Ok(sums)
        };
        let over = |sums: Vec<f64>, count: usize| {
            let all: Vec<f32> = sums.iter().map(|s| (s / count as f64) as f32).collect();
            Tensor::try_from_slice(&all, [1, self.config.hidden])
        };
        crate::tensor::no_grad(|| {
            let mean = over(sum(&|hidden| Ok(hidden))?, n)?;
            let square = |hidden: Tensor| {
                let apart = hidden.try_sub(&mean)?;
                apart.try_mul(&apart)
            };
            let var = over(sum(&square)?, n - 1)?;
            self.bnmean.try_set(&mean)?;
            self.bnvar.try_set(&var)
        })
    }
}
