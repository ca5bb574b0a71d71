//! The all-to-all exchange over pairwise links.

use std::sync::Arc;

use crate::exchange::{Begun, State};
use crate::{ExchangeError, Result};

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A part of an exchange.
    Part,
    /// The sender's reason for ending.
    Abort,
}

/// A message: kind, sequence number, and payload.
pub(crate) type Message = (Kind, u64, Arc<Vec<u8>>);

/// A link to one peer, reliable and in order.
pub(crate) trait Link {
    /// Sends without blocking.
    fn send(&mut self, kind: Kind, call: u64, bytes: Arc<Vec<u8>>) -> Result<(), String>;

    /// Receives the next message.
    fn receive(&mut self) -> Result<Message, String>;
}

/// Links to all peers; this rank's own entry is empty.
pub(crate) struct Links<L> {
    rank: usize,
    links: Vec<Option<L>>,
    /// Number of exchanges started, as sequence number, which detects ranks that have lost step.
    call: u64,
    /// Number of exchanges finished.
    finished: u64,
    ended: bool,
}

impl<L: Link> Links<L> {
    pub fn new(rank: usize, links: Vec<Option<L>>) -> Links<L> {
        Links { rank, links, call: 0, finished: 0, ended: false }
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn size(&self) -> usize {
        self.links.len()
    }

    pub fn all_to_all(&mut self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let begun = self.begin(parts)?;
        self.finish(begun)
    }

    /// Sends the parts.
    pub fn begin(&mut self, parts: Vec<Vec<u8>>) -> Result<Begun> {
        let size = self.size();
        if parts.len() != size {
            let why =
                format!("all_to_all takes a part for each of {size} ranks, not {}", parts.len());
            return Err(ExchangeError::Settings(why));
        }
        self.call += 1;
        let call = self.call;
        let mut parts: Vec<Option<Vec<u8>>> = parts.into_iter().map(Some).collect();
        let own = Arc::new(parts[self.rank].take().unwrap_or_default());
        // Each rank starts with its neighbour, to spread the load.
        for distance in 1..size {
            let peer = (self.rank + distance) % size;
            let part = Arc::new(parts[peer].take().unwrap_or_default());
            self.with(peer, |link| link.send(Kind::Part, call, part))?;
        }
        Ok(Begun(State::Open { call, own }))
    }

    /// Receives the parts.
    pub fn finish(&mut self, begun: Begun) -> Result<Vec<Vec<u8>>> {
        let (wanted, own) = match begun.0 {
            State::Open { call, own } => (call, own),
            State::Done(parts) => return Ok(parts),
            State::Waiting => {
                let why = "an exchange was begun on one way and is finished on another";
                return Err(ExchangeError::Settings(why.into()));
            }
        };
        self.finished += 1;
        if wanted != self.finished {
            let why = format!("exchange {wanted} is finished before {}", self.finished);
            return Err(ExchangeError::Settings(why));
        }
        let size = self.size();
        let mut received: Vec<Vec<u8>> = vec![Vec::new(); size];
        for distance in 1..size {
            let peer = (self.rank + size - distance) % size;
            let (kind, call, bytes) = self.with(peer, Link::receive)?;
            received[peer] = match kind {
                // Unwraps without a copy if it is the only owner.
                Kind::Part if call == wanted => Arc::unwrap_or_clone(bytes),
                Kind::Part => {
                    let why = format!(
                        "is at exchange {call} and this one at {wanted}; do all run the same program?"
                    );
                    return Err(self.error(peer, why));
                }
                Kind::Abort => return Err(self.error(peer, ended(&bytes))),
            };
        }
        // The links have usually dropped it by now.
        received[self.rank] = Arc::unwrap_or_clone(own);
        Ok(received)
    }

    pub fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let begun = self.begin_gather(own.to_vec())?;
        self.finish(begun)
    }

    /// Broadcasts bytes to all.
    pub fn begin_gather(&mut self, own: Vec<u8>) -> Result<Begun> {
        self.call += 1;
        let (call, shared) = (self.call, Arc::new(own));
        for distance in 1..self.size() {
            let peer = (self.rank + distance) % self.size();
            let part = shared.clone();
            self.with(peer, |link| link.send(Kind::Part, call, part))?;
        }
        Ok(Begun(State::Open { call, own: shared }))
    }

    /// Tells all peers why this rank ends.
    pub fn abort(&mut self, why: &str) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        for link in self.links.iter_mut().flatten() {
            // An unreachable peer has ended, or finds the link closed.
            let _ = link.send(Kind::Abort, self.call, Arc::new(why.as_bytes().to_vec()));
        }
    }

    fn with<T>(&mut self, peer: usize, act: impl FnOnce(&mut L) -> Result<T, String>) -> Result<T> {
        let done = match &mut self.links[peer] {
            Some(link) => act(link),
            None => Err("is this rank itself".into()),
        };
        done.map_err(|why| self.error(peer, why))
    }

    fn error(&self, peer: usize, why: String) -> ExchangeError {
        ExchangeError::Peer { rank: self.rank, size: self.size(), peer, why }
    }
}

/// A peer's reason for ending, in one line of bounded length.
pub(crate) fn ended(why: &[u8]) -> String {
    let text = String::from_utf8_lossy(&why[..why.len().min(1000)]);
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("has ended: {line}")
}

/// An exchange over links to all other ranks.
macro_rules! exchange_by_links {
    ($name:ty) => {
        impl $crate::Exchange for $name {
            fn rank(&self) -> usize {
                self.0.rank()
            }

            fn size(&self) -> usize {
                self.0.size()
            }

            fn all_to_all(&mut self, parts: Vec<Vec<u8>>) -> $crate::Result<Vec<Vec<u8>>> {
                self.0.all_to_all(parts)
            }

            fn begin(&mut self, parts: Vec<Vec<u8>>) -> $crate::Result<$crate::Begun> {
                self.0.begin(parts)
            }

            fn finish(&mut self, begun: $crate::Begun) -> $crate::Result<Vec<Vec<u8>>> {
                self.0.finish(begun)
            }

            fn begin_gather(&mut self, own: Vec<u8>) -> $crate::Result<$crate::Begun> {
                self.0.begin_gather(own)
            }

            fn all_gather(&mut self, own: &[u8]) -> $crate::Result<Vec<Vec<u8>>> {
                self.0.all_gather(own)
            }

            fn abort(&mut self, why: &str) {
                self.0.abort(why);
            }
        }
    };
}

pub(crate) use exchange_by_links;
