//! The derivative of all outputs along one direction of one input, by differences.

use std::cell::{Cell, OnceCell};

use super::products::{Sum, product};
use super::tape::{Function, is_float, values};
use crate::error::Result;
use crate::extrapolate::{Limit, Quotients, limit};
use crate::richardson::{first_step, largest};
use crate::rng::Generator;
use crate::tensor::Tensor;

/// The most and the fewest rows of steps.
const ROWS: usize = 11;
const FEWEST: usize = 5;

/// The rows made close to the point when the others see a kink, and how much smaller their first
/// step is.
const CLOSE_ROWS: usize = 5;
const CLOSE: f64 = 1.0 / (1 << 18) as f64;

/// Smaller steps still, for functions that change within a small part of their inputs' size.
const CLOSER: [f64; 3] = [1.0 / (1 << 9) as f64, 1.0 / (1 << 18) as f64, 1.0 / (1 << 27) as f64];

/// Relative error up to which differences with such steps are of use.
const SURE: f64 = 1e-3;

/// Relative error of the differences at which no more steps are made.
const ENOUGH: f64 = 1e-9;

/// Perturbations of the inputs in their last bits to measure rounding, and their size in units.
const SHAKES: u64 = 2;
const LAST_BITS: f64 = 16.0;
const LEAST_BITS: f64 = 1.0 / 256.0;

/// Bound on rounding, relative to the values: a larger change is a real difference.
const ROUNDING: f64 = 1e-9;

/// A function restricted to lines through a point.
pub(super) struct Restriction<'a> {
    pub f: &'a Function<'a>,
    pub inputs: &'a [Tensor],
    /// The values at the point.
    pub origin: Vec<Vec<f64>>,
    /// A probe for each output; empty for outputs that are not floats.
    pub probes: &'a [Vec<f64>],
    pub calls: Cell<usize>,
    /// Noise of `<probe, output>` by rounding, once it has been asked for.
    pub noise: OnceCell<Vec<f64>>,
    /// The rounding unit of the function's arithmetic.
    pub unit: f64,
}

impl Restriction<'_> {
    /// The same lines with other probes, and its own count of calls.
    pub fn with<'b>(&'b self, probes: &'b [Vec<f64>]) -> Restriction<'b> {
        Restriction {
            f: self.f,
            inputs: self.inputs,
            origin: self.origin.clone(),
            probes,
            calls: Cell::new(0),
            noise: OnceCell::new(),
            unit: self.unit,
        }
    }

    /// Counts calls that were made elsewhere.
    pub fn count(&self, calls: usize) {
        self.calls.set(self.calls.get() + calls);
    }

    /// The derivative of `<probe, output>` along `u` in input `i`, for each output; `scales` are
    /// the sizes by which they are judged.
    ///
    /// A kink is reported only if it is nearer than a millionth of the inputs' size: farther ones
    /// are out of reach of the close steps.
    pub fn along(&self, i: usize, u: &Tensor, scales: &[f64]) -> Result<Vec<Limit>> {
        let reach = largest(std::slice::from_ref(&self.inputs[i]));
        // The function may change within 1 however large its inputs are; but the larger they are,
        // the more rounding asks for large steps.
        let start = first_step(reach.min(reach.sqrt()), largest(std::slice::from_ref(u)));
        let far = self.limits(i, u, start, ROWS, reach, scales)?;
        let unsure = |limit: &Limit| limit.kink || limit.coarse;
        if !far.iter().any(unsure) {
            return Ok(far);
        }
        let close = self.limits(i, u, start * CLOSE, CLOSE_ROWS, reach, scales)?;
        let better = |(far, close): (Limit, Limit)| {
            if far.kink || (far.coarse && close.error < far.error) { close } else { far }
        };
        Ok(far.into_iter().zip(close).map(better).collect())
    }

    /// A limit taken with steps too large for the function, taken again with smaller ones. Those
    /// win if they contradict it and are certain enough. Errors are relative to `size`.
    pub fn refined(&self, o: usize, i: usize, u: &Tensor, far: Limit, size: f64) -> Result<Limit> {
        let reach = largest(std::slice::from_ref(&self.inputs[i]));
        let start = first_step(reach.min(reach.sqrt()), largest(std::slice::from_ref(u)));
        let (mut best, scales) = (far, vec![f64::INFINITY; self.probes.len()]);
        for closer in CLOSER {
            let limit = self.limits(i, u, start * closer, CLOSE_ROWS, reach, &scales)?[o];
            let sure = !limit.kink && limit.error <= SURE * size.max(limit.value.abs());
            let contradicts = (limit.value - best.value).abs() > 4.0 * (limit.error + best.error);
            if sure && contradicts {
                best = limit;
            }
        }
        Ok(best)
    }

    fn limits(
        &self,
        i: usize,
        u: &Tensor,
        start: f64,
        most: usize,
        reach: f64,
        scales: &[f64],
    ) -> Result<Vec<Limit>> {
        let noise = self.noise()?;
        let mut rows: Vec<Vec<Quotients>> = vec![Vec::new(); self.probes.len()];
        let mut limits = Vec::new();
        for k in 0..most {
            let step = start / (1u64 << k) as f64;
            let (up, down) = (self.at(i, u, step)?, self.at(i, u, -step)?);
            for (o, rows) in rows.iter_mut().enumerate() {
                rows.push(self.row(o, step, reach, noise[o], &up[o], &down[o]));
            }
            if k + 1 < FEWEST.min(most) {
                continue;
            }
            limits = rows.iter().map(|rows| limit(rows)).collect();
            let done =
                |(l, scale): (&Limit, &f64)| !l.kink && !l.coarse && l.error <= ENOUGH * scale;
            if limits.iter().zip(scales).all(done) {
                break;
            }
        }
        Ok(limits)
    }

    /// The sum of the magnitudes of the terms of `<probe, output>`.
    pub fn size(&self, o: usize) -> f64 {
        self.probes[o].iter().zip(&self.origin[o]).map(|(v, y)| (v * y).abs()).sum()
    }

    /// Noise of `<probe, output>` when the inputs change in their last bits. At most a billionth
    /// counts as rounding, so that a jump does not.
    fn noise(&self) -> Result<&Vec<f64>> {
        if let Some(noise) = self.noise.get() {
            return Ok(noise);
        }
        let reach = largest(self.inputs);
        let mut noise = vec![0.0; self.probes.len()];
        for seed in 0..SHAKES {
            let moved = shaken(self.inputs, seed, self.unit)?;
            let Ok(values) = self.values(&moved) else { continue };
            for (o, noise) in noise.iter_mut().enumerate() {
                let (v, before, after) = (&self.probes[o], &self.origin[o], &values[o]);
                let mut by = Sum::default();
                for ((v, before), after) in v.iter().zip(before).zip(after) {
                    by.add(v * (after - before));
                }
                let most = ROUNDING.max(LAST_BITS * self.unit);
                *noise = by.total().abs().min(most * reach.max(self.size(o))).max(*noise);
            }
        }
        Ok(self.noise.get_or_init(|| noise))
    }

    /// The values with input `i` moved by a step along `u`.
    fn at(&self, i: usize, u: &Tensor, step: f64) -> Result<Vec<Vec<f64>>> {
        let mut moved = self.inputs.to_vec();
        moved[i] = moved[i].try_add(&u.try_mul(step)?)?;
        // Beyond the edge of its domain a function may fail rather than give NaN.
        Ok(self.values(&moved).unwrap_or_else(|_| vec![Vec::new(); self.probes.len()]))
    }

    fn values(&self, inputs: &[Tensor]) -> Result<Vec<Vec<f64>>> {
        self.count(1);
        let numbers = |y: &Tensor| if is_float(y) { y.to_f64_vec() } else { Vec::new() };
        Ok(values(self.f, inputs)?.iter().map(numbers).collect())
    }

    fn row(
        &self,
        o: usize,
        step: f64,
        reach: f64,
        noise: f64,
        up: &[f64],
        down: &[f64],
    ) -> Quotients {
        let (v, middle) = (&self.probes[o], &self.origin[o]);
        if up.len() != v.len() || down.len() != v.len() {
            // It failed there, or its shape depends on the input.
            return Quotients { slope: f64::NAN, bend: 0.0, rounding: 0.0, middle_rounding: 0.0 };
        }
        let (mut slope, mut bend) = (Sum::default(), Sum::default());
        for (((v, up), middle), down) in v.iter().zip(up).zip(middle).zip(down) {
            slope.add(v * (up - down));
            bend.add(v * ((up - middle) - (middle - down)));
        }
        let size = product(v, up).size.max(product(v, down).size);
        let slope = slope.total() / (2.0 * step);
        Quotients {
            slope,
            bend: bend.total().abs() / step,
            rounding: (self.unit * (size + slope.abs() * reach) + noise) / step,
            middle_rounding: self.unit * product(v, middle).size / step,
        }
    }
}

/// The derivatives along one input as limits of differences, for all outputs at once; computed on
/// first use.
pub(super) struct Limits<'a> {
    pub line: &'a Restriction<'a>,
    pub i: usize,
    pub u: &'a Tensor,
    pub sizes: Vec<f64>,
    pub found: OnceCell<Vec<Limit>>,
}

impl Limits<'_> {
    pub fn of(&self, o: usize) -> Result<Limit> {
        if let Some(found) = self.found.get() {
            return Ok(found[o]);
        }
        let found = self.line.along(self.i, self.u, &self.sizes)?;
        Ok(self.found.get_or_init(|| found)[o])
    }
}

/// The inputs, with each element changed in its last bits, of which `unit` is one; small ones a
/// little more, so that zeros change, too.
pub(super) fn shaken(inputs: &[Tensor], seed: u64, unit: f64) -> Result<Vec<Tensor>> {
    let generator = &mut Generator::manual_seed(seed ^ 0xb175);
    let mut shake = |x: &Tensor| -> Result<Tensor> {
        if !is_float(x) {
            return Ok(x.clone());
        }
        let least = LEAST_BITS * largest(std::slice::from_ref(x));
        let by = Tensor::try_rand(x.shape(), x.dtype(), generator)?;
        let by = by.try_sub(0.5)?.try_mul(LAST_BITS * unit)?;
        x.try_add(&by.try_mul(&x.try_abs()?.try_add(least)?)?)
    };
    inputs.iter().map(&mut shake).collect()
}
