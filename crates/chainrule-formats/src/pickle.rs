//! A restricted reader of pickles: containers, simple values, and descriptions of tensors. It knows
//! PyTorch's few functions by name, and calls nothing.
//!
//! All values are in one arena and refer to each other by index, so that dropping a deep nest or a
//! cycle takes no stack. A one-byte opcode may create a value or copy a list of any length, so all
//! of them are charged to a [`Budget`].

mod call;

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use chainrule_core::dtype::DType;

use crate::budget::Budget;
use crate::source::{Outcome, reason};

/// A value; a compound one is an index into the arena.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Node(u32),
}

/// A compound value, or a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    Str(Arc<str>),
    /// Decimal digits of an integer beyond 64 bits.
    Digits(Arc<str>),
    Tuple(Vec<Value>),
    List(Vec<Value>),
    Dict(Vec<(Value, Value)>),
    Global(Arc<str>),
    Storage(Arc<Storage>),
    Tensor(Box<Described>),
}

/// A storage: a block of elements in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Storage {
    pub key: Arc<str>,
    /// `None` for an untyped storage, whose tensors have the dtype.
    pub dtype: Option<DType>,
    pub numel: u64,
}

/// A view of a storage.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    pub storage: Arc<Storage>,
    pub dtype: DType,
    pub offset: u64,
    pub shape: Vec<usize>,
    pub strides: Vec<u64>,
}

/// The state of the unpickler.
pub struct Pickle<R> {
    reader: R,
    /// Remaining bytes.
    left: u64,
    pub read: u64,
    pub nodes: Vec<Node>,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: HashMap<u64, Value>,
    pub budget: Budget,
}

/// Size of a memo entry, in a table that doubles.
const MEMO: usize = 48;
/// Longest integer, 512 bits; states of random generators have integers of 128 bits.
const MOST_DIGITS: u64 = 64;

const CUT: &str = "its pickle is damaged: a value is missing";

impl<R: Read> Pickle<R> {
    pub fn new(reader: R, most: u64, budget: Budget) -> Pickle<R> {
        let (nodes, stack, marks) = (Vec::new(), Vec::new(), Vec::new());
        Pickle { reader, left: most, read: 0, nodes, stack, marks, memo: HashMap::new(), budget }
    }

    /// The arena; the reader, which may hold the file, is dropped.
    pub fn into_nodes(self) -> (Vec<Node>, Budget) {
        (self.nodes, self.budget)
    }

    fn byte(&mut self) -> Outcome<u8> {
        let mut byte = [0];
        self.fill(&mut byte)?;
        Ok(byte[0])
    }

    fn fill(&mut self, out: &mut [u8]) -> Outcome<()> {
        self.claim(out.len() as u64)?;
        self.reader.read_exact(out).map_err(|e| reason(&e))
    }

    fn claim(&mut self, len: u64) -> Outcome<()> {
        if len > self.left {
            return Err(format!("its pickle claims {len} bytes, and has {} left", self.left));
        }
        self.left -= len;
        self.read += len;
        Ok(())
    }

    fn take(&mut self, len: u64) -> Outcome<Vec<u8>> {
        self.claim(len)?;
        let mut bytes = Vec::new();
        let got = (&mut self.reader).take(len).read_to_end(&mut bytes).map_err(|e| reason(&e))?;
        match got as u64 == len {
            true => Ok(bytes),
            false => Err("its pickle is cut off; copy or save it again".into()),
        }
    }

    fn number(&mut self, len: u64) -> Outcome<u64> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes[..len as usize])?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn line(&mut self) -> Outcome<String> {
        let mut bytes = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                byte => bytes.push(byte),
            }
        }
    }

    fn push(&mut self, value: Value) -> Outcome<()> {
        self.budget.grow(&mut self.stack, 1)?;
        self.stack.push(value);
        Ok(())
    }

    /// Pushes a new node, whose parts are charged already.
    fn push_node(&mut self, node: Node) -> Outcome<()> {
        let number = u32::try_from(self.nodes.len()).map_err(|_| "its pickle is too large")?;
        self.budget.grow(&mut self.nodes, 1)?;
        self.nodes.push(node);
        self.push(Value::Node(number))
    }

    fn text(&mut self, len: u64) -> Outcome<()> {
        let bytes = self.take(len)?;
        let text = String::from_utf8_lossy(&bytes);
        self.budget.take(text.len() + size_of::<[usize; 2]>())?;
        let text = Node::Str(text.into());
        self.push_node(text)
    }

    fn pop(&mut self) -> Outcome<Value> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len() > floor {
            true => self.stack.pop().ok_or_else(|| CUT.to_owned()),
            false => Err(CUT.into()),
        }
    }

    fn up_to_mark(&mut self) -> Outcome<Vec<Value>> {
        let mark = self.marks.pop().ok_or(CUT)?.min(self.stack.len());
        self.budget.take((self.stack.len() - mark) * size_of::<Value>())?;
        Ok(self.stack.split_off(mark))
    }

    fn many(&mut self, count: usize) -> Outcome<Vec<Value>> {
        self.budget.take(count * size_of::<Value>())?;
        let mut all = (0..count).map(|_| self.pop()).collect::<Outcome<Vec<_>>>()?;
        all.reverse();
        Ok(all)
    }

    pub fn node(&self, value: Value) -> Option<&Node> {
        node(&self.nodes, value)
    }

    /// The container on the stack, and the budget for additions to it.
    fn top(&mut self) -> Outcome<(&mut Node, &mut Budget)> {
        match self.stack.last() {
            Some(Value::Node(n)) => {
                let node = self.nodes.get_mut(*n as usize).ok_or(CUT)?;
                Ok((node, &mut self.budget))
            }
            _ => Err(CUT.into()),
        }
    }

    /// Reads one pickle to its end.
    pub fn run(&mut self) -> Outcome<Value> {
        loop {
            let code = self.byte()?;
            if code == b'.' {
                let value = self.pop()?;
                self.stack.clear();
                self.marks.clear();
                self.memo.clear();
                return Ok(value);
            }
            if !(self.simple(code)? || self.container(code)?) {
                self.object(code)?;
            }
        }
    }

    /// Opcodes of simple values and of the memo; returns whether it was one.
    fn simple(&mut self, code: u8) -> Outcome<bool> {
        match code {
            0x80 => drop(self.byte()?),
            0x95 => drop(self.number(8)?),
            b'N' => self.push(Value::None)?,
            0x88 => self.push(Value::Bool(true))?,
            0x89 => self.push(Value::Bool(false))?,
            b'K' => self.int(1)?,
            b'M' => self.int(2)?,
            b'J' => {
                let n = self.number(4)? as u32 as i32;
                self.push(Value::Int(n.into()))?;
            }
            0x8a => self.long()?,
            b'I' | b'L' => self.digits()?,
            b'G' => {
                let bits = self.number(8)?.swap_bytes();
                self.push(Value::Float(f64::from_bits(bits)))?;
            }
            b'F' => {
                let line = self.line()?;
                let x = line.parse().map_err(|_| format!("{line:?} is no float"))?;
                self.push(Value::Float(x))?;
            }
            b'X' | b'T' | b'B' => {
                let len = self.number(4)?;
                self.text(len)?;
            }
            b'U' | b'C' | 0x8c => {
                let len = self.number(1)?;
                self.text(len)?;
            }
            0x8d | 0x8e => {
                let len = self.number(8)?;
                self.text(len)?;
            }
            b'V' => {
                let line = self.line()?;
                self.budget.take(line.len() + size_of::<[usize; 2]>())?;
                self.push_node(Node::Str(line.into()))?;
            }
            b'q' | b'r' | b'p' | 0x94 => self.remember(code)?,
            b'h' | b'j' | b'g' => {
                let key = self.place(code)?;
                let value = *self.memo.get(&key).ok_or(CUT)?;
                self.push(value)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn int(&mut self, len: u64) -> Outcome<()> {
        let n = self.number(len)?;
        self.push(Value::Int(n as i64))
    }

    fn long(&mut self) -> Outcome<()> {
        let len = self.number(1)?;
        if len > MOST_DIGITS {
            return Err(format!("a whole number of {len} bytes; {MOST_DIGITS} can be read"));
        }
        if len > 8 {
            let bytes = self.take(len)?;
            return self.whole(&decimal(&bytes));
        }
        let n = self.number(len)? as i64;
        let unused = 64 - 8 * len as u32;
        self.push(Value::Int(if len == 0 { 0 } else { n << unused >> unused }))
    }

    /// An integer of any size, from its digits.
    fn whole(&mut self, digits: &str) -> Outcome<()> {
        if let Ok(n) = digits.parse() {
            return self.push(Value::Int(n));
        }
        self.budget.take(digits.len() + size_of::<[usize; 2]>())?;
        self.push_node(Node::Digits(digits.into()))
    }

    fn digits(&mut self) -> Outcome<()> {
        let line = self.line()?;
        match line.as_str() {
            "00" => return self.push(Value::Bool(false)),
            "01" => return self.push(Value::Bool(true)),
            _ => {}
        }
        let digits = line.trim_end_matches('L');
        let plain = digits.strip_prefix('-').unwrap_or(digits);
        // Three digits exceed a byte.
        let fits = (1..=2 * MOST_DIGITS as usize).contains(&plain.len());
        match fits && plain.bytes().all(|b| b.is_ascii_digit()) {
            true => self.whole(digits),
            false => Err(format!("{line:?} is no whole number that can be read")),
        }
    }

    fn place(&mut self, code: u8) -> Outcome<u64> {
        match code {
            b'q' | b'h' => self.number(1),
            b'r' | b'j' => self.number(4),
            _ => self.line()?.parse().map_err(|_| CUT.to_owned()),
        }
    }

    fn remember(&mut self, code: u8) -> Outcome<()> {
        let key = if code == 0x94 { self.memo.len() as u64 } else { self.place(code)? };
        let value = *self.stack.last().ok_or(CUT)?;
        if self.memo.insert(key, value).is_none() {
            self.budget.take(MEMO)?;
        }
        Ok(())
    }

    /// Opcodes of containers; returns whether it was one.
    fn container(&mut self, code: u8) -> Outcome<bool> {
        match code {
            b'(' => {
                self.budget.grow(&mut self.marks, 1)?;
                self.marks.push(self.stack.len());
            }
            b')' => self.push_node(Node::Tuple(Vec::new()))?,
            b'}' => self.push_node(Node::Dict(Vec::new()))?,
            // Sets have 0x8f to 0x91, in files of protocol 4 and later.
            b']' | 0x8f => self.push_node(Node::List(Vec::new()))?,
            0x85..=0x87 => {
                let parts = self.many(usize::from(code - 0x84))?;
                self.push_node(Node::Tuple(parts))?;
            }
            b't' | b'l' | 0x91 | b'd' => {
                let parts = self.up_to_mark()?;
                let node = match code {
                    b't' => Node::Tuple(parts),
                    b'l' | 0x91 => Node::List(parts),
                    _ => Node::Dict(pairs(&parts, &mut self.budget)?),
                };
                self.push_node(node)?;
            }
            b'a' | b'e' | 0x90 => {
                let parts = if code == b'a' { self.many(1)? } else { self.up_to_mark()? };
                match self.top()? {
                    (Node::List(list), budget) => {
                        budget.grow(list, parts.len())?;
                        list.extend(parts);
                    }
                    _ => return Err("its pickle appends to what is no list".into()),
                }
            }
            b's' | b'u' => {
                let parts = if code == b's' { self.many(2)? } else { self.up_to_mark()? };
                match self.top()? {
                    (Node::Dict(dict), budget) => {
                        let pairs = pairs(&parts, budget)?;
                        budget.grow(dict, pairs.len())?;
                        dict.extend(pairs);
                    }
                    _ => return Err("its pickle sets an item of what is no dictionary".into()),
                }
            }
            b'0' => drop(self.pop()?),
            b'1' => drop(self.up_to_mark()?),
            b'2' => {
                let value = *self.stack.last().ok_or(CUT)?;
                self.push(value)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Opcodes that construct Python objects; only known classes are accepted.
    fn object(&mut self, code: u8) -> Outcome<()> {
        match code {
            b'c' => {
                let name = format!("{}.{}", self.line()?, self.line()?);
                self.global(name)
            }
            0x93 => {
                let parts = self.many(2)?;
                match (self.node(parts[0]), self.node(parts[1])) {
                    (Some(Node::Str(module)), Some(Node::Str(name))) => {
                        let name = format!("{module}.{name}");
                        self.global(name)
                    }
                    _ => Err(CUT.into()),
                }
            }
            b'R' | 0x81 => {
                let parts = self.many(2)?;
                self.call(parts[0], parts[1])
            }
            b'b' => {
                // State of an OrderedDict, such as a module's `_metadata`; it has no elements.
                self.pop()?;
                match self.top()? {
                    (Node::Dict(_), _) => Ok(()),
                    _ => Err("its pickle sets the state of an object that is no dictionary".into()),
                }
            }
            b'Q' => {
                let id = self.pop()?;
                self.storage(id)
            }
            _ => Err(format!(
                "its pickle has code {code:#04x}, which no file of tensors and containers needs"
            )),
        }
    }
}

fn node(nodes: &[Node], value: Value) -> Option<&Node> {
    match value {
        Value::Node(n) => nodes.get(n as usize),
        _ => None,
    }
}

fn pairs(parts: &[Value], budget: &mut Budget) -> Outcome<Vec<(Value, Value)>> {
    budget.take(size_of_val(parts))?;
    match parts.len() % 2 {
        0 => Ok(parts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()),
        _ => Err(CUT.into()),
    }
}

/// Decimal digits of a little-endian number in two's complement.
fn decimal(bytes: &[u8]) -> String {
    let negative = bytes.last().is_some_and(|&b| b >= 0x80);
    let (mut carry, mut left) = (u16::from(negative), bytes.to_vec());
    for byte in left.iter_mut().filter(|_| negative) {
        let sum = u16::from(!*byte) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    let mut digits = Vec::new();
    while left.iter().any(|&b| b != 0) || digits.is_empty() {
        let mut rest = 0u16;
        for byte in left.iter_mut().rev() {
            let n = rest << 8 | u16::from(*byte);
            (*byte, rest) = ((n / 10) as u8, n % 10);
        }
        digits.push(b'0' + rest as u8);
    }
    if negative {
        digits.push(b'-');
    }
    digits.iter().rev().map(|&b| char::from(b)).collect()
}
