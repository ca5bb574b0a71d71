//! `chainrule eval`: how good a trained model is. The model's kind says on what; names are here.

use anyhow::{Result, bail};
use chainrule::data::text::{NameDataset, Vocabulary};
use clap::ValueEnum;
use serde::Serialize;

use crate::args::{Eval, PartKind};
use crate::commands::train::{digits, names as family, text};
use crate::names::{self, NamesData};
use crate::train::{self, Config};
use crate::{output, report};

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
    match train::kind_of(&args.run)?.as_str() {
        digits::KIND => return digits::eval(args),
        family::KIND => return family::eval(args),
        text::KIND => return text::eval(args),
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
    let list = names::read_list(args.data.as_deref().or(config.file()))?;
    let pairs = match args.split {
        None => NameDataset::build(list.names(), config.context)?,
        Some(part) => {
            let data = NamesData::split(&list, config.context)?;
            Config::read(&args.run, names::KIND)?.check_data(&args.run, &data.sums(&list))?;
            choose(
                part,
                [
                    (PartKind::Train, data.train),
                    (PartKind::Validation, data.validation),
                    (PartKind::Test, data.test),
                ],
            )?
        }
    };
    // Each name ends once.
    let count = pairs.targets.iter().filter(|&&target| target == Vocabulary::END).count();
    let loss = output::number("the loss", names::mean_loss(&model, &pairs)?)?;
    if args.json {
        return output::json(&NamesEvaluation {
            model: args.run.display().to_string(),
            data: list.label(),
            names: count,
            examples: pairs.count,
            loss,
        });
    }
    output::line(&format!(
        "loss {loss:.4} (mean cross-entropy over {} examples from {} names of {})",
        report::count(pairs.count as u64),
        report::count(count as u64),
        list.label()
    ))
}

/// The part that was asked for; an error with the names of those that there are.
pub fn choose<T>(part: PartKind, parts: impl IntoIterator<Item = (PartKind, T)>) -> Result<T> {
    let mut names = Vec::new();
    for (kind, value) in parts {
        if kind == part {
            return Ok(value);
        }
        names.push(kind.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned()));
    }
    bail!("--split: the data of this model have the parts {} only", names.join(" and "))
}
