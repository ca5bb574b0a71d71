//! Kernels of three shapes: one thread for each element, one block for each row, and one block for
//! each tile of a product.

use std::collections::HashSet;

use chainrule_core::dtype::DType;

use crate::coords::{Coord, flat, reshaped};
use crate::dialect::Dialect;
use crate::graph::{Fold, Graph, Step, ValueId};
use crate::products::{ProductLaunch, calls, is_librarys};
use crate::pull::Body;

/// Threads of a block.
pub(crate) const BLOCK: usize = 256;

/// Fewest elements of a row for which the threads of a block share it.
const ROW_FROM: usize = 32;

/// Steps along the inner axis of a product from one barrier to the next.
const DEPTH: usize = 16;

/// How the work of a kernel is split among threads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// One thread for each element.
    Each(usize),
    /// One block for each row: rows, and elements along reduced axes.
    Rows(usize, usize),
    /// One block for each tile: matrices, rows, columns, inner axis.
    Product(usize, usize, usize, usize),
    /// No kernel: the device's library computes it.
    Library,
    /// A kernel of attention.
    Attention,
}

/// Values that are computed together.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub shape: Shape,
    pub members: Vec<ValueId>,
}

/// The text of a kernel's body and what it needs.
pub(crate) struct Emitted {
    pub lines: Vec<String>,
    pub reads: Vec<ValueId>,
    /// Own values that are read from their buffer.
    pub own_reads: Vec<ValueId>,
    /// Arrays that the threads of a block share: name, dtype, elements.
    pub shared: Vec<(String, DType, usize)>,
    pub blocks: usize,
    pub threads: usize,
    pub waits: bool,
    pub draws: bool,
    /// Names of variables.
    pub names: HashSet<String>,
    /// Stored values with the positions where they are read or written, if no two threads share
    /// one.
    pub touched: Vec<(ValueId, String)>,
    /// Calls of the device's library, in place of a kernel.
    pub products: Vec<ProductLaunch>,
}

impl Emitted {
    /// A product that the device's library computes.
    fn by_library(graph: &Graph, stored: &[bool], members: &[ValueId]) -> Option<Emitted> {
        let products = calls(graph, stored, members)?;
        let reads: Vec<ValueId> = products.iter().flat_map(ProductLaunch::reads).collect();
        Some(Emitted {
            lines: Vec::new(),
            own_reads: Vec::new(),
            shared: Vec::new(),
            blocks: 0,
            threads: 0,
            waits: false,
            draws: false,
            names: HashSet::new(),
            touched: Vec::new(),
            reads,
            products,
        })
    }
}

impl Shape {
    /// The shape that suits a value on its own.
    pub fn of(graph: &Graph, v: ValueId) -> Shape {
        let value = &graph.values[v];
        match &value.step {
            Step::Fold(_, x, axes) => {
                let dims = &graph.values[*x].dims;
                let count: usize = axes.iter().map(|&a| dims[a]).product();
                let last = (0..dims.len()).rev().find(|&i| dims[i] != 1);
                let beside = last.is_some_and(|i| axes.contains(&i));
                if beside && count >= ROW_FROM && value.numel() > 0 {
                    return Shape::Rows(value.numel(), count);
                }
                Shape::Each(value.numel())
            }
            Step::Attention(_) => Shape::Attention,
            Step::Product(..) | Step::Finished(_) if is_librarys(graph, v) => Shape::Library,
            Step::Product(a, _) => {
                let [m, n] = matrix(&value.dims);
                let [_, k] = matrix(&graph.values[*a].dims);
                let small = m < 8 || n < 8 || k < 4 || value.numel() == 0;
                let stack = value.numel().checked_div(m * n).unwrap_or(0);
                if small { Shape::Each(value.numel()) } else { Shape::Product(stack, m, n, k) }
            }
            _ => Shape::Each(value.numel()),
        }
    }
}

/// The last two sizes.
pub(crate) fn matrix(dims: &[usize]) -> [usize; 2] {
    [dims[dims.len() - 2], dims[dims.len() - 1]]
}

/// The text of a kernel; nothing where its members cannot be computed together. `needed` says which
/// members have a buffer.
pub(crate) fn emit(
    graph: &Graph,
    stored: &[bool],
    dialect: Dialect,
    kernel: &Kernel,
    needed: &dyn Fn(ValueId) -> bool,
) -> Option<Emitted> {
    if kernel.shape == Shape::Library {
        return Emitted::by_library(graph, stored, &kernel.members);
    }
    if kernel.shape == Shape::Attention {
        return crate::attention::emit(graph, stored, &kernel.members);
    }
    let lanes = crate::lanes::lanes(graph, kernel, dialect);
    let made = |lanes: usize| emit_lanes(graph, stored, dialect, kernel, needed, lanes);
    made(lanes).or_else(|| if lanes > 1 { made(1) } else { None })
}

/// The text of a kernel whose threads each compute this many neighbours.
fn emit_lanes(
    graph: &Graph,
    stored: &[bool],
    dialect: Dialect,
    kernel: &Kernel,
    needed: &dyn Fn(ValueId) -> bool,
    lanes: usize,
) -> Option<Emitted> {
    let mut body = Body::new(graph, stored, dialect);
    body.own.clone_from(&kernel.members);
    ["i", "row", "col", "thread", "block", "e", "inside"].iter().for_each(|name| {
        body.fresh(name);
    });
    let mut maker = Maker { body, kernel, needed, shared: Vec::new(), lanes, folds: 0 };
    let (blocks, threads, waits) = match kernel.shape {
        Shape::Each(n) if lanes > 1 => {
            maker.wide_each(n)?;
            (n.div_ceil(BLOCK * lanes), BLOCK, false)
        }
        Shape::Rows(rows, count) if lanes > 1 => {
            let threads = maker.wide_rows(rows, count)?;
            (rows, threads, true)
        }
        Shape::Each(n) => {
            maker.each(n)?;
            (n.div_ceil(BLOCK), BLOCK, false)
        }
        Shape::Rows(rows, count) => {
            let threads = count.next_power_of_two().clamp(ROW_FROM, BLOCK);
            maker.rows(rows, count, threads)?;
            (rows, threads, true)
        }
        Shape::Product(stack, m, n, k) => {
            let blocks = maker.product(stack, m, n, k)?;
            (blocks, BLOCK, true)
        }
        Shape::Library | Shape::Attention => unreachable!("their texts are no expressions"),
    };
    let Maker { body, shared, .. } = maker;
    let Body { lines, reads, own_reads, failed, draws, mut names, mut touched, .. } = body;
    if matches!(kernel.shape, Shape::Rows(..)) {
        // All threads of a block read the values of its row.
        touched.clear();
    }
    names.extend(shared.iter().map(|s| s.0.clone()));
    let products = Vec::new();
    let emitted = Emitted {
        lines,
        reads,
        own_reads,
        shared,
        blocks,
        threads,
        waits,
        draws,
        names,
        touched,
        products,
    };
    (!failed).then_some(emitted)
}

/// The same elements in another shape, if no new variable is needed.
pub(crate) fn aligned(coords: &[Coord], dims: &[usize]) -> Option<Vec<Coord>> {
    let size = |c: &[usize]| c.iter().product::<usize>();
    if coords.iter().map(|c| c.size).product::<usize>() != size(dims) {
        return None;
    }
    let mut mixed = false;
    let mut bind = |_: String, _: usize| {
        mixed = true;
        String::new()
    };
    let out = reshaped(coords, dims, &mut bind);
    (!mixed).then_some(out)
}

/// The text of a kernel under construction.
pub(crate) struct Maker<'a, 'b> {
    pub body: Body<'a>,
    pub kernel: &'b Kernel,
    pub needed: &'b dyn Fn(ValueId) -> bool,
    pub shared: Vec<(String, DType, usize)>,
    /// Neighbours that a thread computes.
    pub lanes: usize,
    /// Reductions of a block so far.
    pub folds: usize,
}

impl Maker<'_, '_> {
    pub(crate) fn write(&mut self, v: ValueId, at: &str, name: &str) {
        if (self.needed)(v) {
            let value = &self.body.graph.values[v];
            self.body.touched.push((v, at.to_string()));
            let text = self.body.dialect.write(&value.name, at, value.dtype, name);
            self.body.line(text);
        }
    }

    fn each(&mut self, n: usize) -> Option<()> {
        let d = self.body.dialect;
        let at = format!("{} * {BLOCK} + {}", d.block(), d.thread());
        self.body.line(d.constant("int", "i", &at));
        self.body.line(format!("if (i >= {n}) {{ return; }}"));
        for v in self.kernel.members.clone() {
            let value = &self.body.graph.values[v];
            let coords = aligned(&[Coord::of("i", n)], &value.dims)?;
            if let Step::Inverse(x, axis) = value.step {
                self.inverse(v, &coords, x, axis);
                continue;
            }
            let name = self.value(v, &coords);
            self.write(v, "i", &name);
        }
        Some(())
    }

    /// Writes a number's index to the position that the number names; no other thread writes there.
    fn inverse(&mut self, v: ValueId, coords: &[Coord], x: ValueId, axis: usize) {
        let place = self.body.pull(x, coords);
        let place = self.body.dialect.cast(DType::I32, DType::I64, &place);
        let mut at = coords.to_vec();
        at[axis] = self.body.place(place, coords[axis].room);
        let own = format!("({})", coords[axis].text());
        let own = self.body.dialect.cast(DType::I64, DType::I32, &own);
        self.write(v, &flat(&at), &own);
    }

    /// A value at a position: its expression, or a loop of this thread.
    pub(crate) fn value(&mut self, v: ValueId, coords: &[Coord]) -> String {
        let name = match self.body.graph.values[v].step.is_light() {
            true => self.body.expression(v, coords),
            false => crate::serial::value(&mut self.body, v, coords),
        };
        self.body.know(v, coords, &name);
        name
    }

    fn rows(&mut self, rows: usize, count: usize, threads: usize) -> Option<()> {
        let d = self.body.dialect;
        self.body.line(d.constant("int", "row", d.block()));
        self.body.line(d.constant("int", "thread", d.thread()));
        if d == Dialect::Wgsl && rows > 65535 {
            // The last row of blocks may be partial; since whole blocks leave, none waits for a
            // missing thread.
            self.body.line(format!("if (row >= {rows}) {{ return; }}"));
        }
        let both = [Coord::of("row", rows), Coord::of("col", count)];
        for v in self.kernel.members.clone() {
            let value = &self.body.graph.values[v];
            match &value.step {
                Step::Fold(fold, x, axes) => {
                    let dims = &self.body.graph.values[*x].dims;
                    let of: usize = axes.iter().map(|&a| dims[a]).product();
                    if (value.numel(), of) != (rows, count) {
                        return None;
                    }
                    self.row_fold(v, *fold, *x, axes, count, threads)?;
                }
                step if !step.is_light() => return None,
                _ if value.numel() == rows => self.of_row(v, rows)?,
                _ => {
                    let coords = aligned(&both, &value.dims)?;
                    let step = threads.to_string();
                    let head = d.each("col", "thread", &count.to_string(), &step);
                    let scope = self.body.open(head);
                    let name = self.value(v, &coords);
                    let at = flat(&coords);
                    self.write(v, &at, &name);
                    self.body.close(scope);
                    self.body.written.push((v, at));
                }
            }
        }
        Some(())
    }

    /// A value of one number a row, which all threads of its block compute.
    pub(crate) fn of_row(&mut self, v: ValueId, rows: usize) -> Option<()> {
        let coords = aligned(&[Coord::of("row", rows)], &self.body.graph.values[v].dims)?;
        let name = self.value(v, &coords);
        if (self.needed)(v) {
            let scope = self.body.open("if (thread == 0) {");
            self.write(v, "row", &name);
            self.body.close(scope);
        }
        Some(())
    }

    /// A reduction of a row by all threads, in an order that sizes alone decide.
    fn row_fold(
        &mut self,
        v: ValueId,
        fold: Fold,
        x: ValueId,
        axes: &[usize],
        count: usize,
        threads: usize,
    ) -> Option<()> {
        let d = self.body.dialect;
        let graph = self.body.graph;
        let (value, dims) = (&graph.values[v], &graph.values[x].dims);
        let (dtype, kind) = (value.dtype, d.kind(value.dtype));
        let sum = self.body.fresh("sum");
        self.body.line(d.variable(kind, &sum, &d.number(fold.identity(), dtype)));
        let scope =
            self.body.open(d.each("col", "thread", &count.to_string(), &threads.to_string()));
        let row = [Coord::of("row", value.numel())];
        let coords = crate::serial::reduced(dims, axes, &row, &Coord::of("col", count));
        let term = self.body.pull(x, &coords);
        let next = crate::serial::folded(&self.body, fold, &sum, &term, dtype);
        self.body.line(format!("{sum} = {next};"));
        self.body.close(scope);
        let part = self.share("part", dtype, threads);
        self.body.line(format!("{part}[thread] = {sum};"));
        self.body.line(d.barrier());
        let begin = d.variable("int", "half", &(threads / 2).to_string());
        let scope = self.body.open(format!("for ({begin} half > 0; half /= 2) {{"));
        let (a, b) = (format!("{part}[thread]"), format!("{part}[thread + half]"));
        let next = crate::serial::folded(&self.body, fold, &a, &b, dtype);
        self.body.line(format!("if (thread < half) {{ {part}[thread] = {next}; }}"));
        self.body.line(d.barrier());
        self.body.close(scope);
        let whole = match fold {
            Fold::Mean => format!("{part}[0] / {}", d.number(count as f64, dtype)),
            _ => format!("{part}[0]"),
        };
        let coords = aligned(&row, &value.dims)?;
        let name = self.body.name(v, &coords, &whole);
        self.body.line(d.barrier());
        if (self.needed)(v) {
            let scope = self.body.open("if (thread == 0) {");
            self.write(v, "row", &name);
            self.body.close(scope);
        }
        Some(())
    }

    /// Asks for a loop without a variable, so that sums stay in registers.
    fn unroll(&mut self) {
        if self.body.dialect == Dialect::Cuda {
            self.body.line("#pragma unroll");
        }
    }

    /// An array that the threads share, one for each dtype.
    pub(crate) fn share(&mut self, name: &str, dtype: DType, size: usize) -> String {
        let kind = self.body.dialect.kind(dtype).replace(' ', "_");
        let name = format!("{name}_{kind}");
        if !self.shared.iter().any(|s| s.0 == name) {
            self.shared.push((name.clone(), dtype, size));
        }
        name
    }

    fn product(&mut self, stack: usize, m: usize, n: usize, k: usize) -> Option<usize> {
        let d = self.body.dialect;
        let graph = self.body.graph;
        let v = *self.kernel.members.first()?;
        let Step::Product(a, b) = graph.values[v].step else { return None };
        let dtype = graph.values[v].dtype;
        let micro = if m >= 64 && n >= 64 { 4 } else { 1 };
        let tile = 16 * micro;
        let (tm, tn) = (m.div_ceil(tile), n.div_ceil(tile));
        for name in ["stack", "top", "left", "tx", "ty", "k0", "k", "u", "w", "m", "n", "t"] {
            self.body.fresh(name);
        }
        self.body.line(d.constant("int", "thread", d.thread()));
        self.body.line(d.constant("int", "block", d.block()));
        let blocks = stack * tm * tn;
        if d == Dialect::Wgsl && blocks > 65535 {
            self.body.line(format!("if (block >= {blocks}) {{ return; }}"));
        }
        for (name, text) in [
            ("stack", format!("block / {}", tm * tn)),
            ("top", format!("block / {tn} % {tm} * {tile}")),
            ("left", format!("block % {tn} * {tile}")),
            ("tx", "thread % 16".to_string()),
            ("ty", "thread / 16".to_string()),
        ] {
            self.body.line(d.constant("int", name, &text));
        }
        let kind = d.kind(dtype);
        let sums = self.body.fresh("sums");
        let many = micro * micro;
        self.body.line(match d {
            Dialect::Cuda => format!("{kind} {sums}[{many}] = {{}};"),
            Dialect::Wgsl => format!("var {sums}: array<{kind}, {many}>;"),
        });
        let tiles =
            [self.share("tile_a", dtype, DEPTH * tile), self.share("tile_b", dtype, DEPTH * tile)];
        let outer = self.body.open(d.each("k0", "0", &k.to_string(), &DEPTH.to_string()));
        let batch = &graph.values[v].dims[..graph.values[v].dims.len() - 2];
        let stacked = aligned(&[Coord::of("stack", stack)], batch)?;
        for (side, x) in [(0, a), (1, b)] {
            let total = (DEPTH * tile).to_string();
            let scope = self.body.open(d.each("t", "thread", &total, &BLOCK.to_string()));
            let (place, deep, size, start, var) = match side {
                0 => (format!("t / {DEPTH}"), format!("t % {DEPTH}"), m, "top", "m"),
                _ => (format!("t % {tile}"), format!("t / {tile}"), n, "left", "n"),
            };
            self.body.line(d.constant("int", var, &format!("{start} + {place}")));
            self.body.line(d.constant("int", "k", &format!("k0 + {deep}")));
            let x_ = self.body.fresh("x");
            self.body.line(d.variable(kind, &x_, &d.number(0.0, dtype)));
            let inner = self.body.open(format!("if ({var} < {size} && k < {k}) {{"));
            let dims = &graph.values[x].dims;
            let mut coords = crate::coords::broadcast(&stacked, &dims[..dims.len() - 2]);
            let pair = [Coord::of(var, size), Coord::of("k", k)];
            let [p, q] = pair;
            coords.extend(if side == 0 { [p, q] } else { [q, p] });
            let value = self.body.pull(x, &coords);
            self.body.line(format!("{x_} = {value};"));
            self.body.close(inner);
            let at = format!("({deep}) * {tile} + {place}");
            self.body.line(format!("{}[{at}] = {x_};", tiles[side]));
            self.body.close(scope);
        }
        self.body.line(d.barrier());
        let scope = self.body.open(d.each("t", "0", &DEPTH.to_string(), "1"));
        for u in 0..micro {
            for w in 0..micro {
                let a = format!("{}[t * {tile} + ty + {}]", tiles[0], 16 * u);
                let b = format!("{}[t * {tile} + tx + {}]", tiles[1], 16 * w);
                self.body.line(format!("{sums}[{}] += {a} * {b};", u * micro + w));
            }
        }
        self.body.close(scope);
        self.body.line(d.barrier());
        self.body.close(outer);
        let count = micro.to_string();
        self.unroll();
        let one = self.body.open(d.each("u", "0", &count, "1"));
        self.unroll();
        let two = self.body.open(d.each("w", "0", &count, "1"));
        self.body.line(d.constant("int", "m", "top + ty + 16 * u"));
        self.body.line(d.constant("int", "n", "left + tx + 16 * w"));
        let three = self.body.open(format!("if (m < {m} && n < {n}) {{"));
        let coords = [Coord::of("stack", stack), Coord::of("m", m), Coord::of("n", n)];
        for (i, v) in self.kernel.members.clone().into_iter().enumerate() {
            let own = aligned(&coords, &graph.values[v].dims)?;
            let name = match i {
                0 => self.body.name(v, &own, &format!("{sums}[u * {micro} + w]")),
                _ if graph.values[v].step.is_light() => self.value(v, &own),
                _ => return None,
            };
            self.write(v, &flat(&own), &name);
        }
        self.body.close(three);
        self.body.close(two);
        self.body.close(one);
        Some(blocks)
    }
}
