//! States of a run that the page wants kept, and runs that go on from them.
//!
//! A kept state is the folder of a run like any other, beside the one that it was taken from. A
//! fork is a copy of it in which a process of its own goes on, steered through its standard input.

use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow};
use chainrule::io::{CheckpointFolder, Kept};
use chainrule_studio::{Branch, Hub, LiveRun, RunFiles};

use super::listen::{CSV_FILE, JSON_FILE, MONITOR_FILE};
use super::settings::{CONFIG_FILE, Config, FAMILY};
use crate::args::train::ScheduleKind;
use crate::interrupt::Interrupt;
use crate::output;

/// The most states and forks of one step, and the most states of a run.
const MOST: usize = 100;

/// The branches of one run.
#[derive(Default)]
pub struct Branches {
    kept: Vec<PathBuf>,
    forks: Vec<Child>,
}

impl Branches {
    /// Carries out an order of the page for the run of this folder, whose checkpoint is of `step`.
    pub fn carry_out(
        &mut self,
        order: &Branch,
        of: &Source<'_>,
        hub: &Hub,
        run: &LiveRun,
    ) -> Result<()> {
        match order {
            Branch::Checkpoint => {
                if self.kept.len() >= MOST {
                    return Err(anyhow!("{MOST} states of this run are kept already"));
                }
                let folder = copied(of.folder, &format!("at-{}", of.step), of.folder)?;
                run.kept(of.step, &folder.display().to_string());
                self.kept.push(folder);
            }
            Branch::Fork { checkpoint, rate } => {
                let kept = self.kept.get(*checkpoint).context("there is no such checkpoint")?;
                let folder = copied(kept, "fork", of.folder)?;
                if let Some(rate) = rate {
                    set_rate(&folder, of.kind, *rate)?;
                }
                let mut child = of.command(&folder).spawn().context("cannot start the fork")?;
                let orders = child.stdin.take().context("the fork takes no orders")?;
                self.forks.push(child);
                let files =
                    RunFiles::steered(hub, &folder, Box::new(orders) as Box<dyn Write + Send>);
                thread::Builder::new().name("fork".into()).spawn(move || files.follow())?;
            }
        }
        Ok(())
    }

    /// Waits for the forks that still train; a page shows them as long as this process lives.
    pub fn wait(&mut self) {
        let still = |child: &mut Child| matches!(child.try_wait(), Ok(None));
        let count = self.forks.iter_mut().filter_map(|child| still(child).then_some(())).count();
        if count > 0 {
            output::complain(&format!(
                "waiting for {count} forked run{}; Ctrl-C stops {}",
                if count == 1 { "" } else { "s" },
                if count == 1 { "it" } else { "them" }
            ));
        }
        for child in &mut self.forks {
            let _ = child.wait();
        }
    }
}

/// The run that a branch is taken from.
pub struct Source<'a> {
    pub folder: &'a Path,
    /// Its kind, as the settings have it.
    pub kind: &'static str,
    pub step: u64,
    pub threads: Option<usize>,
}

impl Source<'_> {
    fn command(&self, folder: &Path) -> Command {
        let this = std::env::current_exe().unwrap_or_else(|_| "chainrule".into());
        let mut command = Command::new(this);
        let word = if self.kind == FAMILY { "names" } else { self.kind };
        command.args(["train", word, "--quiet", "--steered", "--resume"]).arg(folder);
        if let Some(threads) = self.threads {
            command.args(["--threads", &threads.to_string()]);
        }
        // Errors, a line each, belong to the terminal of the run that was forked.
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command
    }
}

/// A copy of what a run needs to go on, in a new folder beside `beside`, named after `from`.
fn copied(from: &Path, word: &str, beside: &Path) -> Result<PathBuf> {
    let name = from.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy());
    let parent = beside.parent().unwrap_or(Path::new(""));
    let names = (1..=MOST).map(|n| match n {
        1 => parent.join(format!("{name}-{word}")),
        n => parent.join(format!("{name}-{word}-{n}")),
    });
    for folder in names {
        match fs::create_dir(&folder) {
            Ok(()) => {
                copy_files(from, &folder).inspect_err(|_| {
                    // Nothing half is left behind.
                    let _ = fs::remove_dir_all(&folder);
                })?;
                return Ok(folder);
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(anyhow!("cannot make the folder {}: {e}", folder.display())),
        }
    }
    Err(anyhow!("there are {MOST} folders {name}-{word} already; remove some"))
}

fn copy_files(from: &Path, to: &Path) -> Result<()> {
    let checkpoint = CheckpointFolder::new(from).file(Kept::Last);
    let other = [CONFIG_FILE, JSON_FILE, CSV_FILE, MONITOR_FILE].map(|name| from.join(name));
    for file in [checkpoint].iter().chain(&other) {
        let Some(name) = file.file_name() else { continue };
        // A run that is not watched has no file of looks.
        if !file.exists() && name == MONITOR_FILE {
            continue;
        }
        let into = to.join(name);
        fs::copy(file, &into)
            .with_context(|| format!("cannot copy {} to {}", file.display(), into.display()))?;
    }
    Ok(())
}

/// Has the run of a folder go on with one learning rate.
fn set_rate(folder: &Path, kind: &str, rate: f64) -> Result<()> {
    let mut config = Config::read(folder, kind)?;
    let training = &mut config.training;
    (training.lr, training.schedule, training.tenth_at) = (rate, ScheduleKind::Constant, None);
    training.warm_up = 0;
    fs::write(folder.join(CONFIG_FILE), config.to_text()?).context("cannot write the settings")
}

/// Takes orders from standard input, a line each, until the process that sends them has ended.
/// Nobody could end a fork then: it stops as by Ctrl-C, and its folder can be gone on with.
pub fn obey(run: &LiveRun, interrupt: &Interrupt) -> Result<()> {
    let (run, interrupt) = (run.clone(), interrupt.clone());
    run.set_keeper(true);
    let listen = move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if let Err(why) = run.obey(&line) {
                output::complain(&format!("warning: an order was not understood: {why}"));
            }
        }
        interrupt.ask();
        let _ = run.obey(r#"{"action": "go"}"#);
        run.set_keeper(false);
    };
    thread::Builder::new().name("orders".into()).spawn(listen)?;
    Ok(())
}
