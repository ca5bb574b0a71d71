//! The memory that what a file describes may take: in proportion to the file, whatever it claims.

use crate::source::Outcome;

/// Bytes that a reader may still take.
pub struct Budget {
    left: u64,
    file: u64,
}

impl Budget {
    /// For a file of this length. A vector that grows has its old and its new memory for a moment,
    /// so that 40 times the length keep the peak below 64 times; small files have half a megabyte.
    pub fn of(file: u64) -> Budget {
        Budget { left: file.saturating_mul(40).saturating_add(512 << 10), file }
    }

    /// Counts bytes that are about to be taken.
    pub fn take(&mut self, bytes: usize) -> Outcome<()> {
        match self.left.checked_sub(bytes as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(format!(
                "what its pickle makes would take far more memory than the {} bytes of the file; \
                 it is damaged or hostile",
                self.file
            )),
        }
    }

    /// Makes room for more elements, doubling as a vector does.
    pub fn grow<T>(&mut self, all: &mut Vec<T>, more: usize) -> Outcome<()> {
        let (len, room) = (all.len(), all.capacity());
        if more > room - len {
            let wanted = (len + more).max(2 * room).max(4);
            self.take((wanted - room) * size_of::<T>())?;
            all.try_reserve_exact(wanted - len).map_err(|e| e.to_string())?;
        }
        Ok(())
    }
}
