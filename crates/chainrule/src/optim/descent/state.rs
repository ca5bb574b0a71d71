//! What an optimizer remembers of one parameter, and how that is saved.

use smallvec::SmallVec;

use super::Slots;
use crate::dtype::{Element, Stored};
use crate::error::{Error, Result};
use crate::kernels::math::Real;
use crate::kernels::optim::Slices;
use crate::nn::StateDict;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::value::Value;

/// The state of one parameter; empty until its first update.
#[derive(Debug, Default)]
pub(super) struct State {
    /// How many updates it has had.
    pub step: u64,
    slots: SmallVec<[Tensor; 3]>,
}

impl State {
    /// Makes the arrays, before the first update.
    pub fn prepare<T: Real + Stored>(&mut self, slots: &Slots, shape: Shape) -> Result<()> {
        if self.slots.len() == slots.len() {
            return Ok(());
        }
        let array = |&(name, start): &(&'static str, f64)| {
            Value::build::<T>(name, shape, |x| x.fill(T::from_f64(start))).map(Tensor::constant)
        };
        self.slots = slots.iter().map(array).collect::<Result<_>>()?;
        Ok(())
    }

    /// The arrays to change in place; a state that was saved or loaded is copied first.
    pub fn slices<T: Stored>(&mut self) -> Result<Slices<'_, T>> {
        for slot in &mut self.slots {
            if slot.exclusive::<T>().is_none() {
                *slot = Tensor::constant(slot.value_ref().copied()?);
            }
        }
        Ok(self.slots.iter_mut().map(|s| s.exclusive().expect("nobody else holds it")).collect())
    }

    /// Puts the state of parameter `i` into `out`.
    pub fn write(&self, i: usize, slots: &Slots, out: &mut StateDict) {
        if self.step == 0 {
            return;
        }
        out.insert(format!("state.{i}.step"), Tensor::scalar(self.step as i64));
        for ((name, _), tensor) in slots.iter().zip(&self.slots) {
            out.insert(format!("state.{i}.{name}"), tensor.clone());
        }
    }

    /// The state of parameter `i` from `dict`; adds to `used` how many of its tensors that took.
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
            Ok(tensor.detach())
        };
        let tensors = slots.iter().map(find).collect::<Result<SmallVec<[Tensor; 3]>>>()?;
        *used += 1 + tensors.len();
        Ok(State { step: step as u64, slots: tensors })
    }
}

/// The one number of an entry of a state.
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

/// The error for entries that no parameter took.
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
