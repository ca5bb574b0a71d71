//! The listing: a program as plain code.

use std::fmt;

use super::Program;
use super::access::Line;
use super::ir::{Id, Instruction, Origin};
use super::slices::slice_of;
use crate::tensor::reading::Reading;
use crate::tensor::role::Role;

/// Widest column of code before the shapes leave their column.
const WIDEST: usize = 64;

impl fmt::Display for Program {
    /// One line for each instruction: what it computes, the shape, and what made it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<ListingRow> = Vec::new();
        for &id in &self.inputs {
            rows.push(self.row("input", id));
        }
        for cell in &self.cells {
            let mut row = self.row(if cell.trained { "parameter" } else { "state" }, cell.read);
            if let Some(new) = cell.write {
                row.note = format!("becomes {}", self.name(new));
            }
            rows.push(row);
        }
        for (i, info) in self.values.iter().enumerate() {
            if matches!(&info.from, Origin::Constant(v) if v.shape().rank() > 0) {
                rows.push(self.row("constant", Id(i as u32)));
            }
        }
        let mut phase = None;
        for (i, instruction) in self.instructions.iter().enumerate() {
            if phase.replace(instruction.phase) != Some(instruction.phase) {
                let code = format!("\n{}", instruction.phase.name());
                rows.push(ListingRow { code, shape: String::new(), note: String::new() });
            }
            let group = self.groups.iter().find(|group| group.contains(&i) && group.len() > 1);
            if group.is_some_and(|group| group.start == i) {
                let code = "  fused".to_string();
                rows.push(ListingRow { code, shape: String::new(), note: String::new() });
            }
            let mut row = self.instruction_row(instruction);
            if group.is_some() {
                row.code.insert_str(0, "  ");
            }
            rows.push(row);
        }
        let width = |row: &ListingRow| row.code.chars().count();
        let wide = rows.iter().map(width).filter(|w| *w <= WIDEST).max().unwrap_or(0);
        let shapes = rows.iter().map(|r| r.shape.len()).max().unwrap_or(0);
        for row in &rows {
            let line = format!("{:<wide$}  {:<shapes$}  {}", row.code, row.shape, row.note);
            writeln!(f, "{}", line.trim_end())?;
        }
        let outputs = self.outputs.iter().map(|o| match self.name(o.id) {
            name if name == o.name => name.to_string(),
            name => format!("{} = {name}", o.name),
        });
        writeln!(f, "\nreturn {}", outputs.collect::<Vec<_>>().join(", "))
    }
}

struct ListingRow {
    code: String,
    shape: String,
    note: String,
}

impl fmt::Debug for Program {
    /// As [`Display`](fmt::Display).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Program {
    fn row(&self, kind: &str, id: Id) -> ListingRow {
        let code = format!("{kind} {}", self.name(id));
        ListingRow { code, shape: self.type_of(id), note: String::new() }
    }

    fn type_of(&self, id: Id) -> String {
        let meta = self.info(id).meta;
        format!("{} {}", meta.dtype, meta.shape)
    }

    fn instruction_row(&self, instruction: &Instruction) -> ListingRow {
        let line = Line { program: self, instruction };
        let code = format!("  {}", code(&line));
        let at = line.location().map(ToString::to_string);
        let note: Vec<String> = line.rule().into_iter().chain(at).collect();
        ListingRow { code, shape: self.type_of(instruction.result()), note: note.join(", ") }
    }
}

/// Code of a line: `a, b = f(c)`.
pub(super) fn code(line: &Line<'_>) -> String {
    let (program, instruction) = (line.program, line.instruction);
    let used = |id: &&Id| {
        **id == instruction.result()
            || program.instructions.iter().any(|i| i.inputs.contains(id))
            || program.roots().any(|root| root == **id)
    };
    let targets: Vec<&str> =
        instruction.outputs.iter().filter(used).map(|&id| program.name(id)).collect();
    format!("{} = {}", targets.join(", "), expression(line))
}

/// The op on its operands, as a person writes it.
fn expression(line: &Line<'_>) -> String {
    let inputs = line.inputs();
    let (reading, role) = (line.instruction.op.reading(), line.instruction.op.role());
    let sign = match (&reading, role) {
        (Reading::Add, _) => "+",
        (Reading::Sub, _) => "-",
        (Reading::Mul, _) => "*",
        (Reading::Div, _) => "/",
        (Reading::Pow, _) => "**",
        (_, Role::Product) => "@",
        _ => "",
    };
    if let ([a, b], false) = (inputs.as_slice(), sign.is_empty()) {
        return format!("{a} {sign} {b}");
    }
    if let ([a], Reading::Neg) = (inputs.as_slice(), reading) {
        return format!("-{a}");
    }
    if let ([a], Some(slice)) = (inputs.as_slice(), slice_of(line)) {
        return format!("{a}[{slice}]");
    }
    let parameters = line.parameters();
    let parts = inputs.into_iter().chain((!parameters.is_empty()).then_some(parameters));
    format!("{}({})", line.op(), parts.collect::<Vec<_>>().join(", "))
}
