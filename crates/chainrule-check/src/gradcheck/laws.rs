//! Laws that a backward rule must obey whatever it differentiates: it gives the same numbers each
//! time, and it is linear in the cotangent.
//!
//! A gradient along one random cotangent cannot show that a rule clips, takes a magnitude, drops
//! what is negative or draws a new mask. The rule is therefore run again with that cotangent taken
//! apart: by sign, by element, by a constant, and at other sizes. Multiplying by a power of two is
//! exact in every binary arithmetic, so those laws hold to the last bit; sums hold to the rounding
//! of the rule, which is thereby measured.

use std::fmt;

use super::differences::shaken;
use super::level::{Level, Recorded};
use super::precision::{DOUBLE, SINGLE, unit_of};
use super::tape::Tape;
use crate::compare::index_of;
use crate::error::Result;
use crate::tensor::Tensor;

/// A law of backward rules.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Law {
    /// Two backward passes with the same numbers give the same gradient.
    Repeat,
    /// A cotangent of zeros gives a gradient of zeros.
    Zero,
    /// A multiple of the cotangent gives the same multiple of the gradient.
    Scale(f64),
    /// The gradients of two parts of a cotangent sum to that of the whole.
    Sum(Split),
}

/// Split of a cotangent into parts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Split {
    /// Into its positive and its negative elements.
    Signs,
    /// Into ones, as `sum()` gives them, and the rest.
    Ones,
    /// Into one element and the others.
    Element(Vec<usize>),
    /// Into those of the single outputs of a function of several.
    Outputs,
}

/// A law that a backward rule breaks, with the element of the gradient in which it is farthest off.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenLaw {
    /// The law.
    pub law: Law,
    /// The element of the gradient.
    pub index: Vec<usize>,
    /// The result of the rule.
    pub found: f64,
    /// The result that the law asks for.
    pub due: f64,
}

impl fmt::Display for BrokenLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BrokenLaw { law, index, found, due } = self;
        match law {
            Law::Repeat => {
                return write!(
                    f,
                    "two backward passes with the same numbers gave {due:.9e} and then {found:.9e} at {index:?}: the backward is random (draw \
                     nothing in it; save what the forward drew)"
                );
            }
            Law::Zero => f.write_str("a cotangent of zeros")?,
            Law::Scale(by) => write!(f, "{by} times the cotangent")?,
            Law::Sum(Split::Signs) => {
                f.write_str("the positive and the negative part of the cotangent together")?
            }
            Law::Sum(Split::Ones) => f.write_str("a cotangent of ones and the rest together")?,
            Law::Sum(Split::Outputs) => {
                f.write_str("the cotangents of the outputs, each by itself, together")?
            }
            Law::Sum(Split::Element(at)) => {
                write!(f, "element {at:?} of the cotangent and the others together")?
            }
        }
        write!(
            f,
            " gave {found:.9e} at {index:?} where {due:.9e} is due: the backward is not linear in the cotangent"
        )
    }
}

/// Findings of the laws about the gradient of one output by one input.
#[derive(Clone, Debug)]
pub(super) struct Lawful {
    pub broken: Option<BrokenLaw>,
    /// The rounding unit of the arithmetic that the gradient comes from.
    pub unit: f64,
    /// Distance of the parts' sum from the whole gradient, relative to its largest element, where
    /// that is more than rounding in f32 explains.
    pub rough: Option<f64>,
}

/// Scales, all powers of two: both signs, and sizes from about a thousandth to a thousand.
const SCALES: [f64; 5] = [-1.0, 2.0, 1024.0, -1.0 / 1024.0, 1.0 / 1024.0];

/// Elements of the cotangent that are taken by themselves.
const ELEMENTS: usize = 2;

/// Tolerance of sums, in rounding units of the largest element.
const UNITS: f64 = 64.0;

/// The difference that two runs of a right rule may have, relative to the largest element: threads
/// may add in another order.
const RUNS: f64 = 1e-9;

/// Perturbations of the cotangent in its last bits to measure rounding.
const SHAKES: u64 = 5;

/// A relative error of sums larger than this is not the rounding of any float type.
const COARSEST: f64 = 1.0 / 32.0;

/// Numbers whose thousandth or thousandfold leaves the normal range are not scaled.
const RANGE: std::ops::Range<f64> = 1e-290..1e290;

/// A gradient of each input, where there is one.
type InputGradients = Vec<Option<Vec<f64>>>;

/// The backward rules of one output.
struct ReverseRule<'a> {
    tape: &'a Tape,
    o: usize,
    v: Tensor,
    /// The gradients along `v`.
    own: InputGradients,
    /// The largest element of the output, or 1.
    reach: f64,
    found: Vec<Lawful>,
}

/// The units of the gradients of output `o` by every input, without the laws.
pub(super) fn units(level: &Level<'_>, recorded: &Recorded, o: usize) -> Result<Vec<Lawful>> {
    let probes = level.probes(level.first_seed, &recorded.plain)?;
    let Some(v) = &probes.v[o] else { return Ok(Vec::new()) };
    let own = gradients(&recorded.plain, o, v)?;
    Ok(own.iter().map(lawful).collect())
}

fn lawful(g: &Option<Vec<f64>>) -> Lawful {
    let unit = g.as_ref().map_or(DOUBLE, |g| unit_of(g.iter().copied()));
    Lawful { broken: None, unit, rough: None }
}

/// Tests all laws for output `o`, by every input.
pub(super) fn laws(level: &Level<'_>, recorded: &Recorded, o: usize) -> Result<Vec<Lawful>> {
    let probes = level.probes(level.first_seed, &recorded.plain)?;
    let Some(v) = probes.v[o].clone() else { return Ok(Vec::new()) };
    let own = gradients(&recorded.plain, o, &v)?;
    let found = own.iter().map(lawful).collect();
    let reach = greatest(&recorded.values[o]).max(1.0);
    let mut rule = ReverseRule { tape: &recorded.plain, o, v, own, reach, found };
    rule.rounding_has_few_bits(level)?;
    for tape in [&recorded.plain, &recorded.full] {
        let again = gradients(tape, o, &rule.v)?;
        rule.hold(Law::Repeat, &rule.own.clone(), &again, |_| RUNS);
    }
    rule.scales()?;
    rule.sums(level)?;
    let first = probes.v.iter().position(Option::is_some);
    if first == Some(o) && probes.v.iter().flatten().count() > 1 {
        rule.outputs(level, &probes.v)?;
    }
    Ok(rule.found)
}

fn gradients(tape: &Tape, o: usize, v: &Tensor) -> Result<InputGradients> {
    let found = tape.reverse(o, v)?;
    Ok(found.into_iter().map(|g| g.map(|g| g.to_f64_vec())).collect())
}

/// Tolerance of sums in arithmetic of this unit. Narrow types are summed in wider ones, so that
/// only a few roundings are left.
fn slack(unit: f64) -> f64 {
    if unit > SINGLE { 8.0 * unit } else { UNITS * unit }
}

fn greatest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |m: f64, x| m.max(x.abs()))
}

/// The element in which two gradients are farthest apart, and by how much; NaN counts as infinitely
/// far.
fn farthest(due: &[f64], found: &[f64]) -> Option<(usize, f64)> {
    let apart = |(a, b): (&f64, &f64)| match (a - b).abs() {
        _ if a == b => 0.0,
        x if x.is_nan() => f64::INFINITY,
        x => x,
    };
    let all = due.iter().zip(found).map(apart).enumerate();
    all.fold(None, |best: Option<(usize, f64)>, next| match best {
        Some(best) if best.1 >= next.1 => Some(best),
        _ => Some(next),
    })
}

impl ReverseRule<'_> {
    /// Records for each input whether two gradients are the same; `allowed` is relative to the
    /// largest element. The first broken law is kept.
    fn hold(
        &mut self,
        law: Law,
        due: &InputGradients,
        found: &InputGradients,
        allowed: impl Fn(&Lawful) -> f64,
    ) {
        for i in 0..self.found.len() {
            let (Some(due), Some(found)) = (&due[i], &found[i]) else { continue };
            let Some((j, apart)) = farthest(due, found) else { continue };
            let limit = allowed(&self.found[i])
                * greatest(due).max(greatest(self.own[i].as_deref().unwrap_or_default()));
            let finite = due.iter().all(|x| x.is_finite());
            if finite && apart > limit && self.found[i].broken.is_none() {
                let shape = self.tape.leaves[i].shape();
                let (index, law) = (index_of(j, &shape), law.clone());
                self.found[i].broken = Some(BrokenLaw { law, index, found: found[j], due: due[j] });
            }
        }
    }

    /// Remainders of terms that cancel have few bits as well, but they change with the last bits of
    /// the cotangent, which narrow arithmetic does not see.
    fn rounding_has_few_bits(&mut self, level: &Level<'_>) -> Result<()> {
        if self.found.iter().all(|lawful| lawful.unit <= DOUBLE) {
            return Ok(());
        }
        let moved = gradients(self.tape, self.o, &shaken_once(&self.v, level.first_seed)?)?;
        for (i, lawful) in self.found.iter_mut().enumerate() {
            if let (Some(own), Some(moved)) = (&self.own[i], &moved[i])
                && 2 * own.iter().zip(moved).filter(|(a, b)| a != b).count()
                    > own.iter().filter(|x| **x != 0.0).count()
            {
                lawful.unit = DOUBLE;
            }
        }
        Ok(())
    }

    fn scales(&mut self) -> Result<()> {
        let zero = gradients(self.tape, self.o, &self.v.zeros_like())?;
        let nothing = self.times(0.0);
        self.hold(Law::Zero, &nothing, &zero, |_| 0.0);
        for by in SCALES {
            let found = gradients(self.tape, self.o, &self.v.try_mul(by)?)?;
            let due = self.times(by);
            self.hold(Law::Scale(by), &due, &found, |lawful| RUNS.max(lawful.unit));
        }
        Ok(())
    }

    /// The gradients times a number; none where that would leave the range of normal numbers.
    fn times(&self, by: f64) -> InputGradients {
        let safe = |g: &&Vec<f64>| {
            let size = greatest(g);
            by == 0.0 || size == 0.0 || RANGE.contains(&size)
        };
        let scaled = |g: &Option<Vec<f64>>| {
            let g = g.as_ref().filter(safe)?;
            g.iter().all(|x| x.is_finite()).then(|| g.iter().map(|x| x * by).collect())
        };
        self.own.iter().map(scaled).collect()
    }

    fn sums(&mut self, level: &Level<'_>) -> Result<()> {
        let v = self.v.to_f64_vec();
        let ones = Tensor::try_full(self.v.shape(), 1.0, self.v.dtype())?;
        let positive = self.v.try_relu()?;
        self.sum(level, Split::Signs, &positive)?;
        if v.len() > 1 {
            self.sum(level, Split::Ones, &ones)?;
            let largest = (0..v.len()).max_by(|&a, &b| v[a].abs().total_cmp(&v[b].abs()));
            for j in [largest.unwrap_or(0), 0, v.len() / 2].into_iter().take(ELEMENTS) {
                let mut one = vec![0.0; v.len()];
                one[j] = v[j];
                let part =
                    Tensor::try_from_slice(&one, self.v.shape())?.try_to_dtype(self.v.dtype())?;
                self.sum(level, Split::Element(index_of(j, &self.v.shape())), &part)?;
            }
        }
        Ok(())
    }

    /// The law of sums for a part of the cotangent.
    fn sum(&mut self, level: &Level<'_>, split: Split, part: &Tensor) -> Result<()> {
        let rest = self.v.try_sub(part)?;
        // The part of a cotangent that a rule loses when a large one is added to it and taken away
        // again.
        let least = DOUBLE / 4.0 * greatest(&self.v.to_f64_vec()) * self.reach;
        let (a, b) = (gradients(self.tape, self.o, part)?, gradients(self.tape, self.o, &rest)?);
        for i in 0..self.found.len() {
            let (Some(own), Some(a), Some(b)) = (&self.own[i], &a[i], &b[i]) else { continue };
            let together: Vec<f64> = a.iter().zip(b).map(|(a, b)| a + b).collect();
            let Some((j, apart)) = farthest(own, &together) else { continue };
            let size = greatest(own).max(greatest(a)).max(greatest(b));
            let finite = own.iter().all(|x| x.is_finite());
            if !finite
                || self.found[i].broken.is_some()
                || apart <= (slack(self.found[i].unit) + RUNS) * size
            {
                continue;
            }
            let mut noise = 0.0f64;
            for v in [&self.v, part, &rest] {
                noise = noise.max(self.noise(level, i, v)?);
            }
            if apart <= UNITS * noise.max(least) {
                continue;
            }
            let miss = apart / size;
            // The powers of two held to the bit, so what is left is the rounding of a narrower
            // type: where it is f32, or the numbers show which.
            let lawful = &mut self.found[i];
            match miss {
                _ if miss <= UNITS * SINGLE => lawful.unit = lawful.unit.max(SINGLE),
                _ if miss <= COARSEST => lawful.rough = Some(miss.max(lawful.rough.unwrap_or(0.0))),
                _ => {
                    let index = index_of(j, &self.tape.leaves[i].shape());
                    let law = Law::Sum(split.clone());
                    lawful.broken = Some(BrokenLaw { law, index, found: together[j], due: own[j] });
                }
            }
        }
        Ok(())
    }

    /// The gradients of all outputs together are the sum of the gradients of each; a rule for
    /// several outputs may forget that.
    fn outputs(&mut self, level: &Level<'_>, v: &[Option<Tensor>]) -> Result<()> {
        let all = v.iter().enumerate().filter_map(|(o, v)| Some((o, v.clone()?)));
        let all: Vec<(usize, Tensor)> = all.collect();
        let dense = |found: Vec<Option<Tensor>>| -> InputGradients {
            found.into_iter().map(|g| g.map(|g| g.to_f64_vec())).collect()
        };
        let together = dense(self.tape.reverse_all(&all)?);
        let alone: Vec<InputGradients> =
            all.iter().map(|(o, v)| gradients(self.tape, *o, v)).collect::<Result<_>>()?;
        let mut noise = vec![0.0f64; together.len()];
        for k in 0..SHAKES {
            let moved = all.iter().map(|(o, v)| Ok((*o, shaken_once(v, level.first_seed ^ k)?)));
            let moved = dense(self.tape.reverse_all(&moved.collect::<Result<Vec<_>>>()?)?);
            for (noise, (a, b)) in noise.iter_mut().zip(together.iter().zip(&moved)) {
                if let (Some(a), Some(b)) = (a, b) {
                    *noise = noise.max(farthest(a, b).map_or(0.0, |(_, apart)| apart));
                }
            }
        }
        for (i, whole) in together.iter().enumerate() {
            let Some(whole) = whole else { continue };
            let parts: Vec<&Vec<f64>> = alone.iter().filter_map(|g| g[i].as_ref()).collect();
            let sum: Vec<f64> =
                (0..whole.len()).map(|j| parts.iter().map(|g| g[j]).sum()).collect();
            let size = parts.iter().map(|g| greatest(g)).fold(greatest(whole), f64::max);
            let unit = parts.iter().map(|g| unit_of(g.iter().copied())).fold(DOUBLE, f64::max);
            let Some((j, apart)) = farthest(&sum, whole) else { continue };
            let allowed = ((slack(unit) + RUNS) * size).max(UNITS * noise[i]);
            if self.found[i].broken.is_none() && size.is_finite() && apart > allowed {
                let index = index_of(j, &self.tape.leaves[i].shape());
                let law = Law::Sum(Split::Outputs);
                self.found[i].broken = Some(BrokenLaw { law, index, found: whole[j], due: sum[j] });
            }
        }
        Ok(())
    }

    /// Noise of a gradient's element when the cotangent changes in its last bits: large, relative
    /// to the sum, where large parts cancel.
    fn noise(&self, level: &Level<'_>, i: usize, v: &Tensor) -> Result<f64> {
        let mut noise: f64 = 0.0;
        let still = gradients(self.tape, self.o, v)?;
        for k in 0..SHAKES {
            let moved = gradients(self.tape, self.o, &shaken_once(v, level.first_seed ^ k)?)?;
            if let (Some(still), Some(moved)) = (&still[i], &moved[i]) {
                noise = noise.max(farthest(still, moved).map_or(0.0, |(_, apart)| apart));
            }
        }
        Ok(noise)
    }
}

fn shaken_once(v: &Tensor, seed: u64) -> Result<Tensor> {
    Ok(shaken(std::slice::from_ref(v), seed, DOUBLE)?.swap_remove(0))
}
