//! Products whose inner axis is split over the blocks: each block computes the part of its own
//! stretch, and the parts are then summed.

use chainrule_core::dtype::DType;

use crate::graph::{Fold, Graph, Step, Value, ValueId};

/// Most bytes of the parts of a product.
const MOST: usize = 1 << 20;

/// Stretches with fewer terms are not worth the sum.
const TERMS: usize = 4;

/// Most products that are tried.
const TRIED: usize = 8;

/// Products that may be computed in as many parts, the last one first.
pub(crate) fn candidates(graph: &Graph, stored: &[bool], parts: usize) -> Vec<ValueId> {
    let inner = |v: ValueId| match graph.values[v].step {
        Step::Product(a, _) => graph.values[a].dims.last().copied().unwrap_or(0),
        _ => 0,
    };
    let fits = |&v: &ValueId| {
        let value = &graph.values[v];
        let bytes = value.numel() * value.dtype.size() * parts;
        let is_real = matches!(value.dtype, DType::F32 | DType::F64);
        stored[v] && is_real && bytes > 0 && bytes <= MOST && inner(v) >= TERMS * parts
    };
    let mut out: Vec<ValueId> = (0..graph.values.len()).filter(fits).collect();
    out.sort_by_key(|&v| std::cmp::Reverse(inner(v)));
    out.truncate(TRIED);
    out.sort_by_key(|&v| std::cmp::Reverse(v));
    out
}

/// The graph with a product as the sum of parts.
pub(crate) fn in_parts(graph: &Graph, v: ValueId, parts: usize) -> Graph {
    let mut out = moved(graph, v, 1);
    let Step::Product(a, b) = out.values[v].step else { return graph.clone() };
    let dims = out.values[v].dims.clone();
    insert(&mut out, v, parts, &dims, Step::Parts(a, b));
    out.values[v + 1].step = Step::Fold(Fold::Sum, v, vec![0]);
    out
}

/// The gradient of a gather whose added rows are only a sum of parts, if there is one.
pub(crate) fn scattered(graph: &Graph) -> Option<ValueId> {
    let of_parts = |v: &ValueId| {
        let Step::ScatterRows { x, g, .. } = graph.values[*v].step else { return false };
        graph.constant(x) == Some(0.0) && sum_of_parts(graph, g).is_some()
    };
    (0..graph.values.len()).find(of_parts)
}

/// The parts whose sum a value is, seen through changes of shape.
fn sum_of_parts(graph: &Graph, v: ValueId) -> Option<ValueId> {
    match &graph.values[v].step {
        Step::Reshape(x) => sum_of_parts(graph, *x),
        Step::Fold(Fold::Sum, x, axes) if axes[..] == [0] => {
            matches!(graph.values[*x].step, Step::Parts(..)).then_some(*x)
        }
        _ => None,
    }
}

/// The graph with rows of parts added part by part, before they are summed.
pub(crate) fn scattered_in_parts(graph: &Graph, v: ValueId, parts: usize) -> Graph {
    let mut out = moved(graph, v, 2);
    let Step::ScatterRows { index, g, .. } = out.values[v].step else { return graph.clone() };
    let Some(given) = sum_of_parts(graph, g) else { return graph.clone() };
    let [rows, dims] = [g, v].map(|x| out.values[x].dims.clone());
    insert(&mut out, v, parts, &rows, Step::Reshape(given));
    insert(&mut out, v + 1, parts, &dims, Step::ScatterParts { index, g: v });
    out.values[v + 2].step = Step::Fold(Fold::Sum, v + 1, vec![0]);
    out
}

/// The graph with the values from `v` on renumbered, so that `count` new ones fit in before it.
fn moved(graph: &Graph, v: ValueId, count: usize) -> Graph {
    let mut out = graph.clone();
    let moved = |x: &mut ValueId| *x += if *x >= v { count } else { 0 };
    let operands = out.values.iter_mut().flat_map(|value| value.step.operands_mut());
    operands.for_each(moved);
    out.arguments.iter_mut().chain(&mut out.results).for_each(moved);
    for (read, write) in &mut out.states {
        moved(read);
        write.iter_mut().for_each(moved);
    }
    out.counting = out.counting.iter().map(|&x| if x >= v { x + count } else { x }).collect();
    out
}

/// Inserts the parts of a value before it.
fn insert(graph: &mut Graph, at: ValueId, parts: usize, dims: &[usize], step: Step) {
    let Value { name, dtype, line, .. } = graph.values[at].clone();
    let (wanted, mut n) = (format!("{name}_parts"), 1);
    let mut name = wanted.clone();
    while !graph.names.insert(name.clone()) {
        n += 1;
        name = format!("{wanted}_{n}");
    }
    let dims = [&[parts], dims].concat();
    graph.values.insert(at, Value { name, dtype, dims, step, line });
}
