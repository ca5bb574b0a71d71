//! The commands, one a file. Each gets its arguments, already checked, and prints its results.

pub mod bench;
pub mod check;
pub mod eval;
pub mod explain;
pub mod sample;
pub mod train_names;
