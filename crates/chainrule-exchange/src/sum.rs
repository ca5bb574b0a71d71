//! Sums over the ranks, in the order of a tree.

use crate::tree::Stack;
use crate::{Exchange, ExchangeError, Node, Result, Tree};

/// The numbers of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

impl Values {
    /// The number of bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Values::F32(x) => size_of_val(&x[..]),
            Values::F64(x) => size_of_val(&x[..]),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Values::F32(x) => x.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes())),
            Values::F64(x) => x.iter().for_each(|x| out.extend_from_slice(&x.to_le_bytes())),
        }
    }

    /// Numbers of this one's dtype and count, from the first of the bytes.
    fn read(&self, bytes: &mut &[u8]) -> Option<Values> {
        let (own, rest) = bytes.split_at_checked(self.bytes())?;
        *bytes = rest;
        Some(match self {
            Values::F32(_) => {
                let (numbers, _) = own.as_chunks();
                Values::F32(numbers.iter().map(|&b| f32::from_le_bytes(b)).collect())
            }
            Values::F64(_) => {
                let (numbers, _) = own.as_chunks();
                Values::F64(numbers.iter().map(|&b| f64::from_le_bytes(b)).collect())
            }
        })
    }

    fn add(&mut self, other: &Values) -> Option<()> {
        match (self, other) {
            (Values::F32(x), Values::F32(y)) if x.len() == y.len() => {
                x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
            }
            (Values::F64(x), Values::F64(y)) if x.len() == y.len() => {
                x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
            }
            _ => return None,
        }
        Some(())
    }
}

/// The rank that owns each tensor: as even in bytes as whole tensors can be. It depends on the
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

/// The sum of tensors over parts that are spread over the ranks, such as the gradients of
/// micro-batches. Its bits do not depend on the number of ranks.
///
/// ```
/// use chainrule_exchange::{Sum, Threads, Tree, Values};
/// let total = |ranks| {
///     let handles: Vec<_> = Threads::group(ranks).into_iter().map(|mut rank| {
///         std::thread::spawn(move || {
///             let mut sum = Sum::new(Tree::new(6), &rank)?;
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
pub struct Sum {
    tree: Tree,
    rank: usize,
    size: usize,
    stack: Stack<Vec<Values>>,
}

impl Sum {
    /// The sum over the parts of the tree, of which this rank has its share.
    ///
    /// Errors if there are fewer parts than ranks.
    pub fn new(tree: Tree, exchange: &(impl Exchange + ?Sized)) -> Result<Sum> {
        let (rank, size) = (exchange.rank(), exchange.size());
        if tree.parts() < size {
            return Err(ExchangeError::Settings(format!(
                "{size} ranks need {size} micro-batches a step at least, and there are {}; start \
                 fewer ranks, or set more micro-batches",
                tree.parts()
            )));
        }
        Ok(Sum { tree, rank, size, stack: Stack::new(tree, tree.share(rank, size)) })
    }

    /// The parts that this rank has to push, in order.
    pub fn share(&self) -> std::ops::Range<usize> {
        self.tree.share(self.rank, self.size)
    }

    /// Adds the next part: the values of each tensor, of the same dtypes and sizes in all parts.
    pub fn push(&mut self, part: Vec<Values>) -> Result<()> {
        let mut fits = true;
        self.stack.push(part, &mut |left, right| add(left, right, &mut fits));
        self.fitting(fits)
    }

    fn fitting(&self, fits: bool) -> Result<()> {
        let why = || ExchangeError::Settings("parts of a sum have other sizes or dtypes".into());
        if fits { Ok(()) } else { Err(why()) }
    }

    /// The total, on all ranks: each rank adds up the tensors that it owns, and all gather them.
    pub fn all_reduce(self, exchange: &mut (impl Exchange + ?Sized)) -> Result<Vec<Values>> {
        if self.size == 1 {
            return self.alone();
        }
        let owners = self.owners();
        let own = self.reduce_scatter(exchange, &owners)?;
        gather(exchange, &owners, own)
    }

    /// The rank that adds up each tensor; see [`owners`].
    pub fn owners(&self) -> Vec<usize> {
        let sizes: Vec<usize> = self.like().iter().map(Values::bytes).collect();
        owners(&sizes, self.size)
    }

    fn like(&self) -> &[Values] {
        self.stack.nodes.first().map_or(&[], |(_, values)| values)
    }

    fn alone(mut self) -> Result<Vec<Values>> {
        self.finished()?;
        Ok(self.stack.nodes.pop().map(|(_, total)| total).unwrap_or_default())
    }

    /// An error unless all parts of this rank are there.
    fn finished(&self) -> Result<()> {
        let nodes: Vec<Node> = self.stack.nodes.iter().map(|(node, _)| *node).collect();
        if nodes == self.tree.nodes(self.share()) { Ok(()) } else { Err(self.unfinished()) }
    }

    fn unfinished(&self) -> ExchangeError {
        ExchangeError::Settings(format!(
            "a sum lacks some of the parts {:?} of its rank",
            self.share()
        ))
    }

    /// The totals of the tensors that this rank owns; the others have their size and no sense.
    pub fn reduce_scatter(
        self,
        exchange: &mut (impl Exchange + ?Sized),
        owners: &[usize],
    ) -> Result<Vec<Values>> {
        self.finished()?;
        let mut parts = vec![Vec::new(); self.size];
        for (_, values) in &self.stack.nodes {
            for (value, &owner) in values.iter().zip(owners) {
                if owner != self.rank {
                    value.write(&mut parts[owner]);
                }
            }
        }
        let received = exchange.all_to_all(parts)?;
        let mut like: Vec<Values> = self.like().to_vec();
        let mine: Vec<usize> = (0..like.len()).filter(|&i| owners[i] == self.rank).collect();
        let mut own = self.stack.nodes.iter();
        let mut all = Vec::new();
        for (peer, bytes) in received.iter().enumerate() {
            let mut bytes = &bytes[..];
            for node in self.tree.nodes(self.tree.share(peer, self.size)) {
                let values: Option<Vec<Values>> = if peer == self.rank {
                    own.next().map(|(_, values)| mine.iter().map(|&i| values[i].clone()).collect())
                } else {
                    mine.iter().map(|&i| like[i].read(&mut bytes)).collect()
                };
                all.push((node, values.ok_or_else(|| other_model(self.rank, self.size, peer))?));
            }
            if !bytes.is_empty() {
                return Err(other_model(self.rank, self.size, peer));
            }
        }
        let mut fits = true;
        let total = self.tree.total(all, |left, right| add(left, right, &mut fits));
        self.fitting(fits)?;
        for (&i, value) in mine.iter().zip(total.unwrap_or_default()) {
            like[i] = value;
        }
        Ok(like)
    }
}

fn add(mut left: Vec<Values>, right: Vec<Values>, fits: &mut bool) -> Vec<Values> {
    *fits &= left.len() == right.len();
    for (left, right) in left.iter_mut().zip(&right) {
        *fits &= left.add(right).is_some();
    }
    left
}

/// The values of all tensors, each from its owner. Tensors of other owners are given with their
/// size, and any values.
pub fn gather(
    exchange: &mut (impl Exchange + ?Sized),
    owners: &[usize],
    mut values: Vec<Values>,
) -> Result<Vec<Values>> {
    let (rank, size) = (exchange.rank(), exchange.size());
    let mut own = Vec::new();
    for (value, _) in values.iter().zip(owners).filter(|(_, owner)| **owner == rank) {
        value.write(&mut own);
    }
    let received = exchange.all_gather(&own)?;
    for (peer, bytes) in received.iter().enumerate().filter(|(peer, _)| *peer != rank) {
        let mut bytes = &bytes[..];
        for (value, _) in values.iter_mut().zip(owners).filter(|(_, owner)| **owner == peer) {
            *value = value.read(&mut bytes).ok_or_else(|| other_model(rank, size, peer))?;
        }
        if !bytes.is_empty() {
            return Err(other_model(rank, size, peer));
        }
    }
    Ok(values)
}

fn other_model(rank: usize, size: usize, peer: usize) -> ExchangeError {
    let why = "sends gradients of other sizes; do all ranks train the same model?".into();
    ExchangeError::Peer { rank, size, peer, why }
}
