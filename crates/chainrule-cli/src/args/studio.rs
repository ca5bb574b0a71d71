//! `chainrule studio`: what the page shows.

use std::path::PathBuf;

use clap::Args;

/// `chainrule studio`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule studio
  chainrule studio --example names
  chainrule studio forward.py
  chainrule studio --export site")]
pub struct Studio {
    /// A program in the studio's part of Python: NumPy's names, and leaf(...) for parameters
    #[arg(value_name = "FILE", conflicts_with = "example")]
    pub file: Option<PathBuf>,

    /// An example: names, neuron, batch_norm, attention, gpt, ...
    #[arg(long, value_name = "NAME")]
    pub example: Option<String>,

    /// Write the page to this folder instead, for any server of files
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "example", "port"])]
    pub export: Option<PathBuf>,

    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,

    /// Print the address and open no browser
    #[arg(long)]
    pub no_open: bool,
}
