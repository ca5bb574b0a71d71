//! Ranks as threads of one process.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::links::{Kind, Link, Links, Message, exchange_by_links};

/// A rank as a thread; made by [`Threads::group`].
pub struct Threads(Links<Channel>);

struct Channel {
    to: Sender<Message>,
    from: Receiver<Message>,
    timeout: Option<Duration>,
}

impl Threads {
    /// The ranks of a group, each to be moved to its own thread. Empty for a size of 0.
    pub fn group(size: usize) -> Vec<Threads> {
        Threads::group_within(size, None)
    }

    /// As [`Threads::group`], with a timeout for ranks that others wait for.
    pub fn group_within(size: usize, timeout: Option<Duration>) -> Vec<Threads> {
        let mut links: Vec<Vec<Option<Channel>>> = Vec::new();
        for _ in 0..size {
            let mut own = Vec::new();
            for earlier in &mut links {
                let ((to_this, from_it), (to_it, from_this)) = (channel(), channel());
                earlier.push(Some(Channel { to: to_this, from: from_this, timeout }));
                own.push(Some(Channel { to: to_it, from: from_it, timeout }));
            }
            own.push(None);
            links.push(own);
        }
        links
            .into_iter()
            .enumerate()
            .map(|(rank, links)| Threads(Links::new(rank, links)))
            .collect()
    }
}

impl Link for Channel {
    fn send(&mut self, kind: Kind, call: u64, bytes: Arc<Vec<u8>>) -> Result<(), String> {
        // A peer's end is noticed when its part is awaited, with its reason.
        let _ = self.to.send((kind, call, bytes));
        Ok(())
    }

    fn receive(&mut self) -> Result<Message, String> {
        let ended = "has ended; see its own output";
        match self.timeout {
            None => self.from.recv().map_err(|_| ended.into()),
            Some(timeout) => self.from.recv_timeout(timeout).map_err(|e| match e {
                RecvTimeoutError::Disconnected => ended.into(),
                RecvTimeoutError::Timeout => {
                    format!("has not answered for {} s", timeout.as_secs_f64())
                }
            }),
        }
    }
}

exchange_by_links!(Threads);
