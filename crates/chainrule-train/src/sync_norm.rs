//! Batch normalisation across ranks.

use std::sync::{Arc, Mutex, PoisonError};

use chainrule_core::autograd::{CustomContext, CustomOp, apply_custom};
use chainrule_core::tensor::log;

use crate::error::{Error, Result};
use crate::exchange::{Exchange, ExchangeError, RankSum, SumTree};
use crate::nn::{BatchNorm1d, BatchNormOptions, Field, Layer, Module};
use crate::rank_values::{layout, tensor, values};
use crate::tensor::{Tensor, no_grad};

/// A communication channel that the layers of a model share.
pub type SharedExchange = Arc<Mutex<Box<dyn Exchange>>>;

/// [`BatchNorm1d`] whose training statistics span the batches of all ranks, as PyTorch's
/// `SyncBatchNorm`:
///
/// ```text
/// mean = sum(x) / n,  var = sum((x - mean)²) / n,  y = gain (x - mean) / sqrt(var + eps) + bias
/// ```
///
/// with sums over all examples and positions of all ranks, whose batch sizes may differ. `x` is
/// `[n, features]` or `[n, features, ...]`. The gradient passes through the statistics to all
/// ranks: with the loss of its own examples on each rank, the sum of the ranks' gradients is that
/// of the summed loss, as in one process with the whole batch.
///
/// All ranks call the layer equally often and in the same order, forward and backward, since both
/// passes exchange sums: each rank has one micro-batch per step, in a hand-written loop or by
/// [`Trainer::with_shared_exchange`](crate::Trainer::with_shared_exchange).
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use chainrule::exchange::{Exchange, Threads};
/// use chainrule::nn::Layer;
/// use chainrule::train::{SharedExchange, SyncBatchNorm};
/// use chainrule::Tensor;
/// let handles: Vec<_> = Threads::group(2).into_iter().map(|rank| {
///     std::thread::spawn(move || {
///         let number = rank.rank() as f32;
///         let ranks: SharedExchange = Arc::new(Mutex::new(Box::new(rank)));
///         let norm = SyncBatchNorm::new(1, &ranks);
///         norm.forward(&Tensor::from([[number], [number + 2.0]])).to_vec::<f32>()
///     })
/// }).collect();
/// let all: Vec<f32> = handles.into_iter().flat_map(|rank| rank.join().unwrap()).collect();
/// let whole = chainrule::nn::BatchNorm1d::new(1);
/// let wanted = whole.forward(&Tensor::from([[0.0f32], [2.0], [1.0], [3.0]])).to_vec::<f32>();
/// assert!(all.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6));
/// ```
pub struct SyncBatchNorm {
    /// One rank's layer, with the parameters and the running statistics.
    pub norm: BatchNorm1d,
    options: BatchNormOptions,
    ranks: SharedExchange,
}

impl SyncBatchNorm {
    /// For this many features over these ranks, with eps 1e-5 and momentum 0.1.
    #[track_caller]
    pub fn new(features: usize, ranks: &SharedExchange) -> SyncBatchNorm {
        SyncBatchNorm::try_new(features, ranks).unwrap_or_else(|e| panic!("{e}"))
    }

    /// As [`SyncBatchNorm::new`], but returns the error: for no features.
    pub fn try_new(features: usize, ranks: &SharedExchange) -> Result<SyncBatchNorm> {
        SyncBatchNorm::try_with_options(features, ranks, BatchNormOptions::default())
    }

    /// As [`SyncBatchNorm::try_new`], with these constants. Errors as
    /// [`BatchNorm1d::try_with_options`] does.
    pub fn try_with_options(
        features: usize,
        ranks: &SharedExchange,
        options: BatchNormOptions,
    ) -> Result<SyncBatchNorm> {
        let norm = BatchNorm1d::try_with_options(features, options)?;
        Ok(SyncBatchNorm { norm, options, ranks: ranks.clone() })
    }

    fn is_training(&self) -> bool {
        let is_on = |(_, field): &(String, Field<'_>)| match field {
            Field::Training(switch) => switch.is_on(),
            _ => false,
        };
        self.norm.fields().iter().any(is_on)
    }

    /// All-reduced sums; their gradient is all-reduced too.
    fn over_ranks(&self, x: &Tensor) -> Result<Tensor> {
        apply_custom(RankTotal(self.ranks.clone()), &[x])
    }

    /// Normalises `x`, `[n, features, positions]`, with the statistics of all ranks.
    fn normalised(&self, x: &Tensor) -> Result<Tensor> {
        let features = x.shape()[1];
        let wide = x.try_to_dtype(x.dtype().computing())?;
        let sums = |t: &Tensor| t.try_sum([0, 2], false);
        let own = Tensor::full([1], (x.numel() / features) as f64, wide.dtype());
        let totals = self.over_ranks(&Tensor::try_cat(&[&sums(&wide)?, &own], 0)?)?;
        let n = totals.detach().try_narrow(0, features, 1)?;
        let mean = totals.try_narrow(0, 0, features)?.try_div(&n)?;
        let row = |t: &Tensor| t.try_reshape([1, features as i64, 1]);
        let apart = wide.try_sub(&row(&mean)?)?;
        let var = self.over_ranks(&sums(&apart.try_square()?)?)?.try_div(&n)?;
        let deviation = var.try_add(self.options.eps)?.try_sqrt()?;
        let mut y = apart.try_div(&row(&deviation)?)?;
        y = y.try_mul(&row(&self.norm.gain)?)?.try_add(&row(&self.norm.bias)?)?;
        no_grad(|| self.track(&mean, &var, &n))?;
        y.try_to_dtype(x.dtype())
    }

    /// Updates the running statistics from the batch, the variance unbiased.
    fn track(&self, mean: &Tensor, var: &Tensor, n: &Tensor) -> Result<()> {
        let (momentum, norm) = (self.options.momentum, &self.norm);
        let unbiased = var.detach().try_mul(n)?.try_div(&n.try_sub(1.0)?)?;
        for (running, new) in [(&norm.running_mean, mean), (&norm.running_var, &unbiased)] {
            let moved = new.detach().try_mul(momentum)?.try_to_dtype(running.dtype())?;
            running.try_set(&running.detach().try_mul(1.0 - momentum)?.try_add(&moved)?)?;
        }
        norm.num_batches_tracked.try_set(&norm.num_batches_tracked.detach().try_add(1)?)
    }
}

impl Module for SyncBatchNorm {
    fn fields(&self) -> Vec<(String, Field<'_>)> {
        self.norm.fields()
    }
}

impl Layer for SyncBatchNorm {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        let (shape, features) = (x.shape(), self.norm.gain.numel());
        if shape.rank() < 2 || shape[1] != features || shape.numel() == 0 {
            let why = format!("the input must be [n, {features}] or [n, {features}, ...]");
            return Err(Error::shape("SyncBatchNorm", &[&shape], &why));
        }
        let flat = x.try_reshape([shape[0] as i64, features as i64, -1])?;
        match self.is_training() {
            true => self.normalised(&flat)?,
            false => self.norm.try_forward(&flat)?,
        }
        .try_reshape(shape)
    }
}

/// All-reduces a tensor in a fixed order.
struct RankTotal(SharedExchange);

impl RankTotal {
    fn total(&self, x: &Tensor) -> Result<Tensor> {
        if log::is_on() {
            let why = "sums over ranks are no part of a program; run the step op by op";
            return Err(Error::argument("SyncBatchNorm", why));
        }
        let mut ranks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told = |e: ExchangeError| Error::argument("SyncBatchNorm", e.to_string());
        let tree = SumTree::new(ranks.size());
        let mut sum = RankSum::new(tree, &**ranks, vec![layout(x)]).map_err(told)?;
        sum.push(vec![values(x)?]).map_err(told)?;
        let total = sum.all_reduce(&mut **ranks).map_err(told)?;
        match &total[..] {
            [total] => tensor(total, x),
            _ => Err(Error::argument("SyncBatchNorm", "a sum of another length")),
        }
    }
}

impl CustomOp for RankTotal {
    fn name(&self) -> &str {
        "rank_total"
    }

    fn forward(&self, inputs: &[Tensor]) -> Result<Tensor> {
        self.total(&inputs[0])
    }

    fn backward(&self, _: &CustomContext, cotangent: &Tensor) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(self.total(cotangent)?)])
    }
}

#[cfg(test)]
mod tests;
