//! The command line: what can be asked for, and the limits of every number.
//!
//! A value that makes no sense is refused here, with one line that says what is wrong and what to
//! do (exit status 2), so that the rest of the program meets sensible settings only.

mod check;
pub mod data;
mod explain;
pub mod export;
mod limits;
pub mod names;
mod onnx;
mod studio;
mod text;
pub mod train;
mod weights;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use chainrule::gpu::{DeviceName, Precision};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub use check::{Check, CheckBackward, CheckMistakes, CheckNames, CheckOps};
pub use explain::{Explain, is_file};
pub use names::TrainNames;
pub use onnx::Onnx;
pub use studio::Studio;
pub use text::Text;
pub use weights::Weights;

use train::Autocast;

/// The most steps of a run.
const MAX_STEPS: u64 = 1_000_000_000;
/// The most numbers that the weights, or the values of one layer for a batch, may have: 100 million
/// take 0.4 GB, and training keeps several times that.
const MAX_NUMBERS: u64 = 100_000_000;
/// Symbols of the names models: `.` and a to z.
const SYMBOLS: u64 = 27;
/// Names and upper bounds of the model's sizes.
const HIDDEN: (&str, u32) = ("the width of the hidden layer", 65_536);
const CONTEXT: (&str, u32) = ("the context", 64);
const EMBEDDING: (&str, u32) = ("the size of the embedding", 4_096);

/// Train small models, and look into every gradient.
#[derive(Debug, Parser)]
#[command(name = "chainrule", version, arg_required_else_help = true)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a model
    #[command(subcommand)]
    Train(Box<Train>),
    /// Print what a trained model makes up: names, text, sums
    Sample(Sample),
    /// Print how good a trained model is
    Eval(Eval),
    /// Print what a trained model says of an input
    Predict(Predict),
    /// Write a trained model as a file for other programs
    Export(export::Export),
    /// Measure how long a training step takes
    Bench(Bench),
    /// Check gradients, and exit with status 1 if one is wrong
    #[command(subcommand)]
    Check(Check),
    /// Say why a training program does not learn, and prove it by short experiments
    Diagnose(Diagnose),
    /// Show a run in the terminal, while it goes on or afterwards
    Watch(Watch),
    /// Show runs side by side: settings that differ, final figures, curves
    Compare(Compare),
    /// Fetch data sets
    #[command(subcommand)]
    Data(data::Data),
    /// Print a script that completes commands and options in a shell
    Completions(Completions),
    /// Show how the backward pass of a model or a formula is simplified, step by step
    Explain(Explain),
    /// Open the page on which one steps through a backward pass
    Studio(Studio),
    /// Write with a published language model, or train it on a text: GPT-2, Llama
    Text(Text),
    /// List what is in an ONNX model of any origin, or run it on ONNX's tests
    Onnx(Onnx),
    /// List what is in a file of weights, or convert it to safetensors
    Weights(Weights),
}

/// The models that can be trained.
#[derive(Debug, Subcommand)]
pub enum Train {
    /// A small network that learns to make up names, one letter after the other
    Names(TrainNames),
    /// The other models of names; written `names --model ...`
    #[command(name = names::FAMILY_WORD, hide = true, display_name = "names")]
    #[command(override_usage = "chainrule train names --model <MODEL> [OPTIONS]")]
    Family(train::TrainFamily),
    /// A network that reads digits: MNIST, or digits that the program draws
    Digits(train::TrainDigits),
    /// A GPT that learns to write like a text, or to add numbers
    Text(train::TrainText),
    /// A line through points
    Regression(train::TrainRegression),
    /// A network that tells two half moons apart
    Moons(train::TrainMoons),
}

/// `chainrule sample`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule sample runs/names-0001 --count 5
  chainrule sample runs/text-0001 --temperature 0.5 --top-k 10")]
pub struct Sample {
    /// Folder of a finished training run
    #[arg(value_name = "DIR")]
    pub run: PathBuf,

    /// Number of names to print
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub count: usize,

    /// Seed of the random numbers; the same seed gives the same names
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = seed)]
    #[arg(allow_negative_numbers = true)]
    pub seed: u64,

    /// Begin of a text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub start: String,

    /// Number of characters of a text
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = count)]
    #[arg(allow_negative_numbers = true)]
    pub length: usize,

    /// Temperature of a text: 0 always takes the likeliest character
    #[arg(long, value_name = "T", default_value_t = 0.8, value_parser = temperature)]
    #[arg(allow_negative_numbers = true)]
    pub temperature: f64,

    /// Choose among the N likeliest characters only
    #[arg(long, value_name = "K", value_parser = rounds, allow_negative_numbers = true)]
    pub top_k: Option<usize>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `chainrule watch`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Keys: q quits, l makes the loss logarithmic, arrows scroll the layers.

Examples:
  chainrule watch runs/names-0001
  chainrule watch runs/digits-0001 --once > picture.txt")]
pub struct Watch {
    /// Folder of a training run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,

    /// Print the run as it is now, and exit; so it is where the output is no terminal
    #[arg(long)]
    pub once: bool,

    /// Begin with a logarithmic loss
    #[arg(long)]
    pub log: bool,
}

/// `chainrule compare`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule compare runs/names-0001 runs/names-0002
  chainrule compare runs/digits-* --out digits.html")]
pub struct Compare {
    /// Folders of training runs
    #[arg(value_name = "RUN", required = true, num_args = 1..)]
    pub runs: Vec<PathBuf>,

    /// Write the curves as SVG, or the whole as HTML, by the ending of the name
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Draw the loss logarithmically in the terminal
    #[arg(long)]
    pub log: bool,

    /// Print one JSON array
    #[arg(long, conflicts_with = "log")]
    pub json: bool,
}

/// `chainrule predict`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule predict runs/digits-0001 t10k-images-idx3-ubyte.gz
  chainrule predict runs/regression-0001 21.5")]
pub struct Predict {
    /// Folder of a finished training run: digits, regression
    #[arg(value_name = "DIR")]
    pub run: PathBuf,

    /// An IDX file with pictures for digits; a number for a regression
    #[arg(value_name = "INPUT", allow_negative_numbers = true)]
    pub input: String,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `chainrule diagnose`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule diagnose program.json
  chainrule diagnose program.json --json | tail -1

The page `diagnosis` of the book describes the format of a program. If its data are NumPy text, that text is run
with python3, as a training script would be; give only programs that you would run.")]
pub struct Diagnose {
    /// The description of a training program
    #[arg(value_name = "PROGRAM.json")]
    pub program: PathBuf,

    /// Print the report as one line of JSON too, as the last line
    #[arg(long)]
    pub json: bool,

    /// Write the report with its curves as a page of its own
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,

    /// Apply the edits of the description's `fix` first
    #[arg(long)]
    pub fix: bool,

    /// Begin no experiment after so many seconds
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    #[arg(allow_negative_numbers = true)]
    pub seconds: f64,

    /// Seed of data, weights and batches; the same seed gives the same report
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    #[arg(allow_negative_numbers = true)]
    pub seed: u64,

    /// Print the program as a PyTorch script instead
    #[arg(long)]
    pub python: bool,

    /// Do not run the NumPy text of a description
    #[arg(long)]
    pub no_data_code: bool,

    /// The module `gen.py` of that text; by default one beside the description or in a folder above
    #[arg(long, value_name = "FILE")]
    pub generator: Option<PathBuf>,
}

/// `chainrule completions`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Example:
  chainrule completions bash > ~/.local/share/bash-completion/completions/chainrule")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `chainrule eval`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule eval runs/names-0001
  chainrule eval runs/names-0001 --split test
  chainrule eval runs/digits-0001 --data mnist --json")]
pub struct Eval {
    /// Folder of a finished training run
    #[arg(value_name = "DIR")]
    pub run: PathBuf,

    /// Names, a text, or a folder with digits, as for training [default: what the model was trained
    /// on]
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,

    /// One part of the data that the model was trained on, split as the training did
    #[arg(long, value_enum, value_name = "PART", conflicts_with = "data")]
    pub split: Option<PartKind>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// A part of a run's data
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PartKind {
    /// The examples that it learned from
    Train,
    /// Those that settings are chosen by
    Validation,
    /// Those that nothing was chosen by
    Test,
}

/// `chainrule bench`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule bench names --mode compiled --threads 1
  chainrule bench gpt-small --json")]
pub struct Bench {
    /// The workload to measure
    #[arg(value_name = "WORKLOAD", value_enum)]
    pub workload: Workload,

    /// Mode of the step
    #[arg(long, value_enum, default_value_t = Mode::Eager)]
    pub mode: Mode,

    /// Round the operands of products to this dtype
    #[arg(long, value_enum, value_name = "DTYPE")]
    pub autocast: Option<Autocast>,

    /// Run the compiled step on a device: cpu, cuda[:N] or wgpu[:N] [default: cpu]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<DeviceName>,

    /// Products of f32 on a device: f32, tf32 or bf16 [default: f32]
    #[arg(long, value_name = "PRECISION", requires = "device")]
    pub precision: Option<Precision>,

    /// Print the time of each kernel of a step on a device
    #[arg(long, requires = "device")]
    pub profile: bool,

    /// Examples of a batch, for the GPTs [default: 12 for gpt-small, 4 for the others]
    #[arg(long, value_name = "N", value_parser = rounds, allow_negative_numbers = true)]
    pub batch: Option<usize>,

    /// Number of threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = threads)]
    #[arg(allow_negative_numbers = true)]
    pub threads: Option<usize>,

    /// Number of groups of steps to time [default: 7 of 500 steps for names, 15 of 1 for mnist, 8
    /// of 1 for the GPTs]
    #[arg(long, value_name = "N", value_parser = rounds)]
    #[arg(allow_negative_numbers = true)]
    pub rounds: Option<usize>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Use fused operations (faster; the last digits may differ)
    #[arg(long)]
    pub fused: bool,

    /// With --mode compiled: leave the program as it is traced, without simplifying it by algebra
    #[arg(long)]
    pub no_simplify: bool,
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
    /// GPT-2 of 124M parameters: 12 layers, 12 heads, 768 wide, context 1,024, batch 4, AdamW
    Gpt2,
}

/// Mode of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Every operation runs at once, when it is called
    Eager,
    /// The step is traced once, and runs as a program
    Compiled,
}

/// A command line that ends the program: a mistake, or a wish for help.
pub struct WrongWords {
    /// The status to end with.
    pub status: i32,
    /// The mistake, if it is one.
    pub text: Option<String>,
}

impl Cli {
    /// Reads the command line of the process. Prints what is wrong on a mistake, which is status 2,
    /// and what is asked for by `--help` and `--version`.
    pub fn read() -> Result<Cli, WrongWords> {
        Self::read_from(std::env::args_os()).map_err(|error| {
            let status = error.exit_code();
            match error.kind() {
                ErrorKind::DisplayHelp
                | ErrorKind::DisplayVersion
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                    let _ = error.print();
                    WrongWords { status, text: None }
                }
                _ => {
                    let text = one_line(&error.to_string());
                    // A closed standard error stream is no reason to panic, as eprintln would.
                    let _ = writeln!(std::io::stderr(), "{}", crate::output::plain(&text));
                    let text = text.strip_prefix("error: ").unwrap_or(&text).to_string();
                    WrongWords { status, text: Some(text) }
                }
            }
        })
    }

    /// Reads a command line; the first word is the name of the program.
    pub fn read_from<W>(words: impl IntoIterator<Item = W>) -> Result<Cli, clap::Error>
    where
        W: Into<OsString> + Clone,
    {
        let words = words.into_iter().map(Into::into).collect();
        let cli = Cli::try_parse_from(names::by_model(words))?;
        if let Command::Train(train) = &cli.command
            && let Train::Names(names) = &**train
        {
            names.check().map_err(|text| Cli::command().error(ErrorKind::ValueValidation, text))?;
        }
        Ok(cli)
    }
}

/// The error of the command line, in one line: the parser's text without its usage part.
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

fn learning_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        // A tenth of it, as it is used later in the run, must be above 0 too.
        Ok(rate) if rate / 10.0 > 0.0 && rate <= 1e30 => Ok(rate),
        _ => Err("the learning rate must be a number above 0 and at most 1e30, such as 0.1".into()),
    }
}

fn seed(text: &str) -> Result<u64, String> {
    // The largest number that a TOML file can hold.
    whole(text, "the seed", 0, i64::MAX as u64)
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(t) if (0.0..=86_400.0).contains(&t) => Ok(t),
        _ => Err("the seconds must be a number from 0 to 86400, such as 60".into()),
    }
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

fn temperature(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(t) if (0.0..=100.0).contains(&t) => Ok(t),
        _ => Err("the temperature must be a number from 0 to 100, such as 0.8".into()),
    }
}

fn rounds(text: &str) -> Result<usize, String> {
    size(text, "the number of groups", 1, 1_000)
}

#[cfg(test)]
mod tests;
