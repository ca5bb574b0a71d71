//! The common part of all optimizers, generic over their options; `updates` does the work without
//! types.

pub(super) mod state;
mod traced;
mod updates;

use std::marker::PhantomData;

use super::rule::Rule;
use super::{Group, Optimizer};
use crate::error::{Result, raise};
use crate::nn::StateDict;
use crate::tensor::Tensor;
use updates::Updates;

/// An optimizer with the update rule `R`, its options: [`Sgd`](super::Sgd), [`AdamW`](super::AdamW)
/// and the others are aliases of it.
///
/// A step is one pass over each parameter, in place where the value is unshared; large models are
/// split among threads. The results do not depend on the number of threads.
#[derive(Debug)]
pub struct Descent<R> {
    updates: Updates,
    rule: PhantomData<R>,
}

impl<R: Rule> Descent<R> {
    /// With default options. A parameter that appears twice (tied weights) counts once.
    #[track_caller]
    pub fn new(parameters: Vec<Tensor>, lr: f64) -> Descent<R> {
        Descent::try_new(parameters, lr).unwrap_or_else(|e| raise(e))
    }

    /// As [`Descent::new`], but returns the error: for a learning rate out of range, for no
    /// parameters, and for parameters that the rule rejects.
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

    /// With parameter groups; `lr` and `options` are the defaults of their settings.
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
        let mut updates = Updates::new(&*options.clone().erased(), lr)?;
        for Group { parameters, lr, weight_decay, options: own } in groups {
            let rule = own.unwrap_or_else(|| options.clone()).erased();
            updates.add(parameters, lr, weight_decay, rule)?;
        }
        updates.check()?;
        Ok(Descent { updates, rule: PhantomData })
    }

    /// With a group that follows another rule, as Muon's users train matrices by Muon and the rest
    /// by AdamW. A learning rate of the group's own keeps its proportion to that of the optimizer.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// use chainrule::optim::{AdamWOptions, Group, Muon, Optimizer};
    /// let w = Tensor::from([[2.0f32, 0.0], [0.0, 1.0]]).parameter();
    /// let b = Tensor::from([1.0f32, 1.0]).parameter();
    /// let rest = Group::new(vec![b.clone()]).lr(3e-4);
    /// let mut muon = Muon::new(vec![w.clone()], 0.02).and(rest, AdamWOptions::default());
    /// assert_eq!(muon.parameters().len(), 2);
    /// (w.matmul(&b)).sum_all().backward();
    /// muon.step()?;
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    #[track_caller]
    pub fn and<Q: Rule>(self, group: Group<Q>, options: Q) -> Descent<R> {
        self.try_and(group, options).unwrap_or_else(|e| raise(e))
    }

    /// As [`Descent::and`], but returns the error: a parameter that is in another group, one that
    /// the rule is not for, options or a learning rate out of range.
    pub fn try_and<Q: Rule>(self, group: Group<Q>, options: Q) -> Result<Descent<R>> {
        let mut updates = self.updates;
        let Group { parameters, lr, weight_decay, options: own } = group;
        let rule = own.unwrap_or(options).erased();
        updates.add(parameters, lr, weight_decay, rule)?;
        updates.check()?;
        Ok(Descent { updates, rule: PhantomData })
    }
}

impl<R: Rule> Optimizer for Descent<R> {
    fn step(&mut self) -> Result<()> {
        self.updates.step()
    }

    fn parameters(&self) -> &[Tensor] {
        &self.updates.parameters
    }

    fn lr(&self) -> f64 {
        self.updates.lr()
    }

    fn set_lr(&mut self, lr: f64) -> Result<()> {
        self.updates.set_lr(lr)
    }

    fn group_lrs(&self) -> Vec<f64> {
        self.updates.group_lrs()
    }

    fn state_dict(&self) -> StateDict {
        self.updates.state_dict()
    }

    fn load_state_dict(&mut self, dict: &StateDict) -> Result<()> {
        self.updates.load_state_dict(dict)
    }
}

#[cfg(test)]
mod tests;
