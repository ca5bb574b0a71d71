//! A finished model.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use chainrule_core::error::{Error, Result};
use prost::Message as _;
use prost::bytes::Bytes;
use prost::encoding::{WireType, encode_key, encode_varint};

use crate::proto::{EntryProto, ModelProto};

/// Size from which on the elements are external: a protobuf message is limited to 2 GB.
const LARGEST: usize = 2_000_000_000;

/// Elements of fewer bytes are always internal.
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

    /// The name of each node: its modules, and its op.
    pub fn nodes(&self) -> Vec<&str> {
        let nodes = self.0.graph.iter().flat_map(|g| &g.node);
        nodes.filter_map(|n| n.name.as_deref()).collect()
    }

    /// The bytes of a file, without external data.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }

    /// Writes the model atomically. The elements of a model of more than 2 GB go into an external
    /// file beside it, of the same name with `.data` appended, where ONNX finds it.
    ///
    /// Errors if a file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write_up_to(path.as_ref(), LARGEST)
    }

    /// As [`Model::write`], with another limit.
    pub(crate) fn write_up_to(&self, path: &Path, largest: usize) -> Result<()> {
        if self.0.encoded_len() <= largest {
            return replace(path, |file| stream(&self.0, file));
        }
        let mut data = path.as_os_str().to_owned();
        data.push(".data");
        let data = Path::new(&data);
        let name = data.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (model, parts) = self.parted(&name);
        replace(data, |file| parts.iter().try_for_each(|p| file.write_all(p)))?;
        replace(path, |file| stream(&model, file))
    }

    /// The model with large elements in an external file of this name, and these elements.
    fn parted(&self, name: &str) -> (ModelProto, Vec<Bytes>) {
        let mut model = self.0.clone();
        let mut parts = Vec::new();
        let mut offset = 0;
        for tensor in model.graph.iter_mut().flat_map(|g| &mut g.initializer) {
            let Some(bytes) = tensor.raw_data.take_if(|b| b.len() >= SMALL) else { continue };
            let entries = [
                ("location", name.to_string()),
                ("offset", offset.to_string()),
                ("length", bytes.len().to_string()),
            ];
            let entry = |(k, v): (&str, String)| EntryProto { key: Some(k.into()), value: Some(v) };
            tensor.external_data = entries.map(entry).to_vec();
            tensor.data_location = Some(1);
            offset += bytes.len();
            parts.push(bytes);
        }
        (model, parts)
    }
}

/// Field numbers that [`stream`] writes by itself: a model's graph, a graph's stored tensors, a
/// tensor's elements.
const GRAPH: u32 = 7;
const INITIALIZER: u32 = 5;
const RAW_DATA: u32 = 9;

/// Streams the message with elements from their storage, to avoid a second copy in memory. The
/// order of fields is free.
fn stream(model: &ModelProto, out: &mut impl Write) -> io::Result<()> {
    let mut around = model.clone();
    let graph = around.graph.take();
    out.write_all(&around.encode_to_vec())?;
    let Some(mut graph) = graph else { return Ok(()) };
    begin(GRAPH, graph.encoded_len(), out)?;
    let stored = std::mem::take(&mut graph.initializer);
    out.write_all(&graph.encode_to_vec())?;
    for mut tensor in stored {
        begin(INITIALIZER, tensor.encoded_len(), out)?;
        let elements = tensor.raw_data.take();
        out.write_all(&tensor.encode_to_vec())?;
        if let Some(elements) = elements {
            begin(RAW_DATA, elements.len(), out)?;
            out.write_all(&elements)?;
        }
    }
    Ok(())
}

/// Number and length of a length-delimited field.
fn begin(field: u32, len: usize, out: &mut impl Write) -> io::Result<()> {
    let mut head = Vec::new();
    encode_key(field, WireType::LengthDelimited, &mut head);
    encode_varint(len as u64, &mut head);
    out.write_all(&head)
}

/// Writes a temporary file beside the path and renames it.
fn replace(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let written = File::create(&beside).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.into_inner()?.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&beside, path));
    moved.map_err(|e| {
        let _ = fs::remove_file(&beside);
        Error::File { path: path.to_owned(), why: format!("cannot write it: {e}") }
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
