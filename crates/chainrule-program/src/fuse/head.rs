//! Products at the head of a group: later members consume their elements as they are computed.

use std::ops::Range;

use super::layout::{Layouts, Part};
use super::member::Member;
use crate::Program;
use crate::ir::{Id, Instruction};
use crate::tensor::op::{Kernel, ProductKernel};
use crate::tensor::reading::Reading;

/// The product that a group begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub instruction: usize,
    /// The instruction that adds a row to the product, and that row: the product adds it itself.
    pub row: Option<(usize, Id)>,
    /// Result of the head.
    pub result: Id,
}

/// The product of floats that an instruction is, if it is one.
pub(crate) fn product<'a>(
    program: &Program,
    instruction: &'a Instruction,
) -> Option<&'a dyn ProductKernel> {
    let Kernel::Whole(kernel) = instruction.op.kernel() else { return None };
    let meta = program.info(instruction.result()).meta;
    let fits = instruction.outputs.len() == 1 && meta.dtype.is_float() && meta.shape.numel() > 0;
    kernel.product().filter(|_| fits)
}

/// The row that `instruction` adds to each row of the result of `product`, if it is such an
/// addition.
pub(super) fn row(
    program: &Program,
    layouts: &Layouts,
    product: &Instruction,
    instruction: &Instruction,
) -> Option<Id> {
    let (result, adds) = (product.result(), self::product(program, product)?.adds_row());
    let meta = program.info(instruction.result()).meta;
    let &[a, b] = &instruction.inputs[..] else { return None };
    let member = Member::of(program, layouts, instruction)?;
    let (row, part) = if a == result {
        (b, member.parts[1])
    } else if b == result {
        (a, member.parts[0])
    } else {
        return None;
    };
    // If the row is itself an expansion, a later member adds it: the product reads its row
    // contiguously.
    let is_row = program.info(row).meta.shape.numel() == *meta.shape.last()?;
    let fits = adds
        && is_row
        && instruction.op.reading() == Reading::Add
        && meta == program.info(result).meta;
    (fits && part == Part::Row).then_some(row)
}

impl Head {
    /// The head of the group `range`, if it has one.
    pub fn of(program: &Program, layouts: &Layouts, range: &Range<usize>) -> Option<Head> {
        let first = &program.instructions[range.start];
        product(program, first)?;
        let head = Head { instruction: range.start, row: None, result: first.result() };
        let own = |i: &usize| !layouts.is_view(program.instructions[*i].result());
        let next = range.clone().skip(1).find(own);
        let found = next.and_then(|i| {
            let instruction = &program.instructions[i];
            Some((i, row(program, layouts, first, instruction)?, instruction.result()))
        });
        Some(match found {
            Some((i, row, result)) => Head { row: Some((i, row)), result, ..head },
            None => head,
        })
    }

    /// Whether instruction `i` is part of the head.
    pub fn has(&self, i: usize) -> bool {
        i == self.instruction || self.row.is_some_and(|(at, _)| i == at)
    }
}
