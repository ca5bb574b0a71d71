//! Stored tensors.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf};

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use super::wrong;
use crate::proto::TensorProto;

/// Files with raw elements: the model's own, and external ones.
pub(super) struct Files {
    folder: Option<PathBuf>,
    own: Option<(File, u64)>,
    /// Bytes read so far of each file.
    read: Cell<u64>,
    beside: RefCell<HashMap<PathBuf, u64>>,
}

/// Times that an external file may be read in total, since tensors may share bytes.
const TIMES: u64 = 16;

impl Files {
    pub fn of(folder: &Path, own: File, len: u64) -> Files {
        let (folder, own) = (Some(folder.to_owned()), Some((own, len)));
        Files { folder, own, ..Files::none() }
    }

    pub fn none() -> Files {
        Files { folder: None, own: None, read: Cell::new(0), beside: RefCell::default() }
    }
}

/// The dtype of ONNX's code, or the reason why it is unsupported.
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

/// The message of an error, without the op's name.
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
    if let (Some(at), Some(len)) = (proto.left_at, proto.left_len) {
        if len != bytes as u64 {
            return Err(wrong(format!("{len} bytes for a shape of {shape:?}")));
        }
        return left(files, at, &shape, dtype, len);
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

/// Elements left in the model's own file, at most its length in total, so that none is read twice.
fn left(files: &Files, at: u64, shape: &[usize], dtype: DType, bytes: u64) -> Result<Tensor> {
    files.read.set(files.read.get().saturating_add(bytes));
    let own = files.own.as_ref().filter(|(_, len)| files.read.get() <= *len);
    let Some((mut file, _)) = own.map(|(file, len)| (file, len)) else {
        return Err(wrong("its elements are not in the file; export it again"));
    };
    let failed = |e: std::io::Error| wrong(e.to_string());
    file.seek(SeekFrom::Start(at)).map_err(failed)?;
    Tensor::try_filled(shape, dtype, |out| file.read_exact(out).map_err(failed))
}

/// External elements, read straight into the tensor's memory.
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
    let Some(folder) = &files.folder else {
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
    let (len, mut beside) = (about.len(), files.beside.borrow_mut());
    let sum = beside.entry(real).or_default();
    *sum = sum.saturating_add(bytes);
    if *sum > len.saturating_mul(TIMES) {
        return Err(wrong(format!(
            "the tensors up to here would take {sum} bytes, of a file of {len}; it is hostile"
        )));
    }
    let mut file = File::open(&path).map_err(failed)?;
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    Tensor::try_filled(shape, dtype, |out| file.read_exact(out).map_err(failed))
}
