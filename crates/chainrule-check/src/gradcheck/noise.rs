//! Rounding of a derivative along a probe, measured by changing inputs and probes in their last
//! bits.

use std::collections::{HashMap, HashSet};

use super::differences::shaken;
use super::kinks::Kink;
use super::level::{Modes, Probes, Recorded, modes_along};
use super::pair::Pair;
use super::precision::DOUBLE;
use crate::error::Result;
use crate::richardson::largest;
use crate::rounding::{LossGraph, Noise};
use crate::tensor::Tensor;

/// Allowed noise, in multiples of the change caused by changing the inputs in their last bits.
pub(super) const NOISE: f64 = 64.0;

/// The same for a backward in narrow arithmetic, where a multiple of the rounding is much; and
/// beside it in units of the derivative's size.
const NARROW: f64 = 8.0;
const UNITS: f64 = 4.0;

/// Allowed rounding of the terms at each node, beside that.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// Number of such changes.
const TRIES: u64 = 3;

/// Differences beyond this multiple of the noise are not examined further.
const CLEAR: f64 = 1e6;

impl Pair<'_> {
    /// Noise between the modes by rounding: the effect of a change of the inputs and probes in
    /// their last bits on either, times 64, and a few roundings of all terms on the way. At a kink,
    /// where a small change may lead to another side, it is made beside it. Beside values of some
    /// size, what is smaller by the square of the rounding is nothing.
    pub fn noise(&self, kinks: &[Kink], modes: &Modes) -> Result<f64> {
        let seed = modes.seed;
        let (inputs, still) = if kinks.is_empty() {
            (self.level.inputs.clone(), *modes)
        } else {
            let beside = self.level.nudged()?;
            self.line.count(2);
            let still = self.level.record_at(&beside).and_then(|r| self.modes_at(&r, seed));
            let Ok(still) = still else { return Ok(0.0) };
            (beside, still)
        };
        let mut noise: f64 = 0.0;
        for k in 0..TRIES {
            let Ok(moved) = self.shaken(&inputs, seed, k, DOUBLE) else { continue };
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
        // Beside the point, saturated ops lose what is below the last bit of their values; that is
        // no mistake.
        let reach = largest(std::slice::from_ref(&self.level.inputs[self.i]));
        let least = if self.level.given.is_some() { 1.0 / reach.max(0.1) } else { f64::EPSILON };
        let least = f64::EPSILON * least * self.line.size(self.o);
        Ok(NOISE * (noise + least) + ROUNDING * terms)
    }

    /// The effect on reverse mode of rounding in the values that rules saved: the result of a
    /// saturated op, as a sigmoid of 40, stays 1 when its input changes, and its slope is nothing
    /// but the rounding of that.
    pub fn noise_of_saved(&self, seed: u64) -> Result<f64> {
        let probes = self.level.probes(seed, &self.recorded.plain)?;
        let (Some(v), Some(u)) = (&probes.v[self.o], &probes.u[self.i]) else { return Ok(0.0) };
        let tape = &self.recorded.plain;
        let (output, leaf) = (&tape.outputs[self.o], tape.leaves[self.i].source().number());
        if !output.requires_grad() {
            return Ok(0.0);
        }
        self.line.count(2);
        let (graph, wanted) = (LossGraph::of(output), HashSet::from([leaf]));
        let none = HashMap::new();
        // A rule that cannot run again says nothing of rounding.
        let noise = Noise::of(&graph, (output, v), &wanted, &none);
        Ok(noise.map_or(0.0, |noise| noise.along(leaf, &u.to_f64_vec())))
    }

    /// Tolerance of reverse mode for the rounding of a backward in narrow arithmetic; nothing in
    /// f64.
    pub fn narrow(&self, modes: &Modes) -> Result<f64> {
        let unit = self.lawful.unit;
        match unit > DOUBLE {
            true => Ok(NARROW * self.wander(modes, unit)? + UNITS * unit * modes.size),
            false => Ok(0.0),
        }
    }

    /// Change of reverse mode when inputs and probes change by some units.
    pub fn wander(&self, modes: &Modes, unit: f64) -> Result<f64> {
        let mut most: f64 = 0.0;
        for k in 0..TRIES {
            let Ok(moved) = self.shaken(&self.level.inputs, modes.seed, k, unit) else { continue };
            most = most.max((moved.reverse - modes.reverse).abs());
        }
        Ok(most)
    }

    /// The modes with inputs and probes changed in their last bits.
    fn shaken(&self, inputs: &[Tensor], seed: u64, k: u64, unit: f64) -> Result<Modes> {
        self.line.count(2);
        // Only the low bits of a seed count.
        let k = seed.wrapping_mul(TRIES).wrapping_add(k);
        let recorded = self.level.record_at(&shaken(inputs, k, unit)?)?;
        let probes = self.level.probes(seed, &recorded.plain)?;
        let shake = |x: &Option<Tensor>| match x {
            Some(x) => Ok(Some(shaken(std::slice::from_ref(x), k, unit)?.swap_remove(0))),
            None => Ok(None),
        };
        let probes = Probes {
            v: probes.v.iter().map(shake).collect::<Result<_>>()?,
            u: probes.u.iter().map(shake).collect::<Result<_>>()?,
        };
        self.modes_along(&recorded, seed, &probes)
    }

    /// Reverse and forward mode along a probe.
    pub fn modes_at(&self, recorded: &Recorded, seed: u64) -> Result<Modes> {
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
