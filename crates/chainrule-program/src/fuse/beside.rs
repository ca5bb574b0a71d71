//! Removal of instructions whose result another kernel gives as an extra result: a variance
//! computes the mean anyway.

use crate::Program;
use crate::ir::Id;
use crate::passes::common::keep_name;
use crate::passes::dead;

/// Takes such results from their other source, and drops the instructions that recomputed them.
pub(super) fn take(program: &mut Program) {
    let mut found = false;
    for giver in 0..program.instructions.len() {
        let Some((taken, beside)) = taken_from(program, giver) else { continue };
        found = true;
        let own = program.instructions[taken].result();
        replace(program, own, beside);
        keep_name(program, own, beside);
        if taken < giver {
            // Consumers of the result may stand before the giver, so it moves up; its inputs are
            // available there.
            program.instructions[taken..=giver].rotate_right(1);
        }
    }
    if found {
        dead::remove(program);
    }
}

/// An instruction whose result another one gives as an extra result, and that result.
fn taken_from(program: &Program, giver: usize) -> Option<(usize, Id)> {
    let giver = &program.instructions[giver];
    if giver.outputs.len() < 2 {
        return None;
    }
    program.instructions.iter().enumerate().find_map(|(i, taken)| {
        let same = taken.inputs == giver.inputs && taken.outputs.len() == 1;
        let beside = if same { giver.op.also_gives(&*taken.op) } else { None }?;
        Some((i, *giver.outputs.get(beside)?))
    })
}

/// Redirects all users of one value to another.
fn replace(program: &mut Program, old: Id, new: Id) {
    let inputs = program.instructions.iter_mut().flat_map(|i| &mut i.inputs);
    let outputs = program.outputs.iter_mut().map(|o| &mut o.id);
    let cells = program.cells.iter_mut().filter_map(|c| c.write.as_mut());
    inputs.chain(outputs).chain(cells).filter(|id| **id == old).for_each(|id| *id = new);
}
