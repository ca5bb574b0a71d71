//! `chainrule check`: what can be checked.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use chainrule::check::ops::entry;

use super::{points, seed, steps, threads};

/// Checks of the program.
#[derive(Debug, Subcommand)]
pub enum Check {
    /// Every op: both orders of derivatives, forward against reverse mode, views, stretched inputs,
    /// kinks
    Ops(CheckOps),
    /// The backward pass of the names model, written by hand, beside autograd
    Names(CheckNames),
    /// Every classic mistake of a backward pass, planted: is it detected, and named?
    Mistakes(CheckMistakes),
    /// The backward passes of a Python file: is each right, and if not, in which line is the
    /// mistake?
    Backward(CheckBackward),
}

/// `chainrule check backward`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    after_help = "The file holds classes with `forward` and `backward` (torch.autograd.Function or chainrule.autograd.Function), or
functions NAME and NAME_backward(gradient, *inputs); `example_inputs` of the class, or `inputs` of the file, is a list of
tensors or a function that makes one.

Examples:
  chainrule check backward layers.py
  chainrule check backward layers.py --picture layers.svg
  chainrule check backward layers.py --json"
)]
pub struct CheckBackward {
    /// A Python file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The Python in which the package `chainrule` is installed
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub python: PathBuf,

    /// Draw the lines of a wrong backward pass beside the quantities of the right one, as SVG; of
    /// several, the others get -2, -3 in their names
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,

    /// Print the reports as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `chainrule check names`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Example:
  chainrule check names")]
pub struct CheckNames {
    /// A text file with one name a line, letters a-z only [default: the built-in list]
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,

    /// Seed of the weights and of the batches; the same seed gives the same numbers
    #[arg(long, value_name = "N", default_value_t = 2_147_483_647, value_parser = seed)]
    #[arg(allow_negative_numbers = true)]
    pub seed: u64,

    /// Number of training steps in the fourth exercise
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = steps)]
    #[arg(allow_negative_numbers = true)]
    pub steps: u64,

    /// Folder for the results [default: a new one, runs/check-names-0001 and so on]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Replace the files of an earlier check in the folder; other files there stay
    #[arg(long)]
    pub force: bool,

    /// Print the results as one JSON object
    #[arg(long)]
    pub json: bool,

    /// Number of threads; the results do not depend on it [default: one a core]
    #[arg(long, value_name = "N", value_parser = threads)]
    #[arg(allow_negative_numbers = true)]
    pub threads: Option<usize>,
}

/// `chainrule check ops`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Example:
  chainrule check ops")]
pub struct CheckOps {
    /// Check this op alone
    #[arg(long, value_name = "NAME", value_parser = op)]
    pub op: Option<String>,

    /// Seed of the inputs and of the probes; the same seed gives the same numbers
    #[arg(long, value_name = "N", default_value_t = 2_147_483_647, value_parser = seed)]
    #[arg(allow_negative_numbers = true)]
    pub seed: u64,

    /// Print the results as one JSON object
    #[arg(long)]
    pub json: bool,

    /// Number of threads; the results do not depend on it [default: one a core]
    #[arg(long, value_name = "N", value_parser = threads)]
    #[arg(allow_negative_numbers = true)]
    pub threads: Option<usize>,
}

/// `chainrule check mistakes`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Example:
  chainrule check mistakes")]
pub struct CheckMistakes {
    /// Only the mistakes of this op
    #[arg(long, value_name = "NAME", value_parser = op)]
    pub op: Option<String>,

    /// Seed of all inputs, shapes and probes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    #[arg(allow_negative_numbers = true)]
    pub seed: u64,

    /// At how many points without a mistake the check must keep quiet
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = points)]
    #[arg(allow_negative_numbers = true)]
    pub points: usize,

    /// Folder for the table and the page [default: a new one, runs/check-mistakes-0001 and so on]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Replace the files of an earlier check in the folder; other files there stay
    #[arg(long)]
    pub force: bool,

    /// Print the counts as one JSON object
    #[arg(long)]
    pub json: bool,

    /// Number of threads; the results do not depend on it [default: one a core]
    #[arg(long, value_name = "N", value_parser = threads)]
    #[arg(allow_negative_numbers = true)]
    pub threads: Option<usize>,
}

/// The name of an op of the table.
fn op(text: &str) -> Result<String, String> {
    match entry(text) {
        Ok(entry) => Ok(entry.name.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
