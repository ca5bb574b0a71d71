//! Location and layout of a tensor in a file.

use std::io::Read;

use chainrule_core::dtype::DType;
use chainrule_core::error::Error;
use chainrule_core::tensor::Tensor;
use flate2::read::DeflateDecoder;
use half::f16;

use crate::quant::Quant;
use crate::source::{Outcome, Source, reason, zeros};

/// Storage of the bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Uncompressed, from this byte on.
    Plain { at: u64 },
    /// Deflated, from `at` on, with this compressed length; the elements begin at byte `skip` of
    /// the content.
    Deflated { at: u64, packed: u64, skip: u64 },
}

/// Layout of the elements.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// Row-major, little-endian.
    Rows,
    /// Row-major, big-endian.
    Swapped,
    /// With these strides, in elements.
    Strided { strides: Vec<u64>, swapped: bool },
    /// Quantised blocks.
    Blocks(Quant),
}

/// Location of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub file: usize,
    pub data: Data,
    pub form: Form,
}

/// The number of elements of a shape, if it fits into memory.
pub fn numel(shape: &[usize]) -> Outcome<u64> {
    let product = match shape.contains(&0) {
        true => Some(0),
        false => shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64)),
    };
    product.filter(|&n| n <= 1 << 56).ok_or_else(|| format!("no memory has a shape of {shape:?}"))
}

/// The byte range of all elements.
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

/// Conversion of elements from a file to a tensor.
#[derive(Clone, Copy)]
struct Change {
    /// Size of an element in the file, and in the tensor.
    sizes: [usize; 2],
    one: fn(&[u8], &mut [u8]),
    stays: bool,
}

impl Change {
    /// Dtype conversion, if it is supported element by element.
    fn new(stored: DType, wanted: DType) -> Option<Change> {
        let one: fn(&[u8], &mut [u8]) = match (stored, wanted) {
            _ if stored == wanted => |from, to| to.copy_from_slice(from),
            (DType::F16, DType::F32) => |from, to| {
                to.copy_from_slice(&f16::from_le_bytes([from[0], from[1]]).to_f32().to_le_bytes());
            },
            (DType::BF16, DType::F32) => |from, to| to.copy_from_slice(&[0, 0, from[0], from[1]]),
            (DType::F64, DType::F32) => |from, to| {
                let x = f64::from_le_bytes(from.try_into().unwrap_or_default());
                to.copy_from_slice(&(x as f32).to_le_bytes());
            },
            _ => return None,
        };
        Some(Change { sizes: [stored.size(), wanted.size()], one, stays: stored == wanted })
    }
}

/// Whether elements can be converted during reading.
pub fn converts(stored: DType, wanted: DType) -> bool {
    Change::new(stored, wanted).is_some()
}

/// Reads a tensor, converted to another dtype: see [`converts`].
pub fn read(
    source: &Source,
    place: &Place,
    shape: &[usize],
    [stored, wanted]: [DType; 2],
) -> Outcome<Tensor> {
    let pages = source.pages.as_ref().filter(|_| stored == wanted);
    if let Some(tensor) =
        pages.map(|pages| pages.tensor(place, shape, stored)).transpose()?.flatten()
    {
        return Ok(tensor);
    }
    let len = span(shape, stored, &place.form)?;
    let change = Change::new(stored, wanted).ok_or("its elements cannot be converted")?;
    let fill = |out: &mut [u8]| -> Outcome<()> {
        match &place.form {
            Form::Rows if change.stays => fetch(source, &place.data, out),
            Form::Rows | Form::Swapped => scatter(source, place, (shape, None), change, out),
            Form::Strided { strides, .. } => match storage_order(shape, strides) {
                Some(axes) => scatter(source, place, (shape, Some(&axes)), change, out),
                None => gather(source, place, (shape, strides), len, change, out),
            },
            Form::Blocks(quant) => blocks(source, place, *quant, out),
        }
    };
    filled(shape, wanted, fill)
}

fn filled(
    shape: &[usize],
    dtype: DType,
    fill: impl FnOnce(&mut [u8]) -> Outcome<()>,
) -> Outcome<Tensor> {
    let fill = |out: &mut [u8]| fill(out).map_err(|why| Error::argument("weights", why));
    Tensor::try_filled(shape, dtype, fill).map_err(|e| match e {
        Error::Argument { why, .. } => why,
        other => other.to_string(),
    })
}

/// Bytes per read of a matrix to be transposed: few beside the matrix, and enough rows for
/// contiguous writes of a column.
const PIECE: usize = 1 << 18;

/// Reads a row-major matrix from byte `at` on, transposed.
pub fn read_transposed(
    source: &Source,
    at: u64,
    [rows, cols]: [usize; 2],
    [stored, wanted]: [DType; 2],
) -> Outcome<Tensor> {
    let change = Change::new(stored, wanted).ok_or("its elements cannot be converted")?;
    let [size, wide] = change.sizes;
    let some = (PIECE / (cols * size)).clamp(1, rows);
    filled(&[cols, rows], wanted, |out| {
        let mut reader = source.from(at)?;
        let mut piece = zeros((some * cols * size) as u64)?;
        for first in (0..rows).step_by(some) {
            let count = some.min(rows - first);
            let piece = &mut piece[..count * cols * size];
            reader.read_exact(piece).map_err(|e| reason(&e))?;
            for col in 0..cols {
                let start = (col * rows + first) * wide;
                let column = out[start..start + count * wide].chunks_exact_mut(wide);
                for (row, element) in column.enumerate() {
                    let from = (row * cols + col) * size;
                    (change.one)(&piece[from..from + size], element);
                }
            }
        }
        Ok(())
    })
}

/// Contiguous bytes of elements, unpacked.
pub fn stream<'a>(source: &'a Source, data: &Data) -> Outcome<Box<dyn Read + 'a>> {
    match data {
        Data::Plain { at } => Ok(Box::new(source.from(*at)?)),
        Data::Deflated { at, packed, skip } => {
            let mut reader = DeflateDecoder::new(source.from(*at)?.take(*packed));
            std::io::copy(&mut (&mut reader).take(*skip), &mut std::io::sink())
                .map_err(|e| reason(&e))?;
            Ok(Box::new(reader))
        }
    }
}

fn fetch(source: &Source, data: &Data, out: &mut [u8]) -> Outcome<()> {
    stream(source, data)?.read_exact(out).map_err(|e| reason(&e))
}

fn is_swapped(form: &Form) -> bool {
    matches!(form, Form::Swapped | Form::Strided { swapped: true, .. })
}

/// Axes from the slowest to the fastest, if the elements are contiguous.
fn storage_order(shape: &[usize], strides: &[u64]) -> Option<Vec<usize>> {
    let mut axes: Vec<usize> = (0..shape.len()).filter(|&axis| shape[axis] > 1).collect();
    axes.sort_by_key(|&axis| std::cmp::Reverse(strides[axis]));
    let mut next = 1u64;
    for &axis in axes.iter().rev() {
        if strides[axis] != next {
            return None;
        }
        next = next.checked_mul(shape[axis] as u64)?;
    }
    Some(axes)
}

/// Scatters elements in file order, chunk by chunk; without axes they keep their order.
fn scatter(
    source: &Source,
    place: &Place,
    (shape, axes): (&[usize], Option<&[usize]>),
    change: Change,
    out: &mut [u8],
) -> Outcome<()> {
    let ([size, wide], swapped) = (change.sizes, is_swapped(&place.form));
    let count = out.len() / wide;
    let mut reader = stream(source, &place.data)?;
    let mut piece = zeros((count * size).min(PIECE / size * size) as u64)?;
    let step = |axis: usize| shape[axis + 1..].iter().product::<usize>();
    let steps: Vec<(usize, usize)> = match axes {
        Some(axes) => axes.iter().rev().map(|&axis| (shape[axis], step(axis))).collect(),
        None => vec![(count, 1)],
    };
    let (mut index, mut at, mut left) = (vec![0; steps.len()], 0, count * size);
    while left > 0 {
        let some = left.min(piece.len());
        let piece = &mut piece[..some];
        left -= some;
        reader.read_exact(piece).map_err(|e| reason(&e))?;
        for element in piece.chunks_exact_mut(size) {
            if swapped {
                element.reverse();
            }
            (change.one)(element, &mut out[at * wide..(at + 1) * wide]);
            for (index, &(count, step)) in index.iter_mut().zip(&steps) {
                (*index, at) = (*index + 1, at + step);
                if *index < count {
                    break;
                }
                (*index, at) = (0, at - step * count);
            }
        }
    }
    Ok(())
}

/// Gathers strided elements, from a copy of their whole range.
fn gather(
    source: &Source,
    place: &Place,
    (shape, strides): (&[usize], &[u64]),
    len: u64,
    change: Change,
    out: &mut [u8],
) -> Outcome<()> {
    let ([size, wide], swapped) = (change.sizes, is_swapped(&place.form));
    let mut bytes = zeros(len)?;
    fetch(source, &place.data, &mut bytes)?;
    let mut index = vec![0usize; shape.len()];
    let mut at = 0usize;
    let mut element = [0; 8];
    for to in out.chunks_exact_mut(wide) {
        let element = &mut element[..size];
        element.copy_from_slice(&bytes[at * size..(at + 1) * size]);
        if swapped {
            element.reverse();
        }
        (change.one)(element, to);
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
    Ok(())
}

/// Dequantises a few blocks at a time, so that the tensor is in memory only once.
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
