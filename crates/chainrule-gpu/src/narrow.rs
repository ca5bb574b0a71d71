//! Values of f32 that come from bf16, and values that are zero except for a part. Casts are moved
//! after views, so that memory holds the narrow values, and sums of padded parts become
//! concatenations.

use std::collections::HashMap;

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use crate::graph::{Fold, Graph, Step, ValueId};
use crate::products::Precision;
use crate::read::Reader;

/// A part of an axis, and its value.
#[derive(Clone, Copy)]
struct PaddedPart {
    from: usize,
    size: usize,
    value: ValueId,
}

/// Values that are zero outside of parts of one axis.
#[derive(Default)]
pub(crate) struct Pieces(HashMap<ValueId, (usize, Vec<PaddedPart>)>);

impl Graph {
    /// The same view of the narrow values, if a view is one of values that were widened.
    fn narrow_view(&self, step: &Step) -> Option<Step> {
        match step {
            Step::Reshape(x) => Some(Step::Reshape(self.widened(*x)?)),
            Step::Transpose(x, perm) => Some(Step::Transpose(self.widened(*x)?, perm.clone())),
            Step::Expand(x) => Some(Step::Expand(self.widened(*x)?)),
            Step::Slice(x, cuts) => Some(Step::Slice(self.widened(*x)?, cuts.clone())),
            Step::Concat(all, axis) => {
                let narrow = all.iter().map(|&x| self.widened(x)).collect::<Option<_>>()?;
                Some(Step::Concat(narrow, *axis))
            }
            _ => None,
        }
    }
}

impl Reader {
    /// Moves a cast after its view; the step is unchanged if there is none.
    pub(crate) fn narrowed(&mut self, dtype: DType, dims: &[usize], step: Step) -> Result<Step> {
        if dtype != DType::F32 {
            return Ok(step);
        }
        let narrow = match (&step, self.graph.narrow_view(&step)) {
            (_, Some(narrow)) => narrow,
            (Step::Pad(x, before, outside), _) => {
                let (Some(x), Some(0.0)) = (self.graph.widened(*x), self.graph.scalar(*outside))
                else {
                    return Ok(step);
                };
                let before = before.clone();
                Step::Pad(x, before, self.scalar(0.0, DType::BF16)?)
            }
            _ => return Ok(step),
        };
        let inside = self.add("narrow", DType::BF16, dims.to_vec(), narrow)?;
        Ok(Step::Map("Cast", vec![inside]))
    }

    /// A part of a concatenation that lies within one of its values, as a part of that value.
    pub(crate) fn part_of_one(&self, dims: &[usize], step: Step) -> Step {
        let Step::Slice(x, cuts) = &step else { return step };
        let Step::Concat(all, axis) = &self.graph.values[*x].step else { return step };
        let Some(i) = cuts.iter().position(|c| c.0 == *axis && c.2 == 1) else { return step };
        let (from, mut begin) = (cuts[i].1 as usize, 0);
        for &part in all {
            let size = self.graph.values[part].dims[*axis];
            if from >= begin && from + dims[*axis] <= begin + size {
                let mut cuts = cuts.clone();
                cuts[i].1 = (from - begin) as i64;
                return Step::Slice(part, cuts);
            }
            begin += size;
        }
        step
    }

    /// Notes that a value is a part of an axis, and zero outside.
    pub(crate) fn note_pad(&mut self, v: ValueId, step: &Step) {
        let Step::Pad(x, before, outside) = step else { return };
        let (from, to) = (&self.graph.values[*x].dims, &self.graph.values[v].dims);
        let mut longer = (0..to.len()).filter(|&axis| from[axis] != to[axis]);
        let (Some(axis), None) = (longer.next(), longer.next()) else { return };
        if self.graph.scalar(*outside) == Some(0.0) && before[axis] >= 0 {
            let piece = PaddedPart { from: before[axis] as usize, size: from[axis], value: *x };
            self.pieces.0.insert(v, (axis, vec![piece]));
        }
    }

    /// The parts of a sum of two values, each of which is zero where the other is not.
    fn both(&self, step: &Step, dims: &[usize]) -> Option<(usize, Vec<PaddedPart>)> {
        let Step::Map("Add", all) = step else { return None };
        let [(axis, one), (other, two)] =
            [self.pieces.0.get(&all[0])?, self.pieces.0.get(&all[1])?];
        let same = all.iter().all(|&x| self.graph.values[x].dims == dims);
        let mut all = [&one[..], two].concat();
        all.sort_by_key(|p| p.from);
        let apart = all.windows(2).all(|p| p[0].from + p[0].size <= p[1].from);
        (axis == other && same && apart).then_some((*axis, all))
    }

    /// A sum of parts that together fill an axis, as a concatenation of these parts.
    pub(crate) fn gathered(&mut self, dims: &[usize], step: Step) -> Result<Step> {
        let Some((axis, all)) = self.both(&step, dims) else { return Ok(step) };
        match all.iter().map(|p| p.size).sum::<usize>() == dims[axis] {
            true => self.concat(all.iter().map(|p| p.value).collect(), axis),
            false => Ok(step),
        }
    }

    /// Notes that a value is some parts of an axis, and zero outside.
    pub(crate) fn note_sum(&mut self, v: ValueId, step: &Step) {
        let dims = self.dims(v);
        if let Some(found) = self.both(step, &dims) {
            self.pieces.0.insert(v, found);
        }
    }

    /// A value whose columns are summed: as it was rounded for products that read it, so that it
    /// need not be kept as f32 too.
    pub(crate) fn as_rounded(&mut self, fold: Fold, x: ValueId) -> Result<ValueId> {
        let mut base = x;
        while self.graph.values[base].step.is_view() {
            base = self.graph.values[base].step.operands()[0];
        }
        let precision = self.graph.products.map(|p| p.precision);
        let known = [true, false].into_iter().find_map(|pad| self.operands.get(&(base, pad)));
        let whole = known.is_some_and(|&k| self.dims(k) == self.dims(base));
        if fold != Fold::Sum || precision != Some(Precision::Bf16) || !whole {
            return Ok(x);
        }
        let narrow = self.prepared(x, false)?;
        let dims = self.dims(x);
        self.add("of_rounded", DType::F32, dims, Step::Map("Cast", vec![narrow]))
    }
}
