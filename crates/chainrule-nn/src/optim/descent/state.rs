//! Optimizer state of one parameter, and its form in a file.

use smallvec::SmallVec;

use super::super::rule::Slots;
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::nn::StateDict;
use crate::tensor::node::Source;
use crate::tensor::value::Meta;
use crate::tensor::{LeafGuard, Tensor};

/// State of one parameter; empty until its first update. Its leaves persist, since a program shares
/// them with the optimizer.
#[derive(Debug)]
pub(super) struct State {
    /// Number of updates.
    pub step: Tensor,
    pub slots: SmallVec<[Tensor; 3]>,
}

impl Default for State {
    fn default() -> State {
        State { step: Tensor::scalar(0i64).buffer(), slots: SmallVec::new() }
    }
}

impl State {
    /// Makes the arrays, before the first update.
    pub fn prepare(&mut self, slots: &Slots, meta: Meta) -> Result<()> {
        if self.slots.len() == slots.len() {
            return Ok(());
        }
        let array = |&(_, start): &(&str, f64)| {
            Tensor::try_full(meta.shape, start, meta.dtype).map(|t| t.buffer())
        };
        self.slots = slots.iter().map(array).collect::<Result<_>>()?;
        Ok(())
    }

    /// The arrays to change in place.
    pub fn hold(&self, op: &'static str) -> Result<SmallVec<[LeafGuard<'_>; 3]>> {
        self.slots.iter().map(|slot| slot.hold(op)).collect()
    }

    /// Names for listings, from that of the parameter, for unnamed leaves.
    pub fn name(&self, parameter: &str, slots: &Slots) {
        let names = std::iter::once("step").chain(slots.iter().map(|(name, _)| *name));
        for (tensor, name) in std::iter::once(&self.step).chain(&self.slots).zip(names) {
            if tensor.name().is_none() {
                tensor.named(&format!("{name}_{parameter}"));
            }
        }
    }

    /// Number of its updates, as a number.
    pub fn count(&self) -> i64 {
        match self.step.source() {
            Source::Leaf(leaf) => leaf.now().first(),
            _ => unreachable!("it was made as a leaf"),
        }
    }

    /// Takes the values of `other` into the same leaves, which programs hold.
    pub fn become_like(&mut self, other: State, slots: &Slots) -> Result<()> {
        self.step.try_set(&other.step)?;
        if self.slots.is_empty() {
            self.slots = other.slots;
            return Ok(());
        }
        for (i, (slot, (_, start))) in self.slots.iter().zip(slots).enumerate() {
            match other.slots.get(i) {
                Some(new) => slot.try_set(new)?,
                None => slot.try_set(&Tensor::try_full(slot.shape(), *start, slot.dtype())?)?,
            }
        }
        Ok(())
    }

    /// Puts the state of parameter `i` into `out`.
    pub fn write(&self, i: usize, slots: &Slots, out: &mut StateDict) {
        if self.count() == 0 {
            return;
        }
        out.insert(format!("state.{i}.step"), self.step.detach());
        for ((name, _), tensor) in slots.iter().zip(&self.slots) {
            out.insert(format!("state.{i}.{name}"), tensor.detach());
        }
    }

    /// State of parameter `i` from `dict`; adds the number of entries taken to `used`.
    pub fn read(
        op: &'static str,
        i: usize,
        parameter: &Tensor,
        slots: &Slots,
        dict: &StateDict,
        used: &mut usize,
    ) -> Result<State> {
        let key = |name: &str| format!("state.{i}.{name}");
        let Some(step) = dict.get(&key("step")) else { return Ok(State::default()) };
        let step: i64 = scalar(op, &key("step"), Some(step))?;
        if step < 1 {
            return Err(Error::argument(op, format!("`{}` is {step}, not 1 or more", key("step"))));
        }
        let find = |&(name, _): &(&str, f64)| {
            let key = key(name);
            let tensor = dict.get(&key).ok_or_else(|| missing(op, &key))?;
            if tensor.meta() != parameter.meta() {
                let why = format!(
                    "`{key}` is {} {} but parameter {i} is {} {}",
                    tensor.dtype(),
                    tensor.shape(),
                    parameter.dtype(),
                    parameter.shape()
                );
                return Err(Error::argument(op, why));
            }
            Ok(tensor.detach().buffer())
        };
        let tensors = slots.iter().map(find).collect::<Result<SmallVec<[Tensor; 3]>>>()?;
        *used += 1 + tensors.len();
        Ok(State { step: Tensor::scalar(step).buffer(), slots: tensors })
    }
}

/// The scalar of an entry of a state.
pub(in crate::optim) fn scalar<E: Element>(
    op: &'static str,
    key: &str,
    entry: Option<&Tensor>,
) -> Result<E> {
    let tensor = entry.ok_or_else(|| missing(op, key))?;
    if tensor.dtype() != E::DTYPE || tensor.numel() != 1 {
        let why = format!(
            "`{key}` must be one {}, it is {} {}",
            E::DTYPE,
            tensor.dtype(),
            tensor.shape()
        );
        return Err(Error::argument(op, why));
    }
    Ok(E::load(tensor.value_ref().first::<E::Stored>()))
}

fn missing(op: &'static str, key: &str) -> Error {
    Error::argument(op, format!("the state lacks `{key}`; was it saved by the same optimizer?"))
}

/// The error for entries that belong to no parameter.
pub(super) fn unknown(op: &'static str, states: &[State], dict: &StateDict) -> Error {
    let taken = |key: &str| {
        let index = key.strip_prefix("state.").and_then(|rest| rest.split_once('.'));
        let index = index.and_then(|(i, _)| i.parse::<usize>().ok());
        key == "lr" || index.is_some_and(|i| i < states.len())
    };
    let first = dict.keys().find(|key| !taken(key));
    let why = match first {
        Some(key) => format!("the state has `{key}`, and there are {} parameters", states.len()),
        None => "the state holds more for its parameters than this optimizer keeps; was it saved with other options?"
            .to_string(),
    };
    Error::argument(op, why)
}
