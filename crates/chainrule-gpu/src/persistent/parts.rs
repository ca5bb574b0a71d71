//! Products whose inner axis is split over the blocks: each block computes the part of its own
//! stretch, and the parts are summed.

use chainrule_core::dtype::DType;

use crate::graph::{Fold, Graph, Step, Value, ValueId};

/// Most bytes of the parts of a product.
const MOST: usize = 1 << 20;

/// Stretches of fewer terms are not worth their sum.
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
    let mut out = graph.clone();
    let moved = |x: &mut ValueId| *x += usize::from(*x >= v);
    out.values.iter_mut().for_each(|value| value.step.each_operand(moved));
    out.arguments.iter_mut().chain(&mut out.results).for_each(moved);
    for (read, write) in &mut out.states {
        moved(read);
        write.iter_mut().for_each(moved);
    }
    out.counting = out.counting.iter().map(|&x| x + usize::from(x >= v)).collect();
    let Value { name, dtype, dims, step, line } = out.values[v].clone();
    let Step::Product(a, b) = step else { return out };
    let (wanted, mut n) = (format!("{name}_parts"), 1);
    let mut name = wanted.clone();
    while !out.names.insert(name.clone()) {
        n += 1;
        name = format!("{wanted}_{n}");
    }
    let dims = [&[parts], &dims[..]].concat();
    out.values[v].step = Step::Fold(Fold::Sum, v, vec![0]);
    out.values.insert(v, Value { name, dtype, dims, step: Step::Parts(a, b), line });
    out
}
