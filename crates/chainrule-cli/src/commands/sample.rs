//! `chainrule sample`: new names from a trained model.

use anyhow::Result;
use serde::Serialize;

use crate::args::Sample;
use crate::{names, output};

#[derive(Serialize)]
struct Sampled<'a> {
    model: String,
    seed: u64,
    count: usize,
    samples: &'a [String],
}

/// Runs the command.
pub fn run(args: &Sample) -> Result<()> {
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
