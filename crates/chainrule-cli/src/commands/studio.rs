//! `chainrule studio`: the backward pass as a page.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use chainrule_studio::{Given, Studio, export};

use crate::args;
use crate::output;

/// The longest program, in bytes.
const LONGEST: u64 = 200_000;

/// Runs the command: serves the page until the process is ended, or writes it to a folder.
pub fn run(args: &args::Studio) -> Result<()> {
    if let Some(folder) = &args.export {
        let shown = folder.display();
        let count = export(folder).with_context(|| format!("cannot write the page to {shown}"))?;
        return output::line(&format!(
            "{count} files in {shown}; serve the folder with any server of files"
        ));
    }
    let given = match (&args.file, &args.example) {
        (Some(file), _) => vec![program(file)?],
        (None, Some(name)) => vec![Given::example(name).map_err(|why| anyhow!(why))?],
        (None, None) => Vec::new(),
    };
    let studio = Studio::bind(args.port, given)
        .with_context(|| format!("cannot listen on 127.0.0.1:{}", args.port))?;
    output::line(&format!("the studio is at {}", studio.url()))?;
    if !args.no_open {
        open(&studio.url());
    }
    studio.serve().context("the server ended")
}

/// The program of a file.
fn program(file: &Path) -> Result<Given> {
    let shown = file.display();
    let about = fs::metadata(file).with_context(|| format!("cannot read {shown}"))?;
    if !about.is_file() {
        bail!("{shown} is no file; give a program, or an example with --example");
    }
    if about.len() > LONGEST {
        bail!("{shown} is longer than {LONGEST} bytes; give the part that makes the loss");
    }
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
    let title =
        file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Ok(Given { title, text, seed: 1 })
}

/// Opens the address in the user's browser, where there is one; the address is printed in any case.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    let silent = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    drop(silent);
}
