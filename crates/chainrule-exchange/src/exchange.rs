//! The way between ranks.

use crate::Result;

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

    /// Returns when all ranks are here.
    fn barrier(&mut self) -> Result<()> {
        self.all_gather(&[]).map(drop)
    }

    /// Tells the peers why this rank ends, so that theirs is the same reason. Nothing else may be
    /// called afterwards.
    fn abort(&mut self, why: &str);
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
