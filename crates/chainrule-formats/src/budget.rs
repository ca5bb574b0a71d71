//! Memory limit of a reader, in proportion to the file, whatever it claims.

use crate::source::Outcome;

/// Bytes that may still be allocated.
pub struct Budget {
    left: u64,
    file: u64,
}

impl Budget {
    /// For a file of this length. A growing vector briefly holds its old and its new memory, so 40
    /// times the length keep the peak below 64 times; small files have half a megabyte.
    pub fn of(file: u64) -> Budget {
        Budget { left: file.saturating_mul(40).saturating_add(512 << 10), file }
    }

    /// Charges bytes before their allocation.
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

    /// Reserves room for more elements, doubling as a vector does.
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
