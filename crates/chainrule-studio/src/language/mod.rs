//! The language of the page: a small part of Python with the names of NumPy and PyTorch. A
//! program's ops are on the tape, and each node knows its line.
//!
//! - [`lexer`], [`parser`], [`syntax`]: from the text to the tree.
//! - [`interpreter`]: runs the tree; `operators`, `indexing` and `functions` compute, the last by
//!   the names that the table of ops has for Python, so that every op can be called.

mod arguments;
mod calls;
mod datasets;
pub mod fault;
mod functions;
mod indexing;
pub mod interpreter;
mod lexer;
pub mod lines;
mod operators;
pub mod parser;
pub mod syntax;
pub mod value;
