//! `chainrule studio`: the backward pass as a page.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use anyhow::{Context, Error, Result, anyhow, bail};
use chainrule::io;
use chainrule_studio::{Given, Hub, LiveRun, RunFiles, Studio, check, export, view};

use super::python;
use crate::args;
use crate::output;

/// The longest program, in bytes.
const LONGEST: u64 = 200_000;

/// The module of the Python package that runs a script.
const MODULE: &str = "chainrule._studio_file";

/// Runs the command: serves the page until the process is ended, or writes it to a folder. Scripts
/// are run by the Python package, whose output and status are passed on.
pub fn run(args: &args::Studio) -> Result<ExitCode> {
    let scripts: Vec<&PathBuf> = args.paths.iter().filter(|path| is_script(path)).collect();
    let Some(script) = scripts.first() else {
        return show(args).map(|()| ExitCode::SUCCESS);
    };
    if args.paths.len() > 1 {
        bail!("{}: a script that imports packages is shown alone", script.display());
    }
    if args.backward.is_some() {
        bail!(
            "--backward is for programs of the studio's part of Python; {} imports packages: check its backward pass with `chainrule check backward`, or on the page",
            script.display()
        );
    }
    let mut command = python::module(&args.python, MODULE)?;
    command.arg(script).args(["--port", &args.port.to_string()]);
    let flags = [("--no-open", args.no_open), ("--json", args.json)];
    command.args(flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag));
    let cannot = || format!("cannot run {}", args.python.display());
    let status = command.status().with_context(cannot)?;
    Ok(status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)))
}

/// Whether a file imports more than NumPy, whose names the studio's own part of Python has.
fn is_script(file: &Path) -> bool {
    let Ok(text) = read(file) else { return false };
    text.lines().any(|line| {
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let names = match first {
            "import" => rest,
            "from" if rest.contains("import") => rest.split_whitespace().next().unwrap_or(""),
            _ => return false,
        };
        let roots = names.split(',').filter_map(|name| name.split_whitespace().next());
        roots.map(|name| name.split('.').next()).any(|root| root != Some("numpy"))
    })
}

/// Shows folders, and a program of the studio's part of Python.
fn show(args: &args::Studio) -> Result<()> {
    if let Some(folder) = &args.export {
        let shown = folder.display();
        let count = export(folder).with_context(|| format!("cannot write the page to {shown}"))?;
        return output::line(&format!(
            "{count} files in {shown}; serve the folder with any server of files"
        ));
    }
    let (runs, files): (Vec<_>, Vec<_>) = args.paths.iter().partition(|path| path.is_dir());
    let given = match (&files[..], &args.example) {
        ([file], _) => vec![program(file, args.backward.as_deref())?],
        ([_, second, ..], _) => {
            bail!(
                "{}: a second program; the page opens one, and any number of runs",
                second.display()
            )
        }
        ([], Some(name)) => vec![Given::example(name).map_err(|why| anyhow!(why))?],
        ([], None) if args.backward.is_some() => {
            bail!("--backward belongs to a program; give the file of the forward pass, too")
        }
        ([], None) => Vec::new(),
    };
    if args.json {
        let given = given.into_iter().next();
        let given = given.context("--json is for a program: give a FILE, or --example NAME")?;
        return output::line(&view(given).map_err(Error::msg)?.to_string());
    }
    given.iter().cloned().try_for_each(check).map_err(Error::msg)?;
    let shows_runs = given.is_empty() && !runs.is_empty();
    let studio = Studio::bind(args.port, given)
        .with_context(|| format!("cannot listen on 127.0.0.1:{}", args.port))?;
    for folder in runs {
        let run = RunFiles::open(studio.hub(), folder).with_context(|| {
            format!("{}: no run of chainrule train: its metrics cannot be read", folder.display())
        })?;
        thread::Builder::new().name("run".into()).spawn(move || run.follow())?;
    }
    let url = if shows_runs { studio.url_of("training") } else { studio.url() };
    output::line(&format!("the studio is at {url}"))?;
    if !args.no_open {
        open(&url);
    }
    studio.serve().context("the server ended")
}

/// A page beside a training that is about to begin: its run, and its address. The server ends with
/// the process.
pub fn beside(title: &str) -> Result<(Hub, LiveRun, String)> {
    let studio = Studio::bind(0, Vec::new()).context("cannot listen on 127.0.0.1")?;
    let (hub, url) = (studio.hub().clone(), studio.url_of("training"));
    let run = hub.begin(title);
    thread::Builder::new().name("studio".into()).spawn(move || studio.serve())?;
    Ok((hub, run, url))
}

/// The program of a file, and its backward pass by hand.
fn program(file: &Path, backward: Option<&Path>) -> Result<Given> {
    let text = read(file)?;
    let hand = backward.map(read).transpose()?;
    let title =
        file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Ok(Given { title, text, seed: 1, hand, ..Given::default() })
}

fn read(file: &Path) -> Result<String> {
    let shown = file.display();
    let bytes = io::read_bounded(file, LONGEST)
        .map_err(Error::msg)
        .with_context(|| format!("cannot read {shown}"))?;
    String::from_utf8(bytes).with_context(|| format!("{shown} is no text in UTF-8"))
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

#[cfg(test)]
mod tests {
    use super::is_script;

    #[test]
    fn scripts_import_packages() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f.py");
        for (text, is) in [
            ("import numpy as np\nx = leaf(3.0)\n", false),
            ("from numpy.linalg import norm\nx = leaf(3.0)\n", false),
            ("important = leaf(3.0)\nfrom_x = 2 # import os\n", false),
            ("import chainrule as cr\n", true),
            ("x = 1\nimport numpy as np, chainrule as cr\n", true),
            ("from chainrule import nn\n", true),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(is_script(&file), is, "{text}");
        }
    }
}
