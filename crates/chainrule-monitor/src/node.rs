//! The ops of a loss, as a picture of its graph names them.

/// An op of the graph of a loss, as an event file of TensorBoard takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNode {
    /// Its name; the parts between slashes become boxes that can be opened.
    pub name: String,
    /// Its op.
    pub op: String,
    /// The names of the nodes that it takes.
    pub inputs: Vec<String>,
}
