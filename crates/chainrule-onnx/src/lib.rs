//! Export of chainrule's programs to ONNX, and import of models.
//!
//! A whole training step (forward, backward, update) becomes one graph of standard ops, so that any
//! ONNX runtime trains: see [`export`]. Each op has one form, its NumPy form (`Op::numpy`); this
//! crate interprets it, and the Python functions that it calls, over graph values, and so turns
//! Python's computation into nodes. Functions that loop over elements have hand-written nodes
//! (`native`). An op without a form is expanded by its definition in primitive ops.
//!
//! | stage | module | from | to |
//! | --- | --- | --- | --- |
//! | read | `syntax` | the text of a form | a tree |
//! | interpret | `interpret`, `numpy`, `native` | a tree, arrays | nodes |
//! | batch | `batch` | graphs of two sizes | a graph for any |
//! | write | `model`, `proto` | nodes | a file |
//!
//! In the other direction, [`import()`] turns any model into a differentiable function over
//! tensors: its nodes become steps (`import/plan`), each with the rule of its op (`import/table`).

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
