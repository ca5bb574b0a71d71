//! Where a function has kinks.

use std::fmt;
use std::panic::Location;

/// A place where a function is not smooth.
#[derive(Clone, Debug, PartialEq)]
pub struct Kink {
    /// The op.
    pub op: &'static str,
    /// The line that called it.
    pub location: &'static Location<'static>,
    /// The element of its result.
    pub index: Vec<usize>,
    /// What the op was given there, if its inputs have the result's shape.
    pub at: Vec<f64>,
    /// How many elements of its result lie on a kink or beside one.
    pub count: usize,
}

impl fmt::Display for Kink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kink of {} at {:?}", self.op, self.index)?;
        if !self.at.is_empty() {
            write!(f, ", given {:?}", self.at)?;
        }
        if self.count > 1 {
            write!(f, " and {} more", self.count - 1)?;
        }
        write!(f, " ({})", self.location)
    }
}
