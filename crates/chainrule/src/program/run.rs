//! Running a program, instruction by instruction, through the kernels of the eager mode.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Program;
use super::ir::{Cell, From, Id};
use super::trace::unknown;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::tensor::log::Drawn;
use crate::tensor::node::{Source, lock};
use crate::tensor::run::compute;
use crate::tensor::value::Value;

impl Program {
    /// Runs the program on these arguments: the outputs, in order. Parameters and other cells that the program changes get their new values, all of them at the
    /// end; after an error they are as before.
    ///
    /// Random draws come from the generators that were traced, which move on, also where an error ends the run.
    ///
    /// Errors for arguments of other shapes or dtypes than those of the trace, and for parameters that were frozen or unfrozen since
    /// ([`Compiled`](super::Compiled) traces anew instead), and as the ops do.
    pub fn run(&self, arguments: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.run_with(arguments, &[])
    }

    /// As [`Program::run`], and the values with these names after the outputs: any intermediate, or `d_x` for the gradient of `x`.
    ///
    /// Errors also for a name that the program does not have; what was found to be of no use is not there any more.
    pub fn run_with(&self, arguments: &[&Tensor], names: &[&str]) -> Result<Vec<Tensor>> {
        let found = names.iter().map(|name| {
            let at = self.values.iter().position(|v| v.name == *name);
            at.map(|i| Id(i as u32)).ok_or_else(|| unknown(self, name))
        });
        let asked = found.collect::<Result<Vec<Id>>>()?;
        self.check_arguments(arguments)?;
        self.fresh.iter().for_each(Drawn::rewind);
        let values = self.compute_all(arguments, &asked)?;
        let of = |id: Id| values[&id].clone();
        for cell in &self.cells {
            if let Some(id) = cell.write {
                // A view would keep the whole of what it is a part of, and is no value to be changed in place.
                let new = of(id);
                let new = if new.owns() { new } else { Arc::new(new.copied()?) };
                *lock(&cell.leaf.value) = new;
            }
        }
        let outputs = self.outputs.iter().map(|o| o.id).chain(asked);
        Ok(outputs.map(|id| Tensor::from_parts(of(id), Source::None)).collect())
    }

    /// The values of the roots and of those asked for.
    fn compute_all(&self, arguments: &[&Tensor], asked: &[Id]) -> Result<HashMap<Id, Arc<Value>>> {
        let mut values: Vec<Option<Arc<Value>>> = Vec::with_capacity(self.values.len());
        for info in &self.values {
            values.push(match &info.from {
                From::Input(i) => Some(arguments[*i].value()),
                From::Cell(i) => Some(lock(&self.cells[*i].leaf.value).clone()),
                From::Constant(value) => Some(value.clone()),
                From::Result => None,
            });
        }
        let last = self.last_uses(asked);
        let mut inputs = Vec::new();
        for (i, instruction) in self.instructions.iter().enumerate() {
            inputs.clear();
            for id in &instruction.inputs {
                let value = &values[id.index()];
                inputs.push(value.clone().expect("the check found it defined"));
            }
            let outcome =
                compute(&*instruction.op, &inputs).map_err(|e| match instruction.location {
                    Some(location) => e.at(location),
                    None => e,
                })?;
            let given = [outcome.value].into_iter().chain(outcome.extra);
            for (id, value) in instruction.outputs.iter().zip(given) {
                values[id.index()] = Some(value);
            }
            inputs.clear();
            for id in instruction.inputs.iter().chain(&instruction.outputs) {
                if last[id.index()] == Some(i) {
                    values[id.index()] = None;
                }
            }
        }
        let roots = self.roots().chain(asked.iter().copied());
        Ok(roots.map(|id| (id, values[id.index()].clone().expect("roots are kept"))).collect())
    }

    /// For each result the instruction after which it is not needed, or `None` if it is a root.
    fn last_uses(&self, asked: &[Id]) -> Vec<Option<usize>> {
        let mut last = vec![None; self.values.len()];
        for (i, instruction) in self.instructions.iter().enumerate() {
            for id in instruction.outputs.iter().chain(&instruction.inputs) {
                last[id.index()] = Some(i);
            }
        }
        for id in self.roots().chain(asked.iter().copied()) {
            last[id.index()] = None;
        }
        last
    }

    fn check_arguments(&self, arguments: &[&Tensor]) -> Result<()> {
        match self.mismatch(arguments) {
            None => Ok(()),
            Some(why) => Err(Error::argument(
                "run",
                format!("{why}; trace again for it, or use program::Compiled, which does"),
            )),
        }
    }

    /// Why the program is not for these arguments, if it is not.
    pub(super) fn mismatch(&self, arguments: &[&Tensor]) -> Option<String> {
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
