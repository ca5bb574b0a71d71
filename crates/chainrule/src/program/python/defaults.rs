//! The part of a script that calls the step: arguments of the right shapes and dtypes.

use std::fmt::Write;

use super::values;
use crate::dtype::DType;
use crate::program::Program;
use crate::program::ir::{Cell, Id};
use crate::tensor::node::lock;

impl Program {
    pub(super) fn python_main(&self) -> String {
        let mut out = String::from("\n\nif __name__ == \"__main__\":\n");
        out.push_str("    rng = np.random.default_rng(0)\n    arguments = {\n");
        for &id in &self.inputs {
            let _ = writeln!(out, "        \"{}\": {},", self.name(id), self.random(id, ""));
        }
        for cell in &self.cells {
            let _ =
                writeln!(out, "        \"{}\": {},", self.name(cell.read), self.cell_default(cell));
        }
        if self.draws() {
            out.push_str("        \"rng\": rng,\n");
        }
        out.push_str("    }\n    outputs, new = step(**arguments)\n");
        let names: Vec<String> = self.outputs.iter().map(|o| format!("\"{}\"", o.name)).collect();
        let names = names.join(", ");
        let _ = writeln!(out, "    for name, value in [*zip([{names}], outputs), *new.items()]:");
        out.push_str("        value = np.asarray(value)\n");
        out.push_str(
            "        text = value if value.size == 1 else f\"norm {np.linalg.norm(value.ravel())}\"\n",
        );
        out.push_str("        print(f\"{name}: {value.dtype} {list(value.shape)}, {text}\")\n");
        out
    }

    /// Parameters get random numbers, other cells what they hold now if that is one number everywhere.
    fn cell_default(&self, cell: &Cell) -> String {
        if cell.trained {
            return self.random(cell.read, " * 0.1");
        }
        let value = lock(&cell.leaf.value).clone();
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

    /// What integers must be less than, where they pick rows or classes: 2 if nothing is known.
    fn below(&self, id: Id) -> usize {
        let mut found: Option<usize> = None;
        for instruction in self.instructions.iter().filter(|i| i.inputs.contains(&id)) {
            let shape = |i: usize| self.info(instruction.inputs[i]).meta.shape;
            let params = instruction.op.parameters();
            let field = |name: &str| params.field(name).and_then(|p| p.integer());
            let axis = field("axis").unwrap_or(0) as usize;
            let at = instruction.inputs.iter().position(|i| *i == id);
            let bound = match (instruction.op.name(), at) {
                ("embedding", Some(1)) => Some(shape(0)[0]),
                ("embedding_grad", Some(1)) => field("rows").map(|n| n as usize),
                ("gather" | "index_select", Some(1)) => shape(0).get(axis).copied(),
                ("cross_entropy" | "nll_loss", Some(1)) => Some(shape(0)[1]),
                ("one_hot", Some(0)) => field("classes").map(|n| n as usize),
                ("reshape" | "permute" | "expand" | "slice", Some(0)) => {
                    Some(self.below(instruction.result()))
                }
                _ => None,
            };
            found = [found, bound].into_iter().flatten().min();
        }
        found.unwrap_or(2).max(1)
    }
}
