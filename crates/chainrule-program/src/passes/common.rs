//! Common subexpressions: what is computed twice is computed once.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::Program;
use crate::dtype::DType;
use crate::ir::{Id, Origin};
use crate::ops::OpId;
use crate::param::Param;
use crate::tensor::op::Op;
use crate::tensor::value::{Meta, Value};

/// Larger constants count as equal only if they share memory.
const SMALL: usize = 64;

/// Replaces each value by an earlier one that applies the same op, with the same parameters, to the
/// same values; dead-code removal then drops the unused one. Constants with the same bits are one.
pub(crate) fn merge(program: &mut Program) {
    let mut stands_for: Vec<Id> = (0..program.values.len() as u32).map(Id).collect();
    let mut constants: HashMap<(Meta2, Bits), Id> = HashMap::new();
    for (i, info) in program.values.iter().enumerate() {
        if let Origin::Constant(value) = &info.from {
            let key = (key_of(info.meta), bits(value));
            stands_for[i] = *constants.entry(key).or_insert(Id(i as u32));
        }
    }
    let mut seen: HashMap<(Key, SmallVec<[Id; 2]>), usize> = HashMap::new();
    for i in 0..program.instructions.len() {
        let instruction = &mut program.instructions[i];
        for id in &mut instruction.inputs {
            *id = stands_for[id.index()];
        }
        if instruction.op.generator().is_some() {
            continue;
        }
        let key = key_of_op(&*instruction.op);
        let first = *seen.entry((key, instruction.inputs.clone())).or_insert(i);
        if first == i {
            continue;
        }
        let same: Vec<(Id, Id)> = program.instructions[i]
            .outputs
            .iter()
            .copied()
            .zip(program.instructions[first].outputs.iter().copied())
            .collect();
        for (later, earlier) in same {
            stands_for[later.index()] = earlier;
            keep_name(program, later, earlier);
        }
    }
    program.outputs.iter_mut().for_each(|o| o.id = stands_for[o.id.index()]);
    for id in program.cells.iter_mut().filter_map(|c| c.write.as_mut()) {
        *id = stands_for[id.index()];
    }
}

/// The identity of two uses of one op with the same parameters: the type, the row of the table, and
/// the parameters.
pub(crate) type Key = (TypeId, Option<OpId>, Param);

pub(crate) fn key_of_op(op: &dyn Op) -> Key {
    ((op as &dyn Any).type_id(), op.id(), op.parameters())
}

/// A name that the user gave is kept rather than one that was made up.
pub(crate) fn keep_name(program: &mut Program, later: Id, earlier: Id) {
    let (given, made_up) = (&program.values[later.index()], &program.values[earlier.index()]);
    if given.given && !made_up.given {
        let name = std::mem::take(&mut program.values[later.index()].name);
        let other = std::mem::replace(&mut program.values[earlier.index()].name, name);
        program.values[earlier.index()].given = true;
        program.values[later.index()].name = other;
        program.values[later.index()].given = false;
    }
}

type Meta2 = (Vec<usize>, DType);

fn key_of(meta: Meta) -> Meta2 {
    (meta.shape.to_vec(), meta.dtype)
}

#[derive(PartialEq, Eq, Hash)]
enum Bits {
    Small(Vec<u64>),
    Large(usize),
}

fn bits(value: &Arc<Value>) -> Bits {
    if value.numel() > SMALL {
        return Bits::Large(Arc::as_ptr(value) as usize);
    }
    macro_rules! all {
        ($ty:ty, $f:expr) => {{
            let mut out = vec![<$ty>::default(); value.numel()];
            value.copy_to(&mut out);
            out.into_iter().map($f).collect()
        }};
    }
    Bits::Small(match value.dtype() {
        DType::F32 => all!(f32, |x: f32| u64::from(x.to_bits())),
        DType::F64 => all!(f64, f64::to_bits),
        DType::I64 => all!(i64, |x: i64| x as u64),
        DType::Bool => all!(u8, u64::from),
        other => unreachable!("no program holds {other}"),
    })
}
