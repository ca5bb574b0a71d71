//! Ranks of a training that a launcher has started: `mpirun`, `torchrun`, `srun`, or variables that
//! were set by hand.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use chainrule::exchange::{Exchange, Launch, Tcp, TcpOptions};
use chainrule::io::CheckpointFolder;

use crate::args::train::Common;
use crate::{machine, output};

/// The way to the other ranks, if there are any. All but rank 0 fall silent.
pub fn join(args: &Common) -> Result<Option<Box<dyn Exchange>>> {
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
    let options = TcpOptions { timeout, start: timeout.max(usual.start) };
    let exchange = Tcp::join(&launch, options).map_err(|e| anyhow!("{e}"))?;
    Ok(Some(Box::new(exchange)))
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

/// The folder to go on with: the one of `--resume`, or after a restart by a launcher the one that
/// `--out` names, if the run had come to a checkpoint.
pub fn resumed(args: &Common) -> Option<PathBuf> {
    let is_again = std::env::var("TORCHELASTIC_RESTART_COUNT").is_ok_and(|n| n.trim() != "0");
    let has_checkpoint =
        |out: &&Path| CheckpointFolder::new(out).file(chainrule::io::Kept::Last).exists();
    let out = args.out.as_deref().filter(|_| is_again).filter(has_checkpoint);
    args.resume.clone().or(out.map(Path::to_owned))
}

/// The settings that all ranks must have alike, a line of `config.toml` each.
pub fn facts(config: &str) -> Vec<(&str, &str)> {
    config.lines().filter_map(|line| line.split_once(" = ")).collect()
}
