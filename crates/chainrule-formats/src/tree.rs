//! A nest of containers around tensors, as PyTorch saves it.

use std::sync::Arc;

/// A value of a `.pt` file: containers, simple values, and places of tensors.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// The tensor of this number in [`crate::Weights::entries`].
    Tensor(usize),
    /// A dictionary in its order.
    Dict(Vec<(Tree, Tree)>),
    /// A list.
    List(Vec<Tree>),
    /// A tuple.
    Tuple(Vec<Tree>),
    /// A text.
    Str(Arc<str>),
    /// A whole number.
    Int(i64),
    /// A whole number beyond 64 bits, by its decimal digits.
    LargeInt(Arc<str>),
    /// A float.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// Python's None.
    None,
}
