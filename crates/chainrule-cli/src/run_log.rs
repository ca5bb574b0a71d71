//! Files of a run, read as they grow: its settings, its metrics and the looks of its monitor.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use chainrule::monitor::{LossCurve, Series};
use serde_json::Value;

use crate::train::{CONFIG_FILE, JSON_FILE, MONITOR_FILE};

/// Points of a curve that are kept.
const POINTS: usize = 2_048;

/// The most bytes of a file that one reading takes in; the rest is for the next.
const AT_ONCE: u64 = 64 << 20;

/// A layer at the newest look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerLook {
    pub gradient: Option<f64>,
    pub weight: f64,
    pub update: Option<f64>,
    /// The share of the gradient that is exactly zero.
    pub zeros: f64,
}

/// A run's files, as far as they were read.
#[derive(Debug)]
pub struct RunLog {
    pub path: PathBuf,
    /// Settings by name; those of a table have its name before a point.
    pub settings: BTreeMap<String, String>,
    pub step: u64,
    pub loss: Option<f64>,
    pub rate: Option<f64>,
    pub losses: LossCurve,
    pub rates: Series<f64>,
    pub norms: Series<f64>,
    /// Measures by name.
    pub measures: BTreeMap<String, Series<f64>>,
    pub layers: Vec<(String, LayerLook)>,
    pub findings: Vec<(u64, String)>,
    /// The last line of a run that came to its end.
    pub end: Option<Value>,
    metrics: Tail,
    monitor: Tail,
}

impl RunLog {
    /// The run in that folder, read so far.
    ///
    /// Errors if it is not the folder of a run, or a file cannot be read.
    pub fn open(path: &Path) -> Result<RunLog> {
        if !path.is_dir() {
            let what = if path.exists() { "is not a folder" } else { "there is no such folder" };
            bail!("{}: {what}; give the folder of a training run", path.display());
        }
        let text =
            chainrule::io::read_bounded(&path.join(CONFIG_FILE), 1 << 20).map_err(|why| {
                anyhow!("{}: not the folder of a training run: {why}", path.display())
            })?;
        let text = String::from_utf8_lossy(&text);
        let table: toml::Table =
            toml::from_str(&text).with_context(|| format!("{}: {CONFIG_FILE}", path.display()))?;
        let mut settings = BTreeMap::new();
        flatten("", &toml::Value::Table(table), &mut settings);
        let mut log = RunLog {
            path: path.to_owned(),
            settings,
            metrics: Tail::of(path.join(JSON_FILE)),
            monitor: Tail::of(path.join(MONITOR_FILE)),
            step: 0,
            loss: None,
            rate: None,
            losses: LossCurve::new(POINTS),
            rates: Series::new(POINTS),
            norms: Series::new(POINTS),
            measures: BTreeMap::new(),
            layers: Vec::new(),
            findings: Vec::new(),
            end: None,
        };
        while log.refresh()? {}
        Ok(log)
    }

    /// Reads what was added since; whether there was something.
    pub fn refresh(&mut self) -> Result<bool> {
        let (metrics, is_new) = self.metrics.more()?;
        if is_new {
            // The run began anew.
            (self.step, self.loss, self.rate, self.end) = (0, None, None, None);
            (self.losses, self.rates) = (LossCurve::new(POINTS), Series::new(POINTS));
            (self.norms, self.measures) = (Series::new(POINTS), BTreeMap::new());
            (self.layers, self.findings) = (Vec::new(), Vec::new());
            self.monitor.begin_again();
        }
        let (looks, _) = self.monitor.more()?;
        metrics.iter().for_each(|row| self.metric(row));
        looks.iter().for_each(|row| self.look(row));
        Ok(!metrics.is_empty() || !looks.is_empty())
    }

    fn metric(&mut self, row: &Value) {
        if row.get("final").is_some() {
            self.end_with(row);
            return;
        }
        let Some(step) = row.get("step").and_then(Value::as_u64) else { return };
        self.step = self.step.max(step);
        let number = |name: &str| row.get(name).and_then(Value::as_f64);
        if row.get("evaluation").is_some() {
            for (name, value) in row.as_object().into_iter().flatten() {
                let is_measure =
                    !matches!(name.as_str(), "step" | "epoch" | "evaluation" | "train_loss_steps");
                if let (true, Some(x)) = (is_measure, value.as_f64()) {
                    let all = self.measures.entry(name.clone());
                    all.or_insert_with(|| Series::new(POINTS)).push(step, x);
                }
            }
            return;
        }
        if let Some(loss) = number("loss") {
            self.loss = Some(loss);
            self.losses.push(step, loss);
        }
        if let Some(rate) = number("lr") {
            self.rate = Some(rate);
            self.rates.push(step, rate);
        }
        if let Some(norm) = number("grad_norm") {
            self.norms.push(step, norm);
        }
    }

    /// The last line has the findings of the whole run, the surest first.
    fn end_with(&mut self, row: &Value) {
        self.end = Some(row.clone());
        if let Some(all) = row.get("findings").and_then(Value::as_array) {
            let since = |row: &Value| row.get("since").and_then(Value::as_u64).unwrap_or(0);
            self.findings = all.iter().rev().map(|row| (since(row), told(row))).collect();
        }
    }

    fn look(&mut self, row: &Value) {
        let Some(step) = row.get("step").and_then(Value::as_u64) else { return };
        if let Some(finding) = row.get("finding") {
            if self.end.is_none() {
                self.findings.push((step, told(finding)));
            }
            return;
        }
        let Some(all) = row.get("parameters").and_then(Value::as_object) else { return };
        self.layers =
            all.iter().filter_map(|(name, row)| Some((name.clone(), layer(row)?))).collect();
    }

    /// The name of the folder.
    pub fn name(&self) -> String {
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| self.path.display().to_string())
    }

    /// The held-out loss over the steps, and its name.
    pub fn held_out(&self) -> Option<(&str, &Series<f64>)> {
        let names = ["val_loss", "test_loss"].into_iter();
        names.filter_map(|name| Some((name, self.measures.get(name)?))).next()
    }
}

/// A finding in a line: its kind, its place and the change that mends it.
fn told(finding: &Value) -> String {
    let text = |name: &str| finding.get(name).and_then(Value::as_str).unwrap_or_default();
    let place = text("place");
    let place = if place.is_empty() { String::new() } else { format!(" at {place}") };
    format!("{}{place}: {}", text("kind").replace('_', " "), text("fix"))
}

fn layer(row: &Value) -> Option<LayerLook> {
    let rms = |name: &str| {
        let part = row.get(name)?;
        let (norm, count) = (part.get("norm")?.as_f64()?, part.get("count")?.as_f64()?);
        Some(norm / count.max(1.0).sqrt())
    };
    let of = |name: &str| row.get("gradient")?.get(name)?.as_f64();
    Some(LayerLook {
        gradient: rms("gradient"),
        weight: rms("value")?,
        update: rms("update"),
        zeros: of("zeros").zip(of("count")).map_or(0.0, |(zeros, n)| zeros / n.max(1.0)),
    })
}

fn flatten(name: &str, value: &toml::Value, out: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                flatten(&name, value, out);
            }
        }
        toml::Value::String(text) => {
            out.insert(name.to_owned(), text.clone());
        }
        other => {
            out.insert(name.to_owned(), other.to_string());
        }
    }
}

/// A file of lines that grows.
#[derive(Debug)]
struct Tail {
    path: PathBuf,
    read: u64,
    /// A line whose end is not written yet.
    rest: Vec<u8>,
}

impl Tail {
    fn of(path: PathBuf) -> Tail {
        Tail { path, read: 0, rest: Vec::new() }
    }

    fn begin_again(&mut self) {
        self.read = 0;
        self.rest.clear();
    }

    /// The rows of the lines that were ended since, and whether the file began anew. A line that
    /// is no JSON is passed over, as a file that is not there is empty.
    fn more(&mut self) -> Result<(Vec<Value>, bool)> {
        let Ok(mut file) = File::open(&self.path) else { return Ok((Vec::new(), false)) };
        let why = || format!("cannot read {}", self.path.display());
        let length = file.metadata().with_context(why)?.len();
        let is_new = length < self.read;
        if is_new {
            (self.read, self.rest) = (0, Vec::new());
        }
        file.seek(SeekFrom::Start(self.read)).with_context(why)?;
        let mut bytes = std::mem::take(&mut self.rest);
        let before = bytes.len();
        file.take(AT_ONCE).read_to_end(&mut bytes).with_context(why)?;
        self.read += (bytes.len() - before) as u64;
        let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        self.rest = bytes.split_off(end);
        let rows =
            bytes.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        Ok((rows.collect(), is_new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    #[test]
    fn lines_are_read_as_they_grow() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(CONFIG_FILE), "kind = \"moons\"\n[train]\nlr = 0.1\n")
            .unwrap();
        let path = folder.path().join(JSON_FILE);
        fs::write(&path, "{\"step\":1,\"loss\":2.0,\"lr\":0.1}\n{\"step\":2,\"lo").unwrap();
        let mut log = RunLog::open(folder.path()).unwrap();
        assert_eq!(log.settings["train.lr"], "0.1");
        assert_eq!((log.step, log.loss), (1, Some(2.0)));
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"ss\":1.5}\nno json\n{\"step\":2,\"evaluation\":true,\"val_loss\":1.7}\n")
            .unwrap();
        assert!(log.refresh().unwrap() && !log.refresh().unwrap());
        assert_eq!((log.step, log.loss), (2, Some(1.5)));
        assert_eq!(log.held_out().unwrap().1.points(), [(2, 1.7)]);
        // A run that begins anew in its folder is read anew.
        fs::write(&path, "{\"step\":1,\"loss\":9.0}\n").unwrap();
        log.refresh().unwrap();
        assert_eq!((log.step, log.losses.spans().len()), (1, 1));
    }
}
