//! Products of matrices by a device's library: their operands as strided matrices in memory.

use chainrule_core::dtype::DType;
use chainrule_core::error::{Error, Result};

use crate::epilogues::Finished;
use crate::graph::{Graph, Step, ValueId};
use crate::kernels::matrix;

/// The arithmetic of products of f32 on a device; all others are computed in f32.
///
/// ```
/// use chainrule_gpu::Precision;
/// assert_eq!("tf32".parse::<Precision>()?, Precision::Tf32);
/// assert!("f16".parse::<Precision>().unwrap_err().to_string().contains("f32, tf32 or bf16"));
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Operands of f32 as they are.
    #[default]
    F32,
    /// Operands rounded to 11 bits in the units for matrices, sums in f32.
    Tf32,
    /// Operands and results rounded to bf16, which has 8 bits; sums in f32.
    Bf16,
}

impl std::str::FromStr for Precision {
    type Err = Error;

    fn from_str(text: &str) -> Result<Precision> {
        match text {
            "f32" => Ok(Precision::F32),
            "tf32" => Ok(Precision::Tf32),
            "bf16" => Ok(Precision::Bf16),
            _ => {
                let why = format!("there is no `{text}`; products are f32, tf32 or bf16");
                Err(Error::argument("device", why))
            }
        }
    }
}

impl std::fmt::Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Precision::F32 => "f32",
            Precision::Tf32 => "tf32",
            Precision::Bf16 => "bf16",
        })
    }
}

impl Precision {
    /// Elements that a row of an operand is made a multiple of, so that the units for matrices
    /// load 16 bytes at once.
    pub(crate) fn multiple(self) -> usize {
        match self {
            Precision::F32 => 1,
            Precision::Tf32 => 4,
            Precision::Bf16 => 8,
        }
    }
}

/// The products that a device's library computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Products {
    /// Their arithmetic, for those of f32.
    pub precision: Precision,
    /// Number of multiplications from which on a product goes to the library; a smaller one shares
    /// a kernel with its neighbours.
    pub from: usize,
    /// Whether attention is kernels that do not hold the square of scores, which need units for
    /// matrices of the compute capability 8.0.
    pub attention: bool,
    /// The work that the library may do on a product before it writes it.
    pub epilogues: Epilogues,
}

/// Work that a library may do on a product before it writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epilogues {
    /// Add a number for each column.
    pub bias: bool,
    /// Add another value.
    pub added: bool,
    /// Take gelu in the form with tanh, or multiply by its derivative; for results of bf16.
    pub gelu: bool,
}

/// Biases, which make no step of GPT-2 slower: on an H100 at batch 4 it takes 12.04 ms in bf16 with
/// no epilogue, 12.05 with biases, 12.24 with sums too, 12.30 with biases and gelu; in TF32 25.28
/// with none and 24.99 with biases.
impl Default for Epilogues {
    fn default() -> Epilogues {
        Epilogues { bias: true, added: false, gelu: false }
    }
}

impl Epilogues {
    /// All of them.
    pub const ALL: Epilogues = Epilogues { bias: true, added: true, gelu: true };

    /// None of them.
    pub const NONE: Epilogues = Epilogues { bias: false, added: false, gelu: false };

    /// Those that are left where a library does not compute this product.
    pub(crate) fn without(self, refused: &ProductLaunch) -> Epilogues {
        match (refused.function, &refused.added) {
            (ProductFunction::Identity, None) => Epilogues { bias: false, ..self },
            (ProductFunction::Identity, Some(_)) => Epilogues { added: false, ..self },
            _ => Epilogues { gelu: false, ..self },
        }
    }
}

/// A function of the elements of a product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProductFunction {
    /// They stay as they are.
    #[default]
    Identity,
    /// gelu in the form with tanh.
    Gelu,
    /// They are multiplied by the derivative of gelu.
    GeluSlope,
}

impl Default for Products {
    fn default() -> Products {
        let (precision, from) = (Precision::F32, 1 << 20);
        Products { precision, from, attention: true, epilogues: Epilogues::default() }
    }
}

impl Products {
    /// Whether products of `[m, k]` and `[k, n]` are worth a call of the library, which may be
    /// needed for each position of the stack's axes but the last.
    pub(crate) fn takes(&self, stack: &[usize], m: usize, n: usize, k: usize) -> bool {
        let work = stack.last().unwrap_or(&1) * m * n * k;
        work >= self.from && work > 0 && !stack.contains(&0)
    }
}

/// A stack of matrices in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StridedMatrix {
    /// The buffer.
    pub buffer: usize,
    /// Dtype of the elements.
    pub dtype: DType,
    /// The first element.
    pub start: usize,
    /// Elements from a row to the next.
    pub row: usize,
    /// Elements from a column to the next: this or `row` is 1.
    pub column: usize,
    /// Elements from a matrix to the next; 0 where all are the same.
    pub apart: usize,
}

/// `out = f(a b + added + bias)` for a stack of matrices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductLaunch {
    /// The value that is computed.
    pub name: String,
    /// `[m, k]`.
    pub a: StridedMatrix,
    /// `[k, n]`.
    pub b: StridedMatrix,
    /// `[m, n]`, row by row.
    pub out: StridedMatrix,
    /// m, n and k.
    pub sizes: [usize; 3],
    /// The number of matrices.
    pub count: usize,
    /// A value of the shape of the result.
    pub added: Option<StridedMatrix>,
    /// A number for each column, of the dtype of the result.
    pub bias: Option<StridedMatrix>,
    /// The function `f`.
    pub function: ProductFunction,
    /// The values before gelu: they are written with gelu, and read for its derivative.
    pub before: Option<StridedMatrix>,
}

impl ProductLaunch {
    /// Whether more is done than to multiply.
    pub fn is_finished(&self) -> bool {
        self.added.is_some() || self.bias.is_some() || self.function != ProductFunction::Identity
    }

    /// All matrices: left, right, result, and those of the epilogue.
    pub fn matrices(&self) -> Vec<&StridedMatrix> {
        let more = [&self.added, &self.bias, &self.before].into_iter().flatten();
        [&self.a, &self.b, &self.out].into_iter().chain(more).collect()
    }

    pub(crate) fn matrices_mut(&mut self) -> Vec<&mut StridedMatrix> {
        let more = [&mut self.added, &mut self.bias, &mut self.before].into_iter().flatten();
        [&mut self.a, &mut self.b, &mut self.out].into_iter().chain(more).collect()
    }

    /// Whether values before gelu are written.
    pub(crate) fn keeps(&self) -> bool {
        self.function == ProductFunction::Gelu && self.before.is_some()
    }

    /// The buffers that are read.
    pub(crate) fn reads(&self) -> Vec<usize> {
        let before = self.before.as_ref().filter(|_| !self.keeps());
        let more = [self.added.as_ref(), self.bias.as_ref(), before].into_iter().flatten();
        [&self.a, &self.b].into_iter().chain(more).map(|m| m.buffer).collect()
    }

    /// The buffers that are written.
    pub(crate) fn writes(&self) -> Vec<usize> {
        let before = self.before.as_ref().filter(|_| self.keeps());
        [Some(&self.out), before].into_iter().flatten().map(|m| m.buffer).collect()
    }

    /// The epilogue in words, with the names of buffers: empty where there is none.
    pub(crate) fn epilogue(&self, name: &dyn Fn(&[usize]) -> String) -> String {
        let of = |m: &StridedMatrix| name(&[m.buffer]);
        let mut out = String::new();
        for m in [&self.added, &self.bias].into_iter().flatten() {
            out.push_str(&format!(" + {}", of(m)));
        }
        let before = self.before.as_ref().map_or(String::new(), of);
        out.push_str(&match self.function {
            ProductFunction::Identity => String::new(),
            ProductFunction::Gelu if before.is_empty() => ", gelu".to_string(),
            ProductFunction::Gelu => format!(", gelu of {before}"),
            ProductFunction::GeluSlope => format!(", by the slope of gelu at {before}"),
        });
        out
    }

    /// The name of the value, and the epilogue in a word or two.
    pub(crate) fn label(&self) -> String {
        let words = [
            self.added.as_ref().map(|_| "sum"),
            self.bias.as_ref().map(|_| "bias"),
            match self.function {
                ProductFunction::Identity => None,
                ProductFunction::Gelu => Some("gelu"),
                ProductFunction::GeluSlope => Some("slope of gelu"),
            },
        ];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        match words[..] {
            [] => self.name.clone(),
            _ => format!("{} with {}", self.name, words.join(", ")),
        }
    }
}

/// The operands of a product, with or without an epilogue.
fn factors(step: &Step) -> Option<[ValueId; 2]> {
    match *step {
        Step::Product(a, b) | Step::Finished(Finished { a, b, .. }) => Some([a, b]),
        _ => None,
    }
}

/// Whether a value is a product that the library computes.
pub(crate) fn is_librarys(graph: &Graph, v: ValueId) -> bool {
    let value = &graph.values[v];
    let Some([a, b]) = factors(&value.step) else { return false };
    // A constant of one element has no buffer.
    if graph.scalar(a).or(graph.scalar(b)).is_some() {
        return false;
    }
    let [m, n] = matrix(&value.dims);
    let [_, k] = matrix(&graph.values[a].dims);
    let dtype = graph.values[a].dtype;
    let stack = &value.dims[..value.dims.len() - 2];
    dtype.is_float() && graph.products.is_some_and(|p| p.takes(stack, m, n, k))
}

/// A value as strided elements of a buffer.
pub(crate) struct Layout {
    pub base: ValueId,
    pub start: usize,
    pub strides: Vec<usize>,
}

/// The strides of a value that stands in a buffer, or is a view of one. `stored` says which values
/// have a buffer.
pub(crate) fn layout(
    graph: &Graph,
    stored: &dyn Fn(ValueId) -> bool,
    v: ValueId,
) -> Option<Layout> {
    let value = &graph.values[v];
    if stored(v) || value.step.is_given() {
        graph.scalar(v).is_none().then_some(())?;
        let mut strides = vec![1; value.dims.len()];
        for i in (1..strides.len()).rev() {
            strides[i - 1] = strides[i] * value.dims[i];
        }
        return Some(Layout { base: v, start: 0, strides });
    }
    match &value.step {
        Step::Transpose(x, perm) => {
            let of = layout(graph, stored, *x)?;
            Some(Layout { strides: perm.iter().map(|&p| of.strides[p]).collect(), ..of })
        }
        Step::Expand(x) => {
            let of = layout(graph, stored, *x)?;
            let (from, to) = (&graph.values[*x].dims, &value.dims);
            let missing = to.len() - from.len();
            let stride = |i: usize| match i.checked_sub(missing) {
                Some(j) if from[j] == to[i] => of.strides[j],
                _ => 0,
            };
            Some(Layout { strides: (0..to.len()).map(stride).collect(), ..of })
        }
        Step::Slice(x, cuts) => {
            let mut of = layout(graph, stored, *x)?;
            for &(axis, start, step) in cuts {
                let (start, step) = (usize::try_from(start).ok()?, usize::try_from(step).ok()?);
                of.start += start * of.strides[axis];
                of.strides[axis] *= step;
            }
            Some(of)
        }
        Step::Reshape(x) => {
            let of = layout(graph, stored, *x)?;
            let strides = viewed(&graph.values[*x].dims, &of.strides, &value.dims)?;
            Some(Layout { strides, ..of })
        }
        _ => None,
    }
}

/// Strides of the same elements in another shape, if no copy is needed.
fn viewed(from: &[usize], strides: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    if from.contains(&0) {
        return None;
    }
    let old: Vec<(usize, usize)> =
        from.iter().copied().zip(strides.iter().copied()).filter(|a| a.0 != 1).collect();
    let mut out = vec![0; to.len()];
    let (mut i, mut j) = (0, 0);
    while j < to.len() {
        if to[j] == 1 {
            j += 1;
            continue;
        }
        let (begin, first) = (i, j);
        let (mut have, mut want) = (old.get(i)?.0, to[j]);
        while have != want {
            if have < want {
                i += 1;
                have *= old.get(i)?.0;
            } else {
                j += 1;
                want *= to.get(j)?;
            }
        }
        let beside = |p: &[(usize, usize)]| p[0].1 == p[1].0 * p[1].1;
        if !old[begin..=i].windows(2).all(beside) {
            return None;
        }
        let mut stride = old[i].1;
        for axis in (first..=j).rev() {
            out[axis] = stride;
            stride *= to[axis];
        }
        (i, j) = (i + 1, j + 1);
    }
    Some(out)
}

/// The value whose buffer the library reads for an operand: the one that it is a view of, or
/// itself, which is then stored.
pub(crate) fn base(graph: &Graph, x: ValueId) -> ValueId {
    let is_view = |v: ValueId| graph.values[v].step.is_view();
    let found = layout(graph, &|v| !is_view(v), x);
    let fits = |l: &Layout| admitted(graph, x, l).is_some();
    found.filter(fits).map_or(x, |l| l.base)
}

/// The strides of an operand's rows and columns, where the library can read it.
fn admitted(graph: &Graph, x: ValueId, layout: &Layout) -> Option<[usize; 2]> {
    let [rows, columns] = matrix(&graph.values[x].dims);
    let [row, column] = matrix(&layout.strides);
    match (rows, columns) {
        (_, 1) => Some([row.max(1), 1]),
        (1, _) if column > 0 => Some([1, column]).filter(|_| column > 1).or(Some([columns, 1])),
        _ if column == 1 && row >= columns => Some([row, 1]),
        _ if row == 1 && column >= rows => Some([1, column]),
        _ => None,
    }
}

/// An axis of a stack: its size, and the strides of both operands and the result.
#[derive(Clone, Copy)]
struct Stacked {
    size: usize,
    apart: [usize; 3],
}

/// The calls of the library for a product, which may keep values before gelu as a second result;
/// buffers are those of values.
pub(crate) fn calls(
    graph: &Graph,
    stored: &[bool],
    members: &[ValueId],
) -> Option<Vec<ProductLaunch>> {
    let v = *members.first()?;
    let value = &graph.values[v];
    let [a, b] = factors(&value.step)?;
    let (mut added, mut bias, mut function, mut before) = Default::default();
    if let Step::Finished(finished) = &value.step {
        (added, bias, function) = (finished.added, finished.bias, finished.function);
        before = finished.before.or(members.get(1).copied());
    }
    let [mut m, n] = matrix(&value.dims);
    let [_, k] = matrix(&graph.values[a].dims);
    let is_stored = |x: ValueId| stored[x];
    let (of_a, of_b) = (layout(graph, &is_stored, a)?, layout(graph, &is_stored, b)?);
    let (inner_a, inner_b) = (admitted(graph, a, &of_a)?, admitted(graph, b, &of_b)?);
    let mut stack = stacked(graph, value.dims.len() - 2, [a, b], [&of_a, &of_b], m * n, v);
    // One matrix of all rows, if the right one is always the same.
    while let Some(last) = stack.last().copied() {
        if last.apart[1] != 0 || last.apart[0] != m * inner_a[0] || inner_a[1] != 1 {
            break;
        }
        m *= last.size;
        stack.pop();
    }
    let (count, apart) = stack.pop().map_or((1, [0; 3]), |last| (last.size, last.apart));
    let outer: usize = stack.iter().map(|s| s.size).product();
    let call = |i: usize| {
        let mut rest = i;
        let mut starts = [of_a.start, of_b.start, 0];
        for axis in stack.iter().rev() {
            let place = rest % axis.size;
            rest /= axis.size;
            starts.iter_mut().zip(axis.apart).for_each(|(s, apart)| *s += place * apart);
        }
        let side = |which: usize, base: ValueId, [row, column]: [usize; 2]| StridedMatrix {
            buffer: base,
            dtype: graph.values[base].dtype,
            start: starts[which],
            row,
            column,
            apart: apart[which],
        };
        let like_out = |x: ValueId| side(2, x, [n, 1]);
        ProductLaunch {
            name: value.name.clone(),
            a: side(0, of_a.base, inner_a),
            b: side(1, of_b.base, inner_b),
            out: like_out(v),
            sizes: [m, n, k],
            count,
            added: added.map(like_out),
            bias: bias.map(|x| StridedMatrix { start: 0, apart: 0, ..like_out(x) }),
            function,
            before: before.map(like_out),
        }
    };
    Some((0..outer).map(call).collect())
}

/// The axes of a stack, neighbours joined where both operands and the result go on evenly.
fn stacked(
    graph: &Graph,
    rank: usize,
    operands: [ValueId; 2],
    layouts: [&Layout; 2],
    size: usize,
    v: ValueId,
) -> Vec<Stacked> {
    let dims = &graph.values[v].dims;
    let mut out: Vec<Stacked> = Vec::new();
    for axis in 0..rank {
        if dims[axis] == 1 {
            continue;
        }
        let of = |side: usize| {
            let own = &graph.values[operands[side]].dims;
            let at = (axis + own.len()).checked_sub(rank + 2);
            at.filter(|&at| own[at] != 1).map_or(0, |at| layouts[side].strides[at])
        };
        let below: usize = dims[axis + 1..rank].iter().product();
        let next = Stacked { size: dims[axis], apart: [of(0), of(1), below * size] };
        let goes_on = |last: &Stacked| {
            last.apart.iter().zip(next.apart).all(|(&outer, inner)| outer == inner * next.size)
        };
        match out.last_mut().filter(|last| goes_on(last)) {
            Some(last) => *last = Stacked { size: last.size * next.size, ..next },
            None => out.push(next),
        }
    }
    out
}
