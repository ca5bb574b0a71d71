//! `chainrule studio`: the backward pass as a page.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Error, Result, anyhow, bail};
use chainrule::io;
use chainrule_studio::{Engine, Given, Hub, LiveRun, RunFiles, Studio, export};
use serde_json::{Value, json};

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
        return output::line(&as_json(given)?.to_string());
    }
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

/// The view of a program on the page: its graph, the steps of its backward pass, its program, and
/// the pass by hand beside the right one if there is one.
fn as_json(given: Given) -> Result<Value> {
    let (hand, title) = (given.hand.clone(), given.title.clone());
    let mut engine = Engine::with(vec![given]);
    let mut ask = |call: &str, args: Value| {
        let request = json!({"id": 1, "call": call, "args": args});
        let answer: Value = serde_json::from_str(&engine.request(&request.to_string()))?;
        match answer["error"].as_object() {
            None => Ok(answer["ok"].clone()),
            Some(error) => {
                let why = error["message"].as_str().unwrap_or("it failed");
                Err(match error["line"].as_u64() {
                    Some(line) => anyhow!("{title}, line {line}: {why}"),
                    None => anyhow!("{title}: {why}"),
                })
            }
        }
    };
    let graph = ask("open", json!({"given": 0}))?;
    let backward = ask("backward", json!({"session": graph["session"]}))?;
    let program = ask("program", json!({"given": 0}))?;
    let comparison = match hand {
        Some(code) => ask("compare", json!({"given": 0, "backward": code}))?,
        None => Value::Null,
    };
    Ok(json!({
        "graph": graph,
        "steps": backward["steps"],
        "program": program,
        "comparison": comparison,
    }))
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
