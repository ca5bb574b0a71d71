//! Events of a training run, as one typed stream.

use crate::error::Result;
use crate::monitor::{Monitor, Symptom};

/// An event of a training run.
///
/// More kinds may follow, so a listener ignores unknown ones.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The run starts, or resumes after `step` steps.
    Started {
        /// Steps done before.
        step: u64,
        /// Limit on steps.
        steps: u64,
        /// Steps per epoch, if there are epochs.
        per_epoch: Option<u64>,
        /// Number of trainable elements.
        parameters: usize,
        /// Unit of [`StepEvent::examples`]: `examples`, `tokens`.
        counted: &'static str,
    },
    /// A step is done.
    Step(StepEvent),
    /// The monitor examined the tensors of a step.
    Looked {
        /// The step, from 1.
        step: u64,
        /// All its records; [`Monitor::line`] is this step's.
        monitor: &'a Monitor,
    },
    /// The monitor found a new symptom.
    Found {
        /// After this many steps.
        step: u64,
        /// The symptom.
        symptom: &'a Symptom,
    },
    /// The model was evaluated.
    Evaluated {
        /// After this many steps.
        step: u64,
        /// After this many epochs, if there are epochs.
        epoch: Option<f64>,
        /// The measures by name. The first, `train_loss`, is no measure of the model as it is now:
        /// it is the mean loss of the steps since the measurement before, of an epoch at most.
        metrics: &'a [(&'static str, f64)],
        /// The steps that `train_loss` is the mean of.
        averaged: u64,
        /// Duration in seconds.
        seconds: f64,
        /// Whether it is the best so far.
        is_best: bool,
    },
    /// A sample of the model's output.
    Sampled {
        /// After this many steps.
        step: u64,
        /// The text.
        text: &'a str,
    },
    /// A checkpoint is about to be saved: listeners flush earlier events to disk.
    Saving {
        /// After this many steps.
        step: u64,
    },
    /// A checkpoint was saved in the background.
    Saved {
        /// After this many steps.
        step: u64,
        /// Whether it was saved as the best too.
        is_best: bool,
    },
    /// The run ended.
    Ended {
        /// After this many steps.
        step: u64,
        /// The reason.
        how: &'a End,
    },
}

/// One training step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepEvent {
    /// Its number, from 1.
    pub step: u64,
    /// Epochs done after it, if there are epochs.
    pub epoch: Option<f64>,
    /// The mean loss of its examples, before the update.
    pub loss: f64,
    /// The learning rate of the update.
    pub lr: f64,
    /// Gradient norm before clipping, if gradients are clipped.
    pub grad_norm: Option<f64>,
    /// Number of examples (or tokens) in its batch.
    pub examples: u64,
}

/// The reason why a run ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum End {
    /// All steps are done.
    Finished,
    /// It was asked to stop.
    Stopped,
    /// Early stopping: the measure no longer improves.
    NoBetter {
        /// Number of measurements since the best one.
        evaluations: u64,
    },
    /// A loss was infinite or NaN. The model is restored to the state before the update that spoilt
    /// it.
    NotFinite {
        /// The step of that loss.
        step: u64,
        /// The loss.
        loss: f64,
        /// First op that went wrong.
        why: String,
    },
}

/// A listener to the events of a run: a progress bar, a file of metrics.
///
/// Any function of an event is one:
///
/// ```
/// use chainrule::train::{Event, Listener};
/// let mut losses = Vec::new();
/// let mut listener = |event: &Event<'_>| {
///     if let Event::Step(step) = event {
///         losses.push(step.loss);
///     }
///     Ok(())
/// };
/// listener.hear(&Event::Saving { step: 3 })?;
/// # Ok::<(), chainrule::Error>(())
/// ```
pub trait Listener {
    /// Called for each event, in order. An error ends the run after that step.
    fn hear(&mut self, event: &Event<'_>) -> Result<()>;
}

impl<F: FnMut(&Event<'_>) -> Result<()>> Listener for F {
    fn hear(&mut self, event: &Event<'_>) -> Result<()> {
        self(event)
    }
}

/// Several listeners, each of which receives all events.
#[derive(Default)]
pub struct Listeners<'a> {
    all: Vec<&'a mut dyn Listener>,
}

impl<'a> Listeners<'a> {
    /// No listener.
    pub fn new() -> Listeners<'a> {
        Listeners::default()
    }

    /// Adds a listener.
    pub fn with(mut self, listener: &'a mut dyn Listener) -> Listeners<'a> {
        self.all.push(listener);
        self
    }
}

impl Listener for Listeners<'_> {
    #[inline]
    fn hear(&mut self, event: &Event<'_>) -> Result<()> {
        self.all.iter_mut().try_for_each(|listener| listener.hear(event))
    }
}
