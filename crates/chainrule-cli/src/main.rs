//! The `chainrule` command: train small models, sample from them, evaluate and measure them.
//!
//! `args` says what can be asked for; each command is a module of `commands`; what several of them
//! need stands beside them. Results go to standard output; progress and errors to standard error.

mod args;
mod commands;
mod interrupt;
mod machine;
mod names;
mod output;
mod plot;
mod progress;
mod report;
mod run_config;
mod run_folder;
mod trainer;

use std::process::ExitCode;

use args::{Cli, Command, Train};

fn main() -> ExitCode {
    let done = match Cli::read().command {
        Command::Train(Train::Names(args)) => commands::train_names::run(&args),
        Command::Sample(args) => commands::sample::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Eval(args) => commands::eval::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Bench(args) => commands::bench::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Check(check) => commands::check::run(&check),
        Command::Explain(args) => commands::explain::run(&args).map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(code) => code,
        // Whoever read the results has seen enough, as `head` does.
        Err(error) if output::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
