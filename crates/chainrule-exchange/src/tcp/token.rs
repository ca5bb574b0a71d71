//! The shared secret of a run.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::Launch;

/// Largest token file.
const MOST: u64 = 4096;

/// The secret of a run, or its file.
pub(super) enum Token {
    Given(Vec<u8>),
    /// A file that only the user can read, for ranks on one machine.
    File {
        path: PathBuf,
        /// The secret that this rank wrote, if it did.
        own: OnceLock<String>,
    },
}

impl Token {
    /// The token of a run: the given one, or on one machine that of a file.
    pub fn of(launch: &Launch, address: SocketAddr) -> Result<Token, String> {
        if let Some(token) = &launch.token {
            return Ok(Token::Given(token.as_bytes().to_vec()));
        }
        if !address.ip().is_loopback() {
            return Err(
                "ranks on several machines need a secret: set CHAINRULE_TOKEN to the same random \
                 text on all of them"
                    .into(),
            );
        }
        let run: String = launch
            .run
            .iter()
            .flat_map(|run| run.chars())
            .filter(char::is_ascii_alphanumeric)
            .take(64)
            .collect();
        let name = format!("chainrule-{}-{}-{run}.token", user(), address.port());
        let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|f| f.is_dir());
        let path = folder.unwrap_or_else(std::env::temp_dir).join(name);
        Ok(Token::File { path, own: OnceLock::new() })
    }

    /// Rank 0 writes a new secret, replacing that of an earlier run.
    pub fn publish(&self) -> Result<(), String> {
        let Token::File { path, own } = self else { return Ok(()) };
        let fail = |e: std::io::Error| format!("{}: the secret of the run: {e}", path.display());
        let mut secret = [0u8; 32];
        getrandom::fill(&mut secret).map_err(|e| format!("no random numbers: {e}"))?;
        let text: String = secret.iter().map(|b| format!("{b:02x}")).collect();
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let written = private(&new).and_then(|mut file| file.write_all(text.as_bytes()));
        written.and_then(|()| fs::rename(&new, path)).map_err(|e| {
            let _ = fs::remove_file(&new);
            fail(e)
        })?;
        let _ = own.set(text);
        Ok(())
    }

    /// The secret. Other ranks may find none yet, or that of an earlier run, and read again.
    pub fn secret(&self) -> Result<Vec<u8>, String> {
        let path = match self {
            Token::Given(secret) => return Ok(secret.clone()),
            Token::File { path, .. } => path,
        };
        let fail = |e: std::io::Error| format!("{}: the secret of the run: {e}", path.display());
        let file = File::open(path).map_err(fail)?;
        if !is_private(&file) {
            return Err(format!(
                "{}: others can write or read the secret of the run; remove it, or set CHAINRULE_TOKEN",
                path.display()
            ));
        }
        let mut text = Vec::new();
        file.take(MOST).read_to_end(&mut text).map_err(fail)?;
        Ok(text)
    }
}

impl Drop for Token {
    /// Removes the file once the ranks have met, unless it is another run's.
    fn drop(&mut self) {
        if let Token::File { path, own } = self
            && let Some(own) = own.get()
            && fs::read(&*path).is_ok_and(|text| text == own.as_bytes())
        {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(unix)]
fn private(path: &std::path::Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let _ = fs::remove_file(path);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn private(path: &std::path::Path) -> std::io::Result<File> {
    let _ = fs::remove_file(path);
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Whether a file is private to this user.
#[cfg(unix)]
fn is_private(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(about) = file.metadata() else { return false };
    let is_own = fs::metadata("/proc/self").map_or(true, |own| own.uid() == about.uid());
    about.is_file() && about.mode() & 0o077 == 0 && is_own
}

#[cfg(not(unix))]
fn is_private(file: &File) -> bool {
    file.metadata().is_ok_and(|about| about.is_file())
}

#[cfg(unix)]
fn user() -> String {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").map_or_else(|_| "user".into(), |own| own.uid().to_string())
}

#[cfg(not(unix))]
fn user() -> String {
    "user".into()
}
