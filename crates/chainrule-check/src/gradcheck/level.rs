//! One order of a check: all outputs of a function against all its inputs.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::differences::{Limits, Restriction, shaken};
use super::laws::{Lawful, laws, units};
use super::pair::Pair;
use super::precision::{DOUBLE, unit_of};
use super::problems::Problem;
use super::products::product;
use super::report::{Blame, Outcome, PairCheck, Slot};
use super::survey::Survey;
use super::tape::{Function, OpCall, Tape, is_float, nodes, values};
use crate::autograd::custom::is_custom;
use crate::compare::index_of;
use crate::error::{Error, Result};
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};

/// A function with its inputs, and their names.
pub(super) struct Level<'a> {
    pub order: usize,
    pub f: &'a Function<'a>,
    pub inputs: Vec<Tensor>,
    pub input_slots: Vec<Slot>,
    pub output_slot: fn(usize) -> Slot,
    pub first_seed: u64,
    pub seeds: u64,
    pub tolerance: f64,
    /// The verdicts at the given point, if this is a point beside it: those that are final are not
    /// looked for again.
    pub given: Option<Vec<PairCheck>>,
    /// The coarsest rounding unit of values so far. Values elsewhere are no finer, but saturated
    /// ones do not show it.
    pub coarsest: Cell<f64>,
    /// Whether the laws of backward rules are left out because they were tested before.
    pub lawless: bool,
    /// The probes that were drawn, by their seeds.
    pub drawn: RefCell<HashMap<u64, Rc<Probes>>>,
}

/// The findings of one order of differentiation.
#[derive(Default)]
pub(super) struct OrderReport {
    pub pairs: Vec<PairCheck>,
    pub problems: Vec<Problem>,
    /// The places that were not examined, and why.
    pub notes: Vec<String>,
    pub calls: usize,
    pub passes: usize,
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

impl Recorded {
    /// The tangents of all outputs: `None` if a custom op on the way has no forward rule.
    pub fn tangents(&self, i: usize, u: &Tensor) -> Result<Option<Vec<Tensor>>> {
        match self.full.forward(i, u) {
            Ok(tangents) => Ok(Some(tangents)),
            Err(Error::Gradient { .. }) if self.opaque => Ok(None),
            Err(e) => Err(e),
        }
    }

    pub fn passes(&self) -> usize {
        self.plain.passes.get() + self.full.passes.get()
    }
}

/// Random directions: a cotangent for each float output, a tangent for each float input.
pub(super) struct Probes {
    pub v: Vec<Option<Tensor>>,
    pub u: Vec<Option<Tensor>>,
}

/// Reverse and forward mode along one pair of probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Modes {
    pub seed: u64,
    pub reverse: f64,
    pub forward: Option<f64>,
    /// Scale of the sums: the square root of the sum of their squared terms, the larger of the two.
    pub size: f64,
    /// Whether a path on the tape leads from the output to the input.
    pub linked: bool,
    pub finite: bool,
}

impl Modes {
    /// Distance of the modes.
    pub fn apart(&self) -> f64 {
        self.forward.map_or(0.0, |forward| (self.reverse - forward).abs())
    }

    /// The same relative to the size.
    pub fn error(&self) -> f64 {
        relative(self.apart(), self.size)
    }
}

/// Whether two tensors have the same bits.
fn same(a: &Tensor, b: &Tensor) -> bool {
    let bits = |x: &Tensor| x.to_f64_vec().into_iter().map(f64::to_bits).collect::<Vec<_>>();
    a.meta() == b.meta() && bits(a) == bits(b)
}

/// The first op on the tape of everything whose result is not finite, and the line that called it.
fn arose_in(y: &Tensor) -> Option<OpCall> {
    let bad = |node: &Arc<Node>| {
        let output = lock(&node.saved).output.clone()?;
        let output = Tensor::from_parts(output, Source::None);
        (!output.is_finite()).then(|| (node.op.name(), node.place()))
    };
    nodes(std::slice::from_ref(y)).iter().find_map(bad)
}

pub(super) fn relative(apart: f64, size: f64) -> f64 {
    if apart == 0.0 { 0.0 } else { apart / size }
}

impl Level<'_> {
    /// The check, and another one at a point beside: a gradient that is right at a special point
    /// alone, where elements are zero, equal or one, is wrong, and a kink must not hide one that is
    /// wrong everywhere.
    pub fn thorough(&self) -> Result<OrderReport> {
        let mut found = self.check()?;
        if !found.pairs.iter().any(PairCheck::is_open) {
            return Ok(found);
        }
        for inputs in self.beside()? {
            let beside = Level {
                inputs,
                input_slots: self.input_slots.clone(),
                seeds: 1,
                given: Some(found.pairs.clone()),
                coarsest: self.coarsest.clone(),
                drawn: RefCell::default(),
                ..*self
            };
            // Beside the point the function may fail, or have values that are not finite: then
            // nothing can be learnt there.
            let Ok(other) = beside.check() else { continue };
            found.calls += other.calls;
            found.passes += other.passes;
            if !other.problems.is_empty() {
                continue;
            }
            for (pair, other) in found.pairs.iter_mut().zip(other.pairs) {
                // If nothing shows which mode is wrong, both are rounding of something large.
                let wrong = match other.outcome {
                    Outcome::Wrong(blame) => blame != Blame::Unclear,
                    outcome => outcome == Outcome::CutOff,
                };
                if pair.is_open() && wrong {
                    let kinks = std::mem::take(&mut pair.kinks);
                    *pair = PairCheck { beside: true, kinks, ..other };
                }
            }
            break;
        }
        self.look_far(&mut found)?;
        Ok(found)
    }

    pub fn check(&self) -> Result<OrderReport> {
        let mut found = OrderReport::default();
        let recorded = self.record()?;
        found.calls = 2;
        found.problems = self.problems(&recorded);
        if !found.problems.is_empty() {
            return Ok(found);
        }
        let modes = self.modes(&recorded)?;
        let outputs = 0..recorded.plain.outputs.len();
        let look = if self.lawless { units } else { laws };
        let lawful: Vec<Vec<Lawful>> =
            outputs.map(|o| look(self, &recorded, o)).collect::<Result<_>>()?;
        let unit = self.unit(&recorded)?.max(self.coarsest.get());
        self.coarsest.set(unit);
        let narrowest = lawful.iter().flatten().map(|l| l.unit).fold(unit, f64::max);
        let survey =
            Survey::new(self.f, &self.inputs, &recorded.full, (self.first_seed, unit, narrowest))?;
        let probes = self.probes(self.first_seed, &recorded.plain)?;
        let dense = |v: &Option<Tensor>| v.as_ref().map_or(Vec::new(), Tensor::to_f64_vec);
        let v: Vec<Vec<f64>> = probes.v.iter().map(dense).collect();
        let line = Restriction {
            f: self.f,
            inputs: &self.inputs,
            origin: recorded.values.clone(),
            probes: &v,
            calls: Cell::new(1),
            noise: OnceCell::new(),
            unit,
        };
        for (i, u) in probes.u.iter().enumerate() {
            let Some(u) = u else { continue };
            let sizes: Vec<f64> =
                modes.iter().map(|row| row[i].first().map_or(0.0, |m| m.size)).collect();
            let limits = Limits { line: &line, i, u, sizes, found: OnceCell::new() };
            for o in (0..v.len()).filter(|&o| !modes[o][i].is_empty()) {
                let given = self.given.as_ref().and_then(|given| given.get(found.pairs.len()));
                if let Some(stands) = given.filter(|pair| !pair.is_open()) {
                    found.pairs.push(stands.clone());
                    continue;
                }
                let (recorded, survey, lawful) = (&recorded, &survey, &lawful[o][i]);
                let (level, line, limits) = (self, &line, &limits);
                let pair = Pair { level, recorded, line, limits, survey, lawful, o, i };
                found.pairs.push(pair.judge(&modes[o][i])?);
            }
        }
        found.calls += line.calls.get() + survey.calls();
        found.passes = recorded.passes();
        Ok(found)
    }

    fn record(&self) -> Result<Recorded> {
        self.record_at(&self.inputs)
    }

    pub fn record_at(&self, inputs: &[Tensor]) -> Result<Recorded> {
        let plain = Tape::record(self.f, inputs, false)?;
        let full = Tape::record(self.f, inputs, true)?;
        let numbers = |y: &Tensor| if is_float(y) { y.to_f64_vec() } else { Vec::new() };
        Ok(Recorded {
            values: plain.outputs.iter().map(numbers).collect(),
            opaque: nodes(&full.outputs).iter().any(|node| is_custom(node.op.as_ref())),
            plain,
            full,
        })
    }

    /// The rounding unit of the arithmetic that the values come from, by those that change beside
    /// the point. Counts and what is left where terms cancel have few bits as well.
    fn unit(&self, recorded: &Recorded) -> Result<f64> {
        let beside = self.nudged()?;
        let Ok(there) = values(self.f, &beside) else { return Ok(DOUBLE) };
        let units = |there: &[Tensor]| {
            let pairs = recorded.plain.outputs.iter().zip(there).filter(|(y, _)| is_float(y));
            let all = pairs.map(|(here, there)| {
                let (here, there) = (here.to_f64_vec(), there.to_f64_vec());
                let telling = here.iter().zip(&there).filter(|(a, b)| a != b);
                unit_of(telling.map(|(_, b)| *b))
            });
            all.fold(DOUBLE, f64::max)
        };
        let unit = units(&there);
        if unit <= DOUBLE {
            return Ok(DOUBLE);
        }
        let numbers = |all: &[Tensor]| all.iter().flat_map(Tensor::to_f64_vec).collect::<Vec<_>>();
        let there = numbers(&there);
        let changes = |by: f64| {
            let moved = shaken(&beside, self.first_seed, by).and_then(|x| values(self.f, &x));
            moved.map_or(0, |moved| {
                there.iter().zip(numbers(&moved)).filter(|(a, b)| *a != b).count()
            })
        };
        // Narrow values do not see the last bits of f64, and do see some of their own. Values of a
        // step function see neither.
        let narrow = 2 * changes(DOUBLE) <= there.len() && 2 * changes(4.0 * unit) > there.len();
        Ok(if narrow { unit } else { DOUBLE })
    }

    /// Problems that rule out looking at derivatives: both calls must have given the same finite
    /// values, and left their inputs alone.
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

    /// Reverse and forward mode of each output, by each input, for all seeds. Empty where one of
    /// them is not a float.
    fn modes(&self, recorded: &Recorded) -> Result<Vec<Vec<Vec<Modes>>>> {
        let (outputs, inputs) = (recorded.plain.outputs.len(), self.inputs.len());
        let mut out = vec![vec![Vec::new(); inputs]; outputs];
        for seed in self.first_seed..self.first_seed + self.seeds {
            let probes = self.probes(seed, &recorded.plain)?;
            let mut tangents = Vec::with_capacity(inputs);
            for (i, u) in probes.u.iter().enumerate() {
                tangents.push(match u {
                    Some(u) => recorded.tangents(i, u)?,
                    None => None,
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
    pub fn probes(&self, seed: u64, tape: &Tape) -> Result<Rc<Probes>> {
        if let Some(known) = self.drawn.borrow().get(&seed) {
            return Ok(known.clone());
        }
        let generator = &mut Generator::manual_seed(seed);
        let mut draw = |x: &Tensor| -> Result<Option<Tensor>> {
            if !is_float(x) {
                return Ok(None);
            }
            Ok(Some(Tensor::try_randn(x.shape(), x.dtype(), generator)?))
        };
        let v = tape.outputs.iter().map(&mut draw).collect::<Result<_>>()?;
        let u = self.inputs.iter().map(&mut draw).collect::<Result<_>>()?;
        let probes = Rc::new(Probes { v, u });
        self.drawn.borrow_mut().insert(seed, probes.clone());
        Ok(probes)
    }
}

pub(super) fn modes_along(
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
