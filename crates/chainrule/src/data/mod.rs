//! Data sets: lists of names as contexts and next symbols.

mod error;
pub mod text;

pub use error::DataError;
