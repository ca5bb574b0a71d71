//! `chainrule text`

use std::path::PathBuf;

use clap::Args;

use super::train::Autocast;
use super::{learning_rate, seed, size, temperature, threads};

/// `chainrule text`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule text --model gpt2 --prompt \"The sea\" --length 40
  chainrule text --model gpt2 --prompt \"The sea\" --temperature 0.8 --top-k 40 --seed 1
  chainrule text --model gpt2 --train book.txt --steps 200 --out tuned

DIR holds config.json, tokenizer.json or vocab.json and merges.txt, and model.safetensors or pytorch_model.bin,
also in shards: GPT-2, Llama, and Mistral and Qwen2 of Llama's shape. With --train the model is trained first and
written to OUT in the same form.")]
pub struct Text {
    /// Folder with the files of a published model
    #[arg(long, value_name = "DIR")]
    pub model: PathBuf,

    /// Let weights of f32 share the pages of their files, which are to stay as they are
    #[arg(long)]
    pub mmap: bool,

    /// Begin of the text; by default the token that begins a text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub prompt: String,

    /// Number of new tokens at most [default: 50; with --train none]
    #[arg(long, value_name = "N", value_parser = length, allow_negative_numbers = true)]
    pub length: Option<usize>,

    /// Temperature: 0 always takes the likeliest token
    #[arg(long, value_name = "T", default_value_t = 0.0, value_parser = temperature)]
    #[arg(allow_negative_numbers = true)]
    pub temperature: f64,

    /// Choose among the K likeliest tokens only
    #[arg(long, value_name = "K", value_parser = top_k, allow_negative_numbers = true)]
    pub top_k: Option<usize>,

    /// Seed of the random numbers; the same seed gives the same text
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = seed)]
    #[arg(allow_negative_numbers = true)]
    pub seed: u64,

    /// Compute keys and values again for every token
    #[arg(long)]
    pub no_cache: bool,

    /// Train on these text files first, one after the other
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "out")]
    pub train: Vec<PathBuf>,

    /// Folder for the trained model
    #[arg(long, value_name = "OUT", requires = "train")]
    pub out: Option<PathBuf>,

    /// Overwrite a model in OUT
    #[arg(long, requires = "out")]
    pub force: bool,

    /// Number of training steps
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = steps)]
    #[arg(allow_negative_numbers = true)]
    pub steps: usize,

    /// Pieces of the text in a training step
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = batch)]
    #[arg(allow_negative_numbers = true)]
    pub batch: usize,

    /// Tokens of a piece
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = context)]
    #[arg(allow_negative_numbers = true)]
    pub context: usize,

    /// Learning rate at the begin; it falls to a tenth
    #[arg(long, value_name = "LR", default_value_t = 5e-5, value_parser = learning_rate)]
    #[arg(allow_negative_numbers = true)]
    pub lr: f64,

    /// Round the operands of products to this dtype in the training steps; weights stay as they are
    #[arg(long, value_enum, value_name = "DTYPE", requires = "train")]
    pub autocast: Option<Autocast>,

    /// Number of threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<usize>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn length(text: &str) -> Result<usize, String> {
    size(text, "the number of tokens", 1, 1_000_000)
}

fn top_k(text: &str) -> Result<usize, String> {
    size(text, "the number of likeliest tokens", 1, 10_000_000)
}

fn steps(text: &str) -> Result<usize, String> {
    size(text, "the number of steps", 1, 1_000_000_000)
}

fn batch(text: &str) -> Result<usize, String> {
    size(text, "the number of pieces", 1, 65_536)
}

fn context(text: &str) -> Result<usize, String> {
    size(text, "the number of tokens of a piece", 1, 1_000_000)
}
