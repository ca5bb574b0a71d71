//! The weights in a model's folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chainrule_core::dtype::DType;
use chainrule_core::error::{Error, Result};
use chainrule_formats::{NameMap, Weights};
use chainrule_nn::nn::StateDict;

use crate::config::Json;

/// File names of weights, in order of preference.
const NAMES: [&str; 4] = [
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
];

/// Opens a file of weights: [`Weights::open`] or [`Weights::open_mapped`].
pub type Opening = fn(&Path) -> Result<Weights>;

/// Reads the weights of a folder under their new names.
pub fn load(folder: &Path, names: &NameMap, open: Opening) -> Result<StateDict> {
    let Some(path) = NAMES.iter().map(|name| folder.join(name)).find(|path| path.exists()) else {
        let why = format!("has no weights; there should be one of {}", NAMES.join(", "));
        return Err(Error::File { path: folder.to_owned(), why });
    };
    let files = match path.ends_with(NAMES[3]) {
        true => shards(folder, &Json::read(&path)?)?,
        false => vec![path],
    };
    let mut state = StateDict::new();
    for file in files {
        for (name, tensor) in names.load_as(&open(&file)?, in_f32)? {
            if state.insert(name.clone(), tensor).is_some() {
                let why = format!("`{name}` stands in another shard, too");
                return Err(Error::File { path: file, why });
            }
        }
    }
    Ok(state)
}

/// Floats become f32; other dtypes are rejected later, by name.
fn in_f32(dtype: DType) -> DType {
    if dtype.is_float() { DType::F32 } else { dtype }
}

/// The shards in an index of PyTorch, which are in its folder.
fn shards(folder: &Path, index: &Json) -> Result<Vec<PathBuf>> {
    let map = index.object("weight_map")?;
    let map = map.ok_or_else(|| index.error("not an index of shards: it has no `weight_map`"))?;
    let mut files = BTreeSet::new();
    for name in map.map().keys() {
        let file = map.text(name)?.unwrap_or_default();
        // A path could lead anywhere.
        if Path::new(file).file_name() != Some(file.as_ref()) || file.contains('\\') {
            let why = format!("`{name}` lies in {file:?}, which is no plain file name");
            return Err(index.error(why));
        }
        files.insert(folder.join(file));
    }
    Ok(files.into_iter().collect())
}
