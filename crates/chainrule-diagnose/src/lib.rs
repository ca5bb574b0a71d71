//! Why a training program does not learn.

#![forbid(unsafe_code)]

mod cause;
mod change;
pub mod data;
pub mod description;
mod detect;
mod diagnosis;
mod error;
mod lab;
mod model;
pub mod run;
mod script;
mod search;
mod trial;
mod watch;

pub use cause::Cause;
pub use change::Change;
pub use detect::Suspicion;
pub use diagnosis::{Reason, Report, diagnose};
pub use error::Result;
pub use lab::{Bench, Experiment, Trial};
pub use script::script;
pub use search::{Found, Search};
pub use trial::{Course, Effort, Proof, Trainable, prove};

#[cfg(test)]
mod tests;
