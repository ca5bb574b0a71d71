//! `chainrule explain`: what can be explained, and how it is shown.

use std::path::PathBuf;

use chainrule::program::Library;
use clap::Args;

/// `chainrule explain`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(after_help = "Examples:
  chainrule explain --list
  chainrule explain batch-norm
  chainrule explain names --python
  chainrule explain names --python torch
  chainrule explain names --cuda
  chainrule explain model.onnx --shape x=4,3,32,32")]
pub struct Explain {
    /// A model or a formula (names, gpt-small, batch-norm, ...; see --list), or an .onnx file
    #[arg(value_name = "NAME", value_parser = known, required_unless_present = "list")]
    pub name: Option<String>,

    /// List everything that can be explained
    #[arg(long, exclusive = true)]
    pub list: bool,

    /// Sizes of an input of an .onnx file that leaves some open, which are 2 else (several times)
    #[arg(long, value_name = "NAME=SIZES", value_parser = shape)]
    pub shape: Vec<(String, Vec<usize>)>,

    /// Print the simplified program as a script of numpy, torch or jax that runs on its own
    #[arg(long, value_name = "LIBRARY", num_args = 0..=1, default_missing_value = "numpy",
        conflicts_with = "json", value_parser = library)]
    pub python: Option<Library>,

    /// Print the simplified program as kernels of CUDA C, for which no GPU is needed
    #[arg(long, conflicts_with_all = ["json", "python"])]
    pub cuda: bool,

    /// Print the simplified program as kernels of WebGPU
    #[arg(long, conflicts_with_all = ["json", "python", "cuda"])]
    pub wgsl: bool,

    /// Print the data as one JSON object
    #[arg(long)]
    pub json: bool,

    /// Write out parts that repeat, and all steps
    #[arg(long)]
    pub full: bool,

    /// Leave out this rule (can be given several times)
    #[arg(long, value_name = "RULE", value_parser = rule)]
    pub without: Vec<String>,

    /// Evaluate each rewrite in f64 before and after, on random numbers, and stop at a difference
    #[arg(long)]
    pub checked: bool,

    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Overwrite the file of --out without asking
    #[arg(long, requires = "out")]
    pub force: bool,
}

/// Whether the name is that of an ONNX file.
pub fn is_file(name: &str) -> bool {
    name.ends_with(".onnx")
}

fn shape(text: &str) -> Result<(String, Vec<usize>), String> {
    let (name, sizes) = text.rsplit_once('=').ok_or("give NAME=2,3")?;
    let sizes = sizes.split(',').filter(|d| !d.is_empty()).map(str::parse);
    let sizes: Result<Vec<usize>, _> = sizes.collect();
    Ok((name.to_owned(), sizes.map_err(|e| format!("a size: {e}"))?))
}

fn library(word: &str) -> Result<Library, String> {
    word.parse().map_err(|_| "give numpy, torch or jax, and what to explain before it".to_owned())
}

fn known(name: &str) -> Result<String, String> {
    if is_file(name) {
        return Ok(name.to_owned());
    }
    let found = chainrule_lab::formulas::formula(name).map(|f| f.name.to_owned());
    found.map_err(|e| e.to_string().trim_start_matches("explain: ").to_owned())
}

fn rule(name: &str) -> Result<String, String> {
    let rules = chainrule::program::rules();
    match rules.iter().any(|r| r.name == name) {
        true => Ok(name.to_owned()),
        false => {
            let names: Vec<&str> = rules.iter().map(|r| r.name).collect();
            Err(format!("there is no such rule; the rules are {}", names.join(", ")))
        }
    }
}
