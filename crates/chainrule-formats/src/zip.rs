//! The central directory of a zip, and its entries. PyTorch stores tensors uncompressed, and they
//! are read in place, as views of their storages: this needs offsets, not streams.

use std::io::{BufReader, Read};

use flate2::read::DeflateDecoder;

use crate::place::Data;
use crate::source::{Outcome, Source, reason};

/// A zip entry.
pub struct Member {
    pub name: String,
    /// Uncompressed size.
    pub len: u64,
    /// Compressed size.
    pub packed: u64,
    deflated: bool,
    header: u64,
}

/// Longest directory: a million entries.
const MOST_LIST: u64 = 100_000_000;

fn le(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
}

/// All entries.
pub fn list(source: &Source) -> Outcome<Vec<Member>> {
    let (at, len) = place_of_list(source)?;
    if len > MOST_LIST {
        return Err(format!("its list claims {len} bytes"));
    }
    let list = source.read(at, len)?;
    let mut members = Vec::new();
    let mut at = 0;
    while at < list.len() {
        let (member, size) = member(&list[at..]).ok_or("the list of the zip is damaged")?;
        members.push(member);
        at += size;
    }
    apart(&members)?;
    Ok(members)
}

/// An error for overlapping entries, by which a small file could unpack to any size.
fn apart(members: &[Member]) -> Outcome<()> {
    let mut order: Vec<&Member> = members.iter().collect();
    order.sort_by_key(|member| member.header);
    for pair in order.windows(2) {
        let end = pair[0].header.saturating_add(30).checked_add(pair[0].packed);
        if end.is_none_or(|end| end > pair[1].header) {
            return Err(format!("its entries `{}` and `{}` overlap", pair[0].name, pair[1].name));
        }
    }
    Ok(())
}

/// Offset and length of the directory.
fn place_of_list(source: &Source) -> Outcome<(u64, u64)> {
    let none = "no zip: the list at its end is missing; it is cut off, copy or save it again";
    // The end record has 22 bytes and a comment of up to 65,535 more.
    let tail = source.len().min(22 + 65_535);
    let from = source.len() - tail;
    let bytes = source.read(from, tail)?;
    let is_end = |at: usize| {
        let fits = le(&bytes, at + 20, 2).is_some_and(|len| at + 22 + len as usize == bytes.len());
        fits && bytes[at..].starts_with(b"PK\x05\x06")
    };
    let end = (0..bytes.len().saturating_sub(21)).rev().find(|&at| is_end(at)).ok_or(none)?;
    let field = |at, size| le(&bytes, end + at, size).ok_or(none);
    let (len, at) = (field(12, 4)?, field(16, 4)?);
    let is_long = len == 0xffff_ffff || at == 0xffff_ffff;
    let locator = end.checked_sub(20).filter(|&l| bytes[l..].starts_with(b"PK\x06\x07"));
    match locator {
        Some(locator) if is_long => {
            let record = le(&bytes, locator + 8, 8).ok_or(none)?;
            let record = source.read(record, 56)?;
            let read = |at| le(&record, at, 8).ok_or(none);
            match record.starts_with(b"PK\x06\x06") {
                true => Ok((read(48)?, read(40)?)),
                false => Err(none.into()),
            }
        }
        _ => Ok((at, len)),
    }
}

/// The first entry of a directory, and its length there.
fn member(list: &[u8]) -> Option<(Member, usize)> {
    if !list.starts_with(b"PK\x01\x02") {
        return None;
    }
    let field = |at, size| le(list, at, size);
    let (name, extra, comment) =
        (field(28, 2)? as usize, field(30, 2)? as usize, field(32, 2)? as usize);
    let mut sizes = [field(24, 4)?, field(20, 4)?, field(42, 4)?];
    let mut more = list.get(46 + name..46 + name + extra)?;
    while more.len() >= 4 {
        let (id, len) = (le(more, 0, 2)?, le(more, 2, 2)? as usize);
        let content = more.get(4..4 + len)?;
        if id == 1 {
            let mut at = 0;
            for size in sizes.iter_mut().filter(|size| **size == 0xffff_ffff) {
                *size = le(content, at, 8)?;
                at += 8;
            }
        }
        more = &more[4 + len..];
    }
    let method = field(10, 2)?;
    let encrypted = field(8, 2)? & 1 == 1;
    let name_bytes = list.get(46..46 + name)?;
    let [len, packed, header] = sizes;
    let member = Member {
        name: String::from_utf8_lossy(name_bytes).into_owned(),
        len,
        packed,
        deflated: method == 8,
        header,
    };
    let known = !encrypted && (method == 8 || method == 0 && len == packed);
    known.then_some((member, 46 + name + extra + comment))
}

impl Member {
    /// Offset of the content.
    pub fn data(&self, source: &Source) -> Outcome<Data> {
        let named = |e: String| format!("`{}`: {e}", self.name);
        let header = source.read(self.header, 30).map_err(named)?;
        let skip = le(&header, 26, 2).zip(le(&header, 28, 2)).map(|(a, b)| a + b);
        let skip = skip.filter(|_| header.starts_with(b"PK\x03\x04"));
        let at = self.header + 30 + skip.ok_or_else(|| named("its header is damaged".into()))?;
        source.check(at, self.packed).map_err(named)?;
        Ok(match self.deflated {
            true => Data::Deflated { at, packed: self.packed, skip: 0 },
            false => Data::Plain { at },
        })
    }

    /// The content, chunk by chunk.
    pub fn reader<'a>(&self, source: &'a Source) -> Outcome<Box<dyn Read + 'a>> {
        Ok(match self.data(source)? {
            Data::Plain { at } => Box::new(source.buffered(at)?.take(self.len)),
            Data::Deflated { at, packed, .. } => {
                let unpacked = DeflateDecoder::new(source.from(at)?.take(packed));
                Box::new(BufReader::new(unpacked.take(self.len)))
            }
        })
    }

    /// The first bytes of the content, up to this many.
    pub fn head(&self, source: &Source, most: u64) -> Outcome<Vec<u8>> {
        let most = most.min(self.len);
        let mut bytes = Vec::new();
        let done = match self.data(source)? {
            Data::Plain { at } => return source.read(at, most),
            Data::Deflated { at, packed, .. } => {
                let part = source.from(at)?.take(packed);
                DeflateDecoder::new(part).take(most).read_to_end(&mut bytes)
            }
        };
        done.map_err(|e| format!("`{}`: {}", self.name, reason(&e)))?;
        Ok(bytes)
    }
}
