//! An instruction as an expression, which can be edited, run and printed.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::error::Result;
use crate::program::{Id, Instruction};
use crate::tensor::op::{Kernel, Op};
use crate::tensor::run::compute;
use crate::tensor::value::Value;
use chainrule_core::ops::twins::{infix, reduced};

/// A right-hand side that an edit may write.
#[derive(Clone)]
pub(crate) enum Expression {
    /// A value of the program.
    Value(Id),
    /// A number, as a single element of a dtype.
    Number(f64, DType),
    /// A number that is solved for.
    Unknown(DType),
    Apply(Arc<dyn Op>, SmallVec<[Box<Expression>; 2]>),
}

/// The values that a run knows.
pub(crate) trait Values {
    fn value(&self, id: Id) -> Option<Arc<Value>>;
}

impl Expression {
    pub fn of(instruction: &Instruction) -> Expression {
        let inputs = instruction.inputs.iter().map(|id| Box::new(Expression::Value(*id)));
        Expression::Apply(instruction.op.clone(), inputs.collect())
    }

    pub fn apply(op: Arc<dyn Op>, inputs: impl IntoIterator<Item = Expression>) -> Expression {
        Expression::Apply(op, inputs.into_iter().map(Box::new).collect())
    }

    /// Its value; `unknown` stands for the number that is solved for.
    pub fn run(&self, values: &impl Values, unknown: f64) -> Result<Option<Arc<Value>>> {
        Ok(match self {
            Expression::Value(id) => values.value(*id),
            Expression::Number(x, dtype) => Some(number(*x, *dtype)),
            Expression::Unknown(dtype) => Some(number(unknown, *dtype)),
            Expression::Apply(op, inputs) => {
                let mut given: SmallVec<[Arc<Value>; 2]> = SmallVec::new();
                for input in inputs {
                    match input.run(values, unknown)? {
                        Some(value) => given.push(value),
                        None => return Ok(None),
                    }
                }
                Some(compute(op.as_ref(), &given)?.value)
            }
        })
    }

    /// The same with the number that was found.
    pub fn with(&self, found: f64) -> Expression {
        match self {
            Expression::Unknown(dtype) => Expression::Number(found, *dtype),
            Expression::Apply(op, inputs) => {
                Expression::apply(op.clone(), inputs.iter().map(|e| e.with(found)))
            }
            other => other.clone(),
        }
    }

    /// As code, in the words that `name` gives for values and `number` for numbers.
    pub fn text(
        &self,
        name: &dyn Fn(Id) -> Option<String>,
        number: &dyn Fn(f64) -> String,
        within: &dyn Fn(Id) -> Option<Expression>,
    ) -> String {
        match self {
            Expression::Value(id) => name(*id).unwrap_or_else(|| match within(*id) {
                Some(inner) => inner.text(name, number, within),
                None => format!("v{}", id.0),
            }),
            Expression::Number(x, _) => number(*x),
            Expression::Unknown(_) => "c".to_string(),
            Expression::Apply(op, inputs) => {
                let parts: Vec<String> =
                    inputs.iter().map(|e| e.text(name, number, within)).collect();
                applied(op.as_ref(), &parts)
            }
        }
    }
}

fn number(x: f64, dtype: DType) -> Arc<Value> {
    match dtype {
        DType::F32 => Value::scalar(x as f32).share(),
        _ => Value::scalar(x).share(),
    }
}

/// Whether a text needs brackets as an operand.
fn is_loose(text: &str) -> bool {
    let mut depth = 0;
    text.chars().any(|c| {
        depth += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
        c == ' ' && depth == 0
    }) || text.starts_with('-')
}

fn tight(text: &str) -> String {
    if is_loose(text) { format!("({text})") } else { text.to_string() }
}

/// A use of an op as code.
fn applied(op: &dyn Op, parts: &[String]) -> String {
    if let (Some(sign), [a, b]) = (infix(op), parts) {
        return format!("{} {sign} {}", tight(a), tight(b));
    }
    let Some((first, rest)) = parts.split_first() else { return format!("{}()", op.name()) };
    let mut arguments: Vec<String> = rest.to_vec();
    if let Some((axes, keepdim)) = reduced(op) {
        let axes: Vec<String> = axes.iter().map(|a| a.to_string()).collect();
        arguments.push(match axes.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        });
        arguments.push(keepdim.to_string());
    }
    if arguments.is_empty() && matches!(op.kernel(), Kernel::View(_)) {
        arguments.push("..".to_string());
    }
    if chainrule_core::ops::twins::turns(op) {
        arguments.clear();
    }
    let call = if chainrule_core::ops::twins::turns(op) { "t" } else { op.name() };
    format!("{}.{call}({})", tight(first), arguments.join(", "))
}
