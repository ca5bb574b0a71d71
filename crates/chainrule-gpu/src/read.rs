//! From the plain nodes of a program to a graph.

use std::collections::HashMap;

use chainrule_core::dtype::DType;
use chainrule_core::error::{Error, Result};
use chainrule_onnx::lower::{Attended, Lowered, Node, Takes, Typed, lower};
use chainrule_program::Program;

use crate::dropout::Dropout;
use crate::graph::{Fold, Graph, Step, Value, ValueId, Windows};
use crate::narrow::Pieces;
use crate::products::Products;
use crate::{attention, forms};

/// Elements along reduced axes from which on a reduction is taken in pieces.
const PIECES_FROM: usize = 2048;

/// Elements of a piece.
const PIECE: usize = 256;

/// Elements from which pieces are longer, so that threads add more between two barriers.
const LONG_FROM: usize = 1 << 20;

/// Elements of a longer piece.
const LONG_PIECE: usize = 4096;

/// Elements from which on columns are reduced in pieces; otherwise one thread takes a whole column.
const COLUMNS_FROM: usize = 128;

/// Elements of a column's piece.
const COLUMNS_PIECE: usize = 64;

/// Elements of a piece if the device would have few pieces: as many threads load at once.
const SHORT_PIECE: usize = 16;

/// Pieces of columns that are enough for a device.
const ENOUGH: usize = 1 << 19;

/// The graph of a program; with these products by the device's library, if it has one.
pub(crate) fn read(
    program: &Program,
    products: Option<Products>,
    wide_from: usize,
) -> Result<Graph> {
    let takes: Takes = match products.is_some_and(|p| p.attention) {
        true => attention::takes,
        false => |_: &Attended| false,
    };
    let lowered = lower(program, takes)?;
    let mut reader = Reader::default();
    reader.graph.products = products;
    reader.graph.wide_from = wide_from;
    reader.all(&lowered)?;
    Ok(reader.graph)
}

#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) graph: Graph,
    known: HashMap<String, ValueId>,
    line: String,
    /// Values by their types and steps, so that each is computed once.
    made: HashMap<(DType, Vec<usize>, Step), ValueId>,
    /// Operands of products by the values that they come from, and whether they may be padded.
    pub(crate) operands: HashMap<(ValueId, bool), ValueId>,
    /// Values that are zero except for some parts.
    pub(crate) pieces: Pieces,
}

/// A number as an element.
fn bytes(x: f64, dtype: DType) -> Vec<u8> {
    match dtype {
        DType::F64 => x.to_le_bytes().to_vec(),
        DType::I64 => (x as i64).to_le_bytes().to_vec(),
        DType::I32 => (x as i32).to_le_bytes().to_vec(),
        DType::Bool | DType::U8 => vec![x as u8],
        DType::BF16 => ((x as f32).to_bits() >> 16).to_le_bytes()[..2].to_vec(),
        _ => (x as f32).to_le_bytes().to_vec(),
    }
}

fn error(why: String) -> Error {
    Error::argument("device", why)
}

fn sizes(dims: &[i64]) -> Vec<usize> {
    dims.iter().map(|&d| d as usize).collect()
}

/// A dtype that kernels have.
fn known(dtype: DType, name: &str) -> Result<()> {
    use DType::*;
    match dtype {
        F32 | F64 | I64 | I32 | Bool | U8 | BF16 => Ok(()),
        other => {
            let why = format!(
                "`{name}` is of {}, which kernels do not have yet; compute in f32",
                other.name()
            );
            Err(error(why))
        }
    }
}

impl Reader {
    fn all(&mut self, lowered: &Lowered) -> Result<()> {
        for (i, argument) in lowered.arguments.iter().enumerate() {
            let v = self.define(argument, Step::Argument(i))?;
            self.graph.arguments.push(v);
        }
        let mut writes = Vec::new();
        for (cell, (read, write)) in lowered.states.iter().enumerate() {
            let v = self.define(read, Step::State(cell))?;
            writes.push((v, write.clone()));
        }
        for c in &lowered.constants {
            self.define(&c.value, Step::Constant(c.bytes.clone()))?;
        }
        for node in &lowered.nodes {
            self.node(node)?;
        }
        self.graph.results = lowered.outputs.iter().map(|o| self.known[o]).collect();
        for (read, write) in writes {
            let write = write.map(|name| self.known[&name]);
            self.graph.states.push((read, write));
        }
        self.finish_products()
    }

    pub(crate) fn define(&mut self, value: &Typed, step: Step) -> Result<ValueId> {
        known(value.dtype, &value.name)?;
        let v = self.push(&value.name, value.dtype, sizes(&value.dims), step)?;
        self.known.insert(value.name.clone(), v);
        Ok(v)
    }

    /// Substitutes a value for one of the nodes whose users know its form.
    pub(crate) fn stands_for(&mut self, value: &Typed, v: ValueId) {
        self.known.insert(value.name.clone(), v);
    }

    /// A value; if it is narrower inside, or just its parts, it is built as that.
    fn push(&mut self, name: &str, dtype: DType, dims: Vec<usize>, step: Step) -> Result<ValueId> {
        let made = self.part_of_one(&dims, step.clone());
        let made = self.gathered(&dims, made)?;
        let made = self.narrowed(dtype, &dims, made)?;
        let v = self.insert(name, dtype, dims, made)?;
        self.note_pad(v, &step);
        self.note_sum(v, &step);
        Ok(v)
    }

    fn insert(
        &mut self,
        name: &str,
        dtype: DType,
        dims: Vec<usize>,
        step: Step,
    ) -> Result<ValueId> {
        let size = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        if size.is_none_or(|n| n >= 1 << 31) {
            let why = format!("`{name}` has 2^31 elements or more; kernels count below that");
            return Err(error(why));
        }
        if let Some(same) = self.graph.same_as(&step, dtype, &dims) {
            return Ok(same);
        }
        let step = match self.graph.number_of(&step, dtype) {
            Some(x) if dims.iter().all(|&d| d == 1) => Step::Constant(bytes(x, dtype)),
            Some(x) => Step::Expand(self.scalar(x, dtype)?),
            None => step,
        };
        let key = (dtype, dims.clone(), step.clone());
        if let Some(&same) = self.made.get(&key) {
            return Ok(same);
        }
        let v = self.graph.values.len();
        self.made.insert(key, v);
        if let Step::Constant(bytes) = &step
            && dtype == DType::I64
            && bytes.chunks_exact(8).zip(0i64..).all(|(b, i)| b == i.to_le_bytes())
        {
            self.graph.counting.insert(v);
        }
        let name = self.fresh(name);
        self.graph.values.push(Value { name, dtype, dims, step, line: self.line.clone() });
        Ok(v)
    }

    /// A name in C: the last two parts, in lower case where ONNX made them.
    fn fresh(&mut self, name: &str) -> String {
        let mut parts: Vec<&str> = name.split('/').collect();
        if parts.len() > 1 {
            parts.remove(0);
        }
        let made = parts.len() > 1;
        let text = parts.join("_");
        let text = if made { text.to_lowercase() } else { text };
        let parts = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|p| !p.is_empty());
        let word = parts.collect::<Vec<_>>().join("_");
        let begins = word.starts_with(|c: char| c.is_ascii_alphabetic());
        let word = if begins { word } else { format!("v{word}") };
        let word = if crate::dialect::is_taken(&word) { format!("v_{word}") } else { word };
        let mut out = word.clone();
        let mut n = 1;
        while !self.graph.names.insert(out.clone()) {
            n += 1;
            out = format!("{word}_{n}");
        }
        out
    }

    pub(crate) fn dims(&self, v: ValueId) -> Vec<usize> {
        self.graph.values[v].dims.clone()
    }

    pub(crate) fn dtype(&self, v: ValueId) -> DType {
        self.graph.values[v].dtype
    }

    /// A step beside those of the nodes.
    pub(crate) fn add(
        &mut self,
        like: &str,
        dtype: DType,
        dims: Vec<usize>,
        step: Step,
    ) -> Result<ValueId> {
        self.push(like, dtype, dims, step)
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        let out = &node.outputs[0];
        self.line = out.name.clone();
        let inputs: Vec<ValueId> = node.inputs.iter().map(|name| self.known[name]).collect();
        if let Some(done) = self.attention(node, &inputs) {
            return done;
        }
        let step = match self.step(node, &inputs) {
            Some(step) => step?,
            None => {
                let why = format!(
                    "`{}` of `{}` has no kernel; compute it outside the step, or from other ops",
                    node.op, out.name
                );
                return Err(error(why));
            }
        };
        let v = self.define(out, step)?;
        if let Some(beside) = node.outputs.get(1) {
            // The sorted values were made from the positions, which are the other result.
            let Step::Elements(_, places, _) = self.graph.values[v].step else {
                return Err(error(format!("`{}` has no kernel for two results", node.op)));
            };
            self.known.insert(beside.name.clone(), places);
        }
        Ok(())
    }

    fn step(&mut self, node: &Node, x: &[ValueId]) -> Option<Result<Step>> {
        let int = |name: &str| node.ints.get(name).and_then(|v| v.first().copied());
        let flag = |name: &str| int(name).unwrap_or(0) != 0;
        let out = sizes(&node.outputs[0].dims);
        let axis = |name: &str, rank: usize| {
            let at = int(name).unwrap_or(0);
            (if at < 0 { at + rank as i64 } else { at }) as usize
        };
        let rank = x.first().map_or(0, |&v| self.dims(v).len());
        Some(Ok(match node.op.as_str() {
            "Reshape" => Step::Reshape(x[0]),
            "Transpose" => Step::Transpose(x[0], sizes(node.ints.get("perm")?)),
            "Expand" => Step::Expand(x[0]),
            "Slice" => {
                let (starts, axes) = (self.graph.ints(x[1])?, self.graph.ints(x[3])?);
                let steps = self.graph.ints(x[4])?;
                let cut = |i: usize| (axes[i] as usize, starts[i], steps[i]);
                Step::Slice(x[0], (0..axes.len()).map(cut).collect())
            }
            "Pad" => Step::Pad(x[0], self.graph.ints(x[1])?[..rank].to_vec(), x[2]),
            "Concat" => return Some(self.concat(x.to_vec(), axis("axis", rank))),
            "Gather" => Step::Gather(x[0], x[1], axis("axis", rank)),
            "GatherElements" => Step::Elements(x[0], x[1], axis("axis", rank)),
            "Trilu" => Step::Triangle(x[0], *self.graph.ints(x[1])?.first()?, flag("upper")),
            "ReduceSum" | "ReduceMean" | "ReduceProd" | "ReduceMax" | "ReduceMin" => {
                let fold = match node.op.as_str() {
                    "ReduceSum" => Fold::Sum,
                    "ReduceMean" => Fold::Mean,
                    "ReduceProd" => Fold::Prod,
                    "ReduceMax" => Fold::Max,
                    _ => Fold::Min,
                };
                let axes = sizes(&self.graph.ints(x[1])?);
                return Some(self.fold(fold, x[0], axes));
            }
            "ArgMax" => Step::Best(x[0], axis("axis", rank), true),
            "ArgMin" => Step::Best(x[0], axis("axis", rank), false),
            "MatMul" => return Some(self.product(x[0], x[1], &out)),
            "Conv" => return Some(self.conv(node, x)),
            "ConvTranspose" => return Some(self.conv_transpose(node, x, &out)),
            "ScatterElements" => Step::Scatter {
                x: x[0],
                index: x[1],
                g: x[2],
                axis: axis("axis", rank),
                add: node.adds,
            },
            "ScatterND" if node.adds => return Some(self.scatter_rows(x[0], x[1], x[2])),
            "CumSum" => {
                let along = self.graph.scalar(x[1])? as usize;
                return Some(self.cumulate(x[0], along, flag("reverse"), flag("exclusive")));
            }
            "TopK" => {
                let (axis, down) = (axis("axis", rank), int("largest").unwrap_or(1) != 0);
                let places = self.order(x[0], axis, down, out[axis]);
                return Some(places.map(|places| Step::Elements(x[0], places, axis)));
            }
            "RandomUniform" => Step::Uniform(self.draw()),
            "RandomNormal" => Step::Normal(self.draw()),
            "RandomSeed" => Step::Seed(self.draw()),
            "KeepFactors" => Step::Keep(Dropout::read(&self.graph, node, x)?),
            "Mod" if flag("fmod") => Step::Map("Fmod", x.to_vec()),
            op => Step::Map(forms::find(op)?.op, x.to_vec()),
        }))
    }

    fn draw(&mut self) -> usize {
        self.graph.draws += 1;
        self.graph.draws - 1
    }

    pub(crate) fn scalar(&mut self, x: f64, dtype: DType) -> Result<ValueId> {
        self.add("constant", dtype, vec![], Step::Constant(bytes(x, dtype)))
    }

    /// A reduction; one of many elements in pieces of fixed size, whose results are reduced in
    /// turn, so that the order of the sum follows from sizes alone.
    fn fold(&mut self, fold: Fold, x: ValueId, axes: Vec<usize>) -> Result<Step> {
        let x = self.picked(fold, x, &axes)?;
        let (dims, dtype) = (self.dims(x), self.dtype(x));
        let count: usize = axes.iter().map(|&a| dims[a]).product();
        if count == 1 {
            return Ok(Step::Reshape(x));
        }
        let others: usize = dims.iter().product::<usize>().checked_div(count).unwrap_or(0);
        let last = (0..dims.len()).rev().find(|&i| dims[i] != 1).is_none_or(|i| axes.contains(&i));
        let (from, piece) = match last {
            true if count >= LONG_FROM => (PIECES_FROM, LONG_PIECE),
            true => (PIECES_FROM, PIECE),
            false
                if others * count < self.graph.wide_from.saturating_mul(8)
                    || others * count / COLUMNS_PIECE >= ENOUGH =>
            {
                (COLUMNS_FROM, COLUMNS_PIECE)
            }
            false => (COLUMNS_FROM.max(8 * SHORT_PIECE), SHORT_PIECE),
        };
        if count < from || (last && others >= 64 && count <= 1 << 16) {
            return Ok(Step::Fold(fold, x, axes));
        }
        if fold == Fold::Mean {
            let sum = self.fold(Fold::Sum, x, axes.clone())?;
            let mut kept = dims.clone();
            axes.iter().for_each(|&a| kept[a] = 1);
            let sum = self.add("sum_of_pieces", dtype, kept, sum)?;
            let n = self.scalar(count as f64, dtype)?;
            return Ok(Step::Map("Div", vec![sum, n]));
        }
        let kept: Vec<usize> = (0..dims.len()).filter(|i| !axes.contains(i)).collect();
        let (perm, at) = match last {
            true => ([&kept[..], &axes[..]].concat(), 1),
            false => ([&axes[..], &kept[..]].concat(), 0),
        };
        let turned = perm.iter().map(|&i| dims[i]).collect();
        let x = if last { x } else { self.as_rounded(fold, x)? };
        let x = self.add("turned", dtype, turned, Step::Transpose(x, perm))?;
        let pieces = count.div_ceil(piece);
        let two = |n: usize| if at == 1 { vec![others, n] } else { vec![n, others] };
        let mut x = self.add("rows", dtype, two(count), Step::Reshape(x))?;
        if pieces * piece > count {
            let outside = self.scalar(fold.identity(), dtype)?;
            let pad = Step::Pad(x, vec![0, 0], outside);
            x = self.add("whole_pieces", dtype, two(pieces * piece), pad)?;
        }
        let three = if at == 1 { vec![others, pieces, piece] } else { vec![pieces, piece, others] };
        let x = self.add("pieces", dtype, three, Step::Reshape(x))?;
        let each = Step::Fold(fold, x, vec![at + usize::from(at == 1)]);
        let each = if at == 1 { each } else { Step::Fold(fold, x, vec![1]) };
        let part = self.add("of_pieces", dtype, two(pieces), each)?;
        let whole = self.fold(fold, part, vec![at])?;
        let whole = self.add("of_all", dtype, vec![others], whole)?;
        Ok(Step::Reshape(whole))
    }

    pub(crate) fn reshape(&mut self, x: ValueId, dims: &[usize]) -> Result<ValueId> {
        if self.graph.values[x].dims == dims {
            return Ok(x);
        }
        let dtype = self.dtype(x);
        self.add("as_matrix", dtype, dims.to_vec(), Step::Reshape(x))
    }

    /// A product of stacks of matrices; rows and columns alone are matrices of one.
    fn product(&mut self, a: ValueId, b: ValueId, out: &[usize]) -> Result<Step> {
        let (da, db) = (self.dims(a), self.dims(b));
        let rows = if da.len() == 1 { [&[1], &da[..]].concat() } else { da.clone() };
        let columns = if db.len() == 1 { [&db[..], &[1]].concat() } else { db.clone() };
        if da.len() > 1 && db.len() > 1 {
            return self.prepared_product(a, b, out);
        }
        let mut full = out.to_vec();
        if da.len() == 1 {
            full.insert(full.len() - usize::from(db.len() > 1), 1);
        }
        if db.len() == 1 {
            full.push(1);
        }
        let (a, b) = (self.reshape(a, &rows)?, self.reshape(b, &columns)?);
        let dtype = self.dtype(a);
        let product = self.add("product", dtype, full, Step::Product(a, b))?;
        Ok(Step::Reshape(product))
    }

    fn windows(node: &Node) -> Option<Windows> {
        let two = |name: &str| {
            let all = sizes(node.ints.get(name)?);
            Some([*all.first()?, *all.get(1)?])
        };
        Some(Windows {
            kernel: two("kernel_shape")?,
            stride: two("strides")?,
            before: two("pads")?,
            dilation: two("dilations")?,
        })
    }

    /// A convolution: kernels times what their windows see.
    fn conv(&mut self, node: &Node, x: &[ValueId]) -> Result<Step> {
        let out = sizes(&node.outputs[0].dims);
        let windows = Self::windows(node);
        let windows = windows.ok_or_else(|| error("a convolution without sizes".into()))?;
        let groups = node.ints.get("group").and_then(|g| g.first()).map_or(1, |&g| g as usize);
        let (image, kernel, dtype) = (self.dims(x[0]), self.dims(x[1]), self.dtype(x[0]));
        let [kh, kw] = windows.kernel;
        let (inner, outer) = (image[1] / groups, kernel[0] / groups);
        let dims = vec![image[0], image[1], kh, kw, out[2], out[3]];
        let seen = self.add("patches", dtype, dims, Step::Patches(x[0], windows))?;
        let depth = inner * kh * kw;
        let seen = self.reshape(seen, &[image[0], groups, depth, out[2] * out[3]])?;
        let kernel = self.reshape(x[1], &[1, groups, outer, depth])?;
        let dims = vec![image[0], groups, outer, out[2] * out[3]];
        let y = self.add("product", dtype, dims, Step::Product(kernel, seen))?;
        if let Some(&bias) = x.get(2) {
            let y = self.reshape(y, &out)?;
            let bias = self.reshape(bias, &[out[1], 1, 1])?;
            return Ok(Step::Map("Add", vec![y, bias]));
        }
        Ok(Step::Reshape(y))
    }

    /// The transposed convolution: each element of the image gathers from the windows that saw it.
    fn conv_transpose(&mut self, node: &Node, x: &[ValueId], out: &[usize]) -> Result<Step> {
        let (g, kernel, dtype) = (self.dims(x[0]), self.dims(x[1]), self.dtype(x[0]));
        let windows = Self::windows(node);
        let windows = windows.ok_or_else(|| error("a convolution without sizes".into()))?;
        let groups = node.ints.get("group").and_then(|g| g.first()).map_or(1, |&g| g as usize);
        let [kh, kw] = windows.kernel;
        let (inner, outer) = (g[1] / groups, kernel[1]);
        let dims = vec![g[0], g[1], kh, kw, out[2], out[3]];
        let seen = self.add("seen", dtype, dims, Step::Seen(x[0], windows))?;
        let depth = inner * kh * kw;
        let seen = self.reshape(seen, &[g[0], groups, depth, out[2] * out[3]])?;
        let kernel = self.reshape(x[1], &[groups, inner, outer, kh, kw])?;
        let turned = Step::Transpose(kernel, vec![0, 2, 1, 3, 4]);
        let kernel = self.add("turned", dtype, vec![groups, outer, inner, kh, kw], turned)?;
        let kernel = self.reshape(kernel, &[1, groups, outer, depth])?;
        let dims = vec![g[0], groups, outer, out[2] * out[3]];
        let y = self.add("product", dtype, dims, Step::Product(kernel, seen))?;
        Ok(Step::Reshape(y))
    }
}
