//! Elements of a tensor in a file.

use std::io::Read;

use chainrule_core::dtype::DType;
use chainrule_core::error::Error;
use chainrule_core::tensor::Tensor;
use flate2::read::DeflateDecoder;

use crate::quant::Quant;
use crate::source::{Outcome, Source, reason, zeros};

/// The bytes that elements are read from.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// As they are, from this byte on.
    Plain { at: u64 },
    /// Deflated, from `at` on, in so many bytes; the elements begin at byte `skip` of the content.
    Deflated { at: u64, packed: u64, skip: u64 },
}

/// The form of the elements.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// Row-major, low byte first.
    Rows,
    /// Row-major, high byte first.
    Swapped,
    /// With these steps along the axes, in elements.
    Strided { strides: Vec<u64>, swapped: bool },
    /// Blocks of numbers in few bits.
    Blocks(Quant),
}

/// A tensor's place.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub file: usize,
    pub data: Data,
    pub form: Form,
}

/// The number of elements of a shape, if it is one that memory could have.
pub fn numel(shape: &[usize]) -> Outcome<u64> {
    let product = match shape.contains(&0) {
        true => Some(0),
        false => shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64)),
    };
    product.filter(|&n| n <= 1 << 56).ok_or_else(|| format!("no memory has a shape of {shape:?}"))
}

/// The bytes from the first to the last element.
pub fn span(shape: &[usize], dtype: DType, form: &Form) -> Outcome<u64> {
    let n = numel(shape)?;
    let size = dtype.size() as u64;
    match form {
        Form::Blocks(quant) => quant.bytes(shape, n),
        Form::Strided { strides, .. } if n > 0 => {
            let steps = shape.iter().zip(strides);
            let far = |sum: u64, (&d, &s): (&usize, &u64)| {
                (d as u64 - 1).checked_mul(s).and_then(|far| far.checked_add(sum))
            };
            let last = steps.into_iter().try_fold(0, far);
            last.and_then(|last| last.checked_add(1)?.checked_mul(size))
                .ok_or_else(|| format!("strides {strides:?} reach beyond all memory"))
        }
        _ => Ok(n * size),
    }
}

/// Reads the tensor of a place.
pub fn read(source: &Source, place: &Place, shape: &[usize], dtype: DType) -> Outcome<Tensor> {
    let len = span(shape, dtype, &place.form)?;
    let fill = |out: &mut [u8]| -> Outcome<()> {
        match &place.form {
            Form::Rows => fetch(source, &place.data, out),
            Form::Swapped => {
                fetch(source, &place.data, out)?;
                swap(out, dtype);
                Ok(())
            }
            Form::Strided { strides, swapped } => {
                let mut bytes = zeros(len)?;
                fetch(source, &place.data, &mut bytes)?;
                gather(&bytes, shape, strides, dtype.size(), out);
                if *swapped {
                    swap(out, dtype);
                }
                Ok(())
            }
            Form::Blocks(quant) => blocks(source, place, *quant, out),
        }
    };
    let fill = |out: &mut [u8]| fill(out).map_err(|why| Error::argument("weights", why));
    Tensor::try_filled(shape, dtype, fill).map_err(|e| match e {
        Error::Argument { why, .. } => why,
        other => other.to_string(),
    })
}

/// The bytes of a matrix that are read at a time to be transposed: few beside the matrix, and rows
/// enough that a column's elements lie together.
const PIECE: usize = 1 << 18;

/// Reads a matrix that lies row by row from byte `at` on, with its axes swapped.
pub fn read_transposed(
    source: &Source,
    at: u64,
    [rows, cols]: [usize; 2],
    dtype: DType,
) -> Outcome<Tensor> {
    let size = dtype.size();
    let some = (PIECE / (cols * size)).clamp(1, rows);
    let fill = |out: &mut [u8]| -> Outcome<()> {
        let mut reader = source.from(at)?;
        let mut piece = zeros((some * cols * size) as u64)?;
        for first in (0..rows).step_by(some) {
            let count = some.min(rows - first);
            let piece = &mut piece[..count * cols * size];
            reader.read_exact(piece).map_err(|e| reason(&e))?;
            for col in 0..cols {
                let start = (col * rows + first) * size;
                let column = out[start..start + count * size].chunks_exact_mut(size);
                for (row, element) in column.enumerate() {
                    let from = (row * cols + col) * size;
                    element.copy_from_slice(&piece[from..from + size]);
                }
            }
        }
        Ok(())
    };
    let fill = |out: &mut [u8]| fill(out).map_err(|why| Error::argument("weights", why));
    Tensor::try_filled([cols, rows], dtype, fill).map_err(|e| match e {
        Error::Argument { why, .. } => why,
        other => other.to_string(),
    })
}

fn fetch(source: &Source, data: &Data, out: &mut [u8]) -> Outcome<()> {
    let done = match data {
        Data::Plain { at } => source.from(*at)?.read_exact(out),
        Data::Deflated { at, packed, skip } => {
            let mut reader = DeflateDecoder::new(source.from(*at)?.take(*packed));
            std::io::copy(&mut (&mut reader).take(*skip), &mut std::io::sink())
                .and_then(|_| reader.read_exact(out))
        }
    };
    done.map_err(|e| reason(&e))
}

fn swap(out: &mut [u8], dtype: DType) {
    out.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
}

/// Copies elements that lie with steps between them into rows.
fn gather(bytes: &[u8], shape: &[usize], strides: &[u64], size: usize, out: &mut [u8]) {
    let mut index = vec![0usize; shape.len()];
    let mut at = 0usize;
    for element in out.chunks_exact_mut(size) {
        element.copy_from_slice(&bytes[at * size..(at + 1) * size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis] as usize;
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] as usize * shape[axis];
            index[axis] = 0;
        }
    }
}

/// Blocks a few at a time, so that no second copy of the tensor is in memory.
fn blocks(source: &Source, place: &Place, quant: Quant, out: &mut [u8]) -> Outcome<()> {
    let Data::Plain { at } = place.data else { return Err("blocks cannot be deflated".into()) };
    let (count, size) = quant.block();
    let mut reader = source.buffered(at)?;
    let mut block = vec![0; size];
    let mut numbers = vec![0.0f32; count];
    for out in out.chunks_mut(count * 4) {
        reader.read_exact(&mut block).map_err(|e| reason(&e))?;
        quant.expand(&block, &mut numbers);
        for (out, x) in out.chunks_exact_mut(4).zip(&numbers) {
            out.copy_from_slice(&x.to_le_bytes());
        }
    }
    Ok(())
}
