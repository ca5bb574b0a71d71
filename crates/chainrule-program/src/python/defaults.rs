//! The part of a script that calls the step: arguments of the right shapes and dtypes.

use std::fmt::Write;

use super::spell::Speller;
use super::values;
use crate::Program;
use crate::dtype::DType;
use crate::ir::{Cell, Id};
use crate::shape::Shape;
use crate::tensor::reading::Reading;
use crate::tensor::role::Role;

impl Program {
    pub(super) fn python_main(&self, speller: &Speller) -> Result<String, String> {
        let library = speller.library;
        let mut out = String::from("\n\nif __name__ == \"__main__\":\n");
        let _ = write!(out, "    rng = {}\n    arguments = {{\n", library.seeded());
        for &id in &self.inputs {
            let value = speller.spell(&self.random(id, ""))?;
            let _ = writeln!(out, "        \"{}\": {value},", self.name(id));
        }
        for cell in &self.cells {
            let value = speller.spell(&self.cell_default(cell))?;
            let _ = writeln!(out, "        \"{}\": {value},", self.name(cell.read));
        }
        if self.draws() {
            out.push_str("        \"rng\": rng,\n");
        }
        out.push_str("    }\n    outputs, new = step(**arguments)\n");
        let names: Vec<String> = self.outputs.iter().map(|o| format!("\"{}\"", o.name)).collect();
        let names = names.join(", ");
        let _ = writeln!(out, "    for name, value in [*zip([{names}], outputs), *new.items()]:");
        out.push_str(library.printing());
        out.push_str("        print(f\"{name}: {value.dtype} {list(value.shape)}, {text}\")\n");
        Ok(out)
    }

    /// Parameters get random numbers, other cells what they hold now if that is one number
    /// everywhere.
    fn cell_default(&self, cell: &Cell) -> String {
        if cell.trained {
            return self.random(cell.read, " * 0.1");
        }
        let value = cell.leaf.now();
        match values::uniform(&value) {
            Some(_) => values::array(&value),
            None if value.dtype().is_float() => {
                let kind = values::dtype(value.dtype());
                format!("rng.random({}, dtype={kind})", values::shape(&value))
            }
            None => self.random(cell.read, ""),
        }
    }

    fn random(&self, id: Id, scale: &str) -> String {
        let meta = self.info(id).meta;
        let shape = super::params::tuple(meta.shape.iter().map(|d| d.to_string()));
        match meta.dtype {
            DType::Bool => format!("np.asarray(rng.random({shape}) < 0.5)"),
            DType::I64 => format!("np.asarray(rng.integers(0, {}, {shape}))", self.below(id)),
            kind => format!("rng.standard_normal({shape}, dtype={}){scale}", values::dtype(kind)),
        }
    }

    /// Exclusive bound of integers that pick rows or classes: 2 if nothing is known.
    fn below(&self, id: Id) -> usize {
        let mut found: Option<usize> = None;
        for instruction in self.instructions.iter().filter(|i| i.inputs.contains(&id)) {
            let shapes = instruction.inputs.iter().map(|id| self.info(*id).meta.shape);
            let shapes: Vec<Shape> = shapes.collect();
            let at = instruction.inputs.iter().position(|i| *i == id).unwrap_or_default();
            let moved = instruction.op.role() == Role::Moves
                || matches!(
                    instruction.op.reading(),
                    Reading::Reshape | Reading::Permute(_) | Reading::Expand
                );
            let bound = match moved {
                true => Some(self.below(instruction.result())),
                false => instruction.op.picks_below(at, &shapes),
            };
            found = [found, bound].into_iter().flatten().min();
        }
        found.unwrap_or(2).max(1)
    }
}
