//! The monitor: it is told the steps of a training, and says what goes wrong.

use std::collections::{HashMap, VecDeque};

use chainrule_core::tensor::Tensor;

use crate::detect;
use crate::series::{LossCurve, Series};
use crate::symptom::Symptom;
use crate::track::{OutputKind, OutputTrack, ParameterTrack};

/// Points of a curve that are kept.
const CURVE: usize = 512;

/// Losses of the last steps that are kept one by one.
const RECENT: usize = 64;

/// Watches a training. Parameters, gradients, updates and outputs are given at sampled steps (see
/// [`Monitor::is_due`]), losses at every step; memory is bounded.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::monitor::{Monitor, SymptomKind};
/// use chainrule::optim::{Optimizer, Sgd};
///
/// let w = Tensor::from([[1.0f64, 2.0], [3.0, 4.0]]).parameter();
/// let mut sgd = Sgd::new(vec![w.clone()], 5.0);
/// let mut monitor = Monitor::new();
/// for _ in 0..20 {
///     sgd.zero_grad();
///     let loss = w.square().sum_all();
///     loss.backward();
///     let is_due = monitor.is_due();
///     if is_due {
///         monitor.parameter("w", &w, w.grad().as_ref());
///     }
///     sgd.step()?;
///     if is_due {
///         monitor.updated("w", &w);
///     }
///     monitor.step(Some(loss.item()), Some(sgd.lr()));
/// }
/// assert_eq!(monitor.findings()[0].kind, SymptomKind::RateTooHigh);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Monitor {
    pub(crate) every: u64,
    next: u64,
    pub(crate) steps: u64,
    pub(crate) parameters: Vec<ParameterTrack>,
    pub(crate) outputs: Vec<OutputTrack>,
    parameter_places: HashMap<String, usize>,
    output_places: HashMap<String, usize>,
    pub(crate) losses: LossCurve,
    pub(crate) first_loss: Option<f64>,
    pub(crate) recent: VecDeque<f64>,
    pub(crate) bad_loss: Option<(u64, f64)>,
    pub(crate) spike: Option<(u64, f64, f64)>,
    pub(crate) rates: Series<f64>,
    pub(crate) first_rate: Option<f64>,
    pub(crate) validations: Series<(f64, f64)>,
    pub(crate) norms: Series<(f64, f64)>,
    pub(crate) clipped: (u64, u64),
    pub(crate) stale: (u64, u64),
    pub(crate) constant: Option<f64>,
}

impl Default for Monitor {
    fn default() -> Monitor {
        Monitor::new()
    }
}

impl Monitor {
    /// Samples every 100th step, and more often at the beginning.
    pub fn new() -> Monitor {
        Monitor {
            every: 100,
            next: 0,
            steps: 0,
            parameters: Vec::new(),
            outputs: Vec::new(),
            parameter_places: HashMap::new(),
            output_places: HashMap::new(),
            losses: LossCurve::new(CURVE),
            first_loss: None,
            recent: VecDeque::new(),
            bad_loss: None,
            spike: None,
            rates: Series::new(CURVE),
            first_rate: None,
            validations: Series::new(CURVE),
            norms: Series::new(CURVE),
            clipped: (0, 0),
            stale: (0, 0),
            constant: None,
        }
    }

    /// Samples every `n`th step at the latest; 1 for all steps, and 0 counts as 1.
    pub fn every(mut self, n: u64) -> Monitor {
        self.every = n.max(1);
        self
    }

    /// Goes on after that many steps.
    pub fn from_step(mut self, step: u64) -> Monitor {
        (self.steps, self.next) = (step, step);
        self
    }

    /// Goes on from that step, if it is later than the steps so far.
    pub fn go_to(&mut self, step: u64) {
        self.steps = self.steps.max(step);
        self.next = self.next.max(step);
    }

    /// Looks at no tensors before that step: a way to limit the time that it takes.
    pub fn rest_until(&mut self, step: u64) {
        self.next = self.next.max(step);
    }

    /// Number of steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether the tensors of the next step are wanted.
    pub fn is_due(&self) -> bool {
        self.steps >= self.next
    }

    /// A trained parameter and its gradient before the update of a step that
    /// [is due](Monitor::is_due).
    pub fn parameter(&mut self, name: &str, value: &Tensor, gradient: Option<&Tensor>) {
        let shape = value.shape();
        let dims: Vec<usize> = shape.iter().copied().collect();
        let gradient = gradient.map(Tensor::to_f64_vec);
        let step = self.steps;
        self.parameter_track(name, &dims).begin(step, value.to_f64_vec(), gradient);
    }

    pub(crate) fn parameter_track(&mut self, name: &str, dims: &[usize]) -> &mut ParameterTrack {
        let at = *self.parameter_places.entry(name.to_owned()).or_insert_with(|| {
            self.parameters.push(ParameterTrack::new(name, dims));
            self.parameters.len() - 1
        });
        &mut self.parameters[at]
    }

    pub(crate) fn output_track(&mut self, name: &str, kind: OutputKind) -> &mut OutputTrack {
        let at = *self.output_places.entry(name.to_owned()).or_insert_with(|| {
            self.outputs.push(OutputTrack::new(name, kind));
            self.outputs.len() - 1
        });
        &mut self.outputs[at]
    }

    /// The parameter after the update.
    pub fn updated(&mut self, name: &str, value: &Tensor) {
        if let Some(&at) = self.parameter_places.get(name) {
            self.parameters[at].end(Some(&value.to_f64_vec()));
        }
    }

    /// The output of a module in training mode; its first axis counts examples.
    pub fn output(&mut self, name: &str, kind: OutputKind, value: &Tensor) {
        let dims: Vec<usize> = value.shape().iter().copied().collect();
        let step = self.steps;
        self.output_track(name, kind).add(step, &dims, &value.to_f64_vec());
    }

    /// The norm of all gradients before and after they were clipped.
    pub fn clipped(&mut self, before: f64, after: f64) {
        self.norms.push(self.steps, (before, after));
        self.clipped.1 += 1;
        self.clipped.0 += u64::from(after < 0.999 * before);
    }

    /// A backward pass, and whether it added to gradients that an update had used already.
    pub fn backward(&mut self, is_stale: bool) {
        self.stale.1 += 1;
        self.stale.0 += u64::from(is_stale);
    }

    /// The loss of the best answer that is the same for all inputs, where it is known: for classes
    /// the entropy of the labels. A training that does no better has learned nothing from inputs.
    pub fn constant_loss(&mut self, loss: f64) {
        self.constant = Some(loss).filter(|loss| loss.is_finite());
    }

    /// The loss on examples that the model does not learn from.
    pub fn validated(&mut self, loss: f64) {
        self.validated_at(self.steps, loss);
    }

    pub(crate) fn validated_at(&mut self, step: u64, loss: f64) {
        let spans = self.losses.spans();
        let tail = &spans[spans.len().saturating_sub(5)..];
        let trained = detect::median(tail.iter().map(|s| s.mean).collect()).unwrap_or(f64::NAN);
        self.validations.push(step, (loss, trained));
    }

    /// Ends a step: its loss before the update and the learning rate, where they are known.
    pub fn step(&mut self, loss: Option<f64>, rate: Option<f64>) {
        if self.is_due() {
            self.parameters.iter_mut().for_each(|p| p.end(None));
            // Often at first, and then at even distances.
            self.next = self.steps + (self.steps / 2).clamp(1, self.every);
        }
        self.note(self.steps, loss, rate);
        self.steps += 1;
    }

    /// The loss and the rate of a step.
    pub(crate) fn note(&mut self, step: u64, loss: Option<f64>, rate: Option<f64>) {
        if let Some(rate) = rate {
            self.rates.push(step, rate);
            self.first_rate.get_or_insert(rate);
        }
        if let Some(loss) = loss.filter(|loss| !loss.is_finite()) {
            self.bad_loss.get_or_insert((step, loss));
        } else if let Some(loss) = loss {
            self.note_spike(step, loss);
            self.first_loss.get_or_insert(loss);
            self.losses.push(step, loss);
            self.recent.push_back(loss);
            if self.recent.len() > RECENT {
                self.recent.pop_front();
            }
        }
    }

    fn note_spike(&mut self, step: u64, loss: f64) {
        // Small losses pass without sorting the last ones.
        let all = self.losses.spans().first().map_or(f64::INFINITY, |span| span.mean.abs());
        if self.recent.len() < RECENT || loss < 0.5 * all {
            return;
        }
        let middle = detect::median(self.recent.iter().copied().collect()).unwrap_or(loss);
        let most = self.recent.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if middle > 0.0 && loss > 10.0 * middle && loss > 3.0 * most {
            self.spike = Some((step, loss, middle));
        }
    }

    /// The parameters in the order in which they came.
    pub fn parameters(&self) -> &[ParameterTrack] {
        &self.parameters
    }

    /// The outputs in the order in which they came.
    pub fn outputs(&self) -> &[OutputTrack] {
        &self.outputs
    }

    /// The symptoms so far, the surest first; none where nothing is known to be wrong.
    pub fn findings(&self) -> Vec<Symptom> {
        detect::findings(self)
    }
}
