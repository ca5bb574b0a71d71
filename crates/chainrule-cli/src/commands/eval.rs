//! `chainrule eval`: how good a trained model is. The model's kind says on what; names are here.

use anyhow::{Result, bail};
use chainrule::data::text::NameDataset;
use serde::Serialize;

use crate::args::Eval;
use crate::commands::train::{digits, names as family, text};
use crate::{names, output, report, train};

#[derive(Serialize)]
struct NamesEvaluation<'a> {
    model: String,
    data: &'a str,
    names: usize,
    examples: usize,
    loss: f64,
}

/// Runs the command.
pub fn run(args: &Eval) -> Result<()> {
    let data = args.data.as_deref();
    match train::kind_of(&args.run)?.as_str() {
        digits::KIND => return digits::eval(&args.run, data, args.json),
        family::KIND => return family::eval(&args.run, data, args.json),
        text::KIND => return text::eval(&args.run, data, args.json),
        kind @ ("regression" | "moons") => {
            bail!(
                "{}: a model of kind `{kind}` is measured while it is trained",
                args.run.display()
            )
        }
        // Names; what else there may be is told by the reader of its settings.
        _ => {}
    }
    let (model, config) = names::load(&args.run)?;
    let list = names::read_list(data.or(config.file()))?;
    let pairs = NameDataset::build(list.names(), config.context)?;
    let loss = output::number("the loss", names::mean_loss(&model, &pairs)?)?;
    if args.json {
        return output::json(&NamesEvaluation {
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
