//! The monitor of a run: attached, continued, and its report written.

use chainrule::monitor::{self, Monitor, Symptom};
use chainrule::train::Trainer;
use serde_json::Value;

use super::listen::{JSON_FILE, MONITOR_FILE, MOST_BYTES};
use crate::args::train::Common;
use crate::run_folder::RunFolder;
use crate::train::settings::FAMILY;

/// The file's name in the folder of a run.
pub const REPORT_FILE: &str = "report.html";

/// The share of the time that looks may take where no distance of them is given.
const SHARE: f64 = 0.02;

/// Whether the command line wants a monitor.
pub fn is_wanted(args: &Common) -> bool {
    !args.no_monitor
}

/// The trainer with a monitor, if one is wanted; it knows what an earlier part of the run saw.
pub fn attach<'a>(trainer: Trainer<'a>, args: &Common, folder: &RunFolder) -> Trainer<'a> {
    if !is_wanted(args) {
        return trainer;
    }
    let mut monitor = Monitor::new();
    if args.tensorboard {
        monitor = monitor.with_computation();
    }
    if let Some(n) = args.monitor_every {
        monitor = monitor.every(n);
        if !args.tensorboard {
            monitor = monitor.with_sparse_histograms();
        }
    }
    if trainer.step() > 0 {
        [JSON_FILE, MONITOR_FILE].into_iter().for_each(|name| restore(&mut monitor, folder, name));
    }
    trainer.with_monitor(monitor, args.monitor_every.is_none().then_some(SHARE))
}

fn restore(monitor: &mut Monitor, folder: &RunFolder, name: &str) {
    // A file that cannot be read is told where the metrics are continued.
    let bytes = chainrule::io::read_bounded(&folder.file(name), MOST_BYTES).unwrap_or_default();
    let lines = bytes.split(|&b| b == b'\n');
    let rows = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    rows.for_each(|row| monitor.restore(&row));
}

/// A monitor's records and findings at the end.
pub struct Watched {
    monitor: Monitor,
    title: String,
    /// All findings, of which those of more than even confidence are told.
    all: Vec<Symptom>,
}

impl Watched {
    /// `None` without a monitor.
    pub fn of(trainer: &Trainer<'_>, title: &str) -> Option<Watched> {
        let monitor = trainer.monitor()?.clone();
        Some(Watched { all: monitor.findings(), monitor, title: title.to_owned() })
    }

    /// The findings to be told.
    pub fn findings(&self) -> impl Iterator<Item = &Symptom> {
        self.all.iter().filter(|symptom| symptom.confidence > 0.5)
    }

    /// Writes the report, with what the model made up at the end.
    pub fn report(mut self, folder: &RunFolder, samples: &[&str]) -> anyhow::Result<()> {
        if !samples.is_empty() {
            self.monitor.sampled(&samples.join("\n"));
        }
        let page = monitor::html(&self.monitor, &self.title, &self.all);
        folder.write(REPORT_FILE, page.as_bytes())
    }
}

/// The command that comes next for a model of that kind.
pub fn next_command(kind: &str, folder: &str) -> Option<String> {
    match kind {
        "names" | FAMILY | "text" => Some(format!("chainrule sample {folder}")),
        "digits" => Some(format!("chainrule eval {folder}")),
        "regression" => Some(format!("chainrule predict {folder} 21.5")),
        "moons" => Some(format!("chainrule export {folder} --onnx moons.onnx")),
        _ => None,
    }
}
