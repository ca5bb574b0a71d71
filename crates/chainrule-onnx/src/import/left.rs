//! The messages of a file without the elements of large tensors, which stay in the file until their
//! tensor is allocated, so that no element is in memory twice.

use std::fs::File;
use std::io::{BufReader, Read as _};

/// Elements of fewer bytes are read with the messages.
const LARGE: u64 = 1 << 16;

/// Limit on nested messages.
const DEEPEST: usize = 100;

/// Field of a tensor with its elements, and private fields for their location in the file.
const RAW: u64 = 9;
const AT: u64 = 1000;
const LEN: u64 = 1001;

/// A message type that contains tensors.
#[derive(Clone, Copy, PartialEq)]
enum Message {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
}

impl Message {
    /// Type of the message in a field, if it contains tensors.
    fn inner(self, field: u64) -> Option<Message> {
        Some(match (self, field) {
            (Message::Model, 7) | (Message::Attribute, 6) => Message::Graph,
            (Message::Graph, 1) => Message::Node,
            (Message::Node, 5) => Message::Attribute,
            (Message::Graph | Message::Attribute, 5) => Message::Tensor,
            _ => return None,
        })
    }
}

/// The messages of a file of this length, if they are well-formed; the decoder reports the faults
/// of others.
pub(super) fn messages(file: File, len: u64) -> Option<Vec<u8>> {
    let mut from = Messages { reader: BufReader::new(file), at: 0 };
    from.copy(len, Message::Model, DEEPEST)
}

struct Messages {
    reader: BufReader<File>,
    at: u64,
}

impl Messages {
    /// The fields up to a place.
    fn copy(&mut self, end: u64, kind: Message, deepest: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        while self.at < end {
            let key = self.number()?;
            let len = match key & 7 {
                0 => {
                    let n = self.number()?;
                    push_field(&mut out, key, n);
                    continue;
                }
                1 => 8,
                5 => 4,
                2 => self.number()?,
                _ => return None,
            };
            let after = self.at.checked_add(len).filter(|after| *after <= end)?;
            let (field, bytes) = (key >> 3, key & 7 == 2);
            if bytes && len >= LARGE && kind == Message::Tensor && field == RAW {
                push_field(&mut out, AT << 3, self.at);
                push_field(&mut out, LEN << 3, len);
                self.reader.seek_relative(i64::try_from(len).ok()?).ok()?;
                self.at = after;
                continue;
            }
            let inner = match kind.inner(field).filter(|_| bytes && len >= LARGE) {
                Some(inner) => self.copy(after, inner, deepest.checked_sub(1)?)?,
                None => self.bytes(len)?,
            };
            match bytes {
                true => push_field(&mut out, key, inner.len() as u64),
                false => push(&mut out, key),
            }
            out.extend(inner);
        }
        (self.at == end).then_some(out)
    }

    fn bytes(&mut self, len: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader.by_ref().take(len).read_to_end(&mut bytes).ok()?;
        self.at += len;
        (bytes.len() as u64 == len).then_some(bytes)
    }

    /// A varint.
    fn number(&mut self) -> Option<u64> {
        let mut sum = 0;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.reader.read_exact(&mut byte).ok()?;
            self.at += 1;
            sum |= u64::from(byte[0] & 127) << shift;
            if byte[0] < 128 {
                return Some(sum);
            }
        }
        None
    }
}

fn push(out: &mut Vec<u8>, mut n: u64) {
    while n >= 128 {
        out.push(n as u8 | 128);
        n >>= 7;
    }
    out.push(n as u8);
}

fn push_field(out: &mut Vec<u8>, key: u64, n: u64) {
    push(out, key);
    push(out, n);
}
