//! The monitor of a training: statistics of parameters, gradients, updates and outputs over time in
//! bounded memory, and the symptoms that they show.
//!
//! A [`Monitor`] is shown each step, by the trainer or by any loop. [`Monitor::findings`] are
//! [`Symptom`]s: kind, place, step, evidence as numbers, consequence, fix and certainty. A healthy
//! training has none with a certainty above one half.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod answer;
mod detect;
mod facts;
mod forms;
mod line;
mod measures;
mod monitor;
mod node;
mod numbers;
mod penalty;
mod places;
mod record;
mod report;
mod series;
mod stats;
mod symptom;
#[cfg(feature = "tensorboard")]
mod tensorboard;
mod track;
mod turned;

pub use facts::Dependence;
pub use monitor::Monitor;
pub use node::EventNode;
pub use report::html;
pub use series::{LossCurve, LossSpan, Series};
pub use stats::Stats;
pub use symptom::{Symptom, SymptomKind};
#[cfg(feature = "tensorboard")]
pub use tensorboard::EventFile;
pub use track::{OutputKind, OutputPoint, OutputTrack, ParameterPoint, ParameterTrack};
