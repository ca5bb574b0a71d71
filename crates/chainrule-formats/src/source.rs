//! Bounded reads from a file.

use std::fs::{self, File};
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::mapped::MappedFile;

/// A result whose error is a line without the file's name.
pub type Outcome<T> = Result<T, String>;

pub trait Readable: Read + Seek + Send {}

impl<T: Read + Seek + Send> Readable for T {}

/// A file, or bytes in memory.
pub struct Source {
    data: Mutex<Box<dyn Readable>>,
    len: u64,
    /// Its mapping, if tensors share it.
    pub pages: Option<MappedFile>,
}

impl Source {
    pub fn open(path: &Path) -> Outcome<Source> {
        let about = fs::metadata(path).map_err(|e| reason(&e))?;
        if about.is_dir() {
            return Err("this is a folder; give the path of a file".into());
        }
        // Opening a pipe without a writer blocks, and a device may have no end.
        if !about.is_file() {
            return Err("this is a pipe or a device; save its content in a file".into());
        }
        let file = File::open(path).map_err(|e| reason(&e))?;
        Ok(Source { data: Mutex::new(Box::new(file)), len: about.len(), pages: None })
    }

    /// As [`Source::open`], with the file mapped.
    pub fn open_mapped(path: &Path) -> Outcome<Source> {
        let source = Source::open(path)?;
        let pages = match source.len {
            0 => None,
            _ => Some(MappedFile::open(path)?),
        };
        Ok(Source { pages, ..source })
    }

    pub fn bytes(bytes: Vec<u8>) -> Source {
        let len = bytes.len() as u64;
        Source { data: Mutex::new(Box::new(Cursor::new(bytes))), len, pages: None }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// An unbuffered reader from `at` on.
    pub fn from(&self, at: u64) -> Outcome<Part<'_>> {
        let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        data.seek(SeekFrom::Start(at)).map_err(|e| reason(&e))?;
        Ok(Part(data))
    }

    pub fn buffered(&self, at: u64) -> Outcome<BufReader<Part<'_>>> {
        Ok(BufReader::new(self.from(at)?))
    }

    /// Bytes of this range; an error if the file ends before.
    pub fn read(&self, at: u64, len: u64) -> Outcome<Vec<u8>> {
        self.check(at, len)?;
        let mut bytes = zeros(len)?;
        self.from(at)?.read_exact(&mut bytes).map_err(|e| reason(&e))?;
        Ok(bytes)
    }

    /// An error unless the file has this range.
    pub fn check(&self, at: u64, len: u64) -> Outcome<()> {
        match at.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(format!(
                "{len} bytes from byte {at} on are beyond its end at {}; it is cut off or damaged, \
                 copy or save it again",
                self.len
            )),
        }
    }
}

/// A reader of the rest of a source, with exclusive use.
pub struct Part<'a>(MutexGuard<'a, Box<dyn Readable>>);

impl Read for Part<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(out)
    }
}

/// A zeroed buffer of this length, or an error if memory is short.
pub fn zeros(len: u64) -> Outcome<Vec<u8>> {
    let none = || format!("no memory for {len} bytes");
    let len = usize::try_from(len).map_err(|_| none())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| none())?;
    bytes.resize(len, 0);
    Ok(bytes)
}

/// The system's error, with a remedy.
pub fn reason(e: &std::io::Error) -> String {
    use std::io::ErrorKind as Kind;
    match e.kind() {
        Kind::NotFound => "there is no such file; check the path".into(),
        Kind::PermissionDenied => "permission denied; check who owns the file".into(),
        Kind::UnexpectedEof => "cut off: it ends too early; copy or save it again".into(),
        _ => e.to_string(),
    }
}
