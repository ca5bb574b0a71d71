//! Causes of a training that does not learn, proved by short runs.
//!
//! Users see [`prove`] and its types, and the checks of [`before`], through `chainrule::diagnose`;
//! the rest is public for the command alone and promises nothing.

#![forbid(unsafe_code)]

mod before;
mod cause;
mod change;
mod curves;
#[doc(hidden)]
pub mod data;
#[doc(hidden)]
pub mod description;
mod detect;
mod diagnosis;
mod error;
mod lab;
mod model;
mod reason;
#[doc(hidden)]
pub mod run;
mod script;
mod search;
mod trial;
mod watch;

pub use before::{before, mixes_examples, sees_the_future};
pub use cause::Cause;
pub use change::Change;
#[doc(hidden)]
pub use curves::Curve;
pub use detect::Suspicion;
#[doc(hidden)]
pub use diagnosis::{Report, diagnose};
#[doc(hidden)]
pub use error::Result;
#[doc(hidden)]
pub use lab::{Bench, Experiment, Trial};
pub use reason::Reason;
#[doc(hidden)]
pub use script::script;
#[doc(hidden)]
pub use search::{Found, Search};
pub use trial::{Course, Effort, Proof, Trainable, prove};

#[cfg(test)]
mod tests;
