//! The right backward pass as a program, edited until it gives the wrong gradients that were handed
//! in.

use std::collections::HashMap;
use std::sync::Arc;

use super::edits::EditKind;
use super::expression::Expression;
use super::known::{Known, forward_values, names, words};
use super::replay::{Replay, takes};
use super::report::{Writer, number};
use super::search::{Goal, Hit, Point, Search};
use crate::autograd::walk::Walk;
use crate::error::Result;
use crate::program::{Id, Instruction, Origin, Place, Program};
use crate::tensor::Tensor;
use crate::tensor::node::Source;
use crate::tensor::value::Value;
use crate::verdict::case::Case;

/// The edit of an instruction of the right pass.
pub(crate) struct Edited {
    pub op: &'static str,
    pub place: Option<Place>,
    pub text: String,
}

/// The edits of the right backward pass, one or two together, after which it gives what was handed
/// in; and how many were tried.
pub(crate) fn edited(case: &Case, work: u64) -> Result<(Vec<Vec<Edited>>, usize)> {
    let nothing = (Vec::new(), 0);
    // Values that no rule saved are available to edits as well.
    let mut computed = case.tape.computed();
    let saved = forward_values(&case.tape, &names(&case.tape.nodes));
    let is_saved = |value: &Arc<Value>| saved.iter().any(|(_, own)| Arc::ptr_eq(own, value));
    computed.extend(case.tape.leaves().into_iter().filter(|(_, value)| !is_saved(value)));
    let Ok(replay) = recorded(case, &computed).and_then(Replay::new) else { return Ok(nothing) };
    let given: Vec<Tensor> =
        computed.iter().map(|(_, v)| Tensor::from_parts(v.clone(), Source::None)).collect();
    let run = replay.run(&given)?;
    let due = case.targets_given();
    let count = replay.program.list().len();
    // An instruction that leads to none of the given gradients cannot have made them wrong.
    let wrong = |i: usize| replay.reaches[i].iter().any(|r| *r);
    let goal = Goal {
        points: vec![Point { run, due }],
        close: case.closeness,
        ranks: vec![0.0; count],
        open: (0..count).map(wrong).collect(),
        takes: takes(&replay, &HashMap::new()),
        work,
    };
    let found = Search::new(&replay, &goal, None).run();
    let known = Known::of(&case.tape);
    let own = names(&case.tape.nodes);
    let values: HashMap<_, String> = forward_values(&case.tape, &own)
        .into_iter()
        .map(|(name, value)| (Arc::as_ptr(&value), name.replace('`', "")))
        .collect();
    let name = |id: Id| match &replay.program.infos()[id.index()].from {
        Origin::Constant(value) => values.get(&Arc::as_ptr(value)).cloned(),
        Origin::Input(i) => {
            let source = case.tape.sources.get(&computed[*i].0)?;
            Some(words(source, &own).replace('`', ""))
        }
        // A gradient known by the name of its tensor is not written out as an expression.
        Origin::Result => {
            let found = known.find(&goal.points[0].run.tensor(id)?.to_f64_vec())?;
            let q = &known.all[found.at];
            let named = found.factor == 1.0 && q.words.starts_with("the gradient of `");
            named.then(|| q.words.replace('`', ""))
        }
        _ => None,
    };
    let ids = (0..replay.program.infos().len() as u32).map(Id);
    let names = ids.filter_map(|id| Some((id, name(id)?))).collect();
    let writer = Writer { replay: &replay, run: &goal.points[0].run, known: &known, names };
    let one = |h: &Hit| said(&writer, &replay.program.list()[h.edit.at], h);
    let mut out: Vec<Vec<Edited>> = Vec::new();
    if let Some(best) = found.alone.first() {
        let near = found.alone.iter().filter(|h| h.cost <= best.cost + 0.05).take(4);
        out.extend(near.map(|h| vec![one(h)]));
    } else if found.is_whole {
        out.push(found.together.iter().map(one).collect());
    }
    Ok((out, found.tried))
}

/// The backward pass to the tensors whose gradients are given.
fn recorded(case: &Case, computed: &[(u64, Arc<Value>)]) -> Result<Program> {
    let roots: Vec<(&Tensor, Tensor)> = case.roots.iter().map(|(t, g)| (t, g.clone())).collect();
    let given: Vec<(String, Tensor)> = computed
        .iter()
        .map(|(n, v)| (format!("value_{n}"), Tensor::from_parts(v.clone(), Source::None)))
        .collect();
    Program::trace(given.iter().map(|(name, t)| (name.as_str(), t)), |_| {
        let walk = Walk { keep_graph: true, targets: Some(case.targets()), ..Walk::default() };
        let found = walk.run(&roots)?;
        let filled = found.into_iter().zip(case.targets()).map(|(g, t)| match g {
            Some(g) => Ok(g),
            None => Tensor::try_full(t.shape(), 0.0, t.dtype()),
        });
        filled.collect()
    })
}

/// An edit in words: what was done in place of what.
fn said(writer: &Writer<'_>, instruction: &Instruction, hit: &Hit) -> Edited {
    let show = |e: &Expression| format!("`{}`", writer.text(e));
    let value = |id: &Id| show(&Expression::Value(*id));
    let own = show(&Expression::of(instruction));
    let text = match &hit.edit.kind {
        EditKind::Operand { was, now, turned } => {
            let turned = if *turned { ", transposed," } else { "" };
            format!("{}{turned} stands where {} is due, in {own}", value(now), value(was))
        }
        EditKind::Factor => {
            format!("{own} is multiplied by {}", writer.times(hit.edit.at, hit.change.number))
        }
        EditKind::Term(id) => {
            format!("{} * {} is added to {own}", number(hit.change.number), value(id))
        }
        EditKind::Times(id) => format!("{own} is multiplied by {}", value(id)),
        EditKind::Mask(id) => format!("{own} is {}", writer.masked(*id)),
        EditKind::Over(id) => format!("{own} is divided by {}", value(id)),
        _ => format!("{} stands where {own} is due", show(&hit.change.to.with(hit.change.number))),
    };
    let place = instruction.location.clone().filter(|place| !place.is_of_library());
    Edited { op: instruction.op.name(), place, text }
}
