//! Arrays from an `.npz` file: a zip archive of `.npy` files that are not compressed, as
//! `numpy.savez` writes it.

use std::collections::BTreeMap;

use chainrule_core::dtype::DType;
use chainrule_nn::data::parse_npy;

use super::Array;
use crate::error::{Result, wrong};

/// The arrays by name.
pub(super) type Arrays = BTreeMap<String, Array>;

fn number(bytes: &[u8], at: usize, len: usize) -> Option<usize> {
    let part = bytes.get(at..at.checked_add(len)?)?;
    Some(part.iter().rev().fold(0usize, |x, &b| (x << 8) | usize::from(b)))
}

/// Name and bytes of an entry.
type Entry<'a> = (String, Option<&'a [u8]>);

/// The entries of the archive's directory, which is at its end.
fn entries(bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    let end = (0..=bytes.len().checked_sub(22)?).rev().take(1 << 16);
    let end = end.into_iter().find(|&at| bytes[at..].starts_with(b"PK\x05\x06"))?;
    let (count, mut at) = (number(bytes, end + 10, 2)?, number(bytes, end + 16, 4)?);
    let mut out = Vec::new();
    for _ in 0..count {
        if !bytes.get(at..)?.starts_with(b"PK\x01\x02") {
            return None;
        }
        let (method, size) = (number(bytes, at + 10, 2)?, number(bytes, at + 20, 4)?);
        let lens = [28, 30, 32].map(|o| number(bytes, at + o, 2));
        let [name, extra, comment] = [lens[0]?, lens[1]?, lens[2]?];
        let local = number(bytes, at + 42, 4)?;
        let text = String::from_utf8_lossy(bytes.get(at + 46..at + 46 + name)?).into_owned();
        let start = local + 30 + number(bytes, local + 26, 2)? + number(bytes, local + 28, 2)?;
        let data = bytes.get(start..start.checked_add(size)?)?;
        out.push((text, (method == 0).then_some(data)));
        at += 46 + name + extra + comment;
    }
    Some(out)
}

/// Reads the bytes of an archive.
pub(super) fn parse(bytes: &[u8]) -> Result<Arrays> {
    let entries = entries(bytes).ok_or_else(|| wrong("the data file is no .npz archive"))?;
    let mut out = Arrays::new();
    for (name, data) in entries {
        let name = name.trim_end_matches(".npy").to_string();
        let Some(data) = data else {
            let why = format!("`{name}` is compressed; write the file with numpy.savez");
            return Err(wrong(why));
        };
        let tensor = parse_npy(data).map_err(|e| wrong(format!("`{name}` in the data: {e}")))?;
        let shape: Vec<usize> = tensor.shape().to_vec();
        let whole = matches!(tensor.dtype(), DType::I64 | DType::Bool);
        out.insert(name, Array { shape, numbers: tensor.to_f64_vec(), whole });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_archive_are_errors() {
        for bytes in [
            &b""[..],
            b"PK",
            &[0; 64],
            b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0",
        ] {
            assert!(parse(bytes).is_err());
        }
    }
}
