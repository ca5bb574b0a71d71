//! Streaming of checkpoints, tensor by tensor, so that the whole never is in memory.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::super::atomic::{open_regular, reason, too_long, write_atomic};
use super::super::safetensors::{CheckpointEntry, header, read};
use super::{Checkpoint, HEAD, MAGIC, MOST_BYTES, cannot};
use crate::error::Result;

/// Bytes per read and update of the checksum.
const PIECE: usize = 1 << 16;

/// Writes a checkpoint of these tensors, with their bytes from `next`, in order.
pub(super) fn write(
    path: &Path,
    about: &str,
    entries: &[CheckpointEntry],
    next: &mut dyn FnMut() -> io::Result<Vec<u8>>,
) -> Result<()> {
    let header = header(entries, Default::default())?;
    let data: usize = entries.iter().map(CheckpointEntry::bytes).sum();
    let fill = |out: &mut BufWriter<&File>| {
        let mut lengths = (about.len() as u64).to_le_bytes().to_vec();
        lengths.extend(((header.len() + data) as u64).to_le_bytes());
        out.write_all(MAGIC)?;
        out.write_all(&lengths)?;
        out.write_all(&[0; 4])?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(&lengths);
        let mut add = |bytes: &[u8]| {
            sum.update(bytes);
            out.write_all(bytes)
        };
        add(about.as_bytes())?;
        add(&header)?;
        for entry in entries {
            let bytes = next()?;
            if bytes.len() != entry.bytes() {
                let why = format!("`{}` has {} bytes", entry.name, bytes.len());
                return Err(io::Error::other(why));
            }
            add(&bytes)?;
        }
        out.seek(SeekFrom::Start((HEAD - 4) as u64))?;
        out.write_all(&sum.finalize().to_le_bytes())
    };
    write_atomic(path, fill).map_err(|e| cannot(path, &e))
}

/// Copies a file.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let fill = |out: &mut BufWriter<&File>| io::copy(&mut File::open(from)?, out).map(drop);
    write_atomic(to, fill).map_err(|e| cannot(to, &e))
}

/// Reads a file, each tensor straight into its own memory, or returns the fault.
pub(super) fn load(path: &Path) -> Result<Checkpoint, String> {
    let (mut file, text, state) = whole(path)?;
    let mut about = vec![0; text as usize];
    file.read_exact(&mut about).map_err(|e| reason(&e))?;
    let about = String::from_utf8(about).map_err(|_| "its text is not UTF-8")?;
    Ok(Checkpoint { about, state: read(&mut file, state)? })
}

/// Whether the file is an undamaged checkpoint.
pub(super) fn is_whole(path: &Path) -> bool {
    whole(path).is_ok()
}

/// A file with a matching checksum, positioned at its text, and the lengths of text and state.
fn whole(path: &Path) -> Result<(BufReader<File>, u64, u64), String> {
    let (file, len) = open_regular(path)?;
    if len > MOST_BYTES {
        return Err(too_long(MOST_BYTES));
    }
    let mut file = BufReader::with_capacity(PIECE, file);
    let mut head = Vec::with_capacity(HEAD);
    file.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(|e| reason(&e))?;
    let (text, state, wanted) = super::lengths(&head, len)?;
    let mut sum = crc32fast::Hasher::new();
    sum.update(&head[MAGIC.len()..HEAD - 4]);
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).map_err(|e| reason(&e))? {
            0 => break,
            n => sum.update(&piece[..n]),
        }
    }
    if sum.finalize() != wanted {
        return Err(super::DAMAGED.into());
    }
    file.seek(SeekFrom::Start(HEAD as u64)).map_err(|e| reason(&e))?;
    Ok((file, text, state))
}
