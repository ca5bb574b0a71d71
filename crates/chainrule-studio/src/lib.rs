//! The studio of `chainrule`: a page on which one sees a backward pass, and what answers it.
//!
//! [`Engine`] answers requests, JSON to JSON, and does no input or output, so that it runs in a
//! process as well as in a page. [`Studio`] serves the page to a browser of the same machine, and a
//! [`Hub`] shows it trainings while they run.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod engine;
#[allow(missing_docs, reason = "for the engine alone")]
mod language;

#[cfg(feature = "server")]
mod live;
#[cfg(feature = "server")]
mod server;

pub use engine::{Captured, Engine, Given, HandGradients, Reply, check, view};
#[cfg(feature = "server")]
pub use live::{Branch, Hub, LiveRun, RunFiles, SteeredSchedule};
#[cfg(feature = "server")]
pub use server::{Studio, export};
