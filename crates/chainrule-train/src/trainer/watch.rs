//! Monitoring of a run, within a share of its time.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use super::Rest;
use crate::StepEvent;
use crate::data::Batch;
use crate::monitor::{Monitor, OutputKind, Symptom, SymptomKind};
use crate::nn::{LayerOutput, Module};
use crate::tensor::Tensor;
use chainrule_core::DType;
use chainrule_core::memory;
use chainrule_core::ops::OpId;

/// Initial looks, taken at any cost: faults of the setup show then.
const FREE_LOOKS: u64 = 10;

/// First look that includes expensive measurements.
const RARE: u64 = 16;

/// Looks in a row that must show a symptom before it is reported, so that none is transient.
const SEEN_BEFORE_TOLD: u32 = 3;

/// Warm-up steps in which only values that are not finite are reported.
const FIRST_TOLD: u64 = 20;

/// Limit on outputs that are followed.
const OUTPUTS: usize = 64;

/// Limit on kinds of labels that are counted.
const CLASSES: usize = 10_000;

/// Labels counted before their entropy is taken for that of all, and the number after which more
/// would hardly change it.
const MIN_LABELS: f64 = 100.0;
const MAX_LABELS: f64 = 20_000.0;

/// Looks that are all searched for symptoms; later ones only after another such share of all steps.
const SEARCHED: u64 = 64;

/// A monitor with its cost.
pub(super) struct Watch {
    pub monitor: Monitor,
    share: Option<f64>,
    began: Instant,
    first_step: u64,
    looks: u64,
    spent: f64,
    /// End of the last step, if it was not monitored, and the seconds of such a step.
    ended: Option<Instant>,
    pace: Option<f64>,
    /// Counts of labels.
    labels: BTreeMap<u64, u64>,
    has_all_labels: bool,
    /// Step from which on a look is searched for symptoms.
    next_search: u64,
    /// Number of looks in a row with a symptom, and whether it was reported.
    seen: HashMap<(SymptomKind, String), (u32, bool)>,
}

impl Watch {
    pub fn new(monitor: Monitor, share: Option<f64>) -> Watch {
        let (began, seen, labels) = (Instant::now(), HashMap::new(), BTreeMap::new());
        Watch {
            monitor,
            share,
            began,
            first_step: 0,
            looks: 0,
            spent: 0.0,
            ended: None,
            pace: None,
            labels,
            has_all_labels: false,
            next_search: 0,
            seen,
        }
    }

    /// Starts, or resumes after that many steps.
    pub fn begin(&mut self, step: u64) {
        self.monitor.go_to(step);
        (self.began, self.first_step, self.looks, self.spent) = (Instant::now(), step, 0, 0.0);
        self.ended = None;
    }

    /// Whether this look is an expensive one: the 16th, 32nd, 64th and so on. Without a share of
    /// the time the gaps are eightfold, so that looks at every step take no more of these.
    pub fn is_rare(&self) -> bool {
        let is_one = self.looks >= RARE && self.looks.is_power_of_two();
        is_one && (self.share.is_some() || (self.looks / RARE).trailing_zeros().is_multiple_of(3))
    }

    /// Labels of a batch, if the targets are classes: the best constant prediction has their
    /// entropy as its loss.
    pub fn labels(&mut self, batch: &Batch) {
        let is_done = self.has_all_labels || self.labels.len() > CLASSES;
        if batch.y.dtype() != DType::I64 || is_done {
            return;
        }
        let began = Instant::now();
        let labels = batch.y.to_f64_vec();
        for label in labels.into_iter().filter(|label| *label >= 0.0) {
            *self.labels.entry(label as u64).or_insert(0) += 1;
        }
        let all = self.labels.values().sum::<u64>() as f64;
        let part = |n: &u64| *n as f64 / all * (all / *n as f64).ln();
        // The entropy of a sample is biased below the true one, by this much for n of k kinds.
        let bias = (self.labels.len() as f64 - 1.0) / (2.0 * all);
        if all >= MIN_LABELS {
            self.monitor.constant_loss(self.labels.values().map(part).sum::<f64>() + bias);
        }
        self.has_all_labels = all >= MAX_LABELS;
        self.spend(began);
    }

    /// Records the computation of a loss, if it is due.
    pub fn computation(&mut self, loss: &Tensor) {
        if self.monitor.wants_computation()
            && let Ok(graph) = loss.try_graph()
        {
            self.monitor.computation(&graph);
        }
    }

    /// Outputs of the layers that a loss called, and of bounded ops outside of these, with their
    /// retained gradients.
    pub fn outputs(&mut self, loss: &Tensor, layers: &[LayerOutput]) {
        let began = Instant::now();
        for (name, kind, t) in looked_at(loss, layers) {
            self.monitor.output(&name, kind, &t);
            if let Some(g) = t.grad() {
                self.monitor.output_gradient(&name, &g);
            }
        }
        // The last layer's output usually enters the loss.
        if let (Some(layer), Ok(loss)) = (layers.last(), loss.try_item())
            && let Some(g) = layer.output.grad()
        {
            self.monitor.answer(loss, &layer.output, &g, layer.bounds);
        }
        self.spend(began);
    }

    /// Parameters and their gradients before an update.
    pub fn before(&mut self, module: &dyn Module) {
        let began = Instant::now();
        for (name, p) in module.named_parameters() {
            if p.requires_grad() {
                self.monitor.parameter(&name, &p, p.grad().as_ref());
            }
        }
        self.spend(began);
    }

    /// Parameters after the update.
    pub fn after(&mut self, module: &dyn Module) {
        let began = Instant::now();
        for (name, p) in module.named_parameters() {
            self.monitor.updated(&name, &p);
        }
        self.spend(began);
    }

    pub fn spend(&mut self, since: Instant) {
        self.spent += since.elapsed().as_secs_f64();
    }

    /// Validation loss among measures.
    pub fn validated(&mut self, metrics: &[(&'static str, f64)]) {
        let loss = metrics.iter().find(|(name, _)| matches!(*name, "val_loss" | "test_loss"));
        loss.into_iter().for_each(|(_, loss)| self.monitor.validated(*loss));
    }

    /// Ends a step; returns whether its tensors were monitored.
    pub fn end(&mut self, step: &StepEvent, clip: Option<f64>) -> bool {
        let was_due = self.monitor.is_due();
        if let Some((before, most)) = step.grad_norm.zip(clip) {
            self.monitor.clipped(before, before.min(most));
        }
        let elapsed = self.ended.take().map(|at| at.elapsed().as_secs_f64());
        match (was_due, elapsed, self.pace) {
            (true, _, Some(pace)) => {
                self.monitor.resources(pace, memory::statistics().in_use as f64);
            }
            (false, Some(now), before) => {
                self.pace = Some(before.map_or(now, |pace| 0.9 * pace + 0.1 * now));
            }
            _ => {}
        }
        self.monitor.step(Some(step.loss), Some(step.lr));
        self.ended = (!was_due).then(Instant::now);
        was_due
    }

    /// Delays the next look until its time is earned.
    fn put_off(&mut self) {
        self.looks += 1;
        let Some(share) = self.share.filter(|_| self.looks >= FREE_LOOKS) else { return };
        let elapsed = self.began.elapsed().as_secs_f64();
        let steps = self.monitor.steps() - self.first_step;
        let each = (elapsed - self.spent).max(1e-9) / steps.max(1) as f64;
        // Cost of the looks and one more like them, relative to the steps alone.
        let next = (self.spent * (1.0 + 1.0 / self.looks as f64) / share / each) as u64;
        // A slow first look must not block all looks of a run with short steps.
        let next = next.min(4 * steps.max(FREE_LOOKS));
        self.monitor.rest_until(self.first_step.saturating_add(next));
    }

    /// New symptoms to report; called at looks. A search takes longer than the look itself, so not
    /// every look has one.
    pub fn news(&mut self, has_looked: bool, is_bad: bool) -> Vec<Symptom> {
        if !has_looked && !is_bad {
            return Vec::new();
        }
        let steps = self.monitor.steps();
        if !is_bad && self.looks >= SEARCHED && steps < self.next_search {
            self.put_off();
            return Vec::new();
        }
        self.next_search = steps + steps / SEARCHED;
        let began = Instant::now();
        let found = self.monitor.findings();
        let mut seen = std::mem::take(&mut self.seen);
        // A symptom that vanished is counted anew, and reported once.
        let is_there =
            |key: &(SymptomKind, String)| found.iter().any(|s| s.kind == key.0 && s.place == key.1);
        seen.iter_mut().filter(|(key, _)| !is_there(key)).for_each(|(_, seen)| seen.0 = 0);
        let mut news = Vec::new();
        for symptom in found.into_iter().filter(|s| s.confidence > 0.5) {
            let is_told = seen.iter().any(|(key, seen)| key.0 == symptom.kind && seen.1);
            let (times, told) =
                seen.entry((symptom.kind, symptom.place.clone())).or_insert((0, false));
            *times += 1;
            let is_sure = is_bad
                || symptom.kind == SymptomKind::NotFinite
                || *times >= SEEN_BEFORE_TOLD && self.monitor.steps() >= FIRST_TOLD;
            if is_sure && !is_told {
                *told = true;
                news.push(symptom);
            }
        }
        self.seen = seen;
        self.spend(began);
        self.put_off();
        news
    }
}

/// Name, kind and value of layers' outputs, after those of bounded ops outside of layers.
pub(super) fn looked_at(
    loss: &Tensor,
    layers: &[LayerOutput],
) -> Vec<(String, OutputKind, Tensor)> {
    let is_apart = |t: &Tensor| !layers.iter().any(|layer| layer.output.is_same(t));
    let apart = bounded(loss).into_iter().filter(is_apart).take(OUTPUTS);
    let apart = (1..).zip(apart).map(|(number, t)| {
        let is_tanh = t.op_id() == Some(OpId::tanh);
        let (low, name) = if is_tanh { (-1, "tanh") } else { (0, "sigmoid") };
        let name = t.name().unwrap_or_else(|| format!("{name} {number}"));
        (name, OutputKind::Bounded { low, high: 1 }, t)
    });
    let layers = layers.iter().take(OUTPUTS).map(|layer| {
        let kind = match layer.bounds {
            Some((low, high)) => OutputKind::Bounded { low: low as i8, high: high as i8 },
            None => OutputKind::Any,
        };
        (layer.name.clone(), kind, layer.output.clone())
    });
    apart.chain(layers).collect()
}

/// Outputs of tanh or sigmoid in the recorded forward pass of a loss.
pub(super) fn bounded(loss: &Tensor) -> Vec<Tensor> {
    let is_bounded = |t: &Tensor| matches!(t.op_id(), Some(OpId::tanh | OpId::sigmoid));
    loss.recorded().into_iter().filter(is_bounded).collect()
}

impl Rest {
    /// The monitor, if it looks at this step.
    pub(super) fn due(&mut self) -> Option<&mut Watch> {
        self.watch.as_mut().filter(|watch| watch.monitor.is_due())
    }
}
