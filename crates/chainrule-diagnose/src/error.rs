//! Errors of a description: one line that names the place in it.

use chainrule_core::error::Error;

/// The result of whatever reads or runs a description.
pub type Result<T> = std::result::Result<T, Error>;

/// An error with this text.
pub(crate) fn wrong(why: impl Into<String>) -> Error {
    Error::argument("diagnose", why)
}
