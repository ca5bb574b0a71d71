//! Files: weights by name.

mod safetensors;

pub use self::safetensors::{load, parse, save, serialize};
