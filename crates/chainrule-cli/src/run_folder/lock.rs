//! A run folder belongs to one training at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::{Result, bail};

use super::cannot;
use crate::output;

/// The lock of a folder. The system gives it up with the last handle, so also when the process is
/// killed.
#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
}

impl Lock {
    /// Locks a folder, or an error if another process has it.
    ///
    /// On a file system without locks there is none, and a warning says so.
    pub fn take(folder: &Path) -> Result<Lock> {
        let file = open(folder).map_err(|e| cannot("open", folder, &e))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: Some(file) }),
            Err(TryLockError::WouldBlock) => bail!(
                "another training writes in {}; wait for its end, or choose another folder",
                folder.display()
            ),
            Err(TryLockError::Error(e)) => {
                output::complain(&format!(
                    "warning: {} cannot be locked ({e}); let no other training write there",
                    folder.display()
                ));
                Ok(Lock { _file: None })
            }
        }
    }
}

/// The folder itself carries the lock, so that no file of it lies about.
#[cfg(unix)]
fn open(folder: &Path) -> std::io::Result<File> {
    File::open(folder)
}

/// A folder cannot be opened as a file everywhere.
#[cfg(not(unix))]
fn open(folder: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(folder.join(".lock"))
}
