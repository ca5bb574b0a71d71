//! The order of a step's work: between barriers, while the cluster waits at one, and for the next
//! step.

use std::collections::{BTreeMap, BTreeSet};

use super::groups::{Group, grouped, widen};
use super::pieces::{Targets, Task, Writer};
use super::shares::{Level, Reads, Share, is_own};
use crate::graph::{Step, ValueId};

/// Most bytes of a block for values that are computed for the next step.
const AHEAD: usize = 16 << 10;

/// The work between two barriers of a block.
pub(crate) struct Stage {
    /// Barriers of the cluster before it in a step.
    pub phase: usize,
    pub groups: Vec<Group>,
    /// Small work that nothing in the stage waits for, done by the spare threads.
    pub beside: Vec<Group>,
    /// Values of the next step, which depend on no cell.
    pub ahead: Vec<Group>,
    /// Work for the time during which the cluster waits after the stage: no other block reads it,
    /// and the block itself only later.
    pub meanwhile: Vec<Group>,
}

impl Stage {
    pub fn all(&self) -> impl Iterator<Item = &Group> {
        let all = self.groups.iter().chain(&self.beside);
        all.chain(&self.ahead).chain(&self.meanwhile)
    }
}

/// A step's work in order.
#[derive(Default)]
pub(crate) struct Schedule {
    pub stages: Vec<Stage>,
    /// Whether the cluster waits after the step: the next one would overwrite values that other
    /// blocks still read.
    pub ends_apart: bool,
}

/// A value with its share, and the barriers of the cluster before it.
type ChosenShare = (ValueId, Share, usize);

impl Schedule {
    /// The work for these values, which come in order.
    pub fn new(writer: &Writer<'_>, chosen: &[ChosenShare]) -> Schedule {
        let reads = Readers::new(writer, chosen);
        let last = chosen.iter().map(|c| c.2).max().unwrap_or(0);
        let mut early = reads.early(writer);
        if chosen.iter().all(|c| early.contains(&c.0)) {
            early.clear();
        }
        let is_early = |c: &&ChosenShare| early.contains(&c.0);
        let found: Vec<ChosenShare> =
            chosen.iter().filter(is_early).map(|c| (c.0, c.1, 0)).collect();
        let ahead = grouped(writer, &found);
        // Each level needs a stage of its own, and each phase has one.
        let ahead: Vec<Group> = ahead.into_iter().filter(|g| g.level.1 <= last).collect();
        let taken: BTreeSet<ValueId> = ahead.iter().flat_map(Group::members).collect();
        let rest: Vec<ChosenShare> =
            chosen.iter().filter(|c| !taken.contains(&c.0)).copied().collect();
        let Parted { groups, beside, waiting } = reads.parted(grouped(writer, &rest), last);
        let ends_apart = reads.ends_apart(&groups, last);
        let mut stages: Vec<Stage> = Vec::new();
        for group in groups {
            match stages.last_mut() {
                Some(stage) if stage.groups[0].level == group.level => stage.groups.push(group),
                _ => stages.push(Stage {
                    phase: group.level.0,
                    groups: vec![group],
                    beside: Vec::new(),
                    ahead: Vec::new(),
                    meanwhile: Vec::new(),
                }),
            }
        }
        for (level, group) in beside {
            let at = stages.iter_mut().find(|s| s.groups[0].level == level);
            at.expect("a level has a stage").beside.push(group);
        }
        for (phase, group) in waiting {
            let at = stages.iter_mut().rfind(|s| s.phase == phase);
            at.expect("a phase has a stage").meanwhile.push(group);
        }
        run_ahead(&mut stages, ahead);
        let threads = writer.places.cluster.threads;
        for stage in &mut stages {
            widen(&mut stage.groups, threads);
            widen(&mut stage.beside, writer.places.cluster.spare());
            widen(&mut stage.ahead, writer.places.cluster.spare());
            widen(&mut stage.meanwhile, threads);
        }
        Schedule { stages, ends_apart }
    }

    /// All sets of values.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.stages.iter().flat_map(Stage::all)
    }

    /// Values that are computed a step ahead.
    pub fn ahead(&self) -> impl Iterator<Item = ValueId> {
        self.stages.iter().flat_map(|s| &s.ahead).flat_map(Group::members)
    }
}

/// Assigns stages to sets that are computed a step ahead, one stage for each level: where the other
/// threads have most to do, and each level after the one before.
fn run_ahead(stages: &mut [Stage], ahead: Vec<Group>) {
    let levels: BTreeSet<Level> = ahead.iter().map(|g| g.level).collect();
    let terms = |groups: &[Group]| -> usize {
        groups.iter().map(|g| g.task.count * g.task.tile * g.task.terms).sum()
    };
    // Work done while the cluster waits hides more.
    let work: Vec<(usize, usize)> =
        stages.iter().map(|s| (terms(&s.meanwhile), terms(&s.groups))).collect();
    let mut below = stages.len();
    let mut places = BTreeMap::new();
    for (left, level) in levels.iter().enumerate().rev() {
        let at = (left..below).max_by_key(|&i| work[i]).unwrap_or(left);
        places.insert(*level, at);
        below = at;
    }
    for group in ahead {
        stages[places[&group.level]].ahead.push(group);
    }
}

/// The values that each value reads.
struct Readers<'a> {
    chosen: &'a [ChosenShare],
    shares: BTreeMap<ValueId, Share>,
    reads: Vec<Reads>,
    /// Values that are read by a block which did not compute them.
    far: BTreeSet<ValueId>,
}

impl<'a> Readers<'a> {
    fn new(writer: &Writer<'_>, chosen: &'a [ChosenShare]) -> Readers<'a> {
        let shares: BTreeMap<ValueId, Share> = chosen.iter().map(|c| (c.0, c.1)).collect();
        let of = |&(v, share, _): &ChosenShare| {
            let task = Task::new(writer.graph, v, share, writer.places.cluster);
            writer.piece(&task, &Targets::default(), 0).reads
        };
        let reads: Vec<Reads> = chosen.iter().map(of).collect();
        let is_far = |(x, axes): &(&ValueId, &Vec<usize>)| {
            shares.get(x).is_some_and(|&share| !is_own(share, axes))
        };
        let far = reads.iter().flatten().filter(is_far).map(|(x, _)| *x).collect();
        Readers { chosen, shares, reads, far }
    }

    /// Values that depend on arguments, constants and draws alone, and that a block computes for
    /// itself.
    fn early(&self, writer: &Writer<'_>) -> BTreeSet<ValueId> {
        let graph = writer.graph;
        let roots: BTreeSet<ValueId> = graph.roots().collect();
        let mut out = BTreeSet::new();
        let mut left = AHEAD;
        for (&(v, share, _), reads) in self.chosen.iter().zip(&self.reads) {
            let is_known = |x: &ValueId| match graph.values[*x].step {
                Step::Argument(_) | Step::Constant(_) => true,
                _ => out.contains(x),
            };
            let count = Task::new(graph, v, share, writer.places.cluster).count;
            let bytes = 2 * (count * graph.values[v].dtype.size()).next_multiple_of(16);
            let known = reads.keys().all(is_known);
            if known && bytes <= left && !self.far.contains(&v) && !roots.contains(&v) {
                left -= bytes;
                out.insert(v);
            }
        }
        out
    }

    /// The sets by when they are computed.
    fn parted(&self, groups: Vec<Group>, last: usize) -> Parted {
        let mut moves = Moves::new(self, &groups, last);
        for i in 0..groups.len() {
            moves.of[i] = moves.find(i);
        }
        let moved = moves.of;
        let mut out = Parted::default();
        for (group, moved) in groups.into_iter().zip(moved) {
            match moved {
                Move::Stays => out.groups.push(group),
                Move::Beside(level) => out.beside.push((level, group)),
                Move::Meanwhile(phase) => out.waiting.push((phase, group)),
            }
        }
        out
    }

    /// Whether a value of the first phase is read by other blocks in the last one.
    fn ends_apart(&self, groups: &[Group], last: usize) -> bool {
        let first = groups.iter().filter(|g| g.level.0 == 0).flat_map(Group::members);
        let first: BTreeSet<ValueId> = first.collect();
        let is_far =
            |(x, axes): (&ValueId, &Vec<usize>)| first.contains(x) && !is_own(self.shares[x], axes);
        groups.iter().filter(|g| g.level.0 == last).flat_map(|g| &g.reads).any(is_far)
    }
}

/// Sets of values by when they are computed.
#[derive(Default)]
struct Parted {
    /// In their regular turn.
    groups: Vec<Group>,
    /// By the spare threads, with the level of the stage.
    beside: Vec<(Level, Group)>,
    /// While the cluster waits, with the number of the phase before that.
    waiting: Vec<(usize, Group)>,
}

/// The time at which a set is computed.
#[derive(Clone, Copy, PartialEq)]
enum Move {
    Stays,
    Beside(Level),
    Meanwhile(usize),
}

/// Total number of terms up to which the spare threads compute a set.
const SMALL: usize = 4096;

/// The search for the times of sets.
struct Moves<'a> {
    groups: &'a [Group],
    /// The set that computes a value, and those that read it.
    places: BTreeMap<ValueId, usize>,
    readers: BTreeMap<ValueId, Vec<usize>>,
    /// Sets that involve no other block.
    is_near: Vec<bool>,
    /// Levels of the sets that must be computed in their turn, each with the terms that spare
    /// threads have there so far.
    stages: BTreeMap<Level, usize>,
    /// Terms computed while the cluster waits after a phase.
    waiting: Vec<usize>,
    of: Vec<Move>,
}

impl<'a> Moves<'a> {
    fn new(all: &Readers<'_>, groups: &'a [Group], last: usize) -> Moves<'a> {
        let mut places = BTreeMap::new();
        let mut readers: BTreeMap<ValueId, Vec<usize>> = BTreeMap::new();
        for (i, group) in groups.iter().enumerate() {
            places.extend(group.members().map(|v| (v, i)));
            group.reads.keys().for_each(|x| readers.entry(*x).or_default().push(i));
        }
        let is_far = |(x, axes): (&ValueId, &Vec<usize>)| {
            all.shares.get(x).is_some_and(|&share| !is_own(share, axes))
        };
        let is_near = |group: &Group| {
            !group.members().any(|v| all.far.contains(&v)) && !group.reads.iter().any(is_far)
        };
        let is_near = groups.iter().map(is_near).collect();
        let (waiting, of) = (vec![0; last + 1], vec![Move::Stays; groups.len()]);
        let mut out =
            Moves { groups, places, readers, is_near, stages: BTreeMap::new(), waiting, of };
        let fixed = (0..groups.len()).filter(|&i| out.is_fixed(i)).map(|i| (groups[i].level, 0));
        out.stages = fixed.collect();
        out
    }

    /// The phase of the first reader of a set.
    fn read_by(&self, i: usize) -> usize {
        let read =
            self.groups[i].members().flat_map(|v| self.readers.get(&v).into_iter().flatten());
        read.map(|&r| self.groups[r].level.0).min().unwrap_or(usize::MAX)
    }

    fn is_fixed(&self, i: usize) -> bool {
        !self.is_near[i] || self.read_by(i) <= self.groups[i].level.0
    }

    /// Whether the operands of a set are available when the stage of a level begins.
    fn is_ready(&self, i: usize, level: Level) -> bool {
        let before = |x: &ValueId| {
            let Some(&of) = self.places.get(x) else { return true };
            match self.of[of] {
                Move::Stays => self.groups[of].level < level,
                Move::Beside(at) => at < level,
                Move::Meanwhile(phase) => phase < level.0,
            }
        };
        self.groups[i].reads.keys().all(before)
    }

    /// The time for a set, given the times of those before it.
    fn find(&mut self, i: usize) -> Move {
        if self.is_fixed(i) {
            return Move::Stays;
        }
        let group = &self.groups[i];
        let (from, below) = (group.level.0, self.read_by(i));
        let terms = group.task.count * group.task.terms;
        if terms <= SMALL {
            let fits = |level: &Level| level.0 < below && self.is_ready(i, *level);
            let levels = self.stages.iter().filter(|(level, _)| fits(level));
            if let Some(level) = levels.min_by_key(|(_, terms)| **terms).map(|(level, _)| *level) {
                *self.stages.entry(level).or_default() += terms;
                return Move::Beside(level);
            }
        }
        let end = |phase: usize| self.stages.keys().copied().rfind(|level| level.0 == phase);
        let fits = |phase: &usize| end(*phase).is_some_and(|level| self.is_ready(i, level));
        let phases = (from..below.min(self.waiting.len() - 1)).filter(fits);
        let Some(phase) = phases.min_by_key(|&phase| self.waiting[phase]) else {
            return Move::Stays;
        };
        self.waiting[phase] += terms;
        Move::Meanwhile(phase)
    }
}
