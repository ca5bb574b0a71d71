//! The text that computes a block's share of one value.

use std::collections::{BTreeMap, HashSet};

use chainrule_core::dtype::DType;

use super::Cluster;
use super::shares::{Places, Reads, Share};
use crate::coords::{Coord, flat, reshaped};
use crate::dialect::Dialect;
use crate::graph::{Graph, Step, ValueId};
use crate::pull::{Body, Scope};

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

/// Values that the same threads compute, element by element, one after the other.
#[derive(Clone)]
pub(crate) struct Task {
    pub members: Vec<(ValueId, Share)>,
    /// Elements of the share; a short last stretch counts as a full one.
    pub count: usize,
    /// Neighbours along the last axes that a thread computes at once, which `count` counts as one.
    pub tile: usize,
    /// Threads that share the loop of an element.
    pub lanes: usize,
    /// Terms of the loops of an element, and whether lanes may share them.
    pub terms: usize,
    pub is_shared: bool,
}

impl Task {
    pub fn new(graph: &Graph, v: ValueId, share: Share, cluster: Cluster) -> Task {
        let count: usize = split(&graph.values[v].dims, share, cluster.blocks).iter().product();
        let (terms, is_shared) = terms(graph, v);
        let tile = tile(graph, v);
        let count = count / tile;
        Task { members: vec![(v, share)], count, tile, lanes: 1, terms, is_shared }
    }

    /// With a value more.
    pub fn with(&self, graph: &Graph, v: ValueId, share: Share) -> Task {
        let mut out = self.clone();
        out.members.push((v, share));
        let (terms, is_shared) = terms(graph, v);
        out.terms += terms;
        out.is_shared &= is_shared;
        out
    }

    /// Whether twice as many lanes can be used.
    pub fn widens(&self, threads: usize) -> bool {
        let next = 2 * self.lanes;
        self.is_shared && next <= self.terms.min(32) && next * self.count <= threads
    }

    /// Terms that a thread adds.
    pub fn serial(&self) -> usize {
        self.terms.div_ceil(self.lanes)
    }

    /// Approximate nanoseconds of the piece alone with as many lanes as possible, and the terms
    /// that a thread adds.
    pub fn time(&self, threads: usize, lines: &[String]) -> (f64, usize) {
        let mut alone = self.clone();
        while alone.widens(threads) {
            alone.lanes *= 2;
        }
        let rounds = (alone.count * alone.lanes).div_ceil(threads);
        if self.terms == 1 {
            // Loads of all rounds are under way at once.
            let slow = ["expf(", "tanhf(", "logf(", "powf(", "sinf(", "cosf(", " / ", "_root("];
            let calls = lines.iter().filter(|line| slow.iter().any(|f| line.contains(f))).count();
            let each = 6 * lines.len().saturating_sub(5) + 50 * calls;
            return (50.0 + (each * rounds) as f64, 1);
        }
        let terms = rounds * alone.serial();
        (50.0 + 60.0 * rounds as f64 + 8.0 * terms as f64, terms)
    }

    /// Threads that have something to do, in whole warps.
    pub fn width(&self) -> usize {
        (self.count * self.lanes).next_multiple_of(32)
    }
}

/// The axes of a share except those of one element, and which of them is split: equal for values
/// whose elements have the same positions.
pub(crate) fn layout(
    graph: &Graph,
    v: ValueId,
    share: Share,
    cluster: Cluster,
) -> (Vec<usize>, Option<(usize, usize)>) {
    let dims = &graph.values[v].dims;
    let own = split(dims, share, cluster.blocks);
    let is_split = |i: usize| share == Share::Split(i);
    let kept: Vec<usize> = (0..dims.len()).filter(|&i| own[i] != 1 || is_split(i)).collect();
    let at = kept.iter().position(|&i| is_split(i)).map(|at| (at, dims[kept[at]]));
    (kept.iter().map(|&i| own[i]).collect(), at)
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
        Step::Parts(a, _) => (dims(*a)[dims(*a).len() - 1].div_ceil(dims(v)[0]), true),
        Step::ScatterRows { index, .. } | Step::ScatterParts { index, .. } => {
            (dims(*index)[0], true)
        }
        Step::Scatter { index, axis, .. } => (dims(*index)[*axis], false),
        Step::Best(x, axis, _) => (dims(*x)[*axis], false),
        Step::Cumulate { x, axis, .. } | Step::Rank { x, axis, .. } => (dims(*x)[*axis], false),
        Step::Inverse(x, axis) => (dims(*x)[*axis], false),
        Step::Begins(index, _) => (dims(*index)[0].max(1).ilog2() as usize + 1, false),
        Step::Segments { order, .. } => (dims(*order)[0], false),
        _ => (1, true),
    }
}

/// Most neighbours that a thread computes at once.
const TILE: usize = 16;

/// Neighbours that a thread computes at once: those of a row whose index is looked up once for all
/// of them.
fn tile(graph: &Graph, v: ValueId) -> usize {
    let value = &graph.values[v];
    let inner = match &value.step {
        Step::ScatterParts { .. } => value.dims[2..].iter().product(),
        _ => 1,
    };
    if (1..=TILE).contains(&inner) { inner } else { 1 }
}

/// The text of a piece, and what it reads.
pub(crate) struct Piece {
    pub lines: Vec<String>,
    pub reads: Reads,
    pub draws: bool,
}

/// The memory and the arrays that values are written to.
#[derive(Default)]
pub(crate) struct Targets {
    /// Names of memory.
    pub memory: BTreeMap<ValueId, Vec<String>>,
    /// The array of the block.
    pub kept: BTreeMap<ValueId, String>,
}

pub(crate) struct Writer<'a> {
    pub graph: &'a Graph,
    pub stored: &'a [bool],
    pub names: &'a Names,
    pub places: Places<'a>,
}

impl Writer<'_> {
    /// The text of a task, whose threads begin after this many of the block.
    pub fn piece(&self, task: &Task, targets: &Targets, after: usize) -> Piece {
        let names = self.names;
        let mut body = Body::new(self.graph, self.stored, Dialect::Cuda);
        body.names.clone_from(&names.all);
        body.places = Some(self.places.clone());
        body.sharers = (task.lanes, names.lane.clone());
        body.deeper();
        let scope = body.open("{");
        let (lanes, count) = (task.lanes, task.count);
        let (threads, element) = (self.places.cluster.threads, &names.element);
        let mut thread = names.thread.clone();
        if !after.is_multiple_of(threads) {
            let text = format!("({thread} + {}) % {threads}", threads - after % threads);
            thread = body.bind(text, "own_thread");
        }
        if task.tile > 1 {
            self.in_tiles(&mut body, task, targets, &thread);
        } else if lanes == 1 {
            let [below, step] = [count, threads].map(|n| n.to_string());
            if count > threads {
                // Loads of some elements are under way at once.
                body.line(format!("#pragma unroll {}", count.div_ceil(threads).min(16)));
            }
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
        let test = self.places(body, task, false);
        let inner = test.map(|test| body.open(format!("if ({test}) {{")));
        for &(v, share) in &task.members {
            let coords = self.coords(task, v, share);
            let name = self.value(body, v, &coords);
            self.write(body, (v, share), &coords, &name, targets);
        }
        if let Some(inner) = inner {
            body.close(inner);
        }
    }

    /// Lines that write the block's share of a value, which stands in an array, to memory.
    pub fn back(&self, task: &Task, from: &str, to: &str) -> Vec<String> {
        let names = self.names;
        let mut body = Body::new(self.graph, self.stored, Dialect::Cuda);
        body.names.clone_from(&names.all);
        body.deeper();
        let (v, share) = task.members[0];
        let one =
            (share == Share::Whole).then(|| body.open(format!("if ({} == 0) {{", names.block)));
        let [below, step] = [task.count, self.places.cluster.threads].map(|n| n.to_string());
        body.line("#pragma unroll 1");
        let inner = body.open(Dialect::Cuda.each(&names.element, &names.thread, &below, &step));
        let test = self.places(&mut body, task, false);
        let test = test.map(|test| body.open(format!("if ({test}) {{")));
        let coords = self.coords(task, v, share);
        body.line(format!("{to}[{}] = {from}[{}];", flat(&coords), names.element));
        for scope in [test, Some(inner), one].into_iter().flatten() {
            body.close(scope);
        }
        body.lines
    }

    /// Lanes of a warp share an element. The whole warp takes part to the end; lanes without an
    /// element work on the last one.
    fn in_lanes(&self, body: &mut Body<'_>, task: &Task, targets: &Targets, thread: &str) {
        let warps = self.warps(body, task, thread);
        let there = self.begin_lanes(body, task, thread);
        let test = self.places(body, task, true);
        let mut named = Vec::new();
        for &(v, share) in &task.members {
            let coords = self.coords(task, v, share);
            let name = self.value(body, v, &coords);
            named.push(((v, share), coords, name));
        }
        let tests: Vec<String> = there.into_iter().chain(test).collect();
        let inner = body.open(format!("if ({}) {{", tests.join(" && ")));
        for (member, coords, name) in named {
            self.write(body, member, &coords, &name, targets);
        }
        body.close(inner);
        if let Some(warps) = warps {
            body.close(warps);
        }
    }

    /// Begins the work of a task's warps, if the block has other warps.
    fn warps(&self, body: &mut Body<'_>, task: &Task, thread: &str) -> Option<Scope> {
        let width = task.width();
        (width < self.places.cluster.threads)
            .then(|| body.open(format!("if ({thread} < {width}) {{")))
    }

    /// Variables of the element and the lane, and the test for the thread that writes the element.
    /// There is no second round, since only as many lanes are used as fit.
    fn begin_lanes(&self, body: &mut Body<'_>, task: &Task, thread: &str) -> Vec<String> {
        let (lanes, count) = (task.lanes, task.count);
        let (element, lane) = (&self.names.element, &self.names.lane);
        let place = body.bind(format!("{thread} / {lanes}"), "place");
        body.line(format!("const int {lane} = {thread} % {lanes};"));
        body.line(format!("const int {element} = min({place}, {});", count - 1));
        let there = !(count * lanes).is_multiple_of(32);
        [Some(format!("{lane} == 0")), there.then(|| format!("{place} < {count}"))]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Neighbours along the last axes for each thread.
    fn in_tiles(&self, body: &mut Body<'_>, task: &Task, targets: &Targets, thread: &str) {
        let (v, share) = task.members[0];
        let Step::ScatterParts { index, g } = self.graph.values[v].step else {
            unreachable!("others have no tiles")
        };
        let (lanes, element) = (task.lanes, &self.names.element);
        let (scope, tests) = if lanes == 1 {
            let [below, step] = [task.count, self.places.cluster.threads].map(|n| n.to_string());
            (Some(body.open(Dialect::Cuda.each(element, thread, &below, &step))), Vec::new())
        } else {
            (self.warps(body, task, thread), self.begin_lanes(body, task, thread))
        };
        let Names { own, block, .. } = self.names;
        body.line(format!("const int {own} = {block};"));
        let dims = &self.graph.values[v].dims;
        let own = split(dims, share, self.places.cluster.blocks);
        let mut coords = self.digits(task, &own[..2]);
        coords[0] = Coord::of(&self.names.own, dims[0]);
        let sums = crate::serial::scattered_tile(body, v, &coords, task.tile, [index, g]);
        let inner =
            (!tests.is_empty()).then(|| body.open(format!("if ({}) {{", tests.join(" && "))));
        let (tile, at) = body.open_tile(task.tile);
        let one = format!("{sums}[{}]", at.text());
        if let Some(array) = targets.kept.get(&v) {
            body.line(format!("{array}[{element} * {} + {}] = {one};", task.tile, at.text()));
        }
        coords.extend(body.reshaped(&[at], &dims[2..]));
        for array in targets.memory.get(&v).map_or(&[][..], Vec::as_slice) {
            body.line(format!("{array}[{}] = {one};", flat(&coords)));
        }
        for scope in [Some(tile), inner, scope].into_iter().flatten() {
            body.close(scope);
        }
    }

    /// Variables of the place of an element along the split axis, and the test whether it is there.
    fn places(&self, body: &mut Body<'_>, task: &Task, clamps: bool) -> Option<String> {
        let (v, share) = task.members[0];
        let Share::Split(axis) = share else { return None };
        let dims = &self.graph.values[v].dims;
        let own = split(dims, share, self.places.cluster.blocks);
        let (size, chunk) = (dims[axis], own[axis]);
        let mine = self.digits(task, &own)[axis].text();
        body.line(format!("const int {} = {mine};", self.names.mine));
        let place = format!("{} * {chunk} + {}", self.names.block, self.names.mine);
        let whole = size == chunk * self.places.cluster.blocks;
        let text =
            if clamps && !whole { format!("min({place}, {})", size - 1) } else { place.clone() };
        body.line(format!("const int {} = {text};", self.names.own));
        let test = match clamps {
            true => format!("{place} < {size}"),
            false => format!("{} < {size}", self.names.own),
        };
        (!whole).then_some(test)
    }

    /// The places of an element in a share of these sizes.
    fn digits(&self, task: &Task, own: &[usize]) -> Vec<Coord> {
        let mut never = |text: String, _: usize| -> String { unreachable!("digits of {text}") };
        reshaped(&[Coord::of(&self.names.element, task.count)], own, &mut never)
    }

    /// The places of an element of a value.
    fn coords(&self, task: &Task, v: ValueId, share: Share) -> Vec<Coord> {
        let dims = &self.graph.values[v].dims;
        let mut out = self.digits(task, &split(dims, share, self.places.cluster.blocks));
        if let Share::Split(axis) = share {
            out[axis] = Coord::of(&self.names.own, dims[axis]);
        }
        out
    }

    fn value(&self, body: &mut Body<'_>, v: ValueId, coords: &[Coord]) -> String {
        let name = match self.graph.values[v].step.is_light() {
            true => body.expression(v, coords),
            false => crate::serial::value(body, v, coords),
        };
        body.know(v, coords, &name);
        name
    }

    fn write(
        &self,
        body: &mut Body<'_>,
        (v, share): (ValueId, Share),
        coords: &[Coord],
        name: &str,
        targets: &Targets,
    ) {
        let value = &self.graph.values[v];
        let write =
            |array: &str, at: &str, dtype: DType| Dialect::Cuda.write(array, at, dtype, name);
        if let Some(array) = targets.kept.get(&v) {
            body.line(write(array, &self.names.element, value.dtype));
        }
        let at = flat(coords);
        let memory = targets.memory.get(&v).map_or(&[][..], Vec::as_slice);
        let one = share == Share::Whole && !memory.is_empty();
        let scope = one.then(|| body.open(format!("if ({} == 0) {{", self.names.block)));
        for array in memory {
            body.line(write(array, &at, value.dtype));
        }
        if let Some(scope) = scope {
            body.close(scope);
        }
    }
}
