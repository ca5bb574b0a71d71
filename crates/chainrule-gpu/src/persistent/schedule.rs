//! The order of a step's work: what is computed between barriers, while the cluster waits at one, and
//! for the next step.

use std::collections::{BTreeMap, BTreeSet};

use super::groups::{Group, grouped, widen};
use super::pieces::{Targets, Task, Writer};
use super::shares::{Reads, Share, is_own};
use crate::graph::{Step, ValueId};

/// Most bytes of a block for values that are computed for the next step.
const AHEAD: usize = 16 << 10;

/// The work between two barriers of a block.
pub(crate) struct Stage {
    /// Barriers of the cluster before it in a step.
    pub phase: usize,
    pub groups: Vec<Group>,
    /// Values of the next step, which depend on no cell.
    pub ahead: Vec<Group>,
    /// Work for the time in which the cluster waits behind the stage: no other block reads it, and
    /// the block itself later.
    pub meanwhile: Vec<Group>,
}

impl Stage {
    pub fn all(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().chain(&self.ahead).chain(&self.meanwhile)
    }
}

/// A step's work in order.
#[derive(Default)]
pub(crate) struct Schedule {
    pub stages: Vec<Stage>,
    /// Whether the cluster waits behind the step: the next one would write what other blocks still
    /// read.
    pub ends_apart: bool,
}

/// A value with its share, and the barriers of the cluster before it.
type Chosen = (ValueId, Share, usize);

impl Schedule {
    /// The work for these values, which come in order.
    pub fn new(writer: &Writer<'_>, chosen: &[Chosen]) -> Schedule {
        let reads = Readers::new(writer, chosen);
        let last = chosen.iter().map(|c| c.2).max().unwrap_or(0);
        let early = reads.early(writer);
        let is_early = |c: &&Chosen| early.contains(&c.0);
        let found: Vec<Chosen> = chosen.iter().filter(is_early).map(|c| (c.0, c.1, 0)).collect();
        // One set in each phase but the first.
        let ahead: Vec<Group> =
            grouped(writer, &found).into_iter().filter(|g| g.level.1 < last).collect();
        let taken: BTreeSet<ValueId> = ahead.iter().flat_map(Group::members).collect();
        let rest: Vec<Chosen> = chosen.iter().filter(|c| !taken.contains(&c.0)).copied().collect();
        let (groups, waiting) = reads.parted(grouped(writer, &rest), last);
        let ends_apart = reads.ends_apart(&groups, last);
        let mut stages: Vec<Stage> = Vec::new();
        for group in groups {
            match stages.last_mut() {
                Some(stage) if stage.groups[0].level == group.level => stage.groups.push(group),
                _ => stages.push(Stage {
                    phase: group.level.0,
                    groups: vec![group],
                    ahead: Vec::new(),
                    meanwhile: Vec::new(),
                }),
            }
        }
        for group in ahead {
            let at = stages.iter_mut().find(|s| s.phase == group.level.1 + 1);
            at.expect("a phase has a stage").ahead.push(group);
        }
        for (phase, group) in waiting {
            let at = stages.iter_mut().rfind(|s| s.phase == phase);
            at.expect("a phase has a stage").meanwhile.push(group);
        }
        let threads = writer.places.cluster.threads;
        for stage in &mut stages {
            widen(&mut stage.groups, threads);
            widen(&mut stage.ahead, threads);
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

/// The values that each value reads.
struct Readers<'a> {
    chosen: &'a [Chosen],
    shares: BTreeMap<ValueId, Share>,
    reads: Vec<Reads>,
    /// Values that blocks read which did not compute them.
    far: BTreeSet<ValueId>,
}

impl<'a> Readers<'a> {
    fn new(writer: &Writer<'_>, chosen: &'a [Chosen]) -> Readers<'a> {
        let shares: BTreeMap<ValueId, Share> = chosen.iter().map(|c| (c.0, c.1)).collect();
        let of = |&(v, share, _): &Chosen| {
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

    /// Sets that are computed in their turn, and those that are computed while the cluster waits
    /// behind a phase, with the number of that.
    fn parted(&self, groups: Vec<Group>, last: usize) -> (Vec<Group>, Vec<(usize, Group)>) {
        let mut places: BTreeMap<ValueId, usize> = BTreeMap::new();
        let mut readers: BTreeMap<ValueId, Vec<usize>> = BTreeMap::new();
        for (i, group) in groups.iter().enumerate() {
            group.members().for_each(|v| drop(places.insert(v, i)));
            group.reads.keys().for_each(|x| readers.entry(*x).or_default().push(i));
        }
        let is_far = |(x, axes): (&ValueId, &Vec<usize>)| {
            self.shares.get(x).is_some_and(|&share| !is_own(share, axes))
        };
        // The phases behind which a set may be computed, as its readers and its operands allow.
        let phases = |group: &Group| {
            let near = !group.members().any(|v| self.far.contains(&v));
            let near = near && !group.reads.iter().any(is_far);
            let read = group.members().flat_map(|v| readers.get(&v).into_iter().flatten());
            let first = read.map(|&i| groups[i].level.0).min().unwrap_or(last);
            group.level.0..if near { first.min(last) } else { 0 }
        };
        let fixed: Vec<bool> = groups.iter().map(|g| phases(g).is_empty()).collect();
        let ends: Vec<Option<usize>> = (0..=last)
            .map(|phase| {
                let there = groups.iter().zip(&fixed).filter(|(g, f)| **f && g.level.0 == phase);
                there.map(|(g, _)| g.level.1).max()
            })
            .collect();
        let mut moved: Vec<Option<usize>> = vec![None; groups.len()];
        let mut work = vec![0; last + 1];
        for (i, group) in groups.iter().enumerate() {
            let ready = |phase: &usize| {
                let Some(end) = ends[*phase] else { return false };
                let before = |x: &ValueId| {
                    let Some(&of) = places.get(x) else { return true };
                    match moved[of] {
                        Some(other) => other < *phase,
                        None => groups[of].level < (*phase, end),
                    }
                };
                group.reads.keys().all(before)
            };
            moved[i] = phases(group).filter(ready).min_by_key(|&phase| work[phase]);
            if let Some(phase) = moved[i] {
                work[phase] += group.task.count * group.task.terms;
            }
        }
        let (mut stay, mut waiting) = (Vec::new(), Vec::new());
        for (group, phase) in groups.into_iter().zip(moved) {
            match phase {
                Some(phase) => waiting.push((phase, group)),
                None => stay.push(group),
            }
        }
        (stay, waiting)
    }

    /// Whether a value of the first phase is read by other blocks in the last one.
    fn ends_apart(&self, groups: &[Group], last: usize) -> bool {
        let first = groups.iter().filter(|g| g.level.0 == 0).flat_map(Group::members);
        let first: BTreeSet<ValueId> = first.collect();
        let is_far = |(x, axes): (&ValueId, &Vec<usize>)| {
            first.contains(x) && !is_own(self.shares[x], axes)
        };
        groups.iter().filter(|g| g.level.0 == last).flat_map(|g| &g.reads).any(is_far)
    }
}
