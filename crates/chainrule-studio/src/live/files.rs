//! A run that is read from its folder, while it grows or afterwards.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Hub, LiveRun};

const METRICS: &str = "metrics.jsonl";
const MONITOR: &str = "monitor.jsonl";

/// The most of a file that is read at once.
const PART: u64 = 4 << 20;

/// The wait between two looks at the files.
const LOOK: Duration = Duration::from_millis(100);

/// The silence after which it is asked whether anybody still writes.
const SILENCE: Duration = Duration::from_secs(3);

/// The end of what was read, by which a file that was written anew is known.
const END: usize = 200;

/// The longest line.
const LINE: usize = 16 << 20;

/// A file that grows.
struct Tail {
    path: PathBuf,
    at: u64,
    end: Vec<u8>,
    rest: Vec<u8>,
}

/// The growth of a file.
enum News {
    Lines(Vec<Value>),
    /// It is not the one that was read before.
    Replaced,
}

impl Tail {
    fn new(path: PathBuf) -> Tail {
        Tail { path, at: 0, end: Vec::new(), rest: Vec::new() }
    }

    /// The whole lines since the last call. A file that is not there is empty.
    fn read(&mut self) -> io::Result<News> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Ok(if self.at > 0 { News::Replaced } else { News::Lines(Vec::new()) });
            }
            Err(e) => return Err(e),
        };
        let length = file.metadata()?.len();
        if length < self.at || !self.is_same(&mut file)? {
            return Ok(News::Replaced);
        }
        file.seek(SeekFrom::Start(self.at))?;
        let mut part = Vec::new();
        file.take(PART).read_to_end(&mut part)?;
        self.at += part.len() as u64;
        self.end.extend_from_slice(&part);
        self.end.drain(..self.end.len().saturating_sub(END));
        self.rest.extend_from_slice(&part);
        let whole = self.rest.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        if self.rest.len() > LINE {
            self.rest.clear();
        }
        let rows = lines.split(|&b| b == b'\n');
        // A damaged line is passed over, as it is when a run goes on.
        Ok(News::Lines(rows.filter_map(|line| serde_json::from_slice(line).ok()).collect()))
    }

    fn is_same(&self, file: &mut File) -> io::Result<bool> {
        file.seek(SeekFrom::Start(self.at - self.end.len() as u64))?;
        let mut end = vec![0; self.end.len()];
        file.read_exact(&mut end)?;
        Ok(end == self.end)
    }
}

/// The folder of a run that `chainrule train` wrote, or writes.
pub struct RunFiles {
    folder: PathBuf,
    run: LiveRun,
    metrics: Tail,
    monitor: Tail,
    heard: Instant,
    has_ended: bool,
    failed: bool,
}

impl RunFiles {
    /// A run of this folder in the hub. Errors if the folder has no metrics.
    pub fn open(hub: &Hub, folder: &Path) -> io::Result<RunFiles> {
        File::open(folder.join(METRICS))?;
        Ok(Self::of(hub.begin_watched(&name_of(folder)), folder))
    }

    /// The run of another process that takes the page's orders; see [`Hub::begin_relayed`].
    pub fn steered(hub: &Hub, folder: &Path, to: Box<dyn Write + Send>) -> RunFiles {
        Self::of(hub.begin_relayed(&name_of(folder), to), folder)
    }

    fn of(run: LiveRun, folder: &Path) -> RunFiles {
        RunFiles {
            folder: folder.to_owned(),
            run,
            metrics: Tail::new(folder.join(METRICS)),
            monitor: Tail::new(folder.join(MONITOR)),
            heard: Instant::now(),
            has_ended: false,
            failed: false,
        }
    }

    /// Follows the files as long as the process lives.
    pub fn follow(mut self) {
        loop {
            while self.look() {}
            self.run.let_go();
            std::thread::sleep(LOOK);
        }
    }

    /// Takes in what is new; whether there was something.
    pub fn look(&mut self) -> bool {
        let news = self.monitor.read().and_then(|looks| Ok((looks, self.metrics.read()?)));
        let (looks, steps) = match news {
            Ok((News::Lines(looks), News::Lines(steps))) => (looks, steps),
            Ok(_) => {
                self.metrics = Tail::new(self.folder.join(METRICS));
                self.monitor = Tail::new(self.folder.join(MONITOR));
                self.run.begin_anew();
                (self.has_ended, self.failed, self.heard) = (false, false, Instant::now());
                return false;
            }
            Err(e) => {
                if !self.failed {
                    self.run.end(&format!("the files of the run cannot be read: {e}"));
                }
                self.failed = true;
                return false;
            }
        };
        let has_news = !looks.is_empty() || !steps.is_empty();
        if has_news && (self.has_ended || self.failed) {
            self.run.go_on();
            (self.has_ended, self.failed) = (false, false);
        }
        looks.iter().for_each(|row| self.take_look(row));
        steps.iter().for_each(|row| self.take(row));
        if has_news {
            self.heard = Instant::now();
        } else if !self.has_ended && self.heard.elapsed() > SILENCE {
            self.heard = Instant::now();
            if !is_written(&self.folder) {
                self.has_ended = true;
                self.run.end("its process ended before the run did; go on with --resume");
            }
        }
        has_news
    }

    fn take_look(&self, row: &Value) {
        let finding = &row["finding"];
        match (finding["kind"].as_str(), row["step"].as_u64()) {
            (Some(kind), Some(step)) => {
                let text = |name: &str| finding[name].as_str().unwrap_or_default();
                let place = match text("place") {
                    "" => String::new(),
                    place => format!("at `{place}`: "),
                };
                let words = format!("{place}{}; {}", text("consequence"), text("fix"));
                self.run.found(step, kind, &words);
            }
            _ => self.run.look(row),
        }
    }

    fn take(&mut self, row: &Value) {
        if row.get("final").is_some() {
            let count = row["steps"].as_u64().unwrap_or(0);
            self.run.text(count, "results", &results(row));
            let error = row["error"].as_str();
            self.run.end(error.unwrap_or(match row["interrupted"].as_bool() {
                Some(true) => "stopped by its user",
                _ => "all steps are done",
            }));
            self.has_ended = true;
            return;
        }
        let Some(step) = row["step"].as_u64() else { return };
        if row.get("evaluation").is_some() {
            let measures = row.as_object().into_iter().flatten();
            let measures: Vec<(&str, f64)> = measures
                .filter(|(name, _)| {
                    !matches!(name.as_str(), "step" | "epoch" | "evaluation" | "train_loss_steps")
                })
                .filter_map(|(name, value)| Some((name.as_str(), value.as_f64()?)))
                .collect();
            return self.run.measured(step, &measures);
        }
        // JSON writes a number that is not finite as null.
        let loss = row["loss"].as_f64().unwrap_or(f64::NAN);
        let rate = row["lr"].as_f64().unwrap_or(f64::NAN);
        self.run.step(step, loss, rate, row["grad_norm"].as_f64());
    }
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| folder.display().to_string())
}

/// The last line of the metrics for people: a number a line, and what the model made.
fn results(row: &Value) -> String {
    let mut out = String::new();
    for (name, value) in row.as_object().into_iter().flatten() {
        let shown = match value {
            Value::Number(number) => number.to_string(),
            Value::Array(items) if items.iter().all(Value::is_string) => {
                items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
            }
            _ => continue,
        };
        out.push_str(&format!("{}: {shown}\n", name.replace('_', " ")));
    }
    out
}

/// Whether a training holds the folder. A system without locks does not tell, and it is taken for
/// written.
fn is_written(folder: &Path) -> bool {
    let Ok(file) = File::open(folder) else { return !cfg!(unix) };
    // Given back at once, and asked for once in a silence: a training that starts in between would
    // be refused.
    match file.try_lock_shared() {
        Ok(()) => false,
        Err(std::fs::TryLockError::WouldBlock) => true,
        Err(std::fs::TryLockError::Error(_)) => true,
    }
}
