//! Steps that need no value of their own: repeated ones, and arithmetic with constants that changes
//! nothing.

use chainrule_core::dtype::DType;

use crate::graph::{Graph, Step, ValueId};

impl Graph {
    /// The only number of a value, which may be a view of a constant.
    pub(crate) fn constant(&self, v: ValueId) -> Option<f64> {
        let mut v = v;
        while self.values[v].step.is_view() {
            v = self.values[v].step.operands()[0];
        }
        self.scalar(v)
    }

    /// Whether a value is never a signed zero, which adding zero would change.
    fn is_counted(&self, v: ValueId) -> bool {
        let is_whole = |x: ValueId| !self.values[x].dtype.is_float();
        matches!(&self.values[v].step, Step::Map("Cast", all) if is_whole(all[0]))
    }

    /// The value of bf16 that this one of f32 or f64 is, which holds all of its digits.
    pub(crate) fn widened(&self, v: ValueId) -> Option<ValueId> {
        let Step::Map("Cast", all) = &self.values[v].step else { return None };
        let narrow = self.values[all[0]].dtype == DType::BF16;
        (narrow && matches!(self.values[v].dtype, DType::F32 | DType::F64)).then_some(all[0])
    }

    /// The existing value that a step would only repeat, if there is one. The result has the same
    /// bits.
    pub(crate) fn same_as(&self, step: &Step, dtype: DType, dims: &[usize]) -> Option<ValueId> {
        let Step::Map(op, all) = step else { return None };
        let is = |i: usize, x: f64| all.get(i).and_then(|&v| self.constant(v)) == Some(x);
        // The remaining operand, whichever side the constant is on.
        let beside = |x: f64| (0..2).find(|&i| is(1 - i, x)).map(|i| all[i]);
        let left = match *op {
            "Identity" => Some(all[0]),
            "Cast" if self.values[all[0]].dtype == dtype => Some(all[0]),
            "Cast" if dtype == DType::BF16 => self.widened(all[0]),
            "And" => beside(1.0),
            "Or" => beside(0.0),
            "Mul" => beside(1.0),
            "Div" => is(1, 1.0).then(|| all[0]),
            "Add" => beside(0.0).filter(|&x| self.is_counted(x)),
            "Where" => match self.constant(all[0])? {
                0.0 => Some(all[2]),
                _ => Some(all[1]),
            },
            _ => None,
        }?;
        let value = &self.values[left];
        (value.dtype == dtype && value.dims == dims).then_some(left)
    }

    /// The number that a step on numbers gives, if that involves one rounding at most.
    pub(crate) fn number_of(&self, step: &Step, dtype: DType) -> Option<f64> {
        let Step::Map(op, all) = step else { return None };
        let one = |i: usize| self.constant(*all.get(i)?);
        let out = match *op {
            "Cast" => one(0)?,
            // A product of two numbers of f32 is exact in f64.
            "Mul" if dtype == DType::F32 => one(0)? * one(1)?,
            _ => return None,
        };
        let fits = match dtype {
            DType::F32 | DType::F64 => true,
            DType::I64 | DType::Bool => out == out.trunc() && out.abs() < 2f64.powi(53),
            _ => false,
        };
        fits.then_some(if dtype == DType::Bool { f64::from(u8::from(out != 0.0)) } else { out })
    }
}
