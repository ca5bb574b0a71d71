//! GGUF: typed metadata, then tensors, many of them quantised.

use std::fmt::Write as _;
use std::io::Read as _;

use chainrule_core::dtype::DType;

use crate::place::{Data, Form, Place};
use crate::quant::Quant;
use crate::source::{Outcome, Source, reason, zeros};
use crate::weights::{Read, WeightEntry};

/// Cursor over a header.
struct Header<'a> {
    reader: std::io::BufReader<crate::source::Part<'a>>,
    at: u64,
    len: u64,
}

impl Header<'_> {
    fn bytes(&mut self, len: u64) -> Outcome<Vec<u8>> {
        if len > self.len.saturating_sub(self.at) {
            return Err(format!("{len} bytes claimed at byte {}, of {}", self.at, self.len));
        }
        let mut bytes = zeros(len)?;
        self.reader.read_exact(&mut bytes).map_err(|e| reason(&e))?;
        self.at += len;
        Ok(bytes)
    }

    fn number<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).map_err(|e| reason(&e))?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u32(&mut self) -> Outcome<u32> {
        self.number().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Outcome<u64> {
        self.number().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Outcome<String> {
        let len = self.u64()?;
        Ok(String::from_utf8_lossy(&self.bytes(len)?).into_owned())
    }

    /// Appends a value as JSON.
    fn value(&mut self, kind: u32, depth: usize, out: &mut String) -> Outcome<()> {
        let text = match kind {
            0 => u8::from_le_bytes(self.number()?).to_string(),
            1 => i8::from_le_bytes(self.number()?).to_string(),
            2 => u16::from_le_bytes(self.number()?).to_string(),
            3 => i16::from_le_bytes(self.number()?).to_string(),
            4 => self.u32()?.to_string(),
            5 => i32::from_le_bytes(self.number()?).to_string(),
            // Debug output uses an exponent instead of hundreds of zeros.
            6 => float(format!("{:?}", f32::from_le_bytes(self.number()?))),
            7 => (self.number::<1>()? != [0]).to_string(),
            8 => serde_json::Value::from(self.text()?).to_string(),
            9 => return self.array(depth, out),
            10 => self.u64()?.to_string(),
            11 => i64::from_le_bytes(self.number()?).to_string(),
            12 => float(format!("{:?}", f64::from_le_bytes(self.number()?))),
            _ => return Err(format!("type {kind} of metadata is unknown")),
        };
        let _ = write!(out, "{text}");
        Ok(())
    }

    fn array(&mut self, depth: usize, out: &mut String) -> Outcome<()> {
        if depth > 4 {
            return Err("arrays of arrays are nested too deeply".into());
        }
        let (kind, count) = (self.u32()?, self.u64()?);
        out.push('[');
        for i in 0..count {
            if i > 0 {
                out.push_str(", ");
            }
            self.value(kind, depth + 1, out)?;
        }
        out.push(']');
        Ok(())
    }
}

/// JSON has no NaN or infinity.
fn float(text: String) -> String {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() => text,
        _ => format!("\"{text}\""),
    }
}

fn dtype(kind: u32) -> Option<(DType, Form, &'static str)> {
    let plain = |dtype: DType| Some((dtype, Form::Rows, dtype.name()));
    let blocks = |quant, name| Some((DType::F32, Form::Blocks(quant), name));
    match kind {
        0 => plain(DType::F32),
        1 => plain(DType::F16),
        2 => blocks(Quant::Q4_0, "q4_0"),
        8 => blocks(Quant::Q8_0, "q8_0"),
        12 => blocks(Quant::Q4K, "q4_k"),
        14 => blocks(Quant::Q6K, "q6_k"),
        24 => plain(DType::I8),
        25 => plain(DType::I16),
        26 => plain(DType::I32),
        27 => plain(DType::I64),
        28 => plain(DType::F64),
        30 => plain(DType::BF16),
        _ => None,
    }
}

/// Name of an unsupported block type, or its number.
fn unread(kind: u32) -> String {
    let name = match kind {
        3 => "Q4_1",
        6 => "Q5_0",
        7 => "Q5_1",
        9 => "Q8_1",
        10 => "Q2_K",
        11 => "Q3_K",
        13 => "Q5_K",
        15 => "Q8_K",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        16..=23 | 29 => "one of the IQ",
        _ => return kind.to_string(),
    };
    name.to_owned()
}

struct Claim {
    name: String,
    shape: Vec<usize>,
    kind: u32,
    offset: u64,
}

/// Tensors and metadata of a file.
pub fn read(source: &Source, into: &mut Read) -> Outcome<()> {
    let mut header = Header { reader: source.buffered(4)?, at: 4, len: source.len() };
    let version = header.u32()?;
    if (2..=3).contains(&version.swap_bytes()) {
        return Err(
            "GGUF whose numbers have the high byte first; convert it to little-endian".into()
        );
    }
    if !(2..=3).contains(&version) {
        return Err(format!("GGUF of version {version}; 2 and 3 can be read"));
    }
    let (tensors, values) = (header.u64()?, header.u64()?);
    for _ in 0..values {
        let (key, kind) = (header.text()?, header.u32()?);
        let mut text = String::new();
        header.value(kind, 0, &mut text).map_err(|e| format!("`{key}`: {e}"))?;
        into.metadata.insert(key, text);
    }
    let mut claims = Vec::new();
    for _ in 0..tensors {
        let name = header.text()?;
        let rank = header.u32()?;
        if rank > 8 {
            return Err(format!("`{name}` has {rank} axes"));
        }
        let sizes = (0..rank).map(|_| header.u64()).collect::<Outcome<Vec<_>>>()?;
        // The file stores the innermost axis first; shapes here have it last.
        let shape = sizes.into_iter().rev().map(|d| usize::try_from(d).unwrap_or(usize::MAX));
        let shape = shape.collect();
        claims.push(Claim { name, shape, kind: header.u32()?, offset: header.u64()? });
    }
    let alignment = into.metadata.get("general.alignment").map_or(Ok(32u64), |a| a.parse());
    let alignment = alignment.ok().filter(|a| (1..=1 << 20).contains(a));
    let alignment = alignment.ok_or("`general.alignment` is no sensible number")?;
    let begin = header.at.next_multiple_of(alignment);
    drop(header);
    for Claim { name, shape, kind, offset } in claims {
        let Some((dtype, form, stored)) = dtype(kind) else {
            return Err(format!(
                "`{name}` has type {} of GGUF; F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K, F64 and \
                 integers can be read",
                unread(kind)
            ));
        };
        let at =
            begin.checked_add(offset).ok_or_else(|| format!("`{name}` lies beyond its end"))?;
        let place = Place { file: 0, data: Data::Plain { at }, form };
        into.add(WeightEntry::new(name, dtype, shape, place).stored_as(stored))?;
    }
    apart(into)
}

/// An error if tensors overlap, which no writer of the format produces.
fn apart(read: &Read) -> Outcome<()> {
    let mut order: Vec<(u64, u64, &str)> = Vec::with_capacity(read.entries.len());
    for entry in &read.entries {
        if let Data::Plain { at } = entry.place.data {
            order.push((at, entry.bytes_in_file(), entry.name()));
        }
    }
    order.sort_unstable();
    for pair in order.windows(2) {
        let ((at, len, name), (next, _, other)) = (pair[0], pair[1]);
        if at.saturating_add(len) > next {
            return Err(format!("`{name}` and `{other}` overlap; it is damaged, copy it again"));
        }
    }
    Ok(())
}
