//! `chainrule export`: which model, and where it goes.

use std::path::PathBuf;

use clap::Args;

/// `chainrule export`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule export runs/digits-0001 --onnx digits.onnx")]
pub struct Export {
    /// Folder of a finished training run
    #[arg(value_name = "DIR")]
    pub run: PathBuf,

    /// Write the model as an ONNX file, which takes any number of examples
    #[arg(long, value_name = "FILE")]
    pub onnx: PathBuf,

    /// Overwrite the file
    #[arg(long)]
    pub force: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
