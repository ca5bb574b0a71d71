//! Steps of several micro-batches, on one rank or distributed over many.
//!
//! Gradients of micro-batches are summed along a tree over their indices, the same for any number
//! of ranks, so that this number changes no bit. Each micro-batch starts with the buffers of the
//! step's start and with generators seeded by its index; the running statistics after the step are
//! the mean over micro-batches.

mod early;
mod evaluate;
mod key;
mod programs;
mod shards;
mod updates;
mod verdicts;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chainrule_exchange::{Exchange, RankSum, SumTree, Threads, Values, ValuesLayout, agree};

use self::early::Early;
pub(crate) use self::key::ProgramKey;
pub(crate) use self::programs::Programs;
pub(crate) use self::verdicts::Verdicts;

use super::engine::{Done, update};
use super::{Rest, TrainerOptions};
use crate::Task;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::nn::{Module, StateDict};
use crate::optim::Optimizer;
use crate::rank_values::{self, facts_of_the_program, quotient, values};
use crate::rng::Generator;
use crate::sync_norm::SharedExchange;
use crate::tensor::Tensor;

/// The ranks of a run, and this one's place among them.
pub(crate) struct Ranks {
    pub exchange: SharedExchange,
    size: usize,
    /// Named values that must be equal on all ranks.
    facts: Vec<(String, String)>,
    /// Whether layers of the model exchange sums, too.
    in_layers: bool,
    /// Whether this rank was asked to stop.
    pub asked_to_stop: bool,
    /// Whether any rank was, as of the last step.
    pub stopped: bool,
    /// Whether a rank asked for all gradients of the last step.
    wanted: bool,
    /// Whether gradients are sent during the backward pass; unknown before the first step.
    early: Option<bool>,
    /// Optimizer state of all ranks after the last step, on rank 0 if it was gathered.
    pub whole: Option<StateDict>,
    /// Verdicts on programs of micro-batches.
    pub verdicts: Verdicts,
}

impl Ranks {
    /// A single process.
    pub fn alone() -> Option<Ranks> {
        let exchange: Box<dyn Exchange> = Box::new(Threads::group(1).pop()?);
        Some(Ranks::new(Arc::new(Mutex::new(exchange)), Vec::new(), false))
    }

    pub fn new(exchange: SharedExchange, facts: Vec<(String, String)>, in_layers: bool) -> Ranks {
        let size = lock(&exchange).size();
        Ranks {
            size,
            exchange,
            facts,
            in_layers,
            asked_to_stop: false,
            stopped: false,
            wanted: false,
            // A bucket in flight would block the sums of the layers.
            early: in_layers.then_some(false),
            whole: None,
            verdicts: Verdicts::default(),
        }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn are_many(&self) -> bool {
        self.size > 1
    }

    /// An error unless all ranks train the same model with the same options from the same state.
    pub fn agree(&mut self, task: &dyn Task, step: u64, options: &TrainerOptions) -> Result<()> {
        if !self.are_many() {
            return Ok(());
        }
        let (size, micro_batches) = (self.size, options.accumulate);
        if micro_batches < size {
            let why = format!(
                "{size} ranks need {size} micro-batches a step at least, and accumulate is \
                 {micro_batches}; start fewer ranks, or accumulate more"
            );
            return Err(Error::argument("Trainer", why));
        }
        if self.in_layers && (micro_batches != size || options.compiled) {
            let why = match options.compiled {
                true => {
                    "layers that exchange sums are no part of a program; let the steps be eager"
                }
                false => "layers that exchange sums need a rank for each micro-batch",
            };
            let why = format!("{why} ({size} ranks, {micro_batches} micro-batches)");
            return Err(Error::argument("Trainer", why));
        }
        let state = task.module().state_dict();
        let shapes: Vec<String> =
            state.iter().map(|(name, t)| format!("{name} {} {}", t.dtype(), t.shape())).collect();
        let mut own = vec![
            ("model".to_string(), shapes.join(", ")),
            ("number of micro-batches".to_string(), micro_batches.to_string()),
            ("number of steps".to_string(), options.steps.to_string()),
            ("number of steps between measurements".to_string(), interval(options.eval_every)),
            ("number of steps between checkpoints".to_string(), interval(options.save_every)),
            ("way to hold the optimizer's state".to_string(), options.sharded.to_string()),
            ("dtype of autocast".to_string(), autocast(options)),
            ("step to go on from".to_string(), step.to_string()),
        ];
        let program = facts_of_the_program().map(|(name, value)| (name.to_string(), value));
        own.splice(0..0, program);
        own.extend(self.facts.iter().cloned());
        own.push(("set of first weights".to_string(), format!("{:016x}", digest(state.values()))));
        let facts: Vec<(&str, &str)> = own.iter().map(|(n, v)| (&n[..], &v[..])).collect();
        agree(&mut **lock(&self.exchange), &facts).map_err(error)
    }

    /// Reports to the other ranks why this one ends.
    pub fn abort(&mut self, why: &str) {
        lock(&self.exchange).abort(why);
    }
}

fn interval(steps: u64) -> String {
    match steps {
        0 => "none but at the end".into(),
        TrainerOptions::NEVER => "none".into(),
        steps => steps.to_string(),
    }
}

/// Whether the processor has native bf16 products.
fn multiplies_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use chainrule_core::kernels::simd::{Level, level};
        level() == Level::Avx512 && is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Dtype of autocast, marked if native bf16 products round differently.
fn autocast(options: &TrainerOptions) -> String {
    let dtype = options.autocast.map_or("none".to_string(), |dtype| dtype.to_string());
    let by = match options.autocast.is_some() && multiplies_bf16() {
        true => " with the processor's own products",
        false => "",
    };
    format!("{dtype}{by}")
}

pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn error(e: chainrule_exchange::ExchangeError) -> Error {
    Error::argument("exchange", e.to_string())
}

/// Hash of bytes (FNV-1a, 64 bits).
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Hash of the tensors' bits.
fn digest<'t>(tensors: impl Iterator<Item = &'t Tensor>) -> u64 {
    let mut sum = Fnv::new();
    for tensor in tensors {
        tensor.to_f64_vec().into_iter().for_each(|x| sum.take(&x.to_bits().to_le_bytes()));
    }
    sum.0
}

/// Mean loss and gradients of the step's micro-batches, and the update.
pub(crate) fn spread(
    task: &dyn Task,
    optimizer: &mut dyn Optimizer,
    rest: &mut Rest,
    mut programs: Option<&mut Programs<'_>>,
) -> Result<Done> {
    let Some(mut ranks) = rest.ranks.take() else {
        return Err(Error::argument("Trainer", "no exchange"));
    };
    ranks.whole = None;
    let done = spread_over(task, optimizer, rest, &mut ranks, &mut programs);
    rest.ranks = Some(ranks);
    done
}

fn spread_over(
    task: &dyn Task,
    optimizer: &mut dyn Optimizer,
    rest: &mut Rest,
    ranks: &mut Ranks,
    programs: &mut Option<&mut Programs<'_>>,
) -> Result<Done> {
    let n = rest.options.accumulate;
    let start = Start::of(task.module())?;
    let parts = Parts::of(&start, optimizer.parameters().to_vec());
    let share = SumTree::new(n).share(lock(&ranks.exchange).rank(), ranks.size);
    let batches = rest.draw_of(n, share)?;
    if let Some(watch) = rest.due() {
        batches.iter().for_each(|batch| watch.labels(batch));
    }
    // Runs twice if a program is rejected.
    loop {
        let mut step =
            Step { task, parts: &parts, owners: Vec::new(), n, start: &start, norms: Vec::new() };
        let sum = step.micro_batches(&batches, optimizer, rest, ranks, programs)?;
        let done = match rest.options.sharded {
            true => step.sharded(optimizer, rest, ranks, sum, programs)?,
            false => step.whole(optimizer, rest, ranks, sum, programs)?,
        };
        if let Some(done) = done {
            return Ok(done);
        }
    }
}

/// A step of several micro-batches.
struct Step<'s> {
    task: &'s dyn Task,
    parts: &'s Parts,
    /// Rank that sums each tensor of a part.
    owners: Vec<usize>,
    /// Number of micro-batches.
    n: usize,
    start: &'s Start,
    /// Squared gradient norms of this rank's micro-batches, if the step is monitored.
    norms: Vec<f64>,
}

impl Step<'_> {
    /// Sums over this rank's micro-batches.
    fn micro_batches(
        &mut self,
        batches: &[Batch],
        optimizer: &mut dyn Optimizer,
        rest: &mut Rest,
        ranks: &mut Ranks,
        programs: &mut Option<&mut Programs<'_>>,
    ) -> Result<RankSum> {
        let (task, parts) = (self.task, self.parts);
        let sum = {
            let exchange = lock(&ranks.exchange);
            RankSum::new(SumTree::new(self.n), &**exchange, parts.layouts()).map_err(error)?
        };
        self.owners = sum.owners().to_vec();
        let share = sum.share();
        let last = share.end - 1;
        let sum = Arc::new(Mutex::new(sum));
        for (number, batch) in share.zip(batches) {
            self.start.begin(task.module(), rest.place.step, number)?;
            optimizer.zero_grad();
            let leaves = number == last && ranks.are_many();
            let (loss, left) = match programs {
                Some(programs) => {
                    let way = leaves.then(|| (sum.clone(), ranks.exchange.clone()));
                    programs.gradients(parts, number, batch, way)?
                }
                None => {
                    let early = match leaves && task.has_plain_gradients() {
                        true => Early::begin(parts, &sum, ranks)?,
                        false => Early::none(),
                    };
                    let loss = task.gradients(batch)?.try_item()?;
                    (loss, early.end(parts, ranks)?)
                }
            };
            if rest.due().is_some() {
                self.norms.push(parts.norm().powi(2));
            }
            let fresh = programs.as_ref().is_some_and(|programs| programs.are_fresh());
            let told = [ranks.asked_to_stop, rest.due().is_some(), fresh];
            let told = told.map(|is| f64::from(u8::from(is)));
            let numbers = [loss, task.count(batch) as f64, told[0], told[1], told[2]];
            parts.push(&mut lock(&sum), &numbers, &left)?;
        }
        Ok(std::mem::replace(&mut *lock(&sum), RankSum::empty()))
    }

    /// The update of all parameters on all ranks; `None` if the step must be repeated.
    fn whole(
        &self,
        optimizer: &mut dyn Optimizer,
        rest: &mut Rest,
        ranks: &mut Ranks,
        sum: RankSum,
        programs: &mut Option<&mut Programs<'_>>,
    ) -> Result<Option<Done>> {
        let exchange = ranks.exchange.clone();
        let mut exchange = lock(&exchange);
        let mut totals = sum.all_reduce(&mut **exchange).map_err(error)?;
        let gradients = totals.split_off(self.parts.first_parameter());
        let told = self.told(rest.place.step, ranks, &mut **exchange, totals, programs)?;
        drop(exchange);
        let Some((done, used)) = told else { return Ok(None) };
        if !done.loss.is_finite() {
            return Ok(Some(done));
        }
        for ((p, total), used) in self.parts.parameters.iter().zip(gradients).zip(&used) {
            p.set_grad(if *used { Some(quotient(&total, self.n, p)?) } else { None })?;
        }
        // The noise is known only to a rank with all micro-batches.
        if let (Some(watch), true) = (rest.due(), self.norms.len() == self.n) {
            let each = self.norms.iter().sum::<f64>() / self.n as f64;
            let mean = self.parts.norm().powi(2);
            watch.monitor.gradient_noise((1.0 / self.n as f64, each), (1.0, mean));
        }
        let parameters = &self.parts.parameters;
        update(self.task, rest, || match programs {
            Some(programs) => programs.updates.step(optimizer, parameters),
            None => optimizer.step(),
        })?;
        Ok(Some(done))
    }

    /// Reduces numbers and buffers: the step's outcome, and whether each parameter has a gradient.
    /// Sets buffers and generators to those after the step. `None` if a program was rejected, so
    /// that the step must be repeated.
    fn told(
        &self,
        step: u64,
        ranks: &mut Ranks,
        exchange: &mut dyn Exchange,
        mut totals: Vec<Values>,
        programs: &mut Option<&mut Programs<'_>>,
    ) -> Result<Option<(Done, Vec<bool>)>> {
        let numbers = match totals.first_mut().map(|first| std::mem::replace(first, NOTHING)) {
            Some(Values::F64(numbers)) if numbers.len() >= NUMBERS => numbers,
            _ => return Err(Error::argument("Trainer", "a sum without its numbers")),
        };
        ranks.stopped |= numbers[STOP] > 0.0;
        ranks.wanted = numbers[WANTS] > 0.0;
        if let (Some(programs), true) = (programs, numbers[FRESH] > 0.0)
            && !programs.settle(self.start, step, exchange)?
        {
            return Ok(None);
        }
        let done = Done { loss: numbers[0] / self.n as f64, examples: numbers[1] as u64 };
        self.start.end(self.task.module())?;
        if done.loss.is_finite() {
            for (buffer, value) in self.parts.buffers.iter().zip(totals.into_iter().skip(1)) {
                buffer.try_set(&quotient(&value, self.n, buffer)?)?;
            }
        }
        Ok(Some((done, numbers[NUMBERS..].iter().map(|&used| used > 0.0).collect())))
    }
}

const NOTHING: Values = Values::F64(Vec::new());

/// Header of a part: loss, count of examples, a request to stop, a request for all gradients, and
/// whether a program is new. A flag per parameter follows, for whether it has a gradient.
const NUMBERS: usize = 5;
const STOP: usize = 2;
const WANTS: usize = 3;
const FRESH: usize = 4;

/// Tensors of a micro-batch to be summed: header, buffers, gradients.
struct Parts {
    buffers: Vec<Tensor>,
    parameters: Vec<Tensor>,
}

impl Parts {
    fn of(start: &Start, parameters: Vec<Tensor>) -> Parts {
        let buffers = start.averaged.iter().map(|(buffer, _)| buffer.clone()).collect();
        Parts { buffers, parameters }
    }

    /// Norm of all gradients.
    fn norm(&self) -> f64 {
        Monitor::norm(&self.parameters.iter().filter_map(Tensor::grad).collect::<Vec<_>>())
    }

    fn first_parameter(&self) -> usize {
        1 + self.buffers.len()
    }

    fn layouts(&self) -> Vec<ValuesLayout> {
        let tensors = self.buffers.iter().chain(&self.parameters).map(rank_values::layout);
        let numbers = ValuesLayout::F64(NUMBERS + self.parameters.len());
        std::iter::once(numbers).chain(tensors).collect()
    }

    /// Adds what was not sent early.
    fn push(&self, sum: &mut RankSum, numbers: &[f64], left: &[bool]) -> Result<()> {
        let mut numbers = numbers.to_vec();
        for (i, p) in self.parameters.iter().enumerate() {
            let grad = p.grad();
            numbers.push(f64::from(u8::from(grad.is_some())));
            if left.get(i) == Some(&true) {
                continue;
            }
            let value = match grad {
                Some(grad) => values(&grad)?,
                None => rank_values::layout(p).zeros(),
            };
            sum.push_one(self.first_parameter() + i, value).map_err(error)?;
        }
        for (i, buffer) in self.buffers.iter().enumerate() {
            sum.push_one(1 + i, values(buffer)?).map_err(error)?;
        }
        sum.push_one(0, Values::F64(numbers)).map_err(error)
    }
}

/// Snapshot of a module at the start of a step, to which each micro-batch resets it.
struct Start {
    /// Float buffers, with their values.
    averaged: Vec<(Tensor, Tensor)>,
    /// Counters, which advance equally in all micro-batches.
    counters: Vec<(Tensor, Tensor)>,
    generators: std::collections::BTreeMap<String, crate::rng::GeneratorState>,
}

impl Start {
    fn of(module: &dyn Module) -> Result<Start> {
        let buffers = module.named_buffers().into_iter().map(|(_, b)| (b.clone(), b.detach()));
        let (averaged, counters) = buffers.partition(|(b, _)| b.dtype().is_float());
        Ok(Start { averaged, counters, generators: module.generator_states() })
    }

    /// Resets the module, with generators seeded for this micro-batch.
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

    /// Generators after the step: the next state of those at its start.
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

/// The finaliser of SplitMix64, a bijection that spreads each bit over all.
fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Rest {
    /// This rank's batches of the step, the last of which is kept.
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
