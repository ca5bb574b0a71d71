//! `chainrule train names`: the main model of names, trained, saved, and told of.

use std::cell::RefCell;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use chainrule::data::{Batch, RandomBatches, TensorDataset};
use chainrule::nn::Module;
use chainrule::train::{End, Evaluation, Metrics, Task};
use chainrule::{Generator, Tensor};
use chainrule_lab::models::NamesMlp;
use serde_json::{Map, Value, json};

use crate::args::TrainNames;
use crate::args::names::BATCH;
use crate::args::train::OptimizerKind;
use crate::names::{self, KIND, MainModelConfig, NamesData};
use crate::output;
use crate::report::{self, Row};
use crate::train::{Defaults, Outcome, Ran, Session};

const DEFAULTS: Defaults = Defaults {
    steps: 20_000,
    batch: BATCH,
    lr: 0.1,
    optimizer: OptimizerKind::Sgd,
    seed: 2_147_483_647,
    ..Defaults::new()
};

/// Number of names made up at the end, and their seed: the defaults of `chainrule sample`.
const SAMPLES: usize = 20;
const SAMPLE_SEED: u64 = 7;

/// Steps after which a model should have learned something.
const MANY_STEPS: u64 = 500;

/// The table of the last step: parameters and intermediates.
type Table = (Vec<Row>, Vec<Row>);

struct MainTask<'a> {
    model: NamesMlp,
    data: &'a NamesData,
    table: RefCell<Option<Table>>,
}

impl Task for MainTask<'_> {
    fn module(&self) -> &dyn Module {
        &self.model
    }

    fn loss(&self, batch: &Batch) -> chainrule::Result<Tensor> {
        self.model.try_forward(&batch.x)?.try_cross_entropy(&batch.y)
    }

    fn evaluation(&self) -> Option<&dyn Evaluation> {
        Some(self)
    }

    fn look(&self, loss: &Tensor, lr: f64) {
        *self.table.borrow_mut() = Some(report::rows(&self.model.named_parameters(), loss, lr));
    }
}

impl Evaluation for MainTask<'_> {
    fn parts(&self) -> usize {
        names::parts(&self.model, &self.data.validation)
    }

    /// Batch norm gets the statistics of all training examples first.
    fn prepare(&self) -> chainrule::Result<()> {
        names::calibrate(&self.model, &self.data.train)?;
        self.model.eval();
        Ok(())
    }

    fn part(&self, number: usize) -> chainrule::Result<Vec<f64>> {
        names::part_loss(&self.model, &self.data.validation, number).map(|sum| vec![sum])
    }

    fn measures(&self, sums: &[f64]) -> Metrics {
        sums.first()
            .map(|sum| ("val_loss", sum / self.data.validation.count as f64))
            .into_iter()
            .collect()
    }
}

/// Runs the command.
pub fn run(args: &TrainNames) -> Result<ExitCode> {
    let model = MainModelConfig::of(args);
    let (mut session, mut model) = Session::open(KIND, &args.common, &DEFAULTS, model)?;
    let list = names::read_list(model.file())?;
    let data = NamesData::split(&list, model.context)?;
    session.set_data(data.sums(&list))?;
    let batch = session.settings.batch;
    if data.train.count < batch {
        bail!(
            "{}: {} training examples are fewer than a batch of {batch}; give a longer list or a smaller --batch",
            list.label(),
            data.train.count,
        );
    }
    model.fill(&list, &data);
    session.set_model(&model)?;
    let seed = session.settings.seed;
    let mut generator = Generator::manual_seed(seed);
    let net = model.build(&mut generator)?;
    let pairs = &data.train;
    let x = Tensor::try_from_slice(&pairs.contexts, [pairs.count, model.context])?;
    let y = Tensor::try_from_slice(&pairs.targets, [pairs.count])?;
    let dataset = Arc::new(TensorDataset::try_new(&x, &y)?);
    let batches = RandomBatches::try_new(dataset, batch, generator)?;
    if args.common.resume.is_none() && args.common.schedule.is_none() {
        session.settings.count_steps(chainrule::data::Batches::per_epoch(&batches));
        let half = session.settings.steps / 2;
        session.settings.tenth_at = Some(args.lr_decay_at.unwrap_or(half));
    }
    // The program keeps to the formulas of the code, and the last step is shown op by op.
    session.ways.simplified = false;
    session.ways.looks_at_the_last = true;
    session.ways.measures = false;
    session.of_data = Some(format!(
        "{} names of {}: {} examples to train on",
        report::count(list.len() as u64),
        list.label(),
        report::count(pairs.count as u64)
    ));
    let task = MainTask { model: net, data: &data, table: RefCell::new(None) };
    if args.common.summary && !args.common.json {
        for (name, p) in task.model.named_parameters() {
            output::line(&format!("{name:<8} {:<12} {}", p.shape().to_string(), p.numel()))?;
        }
    }
    match session.run(&task, Box::new(batches))? {
        Outcome::Done(status) => Ok(status),
        Outcome::Ran(ran) => finish(&task, ran),
    }
}

/// The losses over the three parts, some names, and what is odd about them.
fn finish(task: &MainTask<'_>, mut ran: Box<Ran>) -> Result<ExitCode> {
    let MainTask { model, data, .. } = task;
    let loss = |pairs| names::mean_loss(model, pairs);
    let (train, validation, test) =
        (loss(&data.train)?, loss(&data.validation)?, loss(&data.test)?);
    let lr = ran.lr;
    let mut samples = Vec::new();
    // No names come from a model with such a loss; the loss says what is wrong with it.
    let bad = [("training", train), ("validation", validation), ("test", test)];
    if train.is_finite() {
        names::sample(model, SAMPLES, SAMPLE_SEED, |name| {
            samples.push(name);
            Ok(())
        })?;
    }
    if let Some((which, loss)) = bad.into_iter().find(|(_, loss)| !loss.is_finite()) {
        ran.complain(format!(
            "the loss over the {which} set is {loss} after the last update; try a smaller --lr (it is {lr:?})"
        ));
    }
    let guessing = (model.config().symbols as f64).ln();
    if validation > guessing && ran.steps >= MANY_STEPS && matches!(ran.end, End::Finished) {
        output::complain(&format!(
            "warning: the model is worse than guessing (loss {validation:.2}, guessing {guessing:.2}); try a smaller --lr (it is {lr:?})"
        ));
    }
    let mut lines = Vec::new();
    if let Some((parameters, intermediates)) = task.table.take() {
        lines.push("\nvalues and gradients of the last step".to_owned());
        lines.push(report::table(&parameters, &intermediates)?);
    }
    if !samples.is_empty() {
        lines.push("\nnames that the model made up".to_owned());
        lines.push(format!("{}\n", report::wrap(&samples)));
    }
    lines.push(format!(
        "loss: train {}, validation {}, test {}; {} parameters",
        report::measure(train),
        report::measure(validation),
        report::measure(test),
        report::count(model.parameter_count() as u64)
    ));
    let more: [(&str, Value); 4] = [
        ("train_loss", json!(train)),
        ("val_loss", json!(validation)),
        ("test_loss", json!(test)),
        ("samples", json!(samples)),
    ];
    ran.numbers.clear();
    let more = more.map(|(name, value)| (name.to_owned(), value)).into_iter();
    ran.finish(more.collect::<Map<_, _>>(), &lines)
}
