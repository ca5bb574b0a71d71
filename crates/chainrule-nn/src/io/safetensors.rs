//! Tensors by name in the safetensors format: a JSON header with names, dtypes, shapes and offsets, then the bytes.
//!
//! The crate `safetensors` checks the header (its length, overlaps, offsets against shapes); sizes and dtypes are checked here.
//! Files are written beside their place and renamed, so an interrupted save leaves the earlier file whole.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Write;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::atomic::{reason, write_atomic};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::nn::StateDict;
use crate::tensor::Tensor;

/// The largest file that is read, 16 GiB: a longer one is no set of weights for this library.
const MOST_BYTES: u64 = 16 << 30;

/// Reads all tensors of a file. F32, F64, I64 and BOOL are taken as they are; other dtypes are an error that names the tensor.
pub fn load(path: impl AsRef<Path>) -> Result<StateDict> {
    let path = path.as_ref();
    let error = |why: String| Error::File { path: path.to_owned(), why };
    let size = fs::metadata(path).map_err(|e| error(reason(&e)))?;
    if size.is_dir() {
        return Err(error("this is a folder; name the .safetensors file in it".into()));
    }
    if size.len() > MOST_BYTES {
        return Err(error(format!(
            "{} bytes are more than any weights this library reads",
            size.len()
        )));
    }
    let bytes = fs::read(path).map_err(|e| error(reason(&e)))?;
    parse(&bytes).map_err(|e| error(e.to_string()))
}

/// Reads all tensors from the bytes of a file.
pub fn parse(bytes: &[u8]) -> Result<StateDict> {
    let file = SafeTensors::deserialize(bytes).map_err(|e| {
        Error::argument(
            "safetensors",
            format!("not a whole safetensors file ({e}); copy or save it again"),
        )
    })?;
    file.iter().map(|(name, view)| Ok((name.to_string(), tensor(name, &view)?))).collect()
}

fn tensor(name: &str, view: &TensorView<'_>) -> Result<Tensor> {
    fn elements<const N: usize, T>(bytes: &[u8], from: fn([u8; N]) -> T) -> Vec<T> {
        let (chunks, _) = bytes.as_chunks::<N>();
        chunks.iter().map(|&c| from(c)).collect()
    }
    let (shape, bytes) = (view.shape(), view.data());
    match view.dtype() {
        Dtype::F32 => Tensor::try_from_slice(&elements(bytes, f32::from_le_bytes), shape),
        Dtype::F64 => Tensor::try_from_slice(&elements(bytes, f64::from_le_bytes), shape),
        Dtype::I64 => Tensor::try_from_slice(&elements(bytes, i64::from_le_bytes), shape),
        Dtype::BOOL => Tensor::try_from_slice(&elements(bytes, |[b]: [u8; 1]| b != 0), shape),
        other => {
            let why = format!("`{name}` has dtype {other:?}; f32, f64, i64 and bool can be read");
            Err(Error::argument("safetensors", why))
        }
    }
}

/// The bytes of a file with these tensors and, in its header, this text by name.
pub fn serialize(tensors: &StateDict, metadata: &BTreeMap<String, String>) -> Result<Vec<u8>> {
    let data: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, t)| {
            let (dtype, bytes) = bytes_of(t)?;
            Ok((name.clone(), dtype, t.shape().to_vec(), bytes))
        })
        .collect::<Result<_>>()?;
    let fail = |e: &dyn std::fmt::Display| Error::argument("safetensors", e.to_string());
    let views = data
        .iter()
        .map(|(name, dtype, shape, bytes)| {
            let view = TensorView::new(*dtype, shape.clone(), bytes).map_err(|e| fail(&e))?;
            Ok((name.as_str(), view))
        })
        .collect::<Result<Vec<_>>>()?;
    let metadata: HashMap<String, String> =
        metadata.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let metadata = (!metadata.is_empty()).then_some(metadata);
    safetensors::serialize(views, metadata).map_err(|e| fail(&e))
}

fn bytes_of(t: &Tensor) -> Result<(Dtype, Vec<u8>)> {
    Ok(match t.dtype() {
        DType::F32 => {
            (Dtype::F32, t.try_to_vec::<f32>()?.iter().flat_map(|x| x.to_le_bytes()).collect())
        }
        DType::F64 => {
            (Dtype::F64, t.try_to_vec::<f64>()?.iter().flat_map(|x| x.to_le_bytes()).collect())
        }
        DType::I64 => {
            (Dtype::I64, t.try_to_vec::<i64>()?.iter().flat_map(|x| x.to_le_bytes()).collect())
        }
        DType::Bool => (Dtype::BOOL, t.try_to_vec::<bool>()?.iter().map(|&b| b as u8).collect()),
    })
}

/// Writes the tensors to a file, all or nothing: a full disk leaves the earlier file as it was.
pub fn save(
    path: impl AsRef<Path>,
    tensors: &StateDict,
    metadata: &BTreeMap<String, String>,
) -> Result<()> {
    let path = path.as_ref();
    let bytes = serialize(tensors, metadata)?;
    write_atomic(path, |out| out.write_all(&bytes)).map_err(|e| {
        let kept = if path.is_file() { " (the earlier file is unchanged)" } else { "" };
        Error::File { path: path.to_owned(), why: format!("{}{kept}", reason(&e)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> StateDict {
        StateDict::from([
            ("w".to_string(), Tensor::from([[1.5f32, -0.0], [f32::INFINITY, 1e-45]])),
            ("steps".to_string(), Tensor::from([i64::MIN, 7])),
            ("mask".to_string(), Tensor::from([true, false])),
            ("scalar".to_string(), Tensor::scalar(std::f64::consts::PI)),
            ("view".to_string(), Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]).t()),
        ])
    }

    #[test]
    fn what_is_saved_comes_back() {
        let dir = std::env::temp_dir().join(format!("chainrule-io-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("model.safetensors");
        save(&path, &state(), &BTreeMap::from([("by".into(), "a test".into())])).unwrap();
        let back = load(&path).unwrap();
        for (name, t) in state() {
            assert_eq!((t.shape(), t.dtype()), (back[&name].shape(), back[&name].dtype()));
            let bits =
                |t: &Tensor| t.to_f64_vec().into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(&t), bits(&back[&name]), "{name}");
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "no temporary file is left");
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn broken_files_are_errors() {
        let good = serialize(&state(), &BTreeMap::new()).unwrap();
        for cut in [0, 1, 7, 8, 20, good.len() / 2, good.len() - 1] {
            assert!(parse(&good[..cut]).is_err(), "cut to {cut} bytes");
        }
        let mut huge = good.clone();
        huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(parse(&huge).is_err());
        let header = |json: &str, data: usize| {
            let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
            bytes.extend(json.as_bytes());
            bytes.resize(bytes.len() + data, 0);
            bytes
        };
        let overlap = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#;
        let lies = r#"{"a":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,8]}}"#;
        let half = r#"{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}"#;
        let rank = r#"{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}"#;
        for (json, data) in [(overlap, 12), (lies, 8), (half, 4), (rank, 4), ("{", 0), ("[]", 0)] {
            assert!(parse(&header(json, data)).is_err(), "{json}");
        }
        assert!(load("/nowhere/at/all").unwrap_err().to_string().contains("no such file"));
    }
}
