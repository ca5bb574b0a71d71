//! A connection to one peer, with a writer and a reader thread.

use std::io::BufReader;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::frame;
use crate::links::{Kind, Link, Message};
use crate::pool;
use crate::tcp::{LOOK, Watch};

/// Heartbeats per timeout.
const SIGNS: u32 = 4;

/// Time to flush the peer's last bytes at the end.
const LAST: Duration = Duration::from_secs(2);

pub(crate) struct TcpLink {
    to: Option<Sender<Message>>,
    from: Receiver<Result<Message, String>>,
    stream: TcpStream,
    writer: Option<JoinHandle<()>>,
    reader: Option<JoinHandle<()>>,
    watch: Option<Watch>,
}

impl TcpLink {
    pub fn new(
        stream: TcpStream,
        timeout: Duration,
        watch: Option<Watch>,
    ) -> std::io::Result<TcpLink> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        let (out, input) = (stream.try_clone()?, stream.try_clone()?);
        let ((to, messages), (arrived, from)) = (channel(), channel());
        let thread = || std::thread::Builder::new().name("chainrule exchange".into());
        let writer = thread().spawn(move || write(out, &messages, timeout / SIGNS))?;
        // Messages are received during computation: otherwise the peer's writer would block, and
        // take a long computation for an end.
        let reader = thread().spawn(move || {
            let mut input = BufReader::with_capacity(1 << 16, input);
            loop {
                let next = frame::read(&mut input);
                let next = next.map(|(kind, call, bytes)| (kind, call, Arc::new(bytes)));
                let is_last = next.is_err();
                if arrived.send(next).is_err() || is_last {
                    break;
                }
            }
        })?;
        let (to, writer, reader) = (Some(to), Some(writer), Some(reader));
        Ok(TcpLink { to, from, stream, writer, reader, watch })
    }
}

/// Writes messages until the queue closes, and heartbeats in between.
fn write(mut out: TcpStream, messages: &Receiver<Message>, every: Duration) {
    loop {
        let written = match messages.recv_timeout(every) {
            Ok((kind, call, bytes)) => {
                let written = frame::write(&mut out, kind, call, &bytes);
                Arc::try_unwrap(bytes).into_iter().for_each(pool::give);
                written
            }
            Err(RecvTimeoutError::Timeout) => frame::write_alive(&mut out),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        // The reader finds the reason.
        if written.is_err() {
            break;
        }
    }
    let _ = out.shutdown(Shutdown::Write);
}

impl Link for TcpLink {
    fn send(&mut self, kind: Kind, call: u64, bytes: Arc<Vec<u8>>) -> Result<(), String> {
        // A peer's end is noticed when its part is awaited, with its reason.
        if let Some(to) = &self.to {
            let _ = to.send((kind, call, bytes));
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Message, String> {
        let ended = "has ended; see its own output";
        let Some(watch) = &self.watch else {
            return self.from.recv().unwrap_or_else(|_| Err(ended.into()));
        };
        loop {
            match self.from.recv_timeout(LOOK) {
                Ok(message) => return message,
                Err(RecvTimeoutError::Timeout) => watch().map_or(Ok(()), Err)?,
                Err(RecvTimeoutError::Disconnected) => return Err(ended.into()),
            }
        }
    }
}

impl Drop for TcpLink {
    /// Flushes the queue, and drains the connection: closing it with unread bytes resets it, and
    /// the peer would lose the last message.
    fn drop(&mut self) {
        self.to = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        let until = Instant::now() + LAST;
        let left = || until.saturating_duration_since(Instant::now());
        while let Ok(Ok(_)) = self.from.recv_timeout(left()) {}
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
