//! A training that has ended: what is told of it, and the status.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use chainrule::monitor::Symptom;
use chainrule::train::End;
use chainrule_diagnose::{Proof, Suspicion};
use serde_json::{Map, Value, json};

use super::listen::Metrics;
use super::page::Page;
use super::session::DIAGNOSIS_FILE;
use super::watching::{self, Watched};
use crate::interrupt;
use crate::run_folder::RunFolder;
use crate::{output, report};

/// The message for a training that ended because of its loss.
pub(super) fn not_finite(end: &End, lr: f64) -> Option<String> {
    let End::NotFinite { step, loss, why } = end else { return None };
    Some(format!("the loss of step {step} is {loss}: {why}; try a smaller --lr (it is {lr:?})"))
}

/// Outcome of a session.
pub enum Outcome {
    /// All is said: it was not to train, or this is not the first of several ranks.
    Done(ExitCode),
    Ran(Box<Ran>),
}

/// A training that has ended, with its model saved.
pub struct Ran {
    pub(super) kind: &'static str,
    /// The monitor's records and findings, if there was one.
    pub(super) watched: Option<Watched>,
    /// Signs of mistakes from before the first step.
    pub(super) signs: Vec<Suspicion>,
    /// The diagnosis, if it was asked for.
    pub(super) proof: Option<Proof>,
    pub folder: RunFolder,
    pub(super) metrics: Metrics,
    pub end: End,
    pub steps: u64,
    pub epochs: Option<f64>,
    pub pace: StepTime,
    /// The newest measurements.
    pub numbers: chainrule::train::Metrics,
    pub(super) best: Option<f64>,
    /// The least loss over the one batch that was learned by heart.
    pub(super) overfit_floor: Option<f64>,
    pub(super) parameters: usize,
    pub(super) json: bool,
    pub lr: f64,
    pub(super) complaint: Option<String>,
    pub(super) page: Option<Page>,
}

impl Ran {
    /// Says that the model is of no use, and why; the status is then 1.
    pub fn complain(&mut self, why: String) {
        self.complaint = Some(why);
    }

    /// The results that all trainings have, with `more`.
    fn summary(&self, more: Map<String, Value>) -> Map<String, Value> {
        let mut all = Map::new();
        all.extend(self.numbers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
        all.insert("seconds".into(), json!((self.pace.seconds * 1e6).round() / 1e6));
        all.insert("us_per_step".into(), json!(self.pace.us_per_step()));
        all.extend(self.epochs.map(|epochs| ("epochs".to_owned(), json!(epochs))));
        all.insert("steps".into(), json!(self.steps));
        all.insert("parameters".into(), json!(self.parameters));
        all.insert("best".into(), json!(self.best));
        all.extend(self.overfit_floor.map(|floor| ("overfit_floor".to_owned(), json!(floor))));
        if let Some(watched) = &self.watched {
            let rows: Vec<Value> = watched.findings().map(Symptom::to_json).collect();
            all.insert("findings".into(), json!(rows));
        }
        let signs = self.signs.iter().map(|s| {
            json!({"kind": s.cause.kind(), "where": s.place, "evidence": s.text, "strength": s.strength})
        });
        all.insert("before".into(), signs.collect());
        all.extend(self.proof.as_ref().map(|proof| ("diagnosis".to_owned(), proof.shown_json())));
        all.extend(more);
        all.insert("interrupted".into(), json!(matches!(self.end, End::Stopped)));
        all.insert("folder".into(), json!(self.folder.path().display().to_string()));
        all.extend(self.error().map(|error| ("error".to_owned(), json!(error))));
        all
    }

    fn error(&self) -> Option<String> {
        let of_a_step = not_finite(&self.end, self.lr).or_else(|| self.complaint.clone());
        of_a_step.or_else(|| {
            let (name, x) = self.numbers.iter().find(|(_, x)| !x.is_finite())?;
            let name = name.replace('_', " ");
            Some(format!(
                "the {name} is {x} after the last update; try a smaller --lr (it is {:?})",
                self.lr
            ))
        })
    }

    /// Writes the last line of the metrics, prints the results (`lines` for people) and gives the
    /// status.
    pub fn finish(self, more: Map<String, Value>, lines: &[String]) -> Result<ExitCode> {
        let summary = self.summary(more);
        let error = self.error();
        let place = self.folder.path().display().to_string();
        let mut last = Map::from_iter([("final".to_owned(), json!(true))]);
        last.extend(summary.clone());
        let Ran {
            kind,
            watched,
            folder,
            proof,
            metrics,
            steps,
            pace,
            numbers,
            end,
            overfit_floor,
            json,
            page,
            ..
        } = self;
        page.iter().for_each(|page| page.report(steps, lines));
        metrics.finish(&last)?;
        if json {
            output::json(&summary)?;
        } else {
            lines.iter().try_for_each(|line| output::line(line))?;
            let numbers: Vec<String> = numbers
                .iter()
                .map(|(name, x)| format!("{} {}", name.replace('_', " "), report::measure(*x)))
                .collect();
            output::line(&pace.text(steps))?;
            if !numbers.is_empty() {
                output::line(&numbers.join(", "))?;
            }
            if let Some(watched) = &watched {
                watched.findings().try_for_each(|s| output::line(&format!("finding: {s}")))?;
                let file = Path::new(&place).join(watching::REPORT_FILE);
                output::line(&format!("the report is {}", file.display()))?;
            }
            if let Some(proof) = &proof {
                output::line(&format!("\ndiagnosis\n{}\n", proof.text()))?;
                let file = Path::new(&place).join(DIAGNOSIS_FILE);
                output::line(&format!("its curves are in {}", file.display()))?;
            }
            if let Some(floor) = overfit_floor.filter(|floor| *floor > 0.0) {
                output::line(&format!(
                    "some equal inputs of the batch have different targets: its loss cannot go below {floor:.4}"
                ))?;
            }
        }
        if let Some(watched) = watched {
            let samples = summary.get("samples").and_then(Value::as_array);
            let samples: Vec<&str> =
                samples.into_iter().flatten().filter_map(Value::as_str).collect();
            watched.report(&folder, &samples)?;
        }
        if let Some(error) = error {
            bail!("{error}; the model after {} is in {place}", report::steps(steps));
        }
        let text = match end {
            End::Stopped => {
                let text = format!(
                    "interrupted after {}; go on with --resume {place}",
                    report::steps(steps)
                );
                match json {
                    true => output::complain(&text),
                    false => output::line(&text)?,
                }
                return Ok(ExitCode::from(interrupt::EXIT_STATUS as u8));
            }
            End::NoBetter { evaluations } => {
                format!("no better for {evaluations} measurements; the model is in {place}")
            }
            _ => format!("the model is in {place}"),
        };
        if !json {
            output::line(&text)?;
            if let Some(next) = watching::next_command(kind, &place) {
                output::line(&format!("next: {next}"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Time of the steps that this process took; a run that goes on had others before.
#[derive(Clone, Copy, Debug)]
pub struct StepTime {
    /// Steps of this process.
    pub steps: u64,
    /// Seconds of this process, measurements of the model among them.
    pub seconds: f64,
    /// Seconds of the measurements.
    pub measuring: f64,
}

impl StepTime {
    /// Microseconds of a step, without the measurements; none for no steps.
    pub fn us_per_step(&self) -> Option<f64> {
        let spent = (self.seconds - self.measuring).max(0.0);
        (self.steps > 0).then(|| (spent * 1e9 / self.steps as f64).round() / 1e3)
    }

    /// `20 more steps (60 in all) in 0.1 s, 310.2 us each`
    fn text(&self, all: u64) -> String {
        let steps = match self.steps == all {
            true => report::steps(all),
            false => format!("{} more ({} in all)", report::steps(self.steps), report::count(all)),
        };
        let each = match self.us_per_step() {
            None => String::new(),
            Some(us) if us < 1e3 => format!(", {us:.1} us each"),
            Some(us) => format!(", {:.2} ms each", us / 1e3),
        };
        format!("{steps} in {:.1} s{each}", self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_the_time_of_its_own_process_without_measurements() {
        let pace = StepTime { steps: 20, seconds: 0.5, measuring: 0.1 };
        assert_eq!(pace.us_per_step(), Some(20_000.0));
        assert_eq!(pace.text(20), "20 steps in 0.5 s, 20.00 ms each");
        assert_eq!(pace.text(60), "20 steps more (60 in all) in 0.5 s, 20.00 ms each");
        let none = StepTime { steps: 0, seconds: 0.1, measuring: 0.2 };
        assert_eq!(none.us_per_step(), None);
        assert_eq!(none.text(7), "0 steps more (7 in all) in 0.1 s");
    }
}
