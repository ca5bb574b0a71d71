//! Reading a whole file, gzipped or not, up to a sensible size.

use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};
use crate::io::read_bounded;

/// Largest content that is read, 4 GiB.
const MOST_BYTES: u64 = 4 << 30;

/// An error about a file.
pub(super) fn wrong(path: &Path, why: impl Into<String>) -> Error {
    Error::File { path: path.to_owned(), why: why.into() }
}

/// The bytes of a file.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>> {
    read_bounded(path, MOST_BYTES).map_err(|why| wrong(path, why))
}

/// The text of a file in UTF-8, without a byte-order mark.
pub(super) fn text(path: &Path) -> Result<String> {
    let bytes = bytes(path)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(e) => {
            let why =
                format!("not UTF-8 text (at byte {}); save the file as UTF-8", e.valid_up_to());
            Err(wrong(path, why))
        }
    }
}

/// Contents of gzipped bytes, or the bytes themselves if they are not gzipped; at most `most` bytes
/// are unpacked.
pub(super) fn unpacked(bytes: Vec<u8>, most: u64) -> Result<Vec<u8>, String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut out = Vec::new();
    let mut decoder = flate2::read::MultiGzDecoder::new(&bytes[..]).take(most + 1);
    match decoder.read_to_end(&mut out) {
        Ok(n) if n as u64 > most => Err("unpacks to more than its header says".to_string()),
        Ok(_) => Ok(out),
        Err(e) => Err(format!("gzipped, but damaged or cut short ({e}); fetch it again")),
    }
}
