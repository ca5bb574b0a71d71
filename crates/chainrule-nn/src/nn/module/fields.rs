//! Walks of [`Module`]'s methods over the fields of a module, compiled once for all modules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::{Field, Module, StateDict, Training};
use crate::error::{Error, Result};
use crate::rng::{Generator, GeneratorState};
use crate::tensor::Tensor;

type Named = Vec<(String, Tensor)>;

/// Parameters, then buffers.
pub(super) fn tensors(parameters: Named, buffers: Named) -> Named {
    parameters.into_iter().chain(buffers).collect()
}

pub(super) fn without_names(named: Named) -> Vec<Tensor> {
    named.into_iter().map(|(_, tensor)| tensor).collect()
}

pub(super) fn count(parameters: &[Tensor]) -> usize {
    parameters.iter().map(Tensor::numel).sum()
}

pub(super) fn count_trained(parameters: &[Tensor]) -> usize {
    parameters.iter().filter(|p| p.requires_grad()).map(Tensor::numel).sum()
}

pub(super) fn zero_grad(parameters: &[Tensor]) {
    parameters.iter().for_each(Tensor::zero_grad);
}

/// The tensor of this name.
pub(super) fn find(all: Named, name: &str) -> Result<Tensor> {
    match all.iter().find(|(own, _)| own == name) {
        Some((_, tensor)) => Ok(tensor.clone()),
        None => {
            let names: Vec<&str> = all.iter().map(|(own, _)| own.as_str()).collect();
            let why =
                format!("no parameter or buffer is called `{name}`; there are {}", few(&names));
            Err(Error::argument("get", why))
        }
    }
}

/// Type name without path and generics.
pub(super) fn last_name(path: &'static str) -> &'static str {
    let name = path.split('<').next().unwrap_or(path);
    name.rsplit("::").next().unwrap_or(name)
}

/// The states of the generators inside, by the names of their modules.
pub(super) fn generator_states(
    fields: Vec<(String, Field<'_>)>,
) -> BTreeMap<String, GeneratorState> {
    let mut all = Vec::new();
    generators("", fields, &mut all);
    let state = |g: &Mutex<Generator>| g.lock().unwrap_or_else(PoisonError::into_inner).state();
    all.into_iter().map(|(name, g)| (name, state(g))).collect()
}

/// Restores the generators inside; nothing is changed if the names differ.
pub(super) fn set_generator_states(
    fields: Vec<(String, Field<'_>)>,
    states: &BTreeMap<String, GeneratorState>,
) -> Result<()> {
    let mut all = Vec::new();
    generators("", fields, &mut all);
    if all.len() != states.len() || all.iter().any(|(name, _)| !states.contains_key(name)) {
        let why = "the generators are not those of this module";
        return Err(Error::argument("set_generator_states", why));
    }
    for (name, g) in all {
        g.lock().unwrap_or_else(PoisonError::into_inner).set_state(&states[&name]);
    }
    Ok(())
}

/// Current values of the tensors.
pub(super) fn detached(all: Named) -> StateDict {
    all.into_iter().map(|(name, tensor)| (name, tensor.detach())).collect()
}

/// Loads `state` into the tensors; on an error nothing is changed.
pub(super) fn load(own: &[(String, Tensor)], state: &StateDict) -> Result<()> {
    let names: BTreeSet<&str> = own.iter().map(|(name, _)| name.as_str()).collect();
    let missing: Vec<&str> =
        names.iter().copied().filter(|name| !state.contains_key(*name)).collect();
    let unknown: Vec<&str> =
        state.keys().map(String::as_str).filter(|name| !names.contains(name)).collect();
    if !missing.is_empty() || !unknown.is_empty() {
        let why = format!(
            "the state does not fit the module: missing [{}], not known [{}]",
            few(&missing),
            few(&unknown)
        );
        return Err(Error::argument("load_state_dict", why));
    }
    for (name, tensor) in own {
        let new = &state[name];
        if (new.shape(), new.dtype()) != (tensor.shape(), tensor.dtype()) {
            let why = format!(
                "`{name}` is {} {} in the module but {} {} in the state",
                tensor.dtype(),
                tensor.shape(),
                new.dtype(),
                new.shape()
            );
            return Err(Error::argument("load_state_dict", why));
        }
    }
    own.iter().try_for_each(|(name, tensor)| tensor.try_set(&state[name]))
}

/// The first few of the names, since a foreign state may have thousands.
fn few(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

/// Tensors that `pick` selects from the fields, recursively, with their full names.
pub(super) fn collect(
    fields: Vec<(String, Field<'_>)>,
    pick: fn(&Field<'_>) -> Option<Tensor>,
) -> Vec<(String, Tensor)> {
    let mut out = Vec::new();
    gather("", fields, pick, &mut out);
    out
}

fn gather(
    prefix: &str,
    fields: Vec<(String, Field<'_>)>,
    pick: fn(&Field<'_>) -> Option<Tensor>,
    out: &mut Vec<(String, Tensor)>,
) {
    for (name, field) in fields {
        let path = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match field {
            Field::Module(module) => gather(&path, module.fields(), pick, out),
            Field::List(list) => gather(&path, list, pick, out),
            other => out.extend(pick(&other).map(|tensor| (path, tensor))),
        }
    }
}

pub(super) fn modules<'a>(
    prefix: &str,
    fields: Vec<(String, Field<'a>)>,
    out: &mut Vec<(String, &'a dyn Module)>,
) {
    for (name, field) in fields {
        let path = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match field {
            Field::Module(module) => {
                out.push((path.clone(), module));
                modules(&path, module.fields(), out);
            }
            Field::List(list) => modules(&path, list, out),
            Field::Parameter(_) | Field::Buffer(_) | Field::Training(_) | Field::Random(_) => {}
        }
    }
}

fn generators<'a>(
    prefix: &str,
    fields: Vec<(String, Field<'a>)>,
    out: &mut Vec<(String, &'a Mutex<Generator>)>,
) {
    for (name, field) in fields {
        let path = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match field {
            Field::Random(generator) => out.push((path, generator)),
            Field::Module(module) => generators(&path, module.fields(), out),
            Field::List(list) => generators(&path, list, out),
            Field::Parameter(_) | Field::Buffer(_) | Field::Training(_) => {}
        }
    }
}

/// Freezes or unfreezes the parameters.
pub(super) fn set_trained(parameters: &[Tensor], on: bool) {
    for p in parameters {
        p.set_requires_grad(on).expect("a parameter is a leaf of floats");
    }
}

/// Mode switches of the fields, recursively.
pub(in crate::nn) fn switches<'a>(fields: Vec<(String, Field<'a>)>, out: &mut Vec<&'a Training>) {
    for (_, field) in fields {
        match field {
            Field::Training(switch) => out.push(switch),
            Field::Module(module) => switches(module.fields(), out),
            Field::List(list) => switches(list, out),
            Field::Parameter(_) | Field::Buffer(_) | Field::Random(_) => {}
        }
    }
}

pub(super) fn set_training(fields: Vec<(String, Field<'_>)>, on: bool) {
    let mut all = Vec::new();
    switches(fields, &mut all);
    all.into_iter().for_each(|switch| switch.set(on));
}
