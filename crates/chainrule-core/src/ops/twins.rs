//! Ops that are written for one another by mistake: they take the same operands and give a result
//! of the same shape.

use std::any::Any;
use std::sync::Arc;

use super::binary::{add::Add, compare::Compare, div::Div, mul::Mul, sub::Sub};
use super::index::{accumulated, overwritten};
use super::reduce::{mean::Mean, sum::Sum};
use super::unary::{cos::Cos, sin::Sin};
use crate::shape::{Axes, Shape};
use crate::tensor::op::Op;

fn is<T: Op>(op: &dyn Op) -> bool {
    (op as &dyn Any).is::<T>()
}

fn of<T: Op>(op: &dyn Op) -> Option<&T> {
    (op as &dyn Any).downcast_ref()
}

/// The twins of an op whose first operand has this shape.
pub fn twins(op: &dyn Op, input: &Shape) -> Vec<Arc<dyn Op>> {
    let mut out: Vec<Arc<dyn Op>> = Vec::new();
    match () {
        _ if is::<Add>(op) => out.push(Arc::new(Sub)),
        _ if is::<Sub>(op) => out.push(Arc::new(Add)),
        _ if is::<Mul>(op) => out.push(Arc::new(Div)),
        _ if is::<Div>(op) => out.push(Arc::new(Mul)),
        _ if is::<Sin>(op) => out.push(Arc::new(Cos)),
        _ if is::<Cos>(op) => out.push(Arc::new(Sin)),
        _ => {}
    }
    if let Some(compare) = of::<Compare>(op) {
        out.extend(compare.others().map(|c| Arc::new(c) as Arc<dyn Op>));
    }
    if let Some(sum) = of::<Sum>(op) {
        out.push(Arc::new(Mean { axes: sum.axes, keepdim: sum.keepdim }));
        let others = alike(sum.axes, input, sum.keepdim);
        out.extend(others.map(|axes| Arc::new(Sum { axes, keepdim: sum.keepdim }) as Arc<dyn Op>));
    }
    if let Some(mean) = of::<Mean>(op) {
        out.push(Arc::new(Sum { axes: mean.axes, keepdim: mean.keepdim }));
        let others = alike(mean.axes, input, mean.keepdim);
        let means =
            others.map(|axes| Arc::new(Mean { axes, keepdim: mean.keepdim }) as Arc<dyn Op>);
        out.extend(means);
    }
    out.extend(accumulated(op));
    out.extend(overwritten(op));
    out
}

/// Other single axes over which the reduction gives the same shape.
fn alike(axes: Axes, input: &Shape, keepdim: bool) -> impl Iterator<Item = Axes> {
    let due = axes.reduce(input, keepdim);
    let input = *input;
    (0..input.rank())
        .map(|axis| Axes::of(&[axis]))
        .filter(move |other| *other != axes && other.reduce(&input, keepdim) == due)
}

/// The operator between the operands, if the op is written as one.
pub fn infix(op: &dyn Op) -> Option<&'static str> {
    match () {
        _ if is::<Add>(op) => Some("+"),
        _ if is::<Sub>(op) => Some("-"),
        _ if is::<Mul>(op) => Some("*"),
        _ if is::<Div>(op) => Some("/"),
        _ => None,
    }
}

/// The axes of a sum or a mean, and whether they stay.
pub fn reduced(op: &dyn Op) -> Option<(Axes, bool)> {
    of::<Sum>(op).map(|s| (s.axes, s.keepdim)).or(of::<Mean>(op).map(|m| (m.axes, m.keepdim)))
}

/// Whether an op exchanges the axes of a matrix.
pub fn turns(op: &dyn Op) -> bool {
    of::<super::shape::permute::Permute>(op).is_some_and(|p| p.from[..] == [1, 0])
}

/// Whether an op is a product or a quotient, element by element.
pub fn scales(op: &dyn Op) -> bool {
    is::<Mul>(op) || is::<Div>(op)
}
