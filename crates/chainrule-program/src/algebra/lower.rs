//! Reading: from instructions to terms.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Stage;
use super::ops::{self, Shapes};
use super::rules::RuleId;
use super::stage::Price;
use super::term::{Before, Dims, Facts, Fun, ONE, Range, TermId, Var, Vars, ZERO};
use crate::dtype::DType;
use crate::error::Result;
use crate::ir::{Id, Info, Instruction, Origin, Phase};
use crate::tensor::reading::{Fold, Reading, SlopeReading};
use crate::tensor::value::Value;

/// Larger constants are not examined.
const LOOKED_INTO: usize = 1 << 16;

/// Number of other constants that a constant is compared with.
const LOOKED_AT: usize = 24;

impl Stage {
    /// The term of each value, in order.
    pub(super) fn read(&mut self) -> Result<()> {
        let defined: Vec<bool> =
            self.program.values.iter().map(|v| matches!(v.from, Origin::Result)).collect();
        for i in (0..self.program.values.len()).filter(|i| !defined[*i]) {
            let id = Id(i as u32);
            let t = match &self.program.values[i].from {
                Origin::Constant(value) => self.constant(id, &value.clone()),
                _ => self.atom(id, Facts::default()),
            };
            self.define(id, t, Price::default());
        }
        for at in 0..self.program.instructions.len() {
            self.at = at;
            let instruction = self.program.instructions[at].clone();
            self.read_one(at, &instruction)?;
        }
        Ok(())
    }

    fn read_one(&mut self, at: usize, instruction: &Instruction) -> Result<()> {
        let result = instruction.result();
        let inputs: SmallVec<[TermId; 4]> =
            (0..instruction.inputs.len()).map(|k| self.operand(at, instruction, k)).collect();
        self.terms.events.clear();
        let is_forward = instruction.phase == Phase::Forward;
        if is_forward != self.is_forward {
            self.is_forward = is_forward;
            self.best_of.clear();
        }
        let dtype = self.program.info(result).meta.dtype;
        let float = dtype.is_float();
        if float {
            self.dtype = dtype;
            self.terms.epsilon = half_a_unit(dtype);
        }
        let known =
            (float && instruction.phase != Phase::Update && instruction.op.generator().is_none())
                .then(|| self.term_of(instruction, &inputs))
                .flatten();
        let is_known = known.is_some_and(|t| !self.terms.is_large(t));
        let t = match known {
            Some(t) if !self.terms.is_large(t) => t,
            _ => {
                self.terms.events.clear();
                let facts = self.facts_of(instruction, &inputs);
                let t = self.atom(result, facts);
                self.note_zeros(instruction, t);
                t
            }
        };
        self.verify(instruction, &inputs, t, is_known)?;
        if is_forward && is_known && self.loses_an_axis(&inputs, t, instruction) {
            self.is_degenerate = true;
        }
        self.values[result.index()] = t;
        self.follow(instruction);
        let original = self.original_cost(at);
        let cost = match instruction.phase {
            Phase::Backward if self.may_be_written(t, result) => self.cost(t).min(original),
            Phase::Backward => original,
            _ => 0.0,
        };
        self.note_events(at, original - cost);
        let price = match self.live[result.index()] {
            true => Price::default(),
            false => self.price(at, cost),
        };
        self.define(result, t, price);
        for id in &instruction.outputs[1..] {
            let t = self.beside(instruction, &inputs, *id);
            self.define(*id, t, Price::default());
        }
        Ok(())
    }

    /// Whether the result of an elementwise instruction is constant along an axis that its operands
    /// have: all its elements along that axis are roundings of one number.
    fn loses_an_axis(&self, inputs: &[TermId], t: TermId, instruction: &Instruction) -> bool {
        if !matches!(ops::shapes(&self.program, instruction), Shapes::Elementwise) {
            return false;
        }
        let left = self.terms.vars(t);
        let lost = |x: &TermId| self.terms.vars(*x).iter().any(|v| !left.contains(v));
        self.terms.as_number(t).is_none() && inputs.iter().any(lost)
    }

    /// The term of operand `k`. If its axes already stand for something else, it is an atom with
    /// axes of its own.
    fn operand(&mut self, at: usize, instruction: &Instruction, k: usize) -> TermId {
        let id = instruction.inputs[k];
        match self.renamed.get(&(at, k)).cloned() {
            Some(dims) => {
                let t = self.values[id.index()];
                match self.terms.as_number(t) {
                    Some(_) => t,
                    None => {
                        let b = self.terms.value_base(id, dims, Facts::default());
                        self.terms.power(b, 1.0)
                    }
                }
            }
            None => self.values[id.index()],
        }
    }

    /// A value that the algebra does not look into.
    fn atom(&mut self, id: Id, facts: Facts) -> TermId {
        let dims = self.dims[id.index()].clone();
        let b = self.terms.value_base(id, dims, facts);
        self.terms.power(b, 1.0)
    }

    fn constant(&mut self, id: Id, value: &Arc<Value>) -> TermId {
        let dtype = value.dtype();
        let n = value.numel();
        if !dtype.is_float() || n == 0 || n > LOOKED_INTO {
            return self.atom(id, Facts::default());
        }
        let numbers = elements(value);
        let first = numbers[0];
        if numbers.iter().all(|x| *x == first) && first.is_finite() {
            return self.terms.number(nice(first, dtype));
        }
        if numbers.iter().any(|x| !x.is_finite()) {
            return self.atom(id, Facts::default());
        }
        let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if let Some(t) = self.like_another(id, &numbers, dtype) {
            return t;
        }
        if let Some(t) = self.multiple_of_rows(id, &numbers) {
            return t;
        }
        let mask = numbers.iter().all(|x| *x == 0.0 || *x == 1.0);
        let range = Some(Range { low, high, closed: [true, true] });
        let t = self.atom(id, Facts { range, mask, sums_to_one: None });
        self.arrays.push((id, t, numbers));
        t
    }

    /// The number and the axis, if each row along it is one number among zeros, the same in all
    /// rows.
    fn one_hot_rows(&self, id: Id, numbers: &[f64]) -> Option<(f64, Var)> {
        let shape = self.program.info(id).meta.shape;
        let c = *numbers.iter().find(|x| **x != 0.0)?;
        if numbers.iter().any(|x| *x != 0.0 && *x != c) {
            return None;
        }
        let alone = |axis: usize| {
            let (n, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
            numbers.chunks(n * inner).all(|block| {
                (0..inner)
                    .all(|i| block[i..].iter().step_by(inner).filter(|x| **x != 0.0).count() == 1)
            })
        };
        let dims = &self.dims[id.index()];
        let axis = (0..shape.rank()).rev().find(|a| dims[*a].is_some() && alone(*a))?;
        Some((nice(c, self.program.info(id).meta.dtype), dims[axis]?))
    }

    /// Rows of a number among zeros, as the number times rows of a one among zeros.
    fn multiple_of_rows(&mut self, id: Id, numbers: &[f64]) -> Option<TermId> {
        let (c, var) = self.one_hot_rows(id, numbers)?;
        let rows = match c {
            1.0 => id,
            _ => self.rows_of_ones(id, numbers)?,
        };
        let facts = Facts { range: Some(Range::UNIT), mask: true, sums_to_one: Some(var) };
        let ones = self.atom(rows, facts);
        self.values[rows.index()] = ones;
        let t = self.terms.scaled(ones, c);
        self.arrays.push((id, t, numbers.to_vec()));
        Some(t)
    }

    fn rows_of_ones(&mut self, like: Id, numbers: &[f64]) -> Option<Id> {
        let meta = self.program.info(like).meta;
        let of = |x: &f64| f64::from(*x != 0.0);
        let value = match meta.dtype {
            DType::F32 => Value::build::<f32>("one_hot", meta.shape, |out| {
                out.iter_mut().zip(numbers).for_each(|(o, x)| *o = of(x) as f32);
            }),
            _ => Value::build::<f64>("one_hot", meta.shape, |out| {
                out.iter_mut().zip(numbers).for_each(|(o, x)| *o = of(x));
            }),
        };
        let name = self.names.unique("one_hot");
        let from = Origin::Constant(Arc::new(value.ok()?));
        let id = self.new_value(Info { meta, name, given: false, from });
        self.dims.push(self.dims[like.index()].clone());
        self.values.push(ZERO);
        self.prices.push(Price::default());
        self.live.push(true);
        self.position.push(0);
        Some(id)
    }

    /// A constant that is `a x + b` for another constant `x`, as folding makes them.
    fn like_another(&mut self, id: Id, numbers: &[f64], dtype: DType) -> Option<TermId> {
        // Allows for the rounding of the product and of the sum, hence twice the size.
        let slack = 3.0 * half_a_unit(dtype);
        let second = numbers.iter().position(|x| *x != numbers[0])?;
        let found = self.arrays.iter().rev().take(LOOKED_AT).find_map(|(other, t, x)| {
            let same = self.dims[other.index()] == self.dims[id.index()]
                && self.program.info(*other).meta == self.program.info(id).meta;
            if !same || x[0] == x[second] {
                return None;
            }
            let a = nice((numbers[0] - numbers[second]) / (x[0] - x[second]), dtype);
            let a = snapped(a);
            let b = snapped(nice(numbers[0] - a * x[0], dtype));
            let fits = |(x, y): (&f64, &f64)| {
                let size = (a * x).abs().max(b.abs());
                (a * x + b - y).abs() <= slack * size
            };
            x.iter().zip(numbers).all(fits).then_some((*t, a, b))
        });
        let (t, a, b) = found?;
        Some(self.terms.add(&[(t, super::term::tidy(a)), (ONE, super::term::tidy(b))]))
    }

    /// Records the value whose zeros a mask marks.
    fn note_zeros(&mut self, instruction: &Instruction, mask: TermId) {
        if instruction.op.reading() != Reading::Cast {
            return;
        }
        let from = self.position[instruction.inputs[0].index()];
        let Some(made_by) = from.checked_sub(1).map(|at| &self.program.instructions[at]) else {
            return;
        };
        if made_by.op.reading() != Reading::Equal {
            return;
        }
        let [x, zero] = [0, 1].map(|k| self.values[made_by.inputs[k].index()]);
        let same = self.dims[made_by.inputs[0].index()] == self.dims[instruction.result().index()];
        if zero == ZERO && same && self.terms.as_number(x).is_none() {
            let m = self.terms.summands(mask)[0].0;
            let b = self.terms.factors(m)[0].0;
            self.terms.zero_of.insert(b, x);
        }
    }

    /// Facts of an opaque op's result.
    fn facts_of(&self, instruction: &Instruction, _: &[TermId]) -> Facts {
        let not_negative = Some(Range::NOT_NEGATIVE);
        let hot = |i: &&Instruction| i.op.reading() == Reading::OneHot;
        match instruction.op.reading() {
            Reading::Cast => {
                let from = instruction.inputs[0];
                let source = self.program.info(from).meta.dtype;
                let made_by =
                    self.program.instructions[..self.at].iter().rev().find(|i| i.result() == from);
                let hot = made_by.filter(hot);
                let mask = source == DType::Bool || hot.is_some();
                let sums_to_one = hot.and_then(|_| *self.dims[from.index()].last()?);
                let range = mask.then_some(Range::UNIT);
                Facts { range, mask, sums_to_one }
            }
            Reading::NotNegative | Reading::Fold { fold: Fold::Norm { .. }, .. } => {
                Facts { range: not_negative, ..Facts::default() }
            }
            Reading::Positive => Facts { range: Some(Range::POSITIVE), ..Facts::default() },
            _ => Facts::default(),
        }
    }

    /// The second output of a kernel.
    fn beside(&mut self, instruction: &Instruction, inputs: &[TermId], id: Id) -> TermId {
        if let Reading::Fold { fold, axes, .. } = instruction.op.reading()
            && matches!(fold, Fold::Var { .. } | Fold::Std { .. })
        {
            let axes: Vec<usize> = axes.iter().collect();
            let vars = self.axes_of(instruction, &axes);
            let n = self.count(instruction, &axes);
            // The deviation of a single element is 0, and its gradient is arbitrary.
            if !vars.is_empty() && n > 0.0 {
                let sum = self.reduce(&vars, inputs[0]);
                let mean = self.terms.scaled(sum, 1.0 / n);
                if !self.terms.is_large(mean) {
                    return mean;
                }
            }
        }
        self.atom(id, Facts::default())
    }

    /// The axes of the first operand at these places.
    pub(super) fn axes_of(&self, instruction: &Instruction, axes: &[usize]) -> Vars {
        let dims: &Dims = &self.dims[instruction.inputs[0].index()];
        super::term::rising(axes.iter().filter_map(|a| dims[*a]).collect())
    }

    /// Number of elements along these axes of the first operand.
    pub(super) fn count(&self, instruction: &Instruction, axes: &[usize]) -> f64 {
        let shape = self.program.info(instruction.inputs[0]).meta.shape;
        axes.iter().map(|&a| shape[a]).product::<usize>() as f64
    }

    /// The result of an instruction as a term, if the algebra knows the op.
    fn term_of(&mut self, instruction: &Instruction, x: &[TermId]) -> Option<TermId> {
        let (name, reading) = (instruction.op.name(), instruction.op.reading());
        let zero = |k: usize| x.get(k) == Some(&ZERO);
        if self.terms.on(RuleId::Zero) && ops::gives_zero(&*instruction.op, zero, x.len()) {
            self.terms.applied(RuleId::Zero, Before::Op(name), ZERO);
            return Some(ZERO);
        }
        if let Some(t) = self.arithmetic(&reading, x) {
            return Some(t);
        }
        match reading {
            Reading::Slope(slope) => self.slope(name, slope, x),
            Reading::VarGrad { factor } if self.terms.on(RuleId::Slope) => {
                self.variance_slope(factor, x)
            }
            Reading::Fold { fold, axes, .. } => {
                let axes: Vec<usize> = axes.iter().collect();
                self.reduction(instruction, fold, &axes, x[0])
            }
            Reading::Permute(_) | Reading::Expand => Some(x[0]),
            Reading::Reshape => {
                let same = matches!(ops::shapes(&self.program, instruction), Shapes::Given(_));
                (same || self.terms.vars(x[0]).is_empty()).then_some(x[0])
            }
            Reading::Softmax => {
                let var = (*self.dims[instruction.inputs[0].index()].last()?)?;
                Some(self.terms.apply(Fun::Softmax(var), x[0]))
            }
            Reading::LogSoftmax => {
                let var = (*self.dims[instruction.inputs[0].index()].last()?)?;
                let p = self.terms.apply(Fun::Softmax(var), x[0]);
                Some(self.terms.apply(Fun::Log, p))
            }
            Reading::SoftmaxGrad if self.terms.on(RuleId::Slope) => {
                let var = self.last_of(instruction)?;
                let t = self.softmax_slope(x[0], x[1], x[0], var);
                self.terms.applied(RuleId::Slope, Before::Op(name), t);
                Some(t)
            }
            Reading::LogSoftmaxGrad if self.terms.on(RuleId::Slope) => {
                let var = self.last_of(instruction)?;
                let p = self.terms.apply(Fun::Exp, x[0]);
                let total = self.reduce(&[var], x[1]);
                let shared = self.mul(p, total);
                let t = self.add(&[(x[1], 1.0), (shared, -1.0)]);
                self.terms.applied(RuleId::Slope, Before::Op(name), t);
                Some(t)
            }
            Reading::GatherGrad { .. } if ops::gathers_one(&self.program, instruction) => {
                let hot = self.hot(instruction)?;
                Some(self.mul(hot, x[0]))
            }
            Reading::Gather { axis } if ops::gathers_one(&self.program, instruction) => {
                let hot = self.hot(instruction)?;
                let var = self.dims[instruction.inputs[0].index()][axis]?;
                let picked = self.mul(hot, x[0]);
                Some(self.reduce(&[var], picked))
            }
            _ => None,
        }
    }

    fn last_of(&self, instruction: &Instruction) -> Option<Var> {
        *self.dims[instruction.result().index()].last()?
    }

    /// `p (g - sum(p g))`.
    fn softmax_slope(&mut self, p: TermId, g: TermId, weight: TermId, var: Var) -> TermId {
        let pg = self.mul(p, g);
        let total = self.reduce(&[var], pg);
        let shared = self.mul(weight, total);
        self.add(&[(pg, 1.0), (shared, -1.0)])
    }

    /// The one-hot rows of a gather along its axis of the whole.
    fn hot(&mut self, instruction: &Instruction) -> Option<TermId> {
        let (axis, whole) = ops::gather(instruction)?;
        let var = self.dims[whole.index()][axis]?;
        let index = instruction.inputs[1];
        // The indices have the axes of the whole, without the one that is picked from.
        let mut dims = self.dims[whole.index()].clone();
        dims[axis] = None;
        let b = self.terms.hot_base(index, dims, var);
        Some(self.terms.power(b, 1.0))
    }

    fn arithmetic(&mut self, reading: &Reading, x: &[TermId]) -> Option<TermId> {
        Some(match reading {
            Reading::Add => self.add(&[(x[0], 1.0), (x[1], 1.0)]),
            Reading::Sub => self.add(&[(x[0], 1.0), (x[1], -1.0)]),
            Reading::Neg => self.terms.scaled(x[0], -1.0),
            Reading::Mul => self.mul(x[0], x[1]),
            Reading::Div => {
                let inverse = self.terms.pow(x[1], -1.0);
                self.mul(x[0], inverse)
            }
            Reading::Pow => {
                let e = self.terms.as_number(x[1])?;
                self.pow(x[0], e)
            }
            Reading::Power(p) => self.pow(x[0], *p),
            Reading::Exp => self.terms.apply(Fun::Exp, x[0]),
            Reading::Log => self.terms.apply(Fun::Log, x[0]),
            Reading::Log1p => {
                let above = self.add(&[(ONE, 1.0), (x[0], 1.0)]);
                self.terms.apply(Fun::Log, above)
            }
            Reading::Expm1 => {
                let e = self.terms.apply(Fun::Exp, x[0]);
                self.add(&[(e, 1.0), (ONE, -1.0)])
            }
            Reading::Tanh => self.terms.apply(Fun::Tanh, x[0]),
            Reading::Sigmoid => self.terms.apply(Fun::Sigmoid, x[0]),
            Reading::LogSigmoid => {
                let p = self.terms.apply(Fun::Sigmoid, x[0]);
                self.terms.apply(Fun::Log, p)
            }
            _ => return None,
        })
    }

    /// A gradient times the slope of an op on one tensor.
    fn slope(&mut self, name: &'static str, slope: SlopeReading, x: &[TermId]) -> Option<TermId> {
        if !self.terms.on(RuleId::Slope) {
            return None;
        }
        let slope = match slope {
            SlopeReading::Tanh => {
                let square = self.pow(x[0], 2.0);
                self.add(&[(ONE, 1.0), (square, -1.0)])
            }
            SlopeReading::Sigmoid => {
                let rest = self.add(&[(ONE, 1.0), (x[0], -1.0)]);
                self.mul(x[0], rest)
            }
            SlopeReading::Sqrt => {
                let inverse = self.terms.pow(x[0], -1.0);
                self.terms.scaled(inverse, 0.5)
            }
            SlopeReading::Rsqrt => {
                let cube = self.terms.pow(x[0], 3.0);
                self.terms.scaled(cube, -0.5)
            }
            SlopeReading::Reciprocal => {
                let square = self.terms.pow(x[0], 2.0);
                self.terms.scaled(square, -1.0)
            }
            SlopeReading::Square => self.terms.scaled(x[0], 2.0),
            SlopeReading::Log1p => {
                let above = self.add(&[(ONE, 1.0), (x[0], 1.0)]);
                self.terms.pow(above, -1.0)
            }
            SlopeReading::Pow => {
                let e = self.terms.as_number(x[1])?;
                let power = self.pow(x[0], e - 1.0);
                self.terms.scaled(power, e)
            }
        };
        let g = *x.last()?;
        let t = self.mul(g, slope);
        self.terms.applied(RuleId::Slope, Before::Op(name), t);
        Some(t)
    }

    /// `factor (x - mean) g`.
    fn variance_slope(&mut self, factor: f64, x: &[TermId]) -> Option<TermId> {
        if !factor.is_finite() {
            return None;
        }
        let factor = factor_of(factor);
        let difference = self.add(&[(x[0], 1.0), (x[1], -1.0)]);
        let scaled = self.terms.scaled(x[2], factor);
        Some(self.mul(difference, scaled))
    }

    fn reduction(
        &mut self,
        instruction: &Instruction,
        fold: Fold,
        axes: &[usize],
        x: TermId,
    ) -> Option<TermId> {
        let vars = self.axes_of(instruction, axes);
        let n = self.count(instruction, axes);
        Some(match fold {
            Fold::Sum => self.reduce(&vars, x),
            Fold::Mean if n > 0.0 => {
                let sum = self.reduce(&vars, x);
                self.terms.scaled(sum, 1.0 / n)
            }
            Fold::Var { correction } | Fold::Std { correction } => {
                let correction = correction as f64;
                if n - correction <= 0.0 || vars.is_empty() {
                    return None;
                }
                let sum = self.reduce(&vars, x);
                let difference = self.add(&[(x, 1.0), (sum, -1.0 / n)]);
                // Kept as a square: a sum of squares is known not to be negative.
                let square = self.terms.pow(difference, 2.0);
                let total = self.terms.reduce_whole(&vars, square);
                let var = self.terms.scaled(total, 1.0 / (n - correction));
                if let Fold::Var { .. } = fold { var } else { self.pow(var, 0.5) }
            }
            Fold::LogSumExp if vars.len() == 1 && axes.len() == 1 => {
                self.terms.apply(Fun::LogSumExp(vars[0]), x)
            }
            Fold::Norm { p: 2.0 } => {
                let square = self.pow(x, 2.0);
                let total = self.reduce(&vars, square);
                self.pow(total, 0.5)
            }
            _ => return None,
        })
    }
}

/// `2 / (n - c)` as the user meant it.
fn factor_of(c: f64) -> f64 {
    let n = (2.0 / c).round();
    if n > 0.0 && 2.0 / n == c { 2.0 * (1.0 / n) } else { c }
}

/// The intended number: a decimal, or one over a whole number, that rounds to this one.
fn nice(c: f64, dtype: DType) -> f64 {
    if dtype != DType::F32 || c == 0.0 {
        return c;
    }
    let inverse = (1.0 / c).round();
    if inverse != 0.0 && inverse.abs() < 1e7 && (1.0 / inverse) as f32 == c as f32 {
        return 1.0 / inverse;
    }
    format!("{}", c as f32).parse().unwrap_or(c)
}

/// The fraction of small whole numbers that may be meant; the caller decides by looking at all
/// elements.
fn snapped(c: f64) -> f64 {
    const NEAR: f64 = 1e-6;
    const DENOMINATOR: f64 = 1e4;
    let (mut x, mut q, mut q0) = (c.abs(), 1.0, 0.0);
    while q <= DENOMINATOR {
        let p = (c * q).round();
        if (p / q - c).abs() <= NEAR * NEAR.max(c.abs()) || (q == 1.0 && (p - c).abs() <= NEAR) {
            return p / q;
        }
        x = 1.0 / (x - x.trunc());
        (q, q0) = (x.trunc() * q + q0, q);
    }
    c
}

/// The relative error of one rounding.
fn half_a_unit(dtype: DType) -> f64 {
    0.5 * if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

/// The elements of a float value in f64.
pub(crate) fn elements(value: &Value) -> Vec<f64> {
    match value.dtype() {
        DType::F32 => {
            let mut out = vec![0f32; value.numel()];
            value.copy_to(&mut out);
            out.into_iter().map(f64::from).collect()
        }
        DType::F64 => {
            let mut out = vec![0f64; value.numel()];
            value.copy_to(&mut out);
            out
        }
        _ => Vec::new(),
    }
}
