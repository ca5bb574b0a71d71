//! The `chainrule` command: train small models, sample from them, evaluate and measure them.
//!
//! `args` says what can be asked for; each command is a module of `commands`; what several of them
//! need stands beside them. Results go to standard output; progress and errors to standard error.

mod args;
mod commands;
mod download;
mod interrupt;
mod machine;
mod names;
mod output;
mod plot;
mod progress;
mod report;
mod run_folder;
mod run_log;
mod train;
mod view;

use std::process::ExitCode;

use args::{Cli, Command, Train};

fn main() -> ExitCode {
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(wrong) => {
            train::leave(wrong.text.as_deref());
            std::process::exit(wrong.status)
        }
    };
    let done = match cli.command {
        Command::Train(train) => match *train {
            Train::Names(args) => commands::train::bn_mlp::run(&args),
            Train::Family(args) => commands::train::names::run(&args),
            Train::Digits(args) => commands::train::digits::run(&args),
            Train::Text(args) => commands::train::text::run(&args),
            Train::Regression(args) => commands::train::regression::run(&args),
            Train::Moons(args) => commands::train::moons::run(&args),
        },
        Command::Predict(args) => commands::predict::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Data(args::data::Data::Get(args)) => {
            commands::data::get(&args).map(|()| ExitCode::SUCCESS)
        }
        Command::Compare(args) => commands::compare::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Watch(args) => commands::watch::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Completions(args) => commands::completions::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Sample(args) => commands::sample::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Eval(args) => commands::eval::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Export(args) => commands::export::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Bench(args) => commands::bench::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Check(check) => commands::check::run(&check),
        Command::Diagnose(args) => commands::diagnose::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Studio(args) => commands::studio::run(&args),
        Command::Text(args) => commands::text::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Onnx(args) => commands::onnx::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Weights(args) => commands::weights::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Explain(args) => commands::explain::run(&args).map(|()| ExitCode::SUCCESS),
    };
    let (why, status) = match done {
        Ok(code) => (None, code),
        // The reader of the results has seen enough, as `head` does.
        Err(error) if output::is_closed(&error) => (None, ExitCode::SUCCESS),
        Err(error) => {
            output::complain(&format!("error: {error:#}"));
            (Some(format!("{error:#}")), ExitCode::FAILURE)
        }
    };
    train::leave(why.as_deref());
    status
}
