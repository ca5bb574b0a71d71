//! A finished model.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use chainrule_core::error::{Error, Result};
use prost::Message as _;

use crate::proto::{EntryProto, GraphProto, ModelProto, TensorProto};

/// Bytes of a file from which on the elements go into another: a message holds no 2 GB.
const LARGEST: usize = 2_000_000_000;

/// Elements of fewer bytes stay in the file.
const SMALL: usize = 1024;

/// An ONNX model; made by [`export`](crate::export).
pub struct Model(pub(crate) ModelProto);

impl Model {
    /// The names of the inputs.
    pub fn inputs(&self) -> Vec<&str> {
        let inputs = self.0.graph.iter().flat_map(|g| &g.input);
        inputs.filter_map(|v| v.name.as_deref()).collect()
    }

    /// The names of the outputs.
    pub fn outputs(&self) -> Vec<&str> {
        let outputs = self.0.graph.iter().flat_map(|g| &g.output);
        outputs.filter_map(|v| v.name.as_deref()).collect()
    }

    /// The op of each node.
    pub fn ops(&self) -> Vec<&str> {
        let nodes = self.0.graph.iter().flat_map(|g| &g.node);
        nodes.filter_map(|n| n.op_type.as_deref()).collect()
    }

    /// The name of each node: the modules that it is part of, and its op.
    pub fn nodes(&self) -> Vec<&str> {
        let nodes = self.0.graph.iter().flat_map(|g| &g.node);
        nodes.filter_map(|n| n.name.as_deref()).collect()
    }

    /// The model as the bytes of a file, with all elements inside.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }

    /// Writes the model as a file, at once: an old one stays until the new one is complete. The
    /// elements of a model of more than 2 GB go into a file beside it, of the same name with
    /// `.data` behind, which ONNX finds there.
    ///
    /// Errors if a file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write_up_to(path.as_ref(), LARGEST)
    }

    /// As [`Model::write`], with another limit.
    pub(crate) fn write_up_to(&self, path: &Path, largest: usize) -> Result<()> {
        if self.0.encoded_len() <= largest {
            return replace(path, |file| file.write_all(&self.to_bytes()));
        }
        let mut data = path.as_os_str().to_owned();
        data.push(".data");
        let data = Path::new(&data);
        let name = data.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (model, parts) = self.parted(&name);
        replace(data, |file| parts.iter().try_for_each(|p| file.write_all(p)))?;
        replace(path, |file| file.write_all(&model.encode_to_vec()))
    }

    /// The model with its large elements in a file of this name, and these elements: no copies, of
    /// which memory may not have room for two.
    fn parted<'a>(&'a self, name: &str) -> (ModelProto, Vec<&'a [u8]>) {
        let mut parts: Vec<&[u8]> = Vec::new();
        let mut offset = 0;
        let mut part = |tensor: &'a TensorProto| {
            let Some(bytes) = tensor.raw_data.as_deref().filter(|b| b.len() >= SMALL) else {
                return tensor.clone();
            };
            let entries = [
                ("location", name.to_string()),
                ("offset", offset.to_string()),
                ("length", bytes.len().to_string()),
            ];
            let entry = |(k, v): (&str, String)| EntryProto { key: Some(k.into()), value: Some(v) };
            offset += bytes.len();
            parts.push(bytes);
            TensorProto {
                dims: tensor.dims.clone(),
                data_type: tensor.data_type,
                name: tensor.name.clone(),
                external_data: entries.map(entry).to_vec(),
                data_location: Some(1),
                ..TensorProto::default()
            }
        };
        let graph = self.0.graph.as_ref().map(|g| GraphProto {
            name: g.name.clone(),
            node: g.node.clone(),
            initializer: g.initializer.iter().map(&mut part).collect(),
            input: g.input.clone(),
            output: g.output.clone(),
            sparse_initializer: g.sparse_initializer.clone(),
        });
        let model = ModelProto {
            ir_version: self.0.ir_version,
            producer_name: self.0.producer_name.clone(),
            producer_version: self.0.producer_version.clone(),
            graph,
            opset_import: self.0.opset_import.clone(),
            metadata_props: self.0.metadata_props.clone(),
            functions: self.0.functions.clone(),
        };
        (model, parts)
    }
}

/// Writes a file beside the path and moves it there.
fn replace(path: &Path, write: impl FnOnce(&mut fs::File) -> std::io::Result<()>) -> Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let written = fs::File::create(&beside).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&beside, path));
    moved.map_err(|e| {
        let _ = fs::remove_file(&beside);
        Error::argument("onnx", format!("cannot write {}: {e}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use chainrule_core::Tensor;
    use chainrule_program::Program;

    use super::*;

    #[test]
    fn elements_of_a_large_model_go_into_a_second_file() {
        let w = Tensor::linspace(0.0, 1.0, 600).to_dtype(chainrule_core::DType::F32);
        let (w, x) = (w.parameter().named("w"), Tensor::ones([600]));
        let program = Program::trace([("x", &x)], |a| Ok(vec![&a[0] * &w])).unwrap();
        let model = crate::export(&program).unwrap();
        let dir = std::env::temp_dir().join(format!("chainrule-onnx-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("large.onnx");
        model.write_up_to(&path, 100).unwrap();
        let data = fs::read(dir.join("large.onnx.data")).unwrap();
        let want: Vec<u8> = w.to_vec::<f32>().iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(data, want);
        let read = ModelProto::decode(&*fs::read(&path).unwrap()).unwrap();
        let tensors = read.graph.unwrap().initializer;
        let tensor = tensors.iter().find(|t| t.name.as_deref() == Some("w")).unwrap();
        assert!(tensor.raw_data.is_none() && tensor.data_location == Some(1));
        let of = |key: &str| {
            let entry = tensor.external_data.iter().find(|e| e.key.as_deref() == Some(key));
            entry.unwrap().value.clone().unwrap()
        };
        assert_eq!((of("location"), of("offset")), ("large.onnx.data".into(), "0".into()));
        assert_eq!(of("length"), "2400");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
        fs::remove_dir_all(&dir).unwrap();
    }
}
