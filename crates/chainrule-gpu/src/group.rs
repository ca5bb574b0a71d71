//! Groups of values that one kernel computes.

use std::collections::HashMap;

use crate::dialect::Dialect;
use crate::graph::{Graph, Step, ValueId};
use crate::kernels::{Emitted, Kernel, Shape, emit};
use crate::lanes::becomes_rows;
use crate::plan::{most, reads};

/// Kernels that are tried for a value to join.
const NEAR: usize = 24;

/// Most values that one kernel computes.
const MEMBERS: usize = 16;

/// A step as kernels in order.
pub(crate) struct Grouped {
    pub kernels: Vec<(Kernel, Emitted)>,
    /// For each value whether it has a buffer.
    pub buffers: Vec<bool>,
}

/// Kernels for all stored values.
pub(crate) fn group(graph: &Graph, stored: &[bool], dialect: Dialect) -> Grouped {
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut place: HashMap<ValueId, usize> = HashMap::new();
    for (v, value) in graph.values.iter().enumerate() {
        if !stored[v] || value.step.is_given() || value.numel() == 0 {
            continue;
        }
        if let Step::Beside(main) = value.step {
            let k = place[&main];
            kernels[k].members.push(v);
            place.insert(v, k);
            continue;
        }
        let after = reads(graph, stored, v).iter().filter_map(|x| place.get(x)).max().copied();
        let joins = |k: usize| joined(graph, stored, dialect, &kernels[k], v);
        let first = after.unwrap_or(kernels.len().saturating_sub(NEAR));
        let near = (first..kernels.len()).take(NEAR);
        match near.into_iter().find_map(|k| joins(k).map(|kernel| (k, kernel))) {
            Some((k, kernel)) => {
                kernels[k] = kernel;
                place.insert(v, k);
            }
            None => {
                place.insert(v, kernels.len());
                kernels.push(Kernel { shape: Shape::of(graph, v), members: vec![v] });
            }
        }
    }
    finish(graph, stored, dialect, kernels)
}

/// The kernel with one more value, if they can be computed together.
fn joined(
    graph: &Graph,
    stored: &[bool],
    dialect: Dialect,
    kernel: &Kernel,
    v: ValueId,
) -> Option<Kernel> {
    let value = &graph.values[v];
    if kernel.members.len() >= MEMBERS {
        return None;
    }
    let own = Shape::of(graph, v);
    let mut members = kernel.members.clone();
    members.push(v);
    let mut kernel = Kernel { shape: kernel.shape.clone(), members };
    let light = |&x: &ValueId| graph.values[x].step.is_light();
    if let (Shape::Each(n), Shape::Rows(rows, count)) = (&kernel.shape, &own)
        && *n == rows * count
        && kernel.members[..kernel.members.len() - 1].iter().all(light)
    {
        kernel.shape = own.clone();
        if !becomes_rows(graph, &kernel, dialect) {
            return None;
        }
    }
    let fits = match (&kernel.shape, &own) {
        (a, b) if a == b => !matches!(a, Shape::Product(..) | Shape::Library | Shape::Attention),
        (Shape::Rows(rows, count), Shape::Each(n)) => {
            value.step.is_light() && (n == rows || *n == rows * count)
        }
        (Shape::Product(s, m, n, _), Shape::Each(all)) => {
            value.step.is_light() && *all == s * m * n
        }
        _ => false,
    };
    // A rank reads its whole axis for each element, so it shares no kernel.
    if !fits || matches!(value.step, Step::Rank { .. }) {
        return None;
    }
    let emitted = emit(graph, stored, dialect, &kernel, &|_| true)?;
    let buffers = emitted.reads.len() + kernel.members.len() + usize::from(emitted.draws);
    (buffers <= most(dialect)).then_some(kernel)
}

fn finish(graph: &Graph, stored: &[bool], dialect: Dialect, kernels: Vec<Kernel>) -> Grouped {
    let all: Vec<Emitted> = kernels
        .iter()
        .map(|k| emit(graph, stored, dialect, k, &|_| true).expect("each kernel was tried"))
        .collect();
    let mut buffers = vec![false; graph.values.len()];
    for (v, value) in graph.values.iter().enumerate() {
        buffers[v] = value.step.is_given() && graph.scalar(v).is_none() && !graph.counts(v);
    }
    graph.roots().for_each(|v| buffers[v] = true);
    let whole = kernels.iter().filter(|k| matches!(k.shape, Shape::Attention | Shape::Library));
    whole.flat_map(|k| &k.members).for_each(|&v| buffers[v] = true);
    for emitted in &all {
        emitted.reads.iter().chain(&emitted.own_reads).for_each(|&v| buffers[v] = true);
    }
    let needed = |v: ValueId| buffers[v];
    let texts = kernels.iter().map(|k| emit(graph, stored, dialect, k, &needed));
    let kernels = kernels.iter().cloned().zip(texts.map(|t| t.expect("each kernel was tried")));
    Grouped { kernels: kernels.collect(), buffers }
}
