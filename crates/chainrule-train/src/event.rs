//! The events of a training, as one typed stream.

use crate::error::Result;
use crate::monitor::{Monitor, Symptom};

/// Something that happened in a training.
///
/// More kinds may come, so a listener passes over what it does not know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// It begins, or goes on after `step` steps.
    Started {
        /// Steps done before.
        step: u64,
        /// Steps at most.
        steps: u64,
        /// Steps of an epoch, if there are epochs.
        per_epoch: Option<u64>,
        /// Number of trained numbers.
        parameters: usize,
        /// Unit of [`StepEvent::examples`]: `examples`, `tokens`.
        counted: &'static str,
    },
    /// A step is done.
    Step(StepEvent),
    /// The monitor looked at the tensors of a step.
    Looked {
        /// The step, from 1.
        step: u64,
        /// All that it saw; [`Monitor::line`] is this step.
        monitor: &'a Monitor,
    },
    /// The monitor found something that goes wrong, which it had not found before.
    Found {
        /// After this many steps.
        step: u64,
        /// The symptom.
        symptom: &'a Symptom,
    },
    /// The model was measured.
    Evaluated {
        /// After this many steps.
        step: u64,
        /// After this many epochs, if there are epochs.
        epoch: Option<f64>,
        /// The measures by name.
        metrics: &'a [(&'static str, f64)],
        /// Duration in seconds.
        seconds: f64,
        /// Whether it is the best so far.
        is_best: bool,
    },
    /// Something that the model made, to be shown.
    Sampled {
        /// After this many steps.
        step: u64,
        /// The text.
        text: &'a str,
    },
    /// A checkpoint is about to be saved: what was heard before must be safe on the disk.
    Saving {
        /// After this many steps.
        step: u64,
    },
    /// A checkpoint is saved, while the training went on.
    Saved {
        /// After this many steps.
        step: u64,
        /// Whether it was saved as the best too.
        is_best: bool,
    },
    /// It has ended.
    Ended {
        /// After this many steps.
        step: u64,
        /// The end.
        how: &'a End,
    },
}

/// One step of a training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepEvent {
    /// Its number, from 1.
    pub step: u64,
    /// The epochs done after it, if there are epochs.
    pub epoch: Option<f64>,
    /// The mean loss of its examples, before the update.
    pub loss: f64,
    /// The learning rate of the update.
    pub lr: f64,
    /// The norm of the gradients before they were clipped, if they are clipped.
    pub grad_norm: Option<f64>,
    /// Number of examples (or symbols) it learned from.
    pub examples: u64,
}

/// The end of a training.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum End {
    /// All steps are done.
    Finished,
    /// Somebody asked it to stop.
    Stopped,
    /// The measure has not become better for too long.
    NoBetter {
        /// Number of measurements since the best one.
        evaluations: u64,
    },
    /// A loss was infinite or NaN. The model is as it was before the update that spoilt it.
    NotFinite {
        /// The step of that loss.
        step: u64,
        /// The loss.
        loss: f64,
        /// The first place that went wrong.
        why: String,
    },
}

/// Somebody who hears the events of a training: a progress bar, a file of metrics.
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
    /// Called for each event, in order. An error ends the training after the step that it belongs
    /// to.
    fn hear(&mut self, event: &Event<'_>) -> Result<()>;
}

impl<F: FnMut(&Event<'_>) -> Result<()>> Listener for F {
    fn hear(&mut self, event: &Event<'_>) -> Result<()> {
        self(event)
    }
}

/// Several listeners, who hear each event one after the other.
#[derive(Default)]
pub struct Listeners<'a> {
    all: Vec<&'a mut dyn Listener>,
}

impl<'a> Listeners<'a> {
    /// Nobody.
    pub fn new() -> Listeners<'a> {
        Listeners::default()
    }

    /// With one more.
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
