//! `chainrule check backward`: the backward passes of a Python file, by the installed Python
//! package.

use std::io::ErrorKind;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::args::CheckBackward;

/// The module that does it.
const MODULE: &str = "chainrule.check";

/// Runs the command. The output of the package is passed on as it comes.
pub fn run(args: &CheckBackward) -> Result<ExitCode> {
    if !args.file.is_file() {
        bail!("{}: no such file", args.file.display());
    }
    let python = args.python.display();
    let mut command = Command::new(&args.python);
    command.args(["-m", MODULE]).arg(&args.file).stdin(Stdio::null()).stderr(Stdio::piped());
    if let Some(picture) = &args.picture {
        command.arg("--picture").arg(picture);
    }
    if args.json {
        command.arg("--json");
    }
    let done = match command.spawn() {
        Ok(child) => child.wait_with_output().with_context(|| format!("cannot run {python}"))?,
        Err(e) if e.kind() == ErrorKind::NotFound => bail!(
            "there is no program {python}: install Python 3.11 or newer, or name it with --python"
        ),
        Err(e) => return Err(e).with_context(|| format!("cannot run {python}")),
    };
    let said = String::from_utf8_lossy(&done.stderr);
    match done.status.code() {
        Some(0) => Ok(ExitCode::SUCCESS),
        Some(1) if !said.contains("No module named") && !said.contains("Traceback") => {
            Ok(ExitCode::FAILURE)
        }
        _ => bail!("{}", reason(&said, &args.python.to_string_lossy())),
    }
}

/// Why the package did not judge the file, in one line.
fn reason(said: &str, python: &str) -> String {
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it ended early");
    // Python writes `No module named 'chainrule'`, or without the quotes for `-m`.
    if last.replace(['\'', '"'], "").contains("No module named chainrule") {
        return format!(
            "{python} has no package chainrule: pip install it from crates/chainrule-py, or name another Python with --python"
        );
    }
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn reasons_are_one_line() {
        let missing = reason("/usr/bin/python3: No module named chainrule\n", "python3");
        assert!(missing.starts_with("python3 has no package chainrule: pip install"), "{missing}");
        let lazily =
            reason("Traceback\n  x\nModuleNotFoundError: No module named 'chainrule'\n", "python3");
        assert_eq!(missing, lazily);
        assert_eq!(reason("error: a.py: no such file\n", "python3"), "a.py: no such file");
        assert_eq!(reason("", "python3"), "it ended early");
    }
}
