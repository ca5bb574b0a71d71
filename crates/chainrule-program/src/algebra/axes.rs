//! Axes of a program's values, unified: those that meet in an elementwise op are one axis.

use rustc_hash::{FxHashMap, FxHashSet};

use super::ops::{self, Shapes};
use super::term::{Dims, Var};
use crate::Program;
use crate::ir::Id;

/// The axes of all values, as variables: two axes are the same if their variables are.
pub(super) struct AxisMap {
    pub dims: Vec<Dims>,
    /// Operands that an instruction takes with new axes, since their own already stand for
    /// something else.
    pub renamed: FxHashMap<(usize, usize), Dims>,
    pub sizes: Vec<usize>,
}

#[derive(Default)]
struct Classes {
    parent: Vec<u32>,
    size: Vec<usize>,
    /// Pairs of axes that occur in one value, so that they cannot be one axis.
    apart: Vec<FxHashSet<u32>>,
}

impl Classes {
    fn fresh(&mut self, size: usize) -> Option<Var> {
        if size == 1 {
            return None;
        }
        self.parent.push(self.parent.len() as u32);
        self.size.push(size);
        self.apart.push(FxHashSet::default());
        Some(Var(self.parent.len() as u32 - 1))
    }

    fn find(&mut self, v: Var) -> Var {
        let mut at = v.0;
        while self.parent[at as usize] != at {
            let up = self.parent[at as usize];
            self.parent[at as usize] = self.parent[up as usize];
            at = self.parent[at as usize];
        }
        Var(at)
    }

    fn may_join(&mut self, a: Var, b: Var) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        a == b || (self.size[a.0 as usize] == self.size[b.0 as usize] && !self.apart(a, b))
    }

    fn apart(&mut self, a: Var, b: Var) -> bool {
        let list: Vec<u32> = self.apart[a.0 as usize].iter().copied().collect();
        list.into_iter().any(|c| self.find(Var(c)) == b)
    }

    fn join(&mut self, a: Var, b: Var) {
        let (mut a, mut b) = (self.find(a), self.find(b));
        if a == b {
            return;
        }
        if self.apart[a.0 as usize].len() > self.apart[b.0 as usize].len() {
            (a, b) = (b, a);
        }
        self.parent[a.0 as usize] = b.0;
        let moved = std::mem::take(&mut self.apart[a.0 as usize]);
        for c in moved {
            let c = self.find(Var(c));
            self.apart[b.0 as usize].insert(c.0);
            self.apart[c.0 as usize].insert(b.0);
        }
    }

    /// Axes of one value.
    fn together(&mut self, dims: &[Option<Var>]) {
        let all: Vec<Var> = dims.iter().flatten().map(|v| self.find(*v)).collect();
        for a in &all {
            for b in all.iter().filter(|b| *b != a) {
                self.apart[a.0 as usize].insert(b.0);
            }
        }
    }
}

impl AxisMap {
    /// `None` if two axes of one value would coincide; the rules for joining are there to prevent
    /// that.
    pub fn of(program: &Program) -> Option<AxisMap> {
        let mut classes = Classes::default();
        let mut dims: Vec<Option<Dims>> = vec![None; program.values.len()];
        let mut renamed = FxHashMap::default();
        let defined: FxHashSet<Id> =
            program.instructions.iter().flat_map(|i| i.outputs.iter().copied()).collect();
        for (i, info) in program.values.iter().enumerate() {
            if !defined.contains(&Id(i as u32)) {
                dims[i] = Some(fresh(&mut classes, &info.meta.shape));
            }
        }
        for (at, instruction) in program.instructions.iter().enumerate() {
            let inputs: Vec<Dims> = instruction
                .inputs
                .iter()
                .map(|id| dims[id.index()].clone().expect("defined before its use"))
                .collect();
            let shape = program.info(instruction.result()).meta.shape;
            let result = match ops::shapes(program, instruction) {
                Shapes::Elementwise => elementwise(&mut classes, at, &inputs, &shape, &mut renamed),
                Shapes::Given(places) => places
                    .into_iter()
                    .zip(shape.iter())
                    .map(|(place, &size)| match place {
                        Some((operand, axis)) => inputs[operand][axis],
                        None => classes.fresh(size),
                    })
                    .collect(),
                Shapes::Unknown => fresh(&mut classes, &shape),
            };
            classes.together(&result);
            dims[instruction.result().index()] = Some(result);
            for id in &instruction.outputs[1..] {
                let shape = program.info(*id).meta.shape;
                let first = dims[instruction.result().index()].clone().expect("just made");
                let base = match ops::beside(instruction) {
                    Some(places) if inputs[0].len() == shape.rank() => places
                        .iter()
                        .take(shape.rank())
                        .map(|axis| axis.and_then(|a| inputs[0][a]))
                        .collect(),
                    _ if shape == program.info(instruction.result()).meta.shape => first,
                    _ => fresh(&mut classes, &shape),
                };
                dims[id.index()] = Some(base);
            }
        }
        let settle = |classes: &mut Classes, d: &Dims| -> Dims {
            d.iter().map(|v| v.map(|v| classes.find(v))).collect()
        };
        let dims: Vec<Dims> =
            dims.into_iter().map(|d| settle(&mut classes, &d.expect("all are defined"))).collect();
        let renamed: FxHashMap<_, _> =
            renamed.into_iter().map(|(k, d): (_, Dims)| (k, settle(&mut classes, &d))).collect();
        let distinct = |d: &Dims| {
            let mut seen = FxHashSet::default();
            d.iter().flatten().all(|v| seen.insert(*v))
        };
        let sound = dims.iter().chain(renamed.values()).all(distinct);
        sound.then_some(AxisMap { dims, renamed, sizes: classes.size })
    }
}

fn fresh(classes: &mut Classes, shape: &[usize]) -> Dims {
    let dims: Dims = shape.iter().map(|&size| classes.fresh(size)).collect();
    classes.together(&dims);
    dims
}

/// The axes of the result of an elementwise op, whose operands' axes become one where they may.
fn elementwise(
    classes: &mut Classes,
    at: usize,
    inputs: &[Dims],
    shape: &[usize],
    renamed: &mut FxHashMap<(usize, usize), Dims>,
) -> Dims {
    let rank = shape.len();
    let mut result: Dims = std::iter::repeat_n(None, rank).collect();
    for (operand, dims) in inputs.iter().enumerate() {
        let lead = rank - dims.len();
        // An axis of the operand that the result has elsewhere is another index here.
        let mut clash = false;
        let mut joined = result.clone();
        for (a, v) in dims.iter().enumerate() {
            let Some(v) = v.map(|v| classes.find(v)) else { continue };
            match joined[lead + a] {
                Some(w) if classes.may_join(v, w) => classes.join(v, w),
                Some(_) => clash = true,
                None => joined[lead + a] = Some(v),
            }
        }
        let present: Vec<Var> = joined.iter().flatten().map(|v| classes.find(*v)).collect();
        let distinct: FxHashSet<Var> = present.iter().copied().collect();
        clash |= distinct.len() != present.len();
        if clash {
            let own: Dims = dims
                .iter()
                .enumerate()
                .map(|(a, v)| match (v, result[lead + a]) {
                    (None, _) => None,
                    (Some(_), Some(w)) => Some(w),
                    (Some(v), None) => {
                        let size = classes.size[v.0 as usize];
                        classes.fresh(size)
                    }
                })
                .collect();
            for (a, v) in own.iter().enumerate() {
                result[lead + a] = result[lead + a].or(*v);
            }
            renamed.insert((at, operand), own);
            continue;
        }
        result = joined;
        classes.together(&result);
    }
    result
}
