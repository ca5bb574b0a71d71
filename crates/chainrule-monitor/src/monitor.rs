//! The monitor: it follows the steps of a training, and reports what goes wrong.

use std::collections::VecDeque;

use chainrule_core::autograd::Graph;
use chainrule_core::tensor::Tensor;

use crate::answer::Answers;
use crate::detect;
use crate::facts::Told;
use crate::measures::Measures;
use crate::node::EventNode;
use crate::numbers::{is_zero, squares, with};
use crate::places::Places;
use crate::series::{LossCurve, Series};
use crate::stats::Stats;
use crate::symptom::Symptom;
use crate::track::{OutputKind, OutputTrack, ParameterTrack};

/// Points of a curve that are kept.
const CURVE: usize = 512;

/// Losses of the last steps that are kept one by one.
const RECENT: usize = 64;

/// Ratio of a loss to the median of those before it from which on it is a spike.
pub(crate) const SPIKE: f64 = 10.0;

/// Losses kept after a spike, which show whether only one batch was responsible.
pub(crate) const AFTER: usize = 8;

/// Answers examined one by one; then one in eight is examined, and after eight times as many one in
/// 64.
const ANSWERS: u64 = 64;

/// The first look that is paired with one at the step after it.
const FIRST_PAIR: u32 = 8;

/// The largest update, relative to the weights, between gradients that count as taken at one place.
const SMALL_STEP: f64 = 0.01;

/// Samples that are kept, and the characters of each.
const SAMPLES: usize = 4;
const SAMPLE: usize = 2_000;

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
    /// The step up to which no looks are taken, noted while the second step of a pair is examined.
    later: Option<u64>,
    pub(crate) steps: u64,
    pub(crate) parameters: Vec<ParameterTrack>,
    pub(crate) outputs: Vec<OutputTrack>,
    parameter_places: Places,
    output_places: Places,
    pub(crate) losses: LossCurve,
    pub(crate) first_loss: Option<f64>,
    pub(crate) recent: VecDeque<f64>,
    pub(crate) bad_loss: Option<(u64, f64)>,
    pub(crate) spike: Option<(u64, f64, f64)>,
    pub(crate) after_spike: Vec<f64>,
    pub(crate) has_ended: bool,
    pub(crate) rates: Series<f64>,
    pub(crate) first_rate: Option<f64>,
    pub(crate) validations: Series<(f64, f64)>,
    pub(crate) norms: Series<(f64, f64)>,
    pub(crate) clipped: (u64, u64),
    pub(crate) stale: (u64, u64),
    pub(crate) constant: Option<f64>,
    pub(crate) answers: Answers,
    pub(crate) told: Told,
    pub(crate) measures: Measures,
    /// Steps and the newest texts that the model made.
    pub(crate) samples: VecDeque<(u64, String)>,
    wants_graph: bool,
    has_all_bins: bool,
    /// The computation of the loss.
    pub(crate) graph: Vec<EventNode>,
    /// The step and the norms of the newest gradient.
    pub(crate) last_norm: Option<(u64, f64, f64)>,
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
            later: None,
            steps: 0,
            parameters: Vec::new(),
            outputs: Vec::new(),
            parameter_places: Places::default(),
            output_places: Places::default(),
            losses: LossCurve::new(CURVE),
            first_loss: None,
            recent: VecDeque::new(),
            bad_loss: None,
            spike: None,
            after_spike: Vec::new(),
            has_ended: false,
            rates: Series::new(CURVE),
            first_rate: None,
            validations: Series::new(CURVE),
            norms: Series::new(CURVE),
            clipped: (0, 0),
            stale: (0, 0),
            constant: None,
            answers: Answers::default(),
            told: Told::default(),
            measures: Measures::default(),
            samples: VecDeque::new(),
            wants_graph: false,
            has_all_bins: true,
            graph: Vec::new(),
            last_norm: None,
        }
    }

    /// Looks at every `n`th step at least; 1 for all steps, and 0 counts as 1.
    pub fn every(mut self, n: u64) -> Monitor {
        self.every = n.max(1);
        self
    }

    /// Wants [the computation of the loss](Monitor::computation), once.
    pub fn with_computation(mut self) -> Monitor {
        self.wants_graph = true;
        self
    }

    /// Takes histograms only of the looks that [the series](ParameterTrack::points) keep, which is
    /// all that a report shows; a line of each look shows none of the others then.
    pub fn with_sparse_histograms(mut self) -> Monitor {
        self.has_all_bins = false;
        self
    }

    /// Takes a histogram at each look from now on.
    pub fn take_all_histograms(&mut self) {
        self.has_all_bins = true;
    }

    /// The norm of several tensors taken as one vector: the square root of the sum of all squares.
    pub fn norm<'t>(tensors: impl IntoIterator<Item = &'t Tensor>) -> f64 {
        tensors.into_iter().map(squares).sum::<f64>().sqrt()
    }

    /// Whether all elements of a tensor are zero, as in a gradient that was reset.
    pub fn is_zero(tensor: &Tensor) -> bool {
        is_zero(tensor)
    }

    /// Whether the computation of the loss is wanted and not yet known.
    pub fn wants_computation(&self) -> bool {
        self.wants_graph && self.graph.is_empty()
    }

    /// Continues after that many steps.
    pub fn from_step(mut self, step: u64) -> Monitor {
        (self.steps, self.next) = (step, step);
        self
    }

    /// Continues from that step, if it is later than the steps so far.
    pub fn go_to(&mut self, step: u64) {
        self.steps = self.steps.max(step);
        self.next = self.next.max(step);
    }

    /// Looks at no tensors before that step, to limit the time that looks take.
    pub fn rest_until(&mut self, step: u64) {
        match self.is_first_of_pair() {
            true => self.later = Some(step),
            false => self.next = self.next.max(step),
        }
    }

    /// Whether the last look is to be followed by one at the next step: two steps in a row show the
    /// noise of gradients.
    fn is_first_of_pair(&self) -> bool {
        let looks = self.looks();
        looks >= FIRST_PAIR && looks.is_power_of_two()
    }

    /// Number of steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Whether the tensors of the next step are wanted.
    pub fn is_due(&self) -> bool {
        self.steps >= self.next
    }

    /// Steps to go before one whose tensors are wanted; 0 if those of the next step are.
    pub fn steps_to_look(&self) -> u64 {
        self.next.saturating_sub(self.steps)
    }

    /// A trained parameter and its gradient before the update of a step that
    /// [is due](Monitor::is_due).
    pub fn parameter(&mut self, name: &str, value: &Tensor, gradient: Option<&Tensor>) {
        let step = self.steps;
        self.parameter_track(name, &value.shape()).begin(step, value, gradient);
    }

    pub(crate) fn parameter_track(&mut self, name: &str, dims: &[usize]) -> &mut ParameterTrack {
        let at = self.parameter_places.add(name);
        if at == self.parameters.len() {
            self.parameters.push(ParameterTrack::new(name, dims));
        }
        &mut self.parameters[at]
    }

    pub(crate) fn output_track(&mut self, name: &str, kind: OutputKind) -> &mut OutputTrack {
        let at = self.output_places.add(name);
        if at == self.outputs.len() {
            self.outputs.push(OutputTrack::new(name, kind));
        }
        &mut self.outputs[at]
    }

    /// The parameter after the update.
    pub fn updated(&mut self, name: &str, value: &Tensor) {
        if let Some(at) = self.parameter_places.find(name) {
            self.parameters[at].end(Some(value), self.has_all_bins);
        }
    }

    /// The output of a module in training mode; its first axis counts examples.
    pub fn output(&mut self, name: &str, kind: OutputKind, value: &Tensor) {
        let (step, has_all_bins, shape) = (self.steps, self.has_all_bins, value.shape());
        let track = self.output_track(name, kind);
        with(value, |all| track.add(step, &shape, all, has_all_bins));
    }

    /// As [`Monitor::output`], for a module whose result is that of another one, which was shown in
    /// this step.
    pub fn same_output(&mut self, name: &str, kind: OutputKind, of: &str) {
        let step = self.steps;
        let Some(other) = self.output_places.find(of).filter(|_| name != of) else { return };
        let other = self.outputs[other].units();
        self.output_track(name, kind).follow(step, other);
    }

    /// The gradient of the other output belongs to this one too.
    pub fn same_output_gradient(&mut self, name: &str, of: &str) {
        let step = self.steps;
        let Some(other) = self.output_places.find(of).filter(|_| name != of) else { return };
        let latest = self.outputs[other].latest.as_ref().filter(|latest| latest.0 == step);
        let gradient = latest.and_then(|latest| latest.1.gradient.clone());
        if let (Some(at), Some(gradient)) = (self.output_places.find(name), gradient) {
            self.outputs[at].set_gradient(step, gradient);
        }
    }

    /// The computation of the loss, for the event files of TensorBoard.
    pub fn computation(&mut self, graph: &Graph) {
        let all = graph.tensors();
        let name = |i: usize| {
            let t = &all[i];
            match (&t.name, t.op) {
                (Some(name), _) => format!("{}_{i}", name.replace(char::is_whitespace, "_")),
                (None, op) => format!("{}_{i}", op.unwrap_or("constant")),
            }
        };
        let node = |(i, t): (usize, &chainrule_core::autograd::GraphTensor)| EventNode {
            name: name(i),
            op: t.op.unwrap_or(if t.requires_grad { "parameter" } else { "constant" }).to_owned(),
            inputs: t.inputs.iter().map(|i| name(*i)).collect(),
        };
        self.graph = all.iter().enumerate().map(node).collect();
    }

    /// A text that the model made; the newest few are kept for the report.
    pub fn sampled(&mut self, text: &str) {
        self.samples.push_back((self.steps, text.chars().take(SAMPLE).collect()));
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
    }

    /// Whether [`Monitor::computation`] was called.
    pub fn has_computation(&self) -> bool {
        !self.graph.is_empty()
    }

    /// The gradient of a module's output that was shown in this step.
    pub fn output_gradient(&mut self, name: &str, gradient: &Tensor) {
        let (step, has_all_bins) = (self.steps, self.has_all_bins);
        if let Some(at) = self.output_places.find(name) {
            let track = &mut self.outputs[at];
            with(gradient, |all| track.add_gradient(step, all, has_all_bins));
        }
    }

    /// The norm of all gradients before and after they were clipped.
    pub fn clipped(&mut self, before: f64, after: f64) {
        self.norms.push(self.steps, (before, after));
        self.last_norm = Some((self.steps, before, after));
        self.told.emptied.1 += u64::from(before > 0.0);
        self.told.emptied.0 += u64::from(before > 0.0 && after == 0.0);
        self.clipped.1 += 1;
        self.clipped.0 += u64::from(after < 0.999 * before);
    }

    /// A backward pass that started from no gradients, or adds to those of the same step.
    pub fn backward(&mut self) {
        self.stale.1 += 1;
    }

    /// A backward pass that added to gradients that an update had used already.
    pub fn stale_backward(&mut self) {
        self.backward();
        self.stale.0 += 1;
    }

    /// The loss of the best constant answer, where it is known: for classes, the entropy of the
    /// labels. A training that does no better has learned nothing from its inputs.
    pub fn constant_loss(&mut self, loss: f64) {
        self.constant = Some(loss).filter(|loss| loss.is_finite());
    }

    /// The last output of a model, the gradient that came back to it, and the loss; `bounds` are
    /// those of the module that gave the output. From these the form of the loss and the targets
    /// are recovered, if the form is a usual one; [`Monitor::constant_loss`] is then known.
    pub fn answer(
        &mut self,
        loss: f64,
        output: &Tensor,
        gradient: &Tensor,
        bounds: Option<(f64, f64)>,
    ) {
        let dims: Vec<usize> = output.shape().iter().copied().collect();
        self.answers.bounds = bounds;
        if self.passes_over_answer() {
            return;
        }
        self.answers.told += 1;
        self.answers.add(self.steps, loss, &dims, &output.to_f64_vec(), &gradient.to_f64_vec());
        match self.answers.constant() {
            Some(loss) => {
                self.answers.gave_constant = true;
                self.constant_loss(loss);
            }
            // It covered only part of the targets.
            None if self.answers.gave_constant && !self.answers.is_whole() => {
                self.answers.gave_constant = false;
                self.constant = None;
            }
            None => {}
        }
    }

    /// Whether the next answer need not be shown, since after many alike only a few are examined.
    /// It counts as shown then.
    pub fn passes_over_answer(&mut self) -> bool {
        let next = self.answers.told + 1;
        let every = if next > 8 * ANSWERS { ANSWERS } else { ANSWERS / 8 };
        let passes = next > ANSWERS && !next.is_multiple_of(every);
        self.answers.told += u64::from(passes);
        passes
    }

    /// The training is over, so its result can be judged.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Ends a step: its loss before the update and the learning rate, where they are known.
    pub fn step(&mut self, loss: Option<f64>, rate: Option<f64>) {
        if self.is_due() {
            let has_all_bins = self.has_all_bins;
            self.parameters.iter_mut().for_each(|p| p.end(None, has_all_bins));
            self.note_neighbours();
            self.note_norm();
            // Frequent at first, then at even distances.
            self.next = match self.is_first_of_pair() {
                true => self.steps + 1,
                false => self.steps + (self.steps / 2).clamp(1, self.every),
            };
            self.next = self.next.max(self.later.take().unwrap_or(0));
        }
        self.note(self.steps, loss, rate);
        self.steps += 1;
    }

    /// The norm of all gradients of this step, if the caller gave none because nothing clips them.
    fn note_norm(&mut self) {
        let step = self.steps;
        let here = self.parameters.iter().filter_map(|p| p.latest.as_ref().filter(|l| l.0 == step));
        let squares: Vec<f64> =
            here.filter_map(|(_, p)| Some(p.gradient.as_ref()?.norm().powi(2))).collect();
        if squares.is_empty() || self.last_norm.is_some_and(|norm| norm.0 == step) {
            return;
        }
        let norm = squares.iter().sum::<f64>().sqrt();
        self.clipped(norm, norm);
    }

    /// Two steps in a row act as the halves of a batch twice as large, as long as the weights
    /// hardly move.
    fn note_neighbours(&mut self) {
        let step = self.steps;
        let (mut norms, mut products, mut before, mut moved) = (0.0, 0.0, 0.0, 0.0f64);
        for p in &self.parameters {
            let Some((at, point)) = &p.latest else { return };
            let (Some(g), Some((last, product, squares))) = (&point.gradient, p.neighbour) else {
                return;
            };
            if *at != step || last + 1 != step {
                return;
            }
            norms += g.norm().powi(2);
            (products, before) = (products + product, before + squares);
            let update = point.update.as_ref().map_or(0.0, Stats::rms);
            moved = moved.max(update / point.value.rms().max(1e-12));
        }
        if norms > 0.0 && moved < SMALL_STEP {
            let half = (norms + before) / 2.0;
            let whole = (norms + before + 2.0 * products) / 4.0;
            self.gradient_noise((1.0, half), (2.0, whole));
        }
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
        if self.spike.is_some() && self.after_spike.len() < AFTER {
            self.after_spike.push(loss);
        }
        let all = self.losses.spans().first().map_or(f64::INFINITY, |span| span.mean.abs());
        if self.recent.len() < RECENT || loss < 0.5 * all {
            return;
        }
        // Nearly all losses pass by the last one alone, and most others without sorting.
        if self.recent.back().is_some_and(|last| loss <= 3.0 * last) {
            return;
        }
        let most = self.recent.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if loss <= 3.0 * most {
            return;
        }
        let middle = detect::median(self.recent.iter().copied().collect()).unwrap_or(loss);
        if middle > 0.0 && loss > SPIKE * middle {
            self.spike = Some((step, loss, middle));
            self.after_spike.clear();
        }
    }

    /// Steps at which parameters were looked at.
    pub(crate) fn looks(&self) -> u32 {
        self.parameters.iter().map(|p| p.counts.points).max().unwrap_or(0)
    }

    /// The parameters in order of appearance.
    pub fn parameters(&self) -> &[ParameterTrack] {
        &self.parameters
    }

    /// The outputs in order of appearance.
    pub fn outputs(&self) -> &[OutputTrack] {
        &self.outputs
    }

    /// The symptoms so far, the most certain first; empty if nothing is known to be wrong.
    pub fn findings(&self) -> Vec<Symptom> {
        detect::findings(self)
    }
}
