//! The memory of freed tensors: how much is kept, and giving it back.
//!
//! A training step makes and drops the same sizes again and again, so each thread keeps the memory
//! of dropped tensors for reuse. Three limits apply:
//!
//! - A thread keeps at most four times the bytes that its tensors had in use at one time, and may
//!   always keep 256 MiB.
//! - All threads together keep at most a quarter of the memory of the machine, or of its control
//!   group.
//! - Memory of sizes that are no longer requested is freed after some tens of thousands of tensors,
//!   or of megabytes of new sizes, so a run whose shapes change does not grow.
//!
//! When an allocation fails, the memory that the thread keeps goes back to the system and it is
//! tried again. [`trim`] gives all of it back at once.
//!
//! ```
//! use chainrule::{Tensor, memory};
//! drop(Tensor::zeros([1000]));
//! assert!(memory::statistics().kept >= 4000);
//! memory::trim();
//! assert_eq!(memory::statistics().kept, 0);
//! ```

use crate::tensor::buffer::Buffer;

pub use crate::tensor::buffer::MemoryStatistics;

/// Frees the memory of dropped tensors that this thread keeps, at once; that of other threads when
/// they next drop a tensor.
pub fn trim() {
    Buffer::trim_all();
}

/// The memory of dropped tensors that this thread keeps, and how often it was reused.
pub fn statistics() -> MemoryStatistics {
    Buffer::statistics()
}
