//! Weights by name, checkpoints, and atomic writes.

mod atomic;
mod checkpoint;
mod safetensors;

#[doc(hidden)]
pub use self::atomic::read_bounded;
pub use self::atomic::{sweep, write_atomic};
pub use self::checkpoint::{Checkpoint, CheckpointFolder, Kept};
#[doc(hidden)]
pub use self::safetensors::{CheckpointEntry, save_pieces};
pub use self::safetensors::{load, parse, save, serialize, serialize_checked};
