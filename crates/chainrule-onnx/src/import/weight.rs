//! A bound on the memory of a file's messages, before they are decoded.

use super::wrong;
use chainrule_core::error::Result;

/// Allowed bytes of memory per byte of the file: an honest graph of small nodes takes about 10.
const TIMES: usize = 40;

/// Allowed bytes for any file.
const FREE: usize = 1 << 20;

/// A message type: its size in memory, and the types of nested fields by number.
struct Kind {
    size: usize,
    inside: &'static [(u64, &'static Kind)],
}

static LEAF: Kind = Kind { size: 64, inside: &[] };
static TENSOR: Kind = Kind { size: 352, inside: &[(8, &LEAF), (13, &LEAF)] };
static ATTRIBUTE: Kind = Kind { size: 256, inside: &[(5, &TENSOR), (6, &GRAPH), (9, &LEAF)] };
static NODE: Kind = Kind { size: 192, inside: &[(1, &LEAF), (2, &LEAF), (5, &ATTRIBUTE)] };
static SHAPE: Kind = Kind { size: 32, inside: &[(1, &LEAF)] };
static TENSOR_TYPE: Kind = Kind { size: 48, inside: &[(2, &SHAPE)] };
static TYPE: Kind = Kind { size: 48, inside: &[(1, &TENSOR_TYPE)] };
static VALUE: Kind = Kind { size: 96, inside: &[(2, &TYPE)] };
static GRAPH: Kind = Kind {
    size: 224,
    inside: &[(1, &NODE), (5, &TENSOR), (11, &VALUE), (12, &VALUE), (15, &LEAF)],
};
static FUNCTION: Kind =
    Kind { size: 224, inside: &[(4, &LEAF), (5, &LEAF), (7, &NODE), (9, &LEAF), (11, &ATTRIBUTE)] };
static MODEL: Kind =
    Kind { size: 256, inside: &[(7, &GRAPH), (8, &LEAF), (14, &LEAF), (25, &FUNCTION)] };

/// An error if the messages of a file would take far more memory than its length. The decoder
/// reports malformed messages.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    let mut left = bytes.len().saturating_mul(TIMES).saturating_add(FREE);
    match weigh(bytes, &MODEL, &mut left, 0) {
        true => Ok(()),
        false => Err(wrong(format!(
            "its messages would take more than {TIMES} times the length of the file; it is hostile"
        ))),
    }
}

/// Whether the fields of a message fit into the remaining bytes.
fn weigh(mut bytes: &[u8], kind: &Kind, left: &mut usize, depth: usize) -> bool {
    // Vectors grow to twice what they need.
    let Some(rest) = left.checked_sub(2 * kind.size) else { return false };
    *left = rest;
    if depth > 100 {
        return true;
    }
    while let Some(key) = number(&mut bytes) {
        let skip = match key & 7 {
            0 => match number(&mut bytes) {
                Some(_) => 0,
                None => return true,
            },
            1 => 8,
            5 => 4,
            2 => match number(&mut bytes).map(usize::try_from) {
                Some(Ok(len)) if len <= bytes.len() => {
                    let (inner, _) = bytes.split_at(len);
                    let known = kind.inside.iter().find(|(field, _)| *field == key >> 3);
                    if known.is_some_and(|(_, kind)| !weigh(inner, kind, left, depth + 1)) {
                        return false;
                    }
                    len
                }
                _ => return true,
            },
            _ => return true,
        };
        match bytes.get(skip..) {
            Some(rest) => bytes = rest,
            None => return true,
        }
    }
    true
}

/// A varint.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut sum = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        sum |= u64::from(byte & 127).checked_shl(shift)?;
        if byte < 128 {
            return Some(sum);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::check;

    /// A message of one field of bytes.
    fn field(number: u8, inner: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut len = inner.len();
        while len >= 128 {
            out.push((len & 127) as u8 | 128);
            len >>= 7;
        }
        out.push(len as u8);
        out.extend(inner);
        out
    }

    #[test]
    fn a_file_of_empty_nodes_is_refused() {
        let nodes = field(1, &[]).repeat(1 << 20);
        let why = check(&field(7, &nodes)).unwrap_err().to_string();
        assert!(why.contains("hostile"), "{why}");
        let few = field(1, &[]).repeat(1 << 10);
        assert!(check(&field(7, &few)).is_ok());
    }

    #[test]
    fn elements_weigh_what_they_are_long() {
        let tensor = field(9, &vec![0; 1 << 22]);
        assert!(check(&field(7, &field(5, &tensor))).is_ok());
    }
}
