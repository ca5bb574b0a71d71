//! NumPy's `.npy`, and `.npz`, a zip of them.

use chainrule_core::dtype::DType;

use crate::place::{Data, Form, Place};
use crate::source::{Outcome, Source};
use crate::weights::{Read, WeightEntry};
use crate::zip;

/// Longest header that is read.
const MOST_HEADER: u64 = 1 << 20;

/// The array of a `.npy` file, named `array`.
pub fn read(source: &Source, into: &mut Read) -> Outcome<()> {
    let head = source.read(0, source.len().min(MOST_HEADER))?;
    into.add(entry("array".into(), &head, Data::Plain { at: 0 })?)
}

/// The arrays of a `.npz` file.
pub fn read_zip(source: &Source, into: &mut Read) -> Outcome<()> {
    for member in zip::list(source)? {
        let Some(name) = member.name.strip_suffix(".npy") else {
            return Err(format!("its entry `{}` is no array; an .npz has .npy only", member.name));
        };
        let head = member.head(source, MOST_HEADER.min(16 << 10))?;
        let data = member.data(source)?;
        let entry = entry(name.to_owned(), &head, data).map_err(|e| format!("`{name}`: {e}"))?;
        let begin = head_length(&head).unwrap_or(0);
        if begin.checked_add(entry.bytes()).is_none_or(|end| end > member.len) {
            return Err(format!("`{name}` claims more than the {} bytes it has", member.len));
        }
        into.add(entry)?;
    }
    Ok(())
}

/// The bytes before the elements.
fn head_length(head: &[u8]) -> Option<u64> {
    // The length has two bytes in version 1, and four since.
    let long = *head.get(6)? > 1;
    let len = head.get(8..if long { 12 } else { 10 })?;
    let len = len.iter().rev().fold(0u64, |n, &b| n << 8 | u64::from(b));
    Some(len + if long { 12 } else { 10 })
}

fn entry(name: String, head: &[u8], data: Data) -> Outcome<WeightEntry> {
    let cut = "not a whole .npy array; copy or save it again";
    if !head.starts_with(b"\x93NUMPY") {
        return Err(cut.into());
    }
    match head.get(6..8).ok_or(cut)? {
        [1..=3, 0] => {}
        [major, minor] => {
            return Err(format!(".npy of version {major}.{minor}; 1.0, 2.0 and 3.0 can be read"));
        }
        _ => return Err(cut.into()),
    }
    let begin = head_length(head).ok_or(cut)?;
    let text = head.get(10..begin as usize).ok_or(cut)?;
    let text = String::from_utf8_lossy(text);
    let (dtype, swapped) = dtype(&value(&text, "descr").ok_or(cut)?)?;
    let shape = value(&text, "shape").ok_or(cut)?;
    let sizes = shape.trim_matches(['(', ')']).split(',').map(str::trim).filter(|s| !s.is_empty());
    let shape: Vec<usize> =
        sizes.map(|s| s.parse()).collect::<Result<_, _>>().map_err(|_| cut.to_owned())?;
    let form = match (value(&text, "fortran_order").as_deref(), swapped) {
        (Some("True"), _) => {
            let mut step = 1u64;
            let strides = shape.iter().map(|&d| {
                let stride = step;
                step = step.saturating_mul(d as u64);
                stride
            });
            Form::Strided { strides: strides.collect(), swapped }
        }
        (Some("False"), false) => Form::Rows,
        (Some("False"), true) => Form::Swapped,
        _ => return Err(cut.into()),
    };
    let data = match data {
        Data::Plain { at } => Data::Plain { at: at + begin },
        Data::Deflated { at, packed, .. } => Data::Deflated { at, packed, skip: begin },
    };
    Ok(WeightEntry::new(name, dtype, shape, Place { file: 0, data, form }))
}

/// The text of a value in the header, a Python dictionary literal.
fn value(text: &str, key: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("'{key}':"))?;
    let rest = rest.trim_start();
    let end = match rest.as_bytes().first()? {
        b'(' => rest.find(')')? + 1,
        b'\'' => rest[1..].find('\'')? + 2,
        b'[' => rest.find(']')? + 1,
        _ => rest.find([',', '}'])?,
    };
    Some(rest[..end].trim_matches('\'').trim().to_owned())
}

/// The dtype, and whether it is big-endian.
fn dtype(text: &str) -> Outcome<(DType, bool)> {
    let known = match text.trim_start_matches(['<', '>', '|', '=']) {
        "b1" => DType::Bool,
        "u1" => DType::U8,
        "i1" => DType::I8,
        "u2" => DType::U16,
        "i2" => DType::I16,
        "u4" => DType::U32,
        "i4" => DType::I32,
        "u8" => DType::U64,
        "i8" => DType::I64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "O" => {
            return Err("it has Python objects, which could run code; only numbers are read".into());
        }
        _ => return Err(format!("no tensor can have NumPy's dtype {text:?}")),
    };
    Ok((known, text.starts_with('>')))
}
