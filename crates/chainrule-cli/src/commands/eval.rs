//! `chainrule eval`: the loss of a trained model on a list of names.

use std::path::PathBuf;

use anyhow::Result;
use chainrule::data::text::NameDataset;
use serde::Serialize;

use crate::args::Eval;
use crate::{names, output, report};

#[derive(Serialize)]
struct Evaluated<'a> {
    model: String,
    data: &'a str,
    names: usize,
    examples: usize,
    loss: f64,
}

/// Runs the command.
pub fn run(args: &Eval) -> Result<()> {
    let (model, config) = names::load(&args.run)?;
    let trained_on = config.data.file.map(PathBuf::from);
    let list = names::read_list(args.data.as_ref().or(trained_on.as_ref()).map(PathBuf::as_path))?;
    let pairs = NameDataset::build(list.names(), config.model.context)?;
    let loss = names::mean_loss(&model, &pairs)?;
    if args.json {
        return output::json(&Evaluated {
            model: args.run.display().to_string(),
            data: list.label(),
            names: list.len(),
            examples: pairs.count,
            loss,
        });
    }
    output::line(&format!(
        "loss {loss:.4} (mean cross-entropy over {} examples from {} names of {})",
        report::count(pairs.count as u64),
        report::count(list.len() as u64),
        list.label()
    ))
}
