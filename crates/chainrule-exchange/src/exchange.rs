//! Communication between ranks.

use std::sync::Arc;

use crate::{ExchangeError, Result};

/// A communicator of bytes between the ranks of a training run.
///
/// All ranks call the same methods in the same order. An error is final: the peers see this rank as
/// ended.
pub trait Exchange: Send {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// All-to-all: sends part `i` to rank `i`, and returns the parts from all ranks in order, with
    /// this rank's own among them.
    ///
    /// There is one part for each rank. Parts of other ranks may be of any length.
    fn all_to_all(&mut self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>>;

    /// Starts an exchange that [`Exchange::finish`] ends, so that computation overlaps with
    /// communication. All ranks finish exchanges in the order in which they started them.
    ///
    /// The default exchanges at once, for implementations without overlap.
    fn begin(&mut self, parts: Vec<Vec<u8>>) -> Result<Begun> {
        self.all_to_all(parts).map(Begun::done)
    }

    /// Starts to broadcast bytes to all ranks, as [`Exchange::begin`] does with parts.
    fn begin_gather(&mut self, own: Vec<u8>) -> Result<Begun> {
        self.all_gather(&own).map(Begun::done)
    }

    /// The parts of the oldest exchange in progress.
    fn finish(&mut self, begun: Begun) -> Result<Vec<Vec<u8>>> {
        match begun.0 {
            State::Done(parts) => Ok(parts),
            State::Open { .. } | State::Waiting => Err(ExchangeError::Settings(
                "an exchange was begun on one way and is finished on another".into(),
            )),
        }
    }

    /// All-gather: the bytes of all ranks, in order.
    fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.all_to_all(vec![own.to_vec(); self.size()])
    }

    /// Broadcast: the bytes of rank `root`, on all ranks.
    fn broadcast(&mut self, bytes: &[u8], root: usize) -> Result<Vec<u8>> {
        let own = if self.rank() == root { bytes } else { &[] };
        let mut all = self.all_gather(own)?;
        Ok(all.swap_remove(root))
    }

    /// Barrier. Errors if a rank sends data instead.
    fn barrier(&mut self) -> Result<()> {
        let all = self.all_gather(&[])?;
        let Some(peer) = all.iter().position(|bytes| !bytes.is_empty()) else { return Ok(()) };
        let (rank, size) = (self.rank(), self.size());
        let why = "sends data where";
        let same = "only waits for it; do all run the same program?";
        self.abort(&format!("rank {peer} {why} rank {rank} {same}"));
        Err(ExchangeError::Peer { rank, size, peer, why: format!("{why} this one {same}") })
    }

    /// Tells the peers why this rank ends, so that they report the same reason. No method may be
    /// called afterwards.
    fn abort(&mut self, why: &str);
}

/// An exchange in progress.
#[derive(Debug)]
pub struct Begun(pub(crate) State);

#[derive(Debug)]
pub(crate) enum State {
    Done(Vec<Vec<u8>>),
    /// Sequence number, and the part that the rank keeps for itself.
    Open {
        call: u64,
        own: Arc<Vec<u8>>,
    },
    Waiting,
}

impl Begun {
    /// A finished one: the parts from all ranks.
    pub fn done(parts: Vec<Vec<u8>>) -> Begun {
        Begun(State::Done(parts))
    }

    /// One in progress in an implementation of another crate, which finishes them in order.
    pub fn waiting() -> Begun {
        Begun(State::Waiting)
    }

    /// The parts, if it is finished.
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
