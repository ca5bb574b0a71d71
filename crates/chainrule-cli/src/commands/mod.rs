//! The commands, one a file. Each gets its arguments, already checked, and prints its results.

pub mod bench;
pub mod check;
pub mod compare;
pub mod completions;
pub mod data;
pub mod diagnose;
pub mod eval;
pub mod explain;
pub mod export;
pub mod onnx;
pub mod predict;
mod python;
pub mod sample;
pub mod studio;
pub mod text;
pub mod train;
pub mod watch;
pub mod weights;
