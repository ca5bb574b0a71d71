//! Files of weights.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use chainrule_core::dtype::DType;
use chainrule_core::error::{Error, Result};
use chainrule_core::shape::MAX_RANK;
use chainrule_core::tensor::Tensor;
use chainrule_nn::nn::StateDict;

use crate::place::{self, Data, Form, Place};
use crate::source::{Outcome, Source};
use crate::tree::Tree;
use crate::{gguf, npy, safe, torch};

/// Supported formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// safetensors, in one file.
    Safetensors,
    /// safetensors in several files with an index, `model.safetensors.index.json`.
    Shards,
    /// PyTorch's zip, since its version 1.6.
    Torch,
    /// PyTorch's old format, without a zip.
    TorchLegacy,
    /// One NumPy array.
    Npy,
    /// NumPy arrays in a zip.
    Npz,
    /// GGUF, whose quantised elements are read as f32.
    Gguf,
}

impl Format {
    /// The name as printed.
    pub fn name(self) -> &'static str {
        match self {
            Format::Safetensors => "safetensors",
            Format::Shards => "safetensors in shards",
            Format::Torch => "PyTorch",
            Format::TorchLegacy => "PyTorch before 1.6",
            Format::Npy => "npy",
            Format::Npz => "npz",
            Format::Gguf => "GGUF",
        }
    }
}

/// A tensor in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightEntry {
    pub(crate) name: String,
    dtype: DType,
    shape: Vec<usize>,
    stored: &'static str,
    pub(crate) place: Place,
}

impl WeightEntry {
    pub(crate) fn new(name: String, dtype: DType, shape: Vec<usize>, place: Place) -> WeightEntry {
        WeightEntry { name, dtype, shape, stored: dtype.name(), place }
    }

    pub(crate) fn stored_as(self, stored: &'static str) -> WeightEntry {
        WeightEntry { stored, ..self }
    }

    /// The name; in a `.pt` file the path to the tensor, joined by dots.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dtype after loading.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dtype in the file, such as `q4_k` for quantised blocks.
    pub fn stored(&self) -> &'static str {
        self.stored
    }

    /// The sizes of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Size of the tensor in memory.
    pub fn bytes(&self) -> u64 {
        place::numel(&self.shape).unwrap_or(0).saturating_mul(self.dtype.size() as u64)
    }

    /// Size in the file, over its whole range; uncompressed, for a deflated entry.
    pub fn bytes_in_file(&self) -> u64 {
        place::span(&self.shape, self.dtype, &self.place.form).unwrap_or(0)
    }
}

/// Output of the readers of all formats.
#[derive(Default)]
pub struct Read {
    pub entries: Vec<WeightEntry>,
    pub metadata: BTreeMap<String, String>,
    names: HashSet<String>,
}

impl Read {
    pub fn add(&mut self, entry: WeightEntry) -> Outcome<()> {
        let name = &entry.name;
        if entry.shape.len() > MAX_RANK {
            let rank = entry.shape.len();
            return Err(format!("`{name}` has {rank} axes, and a tensor at most {MAX_RANK}"));
        }
        place::span(&entry.shape, entry.dtype, &entry.place.form)
            .map_err(|e| format!("`{name}`: {e}"))?;
        if !self.names.insert(name.clone()) {
            return Err(format!("it has two tensors of the name `{name}`"));
        }
        self.entries.push(entry);
        Ok(())
    }
}

/// Weights in one or several files, open for reading.
pub struct Weights {
    path: PathBuf,
    format: Format,
    read: Read,
    tree: Option<Tree>,
    files: Vec<Source>,
}

impl Weights {
    /// Reads the index of a file, whose format is detected from its first bytes: names, dtypes,
    /// shapes and metadata. A file `....index.json` opens the shards beside it.
    ///
    /// Errors name the file and the fault: it is truncated, claims more than it has, needs code to
    /// be run, or has another format.
    pub fn open(path: impl AsRef<Path>) -> Result<Weights> {
        Weights::open_by(path.as_ref(), Source::open)
    }

    /// As [`Weights::open`], but tensors with the layout of memory are mapped instead of read.
    /// Pages are loaded on first use, and shared between processes. A write to such a tensor copies
    /// it and never changes the file.
    ///
    /// The file must not change while such a tensor lives: if another program changes it, the
    /// elements may change too, and if it is truncated, the system ends the process at the next use
    /// of a missing page. Replacing the file, as [`save`] does, is safe.
    ///
    /// [`save`]: chainrule_nn::io::save
    pub fn open_mapped(path: impl AsRef<Path>) -> Result<Weights> {
        Weights::open_by(path.as_ref(), Source::open_mapped)
    }

    fn open_by(path: &Path, open: fn(&Path) -> Outcome<Source>) -> Result<Weights> {
        let read = || Weights::of(open(path)?, path, open);
        read().map_err(|why| Error::File { path: path.to_owned(), why: one_line(&why) })
    }

    /// As [`Weights::open`], from the bytes of a file.
    pub fn parse(bytes: Vec<u8>) -> Result<Weights> {
        Weights::of(Source::bytes(bytes), Path::new(""), Source::open)
            .map_err(|why| Error::argument("weights", one_line(&why)))
    }

    fn of(source: Source, path: &Path, open: fn(&Path) -> Outcome<Source>) -> Outcome<Weights> {
        let format = detect(&source, path)?;
        let mut read = Read::default();
        let (mut tree, mut shards) = (None, None);
        match format {
            Format::Safetensors => safe::read(&source, 0, &mut read)?,
            Format::Shards => shards = Some(safe::read_shards(&source, path, open, &mut read)?),
            Format::Torch => tree = Some(torch::read(&source, &mut read)?),
            Format::TorchLegacy => tree = Some(torch::read_legacy(&source, &mut read)?),
            Format::Npy => npy::read(&source, &mut read)?,
            Format::Npz => npy::read_zip(&source, &mut read)?,
            Format::Gguf => gguf::read(&source, &mut read)?,
        }
        let files = shards.unwrap_or_else(|| vec![source]);
        check_places(&read.entries, &files)?;
        Ok(Weights { path: path.to_owned(), format, read, tree, files })
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// All tensors, in file order.
    pub fn entries(&self) -> &[WeightEntry] {
        &self.read.entries
    }

    /// Metadata by name; values of GGUF as JSON.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.read.metadata
    }

    /// The nest of a `.pt` file.
    pub fn tree(&self) -> Option<&Tree> {
        self.tree.as_ref()
    }

    /// Reads one tensor.
    pub fn tensor(&self, entry: &WeightEntry) -> Result<Tensor> {
        self.tensor_as(entry, entry.dtype)
    }

    /// Reads a tensor and converts its dtype. From f16, bf16 and f64 to f32 each element is
    /// converted during reading, without a copy of all in the dtype of the file.
    pub fn tensor_as(&self, entry: &WeightEntry, dtype: DType) -> Result<Tensor> {
        if !place::converts(entry.dtype, dtype) {
            return self.tensor(entry)?.try_to_dtype(dtype);
        }
        let source = &self.files[entry.place.file];
        let tensor = place::read(source, &entry.place, &entry.shape, [entry.dtype, dtype]);
        tensor.map_err(|why| self.error(entry, &why))
    }

    /// Reads a matrix transposed, without a second copy if its rows are contiguous in the file.
    pub(crate) fn tensor_transposed(&self, entry: &WeightEntry, dtype: DType) -> Result<Tensor> {
        let &[rows, cols] = entry.shape.as_slice() else {
            return Err(self.error(entry, "it is no matrix"));
        };
        match &entry.place {
            Place { file, data: Data::Plain { at }, form: Form::Rows }
                if rows > 0 && cols > 0 && place::converts(entry.dtype, dtype) =>
            {
                let (source, dtypes) = (&self.files[*file], [entry.dtype, dtype]);
                let tensor = place::read_transposed(source, *at, [rows, cols], dtypes);
                tensor.map_err(|why| self.error(entry, &why))
            }
            _ => self.tensor_as(entry, dtype)?.try_t()?.try_copied(),
        }
    }

    /// Writes the elements of a tensor, transposed on request. Unchanged bytes are copied from the
    /// file to `out` in chunks.
    pub(crate) fn write(
        &self,
        entry: &WeightEntry,
        transposed: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let wrong = |why: String| io::Error::other(self.error(entry, &why));
        // A bool may be any byte in the file, and is 0 or 1 in a tensor.
        if !transposed && entry.place.form == Form::Rows && entry.dtype != DType::Bool {
            let source = &self.files[entry.place.file];
            let bytes = place::stream(source, &entry.place.data).map_err(wrong)?;
            return io::copy(&mut bytes.take(entry.bytes()), out).map(drop);
        }
        let tensor = match transposed {
            true => self.tensor_transposed(entry, entry.dtype),
            false => self.tensor(entry),
        };
        let tensor = tensor.map_err(io::Error::other)?;
        tensor.try_with_bytes(|bytes| out.write_all(bytes)).map_err(io::Error::other)?
    }

    fn error(&self, entry: &WeightEntry, why: &str) -> Error {
        let why = one_line(&format!("`{}`: {why}", entry.name));
        match self.path.as_os_str().is_empty() {
            true => Error::argument("weights", why),
            false => Error::File { path: self.path.clone(), why },
        }
    }

    /// Reads all tensors in the order of [`Weights::entries`]. Aliases of the same elements, such
    /// as tied weights, give one tensor.
    pub fn tensors(&self) -> Result<Vec<Tensor>> {
        let mut done: BTreeMap<String, Tensor> = BTreeMap::new();
        let read = |entry: &WeightEntry| {
            let key = format!("{:?} {:?} {:?}", entry.place, entry.shape, entry.dtype);
            if let Some(tensor) = done.get(&key) {
                return Ok(tensor.clone());
            }
            let tensor = self.tensor(entry)?;
            done.insert(key, tensor.clone());
            Ok(tensor)
        };
        self.entries().iter().map(read).collect()
    }

    /// Reads all tensors by name.
    pub fn load(&self) -> Result<StateDict> {
        let names = self.entries().iter().map(|entry| entry.name.clone());
        Ok(names.zip(self.tensors()?).collect())
    }
}

/// A message without control characters from a damaged file's names, and of readable length.
fn one_line(text: &str) -> String {
    const MOST: usize = 600;
    let escaped = text.chars().map(|c| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    });
    let short: String = escaped.take(MOST).collect();
    if text.chars().count() > MOST { short + "..." } else { short }
}

/// An error unless all ranges are in their files, and their size in memory is in proportion to
/// these.
fn check_places(entries: &[WeightEntry], files: &[Source]) -> Outcome<()> {
    let len: u64 = files.iter().map(Source::len).sum();
    // Views of one storage may overlap and blocks of 4 bits grow eightfold; a small file that
    // claims gigabytes holds no weights. Deflated zeros shrink a thousandfold.
    let most = len.saturating_mul(16).saturating_add(256 << 20);
    let mut seen = HashSet::new();
    let mut sum = 0u64;
    for entry in entries {
        let named = |why: String| format!("`{}`: {why}", entry.name);
        let span = place::span(&entry.shape, entry.dtype, &entry.place.form).map_err(named)?;
        match entry.place.data {
            Data::Plain { at } => files[entry.place.file].check(at, span),
            Data::Deflated { at, packed, .. } => files[entry.place.file].check(at, packed),
        }
        .map_err(named)?;
        if seen.insert(format!("{:?} {:?}", entry.place, entry.shape)) {
            sum = sum.saturating_add(entry.bytes());
            if matches!(entry.place.form, Form::Strided { .. }) {
                sum = sum.saturating_add(span);
            }
        }
        if sum > most {
            return Err(named(format!(
                "the tensors up to here would take {sum} bytes, of a file of {len}; it is damaged \
                 or hostile"
            )));
        }
    }
    Ok(())
}

fn detect(source: &Source, path: &Path) -> Outcome<Format> {
    let head = source.read(0, source.len().min(16))?;
    let is_index = path.extension().is_some_and(|e| e == "json");
    Ok(match head.as_slice() {
        [] => return Err("the file is empty".into()),
        [b'P', b'K', ..] if torch::is_torch(source)? => Format::Torch,
        [b'P', b'K', ..] => Format::Npz,
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Format::Npy,
        [b'G', b'G', b'U', b'F', ..] => Format::Gguf,
        head if torch::is_legacy(head) => Format::TorchLegacy,
        [b'{', ..] if is_index => Format::Shards,
        [_, _, _, _, _, _, _, _, b'{', ..] => Format::Safetensors,
        _ => {
            return Err("no format that can be read: safetensors, its index of shards (.json), \
                        PyTorch's .pt, .npy, .npz, GGUF"
                .into());
        }
    })
}
