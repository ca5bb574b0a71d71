//! Checkpoints of a training run, with a checksum.
//!
//! Layout: the line `chainrule checkpoint 1`; the lengths of text and state as u64; the CRC-32 of
//! the lengths and of all that follows; the text; the state as safetensors. Integers are
//! little-endian.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

mod pieces;

use super::atomic::{reason, sync_folder_of, temporary_name, write_atomic};
use super::safetensors::{CheckpointEntry, parse, serialize};
use crate::error::{Error, Result};
use crate::nn::StateDict;

const MAGIC: &[u8] = b"chainrule checkpoint 1\n";
/// Magic, two lengths and the checksum.
const HEAD: usize = MAGIC.len() + 8 + 8 + 4;
/// Largest file that is read, 16 GiB.
const MOST_BYTES: u64 = 16 << 30;

/// A state with a text that describes it.
///
/// ```
/// use chainrule::io::Checkpoint;
/// use chainrule::{Tensor, nn::StateDict};
/// let state = StateDict::from([("step".to_string(), Tensor::scalar(7i64))]);
/// let mut bytes = Checkpoint { about: "a test".into(), state }.to_bytes()?;
/// assert_eq!(Checkpoint::from_bytes(&bytes)?.about, "a test");
/// bytes[60] ^= 1;
/// assert!(Checkpoint::from_bytes(&bytes).unwrap_err().to_string().contains("damaged"));
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Metadata of the writer: settings, a version.
    pub about: String,
    /// Tensors by name.
    pub state: StateDict,
}

impl Checkpoint {
    /// The bytes of a file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let state = serialize(&self.state, &Default::default())?;
        let mut bytes = Vec::with_capacity(HEAD + self.about.len() + state.len());
        bytes.extend(MAGIC);
        bytes.extend((self.about.len() as u64).to_le_bytes());
        bytes.extend((state.len() as u64).to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.about.as_bytes());
        bytes.extend(state);
        let sum = checksum(&bytes);
        bytes[HEAD - 4..HEAD].copy_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// Parses the bytes of a file. An error for any damage, down to a single bit.
    pub fn from_bytes(bytes: &[u8]) -> Result<Checkpoint> {
        let wrong = |why: &str| Error::argument("checkpoint", why);
        let (text, state) = payload(bytes).map_err(wrong)?;
        let about = std::str::from_utf8(text).map_err(|_| wrong("its text is not UTF-8"))?;
        Ok(Checkpoint { about: about.to_string(), state: parse(state)? })
    }

    /// Reads a file, each tensor straight into its own memory.
    pub fn read(path: impl AsRef<Path>) -> Result<Checkpoint> {
        let path = path.as_ref();
        pieces::load(path).map_err(|why| Error::File { path: path.to_owned(), why })
    }

    /// Writes a file atomically; see [`write_atomic`].
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        write(path.as_ref(), &self.to_bytes()?)
    }
}

/// The error for a file whose checksum does not match.
const DAMAGED: &str = "damaged: the checksum does not fit the content";

/// The text and the state in the bytes of a file, or what is wrong with it.
fn payload(bytes: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let (text, _, sum) = lengths(bytes, bytes.len() as u64)?;
    match checksum(bytes) == sum {
        true => Ok(bytes[HEAD..].split_at(text as usize)),
        false => Err(DAMAGED),
    }
}

/// The lengths of text and state and the checksum, from the header of a file of this length.
fn lengths(head: &[u8], len: u64) -> Result<(u64, u64, u32), &'static str> {
    if !head.starts_with(MAGIC) {
        return Err("not a checkpoint of this library, or damaged in its first line");
    }
    let head = head.get(MAGIC.len()..HEAD).ok_or("damaged: the file is cut short")?;
    let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
    let (text, state) = (long(0), long(8));
    if text.checked_add(state) != len.checked_sub(HEAD as u64) {
        return Err("damaged: the file is cut short, or its lengths are wrong");
    }
    Ok((text, state, u32::from_le_bytes(std::array::from_fn(|i| head[16 + i]))))
}

/// Checksum of the lengths and of everything after its own field.
fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[MAGIC.len()..HEAD - 4]);
    hasher.update(&bytes[HEAD..]);
    hasher.finalize()
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomic(path, |out| out.write_all(bytes)).map_err(|e| cannot(path, &e))
}

fn cannot(path: &Path, e: &std::io::Error) -> Error {
    let kept = if path.is_file() { " (the earlier checkpoint is unchanged)" } else { "" };
    Error::File { path: path.to_owned(), why: format!("cannot be written: {}{kept}", reason(e)) }
}

/// A checkpoint that a [`CheckpointFolder`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The latest.
    Last,
    /// The one before the latest, in case that is damaged.
    Earlier,
    /// The one with the best metric.
    Best,
}

impl Kept {
    /// Its name, which is also that of its file without the extension.
    pub fn name(self) -> &'static str {
        match self {
            Kept::Last => "last",
            Kept::Earlier => "earlier",
            Kept::Best => "best",
        }
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The checkpoints of one run in a directory: the last, the one before it, and the best.
///
/// The directory holds a whole checkpoint at all times once it has held one, even if the process is
/// killed during a save.
#[derive(Clone, Debug)]
pub struct CheckpointFolder {
    path: PathBuf,
    /// Path after a move.
    moved: Arc<OnceLock<PathBuf>>,
}

impl CheckpointFolder {
    /// A directory, which must exist by the first save.
    pub fn new(path: impl Into<PathBuf>) -> CheckpointFolder {
        CheckpointFolder { path: path.into(), moved: Arc::default() }
    }

    /// Records for all clones that the directory now has another path. Only the first move counts.
    #[doc(hidden)]
    pub fn moved_to(&self, path: impl Into<PathBuf>) {
        let _ = self.moved.set(path.into());
    }

    fn path(&self) -> &Path {
        self.moved.get().unwrap_or(&self.path)
    }

    /// Path of a checkpoint, whether it exists or not: `last.ckpt`, `earlier.ckpt`, `best.ckpt`.
    pub fn file(&self, which: Kept) -> PathBuf {
        self.path().join(format!("{which}.ckpt"))
    }

    /// Saves a new last checkpoint; the old one becomes the earlier one.
    ///
    /// Errors if a file cannot be written; then there is still a whole one under each name that had
    /// one.
    pub fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        self.save_tensors(checkpoint, false)
    }

    /// As [`CheckpointFolder::save`], and also saves it as the best, in a separate file.
    ///
    /// The best is written first: after an interruption there, the run resumes from the last one
    /// and reaches the same best again.
    pub fn save_best(&self, checkpoint: &Checkpoint) -> Result<()> {
        self.save_tensors(checkpoint, true)
    }

    fn save_tensors(&self, checkpoint: &Checkpoint, is_best: bool) -> Result<()> {
        let entries: Vec<CheckpointEntry> =
            checkpoint.state.iter().map(|(name, t)| CheckpointEntry::of(name, t)).collect();
        let mut tensors = checkpoint.state.values();
        let mut next = || {
            let tensor = tensors.next().ok_or_else(|| io::Error::other("a tensor is missing"))?;
            tensor.try_to_bytes().map_err(io::Error::other)
        };
        self.save_pieces(&checkpoint.about, &entries, is_best, &mut next)
    }

    /// As [`CheckpointFolder::save`] or [`CheckpointFolder::save_best`], with the bytes of the
    /// tensors from `next`, in the order of the entries.
    #[doc(hidden)]
    pub fn save_pieces(
        &self,
        about: &str,
        entries: &[CheckpointEntry],
        is_best: bool,
        next: &mut dyn FnMut() -> io::Result<Vec<u8>>,
    ) -> Result<()> {
        let [best, last] = [Kept::Best, Kept::Last].map(|which| self.file(which));
        if is_best {
            pieces::write(&best, about, entries, next)?;
        }
        // A damaged last one must not replace a whole earlier one.
        if pieces::is_whole(&last) {
            self.keep_last_as_earlier()?;
        }
        match is_best {
            true => pieces::copy(&best, &last),
            false => pieces::write(&last, about, entries, next),
        }
    }

    /// Hard-links the last one under its second name, so that the first never vanishes; the new
    /// last is another file.
    fn keep_last_as_earlier(&self) -> Result<()> {
        let (last, file) = (self.file(Kept::Last), self.file(Kept::Earlier));
        let beside = self.path().join(temporary_name("earlier.ckpt".as_ref()));
        // Copies on a file system without hard links.
        let linked = fs::hard_link(&last, &beside)
            .or_else(|_| fs::copy(&last, &beside).map(drop))
            .and_then(|()| fs::rename(&beside, &file));
        // A rename onto another link to the same file does nothing, and leaves both names.
        let _ = fs::remove_file(&beside);
        linked.map_err(|e| cannot(&file, &e))?;
        sync_folder_of(&file);
        Ok(())
    }

    /// Loads a checkpoint. If the last one is damaged, the error names one that is whole.
    pub fn load(&self, which: Kept) -> Result<Checkpoint> {
        Checkpoint::read(self.file(which)).map_err(|error| {
            let Error::File { path, why } = error else { return error };
            let others = [Kept::Last, Kept::Earlier, Kept::Best].into_iter();
            let whole: Vec<&str> = others
                .filter(|&other| other != which && Checkpoint::read(self.file(other)).is_ok())
                .map(Kept::name)
                .collect();
            let offer = match &whole[..] {
                [] => String::new(),
                whole => format!("; the checkpoint `{}` is whole", whole.join("` and `")),
            };
            Error::File { path, why: format!("{why}{offer}") }
        })
    }
}

#[cfg(test)]
mod tests;
