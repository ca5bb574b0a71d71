//! Reductions of values that are zero except at one position of an axis, as in a loss of classes:
//! only that position is read.

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use crate::graph::{Fold, Graph, Step, ValueId};
use crate::read::Reader;

impl Graph {
    /// The axis along which a value counts from 0 on, from the last one on, if there is one.
    fn counting_axis(&self, v: ValueId) -> Option<usize> {
        let value = &self.values[v];
        match &value.step {
            Step::Constant(_) => (self.counts(v) && value.dims.len() == 1).then_some(0),
            Step::Expand(x) => self.counting_axis(*x),
            Step::Reshape(x) => {
                self.counting_axis(*x)?;
                let mut long = (0..value.dims.len()).filter(|&i| value.dims[i] != 1);
                let axis = long.next().filter(|_| self.values[*x].dims.len() == 1)?;
                long.next().is_none().then_some(value.dims.len() - 1 - axis)
            }
            _ => None,
        }
    }

    /// Whether a value is zero everywhere.
    fn is_zero(&self, v: ValueId) -> bool {
        self.constant(v) == Some(0.0)
    }

    /// The axis of a value that is zero except where an index points, and that index.
    fn hot(&self, v: ValueId) -> Option<(usize, ValueId)> {
        let value = &self.values[v];
        let Step::Map(op, all) = &value.step else { return None };
        let like = |x: ValueId| self.values[x].dims == value.dims;
        match (*op, &all[..]) {
            ("Cast", &[x]) => self.hot(x),
            ("Equal", &[a, b]) => [(a, b), (b, a)].into_iter().find_map(|(count, index)| {
                let axis = (value.dims.len() - 1).checked_sub(self.counting_axis(count)?)?;
                let own = &self.values[index].dims;
                let missing = value.dims.len() - own.len();
                let alone = axis < missing || own[axis - missing] == 1;
                let fits = alone && value.dims[axis] > 1 && self.values[index].dtype == DType::I64;
                let whole = self.values[count].dims.iter().rev().nth(value.dims.len() - 1 - axis);
                (fits && whole == Some(&value.dims[axis])).then_some((axis, index))
            }),
            ("Where", &[test, _, other]) if self.is_zero(other) && like(test) => self.hot(test),
            ("Where", &[test, zero, _]) if self.is_zero(zero) && like(test) => self.cold(test),
            _ => None,
        }
    }

    /// As `hot`, for a test that holds everywhere else.
    fn cold(&self, v: ValueId) -> Option<(usize, ValueId)> {
        let value = &self.values[v];
        let like = |x: ValueId| self.values[x].dims == value.dims;
        match &value.step {
            Step::Map("Equal", all) => {
                let other = |i: usize| self.is_zero(all[1 - i]) && like(all[i]);
                (0..2).find(|&i| other(i)).and_then(|i| self.hot(all[i]))
            }
            Step::Map("Not", all) => self.hot(all[0]),
            _ => None,
        }
    }
}

impl Reader {
    /// The elements of a value that a reduction needs: those at the positions that are not zero.
    pub(crate) fn picked(&mut self, fold: Fold, x: ValueId, axes: &[usize]) -> Result<ValueId> {
        let Some((axis, index)) = self.graph.hot(x) else { return Ok(x) };
        let takes = matches!(fold, Fold::Sum | Fold::Max | Fold::Min);
        if !axes.contains(&axis) || !takes {
            return Ok(x);
        }
        let (mut dims, dtype) = (self.dims(x), self.dtype(x));
        let own = self.dims(index);
        let all = [vec![1; dims.len() - own.len()], own].concat();
        let index = self.reshape(index, &all)?;
        dims[axis] = 1;
        let picked = self.add("picked", dtype, dims.clone(), Step::Elements(x, index, axis))?;
        let op = match fold {
            Fold::Max => "Max",
            Fold::Min => "Min",
            _ => return Ok(picked),
        };
        // The other elements are zero.
        let zero = self.scalar(0.0, dtype)?;
        self.add("picked", dtype, dims, Step::Map(op, vec![picked, zero]))
    }
}
