//! Ranks of a training that a launcher has started: `mpirun`, `torchrun`, `srun`, or variables that
//! were set by hand.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use chainrule::exchange::{Begun, Exchange, ExchangeError, Launch, Tcp, TcpOptions, agree};
use chainrule::io::CheckpointFolder;
use chainrule::train::rank_values::facts_of_the_program;

use crate::args::train::Common;
use crate::{machine, output};

/// The way to the other ranks, if there are any. All but rank 0 fall silent.
pub fn join(args: &Common) -> Result<Option<Box<dyn Exchange>>> {
    HAS_BEGUN.store(true, Ordering::Relaxed);
    let Some(launch) = Launch::from_env().map_err(|e| anyhow!("{e}"))? else { return Ok(None) };
    if launch.rank > 0 {
        output::silence();
    }
    if args.threads.is_none()
        && let (Some(local), Ok(cores)) = (launch.local, std::thread::available_parallelism())
    {
        machine::use_threads(Some((cores.get() / local.max(1)).max(1)));
    }
    let usual = TcpOptions::default();
    let timeout = args.rank_timeout.map_or(usual.timeout, Duration::from_secs);
    let start = args.rank_start.map_or(timeout.max(usual.start), Duration::from_secs);
    let options = TcpOptions { timeout, start };
    let exchange = Tcp::join(&launch, options).map_err(|e| anyhow!("{e}"))?;
    let shared: SharedRanks = Arc::new(Mutex::new(Box::new(exchange)));
    *lock(&JOINED) = Some(shared.clone());
    Ok(Some(Box::new(Joined { rank: launch.rank, size: launch.size, shared })))
}

type SharedRanks = Arc<Mutex<Box<dyn Exchange>>>;

/// The way to the other ranks from the moment that they have met.
static JOINED: Mutex<Option<SharedRanks>> = Mutex::new(None);

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this rank has begun to look for the others.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Time in which a rank that ends before it has met the others looks for them, to tell them why.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Leaves the other ranks, if there are any, and tells them of an error that ends this one: also
/// where that has nothing to do with the training, such as a file or a word that is wrong here.
pub fn leave(why: Option<&str>) {
    // Dropped at once, so that the last words are sent before the process ends.
    let joined = lock(&JOINED).take();
    match (joined, why) {
        (Some(ranks), Some(why)) => lock(&ranks).abort(why),
        (None, Some(why)) if is_training() && !HAS_BEGUN.load(Ordering::Relaxed) => {
            // The others wait for this one, and for none that has failed.
            let Ok(Some(launch)) = Launch::from_env() else { return };
            let options = TcpOptions { start: LAST_WORDS, ..TcpOptions::default() };
            if let Ok(mut ranks) = Tcp::join(&launch, options) {
                ranks.abort(why);
            }
        }
        _ => {}
    }
}

/// Whether the command is one that ranks do together.
fn is_training() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == "train")
}

/// Returns when the first rank has left, or this one has lost it.
pub fn wait_for_the_first() {
    let joined = lock(&JOINED).clone();
    // The first one is at no barrier: this ends with its connection.
    let _ = joined.map(|ranks| lock(&ranks).barrier());
}

/// The way that a training has, and whoever ends it.
struct Joined {
    rank: usize,
    size: usize,
    shared: SharedRanks,
}

type Exchanged<T> = std::result::Result<T, ExchangeError>;

impl Exchange for Joined {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_to_all(&mut self, parts: Vec<Vec<u8>>) -> Exchanged<Vec<Vec<u8>>> {
        lock(&self.shared).all_to_all(parts)
    }

    fn begin(&mut self, parts: Vec<Vec<u8>>) -> Exchanged<Begun> {
        lock(&self.shared).begin(parts)
    }

    fn begin_gather(&mut self, own: Vec<u8>) -> Exchanged<Begun> {
        lock(&self.shared).begin_gather(own)
    }

    fn finish(&mut self, begun: Begun) -> Exchanged<Vec<Vec<u8>>> {
        lock(&self.shared).finish(begun)
    }

    fn all_gather(&mut self, own: &[u8]) -> Exchanged<Vec<Vec<u8>>> {
        lock(&self.shared).all_gather(own)
    }

    fn abort(&mut self, why: &str) {
        lock(&self.shared).abort(why);
    }
}

/// An error unless all ranks do this in the place of a training.
pub fn agree_on(exchange: &mut Option<Box<dyn Exchange>>, instead: &str) -> Result<()> {
    exchange.as_mut().map_or(Ok(()), |exchange| agree_with(exchange, &[("run", instead)]))
}

/// An error unless all ranks have these alike, and the same program. The trainer compares more,
/// once the first rank has made the folder.
pub fn agree_with(exchange: &mut Box<dyn Exchange>, facts: &[(&str, &str)]) -> Result<()> {
    let program = facts_of_the_program();
    let program = program.iter().map(|(n, v)| (*n, &v[..]));
    let all: Vec<(&str, &str)> = program.chain(facts.iter().copied()).collect();
    agree(&mut **exchange, &all).map_err(|e| anyhow!("{e}"))
}

/// Does `read` on rank 0 first, which may tidy the folder up, then on the others, and returns when
/// all have done it.
pub fn in_turn<T>(
    exchange: &mut Option<Box<dyn Exchange>>,
    read: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let Some(exchange) = exchange else { return read() };
    let is_first = exchange.rank() == 0;
    let told = |e: chainrule::exchange::ExchangeError| anyhow!("{e}");
    if !is_first {
        exchange.barrier().map_err(told)?;
    }
    let done = read();
    if let Err(e) = &done {
        exchange.abort(&format!("{e:#}"));
    }
    let done = done?;
    if is_first {
        exchange.barrier().map_err(told)?;
    }
    exchange.barrier().map_err(told)?;
    Ok(done)
}

/// The number of micro-batches of a new run: as many as there are ranks, if nothing else is said.
pub fn micro_batches(exchange: &Option<Box<dyn Exchange>>, asked: usize) -> Result<usize> {
    let Some(exchange) = exchange else { return Ok(asked) };
    let size = exchange.size();
    match asked {
        1 => Ok(size),
        asked if asked < size => bail!(
            "{size} ranks need --accumulate {size} at least, and it is {asked}; start fewer ranks, or accumulate more"
        ),
        asked => Ok(asked),
    }
}

/// The folder to go on with: the one of `--resume`, or with `--go-on` and after a restart by a
/// launcher the one that `--out` names, if the run had come to a checkpoint.
pub fn resumed(args: &Common) -> Option<PathBuf> {
    let has_checkpoint =
        |out: &&Path| CheckpointFolder::new(out).file(chainrule::io::Kept::Last).exists();
    let out = args.out.as_deref().filter(|_| is_again(args)).filter(has_checkpoint);
    args.resume.clone().or(out.map(Path::to_owned))
}

/// Whether this may be a run that had begun before, perhaps without coming to a checkpoint.
pub fn is_again(args: &Common) -> bool {
    let is_restart = |name: &str| std::env::var(name).is_ok_and(|n| n.trim() != "0");
    args.go_on || RESTARTS.into_iter().any(is_restart)
}

/// Variables in which launchers count their restarts: torchrun, and Slurm after a requeue.
const RESTARTS: [&str; 2] = ["TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"];

/// The settings that all ranks must have alike, a line of `config.toml` each; those of a part of
/// the data with its name, since each name must be there once.
pub fn facts(config: &str) -> Vec<(String, &str)> {
    let (mut of, mut facts) = (String::new(), Vec::new());
    for line in config.lines() {
        if let Some(section) = line.strip_prefix('[') {
            let part = section.trim_end_matches(']').strip_prefix("data.");
            of = part.map(|part| format!(" of {}", part.trim_matches('"'))).unwrap_or_default();
        } else if let Some((name, value)) = line.split_once(" = ") {
            facts.push((format!("{name}{of}"), value));
        }
    }
    // Trainings of another kind differ in much else.
    facts.sort_by_key(|(name, _)| name != "kind");
    facts
}
