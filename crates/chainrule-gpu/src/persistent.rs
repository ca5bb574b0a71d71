//! A whole step as one kernel that stays on the device for many steps: a persistent kernel.
//!
//! It is one cluster of blocks. Each value is split along one of its axes over the blocks, or
//! computed as a whole by each of them; a block keeps its share in its own memory, and the cluster
//! waits only where a block reads what another one computed. The axes are chosen so that this is
//! rare.

mod choice;
mod groups;
mod lasting;
mod maker;
mod parts;
mod pieces;
mod schedule;
mod shares;
mod text;

use std::collections::BTreeMap;

use chainrule_core::error::Result;
use chainrule_program::Program;

use self::choice::Choice;
use self::lasting::cells;
use self::maker::PersistentMaker;
use self::pieces::{Names, Piece, Targets, Task, Writer};
use self::schedule::Schedule;
pub(crate) use self::shares::Places;
use self::shares::{Share, TimedShare, shares};
use crate::dialect::Dialect;
use crate::graph::{Graph, Step, Value, ValueId};
use crate::module::{DeviceLaunch, KernelModule, Source};
use crate::{plan, read};

/// Blocks of a cluster, if the device has room for that many.
pub(crate) const BLOCKS: usize = 16;

/// Threads of a block.
const THREADS: usize = 512;

/// Approximate nanoseconds of one launch in a graph.
const LAUNCH: f64 = 1200.0;

/// Number of launches below which a persistent kernel is not worth its compilation.
const FEWEST: usize = 6;

/// Total number of blocks from which on no persistent kernel is considered.
const LARGE: usize = 4096;

/// Number of values from which on no such kernel is considered.
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
    /// The argument with this number, for all steps one after the other.
    Argument(usize),
    /// Distance in elements from an argument's value for one step to that for the next: 0 if all
    /// are the same.
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
    /// Memory for the clock at each barrier of the last step, 64 bits each, or a null pointer.
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

impl Cluster {
    /// Extra threads of a block, for small work that nothing waits for.
    fn spare(self) -> usize {
        (self.threads / 4).next_multiple_of(32)
    }
}

impl PersistentKernel {
    /// The kernel of a program, as a cluster of this many blocks and threads, with a quarter more
    /// threads for small work that nothing waits for.
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

    /// None, too, if the work takes more nanoseconds than this.
    fn within(program: &Program, cluster: Cluster, most: f64) -> Result<Option<PersistentKernel>> {
        let mut graph = read::read(program, None, usize::MAX)?;
        apart(&mut graph);
        lasting::copied(&mut graph);
        let Some(mut best) = Attempt::new(graph, cluster, most) else { return Ok(None) };
        for v in parts::candidates(&best.graph, &best.stored, cluster.blocks) {
            let graph = parts::in_parts(&best.graph, v, cluster.blocks);
            let rows = parts::scattered(&graph);
            let deeper = rows.map(|v| parts::scattered_in_parts(&graph, v, cluster.blocks));
            for graph in [Some(graph), deeper].into_iter().flatten() {
                let next = Attempt::new(graph, cluster, most);
                best = next.filter(|n| n.nanoseconds < best.nanoseconds).unwrap_or(best);
            }
        }
        Ok(best.made(cluster))
    }

    /// The persistent kernel of a program in place of a module's kernels, if its steps are so small
    /// that this is faster.
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

/// A graph with a share for each value that is computed.
struct Attempt {
    graph: Graph,
    stored: Vec<bool>,
    names: Names,
    /// Values in order, each with its share and the number of cluster barriers before it; without
    /// cells that last.
    chosen: Vec<(ValueId, Share, usize)>,
    /// Cells that last in the blocks.
    lasting: Vec<(ValueId, Share)>,
    nanoseconds: f64,
}

impl Attempt {
    /// None where values are too large, of kinds that are not there, or take more nanoseconds.
    fn new(graph: Graph, cluster: Cluster, most: f64) -> Option<Attempt> {
        let plain = plan::stored(&graph, Dialect::Cuda);
        let mut stored = plain.clone();
        cells(&graph).iter().for_each(|cell| stored[cell.copy] = true);
        let (chosen, lasting, nanoseconds) = chosen(&graph, &stored, cluster, most)?;
        let lasts = |v: ValueId| lasting.iter().any(|l| l.0 == v);
        let is_loaded = |v: ValueId| stored[v] && !plain[v] && !lasts(v);
        let names = Names::new(&graph);
        if !cells(&graph).iter().any(|cell| is_loaded(cell.copy)) {
            return Some(Attempt { graph, stored, names, chosen, lasting, nanoseconds });
        }
        // Cells that do not last, and that no product reads, are read in place.
        let stored: Vec<bool> = (0..stored.len()).map(|v| stored[v] && !is_loaded(v)).collect();
        let (chosen, lasting, nanoseconds) = self::chosen(&graph, &stored, cluster, most)?;
        Some(Attempt { graph, stored, names, chosen, lasting, nanoseconds })
    }

    fn made(self, cluster: Cluster) -> Option<PersistentKernel> {
        let Attempt { graph, stored, names, chosen, lasting, nanoseconds } = self;
        let schedule = {
            let (none, kept) = (BTreeMap::new(), BTreeMap::new());
            let places = Places::new(&none, &kept, &names, cluster);
            Schedule::new(
                &Writer { graph: &graph, stored: &stored, names: &names, places },
                &chosen,
            )
        };
        let mut maker = PersistentMaker::new(&graph, &stored, cluster, names, schedule);
        maker.nanoseconds = nanoseconds;
        maker.shares = chosen.iter().map(|c| (c.0, c.1)).chain(lasting.iter().copied()).collect();
        maker.last(&lasting);
        maker.run_ahead();
        maker.keep()?;
        maker.target();
        Some(maker.kernel())
    }
}

/// The values in order with their shares and barriers, cells that last, and an estimate of the
/// time.
type Chosen = (Vec<(ValueId, Share, usize)>, Vec<(ValueId, Share)>, f64);

fn chosen(graph: &Graph, stored: &[bool], cluster: Cluster, most: f64) -> Option<Chosen> {
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
    let places = Places::new(&none, &kept, &names, cluster);
    let writer = Writer { graph, stored, names: &names, places };
    let way = |v: ValueId, share: Share| {
        let task = Task::new(graph, v, share, cluster);
        let Piece { reads, lines, .. } = writer.piece(&task, &Targets::default(), 0);
        let (time, terms) = task.time(cluster.threads, &lines);
        TimedShare { share, reads, time, terms }
    };
    let ways = |&v: &ValueId| (v, shares(graph, v).into_iter().map(|s| way(v, s)).collect());
    let values = all.iter().map(ways).collect();
    let choice = Choice::new(graph, values, &cells(graph), cluster.blocks);
    if choice.least() > most {
        return None;
    }
    let best = choice.best();
    let lasts = choice.lasting(&best);
    let levels = choice.levels(&best, &lasts);
    let (mut chosen, mut lasting) = (Vec::new(), Vec::new());
    for (i, (v, ways)) in choice.values.iter().enumerate() {
        let share = ways[best[i]].share;
        match lasts[i] {
            true => lasting.push((*v, share)),
            false => chosen.push((*v, share, levels[i].0)),
        }
    }
    Some((chosen, lasting, choice.time(&best)))
}
