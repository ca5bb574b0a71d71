//! Points far from the given one, at which bounds, gates and thresholds are reached.
//!
//! One direction of all inputs at once is enough to see that a gradient is wrong there; only then
//! each input is looked at by itself.

use std::cell::RefCell;

use super::differences::shaken;
use super::level::{Level, OrderReport};
use super::report::{Blame, Outcome, PairCheck, Slot};
use super::tape::is_float;
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::Tensor;

/// The elements there, relative to the mean magnitude of the given ones.
const REACHES: [f64; 2] = [4.0, 20.0];

/// Part of the elements that stay as near zero as they were.
const NEAR: f64 = 0.3;

/// Errors below this may be what saturated functions leave of a gradient.
const LEAST: f64 = 1e-6;

/// Errors below this part of the derivative at the given point are nothing, and so are those below
/// this part of a floor under it.
const NOTHING: f64 = 1e-9;
const FLOOR: f64 = 1e-6;

/// Inputs of more elements than this are large enough to have far ones among them.
const MANY: usize = 1 << 20;

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
            let joint = self.joint(&inputs, 0);
            let Some(joint) = joint.ok().filter(|joint| joint.problems.is_empty()) else {
                let why = "the function fails or is not finite there: not looked at";
                found.notes.push(format!("inputs {reach} times as large: {why}"));
                continue;
            };
            found.calls += joint.calls;
            found.passes += joint.passes;
            if !joint.pairs.iter().any(is_wrong) {
                continue;
            }
            // Differences may be off by bad luck with rounding along one direction, not along two.
            let again = self.joint(&inputs, 1).map_or(Vec::new(), |again| again.pairs);
            if !again.iter().any(is_wrong) {
                continue;
            }
            self.look_at(&inputs, reach, found)?;
        }
        Ok(())
    }

    /// Takes the verdicts at a far point for those derivatives which are wrong there by more than
    /// rounding.
    fn look_at(&self, inputs: &[Tensor], reach: f64, found: &mut OrderReport) -> Result<()> {
        let there = self.there(inputs);
        let Ok(other) = there.check() else { return Ok(()) };
        found.calls += other.calls;
        found.passes += other.passes;
        let (mut rounding, mut drowned) = (None, false);
        for (place, (pair, other)) in found.pairs.iter_mut().zip(other.pairs).enumerate() {
            // A gradient that saturated functions leave is no size to judge by.
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
        // Pairs come by input, then by output.
        Ok((0..floats.len()).flat_map(|i| most.iter().map(move |row| row[i])).collect())
    }

    /// The inputs of which elements have both signs, larger and of other signs; the others stay, as
    /// they may be positive for a reason. None where nothing moves.
    fn distant(&self, reach: f64, k: u64) -> Result<Option<Vec<Tensor>>> {
        let generator = &mut Generator::manual_seed(self.first_seed ^ (0xfa50 + k));
        let mut any = false;
        let mut moved = |x: &Tensor| -> Result<Tensor> {
            let all = if is_float(x) { x.to_f64_vec() } else { Vec::new() };
            let signs = |s: f64| all.iter().any(|x| x * s > 0.0);
            if !(signs(1.0) && signs(-1.0)) {
                return Ok(x.clone());
            }
            any = true;
            let mean = all.iter().map(|x| x.abs()).sum::<f64>() / all.len() as f64;
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
            ..*self
        }
    }

    /// The check of the function of all float inputs in one row.
    fn joint(&self, inputs: &[Tensor], probe: u64) -> Result<OrderReport> {
        let floats: Vec<&Tensor> = inputs.iter().filter(|x| is_float(x)).collect();
        let row: Vec<f64> = floats.iter().flat_map(|x| x.to_f64_vec()).collect();
        let row = Tensor::try_from_slice(&row, [row.len()])?;
        let parts = |z: &[Tensor]| -> Result<Vec<Tensor>> {
            let mut start = 0;
            let mut all = Vec::with_capacity(inputs.len());
            for x in inputs {
                if !is_float(x) {
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
            ..*self
        };
        level.check()
    }
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
