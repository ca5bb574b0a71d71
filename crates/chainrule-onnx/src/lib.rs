//! chainrule's programs as ONNX models.
//!
//! A whole training step (forward, backward, update) becomes one graph of plain ops, so that any
//! runtime of ONNX trains: see [`export`]. Each op has one form, its NumPy form
//! (`Op::numpy`); this crate reads it, and the Python functions that it calls, with values of the
//! graph for its operands, and so makes nodes of what Python would compute. Functions that walk
//! elements have nodes of their own (`native`). An op without a form is written by its definition
//! in primitive ops.
//!
//! | stage | module | from | to |
//! | --- | --- | --- | --- |
//! | read | `syntax` | the text of a form | a tree |
//! | interpret | `interpret`, `numpy`, `native` | a tree, arrays | nodes |
//! | batch | `batch` | graphs of two sizes | a graph for any |
//! | write | `model`, `proto` | nodes | a file |
//!
//! The other way, [`import()`] reads a model of any origin as a function over tensors, through
//! which gradients flow: its nodes become steps (`import/plan`), each with the rule of its op
//! (`import/table`).

#![deny(missing_docs)]

mod batch;
mod elementwise;
mod export;
mod graph;
mod import;
mod interpret;
#[doc(hidden)]
pub mod lower;
mod model;
mod native;
mod numpy;
mod ops;
mod precise;
#[allow(missing_docs, reason = "their meaning is ONNX's")]
mod proto;
mod prune;
mod syntax;
mod value;

pub use export::{export, export_batched};
#[doc(hidden)]
pub use import::parse_tensor;
pub use import::{ImportedModel, InputType, import, import_bytes, ops};
pub use model::Model;
