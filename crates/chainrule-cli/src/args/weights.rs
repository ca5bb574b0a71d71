//! `chainrule weights`

use std::path::PathBuf;

use clap::Args;

/// `chainrule weights`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule weights model.safetensors
  chainrule weights checkpoint.pt --json
  chainrule weights model.Q4_K.gguf --to model.safetensors")]
pub struct Weights {
    /// A file of safetensors, or the .index.json of its shards, .pt, .pth, .npy, .npz or GGUF
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Write all tensors to this safetensors file
    #[arg(long, value_name = "OUT")]
    pub to: Option<PathBuf>,

    /// Overwrite OUT
    #[arg(long, requires = "to")]
    pub force: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
