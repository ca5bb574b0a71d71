//! The safetensors format: a JSON header with names, dtypes, shapes and offsets, then the bytes.
//!
//! The crate `safetensors` checks the header (its length, overlaps, offsets against shapes); sizes
//! and dtypes are checked here. Writes are atomic, so an interrupted save leaves the old file
//! whole.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo, TensorView};

use super::atomic::{open_regular, reason, too_long, write_atomic};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::nn::StateDict;
use crate::tensor::Tensor;

/// Largest file that is read, 16 GiB.
const MOST_BYTES: u64 = 16 << 30;

/// Longest header, the limit of other readers of the format.
const MOST_HEADER: u64 = 100_000_000;

/// Bytes per read and update of the checksum, few enough to stay in cache.
const PIECE: usize = 1 << 18;

/// Reads all tensors of a file, each in its dtype and straight into its own memory: the file takes
/// no second copy. The 8-bit floats and complex numbers of the format are an error that names the
/// tensor.
///
/// A checksum in the header, see [`serialize_checked`], must match; a file without one is read too.
pub fn load(path: impl AsRef<Path>) -> Result<StateDict> {
    let path = path.as_ref();
    let read = || {
        let (file, len) = open_regular(path)?;
        match len > MOST_BYTES {
            true => Err(too_long(MOST_BYTES)),
            false => read(&mut &file, len),
        }
    };
    read().map_err(|why| Error::File { path: path.to_owned(), why })
}

/// Parses the bytes of a file, as [`load`] does.
pub fn parse(bytes: &[u8]) -> Result<StateDict> {
    read(&mut &*bytes, bytes.len() as u64).map_err(|why| Error::argument("safetensors", why))
}

fn not_whole(e: &dyn std::fmt::Display) -> String {
    format!("not a whole safetensors file ({e}); copy or save it again")
}

/// Reads the tensors of a file of this length.
pub(super) fn read(file: &mut impl Read, len: u64) -> Result<StateDict, String> {
    let cut = |e: io::Error| match e.kind() {
        io::ErrorKind::UnexpectedEof => not_whole(&"it ends too early"),
        _ => reason(&e),
    };
    let mut head = vec![0; 8];
    file.read_exact(&mut head).map_err(cut)?;
    let header = head.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
    if header > MOST_HEADER || header > len - 8 {
        return Err(not_whole(&format!("its header claims {header} bytes")));
    }
    head.resize(8 + header as usize, 0);
    file.read_exact(&mut head[8..]).map_err(cut)?;
    // Deserialisation checks names, shapes and offsets against each other.
    let about: Metadata = serde_json::from_slice(&head[8..]).map_err(|e| not_whole(&e))?;
    let data = len - 8 - header;
    if about.data_len() as u64 != data {
        let why = format!("{data} bytes of data instead of {}", about.data_len());
        return Err(not_whole(&why));
    }
    let mut checksum = Checksum::of(&head, &about)?;
    let mut tensors = StateDict::new();
    // In the order of the data, which have no gaps.
    for name in about.offset_keys() {
        let Some(info) = about.info(&name) else { continue };
        let dtype = dtype_of(&name, info.dtype)?;
        let fill = |out: &mut [u8]| {
            for piece in out.chunks_mut(PIECE) {
                file.read_exact(piece).map_err(|e| Error::argument("safetensors", cut(e)))?;
                checksum.add(piece);
            }
            Ok(())
        };
        let tensor = Tensor::try_filled(info.shape.as_slice(), dtype, fill);
        let tensor = tensor.map_err(|e| match e {
            Error::Argument { why, .. } => why,
            other => format!("`{name}`: {other}"),
        })?;
        tensors.insert(name, tensor);
    }
    checksum.check()?;
    Ok(tensors)
}

/// Key of the checksum in the header's metadata, and the prefix of its eight digits.
const CHECKSUM: &str = "chainrule.checksum";
const CRC_32: &str = "chainrule crc32 ";

/// Checksum of a file during reading, in which its own digits count as zeros.
struct Checksum {
    hasher: crc32fast::Hasher,
    /// The digits in the header; none in a file of another program.
    wanted: Option<String>,
}

impl Checksum {
    /// The prefix under another key, or the key with another value, is a damaged entry: so no
    /// single byte can change unnoticed, not even one of the entry itself.
    fn of(head: &[u8], about: &Metadata) -> Result<Checksum, String> {
        let entries = about.metadata().iter().flatten();
        let mut ours = entries.filter(|(key, value)| *key == CHECKSUM || value.starts_with(CRC_32));
        let mut hasher = crc32fast::Hasher::new();
        let Some((key, value)) = ours.next() else {
            return Ok(Checksum { hasher, wanted: None });
        };
        let digits = value.strip_prefix(CRC_32).filter(|d| key == CHECKSUM && d.len() == 8);
        let digits = digits.filter(|_| ours.next().is_none()).ok_or_else(damaged)?;
        let at = position(head, value.as_bytes()).ok_or_else(damaged)? + CRC_32.len();
        hasher.update(&head[..at]);
        hasher.update(ZEROS);
        hasher.update(&head[at + ZEROS.len()..]);
        Ok(Checksum { hasher, wanted: Some(digits.to_owned()) })
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.wanted.is_some() {
            self.hasher.update(bytes);
        }
    }

    fn check(self) -> Result<(), String> {
        // Compared as text: digits in another case are a damaged byte, too.
        match self.wanted {
            Some(wanted) if format!("{:08x}", self.hasher.finalize()) != wanted => Err(damaged()),
            _ => Ok(()),
        }
    }
}

/// Placeholder of the checksum's digits.
const ZEROS: &[u8] = b"00000000";

fn damaged() -> String {
    "damaged: the checksum does not fit the content; restore the file or save it again".to_owned()
}

fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// As [`serialize`], with a checksum of the whole file in its header, which [`load`] and [`parse`]
/// verify and other programs ignore.
///
/// ```
/// use std::collections::BTreeMap;
/// use chainrule::{Tensor, io, nn::StateDict};
/// let state = StateDict::from([("w".to_string(), Tensor::from([1.5f32, -2.0]))]);
/// let mut bytes = io::serialize_checked(&state, &BTreeMap::new())?;
/// assert_eq!(io::parse(&bytes)?["w"].to_vec::<f32>(), [1.5, -2.0]);
/// *bytes.last_mut().unwrap() ^= 1;
/// assert!(io::parse(&bytes).unwrap_err().to_string().contains("damaged"));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn serialize_checked(
    tensors: &StateDict,
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let each =
        |entry: &CheckpointEntry, out: &mut dyn Write| write_elements(&tensors[&entry.name], out);
    let (at, sum) = write_checked(&in_order(entries(tensors)), metadata, &mut bytes, each)
        .map_err(|e| own(e).unwrap_or_else(|e| Error::argument("safetensors", reason(&e))))?;
    bytes[at..at + sum.len()].copy_from_slice(sum.as_bytes());
    Ok(bytes)
}

fn entries(tensors: &StateDict) -> Vec<CheckpointEntry> {
    tensors.iter().map(|(name, t)| CheckpointEntry::of(name, t)).collect()
}

/// Entries in the order of the format: the widest elements first, each aligned to its size, then by
/// name.
fn in_order(mut entries: Vec<CheckpointEntry>) -> Vec<CheckpointEntry> {
    let key = |entry: &CheckpointEntry| std::cmp::Reverse(in_file(entry.dtype));
    entries.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name)));
    entries
}

/// Writes the elements of a tensor from its storage.
fn write_elements(t: &Tensor, out: &mut dyn Write) -> io::Result<()> {
    t.try_with_bytes(|bytes| out.write_all(bytes)).map_err(io::Error::other)?
}

/// A writer that counts bytes and updates the checksum.
struct Summed<'a, W> {
    out: &'a mut W,
    hasher: crc32fast::Hasher,
    len: usize,
}

impl<W: Write> Write for Summed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Short enough to be in cache for the checksum.
        let n = self.out.write(&bytes[..bytes.len().min(PIECE)])?;
        self.hasher.update(&bytes[..n]);
        self.len += n;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes a file of these entries, whose elements `each` writes. The checksum is known only at the
/// end: returns its digits and their offset, where zeros stand.
fn write_checked(
    entries: &[CheckpointEntry],
    metadata: &BTreeMap<String, String>,
    out: &mut impl Write,
    mut each: impl FnMut(&CheckpointEntry, &mut dyn Write) -> io::Result<()>,
) -> io::Result<(usize, String)> {
    let wrong = |why: &str| io::Error::other(Error::argument("safetensors", why));
    let mut metadata = metadata.clone();
    let value = format!("{CRC_32}00000000");
    if metadata.values().any(|text| text.contains(CRC_32)) {
        return Err(wrong("the metadata holds a checksum already"));
    }
    metadata.insert(CHECKSUM.to_owned(), value.clone());
    let head = header(entries, metadata).map_err(io::Error::other)?;
    // A tensor's name may contain the text too: the metadata are the first entry of the header.
    let at = position(&head, value.as_bytes()).map(|at| at + CRC_32.len());
    let at = at.ok_or_else(|| wrong("the header lacks its checksum"))?;
    let mut out = Summed { out, hasher: crc32fast::Hasher::new(), len: 0 };
    out.write_all(&head)?;
    for entry in entries {
        let from = out.len;
        each(entry, &mut out)?;
        let (len, wanted) = (out.len - from, entry.bytes());
        if len != wanted {
            let name = &entry.name;
            return Err(wrong(&format!("`{name}` has {len} bytes instead of {wanted}")));
        }
    }
    Ok((at, format!("{:08x}", out.hasher.finalize())))
}

/// As [`save`], with the elements written by `each`, tensor by tensor, so that they need not all be
/// in memory. An [`Error`] within an error of `each` is returned as it is.
#[doc(hidden)]
pub fn save_pieces(
    path: &Path,
    entries: Vec<CheckpointEntry>,
    metadata: &BTreeMap<String, String>,
    each: impl FnMut(&CheckpointEntry, &mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let entries = in_order(entries);
    let fill = |out: &mut BufWriter<&File>| {
        let (at, sum) = write_checked(&entries, metadata, out, each)?;
        out.seek(SeekFrom::Start(at as u64))?;
        out.write_all(sum.as_bytes())
    };
    write_atomic(path, fill).map_err(|e| {
        own(e).unwrap_or_else(|e| {
            let kept = if path.is_file() { " (the earlier file is unchanged)" } else { "" };
            Error::File { path: path.to_owned(), why: format!("{}{kept}", reason(&e)) }
        })
    })
}

/// The library's error that came through a writer, or the system's.
fn own(e: io::Error) -> Result<Error, io::Error> {
    e.downcast()
}

/// The dtypes, and their names in a file.
const DTYPES: [(DType, Dtype); DType::ALL.len()] = [
    (DType::Bool, Dtype::BOOL),
    (DType::U8, Dtype::U8),
    (DType::I8, Dtype::I8),
    (DType::U16, Dtype::U16),
    (DType::I16, Dtype::I16),
    (DType::U32, Dtype::U32),
    (DType::I32, Dtype::I32),
    (DType::U64, Dtype::U64),
    (DType::I64, Dtype::I64),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
];

fn dtype_of(name: &str, in_file: Dtype) -> Result<DType, String> {
    let found = DTYPES.into_iter().find(|(_, known)| *known == in_file);
    found.map(|(dtype, _)| dtype).ok_or_else(|| {
        let known = DType::ALL.map(DType::name).join(", ");
        format!("`{name}` has dtype {in_file:?}; {known} can be read")
    })
}

/// The bytes of a file with these tensors and, in its header, this metadata.
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
    Ok((in_file(t.dtype()), t.try_to_bytes()?))
}

fn in_file(dtype: DType) -> Dtype {
    let at = DTYPES.iter().position(|(known, _)| *known == dtype);
    DTYPES[at.expect("the table has every dtype")].1
}

/// A tensor of a checkpoint that is written in pieces.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointEntry {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<usize>,
}

impl CheckpointEntry {
    /// The entry of a tensor.
    pub fn of(name: &str, t: &Tensor) -> CheckpointEntry {
        CheckpointEntry { name: name.to_owned(), dtype: t.dtype(), shape: t.shape().to_vec() }
    }

    /// Size of the tensor in bytes.
    pub fn bytes(&self) -> usize {
        let size = self.dtype.size();
        self.shape.iter().fold(size, |bytes, &n| bytes.saturating_mul(n))
    }
}

/// Header of a file of these tensors, whose bytes follow in the same order.
pub(super) fn header(
    entries: &[CheckpointEntry],
    metadata: BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let fail = |e: &dyn std::fmt::Display| Error::argument("safetensors", e.to_string());
    let mut at = 0usize;
    let infos = entries.iter().map(|entry| {
        let from = at;
        at = at.saturating_add(entry.bytes());
        let (dtype, shape) = (in_file(entry.dtype), entry.shape.clone());
        (entry.name.clone(), TensorInfo { dtype, shape, data_offsets: (from, at) })
    });
    let metadata = (!metadata.is_empty()).then(|| metadata.into_iter().collect());
    let about = Metadata::new(metadata, infos.collect()).map_err(|e| fail(&e))?;
    let mut text = serde_json::to_vec(&about).map_err(|e| fail(&e))?;
    // Pads the header, so that the data begin at a multiple of eight.
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text);
    Ok(bytes)
}

/// Writes the tensors to a file with a checksum ([`serialize_checked`]), atomically: a full disk
/// leaves the old file as it was.
pub fn save(
    path: impl AsRef<Path>,
    tensors: &StateDict,
    metadata: &BTreeMap<String, String>,
) -> Result<()> {
    save_pieces(path.as_ref(), entries(tensors), metadata, |entry, out| {
        write_elements(&tensors[&entry.name], out)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn state() -> StateDict {
        StateDict::from([
            ("w".to_string(), Tensor::from([[1.5f32, -0.0], [f32::INFINITY, 1e-45]])),
            ("steps".to_string(), Tensor::from([i64::MIN, 7])),
            ("mask".to_string(), Tensor::from([true, false])),
            ("scalar".to_string(), Tensor::scalar(std::f64::consts::PI)),
            ("view".to_string(), Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]).t()),
            ("pixels".to_string(), Tensor::from([[0u8, 128], [255, 7]]).t()),
            ("i32".to_string(), Tensor::from([-1i64, 1 << 30]).to_dtype(DType::I32)),
            ("half".to_string(), Tensor::from([0.1f32, -65504.0]).to_dtype(DType::F16)),
            ("bf16".to_string(), Tensor::from([1e-30f32, 3e38]).to_dtype(DType::BF16)),
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

    /// Any byte of a file that changes is noticed.
    #[test]
    fn no_damaged_byte_goes_unnoticed() {
        let good = serialize_checked(&state(), &BTreeMap::new()).unwrap();
        assert_eq!(parse(&good).unwrap().len(), state().len());
        for at in 0..good.len() {
            for change in [1, 4, 0x20, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= change;
                assert!(parse(&bytes).is_err(), "byte {at} changed by {change:#x}");
            }
        }
        // With metadata of the caller, and from another program.
        let by = BTreeMap::from([("by".to_owned(), "a test".to_owned())]);
        let more = serialize_checked(&state(), &by).unwrap();
        assert_eq!(parse(&more).unwrap().len(), state().len());
        assert_eq!(parse(&serialize(&state(), &by).unwrap()).unwrap().len(), state().len());
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
        let quarter = r#"{"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}}"#;
        let rank = r#"{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}"#;
        let gap = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
        assert!(parse(&header(gap, 8)).is_err());
        for (json, data) in [(overlap, 12), (lies, 8), (quarter, 4), (rank, 4), ("{", 0), ("[]", 0)]
        {
            assert!(parse(&header(json, data)).is_err(), "{json}");
        }
        assert!(load("/nowhere/at/all").unwrap_err().to_string().contains("no such file"));
    }
}
