//! The quantities that the right passes compute, and the search for instructions of a recorded
//! backward pass that compute one of them.

use std::collections::HashMap;
use std::sync::Arc;

use super::replay::{Replay, Run};
use crate::program::bindings;
use crate::program::{Id, Origin};
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};
use crate::tensor::value::Value;
use crate::verdict::numbers::largest;
use crate::verdict::tape::RecordedPass;

/// A value of the right passes, with the words for it.
pub(crate) struct Quantity {
    pub words: String,
    pub elements: Vec<f64>,
    turned: Option<Vec<f64>>,
    pub is_gradient: bool,
}

/// A value as a multiple of a known quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Match {
    pub at: usize,
    pub factor: f64,
}

pub(crate) struct Known {
    pub all: Vec<Quantity>,
}

/// Names of nodes by the statements that bind them.
pub(crate) fn names(nodes: &HashMap<u64, Arc<Node>>) -> HashMap<u64, String> {
    let mut files: HashMap<&str, Vec<bindings::Binding>> = HashMap::new();
    let mut last: HashMap<(&str, usize), u64> = HashMap::new();
    for (number, node) in nodes {
        let file = node.location.file();
        let found = files
            .entry(file)
            .or_insert_with(|| bindings::of_rust(&bindings::read(file).unwrap_or_default()));
        let line = node.location.line() as usize;
        if let Some(at) = found.iter().rposition(|b| (b.first..=b.last).contains(&line)) {
            let of = last.entry((file, at)).or_insert(*number);
            *of = (*of).max(*number);
        }
    }
    let mut out: HashMap<u64, String> = last
        .into_iter()
        .map(|((file, at), number)| (number, files[file][at].name.clone()))
        .collect();
    for (number, node) in nodes {
        if let Some(name) = Source::Node(node.clone()).name() {
            out.insert(*number, name);
        }
    }
    out
}

/// The name of a source, or the op that made it and where.
pub(crate) fn words(source: &Source, names: &HashMap<u64, String>) -> String {
    if let Some(name) = source.name().or_else(|| names.get(&source.number()).cloned()) {
        return format!("`{name}`");
    }
    match source {
        Source::Node(node) => {
            let at = node.place().map_or(String::new(), |at| format!(" ({at})"));
            format!("the result of `{}`{at}", node.op.name())
        }
        _ => "an input".to_string(),
    }
}

impl Known {
    pub fn of(tape: &RecordedPass) -> Known {
        let names = names(&tape.nodes);
        let mut all = Vec::new();
        let mut numbers: Vec<&u64> = tape.sources.keys().collect();
        numbers.sort_unstable();
        for number in numbers {
            let Some(gradient) = tape.gradients.get(number) else { continue };
            let text = format!("the gradient of {}", words(&tape.sources[number], &names));
            all.push(Quantity::of(text, gradient, true));
        }
        for (name, value) in forward_values(tape, &names) {
            let tensor = Tensor::from_parts(value, Source::None);
            if tensor.dtype().is_float() {
                all.push(Quantity::of(name, &tensor, false));
            }
        }
        Known { all }
    }

    /// The quantity that these elements equal up to a factor; a factor of 1 is preferred.
    pub fn find(&self, x: &[f64]) -> Option<Match> {
        if x.len() < 2 || x.iter().any(|x| !x.is_finite()) {
            return None;
        }
        let mut scaled = None;
        for (at, q) in self.all.iter().enumerate().filter(|(_, q)| q.elements.len() == x.len()) {
            for own in std::iter::once(&q.elements).chain(&q.turned) {
                let top = (0..x.len()).max_by(|&i, &j| own[i].abs().total_cmp(&own[j].abs()));
                let Some(top) = top.filter(|&i| own[i] != 0.0) else { continue };
                let factor = x[top] / own[top];
                let allowed = 1e-9 * largest(x);
                if factor == 0.0
                    || !own.iter().zip(x).all(|(q, x)| (q * factor - x).abs() <= allowed)
                {
                    continue;
                }
                if (factor - 1.0).abs() < 1e-9 {
                    return Some(Match { at, factor: 1.0 });
                }
                scaled = scaled.or(Some(Match { at, factor }));
            }
        }
        scaled
    }

    /// Rank of each instruction: the higher, the less likely the mistake is in it.
    pub fn ranks(&self, replay: &Replay, run: &Run) -> Vec<f64> {
        let found: Vec<Option<Match>> = (0..replay.program.infos().len())
            .map(|i| run.tensor(Id(i as u32)).and_then(|t| self.find(&t.to_f64_vec())))
            .collect();
        let exact = |id: &Id| found[id.index()].is_some_and(|m| m.factor == 1.0);
        let given = |id: &Id| !matches!(replay.program.infos()[id.index()].from, Origin::Result);
        let rank = |i: &crate::program::Instruction| match found[i.result().index()] {
            Some(m) if m.factor == 1.0 => 1.2,
            Some(_) => 0.1,
            None if i.inputs.iter().all(|id| given(id) || exact(id)) => 0.0,
            None => 0.5,
        };
        replay.program.list().iter().map(rank).collect()
    }
}

impl Quantity {
    fn of(words: String, tensor: &Tensor, is_gradient: bool) -> Quantity {
        let turned = (tensor.rank() == 2).then(|| tensor.try_t().ok()).flatten();
        Quantity {
            words,
            elements: tensor.to_f64_vec(),
            turned: turned.map(|t| t.to_f64_vec()),
            is_gradient,
        }
    }
}

/// The values that the tape has of the forward pass, with words for them.
pub(crate) fn forward_values(
    tape: &RecordedPass,
    names: &HashMap<u64, String>,
) -> Vec<(String, Arc<Value>)> {
    let mut numbers: Vec<&u64> = tape.nodes.keys().collect();
    numbers.sort_unstable();
    let mut found: Vec<(String, Arc<Value>)> = Vec::new();
    let mut add = |name: String, value: &Arc<Value>| {
        if !found.iter().any(|(_, v)| Arc::ptr_eq(v, value)) {
            found.push((name, value.clone()));
        }
    };
    for number in numbers {
        let node = &tape.nodes[number];
        let saved = lock(&node.saved).clone();
        for (input, value) in node.inputs.iter().zip(&saved.inputs) {
            if let (Some(value), true) = (value, input.number() > 0) {
                add(words(input, names), value);
            }
        }
        if let Some(value) = &saved.output {
            add(words(&Source::Node(node.clone()), names), value);
        }
    }
    found
}
