//! Atomic writes of files.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Replaces a file atomically: writes a temporary file in the same directory, syncs it, renames it,
/// and syncs the directory. A reader sees the old content or the new one, never a part.
///
/// On failure (a full disk, say) the temporary file is removed and the old one is as it was.
///
/// ```
/// use std::io::Write;
/// let path = std::env::temp_dir().join(format!("chainrule-atomic-{}", std::process::id()));
/// chainrule::io::write_atomic(&path, |out| out.write_all(b"all of it"))?;
/// assert_eq!(std::fs::read(&path)?, b"all of it");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_atomic(
    path: impl AsRef<Path>,
    fill: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let path = path.as_ref();
    let name = path.file_name().ok_or_else(|| io::Error::other("the path names no file"))?;
    let (file, temporary) = temporary_file(path, name)?;
    let mut buffer = BufWriter::new(&file);
    let written = fill(&mut buffer).and_then(|()| buffer.flush());
    // Dropped without a second attempt to write its buffer after an error.
    drop(buffer.into_parts());
    let written = written.and_then(|()| file.sync_all());
    drop(file);
    if let Err(e) = written.and_then(|()| fs::rename(&temporary, path)) {
        // A failure here can't be handled; the first error is the one to report.
        let _ = fs::remove_file(&temporary);
        return Err(e);
    }
    sync_folder_of(path);
    Ok(())
}

/// A rename is durable once the directory is synced. Some file systems refuse this; the file is
/// written all the same.
pub(super) fn sync_folder_of(path: &Path) {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// A new, empty temporary file beside `path`, and its path.
fn temporary_file(path: &Path, name: &OsStr) -> io::Result<(File, PathBuf)> {
    loop {
        let temporary = path.with_file_name(temporary_name(name));
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            // The name is taken; the next one has another number.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

/// `.NAME.PROCESS-NUMBER.tmp`. The number is new for each file, and starts at the time: in a
/// container every process has the same id, and files of killed ones must not be in the way.
pub(super) fn temporary_name(name: &OsStr) -> OsString {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if NEXT.load(Ordering::Relaxed) == 0 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let start = (now.as_nanos() as u64).max(1);
        // Another thread may have set it; either start will do.
        let _ = NEXT.compare_exchange(0, start, Ordering::Relaxed, Ordering::Relaxed);
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}-{number}.tmp", std::process::id()));
    temporary
}

/// Whether a file name is one of [`temporary_name`] or an earlier version of it.
fn is_temporary(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
    let Some((_, number)) = inner.and_then(|inner| inner.rsplit_once('.')) else { return false };
    match number.split_once('-') {
        Some((process, number)) => digits(process) && digits(number),
        None => digits(number),
    }
}

/// Removes temporary files that killed processes left in a directory, and returns their number.
///
/// Only for a directory without other writers: it would remove the file of a [`write_atomic`] in
/// progress.
pub fn sweep(folder: impl AsRef<Path>) -> io::Result<usize> {
    let mut swept = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_left_over = entry.file_name().to_str().is_some_and(is_temporary);
        if is_left_over && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// A regular file and its length, or the reason it is not read: a directory, a pipe or a device, an
/// error of the system.
///
/// Opening a pipe without a writer blocks, and a device may have no end, so both are rejected
/// before.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64), String> {
    let about = fs::metadata(path).map_err(|e| reason(&e))?;
    if about.is_dir() {
        return Err("this is a folder; give the path of a file".into());
    }
    if !about.is_file() {
        return Err("this is a pipe or a device, not a file; save its content in a file".into());
    }
    let file = File::open(path).map_err(|e| reason(&e))?;
    Ok((file, about.len()))
}

pub(crate) fn too_long(most: u64) -> String {
    format!("more than {most} bytes, the most that is read of such a file")
}

/// The bytes of a regular file, or the reason it is not read: longer than `most` bytes, or no such
/// file.
///
/// The limit holds for the bytes read and not only for the reported size, which may be 0 or change.
pub fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let (file, len) = open_regular(path)?;
    if len > most {
        return Err(too_long(most));
    }
    let mut bytes = Vec::new();
    let room = usize::try_from(len).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(room).map_err(|_| format!("no memory for its {room} bytes"))?;
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    match read.map_err(|e| reason(&e))? as u64 > most {
        true => Err(too_long(most)),
        false => Ok(bytes),
    }
}

/// The system's error, with a remedy.
pub(crate) fn reason(e: &io::Error) -> String {
    use io::ErrorKind as Kind;
    let text = match e.kind() {
        Kind::NotFound => "there is no such file or folder; check the path",
        Kind::PermissionDenied => "permission denied; check who owns the file and its folder",
        Kind::StorageFull | Kind::QuotaExceeded => "the disk is full; free some room and try again",
        Kind::ReadOnlyFilesystem => "the disk is read-only; choose another one",
        Kind::IsADirectory => "this is a folder; give the path of a file",
        Kind::NotADirectory => "a part of the path is a file, not a folder; check the path",
        _ => return e.to_string(),
    };
    text.to_string()
}

#[cfg(test)]
mod tests;
