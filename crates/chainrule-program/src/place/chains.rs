//! Members of a group that run in one pass: two arithmetic steps on the same elements, the first of
//! which nothing else reads.

use std::collections::HashMap;
use std::ops::Range;

use smallvec::SmallVec;

use crate::Program;
use crate::fuse::layout::Part;
use crate::fuse::member::{Kind, Member};
use crate::ir::Id;
use crate::kernels::chain::{Arithmetic, Then};
use crate::tensor::op::Kernel;

/// One pass over the rows: an instruction, or a chain of two.
pub(super) struct Pass {
    /// The instruction, or the second of two.
    pub instruction: usize,
    pub kind: Kind,
    /// The operands, and how each takes part.
    pub inputs: SmallVec<[(Id, Part); 3]>,
    /// Whether it does not matter where a row ends.
    pub flat: bool,
    /// The two steps with three operands, for a chain.
    pub chain: Option<(Arithmetic, Then)>,
}

/// The passes of a group; `wanted` says which values are needed after it.
pub(super) fn passes(
    program: &Program,
    group: &Range<usize>,
    members: Vec<(usize, Member)>,
    wanted: impl Fn(Id) -> bool,
) -> Vec<Pass> {
    let uses = |id: Id| {
        let taken = program.instructions[group.clone()].iter().flat_map(|i| &i.inputs);
        taken.filter(|other| **other == id).count()
    };
    // By the value that it makes, a pass that another may take in.
    let mut open: HashMap<Id, (usize, Arithmetic)> = HashMap::new();
    let mut all: Vec<Option<Pass>> = Vec::with_capacity(members.len());
    for (instruction, member) in members {
        let (inputs, id) = {
            let instruction = &program.instructions[instruction];
            (&instruction.inputs, instruction.result())
        };
        let flat = member.is_flat();
        let parts = inputs.iter().copied().zip(member.parts);
        let mut pass =
            Pass { instruction, kind: member.kind, inputs: parts.collect(), flat, chain: None };
        if let Some(second) = arithmetic(program, instruction, member.kind) {
            let meta = program.info(id).meta;
            let is_like = |id: Id| program.info(id).meta == meta;
            let found = inputs.iter().position(|id| open.contains_key(id) && is_like(*id));
            if let Some((at, (place, first))) =
                found.and_then(|at| Some((at, open.remove(&inputs[at])?)))
            {
                let taken = all[place].take().expect("it was not taken in yet");
                let other = pass.inputs[1 - at];
                pass.inputs = taken.inputs;
                pass.inputs.push(other);
                pass.flat &= taken.flat;
                pass.chain = Some((first, Then::new(second, at == 1)));
            } else if !wanted(id) && uses(id) == 1 {
                open.insert(id, (all.len(), second));
            }
        }
        all.push(Some(pass));
    }
    all.into_iter().flatten().collect()
}

/// The arithmetic of floats that a member is, if it is one.
fn arithmetic(program: &Program, instruction: usize, kind: Kind) -> Option<Arithmetic> {
    let instruction = &program.instructions[instruction];
    let Kernel::Map(kernel) = instruction.op.kernel() else { return None };
    let float = program.info(instruction.result()).meta.dtype.is_float();
    kernel.arithmetic().filter(|_| float && kind == Kind::Map)
}
