//! The edits of one instruction: every way in which one operand, op or number may have been written
//! for another.

use std::sync::Arc;

use super::expression::Expression;
use super::replay::Replay;
use crate::dtype::DType;
use crate::program::{Id, Origin};
use crate::shape::Shape;
use crate::tensor::op::{Kernel, Op};
use crate::tensor::value::Meta;
use chainrule_core::ops::make;
use chainrule_core::ops::twins::twins;

/// Another right-hand side for an instruction.
#[derive(Clone)]
pub(crate) struct Edit {
    pub at: usize,
    pub to: Expression,
    /// The number at which the edit changes nothing, from which the effect is linear. `None` where
    /// no number is solved for.
    pub from: Option<f64>,
    pub cost: f64,
    pub kind: EditKind,
}

/// The kind of an edit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EditKind {
    /// Another value in place of an operand.
    Operand { was: Id, now: Id, turned: bool },
    /// A function of an operand in place of the operand.
    Function,
    /// Another op.
    Twin,
    /// Operands exchanged.
    Swapped,
    /// The op is superfluous: an operand is the result.
    Skipped,
    /// A factor that is solved for.
    Factor,
    /// A term that is missing, with its factor.
    Term(Id),
    /// A factor that is missing.
    Times(Id),
    /// A divisor that is missing.
    Over(Id),
    /// A missing mask: elements where it is false, or a float mask is not above 0, become 0.
    Mask(Id),
    /// A number.
    Number,
    /// An expression of the forward pass in place of an operand.
    Donated,
}

/// The most values that are tried in one place.
const MOST: usize = 120;

/// All edits of instruction `at`, the cheapest first. `takes` gives the values that may be tried,
/// each with the cost of naming it.
pub(crate) fn edits(replay: &Replay, at: usize, takes: &dyn Fn(Id) -> Option<f64>) -> Vec<Edit> {
    let maker = Maker { replay, at, takes };
    let mut out = Vec::new();
    maker.operands(&mut out);
    maker.ops(&mut out);
    maker.numbers(&mut out);
    if maker.meta(replay.program.list()[at].result()).dtype.is_float() {
        maker.functions(&mut out);
        maker.joined(&mut out);
        maker.inner(&mut out);
    }
    out.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    out
}

struct Maker<'a> {
    replay: &'a Replay,
    at: usize,
    takes: &'a dyn Fn(Id) -> Option<f64>,
}

fn value(id: Id) -> Expression {
    Expression::Value(id)
}

fn turned(e: Expression) -> Expression {
    Expression::apply(make::permute(&[1, 0]), [e])
}

fn is_elementwise(op: &dyn Op) -> bool {
    matches!(op.kernel(), Kernel::Map(_))
}

/// Whether a value of one shape broadcasts to another.
fn stretches(from: &Shape, to: &Shape) -> bool {
    from.broadcast(to) == Some(*to)
}

impl Maker<'_> {
    fn meta(&self, id: Id) -> Meta {
        self.replay.program.infos()[id.index()].meta
    }

    fn inputs(&self) -> &[Id] {
        &self.replay.program.list()[self.at].inputs
    }

    fn op(&self) -> &Arc<dyn Op> {
        &self.replay.program.list()[self.at].op
    }

    /// The instruction with another expression for one operand.
    fn with(&self, place: usize, e: Expression) -> Expression {
        let inputs = self.inputs().iter().enumerate();
        let mut e = Some(e);
        let all: Vec<Expression> = inputs
            .map(|(i, id)| if i == place { e.take().expect("once") } else { value(*id) })
            .collect();
        Expression::apply(self.op().clone(), all)
    }

    fn add(&self, out: &mut Vec<Edit>, to: Expression, cost: f64, kind: EditKind) {
        out.push(Edit { at: self.at, to, from: None, cost, kind });
    }

    fn solve(&self, out: &mut Vec<Edit>, to: Expression, from: f64, cost: f64, kind: EditKind) {
        out.push(Edit { at: self.at, to, from: Some(from), cost, kind });
    }

    /// Values that do not come from this instruction.
    fn candidates(&self) -> Vec<Id> {
        let mut found: Vec<Id> = (0..self.replay.program.infos().len() as u32)
            .map(Id)
            .filter(|id| (self.takes)(*id).is_some())
            .filter(|id| match self.replay.maker[id.index()] {
                Some(made) => !self.replay.is_below(self.at, made),
                None => self.meta(*id).shape.rank() > 0,
            })
            .collect();
        // Named values are likelier than intermediate ones.
        found.sort_by(|a, b| self.unnamed(*a).total_cmp(&self.unnamed(*b)));
        found.truncate(MOST);
        found
    }

    fn unnamed(&self, id: Id) -> f64 {
        (self.takes)(id).unwrap_or(1.0)
    }

    fn operands(&self, out: &mut Vec<Edit>) {
        let elementwise = is_elementwise(self.op().as_ref());
        let candidates = self.candidates();
        for (place, was) in self.inputs().iter().enumerate() {
            let meta = self.meta(*was);
            for &now in candidates.iter().filter(|now| *now != was) {
                let other = self.meta(now);
                if other.dtype != meta.dtype {
                    continue;
                }
                let kind = |turned| EditKind::Operand { was: *was, now, turned };
                let cost = 1.0 + self.unnamed(now);
                let result = self.meta(self.replay.program.list()[self.at].result()).shape;
                if other.shape == meta.shape || elementwise && stretches(&other.shape, &result) {
                    let more = if other.shape == meta.shape { 0.0 } else { 0.3 };
                    self.add(out, self.with(place, value(now)), cost + more, kind(false));
                }
                if let [a, b] = other.shape[..]
                    && meta.shape[..] == [b, a]
                {
                    let more = if a == b { 0.5 } else { 0.3 };
                    let to = self.with(place, turned(value(now)));
                    self.add(out, to, cost + more, kind(true));
                }
            }
            let donated = self.replay.donated.iter().filter(|(_, m)| m.dtype == meta.dtype);
            for (e, _) in donated.filter(|(_, m)| m.shape == meta.shape) {
                self.add(out, self.with(place, e.clone()), 1.6, EditKind::Donated);
            }
            if let [a, b] = meta.shape[..]
                && a == b
                && a > 1
            {
                let to = self.with(place, turned(value(*was)));
                self.add(out, to, 0.8, EditKind::Operand { was: *was, now: *was, turned: true });
            }
        }
    }

    fn ops(&self, out: &mut Vec<Edit>) {
        let result = self.meta(self.replay.program.list()[self.at].result());
        if let Some(first) = self.inputs().first() {
            for op in twins(self.op().as_ref(), &self.meta(*first).shape) {
                let inputs = self.inputs().iter().map(|id| value(*id));
                self.add(out, Expression::apply(op, inputs), 0.7, EditKind::Twin);
            }
        }
        // Another axis, index or order of axes, taken from other ops of this kind.
        let own = self.op();
        let mut tried: Vec<&Arc<dyn Op>> = Vec::new();
        for op in self.replay.kin.iter().filter(|op| own.id().is_some() && op.id() == own.id()) {
            if op.parameters() != own.parameters()
                && !tried.iter().any(|t| t.parameters() == op.parameters())
            {
                tried.push(op);
                let inputs = self.inputs().iter().map(|id| value(*id));
                self.add(out, Expression::apply(op.clone(), inputs), 0.9, EditKind::Twin);
            }
        }
        if let [a, b] = *self.inputs()
            && a != b
            && self.meta(a) == self.meta(b)
        {
            let to = Expression::apply(self.op().clone(), [value(b), value(a)]);
            self.add(out, to, 1.2, EditKind::Swapped);
        }
        for &id in self.inputs().iter().filter(|id| self.meta(**id).dtype == result.dtype) {
            if self.meta(id) == result {
                self.add(out, value(id), 1.1, EditKind::Skipped);
            } else if is_elementwise(self.op().as_ref())
                && stretches(&self.meta(id).shape, &result.shape)
            {
                let op = make::expand(result.shape);
                self.add(out, Expression::apply(op, [value(id)]), 1.4, EditKind::Skipped);
            }
        }
    }

    /// Constants of a single element: written numbers.
    fn numbers(&self, out: &mut Vec<Edit>) {
        for (place, id) in self.inputs().iter().enumerate() {
            let info = &self.replay.program.infos()[id.index()];
            let (Origin::Constant(at), 0, true) =
                (&info.from, info.meta.shape.rank(), info.meta.dtype.is_float())
            else {
                continue;
            };
            let x =
                chainrule_core::Tensor::from_parts(at.clone(), crate::tensor::node::Source::None)
                    .to_f64_vec()[0];
            let unknown = Expression::Unknown(info.meta.dtype);
            self.solve(out, self.with(place, unknown), x, 0.9, EditKind::Number);
            for other in [0.0, 1.0, 2.0, -1.0, 0.5, -0.5, -1.5, -2.0, 3.0, -x, 2.0 * x, x / 2.0]
                .into_iter()
                .chain([x - 1.0, x + 1.0, 1.0 / x])
                .filter(|o| *o != x && o.is_finite())
            {
                let to = self.with(place, Expression::Number(other, info.meta.dtype));
                self.add(out, to, 1.0, EditKind::Number);
            }
        }
    }

    /// Functions of an operand in its place.
    fn functions(&self, out: &mut Vec<Edit>) {
        let elementwise = is_elementwise(self.op().as_ref());
        for (place, id) in self.inputs().iter().enumerate() {
            let meta = self.meta(*id);
            if !meta.dtype.is_float() || (meta.shape.rank() == 0 && self.is_constant(*id)) {
                continue;
            }
            let one = || Expression::Number(1.0, meta.dtype);
            let x = || value(*id);
            let square = || Expression::apply(make::square(), [x()]);
            let mut all: Vec<(Expression, f64)> = vec![
                (square(), 1.3),
                (Expression::apply(make::sqrt(), [x()]), 1.5),
                (Expression::apply(make::reciprocal(), [x()]), 1.5),
                (Expression::apply(make::exp(), [x()]), 1.6),
                (Expression::apply(make::log(), [x()]), 1.7),
                (Expression::apply(make::tanh(), [x()]), 1.7),
                (Expression::apply(make::sigmoid(), [x()]), 1.7),
                (Expression::apply(make::sub(), [one(), x()]), 1.4),
                (Expression::apply(make::add(), [one(), x()]), 1.5),
                (Expression::apply(make::sub(), [one(), square()]), 1.4),
            ];
            if elementwise {
                for axis in 0..meta.shape.rank() {
                    let sum = Expression::apply(make::sum(&[axis], true), [x()]);
                    let count = Expression::Number(meta.shape[axis] as f64, meta.dtype);
                    all.push((Expression::apply(make::div(), [sum.clone(), count]), 1.8));
                    all.push((sum, 1.6));
                }
            }
            for (e, cost) in all {
                self.add(out, self.with(place, e), cost, EditKind::Function);
            }
        }
    }

    /// A missing factor of an operand that is no result of an instruction, or that the op uses as a
    /// whole.
    fn inner(&self, out: &mut Vec<Edit>) {
        let elementwise = is_elementwise(self.op().as_ref());
        for (place, was) in self.inputs().iter().enumerate() {
            let meta = self.meta(*was);
            if !meta.dtype.is_float() || elementwise && self.replay.maker[was.index()].is_some() {
                continue;
            }
            for id in self.candidates() {
                let other = self.meta(id);
                if other.dtype != meta.dtype || !stretches(&other.shape, &meta.shape) {
                    continue;
                }
                let times = Expression::apply(make::mul(), [value(*was), value(id)]);
                let over = Expression::apply(make::div(), [value(*was), value(id)]);
                let cost = self.unnamed(id);
                self.add(out, self.with(place, times), 1.5 + cost, EditKind::Times(id));
                self.add(out, self.with(place, over), 1.8 + cost, EditKind::Over(id));
            }
        }
    }

    fn is_constant(&self, id: Id) -> bool {
        matches!(self.replay.program.infos()[id.index()].from, Origin::Constant(_))
    }

    /// A factor, a term or a divisor that is missing.
    fn joined(&self, out: &mut Vec<Edit>) {
        let result = self.replay.program.list()[self.at].result();
        let meta = self.meta(result);
        let own = || Expression::of(&self.replay.program.list()[self.at]);
        let c = || Expression::Unknown(meta.dtype);
        let times = Expression::apply(make::mul(), [c(), own()]);
        self.solve(out, times, 1.0, 0.95, EditKind::Factor);
        for id in self.candidates() {
            let other = self.meta(id);
            if !stretches(&other.shape, &meta.shape) {
                continue;
            }
            let zero = Expression::Number(0.0, other.dtype);
            let mask = match other.dtype {
                DType::Bool => Some(value(id)),
                float if float.is_float() => Some(Expression::apply(make::gt(), [value(id), zero])),
                _ => None,
            };
            if let Some(mask) = mask {
                let mask = Expression::apply(make::to_dtype(meta.dtype), [mask]);
                let masked = Expression::apply(make::mul(), [own(), mask]);
                self.add(out, masked, 1.75 + self.unnamed(id), EditKind::Mask(id));
            }
            if other.dtype != meta.dtype {
                continue;
            }
            let cost = self.unnamed(id);
            let term = Expression::apply(make::mul(), [c(), value(id)]);
            let sum = Expression::apply(make::add(), [own(), term]);
            self.solve(out, sum, 0.0, 1.7 + cost, EditKind::Term(id));
            let factor = Expression::apply(make::mul(), [own(), value(id)]);
            self.add(out, factor, 1.6 + cost, EditKind::Times(id));
            let divisor = Expression::apply(make::div(), [own(), value(id)]);
            self.add(out, divisor, 1.7 + cost, EditKind::Over(id));
        }
    }
}
