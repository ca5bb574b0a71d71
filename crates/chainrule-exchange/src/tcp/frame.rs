//! Framing of messages on a byte stream.
//!
//! A message is a header of 17 bytes (kind, sequence number and length), followed by the payload.
//! Integers are little-endian.

use std::io::{ErrorKind, Read, Write};

use crate::links::Kind;
use crate::pool;

/// Heartbeat, which is not a message.
const ALIVE: u8 = 0;
const PART: u8 = 1;
const ABORT: u8 = 2;

/// Largest payload: a greater length is damaged or hostile.
pub(crate) const MOST: u64 = 1 << 40;

/// Bytes per read, so that memory is allocated as data arrive and not as a length claims.
const CHUNK: u64 = 1 << 24;

fn head(kind: u8, call: u64, len: u64) -> [u8; 17] {
    let mut head = [0; 17];
    head[0] = kind;
    head[1..9].copy_from_slice(&call.to_le_bytes());
    head[9..].copy_from_slice(&len.to_le_bytes());
    head
}

/// Writes a message.
pub(crate) fn write(
    out: &mut impl Write,
    kind: Kind,
    call: u64,
    bytes: &[u8],
) -> std::io::Result<()> {
    let kind = match kind {
        Kind::Part => PART,
        Kind::Abort => ABORT,
    };
    out.write_all(&head(kind, call, bytes.len() as u64))?;
    out.write_all(bytes)?;
    out.flush()
}

/// Writes a heartbeat.
pub(crate) fn write_alive(out: &mut impl Write) -> std::io::Result<()> {
    out.write_all(&head(ALIVE, 0, 0))?;
    out.flush()
}

/// Reads the next message, skipping heartbeats.
pub(crate) fn read(input: &mut impl Read) -> Result<(Kind, u64, Vec<u8>), String> {
    loop {
        let mut head = [0u8; 17];
        input.read_exact(&mut head).map_err(reason)?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let (call, len) = (number(1), number(9));
        let kind = match head[0] {
            ALIVE if call == 0 && len == 0 => continue,
            PART => Kind::Part,
            ABORT if len <= 1 << 16 => Kind::Abort,
            _ => return Err("sends what is no message; is it another program or version?".into()),
        };
        if len > MOST {
            return Err(format!("announces a message of {len} bytes, more than any is"));
        }
        return Ok((kind, call, body(input, len)?));
    }
}

fn body(input: &mut impl Read, len: u64) -> Result<Vec<u8>, String> {
    let mut bytes = pool::take_filled(len.min(CHUNK) as usize);
    let mut got = 0;
    loop {
        input.read_exact(&mut bytes[got..]).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => "has ended in the middle of a message".into(),
            _ => reason(e),
        })?;
        got = bytes.len();
        let next = CHUNK.min(len - got as u64) as usize;
        if next == 0 {
            break;
        }
        bytes
            .try_reserve(next)
            .map_err(|_| format!("sends {len} bytes, for which there is no memory"))?;
        bytes.resize(got + next, 0);
    }
    Ok(bytes)
}

/// Describes the system's error as an act of the peer.
pub(crate) fn reason(e: std::io::Error) -> String {
    match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            "does not answer; has its machine or its network stopped?".into()
        }
        ErrorKind::UnexpectedEof
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe => "has ended; see its own output".into(),
        _ => format!("cannot be reached: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back() {
        let mut bytes = Vec::new();
        write_alive(&mut bytes).unwrap();
        write(&mut bytes, Kind::Part, 7, b"abc").unwrap();
        write(&mut bytes, Kind::Abort, 8, b"").unwrap();
        let mut input = &bytes[..];
        assert_eq!(read(&mut input).unwrap(), (Kind::Part, 7, b"abc".to_vec()));
        assert_eq!(read(&mut input).unwrap(), (Kind::Abort, 8, Vec::new()));
        assert!(read(&mut input).unwrap_err().starts_with("has ended"));
    }

    #[test]
    fn a_cut_at_any_byte_is_an_end() {
        let mut bytes = Vec::new();
        write(&mut bytes, Kind::Part, 1, &[5; 40]).unwrap();
        for cut in 0..bytes.len() {
            assert!(read(&mut &bytes[..cut]).unwrap_err().starts_with("has ended"), "{cut}");
        }
    }

    #[test]
    fn a_length_that_lies_takes_no_memory() {
        for len in [MOST, MOST + 1, u64::MAX] {
            let mut bytes = head(PART, 1, len).to_vec();
            bytes.extend([0; 100]);
            assert!(read(&mut &bytes[..]).is_err());
        }
    }

    /// Random bytes cause no panic, endless loop or large buffer.
    #[test]
    fn random_bytes_do_no_harm() {
        let mut state = 1u64;
        let mut next = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as u32
        };
        for _ in 0..20_000 {
            let len = next() as usize % 64;
            let mut bytes: Vec<u8> = (0..len).map(|_| next() as u8).collect();
            if let Some(kind) = bytes.first_mut() {
                *kind %= 4;
            }
            let mut input = &bytes[..];
            while read(&mut input).is_ok() {}
        }
    }
}
