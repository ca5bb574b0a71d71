//! Dead code: instructions that no root needs.

use crate::Program;
use crate::ir::{Id, Origin};

/// Removes instructions that no root needs, and then values and cells that nothing mentions. The
/// arguments stay.
pub(crate) fn remove(program: &mut Program) {
    for cell in &mut program.cells {
        // A cell that is set to the value it has is not changed.
        cell.write = cell.write.filter(|id| *id != cell.read);
    }
    let mut live = vec![false; program.values.len()];
    for id in program.roots() {
        live[id.index()] = true;
    }
    let mut kept = Vec::with_capacity(program.instructions.len());
    for instruction in std::mem::take(&mut program.instructions).into_iter().rev() {
        // A draw advances its generator, so it stays even if nobody uses its numbers.
        let draws = instruction.op.generator().is_some();
        if draws || instruction.outputs.iter().any(|id| live[id.index()]) {
            instruction.inputs.iter().for_each(|id| live[id.index()] = true);
            kept.push(instruction);
        }
    }
    kept.reverse();
    program.instructions = kept;
    for instruction in &program.instructions {
        instruction.outputs.iter().for_each(|id| live[id.index()] = true);
    }
    for cell in &program.cells {
        live[cell.read.index()] |= cell.write.is_some();
    }
    program.inputs.iter().for_each(|id| live[id.index()] = true);
    compact(program, &live);
}

/// Numbers the living values anew.
fn compact(program: &mut Program, live: &[bool]) {
    let mut new = vec![Id(u32::MAX); live.len()];
    let living = live.iter().zip(&mut new).filter(|(live, _)| **live);
    for (next, (_, id)) in living.enumerate() {
        *id = Id(next as u32);
    }
    let mut i = 0;
    program.values.retain(|_| {
        i += 1;
        live[i - 1]
    });
    let at = |id: &mut Id| *id = new[id.index()];
    for instruction in &mut program.instructions {
        instruction.inputs.iter_mut().chain(&mut instruction.outputs).for_each(at);
    }
    program.inputs.iter_mut().for_each(at);
    program.outputs.iter_mut().for_each(|o| at(&mut o.id));
    program.cells.retain(|c| live[c.read.index()]);
    for (i, cell) in program.cells.iter_mut().enumerate() {
        at(&mut cell.read);
        cell.write.iter_mut().for_each(at);
        program.values[cell.read.index()].from = Origin::Cell(i);
    }
}
