//! The folder of one run, and how its files are written.
//!
//! A run owns a folder: its settings, metrics, model and pictures. Finished files are written whole
//! or not at all ([`write_atomic`]); metrics grow line by line while the run goes on
//! ([`MetricsWriter`]). A training locks its folder, so that no other one writes there.

mod lock;
mod replacing;

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;

use self::lock::Lock;
use crate::train::{FileSum, Running};

/// Folder of runs without `--out`, seen from the current folder.
const RUNS: &str = "runs";

/// Buffered metrics reach the disk at least this often, so that a killed run leaves a useful file.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// A folder that exists and into which this run alone may write, till the value is dropped.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Whether the files are still beside those of the run that they replace.
    is_beside: Cell<bool>,
    _lock: Lock,
}

/// Treatment of a folder that holds files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldFiles {
    Refuse,
    /// With `--force`.
    Replace,
}

impl OldFiles {
    pub fn forced(force: bool) -> OldFiles {
        if force { OldFiles::Replace } else { OldFiles::Refuse }
    }
}

impl RunFolder {
    /// Makes the folder of a run.
    ///
    /// Without `out` it is a fresh one, `runs/<kind>-0001` and so on; two runs that start together
    /// get different ones. With `out` it is that folder, made with its parents if need be. A folder
    /// that holds files is refused, or with [`OldFiles::Replace`] this run's files replace those
    /// of the same name and all others stay. A folder in which another run writes is refused.
    pub fn create(kind: &str, out: Option<&Path>, old: OldFiles) -> Result<RunFolder> {
        match out {
            Some(path) => Self::named(path, old),
            None => Self::numbered(Path::new(RUNS), kind),
        }
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.place().join(name)
    }

    /// The folder of new files: the run's, or one in it while an earlier run is there.
    pub fn place(&self) -> PathBuf {
        match self.is_beside.get() {
            true => replacing::folder(&self.path),
            false => self.path.clone(),
        }
    }

    /// Writes beside the run that is in the folder, until [`RunFolder::replace`].
    pub fn begin_beside(&self) -> Result<()> {
        replacing::begin(&self.path)?;
        self.is_beside.set(true);
        Ok(())
    }

    /// Whether the files are still beside those of an earlier run.
    pub fn is_beside(&self) -> bool {
        self.is_beside.get()
    }

    /// Puts the files that were written beside an earlier run in its place.
    pub fn replace(&self) -> Result<()> {
        if self.is_beside.get() {
            replacing::commit(&self.path)?;
            self.is_beside.set(false);
        }
        Ok(())
    }

    /// Takes away what was written beside an earlier run, which stays as it is.
    pub fn withdraw(&self) -> Result<()> {
        if self.is_beside.get() {
            replacing::settle(&self.path)?;
            self.is_beside.set(false);
        }
        Ok(())
    }

    /// Writes a file of the folder, whole or not at all; see [`write_atomic`].
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write_atomic(&self.file(name), bytes)
    }

    /// The folder of an earlier run, to go on with it. The unfinished files of a killed process are
    /// cleared up.
    pub fn existing(path: &Path) -> Result<RunFolder> {
        if !path.is_dir() {
            let what = if path.exists() { "is not a folder" } else { "there is no such folder" };
            bail!("{}: {what}; give the folder of a training run", path.display());
        }
        let folder = Self::locked(path.to_owned())?;
        replacing::settle(path)?;
        folder.sweep()?;
        Ok(folder)
    }

    fn locked(path: PathBuf) -> Result<RunFolder> {
        let lock = Lock::take(&path)?;
        Ok(RunFolder { path, is_beside: Cell::new(false), _lock: lock })
    }

    /// Removes the unfinished files of killed runs.
    fn sweep(&self) -> Result<()> {
        let swept = chainrule::io::sweep(&self.path);
        swept.map(drop).map_err(|e| cannot("clear up", &self.path, &e))
    }

    /// Starts the metrics file of that name, anew if there is one.
    pub fn metrics(&self, name: &str) -> Result<MetricsWriter> {
        // Messages name the place where the file will be.
        MetricsWriter::create_as(&self.file(name), self.path.join(name))
    }

    /// The folder that `--out` names.
    fn named(path: &Path, old: OldFiles) -> Result<RunFolder> {
        let shown = path.display();
        if path.exists() && !path.is_dir() {
            bail!("{shown} is a file, not a folder; choose another folder with --out");
        }
        fs::create_dir_all(path).map_err(|e| cannot("make the folder", path, &e))?;
        let folder = Self::locked(path.to_owned())?;
        if old == OldFiles::Refuse && !is_free(path).map_err(|e| cannot("look into", path, &e))? {
            bail!(
                "the folder {shown} is not empty; choose another one with --out, or add --force to \
                 replace the files of an earlier run"
            );
        }
        folder.sweep()?;
        Ok(folder)
    }

    /// A new folder `<base>/<kind>-<number>`, numbered after the last one.
    fn numbered(base: &Path, kind: &str) -> Result<RunFolder> {
        fs::create_dir_all(base).map_err(|e| cannot("make the folder", base, &e))?;
        let entries = fs::read_dir(base).map_err(|e| cannot("look into", base, &e))?;
        let last = entries
            .filter_map(|entry| number_of(&entry.ok()?.file_name().into_string().ok()?, kind))
            .max();
        // create_dir fails if the folder exists, so a number that another run took first is passed
        // over.
        for number in last.unwrap_or(0) + 1.. {
            let path = base.join(format!("{kind}-{number:04}"));
            match fs::create_dir(&path) {
                Ok(()) => return Self::locked(path),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(cannot("make the folder", &path, &e)),
            }
        }
        bail!("{} holds too many runs; give a folder with --out", base.display())
    }
}

/// Whether a folder holds nothing but perhaps the file of a lock.
fn is_free(path: &Path) -> io::Result<bool> {
    let mut names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name()));
    names.try_fold(true, |free, name: io::Result<_>| Ok(free && name? == ".lock"))
}

/// The number of a folder `<kind>-<number>`. A number of more than nine digits is not one of ours.
fn number_of(name: &str, kind: &str) -> Option<u64> {
    let digits = name.strip_prefix(kind)?.strip_prefix('-')?;
    let plain = (4..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// Writes a file so that a reader finds either the earlier content or the new one, never a part:
/// into a second file of the same folder, onto the disk, and then under its name.
///
/// When that fails (the disk is full, say), the second file is removed and the earlier one is left
/// as it was.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomic_with(path, |file| file.write_all(bytes))
}

/// [`write_atomic`] for content that `fill` writes piece by piece.
pub fn write_atomic_with(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> Result<()> {
    if path.file_name().is_none() {
        bail!("cannot write {}: this names no file", path.display());
    }
    chainrule::io::write_atomic(path, fill).map_err(|e| {
        let kept = if path.is_file() { " (the earlier file is unchanged)" } else { "" };
        anyhow!("{}{kept}", cannot("write", path, &e))
    })
}

/// One line that says what could not be done, why, and what helps.
fn cannot(what: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    use io::ErrorKind as Kind;
    let (why, help) = match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => ("the disk is full", "free some space"),
        Kind::PermissionDenied => ("permission denied", "choose a folder that you may write to"),
        Kind::ReadOnlyFilesystem => ("the disk is read-only", "choose a folder on another disk"),
        Kind::NotADirectory | Kind::AlreadyExists => {
            ("a part of the path is a file", "choose another folder")
        }
        Kind::IsADirectory => ("a folder has this name", "rename it or choose another folder"),
        Kind::NotFound => ("a folder of the path is missing", "check the path"),
        _ => return anyhow!("cannot {what} {}: {error}", path.display()),
    };
    anyhow!("cannot {what} {}: {why}; {help}", path.display())
}

/// Writes metrics as JSON lines: one object a line, through a buffer.
///
/// Lines reach the disk every second, and when the writer is finished or dropped. Numbers that JSON
/// does not have (NaN and the infinities) become `null`.
#[derive(Debug)]
pub struct MetricsWriter {
    out: BufWriter<File>,
    path: PathBuf,
    line: Vec<u8>,
    flushed: Instant,
    running: Running,
}

impl MetricsWriter {
    /// Makes the file, empty.
    #[cfg(test)]
    pub fn create(path: &Path) -> Result<MetricsWriter> {
        Self::create_as(path, path.to_owned())
    }

    /// Makes the file, empty; errors name it by the other path.
    fn create_as(path: &Path, shown: PathBuf) -> Result<MetricsWriter> {
        let file = File::create(path).map_err(|e| cannot("write", &shown, &e))?;
        Ok(MetricsWriter {
            out: BufWriter::with_capacity(1 << 16, file),
            path: shown,
            line: Vec::new(),
            flushed: Instant::now(),
            running: Running::default(),
        })
    }

    /// Goes on with a file that holds `earlier`, which is written whole first.
    pub fn append(path: &Path, earlier: &[u8]) -> Result<MetricsWriter> {
        write_atomic(path, earlier)?;
        let file = OpenOptions::new().append(true).open(path);
        let file = file.map_err(|e| cannot("write", path, &e))?;
        let mut running = Running::default();
        running.add(earlier);
        Ok(MetricsWriter {
            out: BufWriter::with_capacity(1 << 16, file),
            path: path.to_owned(),
            line: Vec::new(),
            flushed: Instant::now(),
            running,
        })
    }

    /// The lines so far, as a checkpoint keeps them.
    pub fn written(&self) -> FileSum {
        self.running.written()
    }

    /// Adds a row as one line of JSON.
    ///
    /// The line may stay in the buffer for up to a second, so a full disk may be told only by a
    /// later call or by [`MetricsWriter::finish`].
    pub fn record(&mut self, row: &impl Serialize) -> Result<()> {
        // By way of a second buffer: a row that cannot be written leaves no half line behind.
        self.line.clear();
        serde_json::to_writer(&mut self.line, row).context("cannot write the metrics as JSON")?;
        self.send()
    }

    /// Adds a line of text, with the limits of [`MetricsWriter::record`].
    pub fn line(&mut self, text: &str) -> Result<()> {
        self.line.clear();
        self.line.extend_from_slice(text.as_bytes());
        self.send()
    }

    fn send(&mut self) -> Result<()> {
        self.line.push(b'\n');
        self.running.add(&self.line);
        self.out.write_all(&self.line).map_err(|e| cannot("write", &self.path, &e))?;
        if self.flushed.elapsed() >= FLUSH_EVERY {
            self.flush()?;
        }
        Ok(())
    }

    /// Sends all lines to the file.
    pub fn flush(&mut self) -> Result<()> {
        self.flushed = Instant::now();
        self.out.flush().map_err(|e| cannot("write", &self.path, &e))
    }

    /// Sends all lines to the file and the file onto the disk.
    pub fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.out.get_ref().sync_data().map_err(|e| cannot("write", &self.path, &e))
    }

    /// Sends all lines to the file and closes it. Dropping does so too but cannot tell of an error.
    pub fn finish(mut self) -> Result<()> {
        self.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names_in(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The error's text, which must be a single line.
    fn one_line<T: std::fmt::Debug>(result: Result<T>) -> String {
        let text = format!("{:#}", result.unwrap_err());
        assert!(!text.contains('\n'), "{text}");
        text
    }

    #[test]
    fn fresh_folders_are_numbered_after_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("deep/runs");
        let made = |kind| RunFolder::numbered(&base, kind).unwrap().path().to_owned();
        assert_eq!(made("names"), base.join("names-0001"));
        assert_eq!(made("names"), base.join("names-0002"));
        assert_eq!(made("mnist"), base.join("mnist-0001"));
        fs::remove_dir(base.join("names-0001")).unwrap();
        fs::create_dir(base.join("names-0041")).unwrap();
        for other in ["names-0099x", "names-99999999999999999999", "names-7", "names-", "names"] {
            fs::create_dir(base.join(other)).unwrap();
        }
        assert_eq!(made("names"), base.join("names-0042"));
        fs::create_dir(base.join("names-9999")).unwrap();
        assert_eq!(made("names"), base.join("names-10000"));
        assert_eq!(made("names"), base.join("names-10001"));
    }

    #[test]
    fn runs_that_start_together_get_different_folders() {
        let dir = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = std::thread::scope(|scope| {
            let start = || {
                (0..25)
                    .map(|_| RunFolder::numbered(dir.path(), "names").unwrap().path().to_owned())
                    .collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let distinct: std::collections::BTreeSet<_> = paths.iter().collect();
        assert_eq!((paths.len(), distinct.len()), (200, 200));
    }

    #[test]
    fn a_named_folder_is_made_with_its_parents_and_an_empty_one_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("a/b/c");
        for _ in 0..2 {
            let folder = RunFolder::create("names", Some(&out), OldFiles::Refuse).unwrap();
            assert_eq!(folder.path(), out);
            assert!(out.is_dir());
        }
    }

    #[test]
    fn a_folder_with_files_needs_force_and_keeps_the_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let notes = dir.path().join("notes.txt");
        fs::write(&notes, "mine").unwrap();
        fs::write(dir.path().join("model.bin"), "old").unwrap();
        let text = one_line(RunFolder::create("names", Some(dir.path()), OldFiles::Refuse));
        assert!(text.contains("is not empty; choose") && text.contains("--force"), "{text}");
        let folder = RunFolder::create("names", Some(dir.path()), OldFiles::Replace).unwrap();
        folder.write("model.bin", b"new").unwrap();
        assert_eq!(fs::read_to_string(&notes).unwrap(), "mine");
        assert_eq!(fs::read_to_string(folder.file("model.bin")).unwrap(), "new");
        assert_eq!(names_in(dir.path()), ["model.bin", "notes.txt"]);
    }

    #[test]
    fn a_file_in_the_way_is_a_clear_error_with_and_without_force() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("taken");
        fs::write(&file, "").unwrap();
        for old in [OldFiles::Refuse, OldFiles::Replace] {
            let text = one_line(RunFolder::create("names", Some(&file), old));
            assert!(text.contains("taken is a file, not a folder; choose another"), "{text}");
            let text = one_line(RunFolder::create("names", Some(&file.join("sub")), old));
            assert!(text.contains("a part of the path is a file"), "{text}");
        }
        let text = one_line(RunFolder::numbered(&file, "names"));
        assert!(text.contains("a part of the path is a file"), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_may_not_be_written_is_a_clear_error() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let locked = dir.path().join("locked");
        fs::create_dir(&locked).unwrap();
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
        if File::create(locked.join("probe")).is_ok() {
            eprintln!("skipped: this user may write everywhere");
            return;
        }
        let help = "permission denied; choose a folder that you may write to";
        for text in [
            one_line(RunFolder::create("names", Some(&locked.join("sub")), OldFiles::Refuse)),
            one_line(RunFolder::numbered(&locked, "names")),
            one_line(
                RunFolder::create("names", Some(&locked), OldFiles::Refuse)
                    .unwrap()
                    .write("a", b""),
            ),
            one_line(MetricsWriter::create(&locked.join("metrics.jsonl"))),
        ] {
            assert!(text.contains(help), "{text}");
        }
    }

    #[test]
    fn an_atomic_write_replaces_the_file_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.bin");
        for content in [&b"one"[..], b"", &[7; 100_000]] {
            write_atomic(&path, content).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
            assert_eq!(names_in(dir.path()), ["model.bin"]);
        }
    }

    /// `/dev/full` is a device on which every write ends as on a full disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_keeps_the_earlier_file_and_leaves_no_part_of_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.bin");
        let half = |out: &mut BufWriter<&File>| {
            out.write_all(&[1; 50_000])?;
            File::create("/dev/full")?.write_all(b"x")
        };
        let text = one_line(write_atomic_with(&path, half));
        assert!(text.ends_with("model.bin: the disk is full; free some space"), "{text}");
        assert!(names_in(dir.path()).is_empty());
        write_atomic(&path, b"earlier").unwrap();
        let text = one_line(write_atomic_with(&path, half));
        assert!(text.ends_with("free some space (the earlier file is unchanged)"), "{text}");
        assert_eq!(fs::read(&path).unwrap(), b"earlier");
        assert_eq!(names_in(dir.path()), ["model.bin"]);
    }

    /// Needs a small disk of its own: set `CHAINRULE_SMALL_DISK` to a folder on a file system of
    /// less than 8 MiB.
    #[test]
    fn a_truly_full_disk_does_the_same() {
        let Some(disk) = std::env::var_os("CHAINRULE_SMALL_DISK") else {
            eprintln!("skipped: CHAINRULE_SMALL_DISK does not name a folder on a small disk");
            return;
        };
        let dir = tempfile::tempdir_in(disk).unwrap();
        let path = dir.path().join("model.bin");
        write_atomic(&path, b"earlier").unwrap();
        let text = one_line(write_atomic(&path, &vec![1; 8 << 20]));
        assert!(text.contains("the disk is full") && text.contains("unchanged"), "{text}");
        assert_eq!(fs::read(&path).unwrap(), b"earlier");
        assert_eq!(names_in(dir.path()), ["model.bin"]);
    }

    #[test]
    fn paths_that_cannot_be_files_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        fs::write(dir.path().join("folder/file"), "").unwrap();
        let text = one_line(write_atomic(&dir.path().join("folder"), b"x"));
        assert!(text.contains("cannot write"), "{text}");
        assert_eq!(names_in(dir.path()), ["folder"]);
        let text = one_line(write_atomic(&dir.path().join("missing/file"), b"x"));
        assert!(text.contains("a folder of the path is missing"), "{text}");
        for path in ["", "/", ".."] {
            assert!(one_line(write_atomic(Path::new(path), b"x")).contains("names no file"));
        }
    }

    #[test]
    fn metrics_are_one_json_object_a_line_however_the_writer_ends() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::create("names", Some(dir.path()), OldFiles::Refuse).unwrap();
        for finish in [true, false] {
            let mut metrics = folder.metrics("metrics.jsonl").unwrap();
            for step in 0..3 {
                let loss = [3.25, f64::NAN, f64::INFINITY][step];
                metrics.record(&json!({"step": step, "loss": loss})).unwrap();
            }
            if finish {
                metrics.finish().unwrap()
            } else {
                drop(metrics)
            }
            let text = fs::read_to_string(folder.file("metrics.jsonl")).unwrap();
            let rows: Vec<serde_json::Value> =
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(rows[0], json!({"step": 0, "loss": 3.25}));
            assert_eq!(rows[2], json!({"step": 2, "loss": null}));
            assert_eq!((rows.len(), text.ends_with("}\n")), (3, true));
        }
    }

    #[test]
    fn metrics_can_be_read_while_the_run_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        let mut metrics = MetricsWriter::create(&path).unwrap();
        metrics.record(&1).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "", "still in the buffer");
        metrics.flushed = Instant::now().checked_sub(FLUSH_EVERY).unwrap();
        metrics.record(&2).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_under_the_metrics_is_an_error_and_not_a_panic() {
        let mut metrics = MetricsWriter::create(Path::new("/dev/full")).unwrap();
        metrics.record(&1).unwrap();
        let text = one_line(metrics.finish());
        assert_eq!(text, "cannot write /dev/full: the disk is full; free some space");
        let mut metrics = MetricsWriter::create(Path::new("/dev/full")).unwrap();
        let failed = (0..100_000).any(|step| metrics.record(&step).is_err());
        assert!(failed, "a buffer that overflows must tell");
        drop(metrics);
    }
}
