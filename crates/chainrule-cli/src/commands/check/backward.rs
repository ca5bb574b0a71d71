//! `chainrule check backward`: the backward passes of a Python file, by the installed Python
//! package.

use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::args::CheckBackward;
use crate::commands::python;

/// The module that does it.
const MODULE: &str = "chainrule.check";

/// Runs the command. The output of the package is passed on as it comes.
pub fn run(args: &CheckBackward) -> Result<ExitCode> {
    if !args.file.is_file() {
        bail!("{}: no such file", args.file.display());
    }
    let mut command = python::module(&args.python, MODULE)?;
    command.arg(&args.file).stderr(Stdio::piped());
    if let Some(picture) = &args.picture {
        command.arg("--picture").arg(picture);
    }
    if args.json {
        command.arg("--json");
    }
    let cannot = || format!("cannot run {}", args.python.display());
    let done = command.spawn().and_then(|child| child.wait_with_output()).with_context(cannot)?;
    let said = String::from_utf8_lossy(&done.stderr);
    match done.status.code() {
        Some(0) => Ok(ExitCode::SUCCESS),
        Some(1) if !said.contains("Traceback") => Ok(ExitCode::FAILURE),
        _ => bail!("{}", reason(&said)),
    }
}

/// Why the package did not judge the file, in one line.
fn reason(said: &str) -> String {
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it ended early");
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn reasons_are_one_line() {
        assert_eq!(reason("error: a.py: no such file\n"), "a.py: no such file");
        assert_eq!(reason("Traceback\n  x\nValueError: no\n\n"), "ValueError: no");
        assert_eq!(reason(""), "it ended early");
    }
}
