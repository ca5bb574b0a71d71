//! The common part of all optimizers: groups, learning rates, the walk over the parameters, and the
//! state they keep.

pub(super) mod state;
mod traced;

use std::fmt;

use smallvec::SmallVec;

use std::sync::{Mutex, PoisonError};

use super::{
    Group, Optimizer, checked_later_lr, checked_lr, checked_parameters, no_gradients, not_negative,
};
use crate::dtype::{DType, Stored};
use crate::error::{Error, Result, raise};
use crate::kernels::map::SHARED;
use crate::kernels::math::Real;
use crate::kernels::optim::Slices;
use crate::kernels::threads;
use crate::nn::StateDict;
use crate::param::Parameters;
use crate::shape::Shape;
use crate::tensor::node::Source;
use crate::tensor::{Tensor, log};
use state::State;

/// Update rule of an optimizer; its options implement it.
pub trait Rule: Parameters + Clone + fmt::Debug + Default + Send + Sync + 'static {
    /// The optimizer's name, for errors.
    const NAME: &'static str;

    /// The update in NumPy, as a form of [`crate::program`]'s scripts.
    #[doc(hidden)]
    const NUMPY: &'static str;

    /// Operations for each element of a parameter.
    #[doc(hidden)]
    const STEPS: u64;

    /// An error for an option out of its range.
    fn check(&self) -> Result<()>;

    /// The weight decay, which a group may replace; none where the formula has none.
    fn weight_decay(&mut self) -> Option<&mut f64>;

    /// State of each parameter: arrays of its shape, with the numbers they start as.
    fn slots(&self) -> Slots;

    /// Whether the update is to subtract the gradient times the learning rate, and keeps nothing.
    fn is_plain(&self) -> bool {
        false
    }

    /// An error for a parameter that this optimizer is not for.
    fn accept(&self, _parameter: &Tensor) -> Result<()> {
        Ok(())
    }

    /// The update of parameter `p` with gradient `g` and the arrays of [`Rule::slots`].
    fn update<T: Real + Stored>(
        &self,
        at: At,
        p: &mut [T],
        g: &[T],
        state: &mut [&mut [T]],
    ) -> Result<()>;
}

/// Names of arrays, as in PyTorch's states, and the numbers they start as.
pub type Slots = SmallVec<[(&'static str, f64); 3]>;

/// Position of an update.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The learning rate of the group.
    pub lr: f64,
    /// Updates of the parameter, with this one.
    pub step: u64,
    /// The parameter's shape.
    pub shape: Shape,
}

/// An optimizer by the rule `R`, its options: [`Sgd`](super::Sgd), [`AdamW`](super::AdamW) and the
/// others are this with their rules.
///
/// A step is one pass over each parameter, in place where nobody else holds the value; large models
/// are shared among threads. The results do not depend on the number of threads.
#[derive(Debug)]
pub struct Descent<R> {
    parameters: Vec<Tensor>,
    states: Vec<State>,
    /// Group of each parameter.
    group_of: Vec<usize>,
    groups: Vec<Settings<R>>,
    /// The learning rate at the start, to which those of the groups are in proportion.
    base_lr: f64,
    /// A leaf, as the states are.
    lr: Tensor,
    /// All elements of all parameters.
    numel: usize,
}

/// The settings of a group.
#[derive(Debug)]
struct Settings<R> {
    /// Its own learning rate, if it has one, while that of the optimizer is `base_lr`.
    lr: Option<f64>,
    options: R,
}

impl<R: Rule> Descent<R> {
    /// With the usual options. A parameter that appears twice (tied weights) counts once.
    #[track_caller]
    pub fn new(parameters: Vec<Tensor>, lr: f64) -> Descent<R> {
        Descent::try_new(parameters, lr).unwrap_or_else(|e| raise(e))
    }

    /// As [`Descent::new`], but returns the error: for a learning rate out of range, for no
    /// parameters, and for parameters that the optimizer is not for.
    pub fn try_new(parameters: Vec<Tensor>, lr: f64) -> Result<Descent<R>> {
        Descent::try_with_options(parameters, lr, R::default())
    }

    /// As [`Descent::new`], with options.
    #[track_caller]
    pub fn with_options(parameters: Vec<Tensor>, lr: f64, options: R) -> Descent<R> {
        Descent::try_with_options(parameters, lr, options).unwrap_or_else(|e| raise(e))
    }

    /// As [`Descent::with_options`], but returns the error: those of [`Descent::try_new`], and
    /// options out of range.
    pub fn try_with_options(parameters: Vec<Tensor>, lr: f64, options: R) -> Result<Descent<R>> {
        Descent::try_with_groups([Group::new(parameters)], lr, options)
    }

    /// With groups of parameters; `lr` and `options` stand for the settings that a group does not
    /// have.
    #[track_caller]
    pub fn with_groups(
        groups: impl IntoIterator<Item = Group<R>>,
        lr: f64,
        options: R,
    ) -> Descent<R> {
        Descent::try_with_groups(groups, lr, options).unwrap_or_else(|e| raise(e))
    }

    /// As [`Descent::with_groups`], but returns the error: those of [`Descent::try_with_options`],
    /// and a parameter in two groups.
    pub fn try_with_groups(
        groups: impl IntoIterator<Item = Group<R>>,
        lr: f64,
        options: R,
    ) -> Result<Descent<R>> {
        let base_lr = checked_lr(R::NAME, lr)?;
        options.check()?;
        let numel = 0;
        let mut all = Descent {
            parameters: Vec::new(),
            states: Vec::new(),
            group_of: Vec::new(),
            groups: Vec::new(),
            base_lr,
            lr: Tensor::scalar(lr).buffer().named("lr"),
            numel,
        };
        groups.into_iter().try_for_each(|group| all.add(group, &options))?;
        if all.parameters.is_empty() {
            checked_parameters(R::NAME, Vec::new())?;
        }
        let numbers = |p: &Tensor| p.source().number();
        let different: std::collections::HashSet<u64> =
            all.parameters.iter().map(numbers).collect();
        if different.len() < all.parameters.len() {
            return Err(Error::argument(R::NAME, "a parameter is in two groups; keep it in one"));
        }
        all.numel = all.parameters.iter().map(Tensor::numel).sum();
        Ok(all)
    }

    fn add(&mut self, group: Group<R>, options: &R) -> Result<()> {
        let mut options = group.options.unwrap_or_else(|| options.clone());
        if let Some(weight_decay) = group.weight_decay {
            not_negative(R::NAME, "weight_decay", weight_decay)?;
            let Some(own) = options.weight_decay() else {
                let text = "has no weight decay; add it to the loss";
                return Err(Error::argument(R::NAME, text));
            };
            *own = weight_decay;
        }
        options.check()?;
        let lr = group.lr.map(|lr| checked_lr(R::NAME, lr)).transpose()?;
        if !group.parameters.is_empty() {
            for p in checked_parameters(R::NAME, group.parameters)? {
                options.accept(&p)?;
                self.parameters.push(p);
                self.states.push(State::default());
                self.group_of.push(self.groups.len());
            }
        }
        self.groups.push(Settings { lr, options });
        Ok(())
    }

    fn group_lr(&self, settings: &Settings<R>) -> f64 {
        settings.rate(self.base_lr).of(self.lr())
    }
}

impl<R> Settings<R> {
    fn rate(&self, base: f64) -> Rate {
        Rate { own: self.lr, base }
    }
}

/// The learning rate of a group, from that of the optimizer.
#[derive(Clone, Copy)]
struct Rate {
    /// The group's while the optimizer's is `base`, if it has one of its own.
    own: Option<f64>,
    base: f64,
}

impl Rate {
    fn of(self, lr: f64) -> f64 {
        self.own.map_or(lr, |own| own * (lr / self.base))
    }
}

/// The update of one parameter, if it has a gradient.
fn update<R: Rule>(p: &Tensor, state: &mut State, rule: &R, lr: f64) -> Result<bool> {
    let Some(g) = p.grad() else { return Ok(false) };
    match p.dtype() {
        DType::F32 => update_as::<f32, R>(p, &g, state, rule, lr)?,
        DType::F64 => update_as::<f64, R>(p, &g, state, rule, lr)?,
        half if half.is_half() => {
            // In f32, as is what is kept from step to step; the parameter alone is rounded.
            let wide = p.detach().try_to_dtype(DType::F32)?.try_parameter()?;
            update_as::<f32, R>(&wide, &g.try_to_dtype(DType::F32)?, state, rule, lr)?;
            p.try_set(&wide.detach().try_to_dtype(half)?)?;
        }
        _ => unreachable!("only floats have gradients"),
    }
    Ok(true)
}

fn update_as<T: Real + Stored, R: Rule>(
    p: &Tensor,
    g: &Tensor,
    state: &mut State,
    rule: &R,
    lr: f64,
) -> Result<()> {
    state.prepare(&rule.slots(), p.meta())?;
    let g = g.value_ref().contiguous()?;
    let g = g.slice::<T>().expect("made contiguous");
    let mut step = state.step.hold(R::NAME)?;
    let step = &mut step.elements::<i64>()[0];
    let at = At { lr, step: *step as u64 + 1, shape: p.shape() };
    let mut held = state.hold(R::NAME)?;
    let mut slices: Slices<'_, T> = held.iter_mut().map(|h| h.elements()).collect();
    rule.update(at, p.hold(R::NAME)?.elements(), g, &mut slices)?;
    *step = at.step as i64;
    Ok(())
}

impl<R: Rule> Optimizer for Descent<R> {
    fn step(&mut self) -> Result<()> {
        if log::is_on() {
            return self.step_in_trace();
        }
        let lrs: SmallVec<[f64; 2]> = self.groups.iter().map(|s| self.group_lr(s)).collect();
        let groups = &self.groups;
        let one = |((p, state), &group): ((&Tensor, &mut State), &usize)| {
            update(p, state, &groups[group].options, lrs[group])
        };
        let mut all = self.parameters.iter().zip(&mut self.states).zip(&self.group_of);
        let several = self.numel >= SHARED && !threads::is_alone();
        let stepped = if several {
            // A large parameter is shared out itself; the small ones go round one by one.
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
        if stepped { Ok(()) } else { Err(no_gradients(R::NAME)) }
    }

    fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }

    fn lr(&self) -> f64 {
        if log::is_on() {
            let why = "the learning rate is read inside a trace, and would be the same number in each run; use it between runs";
            raise(Error::argument(R::NAME, why))
        }
        match self.lr.source() {
            Source::Leaf(leaf) => leaf.now().first(),
            _ => unreachable!("it was made as a leaf"),
        }
    }

    fn set_lr(&mut self, lr: f64) -> Result<()> {
        if log::is_on() {
            let why = "the learning rate is set inside a trace, and would be the same in each run; set it between runs, which read it";
            return Err(Error::argument(R::NAME, why));
        }
        self.lr.try_set(&Tensor::scalar(checked_later_lr(R::NAME, lr)?))
    }

    fn group_lrs(&self) -> Vec<f64> {
        self.groups.iter().map(|s| self.group_lr(s)).collect()
    }

    fn state_dict(&self) -> StateDict {
        let mut out = StateDict::from([("lr".to_string(), Tensor::scalar(self.lr()))]);
        for (i, (state, &group)) in self.states.iter().zip(&self.group_of).enumerate() {
            state.write(i, &self.groups[group].options.slots(), &mut out);
        }
        out
    }

    fn load_state_dict(&mut self, dict: &StateDict) -> Result<()> {
        let lr = state::scalar::<f64>(R::NAME, "lr", dict.get("lr"))?;
        let lr = checked_later_lr(R::NAME, lr)?;
        let mut used = 1;
        let mut states = Vec::with_capacity(self.states.len());
        for (i, (p, &group)) in self.parameters.iter().zip(&self.group_of).enumerate() {
            let slots = self.groups[group].options.slots();
            states.push(State::read(R::NAME, i, p, &slots, dict, &mut used)?);
        }
        if used != dict.len() {
            return Err(state::unknown(R::NAME, &states, dict));
        }
        self.set_lr(lr)?;
        for ((own, new), &group) in self.states.iter_mut().zip(states).zip(&self.group_of) {
            own.become_like(new, &self.groups[group].options.slots())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
