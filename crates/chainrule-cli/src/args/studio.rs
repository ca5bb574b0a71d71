//! `chainrule studio`: what the page shows.

use std::path::PathBuf;

use clap::Args;

/// `chainrule studio`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule studio
  chainrule studio --example names
  chainrule studio forward.py
  chainrule studio train.py
  chainrule studio forward.py --backward backward.py
  chainrule studio runs/names-0001 runs/names-0002
  chainrule studio forward.py --backward backward.py --json
  chainrule studio --export site")]
pub struct Studio {
    /// Folders of trainings, also of ones that go on; or a program in the studio's part of Python:
    /// NumPy's names, and leaf(...) for parameters; or a script that imports chainrule, which is
    /// run
    #[arg(value_name = "RUN | FILE", conflicts_with = "example")]
    pub paths: Vec<PathBuf>,

    /// The program's backward pass by hand, to be laid beside the right one: dx for the gradient of
    /// x
    #[arg(long, value_name = "FILE", requires = "paths")]
    pub backward: Option<PathBuf>,

    /// An example: names, neuron, batch_norm, attention, gpt, ...
    #[arg(long, value_name = "NAME")]
    pub example: Option<String>,

    /// Write the page to this folder instead, for any server of files
    #[arg(long, value_name = "DIR", conflicts_with_all = ["paths", "example", "port"])]
    pub export: Option<PathBuf>,

    /// Print what the page shows of the program as one JSON object, and start no server
    #[arg(long, conflicts_with_all = ["export", "port", "no_open"])]
    pub json: bool,

    /// Python with the package chainrule, for scripts
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub python: PathBuf,

    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,

    /// Print the address and open no browser
    #[arg(long)]
    pub no_open: bool,
}
