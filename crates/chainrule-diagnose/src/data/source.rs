//! The source of arrays: an `.npz` file beside the description, or NumPy code in it, which
//! `python3` runs.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use chainrule_nn::io::read_bounded;

use super::npz::{self, Arrays};
use super::{Array, Table};
use crate::description::Program;
use crate::error::{Result, wrong};

/// The script that runs a description's own code, once for each seed, and writes the arrays.
const RUN: &str = include_str!("run_numpy.py");

/// The most bytes of data that are read, from a file or from Python.
const MOST: u64 = 4 << 30;

/// The most bytes of Python's messages that are kept.
const WORDS: u64 = 1 << 20;

/// Note to the user on how the data were made.
pub type Told = Option<String>;

/// Supplies the data of a program for a seed.
#[derive(Clone, Debug)]
pub struct Source {
    folder: PathBuf,
    generator: Option<PathBuf>,
    runs_code: bool,
}

impl Source {
    /// For a description in this folder. Code that it carries is run if `runs_code`.
    pub fn new(folder: &Path, generator: Option<&Path>, runs_code: bool) -> Source {
        Source {
            folder: folder.to_path_buf(),
            generator: generator.map(Path::to_path_buf),
            runs_code,
        }
    }

    /// The tables for these seeds, and a note on how they were made. A file is the same for all
    /// seeds.
    pub fn tables(&self, program: &Program, seeds: &[u64]) -> Result<(Vec<Table>, Told)> {
        if let Some(file) = &program.data.file {
            let path = self.folder.join(file);
            let bytes = read_bounded(&path, MOST)
                .map_err(|e| wrong(format!("cannot read the data of {}: {e}", path.display())))?;
            let mut arrays = npz::parse(&bytes)?;
            return Ok((vec![table(&mut arrays, "")?], None));
        }
        let Some(code) = &program.data.numpy else {
            return Err(wrong("`data` has neither `file` nor `numpy`"));
        };
        if !self.runs_code {
            return Err(wrong(
                "the data are Python text, which was not to be run; convert them to a file, or leave --no-data-code out",
            ));
        }
        let mut arrays = self.run(code, seeds)?;
        let tables = seeds.iter().map(|seed| table(&mut arrays, &format!("_{seed}")));
        let told = "the data were made by running the description's NumPy text with python3";
        Ok((tables.collect::<Result<_>>()?, Some(told.to_string())))
    }

    /// The folder of the generator module `gen.py`: the description's or one above it, otherwise
    /// the working directory's or one above that.
    pub(crate) fn generator(&self) -> Option<PathBuf> {
        if let Some(path) = &self.generator {
            // The parent of a bare `gen.py` is an empty path, which names no folder.
            let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
            return match whole.is_file() {
                true => whole.parent().map(Path::to_path_buf),
                false => Some(whole),
            };
        }
        let own = self.folder.canonicalize().ok();
        let working = std::env::current_dir().ok();
        let starts = [own, working];
        let above = starts.iter().flatten().flat_map(|p| p.ancestors());
        above.map(Path::to_path_buf).find(|p| p.join("gen.py").is_file())
    }

    fn run(&self, code: &str, seeds: &[u64]) -> Result<Arrays> {
        let job = serde_json::json!({
            "code": code, "seeds": seeds,
            "generator": self.generator().map(|p| p.display().to_string()),
        });
        let missing = |e: io::Error| {
            wrong(format!("the data need python3 with NumPy, which cannot be run: {e}"))
        };
        let mut child = Command::new("python3")
            .args(["-c", RUN])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(missing)?;
        let mut stdin = child.stdin.take().ok_or_else(|| wrong("python3 takes no input"))?;
        // A child that ends early closes the pipe; its own message says why.
        let _ = stdin.write_all(job.to_string().as_bytes());
        drop(stdin);
        let (made, words) = streams(&mut child).map_err(missing)?;
        if made.len() as u64 > MOST {
            // Nothing reads any more, so the child would wait for ever.
            let _ = child.kill();
            let _ = child.wait();
            return Err(wrong(format!(
                "the data that the NumPy text made are more than {MOST} bytes"
            )));
        }
        if !child.wait().map_err(missing)?.success() {
            let text = String::from_utf8_lossy(&words);
            let last = text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("no message");
            return Err(wrong(format!("the data could not be made: {}", last.trim())));
        }
        npz::parse(&made)
    }
}

/// Reads both streams of a child at the same time, up to their limits: a full pipe that nobody
/// reads would block it.
fn streams(child: &mut Child) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let words = thread::spawn(move || -> io::Result<Vec<u8>> {
        let mut words = Vec::new();
        if let Some(mut err) = err {
            err.by_ref().take(WORDS).read_to_end(&mut words)?;
            io::copy(&mut err, &mut io::sink())?;
        }
        Ok(words)
    });
    let mut made = Vec::new();
    if let Some(out) = out {
        out.take(MOST + 1).read_to_end(&mut made)?;
    }
    if made.len() as u64 > MOST {
        return Ok((made, Vec::new()));
    }
    let words = words.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    Ok((made, words))
}

fn table(arrays: &mut Arrays, suffix: &str) -> Result<Table> {
    let mut take = |name: &str| arrays.remove(&format!("{name}{suffix}"));
    let need = |array: Option<Array>, name: &str| {
        array.ok_or_else(|| wrong(format!("the data have no `{name}`")))
    };
    let (x, y) = (need(take("X"), "X")?, need(take("y"), "y")?);
    let validation = take("Xv").zip(take("yv"));
    let table = Table { x, y, validation };
    table.check()?;
    Ok(table)
}
