//! A connection to one peer, with a thread that writes.

use std::io::{BufReader, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::frame::{self, Kind};
use crate::links::{Link, Message};

/// Signs of life in a timeout.
const SIGNS: u32 = 4;

/// Time for the peer's last bytes at the end.
const LAST: Duration = Duration::from_secs(2);

pub(crate) struct TcpLink {
    to: Option<Sender<Message>>,
    writer: Option<JoinHandle<()>>,
    reader: BufReader<TcpStream>,
}

impl TcpLink {
    pub fn new(stream: TcpStream, timeout: Duration) -> std::io::Result<TcpLink> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        let out = stream.try_clone()?;
        let (to, messages) = channel();
        let writer = std::thread::Builder::new()
            .name("chainrule exchange".into())
            .spawn(move || write(out, &messages, timeout / SIGNS))?;
        let reader = BufReader::with_capacity(1 << 16, stream);
        Ok(TcpLink { to: Some(to), writer: Some(writer), reader })
    }
}

/// Writes messages until there are no more, and signs of life between them.
fn write(mut out: TcpStream, messages: &Receiver<Message>, every: Duration) {
    loop {
        let written = match messages.recv_timeout(every) {
            Ok((kind, call, bytes)) => frame::write(&mut out, kind, call, &bytes),
            Err(RecvTimeoutError::Timeout) => frame::write_alive(&mut out),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        // The reader's side finds out why.
        if written.is_err() {
            break;
        }
    }
    let _ = out.shutdown(Shutdown::Write);
}

impl Link for TcpLink {
    fn send(&mut self, kind: Kind, call: u64, bytes: Vec<u8>) -> Result<(), String> {
        // A peer that has ended is noticed when its part is waited for, with its reason.
        if let Some(to) = &self.to {
            let _ = to.send((kind, call, bytes));
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Message, String> {
        frame::read(&mut self.reader)
    }
}

impl Drop for TcpLink {
    /// Sends what is left, and takes what the peer has sent: a connection that is closed with
    /// unread bytes is reset, which would take the last message from the peer.
    fn drop(&mut self) {
        self.to = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        let stream = self.reader.get_mut();
        let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
        let (until, mut rest) = (Instant::now() + LAST, [0u8; 1 << 12]);
        while Instant::now() < until && matches!(stream.read(&mut rest), Ok(n) if n > 0) {}
    }
}
