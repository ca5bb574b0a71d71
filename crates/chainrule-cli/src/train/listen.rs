//! Listeners of a training: the files of metrics, the losses for the picture, the bar.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use chainrule::io::CheckpointFolder;
use chainrule::train::{Event, Listener, StepEvent};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::metrics_sums::MetricsSums;
use crate::output;
use crate::progress::Progress;
use crate::report::measure;
use crate::run_folder::{MetricsWriter, RunFolder};

pub const JSON_FILE: &str = "metrics.jsonl";
pub const MONITOR_FILE: &str = "monitor.jsonl";
pub const CSV_FILE: &str = "metrics.csv";
const CSV_HEAD: &str = "step,name,value";

/// The most of a file of metrics that is read.
pub const MOST_BYTES: u64 = 16 << 30;

/// The most losses that are drawn; of a longer run every second one is, and so on.
const MOST_LOSSES: u64 = 1_000_000;

/// `metrics.jsonl`, a line for each step and each measurement, and `metrics.csv` with the same
/// numbers, one a line. A run that is watched has `monitor.jsonl` beside them, a line for each
/// look, of many for some, and one for each finding.
pub struct Metrics {
    json: MetricsWriter,
    csv: MetricsWriter,
    monitor: Option<MetricsWriter>,
    looks: Thinned,
    every: u64,
    /// The last step, which is written in any case.
    last: u64,
    /// Why they cannot be written, in full.
    failed: Option<anyhow::Error>,
    /// The checksums of what is written so far, for the next checkpoint.
    notes: Arc<Mutex<String>>,
}

/// Looks of which fewer are written as they grow many: all of the first, then every second, fourth
/// and so on, so that a file of a million looks is twice as long as one of a thousand.
#[derive(Default)]
struct Thinned {
    seen: u64,
    written: u64,
}

impl Thinned {
    /// Looks that are written before some are left out.
    const ALL: u64 = 512;
    /// Written looks after which half as many are.
    const EACH: u64 = 256;

    /// Whether the next look is written.
    fn keeps_next(&mut self) -> bool {
        let halvings = (self.written + Self::EACH).saturating_sub(Self::ALL) / Self::EACH;
        let keeps = self.seen.is_multiple_of(1 << halvings.min(40));
        self.seen += 1;
        self.written += u64::from(keeps);
        keeps
    }
}

impl Metrics {
    /// New files in the folder, with the numbers of every `n`th step.
    pub fn create(folder: &RunFolder, every: u64, is_watched: bool) -> Result<Metrics> {
        let json = folder.metrics(JSON_FILE)?;
        let mut csv = folder.metrics(CSV_FILE)?;
        csv.line(CSV_HEAD)?;
        let monitor = is_watched.then(|| folder.metrics(MONITOR_FILE)).transpose()?;
        Ok(Metrics::of(json, csv, monitor, every))
    }

    fn of(
        json: MetricsWriter,
        csv: MetricsWriter,
        monitor: Option<MetricsWriter>,
        every: u64,
    ) -> Metrics {
        let (looks, notes) = (Thinned::default(), Arc::default());
        Metrics { json, csv, monitor, looks, every, last: 0, failed: None, notes }
    }

    /// Notes for checkpoints, which tell what the files hold.
    pub fn notes(&self) -> Arc<Mutex<String>> {
        self.notes.clone()
    }

    /// The files of a run that goes on: what they hold of later steps is taken out, for these steps
    /// are taken again.
    ///
    /// Both are read before one is written; a file that cannot be read is an error, and a damaged
    /// one is kept beside the new one. Lines that the checkpoint knows, and that were taken out or
    /// changed since, are told.
    pub fn resume(
        folder: &RunFolder,
        every: u64,
        step: u64,
        is_watched: bool,
        sums: &MetricsSums,
    ) -> Result<Metrics> {
        let json = Earlier::read(&folder.file(JSON_FILE), step, json_line)?;
        let mut csv = Earlier::read(&folder.file(CSV_FILE), step, csv_line)?;
        if csv.kept.is_empty() {
            csv.kept = format!("{CSV_HEAD}\n").into_bytes();
        }
        // A run that was not watched has no such file, and nothing is missing then.
        let looks = Earlier::read(&folder.file(MONITOR_FILE), step, json_line)?;
        for (earlier, name) in [(&json, JSON_FILE), (&csv, CSV_FILE), (&looks, MONITOR_FILE)] {
            if earlier.is_there || name != MONITOR_FILE {
                earlier.report(folder, name, step, sums)?;
            }
        }
        let append = || MetricsWriter::append(&folder.file(MONITOR_FILE), &looks.kept);
        let monitor = is_watched.then(append).transpose()?;
        let json = MetricsWriter::append(&folder.file(JSON_FILE), &json.kept)?;
        let csv = MetricsWriter::append(&folder.file(CSV_FILE), &csv.kept)?;
        Ok(Metrics::of(json, csv, monitor, every))
    }

    /// Writes the last line and closes the files.
    pub fn finish(mut self, summary: &impl Serialize) -> Result<()> {
        self.json.record(summary)?;
        self.json.finish()?;
        self.monitor.map_or(Ok(()), MetricsWriter::finish)?;
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
            Event::Evaluated { step, epoch, metrics, averaged, .. } => {
                let mut row = Map::new();
                row.insert("step".into(), (*step).into());
                row.extend(epoch.map(|epoch| ("epoch".into(), json!(epoch))));
                row.insert("evaluation".into(), Value::Bool(true));
                row.insert("train_loss_steps".into(), (*averaged).into());
                for (name, value) in *metrics {
                    row.insert((*name).into(), json!(value));
                    self.csv.line(&format!("{step},{name},{value}"))?;
                }
                self.json.record(&row)?;
            }
            Event::Looked { monitor, .. } => {
                if self.looks.keeps_next()
                    && let Some((file, line)) = self.monitor.as_mut().zip(monitor.line_text())
                {
                    file.line(&line)?;
                }
            }
            Event::Found { step, symptom } => {
                if let Some(file) = &mut self.monitor {
                    file.record(&json!({"step": step, "finding": symptom.to_json()}))?;
                }
            }
            Event::Saving { .. } => {
                self.json.sync()?;
                self.monitor.as_mut().map_or(Ok(()), MetricsWriter::sync)?;
                self.csv.sync()?;
                self.note()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Tells the checkpoint that is saved next what the files hold.
    fn note(&self) -> Result<()> {
        let files = [(JSON_FILE, &self.json), (CSV_FILE, &self.csv)];
        let sums = files.map(|(name, file)| (name.to_owned(), file.written()));
        let sums = BTreeMap::from([("metrics", MetricsSums::from(sums))]);
        let text = format!("\n{}", toml::to_string(&sums)?);
        *self.notes.lock().unwrap_or_else(PoisonError::into_inner) = text;
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

/// The subject of a line of metrics.
#[derive(Clone, Copy)]
enum LogLine {
    /// A step.
    Step(u64),
    /// The file as a whole: kept.
    Head,
    /// The end of the run: written again at the next one.
    End,
    /// Nothing that was written so.
    Damaged,
}

fn json_line(line: &[u8]) -> LogLine {
    let Ok(row) = serde_json::from_slice::<Value>(line) else { return LogLine::Damaged };
    match row.get("step").and_then(Value::as_u64) {
        _ if row.get("final").is_some() => LogLine::End,
        Some(step) => LogLine::Step(step),
        None => LogLine::Damaged,
    }
}

fn csv_line(line: &[u8]) -> LogLine {
    if line == CSV_HEAD.as_bytes() {
        return LogLine::Head;
    }
    let fields: Option<Vec<&str>> = str::from_utf8(line).ok().map(|line| line.split(',').collect());
    match fields.as_deref() {
        Some([step, _, value]) if value.parse::<f64>().is_ok() => {
            step.parse().map_or(LogLine::Damaged, LogLine::Step)
        }
        _ => LogLine::Damaged,
    }
}

/// A file of metrics that an earlier process wrote.
struct Earlier {
    /// The lines up to the step.
    kept: Vec<u8>,
    /// Number of lines about later steps.
    later: usize,
    /// The numbers of lines that cannot be read.
    damaged: Vec<usize>,
    is_there: bool,
}

impl Earlier {
    fn read(path: &Path, step: u64, about: fn(&[u8]) -> LogLine) -> Result<Earlier> {
        let is_there = fs::symlink_metadata(path).is_ok();
        let mut earlier = Earlier { kept: Vec::new(), later: 0, damaged: Vec::new(), is_there };
        if !is_there {
            return Ok(earlier);
        }
        let bytes = chainrule::io::read_bounded(path, MOST_BYTES).map_err(|why| {
            anyhow!("{}: {why}; the metrics so far would be lost, so move the file away to go on without them", path.display())
        })?;
        for (number, line) in (1..).zip(bytes.split_inclusive(|&b| b == b'\n')) {
            let Some(text) = line.strip_suffix(b"\n") else {
                // A killed process left a part of its last line, which was not yet in a checkpoint.
                earlier.later += 1;
                continue;
            };
            match about(text) {
                LogLine::Step(at) if at > step => earlier.later += 1,
                LogLine::Step(_) | LogLine::Head => earlier.kept.extend(line),
                LogLine::End => {}
                LogLine::Damaged => earlier.damaged.push(number),
            }
        }
        Ok(earlier)
    }

    /// Says what does not go on as it was, and keeps a damaged file.
    fn report(&self, folder: &RunFolder, name: &str, step: u64, sums: &MetricsSums) -> Result<()> {
        let path = folder.file(name);
        let shown = path.display();
        if !self.is_there && step > 0 {
            output::complain(&format!(
                "warning: {shown} is missing; the metrics begin anew after step {step}"
            ));
        }
        if let [first, ..] = self.damaged[..] {
            let copy = (1u64..)
                .map(|i| folder.file(&format!("{name}.damaged-{i}")))
                .find(|copy| fs::symlink_metadata(copy).is_err())
                .context("no name is left for a copy of the metrics")?;
            fs::copy(&path, &copy).with_context(|| format!("cannot copy {shown}"))?;
            output::complain(&format!(
                "warning: {shown}: line {first} is damaged ({} in all), and left out; the file as it was is now {}",
                self.damaged.len(),
                copy.display()
            ));
        }
        let is_whole = self.is_there && self.damaged.is_empty();
        if let Some(told) = sums.get(name).and_then(|then| then.difference(&self.kept))
            && is_whole
        {
            output::complain(&format!(
                "warning: {shown}: not as it was when the checkpoint was saved: {told}; the run goes on with what is there"
            ));
        }
        if self.later > 0 && name == JSON_FILE {
            output::complain(&format!(
                "note: {shown}: {} lines of steps after the checkpoint are taken out; these steps are taken again",
                self.later
            ));
        }
        Ok(())
    }
}

/// Distance in steps of the losses that a run of this length draws.
pub fn stride(steps: u64) -> u64 {
    steps.div_ceil(MOST_LOSSES).max(1)
}

/// The losses of the steps and those over examples that were kept back, for the picture.
pub struct Losses {
    stride: u64,
    last: u64,
    pub points: Vec<(u64, f64)>,
    pub held: Vec<(u64, f64)>,
}

/// Names of a loss over examples that the model does not learn from, the first one first.
const HELD: [&str; 2] = ["val_loss", "test_loss"];

impl Losses {
    /// Losses of a run of this length.
    pub fn new(steps: u64) -> Losses {
        Losses { stride: stride(steps), last: steps, points: Vec::new(), held: Vec::new() }
    }

    /// The mean of the last tenth; NaN for a run without steps.
    pub fn at_the_end(&self) -> f64 {
        let tenth = &self.points[self.points.len() - self.points.len().div_ceil(10)..];
        tenth.iter().map(|(_, loss)| loss).sum::<f64>() / tenth.len() as f64
    }

    /// With those that an earlier run wrote.
    pub fn with_earlier(mut self, folder: &RunFolder, step: u64) -> Losses {
        // A file that cannot be read is told where the metrics are continued.
        let bytes =
            chainrule::io::read_bounded(&folder.file(JSON_FILE), MOST_BYTES).unwrap_or_default();
        let rows = bytes.split(|&b| b == b'\n');
        for row in rows.filter_map(|line| serde_json::from_slice::<Value>(line).ok()) {
            let number = |key: &str| row.get(key).and_then(Value::as_f64);
            let Some(at) = number("step").map(|at| at as u64).filter(|at| *at <= step) else {
                continue;
            };
            self.points.extend(number("loss").map(|loss| (at, loss)));
            if row.get("evaluation").is_some() {
                self.held.extend(HELD.into_iter().find_map(number).map(|loss| (at, loss)));
            }
        }
        self
    }
}

impl Listener for Losses {
    fn hear(&mut self, event: &Event<'_>) -> chainrule::Result<()> {
        match event {
            Event::Step(s) if s.step.is_multiple_of(self.stride) || s.step == self.last => {
                self.points.push((s.step, s.loss));
            }
            Event::Evaluated { step, metrics, .. } => {
                let of = |name| metrics.iter().find(|(n, _)| *n == name).map(|m| (*step, m.1));
                self.held.extend(HELD.into_iter().find_map(of));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Puts a run in the place of an earlier one in the same folder, once it has a checkpoint: till
/// then the earlier one is whole.
pub struct Replace<'a> {
    pub folder: &'a RunFolder,
    pub kept: CheckpointFolder,
}

impl Listener for Replace<'_> {
    fn hear(&mut self, event: &Event<'_>) -> chainrule::Result<()> {
        if let (Event::Saved { .. }, true) = (event, self.folder.is_beside()) {
            let replaced = self.folder.replace();
            replaced.map_err(|e| chainrule::Error::argument("run", format!("{e:#}")))?;
            self.kept.moved_to(self.folder.path());
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
                let progress = match self.quiet {
                    true => Progress::hidden(*steps),
                    false => Progress::shown(*steps),
                };
                self.progress = Some(progress.counting(counted).from(*step));
            }
            Event::Step(s) => {
                if let Some(progress) = &mut self.progress {
                    progress.examples(s.examples);
                    progress.step(s.step, s.loss);
                }
            }
            Event::Evaluated { step, epoch, metrics, averaged, seconds, is_best } => {
                if let Some(progress) = &mut self.progress {
                    progress.paused(Duration::from_secs_f64(*seconds));
                    progress.note(&measured((*step, *epoch), metrics, *averaged, *is_best));
                    // The last one is the measure that the training is about.
                    if let [_, .., (name, value)] = metrics {
                        progress.measured(&name.replace('_', " "), *value);
                    }
                }
            }
            Event::Found { symptom, .. } => {
                if let Some(progress) = &mut self.progress {
                    progress.note(&format!("finding: {symptom}"));
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

/// `epoch 3: train loss 0.0412 (mean of 469 steps), test accuracy 0.9812 (the best so far)`
fn measured(
    (step, epoch): (u64, Option<f64>),
    metrics: &[(&str, f64)],
    averaged: u64,
    is_best: bool,
) -> String {
    let at = match epoch {
        Some(epoch) if epoch.fract() < 1e-9 => format!("epoch {epoch:.0}"),
        Some(epoch) => format!("epoch {epoch:.2}"),
        None => format!("step {step}"),
    };
    let part = |(i, (name, value)): (usize, &(&str, f64))| {
        let of = if i == 0 { format!(" (mean of {averaged} steps)") } else { String::new() };
        format!("{} {}{of}", name.replace('_', " "), measure(*value))
    };
    let parts: Vec<String> = metrics.iter().enumerate().map(part).collect();
    let best = if is_best { " (the best so far)" } else { "" };
    format!("{at}: {}{best}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_looks_are_some_thousand_lines() {
        let mut looks = Thinned::default();
        let kept: Vec<u64> = (0..1_000_000).filter(|_| looks.keeps_next()).collect();
        assert_eq!(kept[..512], (0..512).collect::<Vec<u64>>());
        assert!((2_500..4_500).contains(&kept.len()), "{}", kept.len());
        let gaps: Vec<u64> = kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.windows(2).all(|g| g[1] == g[0] || g[1] <= 2 * g[0]), "{gaps:?}");
    }
}
