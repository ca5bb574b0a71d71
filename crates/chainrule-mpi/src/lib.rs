//! Ranks of a training that are processes of MPI.
//!
//! [`Mpi`] is an [`Exchange`] over all processes that `mpirun`, or another launcher of MPI, has
//! started. MPI is used by one thread of its own, so that bytes are under way while the rank
//! computes. The results have the bits of every other way between ranks.
//!
//! ```no_run
//! use chainrule_exchange::Exchange;
//! use chainrule_mpi::{Mpi, MpiOptions};
//! let mut ranks = Mpi::join(MpiOptions::default())?;
//! let all = ranks.all_gather(&[ranks.rank() as u8])?;
//! assert_eq!(all.len(), ranks.size());
//! # Ok::<(), chainrule_exchange::ExchangeError>(())
//! ```
//!
//! It needs an MPI with its headers and libclang: on Debian `apt-get install libopenmpi-dev
//! openmpi-bin libclang-dev`.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod world;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use chainrule_exchange::{Begun, Exchange, ExchangeError};

type Result<T, E = ExchangeError> = std::result::Result<T, E>;

/// Times of an [`Mpi`] exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpiOptions {
    /// Time that one rank waits for another in an exchange. It must be longer than the longest
    /// computation between two: MPI tells no sign of life.
    pub timeout: Duration,
}

impl Default for MpiOptions {
    /// Ten minutes. The launcher itself ends all ranks when one dies.
    fn default() -> Self {
        MpiOptions { timeout: Duration::from_secs(600) }
    }
}

/// The parts of an exchange, or the peer that did not answer and why.
pub(crate) type Parts = Result<Vec<Vec<u8>>, (usize, String)>;

/// Work for the thread that uses MPI.
pub(crate) enum Job {
    Exchange(Vec<Vec<u8>>),
    Abort(String),
}

/// A rank that is a process of MPI.
///
/// MPI has no way to leave an exchange whose peer does not answer: after the timeout the rank
/// writes one line to the standard error stream and ends all ranks, as `MPI_Abort` does.
pub struct Mpi {
    rank: usize,
    size: usize,
    to: Option<Sender<Job>>,
    from: Receiver<Parts>,
    thread: Option<JoinHandle<()>>,
}

impl Mpi {
    /// Joins all processes that the launcher has started; one process without a launcher. It can be
    /// called once in a process.
    pub fn join(options: MpiOptions) -> Result<Mpi> {
        let ((to, jobs), (results, from), (tell, told)) = (channel(), channel(), channel());
        let serve = move || world::serve(options, &tell, &jobs, &results);
        let thread = std::thread::Builder::new().name("chainrule mpi".into()).spawn(serve);
        let thread = thread.map_err(|e| ExchangeError::Settings(format!("no thread: {e}")))?;
        let ended = || Err("MPI did not start; see its own output".to_string());
        let (rank, size) =
            told.recv().unwrap_or_else(|_| ended()).map_err(ExchangeError::Settings)?;
        Ok(Mpi { rank, size, to: Some(to), from, thread: Some(thread) })
    }
}

impl Exchange for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_to_all(&mut self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let begun = self.begin(parts)?;
        self.finish(begun)
    }

    fn begin(&mut self, parts: Vec<Vec<u8>>) -> Result<Begun> {
        if parts.len() != self.size {
            let why = format!(
                "all_to_all takes a part for each of {} ranks, not {}",
                self.size,
                parts.len()
            );
            return Err(ExchangeError::Settings(why));
        }
        // A thread that has ended is noticed when its result is waited for.
        if let Some(to) = &self.to {
            let _ = to.send(Job::Exchange(parts));
        }
        Ok(Begun::waiting())
    }

    fn begin_gather(&mut self, own: Vec<u8>) -> Result<Begun> {
        self.begin(vec![own; self.size])
    }

    fn finish(&mut self, begun: Begun) -> Result<Vec<Vec<u8>>> {
        if let Some(parts) = begun.into_parts() {
            return Ok(parts);
        }
        let ended = || Err((self.rank, "has ended its exchange".to_string()));
        let done = self.from.recv().unwrap_or_else(|_| ended());
        done.map_err(|(peer, why)| ExchangeError::Peer {
            rank: self.rank,
            size: self.size,
            peer,
            why,
        })
    }

    fn abort(&mut self, why: &str) {
        if let Some(to) = &self.to {
            let _ = to.send(Job::Abort(why.to_string()));
        }
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        self.to = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
