//! Nested containers of tensors, as PyTorch saves them.

use std::sync::Arc;

/// A value of a `.pt` file: containers, simple values, and references to tensors.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// The tensor of this index in [`crate::Weights::entries`].
    Tensor(usize),
    /// A dictionary in insertion order.
    Dict(Vec<(Tree, Tree)>),
    /// A list.
    List(Vec<Tree>),
    /// A tuple.
    Tuple(Vec<Tree>),
    /// A text.
    Str(Arc<str>),
    /// An integer.
    Int(i64),
    /// An integer beyond 64 bits, by its decimal digits.
    LargeInt(Arc<str>),
    /// A float.
    Float(f64),
    /// A bool.
    Bool(bool),
    /// Python's `None`.
    None,
}
