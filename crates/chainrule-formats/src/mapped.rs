//! Memory-mapped tensors.

#![allow(unsafe_code, reason = "a file's pages as memory are the system's, and tensors over them")]

use std::path::Path;
use std::sync::Arc;

use chainrule_core::dtype::DType;
use chainrule_core::tensor::Tensor;
use memmap2::{Mmap, MmapOptions};

use crate::place::{Data, Form, Place, span};
use crate::source::{Outcome, reason};

/// A private, read-only mapping of a file: a write to a tensor on it copies the tensor first.
#[derive(Clone)]
pub struct MappedFile(Arc<Mmap>);

impl MappedFile {
    pub fn open(path: &Path) -> Outcome<MappedFile> {
        let file = std::fs::File::open(path).map_err(|e| reason(&e))?;
        // SAFETY: every bit pattern is a number of the dtypes that are shared, so a file that is
        // changed meanwhile gives other numbers, and one that is cut off ends the process; the
        // pages of `open_mapped` tell of both.
        let map = unsafe { MmapOptions::new().map(&file) };
        Ok(MappedFile(Arc::new(map.map_err(|e| reason(&e))?)))
    }

    /// A tensor on the mapping, if its elements have the layout of memory.
    pub fn tensor(&self, place: &Place, shape: &[usize], dtype: DType) -> Outcome<Option<Tensor>> {
        let Data::Plain { at } = place.data else { return Ok(None) };
        let strides: Option<Vec<isize>> = match &place.form {
            Form::Rows => Some(rows(shape)),
            Form::Strided { strides, swapped: false } => {
                strides.iter().map(|&s| isize::try_from(s).ok()).collect()
            }
            _ => None,
        };
        let len = span(shape, dtype, &place.form)?;
        let end = at.checked_add(len).and_then(|end| usize::try_from(end).ok());
        let bytes = end.and_then(|end| self.0.get(at as usize..end));
        // A bool is a byte of 0 or 1 here, but any byte in the file.
        let (Some(strides), Some(bytes), false) = (strides, bytes, dtype == DType::Bool) else {
            return Ok(None);
        };
        let is_aligned = bytes.as_ptr().addr().is_multiple_of(dtype.size());
        if bytes.is_empty() || !is_aligned || cfg!(target_endian = "big") {
            return Ok(None);
        }
        let (first, owner) = (bytes.as_ptr(), Box::new(self.0.clone()));
        // SAFETY: `bytes` has all from the first to the last element, as `span` counts them, and
        // strides are not negative. The owner keeps the pages, which this process does not write.
        let tensor = unsafe { Tensor::from_foreign(first, shape, &strides, dtype, owner) };
        tensor.map(Some).map_err(|e| e.to_string())
    }
}

/// Strides in row-major order.
fn rows(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1isize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis] as isize);
    }
    strides
}
