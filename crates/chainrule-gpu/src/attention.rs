//! Attention as kernels that never hold the square of scores; their text is `attention.cu`.

use std::collections::HashSet;

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use chainrule_onnx::lower::{Lowered, Node};

use crate::graph::{Fold, Graph, Step, ValueId};
use crate::kernels::Emitted;
use crate::products::layout;
use crate::read::Reader;

/// Rows of a block, 16 for each of its four warps.
const ROWS: usize = 64;

/// Threads of a block.
const THREADS: usize = 128;

/// Widest rows whose tiles stay in registers.
const WIDEST: usize = 64;

/// Elements that are loaded at once.
const LOADED: usize = 8;

/// The part of attention that a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// The result, and beside it the logarithms of the rows' sums.
    Forward,
    /// The gradient of the queries.
    Queries,
    /// The gradient of the keys, and beside it that of the values.
    Keys,
}

/// Attention of queries, keys and values, without mask and dropout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Attention {
    pub part: Part,
    /// Queries, keys, values; for gradients also the upstream one, the logarithms and the sums of
    /// its rows times the result's.
    pub inputs: Vec<ValueId>,
    pub causal: bool,
    /// The bits of the factor of scores, a number of f64.
    pub scale: u64,
}

/// Whether kernels take all attention of a program.
pub(crate) fn fits(lowered: &Lowered) -> bool {
    lowered.nodes.iter().filter(|n| is_attention(n)).all(|n| {
        let rows = |i: usize| n.outputs[i].dims.last().map_or(0, |&d| d as usize);
        let full = n.outputs.iter().all(|o| !o.dims.contains(&0));
        let narrow = |d: usize| d > 0 && d.is_multiple_of(16) && d <= WIDEST;
        // Rows of queries and values are of one width.
        let widths = if n.op == "Attention" { vec![rows(0)] } else { vec![rows(0), rows(2)] };
        let same = widths.iter().all(|&d| d == widths[0] && narrow(d));
        full && same && n.outputs[0].dtype == DType::F32
    })
}

fn is_attention(node: &Node) -> bool {
    matches!(node.op.as_str(), "Attention" | "AttentionGrad")
}

impl Reader {
    /// Attention, if a node is that.
    pub(crate) fn attention(&mut self, node: &Node, x: &[ValueId]) -> Option<Result<()>> {
        is_attention(node).then(|| self.attend(node, x))
    }

    fn attend(&mut self, node: &Node, x: &[ValueId]) -> Result<()> {
        let int = |name: &str| node.ints.get(name).and_then(|v| v.first()).copied().unwrap_or(0);
        let (causal, scale) = (int("causal") != 0, int("scale").cast_unsigned());
        let step = |part, inputs| Step::Attention(Attention { part, inputs, causal, scale });
        let [first, beside] = [0, 1].map(|i| &node.outputs[i]);
        let heads = &x[x.len() - 3..];
        let mut inputs = Vec::new();
        for &x in heads {
            inputs.push(self.prepared(x, false)?);
        }
        if node.op == "Attention" {
            let y = self.define(first, step(Part::Forward, inputs))?;
            self.define(beside, Step::Beside(y))?;
            return Ok(());
        }
        let [g, y, logs] = [x[0], x[1], x[2]];
        let dims = self.dims(g);
        let rows = dims[..dims.len() - 1].to_vec();
        let terms = Step::Map("Mul", vec![g, y]);
        let terms = self.add("terms", DType::F32, dims.clone(), terms)?;
        let sums = Step::Fold(Fold::Sum, terms, vec![dims.len() - 1]);
        let sums = self.add("sums", DType::F32, rows, sums)?;
        let g = self.prepared(g, false)?;
        inputs.extend([g, logs, sums]);
        self.define(first, step(Part::Queries, inputs.clone()))?;
        let keys = self.define(beside, step(Part::Keys, inputs))?;
        self.define(&node.outputs[2], Step::Beside(keys))?;
        Ok(())
    }
}

/// The matrices of a stack in a buffer, as `Heads` of the text.
struct Heads {
    base: ValueId,
    start: usize,
    far: usize,
    near: usize,
    row: usize,
}

/// The matrices of an operand where kernels can load them as they stand.
fn heads(graph: &Graph, stored: &dyn Fn(ValueId) -> bool, x: ValueId) -> Option<Heads> {
    let of = layout(graph, stored, x)?;
    let dims = &graph.values[x].dims;
    let lead = dims.len() - 2;
    let (row, column) = (of.strides[lead], of.strides[lead + 1]);
    let near = if lead > 0 { of.strides[lead - 1] } else { 0 };
    let mut far = 0;
    let mut size = 1;
    for axis in (0..lead.saturating_sub(1)).rev().filter(|&a| dims[a] != 1) {
        if size == 1 {
            far = of.strides[axis];
        } else if of.strides[axis] != far * size {
            return None;
        }
        size *= dims[axis];
    }
    let even = [of.start, far, near, row].iter().all(|n| n.is_multiple_of(LOADED));
    let (base, start) = (of.base, of.start);
    (column == 1 && even).then_some(Heads { base, start, far, near, row })
}

/// The values that must have a buffer so that attention can read its operands.
pub(crate) fn bases(graph: &Graph, attention: &Attention) -> Vec<ValueId> {
    let is_view = |v: ValueId| graph.values[v].step.is_view();
    let one = |(i, &x): (usize, &ValueId)| match i {
        0..4 => heads(graph, &|v| !is_view(v), x).map_or(x, |h| h.base),
        _ => x,
    };
    attention.inputs.iter().enumerate().map(one).collect()
}

/// The kernel: a call of the function that does it all.
pub(crate) fn emit(graph: &Graph, stored: &[bool], members: &[ValueId]) -> Option<Emitted> {
    let value = &graph.values[*members.first()?];
    let Step::Attention(attention) = &value.step else { return None };
    let Attention { part, inputs, causal, scale } = attention;
    let is_stored = |v: ValueId| stored[v];
    let (mut reads, mut arguments) = (Vec::new(), Vec::new());
    for (i, &x) in inputs.iter().enumerate() {
        let (base, text) = match i {
            0..4 => {
                let Heads { base, start, far, near, row } = heads(graph, &is_stored, x)?;
                let name = &graph.values[base].name;
                (base, format!("Heads{{{name} + {start}, {far}, {near}, {row}}}"))
            }
            _ => (x, graph.values[x].name.clone()),
        };
        if !reads.contains(&base) {
            reads.push(base);
        }
        arguments.push(text);
    }
    arguments.extend(members.iter().map(|&v| graph.values[v].name.clone()));
    let (q, k) = (&graph.values[inputs[0]].dims, &graph.values[inputs[1]].dims);
    let lead = q.len() - 2;
    let (queries, keys, width) = (q[lead], k[lead], q[lead + 1]);
    let stack: usize = q[..lead].iter().product();
    let inner = if lead > 0 { q[lead - 1] } else { 1 };
    let (name, rows) = match part {
        Part::Forward => ("attention_forward", queries),
        Part::Queries => ("attention_queries", queries),
        Part::Keys => ("attention_keys", keys),
    };
    let mut lines = vec![format!("    {name}<{width}, {causal}>(")];
    lines.extend(arguments.iter().map(|a| format!("        {a},")));
    let scale = f64::from_bits(*scale) as f32;
    lines.push(format!("        {inner}, {queries}, {keys}, {scale:?}f\n    );"));
    Some(Emitted {
        lines,
        reads,
        own_reads: Vec::new(),
        shared: Vec::new(),
        blocks: stack * rows.div_ceil(ROWS),
        threads: THREADS,
        waits: true,
        draws: false,
        names: HashSet::new(),
        touched: Vec::new(),
        products: Vec::new(),
    })
}
