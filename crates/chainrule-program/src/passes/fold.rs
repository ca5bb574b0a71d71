//! Constant folding: values that depend on no input are computed when the program is made.

use std::sync::Arc;

use crate::Program;
use crate::error::Result;
use crate::ir::Origin;
use crate::tensor::run::compute_as;
use crate::tensor::value::Value;

/// Runs the instructions whose inputs are all constants, by the kernels that a run would take;
/// their results become constants.
pub(crate) fn constants(program: &mut Program) -> Result<()> {
    let mut kept = Vec::with_capacity(program.instructions.len());
    for instruction in std::mem::take(&mut program.instructions) {
        let known = |info: &Origin| match info {
            Origin::Constant(value) => Some(value.clone()),
            _ => None,
        };
        let inputs = instruction.inputs.iter().map(|id| known(&program.values[id.index()].from));
        let inputs: Option<Vec<Arc<Value>>> = inputs.collect();
        let Some(inputs) = inputs.filter(|_| instruction.op.generator().is_none()) else {
            kept.push(instruction);
            continue;
        };
        let meta = program.info(instruction.result()).meta;
        let outcome = compute_as(&*instruction.op, &inputs, meta)?;
        let given = std::iter::once(outcome.value).chain(outcome.extra);
        for (id, value) in instruction.outputs.iter().zip(given) {
            program.values[id.index()].from = Origin::Constant(value);
        }
    }
    program.instructions = kept;
    Ok(())
}
