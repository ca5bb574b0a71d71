//! Read access to a program: its instructions as data.

use super::Program;
use super::ir::{Id, Instruction, Maker, Origin, Phase};
use crate::dtype::DType;
use crate::param::{Param, is_number};
use crate::shape::Shape;
use crate::tensor::place::Place;
use crate::tensor::value::Value;

/// One instruction of a program, to read.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    pub(super) program: &'a Program,
    pub(super) instruction: &'a Instruction,
}

impl<'a> Line<'a> {
    /// The name of the result.
    pub fn name(&self) -> &'a str {
        self.program.name(self.instruction.result())
    }

    /// The op.
    pub fn op(&self) -> &'static str {
        self.instruction.op.name()
    }

    /// The op's parameters as text: `axes=[0], keepdim=true`.
    pub fn parameters(&self) -> String {
        listed(&self.instruction.op.parameters())
    }

    /// The names of the values that it takes; a single number stands for itself.
    pub fn inputs(&self) -> Vec<String> {
        self.instruction.inputs.iter().map(|&id| self.program.operand(id)).collect()
    }

    /// The line as code: `d_h = d_logits @ permute`. Unused extra results are left out.
    pub fn code(&self) -> String {
        super::listing::code(self)
    }

    /// The shape of the result.
    pub fn shape(&self) -> Shape {
        self.program.info(self.instruction.result()).meta.shape
    }

    /// The dtype of the result.
    pub fn dtype(&self) -> DType {
        self.program.info(self.instruction.result()).meta.dtype
    }

    /// The part of the step that it belongs to.
    pub fn phase(&self) -> Phase {
        self.instruction.phase
    }

    /// The origin of the instruction, if it is not the user's own code: `rule of tanh`, `sum of
    /// parts`, `optimizer`, `algebra`.
    pub fn rule(&self) -> Option<String> {
        match &self.instruction.made_by {
            Maker::User => None,
            Maker::Rule(op) => Some(format!("rule of {op}")),
            Maker::Sum => Some("sum of parts".to_string()),
            Maker::Optimizer => Some("optimizer".to_string()),
            Maker::Algebra => Some("algebra".to_string()),
        }
    }

    /// The line of the user's code that led to it; in a backward pass, the line of the forward op.
    pub fn location(&self) -> Option<&Place> {
        self.instruction.location.as_ref()
    }
}

impl Program {
    /// The number of instructions.
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Whether there are no instructions.
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty()
    }

    /// The instructions in order.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.instructions.iter().map(|instruction| Line { program: self, instruction })
    }

    /// The names of the outputs, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        self.outputs.iter().map(|o| o.name.as_str())
    }

    /// The name of an operand, or its value if it is a constant of one element.
    pub(super) fn operand(&self, id: Id) -> String {
        match &self.info(id).from {
            Origin::Constant(value) if value.numel() == 1 && value.shape().rank() == 0 => {
                number(value)
            }
            _ => self.name(id).to_string(),
        }
    }
}

/// A single element as text, with the fewest digits that distinguish it from its neighbours.
pub(super) fn number(value: &Value) -> String {
    match value.dtype() {
        DType::F32 => format!("{:?}", value.first::<f32>()),
        DType::F64 => format!("{:?}", value.first::<f64>()),
        DType::I64 => value.first::<i64>().to_string(),
        DType::Bool => (value.first::<u8>() != 0).to_string(),
        other => unreachable!("no program holds {other}"),
    }
}

/// The parameters as text; those without a name by themselves, and those of a struct inside one by
/// one.
fn listed(parameters: &Param) -> String {
    let shown = parameters.fields().iter().filter(|(_, value)| *value != Param::Unit);
    let text = shown.map(|(name, value)| match value {
        Param::Struct(..) => listed(value),
        _ if is_number(name) => value.to_string(),
        _ => format!("{name}={value}"),
    });
    text.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
}
