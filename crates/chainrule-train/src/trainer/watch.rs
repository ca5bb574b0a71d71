//! The monitor of a training: fed between the parts of a step, within its share of the time.

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

/// Looks that are taken whatever they cost: what is wrong from the beginning is seen then.
const FREE_LOOKS: u64 = 10;

/// The first look that takes in what costs several steps.
const RARE: u64 = 16;

/// Looks in a row that must find a symptom before it is told, so that none is told that passes.
const SEEN_BEFORE_TOLD: u32 = 3;

/// The steps before which nothing is told but what is not finite.
const FIRST_TOLD: u64 = 20;

/// Most outputs that are followed.
const OUTPUTS: usize = 64;

/// Most kinds of labels that are counted.
const CLASSES: usize = 10_000;

/// Labels that are counted before their entropy is taken for that of all, and those after which
/// more would hardly change it.
const MIN_LABELS: f64 = 100.0;
const MAX_LABELS: f64 = 20_000.0;

/// Looks that are all searched for symptoms; later ones only when another such part of all steps
/// has passed.
const SEARCHED: u64 = 64;

/// A monitor with the time that it took.
pub(super) struct Watch {
    pub monitor: Monitor,
    share: Option<f64>,
    began: Instant,
    first_step: u64,
    looks: u64,
    spent: f64,
    /// When the last step ended, if it was not looked at, and the seconds that such a step takes.
    ended: Option<Instant>,
    pace: Option<f64>,
    /// Labels by how often they were seen.
    labels: BTreeMap<u64, u64>,
    has_all_labels: bool,
    /// The step from which on a look is searched for symptoms.
    next_search: u64,
    /// Looks in a row at which a symptom was there, and whether it was told.
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

    /// The training begins, or goes on after that many steps.
    pub fn begin(&mut self, step: u64) {
        self.monitor.go_to(step);
        (self.began, self.first_step, self.looks, self.spent) = (Instant::now(), step, 0, 0.0);
        self.ended = None;
    }

    /// Whether this look is one of those that cost several steps: the 16th, 32nd, 64th and so on.
    /// If no share of the time bounds looks, each is the eightfold, so that a look at every step is
    /// no more than these.
    pub fn is_rare(&self) -> bool {
        let is_one = self.looks >= RARE && self.looks.is_power_of_two();
        is_one && (self.share.is_some() || (self.looks / RARE).trailing_zeros().is_multiple_of(3))
    }

    /// The labels of a batch, where the targets are classes: the best constant answer has the loss
    /// of their entropy.
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
        // The entropy of a few labels is below that of all, by this much for n of k kinds.
        let bias = (self.labels.len() as f64 - 1.0) / (2.0 * all);
        if all >= MIN_LABELS {
            self.monitor.constant_loss(self.labels.values().map(part).sum::<f64>() + bias);
        }
        self.has_all_labels = all >= MAX_LABELS;
        self.spend(began);
    }

    /// The computation of a loss before its backward pass, if it is wanted.
    pub fn computation(&mut self, loss: &Tensor) {
        if self.monitor.wants_computation()
            && let Ok(graph) = loss.try_graph()
        {
            self.monitor.computation(&graph);
        }
    }

    /// The results of the layers that a loss called, and of bounded ops outside of these, with
    /// their gradients, which were kept.
    pub fn outputs(&mut self, loss: &Tensor, layers: &[LayerOutput]) {
        let began = Instant::now();
        for (name, kind, t) in looked_at(loss, layers) {
            self.monitor.output(&name, kind, &t);
            if let Some(g) = t.grad() {
                self.monitor.output_gradient(&name, &g);
            }
        }
        // The last layer's result is what the loss sees, as a rule.
        if let (Some(layer), Ok(loss)) = (layers.last(), loss.try_item())
            && let Some(g) = layer.output.grad()
        {
            self.monitor.answer(loss, &layer.output, &g, layer.bounds);
        }
        self.spend(began);
    }

    /// The parameters and their gradients before an update.
    pub fn before(&mut self, module: &dyn Module) {
        let began = Instant::now();
        for (name, p) in module.named_parameters() {
            if p.requires_grad() {
                self.monitor.parameter(&name, &p, p.grad().as_ref());
            }
        }
        self.spend(began);
    }

    /// The parameters after it.
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

    /// The held-out loss among measures.
    pub fn validated(&mut self, metrics: &[(&'static str, f64)]) {
        let loss = metrics.iter().find(|(name, _)| matches!(*name, "val_loss" | "test_loss"));
        loss.into_iter().for_each(|(_, loss)| self.monitor.validated(*loss));
    }

    /// Ends a step; whether its tensors were looked at.
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

    /// The next look is put off until its time is earned.
    fn put_off(&mut self) {
        self.looks += 1;
        let Some(share) = self.share.filter(|_| self.looks >= FREE_LOOKS) else { return };
        let elapsed = self.began.elapsed().as_secs_f64();
        let steps = self.monitor.steps() - self.first_step;
        let each = (elapsed - self.spent).max(1e-9) / steps.max(1) as f64;
        // The looks and one more like them, over the time of steps alone.
        let next = (self.spent * (1.0 + 1.0 / self.looks as f64) / share / each) as u64;
        // A first look that took long does not keep a run of short steps unseen to its end.
        let next = next.min(4 * steps.max(FREE_LOOKS));
        self.monitor.rest_until(self.first_step.saturating_add(next));
    }

    /// The symptoms that are told now for the first time; asked for at looks. A search takes longer
    /// than the look itself, so that not all of them have one.
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
        // One that went away is counted anew, and told once.
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

/// Name, kind and value of the results of layers, and before these of bounded ops outside of them.
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

/// The results of a tanh or a sigmoid in the forward pass of a loss, which was recorded.
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
