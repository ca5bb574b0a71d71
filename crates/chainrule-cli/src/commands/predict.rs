//! `chainrule predict`: what a trained model says of an input.

use std::path::Path;

use anyhow::{Result, bail};

use crate::args::Predict;
use crate::commands::train::{digits, regression};
use crate::train;

/// Runs the command.
pub fn run(args: &Predict) -> Result<()> {
    match train::kind_of(&args.run)?.as_str() {
        digits::KIND => digits::predict(&args.run, Path::new(&args.input), args.json),
        "regression" => regression::predict(&args.run, &args.input, args.json),
        kind => bail!(
            "{}: a model of kind `{kind}` says nothing of an input; see `chainrule sample`",
            args.run.display()
        ),
    }
}
