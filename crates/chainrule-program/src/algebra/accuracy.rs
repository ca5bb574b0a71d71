//! Accuracy: a value is rewritten only where the rounding error of the new form is no larger than
//! that of the old one.
//!
//! Whether a rewrite is backward stable depends on its operands: `sum(x^2) - n c^2` is a fine
//! variance of centred numbers, and a catastrophe far from zero. So no rule is trusted on its own.
//! Both forms go through a running error analysis, step by step (N. Higham, *Accuracy and Stability
//! of Numerical Algorithms*, 3.3), at points that provoke cancellation: operands far from zero
//! compared with their spread, of very different sizes, nearly equal, saturated. Results of the
//! forward pass count as data, rounded once, for both forms. An identity that holds for exact
//! numbers only, such as that differences from a mean sum to zero, may be used where the roundings
//! of the forward pass move the plain form by as much.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::numbers::{mixed, uniform};
use super::operations::{NodeId, Operation, Plan, RowSlope};
use super::ops;
use super::samples::{POINTS, ROUNDING, Sample, Space};
use super::stage::Stage;
use super::term::{Base, BaseId, Dims, Facts, Fun, TermId, Var, Vars, rising, union_of};
use crate::dtype::DType;
use crate::ir::{Id, Instruction, Origin, Phase};
use crate::tensor::reading::{Fold, Reading, SlopeReading};

/// The largest error of the new form, relative to the old one's. Another order of summation differs
/// by a small factor, cancellation by orders of magnitude.
const SLACK: f64 = 8.0;

/// An element smaller than the largest by this factor is compared by the largest element's error:
/// arrays are compared, not single elements.
const SMALL: f64 = 0.02;

const LARGEST_F32: f64 = 1e12;
const LARGEST_F64: f64 = 1e100;

/// Tolerance on the values themselves, beside their errors. Forward values may have lost digits
/// here that their errors, as data, do not show; a wrong rewrite is far beyond it.
const EQUAL: f64 = 1e10 * f64::EPSILON;

/// How the atoms are distributed at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Draw {
    Normal,
    /// All far from zero, by the same distance.
    Far(f64),
    /// Each by a size of its own.
    Scaled,
    /// Far from zero, close together, small or large, at random.
    Mixed,
}

const DRAWS: [Draw; POINTS] = [
    Draw::Normal,
    Draw::Far(1000.0),
    Draw::Far(20.0),
    Draw::Far(-20.0),
    Draw::Scaled,
    Draw::Scaled,
    Draw::Mixed,
    Draw::Mixed,
    Draw::Mixed,
    Draw::Mixed,
];

/// Values of a program and their errors at the points.
#[derive(Default)]
pub(super) struct Accuracy {
    /// Samples of values, as the program computes them.
    values: FxHashMap<Id, Rc<Sample>>,
    hots: FxHashMap<BaseId, Rc<Sample>>,
    /// Samples of terms as they are written at the least cost.
    terms: FxHashMap<TermId, Rc<Sample>>,
    /// Points at which the forward pass overflows or underflows, so that there is nothing to
    /// compare with.
    burnt: [bool; POINTS],
}

impl Stage {
    fn space(&self) -> Space<'_> {
        Space { sizes: &self.terms.sizes, dtype: self.dtype }
    }

    /// Samples the instruction as the program has it; results of the forward pass are data.
    pub(super) fn follow(&mut self, instruction: &Instruction) {
        let result = instruction.result();
        let data = instruction.phase != Phase::Backward;
        let made = Rc::new(match self.original(instruction) {
            Some(s) if data => self.as_data(s, result),
            Some(s) => s,
            None => self.sample_of_leaf(result),
        });
        if instruction.phase == Phase::Forward {
            self.note_burnt(&made, instruction.op.reading() == Reading::Exp);
        }
        self.accuracy.values.insert(result, made);
    }

    /// Results beyond this size are useless: their cubes overflow.
    fn largest(&self) -> f64 {
        if self.dtype == DType::F32 { LARGEST_F32 } else { LARGEST_F64 }
    }

    fn note_burnt(&mut self, made: &Sample, may_underflow: bool) {
        let largest = self.largest();
        let sound = |x: f64| x.abs() < largest && !(may_underflow && x < 1.0 / largest);
        for (i, x) in made.value.iter().enumerate() {
            self.accuracy.burnt[i % POINTS] |= !sound(*x);
        }
    }

    fn points(&self) -> impl Iterator<Item = usize> + use<> {
        let burnt = self.accuracy.burnt;
        (0..POINTS).filter(move |p| !burnt[*p])
    }

    /// A value as the program has it.
    fn sample_of(&mut self, id: Id) -> Rc<Sample> {
        if let Some(known) = self.accuracy.values.get(&id) {
            return known.clone();
        }
        let made = Rc::new(self.sample_of_leaf(id));
        self.accuracy.values.insert(id, made.clone());
        made
    }

    /// Arguments, parameters and constants are exact; extra results are rounded.
    fn sample_of_leaf(&mut self, id: Id) -> Sample {
        let t = self.values[id.index()];
        if let Some(c) = self.terms.as_number(t) {
            return self.space().number(c);
        }
        let beside = matches!(self.program.info(id).from, Origin::Result);
        if !self.is_itself(t, id) {
            let s = self.evaluated(t);
            return if beside { self.as_data(s, id) } else { s };
        }
        let s = self.drawn(id);
        if beside { self.as_data(s, id) } else { s }
    }

    /// A result of the forward pass, as the backward pass finds it.
    fn as_data(&self, s: Sample, id: Id) -> Sample {
        let part = |point, i| 2.0 * uniform(mixed(seed_of(id, point), 6, i as u64)) - 1.0;
        self.space().rounded(s, part)
    }

    /// A term by its own formula, whatever the program has computed.
    fn evaluated(&mut self, t: TermId) -> Sample {
        let summands = self.terms.summands(t).clone();
        let mut total: Option<Sample> = None;
        for (m, c) in summands {
            let mut product = self.space().number(1.0);
            for (b, e) in self.terms.factors(m).clone() {
                let base = self.evaluated_base(b);
                let power = if e == 1.0 { base } else { self.space().pow(&base, e) };
                product = self.space().mul(&product, &power);
            }
            let part = self.space().scale(&product, c);
            total = Some(match total {
                Some(sum) => self.space().add(&sum, &part),
                None => part,
            });
        }
        total.unwrap_or_else(|| self.space().number(0.0))
    }

    fn evaluated_base(&mut self, b: BaseId) -> Sample {
        match self.terms.get(b).clone() {
            Base::Value { id, dims } => (*self.sample_with(id, &dims)).clone(),
            Base::Hot { .. } => (*self.hot_sample(b)).clone(),
            Base::Sum(t) => self.evaluated(t),
            Base::Fn(f, t) => {
                let x = self.evaluated(t);
                self.space().apply(f, &x)
            }
            Base::Reduce(vars, m) => {
                let body = self.terms.scaled_product(1.0, m);
                let body = self.evaluated(body);
                self.space().sum(&body, &vars)
            }
        }
    }

    /// A value with these axes, which are its own or stand for them.
    fn sample_with(&mut self, id: Id, dims: &Dims) -> Rc<Sample> {
        let own = self.sample_of(id);
        let mine = &self.dims[id.index()];
        if mine == dims {
            return own;
        }
        let pairs = mine.iter().zip(dims).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
        let pairs: Vec<(Var, Var)> = pairs.collect();
        let vars = rising(pairs.iter().map(|(_, b)| *b).collect());
        let source: Vars = vars
            .iter()
            .map(|v| pairs.iter().find(|(_, b)| b == v).expect("its own axis").0)
            .collect();
        // In the order of the new axes, read along the old ones.
        let places = self.space().places(&own.vars, &source);
        Rc::new(own.at_places(&places, vars))
    }

    /// Random numbers, drawn as the point says, for values that the analysis does not look into.
    fn drawn(&mut self, id: Id) -> Sample {
        let vars = rising(self.dims[id.index()].iter().flatten().copied().collect());
        let facts = self.facts_at(id);
        if let Some(var) = facts.sums_to_one.filter(|v| facts.mask && vars.contains(v)) {
            let rows: Vars = vars.iter().filter(|v| **v != var).copied().collect();
            return self.hot_rows(id, &rows, var);
        }
        if let Some((.., numbers)) = self.arrays.iter().find(|(own, ..)| *own == id) {
            return self.of_array(id, numbers);
        }
        if let Some(x) = self.zero_at(id) {
            let x = self.evaluated(x);
            let is_zero = x.at_places(&self.space().places(&x.vars, &vars), vars.clone()).value;
            let is_zero = is_zero.into_iter().map(|x| f64::from(x == 0.0)).collect();
            return self.space().exact(vars, is_zero);
        }
        let n = self.space().numel(&vars);
        let one = |i, p| draw(DRAWS[p], facts, seed_of(id, p), i);
        let value = (0..n).flat_map(|i| (0..POINTS).map(move |p| one(i, p))).collect();
        self.space().exact(vars, value)
    }

    /// The elements of a constant along the sampled axes: the first ones.
    fn of_array(&self, id: Id, numbers: &[f64]) -> Sample {
        let dims = &self.dims[id.index()];
        let vars = rising(dims.iter().flatten().copied().collect());
        let shape = self.program.info(id).meta.shape;
        let mut places = vec![0; self.space().numel(&vars)];
        let mut step = 1;
        for a in (0..shape.rank()).rev() {
            if let Some(v) = dims[a] {
                let along = self.space().along(v, &vars);
                places.iter_mut().zip(along).for_each(|(p, i)| *p += i * step);
            }
            step *= shape[a];
        }
        self.space().everywhere(vars, places.into_iter().map(|i| numbers[i]))
    }

    fn facts_at(&self, id: Id) -> Facts {
        let dims = self.dims[id.index()].clone();
        let base = self.terms.find_base(&Base::Value { id, dims });
        base.map(|b| self.terms.base_facts[b.0 as usize]).unwrap_or_default()
    }

    /// The term of which a mask says where it is zero.
    fn zero_at(&self, id: Id) -> Option<TermId> {
        let base = Base::Value { id, dims: self.dims[id.index()].clone() };
        self.terms.zero_of.get(&self.terms.find_base(&base)?).copied()
    }

    fn hot_rows(&self, id: Id, rows: &[Var], var: Var) -> Sample {
        let vars = rising(rows.iter().copied().chain([var]).collect());
        let space = self.space();
        let (row, class) = (space.places(rows, &vars), space.along(var, &vars));
        let chosen = |row: usize, point: usize| {
            mixed(u64::from(id.0), point as u64, row as u64) as usize % space.classes(var)
        };
        let places = row.into_iter().zip(class);
        let one = |(r, c)| (0..POINTS).map(move |p| f64::from(chosen(r, p) == c));
        self.space().exact(vars, places.flat_map(one).collect())
    }

    fn hot_sample(&mut self, b: BaseId) -> Rc<Sample> {
        if let Some(known) = self.accuracy.hots.get(&b) {
            return known.clone();
        }
        let Base::Hot { index, dims, var } = self.terms.get(b).clone() else {
            unreachable!("one-hot rows")
        };
        let rows = rising(dims.iter().flatten().copied().collect());
        let made = Rc::new(self.hot_rows(index, &rows, var));
        self.accuracy.hots.insert(b, made.clone());
        made
    }

    /// The results of an operation of a plan with their rounding errors. The results of operations
    /// it depends on are kept.
    fn plan_sample(&mut self, plan: &mut Plan, c: f64, root: NodeId) -> Sample {
        let needed = plan.needed(root);
        for n in (0..=root).filter(|n| needed[*n]) {
            if plan.nodes[n].sample.is_none() {
                plan.nodes[n].sample = Some(self.operation_sample(plan, n));
            }
        }
        self.space().scale(plan.sample(root), c)
    }

    fn operation_sample(&mut self, plan: &Plan, n: NodeId) -> Rc<Sample> {
        let operation = &plan.nodes[n].operation;
        match operation {
            Operation::Have(id, dims) => return self.sample_with(*id, dims),
            Operation::Hot(b) => return self.hot_sample(*b),
            _ => {}
        }
        let hot = match operation {
            Operation::Pick(_, b) => Some((self.hot_sample(*b), *b)),
            _ => None,
        };
        let space = self.space();
        let of = |n: &NodeId| plan.sample(*n);
        Rc::new(match operation {
            Operation::One => space.number(1.0),
            Operation::Add(a, b) => space.add(of(a), of(b)),
            Operation::Sub(a, b) => space.sub(of(a), of(b)),
            Operation::Mul(a, b) => space.mul(of(a), of(b)),
            Operation::Div(a, b) => space.div(of(a), of(b)),
            Operation::Scale(a, c) => space.scale(of(a), f64::from_bits(*c)),
            Operation::Pow(a, e) => space.pow(of(a), f64::from_bits(*e)),
            Operation::Apply(f, a) => space.apply(*f, of(a)),
            Operation::Sum(a, vars) => space.sum(of(a), vars),
            Operation::Pick(a, _) => {
                let (hot, b) = hot.expect("just made");
                let Base::Hot { var, .. } = *self.terms.get(b) else { unreachable!("one-hot") };
                space.pick(of(a), &hot, var)
            }
            Operation::RowSlope(RowSlope::Softmax, p, g, var) => {
                let total = space.sum(&space.mul(of(p), of(g)), &[*var]);
                space.mul(of(p), &space.sub(of(g), &total))
            }
            Operation::RowSlope(RowSlope::LogSoftmax, l, g, var) => {
                let p = space.apply(Fun::Exp, of(l));
                space.sub(of(g), &space.mul(&p, &space.sum(of(g), &[*var])))
            }
            Operation::Have(..) | Operation::Hot(_) => unreachable!("returned above"),
        })
    }

    /// The term as it would be written.
    pub(super) fn term_sample(&mut self, t: TermId) -> Rc<Sample> {
        if let Some(known) = self.accuracy.terms.get(&t) {
            return known.clone();
        }
        let (mut plan, c, n) = self.planned(t);
        let made = Rc::new(self.plan_sample(&mut plan, c, n));
        self.accuracy.terms.insert(t, made.clone());
        made
    }

    /// Whether the term, as it would be written, is as accurate as the value that the program
    /// computes.
    pub(super) fn may_be_written(&mut self, t: TermId, id: Id) -> bool {
        if self.is_itself(t, id) {
            return true;
        }
        let old = self.sample_of(id);
        let new = self.term_sample(t);
        self.is_as_accurate(&new, &old)
    }

    /// Whether one form of a term is as accurate as another.
    pub(super) fn is_accurate_form(&mut self, new: TermId, old: TermId) -> bool {
        let (new, old) = (self.term_sample(new), self.term_sample(old));
        self.is_as_accurate(&new, &old)
    }

    /// Whether the steps are as accurate as the value that they are to replace.
    pub(super) fn is_accurate_for(&mut self, plan: &mut Plan, c: f64, n: NodeId, id: Id) -> bool {
        self.is_accurate_beside(plan, (c, n), id, 1.0)
    }

    /// Whether steps are as accurate as a multiple of a value.
    pub(super) fn is_accurate_beside(
        &mut self,
        plan: &mut Plan,
        (c, n): (f64, NodeId),
        id: Id,
        times: f64,
    ) -> bool {
        let new = self.plan_sample(plan, c, n);
        let old = self.sample_of(id);
        let old = self.space().scale(&old, times);
        self.is_as_accurate(&new, &old)
    }

    /// Whether the form is as accurate as the other at all points, and its values are the same.
    pub(super) fn is_as_accurate(&self, new: &Sample, old: &Sample) -> bool {
        let vars = union_of(&new.vars, &old.vars);
        let (a, b) = (self.space().places(&new.vars, &vars), self.space().places(&old.vars, &vars));
        self.points().all(|p| {
            let places = |all: &[usize]| all.iter().map(|i| i * POINTS + p).collect::<Vec<_>>();
            self.is_no_worse((new, places(&a)), (old, places(&b)), p)
        })
    }

    /// The same at one point, for these elements.
    fn is_no_worse(
        &self,
        (new, a): (&Sample, Vec<usize>),
        (old, b): (&Sample, Vec<usize>),
        point: usize,
    ) -> bool {
        let largest = self.largest();
        let counts = |i: usize| old.value[i].abs() < largest && old.error[i] < largest;
        let all = || (point..old.value.len()).step_by(POINTS).filter(|i| counts(*i));
        // Distance by which roundings of the forward pass move the old form itself.
        let moved = all().map(|i| (old.noisy[i] - old.value[i]).abs()).fold(0.0, f64::max);
        let floor = SMALL * all().map(|i| old.error[i]).fold(0.0, f64::max);
        a.into_iter().zip(b).filter(|(_, j)| counts(*j)).all(|(i, j)| {
            let bound = old.error[j] + floor;
            new.value[i].is_finite()
                && new.error[i] <= SLACK * bound
                && (new.value[i] - old.value[j]).abs() <= EQUAL * (new.error[i] + bound)
                && (new.noisy[i] - old.noisy[j]).abs() <= SLACK * (ROUNDING * bound + moved)
        })
    }

    /// An instruction applied to its operands, step by step as its kernel computes it; `None` where
    /// the steps are not known.
    fn original(&mut self, instruction: &Instruction) -> Option<Sample> {
        let reading = instruction.op.reading();
        if !self.program.info(instruction.result()).meta.dtype.is_float() {
            return None;
        }
        let mut x: Vec<Rc<Sample>> = Vec::new();
        for (k, id) in instruction.inputs.iter().enumerate() {
            if !self.program.info(*id).meta.dtype.is_float() {
                continue;
            }
            let dims = self.renamed.get(&(self.at, k)).unwrap_or(&self.dims[id.index()]).clone();
            x.push(self.sample_with(*id, &dims));
        }
        if let Reading::Gather { .. } | Reading::GatherGrad { .. } = reading {
            return self.gathered(instruction, &x);
        }
        let vars_of_last = |id: Id| self.dims[id.index()].last().copied().flatten();
        let space = self.space();
        let one = space.number(1.0);
        let given = x.first()?;
        let g = x.last()?;
        let times = |slope: Sample| space.mul(g, &slope);
        if let Some((sign, axes)) = ops::extreme(instruction) {
            let most = space.largest(&space.scale(given, sign), &self.axes_of(instruction, &axes));
            return Some(space.scale(&most, sign));
        }
        Some(match reading {
            Reading::Add => space.add(given, g),
            Reading::Sub => space.sub(given, g),
            Reading::Neg => space.scale(given, -1.0),
            Reading::Mul => space.mul(given, g),
            Reading::Div => space.div(given, g),
            Reading::Pow => space.pow(given, self.exponent(instruction)?),
            Reading::Power(p) => space.pow(given, p),
            Reading::Exp => space.apply(Fun::Exp, given),
            Reading::Log => space.apply(Fun::Log, given),
            Reading::Tanh => space.apply(Fun::Tanh, given),
            Reading::Sigmoid => space.apply(Fun::Sigmoid, given),
            Reading::Slope(SlopeReading::Tanh) => times(space.sub(&one, &space.pow(given, 2.0))),
            Reading::Slope(SlopeReading::Sigmoid) => {
                times(space.mul(given, &space.sub(&one, given)))
            }
            Reading::Slope(SlopeReading::Sqrt) => times(space.scale(&space.pow(given, -1.0), 0.5)),
            Reading::Slope(SlopeReading::Rsqrt) => times(space.scale(&space.pow(given, 3.0), -0.5)),
            Reading::Slope(SlopeReading::Reciprocal) => {
                times(space.scale(&space.pow(given, 2.0), -1.0))
            }
            Reading::Slope(SlopeReading::Square) => times(space.scale(given, 2.0)),
            Reading::Slope(SlopeReading::Log1p) => times(space.pow(&space.add(&one, given), -1.0)),
            Reading::Slope(SlopeReading::Pow) => {
                let e = self.exponent(instruction)?;
                times(space.scale(&space.pow(given, e - 1.0), e))
            }
            Reading::Permute(_) | Reading::Expand | Reading::Reshape => {
                let same = rising(
                    self.dims[instruction.result().index()].iter().flatten().copied().collect(),
                );
                // Axes that have taken on another meaning are not followed.
                if given.vars.iter().any(|v| !same.contains(v)) {
                    return None;
                }
                (**given).clone()
            }
            Reading::Softmax => {
                space.apply(Fun::Softmax(vars_of_last(instruction.inputs[0])?), given)
            }
            Reading::SoftmaxGrad => {
                let var = vars_of_last(instruction.result())?;
                let pg = space.mul(given, g);
                let total = space.sum(&pg, &[var]);
                space.mul(given, &space.sub(g, &total))
            }
            Reading::LogSoftmaxGrad => {
                let var = vars_of_last(instruction.result())?;
                let p = space.apply(Fun::Exp, given);
                space.sub(g, &space.mul(&p, &space.sum(g, &[var])))
            }
            Reading::Fold { fold, axes, .. } => {
                let axes: Vec<usize> = axes.iter().collect();
                return self.reduced_sample(instruction, fold, &axes, given);
            }
            Reading::VarGrad { factor } => {
                space.scale(&space.mul(&space.sub(given, &x[1]), g), factor)
            }
            // For forward values only: their terms say what they are, and how they were computed
            // does not matter.
            Reading::Log1p | Reading::Expm1 | Reading::LogSigmoid | Reading::LogSoftmax => {
                let t = self.values[instruction.result().index()];
                let known = !self.is_itself(t, instruction.result());
                return known.then(|| self.evaluated(t));
            }
            _ => return None,
        })
    }

    fn exponent(&self, instruction: &Instruction) -> Option<f64> {
        self.terms.as_number(self.values[instruction.inputs.get(1)?.index()])
    }

    fn gathered(&mut self, instruction: &Instruction, x: &[Rc<Sample>]) -> Option<Sample> {
        if !ops::gathers_one(&self.program, instruction) {
            return None;
        }
        let (axis, whole) = ops::gather(instruction)?;
        let mut dims = self.dims[whole.index()].clone();
        let var = dims[axis]?;
        dims[axis] = None;
        let b = self.terms.hot_base(instruction.inputs[1], dims, var);
        let hot = self.hot_sample(b);
        let space = self.space();
        Some(match whole == instruction.result() {
            true => space.mul(&hot, x.first()?),
            false => space.pick(x.first()?, &hot, var),
        })
    }

    fn reduced_sample(
        &self,
        instruction: &Instruction,
        fold: Fold,
        axes: &[usize],
        x: &Sample,
    ) -> Option<Sample> {
        let vars = self.axes_of(instruction, axes);
        let n = self.count(instruction, axes);
        let space = self.space();
        Some(match fold {
            Fold::Sum => space.sum(x, &vars),
            Fold::Mean => space.scale(&space.sum(x, &vars), 1.0 / n),
            Fold::Var { correction } | Fold::Std { correction } => {
                let correction = correction as f64;
                let mean = space.scale(&space.sum(x, &vars), 1.0 / n);
                let squares = space.pow(&space.sub(x, &mean), 2.0);
                let var = space.scale(&space.sum(&squares, &vars), 1.0 / (n - correction));
                if let Fold::Var { .. } = fold { var } else { space.pow(&var, 0.5) }
            }
            Fold::LogSumExp if vars.len() == 1 => space.apply(Fun::LogSumExp(vars[0]), x),
            Fold::Norm { p: 2.0 } => space.pow(&space.sum(&space.pow(x, 2.0), &vars), 0.5),
            _ => return None,
        })
    }
}

/// The seed of a value's numbers at a point.
fn seed_of(id: Id, point: usize) -> u64 {
    u64::from(id.0) << 8 | point as u64
}

/// Element `i` of an atom, drawn at random.
fn draw(how: Draw, facts: Facts, seed: u64, i: usize) -> f64 {
    let u = |k: u64| uniform(mixed(seed, k, i as u64));
    let own = |k: u64| uniform(mixed(seed, k, u64::MAX));
    if facts.mask {
        return f64::from(u(0) > 0.5 || i == 0);
    }
    let normal = (-2.0 * u(1).ln()).sqrt() * (std::f64::consts::TAU * u(2)).cos();
    let x = match how {
        Draw::Normal => normal,
        Draw::Far(by) => by + normal,
        Draw::Scaled => normal * 10f64.powf(6.0 * own(3) - 3.0),
        Draw::Mixed => match (own(4) * 6.0) as usize {
            0 => normal,
            1 => 300.0 + normal,
            2 => 10.0 * (own(5) - 0.5) + 1e-3 * normal,
            3 => 1e-3 * normal,
            4 => 100.0 * normal,
            _ => 10.0 + 0.1 * normal,
        },
    };
    let range = facts.range.unwrap_or(super::term::Range::ALL);
    match (range.low.is_finite(), range.high.is_finite()) {
        (false, false) => x,
        (true, true) => range.low + (range.high - range.low) / (1.0 + (-x).exp()),
        (true, false) => range.low + x.abs().max(1e-6),
        (false, true) => range.high - x.abs().max(1e-6),
    }
}
