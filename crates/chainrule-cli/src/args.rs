//! The command line: what can be asked for, and the limits of every number.
//!
//! A value that makes no sense is refused here, with one line that says what is wrong and what to do
//! (exit status 2), so that the rest of the program meets sensible settings only.

mod check;
mod explain;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub use check::{Check, CheckMistakes, CheckNames, CheckOps};
pub use explain::Explain;

/// The most steps of a run.
const MAX_STEPS: u64 = 1_000_000_000;
/// The most numbers that the weights, or the values of one layer for a batch, may have: 100 million
/// take 0.4 GB, and training keeps several times that.
const MAX_NUMBERS: u64 = 100_000_000;
/// Symbols of the names models: `.` and a to z.
const SYMBOLS: u64 = 27;
/// What the sizes of the model are called, and the most that they may be.
const HIDDEN: (&str, u32) = ("the width of the hidden layer", 65_536);
const CONTEXT: (&str, u32) = ("the context", 64);
const EMBEDDING: (&str, u32) = ("the size of the embedding", 4_096);

/// Train small models, and look into every gradient.
#[derive(Debug, Parser)]
#[command(name = "chainrule", version, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a model
    #[command(subcommand)]
    Train(Train),
    /// Print new names from a trained model
    Sample(Sample),
    /// Print the loss of a trained model on a list of names
    Eval(Eval),
    /// Measure how long a training step takes
    Bench(Bench),
    /// Check gradients, and exit with status 1 if one is wrong
    #[command(subcommand)]
    Check(Check),
    /// Show how the backward pass of a model or a formula is simplified, step by step
    Explain(Explain),
}

/// The models that can be trained.
#[derive(Debug, Subcommand)]
pub enum Train {
    /// A small network that learns to make up names, one letter after the other
    Names(TrainNames),
}

/// `chainrule train names`
#[derive(Debug, Clone, PartialEq, Args)]
pub struct TrainNames {
    /// A text file with one name a line, letters a-z only [default: the built-in list]
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,

    /// How many training steps to take
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = steps)]
    #[arg(allow_negative_numbers = true)]
    pub steps: u64,

    /// How many examples each step learns from
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = batch)]
    #[arg(allow_negative_numbers = true)]
    pub batch: usize,

    /// Width of the hidden layer, in units
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = hidden)]
    #[arg(allow_negative_numbers = true)]
    pub hidden: usize,

    /// How many letters the model sees before the one that it guesses
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = context)]
    #[arg(allow_negative_numbers = true)]
    pub context: usize,

    /// How many numbers stand for a letter
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = embedding)]
    #[arg(allow_negative_numbers = true)]
    pub embedding: usize,

    /// Learning rate of the first steps
    #[arg(long, value_name = "RATE", default_value_t = 0.1, value_parser = learning_rate)]
    #[arg(allow_negative_numbers = true)]
    pub lr: f64,

    /// When the learning rate falls to a tenth, in steps [default: half of the steps]
    #[arg(long, value_name = "STEP", value_parser = decay_step)]
    #[arg(allow_negative_numbers = true)]
    pub lr_decay_at: Option<u64>,

    /// Seed of all random numbers; the same seed gives the same run
    #[arg(long, value_name = "N", default_value_t = 2_147_483_647, value_parser = seed)]
    #[arg(allow_negative_numbers = true)]
    pub seed: u64,

    /// Folder for the results [default: a new one, runs/names-0001 and so on]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Replace the files of an earlier run in the folder; other files there stay
    #[arg(long)]
    pub force: bool,

    /// Print the results as one JSON object, and no progress
    #[arg(long)]
    pub json: bool,

    /// Print no progress
    #[arg(long)]
    pub quiet: bool,

    /// How many threads to use; the results do not depend on it [default: one a core]
    #[arg(long, value_name = "N", value_parser = threads)]
    #[arg(allow_negative_numbers = true)]
    pub threads: Option<usize>,

    /// Use fused operations (faster; the last digits may differ)
    #[arg(long)]
    pub fused: bool,

    /// Run every operation at once, instead of the whole step as a program (slower)
    #[arg(long)]
    pub eager: bool,
}

impl TrainNames {
    /// The number of steps that are taken at the full learning rate.
    pub fn decay_at(&self) -> u64 {
        self.lr_decay_at.unwrap_or(self.steps / 2)
    }

    /// Checks what no single option can: whether model and batch fit into memory.
    fn check(&self) -> Result<(), String> {
        check_sizes(self.context, self.embedding, self.hidden)?;
        let [batch, hidden] = [self.batch as u64, self.hidden as u64];
        let inputs = (self.context * self.embedding) as u64;
        let widest = batch * inputs.max(hidden).max(SYMBOLS);
        if widest > MAX_NUMBERS {
            return Err(format!(
                "--batch {batch} makes a layer of {widest} values, more than {MAX_NUMBERS}; \
                 make the batch or the model smaller"
            ));
        }
        Ok(())
    }
}

/// `chainrule sample`
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Sample {
    /// Folder of a finished training run
    #[arg(value_name = "DIR")]
    pub run: PathBuf,

    /// How many names to print
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub count: usize,

    /// Seed of the random numbers; the same seed gives the same names
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = seed)]
    #[arg(allow_negative_numbers = true)]
    pub seed: u64,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `chainrule eval`
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Eval {
    /// Folder of a finished training run
    #[arg(value_name = "DIR")]
    pub run: PathBuf,

    /// A text file with one name a line [default: the list that the model was trained on]
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `chainrule bench`
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Bench {
    /// What to measure
    #[arg(value_name = "WORKLOAD", value_enum)]
    pub workload: Workload,

    /// How the step is run
    #[arg(long, value_enum, default_value_t = Mode::Eager)]
    pub mode: Mode,

    /// How many threads to use [default: one a core]
    #[arg(long, value_name = "N", value_parser = threads)]
    #[arg(allow_negative_numbers = true)]
    pub threads: Option<usize>,

    /// How many groups of steps to time [default: 7 of 500 steps for names, 15 of 1 for mnist, 8 of 1 for the GPTs]
    #[arg(long, value_name = "N", value_parser = rounds)]
    #[arg(allow_negative_numbers = true)]
    pub rounds: Option<usize>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Use fused operations (faster; the last digits may differ)
    #[arg(long)]
    pub fused: bool,

    /// With --mode compiled: simplify the program by algebra (the last digits may differ)
    #[arg(long)]
    pub simplify: bool,
}

/// The training steps that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Names: batch 32, hidden layer of 200 with batch normalisation
    Names,
    /// Digits: batch 512, three hidden layers of 1,024
    Mnist,
    /// A GPT: 4 layers, 4 heads, 128 wide, context 64, batch 12, AdamW
    GptSmall,
    /// A GPT: 6 layers, 6 heads, 384 wide, context 256, batch 4, AdamW
    GptMedium,
}

/// How a step is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Every operation runs at once, when it is called
    Eager,
    /// The step is traced once, and runs as a program
    Compiled,
}

impl Cli {
    /// Reads the command line of the process. On a mistake, prints what is wrong and ends the process
    /// with status 2; on `--help` and `--version` with status 0.
    pub fn read() -> Cli {
        Self::try_read(std::env::args_os()).unwrap_or_else(|error| match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
            _ => {
                // A closed standard error stream is no reason to panic, as eprintln would.
                let _ = writeln!(std::io::stderr(), "{}", one_line(&error.to_string()));
                std::process::exit(error.exit_code())
            }
        })
    }

    /// Reads a command line; the first word is the name of the program.
    pub fn try_read<W>(words: impl IntoIterator<Item = W>) -> Result<Cli, clap::Error>
    where
        W: Into<OsString> + Clone,
    {
        let cli = Cli::try_parse_from(words)?;
        if let Command::Train(Train::Names(train)) = &cli.command {
            train.check().map_err(|text| Cli::command().error(ErrorKind::ValueValidation, text))?;
        }
        Ok(cli)
    }
}

/// Checks the sizes of a names model: each by itself, and that the whole fits into memory.
pub fn check_sizes(context: usize, embedding: usize, hidden: usize) -> Result<(), String> {
    for (number, what, most) in [
        (context, CONTEXT.0, CONTEXT.1),
        (embedding, EMBEDDING.0, EMBEDDING.1),
        (hidden, HIDDEN.0, HIDDEN.1),
    ] {
        size(&number.to_string(), what, 1, most)?;
    }
    let [wide, high, units] = [context, embedding, hidden].map(|n| n as u64);
    let weights = SYMBOLS * high + wide * high * units + units * SYMBOLS;
    if weights > MAX_NUMBERS {
        return Err(format!(
            "--hidden {hidden} with --context {context} and --embedding {embedding} makes \
             {weights} weights, more than {MAX_NUMBERS}; make one of them smaller"
        ));
    }
    Ok(())
}

/// What is wrong with the command line, in one line: the parser's text without its usage part.
fn one_line(text: &str) -> String {
    let end = text.find("\nUsage:").unwrap_or(text.len());
    let parts = text[..end].lines().map(str::trim);
    let said: Vec<&str> = parts
        .filter(|part| !part.is_empty() && !part.starts_with("For more information"))
        .collect();
    format!("{} (see --help)", said.join(" "))
}

/// A whole number from `least` to `most`; `what` begins the message.
fn whole(text: &str, what: &str, least: u64, most: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("{what} must be a whole number from {least} to {most}, in plain digits")),
    }
}

/// [`whole`] for sizes; `most` is small enough for every machine.
fn size(text: &str, what: &str, least: u64, most: u32) -> Result<usize, String> {
    whole(text, what, least, u64::from(most)).map(|number| number as usize)
}

fn steps(text: &str) -> Result<u64, String> {
    whole(text, "the number of steps", 1, MAX_STEPS)
}

fn batch(text: &str) -> Result<usize, String> {
    let what = "batch normalisation needs at least 2 examples a step: the batch";
    size(text, what, 2, 1_000_000)
}

fn hidden(text: &str) -> Result<usize, String> {
    size(text, HIDDEN.0, 1, HIDDEN.1)
}

fn context(text: &str) -> Result<usize, String> {
    size(text, CONTEXT.0, 1, CONTEXT.1)
}

fn embedding(text: &str) -> Result<usize, String> {
    size(text, EMBEDDING.0, 1, EMBEDDING.1)
}

fn learning_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        // A tenth of it, as it is used later in the run, must be above 0 too.
        Ok(rate) if rate / 10.0 > 0.0 && rate <= 1e30 => Ok(rate),
        _ => Err("the learning rate must be a number above 0 and at most 1e30, such as 0.1".into()),
    }
}

fn decay_step(text: &str) -> Result<u64, String> {
    whole(text, "the step at which the learning rate falls", 0, MAX_STEPS)
}

fn seed(text: &str) -> Result<u64, String> {
    // The largest number that a TOML file can hold.
    whole(text, "the seed", 0, i64::MAX as u64)
}

fn points(text: &str) -> Result<usize, String> {
    size(text, "the number of points", 0, 1_000_000)
}

fn threads(text: &str) -> Result<usize, String> {
    size(text, "the number of threads", 1, 256)
}

fn count(text: &str) -> Result<usize, String> {
    size(text, "the number of names", 1, 1_000_000)
}

fn rounds(text: &str) -> Result<usize, String> {
    size(text, "the number of groups", 1, 1_000)
}

#[cfg(test)]
mod tests;
