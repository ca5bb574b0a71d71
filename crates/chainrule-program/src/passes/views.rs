//! Redundant views: an op that broadcasts by itself needs no view that stretches or adds axes
//! before it.

use smallvec::SmallVec;

use super::common::keep_name;
use crate::Program;
use crate::ir::{Id, Phase};
use crate::ops::make;
use crate::shape::Shape;
use crate::tensor::op::Kernel;
use crate::tensor::value::Meta;

/// Merges a sum with the reshape that drops its axes, gives elementwise ops their operands as they
/// were before stretching, and writes as `reshape` each op that is no more than that. The ops of
/// the forward pass stay, and so do names that were given.
pub(crate) fn fold(program: &mut Program) {
    let mut stands_for: Vec<Id> = (0..program.values.len() as u32).map(Id).collect();
    let mut made_at: Vec<Option<usize>> = vec![None; program.values.len()];
    let mut uses = vec![0usize; program.values.len()];
    for instruction in &program.instructions {
        instruction.inputs.iter().for_each(|id| uses[id.index()] += 1);
    }
    program.roots().for_each(|id| uses[id.index()] += 1);
    for at in 0..program.instructions.len() {
        for id in &mut program.instructions[at].inputs {
            *id = stands_for[id.index()];
        }
        reshape_alone(program, at);
        if program.instructions[at].phase != Phase::Forward {
            if let Some(same) = turned_back(program, at, &made_at) {
                let result = program.instructions[at].result();
                stands_for[result.index()] = same;
                keep_name(program, result, same);
                continue;
            }
            unstretched(program, at, &made_at);
            reshaped_sum(program, at, &made_at, &uses);
        }
        let result = program.instructions[at].result();
        made_at[result.index()] = Some(at);
    }
    program.outputs.iter_mut().for_each(|o| o.id = stands_for[o.id.index()]);
    for id in program.cells.iter_mut().filter_map(|c| c.write.as_mut()) {
        *id = stands_for[id.index()];
    }
}

/// Whether a value may be left out: it is made by an instruction of the backward pass, and has no
/// name of the user's.
fn may_go(program: &Program, id: Id, at: usize) -> bool {
    program.instructions[at].phase != Phase::Forward && !program.info(id).given
}

fn shape_of(program: &Program, id: Id) -> Shape {
    program.info(id).meta.shape
}

fn reshape_alone(program: &mut Program, at: usize) {
    let instruction = &program.instructions[at];
    let [input] = instruction.inputs[..] else { return };
    if instruction.op.keeps_order(&program.info(input).meta) {
        let shape = shape_of(program, instruction.result());
        program.instructions[at].op = make::reshape(shape);
    }
}

/// Merges two permutations into one, or into none if the second undoes the first: its result is
/// then the original value.
fn turned_back(program: &mut Program, at: usize, made_at: &[Option<usize>]) -> Option<Id> {
    let [turned] = program.instructions[at].inputs[..] else { return None };
    let second = permutation(program, at)?;
    let made = made_at[turned.index()]?;
    let first = permutation(program, made)?;
    let before = program.instructions[made].inputs[0];
    let both: SmallVec<[u8; 8]> = second.iter().map(|a| first[usize::from(*a)]).collect();
    if both.iter().enumerate().all(|(i, a)| i == usize::from(*a)) {
        return Some(before);
    }
    if may_go(program, turned, made) {
        program.instructions[at].op = make::permute(&both);
        program.instructions[at].inputs[0] = before;
    }
    None
}

fn permutation(program: &Program, at: usize) -> Option<SmallVec<[u8; 8]>> {
    Some(program.instructions[at].op.permutation()?.iter().copied().collect())
}

/// The operands of an elementwise op without `expand` and without leading axes of size 1, as far as
/// the result stays the same.
fn unstretched(program: &mut Program, at: usize, made_at: &[Option<usize>]) {
    if !matches!(program.instructions[at].op.kernel(), Kernel::Map(_)) {
        return;
    }
    let out = program.info(program.instructions[at].result()).meta;
    for k in 0..program.instructions[at].inputs.len() {
        while let Some(before) = before_stretching(program, at, k, made_at) {
            let old = std::mem::replace(&mut program.instructions[at].inputs[k], before);
            let instruction = &program.instructions[at];
            let metas = instruction.inputs.iter().map(|id| program.info(*id).meta);
            let metas: SmallVec<[Meta; 3]> = metas.collect();
            if !instruction.op.infer(&metas).is_ok_and(|meta| meta == out) {
                program.instructions[at].inputs[k] = old;
                break;
            }
        }
    }
}

/// The source of an operand that is nothing but stretched.
fn before_stretching(
    program: &Program,
    at: usize,
    k: usize,
    made_at: &[Option<usize>],
) -> Option<Id> {
    let id = program.instructions[at].inputs[k];
    let made = made_at[id.index()]?;
    if !may_go(program, id, made) {
        return None;
    }
    let view = &program.instructions[made];
    let [before] = view.inputs[..] else { return None };
    let Kernel::View(_) = view.op.kernel() else { return None };
    let (from, to) = (shape_of(program, before), shape_of(program, id));
    let stretched = view.op.stretches();
    let padded = view.op.keeps_order(&program.info(before).meta) && is_padded(&from, &to);
    (stretched || padded).then_some(before)
}

/// Whether the shape is the other with axes of size 1 in front.
fn is_padded(from: &Shape, to: &Shape) -> bool {
    let Some(more) = to.rank().checked_sub(from.rank()) else { return false };
    to[..more].iter().all(|&d| d == 1) && to[more..] == from[..]
}

/// A reduction that keeps its axes, and a reshape that drops just these.
fn reshaped_sum(program: &mut Program, at: usize, made_at: &[Option<usize>], uses: &[usize]) {
    let instruction = &program.instructions[at];
    let [sum] = instruction.inputs[..] else { return };
    let Some(made) = made_at[sum.index()] else { return };
    if uses[sum.index()] != 1
        || !may_go(program, sum, made)
        || !instruction.op.keeps_order(&program.info(sum).meta)
    {
        return;
    }
    let Some(op) = program.instructions[made].op.without_kept_axes() else { return };
    let input = program.instructions[made].inputs[0];
    let Ok(meta) = op.infer(&[program.info(input).meta]) else { return };
    if meta.shape == shape_of(program, instruction.result()) {
        let inputs = program.instructions[made].inputs.clone();
        let made_by = program.instructions[made].made_by.clone();
        let instruction = &mut program.instructions[at];
        (instruction.op, instruction.inputs, instruction.made_by) = (op, inputs, made_by);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Phase, Program};
    use chainrule_core::{DType, Generator, Slice, Tensor};

    type ViewLoss = fn(&Tensor, &Tensor) -> Tensor;

    /// Losses whose backward passes are full of views.
    const LOSSES: [(&str, ViewLoss); 7] = [
        ("a row for all", |w, b| (w * b.unsqueeze(0)).sum_all()),
        ("a new axis by a slice", |w, b| {
            (w * b.slice(&[Slice::NewAxis, Slice::from(..)])).sum_all()
        }),
        ("column sums", |w, b| (w.sum(0, true).reshape([-1]) * b).tanh().sum_all()),
        ("means that are stretched", |w, b| ((w - w.mean(1, true)) * b).square().mean_all()),
        ("turned twice", |w, b| (w.t().exp().t() * b).sum_all()),
        ("turned for a product", |w, _| w.matmul(&w.t().t().t()).tanh().sum_all()),
        ("pieces that are whole", |w, b| {
            let n = w.shape()[0];
            (w.narrow(0, 0, n) * b).sin().sum_all()
        }),
    ];

    /// Bit for bit the same, over shapes with axes of one element and of none.
    #[test]
    fn views_are_folded_and_change_no_bit() {
        let g = &mut Generator::manual_seed(4);
        for (name, loss) in LOSSES {
            for shape in [[3, 4], [1, 4], [3, 1], [1, 1], [0, 4]] {
                let w = Tensor::randn(shape, DType::F32, g).parameter().named("w");
                let b = Tensor::randn([shape[1]], DType::F32, g).parameter().named("b");
                let traced = Program::trace([], |_| {
                    let loss = loss(&w, &b);
                    loss.backward();
                    let grad = |x: &Tensor| x.grad().unwrap_or_else(|| x.zeros_like());
                    Ok(vec![loss, grad(&w), grad(&b)])
                })
                .unwrap();
                let folded = traced.optimized();
                let bits = |p: &Program| -> Vec<Vec<u32>> {
                    let bits = |x: &Tensor| x.to_vec::<f32>().iter().map(|x| x.to_bits()).collect();
                    p.run(&[]).unwrap().iter().map(bits).collect()
                };
                assert_eq!(bits(&traced), bits(&folded), "{name} {shape:?}\n{traced}\n{folded}");
                assert!(folded.len() <= traced.len());
            }
        }
    }

    #[test]
    fn a_broadcast_needs_no_expand() {
        let g = &mut Generator::manual_seed(5);
        let w = Tensor::randn([3, 4], DType::F32, g).parameter().named("w");
        let b = Tensor::randn([4], DType::F32, g).parameter().named("b");
        let traced = Program::trace([], |_| {
            ((&w - w.mean(1, true)) * &b).square().sum(1, false).exp().sum_all().backward();
            Ok(vec![w.grad().unwrap(), b.grad().unwrap()])
        });
        let program = traced.unwrap().optimized();
        let backward: Vec<_> = program.lines().filter(|l| l.phase() == Phase::Backward).collect();
        let views: Vec<_> = backward.iter().filter(|l| l.op() == "expand").collect();
        assert!(views.is_empty(), "{program}");
    }
}
