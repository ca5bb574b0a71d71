//! Who listens to a training: the files of metrics, the losses for the picture, the bar.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use chainrule::io::{CheckpointFolder, Kept};
use chainrule::train::{Event, Listener, StepEvent};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::settings::CONFIG_FILE;
use crate::names::MODEL_FILE;
use crate::progress::Progress;
use crate::run_folder::{MetricsWriter, RunFolder, write_atomic};

const JSON_FILE: &str = "metrics.jsonl";
const CSV_FILE: &str = "metrics.csv";
const CSV_HEAD: &str = "step,name,value";

/// The most losses that are drawn; of a longer run every second one is, and so on.
const MOST_LOSSES: u64 = 1_000_000;

/// `metrics.jsonl`, a line for each step and each measurement, and `metrics.csv` with the same numbers, one a line.
pub struct Metrics {
    json: MetricsWriter,
    csv: MetricsWriter,
    every: u64,
    /// The last step, which is written in any case.
    last: u64,
    /// Why they cannot be written, in full.
    failed: Option<anyhow::Error>,
}

impl Metrics {
    /// New files in the folder, with the numbers of every so many steps.
    pub fn create(folder: &RunFolder, every: u64) -> Result<Metrics> {
        let json = folder.metrics(JSON_FILE)?;
        let mut csv = folder.metrics(CSV_FILE)?;
        csv.line(CSV_HEAD)?;
        Ok(Metrics { json, csv, every, last: 0, failed: None })
    }

    /// The files of a run that goes on: what they hold of later steps is taken out.
    pub fn resume(folder: &RunFolder, every: u64, step: u64) -> Result<Metrics> {
        let old = read(&folder.file(JSON_FILE), |line| json_step(line).is_some_and(|s| s <= step))?;
        let csv = read(&folder.file(CSV_FILE), |line| {
            let first = line.split(',').next().unwrap_or_default();
            line == CSV_HEAD || first.parse::<u64>().is_ok_and(|s| s <= step)
        })?;
        let json = MetricsWriter::append(&folder.file(JSON_FILE), &old)?;
        let csv = MetricsWriter::append(&folder.file(CSV_FILE), &csv)?;
        Ok(Metrics { json, csv, every, last: 0, failed: None })
    }

    /// Writes the last line and closes the files.
    pub fn finish(mut self, summary: &impl Serialize) -> Result<()> {
        self.json.record(summary)?;
        self.json.finish()?;
        self.csv.finish()
    }

    /// The error that ended the training, if it was one of these files.
    pub fn failed(&mut self) -> Option<anyhow::Error> {
        self.failed.take()
    }

    fn write(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Started { steps, .. } => self.last = *steps,
            Event::Step(s) if s.step.is_multiple_of(self.every) || s.step == self.last => {
                let StepEvent { step, epoch, loss, lr, grad_norm, .. } = *s;
                // As f32, which it is: its shortest text.
                let loss = loss as f32;
                self.json.record(&StepRow { step, epoch, loss, lr, grad_norm })?;
                self.csv.line(&format!("{step},loss,{loss}\n{step},lr,{lr}"))?;
            }
            Event::Evaluated { step, epoch, metrics, .. } => {
                let mut row = Map::new();
                row.insert("step".into(), (*step).into());
                row.extend(epoch.map(|epoch| ("epoch".into(), json!(epoch))));
                row.insert("evaluation".into(), Value::Bool(true));
                for (name, value) in *metrics {
                    row.insert((*name).into(), json!(value));
                    self.csv.line(&format!("{step},{name},{value}"))?;
                }
                self.json.record(&row)?;
            }
            Event::Saving { .. } => {
                self.json.sync()?;
                self.csv.sync()?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The line of a step.
#[derive(Serialize)]
struct StepRow {
    step: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<f64>,
    loss: f32,
    lr: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    grad_norm: Option<f64>,
}

impl Listener for Metrics {
    fn hear(&mut self, event: &Event<'_>) -> chainrule::Result<()> {
        self.write(event).map_err(|error| {
            let text = format!("{error:#}");
            self.failed = Some(error);
            chainrule::Error::argument("metrics", text)
        })
    }
}

fn json_step(line: &str) -> Option<u64> {
    let row: Value = serde_json::from_str(line).ok()?;
    if row.get("final").is_some() { None } else { row.get("step")?.as_u64() }
}

/// The lines of a file that are good.
fn read(path: &Path, good: impl Fn(&str) -> bool) -> Result<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| good(line)).collect();
    let mut out = lines.join("\n");
    if !out.is_empty() {
        out.push('\n');
    }
    write_atomic(path, out.as_bytes()).context("the metrics of the earlier run cannot be cut")?;
    Ok(out)
}

/// So many steps apart are the losses that a run of this length draws.
pub fn stride(steps: u64) -> u64 {
    steps.div_ceil(MOST_LOSSES).max(1)
}

/// The losses of the steps, for the picture.
pub struct Losses {
    stride: u64,
    last: u64,
    pub points: Vec<(u64, f64)>,
}

impl Losses {
    /// Of a run of so many steps.
    pub fn new(steps: u64) -> Losses {
        Losses { stride: stride(steps), last: steps, points: Vec::new() }
    }

    /// With those that an earlier run wrote.
    pub fn with_earlier(mut self, folder: &RunFolder, step: u64) -> Losses {
        let text = fs::read_to_string(folder.file(JSON_FILE)).unwrap_or_default();
        for row in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let number = |key: &str| row.get(key).and_then(Value::as_f64);
            if let (Some(at), Some(loss)) = (number("step"), number("loss"))
                && at as u64 <= step
            {
                self.points.push((at as u64, loss));
            }
        }
        self
    }
}

impl Listener for Losses {
    fn hear(&mut self, event: &Event<'_>) -> chainrule::Result<()> {
        if let Event::Step(step) = event
            && (step.step.is_multiple_of(self.stride) || step.step == self.last)
        {
            self.points.push((step.step, step.loss));
        }
        Ok(())
    }
}

/// Puts a run in the place of an earlier one in the same folder, once it has something to show: till then the earlier one is whole.
pub struct Replace<'a> {
    pub folder: &'a RunFolder,
    pub config: &'a str,
    pub is_done: bool,
}

impl Replace<'_> {
    fn replace(&self, has_best: bool) -> Result<()> {
        self.folder.write(CONFIG_FILE, self.config.as_bytes())?;
        let kept = CheckpointFolder::new(self.folder.path());
        let best = (!has_best).then(|| kept.file(Kept::Best));
        for old in [kept.file(Kept::Earlier), self.folder.file(MODEL_FILE)].into_iter().chain(best)
        {
            // What is not there need not go.
            let _ = fs::remove_file(old);
        }
        Ok(())
    }
}

impl Listener for Replace<'_> {
    fn hear(&mut self, event: &Event<'_>) -> chainrule::Result<()> {
        if let (Event::Saved { is_best, .. }, false) = (event, self.is_done) {
            self.replace(*is_best)
                .map_err(|e| chainrule::Error::argument("run", format!("{e:#}")))?;
            self.is_done = true;
        }
        Ok(())
    }
}

/// The bar, and a line for each measurement.
pub struct Bar {
    progress: Option<Progress>,
    quiet: bool,
}

impl Bar {
    /// Shows nothing if `quiet`.
    pub fn new(quiet: bool) -> Bar {
        Bar { progress: None, quiet }
    }

    /// Takes the bar away.
    pub fn finish(self) {
        if let Some(progress) = self.progress {
            progress.finish();
        }
    }
}

impl Listener for Bar {
    fn hear(&mut self, event: &Event<'_>) -> chainrule::Result<()> {
        match event {
            Event::Started { step, steps, counted, .. } => {
                let progress = Progress::new(*steps, self.quiet, false);
                self.progress = Some(progress.counting(counted).from(*step));
            }
            Event::Step(s) => {
                if let Some(progress) = &mut self.progress {
                    progress.examples(s.examples);
                    progress.step(s.step, s.loss);
                }
            }
            Event::Evaluated { step, epoch, metrics, is_best, .. } => {
                if let Some(progress) = &mut self.progress {
                    progress.note(&measured(*step, *epoch, metrics, *is_best));
                    // The last one is the measure that the training is about.
                    if let [_, .., (name, value)] = metrics {
                        progress.measured(&name.replace('_', " "), *value);
                    }
                }
            }
            Event::Sampled { text, .. } => {
                if let Some(progress) = &mut self.progress {
                    progress.note(text);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// `epoch 3: train loss 0.0412, test accuracy 0.9812 (the best so far)`
fn measured(step: u64, epoch: Option<f64>, metrics: &[(&str, f64)], is_best: bool) -> String {
    let at = match epoch {
        Some(epoch) if epoch.fract() < 1e-9 => format!("epoch {epoch:.0}"),
        Some(epoch) => format!("epoch {epoch:.2}"),
        None => format!("step {step}"),
    };
    let parts: Vec<String> = metrics
        .iter()
        .map(|(name, value)| format!("{} {value:.4}", name.replace('_', " ")))
        .collect();
    let best = if is_best { " (the best so far)" } else { "" };
    format!("{at}: {}{best}", parts.join(", "))
}
