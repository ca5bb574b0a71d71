//! The memory of a persistent kernel, and its parameters.

use std::collections::{BTreeMap, BTreeSet};

use super::groups::Group;
use super::lasting::{self, Cell, LastingRoom};
use super::pieces::{Names, Task, fresh};
use super::schedule::Schedule;
use super::shares::{Share, is_own};
use super::{Cluster, Parameter};
use crate::dialect::Dialect;
use crate::graph::{Graph, Step, ValueId};

/// Bytes that a block keeps of values.
const KEPT: usize = 160 << 10;

/// A kernel under construction.
pub(super) struct PersistentMaker<'a> {
    pub(super) graph: &'a Graph,
    pub(super) stored: &'a [bool],
    pub(super) cluster: Cluster,
    pub(super) names: Names,
    pub(super) shares: BTreeMap<ValueId, Share>,
    pub(super) schedule: Schedule,
    /// Cells that last in the blocks, with their shares and arrays.
    pub(super) lasting: Vec<(Cell, Share, LastingRoom)>,
    /// Values that are read by the same block that computed them.
    pub(super) read_here: BTreeSet<ValueId>,
    /// Arrays of a block.
    pub(super) kept: BTreeMap<ValueId, String>,
    /// Names of the memory of a value; the first is its own.
    pub(super) memory: BTreeMap<ValueId, Vec<String>>,
    pub(super) parameters: Vec<(Parameter, String)>,
    /// Lines before the steps, at the head of a step, behind the last one, and behind it where
    /// the number of steps is odd.
    pub(super) before: Vec<String>,
    pub(super) head: Vec<String>,
    /// Lines of the head for values that are computed a step ahead.
    pub(super) ahead: Vec<String>,
    pub(super) behind: Vec<String>,
    pub(super) odd: Vec<String>,
    pub(super) scratch: usize,
    /// Bytes of the arrays of a block.
    pub(super) shared: usize,
    pub(super) nanoseconds: f64,
}

impl<'a> PersistentMaker<'a> {
    pub fn new(
        graph: &'a Graph,
        stored: &'a [bool],
        cluster: Cluster,
        names: Names,
        schedule: Schedule,
    ) -> PersistentMaker<'a> {
        PersistentMaker {
            graph,
            stored,
            cluster,
            names,
            shares: BTreeMap::new(),
            schedule,
            lasting: Vec::new(),
            read_here: BTreeSet::new(),
            kept: BTreeMap::new(),
            memory: BTreeMap::new(),
            parameters: Vec::new(),
            before: Vec::new(),
            head: Vec::new(),
            ahead: Vec::new(),
            behind: Vec::new(),
            odd: Vec::new(),
            scratch: 0,
            shared: 0,
            nanoseconds: 0.0,
        }
    }

    pub(super) fn fresh(&mut self, wanted: &str) -> String {
        fresh(self.graph, &mut self.names.all, wanted)
    }

    fn kind(&self, v: ValueId) -> &'static str {
        Dialect::Cuda.stored(self.graph.values[v].dtype)
    }

    /// Values in the order in which they are computed.
    fn order(&self) -> Vec<ValueId> {
        self.schedule.groups().flat_map(Group::members).collect()
    }

    /// Elements of the share of a value.
    fn count(&self, v: ValueId) -> usize {
        Task::new(self.graph, v, self.shares[&v], self.cluster).count
    }

    fn is_computed(&self, v: ValueId) -> bool {
        self.shares.contains_key(&v)
    }

    /// For each read of a value, the axes read at the thread's own position.
    fn reads(&self, v: ValueId) -> impl Iterator<Item = &Vec<usize>> {
        self.schedule.groups().filter_map(move |g| g.reads.get(&v))
    }

    /// Whether blocks read a value that others computed.
    fn is_remote(&self, v: ValueId) -> bool {
        let share = self.shares[&v];
        self.reads(v).any(|axes| !is_own(share, axes))
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

    /// Gives arrays to values that are computed a step ahead: for this step and the next,
    /// alternating.
    pub fn run_ahead(&mut self) {
        for v in self.schedule.ahead().collect::<Vec<_>>() {
            let bytes = self.count(v) * self.graph.values[v].dtype.size();
            let room = LastingRoom { at: self.shared, bytes: bytes.next_multiple_of(16) };
            self.shared += 2 * room.bytes;
            let (name, kind) = (&self.graph.values[v].name, self.kind(v));
            let name = self.fresh(&format!("own_{name}"));
            let place = room.place(&self.names.step, false);
            self.ahead.push(format!("{kind}* {name} = ({kind}*)({place});"));
            self.kept.insert(v, name);
        }
        self.head.extend(self.ahead.clone());
    }

    /// Lines that fill the arrays of these cells, and those that write them back.
    pub(super) fn carry(&mut self) {
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

    /// Whether the cluster waits after a step: the next one would overwrite values that other
    /// blocks still read, or read values that they wrote.
    pub(super) fn ends_apart(&self) -> bool {
        let lasts = |cell: usize| self.lasting.iter().any(|(l, ..)| l.number == cell);
        let mut written = self.graph.states.iter().enumerate().filter(|(_, s)| s.1.is_some());
        self.schedule.ends_apart || written.any(|(cell, _)| !lasts(cell))
    }

    /// Allocates the memory of a block, first for values that each block holds as a whole. None if
    /// it does not suffice for these.
    pub fn keep(&mut self) -> Option<()> {
        let here = |v: &ValueId| {
            let share = self.shares[v];
            self.reads(*v).any(|axes| is_own(share, axes))
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

    /// The name of another memory of a value.
    fn one_more(&mut self, v: ValueId) -> String {
        let name = self.graph.values[v].name.clone();
        let name = match self.memory.contains_key(&v) {
            true => self.fresh(&format!("{name}_too")),
            false => name,
        };
        self.memory.entry(v).or_default().push(name.clone());
        name
    }

    /// Cells: new values are written to the other of two memories, alternating.
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

    /// Parameters for what is given to values, and to those of a step ahead.
    pub(super) fn given(&mut self, used: &BTreeSet<ValueId>, early: &BTreeSet<ValueId>) {
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
                    let line =
                        format!("const {kind}* {name} = {all} + (long long){step} * {stride};");
                    if early.contains(&v) {
                        self.ahead.push(line.clone());
                    }
                    self.head.push(line);
                }
                Step::Constant(bytes) => {
                    let text = format!("const {kind}* __restrict__ {name}");
                    self.parameters.push((Parameter::Constant(bytes.clone()), text));
                }
                _ => {}
            }
        }
    }
}
