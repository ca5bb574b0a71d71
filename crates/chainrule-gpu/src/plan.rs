//! Values that are stored, and values that are computed where they are used.

use std::collections::BTreeSet;

use crate::attention::bases;
use crate::dialect::Dialect;
use crate::epilogues::Finished;
use crate::forms::is_slow;
use crate::graph::{Graph, Step, ValueId};
use crate::products::{base, is_librarys};

/// Longest chain of expressions in one kernel.
const DEEPEST: usize = 48;

/// How a value is used, seen through views.
#[derive(Clone, Copy, Default)]
struct Uses {
    count: usize,
    /// Whether a user reads an element many times.
    often: bool,
    /// Elements of the largest user that computes it for each of its own.
    reach: usize,
}

/// For each value, whether it has a buffer of its own.
pub(crate) fn stored(graph: &Graph, dialect: Dialect) -> Vec<bool> {
    let n = graph.values.len();
    let again = repeated(graph);
    let mut uses = vec![Uses::default(); n];
    let mut out = vec![false; n];
    for root in graph.roots() {
        out[root] = true;
        uses[root].count += 1;
    }
    for v in (0..n).rev() {
        let value = &graph.values[v];
        let own = uses[v];
        if own.count == 0 {
            continue;
        }
        let slow = matches!(&value.step, Step::Map(op, _) if is_slow(op));
        let spread = own.reach > 2 * value.numel();
        let keeps = match &value.step {
            step if step.is_view() => false,
            Step::Patches(..) | Step::Seen(..) => false,
            Step::Map(..) if again[v] => own.often || (spread && slow),
            Step::Map(..) => own.count > 1 || own.often || (spread && slow),
            step if step.is_light() => own.count > 1,
            step => !step.is_given(),
        };
        out[v] |= keeps;
        if let (true, Step::Attention(attention)) = (out[v], &value.step) {
            bases(graph, attention).into_iter().for_each(|x| out[x] = true);
        }
        if out[v] && is_librarys(graph, v) {
            let (operands, others) = factors(&value.step);
            others.into_iter().for_each(|x| out[x] |= !graph.values[x].step.is_given());
            for x in operands {
                let read = base(graph, x);
                out[read] |= !graph.values[read].step.is_given() || graph.scalar(read).is_some();
            }
        }
        let inlined = !out[v] && value.step.is_light();
        let many = reads_often(&value.step);
        let reach = if inlined { own.reach } else { value.numel() };
        for x in value.step.operands() {
            let u = &mut uses[x];
            let copies = inlined && (value.step.is_view() || again[v]);
            u.count += if copies { own.count } else { 1 };
            u.often |= many || (inlined && own.often);
            u.reach = u.reach.max(if many { 0 } else { reach });
        }
    }
    deep(graph, &mut out, &uses);
    wide(graph, &mut out, most(dialect) - 2);
    // A value that nothing needs is not computed.
    (0..n).for_each(|v| out[v] &= uses[v].count > 0);
    for v in 0..n {
        if let Step::Beside(main) = graph.values[v].step {
            out[v] = out[main];
        }
    }
    out
}

/// Most operators of an expression that each user computes again.
const AGAIN: usize = 16;

/// Number of operators that one with many steps counts as.
const SLOW: usize = 4;

/// An expression by the buffers that it reads.
struct Expression {
    leaves: BTreeSet<ValueId>,
    /// Each of its operators, once.
    ops: BTreeSet<ValueId>,
}

/// Values that are recomputed where they are used: expressions of few operators that read at most
/// one buffer as large as they are, which is as fast as reading their value.
fn repeated(graph: &Graph) -> Vec<bool> {
    let mut out = Vec::with_capacity(graph.values.len());
    let mut all: Vec<Expression> = Vec::with_capacity(graph.values.len());
    let steps = |ops: &BTreeSet<ValueId>| -> usize {
        let slow = |v: &ValueId| matches!(&graph.values[*v].step, Step::Map(op, _) if is_slow(op));
        ops.iter().map(|v| if slow(v) { SLOW } else { 1 }).sum()
    };
    for (v, value) in graph.values.iter().enumerate() {
        let mut own = Expression { leaves: BTreeSet::new(), ops: BTreeSet::new() };
        let again = match &value.step {
            step if step.is_view() => {
                let below = &all[step.operands()[0]];
                own = Expression { leaves: below.leaves.clone(), ops: below.ops.clone() };
                true
            }
            Step::Map(_, operands) => {
                for &x in operands.iter().filter(|&&x| graph.scalar(x).is_none()) {
                    // Arguments, cells and constants may stand behind their users.
                    let Some(below) = all.get(x) else { continue };
                    own.leaves.extend(&below.leaves);
                    own.ops.extend(&below.ops);
                }
                own.ops.insert(v);
                let large = |&&x: &&ValueId| 8 * graph.values[x].numel() > value.numel();
                steps(&own.ops) <= AGAIN && own.leaves.iter().filter(large).count() <= 1
            }
            _ => false,
        };
        if !again {
            own = Expression { leaves: BTreeSet::from([v]), ops: BTreeSet::new() };
        }
        out.push(again && !value.step.is_view());
        all.push(own);
    }
    out
}

/// Stores values so that no chain of expressions is too long.
fn deep(graph: &Graph, stored: &mut [bool], uses: &[Uses]) {
    let mut depth = vec![0usize; graph.values.len()];
    for (v, value) in graph.values.iter().enumerate() {
        let below = value.step.operands().iter().map(|&x| depth[x]).max().unwrap_or(0);
        depth[v] = below + 1;
        if value.step.is_light() && depth[v] > DEEPEST && uses[v].count > 0 {
            stored[v] = true;
        }
        if stored[v] || value.step.is_given() {
            depth[v] = 0;
        }
    }
}

/// Buffers that a kernel may use: WebGPU guarantees eight.
pub(crate) fn most(dialect: Dialect) -> usize {
    if dialect == Dialect::Cuda { 32 } else { 8 }
}

/// Stores values so that no expression reads more buffers than this.
fn wide(graph: &Graph, stored: &mut [bool], most: usize) {
    let mut reads: Vec<BTreeSet<ValueId>> = Vec::with_capacity(graph.values.len());
    for value in &graph.values {
        let operands = value.step.operands();
        let own = loop {
            let mut own = BTreeSet::new();
            for &x in &operands {
                match stored[x] || graph.values[x].step.is_given() {
                    true if graph.scalar(x).is_none() => drop(own.insert(x)),
                    true => {}
                    false => own.extend(&reads[x]),
                }
            }
            let inside = operands
                .iter()
                .copied()
                .filter(|&x| !stored[x] && !graph.values[x].step.is_given() && reads[x].len() > 1);
            match inside.max_by_key(|&x| reads[x].len()) {
                Some(x) if own.len() > most => stored[x] = true,
                _ => break own,
            }
        };
        reads.push(own);
    }
}

/// The operands of a product, which may be views, and what its epilogue reads.
fn factors(step: &Step) -> (Vec<ValueId>, Vec<ValueId>) {
    match step {
        Step::Finished(Finished { a, b, added, bias, before, .. }) => {
            (vec![*a, *b], [*added, *bias, *before].into_iter().flatten().collect())
        }
        _ => (step.operands(), Vec::new()),
    }
}

fn reads_often(step: &Step) -> bool {
    use Step::*;
    matches!(
        step,
        Product(..)
            | Parts(..)
            | Finished(_)
            | Attention(_)
            | Patches(..)
            | Seen(..)
            | Scatter { .. }
            | ScatterRows { .. }
    ) || matches!(
        step,
        ScatterParts { .. } | Cumulate { .. } | Rank { .. } | Begins(..) | Segments { .. }
    )
}

/// The stored values that an expression reads, and the given ones.
pub(crate) fn reads(graph: &Graph, stored: &[bool], v: ValueId) -> Vec<ValueId> {
    let mut out = Vec::new();
    let mut todo = graph.values[v].step.operands();
    let mut seen = std::collections::HashSet::new();
    while let Some(x) = todo.pop() {
        if !seen.insert(x) {
            continue;
        }
        if stored[x] || graph.values[x].step.is_given() {
            out.push(x);
        } else {
            todo.extend(graph.values[x].step.operands());
        }
    }
    out
}
