//! The text that computes a block's share of one value.

use std::collections::HashSet;

use chainrule_core::dtype::DType;

use super::Cluster;
use super::shares::{Places, Reads, Share};
use crate::coords::{Coord, flat, reshaped};
use crate::dialect::Dialect;
use crate::graph::{Graph, Step, ValueId};
use crate::pull::Body;

/// Names of the variables that all pieces use.
pub(crate) struct Names {
    pub block: String,
    pub thread: String,
    pub element: String,
    pub own: String,
    pub mine: String,
    pub lane: String,
    pub step: String,
    pub steps: String,
    pub seed: String,
    pub run: String,
    pub all: HashSet<String>,
}

impl Names {
    pub fn new(graph: &Graph) -> Names {
        let mut all = HashSet::new();
        let mut name = |wanted: &str| fresh(graph, &mut all, wanted);
        let [block, thread, element] = ["block", "thread", "e"].map(&mut name);
        let [own, mine, lane] = ["own", "mine", "lane"].map(&mut name);
        let [step, steps, seed, run] = ["step", "steps", "seed", "run"].map(&mut name);
        Names { block, thread, element, own, mine, lane, step, steps, seed, run, all }
    }
}

/// A name that no value and no variable has.
pub(crate) fn fresh(graph: &Graph, used: &mut HashSet<String>, wanted: &str) -> String {
    let (mut name, mut n) = (wanted.to_string(), 1);
    while graph.names.contains(&name) || !used.insert(name.clone()) {
        n += 1;
        name = format!("{wanted}_{n}");
    }
    name
}

/// The share of a value, and the threads for it.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    pub v: ValueId,
    pub share: Share,
    /// Elements of the share, with those of a short last stretch that are not there.
    pub count: usize,
    /// Threads that share the loop of an element.
    pub lanes: usize,
    /// Terms of the loop of an element.
    pub terms: usize,
}

impl Task {
    pub fn new(graph: &Graph, v: ValueId, share: Share, cluster: Cluster) -> Task {
        let dims = split(&graph.values[v].dims, share, cluster.blocks);
        let count = dims.iter().product();
        let (terms, shared) = terms(graph, v);
        let most = if shared { terms.clamp(1, 32) } else { 1 };
        let mut lanes = 1;
        while 2 * lanes <= most && 2 * lanes * count <= cluster.threads {
            lanes *= 2;
        }
        Task { v, share, count, lanes, terms }
    }

    /// Nanoseconds by itself, about.
    pub fn time(&self, threads: usize) -> f64 {
        let rounds = (self.count * self.lanes).div_ceil(threads);
        60.0 * rounds as f64 + 12.0 * (rounds * self.terms.div_ceil(self.lanes)) as f64
    }

    /// Threads that have something to do, in whole warps.
    pub fn width(&self) -> usize {
        (self.count * self.lanes).next_multiple_of(32)
    }
}

/// The sizes of a block's share.
fn split(dims: &[usize], share: Share, blocks: usize) -> Vec<usize> {
    let mut out = dims.to_vec();
    if let Share::Split(axis) = share {
        out[axis] = dims[axis].div_ceil(blocks);
    }
    out
}

/// Terms of the loop of an element, and whether lanes may share them.
fn terms(graph: &Graph, v: ValueId) -> (usize, bool) {
    let dims = |x: ValueId| &graph.values[x].dims;
    match &graph.values[v].step {
        Step::Fold(_, x, axes) => (axes.iter().map(|&a| dims(*x)[a]).product(), true),
        Step::Product(a, _) => (dims(*a)[dims(*a).len() - 1], true),
        Step::ScatterRows { index, .. } => (dims(*index)[0], true),
        Step::Scatter { index, axis, .. } => (dims(*index)[*axis], false),
        Step::Best(x, axis, _) => (dims(*x)[*axis], false),
        Step::Cumulate { x, axis, .. } | Step::Rank { x, axis, .. } => (dims(*x)[*axis], false),
        Step::Inverse(x, axis) => (dims(*x)[*axis], false),
        Step::Begins(index, _) => (dims(*index)[0].max(1).ilog2() as usize + 1, false),
        Step::Segments { order, .. } => (dims(*order)[0], false),
        Step::Uniform(_) | Step::Normal(_) => (8, false),
        _ => (1, false),
    }
}

/// The text of a piece, and what it reads.
pub(crate) struct Piece {
    pub lines: Vec<String>,
    pub reads: Reads,
    pub draws: bool,
}

/// Where a value is written: names of memory, each with whether one block alone writes it.
pub(crate) struct Targets {
    pub memory: Vec<String>,
    /// The array of the block.
    pub kept: Option<String>,
}

pub(crate) struct Writer<'a> {
    pub graph: &'a Graph,
    pub stored: &'a [bool],
    pub names: &'a Names,
    pub places: Places<'a>,
}

impl Writer<'_> {
    /// The text of a task; its threads begin after so many of the block.
    pub fn piece(&self, task: &Task, targets: &Targets, after: usize) -> Piece {
        let names = self.names;
        let mut body = Body::new(self.graph, self.stored, Dialect::Cuda);
        body.names.clone_from(&names.all);
        body.places = Some(self.places.clone());
        body.sharers = (task.lanes, names.lane.clone());
        body.deeper();
        let scope = body.open("{");
        let Task { lanes, count, .. } = *task;
        let (threads, element) = (self.places.cluster.threads, &names.element);
        let mut thread = names.thread.clone();
        if !after.is_multiple_of(threads) {
            let text = format!("({thread} + {}) % {threads}", threads - after % threads);
            thread = body.bind(text, "own_thread");
        }
        if lanes == 1 {
            let [below, step] = [count, threads].map(|n| n.to_string());
            let inner = body.open(Dialect::Cuda.each(element, &thread, &below, &step));
            self.alone(&mut body, task, targets);
            body.close(inner);
        } else {
            self.in_lanes(&mut body, task, targets, &thread);
        }
        body.close(scope);
        let mut reads = Reads::new();
        for (x, axes) in &body.seen {
            let own = reads.entry(*x).or_insert_with(|| axes.clone());
            own.retain(|axis| axes.contains(axis));
        }
        Piece { lines: body.lines, reads, draws: body.draws }
    }

    /// A thread an element.
    fn alone(&self, body: &mut Body<'_>, task: &Task, targets: &Targets) {
        let (coords, test) = self.coords(body, task, false);
        let inner = test.map(|test| body.open(format!("if ({test}) {{")));
        let name = self.value(body, task.v, &coords);
        self.write(body, task, &coords, &name, targets);
        if let Some(inner) = inner {
            body.close(inner);
        }
    }

    /// Lanes of a warp an element: all take part to the end, those of no element with the last one.
    fn in_lanes(&self, body: &mut Body<'_>, task: &Task, targets: &Targets, thread: &str) {
        let Task { lanes, count, .. } = *task;
        let (element, lane) = (&self.names.element, &self.names.lane);
        // No second round: there are as many lanes as fit.
        let place = body.bind(format!("{thread} / {lanes}"), "place");
        body.line(format!("const int {lane} = {thread} % {lanes};"));
        body.line(format!("const int {element} = min({place}, {});", count - 1));
        let (coords, test) = self.coords(body, task, true);
        let name = self.value(body, task.v, &coords);
        let there =
            (count * lanes < self.places.cluster.threads).then(|| format!("{place} < {count}"));
        let tests: Vec<String> =
            [Some(format!("{lane} == 0")), there, test].into_iter().flatten().collect();
        let inner = body.open(format!("if ({}) {{", tests.join(" && ")));
        self.write(body, task, &coords, &name, targets);
        body.close(inner);
    }

    /// The places of an element, and the test whether it is there.
    fn coords(
        &self,
        body: &mut Body<'_>,
        task: &Task,
        clamps: bool,
    ) -> (Vec<Coord>, Option<String>) {
        let dims = &self.graph.values[task.v].dims;
        let own = split(dims, task.share, self.places.cluster.blocks);
        let mut never = |text: String, _: usize| -> String { unreachable!("digits of {text}") };
        let element = [Coord::of(&self.names.element, task.count)];
        let mut coords = reshaped(&element, &own, &mut never);
        let Share::Split(axis) = task.share else { return (coords, None) };
        let (size, chunk) = (dims[axis], own[axis]);
        body.line(format!("const int {} = {};", self.names.mine, coords[axis].text()));
        let place = format!("{} * {chunk} + {}", self.names.block, self.names.mine);
        let whole = size == chunk * self.places.cluster.blocks;
        let text =
            if clamps && !whole { format!("min({place}, {})", size - 1) } else { place.clone() };
        body.line(format!("const int {} = {text};", self.names.own));
        coords[axis] = Coord::of(&self.names.own, size);
        let test = match clamps {
            true => format!("{place} < {size}"),
            false => format!("{} < {size}", self.names.own),
        };
        (coords, (!whole).then_some(test))
    }

    fn value(&self, body: &mut Body<'_>, v: ValueId, coords: &[Coord]) -> String {
        match self.graph.values[v].step.is_light() {
            true => body.expression(v, coords),
            false => crate::serial::value(body, v, coords),
        }
    }

    fn write(
        &self,
        body: &mut Body<'_>,
        task: &Task,
        coords: &[Coord],
        name: &str,
        targets: &Targets,
    ) {
        let value = &self.graph.values[task.v];
        let write =
            |array: &str, at: &str, dtype: DType| Dialect::Cuda.write(array, at, dtype, name);
        if let Some(array) = &targets.kept {
            body.line(write(array, &self.names.element, value.dtype));
        }
        let at = flat(coords);
        let one = task.share == Share::Whole && !targets.memory.is_empty();
        let scope = one.then(|| body.open(format!("if ({} == 0) {{", self.names.block)));
        for array in &targets.memory {
            body.line(write(array, &at, value.dtype));
        }
        if let Some(scope) = scope {
            body.close(scope);
        }
    }
}
