//! `chainrule weights`

use std::path::PathBuf;

use clap::Args;

/// `chainrule weights`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule weights model.safetensors
  chainrule weights checkpoint.pt --json
  chainrule weights model.Q4_K.gguf --to model.safetensors
  chainrule weights theirs.pt --map names.txt --like ours.safetensors --to new.safetensors

A line of a map is `prefix TEXT`, `drop PATTERN` or `PATTERN -> NAME`, with `transposed` behind it where axes change
places; * stands for a word of a name, ** for any words, $1 for what the first star stood for.")]
pub struct Weights {
    /// A file of safetensors, or the .index.json of its shards, .pt, .pth, .npy, .npz or GGUF
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Write all tensors to this safetensors file
    #[arg(long, value_name = "OUT")]
    pub to: Option<PathBuf>,

    /// Rename, leave out and transpose tensors by the rules of this file first
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,

    /// Tell what is missing, left over or of another shape beside this file of weights
    #[arg(long, value_name = "FILE")]
    pub like: Option<PathBuf>,

    /// End with status 1 and write nothing unless all fits
    #[arg(long, requires = "like")]
    pub strict: bool,

    /// Overwrite OUT
    #[arg(long, requires = "to")]
    pub force: bool,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
