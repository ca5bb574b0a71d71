//! The algebra's reading of the ops in the table: how their axes go, and which are linear.

use std::ops::Range;

use smallvec::SmallVec;

use crate::Program;
use crate::ir::{Id, Instruction};
use crate::tensor::op::{Kernel, Op};
use crate::tensor::reading::{Fold, Linear, Reading};

/// Map from the operands' axes to those of the result.
pub(super) enum Shapes {
    /// Aligned from the last axis on.
    Elementwise,
    /// For each axis the operand and axis that it is, or a new one.
    Given(Vec<Option<(usize, usize)>>),
    /// All are new.
    Unknown,
}

/// The axes that go in a reduction, and whether they stay with size 1.
pub(super) fn reduced(instruction: &Instruction) -> Option<(Vec<usize>, bool)> {
    let all = instruction.op.parameters();
    let axes = match (all.field("axes"), all.field("axis")) {
        (Some(axes), _) => axes.axes()?,
        (None, Some(axis)) => vec![axis.size()?],
        _ => return None,
    };
    Some((axes, all.field("keepdim")?.is_true()))
}

/// 1 for an op that takes the largest elements along axes, -1 for the least; and the axes.
pub(super) fn extreme(instruction: &Instruction) -> Option<(f64, Vec<usize>)> {
    let least = instruction.op.parameters().field("least")?.is_true();
    Some((if least { -1.0 } else { 1.0 }, reduced(instruction)?.0))
}

/// The axis along which a gather or its gradient goes, and the operand or result that has all of
/// it.
pub(super) fn gather(instruction: &Instruction) -> Option<(usize, Id)> {
    match instruction.op.reading() {
        Reading::Gather { axis } => Some((axis, instruction.inputs[0])),
        Reading::GatherGrad { axis } => Some((axis, instruction.result())),
        _ => None,
    }
}

pub(super) fn shapes(program: &Program, instruction: &Instruction) -> Shapes {
    let meta = |i: usize| program.info(instruction.inputs[i]).meta.shape;
    let out = program.info(instruction.result()).meta.shape;
    let same =
        |operand: usize| Shapes::Given((0..out.rank()).map(|a| Some((operand, a))).collect());
    match instruction.op.reading() {
        Reading::Expand => {
            let from = meta(0);
            let lead = out.rank() - from.rank();
            let place = |a: usize| (a >= lead && from[a - lead] == out[a]).then(|| (0, a - lead));
            Shapes::Given((0..out.rank()).map(place).collect())
        }
        Reading::Reshape => reshaped(&meta(0), &out),
        Reading::Permute(from) => {
            Shapes::Given(from.into_iter().map(|a| Some((0, a.into()))).collect())
        }
        Reading::Softmax | Reading::LogSoftmax => same(0),
        Reading::SoftmaxGrad | Reading::LogSoftmaxGrad | Reading::VarGrad { .. } => {
            Shapes::Elementwise
        }
        Reading::Gather { axis } | Reading::GatherGrad { axis }
            if gathers_one(program, instruction) =>
        {
            Shapes::Given((0..out.rank()).map(|a| (a != axis).then_some((0, a))).collect())
        }
        Reading::OneHot => {
            let last = out.rank() - 1;
            Shapes::Given((0..out.rank()).map(|a| (a != last).then_some((0, a))).collect())
        }
        reading @ (Reading::Opaque
        | Reading::Equal
        | Reading::Add
        | Reading::Sub
        | Reading::Neg
        | Reading::Mul
        | Reading::Div
        | Reading::Pow
        | Reading::Power(_)
        | Reading::Exp
        | Reading::Log
        | Reading::Log1p
        | Reading::Expm1
        | Reading::Tanh
        | Reading::Sigmoid
        | Reading::LogSigmoid
        | Reading::Slope(_)
        | Reading::Fold { .. }
        | Reading::Gather { .. }
        | Reading::GatherGrad { .. }
        | Reading::Cast
        | Reading::NotNegative
        | Reading::Positive) => by_kernel(program, instruction, &reading),
    }
}

/// The map of axes of an op whose reading does not say it.
fn by_kernel(program: &Program, instruction: &Instruction, reading: &Reading) -> Shapes {
    let rank = || program.info(instruction.inputs[0]).meta.shape.rank();
    match (instruction.op.kernel(), reading) {
        (Kernel::Map(_), _) => Shapes::Elementwise,
        (Kernel::Reduce(..), _) => match reduced(instruction) {
            Some((axes, keepdim)) => reduction(&axes, keepdim, rank()),
            None => Shapes::Unknown,
        },
        (Kernel::Whole(_), Reading::Fold { fold: Fold::Norm { .. }, .. }) => Shapes::Unknown,
        (Kernel::Whole(_), Reading::Fold { axes, keepdim, .. }) => {
            let axes: Vec<usize> = axes.iter().collect();
            reduction(&axes, *keepdim, rank())
        }
        (Kernel::Whole(_) | Kernel::View(_), _) => Shapes::Unknown,
    }
}

/// Axes of what a kernel gives beside the result: for reductions those that are left, of size 1
/// where an axis went.
pub(super) fn beside(instruction: &Instruction) -> Option<Vec<Option<usize>>> {
    let Reading::Fold { fold, axes, .. } = instruction.op.reading() else { return None };
    if !matches!(fold, Fold::Var { .. } | Fold::Std { .. } | Fold::Extreme) {
        return None;
    }
    Some((0..8).map(|a| (!axes.contains(a)).then_some(a)).collect())
}

fn reduction(axes: &[usize], keepdim: bool, rank: usize) -> Shapes {
    let places = (0..rank).filter_map(|a| match axes.contains(&a) {
        false => Some(Some((0, a))),
        true if keepdim => Some(None),
        true => None,
    });
    Shapes::Given(places.collect())
}

/// Axes of size 1 come and go; other axes are the same if nothing else happens.
fn reshaped(from: &[usize], to: &[usize]) -> Shapes {
    let longer =
        |shape: &[usize]| -> Vec<usize> { (0..shape.len()).filter(|&a| shape[a] != 1).collect() };
    let (old, new) = (longer(from), longer(to));
    let same = old.len() == new.len() && old.iter().zip(&new).all(|(&a, &b)| from[a] == to[b]);
    if !same {
        return Shapes::Unknown;
    }
    let place = |b: usize| new.iter().position(|&n| n == b).map(|i| (0, old[i]));
    Shapes::Given((0..to.len()).map(place).collect())
}

/// Whether each element of the result is picked from a row of its own.
pub(super) fn gathers_one(program: &Program, instruction: &Instruction) -> bool {
    let Some((axis, whole)) = gather(instruction) else { return false };
    let index = program.info(instruction.inputs[1]).meta.shape;
    let whole = program.info(whole).meta.shape;
    let same = |a: usize| match a == axis {
        true => index[a] == 1,
        false => index[a] == whole[a],
    };
    index.rank() == whole.rank() && (0..whole.rank()).all(same)
}

/// Whether the op gives zeros for these zero operands, whatever the others are.
pub(super) fn gives_zero(op: &dyn Op, zero: impl Fn(usize) -> bool, operands: usize) -> bool {
    linear_in(op, operands).into_iter().any(|mut group| group.all(&zero))
}

/// Groups of operands in each of which the op is linear: it gives zeros where all of a group are
/// zero.
pub(super) fn linear_in(op: &dyn Op, operands: usize) -> SmallVec<[Range<usize>; 2]> {
    let one = |group: Range<usize>| std::iter::once(group).collect();
    match op.linear() {
        Linear::No => SmallVec::new(),
        Linear::First => one(0..1),
        Linear::Last => one(operands - 1..operands),
        Linear::Each => (0..operands).map(|k| k..k + 1).collect(),
        Linear::All => one(0..operands),
        Linear::From(first) => one(first..operands),
    }
}
