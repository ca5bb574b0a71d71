//! The text of a persistent kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::groups::Group;
use super::lasting::{self, Cell, LastingRoom};
use super::pieces::{Names, Piece, Targets, Task, Writer, fresh};
use super::shares::{Level, Places, Share, is_own};
use super::{Cluster, Parameter, PersistentKernel};
use crate::dialect::Dialect;
use crate::graph::{Graph, Step, ValueId};

/// Bytes that a block keeps of values.
const KEPT: usize = 160 << 10;

/// The work between two barriers: sets of values with the text that computes them.
type Stage = (Level, Vec<(Vec<ValueId>, Piece)>);

/// A kernel in the making.
pub(super) struct PersistentMaker<'a> {
    graph: &'a Graph,
    stored: &'a [bool],
    cluster: Cluster,
    names: Names,
    pub shares: BTreeMap<ValueId, Share>,
    /// Tasks by their levels.
    pub groups: Vec<Group>,
    /// Cells that last in the blocks, with their shares and arrays.
    lasting: Vec<(Cell, Share, LastingRoom)>,
    /// Values that the block reads that computed them.
    read_here: BTreeSet<ValueId>,
    /// Values that are read, with the axes at the own place.
    pub reads: Vec<(ValueId, Vec<usize>)>,
    /// Arrays of a block.
    kept: BTreeMap<ValueId, String>,
    /// Names of the memory of a value; the first is its own.
    memory: BTreeMap<ValueId, Vec<String>>,
    parameters: Vec<(Parameter, String)>,
    /// Lines before the steps, at the head of a step, behind the last one, and behind it where
    /// the number of steps is odd.
    before: Vec<String>,
    head: Vec<String>,
    behind: Vec<String>,
    odd: Vec<String>,
    scratch: usize,
    /// Bytes of the arrays of a block.
    shared: usize,
    pub nanoseconds: f64,
}

impl<'a> PersistentMaker<'a> {
    pub fn new(
        graph: &'a Graph,
        stored: &'a [bool],
        cluster: Cluster,
        names: Names,
    ) -> PersistentMaker<'a> {
        PersistentMaker {
            graph,
            stored,
            cluster,
            names,
            shares: BTreeMap::new(),
            groups: Vec::new(),
            lasting: Vec::new(),
            read_here: BTreeSet::new(),
            reads: Vec::new(),
            kept: BTreeMap::new(),
            memory: BTreeMap::new(),
            parameters: Vec::new(),
            before: Vec::new(),
            head: Vec::new(),
            behind: Vec::new(),
            odd: Vec::new(),
            scratch: 0,
            shared: 0,
            nanoseconds: 0.0,
        }
    }

    fn fresh(&mut self, wanted: &str) -> String {
        fresh(self.graph, &mut self.names.all, wanted)
    }

    fn kind(&self, v: ValueId) -> &'static str {
        Dialect::Cuda.stored(self.graph.values[v].dtype)
    }

    /// Values in the order in which they are computed.
    fn order(&self) -> Vec<ValueId> {
        self.groups.iter().flat_map(|g| g.task.members.iter().map(|m| m.0)).collect()
    }

    /// Elements of the share of a value.
    fn count(&self, v: ValueId) -> usize {
        Task::new(self.graph, v, self.shares[&v], self.cluster).count
    }

    fn is_computed(&self, v: ValueId) -> bool {
        self.shares.contains_key(&v)
    }

    /// Whether blocks read a value that others computed.
    fn is_remote(&self, v: ValueId) -> bool {
        let share = self.shares[&v];
        self.reads.iter().any(|(x, axes)| *x == v && !is_own(share, axes))
    }

    /// Gives cells that last their arrays.
    pub fn last(&mut self, lasting: &[(ValueId, Share)]) {
        for cell in lasting::cells(self.graph) {
            let Some(&(_, share)) = lasting.iter().find(|l| l.0 == cell.copy) else { continue };
            let task = Task::new(self.graph, cell.copy, share, self.cluster);
            let bytes = task.count * self.graph.values[cell.copy].dtype.size();
            let room = LastingRoom { at: self.shared, bytes: bytes.next_multiple_of(16) };
            self.shared += room.bytes * if cell.write.is_some() { 2 } else { 1 };
            let kind = self.kind(cell.copy);
            let own = self.fresh(&format!("own_{}", self.graph.values[cell.read].name));
            let new = self.fresh(&format!("{own}_new"));
            let lines = lasting::named(&cell, room, kind, [&own, &new], &self.names.step);
            self.head.extend(lines);
            self.kept.insert(cell.copy, own);
            if let Some(write) = cell.write {
                self.kept.insert(write, new);
            }
            self.lasting.push((cell, share, room));
        }
    }

    /// Lines that fill the arrays of these cells, and those that write them back.
    fn carry(&mut self) {
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        let writer = self.writer();
        for (cell, share, room) in &self.lasting {
            let array = (self.kind(cell.copy), self.kept[&cell.copy].as_str());
            before.extend(writer.filled(cell, *share, *room, array));
            if cell.write.is_some() {
                behind.extend(writer.emptied(cell, *share, *room, array));
            }
        }
        if !before.is_empty() {
            before.push("    __syncthreads();".into());
        }
        self.before.extend(before);
        self.behind.extend(behind);
    }

    /// Whether the cluster waits behind a step: the next one would write what other blocks still
    /// read, or reads what they wrote.
    fn ends_apart(&self) -> bool {
        let last = self.groups.last().map_or(0, |g| g.level.0);
        let first: BTreeSet<ValueId> = self.groups.iter().filter(|g| g.level.0 == 0).flat_map(members).collect();
        let read = |(v, axes): (&ValueId, &Vec<usize>)| {
            first.contains(v) && !is_own(self.shares[v], axes)
        };
        let late = self.groups.iter().filter(|g| g.level.0 == last);
        let lasts = |cell: usize| self.lasting.iter().any(|(l, ..)| l.number == cell);
        let mut written = self.graph.states.iter().enumerate().filter(|(_, s)| s.1.is_some());
        late.flat_map(|g| &g.reads).any(read) || written.any(|(cell, _)| !lasts(cell))
    }

    /// Room in the memory of a block: first for values that each block has as a whole. None where
    /// it is not enough for these.
    pub fn keep(&mut self) -> Option<()> {
        let read = |v: ValueId| self.reads.iter().filter(move |r| r.0 == v);
        let here = |v: &ValueId| {
            let share = self.shares[v];
            read(*v).any(|(_, axes)| is_own(share, axes))
        };
        self.read_here = self.shares.keys().copied().filter(here).collect();
        let mut wanted = self.order();
        wanted.retain(|v| self.read_here.contains(v) && !self.kept.contains_key(v));
        wanted.sort_by_key(|v| self.shares[v] != Share::Whole);
        let mut left = KEPT.checked_sub(self.shared)?;
        for v in wanted {
            let bytes = self.count(v) * self.graph.values[v].dtype.size();
            let bytes = bytes.next_multiple_of(16);
            if bytes <= left {
                left -= bytes;
                let (name, kind) = (&self.graph.values[v].name, self.kind(v));
                let name = self.fresh(&format!("own_{name}"));
                let at = self.shared;
                self.before.push(format!("    {kind}* {name} = ({kind}*)(arena + {at});"));
                self.shared += bytes;
                self.kept.insert(v, name);
            } else if self.shares[&v] == Share::Whole {
                return None;
            }
        }
        Some(())
    }

    /// Memory for all values that leave their blocks, and the parameters for it.
    pub fn target(&mut self) {
        self.states();
        self.results();
        for v in self.order() {
            let leaves =
                self.is_remote(v) || (self.read_here.contains(&v) && !self.kept.contains_key(&v));
            if leaves && !self.memory.contains_key(&v) {
                let (value, kind) = (&self.graph.values[v], self.kind(v));
                let (name, at) = (value.name.clone(), self.scratch);
                self.before.push(format!("    {kind}* {name} = ({kind}*)(scratch + {at});"));
                let bytes = value.numel() * value.dtype.size();
                self.scratch += bytes.next_multiple_of(128);
                self.memory.insert(v, vec![name]);
            }
        }
        self.parameters.push((Parameter::Scratch, "unsigned char* scratch".into()));
        let Names { seed, run, steps, .. } = &self.names;
        let own = [
            (Parameter::Seed, format!("const unsigned long long {seed}")),
            (Parameter::Run, format!("const unsigned long long {run}")),
            (Parameter::Steps, format!("const int {steps}")),
        ];
        self.parameters.extend(own);
        self.parameters.push((Parameter::Times, "long long* times".into()));
    }

    /// The name of one more memory of a value.
    fn one_more(&mut self, v: ValueId) -> String {
        let name = self.graph.values[v].name.clone();
        let name = match self.memory.contains_key(&v) {
            true => self.fresh(&format!("{name}_too")),
            false => name,
        };
        self.memory.entry(v).or_default().push(name.clone());
        name
    }

    /// Cells: new values are written to the other of two memories, by turns.
    fn states(&mut self) {
        for (cell, &(read, write)) in self.graph.states.iter().enumerate() {
            let (name, kind) = (self.graph.values[read].name.clone(), self.kind(read));
            if self.lasting.iter().any(|(l, ..)| l.number == cell && l.write.is_some()) {
                let text = format!("{kind}* __restrict__ {name}");
                self.parameters.push((Parameter::State(cell), text));
                continue;
            }
            let Some(write) = write else {
                let text = format!("const {kind}* __restrict__ {name}");
                self.parameters.push((Parameter::State(cell), text));
                continue;
            };
            let [even, odd] = ["even", "odd"].map(|w| self.fresh(&format!("{name}_{w}")));
            self.parameters.push((Parameter::State(cell), format!("{kind}* {even}")));
            self.parameters.push((Parameter::Other(cell), format!("{kind}* {odd}")));
            let step = self.names.step.clone();
            self.head.push(format!("{kind}* {name} = {step} % 2 == 0 ? {even} : {odd};"));
            if !self.is_computed(write) {
                continue;
            }
            let new = self.one_more(write);
            self.head.push(format!("{kind}* {new} = {step} % 2 == 0 ? {odd} : {even};"));
            let (n, all) =
                (self.graph.values[read].numel(), self.cluster.blocks * self.cluster.threads);
            let threads = self.cluster.threads;
            let (block, thread) = (&self.names.block, &self.names.thread);
            self.odd.push("#pragma unroll 1".into());
            self.odd.push(format!(
                "for (int i = {block} * {threads} + {thread}; i < {n}; i += {all}) {{ {even}[i] = {odd}[i]; }}"
            ));
        }
    }

    fn results(&mut self) {
        for (i, &v) in self.graph.results.iter().enumerate() {
            let (kind, n) = (self.kind(v), self.graph.values[v].numel());
            let wanted = format!("{}_all", self.graph.values[v].name);
            let all = self.fresh(&wanted);
            self.parameters.push((Parameter::Result(i), format!("{kind}* {all}")));
            if self.is_computed(v) {
                let name = self.one_more(v);
                let step = &self.names.step;
                self.head.push(format!("{kind}* {name} = {all} + (long long){step} * {n};"));
            }
        }
    }

    /// Parameters for what is given.
    fn given(&mut self, used: &BTreeSet<ValueId>) {
        for &v in used {
            let value = &self.graph.values[v];
            let (name, kind) = (value.name.clone(), self.kind(v));
            match &value.step {
                Step::Argument(i) => {
                    let [all, stride] =
                        ["all", "stride"].map(|w| self.fresh(&format!("{name}_{w}")));
                    let text = format!("const {kind}* __restrict__ {all}");
                    self.parameters.push((Parameter::Argument(*i), text));
                    self.parameters.push((Parameter::Stride(*i), format!("const int {stride}")));
                    let step = &self.names.step;
                    self.head.push(format!(
                        "const {kind}* {name} = {all} + (long long){step} * {stride};"
                    ));
                }
                Step::Constant(bytes) => {
                    let text = format!("const {kind}* __restrict__ {name}");
                    self.parameters.push((Parameter::Constant(bytes.clone()), text));
                }
                _ => {}
            }
        }
    }

    fn writer(&self) -> Writer<'_> {
        let places = Places::new(&self.shares, &self.kept, &self.names, self.cluster);
        Writer { graph: self.graph, stored: self.stored, names: &self.names, places }
    }

    /// The pieces between two barriers, one set after the other.
    fn pieces(&self) -> Vec<Stage> {
        let writer = self.writer();
        let targets = Targets { memory: self.memory.clone(), kept: self.kept.clone() };
        let stages = self.groups.chunk_by(|a, b| a.level == b.level);
        let stage = |groups: &[Group]| {
            let mut after = 0;
            let piece = |group: &Group| {
                let piece = writer.piece(&group.task, &targets, after);
                after += group.task.width();
                (group.task.members.iter().map(|m| m.0).collect(), piece)
            };
            (groups[0].level, groups.iter().map(piece).collect())
        };
        stages.map(stage).collect()
    }

    pub fn kernel(mut self) -> PersistentKernel {
        self.carry();
        let stages = self.pieces();
        let all = || stages.iter().flat_map(|s| &s.1);
        let used: BTreeSet<ValueId> = all().flat_map(|(_, p)| p.reads.keys().copied()).collect();
        self.given(&used);
        if all().any(|(_, p)| p.draws) {
            let Names { seed, run, step, .. } = &self.names;
            let number = format!("({run} + (unsigned long long){step})");
            let words =
                [seed, &number].map(|of| format!("(unsigned int){of}, (unsigned int)({of} >> 32)"));
            self.head.push(format!("const unsigned int draws[4] = {{{}}};", words.join(", ")));
        }
        let name = format!("persistent_{}", self.cluster.blocks);
        let text = self.text(&name, &stages);
        let told = |(_, pieces): &(Level, Vec<(Vec<ValueId>, Piece)>)| {
            let values = pieces.iter().flat_map(|(members, _)| members);
            let names = values.map(|v| self.graph.values[*v].name.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        PersistentKernel {
            text,
            name,
            blocks: self.cluster.blocks,
            threads: self.cluster.threads,
            parameters: self.parameters.iter().map(|p| p.0.clone()).collect(),
            scratch: self.scratch,
            shared: self.shared,
            stages: stages.iter().map(told).collect(),
            nanoseconds: self.nanoseconds,
        }
    }

    fn text(&self, name: &str, stages: &[Stage]) -> String {
        let Names { block, thread, step, steps, .. } = &self.names;
        let mut out = String::from("#if defined(CHAINRULE_SHIM) || __CUDA_ARCH__ >= 900\n");
        let params: Vec<&str> = self.parameters.iter().map(|p| p.1.as_str()).collect();
        let _ = writeln!(
            out,
            "extern \"C\" __global__ void __cluster_dims__({}, 1, 1) __launch_bounds__({}, 1) \
             {name}(\n    {}\n) {{",
            self.cluster.blocks,
            self.cluster.threads,
            params.join(",\n    ")
        );
        if self.shared > 0 {
            out.push_str("    extern __shared__ __align__(16) unsigned char arena[];\n");
        }
        let _ = writeln!(out, "    const int {block} = (int)blockIdx.x;");
        let _ = writeln!(out, "    const int {thread} = (int)threadIdx.x;");
        let _ = writeln!(out, "    if ({steps} == 0) {{ return; }}");
        lines(&mut out, 0, &self.before);
        let _ = writeln!(out, "    for (int {step} = 0; {step} < {steps}; {step}++) {{");
        lines(&mut out, 8, &self.head);
        let mark = |n: usize| {
            format!(
                "        if (times != nullptr && {block} == 0 && {thread} == 0) {{ times[{n}] = \
                 clock64(); }}\n"
            )
        };
        let mut last = None;
        for (i, (level, pieces)) in stages.iter().enumerate() {
            match last {
                Some(old) if old == level.0 => out.push_str("        __syncthreads();\n"),
                Some(_) => out.push_str("        cluster_barrier();\n"),
                None => {}
            }
            last = Some(level.0);
            out.push_str(&mark(i));
            for (members, piece) in pieces {
                for v in members {
                    let _ = writeln!(out, "        // {}", self.note(*v));
                }
                lines(&mut out, 0, &piece.lines);
            }
        }
        let barrier = if self.ends_apart() { "cluster_barrier" } else { "__syncthreads" };
        let _ = writeln!(out, "        {barrier}();");
        out.push_str(&mark(stages.len()));
        out.push_str("    }\n");
        lines(&mut out, 0, &self.behind);
        if !self.odd.is_empty() {
            let _ = writeln!(out, "    if ({steps} % 2 == 1) {{");
            lines(&mut out, 8, &self.odd);
            out.push_str("    }\n");
        }
        out.push_str("}\n#endif\n");
        out
    }

    /// A value with its share.
    fn note(&self, v: ValueId) -> String {
        let value = &self.graph.values[v];
        let how = match self.shares[&v] {
            Share::Whole => "whole in each block".to_string(),
            Share::Split(axis) => format!("split along axis {axis}"),
        };
        format!("{}  {} {:?}, {how}", value.name, value.dtype.name(), value.dims)
    }
}

fn members(group: &Group) -> Vec<ValueId> {
    group.task.members.iter().map(|m| m.0).collect()
}

fn lines(out: &mut String, depth: usize, lines: &[String]) {
    for line in lines {
        let _ = writeln!(out, "{:depth$}{line}", "");
    }
}
