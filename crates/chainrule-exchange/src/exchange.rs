//! The way between ranks.

use std::sync::Arc;

use crate::{ExchangeError, Result};

/// The way between the ranks of a training, over bytes.
///
/// All ranks call the same methods in the same order. An error is final: the peers notice it as
/// the end of this rank.
pub trait Exchange: Send {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// Sends part `i` to rank `i`, and returns the parts that the ranks sent to this one, in their
    /// order; the one of this rank is its own.
    ///
    /// There is one part for each rank. Parts of other ranks may be of any length.
    fn all_to_all(&mut self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>>;

    /// Begins an exchange that [`Exchange::finish`] ends, so that a rank can compute while its
    /// bytes are under way. All that were begun are finished in the same order, on all ranks.
    ///
    /// A way that cannot do so exchanges at once, as it does if nothing is said.
    fn begin(&mut self, parts: Vec<Vec<u8>>) -> Result<Begun> {
        self.all_to_all(parts).map(Begun::done)
    }

    /// Begins to send the same bytes to all, as [`Exchange::begin`] does with parts.
    fn begin_gather(&mut self, own: Vec<u8>) -> Result<Begun> {
        self.all_gather(&own).map(Begun::done)
    }

    /// The parts of the exchange that was begun first.
    fn finish(&mut self, begun: Begun) -> Result<Vec<Vec<u8>>> {
        match begun.0 {
            State::Done(parts) => Ok(parts),
            State::Open { .. } | State::Waiting => Err(ExchangeError::Settings(
                "an exchange was begun on one way and is finished on another".into(),
            )),
        }
    }

    /// The bytes of all ranks, in their order.
    fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.all_to_all(vec![own.to_vec(); self.size()])
    }

    /// The bytes of rank `root`, on all ranks.
    fn broadcast(&mut self, bytes: &[u8], root: usize) -> Result<Vec<u8>> {
        let own = if self.rank() == root { bytes } else { &[] };
        let mut all = self.all_gather(own)?;
        Ok(all.swap_remove(root))
    }

    /// Returns when all ranks are here. Errors where one of them sends data instead.
    fn barrier(&mut self) -> Result<()> {
        let all = self.all_gather(&[])?;
        let Some(peer) = all.iter().position(|bytes| !bytes.is_empty()) else { return Ok(()) };
        let (rank, size) = (self.rank(), self.size());
        let why = "sends data where";
        let same = "only waits for it; do all run the same program?";
        self.abort(&format!("rank {peer} {why} rank {rank} {same}"));
        Err(ExchangeError::Peer { rank, size, peer, why: format!("{why} this one {same}") })
    }

    /// Tells the peers why this rank ends, so that theirs is the same reason. Nothing else may be
    /// called afterwards.
    fn abort(&mut self, why: &str);
}

/// An exchange that was begun.
#[derive(Debug)]
pub struct Begun(pub(crate) State);

#[derive(Debug)]
pub(crate) enum State {
    Done(Vec<Vec<u8>>),
    /// The number of the exchange, and the part that the rank keeps for itself.
    Open {
        call: u64,
        own: Arc<Vec<u8>>,
    },
    Waiting,
}

impl Begun {
    /// One that is done: the parts that all ranks sent to this one.
    pub fn done(parts: Vec<Vec<u8>>) -> Begun {
        Begun(State::Done(parts))
    }

    /// One that a way of another crate has under way, and finishes in the order of beginnings.
    pub fn waiting() -> Begun {
        Begun(State::Waiting)
    }

    /// The parts, if it is done.
    pub fn into_parts(self) -> Option<Vec<Vec<u8>>> {
        match self.0 {
            State::Done(parts) => Some(parts),
            _ => None,
        }
    }
}

impl<E: Exchange + ?Sized> Exchange for Box<E> {
    fn rank(&self) -> usize {
        (**self).rank()
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    fn all_to_all(&mut self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        (**self).all_to_all(parts)
    }

    fn begin(&mut self, parts: Vec<Vec<u8>>) -> Result<Begun> {
        (**self).begin(parts)
    }

    fn begin_gather(&mut self, own: Vec<u8>) -> Result<Begun> {
        (**self).begin_gather(own)
    }

    fn finish(&mut self, begun: Begun) -> Result<Vec<Vec<u8>>> {
        (**self).finish(begun)
    }

    fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        (**self).all_gather(own)
    }

    fn broadcast(&mut self, bytes: &[u8], root: usize) -> Result<Vec<u8>> {
        (**self).broadcast(bytes, root)
    }

    fn barrier(&mut self) -> Result<()> {
        (**self).barrier()
    }

    fn abort(&mut self, why: &str) {
        (**self).abort(why)
    }
}
