//! Choosing a share for each value so that the step is fast.

use std::collections::BTreeMap;

use super::lasting::Cell;
use super::shares::{Level, Share, TimedShare, is_own};
use crate::graph::{Graph, ValueId};

/// Sizes of axes along which all values are split at first.
const STARTS: usize = 4;

/// Passes over all values.
const PASSES: usize = 12;

/// Nanoseconds of a barrier of the cluster, including the loads after it that miss the cache.
const BARRIER: f64 = 700.0;

/// Nanoseconds of a barrier of a block, including the start of the loop after it.
const SYNC: f64 = 80.0;

/// Extra nanoseconds of a load that is not from the block's own memory.
const FAR: f64 = 12.0;

/// Nanoseconds until the first of such loads arrives, while others are under way.
const REACH: f64 = 30.0;

/// Nanoseconds for a cell that does not last in the blocks, apart from its loads.
const LOADED: f64 = 100.0;

/// Bytes of a block for cells that last there.
pub(super) const LASTING: usize = 96 << 10;

/// Values by position, each with the axes that are only read at the thread's own position.
type PlacedReads = Vec<(usize, Vec<usize>)>;

/// The values of a step with the ways to compute them, in order.
pub(crate) struct Choice<'a> {
    graph: &'a Graph,
    pub values: Vec<(ValueId, Vec<TimedShare>)>,
    /// For each way of each value what it reads.
    reads: Vec<Vec<PlacedReads>>,
    /// Places of cells and of their new values; those that may last in the blocks.
    cells: Vec<(usize, Option<usize>)>,
    blocks: usize,
}

impl<'a> Choice<'a> {
    pub fn new(
        graph: &'a Graph,
        values: Vec<(ValueId, Vec<TimedShare>)>,
        cells: &[Cell],
        blocks: usize,
    ) -> Choice<'a> {
        let places: BTreeMap<ValueId, usize> =
            values.iter().enumerate().map(|(i, (v, _))| (*v, i)).collect();
        let known = |way: &TimedShare| {
            let read = |(x, axes): (&ValueId, &Vec<usize>)| Some((*places.get(x)?, axes.clone()));
            way.reads.iter().filter_map(read).collect()
        };
        let reads = values.iter().map(|(_, ways)| ways.iter().map(known).collect()).collect();
        let place = |cell: &Cell| {
            let write = match cell.write {
                Some(write) => Some(*places.get(&write)?),
                None => None,
            };
            Some((*places.get(&cell.copy)?, write))
        };
        let cells = cells.iter().filter_map(place).collect();
        Choice { graph, values, reads, cells, blocks }
    }

    /// A lower bound on the nanoseconds of each value alone.
    pub fn least(&self) -> f64 {
        let least = |ways: &[TimedShare]| ways.iter().map(|w| w.time).fold(f64::INFINITY, f64::min);
        self.values.iter().map(|(_, ways)| least(ways)).sum()
    }

    /// For each value, the index of the way that makes the step fast: from several starts, one
    /// value after the other is changed as long as that helps.
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

    /// All values with an axis of this size are split along it. For the others, each block computes
    /// the whole if that is wanted, and otherwise the way that takes least time is chosen.
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
            least = self.improve_cells(ways, least);
            if least >= before {
                break;
            }
        }
        least
    }

    /// Changes cells and their new values together.
    fn improve_cells(&self, ways: &mut [usize], mut least: f64) -> f64 {
        for &(copy, write) in &self.cells {
            let Some(write) = write else { continue };
            for way in 0..self.values[copy].1.len() {
                let share = self.values[copy].1[way].share;
                let Some(same) = self.values[write].1.iter().position(|w| w.share == share) else {
                    continue;
                };
                let old = (ways[copy], ways[write]);
                (ways[copy], ways[write]) = (way, same);
                let time = self.time(ways);
                if time < least { least = time } else { (ways[copy], ways[write]) = old }
            }
        }
        least
    }

    fn share(&self, ways: &[usize], i: usize) -> Share {
        self.values[i].1[ways[i]].share
    }

    /// For each value whether a block reads what another one computed.
    fn is_far(&self, ways: &[usize]) -> Vec<bool> {
        let mut out = vec![false; ways.len()];
        for (reads, &way) in self.reads.iter().zip(ways) {
            for (x, axes) in &reads[way] {
                out[*x] |= !is_own(self.share(ways, *x), axes);
            }
        }
        out
    }

    /// For each value whether it is a cell that lasts in the blocks from step to step: each block
    /// then computes the new value of what it reads.
    pub fn lasting(&self, ways: &[usize]) -> Vec<bool> {
        let far = self.is_far(ways);
        let mut out = vec![false; ways.len()];
        let mut left = LASTING;
        for &(copy, write) in &self.cells {
            let share = self.share(ways, copy);
            let same = write.is_none_or(|w| self.share(ways, w) == share);
            let value = &self.graph.values[self.values[copy].0];
            let whole = 2 * value.numel() * value.dtype.size();
            let bytes = match share {
                Share::Whole => whole,
                Share::Split(_) => whole.div_ceil(self.blocks) + value.dims.iter().sum::<usize>(),
            };
            if same && !far[copy] && bytes <= left {
                left -= bytes;
                out[copy] = true;
            }
        }
        out
    }

    /// For each value its level.
    pub fn levels(&self, ways: &[usize], lasting: &[bool]) -> Vec<Level> {
        let mut out: Vec<Level> = Vec::with_capacity(self.values.len());
        for (i, &way) in ways.iter().enumerate() {
            let after = |(x, axes): &(usize, Vec<usize>)| {
                // Cells and constants may stand behind their users.
                let level = *out.get(*x).filter(|_| !lasting[*x])?;
                let own = is_own(self.share(ways, *x), axes);
                Some(if own { (level.0, level.1 + 1) } else { (level.0 + 1, 0) })
            };
            let level = self.reads[i][way].iter().filter_map(after).max().unwrap_or((0, 0));
            out.push(level);
        }
        out
    }

    /// An estimate of a step in nanoseconds. All else being equal, early values are preferred, so
    /// that one change of many that only help together shows an effect.
    pub fn time(&self, ways: &[usize]) -> f64 {
        let lasting = self.lasting(ways);
        let levels = self.levels(ways, &lasting);
        let last = levels.iter().map(|level| level.0).max().unwrap_or(0);
        let mut subs = vec![0; last + 1];
        let mut sum = 0.0;
        let mut ends_apart = false;
        for (i, level) in levels.iter().enumerate() {
            if lasting[i] {
                continue;
            }
            let way = &self.values[i].1[ways[i]];
            let reads = &self.reads[i][ways[i]];
            let given = way.reads.len() - reads.len();
            let mut far = given;
            for (x, axes) in reads {
                if !is_own(self.share(ways, *x), axes) {
                    far += 1;
                    ends_apart |= level.0 == last && levels[*x].0 == 0;
                }
            }
            sum += (FAR * way.terms as f64 + REACH) * far as f64;
            subs[level.0] = level.1.max(subs[level.0]);
            sum += way.time + 20.0 * level.0 as f64 + 2.0 * level.1 as f64;
        }
        for &(copy, write) in &self.cells {
            if !lasting[copy] {
                sum += LOADED;
                ends_apart |= write.is_some();
            }
        }
        let barriers = last + usize::from(ends_apart);
        let syncs: usize = subs.iter().sum::<usize>() + usize::from(!ends_apart);
        sum + BARRIER * barriers as f64 + SYNC * syncs as f64
    }
}
