//! Points far from the given one, at which bounds, gates and thresholds are reached.
//!
//! One direction of all inputs at once is enough to see that a gradient is wrong there; only then
//! is each input examined by itself. Inputs whose gradients are known to be wrong are left out.

use std::cell::RefCell;

use super::differences::shaken;
use super::level::{Level, OrderReport};
use super::products::product;
use super::report::{Blame, Outcome, PairCheck, Slot};
use super::tape::{Tape, is_float, values};
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::Tensor;

/// Size of the elements there, relative to the mean magnitude of the given ones.
const REACHES: [f64; 2] = [4.0, 20.0];

/// Share of the elements that stay as near zero as they were.
const NEAR: f64 = 0.3;

/// Errors below this may be what saturated functions leave of a gradient.
const LEAST: f64 = 1e-6;

/// Errors below this part of the derivative at the given point are nothing, and so are those below
/// this part of a floor under it.
const NOTHING: f64 = 1e-9;
const FLOOR: f64 = 1e-6;

/// Inputs with more elements than this have far ones among them anyway.
const MANY: usize = 1 << 20;

/// The elements of an input that are placed at each distance: with two or three of them, one draw
/// might put none beyond a bound.
const PLACED: usize = 24;

/// Step of the differences with which further draws are looked at, relative to an input's mean
/// magnitude, and the error from which such a draw is checked as the first one is.
const GLANCE: f64 = 1.0 / (1 << 12) as f64;
const SUSPICIOUS: f64 = 1e-4;

/// An error counts from this multiple of what the last bits of the inputs do to the gradient.
const CONDITIONED: f64 = 256.0;

impl Level<'_> {
    /// Looks at points far from the given one, and notes derivatives that are wrong there.
    pub fn look_far(&self, found: &mut OrderReport) -> Result<()> {
        let elements: usize = self.inputs.iter().map(|x| x.shape().iter().product::<usize>()).sum();
        for (k, reach) in REACHES.into_iter().enumerate() {
            if elements > MANY || !found.pairs.iter().any(PairCheck::is_open) {
                return Ok(());
            }
            let Some(inputs) = self.distant(reach, k as u64)? else { return Ok(()) };
            let open = self.open_inputs(found);
            let joint = self.joint(&inputs, 0, &open);
            let Some(joint) = joint.ok().filter(|joint| joint.problems.is_empty()) else {
                let why = "the function fails or is not finite there: not looked at";
                found.notes.push(format!("inputs {reach} times as large: {why}"));
                continue;
            };
            found.calls += joint.calls;
            found.passes += joint.passes;
            if joint.pairs.iter().any(is_wrong) && self.is_wrong_again(&inputs, &open) {
                self.look_at(&inputs, reach, found)?;
            }
            self.draw_more(reach, k as u64, found)?;
        }
        Ok(())
    }

    /// Whether a gradient is wrong along a second direction too: bad luck with rounding may make
    /// differences wrong along one direction, not along two.
    fn is_wrong_again(&self, inputs: &[Tensor], open: &[bool]) -> bool {
        self.joint(inputs, 1, open).is_ok_and(|again| again.pairs.iter().any(is_wrong))
    }

    /// Further points at the same distance, for inputs with few elements. One quick check each
    /// shows that nothing is wrong there.
    fn draw_more(&self, reach: f64, k: u64, found: &mut OrderReport) -> Result<()> {
        let fewest = self.inputs.iter().filter(|x| has_both_signs(x)).map(Tensor::numel).min();
        let draws = PLACED.div_ceil(fewest.unwrap_or(PLACED)) as u64;
        for draw in 1..draws {
            if !found.pairs.iter().any(PairCheck::is_open) {
                break;
            }
            let Some(inputs) = self.distant(reach, k + 2 * draw)? else { break };
            let open = self.open_inputs(found);
            if !self.is_suspicious(&inputs, &open, found).unwrap_or(false) {
                continue;
            }
            let Ok(joint) = self.joint(&inputs, 0, &open) else { continue };
            found.calls += joint.calls;
            found.passes += joint.passes;
            let wrong = joint.problems.is_empty() && joint.pairs.iter().any(is_wrong);
            if wrong && self.is_wrong_again(&inputs, &open) {
                self.look_at(&inputs, reach, found)?;
            }
        }
        Ok(())
    }

    /// Mask of the inputs whose derivatives are not all known to be wrong.
    fn open_inputs(&self, found: &OrderReport) -> Vec<bool> {
        let is_open = |slot: &Slot| found.pairs.iter().any(|p| p.input == *slot && p.is_open());
        self.input_slots.iter().map(is_open).collect()
    }

    /// Whether one backward pass and four values along a direction of all open inputs disagree.
    fn is_suspicious(
        &self,
        inputs: &[Tensor],
        open: &[bool],
        found: &mut OrderReport,
    ) -> Result<bool> {
        let tape = Tape::record(self.f, inputs, false)?;
        let probes = self.there(inputs).probes(self.first_seed, &tape)?;
        let along: Vec<Option<Tensor>> = (inputs.iter().zip(&probes.u).zip(open))
            .map(|((x, u), open)| {
                let u = u.as_ref().filter(|_| *open);
                u.map(|u| u.try_mul(mean_size(x))).transpose()
            })
            .collect::<Result<_>>()?;
        let (mut slope, mut size) = (0.0, 0.0);
        for (o, v) in probes.v.iter().enumerate() {
            let Some(v) = v else { continue };
            for (g, u) in tape.reverse(o, v)?.iter().zip(&along) {
                if let (Some(g), Some(u)) = (g, u) {
                    let part = product(&g.to_f64_vec(), &u.to_f64_vec());
                    slope += part.sum;
                    size += part.size;
                }
            }
        }
        let value = |step: f64| -> Result<f64> {
            let moved = inputs.iter().zip(&along).map(|(x, u)| match u {
                Some(u) => x.try_add(&u.try_mul(step)?),
                None => Ok(x.clone()),
            });
            let outputs = values(self.f, &moved.collect::<Result<Vec<_>>>()?)?;
            let parts = outputs.iter().zip(&probes.v).filter_map(|(y, v)| {
                v.as_ref().map(|v| product(&y.to_f64_vec(), &v.to_f64_vec()).sum)
            });
            Ok(parts.sum())
        };
        let slopes =
            |step: f64| -> Result<f64> { Ok((value(step)? - value(-step)?) / (2.0 * step)) };
        let (coarse, fine) = (slopes(GLANCE)?, slopes(GLANCE / 2.0)?);
        found.calls += 5;
        found.passes += tape.passes.get();
        let limit = (4.0 * fine - coarse) / 3.0;
        Ok((limit - slope).abs() > SUSPICIOUS * size.max(limit.abs()) + (fine - coarse).abs())
    }

    /// Takes the verdicts at a far point for those derivatives which are wrong there by more than
    /// rounding.
    fn look_at(&self, inputs: &[Tensor], reach: f64, found: &mut OrderReport) -> Result<()> {
        let there = Level { given: Some(found.pairs.clone()), ..self.there(inputs) };
        let Ok(other) = there.check() else { return Ok(()) };
        found.calls += other.calls;
        found.passes += other.passes;
        let (mut rounding, mut drowned) = (None, false);
        for (place, (pair, other)) in found.pairs.iter_mut().zip(other.pairs).enumerate() {
            // A gradient that saturated functions leave is no scale to judge by.
            let size = pair.reverse.abs().max(other.reverse.abs());
            if !pair.is_open() || !is_wrong(&other) || apart(&other) <= NOTHING * size.max(FLOOR) {
                continue;
            }
            let rounding = match &rounding {
                Some(rounding) => rounding,
                None => rounding.insert(there.shaken_most(other.unit)?),
            };
            if rounding.get(place).is_some_and(|most| apart(&other) <= CONDITIONED * most) {
                drowned = true;
                continue;
            }
            let kinks = std::mem::take(&mut pair.kinks);
            *pair = PairCheck { far: true, kinks, ..other };
        }
        if drowned {
            let why = "rounding hides whether the gradient is right there: not judged";
            found.notes.push(format!("inputs {reach} times as large: {why}"));
        }
        Ok(())
    }

    /// For each pair, how far the elements of the gradient move where those of the inputs change in
    /// their last bits.
    fn shaken_most(&self, unit: f64) -> Result<Vec<f64>> {
        let recorded = self.record_at(&self.inputs)?;
        let moved = shaken(&self.inputs, self.first_seed ^ 0xfa5, unit)?;
        let moved = self.record_at(&moved)?;
        let probes = self.probes(self.first_seed, &recorded.plain)?;
        let floats: Vec<usize> =
            (0..self.inputs.len()).filter(|&i| is_float(&self.inputs[i])).collect();
        let dense = |g: &Option<Tensor>| g.as_ref().map_or(Vec::new(), Tensor::to_f64_vec);
        let mut most: Vec<Vec<f64>> = Vec::new();
        for (o, v) in probes.v.iter().enumerate() {
            let Some(v) = v else { continue };
            let (here, there) = (recorded.plain.reverse(o, v)?, moved.plain.reverse(o, v)?);
            most.push(
                floats
                    .iter()
                    .map(|&i| {
                        let both = dense(&here[i]).into_iter().zip(dense(&there[i]));
                        both.fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()))
                    })
                    .collect(),
            );
        }
        // Pairs are ordered by input, then by output.
        Ok((0..floats.len()).flat_map(|i| most.iter().map(move |row| row[i])).collect())
    }

    /// The inputs of which elements have both signs, larger and of other signs; the others stay, as
    /// they may be positive for a reason. None where nothing moves.
    fn distant(&self, reach: f64, k: u64) -> Result<Option<Vec<Tensor>>> {
        let generator = &mut Generator::manual_seed(self.first_seed ^ (0xfa50 + k));
        let mut any = false;
        let mut moved = |x: &Tensor| -> Result<Tensor> {
            if !has_both_signs(x) {
                return Ok(x.clone());
            }
            any = true;
            let mean = mean_size(x);
            let by = Tensor::try_randn(x.shape(), x.dtype(), generator)?.to_f64_vec();
            let near = Tensor::try_rand(x.shape(), x.dtype(), generator)?.to_f64_vec();
            let of = |(by, near): (&f64, &f64)| by * mean * if *near < NEAR { 1.0 } else { reach };
            let all: Vec<f64> = by.iter().zip(&near).map(of).collect();
            Tensor::try_from_slice(&all, x.shape())?.try_to_dtype(x.dtype())
        };
        let inputs = self.inputs.iter().map(&mut moved).collect::<Result<_>>()?;
        Ok(any.then_some(inputs))
    }

    fn there(&self, inputs: &[Tensor]) -> Level<'_> {
        Level {
            inputs: inputs.to_vec(),
            input_slots: self.input_slots.clone(),
            seeds: 1,
            lawless: true,
            drawn: RefCell::default(),
            given: None,
            coarsest: self.coarsest.clone(),
            ..*self
        }
    }

    /// The check of the function of all open float inputs in one row.
    fn joint(&self, inputs: &[Tensor], probe: u64, open: &[bool]) -> Result<OrderReport> {
        let is_in = |(x, open): (&Tensor, &bool)| *open && is_float(x);
        let floats = inputs.iter().zip(open).filter(|&(x, open)| is_in((x, open)));
        let row: Vec<f64> = floats.flat_map(|(x, _)| x.to_f64_vec()).collect();
        let row = Tensor::try_from_slice(&row, [row.len()])?;
        let parts = |z: &[Tensor]| -> Result<Vec<Tensor>> {
            let mut start = 0;
            let mut all = Vec::with_capacity(inputs.len());
            for (x, open) in inputs.iter().zip(open) {
                if !is_in((x, open)) {
                    all.push(x.clone());
                    continue;
                }
                let size = x.shape().iter().product();
                all.push(z[0].try_narrow(0, start, size)?.try_reshape(x.shape())?);
                start += size;
            }
            (self.f)(&all)
        };
        let level = Level {
            f: &parts,
            inputs: vec![row],
            input_slots: vec![Slot::Input(0)],
            first_seed: self.first_seed ^ (probe << 20),
            seeds: 1,
            lawless: true,
            drawn: RefCell::default(),
            given: None,
            coarsest: self.coarsest.clone(),
            ..*self
        };
        level.check()
    }
}

/// Whether there are elements above and below zero.
fn has_both_signs(x: &Tensor) -> bool {
    let all = if is_float(x) { x.to_f64_vec() } else { Vec::new() };
    let signs = |s: f64| all.iter().any(|x| x * s > 0.0);
    signs(1.0) && signs(-1.0)
}

/// The mean magnitude of the elements.
fn mean_size(x: &Tensor) -> f64 {
    let all = x.to_f64_vec();
    all.iter().map(|x| x.abs()).sum::<f64>() / all.len().max(1) as f64
}

/// Whether the backward rule is wrong. A forward rule of the engine's is not asked for here.
fn is_wrong(pair: &PairCheck) -> bool {
    let wrong =
        matches!(pair.outcome, Outcome::Wrong(Blame::Reverse | Blame::Both) | Outcome::CutOff);
    let error = pair.worst.as_ref().map_or(pair.error, |worst| worst.error.max(pair.error));
    wrong && error > LEAST
}

/// Distance of the backward rule from differences in the worst element, or along the probe.
fn apart(pair: &PairCheck) -> f64 {
    let worst = pair.worst.as_ref().map(|w| (w.reverse - w.difference).abs());
    let probe = pair.difference.as_ref().map(|d| (d.reverse - d.difference).abs());
    worst.or(probe).unwrap_or_default()
}
