//! Errors of data files.

use std::io;

use thiserror::Error;

use super::text::{MAX_FILE_BYTES, MAX_NAME_BYTES};

/// An error of a file of names. Each message is one line: the fault and its remedy.
#[derive(Debug, Error)]
pub enum DataError {
    /// There is no such file.
    #[error("{path}: no such file; check the path of the list of names")]
    NotFound {
        /// The file as the user named it.
        path: String,
    },
    /// The path is a directory.
    #[error("{path}: this is a folder; give the path of a text file with one name a line")]
    IsFolder {
        /// The folder as the user named it.
        path: String,
    },
    /// The path is a pipe or a device.
    #[error("{path}: this is a pipe or a device, not a file; save its content in a file")]
    NoFile {
        /// The path as the user named it.
        path: String,
    },
    /// The system denies access to the file.
    #[error("{path}: cannot be read ({source}); check that the file may be read")]
    Unreadable {
        /// The file as the user named it.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file is larger than [`MAX_FILE_BYTES`].
    #[error("{path}: larger than {} MiB; give a shorter list", MAX_FILE_BYTES >> 20)]
    TooBig {
        /// The file as the user named it.
        path: String,
    },
    /// The file is empty, or has only blank lines.
    #[error("{path}: holds no names; give a text file with one name a line")]
    Empty {
        /// The file as the user named it.
        path: String,
    },
    /// The file holds a NUL byte, which no text does.
    #[error("{path}: looks like a binary file (NUL at byte {byte}); give a UTF-8 text file")]
    Binary {
        /// The file as the user named it.
        path: String,
        /// Offset of the first NUL, from 0.
        byte: usize,
    },
    /// The file is not UTF-8.
    #[error("{path}: not UTF-8 text (at byte {byte}); save the file as UTF-8")]
    NotUtf8 {
        /// The file as the user named it.
        path: String,
        /// Offset of the first wrong byte, from 0.
        byte: usize,
    },
    /// A line is longer than [`MAX_NAME_BYTES`].
    #[error(
        "{path}, line {line}: {bytes} bytes are too long for a name (at most {MAX_NAME_BYTES}); \
         write one name a line"
    )]
    TooLong {
        /// The file as the user named it.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// Length of the name.
        bytes: usize,
    },
    /// A name holds a character that is not in the [`Vocabulary`](super::text::Vocabulary).
    #[error(
        "{path}, line {line}: {name:?} holds {symbol:?}, but names are spelt with the letters a-z; \
         {advice}"
    )]
    BadSymbol {
        /// The file as the user named it.
        path: String,
        /// The line, counted from 1 (for [`NameDataset::build`](super::text::NameDataset::build):
        /// the position in the list).
        line: usize,
        /// The name, cut to its first characters when it is long.
        name: String,
        /// The first character that is not a letter a-z.
        symbol: char,
        /// The remedy.
        advice: &'static str,
    },
    /// The list has fewer names than needed.
    #[error("{path}: too few names ({have}), at least {need} are needed; give a longer list")]
    TooFew {
        /// The file as the user named it.
        path: String,
        /// Number of names.
        have: usize,
        /// Number of names needed.
        need: usize,
    },
    /// The training pairs do not fit into memory.
    #[error(
        "{pairs} pairs with a context of {context} do not fit into memory; \
         give a shorter list or a smaller context"
    )]
    TooMany {
        /// Number of pairs.
        pairs: usize,
        /// Symbols in the context of each.
        context: usize,
    },
}
