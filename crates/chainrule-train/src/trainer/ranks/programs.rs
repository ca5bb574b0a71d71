//! Loss and gradients of a micro-batch as a program.
//!
//! A program is trusted after one of its runs was compared with the plain one on the same batch.
//! That is the run of the first micro-batch of its shapes, by step and index, for any number of
//! ranks, since the outcome affects bits. In that step the program computes, then the rank with
//! that micro-batch compares; on a mismatch all ranks switch to the plain program and repeat the
//! step.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use chainrule_exchange::{Exchange, RankSum};

use super::updates::Updates;
use super::verdicts::Verdicts;
use super::{Parts, ProgramKey, Start, error, lock};
use crate::Task;
use crate::data::Batch;
use crate::error::{Error, Result};
use crate::program::{Passes, Program, Validated};
use crate::rank_values::values;
use crate::tensor::Tensor;

/// Programs of a run's micro-batches, one per set of shapes.
pub(crate) struct Programs<'e> {
    task: &'e dyn Task,
    passes: Passes,
    key: ProgramKey<'e>,
    made: BTreeMap<u64, MicroProgram>,
    verdicts: Verdicts,
    /// First micro-batch of each key that is new in this step.
    fresh: BTreeMap<u64, (usize, Batch)>,
    pub(super) updates: Updates,
}

struct MicroProgram {
    program: Validated,
    /// Parameter whose gradient each result after the loss is.
    graded: Vec<usize>,
    results: Vec<Tensor>,
}

/// Channel on which gradients are sent while the program runs.
pub(super) type Way = (Arc<Mutex<RankSum>>, Arc<Mutex<Box<dyn Exchange>>>);

impl<'e> Programs<'e> {
    pub fn new(task: &'e dyn Task, simplified: bool, verdicts: Verdicts) -> Programs<'e> {
        let module = task.module();
        for (name, tensor) in module.named_parameters().into_iter().chain(module.named_buffers()) {
            if tensor.name().is_none() {
                tensor.named(&name);
            }
        }
        Programs {
            task,
            passes: Passes { simplification: simplified, fusion: true },
            key: ProgramKey::of(module),
            made: BTreeMap::new(),
            verdicts,
            fresh: BTreeMap::new(),
            updates: Updates::default(),
        }
    }

    /// Loss of a micro-batch; sets the gradients of the parameters. Returns which of them were sent
    /// early, if there is a channel.
    pub(super) fn gradients(
        &mut self,
        parts: &Parts,
        number: usize,
        batch: &Batch,
        way: Option<Way>,
    ) -> Result<(f64, Vec<bool>)> {
        let key = self.key.number(&parts.parameters, batch, self.passes.simplification);
        if !self.made.contains_key(&key) {
            let program = self.traced(key, parts, batch)?;
            self.made.insert(key, program);
        }
        if self.verdicts.is_plain(key).is_none() {
            self.fresh.entry(key).or_insert_with(|| (number, batch.clone()));
        }
        let Some(made) = self.made.get_mut(&key) else { return Err(lost()) };
        let MicroProgram { program, graded, results } = made;
        let mut left = vec![false; parts.parameters.len()];
        let arguments = [&batch.x, &batch.y];
        match way {
            Some((sum, exchange)) => {
                let mut leave = |place: usize, result: &Tensor| {
                    let Some(&i) = place.checked_sub(1).and_then(|k| graded.get(k)) else {
                        return Ok(());
                    };
                    let mut sum = lock(&sum);
                    sum.push_one(parts.first_parameter() + i, values(result)?).map_err(error)?;
                    left[i] = true;
                    sum.send(&mut **lock(&exchange)).map_err(error)
                };
                program.program().run_observed(&arguments, results, &mut leave)?;
            }
            None => program.program().run_into(&arguments, results)?,
        }
        for (&i, gradient) in graded.iter().zip(&results[1..]) {
            parts.parameters[i].set_grad(Some(gradient.clone()))?;
        }
        Ok((results[0].try_item()?, left))
    }

    fn traced(&self, key: u64, parts: &Parts, batch: &Batch) -> Result<MicroProgram> {
        let mut graded = Vec::new();
        let program = Program::trace([("x", &batch.x), ("y", &batch.y)], |args| {
            let loss = self.task.loss(&Batch { x: args[0].clone(), y: args[1].clone() })?;
            loss.try_backward()?;
            let mut results = vec![if loss.name().is_none() { loss.named("loss") } else { loss }];
            for (i, p) in parts.parameters.iter().enumerate() {
                if let Some(gradient) = p.grad() {
                    graded.push(i);
                    results.push(gradient);
                }
            }
            Ok(results)
        })?;
        let passes = match self.verdicts.is_plain(key) {
            Some(true) => Passes { simplification: false, fusion: false },
            _ => self.passes,
        };
        let program = program.validated(passes);
        tell(&program, 0);
        Ok(MicroProgram { program, graded, results: Vec::new() })
    }

    /// Whether this step has new shapes.
    pub(super) fn are_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Compares the new programs of all ranks; returns whether all of them hold. Otherwise the step
    /// must be repeated.
    pub(super) fn settle(
        &mut self,
        start: &Start,
        step: u64,
        exchange: &mut dyn Exchange,
    ) -> Result<bool> {
        let rank = exchange.rank();
        let own: Vec<u64> =
            self.fresh.iter().flat_map(|(&key, (number, _))| [key, *number as u64]).collect();
        // Rank with the first micro-batch of each key.
        let mut first: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
        for (peer, told) in gathered(exchange, &own)?.into_iter().enumerate() {
            for (key, number) in told.as_chunks::<2>().0.iter().map(|&[key, number]| (key, number))
            {
                let least = first.entry(key).or_insert((number, peer));
                *least = (*least).min((number, peer));
            }
        }
        let mut parted = Vec::new();
        for (key, _) in first.iter().filter(|(_, (_, owner))| *owner == rank) {
            if !self.holds(*key, start, step)? {
                parted.push(*key);
            }
        }
        let parted = gathered(exchange, &parted)?.concat();
        self.fresh.clear();
        self.verdicts.extend(first.keys().map(|&key| (key, parted.contains(&key))));
        self.made.retain(|key, _| !parted.contains(key));
        #[cfg(test)]
        if !parted.is_empty() {
            GIVEN_UP.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(parted.is_empty())
    }

    /// Whether the program of a fresh micro-batch gives the results of the plain one.
    fn holds(&mut self, key: u64, start: &Start, step: u64) -> Result<bool> {
        let (Some((number, batch)), Some(made)) = (self.fresh.get(&key), self.made.get_mut(&key))
        else {
            return Err(lost());
        };
        start.begin(self.task.module(), step, *number)?;
        let before = made.program.warnings().len();
        made.program.run(&[&batch.x, &batch.y])?;
        tell(&made.program, before);
        #[cfg(test)]
        if DISTRUST.get() {
            return Ok(false);
        }
        Ok(made.program.warnings().len() == before)
    }
}

/// Indices per rank.
fn gathered(exchange: &mut dyn Exchange, own: &[u64]) -> Result<Vec<Vec<u64>>> {
    let bytes: Vec<u8> = own.iter().flat_map(|x| x.to_le_bytes()).collect();
    let all = exchange.all_gather(&bytes).map_err(error)?;
    let numbers = |b: Vec<u8>| b.as_chunks().0.iter().map(|&b| u64::from_le_bytes(b)).collect();
    Ok(all.into_iter().map(numbers).collect())
}

fn tell(program: &Validated, from: usize) {
    program.warnings()[from..].iter().for_each(|w| eprintln!("chainrule: warning: {w}"));
}

fn lost() -> Error {
    Error::argument("Trainer", "no program for a micro-batch that was told of")
}

/// Number of rejected programs of a rank.
#[cfg(test)]
pub(super) static GIVEN_UP: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

#[cfg(test)]
thread_local! {
    /// Whether a mismatch occurs on this rank.
    pub(super) static DISTRUST: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}
