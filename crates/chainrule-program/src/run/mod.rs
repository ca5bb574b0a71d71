//! Running a program, through the kernels of the eager mode: instruction by instruction, or, if
//! it was fused, as its placement says.
//!
//! - `machine`: the memory of a placed run, and the actions on it.
//! - `tile`: the loop over the tiles of a group.

mod machine;
mod tile;

pub(super) use machine::Machine;

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use smallvec::SmallVec;

use super::Program;
use super::ir::{Cell, Id, Instruction, Origin};
use super::place::InPlace;
use super::trace::unknown;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::tensor::log::{self, Drawn};
use crate::tensor::node::{Source, lock};
use crate::tensor::op::{GRADIENT, Kernel, LEARNING_RATE, UpdateKernel};
use crate::tensor::run::compute_as;
use crate::tensor::value::Value;

/// The values of a run, by id; those that are not there yet, or not needed any more, are `None`.
pub(super) type Values = Vec<Option<Arc<Value>>>;

/// Called for each output: its place among them, and its value.
pub(super) type Made<'f> = &'f mut dyn FnMut(usize, &Tensor) -> Result<()>;

/// Called when an instruction, or in a placed run an action, is done: its place among them.
pub(super) type Done<'f> = &'f mut dyn FnMut(usize);

/// Observers that a run tells while it goes on.
#[derive(Default)]
pub(super) struct Told<'f> {
    pub made: Option<Made<'f>>,
    pub done: Option<Done<'f>>,
}

/// Stands for an input that is never read.
static EMPTY: LazyLock<Arc<Value>> = LazyLock::new(|| Arc::new(Value::scalar(0i64)));

fn drop_all(values: &mut Values, dropped: &[Id], asked: &[Id]) {
    for id in dropped.iter().filter(|id| !asked.contains(id)) {
        if let Some(value) = values[id.index()].take() {
            Value::recycle(value);
        }
    }
}

/// The error for a run inside a trace.
pub(super) fn not_traced() -> Result<()> {
    if log::is_on() {
        let why = "a program is run inside a trace, which would take its results for constants; call the function itself";
        return Err(Error::argument("run", why));
    }
    Ok(())
}

impl Program {
    /// Runs the program on these arguments: the outputs, in order. Parameters and other cells that
    /// the program changes get their new values at the end, updates at the end of the program in
    /// place; after an error they are as before, unless an update itself failed.
    ///
    /// Random draws come from the generators that were traced, which move on, also where an error
    /// ends the run.
    ///
    /// Errors for arguments of other shapes or dtypes than those of the trace, and for parameters
    /// that were frozen or unfrozen since ([`Compiled`](super::Compiled) traces anew instead), and
    /// as the ops do.
    pub fn run(&self, arguments: &[&Tensor]) -> Result<Vec<Tensor>> {
        let mut results = Vec::new();
        self.run_into(arguments, &mut results)?;
        Ok(results)
    }

    /// As [`Program::run`], with the outputs in a list whose memory is reused. After the first run
    /// on a thread such a run allocates nothing, unless a kernel does.
    pub fn run_into(&self, arguments: &[&Tensor], results: &mut Vec<Tensor>) -> Result<()> {
        results.drain(..).for_each(Tensor::recycle);
        self.run_all(arguments, &[], results, Told::default())
    }

    /// As [`Program::run_into`]; `made` gets each output, with its place among them, as soon as an
    /// instruction has computed it, while others are still to run. An argument that is handed back,
    /// which no instruction computes, comes with the results alone. An error of `made` ends the
    /// run.
    #[doc(hidden)]
    pub fn run_observed(
        &self,
        arguments: &[&Tensor],
        results: &mut Vec<Tensor>,
        made: Made<'_>,
    ) -> Result<()> {
        results.drain(..).for_each(Tensor::recycle);
        self.run_all(arguments, &[], results, Told { made: Some(made), done: None })
    }

    /// As [`Program::run`], and the values with these names after the outputs: any intermediate, or
    /// `d_x` for the gradient of `x`.
    ///
    /// Errors also for a name that the program does not have; a value that was dropped as unused is
    /// not there any more.
    pub fn run_with(&self, arguments: &[&Tensor], names: &[&str]) -> Result<Vec<Tensor>> {
        let found = names.iter().map(|name| {
            let at = self.values.iter().position(|v| v.name == *name);
            at.map(|i| Id(i as u32)).ok_or_else(|| unknown(self, name))
        });
        let asked = found.collect::<Result<Vec<Id>>>()?;
        let mut results = Vec::new();
        self.run_all(arguments, &asked, &mut results, Told::default())?;
        Ok(results)
    }

    pub(super) fn run_all(
        &self,
        arguments: &[&Tensor],
        asked: &[Id],
        results: &mut Vec<Tensor>,
        told: Told<'_>,
    ) -> Result<()> {
        not_traced()?;
        self.check_arguments(arguments)?;
        arguments.iter().try_for_each(|argument| argument.catch_up())?;
        self.cells.iter().try_for_each(|cell| cell.leaf.value.catch_up())?;
        self.fresh.iter().for_each(Drawn::rewind);
        // A requested value may be internal to a group, so only a run without requests is planned.
        if self.is_planned && asked.is_empty() {
            return self.run_planned(arguments, results, told);
        }
        let scratch = lock(&self.scratch).take();
        let mut values = scratch.unwrap_or_default();
        let outcome = self.compute_all(arguments, asked, &mut values, told);
        let outcome = outcome.and_then(|()| self.hand_out(asked, &values, results));
        values.drain(..).flatten().for_each(Value::recycle);
        *lock(&self.scratch) = Some(values);
        outcome
    }

    fn run_planned(
        &self,
        arguments: &[&Tensor],
        results: &mut Vec<Tensor>,
        told: Told<'_>,
    ) -> Result<()> {
        let placement = self.placement();
        let machine = lock(&self.machine).take();
        let mut machine = match machine {
            Some(machine) => machine,
            None => Machine::new(self, placement)?,
        };
        let outcome = machine.run(self, placement, arguments, told);
        let outcome = outcome.and_then(|()| self.hand_out(&[], &machine.values, results));
        machine.end(placement);
        *lock(&self.machine) = Some(machine);
        outcome
    }

    /// Gives cells their new values, and the outputs to the caller.
    fn hand_out(&self, asked: &[Id], values: &Values, results: &mut Vec<Tensor>) -> Result<()> {
        let of = |id: Id| values[id.index()].clone().expect("roots are kept");
        let lifetimes = self.lifetimes();
        let mut new: SmallVec<[_; 8]> = SmallVec::new();
        for (cell, _) in self.cells.iter().zip(&lifetimes.written).filter(|(_, written)| !**written)
        {
            if let Some(id) = cell.write {
                // A view would keep all of its base alive, and could not be updated in place.
                let value = of(id);
                new.push((cell, if value.owns() { value } else { value.copied()?.share() }));
            }
        }
        new.into_iter().try_for_each(|(cell, value)| cell.leaf.put(value))?;
        let outputs = self.outputs.iter().map(|o| &o.id).chain(asked);
        results.extend(outputs.map(|id| Tensor::from_parts(of(*id), Source::None)));
        Ok(())
    }

    /// The values of the roots and of those asked for.
    fn compute_all(
        &self,
        arguments: &[&Tensor],
        asked: &[Id],
        values: &mut Values,
        mut told: Told<'_>,
    ) -> Result<()> {
        let lifetimes = self.lifetimes();
        for info in &self.values {
            values.push(match &info.from {
                Origin::Input(i) => Some(arguments[*i].value()),
                Origin::Cell(i) => Some(self.cells[*i].leaf.now()),
                Origin::Constant(value) => Some(value.clone()),
                Origin::Result => None,
            });
        }
        let mut inputs: SmallVec<[Arc<Value>; 8]> = SmallVec::new();
        for (i, instruction) in self.instructions.iter().enumerate() {
            let placed = |e: Error| instruction.placed(e);
            if let Some(places) = lifetimes.in_place.get(&i) {
                let dropped = (&lifetimes.dropped[i][..], asked);
                self.update(instruction, places, values, dropped, |kernel, kept, [g, lr]| {
                    kernel.update(kept, g, lr)
                })
                .map_err(placed)?;
            } else {
                for id in &instruction.inputs {
                    inputs.push(values[id.index()].clone().expect("the check found it defined"));
                }
                let meta = self.info(instruction.result()).meta;
                let outcome = compute_as(&*instruction.op, &inputs, meta).map_err(placed)?;
                inputs.clear();
                let given = std::iter::once(outcome.value).chain(outcome.extra);
                for (id, value) in instruction.outputs.iter().zip(given) {
                    values[id.index()] = Some(value);
                }
            }
            if let Some(made) = &mut told.made {
                self.tell_made(&instruction.outputs, values, made)?;
            }
            drop_all(values, &lifetimes.dropped[i], asked);
            if let Some(done) = &mut told.done {
                done(i);
            }
        }
        Ok(())
    }

    /// Reports the outputs among these values.
    fn tell_made(&self, ids: &[Id], values: &Values, made: Made<'_>) -> Result<()> {
        for (place, output) in self.outputs.iter().enumerate().filter(|(_, o)| ids.contains(&o.id))
        {
            if let Some(value) = &values[output.id.index()] {
                made(place, &Tensor::from_parts(value.clone(), Source::None))?;
            }
        }
        Ok(())
    }

    /// Runs an update, as `run` says, while it holds the leaves that it changes: in place where
    /// nothing else holds their values. Values are forgotten that are dropped after it and not
    /// asked for.
    pub(super) fn update(
        &self,
        instruction: &Instruction,
        places: &[InPlace],
        values: &mut Values,
        (dropped, asked): (&[Id], &[Id]),
        run: impl FnOnce(&dyn UpdateKernel, &mut [&mut Arc<Value>], [&Value; 2]) -> Result<()>,
    ) -> Result<()> {
        let ids = &instruction.inputs;
        let mut held: SmallVec<[_; 5]> = SmallVec::new();
        for place in places {
            let id = ids[place.input];
            let mut leaf = self.cells[place.cell].leaf.value.here();
            if let Some(read) = &values[id.index()] {
                // Another thread may have set it since the run began: that value is overwritten,
                // and does not enter the result.
                if !Arc::ptr_eq(read, &leaf) {
                    *leaf = read.clone();
                }
                if dropped.contains(&id) && !asked.contains(&id) {
                    values[id.index()] = None;
                }
            }
            held.push(leaf);
        }
        let in_place = |at: usize| places.iter().any(|place| place.input == at);
        // A leaf that is both changed and read is held once more, so that a copy is changed.
        let twice = |at: usize| {
            let same = places.iter().position(|place| ids[place.input] == ids[at]);
            same.map(|same| held[same].clone())
        };
        let is_read = |at: &usize| [GRADIENT, LEARNING_RATE].contains(at);
        let mut others: SmallVec<[Arc<Value>; 5]> = SmallVec::new();
        for at in (0..ids.len()).filter(|at| !is_read(at) && !in_place(*at)) {
            let value = twice(at).or_else(|| values[ids[at].index()].clone());
            others.push(value.expect("the check found it defined"));
        }
        let read_twice = [GRADIENT, LEARNING_RATE].map(twice);
        let read = [GRADIENT, LEARNING_RATE].map(|at| values[ids[at].index()].as_ref());
        // A gradient that is added while it is computed is not stored anywhere.
        let [g, lr] = [0, 1].map(|i| &**read_twice[i].as_ref().or(read[i]).unwrap_or(&EMPTY));
        let (mut leaves, mut rest) = (held.iter_mut(), others.iter_mut());
        let mut kept: SmallVec<[&mut Arc<Value>; 8]> = SmallVec::new();
        for at in (0..ids.len()).filter(|at| !is_read(at)) {
            // Both come in the order of the inputs.
            kept.push(match in_place(at) {
                true => leaves.next().expect("one for each place"),
                false => rest.next().expect("one for each other input"),
            });
        }
        let Kernel::Whole(kernel) = instruction.op.kernel() else {
            unreachable!("an op that replaces values has a kernel")
        };
        run(kernel.update_kernel().expect("which updates them"), &mut kept, [g, lr])?;
        for (output, &id) in instruction.outputs.iter().enumerate() {
            let in_place = places.iter().find(|place| place.output == output);
            if in_place.is_none_or(|place| place.kept || asked.contains(&id)) {
                // The results are the new values of the cells, in the order of the cells.
                values[id.index()] = Some(kept[output].clone());
            }
        }
        drop(kept);
        drop(held);
        places.iter().try_for_each(|place| self.cells[place.cell].leaf.value.spread())
    }

    pub(super) fn check_arguments(&self, arguments: &[&Tensor]) -> Result<()> {
        match self.mismatch(arguments) {
            None => Ok(()),
            Some(why) => Err(Error::argument(
                "run",
                format!("{why}; trace again for it, or use program::Compiled, which does"),
            )),
        }
    }

    /// Why the program is not for these arguments, if it is not.
    #[doc(hidden)]
    pub fn mismatch(&self, arguments: &[&Tensor]) -> Option<String> {
        if arguments.len() != self.inputs.len() {
            let (n, m) = (self.inputs.len(), arguments.len());
            return Some(format!("the program takes {n} arguments, {m} were given"));
        }
        let switched = |c: &&Cell| c.leaf.requires_grad.load(Ordering::Relaxed) != c.trained;
        if let Some(cell) = self.cells.iter().find(switched) {
            let words = if cell.trained { ["frozen", "trained"] } else { ["trained", "frozen"] };
            let name = self.name(cell.read);
            return Some(format!("`{name}` is {} and was {} in the trace", words[0], words[1]));
        }
        let pairs = self.inputs.iter().zip(arguments);
        let apart = pairs.map(|(id, t)| (self.info(*id), t.meta())).find(|(i, m)| i.meta != *m);
        apart.map(|(info, meta)| {
            let (old, new) = (info.meta, meta);
            let name = &info.name;
            match old.dtype == new.dtype {
                true => {
                    format!("`{name}` has shape {} where the trace had {}", new.shape, old.shape)
                }
                false => format!("`{name}` is {} where the trace had {}", new.dtype, old.dtype),
            }
        })
    }
}
