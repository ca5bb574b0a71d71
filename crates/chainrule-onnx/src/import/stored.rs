//! Tensors as a file stores them.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf};

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use super::wrong;
use crate::proto::TensorProto;

/// The folder with the elements that are not in the file itself.
pub(super) struct Files(Option<PathBuf>);

impl Files {
    pub fn of(folder: &Path) -> Files {
        Files(Some(folder.to_owned()))
    }

    pub fn none() -> Files {
        Files(None)
    }
}

/// The dtype of ONNX's number, or why no tensor has it.
pub(super) fn dtype(number: i64) -> Result<DType> {
    let known = DType::ALL.into_iter().find(|d| i64::from(crate::graph::number(*d)) == number);
    let name = match number {
        8 => "strings",
        14 | 15 => "complex numbers",
        17..=20 => "floats of 8 bits",
        21..=25 => "numbers of fewer than 8 bits",
        _ => "elements of a kind that ONNX does not define",
    };
    known.ok_or_else(|| wrong(format!("no tensor can have dtype {number} of ONNX, {name}")))
}

/// The tensor of a message.
pub(super) fn tensor(proto: TensorProto, files: &Files) -> Result<Tensor> {
    let name = proto.name.clone().unwrap_or_default();
    let named = |e| wrong(format!("`{name}`: {}", why(e)));
    read(proto, files).map_err(named)
}

/// The reason of an error, without the op's name.
pub(super) fn why(e: chainrule_core::error::Error) -> String {
    match e {
        chainrule_core::error::Error::Argument { why, .. } => why,
        other => other.to_string(),
    }
}

fn read(proto: TensorProto, files: &Files) -> Result<Tensor> {
    let dtype = dtype(proto.data_type.unwrap_or(0).into())?;
    let size = |&d: &i64| usize::try_from(d).map_err(|_| wrong(format!("a size of {d}")));
    let shape = proto.dims.iter().map(size).collect::<Result<Vec<_>>>()?;
    let count = match shape.contains(&0) {
        true => Some(0),
        false => shape.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d)),
    };
    let bytes = count.ok_or_else(|| wrong(format!("no memory has a shape of {shape:?}")))?;
    if proto.data_location == Some(1) {
        return external(&proto, files, &shape, dtype, bytes as u64);
    }
    let elements = bytes / dtype.size();
    let claims = |has: usize| match has == elements {
        true => Ok(()),
        false => Err(wrong(format!("{has} elements for a shape of {shape:?}"))),
    };
    if let Some(raw) = &proto.raw_data {
        claims(raw.len() / dtype.size())?;
        return Tensor::try_from_bytes(raw, shape.as_slice(), dtype);
    }
    let narrow = |data: &[i32], bytes: usize| -> Vec<u8> {
        data.iter().flat_map(|x| x.to_le_bytes().into_iter().take(bytes)).collect()
    };
    let raw: Vec<u8> = match dtype {
        DType::F32 => proto.float_data.iter().flat_map(|x| x.to_le_bytes()).collect(),
        DType::F64 => proto.double_data.iter().flat_map(|x| x.to_le_bytes()).collect(),
        DType::I64 => proto.int64_data.iter().flat_map(|x| x.to_le_bytes()).collect(),
        DType::U64 => proto.uint64_data.iter().flat_map(|x| x.to_le_bytes()).collect(),
        DType::U32 => proto.uint64_data.iter().flat_map(|x| (*x as u32).to_le_bytes()).collect(),
        _ => narrow(&proto.int32_data, dtype.size()),
    };
    claims(raw.len() / dtype.size())?;
    Tensor::try_from_bytes(&raw, shape.as_slice(), dtype)
}

/// Elements in another file, straight into the tensor's memory.
fn external(
    proto: &TensorProto,
    files: &Files,
    shape: &[usize],
    dtype: DType,
    bytes: u64,
) -> Result<Tensor> {
    let entry = |key: &str| {
        let found = proto.external_data.iter().find(|e| e.key.as_deref() == Some(key));
        found.and_then(|e| e.value.as_deref())
    };
    let number = |key: &str| match entry(key) {
        None => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(n) => Ok(Some(n)),
            Err(_) => Err(wrong(format!("{key} {text:?} is no number"))),
        },
    };
    let location = entry("location").ok_or_else(|| wrong("its file is not named"))?;
    let Some(folder) = &files.0 else {
        return Err(wrong(format!("its elements lie in {location:?}; load the model from a file")));
    };
    // A path could lead anywhere.
    let inside = Path::new(location).components().all(|c| matches!(c, Component::Normal(_)));
    if !inside || location.contains('\\') {
        return Err(wrong(format!("its elements lie in {location:?}, outside the model's folder")));
    }
    let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?.unwrap_or(bytes));
    if length != bytes {
        return Err(wrong(format!("{length} bytes for a shape of {shape:?}")));
    }
    let path = folder.join(location);
    let failed = |e: std::io::Error| wrong(format!("{}: {e}", path.display()));
    // So could a link.
    let home = if folder.as_os_str().is_empty() { Path::new(".") } else { folder.as_path() };
    let real = path.canonicalize().map_err(failed)?;
    if !real.starts_with(home.canonicalize().map_err(failed)?) {
        return Err(wrong(format!("its elements lie in {location:?}, outside the model's folder")));
    }
    let about = std::fs::metadata(&path).map_err(failed)?;
    if !about.is_file() || offset.checked_add(bytes).is_none_or(|end| end > about.len()) {
        let why = format!("{bytes} bytes from byte {offset} on are not in {}", path.display());
        return Err(wrong(why));
    }
    let mut file = File::open(&path).map_err(failed)?;
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    Tensor::try_filled(shape, dtype, |out| file.read_exact(out).map_err(failed))
}
