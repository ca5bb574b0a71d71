//! A recorded program run again, whole or only below a changed instruction.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use super::expression::{Expression, Values};
use super::search::Point;
use crate::error::{Error, Result};
use crate::program::{Id, Origin, Program};
use crate::tensor::Tensor;
use crate::tensor::node::{Source, lock};
use crate::tensor::op::Op;
use crate::tensor::run::compute;
use crate::tensor::value::{Meta, Value};
use crate::verdict::numbers::largest;
use crate::verdict::tape::RecordedPass;

/// All values of one run, by id.
pub(crate) struct Run {
    pub values: Vec<Option<Arc<Value>>>,
}

impl Values for Run {
    fn value(&self, id: Id) -> Option<Arc<Value>> {
        self.values[id.index()].clone()
    }
}

impl Run {
    pub fn tensor(&self, id: Id) -> Option<Tensor> {
        self.value(id).map(|v| Tensor::from_parts(v, Source::None))
    }
}

/// A program with its dependencies.
pub(crate) struct Replay {
    pub program: Program,
    /// For each instruction, itself and those that depend on it, in order.
    pub below: Vec<Vec<usize>>,
    /// For each instruction, which results depend on it.
    pub reaches: Vec<Vec<bool>>,
    /// The instruction that makes each value.
    pub maker: Vec<Option<usize>>,
    /// The work of each instruction, of the comparison of the results, and what was done so far.
    work: Vec<u64>,
    comparing: u64,
    spent: Cell<u64>,
    /// Ops of either pass: one may be written for another of its kind.
    pub kin: Vec<Arc<dyn Op>>,
    /// Expressions of the forward pass whose operands are available here.
    pub donated: Vec<(Expression, Meta)>,
}

/// The most expressions taken from a forward pass, and their largest depth.
const DONATED: usize = 40;
const DEPTH: usize = 3;

/// The work of an instruction apart from its numbers, and of an edit before it runs: the cost of
/// dispatch, in operations on numbers.
const DISPATCH: u64 = 500;

/// An instruction with another right-hand side.
#[derive(Clone)]
pub(crate) struct Change {
    pub at: usize,
    pub to: Expression,
    /// The placeholder for the number that is solved for.
    pub number: f64,
}

impl Replay {
    /// Errors for a program that draws random numbers, since no two runs of it agree.
    pub fn new(program: Program) -> Result<Replay> {
        if program.list().iter().any(|i| i.op.generator().is_some()) {
            let why = "it draws random numbers, so its runs cannot be compared";
            return Err(Error::argument("follow", why));
        }
        let list = program.list();
        let mut maker = vec![None; program.infos().len()];
        for (i, instruction) in list.iter().enumerate() {
            instruction.outputs.iter().for_each(|id| maker[id.index()] = Some(i));
        }
        let mut below: Vec<Vec<usize>> = Vec::new();
        let mut reaches = Vec::new();
        for i in 0..list.len() {
            let mut dirty = vec![false; program.infos().len()];
            let mut own = Vec::new();
            for (k, instruction) in list.iter().enumerate().skip(i) {
                if k == i || instruction.inputs.iter().any(|id| dirty[id.index()]) {
                    instruction.outputs.iter().for_each(|id| dirty[id.index()] = true);
                    own.push(k);
                }
            }
            reaches.push(program.results().map(|id| dirty[id.index()]).collect());
            below.push(own);
        }
        let of = |at: usize| {
            let cost = program.cost_at(at);
            DISPATCH + cost.flops / 4 + cost.bytes / 8
        };
        let work = (0..program.list().len()).map(of).collect();
        let size = |id: Id| program.infos()[id.index()].meta.shape.numel() as u64;
        let comparing = 4 * program.results().map(size).sum::<u64>();
        let spent = Cell::new(0);
        let (kin, donated) = (Vec::new(), Vec::new());
        Ok(Replay { program, below, reaches, maker, work, comparing, spent, kin, donated })
    }

    /// Takes over the ops of both passes, and expressions of the forward pass.
    pub fn donate(&mut self, tape: &RecordedPass, run: &Run) {
        let mut numbers: Vec<u64> = tape.nodes.keys().copied().collect();
        numbers.sort_unstable();
        let mut made: HashMap<u64, (Expression, usize)> = HashMap::new();
        let forward = numbers.iter().map(|number| tape.nodes[number].op.clone());
        self.kin = self.program.list().iter().map(|i| i.op.clone()).chain(forward).collect();
        for number in numbers {
            let node = &tape.nodes[&number];
            let saved = lock(&node.saved).clone();
            let mut inputs = Vec::new();
            let mut depth = 1;
            for (i, input) in node.inputs.iter().enumerate() {
                let value = saved.inputs.get(i).and_then(Option::as_ref);
                if let Some(id) = value.and_then(|value| self.at_hand(run, value)) {
                    inputs.push(Expression::Value(id));
                } else if let Some((e, below)) = made.get(&input.number()) {
                    depth = depth.max(below + 1);
                    inputs.push(e.clone());
                }
            }
            if inputs.len() == node.inputs.len() && depth <= DEPTH {
                made.insert(number, (Expression::apply(node.op.clone(), inputs), depth));
            }
        }
        let mut found: Vec<u64> = made.keys().copied().collect();
        found.sort_unstable();
        self.donated = found
            .into_iter()
            .filter(|number| tape.nodes[number].meta.dtype.is_float())
            .map(|number| (made[&number].0.clone(), tape.nodes[&number].meta))
            .take(DONATED)
            .collect();
    }

    /// A value of the program with the same elements.
    fn at_hand(&self, run: &Run, value: &Arc<Value>) -> Option<Id> {
        let elements = Tensor::from_parts(value.clone(), Source::None).to_f64_vec();
        let ids = (0..self.program.infos().len() as u32).map(Id);
        let mut given = ids.filter(|id| self.maker[id.index()].is_none());
        given.find(|id| {
            run.tensor(*id)
                .is_some_and(|own| own.meta() == value.meta && own.to_f64_vec() == elements)
        })
    }

    /// The work done so far, in units of about a nanosecond. It is counted, not measured, so a
    /// search ends at the same place however busy the machine is.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Counts edits that are written.
    pub fn wrote(&self, edits: usize) {
        self.spent.set(self.spent.get() + DISPATCH * edits as u64);
    }

    /// Whether instruction `later` depends on `at`, or is it.
    pub fn is_below(&self, at: usize, later: usize) -> bool {
        self.below[at].contains(&later)
    }

    /// Runs all of it on these arguments.
    pub fn run(&self, arguments: &[Tensor]) -> Result<Run> {
        let mut values: Vec<Option<Arc<Value>>> = Vec::new();
        for info in self.program.infos() {
            values.push(match &info.from {
                Origin::Input(i) => Some(arguments[*i].value()),
                Origin::Cell(i) => Some(self.program.leaf(*i).now()),
                Origin::Constant(value) => Some(value.clone()),
                Origin::Result => None,
            });
        }
        for instruction in self.program.list() {
            let given: Option<Vec<Arc<Value>>> =
                instruction.inputs.iter().map(|id| values[id.index()].clone()).collect();
            let Some(given) = given else { continue };
            let outcome = compute(instruction.op.as_ref(), &given)?;
            let all = std::iter::once(outcome.value).chain(outcome.extra);
            for (id, value) in instruction.outputs.iter().zip(all) {
                values[id.index()] = Some(value);
            }
        }
        Ok(Run { values })
    }

    /// The results of a run with these changes, which are in the order of the program; `None` where
    /// they do not fit. Results that no change reaches are those of the run.
    pub fn changed(&self, run: &Run, changes: &[Change]) -> Option<Vec<Option<Arc<Value>>>> {
        let over = self.changed_values(run, changes)?;
        let own = |id: Id| over[id.index()].clone().or_else(|| run.value(id));
        Some(self.program.results().map(own).collect())
    }

    /// The relative error of the worst result after some changes.
    pub fn error(&self, point: &Point, changes: &[Change]) -> f64 {
        let Some(found) = self.changed(&point.run, changes) else { return f64::INFINITY };
        let each = found.iter().zip(&point.due).map(|(value, due)| {
            let value = value.as_ref().map(|v| Tensor::from_parts(v.clone(), Source::None));
            let given = value.map(|t| t.to_f64_vec()).unwrap_or_default();
            let off = given.iter().zip(due).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let size = largest(due);
            if off == 0.0 || size == 0.0 { off } else { off / size }
        });
        each.fold(0.0, f64::max)
    }

    /// As [`Replay::changed`], with all values that the changes reach, by id.
    pub fn changed_values(&self, run: &Run, changes: &[Change]) -> Option<Vec<Option<Arc<Value>>>> {
        let mut over = Over { run, values: vec![None; run.values.len()] };
        let mut todo: Vec<usize> = changes.iter().flat_map(|c| self.below[c.at].clone()).collect();
        if changes.len() > 1 {
            todo.sort_unstable();
            todo.dedup();
        }
        let work: u64 = todo.iter().map(|&k| self.work[k]).sum();
        self.spent.set(self.spent.get() + DISPATCH + self.comparing + work);
        for k in todo {
            let instruction = &self.program.list()[k];
            if let Some(change) = changes.iter().find(|c| c.at == k) {
                let value = change.to.run(&over, change.number).ok()??;
                if value.meta != self.program.infos()[instruction.result().index()].meta {
                    return None;
                }
                over.values[instruction.result().index()] = Some(value);
                continue;
            }
            let mut given: smallvec::SmallVec<[Arc<Value>; 3]> = smallvec::SmallVec::new();
            for id in &instruction.inputs {
                given.push(over.value(*id)?);
            }
            let outcome = compute(instruction.op.as_ref(), &given).ok()?;
            over.values[instruction.result().index()] = Some(outcome.value);
            for (id, value) in instruction.outputs[1..].iter().zip(outcome.extra) {
                over.values[id.index()] = Some(value);
            }
        }
        Some(over.values)
    }
}

/// A run with some values replaced.
struct Over<'a> {
    run: &'a Run,
    values: Vec<Option<Arc<Value>>>,
}

impl Values for Over<'_> {
    fn value(&self, id: Id) -> Option<Arc<Value>> {
        self.values[id.index()].clone().or_else(|| self.run.value(id))
    }
}

/// The cost, for an edit, of using each value: nothing if the code has a name for it, more if it is
/// an intermediate result. `names` are those of values that the program has no names for; a name
/// that is a call costs a little.
pub(crate) fn takes(replay: &Replay, names: &HashMap<Id, String>) -> Vec<Option<f64>> {
    let cost = |i: usize| {
        let info = &replay.program.infos()[i];
        match (names.get(&Id(i as u32)), &info.from) {
            (Some(name), _) if name.contains('(') => 0.1,
            (Some(_), _) => 0.0,
            (None, Origin::Result) if info.given => 0.0,
            (None, Origin::Result) => 0.3,
            _ => 0.1,
        }
    };
    (0..replay.program.infos().len()).map(|i| Some(cost(i))).collect()
}
