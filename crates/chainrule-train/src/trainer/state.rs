//! The training state, as tensors by name.

use std::collections::BTreeMap;

use super::{Best, Place, Rest, Trainer};
use crate::Task;
use crate::data::loader::{generator_state, generator_tensor};
use crate::error::{Error, Result};
use crate::nn::StateDict;
use crate::optim::Optimizer;
use crate::tensor::Tensor;

impl Rest {
    pub(crate) fn state_dict(&self, task: &dyn Task, optimizer: &dyn Optimizer) -> StateDict {
        let mut out = StateDict::new();
        let mut add = |part: &str, state: StateDict| {
            out.extend(state.into_iter().map(|(name, t)| (format!("{part}.{name}"), t)));
        };
        let generators = task.module().generator_states();
        let generators = generators.iter().map(|(name, g)| (name.clone(), generator_tensor(g)));
        add("model", task.module().state_dict());
        add("generators", generators.collect());
        add("optimizer", self.optimizer_state(task, optimizer));
        if let Some(ranks) = &self.ranks {
            add("programs", ranks.verdicts.state_dict());
        }
        add("batches", self.batches.state_dict());
        if let Some(ema) = &self.ema {
            add("ema", ema.state_dict());
        }
        if let (true, Some(batch)) = (self.options.overfit_batch, &self.batch) {
            let batch = [("x", &batch.x), ("y", &batch.y)];
            add("batch", batch.map(|(name, t)| (name.to_string(), t.clone())).into());
        }
        let Place { step, best, loss_sum, loss_count } = self.place;
        let numbers = [
            ("step", Tensor::scalar(step as i64)),
            ("best", Tensor::scalar(best.value().unwrap_or(f64::NAN))),
            ("since_best", Tensor::scalar(best.since() as i64)),
            ("loss_sum", Tensor::scalar(loss_sum)),
            ("loss_count", Tensor::scalar(loss_count as i64)),
        ];
        add("trainer", numbers.map(|(name, t)| (name.to_string(), t)).into());
        out
    }

    /// Optimizer state: whole where it was gathered, else this rank's shard.
    fn optimizer_state(&self, task: &dyn Task, optimizer: &dyn Optimizer) -> StateDict {
        let state = optimizer.state_dict();
        let Some(ranks) = self.ranks.as_ref().filter(|ranks| ranks.have_shards(self)) else {
            return state;
        };
        match &ranks.whole {
            Some(whole) => whole.clone(),
            None => ranks.own_state(task, optimizer, state.clone()).unwrap_or(state),
        }
    }
}

impl Trainer<'_> {
    /// The whole training state: the model, its generators, the optimizer, rejected programs, the
    /// position in the data, the average of weights, the number of steps and the best measure. The
    /// schedule is a function of the step.
    ///
    /// With [`TrainerOptions::sharded`](super::TrainerOptions) and several ranks it contains the
    /// rank's own shard of the optimizer. On rank 0 it is whole after [`Trainer::run`], unless the
    /// run has [checkpoints](Trainer::with_checkpoints), which are whole then.
    pub fn state_dict(&self) -> StateDict {
        self.rest.state_dict(self.task, &*self.optimizer)
    }

    /// Resumes from [`Trainer::state_dict`], bitwise as if it had never stopped.
    ///
    /// Errors for the state of another model, optimizer or dataset, with the name of what does not
    /// fit.
    pub fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let mut parts: BTreeMap<&str, StateDict> = BTreeMap::new();
        for (name, tensor) in state {
            let Some((part, name)) = name.split_once('.') else {
                return Err(Error::argument("Trainer", format!("the state has `{name}`")));
            };
            parts.entry(part).or_default().insert(name.to_string(), tensor.clone());
        }
        let mut part = |name: &str| parts.remove(name).unwrap_or_default();
        let (numbers, module, rest) = (part("trainer"), self.task.module(), &mut self.rest);
        let place = place(&numbers, self.task.higher_is_better())?;
        module.load_state_dict(&part("model"))?;
        let states = part("generators").into_iter();
        let states = states.map(|(name, t)| Ok((name, generator_state(&t)?)));
        module.set_generator_states(&states.collect::<Result<_>>()?)?;
        let mut optimizer = part("optimizer");
        if let Some(ranks) = rest.ranks.as_ref().filter(|ranks| ranks.have_shards(rest)) {
            optimizer = ranks.own_state(self.task, &*self.optimizer, optimizer)?;
        }
        self.optimizer.load_state_dict(&optimizer)?;
        let verdicts = part("programs");
        if let Some(ranks) = &mut rest.ranks {
            ranks.verdicts.load(&verdicts)?;
            ranks.whole = None;
        }
        rest.batches.load_state_dict(&part("batches"))?;
        if let Some(ema) = &mut rest.ema {
            ema.load_state_dict(&part("ema"))?;
        }
        rest.batch = None;
        if rest.options.overfit_batch {
            let mut batch = part("batch");
            if let (Some(x), Some(y)) = (batch.remove("x"), batch.remove("y")) {
                rest.batch = Some(crate::data::Batch { x, y });
            }
        }
        if let Some((name, _)) = parts.first_key_value() {
            let why = format!(
                "the state has a part `{name}` that this training lacks; was it run with other options?"
            );
            return Err(Error::argument("Trainer", why));
        }
        (rest.place, rest.kept) = (place, None);
        Ok(())
    }
}

fn place(numbers: &StateDict, higher_is_better: bool) -> Result<Place> {
    let one = |name: &str| match numbers.get(name).map(Tensor::to_f64_vec).as_deref() {
        Some(&[number]) => Ok(number),
        _ => {
            let why =
                format!("the state lacks the number `trainer.{name}`; it is none of a training");
            Err(Error::argument("Trainer", why))
        }
    };
    let best = one("best")?;
    let best = Best::restored(
        higher_is_better,
        best.is_finite().then_some(best),
        one("since_best")? as u64,
    );
    Ok(Place {
        step: one("step")? as u64,
        best,
        loss_sum: one("loss_sum")?,
        loss_count: one("loss_count")? as u64,
    })
}
