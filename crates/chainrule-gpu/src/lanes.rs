//! Kernels whose threads compute several neighbours each, which are loaded and stored at once.

use chainrule_core::dtype::DType;

use crate::coords::{Coord, first_of_lanes, flat};
use crate::dialect::Dialect;
use crate::graph::{Fold, Graph, Step, ValueId};
use crate::kernels::{BLOCK, Kernel, Maker, Shape, aligned};

/// Elements from which on threads compute neighbours: with fewer, most of a GPU would have no work.
pub(crate) const WIDE_FROM: usize = 1 << 17;

/// Bytes that a thread loads at once.
const LOADED: usize = 16;

/// Threads that exchange numbers without memory: a warp.
const WARP: usize = 32;

/// Most threads of a block.
const MOST: usize = 1024;

/// Threads of a block whose row is too long for each thread to keep its part.
const LONG: usize = 512;

/// Neighbours that each thread of a kernel computes.
pub(crate) fn lanes(graph: &Graph, kernel: &Kernel, dialect: Dialect) -> usize {
    let (all, row) = match kernel.shape {
        Shape::Each(n) => (n, n),
        Shape::Rows(rows, count) => (rows * count, count),
        _ => return 1,
    };
    let is_each = matches!(kernel.shape, Shape::Each(_));
    let fits = |v: ValueId| match &graph.values[v].step {
        Step::Fold(..) => true,
        Step::Segments { .. } => is_each,
        step => step.is_light(),
    };
    let takes = dialect == Dialect::Cuda
        && (graph.wide_from..(1 << 31) - (1 << 14)).contains(&all)
        && kernel.members.iter().all(|&v| fits(v));
    if !takes {
        return 1;
    }
    let of = |&v: &ValueId| graph.values[v].dtype;
    let is_fold = |&v: &ValueId| matches!(graph.values[v].step, Step::Fold(..));
    let folds = kernel.members.iter().any(is_fold);
    let narrow = kernel.members.iter().any(|v| of(v) == DType::BF16);
    match kernel.shape {
        // A thread that loops needs other threads beside it to hide its waits.
        Shape::Each(n) if folds && n < 4 * graph.wide_from => {
            if n.is_multiple_of(2) {
                2
            } else {
                1
            }
        }
        Shape::Each(n) => {
            let most = if narrow { LOADED / 2 } else { LOADED / 4 };
            [most, LOADED / 4, 2].into_iter().find(|l| n.is_multiple_of(*l)).unwrap_or(1)
        }
        // Rows that do not fit into registers are read again, from memory of narrow elements if
        // there is any.
        _ if row > MOST * LOADED / 4 => LOADED / 2,
        _ => LOADED / 4,
    }
}

/// Whether threads keep their parts of rows of so many elements in registers.
fn is_kept(count: usize, lanes: usize) -> bool {
    count.is_multiple_of(lanes) && count / lanes <= MOST
}

/// Whether elementwise values are worth one block for each row, because a reduction of rows
/// follows: they then need not be read again.
pub(crate) fn becomes_rows(graph: &Graph, kernel: &Kernel, dialect: Dialect) -> bool {
    let Shape::Rows(_, count) = kernel.shape else { return false };
    let lanes = lanes(graph, kernel, dialect);
    lanes > 1 && is_kept(count, lanes)
}

impl Maker<'_, '_> {
    /// A loop over the neighbours of a thread; a test may leave some out.
    fn lane_loop<T>(&mut self, tail: Option<&str>, f: impl FnOnce(&mut Self) -> T) -> T {
        let scope = self.body.open_lanes(self.lanes);
        let inner = tail.map(|test| self.body.open(format!("if ({test}) {{")));
        let out = f(self);
        inner.into_iter().for_each(|inner| self.body.close(inner));
        self.body.close_lanes(scope);
        out
    }

    /// Computes the values of all neighbours in one loop and stores them after it; `guard` tests
    /// for threads that store.
    fn wide_values(
        &mut self,
        members: &[ValueId],
        whole: &Coord,
        row: Option<&Coord>,
        [tail, guard]: [Option<&str>; 2],
    ) -> Option<()> {
        let all: Vec<Coord> = row.into_iter().chain([whole]).cloned().collect();
        let graph = self.body.graph;
        let mut made = Vec::new();
        let done = self.lane_loop(tail, |m| {
            for &v in members {
                let value = &graph.values[v];
                let coords = aligned(&all, &value.dims)?;
                let name = m.value(v, &coords);
                let array = m.body.array(&format!("{}_", value.name), value.dtype);
                m.body.line(format!("{array}[e] = {name};"));
                let first = first_of_lanes(&coords);
                if first.is_none() {
                    let scope = guard.map(|test| m.body.open(format!("if ({test}) {{")));
                    m.write(v, &flat(&coords), &name);
                    scope.into_iter().for_each(|scope| m.body.close(scope));
                }
                made.push((v, coords, array, first));
            }
            Some(())
        });
        done?;
        for (v, coords, array, first) in made {
            self.body.know(v, &coords, &format!("{array}[e]"));
            if let Some(first) = first {
                self.put(v, &coords, &array, &first, guard);
            }
        }
        Some(())
    }

    /// Stores all neighbours at once.
    fn put(&mut self, v: ValueId, coords: &[Coord], array: &str, first: &str, guard: Option<&str>) {
        if !(self.needed)(v) {
            return;
        }
        self.body.touched.push((v, flat(coords)));
        let name = &self.body.graph.values[v].name;
        let to = if first == "0" { String::new() } else { format!(" + {first}") };
        let put = format!("put({name}{to}, {array});");
        let line = guard.map_or(put.clone(), |test| format!("if ({test}) {{ {put} }}"));
        self.body.line(line);
    }

    /// A thread for some neighbours of all elements.
    pub(crate) fn wide_each(&mut self, n: usize) -> Option<()> {
        let d = self.body.dialect;
        let at = format!("({} * {BLOCK} + {}) * {}", d.block(), d.thread(), self.lanes);
        self.body.line(d.constant("int", "i", &at));
        self.body.line(format!("if (i >= {n}) {{ return; }}"));
        let whole = Coord::wide("i", n, self.lanes);
        let members = self.kernel.members.clone();
        let graph = self.body.graph;
        let is_fold = |v: ValueId| matches!(graph.values[v].step, Step::Fold(..));
        for run in members.chunk_by(|&a, &b| !is_fold(a) && !is_fold(b)) {
            match is_fold(run[0]) {
                true => self.wide_fold(run[0], &whole)?,
                false => self.wide_values(run, &whole, None, [None; 2])?,
            }
        }
        Some(())
    }

    /// Reductions of columns side by side.
    fn wide_fold(&mut self, v: ValueId, whole: &Coord) -> Option<()> {
        let (d, graph) = (self.body.dialect, self.body.graph);
        let value = &graph.values[v];
        let Step::Fold(fold, x, axes) = &value.step else { return None };
        let (dims, dtype) = (&graph.values[*x].dims, value.dtype);
        let count: usize = axes.iter().map(|&a| dims[a]).product();
        let coords = aligned(std::slice::from_ref(whole), &value.dims)?;
        let sums = self.body.fresh(&format!("{}_", value.name));
        let identity = vec![d.number(fold.identity(), dtype); self.lanes].join(", ");
        self.body.line(format!("{} {sums}[{}] = {{{identity}}};", d.kind(dtype), self.lanes));
        let sum = format!("{sums}[e]");
        if count > 0 {
            let k = self.body.fresh("k");
            self.body.line("#pragma unroll 4");
            let scope = self.body.open(d.each(&k, "0", &count.to_string(), "1"));
            let at = crate::serial::reduced(dims, axes, &coords, &Coord::of(&k, count));
            self.lane_loop(None, |m| {
                let term = m.body.pull(*x, &at);
                let next = crate::serial::folded(&m.body, *fold, &sum, &term, dtype);
                m.body.line(format!("{sum} = {next};"));
            });
            self.body.close(scope);
        }
        if *fold == Fold::Mean {
            let of = d.number(count as f64, dtype);
            self.lane_loop(None, |m| m.body.line(format!("{sum} = {sum} / {of};")));
        }
        self.body.know(v, &coords, &sum);
        match first_of_lanes(&coords) {
            Some(first) => self.put(v, &coords, &sums, &first, None),
            None => self.lane_loop(None, |m| m.write(v, &flat(&coords), &sum)),
        }
        Some(())
    }

    /// One block for each row. Each thread keeps its part of the row in registers if the threads
    /// together can hold it; a longer row passes part by part. Returns the threads of the block.
    pub(crate) fn wide_rows(&mut self, rows: usize, count: usize) -> Option<usize> {
        let (d, lanes) = (self.body.dialect, self.lanes);
        let vectors = count.div_ceil(lanes);
        let is_kept = is_kept(count, lanes);
        let threads = vectors.next_multiple_of(WARP).min(if is_kept { MOST } else { LONG });
        self.body.line(d.constant("int", "row", d.block()));
        self.body.line(d.constant("int", "thread", d.thread()));
        let guard = (is_kept && threads > vectors).then_some("inside");
        if is_kept {
            let place = match guard {
                Some(_) => format!("min(thread, {}) * {lanes}", vectors - 1),
                None => format!("thread * {lanes}"),
            };
            self.body.line(d.constant("int", "col", &place));
        }
        if guard.is_some() {
            self.body.line(format!("const bool inside = thread < {vectors};"));
        }
        let tail = format!("col + e < {count}");
        let tail = (!count.is_multiple_of(lanes)).then_some(&*tail);
        let wide = Wide { rows, count, threads, is_kept, tests: [tail, guard] };
        let (row, col) = (Coord::of("row", rows), Coord::wide("col", count, lanes));
        let graph = self.body.graph;
        let members = self.kernel.members.clone();
        let is_whole = |v: ValueId| {
            let value = &graph.values[v];
            value.step.is_light() && value.numel() != rows
        };
        for run in members.chunk_by(|&a, &b| is_whole(a) && is_whole(b)) {
            let (v, value) = (run[0], &graph.values[run[0]]);
            match &value.step {
                Step::Fold(fold, x, axes) => {
                    let dims = &graph.values[*x].dims;
                    let of: usize = axes.iter().map(|&a| dims[a]).product();
                    ((value.numel(), of) == (rows, count)).then_some(())?;
                    self.wide_row_fold(v, (*fold, *x, axes), &wide)?;
                }
                step if !step.is_light() => return None,
                _ if is_whole(v) => {
                    let head = d.each("col", &wide.first(lanes), &wide.end(), &wide.next(lanes));
                    let scope = (!is_kept).then(|| self.body.open(head));
                    self.wide_values(run, &col, Some(&row), wide.tests)?;
                    scope.into_iter().for_each(|scope| self.body.close(scope));
                    for &v in run {
                        let coords = aligned(&[row.clone(), col.clone()], &graph.values[v].dims)?;
                        self.body.written.push((v, flat(&coords)));
                    }
                }
                _ => self.of_row(v, rows)?,
            }
        }
        Some(threads)
    }

    /// Reduces a row: first within each thread, then within each warp, then over the warps.
    fn wide_row_fold(
        &mut self,
        v: ValueId,
        (fold, x, axes): (Fold, ValueId, &[usize]),
        wide: &Wide<'_>,
    ) -> Option<()> {
        let (d, graph, lanes) = (self.body.dialect, self.body.graph, self.lanes);
        let (value, dims) = (&graph.values[v], &graph.values[x].dims);
        let dtype = value.dtype;
        let sum = self.body.fresh("sum");
        let identity = d.number(fold.identity(), dtype);
        self.body.line(d.variable(d.kind(dtype), &sum, &identity));
        let head = d.each("col", &wide.first(lanes), &wide.end(), &wide.next(lanes));
        if !wide.is_kept {
            self.body.line("#pragma unroll 4");
        }
        let scope = (!wide.is_kept).then(|| self.body.open(head));
        let row = [Coord::of("row", wide.rows)];
        let col = Coord::wide("col", wide.count, lanes);
        let at = crate::serial::reduced(dims, axes, &row, &col);
        let [tail, guard] = wide.tests;
        self.lane_loop(tail, |m| {
            let term = m.body.pull(x, &at);
            let next = crate::serial::folded(&m.body, fold, &sum, &term, dtype);
            m.body.line(format!("{sum} = {next};"));
        });
        scope.into_iter().for_each(|scope| self.body.close(scope));
        if let Some(test) = guard {
            self.body.line(format!("if (!{test}) {{ {sum} = {identity}; }}"));
        }
        let whole = self.shared_fold(fold, &sum, dtype, wide.threads);
        let whole = match fold {
            Fold::Mean => format!("{whole} / {}", d.number(wide.count as f64, dtype)),
            _ => whole,
        };
        let coords = aligned(&row, &value.dims)?;
        let name = self.body.name(v, &coords, &whole);
        if (self.needed)(v) {
            let scope = self.body.open("if (thread == 0) {");
            self.write(v, "row", &name);
            self.body.close(scope);
        }
        Some(())
    }

    /// Reduces a variable over all threads, in an order that their number determines.
    fn shared_fold(&mut self, fold: Fold, sum: &str, dtype: DType, threads: usize) -> String {
        let d = self.body.dialect;
        let next = |m: &Self, a: &str, b: &str| crate::serial::folded(&m.body, fold, a, b, dtype);
        let folded = next(self, sum, &format!("across({sum}, half)"));
        self.body.line(format!(
            "for (int half = {}; half > 0; half /= 2) {{ {sum} = {folded}; }}",
            WARP / 2
        ));
        if threads == WARP {
            return sum.to_string();
        }
        // Two arrays in turn: before one is written again, every thread has passed the other's
        // barrier.
        self.folds += 1;
        let part = self.share(["part_a", "part_b"][self.folds % 2], dtype, MOST / WARP);
        self.body.line(format!("if (thread % {WARP} == 0) {{ {part}[thread / {WARP}] = {sum}; }}"));
        self.body.line(d.barrier());
        self.body.line(format!("{sum} = {part}[0];"));
        let folded = next(self, sum, &format!("{part}[w]"));
        let warps = threads / WARP;
        self.body.line(format!("for (int w = 1; w < {warps}; w++) {{ {sum} = {folded}; }}"));
        sum.to_string()
    }
}

/// How the threads of a kernel share its rows.
struct Wide<'a> {
    rows: usize,
    count: usize,
    threads: usize,
    /// Whether each thread has a single share of a row, which it keeps.
    is_kept: bool,
    /// A test for the last neighbours of a share, and one for threads that have a share.
    tests: [Option<&'a str>; 2],
}

impl Wide<'_> {
    fn first(&self, lanes: usize) -> String {
        format!("thread * {lanes}")
    }

    fn end(&self) -> String {
        self.count.to_string()
    }

    fn next(&self, lanes: usize) -> String {
        (self.threads * lanes).to_string()
    }
}
