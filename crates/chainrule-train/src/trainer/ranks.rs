//! A step of several micro-batches, on one rank or shared out among many.
//!
//! The gradients of the micro-batches are added up in the order of a tree over their numbers, which
//! is the same whatever the ranks, so that their number changes no bit. Each micro-batch begins
//! with the buffers of the step's start and with generators seeded by its number; the running
//! statistics after the step are the mean of those that the micro-batches give.

use chainrule_exchange::{Exchange, Sum, Threads, Tree, Values, agree};

use super::engine::{Done, update};
use super::{Rest, TrainerOptions};
use crate::Task;
use crate::data::Batch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::nn::Module;
use crate::optim::Optimizer;
use crate::rng::Generator;
use crate::tensor::Tensor;

/// The ranks of a training, and this one's place among them.
pub(crate) struct Ranks {
    exchange: Box<dyn Exchange>,
    /// Names and values that all ranks must have alike.
    facts: Vec<(String, String)>,
    /// Whether this rank was asked to stop.
    pub asked_to_stop: bool,
    /// Whether any rank was, in a step that is done.
    pub stopped: bool,
}

impl Ranks {
    /// This process alone.
    pub fn alone() -> Option<Ranks> {
        let exchange: Box<dyn Exchange> = Box::new(Threads::group(1).pop()?);
        Some(Ranks::new(exchange, Vec::new()))
    }

    pub fn new(exchange: Box<dyn Exchange>, facts: Vec<(String, String)>) -> Ranks {
        Ranks { exchange, facts, asked_to_stop: false, stopped: false }
    }

    pub fn are_many(&self) -> bool {
        self.exchange.size() > 1
    }

    /// An error unless all ranks train the same model with the same options from the same state.
    pub fn agree(&mut self, task: &dyn Task, step: u64, options: &TrainerOptions) -> Result<()> {
        if !self.are_many() {
            return Ok(());
        }
        let (size, micro_batches) = (self.exchange.size(), options.accumulate);
        if micro_batches < size {
            let why = format!(
                "{size} ranks need {size} micro-batches a step at least, and accumulate is \
                 {micro_batches}; start fewer ranks, or accumulate more"
            );
            return Err(Error::argument("Trainer", why));
        }
        let state = task.module().state_dict();
        let shapes: Vec<String> =
            state.iter().map(|(name, t)| format!("{name} {} {}", t.dtype(), t.shape())).collect();
        let mut own = vec![
            ("version".to_string(), env!("CARGO_PKG_VERSION").to_string()),
            ("model".to_string(), shapes.join(", ")),
            ("number of micro-batches".to_string(), micro_batches.to_string()),
            ("number of steps".to_string(), options.steps.to_string()),
            ("step to go on from".to_string(), step.to_string()),
        ];
        own.extend(self.facts.iter().cloned());
        own.push(("set of first weights".to_string(), format!("{:016x}", digest(state.values())?)));
        let facts: Vec<(&str, &str)> = own.iter().map(|(n, v)| (&n[..], &v[..])).collect();
        agree(&mut *self.exchange, &facts).map_err(error)
    }

    /// Tells the other ranks why this one ends.
    pub fn abort(&mut self, why: &str) {
        self.exchange.abort(why);
    }
}

fn error(e: chainrule_exchange::ExchangeError) -> Error {
    Error::argument("exchange", e.to_string())
}

/// A number that differs where the tensors' bits do, but for one chance in 2^64 (FNV-1a).
fn digest<'t>(tensors: impl Iterator<Item = &'t Tensor>) -> Result<u64> {
    let mut sum = 0xcbf2_9ce4_8422_2325u64;
    for tensor in tensors {
        for x in tensor.to_f64_vec() {
            for byte in x.to_bits().to_le_bytes() {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    Ok(sum)
}

/// The mean loss of the step's micro-batches, its mean gradients, and the update.
pub(crate) fn spread(
    task: &dyn Task,
    optimizer: &mut dyn Optimizer,
    rest: &mut Rest,
) -> Result<Done> {
    let Some(mut ranks) = rest.ranks.take() else {
        return Err(Error::argument("Trainer", "no exchange"));
    };
    let done = spread_over(task, optimizer, rest, &mut ranks);
    rest.ranks = Some(ranks);
    done
}

fn spread_over(
    task: &dyn Task,
    optimizer: &mut dyn Optimizer,
    rest: &mut Rest,
    ranks: &mut Ranks,
) -> Result<Done> {
    let n = rest.options.accumulate;
    let mut sum = Sum::new(Tree::new(n), &*ranks.exchange).map_err(error)?;
    let share = sum.share();
    let batches = rest.draw_of(n, share.clone())?;
    let start = Start::of(task.module())?;
    let parameters = optimizer.parameters().to_vec();
    for (number, batch) in share.zip(&batches) {
        start.begin(task.module(), rest.place.step, number)?;
        optimizer.zero_grad();
        rest.due().into_iter().for_each(|watch| watch.labels(batch));
        let loss = task.gradients(batch)?.try_item()?;
        let stop = f64::from(u8::from(ranks.asked_to_stop));
        let mut numbers = vec![loss, task.count(batch) as f64, stop];
        let mut part = vec![];
        for p in &parameters {
            let grad = p.grad();
            numbers.push(f64::from(u8::from(grad.is_some())));
            part.push(match grad {
                Some(grad) => values(&grad)?,
                None => zeros(p),
            });
        }
        for (buffer, _) in &start.averaged {
            part.push(values(buffer)?);
        }
        part.push(Values::F64(numbers));
        sum.push(part).map_err(error)?;
    }
    let mut total = sum.all_reduce(&mut *ranks.exchange).map_err(error)?;
    let Some(Values::F64(numbers)) = total.pop() else {
        return Err(Error::argument("Trainer", "a sum without its numbers"));
    };
    ranks.stopped |= numbers[2] > 0.0;
    let done = Done { loss: numbers[0] / n as f64, examples: numbers[1] as u64 };
    start.end(task.module())?;
    if !done.loss.is_finite() {
        return Ok(done);
    }
    let mut total = total.into_iter();
    for ((p, grad), used) in parameters.iter().zip(&mut total).zip(&numbers[3..]) {
        let mean = if *used > 0.0 { Some(mean(grad, p, n)?) } else { None };
        p.set_grad(mean)?;
    }
    for ((buffer, _), value) in start.averaged.iter().zip(total) {
        buffer.try_set(&mean(value, buffer, n)?)?;
    }
    update(task, optimizer, rest)?;
    Ok(done)
}

/// State of a module at the start of a step, from which each micro-batch begins.
struct Start {
    /// Buffers of real numbers, with their values.
    averaged: Vec<(Tensor, Tensor)>,
    /// Counters, which all micro-batches move alike.
    counters: Vec<(Tensor, Tensor)>,
    generators: std::collections::BTreeMap<String, crate::rng::GeneratorState>,
}

impl Start {
    fn of(module: &dyn Module) -> Result<Start> {
        let buffers = module.named_buffers().into_iter().map(|(_, b)| (b.clone(), b.detach()));
        let (averaged, counters) = buffers.partition(|(b, _)| b.dtype().is_float());
        Ok(Start { averaged, counters, generators: module.generator_states() })
    }

    /// The module as at the start, with generators of this micro-batch's own.
    fn begin(&self, module: &dyn Module, step: u64, number: usize) -> Result<()> {
        for (buffer, value) in self.averaged.iter().chain(&self.counters) {
            buffer.try_set(value)?;
        }
        let own = self.generators.iter().enumerate().map(|(i, (name, state))| {
            let mut generator = Generator::manual_seed(0);
            generator.set_state(state);
            let base = u64::from(generator.random_u32());
            let seed = mixed(mixed(mixed(base ^ (i as u64) << 32) ^ step) ^ number as u64);
            (name.clone(), Generator::manual_seed(seed).state())
        });
        module.set_generator_states(&own.collect())
    }

    /// The generators after the step: the next numbers of those at its start.
    fn end(&self, module: &dyn Module) -> Result<()> {
        let next = self.generators.iter().map(|(name, state)| {
            let mut generator = Generator::manual_seed(0);
            generator.set_state(state);
            generator.random_u32();
            (name.clone(), generator.state())
        });
        module.set_generator_states(&next.collect())
    }
}

/// A bijection that spreads each bit over all (the finaliser of SplitMix64).
fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn values(t: &Tensor) -> Result<Values> {
    Ok(match t.dtype() {
        DType::F64 => Values::F64(t.try_to_vec()?),
        DType::F32 => Values::F32(t.try_to_vec()?),
        // Halves are added up in f32.
        _ => Values::F32(t.try_to_dtype(DType::F32)?.try_to_vec()?),
    })
}

fn zeros(like: &Tensor) -> Values {
    match like.dtype() {
        DType::F64 => Values::F64(vec![0.0; like.numel()]),
        _ => Values::F32(vec![0.0; like.numel()]),
    }
}

fn mean(total: Values, like: &Tensor, n: usize) -> Result<Tensor> {
    let total = match total {
        Values::F32(x) => Tensor::try_from_slice(&x, like.shape())?,
        Values::F64(x) => Tensor::try_from_slice(&x, like.shape())?,
    };
    total.try_div(n as f64)?.try_to_dtype(like.dtype())
}

impl Rest {
    /// The own ones of the step's batches, the last of which is kept.
    fn draw_of(&mut self, of: usize, own: std::ops::Range<usize>) -> Result<Vec<Batch>> {
        if self.options.overfit_batch {
            let batch = self.draw()?;
            return Ok(vec![batch; own.len()]);
        }
        let batches = self.batches.next_of(of, own)?;
        self.batch = batches.last().cloned();
        Ok(batches)
    }
}

#[cfg(test)]
mod tests;
