//! Training: steps, evaluation, checkpoints, and one stream of events.
//!
//! A [`Task`] is a model with its loss and its measures. A [`Trainer`] takes its batches, an
//! optimizer and a schedule, and runs. It reports [`Event`]s: a bar, a file or a history is a
//! [`Listener`]; the trainer knows none of them.
//!
//! ```
//! use chainrule::data::{Batch, DataLoader, LoaderOptions, TensorDataset};
//! use chainrule::nn::{Layer, Linear, Module};
//! use chainrule::optim::Sgd;
//! use chainrule::train::{End, Event, Task, Trainer, TrainerOptions};
//! use chainrule::{Generator, Tensor};
//! use std::sync::Arc;
//!
//! struct Line(Linear);
//!
//! impl Task for Line {
//!     fn module(&self) -> &dyn Module {
//!         &self.0
//!     }
//!     fn loss(&self, batch: &Batch) -> chainrule::Result<Tensor> {
//!         self.0.try_forward(&batch.x)?.try_mse(&batch.y)
//!     }
//! }
//!
//! let x = Tensor::from([[0.0f32], [1.0], [2.0], [3.0]]);
//! let data = TensorDataset::try_new(&x, &(&x * 2.0 + 1.0))?;
//! let batches = DataLoader::try_new(
//!     Arc::new(data),
//!     LoaderOptions { batch: 4, ..LoaderOptions::default() },
//! )?;
//! let task = Line(Linear::new(1, 1, &mut Generator::manual_seed(0)));
//! let sgd = Sgd::new(task.0.parameters(), 0.1);
//! let options = TrainerOptions { steps: 500, ..TrainerOptions::default() };
//! let trainer = Trainer::builder(&task, Box::new(sgd), Box::new(batches));
//! let mut trainer = trainer.options(options).build()?;
//!
//! let mut last = f64::NAN;
//! let mut listener = |event: &Event<'_>| {
//!     if let Event::Step(step) = event {
//!         last = step.loss;
//!     }
//!     Ok(())
//! };
//! assert_eq!(trainer.run(&mut listener, &|| false)?, End::Finished);
//! assert!(last < 1e-6 && (task.0.weight.item() - 2.0).abs() < 1e-2);
//! # Ok::<(), chainrule::Error>(())
//! ```

#![deny(missing_docs)]
#![forbid(unsafe_code)]

use chainrule_core::{dtype, error, rng, tensor};
use chainrule_monitor as monitor;
use chainrule_nn::{data, io, nn, optim};
use chainrule_program as program;

/// Ranks of a training run, and their communication.
pub use chainrule_exchange as exchange;

mod best;
mod event;
mod explain;
mod measure;
mod range;
#[doc(hidden)]
pub mod rank_values;
mod runner;
mod saver;
mod sync_norm;
mod task;
mod trainer;

pub use best::Best;
pub use event::{End, Event, Listener, Listeners, StepEvent};
pub use measure::{AverageMeter, ConfusionMatrix, accuracy};
pub use range::{RangeFound, RangeOptions};
pub use runner::ProgramRunner;
pub use sync_norm::{SharedExchange, SyncBatchNorm};
pub use task::{Evaluation, Metrics, Task};
pub use trainer::{Trainer, TrainerBuilder, TrainerOptions, WatchedLoop};
