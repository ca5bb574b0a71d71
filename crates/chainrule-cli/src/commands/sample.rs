//! `chainrule sample`: what a trained model makes up.

use anyhow::{Result, bail};
use serde::Serialize;

use crate::args::Sample;
use crate::commands::train::{names as family, text};
use crate::{names, output, train};

#[derive(Serialize)]
struct Sampled<'a> {
    model: String,
    seed: u64,
    count: usize,
    samples: &'a [String],
}

/// Runs the command.
pub fn run(args: &Sample) -> Result<()> {
    match train::kind_of(&args.run)?.as_str() {
        family::KIND => return family::sample(args),
        text::KIND => return text::sample(args),
        kind @ ("digits" | "regression" | "moons") => {
            bail!("{}: a model of kind `{kind}` makes nothing up", args.run.display())
        }
        _ => {}
    }
    let (model, _) = names::load(&args.run)?;
    if !args.json {
        return names::sample(&model, args.count, args.seed, |name| output::line(&name));
    }
    let mut samples = Vec::new();
    names::sample(&model, args.count, args.seed, |name| {
        samples.push(name);
        Ok(())
    })?;
    output::json(&Sampled {
        model: args.run.display().to_string(),
        seed: args.seed,
        count: samples.len(),
        samples: &samples,
    })
}
