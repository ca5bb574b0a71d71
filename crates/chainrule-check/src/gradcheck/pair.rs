//! The verdict on one output by one input.

use std::sync::Arc;

use super::differences::{Limits, Restriction};
use super::kinks::Kink;
use super::laws::Lawful;
use super::level::{Level, Modes, Recorded, relative};
use super::localise;
use super::noise::NOISE;
use super::report::{Blame, Directional, NotFinite, Outcome, PairCheck};
use super::survey::Survey;
use super::tape::nodes;
use super::wild::wild;
use crate::compare::index_of;
use crate::error::Result;
use crate::extrapolate::Limit;
use crate::richardson::largest;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};
use crate::tensor::value::Value;

/// The relative error that passes against differences, which are right to about nine digits.
const DIFFERENCES: f64 = 1e-7;

/// Differences less certain than this, relative to the size of the derivative, judge nothing.
const COARSE: f64 = 1e-3;

/// Differences judge a derivative only if their tolerance is at most this share of its size;
/// otherwise a wrong one would pass as well.
const RESOLVED: f64 = 1.0 / 16.0;

/// A derivative that is zero, or nothing but rounding, has no size. The differences' tolerance is
/// then measured by the value over the input, within these bounds.
const NOTHING: f64 = 1e-6;
const NOTHING_UNITS: f64 = 16384.0;
const NATURAL: (f64, f64) = (1.0, 1e6);

/// One output and one input.
pub(super) struct Pair<'a> {
    pub level: &'a Level<'a>,
    pub recorded: &'a Recorded,
    pub line: &'a Restriction<'a>,
    pub limits: &'a Limits<'a>,
    pub survey: &'a Survey<'a>,
    pub lawful: &'a Lawful,
    pub o: usize,
    pub i: usize,
}

impl Pair<'_> {
    /// The verdict from reverse and forward mode for all seeds, and, if those have nothing to tell,
    /// from the differences along the first probe.
    pub fn judge(&self, modes: &[Modes]) -> Result<PairCheck> {
        let (first, worst) = (modes[0], worst(modes));
        let kinks = self.survey.at(self.o, self.i);
        if self.lawful.broken.is_some() && worst.finite {
            let outcome = Outcome::Wrong(Blame::Reverse);
            return Ok(PairCheck { outcome, kinks, ..self.blank(&first, &worst, None, 0.0) });
        }
        // A forward rule that follows from the backward says nothing about it.
        let alone = worst.forward.is_none() || self.recorded.opaque;
        let mut agree = alone || worst.error() <= self.level.tolerance;
        let mut noise = if worst.finite { self.narrow(&first)? } else { 0.0 };
        if !agree && worst.finite {
            noise += self.noise(&kinks, &worst)?;
            agree = worst.apart() <= noise;
            if !agree {
                noise += self.noise_of_saved(worst.seed)?;
                agree = worst.apart() <= noise;
            }
        }
        let mut limit = None;
        let (outcome, kinks) = match () {
            _ if !worst.finite => (Outcome::NotFinite, kinks),
            _ if !agree => (Outcome::Wrong(Blame::Unclear), kinks),
            _ if !kinks.is_empty() => (Outcome::Kink, kinks),
            _ => {
                let found = self.limits.of(self.o)?;
                limit = Some(found);
                self.by_differences(&first, &found, noise)?
            }
        };
        let mut check = PairCheck { outcome, kinks, ..self.blank(&first, &worst, limit, noise) };
        if check.is_open() && self.lawful.rough.is_some() {
            check.outcome = Outcome::Uncertain;
        }
        // The engine's own rules take the slope of one side; a rule that a user wrote may give
        // anything.
        if outcome == Outcome::Kink
            && self.recorded.opaque
            && let Some(found) = wild(self, first.seed)?
        {
            check.outcome = Outcome::Wrong(Blame::Reverse);
            check.worst = Some(found);
        }
        if outcome == Outcome::NotFinite {
            check.not_finite = self.not_finite(worst.seed)?;
        }
        if let Outcome::Wrong(_) | Outcome::CutOff = outcome {
            let seed = if agree { first.seed } else { worst.seed };
            let (worst, blame) = localise::worst(self, seed, !agree)?;
            check.worst = worst;
            if outcome == Outcome::Wrong(Blame::Unclear) {
                check.outcome = Outcome::Wrong(blame);
            }
        }
        Ok(check)
    }

    /// The numbers, without a verdict.
    fn blank(&self, first: &Modes, worst: &Modes, limit: Option<Limit>, noise: f64) -> PairCheck {
        // An error within the noise is within the tolerance.
        let floor = noise / self.level.tolerance;
        let own = relative(worst.apart(), worst.size.max(floor));
        let independent = !self.recorded.opaque && first.forward.is_some();
        let against = limit.filter(|limit| !independent && !limit.kink);
        let against = against.map(|limit| {
            relative((first.reverse - limit.value).abs(), first.size.max(limit.value.abs()))
        });
        PairCheck {
            order: self.level.order,
            output: (self.level.output_slot)(self.o),
            input: self.level.input_slots[self.i],
            outcome: Outcome::Passed,
            error: against.unwrap_or(own),
            reverse: worst.reverse,
            forward: worst.forward,
            difference: limit.map(|limit| Directional {
                reverse: first.reverse,
                forward: first.forward,
                difference: limit.value,
                allowed: self.allowed(first, &limit, noise),
                kink: limit.kink,
            }),
            worst: None,
            not_finite: None,
            kinks: Vec::new(),
            beside: false,
            far: false,
            law: self.lawful.broken.clone(),
            unit: self.lawful.unit.max(self.line.unit),
        }
    }

    /// Place and cause of a gradient that is not finite.
    fn not_finite(&self, seed: u64) -> Result<Option<NotFinite>> {
        let probes = self.level.probes(seed, &self.recorded.plain)?;
        let Some(v) = &probes.v[self.o] else { return Ok(None) };
        let Some(gradient) = self.recorded.plain.reverse(self.o, v)?.swap_remove(self.i) else {
            return Ok(None);
        };
        let elements = gradient.to_f64_vec();
        let Some(j) = elements.iter().position(|g| !g.is_finite()) else { return Ok(None) };
        let op = self.recorded.plain.not_finite_from(self.o, v)?;
        Ok(Some(NotFinite { index: index_of(j, &gradient.shape()), value: elements[j], op }))
    }

    fn allowed(&self, modes: &Modes, limit: &Limit, noise: f64) -> f64 {
        let size = modes.size.max(limit.value.abs());
        DIFFERENCES.max(self.level.tolerance) * size + 2.0 * limit.error + noise
    }

    fn near(&self, modes: &Modes, limit: &Limit, noise: f64) -> bool {
        (modes.reverse - limit.value).abs() <= self.allowed(modes, limit, noise)
    }

    /// The verdict of the differences where the rules agree and have no kink at the point.
    fn by_differences(
        &self,
        first: &Modes,
        limit: &Limit,
        noise: f64,
    ) -> Result<(Outcome, Vec<Kink>)> {
        let right = if first.linked { Outcome::Passed } else { Outcome::Independent };
        let coarse = |limit: &Limit| limit.coarse && limit.error > COARSE * first.size;
        let near = |limit: &Limit| self.near(first, limit, noise) && !limit.kink && !coarse(limit);
        if near(limit) {
            return Ok((self.shown(first, limit, noise, right)?, Vec::new()));
        }
        let beside = self.survey.beside(self.o, self.i)?;
        if !beside.is_empty() {
            return Ok((Outcome::Kink, beside));
        }
        let again = self.allowing_for_rounding(first)?;
        if near(&again) || self.is_nothing(first, &again)? {
            return Ok((self.shown(first, &again, noise, right)?, beside));
        }
        let outcome = match self.once_more(first, &again)? {
            limit if near(&limit) => self.shown(first, &limit, noise, right)?,
            limit if limit.kink => Outcome::Kink,
            limit if coarse(&limit) => Outcome::Uncertain,
            // One probe may be wrong by bad luck with rounding, two are not.
            _ if !self.confirmed(first.seed + 1, noise)? => Outcome::Uncertain,
            _ if !first.linked => Outcome::CutOff,
            _ if self.recorded.opaque => Outcome::Wrong(Blame::Reverse),
            _ => Outcome::Wrong(Blame::Both),
        };
        Ok((outcome, beside))
    }

    /// Rounding of the largest numbers on the way, as it may move the output along a probe.
    fn rounding(&self) -> f64 {
        let values = |node: &Arc<Node>| lock(&node.saved).output.clone();
        let size = |value: Arc<Value>| largest(&[Tensor::from_parts(value, Source::None)]);
        let output = std::slice::from_ref(&self.recorded.full.outputs[self.o]);
        let sizes = nodes(output).iter().filter_map(values).map(size).fold(0.0, f64::max);
        let count = self.recorded.values[self.o].len() as f64;
        4.0 * f64::EPSILON * count.sqrt() * sizes
    }

    /// The differences of the first probe once more, for an output that may be as inexact as the
    /// largest numbers on the way to it.
    fn allowing_for_rounding(&self, first: &Modes) -> Result<Limit> {
        let line = self.line.with(self.line.probes);
        let _ = line.noise.set(vec![self.rounding(); self.line.probes.len()]);
        let probes = self.level.probes(first.seed, &self.recorded.plain)?;
        let u = probes.u[self.i].as_ref().expect("the pair is of floats");
        let limit = line.along(self.i, u, &vec![first.size; self.line.probes.len()])?[self.o];
        self.line.count(line.calls.get());
        Ok(limit)
    }

    /// Whether the derivative is pure rounding: it moves by as much as its size.
    fn is_nothing(&self, modes: &Modes, limit: &Limit) -> Result<bool> {
        let nothing = limit.value.abs() <= 4.0 * limit.error && !limit.kink;
        Ok(nothing && self.is_rounding(modes)?)
    }

    /// Whether reverse mode is zero, or moves as far as it is large when inputs and probes change
    /// in their last bits.
    fn is_rounding(&self, modes: &Modes) -> Result<bool> {
        let unit = self.lawful.unit.max(self.line.unit);
        Ok(modes.reverse == 0.0 || modes.reverse.abs() <= NOISE * self.wander(modes, unit)?)
    }

    /// `right` if the differences, which are near, would have shown a wrong derivative; where they
    /// drown in rounding nothing is known, unless forward mode is a second path.
    fn shown(&self, modes: &Modes, limit: &Limit, noise: f64, right: Outcome) -> Result<Outcome> {
        let second = modes.linked && modes.forward.is_some() && !self.recorded.opaque;
        let allowed = self.allowed(modes, limit, noise);
        if second || allowed <= RESOLVED * modes.size.max(limit.value.abs()) {
            return Ok(right);
        }
        let reach = largest(std::slice::from_ref(&self.level.inputs[self.i]));
        let natural = self.line.size(self.o) / if reach > 0.0 { reach } else { 0.1 };
        let natural = natural.clamp(NATURAL.0, NATURAL.1);
        let unit = self.lawful.unit.max(self.line.unit);
        let small = allowed <= NOTHING.max(NOTHING_UNITS * unit) * natural;
        Ok(if small && self.is_rounding(modes)? { right } else { Outcome::Uncertain })
    }

    /// The differences with smaller steps, if those contradict the first ones.
    fn once_more(&self, modes: &Modes, limit: &Limit) -> Result<Limit> {
        let probes = self.level.probes(modes.seed, &self.recorded.plain)?;
        match &probes.u[self.i] {
            Some(u) => self.line.refined(self.o, self.i, u, *limit, modes.size),
            None => Ok(*limit),
        }
    }

    /// Whether differences along another probe disagree, too.
    fn confirmed(&self, seed: u64, noise: f64) -> Result<bool> {
        let modes = self.modes_at(self.recorded, seed)?;
        let probes = self.level.probes(seed, &self.recorded.plain)?;
        let dense = |v: &Option<Tensor>| v.as_ref().map_or(Vec::new(), Tensor::to_f64_vec);
        let v: Vec<Vec<f64>> = probes.v.iter().map(dense).collect();
        let Some(u) = &probes.u[self.i] else { return Ok(true) };
        let line = self.line.with(&v);
        let limit = line.along(self.i, u, &vec![modes.size; v.len()])?[self.o];
        let limit = line.refined(self.o, self.i, u, limit, modes.size)?;
        self.line.count(line.calls.get());
        Ok(!self.near(&modes, &limit, noise))
    }
}

/// The seed with the largest error.
fn worst(modes: &[Modes]) -> Modes {
    let larger = |a: Modes, b: &Modes| {
        let nan = b.error().is_nan() && !a.error().is_nan();
        if !b.finite || nan || b.error() > a.error() { *b } else { a }
    };
    modes[1..].iter().fold(modes[0], larger)
}
