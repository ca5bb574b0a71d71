//! Attention as kernels that never hold the square of scores; their text is `attention.cu`.

use std::collections::HashSet;

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use chainrule_onnx::lower::{Lowered, Node, Typed};

use crate::graph::{Graph, Step, Value, ValueId};
use crate::kernels::Emitted;
use crate::products::{Precision, layout};
use crate::read::Reader;

/// Rows of a block where each of its four warps has one tile of 16.
const ROWS: usize = 64;

/// Threads of a block.
const THREADS: usize = 128;

/// Widest rows whose tiles stay in registers.
const WIDEST: usize = 128;

/// Widest rows of bf16 of which a warp has two tiles.
const TWO_UP_TO: usize = 64;

/// Elements that are loaded at once.
const LOADED: usize = 8;

/// The part of attention that a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// The result, and beside it the logarithms of the rows' sums.
    Forward,
    /// The gradient of the queries, and beside it the sums of the rows of the upstream one times
    /// the result.
    Queries,
    /// The gradient of the keys, and beside it that of the values.
    Keys,
}

impl Part {
    /// The number of inputs that are matrices of a stack.
    fn heads(self) -> usize {
        match self {
            Part::Forward => 3,
            Part::Queries => 5,
            Part::Keys => 4,
        }
    }
}

/// Attention of queries, keys and values, without mask and dropout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Attention {
    pub part: Part,
    /// Queries, keys, values; for gradients also the upstream one, for that of the queries the
    /// result, the logarithms, and for that of the keys the sums of [`Part::Queries`].
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
        let scale = n.ints.get("scale").and_then(|v| v.first()).map_or(0, |s| s.cast_unsigned());
        full && same && n.outputs[0].dtype == DType::F32 && f64::from_bits(scale) > 0.0
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
            let y = self.attended(first, step(Part::Forward, inputs))?;
            self.define(beside, Step::Beside(y))?;
            return Ok(());
        }
        let [g, y, logs] = [x[0], x[1], x[2]];
        let dims = self.dims(g);
        let rows = dims[..dims.len() - 1].to_vec();
        let (g, y) = (self.prepared(g, false)?, self.prepared(y, false)?);
        inputs.push(g);
        let of_queries = [&inputs[..], &[y, logs]].concat();
        let queries = self.attended(first, step(Part::Queries, of_queries))?;
        let sums = self.add("sums", DType::F32, rows, Step::Beside(queries))?;
        inputs.extend([logs, sums]);
        let keys = self.attended(beside, step(Part::Keys, inputs))?;
        let values = self.dims(keys);
        let values = self.add("of_values", self.element(), values, Step::Beside(keys))?;
        self.give_back(&node.outputs[2], values)
    }

    /// A result of a kernel, with the rows of all heads at one place side by side, as
    /// layers before and after read them.
    fn attended(&mut self, out: &Typed, step: Step) -> Result<ValueId> {
        let mut dims: Vec<usize> = out.dims.iter().map(|&d| d as usize).collect();
        let rank = dims.len();
        if rank > 2 {
            dims.swap(rank - 3, rank - 2);
        }
        let made = self.add("attended", self.element(), dims, step)?;
        self.give_back(out, made)?;
        Ok(made)
    }

    /// The elements of operands and results.
    fn element(&self) -> DType {
        let precision = self.graph.products.unwrap_or_default().precision;
        if precision == Precision::Bf16 { DType::BF16 } else { DType::F32 }
    }

    fn give_back(&mut self, out: &Typed, made: ValueId) -> Result<()> {
        let turned = self.turned_rows(made)?;
        let op = if self.element() == DType::BF16 { "Cast" } else { "Identity" };
        self.define(out, Step::Map(op, vec![turned])).map(|_| ())
    }

    /// The axes of heads and rows in turn.
    fn turned_rows(&mut self, x: ValueId) -> Result<ValueId> {
        let mut dims = self.dims(x);
        let rank = dims.len();
        if rank < 3 {
            return Ok(x);
        }
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(rank - 3, rank - 2);
        dims.swap(rank - 3, rank - 2);
        self.add("turned", self.element(), dims, Step::Transpose(x, perm))
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
        i if i < attention.part.heads() => heads(graph, &|v| !is_view(v), x).map_or(x, |h| h.base),
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
    let element = match graph.products.unwrap_or_default().precision {
        Precision::F32 => "Floats<3>",
        Precision::Tf32 => "Floats<1>",
        Precision::Bf16 => "Bf16",
    };
    let (mut reads, mut arguments) = (Vec::new(), Vec::new());
    for (i, &x) in inputs.iter().enumerate() {
        let (base, text) = match i {
            i if i < part.heads() => {
                let Heads { base, start, far, near, row } = heads(graph, &is_stored, x)?;
                let name = &graph.values[base].name;
                (base, format!("Heads<{element}>{{{name} + {start}, {far}, {near}, {row}}}"))
            }
            _ => (x, graph.values[x].name.clone()),
        };
        if !reads.contains(&base) {
            reads.push(base);
        }
        arguments.push(text);
    }
    for (i, &v) in members.iter().enumerate() {
        let Value { name, dims, .. } = &graph.values[v];
        let is_matrix = i == 0 || *part == Part::Keys;
        arguments.push(match &dims[..] {
            _ if !is_matrix => name.clone(),
            [.., rows, heads, width] => {
                let row = heads * width;
                format!("Written<{element}>{{{name}, {}, {width}, {row}}}", rows * row)
            }
            [.., width] => format!("Written<{element}>{{{name}, 0, 0, {width}}}"),
            [] => return None,
        });
    }
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
    // Two tiles for each warp where there are rows for them.
    let is_narrow = element == "Bf16" && width <= TWO_UP_TO;
    let tiles = if rows > ROWS && is_narrow { 2 } else { 1 };
    let mut lines = vec![format!("    {name}<{element}, {width}, {causal}, {tiles}>(")];
    lines.extend(arguments.iter().map(|a| format!("        {a},")));
    let scale = f64::from_bits(*scale) as f32;
    lines.push(format!("        {inner}, {queries}, {keys}, {scale:?}f\n    );"));
    Some(Emitted {
        lines,
        reads,
        own_reads: Vec::new(),
        shared: Vec::new(),
        blocks: stack * rows.div_ceil(tiles * ROWS),
        threads: THREADS,
        waits: true,
        draws: false,
        names: HashSet::new(),
        touched: Vec::new(),
        products: Vec::new(),
    })
}
