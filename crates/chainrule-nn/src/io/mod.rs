//! Files: weights by name, checkpoints of a training, and writing without losing what was there.

mod atomic;
mod checkpoint;
mod safetensors;

pub(crate) use self::atomic::reason;
pub use self::atomic::write_atomic;
pub use self::checkpoint::{Checkpoint, CheckpointFolder, Kept};
pub use self::safetensors::{load, parse, save, serialize};
