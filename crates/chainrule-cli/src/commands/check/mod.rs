//! `chainrule check`: gradients against paths that share no code with the backward pass.

mod backward;
mod mistakes;
mod names;
mod ops;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Check;

/// Runs the command. The status is 1 when something is wrong.
pub fn run(check: &Check) -> Result<ExitCode> {
    match check {
        Check::Ops(args) => ops::run(args),
        Check::Mistakes(args) => mistakes::run(args),
        Check::Names(args) => names::run(args),
        Check::Backward(args) => backward::run(args),
    }
}
