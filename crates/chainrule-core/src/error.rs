//! The one error type of the library.
//!
//! Every variant names the op and the shapes or values at fault, and says what to do. [`Error::At`]
//! adds the line of the caller; the panicking methods leave it off, since a panic prints the line
//! itself.

use std::fmt;
use std::panic::Location;
use std::path::PathBuf;

use crate::dtype::DType;
use crate::shape::Shape;

/// Result of every fallible function of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the library. The text is one line that says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The shapes of the inputs do not fit the op or each other.
    #[error("{op}: {}: {why}", Shapes(shapes))]
    Shape {
        /// The op that was called.
        op: &'static str,
        /// The shapes of its inputs.
        shapes: Vec<Shape>,
        /// The mismatch, and the remedy.
        why: String,
    },
    /// The op is not defined for the dtypes of its inputs.
    #[error("{op}: {}: {why}", DTypes(dtypes))]
    DType {
        /// The op that was called.
        op: &'static str,
        /// The dtypes of its inputs.
        dtypes: Vec<DType>,
        /// The dtypes that the op takes instead.
        why: String,
    },
    /// An argument that is not a tensor is out of its range.
    #[error("{op}: {why}")]
    Argument {
        /// The op or function that was called.
        op: &'static str,
        /// The argument, its value, and the remedy.
        why: String,
    },
    /// A matrix has no such decomposition.
    #[error("{op}: {why}")]
    Decomposition {
        /// The op that was called.
        op: &'static str,
        /// The property that the matrix lacks, and which matrix of a batch it is.
        why: String,
    },
    /// The backward or forward pass cannot go on.
    #[error("{op}: {why}")]
    Gradient {
        /// The op or function at which it stopped.
        op: &'static str,
        /// The reason and the way out.
        why: String,
    },
    /// There is not enough memory for the result.
    #[error(
        "{op}: no memory for {bytes} bytes (shape {shape}); use a smaller size or a narrower dtype"
    )]
    OutOfMemory {
        /// The op that was called.
        op: &'static str,
        /// The shape of the result.
        shape: Shape,
        /// Its size in bytes.
        bytes: usize,
    },
    /// A file could not be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem, and the remedy.
        why: String,
    },
    /// A random draw was asked for with impossible arguments.
    #[error(transparent)]
    Random(#[from] crate::rng::RngError),
    /// An error with the line of the call that led to it.
    #[error("{source} (called at {location})")]
    At {
        /// The error itself.
        source: Box<Error>,
        /// The line of the caller.
        location: &'static Location<'static>,
    },
}

impl Error {
    /// An error about an argument.
    pub fn argument(op: &'static str, why: impl Into<String>) -> Self {
        Error::Argument { op, why: why.into() }
    }

    /// An error about a matrix that has no such decomposition.
    pub fn decomposition(op: &'static str, why: impl Into<String>) -> Self {
        Error::Decomposition { op, why: why.into() }
    }

    /// An error about shapes.
    pub fn shape(op: &'static str, shapes: &[&Shape], why: impl Into<String>) -> Self {
        Error::Shape { op, shapes: shapes.iter().map(|s| **s).collect(), why: why.into() }
    }

    /// An error about dtypes.
    pub fn dtype(op: &'static str, dtypes: &[DType], why: impl Into<String>) -> Self {
        Error::DType { op, dtypes: dtypes.to_vec(), why: why.into() }
    }

    /// An error in a backward or forward pass.
    pub fn gradient(op: &'static str, why: impl Into<String>) -> Self {
        Error::Gradient { op, why: why.into() }
    }

    /// The error without the line of the caller.
    pub fn kind(&self) -> &Error {
        match self {
            Error::At { source, .. } => source.kind(),
            other => other,
        }
    }

    /// The error with the line of the caller, unless it has one.
    #[doc(hidden)]
    pub fn at(self, location: &'static Location<'static>) -> Self {
        match self {
            Error::At { .. } => self,
            other => Error::At { source: Box::new(other), location },
        }
    }
}

/// Ends a panicking method with the error's text; the panic itself names the caller's line.
#[cold]
#[track_caller]
#[doc(hidden)]
pub fn raise(error: Error) -> ! {
    panic!("{}", error.kind())
}

struct Shapes<'a>(&'a [Shape]);

impl fmt::Display for Shapes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.len() == 1 { "shape " } else { "shapes " })?;
        list(f, self.0)
    }
}

struct DTypes<'a>(&'a [DType]);

impl fmt::Display for DTypes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.len() == 1 { "dtype " } else { "dtypes " })?;
        list(f, self.0)
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(if i + 1 == items.len() { " and " } else { ", " })?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}
