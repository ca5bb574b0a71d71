//! Causes of a training that does not learn, proved by short runs.
//!
//! Users see [`prove`] and its types by way of `chainrule::diagnose`; the rest is public for the
//! command alone and promises nothing.

#![forbid(unsafe_code)]

mod cause;
mod change;
#[doc(hidden)]
pub mod data;
#[doc(hidden)]
pub mod description;
mod detect;
mod diagnosis;
mod error;
mod lab;
mod model;
#[doc(hidden)]
pub mod run;
mod script;
mod search;
mod trial;
mod watch;

pub use cause::Cause;
pub use change::Change;
pub use detect::Suspicion;
pub use diagnosis::Reason;
#[doc(hidden)]
pub use diagnosis::{Report, diagnose};
#[doc(hidden)]
pub use error::Result;
#[doc(hidden)]
pub use lab::{Bench, Experiment, Trial};
#[doc(hidden)]
pub use script::script;
#[doc(hidden)]
pub use search::{Found, Search};
pub use trial::{Course, Effort, Proof, Trainable, prove};

#[cfg(test)]
mod tests;
