//! The share that each block of a cluster has of a value.

use std::collections::BTreeMap;

use super::Cluster;
use super::pieces::Names;
use crate::coords::Coord;
use crate::graph::{Graph, Step, ValueId};

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

/// Values that a value reads, each with the axes read only at the own position along the value's
/// split axis.
pub(crate) type Reads = BTreeMap<ValueId, Vec<usize>>;

/// A way to compute a value.
pub(crate) struct TimedShare {
    pub share: Share,
    pub reads: Reads,
    /// Nanoseconds of it alone.
    pub time: f64,
    /// Terms that a thread adds.
    pub terms: usize,
}

/// The place of a value in a step: barriers of the cluster before it, then those of the block.
pub(crate) type Level = (usize, usize);

/// Whether a block reads only the part of a value that it computed itself.
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
    if matches!(value.step, Step::Parts(..) | Step::ScatterParts { .. }) {
        return vec![Share::Split(0)];
    }
    if out.is_empty() || value.numel() * value.dtype.size() <= WHOLE {
        out.push(Share::Whole);
    }
    out
}

/// The positions of elements for an expression in a kernel of a cluster.
#[derive(Clone)]
pub(crate) struct Places<'a> {
    /// The share of each value that is computed.
    pub shares: &'a BTreeMap<ValueId, Share>,
    /// The array of the block that holds its share, where there is one.
    pub kept: &'a BTreeMap<ValueId, String>,
    /// Variables of positions along the split axis, each with that of the position in the block's
    /// stretch; the first pair belongs to the element.
    pub own: Vec<(String, String)>,
    pub cluster: Cluster,
}

impl<'a> Places<'a> {
    pub fn new(
        shares: &'a BTreeMap<ValueId, Share>,
        kept: &'a BTreeMap<ValueId, String>,
        names: &Names,
        cluster: Cluster,
    ) -> Places<'a> {
        Places { shares, kept, own: vec![(names.own.clone(), names.mine.clone())], cluster }
    }

    /// The place in the block's stretch of an axis, if this is one there.
    fn mine(&self, coord: &Coord, size: usize) -> Option<Coord> {
        let own = self.own.iter().find(|(own, _)| *coord == Coord::of(own, size))?;
        Some(Coord::of(&own.1, size.div_ceil(self.cluster.blocks)))
    }

    /// The axes that are read at the own position only.
    pub fn axes(&self, graph: &Graph, x: ValueId, coords: &[Coord]) -> Vec<usize> {
        let dims = &graph.values[x].dims;
        let own = |&i: &usize| coords[i].size > 1 && self.mine(&coords[i], dims[i]).is_some();
        (0..dims.len()).filter(own).collect()
    }

    /// The array of the block and the position in it, if the element is there.
    pub fn find(&self, graph: &Graph, x: ValueId, coords: &[Coord]) -> Option<(String, String)> {
        let (name, share) = (self.kept.get(&x)?, *self.shares.get(&x)?);
        let mut at = coords.to_vec();
        if let Share::Split(axis) = share {
            at[axis] = self.mine(&coords[axis], graph.values[x].dims[axis])?;
        }
        Some((name.clone(), crate::coords::flat(&at)))
    }
}
