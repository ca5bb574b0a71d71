//! One order of a check: all outputs of a function against all its inputs.

use std::cell::Cell;
use std::panic::Location;
use std::sync::Arc;

use super::differences::Line;
use super::localise;
use super::problems::Problem;
use super::products::product;
use super::report::{Blame, Directional, Outcome, PairCheck, Slot};
use super::tape::{Function, Tape, is_float};
use crate::autograd::custom::is_custom;
use crate::autograd::walk::reachable;
use crate::check::compare::index_of;
use crate::check::extrapolate::Limit;
use crate::error::{Error, Result};
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};

/// The relative error that passes against differences, which are right to about nine digits.
const DIFFERENCES: f64 = 1e-7;

/// A function with its inputs, and what to call them.
pub(super) struct Level<'a> {
    pub order: usize,
    pub f: &'a Function<'a>,
    pub inputs: Vec<Tensor>,
    pub input_slots: Vec<Slot>,
    pub output_slot: fn(usize) -> Slot,
    pub first_seed: u64,
    pub seeds: u64,
    pub tolerance: f64,
}

/// What one order found.
#[derive(Default)]
pub(super) struct Found {
    pub pairs: Vec<PairCheck>,
    pub problems: Vec<Problem>,
    pub calls: usize,
}

/// Both tapes of the function, and the numbers of its outputs.
pub(super) struct Recorded {
    /// As an ordinary backward pass finds it.
    pub plain: Tape,
    /// With all that forward mode needs.
    pub full: Tape,
    /// The outputs; empty for those that are not floats.
    pub values: Vec<Vec<f64>>,
    /// Whether an op on the tape has no forward rule that is independent of its backward.
    pub opaque: bool,
}

/// Random directions: a cotangent for each float output, a tangent for each float input.
pub(super) struct Probes {
    pub v: Vec<Option<Tensor>>,
    pub u: Vec<Option<Tensor>>,
}

/// Reverse and forward mode along one pair of probes.
#[derive(Clone, Copy, Debug)]
struct Modes {
    seed: u64,
    reverse: f64,
    forward: Option<f64>,
    /// What the sums go by: the root of the sum of the squares of their terms, the larger of the two.
    size: f64,
    /// Whether a path on the tape leads from the output to the input.
    linked: bool,
    finite: bool,
}

impl Modes {
    fn error(&self) -> f64 {
        self.forward.map_or(0.0, |forward| relative((self.reverse - forward).abs(), self.size))
    }
}

/// Whether two tensors have the same bits.
fn same(a: &Tensor, b: &Tensor) -> bool {
    let bits = |x: &Tensor| x.to_f64_vec().into_iter().map(f64::to_bits).collect::<Vec<_>>();
    a.meta() == b.meta() && bits(a) == bits(b)
}

/// The first op on the tape of everything whose result is not finite, and the line that called it.
fn arose_in(y: &Tensor) -> Option<(&'static str, &'static Location<'static>)> {
    let bad = |node: &Arc<Node>| {
        let output = lock(&node.saved).output.clone()?;
        let output = Tensor::from_parts(output, Source::None);
        (!output.is_finite()).then(|| (node.op.name(), node.location))
    };
    reachable([y.source()].into_iter(), 0).iter().find_map(bad)
}

fn relative(apart: f64, size: f64) -> f64 {
    if apart == 0.0 { 0.0 } else { apart / size }
}

impl Level<'_> {
    pub fn check(&self) -> Result<Found> {
        let mut found = Found::default();
        let recorded = self.record()?;
        found.calls = 2;
        found.problems = self.problems(&recorded);
        if !found.problems.is_empty() {
            return Ok(found);
        }
        let modes = self.modes(&recorded)?;
        let probes = self.probes(self.first_seed, &recorded.plain)?;
        let dense = |v: &Option<Tensor>| v.as_ref().map_or(Vec::new(), Tensor::to_f64_vec);
        let v: Vec<Vec<f64>> = probes.v.iter().map(dense).collect();
        let line = Line {
            f: self.f,
            inputs: &self.inputs,
            origin: recorded.values.clone(),
            probes: &v,
            calls: Cell::new(0),
        };
        for (i, u) in probes.u.iter().enumerate() {
            let Some(u) = u else { continue };
            let sizes: Vec<f64> = modes.iter().map(|row| row[i][0].size).collect();
            let limits = line.along(i, u, &sizes)?;
            for (o, limit) in limits.iter().enumerate().filter(|(o, _)| !v[*o].is_empty()) {
                let pair = Pair { level: self, recorded: &recorded, line: &line, o, i };
                found.pairs.push(pair.judge(&modes[o][i], limit)?);
            }
        }
        found.calls += line.calls.get();
        Ok(found)
    }

    fn record(&self) -> Result<Recorded> {
        let plain = Tape::record(self.f, &self.inputs, false)?;
        let full = Tape::record(self.f, &self.inputs, true)?;
        let numbers = |y: &Tensor| if is_float(y) { y.to_f64_vec() } else { Vec::new() };
        let nodes = reachable(full.outputs.iter().map(Tensor::source), 0);
        Ok(Recorded {
            values: plain.outputs.iter().map(numbers).collect(),
            opaque: nodes.iter().any(|node| is_custom(node.op.as_ref())),
            plain,
            full,
        })
    }

    /// What forbids to look at derivatives: both calls must have given the same finite values, and left their inputs alone.
    fn problems(&self, recorded: &Recorded) -> Vec<Problem> {
        let (plain, full) = (&recorded.plain, &recorded.full);
        let mut out = Vec::new();
        for (i, x) in self.inputs.iter().enumerate() {
            let changed = |leaf: &Tensor| !same(leaf, x) || leaf.grad().is_some();
            if changed(&plain.leaves[i]) || changed(&full.leaves[i]) {
                out.push(Problem::InputChanged { input: i });
            }
        }
        let metas = |tape: &Tape| tape.outputs.iter().map(Tensor::meta).collect::<Vec<_>>();
        if metas(plain) != metas(full) {
            out.push(Problem::ShapesChange);
            return out;
        }
        for (o, (a, b)) in plain.outputs.iter().zip(&full.outputs).enumerate() {
            let (output, shape) = ((self.output_slot)(o), a.shape());
            let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
            let differ =
                |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
            if let Some(j) = a.iter().zip(&b).position(differ) {
                let index = index_of(j, &shape);
                out.push(Problem::NotDeterministic { output, index, values: (a[j], b[j]) });
            }
            if let Some(j) = a.iter().position(|x| !x.is_finite()) {
                let index = index_of(j, &shape);
                let op = arose_in(&full.outputs[o]);
                out.push(Problem::NotFinite { what: output, index, value: a[j], op });
            }
        }
        if !plain.outputs.iter().any(is_float) {
            out.push(Problem::NoFloatOutput);
        }
        out
    }

    /// Reverse and forward mode of each output, by each input, for all seeds. Empty where one of them is not a float.
    fn modes(&self, recorded: &Recorded) -> Result<Vec<Vec<Vec<Modes>>>> {
        let (outputs, inputs) = (recorded.plain.outputs.len(), self.inputs.len());
        let mut out = vec![vec![Vec::new(); inputs]; outputs];
        for seed in self.first_seed..self.first_seed + self.seeds {
            let probes = self.probes(seed, &recorded.plain)?;
            let mut tangents = Vec::with_capacity(inputs);
            for (i, u) in probes.u.iter().enumerate() {
                let Some(u) = u else {
                    tangents.push(None);
                    continue;
                };
                tangents.push(match recorded.full.forward(i, u) {
                    Ok(tangents) => Some(tangents),
                    Err(Error::Gradient { .. }) if recorded.opaque => None,
                    Err(e) => return Err(e),
                });
            }
            for (o, v) in probes.v.iter().enumerate() {
                let Some(v) = v else { continue };
                let gradients = recorded.plain.reverse(o, v)?;
                for (i, u) in probes.u.iter().enumerate() {
                    let Some(u) = u else { continue };
                    let tangent = tangents[i].as_ref().map(|t| &t[o]);
                    out[o][i].push(modes_along(seed, gradients[i].as_ref(), u, tangent, v));
                }
            }
        }
        Ok(out)
    }

    /// The same for the same seed.
    pub fn probes(&self, seed: u64, tape: &Tape) -> Result<Probes> {
        let generator = &mut Generator::manual_seed(seed);
        let mut draw = |x: &Tensor| -> Result<Option<Tensor>> {
            if !is_float(x) {
                return Ok(None);
            }
            Ok(Some(Tensor::try_randn(x.shape(), x.dtype(), generator)?))
        };
        Ok(Probes {
            v: tape.outputs.iter().map(&mut draw).collect::<Result<_>>()?,
            u: self.inputs.iter().map(&mut draw).collect::<Result<_>>()?,
        })
    }
}

fn modes_along(
    seed: u64,
    gradient: Option<&Tensor>,
    u: &Tensor,
    tangent: Option<&Tensor>,
    v: &Tensor,
) -> Modes {
    let gradient = gradient.map(Tensor::to_f64_vec);
    let reverse = gradient.as_ref().map(|g| product(g, &u.to_f64_vec())).unwrap_or_default();
    let forward = tangent.map(|t| product(&t.to_f64_vec(), &v.to_f64_vec()));
    Modes {
        seed,
        reverse: reverse.sum,
        forward: forward.map(|p| p.sum),
        size: reverse.size.max(forward.map_or(0.0, |p| p.size)),
        linked: gradient.is_some(),
        finite: gradient.iter().flatten().all(|g| g.is_finite()),
    }
}

/// One output and one input.
pub(super) struct Pair<'a> {
    pub level: &'a Level<'a>,
    pub recorded: &'a Recorded,
    pub line: &'a Line<'a>,
    pub o: usize,
    pub i: usize,
}

impl Pair<'_> {
    /// The verdict from reverse and forward mode for all seeds, and the differences along the first probe.
    fn judge(&self, modes: &[Modes], limit: &Limit) -> Result<PairCheck> {
        let first = modes[0];
        let size = first.size.max(limit.value.abs());
        let allowed = DIFFERENCES.max(self.level.tolerance) * size + limit.error;
        let near = |x: f64| (x - limit.value).abs() <= allowed;
        let worst = self.worst(modes);
        let agree = worst.forward.is_none() || worst.error() <= self.level.tolerance;
        let differences = near(first.reverse);
        let outcome = match () {
            _ if !worst.finite => Outcome::NotFinite,
            _ if !agree => Outcome::Wrong(Blame::Unclear),
            _ if limit.kink => Outcome::Kink,
            _ if differences && !first.linked => Outcome::Independent,
            _ if differences => Outcome::Passed,
            _ if !first.linked => Outcome::CutOff,
            _ if self.recorded.opaque => Outcome::Wrong(Blame::Reverse),
            _ => Outcome::Wrong(Blame::Both),
        };
        let independent = !self.recorded.opaque && first.forward.is_some();
        let against = relative((first.reverse - limit.value).abs(), size);
        let mut check = PairCheck {
            order: self.level.order,
            output: (self.level.output_slot)(self.o),
            input: self.level.input_slots[self.i],
            outcome,
            error: if independent || limit.kink { worst.error() } else { against },
            reverse: worst.reverse,
            forward: worst.forward,
            difference: Some(Directional {
                reverse: first.reverse,
                forward: first.forward,
                difference: limit.value,
                allowed,
                kink: limit.kink,
            }),
            worst: None,
            kinks: Vec::new(),
        };
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

    /// The seed with the largest error.
    fn worst(&self, modes: &[Modes]) -> Modes {
        let larger = |a: Modes, b: &Modes| {
            let nan = b.error().is_nan() && !a.error().is_nan();
            if !b.finite || nan || b.error() > a.error() { *b } else { a }
        };
        modes[1..].iter().fold(modes[0], larger)
    }
}
