//! The NPY format of NumPy arrays.

use std::path::Path;

use super::file;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads the array of a `.npy` file as a tensor.
///
/// f32, f64, i64 and bool keep their dtype; integers of up to 32 bits become i64. Little-endian
/// only.
pub fn read_npy(path: impl AsRef<Path>) -> Result<Tensor> {
    let path = path.as_ref();
    let bytes = file::bytes(path)?;
    parse(&bytes).map_err(|why| file::wrong(path, why))
}

/// Parses the bytes of a `.npy` file, as [`read_npy`] does.
pub fn parse_npy(bytes: &[u8]) -> Result<Tensor> {
    parse(bytes).map_err(|why| Error::argument("npy", why))
}

fn parse(bytes: &[u8]) -> Result<Tensor, String> {
    let short = || "cut short in its header".to_string();
    let rest =
        bytes.strip_prefix(MAGIC).ok_or("not an NPY file: it does not begin with \\x93NUMPY")?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
    let (len, rest) = match version[0] {
        1 => {
            let (len, rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
            (usize::from(u16::from_le_bytes(*len)), rest)
        }
        2 | 3 => {
            let (len, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
            (u32::from_le_bytes(*len) as usize, rest)
        }
        other => {
            return Err(format!("version {other} of the format is not known; 1 to 3 can be read"));
        }
    };
    let (header, data) = rest.split_at_checked(len).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is no text")?;
    let kind = between(header, "'descr': '", "'")?;
    let is_fortran = between(header, "'fortran_order': ", ",")?.trim() == "True";
    let mut shape = Vec::new();
    for size in between(header, "'shape': (", ")")?.split(',').map(str::trim) {
        if !size.is_empty() {
            shape.push(size.parse::<usize>().map_err(|_| format!("its shape has `{size}`"))?);
        }
    }
    if is_fortran {
        shape.reverse();
    }
    let tensor = elements(kind, data, &shape)?;
    match is_fortran {
        true => {
            let axes: Vec<i64> = (0..shape.len() as i64).rev().collect();
            tensor.try_permute(&axes[..]).map_err(|e| e.to_string())
        }
        false => Ok(tensor),
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Result<&'a str, String> {
    let start = text.find(before).map(|at| at + before.len());
    let found = start.and_then(|start| Some(&text[start..start + text[start..].find(after)?]));
    found.ok_or_else(|| {
        format!("its header lacks {}", before.trim_end_matches([' ', '\'', '(', ':']))
    })
}

fn elements(kind: &str, data: &[u8], shape: &[usize]) -> Result<Tensor, String> {
    fn whole<const N: usize, T: crate::dtype::Element>(
        data: &[u8],
        shape: &[usize],
        from: fn([u8; N]) -> T,
    ) -> Result<Tensor, String> {
        let want = shape.iter().try_fold(N, |n, &size| n.checked_mul(size));
        if want != Some(data.len()) {
            let have = data.len();
            return Err(format!("the shape {shape:?} does not fit the {have} bytes that follow"));
        }
        let (chunks, _) = data.as_chunks::<N>();
        let numbers: Vec<T> = chunks.iter().map(|&c| from(c)).collect();
        Tensor::try_from_slice(&numbers, shape).map_err(|e| e.to_string())
    }
    match kind {
        "<f4" => whole(data, shape, f32::from_le_bytes),
        "<f8" => whole(data, shape, f64::from_le_bytes),
        "<i8" => whole(data, shape, i64::from_le_bytes),
        "<i4" => whole(data, shape, |b| i64::from(i32::from_le_bytes(b))),
        "<u4" => whole(data, shape, |b| i64::from(u32::from_le_bytes(b))),
        "<i2" => whole(data, shape, |b| i64::from(i16::from_le_bytes(b))),
        "<u2" => whole(data, shape, |b| i64::from(u16::from_le_bytes(b))),
        "|i1" => whole(data, shape, |b: [u8; 1]| i64::from(b[0] as i8)),
        "|u1" => whole(data, shape, |b: [u8; 1]| i64::from(b[0])),
        "|b1" => whole(data, shape, |b: [u8; 1]| b[0] != 0),
        other => Err(format!(
            "elements of type {other:?} cannot be read; save the array as float32 or int64"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(kind: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header =
            format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': ({shape}), }}\n");
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.as_bytes());
        out.extend(data);
        out
    }

    #[test]
    fn arrays_are_read() {
        let bytes: Vec<u8> = (0..6).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let a = parse_npy(&npy("<f4", "False", "2, 3", &bytes)).unwrap();
        assert_eq!((a.shape().to_vec(), a.to_vec::<f32>()[5]), (vec![2, 3], 5.0));
        let b = parse_npy(&npy("<f4", "True", "2, 3", &bytes)).unwrap();
        assert_eq!(b.to_vec::<f32>(), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
        assert_eq!(
            parse_npy(&npy("|u1", "False", "2,", &[7, 255])).unwrap().to_vec::<i64>(),
            [7, 255]
        );
        assert_eq!(parse_npy(&npy("<f4", "False", "", &bytes[4..8])).unwrap().item(), 1.0);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (bytes, want) in [
            (b"hello".to_vec(), "not an NPY file"),
            (npy("<f4", "False", "3,", &[0; 8]), "does not fit the 8 bytes"),
            (npy("<f4", "False", "18446744073709551615, 8", &[0; 8]), "does not fit"),
            (npy("<c8", "False", "1,", &[0; 8]), "\"<c8\" cannot be read"),
            (npy("<f4", "False", "x,", &[0; 8]), "`x`"),
            (npy("<f4", "False", "1,", &[0; 4])[..20].to_vec(), "cut short"),
        ] {
            let why = parse_npy(&bytes).unwrap_err().to_string();
            assert!(why.contains(want), "{why}");
        }
    }
}
