//! `chainrule onnx`

use std::path::PathBuf;

use clap::Args;

/// `chainrule onnx`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule onnx model.onnx
  chainrule onnx model.onnx --run test_data_set_0")]
pub struct Onnx {
    /// An ONNX model of any origin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Run it on a folder of ONNX's tests: input_0.pb, ..., compared with output_0.pb, ...
    #[arg(long, value_name = "FOLDER")]
    pub run: Option<PathBuf>,

    /// Differences below this share of the expected value pass
    #[arg(long, value_name = "X", default_value_t = 1e-3, requires = "run")]
    pub rtol: f64,

    /// Differences below this pass
    #[arg(long, value_name = "X", default_value_t = 1e-7, requires = "run")]
    pub atol: f64,

    /// Print one JSON object
    #[arg(long, conflicts_with = "run")]
    pub json: bool,
}
