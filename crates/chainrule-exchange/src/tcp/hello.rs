//! The handshake of a connection, with mutual authentication by the token.
//!
//! Listener: magic, nonce a. Caller: magic, nonce b, rank, size, port, and the keyed hash of
//! "caller", a, b and these. Listener: a byte 0 and the keyed hash of "listener", b and a; or the
//! reason of a refusal. A connection without the token's hash is closed without a word.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::frame;
use crate::links::{Kind, ended};

/// Name and version of the protocol.
const MAGIC: [u8; 8] = *b"chainru1";

/// The caller's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub rank: u32,
    pub size: u32,
    pub port: u16,
}

/// The listener's reason to refuse an authenticated peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The number of ranks differs.
    Size(u32),
    /// The rank has joined already.
    Twice,
    /// The listener closed the connection: the token differs.
    Token,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Size(size) => {
                write!(f, "rank 0 was started for {size} ranks; give all the same number")
            }
            Refusal::Twice => write!(f, "another process has this rank; give each its own"),
            Refusal::Token => write!(
                f,
                "what listens there is no rank of this run, or has another CHAINRULE_TOKEN"
            ),
        }
    }
}

impl Hello {
    fn bytes(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..4].copy_from_slice(&self.rank.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.size.to_le_bytes());
        bytes[8..].copy_from_slice(&self.port.to_le_bytes());
        bytes
    }

    fn of(b: [u8; 10]) -> Hello {
        Hello {
            rank: u32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            size: u32::from_le_bytes([b[4], b[5], b[6], b[7]]),
            port: u16::from_le_bytes([b[8], b[9]]),
        }
    }
}

fn keyed(secret: &[u8], parts: &[&[u8]]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    parts.iter().for_each(|part| mac.update(part));
    Some(mac)
}

/// Sets the read and write timeout.
pub(super) fn limit(stream: &TcpStream, time: Duration) -> Result<(), String> {
    let set = stream.set_read_timeout(Some(time)).and(stream.set_write_timeout(Some(time)));
    set.and(stream.set_nodelay(true)).map_err(|e| e.to_string())
}

/// The caller's side.
pub(super) fn greet(
    stream: &mut TcpStream,
    secret: &[u8],
    hello: Hello,
) -> Result<Result<(), Refusal>, String> {
    let mut theirs = [0u8; 40];
    stream.read_exact(&mut theirs).map_err(frame::reason)?;
    let Some(a) = theirs.strip_prefix(&MAGIC) else { return Ok(Err(Refusal::Token)) };
    let b = random()?;
    let place = hello.bytes();
    let mac = keyed(secret, &[b"caller", a, &b, &place]).ok_or("the token cannot be used")?;
    let mut own = MAGIC.to_vec();
    own.extend(b);
    own.extend(place);
    own.extend(mac.finalize().into_bytes());
    stream.write_all(&own).map_err(frame::reason)?;
    let mut verdict = [0u8; 1];
    if stream.read_exact(&mut verdict).is_err() {
        return Ok(Err(Refusal::Token));
    }
    match verdict[0] {
        0 => {
            let mut tag = [0u8; 32];
            stream.read_exact(&mut tag).map_err(frame::reason)?;
            let known =
                keyed(secret, &[b"listener", &b, a]).is_some_and(|m| m.verify_slice(&tag).is_ok());
            Ok(if known { Ok(()) } else { Err(Refusal::Token) })
        }
        1 => {
            let mut size = [0u8; 4];
            stream.read_exact(&mut size).map_err(frame::reason)?;
            Ok(Err(Refusal::Size(u32::from_le_bytes(size))))
        }
        2 => Ok(Err(Refusal::Twice)),
        _ => Ok(Err(Refusal::Token)),
    }
}

/// An authenticated caller, which waits for the verdict with this tag.
pub(super) struct Proved {
    pub hello: Hello,
    tag: [u8; 32],
}

/// The listener's side: an error for a peer without the token.
pub(super) fn ask(stream: &mut TcpStream, secret: &[u8], time: Duration) -> Result<Proved, String> {
    stream.set_nonblocking(false).map_err(|e| e.to_string())?;
    limit(stream, time)?;
    let a = random()?;
    let mut own = MAGIC.to_vec();
    own.extend(a);
    stream.write_all(&own).map_err(frame::reason)?;
    let mut theirs = [0u8; 82];
    stream.read_exact(&mut theirs).map_err(frame::reason)?;
    let stranger = "is no rank of this run".to_string();
    let (magic, rest) = theirs.split_at(8);
    let (b, rest) = rest.split_at(32);
    let (place, tag) = rest.split_at(10);
    let is_known =
        keyed(secret, &[b"caller", &a, b, place]).is_some_and(|m| m.verify_slice(tag).is_ok());
    let (true, true, Ok(place)) = (magic == MAGIC, is_known, place.try_into()) else {
        return Err(stranger);
    };
    let mac = keyed(secret, &[b"listener", b, &a]).ok_or(stranger)?;
    let mut tag = [0u8; 32];
    tag.copy_from_slice(&mac.finalize().into_bytes());
    Ok(Proved { hello: Hello::of(place), tag })
}

/// Admits a caller.
pub(super) fn admit(stream: &mut TcpStream, proved: &Proved) -> Result<(), String> {
    let mut answer = vec![0u8];
    answer.extend(proved.tag);
    stream.write_all(&answer).map_err(frame::reason)
}

/// Refuses an authenticated caller.
pub(super) fn refuse(stream: &mut TcpStream, refusal: Refusal) {
    let answer = match refusal {
        Refusal::Size(size) => [&[1u8][..], &size.to_le_bytes()].concat(),
        Refusal::Twice => vec![2],
        Refusal::Token => vec![3],
    };
    // Otherwise the caller times out.
    let _ = stream.write_all(&answer);
}

/// Sends a rank the addresses of all, as one message.
pub(super) fn write_table(
    stream: &mut TcpStream,
    table: &[Option<SocketAddr>],
) -> Result<(), String> {
    let text: Vec<String> =
        table.iter().map(|place| place.map_or("-".into(), |place| place.to_string())).collect();
    frame::write(stream, Kind::Part, 0, text.join("\n").as_bytes()).map_err(frame::reason)
}

/// Receives the addresses of all ranks.
pub(super) fn read_table(
    stream: &mut TcpStream,
    size: usize,
    time: Duration,
) -> Result<Vec<Option<SocketAddr>>, String> {
    limit(stream, time.max(Duration::from_millis(10)))?;
    let (kind, _, bytes) = frame::read(stream)?;
    if kind == Kind::Abort {
        return Err(ended(&bytes));
    }
    let text = String::from_utf8(bytes).map_err(|_| "sends no table of ranks".to_string())?;
    let table: Vec<Option<SocketAddr>> = text.split('\n').map(|line| line.parse().ok()).collect();
    if table.len() != size || table.iter().flatten().any(|place| place.ip().is_unspecified()) {
        return Err("sends no table of ranks".into());
    }
    Ok(table)
}

/// Waits until the peer has sent something or has closed, up to this time.
pub(super) fn is_heard(stream: &TcpStream, time: Duration) -> Result<bool, String> {
    stream.set_read_timeout(Some(time)).map_err(|e| e.to_string())?;
    match stream.peek(&mut [0]) {
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(false),
        // A failed connection reports its reason to the reader.
        _ => Ok(true),
    }
}

/// Tells a rank why the rendezvous failed.
pub(super) fn write_end(stream: &mut TcpStream, why: &str) {
    // Otherwise it finds the connection closed.
    let _ = frame::write(stream, Kind::Abort, 0, why.as_bytes());
}

/// The unread reason for a rank's end, if it sent one.
pub(super) fn unread_end(stream: &TcpStream) -> Option<String> {
    let mut bytes = vec![0; 1 << 12];
    stream.set_nonblocking(true).ok()?;
    let peeked = stream.peek(&mut bytes);
    stream.set_nonblocking(false).ok()?;
    match peeked {
        Ok(0) => Some(frame::reason(ErrorKind::UnexpectedEof.into())),
        Ok(n) => {
            let mut input = &bytes[..n];
            loop {
                match frame::read(&mut input) {
                    Ok((Kind::Abort, _, why)) => break Some(ended(&why)),
                    Ok((Kind::Part, ..)) => {}
                    Err(_) => break None,
                }
            }
        }
        Err(e) if e.kind() == ErrorKind::WouldBlock => None,
        Err(e) => Some(frame::reason(e)),
    }
}

fn random() -> Result<[u8; 32], String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|e| format!("no random numbers: {e}"))?;
    Ok(bytes)
}
