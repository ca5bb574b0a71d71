//! The thread that uses MPI: messages between all pairs of ranks.
//!
//! A message is one byte of its kind, eight of the exchange's number, little endian, and its bytes.

use std::io::Write as _;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::request::Request;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use crate::{Job, MpiOptions, Parts};

const PART: u8 = 0;
const ABORT: u8 = 1;
const HEAD: usize = 9;

/// Most bytes of a message of MPI, whose counts are of 32 bits.
const MOST: usize = i32::MAX as usize - HEAD;

/// Most bytes of a reason to end: short enough to leave without the peer's help.
const REASON: usize = 1000;

/// Time for the peers to be told of an end.
const LAST: Duration = Duration::from_secs(2);

/// Starts MPI, tells rank and size, and exchanges until there are no more jobs.
pub(crate) fn serve(
    options: MpiOptions,
    tell: &Sender<Result<(usize, usize), String>>,
    jobs: &Receiver<Job>,
    results: &Sender<Parts>,
) {
    let Some((universe, _)) = mpi::initialize_with_threading(Threading::Funneled) else {
        let _ = tell.send(Err("MPI runs in this process already; join once".into()));
        return;
    };
    let world = universe.world();
    let (Ok(rank), Ok(size)) = (usize::try_from(world.rank()), usize::try_from(world.size()))
    else {
        let _ = tell.send(Err("MPI gives no rank".into()));
        return;
    };
    let _ = tell.send(Ok((rank, size)));
    let mut call = 0;
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Exchange(parts) => {
                call += 1;
                let done = exchange(&world, rank, call, parts, options.timeout);
                let is_last = done.is_err();
                if results.send(done).is_err() || is_last {
                    break;
                }
            }
            Job::Abort(why) => {
                abort(&world, rank, size, call, &why);
                break;
            }
        }
    }
}

fn message(kind: u8, call: u64, bytes: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEAD + bytes.len());
    message.push(kind);
    message.extend_from_slice(&call.to_le_bytes());
    message.extend_from_slice(bytes);
    message
}

/// Sends all parts and receives those of the others. The first error is told when all that was
/// begun is done, which MPI asks for.
fn exchange(
    world: &SimpleCommunicator,
    rank: usize,
    call: u64,
    mut parts: Vec<Vec<u8>>,
    timeout: Duration,
) -> Parts {
    let size = parts.len();
    if let Some(peer) = parts.iter().position(|part| part.len() > MOST) {
        return Err((peer, format!("would get more than {MOST} bytes at once, the most of MPI")));
    }
    let mut received: Vec<Option<Vec<u8>>> = vec![None; size];
    received[rank] = Some(std::mem::take(&mut parts[rank]));
    let messages: Vec<Vec<u8>> = parts.iter().map(|part| message(PART, call, part)).collect();
    drop(parts);
    let mut failure = None;
    mpi::request::scope(|scope| {
        let mut sends: Vec<Request<'_, [u8], _>> = (1..size)
            .map(|distance| (rank + distance) % size)
            .map(|peer| {
                world.process_at_rank(peer as i32).immediate_send(scope, &messages[peer][..])
            })
            .collect();
        let mut wait = Wait::new(timeout);
        while !sends.is_empty() || (failure.is_none() && received.iter().any(Option::is_none)) {
            let before = sends.len();
            sends = sends.into_iter().filter_map(|send| send.test().err()).collect();
            let mut moved = sends.len() < before;
            // One that has failed takes what comes, so that the peers' sends end, too.
            for peer in (0..size).filter(|&peer| peer != rank) {
                if received[peer].is_some() && failure.is_none() {
                    continue;
                }
                let Some(bytes) = next(world, peer) else { continue };
                moved = true;
                match opened(&bytes, call) {
                    Ok(part) => received[peer] = Some(part.to_vec()),
                    Err(why) => failure = failure.take().or(Some((peer, why))),
                }
            }
            if wait.is_over(moved) {
                let missing = (0..size).find(|&peer| received[peer].is_none()).unwrap_or(rank);
                let waited = timeout.as_secs_f64();
                let text = format!(
                    "error: rank {rank} of {size}: rank {missing} has not answered for {waited} s; \
                     ending all ranks\n"
                );
                // One write: `eprintln` makes several, between which other ranks and MPI write.
                let _ = std::io::stderr().write_all(text.as_bytes());
                world.abort(1);
            }
        }
    });
    match failure {
        Some(failure) => Err(failure),
        None => Ok(received.into_iter().map(Option::unwrap_or_default).collect()),
    }
}

/// The next message of a rank, if there is one.
fn next(world: &SimpleCommunicator, peer: usize) -> Option<Vec<u8>> {
    let found = world.process_at_rank(peer as i32).immediate_matched_probe();
    found.map(|(message, status)| {
        let count = status.count(<u8 as Equivalence>::equivalent_datatype());
        let mut bytes = vec![0u8; usize::try_from(count).unwrap_or(0)];
        message.matched_receive_into(&mut bytes[..]);
        bytes
    })
}

/// The part in a message of this exchange, or what is wrong with the peer.
fn opened(bytes: &[u8], call: u64) -> Result<&[u8], String> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
        return Err("sends what is no message; is it another program or version?".into());
    };
    let theirs = u64::from_le_bytes(std::array::from_fn(|i| head[1 + i]));
    match head[0] {
        PART if theirs == call => Ok(rest),
        PART => Err(format!(
            "is at exchange {theirs} and this one at {call}; do all run the same program?"
        )),
        _ => {
            let text = String::from_utf8_lossy(&rest[..rest.len().min(REASON)]);
            let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            Err(format!("has ended: {line}"))
        }
    }
}

/// Tells all why this rank ends, and takes what they send for a while: a large message of theirs
/// ends only when it is received.
fn abort(world: &SimpleCommunicator, rank: usize, size: usize, call: u64, why: &str) {
    let told = message(ABORT, call + 1, &why.as_bytes()[..why.len().min(REASON)]);
    mpi::request::scope(|scope| {
        let others = || (0..size).filter(|&peer| peer != rank);
        let mut sends: Vec<Request<'_, [u8], _>> = others()
            .map(|peer| world.process_at_rank(peer as i32).immediate_send(scope, &told[..]))
            .collect();
        let until = Instant::now() + LAST;
        while Instant::now() < until || !sends.is_empty() {
            sends = sends.into_iter().filter_map(|send| send.test().err()).collect();
            others().for_each(|peer| drop(next(world, peer)));
            if Instant::now() > until + LAST {
                world.abort(1);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Waiting that leaves the processor to others where nothing comes.
struct Wait {
    timeout: Duration,
    last: Instant,
    idle: u32,
}

impl Wait {
    fn new(timeout: Duration) -> Wait {
        Wait { timeout, last: Instant::now(), idle: 0 }
    }

    /// Whether nothing has moved for too long.
    fn is_over(&mut self, moved: bool) -> bool {
        if moved {
            (self.last, self.idle) = (Instant::now(), 0);
            return false;
        }
        self.idle += 1;
        match self.idle {
            0..100 => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(50)),
        }
        self.last.elapsed() > self.timeout
    }
}
