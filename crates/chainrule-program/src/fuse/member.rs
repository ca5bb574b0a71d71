//! Instructions that can be part of a group, and their access to operands.

use smallvec::SmallVec;

use super::layout::{Layouts, Part, part};
use crate::Program;
use crate::ir::{Id, Instruction};
use crate::shape::{Axes, Shape};
use crate::tensor::op::Kernel;
use crate::tensor::reading::{Fold, Reading};
use crate::tensor::role::Role;

/// An instruction that runs on rows.
pub(crate) struct Member {
    pub kind: Kind,
    /// Access of each input.
    pub parts: SmallVec<[Part; 3]>,
    pub rows: usize,
    pub n: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Elementwise.
    Map,
    /// Each row becomes one element.
    RowSum,
    /// The rows are summed, or averaged: the result is known after the last row.
    ColumnSum { mean: bool },
}

impl Member {
    /// Whether row boundaries do not matter.
    pub fn is_flat(&self) -> bool {
        self.kind == Kind::Map && self.parts.iter().all(|p| matches!(p, Part::Whole | Part::Single))
    }

    /// The form of an instruction on rows, if it has one.
    pub fn of(program: &Program, layouts: &Layouts, instruction: &Instruction) -> Option<Member> {
        // A draw must stay in its place among the draws.
        if instruction.op.generator().is_some() || instruction.outputs.len() != 1 {
            return None;
        }
        match instruction.op.kernel() {
            Kernel::Map(_) => map(program, layouts, instruction),
            Kernel::Reduce(axes, _) => reduce(program, layouts, instruction, axes),
            _ => None,
        }
    }
}

fn space(shape: &Shape) -> (usize, usize) {
    let n = shape.last().copied().unwrap_or(1);
    (shape.numel() / n.max(1), n)
}

fn part_of(program: &Program, layouts: &Layouts, id: Id, shape: &Shape) -> Option<Part> {
    part(&program.info(id).meta.shape, layouts.layout(id), shape)
}

fn map(program: &Program, layouts: &Layouts, instruction: &Instruction) -> Option<Member> {
    let shape = program.info(instruction.result()).meta.shape;
    let parts = instruction.inputs.iter().map(|&id| part_of(program, layouts, id, &shape));
    let parts: SmallVec<[Part; 3]> = parts.collect::<Option<_>>()?;
    let (rows, n) = space(&shape);
    let member = Member { kind: Kind::Map, parts, rows, n };
    // Kernels of one operand, and dropout's, take runs of elements.
    let stretches = instruction.inputs.len() == 1 || instruction.op.role() == Role::Dropout;
    let whole = member.parts.iter().all(|p| *p == Part::Whole);
    (shape.numel() > 0 && (whole || !stretches)).then_some(member)
}

fn reduce(
    program: &Program,
    layouts: &Layouts,
    instruction: &Instruction,
    axes: Axes,
) -> Option<Member> {
    let input = instruction.inputs[0];
    let meta = program.info(input).meta;
    let shape = meta.shape;
    let whole = part_of(program, layouts, input, &shape) == Some(Part::Whole);
    let (rows, n) = space(&shape);
    if !whole || shape.numel() == 0 || n == 1 || rows == 1 {
        return None;
    }
    let last = shape.rank() - 1;
    let goes = |a: usize| axes.contains(a) || shape[a] == 1;
    let kind = if axes.contains(last) && (0..last).all(|a| !axes.contains(a) || shape[a] == 1) {
        Kind::RowSum
    } else if !axes.contains(last) && (0..last).all(goes) && meta.dtype.is_float() {
        match instruction.op.reading() {
            Reading::Fold { fold: Fold::Sum, .. } => Kind::ColumnSum { mean: false },
            Reading::Fold { fold: Fold::Mean, .. } => Kind::ColumnSum { mean: true },
            _ => return None,
        }
    } else {
        return None;
    };
    Some(Member { kind, parts: SmallVec::from_elem(Part::Whole, 1), rows, n })
}
