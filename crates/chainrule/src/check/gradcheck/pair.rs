//! The verdict on one output by one input.

use std::sync::Arc;

use super::differences::{Limits, Line, shaken};
use super::kinks::Kink;
use super::level::{Level, Modes, Probes, Recorded, modes_along, relative};
use super::localise;
use super::report::{Blame, Directional, NotFinite, Outcome, PairCheck};
use super::survey::Survey;
use super::tape::nodes;
use crate::check::compare::index_of;
use crate::check::extrapolate::Limit;
use crate::check::richardson::largest;
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};
use crate::tensor::value::Value;

/// The relative error that passes against differences, which are right to about nine digits.
const DIFFERENCES: f64 = 1e-7;

/// Differences that are less sure of themselves than this, relative to the size of the derivative, judge nothing.
const COARSE: f64 = 1e-3;

/// How much noise is allowed for, in multiples of what a change of the inputs in their last bits does.
const NOISE: f64 = 64.0;

/// How much rounding of the terms at each node is allowed for beside that.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// How many such changes are tried.
const TRIES: u64 = 3;
/// What is so many times larger than the noise is looked at no further.
const CLEAR: f64 = 1e6;

/// How far beside a kink a point is that has none, relative to the largest element of an input.
const NUDGE: f64 = 1.0 / 64.0;

/// One output and one input.
pub(super) struct Pair<'a> {
    pub level: &'a Level<'a>,
    pub recorded: &'a Recorded,
    pub line: &'a Line<'a>,
    pub limits: &'a Limits<'a>,
    pub survey: &'a Survey<'a>,
    pub o: usize,
    pub i: usize,
}

impl Pair<'_> {
    /// The verdict from reverse and forward mode for all seeds, and, if those have nothing to tell, from the differences along the first probe.
    pub fn judge(&self, modes: &[Modes]) -> Result<PairCheck> {
        let (first, worst) = (modes[0], worst(modes));
        let kinks = self.survey.at(self.o, self.i);
        let mut agree = worst.forward.is_none() || worst.error() <= self.level.tolerance;
        let mut noise = 0.0;
        if !agree && worst.finite {
            noise = self.noise(&kinks, &worst)?;
            agree = worst.apart() <= noise;
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
        }
    }

    /// Where the gradient is not finite, and why.
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

    /// What the differences say where the rules agree and have no kink at the point.
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
            return Ok((right, Vec::new()));
        }
        let beside = self.survey.beside(self.o, self.i)?;
        if !beside.is_empty() {
            return Ok((Outcome::Kink, beside));
        }
        let again = self.allowing_for_rounding(first)?;
        if near(&again) || self.is_nothing(first, &again) {
            return Ok((right, beside));
        }
        let outcome = match self.once_more(first, &again)? {
            limit if near(&limit) => right,
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

    /// What rounding of the largest numbers on the way may do to the output along a probe.
    fn rounding(&self) -> f64 {
        let values = |node: &Arc<Node>| lock(&node.saved).output.clone();
        let size = |value: Arc<Value>| largest(&[Tensor::from_parts(value, Source::None)]);
        let output = std::slice::from_ref(&self.recorded.full.outputs[self.o]);
        let sizes = nodes(output).iter().filter_map(values).map(size).fold(0.0, f64::max);
        let count = self.recorded.values[self.o].len() as f64;
        4.0 * f64::EPSILON * count.sqrt() * sizes
    }

    /// The differences of the first probe once more, where the output may be as inexact as the largest numbers on the way to it.
    fn allowing_for_rounding(&self, first: &Modes) -> Result<Limit> {
        let line = self.line.with(self.line.probes);
        let _ = line.noise.set(vec![self.rounding(); self.line.probes.len()]);
        let probes = self.level.probes(first.seed, &self.recorded.plain)?;
        let u = probes.u[self.i].as_ref().expect("the pair is of floats");
        let limit = line.along(self.i, u, &vec![first.size; self.line.probes.len()])?[self.o];
        self.line.count(line.calls.get());
        Ok(limit)
    }

    /// Whether the derivative is but such rounding.
    fn is_nothing(&self, modes: &Modes, limit: &Limit) -> bool {
        let reach = largest(std::slice::from_ref(&self.level.inputs[self.i])).max(1e-300);
        let floor = NOISE * self.rounding() * (1.0 / reach).max(1.0);
        let nothing = limit.value.abs() <= 4.0 * limit.error;
        modes.reverse.abs() <= floor && nothing && !limit.kink
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

    /// How far rounding can take the modes apart: what a change of the inputs and probes in their last bits does to either, times 64, and a few roundings
    /// of all terms on the way. At a kink, where a small change may lead to another side, it is made beside it. Beside values of some size, what
    /// is smaller by the square of the rounding is nothing.
    fn noise(&self, kinks: &[Kink], modes: &Modes) -> Result<f64> {
        let seed = modes.seed;
        let at = |inputs: &[Tensor]| -> Result<Modes> {
            self.line.count(2);
            self.modes_at(&self.level.record_at(inputs)?, seed)
        };
        let at_shaken = |inputs: &[Tensor], k: u64| -> Result<Modes> {
            self.line.count(2);
            let recorded = self.level.record_at(&shaken(inputs, k)?)?;
            let probes = self.level.probes(seed, &recorded.plain)?;
            let shake = |x: &Option<Tensor>| match x {
                Some(x) => Ok(Some(shaken(std::slice::from_ref(x), k)?.swap_remove(0))),
                None => Ok(None),
            };
            let probes = Probes {
                v: probes.v.iter().map(shake).collect::<Result<_>>()?,
                u: probes.u.iter().map(shake).collect::<Result<_>>()?,
            };
            self.modes_along(&recorded, seed, &probes)
        };
        let (inputs, still) = if kinks.is_empty() {
            (self.level.inputs.clone(), *modes)
        } else {
            let beside = self.level.nudged()?;
            let Ok(still) = at(&beside) else { return Ok(0.0) };
            (beside, still)
        };
        let mut noise: f64 = 0.0;
        for k in 0..TRIES {
            let Ok(moved) = at_shaken(&inputs, seed ^ (k << 32)) else { continue };
            let forward = moved.forward.unwrap_or(0.0) - still.forward.unwrap_or(0.0);
            noise = noise.max((moved.reverse - still.reverse).abs()).max(forward.abs());
            if CLEAR * noise < modes.apart() {
                break;
            }
        }
        let probes = self.level.probes(seed, &self.recorded.plain)?;
        let terms = match (&probes.v[self.o], &probes.u[self.i]) {
            (Some(v), Some(u)) => self.recorded.full.terms(self.o, v, self.i, u)?,
            _ => 0.0,
        };
        let least = f64::EPSILON.powi(2) * self.line.size(self.o);
        Ok(NOISE * (noise + least) + ROUNDING * terms)
    }

    /// Reverse and forward mode along a probe.
    fn modes_at(&self, recorded: &Recorded, seed: u64) -> Result<Modes> {
        self.modes_along(recorded, seed, &*self.level.probes(seed, &recorded.plain)?)
    }

    fn modes_along(&self, recorded: &Recorded, seed: u64, probes: &Probes) -> Result<Modes> {
        let (Some(v), Some(u)) = (&probes.v[self.o], &probes.u[self.i]) else {
            unreachable!("the pair is of floats")
        };
        let gradient = recorded.plain.reverse(self.o, v)?.swap_remove(self.i);
        let tangent = recorded.tangents(self.i, u)?;
        Ok(modes_along(seed, gradient.as_ref(), u, tangent.as_ref().map(|t| &t[self.o]), v))
    }
}

impl Level<'_> {
    /// The inputs at a point a little beside the given one.
    pub fn nudged(&self) -> Result<Vec<Tensor>> {
        let generator = &mut Generator::manual_seed(self.first_seed ^ 0x2d6e);
        let nudged = |x: &Tensor| -> Result<Tensor> {
            if !x.dtype().is_float() {
                return Ok(x.clone());
            }
            let by = NUDGE * largest(std::slice::from_ref(x)).max(0.1);
            x.try_add(&Tensor::try_randn(x.shape(), x.dtype(), generator)?.try_mul(by)?)
        };
        self.inputs.iter().map(nudged).collect()
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
