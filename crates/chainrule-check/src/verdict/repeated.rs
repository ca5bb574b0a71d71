//! A mistake in a line that runs several times, as in a loop over the steps of a sequence: it is
//! made in each of these runs.
//!
//! The ops of a repeated line are grouped by run. A mistake is made in all runs at once and the
//! whole backward pass walked: the result of one run reaches the next one, so their effects do not
//! simply add up.

use std::collections::HashMap;
use std::sync::Arc;

use super::case::{Case, label};
use super::meant::values;
use super::other::{Deviation, fraction};
use super::search::Effort;
use super::tape::with_saved;
use crate::autograd::walk::Planted;
use crate::catalogue::{Fault, Unbroadcast};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};
use crate::tensor::op::{Grads, Op, Saved, Wanted};
use crate::tensor::value::{Meta, Value};
use chainrule_core::ops::Mistake;

/// The most nodes that are walked.
const MOST: usize = 1_000_000;

/// One op of a line, in each of its runs, the last one first.
type Runs = Vec<Arc<Node>>;
/// The values that a tensor has in each run, and its name in the last one.
type Aligned = (String, Vec<Option<Arc<Value>>>);

/// A change of the rule of some nodes.
enum RepeatedEdit {
    Mistake(&'static Mistake),
    /// Another value in place of an operand, or of the result.
    Value {
        place: usize,
        by_node: HashMap<u64, Arc<Value>>,
    },
    Unbroadcast {
        input: usize,
        how: Unbroadcast,
    },
}

/// A change in all runs of an op.
struct InAll<'a> {
    runs: &'a Runs,
    change: RepeatedEdit,
}

impl InAll<'_> {
    fn has(&self, node: &Node) -> bool {
        self.runs.iter().any(|own| own.number == node.number)
    }
}

impl Planted for InAll<'_> {
    fn rule(
        &self,
        node: &Arc<Node>,
        op: &dyn Op,
        _: &Saved<'_>,
        gradient: &Tensor,
        wanted: Wanted,
    ) -> Option<Result<Grads>> {
        match &self.change {
            _ if !self.has(node) => None,
            RepeatedEdit::Mistake(mistake) => {
                let made = with_saved(node, |at| (mistake.rule)(op, at, gradient, wanted));
                Some(made.and_then(|grads| grads))
            }
            RepeatedEdit::Value { place, by_node } => {
                let mut saved = lock(&node.saved).clone();
                match saved.inputs.get_mut(*place) {
                    Some(input) => *input = by_node.get(&node.number).cloned(),
                    None => saved.output = by_node.get(&node.number).cloned(),
                }
                Some(op.vjp(&Saved::new(node, &saved, false), gradient, wanted))
            }
            RepeatedEdit::Unbroadcast { .. } => None,
        }
    }

    fn unbroadcast(
        &self,
        node: &Arc<Node>,
        i: usize,
        part: &Tensor,
        to: Meta,
    ) -> Option<Result<Tensor>> {
        match self.change {
            RepeatedEdit::Unbroadcast { input, how } if input == i && self.has(node) => {
                how.apply(part, &to.shape)
            }
            _ => None,
        }
    }
}

/// The mistakes in all runs of a line that explain the case: the first kind of these that does.
pub(super) fn search(case: &mut Case, effort: &mut Effort) -> Result<Vec<Deviation>> {
    let all = repeated(case);
    let mut search = RepeatedSearch { case, effort, found: Vec::new(), left: MOST };
    for runs in &all {
        search.mistakes(runs)?;
    }
    if search.found.is_empty() {
        search.incoming(&all)?;
    }
    if search.found.is_empty() {
        let values = aligned(search.case, &all);
        for runs in &all {
            search.operands(runs, &values)?;
        }
    }
    let mut found = search.found;
    found.truncate(3);
    Ok(found)
}

/// The ops of lines that run more than once.
fn repeated(case: &Case) -> Vec<Runs> {
    let mut of_line: HashMap<(String, u32), Runs> = HashMap::new();
    for node in case.tape.nodes.values() {
        if let Some(place) = node.place() {
            let line = (place.file().to_string(), place.line());
            of_line.entry(line).or_default().push(node.clone());
        }
    }
    let mut all: Vec<Runs> = of_line.into_values().flat_map(columns).collect();
    all.sort_unstable_by_key(|runs| std::cmp::Reverse(runs[0].number));
    all
}

/// The ops of one line, run by run: the shortest sequence of ops whose repetition gives all of
/// them. The first run may lack some, as when it begins at a constant.
fn columns(mut nodes: Runs) -> Vec<Runs> {
    nodes.sort_unstable_by_key(|node| std::cmp::Reverse(node.number));
    let same =
        |a: &Node, b: &Node| (a.op.id(), a.op.name(), &a.meta) == (b.op.id(), b.op.name(), &b.meta);
    let repeats = |n: usize| (n..nodes.len()).all(|i| same(&nodes[i], &nodes[i - n]));
    let Some(period) = (1..=nodes.len() / 2).find(|n| repeats(*n)) else { return Vec::new() };
    let column = |i: usize| nodes.iter().skip(i).step_by(period).cloned().collect();
    (0..period).map(column).collect()
}

/// Operands and results of the ops of repeated lines, run by run, and the same values one run
/// earlier or later.
fn aligned(case: &Case, all: &[Runs]) -> Vec<Aligned> {
    let values = values(case);
    let mut out: Vec<Aligned> = Vec::new();
    for runs in all {
        let inputs = (0..runs[0].inputs.len()).map(Some);
        for place in inputs.chain([None]) {
            let source = |node: &Arc<Node>| match place {
                Some(i) => node.inputs.get(i).cloned().unwrap_or(Source::None),
                None => Source::Node(node.clone()),
            };
            let of = |node: &Arc<Node>| {
                let saved = lock(&node.saved).clone();
                let own = place.and_then(|i| saved.inputs.get(i).cloned().flatten());
                values.get(&source(node).number()).cloned().or(own)
            };
            out.push((label(&source(&runs[0])), runs.iter().map(of).collect()));
        }
    }
    let moved = |(name, values): &Aligned, by: usize| {
        let (mut sooner, mut later) = (values.clone(), values.clone());
        sooner.rotate_right(by);
        later.rotate_left(by);
        let n = values.len();
        sooner[..by].fill(None);
        later[n - by..].fill(None);
        [
            (format!("`{name}` of the next run"), sooner),
            (format!("`{name}` of the run before"), later),
        ]
    };
    let shifted: Vec<Aligned> =
        out.iter().filter(|(_, v)| v.len() > 2).flat_map(|one| moved(one, 1)).collect();
    let plain = out.into_iter().map(|(name, values)| (format!("`{name}`"), values));
    plain.chain(shifted).collect()
}

struct RepeatedSearch<'a> {
    case: &'a mut Case,
    effort: &'a mut Effort,
    found: Vec<Deviation>,
    /// The number of nodes that may still be walked.
    left: usize,
}

impl RepeatedSearch<'_> {
    /// Whether the change in all runs explains the case.
    fn explains(&mut self, runs: &Runs, change: RepeatedEdit) -> Result<bool> {
        let nodes = self.case.tape.nodes.len();
        if self.left < nodes {
            return Ok(false);
        }
        self.left -= nodes;
        self.effort.replays += 1;
        self.case.gives(&InAll { runs, change })
    }

    fn said(&mut self, runs: &Runs, what: &str) {
        let text = format!("{what}, in each of the {} runs of this line", runs.len());
        self.found.push(Deviation::of(&runs[0], text));
    }

    /// The classic mistakes of the op.
    fn mistakes(&mut self, runs: &Runs) -> Result<()> {
        for mistake in runs[0].op.entry().map_or(&[][..], |e| e.mistakes) {
            if self.explains(runs, RepeatedEdit::Mistake(mistake))? {
                self.said(runs, &format!("{}: {}", mistake.name, mistake.what));
            }
        }
        for input in 0..runs[0].inputs.len() {
            for how in Unbroadcast::ALL {
                if self.explains(runs, RepeatedEdit::Unbroadcast { input, how })? {
                    let name = Fault::Unbroadcast { input, how }.name();
                    self.said(runs, &format!("{name}, for input {input}"));
                }
            }
        }
        Ok(())
    }

    /// The gradient of the last run, used in place of the others' too.
    fn incoming(&mut self, all: &[Runs]) -> Result<()> {
        for runs in all {
            let Some(last) = self.case.tape.gradients.get(&runs[0].number).cloned() else {
                continue;
            };
            let others = runs[1..].iter().filter(|node| node.meta == runs[0].meta);
            let changes: Vec<_> =
                others.map(|node| (Source::Node(node.clone()), last.clone())).collect();
            self.effort.replays += 1;
            let Some(factor) = self.case.factor(&changes)?.filter(|f| f.abs() > 1e-9) else {
                continue;
            };
            let times = if (factor - 1.0).abs() < 1e-9 {
                String::new()
            } else {
                format!("{} times ", fraction(factor))
            };
            let name = label(&Source::Node(runs[0].clone()));
            let text = format!(
                "{times}the gradient that comes into its last run (`{name}`) comes into each of the {} runs before it, too",
                runs.len() - 1
            );
            self.found.push(Deviation::of(&runs[0], text));
        }
        Ok(())
    }

    /// Other values of the same run, or of the next one or the one before, in the place of an
    /// operand.
    fn operands(&mut self, runs: &Runs, values: &[Aligned]) -> Result<()> {
        let saved = lock(&runs[0].saved).clone();
        let places = saved.inputs.iter().map(Option::as_ref).chain([saved.output.as_ref()]);
        let places: Vec<_> = places.map(|value| value.cloned()).collect();
        for (place, right) in places.iter().enumerate() {
            let Some(right) = right else { continue };
            let due = match runs[0].inputs.get(place) {
                Some(input) => label(input),
                None => label(&Source::Node(runs[0].clone())),
            };
            for (name, other) in values.iter().filter(|(_, v)| v.len() == runs.len()) {
                let Some(by_node) = exchanged(runs, place, right, other) else { continue };
                if self.explains(runs, RepeatedEdit::Value { place, by_node })? {
                    self.said(runs, &format!("{name} stands where `{due}` is due"));
                }
            }
        }
        Ok(())
    }
}

/// The values in one position of each run's op; the op's own where a run has none. `None` where
/// they do not fit, or are the same in all.
fn exchanged(
    runs: &Runs,
    place: usize,
    right: &Arc<Value>,
    other: &[Option<Arc<Value>>],
) -> Option<HashMap<u64, Arc<Value>>> {
    let mut is_other = false;
    let mut out = HashMap::new();
    for (node, value) in runs.iter().zip(other) {
        let saved = lock(&node.saved).clone();
        let own = match saved.inputs.get(place) {
            Some(own) => own.clone(),
            None => saved.output,
        };
        let own = own?;
        let value = value.clone().unwrap_or_else(|| own.clone());
        if value.meta != right.meta || !value.dtype().is_float() {
            return None;
        }
        is_other |= !Arc::ptr_eq(&value, &own);
        out.insert(node.number, value);
    }
    is_other.then_some(out)
}
