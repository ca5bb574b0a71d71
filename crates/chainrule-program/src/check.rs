//! The type checker of programs.

use std::collections::HashSet;

use super::Program;
use super::ir::{Id, Instruction, Origin};
use crate::error::{Error, Result};
use crate::tensor::value::Meta;

impl Program {
    /// Checks the program: every value has one definition, which comes before its uses; names are
    /// unique; each op infers from its inputs the shape and dtype that the list says; cells keep
    /// theirs. Each error names the instruction.
    pub fn check(&self) -> Result<()> {
        let mut names = HashSet::new();
        for info in &self.values {
            if !names.insert(info.name.as_str()) {
                return Err(error(format!("two values are named `{}`", info.name)));
            }
        }
        let mut defined: Vec<bool> =
            self.values.iter().map(|v| !matches!(v.from, Origin::Result)).collect();
        for (i, instruction) in self.instructions.iter().enumerate() {
            self.check_one(i, instruction, &mut defined)?;
        }
        for id in self.roots() {
            if !defined.get(id.index()).is_some_and(|d| *d) {
                return Err(error(format!("the result {} is never computed", self.label(id))));
            }
        }
        for cell in &self.cells {
            let (before, after) = (self.info(cell.read), cell.write.map(|id| self.info(id)));
            if let Some(after) = after.filter(|after| after.meta != before.meta) {
                return Err(error(format!(
                    "`{}` is {} and gets a value that is {}",
                    before.name,
                    of(before.meta),
                    of(after.meta)
                )));
            }
        }
        Ok(())
    }

    fn check_one(&self, i: usize, instruction: &Instruction, defined: &mut [bool]) -> Result<()> {
        let what = || {
            let name = instruction.outputs.first().map_or("nothing", |id| self.label(*id));
            format!("instruction {i}, {name} = {}", instruction.op.name())
        };
        let mut metas = Vec::with_capacity(instruction.inputs.len());
        for id in &instruction.inputs {
            if !defined.get(id.index()).is_some_and(|d| *d) {
                let why = format!("{}: uses {} before it is defined", what(), self.label(*id));
                return Err(error(why));
            }
            metas.push(self.info(*id).meta);
        }
        let Some(&result) = instruction.outputs.first() else {
            return Err(error(format!("{}: has no result", what())));
        };
        let inferred =
            instruction.op.infer(&metas).map_err(|e| error(format!("{}: {e}", what())))?;
        let said = self.values.get(result.index()).map(|v| v.meta);
        if said != Some(inferred) {
            let said = said.map_or("unknown".to_string(), of);
            let why = format!("{}: gives {}, the list says {said}", what(), of(inferred));
            return Err(error(why));
        }
        for id in &instruction.outputs {
            match defined.get_mut(id.index()) {
                Some(d) if !*d => *d = true,
                _ => {
                    let why = format!("{}: defines {} anew", what(), self.label(*id));
                    return Err(error(why));
                }
            }
        }
        Ok(())
    }

    fn label(&self, id: Id) -> &str {
        self.values.get(id.index()).map_or("a value that is not listed", |v| &v.name)
    }
}

fn of(meta: Meta) -> String {
    format!("{} {}", meta.dtype, meta.shape)
}

fn error(why: String) -> Error {
    Error::argument("program", why)
}
