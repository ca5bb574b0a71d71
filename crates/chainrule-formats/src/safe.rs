//! The safetensors format: one file, or shards with an index.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chainrule_core::dtype::DType;
use safetensors::Dtype;
use safetensors::tensor::Metadata;

use crate::place::{Data, Form, Place};
use crate::source::{Outcome, Source};
use crate::weights::{Read, WeightEntry};

/// Longest header, the limit of other readers of the format.
const MOST_HEADER: u64 = 100_000_000;
/// Longest index of shards.
const MOST_INDEX: u64 = 100_000_000;

/// The tensors of one file, with index `file` in its set.
pub fn read(source: &Source, file: usize, into: &mut Read) -> Outcome<()> {
    let len = u64::from_le_bytes(source.read(0, 8)?.try_into().unwrap_or_default());
    if len > MOST_HEADER {
        return Err(format!("its header claims {len} bytes; this is no safetensors file"));
    }
    // Deserialisation checks names, shapes and offsets against each other.
    let about: Metadata = serde_json::from_slice(&source.read(8, len)?)
        .map_err(|e| format!("not a safetensors file ({e}); copy or save it again"))?;
    let data = about.data_len() as u64;
    if (8 + len).checked_add(data) != Some(source.len()) {
        let has = source.len() - 8 - len;
        return Err(format!("{has} bytes of data instead of {data}; copy or save it again"));
    }
    into.metadata.extend(about.metadata().iter().flatten().map(|(k, v)| (k.clone(), v.clone())));
    for (name, info) in about.tensors().into_iter().collect::<BTreeMap<_, _>>() {
        let dtype = dtype(info.dtype).ok_or_else(|| {
            format!("`{name}` has dtype {:?}, which no tensor can have", info.dtype)
        })?;
        let at = 8 + len + info.data_offsets.0 as u64;
        let place = Place { file, data: Data::Plain { at }, form: Form::Rows };
        into.add(WeightEntry::new(name, dtype, info.shape.clone(), place))?;
    }
    Ok(())
}

fn dtype(dtype: Dtype) -> Option<DType> {
    Some(match dtype {
        Dtype::BOOL => DType::Bool,
        Dtype::U8 => DType::U8,
        Dtype::I8 => DType::I8,
        Dtype::U16 => DType::U16,
        Dtype::I16 => DType::I16,
        Dtype::U32 => DType::U32,
        Dtype::I32 => DType::I32,
        Dtype::U64 => DType::U64,
        Dtype::I64 => DType::I64,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        _ => return None,
    })
}

/// The tensors of all shards in an index, which are in its folder.
pub fn read_shards(
    source: &Source,
    path: &Path,
    open: fn(&Path) -> Outcome<Source>,
    into: &mut Read,
) -> Outcome<Vec<Source>> {
    if source.len() > MOST_INDEX {
        return Err(format!("{} bytes are too many for an index of shards", source.len()));
    }
    let index: serde_json::Value = serde_json::from_slice(&source.read(0, source.len())?)
        .map_err(|e| format!("not an index of shards: {e}"))?;
    let map = index.get("weight_map").and_then(|map| map.as_object());
    let map = map.ok_or("not an index of shards: it has no `weight_map`")?;
    let mut shards = BTreeSet::new();
    for (name, shard) in map {
        let shard = shard.as_str().ok_or_else(|| format!("`{name}` has no file name"))?;
        // A path could lead anywhere.
        if Path::new(shard).file_name() != Some(shard.as_ref()) || shard.contains('\\') {
            return Err(format!("`{name}` lies in {shard:?}, which is no plain file name"));
        }
        shards.insert(shard);
    }
    let mut files = Vec::new();
    for (file, shard) in shards.into_iter().enumerate() {
        let source = open(&path.with_file_name(shard)).map_err(|e| format!("{shard}: {e}"))?;
        read(&source, file, into).map_err(|e| format!("{shard}: {e}"))?;
        files.push(source);
    }
    let there: BTreeSet<&str> = into.entries.iter().map(WeightEntry::name).collect();
    match map.keys().find(|name| !there.contains(name.as_str())) {
        Some(name) => Err(format!("the index names `{name}`, which no shard has")),
        None => Ok(files),
    }
}
