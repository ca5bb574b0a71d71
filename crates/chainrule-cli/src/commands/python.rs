//! Commands that run a file of Python with the installed package.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Ends with another status where the package is not there; does not import it.
const FIND: &str = "import importlib.util as u, sys; sys.exit(u.find_spec('chainrule') is None)";

/// A command that runs a module of the package. Errors if there is no such Python or no package.
pub fn module(python: &Path, name: &str) -> Result<Command> {
    let shown = python.display();
    let mut find = Command::new(python);
    find.args(["-c", FIND]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match find.status() {
        Ok(status) if status.success() => {}
        Ok(_) => bail!(
            "{shown} has no package chainrule: pip install it from crates/chainrule-py, or name another Python with --python"
        ),
        Err(e) if e.kind() == ErrorKind::NotFound => bail!(
            "there is no program {shown}: install Python 3.11 or newer, or name it with --python"
        ),
        Err(e) => return Err(e).with_context(|| format!("cannot run {shown}")),
    }
    let mut command = Command::new(python);
    command.args(["-m", name]).stdin(Stdio::null());
    Ok(command)
}
