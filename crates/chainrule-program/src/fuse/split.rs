//! Ops of several results that share nothing become one instruction for each, so that each can go
//! where it fits best.

use crate::Program;
use crate::ir::Instruction;
use crate::passes::dead;
use crate::tensor::op::SeparateResult;

/// Splits ops of several independent results, and drops unused results.
pub(super) fn split(program: &mut Program) {
    let mut instructions = Vec::with_capacity(program.instructions.len());
    let mut found = false;
    for instruction in std::mem::take(&mut program.instructions) {
        let parts = instruction.op.parts();
        if parts.len() < 2 {
            instructions.push(instruction);
            continue;
        }
        found = true;
        for (SeparateResult { op, inputs }, &output) in parts.into_iter().zip(&instruction.outputs)
        {
            instructions.push(Instruction {
                op,
                inputs: inputs.iter().map(|&i| instruction.inputs[i]).collect(),
                outputs: [output].into_iter().collect(),
                ..instruction.clone()
            });
        }
    }
    program.instructions = instructions;
    if found {
        dead::remove(program);
    }
}
