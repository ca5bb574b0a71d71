//! Operands of large products, rounded and padded for the units of a device that multiply matrices.
//!
//! The value that an operand is a view of is rounded once, for all products that read it; the views
//! stay views.

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use crate::graph::{Step, ValueId};
use crate::kernels::matrix;
use crate::products::Precision;
use crate::read::Reader;

/// Sizes from which an axis is padded; less would change short axes by much.
const PADDED_FROM: usize = 64;

impl Reader {
    /// A product, with operands as the precision of the library asks for.
    pub(crate) fn prepared_product(
        &mut self,
        a: ValueId,
        b: ValueId,
        out: &[usize],
    ) -> Result<Step> {
        let (a, b, is_wide) = self.inside(a, b);
        let da = self.dims(a);
        let ([m, n], k) = (matrix(out), da[da.len() - 1]);
        let stack = &out[..out.len() - 2];
        let both = |dtype: DType| self.dtype(a) == dtype && self.dtype(b) == dtype;
        let (is_narrow, fits) = (both(DType::BF16), both(DType::F32) || both(DType::BF16));
        let taken = self.graph.products.is_some_and(|p| p.takes(stack, m, n, k));
        if !taken || !fits || self.kind(a) == Precision::F32 {
            return Ok(Step::Product(a, b));
        }
        let (mut left, mut right) = (self.prepared(a, true)?, self.prepared(b, true)?);
        let deep = |r: &Reader, x: ValueId| matrix(&r.dims(x));
        if deep(self, left)[1] != deep(self, right)[0] {
            (left, right) = (self.prepared(a, false)?, self.prepared(b, false)?);
        }
        let (rows, columns) = (deep(self, left)[0], deep(self, right)[1]);
        let rank = out.len();
        let dims = [&out[..rank - 2], &[rows, columns]].concat();
        let dtype = if is_wide { DType::F32 } else { self.dtype(left) };
        let whole = self.add("padded", dtype, dims, Step::Product(left, right))?;
        let mut of_all = whole;
        if [rows, columns] != [m, n] {
            let cut = |axis: usize| (axis, 0, 1);
            let part = Step::Slice(whole, vec![cut(rank - 2), cut(rank - 1)]);
            of_all = self.add("part", dtype, out.to_vec(), part)?;
        }
        let is_made = is_narrow || dtype == DType::F32;
        Ok(Step::Map(if is_made { "Identity" } else { "Cast" }, vec![of_all]))
    }

    /// The narrow values behind both operands, as in a program under autocast: the result is then
    /// f32, as it is without a library.
    fn inside(&self, a: ValueId, b: ValueId) -> (ValueId, ValueId, bool) {
        let precision = self.graph.products.map(|p| p.precision);
        match (self.graph.widened(a), self.graph.widened(b)) {
            (Some(x), Some(y))
                if self.dtype(a) == DType::F32
                    && precision.is_some_and(|p| p != Precision::Bf16) =>
            {
                (x, y, true)
            }
            _ => (a, b, false),
        }
    }

    /// The arithmetic of a value: its own, if it is of bf16 in the program.
    fn kind(&self, x: ValueId) -> Precision {
        match self.dtype(x) {
            DType::BF16 => Precision::Bf16,
            _ => self.graph.products.unwrap_or_default().precision,
        }
    }

    /// The operand of a product: the value below its views is rounded, and padded where that is
    /// allowed.
    pub(crate) fn prepared(&mut self, x: ValueId, pad: bool) -> Result<ValueId> {
        let key = (x, pad);
        if let Some(&known) = self.operands.get(&key) {
            return Ok(known);
        }
        let made = self.prepare(x, pad)?;
        self.operands.insert(key, made);
        Ok(made)
    }

    fn prepare(&mut self, x: ValueId, pad: bool) -> Result<ValueId> {
        let bf16 = self.kind(x) == Precision::Bf16;
        let (dims, dtype) = (self.dims(x), if bf16 { DType::BF16 } else { DType::F32 });
        if !self.graph.values[x].step.is_view() {
            return self.rounded(x, pad);
        }
        match self.graph.values[x].step.clone() {
            Step::Transpose(y, perm) => {
                let y = self.prepared(y, pad)?;
                let from = self.dims(y);
                let dims = perm.iter().map(|&p| from[p]).collect();
                self.add("turned", dtype, dims, Step::Transpose(y, perm))
            }
            Step::Reshape(y) => {
                let old = self.dims(y);
                let mut to = dims.clone();
                let mut padded = self.prepared(y, pad)?;
                let mut from = self.dims(padded);
                // Only a last axis that stays as it is may be longer.
                let lasts = (old.last().copied(), dims.last().copied());
                let last_alone = from[..from.len().saturating_sub(1)]
                    == old[..old.len().saturating_sub(1)]
                    && (from == old || lasts.0 == lasts.1);
                if !last_alone {
                    padded = self.prepared(y, false)?;
                    from = self.dims(padded);
                }
                if let (Some(to), Some(&size)) = (to.last_mut(), from.last())
                    && from != old
                {
                    *to = size;
                }
                self.add("as_matrix", dtype, to, Step::Reshape(padded))
            }
            Step::Expand(y) => {
                let y = self.prepared(y, false)?;
                self.add("expanded", dtype, dims, Step::Expand(y))
            }
            Step::Slice(y, cuts) => {
                let y = self.prepared(y, false)?;
                self.add("part", dtype, dims, Step::Slice(y, cuts))
            }
            _ => self.rounded(x, pad),
        }
    }

    /// A value that is no view, rounded, and its last two axes padded with zeros.
    fn rounded(&mut self, x: ValueId, pad: bool) -> Result<ValueId> {
        let (mut x, mut dims) = (x, self.dims(x));
        let (kind, dtype) = (self.kind(x), self.dtype(x));
        let multiple = kind.multiple();
        let rank = dims.len();
        let mut padded = dims.clone();
        if pad && rank >= 2 {
            for d in padded[rank - 2..].iter_mut().filter(|d| **d >= PADDED_FROM) {
                *d = d.next_multiple_of(multiple);
            }
        }
        let grows = padded != dims;
        if grows {
            let zero = self.scalar(0.0, dtype)?;
            dims = padded;
            x = self.add("whole", dtype, dims.clone(), Step::Pad(x, vec![0; rank], zero))?;
        }
        match kind {
            Precision::Bf16 => self.add("rounded", DType::BF16, dims, Step::Map("Cast", vec![x])),
            _ => Ok(x),
        }
    }
}
