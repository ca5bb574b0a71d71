//! `chainrule data`: what can be done with data.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Commands on data.
#[derive(Debug, Subcommand)]
pub enum Data {
    /// Fetch a public data set, and check that it is what it should be
    Get(DataGet),
}

/// `chainrule data get`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule data get mnist
  chainrule train digits --data data/mnist")]
pub struct DataGet {
    /// The data set
    #[arg(value_enum)]
    pub set: Set,

    /// Folder for the files [default: data/ and the name of the set]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Take the files from this address instead; they are checked all the same
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,

    /// Print JSON, an object a file, and no progress
    #[arg(long)]
    pub json: bool,

    /// Print no progress
    #[arg(long)]
    pub quiet: bool,
}

/// A public data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Set {
    /// 32,033 names, 0.2 MB
    Names,
    /// 70,000 handwritten digits, 12 MB
    Mnist,
    /// Plays of Shakespeare in one file, 1.1 MB
    Shakespeare,
}
