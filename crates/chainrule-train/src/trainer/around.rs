//! The monitor for a hand-written loop.

use super::engine::kept;
use super::watch::Watch;
use crate::StepEvent;
use crate::error::Result;
use crate::monitor::{Monitor, Symptom};
use crate::nn::{LayerOutput, Module};
use crate::optim::Optimizer;
use crate::tensor::Tensor;

/// Monitors an existing training loop: parameters, gradients and updates, and outputs of layers
/// with their gradients. The loop has the same bits.
///
/// ```
/// use chainrule::monitor::{Monitor, SymptomKind};
/// use chainrule::nn::{Layer, Linear, Module, Sequential, Tanh};
/// use chainrule::optim::{Optimizer, Sgd};
/// use chainrule::train::WatchedLoop;
/// use chainrule::{DType, Generator, Tensor};
///
/// let g = &mut Generator::manual_seed(1);
/// let (first, last) = (Linear::new(4, 16, g), Linear::new(16, 1, g));
/// let model = Sequential::new().with(first).with(Tanh).with(last);
/// let mut sgd = Sgd::new(model.parameters(), 50.0);
/// let mut watch = WatchedLoop::new(&model, Monitor::new(), Some(0.02));
/// let (x, y) = (Tensor::randn([32, 4], DType::F32, g), Tensor::randn([32, 1], DType::F32, g));
/// for _ in 0..30 {
///     let loss = watch.forward(|| model.forward(&x).try_mse(&y))?;
///     sgd.zero_grad();
///     loss.backward();
///     watch.step(&mut sgd, &loss)?;
/// }
/// let findings = watch.monitor().findings();
/// assert!(findings.iter().any(|seen| seen.kind == SymptomKind::RateTooHigh));
/// assert_eq!(watch.monitor().outputs()[1].name(), "1");
/// # Ok::<(), chainrule::Error>(())
/// ```
pub struct WatchedLoop<'m> {
    module: &'m dyn Module,
    watch: Watch,
    layers: Vec<LayerOutput>,
}

impl<'m> WatchedLoop<'m> {
    /// Monitors the training of a module. Looks take `share` of the time after the first ten; with
    /// `None` the monitor looks whenever it is due.
    pub fn new(module: &'m dyn Module, monitor: Monitor, share: Option<f64>) -> WatchedLoop<'m> {
        WatchedLoop { module, watch: Watch::new(monitor, share), layers: Vec::new() }
    }

    /// Computes the loss by `f`, and records outputs of layers if this step is monitored.
    ///
    /// Errors if `f` does.
    pub fn forward(&mut self, f: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
        self.layers.clear();
        if !self.watch.monitor.is_due() {
            return f();
        }
        let (loss, layers) = kept(self.module, f)?;
        self.watch.computation(&loss);
        self.layers = layers;
        Ok(loss)
    }

    /// Steps the optimizer after the backward pass of that loss; returns the new symptoms.
    ///
    /// Errors if the optimizer's step does.
    pub fn step(&mut self, optimizer: &mut dyn Optimizer, loss: &Tensor) -> Result<Vec<Symptom>> {
        let is_due = self.watch.monitor.is_due();
        if is_due {
            self.watch.outputs(loss, &self.layers);
            self.watch.before(self.module);
        }
        optimizer.step()?;
        if is_due {
            self.watch.after(self.module);
        }
        let (step, loss) = (self.watch.monitor.steps() + 1, loss.try_item()?);
        let (epoch, lr, grad_norm, examples) = (None, optimizer.lr(), None, 0);
        let event = StepEvent { step, epoch, loss, lr, grad_norm, examples };
        let has_looked = self.watch.end(&event, None);
        Ok(self.watch.news(has_looked, !loss.is_finite()))
    }

    /// Records a validation loss.
    pub fn validated(&mut self, loss: f64) {
        self.watch.monitor.validated(loss);
    }

    /// The monitor with its records.
    pub fn monitor(&self) -> &Monitor {
        &self.watch.monitor
    }
}
