//! A run that replaces another one in its folder, whole or not at all.
//!
//! The new run writes into a folder of its own inside, [`NEW`]. Once it has a checkpoint, the file
//! [`READY`] in there makes the change valid: it lists what goes away. Then the files move to their
//! places. A process that is killed before leaves the old run as it was; one that is killed amid
//! the moves leaves the rest of them to the next training in the folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};

use super::{cannot, write_atomic};

/// The folder of the new run.
const NEW: &str = ".new-run";
/// Lists the files of the old run that go away, one a line.
const READY: &str = "ready";

/// The files of a run that must not stand beside those of another.
const OF_A_RUN: [&str; 9] = [
    "config.toml",
    "metrics.jsonl",
    "metrics.csv",
    "best.ckpt",
    "earlier.ckpt",
    "last.ckpt",
    "model.safetensors",
    "monitor.jsonl",
    "report.html",
];

/// The folder that the new run writes to.
pub fn folder(run: &Path) -> PathBuf {
    run.join(NEW)
}

/// Makes the folder of a new run.
pub fn begin(run: &Path) -> Result<()> {
    settle(run)?;
    let new = folder(run);
    fs::create_dir(&new).map_err(|e| cannot("make the folder", &new, &e))
}

/// Puts the new run in the place of the old one.
pub fn commit(run: &Path) -> Result<()> {
    let new = folder(run);
    let gone = OF_A_RUN.into_iter().filter(|name| !new.join(name).exists());
    let gone: String = gone.flat_map(|name| [name, "\n"]).collect();
    write_atomic(&new.join(READY), gone.as_bytes())?;
    finish(run)
}

/// Ends what an earlier process began: a valid change is done, any other is undone.
pub fn settle(run: &Path) -> Result<()> {
    let new = folder(run);
    match new.join(READY).exists() {
        true => finish(run),
        false => absent(fs::remove_dir_all(&new)).map_err(|e| cannot("remove", &new, &e)),
    }
}

/// The moves. Each can be done again: a file that is listed is none of the new run's.
fn finish(run: &Path) -> Result<()> {
    let new = folder(run);
    let failed = |e: io::Error| anyhow!("{}", cannot("replace the run in", run, &e));
    let gone = fs::read_to_string(new.join(READY)).map_err(failed)?;
    for name in gone.lines().filter(|name| OF_A_RUN.contains(name)) {
        absent(fs::remove_file(run.join(name))).map_err(failed)?;
    }
    for entry in fs::read_dir(&new).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != READY {
            fs::rename(new.join(&name), run.join(&name)).map_err(failed)?;
        }
    }
    fs::remove_dir_all(&new).map_err(failed)
}

/// A file that is not there need not be removed.
fn absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// An old run with a best checkpoint, and a new one without.
    fn both() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in ["config.toml", "last.ckpt", "best.ckpt", "metrics.jsonl", "notes.txt"] {
            fs::write(dir.path().join(name), "old").unwrap();
        }
        begin(dir.path()).unwrap();
        for name in ["config.toml", "last.ckpt", "metrics.jsonl"] {
            fs::write(folder(dir.path()).join(name), "new").unwrap();
        }
        dir
    }

    #[test]
    fn before_the_commit_the_old_run_is_whole() {
        let dir = both();
        settle(dir.path()).unwrap();
        let all = ["best.ckpt", "config.toml", "last.ckpt", "metrics.jsonl", "notes.txt"];
        assert_eq!(names_in(dir.path()), all);
        for name in all {
            assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "old", "{name}");
        }
    }

    /// The moves are cut off after each of them, and ended by the next process.
    #[test]
    fn after_the_commit_the_new_run_is_whole_wherever_it_was_cut_off() {
        for moved in 0..=3 {
            let dir = both();
            let new = folder(dir.path());
            fs::write(new.join(READY), "best.ckpt\nmodel.safetensors\n").unwrap();
            for name in ["config.toml", "last.ckpt", "metrics.jsonl"].into_iter().take(moved) {
                fs::rename(new.join(name), dir.path().join(name)).unwrap();
            }
            settle(dir.path()).unwrap();
            let all = ["config.toml", "last.ckpt", "metrics.jsonl", "notes.txt"];
            assert_eq!(names_in(dir.path()), all, "{moved}");
            for name in &all[..3] {
                assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "new", "{name}");
            }
            settle(dir.path()).unwrap();
        }
        let dir = both();
        commit(dir.path()).unwrap();
        assert_eq!(
            names_in(dir.path()),
            ["config.toml", "last.ckpt", "metrics.jsonl", "notes.txt"]
        );
    }
}
