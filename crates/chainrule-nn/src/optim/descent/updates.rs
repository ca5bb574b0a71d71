//! The loop over an optimizer's parameters, and their state, for any rule.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use super::super::rule::{AnyRule, At, Updated};
use super::super::{checked_later_lr, checked_lr, checked_parameters, no_gradients, not_negative};
use super::state::{self, State};
use crate::dtype::DType;
use crate::error::{Error, Result, raise};
use crate::kernels::map::SHARED;
use crate::kernels::optim::Slices;
use crate::kernels::threads;
use crate::nn::StateDict;
use crate::tensor::node::Source;
use crate::tensor::{Tensor, log};

/// Parameters with their groups and states: an optimizer with any rule.
#[derive(Debug)]
pub(super) struct Updates {
    /// The optimizer's name, for errors.
    pub name: &'static str,
    pub parameters: Vec<Tensor>,
    pub states: Vec<State>,
    /// Group of each parameter.
    pub group_of: Vec<usize>,
    pub groups: Vec<Settings>,
    /// Initial learning rate, to which those of the groups are proportional.
    pub base_lr: f64,
    /// A leaf, as the states are.
    pub lr: Tensor,
    /// Elements of all parameters.
    numel: usize,
}

/// Settings of a group.
#[derive(Debug)]
pub(super) struct Settings {
    /// Its own learning rate, if any, at the optimizer's rate `base_lr`.
    lr: Option<f64>,
    pub rule: Arc<dyn AnyRule>,
}

impl Updates {
    /// Without parameters, to which [`Updates::add`] adds groups; `rule` has the defaults.
    pub fn new(rule: &dyn AnyRule, lr: f64) -> Result<Updates> {
        let base_lr = checked_lr(rule.name(), lr)?;
        rule.check()?;
        Ok(Updates {
            name: rule.name(),
            parameters: Vec::new(),
            states: Vec::new(),
            group_of: Vec::new(),
            groups: Vec::new(),
            base_lr,
            lr: Tensor::scalar(lr).buffer().named("lr"),
            numel: 0,
        })
    }

    /// Adds a group.
    pub fn add(
        &mut self,
        parameters: Vec<Tensor>,
        lr: Option<f64>,
        weight_decay: Option<f64>,
        mut rule: Box<dyn AnyRule>,
    ) -> Result<()> {
        if let Some(weight_decay) = weight_decay {
            not_negative(self.name, "weight_decay", weight_decay)?;
            let Some(own) = rule.weight_decay() else {
                let text = "has no weight decay; add it to the loss";
                return Err(Error::argument(self.name, text));
            };
            *own = weight_decay;
        }
        rule.check()?;
        let lr = lr.map(|lr| checked_lr(self.name, lr)).transpose()?;
        if !parameters.is_empty() {
            for p in checked_parameters(self.name, parameters)? {
                rule.accept(&p)?;
                self.numel += p.numel();
                self.parameters.push(p);
                self.states.push(State::default());
                self.group_of.push(self.groups.len());
            }
        }
        self.groups.push(Settings { lr, rule: rule.into() });
        Ok(())
    }

    /// An error where there are no parameters, or one of them is in two groups.
    pub fn check(&self) -> Result<()> {
        if self.parameters.is_empty() {
            checked_parameters(self.name, Vec::new())?;
        }
        let numbers = |p: &Tensor| p.source().number();
        let different: HashSet<u64> = self.parameters.iter().map(numbers).collect();
        if different.len() < self.parameters.len() {
            let why = "a parameter is in two groups; keep it in one";
            return Err(Error::argument(self.name, why));
        }
        Ok(())
    }

    fn group_lr(&self, settings: &Settings) -> f64 {
        settings.rate(self.base_lr).of(self.lr())
    }
}

impl Settings {
    pub fn rate(&self, base: f64) -> Rate {
        Rate { own: self.lr, base }
    }
}

/// The learning rate of a group, from that of the optimizer.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    /// The group's own rate, if any, applies while the optimizer's is `base`.
    pub own: Option<f64>,
    pub base: f64,
}

impl Rate {
    pub fn of(self, lr: f64) -> f64 {
        self.own.map_or(lr, |own| own * (lr / self.base))
    }
}

/// The update of one parameter, if it has a gradient.
fn update(p: &Tensor, state: &mut State, rule: &dyn AnyRule, lr: f64) -> Result<bool> {
    let Some(g) = p.grad() else { return Ok(false) };
    match p.dtype() {
        DType::F32 => update_as::<f32>(p, &g, state, rule, lr)?,
        DType::F64 => update_as::<f64>(p, &g, state, rule, lr)?,
        half if half.is_half() => {
            // In f32, as the state; only the parameter is rounded.
            let wide = p.detach().try_to_dtype(DType::F32)?.try_parameter()?;
            update_as::<f32>(&wide, &g.try_to_dtype(DType::F32)?, state, rule, lr)?;
            p.try_set(&wide.detach().try_to_dtype(half)?)?;
        }
        _ => unreachable!("only floats have gradients"),
    }
    Ok(true)
}

fn update_as<T: Updated>(
    p: &Tensor,
    g: &Tensor,
    state: &mut State,
    rule: &dyn AnyRule,
    lr: f64,
) -> Result<()> {
    state.prepare(&rule.slots(), p.meta())?;
    let g = g.value_ref().contiguous()?;
    let g = g.slice::<T>().expect("made contiguous");
    let mut step = state.step.hold(rule.name())?;
    let step = &mut step.elements::<i64>()[0];
    let at = At { lr, step: *step as u64 + 1, shape: p.shape() };
    let mut held = state.hold(rule.name())?;
    let mut slices: Slices<'_, T> = held.iter_mut().map(|h| h.elements()).collect();
    T::update(rule, at, p.hold(rule.name())?.elements(), g, &mut slices)?;
    *step = at.step as i64;
    Ok(())
}

impl Updates {
    pub fn step(&mut self) -> Result<()> {
        if log::is_on() {
            return self.step_in_trace();
        }
        let lrs: SmallVec<[f64; 2]> = self.groups.iter().map(|s| self.group_lr(s)).collect();
        let groups = &self.groups;
        let one = |((p, state), &group): ((&Tensor, &mut State), &usize)| {
            update(p, state, &*groups[group].rule, lrs[group])
        };
        let mut all = self.parameters.iter().zip(&mut self.states).zip(&self.group_of);
        let several = self.numel >= SHARED && !threads::is_alone();
        let stepped = if several {
            // A large parameter is split among threads; small ones are distributed whole.
            let results = Mutex::new(Vec::new());
            let note = |x| {
                let result = one(x);
                results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
            };
            let (large, small): (Vec<_>, Vec<_>) = all.partition(|((p, _), _)| p.numel() >= SHARED);
            large.into_iter().for_each(note);
            threads::for_each(true, small.into_iter(), note);
            let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
            results.into_iter().try_fold(false, |stepped, x| Ok::<_, Error>(x? | stepped))?
        } else {
            all.try_fold(false, |stepped, x| Ok::<_, Error>(one(x)? | stepped))?
        };
        if stepped { Ok(()) } else { Err(no_gradients(self.name)) }
    }

    pub fn lr(&self) -> f64 {
        if log::is_on() {
            let why = "the learning rate is read inside a trace, and would be the same number in each run; use it between runs";
            raise(Error::argument(self.name, why))
        }
        match self.lr.source() {
            Source::Leaf(leaf) => leaf.now().first(),
            _ => unreachable!("it was made as a leaf"),
        }
    }

    pub fn set_lr(&mut self, lr: f64) -> Result<()> {
        if log::is_on() {
            let why = "the learning rate is set inside a trace, and would be the same in each run; set it between runs, which read it";
            return Err(Error::argument(self.name, why));
        }
        self.lr.try_set(&Tensor::scalar(checked_later_lr(self.name, lr)?))
    }

    pub fn group_lrs(&self) -> Vec<f64> {
        self.groups.iter().map(|s| self.group_lr(s)).collect()
    }

    pub fn state_dict(&self) -> StateDict {
        let mut out = StateDict::from([("lr".to_string(), Tensor::scalar(self.lr()))]);
        for (i, (state, &group)) in self.states.iter().zip(&self.group_of).enumerate() {
            state.write(i, &self.groups[group].rule.slots(), &mut out);
        }
        out
    }

    pub fn load_state_dict(&mut self, dict: &StateDict) -> Result<()> {
        let lr = state::scalar::<f64>(self.name, "lr", dict.get("lr"))?;
        let lr = checked_later_lr(self.name, lr)?;
        let mut used = 1;
        let mut states = Vec::with_capacity(self.states.len());
        for (i, (p, &group)) in self.parameters.iter().zip(&self.group_of).enumerate() {
            let slots = self.groups[group].rule.slots();
            states.push(State::read(self.name, i, p, &slots, dict, &mut used)?);
        }
        if used != dict.len() {
            return Err(state::unknown(self.name, &states, dict));
        }
        self.set_lr(lr)?;
        for ((own, new), &group) in self.states.iter_mut().zip(states).zip(&self.group_of) {
            own.become_like(new, &self.groups[group].rule.slots())?;
        }
        Ok(())
    }
}
