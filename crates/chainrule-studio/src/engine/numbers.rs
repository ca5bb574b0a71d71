//! Rules of the backward pass with numbers put in: those of single elements, and of tensors those
//! of one element.

use chainrule::Tensor;

use super::graph::{inputs_of, named};
use super::session::{Session, Step};
use super::tex;
use crate::language::interpreter::Interpreter;
use crate::language::parser;
use crate::language::syntax::{Expression, ExpressionKind as Kind};
use crate::language::value::Data;

/// The relative difference up to which the formula's value is that of the gradient: roundings in
/// f32.
const SAME: f64 = 1e-4;
/// The products of a sum that are written out.
const SHOWN: usize = 2;
/// Elements among which the one to show is chosen: a page waits for all steps of a model, and any
/// element shows the rule as well.
const SEARCHED: usize = 4096;

/// The rule of a step with numbers put in and the results, as TeX. A tensor is shown at the
/// largest of the first [`SEARCHED`] elements of its gradient, if the rule's formula gives that
/// element; parts for which it does not are left out.
pub fn with_numbers(session: &Session, step: &Step, rule: &str) -> Option<String> {
    let parts: Vec<String> = rule
        .split(';')
        .enumerate()
        .filter_map(|(position, part)| Part::new(session, step, rule, position, part)?.shown())
        .collect();
    match &parts[..] {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("\\begin{{gathered}}{}\\end{{gathered}}", many.join("\\\\"))),
    }
}

/// A part of a rule, `left = right`, for the gradient that it gives.
struct Part<'a> {
    session: &'a Session,
    step: &'a Step,
    rule: &'a str,
    left: &'a str,
    right: &'a str,
    gradient: &'a Tensor,
    /// The place of the element among the axes.
    at: Vec<usize>,
    result: f64,
}

impl<'a> Part<'a> {
    fn new(
        session: &'a Session,
        step: &'a Step,
        rule: &'a str,
        position: usize,
        part: &'a str,
    ) -> Option<Part<'a>> {
        let gradient = &step.sent.iter().find(|sent| sent.position == position)?.gradient;
        let (left, right) = part.trim().split_once(" = ")?;
        let first = first(gradient)?;
        let elements = first.to_f64_vec();
        let size = |i: &usize| elements[*i].abs();
        let largest = (0..elements.len()).max_by(|a, b| size(a).total_cmp(&size(b)))?;
        // The first elements of each axis: places are the same in both.
        let at = place(largest, &first.shape());
        Some(Part { session, step, rule, left, right, gradient, at, result: elements[largest] })
    }

    fn shown(&self) -> Option<String> {
        let right = match self.gradient.numel() {
            1 => Some(self.of_one()),
            _ => self.of_tensors(),
        }?;
        let name = |name: &str| named(self.session, self.step, self.rule, name);
        let left = tex::equation(self.left, &name);
        let at: Vec<String> = self.at.iter().map(usize::to_string).collect();
        let left = match self.gradient.numel() {
            1 => left,
            _ => format!("{{{left}}}_{{{}}}", at.join(",\\,")),
        };
        let result = tex::number(self.result);
        Some(match right.is_empty() || right == result || right.starts_with("\\text") {
            true => format!("{left} = {result}"),
            false if self.gradient.numel() == 1 => format!("{left} = {right} = {result}"),
            // Sums are long: their result has a line of its own.
            false => format!("\\begin{{aligned}}{left} &= {right}\\\\&= {result}\\end{{aligned}}"),
        })
    }

    /// The formula of single elements.
    fn of_one(&self) -> String {
        let number = |name: &str| {
            let operand = self.operand(name).filter(|t| t.numel() == 1)?;
            Some(tex::number(operand.to_f64_vec()[0]))
        };
        tex::equation(self.right, &number)
    }

    fn of_tensors(&self) -> Option<String> {
        let formula = parser::expression(&self.right.replace('^', "**")).ok()?;
        match &formula.kind {
            Kind::Binary("@", a, b) => self.of_product(a, b),
            _ => self.of_elements(),
        }
    }

    /// The formula of one element, where an element of the gradient depends on the elements at its
    /// place only: elsewhere the value is another.
    fn of_elements(&self) -> Option<String> {
        let mut scalars = Interpreter::new(0);
        let mut known = inputs_of(self.rule);
        known.extend(["g", "y"]);
        for name in known {
            if let Some(x) = self.element(name) {
                scalars.set(name, Data::Float(x));
            }
        }
        let value = scalars.evaluate(&self.right.replace('^', "**")).ok()?.number()?;
        self.is_result(value)
            .then(|| tex::equation(self.right, &|name: &str| self.element(name).map(tex::number)))
    }

    /// The sum of a product of matrices.
    fn of_product(&self, a: &Expression, b: &Expression) -> Option<String> {
        let [i, j] = self.at[..] else { return None };
        let (row, column) = (self.row(a, i, false)?, self.row(b, j, true)?);
        if row.len() != column.len() {
            return None;
        }
        let terms = row.iter().zip(&column);
        let sum: f64 = terms.clone().map(|(a, b)| a * b).sum();
        // A sum may cancel: its error goes by the size of its terms.
        let size: f64 = terms.clone().map(|(a, b)| (a * b).abs()).sum();
        let is_result = (sum - self.result).abs() <= SAME * size;
        let factor = |x: f64| match x < 0.0 {
            true => format!("\\left({}\\right)", tex::number(x)),
            false => tex::number(x),
        };
        let products: Vec<String> = terms
            .take(SHOWN)
            .map(|(a, b)| format!("{} \\cdot {}", factor(*a), factor(*b)))
            .collect();
        let rest = if row.len() > SHOWN { " + \\ldots" } else { "" };
        is_result.then(|| products.join(" + ") + rest)
    }

    /// A row of an operand of a product, or a column; `x^T` is the transpose.
    fn row(&self, of: &Expression, at: usize, is_column: bool) -> Option<Vec<f64>> {
        let (name, is_transposed) = match &of.kind {
            Kind::Name(name) => (name, false),
            Kind::Binary("**", x, power) => match (&x.kind, &power.kind) {
                (Kind::Name(name), Kind::Name(power)) if power == "T" => (name, true),
                _ => return None,
            },
            _ => return None,
        };
        let operand = self.operand(name)?;
        if operand.rank() != 2 {
            return None;
        }
        let axis = i64::from(is_column != is_transposed);
        Some(operand.try_narrow(axis, at, 1).ok()?.to_f64_vec())
    }

    /// The operand that a rule calls so.
    fn operand(&self, name: &str) -> Option<&'a Tensor> {
        let place = &self.session.places[self.step.place];
        let inputs = inputs_of(self.rule);
        match name {
            "g" => Some(&self.step.incoming),
            "y" if !inputs.contains(&"y") => place.value.as_ref(),
            _ => {
                let position = inputs.iter().position(|known| *known == name)?;
                self.session.places[*place.inputs.get(position)?].value.as_ref()
            }
        }
    }

    /// The operand's element at the place, broadcast to the gradient's shape.
    fn element(&self, name: &str) -> Option<f64> {
        let operand = self.operand(name)?;
        let (own, shape) = (operand.shape(), self.gradient.shape());
        let skipped = shape.len().checked_sub(own.len())?;
        let mut one = operand.detach();
        let axes = own.iter().zip(&shape[skipped..]).zip(&self.at[skipped..]);
        for (axis, ((&size, &of), &at)) in axes.enumerate() {
            if size != 1 && size != of {
                return None;
            }
            one = one.try_narrow(axis as i64, if size == 1 { 0 } else { at }, 1).ok()?;
        }
        one.to_f64_vec().first().copied()
    }

    fn is_result(&self, value: f64) -> bool {
        (value - self.result).abs() <= SAME * self.result.abs().max(value.abs())
    }
}

/// A corner of a tensor, with the first positions of each axis and at most [`SEARCHED`] elements.
fn first(t: &Tensor) -> Option<Tensor> {
    let mut corner = t.detach();
    for axis in 0..t.rank() {
        let others = corner.numel() / corner.shape()[axis].max(1);
        let kept = (SEARCHED / others.max(1)).clamp(1, corner.shape()[axis].max(1));
        if kept < corner.shape()[axis] {
            corner = corner.try_narrow(axis as i64, 0, kept).ok()?;
        }
    }
    Some(corner)
}

/// The place of the element `index` of a tensor.
fn place(mut index: usize, shape: &[usize]) -> Vec<usize> {
    let mut at = vec![0; shape.len()];
    for (at, &size) in at.iter_mut().zip(shape).rev() {
        (*at, index) = (index % size, index / size);
    }
    at
}
