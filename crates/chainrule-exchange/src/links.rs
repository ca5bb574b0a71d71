//! The exchange of all with all, over links from each rank to each other one.

use crate::frame::Kind;
use crate::{ExchangeError, Result};

/// A message: its purpose, the number of the exchange, and its bytes.
pub(crate) type Message = (Kind, u64, Vec<u8>);

/// A link to one peer: messages arrive whole and in order.
pub(crate) trait Link {
    /// Sends without waiting for the peer.
    fn send(&mut self, kind: Kind, call: u64, bytes: Vec<u8>) -> Result<(), String>;

    /// The next message.
    fn receive(&mut self) -> Result<Message, String>;
}

/// Links to all peers; the place of this rank is empty.
pub(crate) struct Links<L> {
    rank: usize,
    links: Vec<Option<L>>,
    /// The number of exchanges so far, by which ranks that have lost step are found.
    call: u64,
    ended: bool,
}

impl<L: Link> Links<L> {
    pub fn new(rank: usize, links: Vec<Option<L>>) -> Links<L> {
        Links { rank, links, call: 0, ended: false }
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn size(&self) -> usize {
        self.links.len()
    }

    pub fn all_to_all(&mut self, parts: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let size = self.size();
        if parts.len() != size {
            let why =
                format!("all_to_all takes a part for each of {size} ranks, not {}", parts.len());
            return Err(ExchangeError::Settings(why));
        }
        self.call += 1;
        let mut parts: Vec<Option<Vec<u8>>> = parts.into_iter().map(Some).collect();
        let mut received: Vec<Vec<u8>> = vec![Vec::new(); size];
        received[self.rank] = parts[self.rank].take().unwrap_or_default();
        // Each rank begins with its neighbour, so that no two send to the same one at first.
        for distance in 1..size {
            let peer = (self.rank + distance) % size;
            let part = parts[peer].take().unwrap_or_default();
            let call = self.call;
            self.with(peer, |link| link.send(Kind::Part, call, part))?;
        }
        for distance in 1..size {
            let peer = (self.rank + size - distance) % size;
            let (kind, call, bytes) = self.with(peer, Link::receive)?;
            received[peer] = match kind {
                Kind::Part if call == self.call => bytes,
                Kind::Part => {
                    let why = format!(
                        "is at exchange {call} and this one at {}; do all run the same program?",
                        self.call
                    );
                    return Err(self.error(peer, why));
                }
                Kind::Abort => return Err(self.error(peer, ended(&bytes))),
            };
        }
        Ok(received)
    }

    /// Tells all peers why this rank ends.
    pub fn abort(&mut self, why: &str) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        for link in self.links.iter_mut().flatten() {
            // A peer that cannot be told has ended, or finds the link closed.
            let _ = link.send(Kind::Abort, self.call, why.as_bytes().to_vec());
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

/// A peer's reason to end, in one line of bounded length.
fn ended(why: &[u8]) -> String {
    let text = String::from_utf8_lossy(&why[..why.len().min(1000)]);
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("has ended: {line}")
}
