//! `chainrule train names`: trains the names model, saves it, and tells how it went.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, bail};
use chainrule::data::text::NameList;
use chainrule::nn::Module;
use chainrule::nn::models::NamesMlp;
use chainrule::{Generator, record_all};
use serde::Serialize;

use crate::args::TrainNames;
use crate::interrupt::{self, Interrupt};
use crate::names::{self, NamesData};
use crate::progress::Progress;
use crate::report::{self, Row};
use crate::run_config::{DataConfig, ModelConfig, RunConfig, TrainingConfig, Versions};
use crate::run_folder::{MetricsWriter, RunFolder};
use crate::trainer::{Schedule, Trainer};
use crate::{machine, output, plot};

/// The files of a run, beside the model and its settings.
const METRICS_FILE: &str = "metrics.jsonl";
const PICTURES: [&str; 2] = ["loss.svg", "loss.png"];

/// The most losses that a run writes down and draws. A longer run keeps every second one, and so on.
const MOST_LOSSES: u64 = 1_000_000;

/// How many names are made up at the end, and their seed: the defaults of `chainrule sample`.
const SAMPLES: usize = 20;
const SAMPLE_SEED: u64 = 7;

/// After so many steps a model should have learned something.
const MANY_STEPS: u64 = 500;

/// A line of the metrics.
#[derive(Serialize)]
struct StepRow {
    step: u64,
    loss: f32,
    lr: f64,
}

/// The last line of the metrics.
#[derive(Serialize)]
struct FinalRow<'a> {
    r#final: bool,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// The results of a run. A loss that is not finite is `null` in JSON.
#[derive(Serialize)]
struct Summary {
    steps: u64,
    parameters: usize,
    train_loss: f64,
    val_loss: f64,
    test_loss: f64,
    seconds: f64,
    us_per_step: Option<f64>,
    samples: Vec<String>,
    interrupted: bool,
    folder: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// How the training loop ended.
enum End {
    Finished,
    Interrupted,
    /// The step whose loss was not finite, that loss, and why.
    NotFinite {
        step: u64,
        loss: f64,
        why: String,
    },
    /// The metrics could not be written.
    Metrics(Error),
}

/// What the training loop leaves behind, beside the trained model.
struct Trained {
    end: End,
    steps: u64,
    seconds: f64,
    losses: Vec<(u64, f64)>,
    /// The table of the last step: parameters and intermediates.
    table: Option<(Vec<Row>, Vec<Row>)>,
}

/// Runs the command.
pub fn run(args: &TrainNames) -> Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let list = names::read_list(args.data.as_deref())?;
    let data = NamesData::split(&list, args.context)?;
    if data.train.count < args.batch {
        bail!(
            "{}: {} training examples are fewer than a batch of {}; give a longer list or a smaller \
             --batch",
            list.label(),
            data.train.count,
            args.batch
        );
    }
    let folder = RunFolder::create("names", args.out.as_deref(), args.force)?;
    let metrics = folder.metrics(METRICS_FILE)?;
    machine::use_threads(args.threads);
    let mut generator = Generator::manual_seed(args.seed);
    let sizes = ModelConfig::names(args, 0).sizes();
    let mut model = NamesMlp::try_new(sizes, &mut generator)?;
    if !args.fused {
        model = model.with_primitive_batch_norm();
    }
    let mut run = Run { args, list: &list, data: &data, folder: &folder, model: &model };
    run.announce();
    run.whole(generator, metrics, &interrupt)
}

/// All that a run works with.
struct Run<'a> {
    args: &'a TrainNames,
    list: &'a NameList,
    data: &'a NamesData,
    folder: &'a RunFolder,
    model: &'a NamesMlp,
}

impl Run<'_> {
    /// Says what is about to happen. A reader who has gone is met again when the results are printed.
    fn announce(&self) {
        if !self.args.json {
            let _ = output::line(&format!(
                "{} names of {}: {} examples to train on; {} parameters; results in {}",
                report::count(self.list.len() as u64),
                self.list.label(),
                report::count(self.data.train.count as u64),
                report::count(self.model.parameter_count() as u64),
                self.folder.path().display()
            ));
        }
    }

    /// Trains, saves and reports.
    fn whole(
        &mut self,
        generator: Generator,
        mut metrics: MetricsWriter,
        interrupt: &Interrupt,
    ) -> Result<ExitCode> {
        let mut trained = self.train(generator, &mut metrics, interrupt)?;
        names::calibrate(self.model, &self.data.train)?;
        names::save(self.folder, self.model, &self.config(trained.steps))?;
        let summary = self.summary(&trained)?;
        if let End::Metrics(error) = trained.end {
            return Err(error.context(format!(
                "stopped after {} and saved the model in {}",
                report::steps(trained.steps),
                summary.folder
            )));
        }
        metrics.record(&FinalRow { r#final: true, summary: &summary })?;
        metrics.finish()?;
        self.draw(&trained)?;
        if self.args.json {
            output::json(&summary)?;
        } else {
            self.print(&summary, trained.table.take())?;
        }
        self.farewell(&summary)
    }

    /// The training loop. A step costs some 30 microseconds, so it does little beside the step itself.
    fn train(
        &self,
        generator: Generator,
        metrics: &mut MetricsWriter,
        interrupt: &Interrupt,
    ) -> Result<Trained> {
        let args = self.args;
        let schedule = Schedule { lr: args.lr, decay_at: args.decay_at() };
        let mut trainer =
            Trainer::new(self.model, &self.data.train, args.batch, schedule, generator)?;
        let mut progress = Progress::new(args.steps, args.quiet, args.json);
        let stride = args.steps.div_ceil(MOST_LOSSES);
        let mut losses = Vec::new();
        let mut table = None;
        let mut end = End::Finished;
        let began = Instant::now();
        while trainer.done < args.steps {
            if interrupt.asked() {
                end = End::Interrupted;
                break;
            }
            let is_last = trainer.done + 1 == args.steps;
            let (step, lr) = (trainer.done + 1, trainer.rate());
            // The table of the last step shows what only the tape has.
            let loss = match (is_last, args.eager) {
                (true, _) => Some(record_all(|| trainer.forward())?.named("loss")),
                (false, true) => Some(trainer.forward()?),
                (false, false) => None,
            };
            let value = match &loss {
                Some(loss) => loss.try_item()?,
                None => trainer.compiled()?,
            };
            if !value.is_finite() {
                let why = trainer.explain()?.0;
                end = End::NotFinite { step, loss: value, why };
                break;
            }
            if let Some(loss) = loss {
                trainer.backward(&loss)?;
                if is_last {
                    table = Some(report::rows(&self.model.named_parameters(), &loss, lr));
                }
                trainer.step()?;
            }
            progress.step(step, value);
            if step.is_multiple_of(stride) || is_last {
                losses.push((step, value));
                if let Err(error) = metrics.record(&StepRow { step, loss: value as f32, lr }) {
                    end = End::Metrics(error);
                    break;
                }
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        progress.finish();
        Ok(Trained { end, steps: trainer.done, seconds, losses, table })
    }

    fn config(&self, steps_taken: u64) -> RunConfig {
        let args = self.args;
        let file = args.data.as_ref().map(|path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            path.display().to_string()
        });
        RunConfig {
            model: ModelConfig::names(args, self.model.parameter_count()),
            training: TrainingConfig {
                steps: args.steps,
                steps_taken,
                batch: args.batch,
                lr: args.lr,
                lr_decay_at: args.decay_at(),
                seed: args.seed,
                fused: args.fused,
            },
            data: DataConfig {
                label: self.list.label().to_owned(),
                file,
                names: self.list.len(),
                training_examples: self.data.train.count,
            },
            versions: Versions::current(),
        }
    }

    /// What went wrong in training, in one line.
    fn error(&self, end: &End) -> Option<String> {
        let End::NotFinite { step, loss, why } = end else {
            return None;
        };
        let lr = self.args.lr;
        Some(format!("the loss of step {step} is {loss}: {why}; try a smaller --lr (it is {lr:?})"))
    }

    /// The losses over the three parts, and some names.
    fn summary(&self, trained: &Trained) -> Result<Summary> {
        let loss = |pairs| names::mean_loss(self.model, pairs);
        let train_loss = loss(&self.data.train)?;
        let mut samples = Vec::new();
        let sampled = names::sample(self.model, SAMPLES, SAMPLE_SEED, |name| {
            samples.push(name);
            Ok(())
        });
        let mut error = self.error(&trained.end);
        if !train_loss.is_finite() {
            // No names come from such a model; the loss says what is wrong with it.
            error.get_or_insert_with(|| {
                format!(
                    "the loss over the training set is {train_loss} after the last update; try a \
                     smaller --lr (it is {:?})",
                    self.args.lr
                )
            });
        } else {
            sampled?;
        }
        Ok(Summary {
            steps: trained.steps,
            parameters: self.model.parameter_count(),
            train_loss,
            val_loss: loss(&self.data.validation)?,
            test_loss: loss(&self.data.test)?,
            seconds: round(trained.seconds, 6),
            us_per_step: (trained.steps > 0)
                .then(|| round(trained.seconds * 1e6 / trained.steps as f64, 3)),
            samples,
            interrupted: matches!(trained.end, End::Interrupted),
            folder: self.folder.path().display().to_string(),
            error,
        })
    }

    fn draw(&self, trained: &Trained) -> Result<()> {
        let title = format!("names: loss over {}", report::steps(trained.steps));
        let [svg, png] = PICTURES.map(|name| self.folder.file(name));
        plot::loss_curve(&trained.losses, &title, &svg, &png)
    }

    fn print(&self, summary: &Summary, table: Option<(Vec<Row>, Vec<Row>)>) -> Result<()> {
        if let Some((parameters, intermediates)) = table {
            output::line("\nvalues and gradients of the last step")?;
            output::line(&report::table(&parameters, &intermediates)?)?;
        }
        if !summary.samples.is_empty() {
            output::line("\nnames that the model made up")?;
            output::line(&report::wrap(&summary.samples))?;
        }
        output::line(&format!(
            "\n{} in {:.2?}, {:.1} us each; {} parameters",
            report::steps(summary.steps),
            Duration::from_secs_f64(summary.seconds),
            summary.us_per_step.unwrap_or(0.0),
            report::count(summary.parameters as u64)
        ))?;
        output::line(&format!(
            "loss: train {:.4}, validation {:.4}, test {:.4}",
            summary.train_loss, summary.val_loss, summary.test_loss
        ))
    }

    /// The last line, and the status.
    fn farewell(&self, summary: &Summary) -> Result<ExitCode> {
        let steps = report::steps(summary.steps);
        let folder = &summary.folder;
        if let Some(error) = &summary.error {
            bail!("{error}; the model after {steps} is in {folder}");
        }
        if summary.interrupted {
            let text = format!("interrupted after {steps}; the model so far is in {folder}");
            match self.args.json {
                true => output::complain(&text),
                false => output::line(&text)?,
            }
            return Ok(ExitCode::from(interrupt::EXIT_STATUS as u8));
        }
        let guessing = (self.model.config().symbols as f64).ln();
        if summary.val_loss > guessing && summary.steps >= MANY_STEPS {
            output::complain(&format!(
                "warning: the model is worse than guessing (loss {:.2}, guessing {guessing:.2}); try a \
                 smaller --lr (it is {:?})",
                summary.val_loss, self.args.lr
            ));
        }
        if !self.args.json {
            output::line(&format!("the model is in {folder}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `x` with so many digits after the point.
fn round(x: f64, digits: i32) -> f64 {
    let unit = 10f64.powi(digits);
    (x * unit).round() / unit
}
