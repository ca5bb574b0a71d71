//! A whole step as one kernel that stays on the device for many steps: a persistent kernel.
//!
//! It is one cluster of blocks. Each value is split along one of its axes over the blocks, or is
//! computed as a whole by each; a block keeps its share in its own memory, and the cluster waits
//! only where a block reads what another one computed. The axes are chosen so that this is seldom.

mod copies;
mod groups;
mod pieces;
mod shares;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use chainrule_core::error::Result;
use chainrule_program::Program;

use self::groups::{Group, grouped};
use self::pieces::{Names, Piece, Targets, Task, Writer, fresh};
pub(crate) use self::shares::Places;
use self::shares::{Choice, Level, Share, TimedShare, is_own, shares};
use crate::dialect::Dialect;
use crate::graph::{Graph, Step, Value, ValueId};
use crate::module::{DeviceLaunch, KernelModule, Source};
use crate::{plan, read};

/// Blocks of a cluster, where the device has room for so many.
pub(crate) const BLOCKS: usize = 16;

/// Threads of a block.
const THREADS: usize = 512;

/// Nanoseconds of a launch in a graph, about.
const LAUNCH: f64 = 1200.0;

/// Launches below which a persistent kernel is not worth its compilation.
const FEWEST: usize = 6;

/// Blocks of all launches from which nobody looks for a persistent kernel.
const LARGE: usize = 4096;

/// Bytes that a block keeps of values.
const KEPT: usize = 160 << 10;

/// Values above which nobody looks for such a kernel.
const VALUES: usize = 160;

/// Blocks, and threads of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cluster {
    pub blocks: usize,
    pub threads: usize,
}

/// A parameter of a persistent kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The argument of this number, for all steps one after the other.
    Argument(usize),
    /// Elements from an argument's value for one step to that for the next: 0 where all are the
    /// same.
    Stride(usize),
    /// The cell of this number.
    State(usize),
    /// Memory of the same size as that cell: values of odd steps.
    Other(usize),
    /// The same bytes in each run, little-endian.
    Constant(Vec<u8>),
    /// Memory for values that several blocks read.
    Scratch,
    /// The result of this number, for all steps one after the other.
    Result(usize),
    /// The seed of random numbers: 64 bits.
    Seed,
    /// The number of the first run: 64 bits.
    Run,
    /// The number of steps: 32 bits.
    Steps,
    /// Room for the clock at each barrier of the last step, 64 bits each, or a null pointer.
    Times,
}

/// A step as one kernel, which is one cluster of blocks and computes many steps in a launch.
#[derive(Clone, Debug)]
pub struct PersistentKernel {
    /// The name of the kernel.
    pub name: String,
    /// The text, in CUDA C.
    pub text: String,
    /// Blocks, all of one cluster.
    pub blocks: usize,
    /// Threads of a block.
    pub threads: usize,
    /// The parameters in order.
    pub parameters: Vec<Parameter>,
    /// Bytes of [`Parameter::Scratch`].
    pub scratch: usize,
    /// Bytes of the memory of a block.
    pub shared: usize,
    /// The values between two barriers, in order.
    pub stages: Vec<String>,
    /// An estimate of the nanoseconds of a step.
    pub nanoseconds: f64,
}

impl PersistentKernel {
    /// The kernel of a program, as a cluster of so many blocks of so many threads.
    ///
    /// None where values are too large, or of kinds that it does not have. Errors for an op or a
    /// dtype that has no kernel.
    pub fn new(
        program: &Program,
        blocks: usize,
        threads: usize,
    ) -> Result<Option<PersistentKernel>> {
        PersistentKernel::within(program, Cluster { blocks, threads }, f64::INFINITY)
    }

    /// None, too, where the work of the values takes more nanoseconds than that.
    fn within(program: &Program, cluster: Cluster, most: f64) -> Result<Option<PersistentKernel>> {
        let mut graph = read::read(program, None, usize::MAX)?;
        apart(&mut graph);
        copies::copied(&mut graph);
        let stored = plan::stored(&graph, Dialect::Cuda);
        Ok(made(&graph, &stored, cluster, most))
    }

    /// The kernel of a program in place of those of a module, where its steps are so small that it
    /// is quicker than a kernel after the other.
    pub(crate) fn in_place_of(
        module: &KernelModule,
        program: &Program,
        blocks: usize,
    ) -> Result<Option<PersistentKernel>> {
        let kernels: Option<Vec<_>> = module.launches.iter().map(DeviceLaunch::kernel).collect();
        let Some(kernels) = kernels.filter(|_| !module.attends) else { return Ok(None) };
        if kernels.iter().map(|k| k.blocks).sum::<usize>() > LARGE {
            return Ok(None);
        }
        let over = |w: usize| matches!(module.buffers[w].source, Source::Over(_));
        let copies = module.states.iter().filter(|s| s.1.is_some_and(|w| !over(w))).count();
        let apart = LAUNCH * (kernels.len() + copies) as f64;
        if kernels.len() + copies < FEWEST {
            return Ok(None);
        }
        let cluster = Cluster { blocks, threads: THREADS };
        let kernel = PersistentKernel::within(program, cluster, apart)?;
        Ok(kernel.filter(|k| k.nanoseconds < apart))
    }

    /// All that a compiler needs.
    pub fn source(&self) -> String {
        [crate::CUDA_PRELUDE, crate::CUDA_PERSISTENT, "\n", &self.text].concat()
    }
}

/// Gives each result and each new value of a cell a value that the kernel computes.
fn apart(graph: &mut Graph) {
    let own = |graph: &mut Graph, v: ValueId| {
        let of = &graph.values[v];
        if !of.step.is_given() {
            return v;
        }
        let (dtype, dims, line) = (of.dtype, of.dims.clone(), of.line.clone());
        let wanted = format!("{}_out", of.name);
        let mut name = wanted.clone();
        let mut n = 1;
        while !graph.names.insert(name.clone()) {
            n += 1;
            name = format!("{wanted}_{n}");
        }
        let step = Step::Map("Identity", vec![v]);
        graph.values.push(Value { name, dtype, dims, step, line });
        graph.values.len() - 1
    };
    for i in 0..graph.results.len() {
        graph.results[i] = own(graph, graph.results[i]);
    }
    for i in 0..graph.states.len() {
        if let (_, Some(write)) = graph.states[i] {
            graph.states[i].1 = Some(own(graph, write));
        }
    }
}

fn made(graph: &Graph, stored: &[bool], cluster: Cluster, most: f64) -> Option<PersistentKernel> {
    let computed = |v: &ValueId| {
        let value = &graph.values[*v];
        stored[*v] && !value.step.is_given() && value.numel() > 0
    };
    let all: Vec<ValueId> = (0..graph.values.len()).filter(computed).collect();
    let strange =
        |v: &ValueId| matches!(graph.values[*v].step, Step::Attention(_) | Step::Beside(_));
    if all.is_empty() || all.len() > VALUES || all.iter().any(strange) {
        return None;
    }
    let names = Names::new(graph);
    let (none, kept) = (BTreeMap::new(), BTreeMap::new());
    let places = Places { shares: &none, kept: &kept, own: &names.own, mine: &names.mine, cluster };
    let writer = Writer { graph, stored, names: &names, places };
    let way = |v: ValueId, share: Share| {
        let task = Task::new(graph, v, share, cluster);
        let Piece { reads, lines, .. } = writer.piece(&task, &Targets::default(), 0);
        let (time, terms) = task.time(cluster.threads, &lines);
        TimedShare { share, reads, time, terms }
    };
    let ways = |&v: &ValueId| (v, shares(graph, v).into_iter().map(|s| way(v, s)).collect());
    let choice = Choice { graph, values: all.iter().map(ways).collect() };
    if choice.least() > most {
        return None;
    }
    let best = choice.best();
    let levels = choice.levels(&best);
    let chosen = choice.values.iter().zip(best.iter().zip(&levels));
    let chosen: Vec<(ValueId, Share, usize)> =
        chosen.map(|((v, ways), (&way, level))| (*v, ways[way].share, level.0)).collect();
    let groups = grouped(&writer, &chosen);
    let mut maker = PersistentMaker::new(graph, stored, cluster, names);
    maker.nanoseconds = choice.time(&best);
    maker.shares = chosen.iter().map(|c| (c.0, c.1)).collect();
    maker.reads = groups.iter().flat_map(|g| g.reads.clone()).collect();
    maker.groups = groups;
    maker.keep()?;
    maker.target();
    Some(maker.kernel())
}

/// The work between two barriers: sets of values with the text that computes them.
type Stage = (Level, Vec<(Vec<ValueId>, Piece)>);

/// A kernel in the making.
struct PersistentMaker<'a> {
    graph: &'a Graph,
    stored: &'a [bool],
    cluster: Cluster,
    names: Names,
    shares: BTreeMap<ValueId, Share>,
    /// Tasks by their levels.
    groups: Vec<Group>,
    /// Values that the block reads that computed them.
    read_here: BTreeSet<ValueId>,
    /// Values that are read, with the axes at the own place.
    reads: Vec<(ValueId, Vec<usize>)>,
    /// Arrays of a block.
    kept: BTreeMap<ValueId, String>,
    /// Names of the memory of a value; the first is its own.
    memory: BTreeMap<ValueId, Vec<String>>,
    parameters: Vec<(Parameter, String)>,
    /// Lines before the steps, at the head of a step, and behind the last one.
    before: Vec<String>,
    head: Vec<String>,
    behind: Vec<String>,
    scratch: usize,
    /// Bytes of the arrays of a block.
    shared: usize,
    nanoseconds: f64,
}

impl<'a> PersistentMaker<'a> {
    fn new(
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
            read_here: BTreeSet::new(),
            reads: Vec::new(),
            kept: BTreeMap::new(),
            memory: BTreeMap::new(),
            parameters: Vec::new(),
            before: Vec::new(),
            head: Vec::new(),
            behind: Vec::new(),
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

    /// Room in the memory of a block: first for values that each block has as a whole. None where
    /// it is not enough for these.
    fn keep(&mut self) -> Option<()> {
        let read = |v: ValueId| self.reads.iter().filter(move |r| r.0 == v);
        let here = |v: &ValueId| {
            let share = self.shares[v];
            read(*v).any(|(_, axes)| is_own(share, axes))
        };
        self.read_here = self.shares.keys().copied().filter(here).collect();
        let mut wanted = self.order();
        wanted.retain(|v| self.read_here.contains(v));
        wanted.sort_by_key(|v| self.shares[v] != Share::Whole);
        let mut left = KEPT;
        for v in wanted {
            let bytes = self.count(v) * self.graph.values[v].dtype.size();
            let bytes = bytes.next_multiple_of(16);
            if bytes <= left {
                left -= bytes;
                let (name, kind) = (&self.graph.values[v].name, self.kind(v));
                let name = self.fresh(&format!("own_{name}"));
                let at = self.shared;
                self.before.push(format!("{kind}* {name} = ({kind}*)(arena + {at});"));
                self.shared += bytes;
                self.kept.insert(v, name);
            } else if self.shares[&v] == Share::Whole {
                return None;
            }
        }
        Some(())
    }

    /// Memory for all values that leave their blocks, and the parameters for it.
    fn target(&mut self) {
        self.states();
        self.results();
        for v in self.order() {
            let leaves =
                self.is_remote(v) || (self.read_here.contains(&v) && !self.kept.contains_key(&v));
            if leaves && !self.memory.contains_key(&v) {
                let (value, kind) = (&self.graph.values[v], self.kind(v));
                let (name, at) = (value.name.clone(), self.scratch);
                self.before.push(format!("{kind}* {name} = ({kind}*)(scratch + {at});"));
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
            self.behind.push("#pragma unroll 1".into());
            self.behind.push(format!(
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

    /// The pieces between two barriers, one set after the other.
    fn pieces(&self) -> Vec<Stage> {
        let names = &self.names;
        let places = Places {
            shares: &self.shares,
            kept: &self.kept,
            own: &names.own,
            mine: &names.mine,
            cluster: self.cluster,
        };
        let (graph, stored) = (self.graph, self.stored);
        let writer = Writer { graph, stored, names, places };
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

    fn kernel(mut self) -> PersistentKernel {
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
        lines(&mut out, 4, &self.before);
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
        out.push_str("        cluster_barrier();\n");
        out.push_str(&mark(stages.len()));
        out.push_str("    }\n");
        if !self.behind.is_empty() {
            let _ = writeln!(out, "    if ({steps} % 2 == 1) {{");
            lines(&mut out, 8, &self.behind);
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

fn lines(out: &mut String, depth: usize, lines: &[String]) {
    for line in lines {
        let _ = writeln!(out, "{:depth$}{line}", "");
    }
}
