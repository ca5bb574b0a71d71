//! Reductions over ranks, in tree order.

use std::collections::VecDeque;
use std::ops::Range;

use crate::tree::Stack;
use crate::values::Operand;
use crate::{Begun, Exchange, ExchangeError, Result, SumTree, Values, ValuesLayout, pool};

/// Owner rank of each tensor, balanced in bytes as far as whole tensors allow. It depends on the
/// sizes alone.
pub fn owners(bytes: &[usize], ranks: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..bytes.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(bytes[i]), i));
    let mut load = vec![0usize; ranks.max(1)];
    let mut owner = vec![0; bytes.len()];
    for i in order {
        let least = (0..load.len()).min_by_key(|&rank| (load[rank], rank)).unwrap_or(0);
        owner[i] = least;
        load[least] = load[least].saturating_add(bytes[i]);
    }
    owner
}

/// Smallest bucket, which is sent once its tensors are complete. `docs/src/ranks-cost.md` has the
/// measurements behind it.
const BUCKET: usize = 2 << 20;

/// Buckets: ranges of consecutive tensors, from the last to the first, since the backward pass
/// gives the gradients of the last layers first.
pub(crate) fn buckets(layouts: &[ValuesLayout]) -> Vec<Range<usize>> {
    buckets_of(&sizes(layouts), BUCKET)
}

fn sizes(layouts: &[ValuesLayout]) -> Vec<usize> {
    layouts.iter().map(|layout| layout.bytes()).collect()
}

fn buckets_of(sizes: &[usize], least: usize) -> Vec<Range<usize>> {
    let (mut buckets, mut end, mut bytes) = (Vec::new(), sizes.len(), 0usize);
    for (i, size) in sizes.iter().enumerate().rev() {
        bytes = bytes.saturating_add(*size);
        if bytes >= least || i == 0 {
            buckets.push(i..end);
            (end, bytes) = (i, 0);
        }
    }
    buckets
}

/// Sum of tensors over parts distributed over the ranks, such as the gradients of micro-batches.
/// Its bits do not depend on the number of ranks.
///
/// ```
/// use chainrule_exchange::{RankSum, SumTree, Threads, Values, ValuesLayout};
/// let total = |ranks| {
///     let handles: Vec<_> = Threads::group(ranks).into_iter().map(|mut rank| {
///         std::thread::spawn(move || {
///             let mut sum = RankSum::new(SumTree::new(6), &rank, vec![ValuesLayout::F32(2)])?;
///             for part in sum.share() {
///                 sum.push(vec![Values::F32(vec![0.1 * part as f32, 1e8])])?;
///             }
///             sum.all_reduce(&mut rank)
///         })
///     }).collect();
///     let totals: Result<Vec<_>, _> = handles.into_iter().map(|h| h.join().unwrap()).collect();
///     totals.map(|totals| totals[0].clone())
/// };
/// assert_eq!(total(1)?, total(4)?);
/// # Ok::<(), chainrule_exchange::ExchangeError>(())
/// ```
pub struct RankSum {
    tree: SumTree,
    rank: usize,
    size: usize,
    layouts: Vec<ValuesLayout>,
    owners: Vec<usize>,
    /// Partial sums of each tensor.
    stacks: Vec<Stack<Values>>,
    /// Number of parts added to each tensor.
    pushed: Vec<usize>,
    buckets: Vec<Range<usize>>,
    /// Buckets that were sent, and for which other ranks' parts are awaited.
    begun: VecDeque<Begun>,
}

impl RankSum {
    /// A sum over the parts of the tree, of which this rank has its share; each part has tensors of
    /// these layouts.
    ///
    /// Errors if there are fewer parts than ranks.
    pub fn new(
        tree: SumTree,
        exchange: &(impl Exchange + ?Sized),
        layouts: Vec<ValuesLayout>,
    ) -> Result<RankSum> {
        let (rank, size) = (exchange.rank(), exchange.size());
        if tree.parts() < size {
            return Err(ExchangeError::Settings(format!(
                "{size} ranks need {size} micro-batches a step at least, and there are {}; start \
                 fewer ranks, or set more micro-batches",
                tree.parts()
            )));
        }
        let bytes: Vec<usize> = layouts.iter().map(|layout| layout.bytes()).collect();
        Ok(RankSum {
            tree,
            rank,
            size,
            owners: owners(&bytes, size),
            stacks: layouts.iter().map(|_| Stack::new(tree, tree.share(rank, size))).collect(),
            pushed: vec![0; layouts.len()],
            buckets: buckets(&layouts),
            begun: VecDeque::new(),
            layouts,
        })
    }

    /// Sets the bucket size in bytes, before the first is sent; the same on all ranks. It changes
    /// no bit.
    #[doc(hidden)]
    pub fn with_buckets(mut self, least: usize) -> RankSum {
        self.buckets = buckets_of(&sizes(&self.layouts), least);
        self
    }

    /// An empty placeholder for a sum that is moved out.
    #[doc(hidden)]
    pub fn empty() -> RankSum {
        RankSum {
            tree: SumTree::new(1),
            rank: 0,
            size: 1,
            layouts: Vec::new(),
            owners: Vec::new(),
            stacks: Vec::new(),
            pushed: Vec::new(),
            buckets: Vec::new(),
            begun: VecDeque::new(),
        }
    }

    /// The parts that this rank has to push, in order.
    pub fn share(&self) -> Range<usize> {
        self.tree.share(self.rank, self.size)
    }

    /// Rank that reduces each tensor; see [`owners`].
    pub fn owners(&self) -> &[usize] {
        &self.owners
    }

    /// Adds the next part: the values of each tensor.
    pub fn push(&mut self, part: Vec<Values>) -> Result<()> {
        if part.len() != self.layouts.len() {
            return Err(misfit());
        }
        part.into_iter().enumerate().try_for_each(|(i, value)| self.push_one(i, value))
    }

    /// Adds tensor `i` of the next part.
    ///
    /// Errors for a tensor of another layout, and for a part beyond the rank's share.
    pub fn push_one(&mut self, i: usize, value: Values) -> Result<()> {
        let fits = self.layouts.get(i) == Some(&value.layout());
        if !fits || self.pushed[i] == self.share().len() {
            return Err(misfit());
        }
        self.pushed[i] += 1;
        self.stacks[i].push(value, &mut Values::plus);
        Ok(())
    }

    /// Sends the buckets that are complete, in order, while the rest is still being computed.
    pub fn send(&mut self, exchange: &mut (impl Exchange + ?Sized)) -> Result<()> {
        let share = self.share().len();
        while self.size > 1
            && let Some(bucket) = self.buckets.get(self.begun.len())
            && self.pushed[bucket.clone()].iter().all(|&n| n == share)
        {
            // Reserves room at once, since a growing vector copies its content again and again.
            let mut room = vec![0; self.size];
            for i in bucket.clone().filter(|&i| self.owners[i] != self.rank) {
                room[self.owners[i]] += self.layouts[i].bytes() * self.stacks[i].nodes.len();
            }
            let mut parts: Vec<Vec<u8>> = room.into_iter().map(pool::take).collect();
            for i in bucket.clone().filter(|&i| self.owners[i] != self.rank) {
                let nodes = std::mem::take(&mut self.stacks[i].nodes);
                nodes.iter().for_each(|(_, value)| value.write(&mut parts[self.owners[i]]));
            }
            self.begun.push_back(exchange.begin(parts)?);
        }
        Ok(())
    }

    /// All-reduce: each rank reduces the tensors that it owns, and all gather them.
    pub fn all_reduce(mut self, exchange: &mut (impl Exchange + ?Sized)) -> Result<Vec<Values>> {
        let mut gathering = Gathering::default();
        let mut totals: Vec<Option<Values>> = self.layouts.iter().map(|_| None).collect();
        self.begin_all(exchange)?;
        for bucket in self.buckets.clone() {
            self.finish(exchange, bucket.clone(), &mut totals)?;
            gathering.begin(exchange, &self.owners, bucket, &totals)?;
        }
        gathering.finish(exchange, &self.owners, &self.layouts, totals)
    }

    /// Reduce-scatter: the totals of the tensors that this rank owns.
    pub fn reduce_scatter(
        mut self,
        exchange: &mut (impl Exchange + ?Sized),
    ) -> Result<Vec<Option<Values>>> {
        let mut totals: Vec<Option<Values>> = self.layouts.iter().map(|_| None).collect();
        self.begin_all(exchange)?;
        for bucket in self.buckets.clone() {
            self.finish(exchange, bucket, &mut totals)?;
        }
        Ok(totals)
    }

    fn begin_all(&mut self, exchange: &mut (impl Exchange + ?Sized)) -> Result<()> {
        let share = self.share();
        if self.pushed.iter().any(|&n| n != share.len()) {
            return Err(ExchangeError::Settings(format!(
                "a sum lacks some of the parts {share:?} of its rank"
            )));
        }
        self.send(exchange)
    }

    /// Totals of this rank's tensors in the oldest bucket.
    fn finish(
        &mut self,
        exchange: &mut (impl Exchange + ?Sized),
        bucket: Range<usize>,
        totals: &mut [Option<Values>],
    ) -> Result<()> {
        let mine = bucket.filter(|&i| self.owners[i] == self.rank);
        let received = match self.begun.pop_front() {
            Some(begun) => exchange.finish(begun)?,
            None => vec![Vec::new()],
        };
        let whole = received;
        let mut received: Vec<&[u8]> = whole.iter().map(|bytes| &bytes[..]).collect();
        for i in mine {
            let mut stack = Stack::new(self.tree, 0..self.tree.parts());
            for (peer, bytes) in received.iter_mut().enumerate() {
                if peer == self.rank {
                    for (node, value) in std::mem::take(&mut self.stacks[i].nodes) {
                        stack.put(node, Operand::Own(value), &mut Operand::plus);
                    }
                    continue;
                }
                for node in self.tree.nodes(self.tree.share(peer, self.size)) {
                    let value = self.layouts[i].split_off(bytes);
                    let value = value.ok_or_else(|| other_model(self.rank, self.size, peer))?;
                    stack.put(node, Operand::Sent(self.layouts[i], value), &mut Operand::plus);
                }
            }
            totals[i] = stack.nodes.pop().map(|(_, total)| total.into_values());
        }
        match received.iter().enumerate().find(|(peer, b)| *peer != self.rank && !b.is_empty()) {
            Some((peer, _)) => Err(other_model(self.rank, self.size, peer)),
            None => {
                whole.into_iter().for_each(pool::give);
                Ok(())
            }
        }
    }
}

fn misfit() -> ExchangeError {
    ExchangeError::Settings(
        "a part of a sum has other tensors than were told, or is beyond the rank's share".into(),
    )
}

/// Broadcast of buckets of tensors from their owners.
#[derive(Default)]
struct Gathering {
    begun: VecDeque<(Range<usize>, Begun)>,
}

impl Gathering {
    fn begin(
        &mut self,
        exchange: &mut (impl Exchange + ?Sized),
        owners: &[usize],
        bucket: Range<usize>,
        own: &[Option<Values>],
    ) -> Result<()> {
        if exchange.size() == 1 {
            return Ok(());
        }
        let mine = || bucket.clone().filter(|&i| owners[i] == exchange.rank());
        let room = mine().filter_map(|i| own[i].as_ref()).map(Values::bytes).sum();
        let mut bytes = pool::take(room);
        for i in mine() {
            own[i].iter().for_each(|value| value.write(&mut bytes));
        }
        self.begun.push_back((bucket, exchange.begin_gather(bytes)?));
        Ok(())
    }

    /// Passes the bytes of other ranks' tensors, which have these sizes, to `take`.
    fn finish_bytes(
        mut self,
        exchange: &mut (impl Exchange + ?Sized),
        owners: &[usize],
        sizes: &[usize],
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let (rank, size) = (exchange.rank(), exchange.size());
        while let Some((bucket, begun)) = self.begun.pop_front() {
            for (peer, bytes) in exchange.finish(begun)?.into_iter().enumerate() {
                if peer != rank {
                    let mut left = &bytes[..];
                    for i in bucket.clone().filter(|&i| owners[i] == peer) {
                        let split = left.split_at_checked(sizes[i]);
                        let (own, rest) = split.ok_or_else(|| other_model(rank, size, peer))?;
                        take(i, own);
                        left = rest;
                    }
                    if !left.is_empty() {
                        return Err(other_model(rank, size, peer));
                    }
                }
                pool::give(bytes);
            }
        }
        Ok(())
    }

    fn finish(
        self,
        exchange: &mut (impl Exchange + ?Sized),
        owners: &[usize],
        layouts: &[ValuesLayout],
        mut all: Vec<Option<Values>>,
    ) -> Result<Vec<Values>> {
        let sizes = sizes(layouts);
        let take = |i: usize, mut bytes: &[u8]| all[i] = layouts[i].read(&mut bytes);
        self.finish_bytes(exchange, owners, &sizes, take)?;
        all.into_iter().collect::<Option<Vec<Values>>>().ok_or_else(|| {
            ExchangeError::Settings("a tensor to gather is not there on its owner".into())
        })
    }
}

/// Values of all tensors, each from its owner; `own` has those of this rank.
pub fn gather(
    exchange: &mut (impl Exchange + ?Sized),
    owners: &[usize],
    layouts: &[ValuesLayout],
    own: Vec<Option<Values>>,
) -> Result<Vec<Values>> {
    if [owners.len(), own.len()] != [layouts.len(); 2] {
        return Err(misfit());
    }
    let mut gathering = Gathering::default();
    for bucket in buckets(layouts) {
        gathering.begin(exchange, owners, bucket, &own)?;
    }
    gathering.finish(exchange, owners, layouts, own)
}

/// Bytes of all tensors, of these sizes, each from its owner: `write` appends those of a tensor
/// that this rank owns, and `take` receives those of the others, without a copy between.
#[doc(hidden)]
pub fn gather_bytes(
    exchange: &mut (impl Exchange + ?Sized),
    owners: &[usize],
    sizes: &[usize],
    mut write: impl FnMut(usize, &mut Vec<u8>),
    take: impl FnMut(usize, &[u8]),
) -> Result<()> {
    if owners.len() != sizes.len() {
        return Err(misfit());
    }
    let (rank, mut gathering) = (exchange.rank(), Gathering::default());
    for bucket in buckets_of(sizes, BUCKET) {
        let mine: Vec<usize> = bucket.clone().filter(|&i| owners[i] == rank).collect();
        let mut bytes = pool::take(mine.iter().map(|&i| sizes[i]).sum());
        mine.iter().for_each(|&i| write(i, &mut bytes));
        gathering.begun.push_back((bucket, exchange.begin_gather(bytes)?));
    }
    gathering.finish_bytes(exchange, owners, sizes, take)
}

fn other_model(rank: usize, size: usize, peer: usize) -> ExchangeError {
    let why = "sends gradients of other sizes; do all ranks train the same model?".into();
    ExchangeError::Peer { rank, size, peer, why }
}
