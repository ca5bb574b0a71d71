//! Common options of all `train` commands, and the commands for digits, lines, moons and text.

use std::path::PathBuf;

use chainrule::DType;
use chainrule::gpu::{DeviceName, Precision};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::limits::{
    above_zero, accumulate, batch, context, decay, digits, epochs, examples, last_rate, layers,
    points, recompute, share, warm_up, width,
};
use super::{MAX_NUMBERS, learning_rate, seed, threads};

/// The most hidden layers of a model of digits.
const MAX_LAYERS: usize = 256;

/// The options of every training.
#[derive(Debug, Clone, PartialEq, Default, Args)]
pub struct Common {
    /// Number of passes over all examples [default: see below]
    #[arg(long, value_name = "N", value_parser = epochs, allow_negative_numbers = true)]
    pub epochs: Option<u64>,

    /// Number of training steps, instead of epochs [default: see below]
    #[arg(long, value_name = "N", value_parser = super::steps, conflicts_with = "epochs")]
    #[arg(allow_negative_numbers = true)]
    pub steps: Option<u64>,

    /// Number of examples in a batch [default: see below]
    #[arg(long, value_name = "N", value_parser = batch, allow_negative_numbers = true)]
    pub batch: Option<usize>,

    /// Learning rate, the highest of the schedule [default: see below]
    #[arg(long, value_name = "RATE", value_parser = learning_rate, allow_negative_numbers = true)]
    pub lr: Option<f64>,

    /// The optimizer [default: see below]
    #[arg(long, value_enum)]
    pub optimizer: Option<OptimizerKind>,

    /// Schedule of the learning rate over the run [default: see below]
    #[arg(long, value_enum)]
    pub schedule: Option<ScheduleKind>,

    /// Steps in which the learning rate rises at first, for the cosine schedule
    #[arg(long, value_name = "N", value_parser = warm_up, allow_negative_numbers = true)]
    pub warm_up: Option<u64>,

    /// Decay rate of the momentum, for sgd and rmsprop
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    pub momentum: Option<f64>,

    /// Weight decay, of matrices only
    #[arg(long, value_name = "RATE", value_parser = decay, allow_negative_numbers = true)]
    pub weight_decay: Option<f64>,

    /// The largest norm of the gradients; longer ones are shortened
    #[arg(long, value_name = "NORM", value_parser = above_zero, allow_negative_numbers = true)]
    pub clip: Option<f64>,

    /// Batches that make one update together
    #[arg(long, value_name = "N", value_parser = accumulate, allow_negative_numbers = true)]
    pub accumulate: Option<usize>,

    /// Average the weights with this decay, such as 0.999, and use the average
    #[arg(long, value_name = "DECAY", value_parser = share, allow_negative_numbers = true)]
    pub ema: Option<f64>,

    /// Stop after N measurements in a row that are no better than the best
    #[arg(long, value_name = "N", value_parser = epochs, allow_negative_numbers = true)]
    pub patience: Option<u64>,

    /// Steps between two measurements of the model [default: an epoch, or a tenth of the run]
    ///
    /// Each has the mean loss of the steps before it, of an epoch at most.
    #[arg(long, value_name = "STEPS", value_parser = super::steps, allow_negative_numbers = true)]
    pub eval_every: Option<u64>,

    /// Steps between two checkpoints [default: with each measurement]
    #[arg(long, value_name = "STEPS", value_parser = super::steps, allow_negative_numbers = true)]
    pub save_every: Option<u64>,

    /// Steps between two lines of metrics [default: 1]
    #[arg(long, value_name = "STEPS", value_parser = super::steps, allow_negative_numbers = true)]
    pub log_every: Option<u64>,

    /// Do not watch the training for what goes wrong
    #[arg(long)]
    pub no_monitor: bool,

    /// Show the training on a page, whose address is printed, to be paused, stepped and steered
    #[arg(long)]
    pub studio: bool,

    /// Take orders from standard input, as a fork of a run with a page does
    #[arg(long, hide = true)]
    pub steered: bool,

    /// Steps between looks at weights and gradients [default: 100 or more, in 2 % of the time]
    #[arg(long, value_name = "STEPS", value_parser = super::steps, allow_negative_numbers = true)]
    #[arg(conflicts_with = "no_monitor")]
    pub monitor_every: Option<u64>,

    /// Write an event file of TensorBoard into the folder of the run
    #[arg(long)]
    pub tensorboard: bool,

    /// Seed of all random numbers; the same seed gives the same run
    #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// Say afterwards why it does not learn, by short runs for S seconds [default: 4 to 60]
    #[arg(long, value_name = "S", num_args = 0..=1, require_equals = true)]
    #[arg(value_parser = super::seconds, conflicts_with_all = ["resume", "find_lr", "dry_run"])]
    pub diagnose: Option<Option<f64>>,

    /// Run each operation when it is called instead of the step as a program
    #[arg(long)]
    pub eager: bool,

    /// Round the operands of products to this dtype in the steps; weights stay f32
    #[arg(long, value_enum, value_name = "DTYPE")]
    pub autocast: Option<Autocast>,

    /// Run the steps on a device: cpu, cuda[:N] or wgpu[:N] [default: cpu]
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["eager", "find_lr"])]
    pub device: Option<DeviceName>,

    /// Products of f32 on the device: f32, tf32 or bf16 [default: f32]
    #[arg(long, value_name = "PRECISION", requires = "device")]
    pub precision: Option<Precision>,

    /// Train on the processor where the device is missing or cannot run the step
    #[arg(long, requires = "device")]
    pub or_cpu: bool,

    /// Learn the first batch only: the loss of a model that works goes to about zero
    #[arg(long)]
    pub overfit_batch: bool,

    /// Folder for the results [default: a new one in runs/]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Replace the files of an earlier run in the folder; other files there stay
    #[arg(long)]
    pub force: bool,

    /// Go on with a run from its last checkpoint, with its settings; --steps or --epochs may be
    /// raised
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "batch", "lr", "optimizer", "schedule", "warm_up", "momentum", "weight_decay", "clip", "accumulate", "ema",
        "patience", "eval_every", "save_every", "log_every", "seed", "autocast", "overfit_batch", "out", "force", "find_lr", "dry_run",
    ])]
    pub resume: Option<PathBuf>,

    /// Go on from the checkpoint in the folder of --out if there is one, else begin
    #[arg(long, requires = "out", conflicts_with_all = ["resume", "find_lr", "dry_run"])]
    pub go_on: bool,

    /// The checkpoint to go on from
    #[arg(long, value_enum, default_value_t = KeptKind::Last, requires = "resume")]
    pub checkpoint: KeptKind,

    /// Go on although the data are not those that the run began with
    #[arg(long, requires = "resume")]
    pub data_changed: bool,

    /// Try growing learning rates, draw how the loss answers, and name a good one
    #[arg(long, conflicts_with = "dry_run")]
    pub find_lr: bool,

    /// Check settings, data and one step, say what would be done, and write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Print the model as a table before training
    #[arg(long)]
    pub summary: bool,

    /// Print the results as one JSON object, and no progress
    #[arg(long)]
    pub json: bool,

    /// Print no progress
    #[arg(long)]
    pub quiet: bool,

    /// Number of threads; the results do not depend on it [default: one a core]
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<usize>,

    /// Seconds without a sign of life after which another rank counts as gone [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = rank_timeout)]
    pub rank_timeout: Option<u64>,

    /// Seconds for all ranks to come [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = rank_timeout)]
    pub rank_start: Option<u64>,
}

/// Seconds of a time to wait: a second to a day.
fn rank_timeout(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(seconds @ 1..=86_400) => Ok(seconds),
        _ => Err("give seconds from 1 to 86400".into()),
    }
}

/// Dtype of the operands of products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Autocast {
    /// Eight bits of precision, the exponents of f32
    Bf16,
}

impl Autocast {
    /// The dtype itself.
    pub fn dtype(self) -> DType {
        match self {
            Autocast::Bf16 => DType::BF16,
        }
    }
}

/// Kind of an optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// The gradient times the rate, with --momentum
    Sgd,
    /// Kingma and Ba 2015
    Adam,
    /// Adam with the decay apart from the gradient
    Adamw,
    /// The gradient over its running size
    Rmsprop,
    /// The gradient over the root of the sum of its squares so far
    Adagrad,
    /// The sign of the momentum; rates a tenth of Adam's
    Lion,
    /// Muon for matrices with a rate about 0.02, AdamW with 0.015 of it for the rest
    Muon,
}

/// Kind of a schedule of the learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleKind {
    /// Not at all
    Constant,
    /// Up in the warm-up, then down along half a cosine to a tenth, or to 0 for digits
    Cosine,
    /// A tenth in the second half
    Step,
    /// A tenth in the last quarter
    Late,
    /// Up and down again, after Smith
    Onecycle,
}

/// The checkpoints of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum KeptKind {
    /// The newest
    #[default]
    Last,
    /// The one before the newest
    Earlier,
    /// The one with the best measure
    Best,
}

/// `chainrule train digits`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    after_help = "Defaults: 5 epochs, batch 512, adamw with rate 0.001 and weight decay 0.01, cosine schedule;
for cnn 10 epochs, batch 64, rate 0.002, weight decay 0.05, average of the weights 0.999.

Examples:
  chainrule train digits
  chainrule train digits --data ~/mnist --epochs 20 --ema 0.999
  chainrule train digits --data ~/mnist --optimizer rmsprop --lr 0.0001 --momentum 0.9
  chainrule train digits --data ~/mnist --model cnn
  chainrule train digits --resume runs/digits-0001 --epochs 10"
)]
pub struct TrainDigits {
    /// A folder with the four files of MNIST, gzipped or not [default: digits that the program
    /// draws]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub data: Option<PathBuf>,

    /// The model
    #[arg(long, value_enum, default_value_t = DigitsModelKind::Mlp)]
    pub model: DigitsModelKind,

    /// Widths of the hidden layers of the mlp
    #[arg(long, value_name = "N", value_parser = width, value_delimiter = ',')]
    #[arg(default_values_t = [1024, 1024, 1024], allow_negative_numbers = true)]
    pub hidden: Vec<usize>,

    /// Source of the gradients
    #[arg(long, value_enum, default_value_t = Backprop::Autograd)]
    pub backprop: Backprop,

    /// Number of digits drawn to train on
    #[arg(long, value_name = "N", default_value_t = 60_000, value_parser = examples)]
    #[arg(allow_negative_numbers = true, conflicts_with = "data")]
    pub examples: usize,

    #[command(flatten)]
    pub common: Common,
}

/// A model of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DigitsModelKind {
    /// Fully connected layers with ReLU
    Mlp,
    /// Two convolutions with max-pooling, and two fully connected layers
    Cnn,
}

/// Source of the gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backprop {
    /// The tape
    Autograd,
    /// Layers whose backward pass is written by hand
    Explicit,
}

/// `chainrule train regression`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Defaults: 400 steps on all rows, sgd with rate 0.5, constant.

Examples:
  chainrule train regression
  chainrule train regression --data temperatures.csv --json")]
pub struct TrainRegression {
    /// A CSV file with two columns: the first explains the second [default: temperatures, made up]
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub data: Option<PathBuf>,

    #[command(flatten)]
    pub common: Common,
}

/// `chainrule train moons`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Defaults: 1,000 steps, batch 64, adam with rate 0.01, constant.

Examples:
  chainrule train moons
  chainrule train moons --noise 0.3 --hidden 32 --weight-decay 0.01")]
pub struct TrainMoons {
    /// Number of points on the two moons together
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = points)]
    #[arg(allow_negative_numbers = true)]
    pub points: usize,

    /// Standard deviation of the points from the moons
    #[arg(long, value_name = "DEVIATION", default_value_t = 0.15, value_parser = decay)]
    #[arg(allow_negative_numbers = true)]
    pub noise: f64,

    /// Width of the two hidden layers
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = width)]
    #[arg(allow_negative_numbers = true)]
    pub hidden: usize,

    #[command(flatten)]
    pub common: Common,
}

/// `chainrule train names --model ...`, for the models that have no options of their own
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    after_help = "Defaults: 50,000 steps, batch 32, adamw with rate 0.0005, betas 0.9 and 0.99,
weight decay 0.01, constant;
for transformer 20,000 steps, weight decay 0.3, cosine schedule, average of the weights with decay 0.999;
for wavenet 200,000 steps, sgd with rate 0.1 and a tenth of it in the last quarter.

Examples:
  chainrule train names --model gru
  chainrule train names --model transformer --data names.txt
  chainrule train names --resume runs/names-0001"
)]
pub struct TrainFamily {
    /// A text file with one name a line, letters a-z only [default: the built-in list]
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub data: Option<PathBuf>,

    /// The model
    #[arg(long, value_enum, required_unless_present = "resume", conflicts_with = "resume")]
    pub model: Option<FamilyKind>,

    #[command(flatten)]
    pub common: Common,
}

/// A model of names beside the main one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FamilyKind {
    /// A table of pairs, 729 numbers
    Bigram,
    /// All vectors so far through a hidden layer, 69,147
    Mlp,
    /// Neighbours joined two by two, 76,579
    Wavenet,
    /// A recurrent net, 11,803
    Rnn,
    /// A gated recurrent unit, 28,315
    Gru,
    /// Long short-term memory, 36,763
    Lstm,
    /// The mean of the vectors so far, 12,827
    Bow,
    /// Four blocks of attention, 204,544
    Transformer,
}

/// `chainrule train text`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    after_help = "Defaults: 2,000 steps, batch 12 (64 for sums), adamw with rate 0.001 (betas 0.9 and 0.99), weight decay 0.1
on matrices, cosine schedule with a warm-up of 100 steps, gradients clipped to norm 1.

Examples:
  chainrule train text --data shakespeare.txt
  chainrule train text --digits 2 --steps 5000
  chainrule sample runs/text-0001 --start \"ROMEO:\""
)]
pub struct TrainText {
    /// A text file in UTF-8 [default: sums such as 37+5=42, which the program writes]
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub data: Option<PathBuf>,

    /// Largest number of digits in the numbers of the sums
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = digits)]
    #[arg(allow_negative_numbers = true, conflicts_with = "data")]
    pub digits: u32,

    /// Number of blocks of the model
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = layers)]
    #[arg(allow_negative_numbers = true)]
    pub layers: usize,

    /// Number of heads of attention; they divide the width
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = layers)]
    #[arg(allow_negative_numbers = true)]
    pub heads: usize,

    /// Size of a symbol's embedding
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = width)]
    #[arg(allow_negative_numbers = true)]
    pub width: usize,

    /// Number of symbols that the model sees at most
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = context)]
    #[arg(allow_negative_numbers = true)]
    pub context: usize,

    /// Keep the input of every Nth block alone and compute the rest again: less memory, more time
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = recompute)]
    #[arg(allow_negative_numbers = true)]
    pub recompute: usize,

    /// The share of numbers that training drops
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    #[arg(allow_negative_numbers = true)]
    pub dropout: f64,

    #[command(flatten)]
    pub common: Common,
}

/// The limits of the options above, for settings that come from a file: each goes through the
/// reader of its option.
pub fn check_settings(settings: &crate::train::Settings) -> Result<(), String> {
    use super::steps;

    fn one<T, R>(
        name: &str,
        value: Option<T>,
        limits: fn(&str) -> Result<R, String>,
    ) -> Result<(), String>
    where
        T: std::fmt::Display,
    {
        let Some(value) = value else { return Ok(()) };
        let text = value.to_string();
        limits(&text).map(drop).map_err(|why| format!("{name} = {text} under [training]: {why}"))
    }
    let s = settings;
    one("epochs", s.epochs, epochs)?;
    // Steps are counted from epochs, if there are any.
    one("steps", s.epochs.is_none().then_some(s.steps), steps)?;
    one("batch", Some(s.batch), batch)?;
    one("lr", Some(s.lr), learning_rate)?;
    one("last_lr", Some(s.last_lr), last_rate)?;
    one("betas", Some(s.betas.0), share)?;
    one("betas", Some(s.betas.1), share)?;
    one("tenth_at", s.tenth_at, warm_up)?;
    one("warm_up", Some(s.warm_up), warm_up)?;
    one("momentum", Some(s.momentum), share)?;
    one("weight_decay", Some(s.weight_decay), decay)?;
    one("clip", s.clip, above_zero)?;
    one("accumulate", Some(s.accumulate), accumulate)?;
    one("ema", s.ema, share)?;
    one("patience", s.patience, epochs)?;
    one("eval_every", s.eval_every, steps)?;
    one("save_every", s.save_every, steps)?;
    one("log_every", s.log_every, steps)?;
    one("seed", Some(s.seed), seed)
}

/// An error if a model has too many weights, or a step on it keeps too many values.
fn fits(weights: u64, values: u64, smaller: &str) -> Result<(), String> {
    for (count, what) in [(weights, "weights"), (values, "values in one layer for a batch")] {
        if count > MAX_NUMBERS {
            return Err(format!(
                "the model has {count} {what}, more than {MAX_NUMBERS}; make {smaller} smaller"
            ));
        }
    }
    Ok(())
}

/// The limits of a model of digits.
pub fn check_digits(hidden: &[usize], examples: usize, batch_size: usize) -> Result<(), String> {
    if hidden.len() > MAX_LAYERS {
        return Err(format!("{} hidden layers are more than {MAX_LAYERS}", hidden.len()));
    }
    hidden.iter().try_for_each(|n| width(&n.to_string()).map(drop))?;
    self::examples(&examples.to_string())?;
    let sizes: Vec<u64> =
        [784].into_iter().chain(hidden.iter().map(|&n| n as u64)).chain([10]).collect();
    let weights = sizes.windows(2).map(|pair| pair[0] * pair[1]).sum();
    // A batch is no larger than the set.
    let widest = sizes.iter().max().unwrap_or(&1) * batch_size.min(examples.max(70_000)) as u64;
    fits(weights, widest, "--hidden or --batch")
}

/// The limits of the moons and of their model.
pub fn check_moons(
    points: usize,
    noise: f64,
    hidden: usize,
    batch_size: usize,
) -> Result<(), String> {
    self::points(&points.to_string())?;
    decay(&noise.to_string())?;
    width(&hidden.to_string())?;
    let (h, widest) = (hidden as u64, batch_size.max(points) as u64);
    fits(h * h, widest.saturating_mul(h), "--hidden, --batch or --points")
}

/// The sizes of a model of text.
pub struct TextSizes {
    pub digits: u32,
    pub layers: usize,
    pub heads: usize,
    pub width: usize,
    pub context: usize,
    pub recompute: usize,
    pub dropout: f64,
    pub symbols: usize,
}

/// The limits of a model of text.
pub fn check_text(sizes: &TextSizes, batch_size: usize) -> Result<(), String> {
    digits(&sizes.digits.to_string())?;
    layers(&sizes.layers.to_string())?;
    layers(&sizes.heads.to_string())?;
    width(&sizes.width.to_string())?;
    context(&sizes.context.to_string())?;
    recompute(&sizes.recompute.to_string())?;
    share(&sizes.dropout.to_string())?;
    if !sizes.width.is_multiple_of(sizes.heads) {
        return Err(format!(
            "--width {} cannot be shared among --heads {}; choose a multiple",
            sizes.width, sizes.heads
        ));
    }
    let [layers, heads, w, seen, symbols, batch] =
        [sizes.layers, sizes.heads, sizes.width, sizes.context, sizes.symbols, batch_size]
            .map(|n| n as u64);
    let weights = 12 * layers * w * w + (symbols + seen) * w;
    let places = batch * seen;
    let widest = places.saturating_mul((4 * w).max(heads * seen).max(symbols));
    fits(weights, widest, "--width, --layers, --context or --batch")
}
