//! Problems of a function under check, beside its derivatives.

use std::fmt;

use super::report::Slot;
use crate::program::Place;

/// Something about the function itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// Two calls at the same point gave different values.
    NotDeterministic {
        /// The output.
        output: Slot,
        /// Index of the first difference.
        index: Vec<usize>,
        /// The two values.
        values: (f64, f64),
    },
    /// Two calls at the same point gave outputs of different number, shapes or dtypes.
    ShapesChange,
    /// The function changed an input: its value, or the gradient that it keeps.
    InputChanged {
        /// The input.
        input: usize,
    },
    /// An output or a gradient has an element that is NaN or infinite.
    NotFinite {
        /// An output, or the gradient of an input.
        what: Slot,
        /// Index of the first such element.
        index: Vec<usize>,
        /// The element.
        value: f64,
        /// The op in which it arose, and the line that called it, if it was found.
        op: Option<(&'static str, Option<Place>)>,
    },
    /// No output is a float, so there is nothing to differentiate.
    NoFloatOutput,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NotDeterministic { output, index, values: (a, b) } => write!(
                f,
                "not deterministic: {output} at {index:?} was {a:?} and then {b:?} for the same inputs (fix the seed of what is random)"
            ),
            Problem::ShapesChange => {
                f.write_str("not deterministic: two calls with the same inputs gave outputs of different shapes or dtypes")
            }
            Problem::InputChanged { input } => {
                write!(f, "the function changed input {input}: it must leave its inputs as they are")
            }
            Problem::NotFinite { what, index, value, op } => {
                write!(f, "{what} is {value} at {index:?}")?;
                match op {
                    Some((op, Some(place))) => write!(f, ": it arose in {op} ({place})"),
                    Some((op, None)) => write!(f, ": it arose in {op}"),
                    None => Ok(()),
                }
            }
            Problem::NoFloatOutput => f.write_str("no output is a float, so there is nothing to differentiate"),
        }
    }
}
