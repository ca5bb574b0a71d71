//! What the algebra knows of the ops of the table: how their axes go, and which are linear.

use std::ops::Range;

use smallvec::SmallVec;

use crate::program::Program;
use crate::program::ir::Instruction;
use crate::tensor::op::Kernel;

/// How the axes of a result come from those of the operands.
pub(super) enum Shapes {
    /// Aligned from the last axis on.
    Elementwise,
    /// For each axis the operand and axis that it is, or a new one.
    Given(Vec<Option<(usize, usize)>>),
    /// All are new.
    Unknown,
}

/// A parameter of an op that is a number.
pub(super) fn number(instruction: &Instruction, name: &str) -> Option<f64> {
    instruction.op.parameters().field(name)?.number()
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

/// Where each axis of the result of a permutation comes from.
fn permuted(instruction: &Instruction) -> Option<Vec<usize>> {
    instruction.op.parameters().field("from")?.axes()
}

/// The axis along which a gather or the like goes.
pub(super) fn axis(instruction: &Instruction) -> Option<usize> {
    instruction.op.parameters().field("axis")?.size()
}

pub(super) fn shapes(program: &Program, instruction: &Instruction) -> Shapes {
    let meta = |i: usize| program.info(instruction.inputs[i]).meta.shape;
    let out = program.info(instruction.result()).meta.shape;
    let same =
        |operand: usize| Shapes::Given((0..out.rank()).map(|a| Some((operand, a))).collect());
    match instruction.op.name() {
        "expand" => {
            let from = meta(0);
            let lead = out.rank() - from.rank();
            let place = |a: usize| (a >= lead && from[a - lead] == out[a]).then(|| (0, a - lead));
            Shapes::Given((0..out.rank()).map(place).collect())
        }
        "reshape" => reshaped(&meta(0), &out),
        "permute" => match permuted(instruction) {
            Some(from) => Shapes::Given(from.into_iter().map(|a| Some((0, a))).collect()),
            None => Shapes::Unknown,
        },
        "softmax" | "log_softmax" => same(0),
        "softmax_grad" | "log_softmax_grad" | "var_grad" => Shapes::Elementwise,
        "gather" if gathers_one(program, instruction) => {
            let axis = axis(instruction).expect("gather has an axis");
            Shapes::Given((0..out.rank()).map(|a| (a != axis).then_some((0, a))).collect())
        }
        "gather_grad" if gathers_one(program, instruction) => {
            let axis = axis(instruction).expect("gather has an axis");
            Shapes::Given((0..out.rank()).map(|a| (a != axis).then_some((0, a))).collect())
        }
        "one_hot" => {
            let last = out.rank() - 1;
            Shapes::Given((0..out.rank()).map(|a| (a != last).then_some((0, a))).collect())
        }
        _ => match instruction.op.kernel() {
            Kernel::Map(_) => Shapes::Elementwise,
            Kernel::Reduce(..) => match reduced(instruction) {
                Some((axes, keepdim)) => reduction(&axes, keepdim, meta(0).rank()),
                None => Shapes::Unknown,
            },
            Kernel::Whole(_)
                if matches!(
                    instruction.op.name(),
                    "max_axis" | "min_axis" | "var" | "std" | "logsumexp"
                ) =>
            {
                match reduced(instruction) {
                    Some((axes, keepdim)) => reduction(&axes, keepdim, meta(0).rank()),
                    None => Shapes::Unknown,
                }
            }
            _ => Shapes::Unknown,
        },
    }
}

/// Axes of what a kernel gives beside the result: for reductions those that are left, of size 1 where an axis went.
pub(super) fn beside(instruction: &Instruction) -> Option<Vec<Option<usize>>> {
    if !matches!(instruction.op.name(), "var" | "std" | "max_axis" | "min_axis") {
        return None;
    }
    let (axes, _) = reduced(instruction)?;
    Some((0..8).map(|a| (!axes.contains(&a)).then_some(a)).collect())
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
    let Some(axis) = axis(instruction) else { return false };
    let index = program.info(instruction.inputs[1]).meta.shape;
    let whole = match instruction.op.name() {
        "gather" => program.info(instruction.inputs[0]).meta.shape,
        _ => program.info(instruction.result()).meta.shape,
    };
    let same = |a: usize| match a == axis {
        true => index[a] == 1,
        false => index[a] == whole[a],
    };
    index.rank() == whole.rank() && (0..whole.rank()).all(same)
}

/// Whether the op gives zeros for these zero operands, whatever the others are.
pub(super) fn gives_zero(name: &str, zero: impl Fn(usize) -> bool, operands: usize) -> bool {
    linear_in(name, operands).into_iter().any(|mut group| group.all(&zero))
}

/// Groups of operands in each of which the op is linear: it gives zeros where all of a group are zero. An op that takes several parts is linear in
/// all of them together, and one zero part says nothing of the others.
pub(super) fn linear_in(name: &str, operands: usize) -> SmallVec<[Range<usize>; 2]> {
    let one = |group: Range<usize>| std::iter::once(group).collect();
    match name {
        "matmul" => [0..1, 1..2].into_iter().collect(),
        "cat" | "stack" | "unslice" => one(0..operands),
        "where" if operands == 3 => one(1..3),
        "permute" | "reshape" | "expand" | "slice" | "roll" | "flip" | "cumsum" | "tril"
        | "triu" | "remap" | "remap_grad"
            if operands == 1 =>
        {
            one(0..1)
        }
        // The second operand is an index.
        "place" | "pick" | "gather" | "gather_grad" | "index_select" | "index_select_grad"
        | "embedding_grad"
            if operands == 2 =>
        {
            one(0..1)
        }
        "softmax_grad" | "log_softmax_grad" if operands == 2 => one(1..2),
        // The slopes of ops on one tensor, times a gradient.
        "relu_grad" | "abs_grad" | "elu_grad" | "gelu_grad" | "gelu_tanh_grad" | "silu_grad"
        | "softplus_grad" | "leaky_relu_grad" | "erf_grad" | "clamp_grad" | "log_sigmoid_grad"
        | "log2_grad" | "exp2_grad" | "log1p_grad" | "expm1_grad" | "mish_grad"
            if operands == 2 =>
        {
            one(1..2)
        }
        _ => SmallVec::new(),
    }
}
