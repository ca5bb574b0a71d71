//! Files that are written whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a file so that a reader finds either the earlier content or the new one, never a part: into a second file of
/// the same folder, onto the disk, and then under its name; at last the folder goes onto the disk.
///
/// When that fails (the disk is full, say), the second file is removed and the earlier one is as it was.
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
    // Dropped without a second attempt to write what is left in it after an error.
    drop(buffer.into_parts());
    let written = written.and_then(|()| file.sync_all());
    drop(file);
    if let Err(e) = written.and_then(|()| fs::rename(&temporary, path)) {
        // Nothing can be done if this fails too; the first error is the one to tell.
        let _ = fs::remove_file(&temporary);
        return Err(e);
    }
    sync_folder_of(path);
    Ok(())
}

/// A new name is safe on the disk once the folder is. Some file systems refuse this; the file is written all the same.
pub(super) fn sync_folder_of(path: &Path) {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// A new, empty file beside `path`, and its path.
fn temporary_file(path: &Path, name: &OsStr) -> io::Result<(File, PathBuf)> {
    for attempt in 0..100 {
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}-{attempt}.tmp", std::process::id()));
        let temporary = path.with_file_name(temporary);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other("a hundred unfinished files of this name lie in the folder; remove them"))
}

/// What the system says, in words that tell what to do.
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
