//! Fetching files whose size and checksum are known, so that nothing else ever gets their name.
//!
//! Bytes go into a second file beside the place, `.NAME.part`. A broken transfer is taken up where
//! it ended; when all bytes are there and their sha256 is right, the file gets its name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use sha2::{Digest, Sha256};

/// A file to be fetched.
pub struct Item<'a> {
    pub name: &'a str,
    pub url: String,
    pub bytes: u64,
    pub sha256: &'a str,
}

/// Limits of a transfer's patience.
#[derive(Clone, Copy)]
pub struct Patience {
    /// Without a byte for so long, a transfer is given up.
    pub stall: Duration,
    /// Number of times that a transfer is begun or taken up.
    pub attempts: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { stall: Duration::from_secs(30), attempts: 5 }
    }
}

/// Origin of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Fetched {
    /// It was there already.
    Present,
    New,
}

/// Fetches a file into a folder; `progress` hears how many bytes there are.
///
/// # Errors
/// One line: what the server did wrong or what cannot be written. Then the name is not taken, and
/// bytes that may be right are kept for the next time.
pub fn fetch(
    item: &Item<'_>,
    folder: &Path,
    patience: Patience,
    progress: &mut dyn FnMut(u64),
) -> Result<Fetched> {
    let path = folder.join(item.name);
    if path.exists() {
        if sum_of(&path).is_ok_and(|sum| sum == item.sha256) {
            return Ok(Fetched::Present);
        }
        bail!(
            "{}: another file has this name; move it away, or choose another folder with --out",
            path.display()
        );
    }
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let part = folder.join(format!(".{}.part", item.name));
    let mut last = None;
    for _ in 0..patience.attempts.max(1) {
        match transfer(item, &part, patience.stall, progress) {
            Ok(()) => {
                last = None;
                break;
            }
            Err(DownloadError::ForGood(error)) => return Err(error),
            Err(DownloadError::ForNow(error)) => last = Some(error),
        }
    }
    if let Some(error) = last {
        return Err(error.context(format!(
            "{} could not be fetched; what came is kept, try again later",
            item.name
        )));
    }
    let sum = sum_of(&part).map_err(|e| cannot(&part, &e))?;
    if sum != item.sha256 {
        let _ = fs::remove_file(&part);
        bail!(
            "{}: the server sent something else (sha256 {sum}, wanted {}); nothing was kept",
            item.url,
            item.sha256
        );
    }
    fs::rename(&part, &path).map_err(|e| cannot(&path, &e))?;
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(Fetched::New)
}

enum DownloadError {
    /// Worth another attempt.
    ForNow(anyhow::Error),
    ForGood(anyhow::Error),
}

fn cannot(path: &Path, e: &io::Error) -> anyhow::Error {
    anyhow!("cannot write {}: {e}", path.display())
}

/// Adds to the part until it has all bytes.
fn transfer(
    item: &Item<'_>,
    part: &Path,
    stall: Duration,
    progress: &mut dyn FnMut(u64),
) -> Result<(), DownloadError> {
    let disk = |e: io::Error| DownloadError::ForGood(cannot(part, &e));
    let mut have = fs::metadata(part).map_or(0, |m| m.len());
    if have == item.bytes {
        return Ok(());
    }
    if have > item.bytes {
        fs::remove_file(part).map_err(disk)?;
        have = 0;
    }
    let (starts_at, chunks) = ask(item, have, stall)?;
    let mut options = OpenOptions::new();
    let mut file = match starts_at == have && have > 0 {
        true => options.append(true).open(part),
        // The server begins anew, whatever it was asked.
        false => options.write(true).create(true).truncate(true).open(part),
    }
    .map_err(disk)?;
    let mut have = starts_at;
    loop {
        match chunks.recv_timeout(stall) {
            Ok(Ok(bytes)) => {
                have += bytes.len() as u64;
                if have > item.bytes {
                    drop(file);
                    let _ = fs::remove_file(part);
                    return Err(DownloadError::ForGood(anyhow!(
                        "{}: the server sends more than the {} bytes of the file; nothing was kept",
                        item.url,
                        item.bytes
                    )));
                }
                file.write_all(&bytes).map_err(disk)?;
                progress(have);
            }
            Ok(Err(e)) => {
                let _ = file.sync_all();
                return Err(DownloadError::ForNow(anyhow!("{}: {e}", item.url)));
            }
            Err(RecvTimeoutError::Timeout) => {
                let _ = file.sync_all();
                let why = format!("{}: no byte came for {:.0?}", item.url, stall);
                return Err(DownloadError::ForNow(anyhow!(why)));
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    file.sync_all().map_err(disk)?;
    if have < item.bytes {
        let why = format!("{}: it ended after {have} of {} bytes", item.url, item.bytes);
        return Err(DownloadError::ForNow(anyhow!(why)));
    }
    Ok(())
}

type Chunks = Receiver<io::Result<Vec<u8>>>;

/// Asks for the bytes from `have` on: where the answer starts, and its bytes as a thread reads
/// them. The thread lets the caller notice that nothing comes.
fn ask(item: &Item<'_>, have: u64, stall: Duration) -> Result<(u64, Chunks), DownloadError> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_connect(Some(stall))
        .timeout_recv_response(Some(stall))
        .max_redirects(5)
        .build()
        .into();
    let mut request = agent.get(&item.url).header("accept-encoding", "identity");
    if have > 0 {
        request = request.header("range", format!("bytes={have}-"));
    }
    let response = request.call().map_err(|e| {
        let error = anyhow!("{}: {e}", item.url);
        match e {
            ureq::Error::StatusCode(status) if (400..500).contains(&status) => {
                DownloadError::ForGood(error)
            }
            ureq::Error::BadUri(_) | ureq::Error::TooManyRedirects => DownloadError::ForGood(error),
            _ => DownloadError::ForNow(error),
        }
    })?;
    let begins = || -> Option<u64> {
        let range = response.headers().get("content-range")?.to_str().ok()?;
        range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
    };
    let starts_at = match response.status().as_u16() {
        206 if begins() == Some(have) => have,
        206 => {
            let why = format!("{}: the server sent another part than it was asked for", item.url);
            return Err(DownloadError::ForGood(anyhow!(why)));
        }
        _ => 0,
    };
    let (sender, chunks) = sync_channel(4);
    let mut body = response.into_body().into_reader();
    std::thread::spawn(move || {
        loop {
            let mut bytes = vec![0; 1 << 16];
            let read = body.read(&mut bytes);
            let ended = !matches!(read, Ok(n) if n > 0);
            let sent = match read {
                Ok(0) => return,
                Ok(n) => {
                    bytes.truncate(n);
                    sender.send(Ok(bytes))
                }
                Err(e) => sender.send(Err(e)),
            };
            if ended || sent.is_err() {
                return;
            }
        }
    });
    Ok((starts_at, chunks))
}

/// The sha256 of a file, in hexadecimal.
fn sum_of(path: &Path) -> io::Result<String> {
    let (mut file, mut sum) = (File::open(path)?, Sha256::new());
    let mut bytes = vec![0; 1 << 16];
    loop {
        match file.read(&mut bytes)? {
            0 => break,
            n => sum.update(&bytes[..n]),
        }
    }
    Ok(sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Path of a file's part.
#[cfg(test)]
fn part_of(folder: &Path, name: &str) -> std::path::PathBuf {
    folder.join(format!(".{name}.part"))
}

#[cfg(test)]
mod tests;
