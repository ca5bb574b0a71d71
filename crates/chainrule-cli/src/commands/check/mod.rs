//! `chainrule check`: gradients against paths that share no code with the backward pass.

mod names;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Check;

/// Runs the command. The status is 1 when something is wrong.
pub fn run(check: &Check) -> Result<ExitCode> {
    match check {
        Check::Names(args) => names::run(args),
    }
}
