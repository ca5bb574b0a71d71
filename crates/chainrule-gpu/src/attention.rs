//! Attention as kernels that never hold the whole matrix of scores; their text is in `attention/`.

use std::collections::HashSet;

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use chainrule_onnx::lower::{Attended, Node, Typed};

use crate::dropout::Dropout;
use crate::graph::{Graph, Step, Value, ValueId};
use crate::kernels::Emitted;
use crate::products::{Precision, layout};
use crate::read::Reader;

/// Rows of a block in which each of the four warps has one tile of 16.
const ROWS: usize = 64;

/// Threads of a block.
const THREADS: usize = 128;

/// Widest rows whose tiles stay in registers.
const WIDEST: usize = 128;

/// Widest rows, in bf16, for which a warp handles two tiles.
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

/// Attention of queries, keys and values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Attention {
    pub part: Part,
    /// Queries, keys, values; for gradients also the upstream one, for that of the queries the
    /// result, the logarithms, and for that of the keys the sums of [`Part::Queries`].
    pub inputs: Vec<ValueId>,
    /// Numbers that are added to scores, or bools that say which count.
    pub mask: Option<ValueId>,
    pub dropout: Option<Dropout>,
    pub causal: bool,
    /// The bits of the factor of scores, a number of f64.
    pub scale: u64,
}

impl Attention {
    pub(crate) fn operands(&self) -> Vec<ValueId> {
        let seed = self.dropout.iter().flat_map(Dropout::operands);
        self.inputs.iter().copied().chain(self.mask).chain(seed).collect()
    }
}

/// Whether the kernels take an attention: rows that registers hold, in f32.
pub(crate) fn takes(attention: &Attended) -> bool {
    let widths = attention.operands.iter().take(3).map(|(_, dims)| dims.last().copied());
    let is_narrow = widths.into_iter().all(|d| d.is_some_and(|d| d as usize <= WIDEST));
    let full = attention.operands.iter().all(|(_, dims)| !dims.contains(&0));
    let of = |dtype: DType| dtype == DType::F32;
    let floats = attention.operands.iter().take(3).all(|o| of(o.0));
    let mask = attention.operands.get(3).is_none_or(|o| of(o.0) || o.0 == DType::Bool);
    full && is_narrow && floats && mask && attention.scale > 0.0
}

impl Reader {
    /// Attention, if a node is that.
    pub(crate) fn attention(&mut self, node: &Node, x: &[ValueId]) -> Option<Result<()>> {
        match node.op.as_str() {
            "Attention" => Some(self.attend(node, x)),
            "AttentionGrad" => Some(self.attend_back(node, x)),
            _ => None,
        }
    }

    /// The attention of a node, and what precedes the queries among its inputs.
    fn attention_of(&self, node: &Node, x: &[ValueId], before: usize) -> Attention {
        let int = |name: &str| node.ints.get(name).and_then(|v| v.first()).copied().unwrap_or(0);
        let mask = x.get(before + 3).copied().filter(|&m| self.dtype(m) != DType::I64);
        Attention {
            part: Part::Forward,
            inputs: Vec::new(),
            mask,
            dropout: Dropout::read(&self.graph, node, x),
            causal: int("causal") != 0,
            scale: int("scale").cast_unsigned(),
        }
    }

    fn attend(&mut self, node: &Node, x: &[ValueId]) -> Result<()> {
        let (attention, width) = (self.attention_of(node, x, 0), self.common_width(&x[..3]));
        let inputs = self.sides(&x[..3], width)?;
        let attention = Attention { inputs, ..attention };
        let step = Step::Attention(attention.clone());
        let y = self.attended(&node.outputs[0], width, step)?;
        // Without a mask one number is enough.
        let mut rows = sizes_of(&node.outputs[1]);
        if attention.mask.is_none() {
            rows.pop();
        }
        let logs = self.add("logs", DType::F32, rows, Step::Beside(y))?;
        self.stands_for(&node.outputs[1], logs);
        Ok(())
    }

    fn attend_back(&mut self, node: &Node, x: &[ValueId]) -> Result<()> {
        let attention = self.attention_of(node, x, 3);
        let step = |part, inputs: &[ValueId]| {
            let inputs = inputs.to_vec();
            Step::Attention(Attention { part, inputs, ..attention.clone() })
        };
        let ([g, y, logs], sides) = ([x[0], x[1], x[2]], &x[3..6]);
        let width = self.common_width(sides);
        let (sides, up) = (self.sides(sides, width)?, self.sides(&[g, y], width)?);
        let dims = self.dims(g);
        let rows = dims[..dims.len() - 1].to_vec();
        let of_queries = [&sides[..], &up, &[logs]].concat();
        let step_of_queries = step(Part::Queries, &of_queries);
        let queries = self.attended(&node.outputs[0], width, step_of_queries)?;
        let sums = self.add("sums", DType::F32, rows, Step::Beside(queries))?;
        let of_keys = [&sides[..], &[up[0], logs, sums]].concat();
        let keys = self.attended(&node.outputs[1], width, step(Part::Keys, &of_keys))?;
        let values = self.dims(keys);
        let values = self.add("of_values", self.element(), values, Step::Beside(keys))?;
        self.give_back(&node.outputs[2], values)
    }

    /// The width of all rows: that of the widest, so that 16 bytes can be loaded at once.
    fn common_width(&self, sides: &[ValueId]) -> usize {
        let width = |&x: &ValueId| self.graph.values[x].dims.last().copied().unwrap_or(0);
        sides.iter().map(width).max().unwrap_or(0).next_multiple_of(LOADED)
    }

    /// Operands rounded as the precision asks for, with zeros up to a width.
    fn sides(&mut self, all: &[ValueId], width: usize) -> Result<Vec<ValueId>> {
        all.iter().map(|&x| self.side(x, width)).collect()
    }

    fn side(&mut self, x: ValueId, width: usize) -> Result<ValueId> {
        let x = self.prepared(x, false)?;
        let (mut dims, dtype) = (self.dims(x), self.dtype(x));
        let rank = dims.len();
        if dims[rank - 1] == width {
            return Ok(x);
        }
        dims[rank - 1] = width;
        let zero = self.scalar(0.0, dtype)?;
        self.add("whole", dtype, dims, Step::Pad(x, vec![0; rank], zero))
    }

    /// A result of a kernel, with the rows of all heads at one position side by side, as the layers
    /// before and after read them.
    fn attended(&mut self, out: &Typed, width: usize, step: Step) -> Result<ValueId> {
        let mut dims = sizes_of(out);
        let rank = dims.len();
        dims[rank - 1] = width;
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
        let mut turned = self.turned_rows(made)?;
        let dims = sizes_of(out);
        if self.dims(turned) != dims {
            let cut = vec![(dims.len() - 1, 0, 1)];
            turned = self.add("part", self.element(), dims, Step::Slice(turned, cut))?;
        }
        let op = if self.element() == DType::BF16 { "Cast" } else { "Identity" };
        self.define(out, Step::Map(op, vec![turned])).map(|_| ())
    }

    /// Exchanges the axes of heads and rows.
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

fn sizes_of(value: &Typed) -> Vec<usize> {
    value.dims.iter().map(|&d| d as usize).collect()
}

/// The matrices of a stack in a buffer, as `Heads` of the text.
struct Heads {
    base: ValueId,
    start: usize,
    far: usize,
    near: usize,
    row: usize,
    column: usize,
}

impl Heads {
    /// The matrices of an operand, if two strides locate each of them.
    fn new(graph: &Graph, stored: &dyn Fn(ValueId) -> bool, x: ValueId) -> Option<Heads> {
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
        Some(Heads { base: of.base, start: of.start, far, near, row, column })
    }

    /// The same where kernels can load 16 bytes at once.
    fn even(graph: &Graph, stored: &dyn Fn(ValueId) -> bool, x: ValueId) -> Option<Heads> {
        let heads = Heads::new(graph, stored, x)?;
        let Heads { start, far, near, row, .. } = heads;
        let even = [start, far, near, row].iter().all(|n| n.is_multiple_of(LOADED));
        (heads.column == 1 && even).then_some(heads)
    }
}

/// The values that must have a buffer so that attention can read its operands.
pub(crate) fn bases(graph: &Graph, attention: &Attention) -> Vec<ValueId> {
    let in_buffer = |v: ValueId| !graph.values[v].step.is_view();
    let one = |(i, &x): (usize, &ValueId)| match i {
        i if i < attention.part.heads() => Heads::even(graph, &in_buffer, x).map_or(x, |h| h.base),
        _ => x,
    };
    let mut out: Vec<ValueId> = attention.inputs.iter().enumerate().map(one).collect();
    out.extend(attention.mask.map(|x| Heads::new(graph, &in_buffer, x).map_or(x, |h| h.base)));
    out.extend(attention.dropout.iter().flat_map(Dropout::operands));
    out
}

/// The arguments of a kernel under construction, and the buffers that they read.
struct Call<'a> {
    graph: &'a Graph,
    stored: &'a [bool],
    element: &'static str,
    reads: Vec<ValueId>,
    arguments: Vec<String>,
}

impl Call<'_> {
    /// The name of a value's buffer.
    fn read(&mut self, v: ValueId) -> String {
        if !self.reads.contains(&v) {
            self.reads.push(v);
        }
        self.graph.values[v].name.clone()
    }

    /// The operands of a part.
    fn operands(&mut self, attention: &Attention) -> Option<()> {
        let (graph, stored) = (self.graph, self.stored);
        for (i, &x) in attention.inputs.iter().enumerate() {
            let text = match i {
                i if i < attention.part.heads() => {
                    let heads = Heads::even(graph, &|v| stored[v], x)?;
                    let Heads { base, start, far, near, row, .. } = heads;
                    let (name, element) = (self.read(base), self.element);
                    format!("Heads<{element}>{{{name} + {start}, {far}, {near}, {row}}}")
                }
                _ => self.read(x),
            };
            self.arguments.push(text);
        }
        Some(())
    }

    /// The results; the first is a matrix, and for keys the other one is too.
    fn results(&mut self, part: Part, members: &[ValueId]) -> Option<()> {
        let element = self.element;
        for (i, &v) in members.iter().enumerate() {
            let Value { name, dims, .. } = &self.graph.values[v];
            let is_matrix = i == 0 || part == Part::Keys;
            self.arguments.push(match &dims[..] {
                _ if !is_matrix => name.clone(),
                [.., rows, heads, width] => {
                    let row = heads * width;
                    format!("Written<{element}>{{{name}, {}, {width}, {row}}}", rows * row)
                }
                [.., width] => format!("Written<{element}>{{{name}, 0, 0, {width}}}"),
                [] => return None,
            });
        }
        Some(())
    }

    /// The mask and its type.
    fn mask(&mut self, mask: Option<ValueId>) -> Option<[String; 2]> {
        let Some(x) = mask else { return Some(["Unmasked{}", "Unmasked"].map(String::from)) };
        let stored = self.stored;
        let heads = Heads::new(self.graph, &|v| stored[v], x)?;
        let Heads { base, start, far, near, row, column } = heads;
        let kind = if self.graph.values[x].dtype == DType::Bool { "bool" } else { "float" };
        let kind = format!("Masked<{kind}>");
        let name = self.read(base);
        Some([format!("{kind}{{{name} + {start}, {far}, {near}, {row}, {column}}}"), kind])
    }

    /// The dropout and its type.
    fn dropout(&mut self, dropout: Option<&Dropout>) -> [String; 2] {
        match dropout {
            None => ["Undropped{}", "Undropped"].map(String::from),
            Some(dropout) => [dropout.argument(|v| self.read(v)), "Dropped".to_string()],
        }
    }
}

/// The kernel: a call of the function that does it all.
pub(crate) fn emit(graph: &Graph, stored: &[bool], members: &[ValueId]) -> Option<Emitted> {
    let value = &graph.values[*members.first()?];
    let Step::Attention(attention) = &value.step else { return None };
    let element = match graph.products.unwrap_or_default().precision {
        Precision::F32 => "Floats<3>",
        Precision::Tf32 => "Floats<1>",
        Precision::Bf16 => "Bf16",
    };
    let mut call = Call { graph, stored, element, reads: Vec::new(), arguments: Vec::new() };
    call.operands(attention)?;
    call.results(attention.part, members)?;
    let [mask, kind_of_mask] = call.mask(attention.mask)?;
    let [dropout, kind_of_dropout] = call.dropout(attention.dropout.as_ref());
    let inputs = &attention.inputs;
    let (q, k) = (&graph.values[inputs[0]].dims, &graph.values[inputs[1]].dims);
    let lead = q.len() - 2;
    let (queries, keys, width) = (q[lead], k[lead], q[lead + 1]);
    let stack: usize = q[..lead].iter().product();
    let inner = if lead > 0 { q[lead - 1] } else { 1 };
    let (name, rows) = match attention.part {
        Part::Forward => ("attention_forward", queries),
        Part::Queries => ("attention_queries", queries),
        Part::Keys => ("attention_keys", keys),
    };
    // Two tiles for each warp where there are rows for them.
    let is_narrow = element == "Bf16" && width <= TWO_UP_TO;
    let tiles = if rows > ROWS && is_narrow { 2 } else { 1 };
    let kinds = format!("{element}, {width}, {}, {tiles}", attention.causal);
    let mut lines = vec![format!("    {name}<{kinds}, {kind_of_mask}, {kind_of_dropout}>(")];
    lines.extend(call.arguments.iter().map(|a| format!("        {a},")));
    let scale = f64::from_bits(attention.scale) as f32;
    lines.push(format!("        {inner}, {queries}, {keys}, {scale:?}f,"));
    lines.push(format!("        {mask}, {dropout}\n    );"));
    Some(Emitted {
        lines,
        reads: call.reads,
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
