//! `chainrule completions`: scripts for shells, made from the definitions of the command line.

use anyhow::Result;
use clap::CommandFactory;

use crate::args::{Cli, Completions};
use crate::output;

/// Runs the command.
pub fn run(args: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "chainrule", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end())
}
