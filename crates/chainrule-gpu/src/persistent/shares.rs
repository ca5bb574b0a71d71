//! The share that each block of a cluster has of a value.

use std::collections::BTreeMap;

use super::Cluster;
use crate::coords::Coord;
use crate::graph::{Graph, ValueId};

/// The elements of a value that a block computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// All of them, in each block.
    Whole,
    /// A stretch of this axis.
    Split(usize),
}

/// Most bytes of a value that each block computes as a whole.
const WHOLE: usize = 32 << 10;

/// Sizes of axes along which all values are split at first.
const STARTS: usize = 4;

/// Passes over all values.
const PASSES: usize = 12;

/// Nanoseconds of a barrier of the cluster, with the loads behind it that miss the cache.
const BARRIER: f64 = 700.0;

/// Nanoseconds of a barrier of a block, with the start of a loop behind it.
const SYNC: f64 = 80.0;

/// Values that a value reads, each with the axes that are read at the own place of the value's
/// split axis alone.
pub(crate) type Reads = BTreeMap<ValueId, Vec<usize>>;

/// A way to compute a value.
pub(crate) struct TimedShare {
    pub share: Share,
    pub reads: Reads,
    /// Nanoseconds by itself.
    pub time: f64,
    /// Terms that a thread adds.
    pub terms: usize,
}

/// Nanoseconds that a load takes longer that is not from the memory of the block.
const FAR: f64 = 12.0;

/// The place of a value in a step: barriers of the cluster before it, then those of the block.
pub(crate) type Level = (usize, usize);

/// Whether a block reads nothing of a value but what it computed itself.
pub(crate) fn is_own(share: Share, axes: &[usize]) -> bool {
    match share {
        Share::Whole => true,
        Share::Split(axis) => axes.contains(&axis),
    }
}

/// The shares that a value may have.
pub(crate) fn shares(graph: &Graph, v: ValueId) -> Vec<Share> {
    let value = &graph.values[v];
    let axes = value.dims.iter().enumerate().filter(|(_, d)| **d > 1);
    let mut out: Vec<Share> = axes.map(|(i, _)| Share::Split(i)).collect();
    if out.is_empty() || value.numel() * value.dtype.size() <= WHOLE {
        out.push(Share::Whole);
    }
    out
}

/// The values of a step with the ways to compute them, in order.
pub(crate) struct Choice<'a> {
    pub graph: &'a Graph,
    pub values: Vec<(ValueId, Vec<TimedShare>)>,
}

impl Choice<'_> {
    /// Nanoseconds of all values by themselves, at least.
    pub fn least(&self) -> f64 {
        let least = |ways: &[TimedShare]| ways.iter().map(|w| w.time).fold(f64::INFINITY, f64::min);
        self.values.iter().map(|(_, ways)| least(ways)).sum()
    }

    /// For each value the number of the way that makes the step short: from some starts, one value
    /// after the other is changed as long as that helps.
    pub fn best(&self) -> Vec<usize> {
        let sizes = self.sizes();
        let starts = sizes.iter().flat_map(|&size| [false, true].map(|w| self.start(size, w)));
        let ended = starts.map(|mut ways| (self.improve(&mut ways), ways));
        let best = ended.min_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or_else(|| vec![0; self.values.len()], |(_, ways)| ways)
    }

    /// Sizes of axes, those of most elements first.
    fn sizes(&self) -> Vec<usize> {
        let mut all: BTreeMap<usize, usize> = BTreeMap::new();
        for (v, _) in &self.values {
            let value = &self.graph.values[*v];
            value.dims.iter().for_each(|&d| *all.entry(d).or_default() += value.numel());
        }
        let mut sizes: Vec<(usize, usize)> = all.into_iter().collect();
        sizes.sort_by_key(|&(size, count)| (std::cmp::Reverse(count), size));
        let mut out: Vec<usize> = sizes.into_iter().map(|s| s.0).take(STARTS).collect();
        if out.is_empty() {
            out.push(1);
        }
        out
    }

    /// All values that have an axis of this size are split along it; of others each block computes
    /// the whole if that is wanted, and else what takes least time.
    fn start(&self, size: usize, whole: bool) -> Vec<usize> {
        let one = |(v, ways): &(ValueId, Vec<TimedShare>)| {
            let dims = &self.graph.values[*v].dims;
            let fits = |w: &TimedShare| matches!(w.share, Share::Split(axis) if dims[axis] == size);
            let is_whole = |w: &TimedShare| whole && w.share == Share::Whole;
            let found = ways.iter().position(fits).or_else(|| ways.iter().position(is_whole));
            found.unwrap_or_else(|| {
                let times = ways.iter().enumerate().min_by(|a, b| a.1.time.total_cmp(&b.1.time));
                times.map_or(0, |(i, _)| i)
            })
        };
        self.values.iter().map(one).collect()
    }

    fn improve(&self, ways: &mut [usize]) -> f64 {
        let mut least = self.time(ways);
        for pass in 0..PASSES {
            let before = least;
            for n in 0..self.values.len() {
                let i = if pass % 2 == 0 { n } else { self.values.len() - 1 - n };
                for way in 0..self.values[i].1.len() {
                    let old = std::mem::replace(&mut ways[i], way);
                    let time = self.time(ways);
                    if time < least { least = time } else { ways[i] = old }
                }
            }
            if least >= before {
                break;
            }
        }
        least
    }

    /// For each value its level.
    pub fn levels(&self, ways: &[usize]) -> Vec<Level> {
        let mut at: BTreeMap<ValueId, (Level, Share)> = BTreeMap::new();
        let mut out = Vec::with_capacity(self.values.len());
        for ((v, all), &way) in self.values.iter().zip(ways) {
            let way = &all[way];
            let after = |(x, axes): (&ValueId, &Vec<usize>)| {
                let (level, share) = at.get(x)?;
                let own = is_own(*share, axes);
                Some(if own { (level.0, level.1 + 1) } else { (level.0 + 1, 0) })
            };
            let level = way.reads.iter().filter_map(after).max().unwrap_or((0, 0));
            at.insert(*v, (level, way.share));
            out.push(level);
        }
        out
    }

    /// An estimate of a step in nanoseconds. Early values are better where it makes no difference,
    /// so that one change of many that help together is seen to help.
    pub fn time(&self, ways: &[usize]) -> f64 {
        let levels = self.levels(ways);
        let mut subs: BTreeMap<usize, usize> = BTreeMap::new();
        let mut sum = 0.0;
        let mut shares: BTreeMap<ValueId, Share> = BTreeMap::new();
        for (i, level) in levels.iter().enumerate() {
            let way = &self.values[i].1[ways[i]];
            let is_far = |(x, axes): &(&ValueId, &Vec<usize>)| {
                !shares.get(x).is_some_and(|s| is_own(*s, axes))
            };
            sum += FAR * (way.terms * way.reads.iter().filter(is_far).count()) as f64;
            shares.insert(self.values[i].0, way.share);
            let last = subs.entry(level.0).or_default();
            *last = (*last).max(level.1);
            sum += self.values[i].1[ways[i]].time + 20.0 * level.0 as f64 + 2.0 * level.1 as f64;
        }
        let syncs: usize = subs.values().sum();
        sum + BARRIER * (subs.len() as f64) + SYNC * syncs as f64
    }
}

/// The places of elements for an expression in a kernel of a cluster.
#[derive(Clone)]
pub(crate) struct Places<'a> {
    /// The share of each value that is computed.
    pub shares: &'a BTreeMap<ValueId, Share>,
    /// The array of the block that holds its share, where there is one.
    pub kept: &'a BTreeMap<ValueId, String>,
    /// The variable of the place along the split axis.
    pub own: &'a str,
    /// The variable of the place in the block's stretch.
    pub mine: &'a str,
    pub cluster: Cluster,
}

impl Places<'_> {
    /// The axes that are read at the own place alone.
    pub fn axes(&self, graph: &Graph, x: ValueId, coords: &[Coord]) -> Vec<usize> {
        let dims = &graph.values[x].dims;
        let own = |&i: &usize| coords[i].size > 1 && coords[i] == Coord::of(self.own, dims[i]);
        (0..dims.len()).filter(own).collect()
    }

    /// The array of the block and the place in it, where an element is there.
    pub fn find(&self, graph: &Graph, x: ValueId, coords: &[Coord]) -> Option<(String, String)> {
        let (name, share) = (self.kept.get(&x)?, *self.shares.get(&x)?);
        let mut at = coords.to_vec();
        if let Share::Split(axis) = share {
            is_own(share, &self.axes(graph, x, coords)).then_some(())?;
            at[axis] = self.stretch(graph.values[x].dims[axis]);
        }
        Some((name.clone(), crate::coords::flat(&at)))
    }

    /// The place in the block's stretch of an axis.
    pub fn stretch(&self, size: usize) -> Coord {
        Coord::of(self.mine, size.div_ceil(self.cluster.blocks))
    }
}
