//! A restricted reader of pickles: containers, simple values, and tensors as descriptions. It knows
//! the few functions that PyTorch's files name, by name, and calls nothing.
//!
//! All values lie in one list and refer to each other by number, so that neither a deep nest nor a
//! cycle costs stack when they are dropped.

use std::collections::HashMap;
use std::io::Read;

use chainrule_core::dtype::DType;

use crate::source::{Outcome, reason};

/// A value; one with parts is a number in the list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Node(u32),
}

/// A value with parts, or a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    Str(String),
    Tuple(Vec<Value>),
    List(Vec<Value>),
    Dict(Vec<(Value, Value)>),
    Global(String),
    Storage(Storage),
    Tensor(Described),
}

/// A block of elements in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Storage {
    pub key: String,
    /// None for a storage of bytes, whose tensors say their dtype.
    pub dtype: Option<DType>,
    pub numel: u64,
}

/// A view of a storage.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    pub storage: Storage,
    pub dtype: DType,
    pub offset: u64,
    pub shape: Vec<usize>,
    pub strides: Vec<u64>,
}

/// Functions and types that are understood beside containers, by their names in Python.
const KNOWN: [&str; 9] = [
    "collections.OrderedDict",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_tensor",
    "torch.Size",
    "torch.nn.parameter.Parameter",
    "torch.storage.UntypedStorage",
    "torch.UntypedStorage",
];

fn storage_dtype(name: &str) -> Option<DType> {
    Some(match name.strip_prefix("torch.")? {
        "FloatStorage" | "float32" => DType::F32,
        "DoubleStorage" | "float64" => DType::F64,
        "HalfStorage" | "float16" => DType::F16,
        "BFloat16Storage" | "bfloat16" => DType::BF16,
        "LongStorage" | "int64" => DType::I64,
        "IntStorage" | "int32" => DType::I32,
        "ShortStorage" | "int16" => DType::I16,
        "CharStorage" | "int8" => DType::I8,
        "ByteStorage" | "uint8" => DType::U8,
        "BoolStorage" | "bool" => DType::Bool,
        "uint16" => DType::U16,
        "uint32" => DType::U32,
        "uint64" => DType::U64,
        _ => return None,
    })
}

/// A pickle that is being read.
pub struct Pickle<R> {
    reader: R,
    /// The bytes that may still be read.
    left: u64,
    pub read: u64,
    pub nodes: Vec<Node>,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: HashMap<u64, Value>,
}

const CUT: &str = "its pickle is damaged: a value is missing";

impl<R: Read> Pickle<R> {
    pub fn new(reader: R, most: u64) -> Pickle<R> {
        let (nodes, stack, marks) = (Vec::new(), Vec::new(), Vec::new());
        Pickle { reader, left: most, read: 0, nodes, stack, marks, memo: HashMap::new() }
    }

    /// The values; the reader, which may hold the file, is dropped.
    pub fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }

    fn take(&mut self, len: u64) -> Outcome<Vec<u8>> {
        if len > self.left {
            return Err(format!("its pickle claims {len} bytes, and has {} left", self.left));
        }
        let mut bytes = Vec::new();
        let got = (&mut self.reader).take(len).read_to_end(&mut bytes).map_err(|e| reason(&e))?;
        self.left -= len;
        self.read += len;
        match got as u64 == len {
            true => Ok(bytes),
            false => Err("its pickle is cut off; copy or save it again".into()),
        }
    }

    fn number(&mut self, len: u64) -> Outcome<u64> {
        Ok(self.take(len)?.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    fn line(&mut self) -> Outcome<String> {
        let mut bytes = Vec::new();
        loop {
            match self.take(1)?[0] {
                b'\n' => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
                byte => bytes.push(byte),
            }
        }
    }

    fn push(&mut self, value: Value) {
        self.stack.push(value);
    }

    fn push_node(&mut self, node: Node) -> Outcome<()> {
        let number = u32::try_from(self.nodes.len()).map_err(|_| "its pickle is too large")?;
        self.nodes.push(node);
        self.stack.push(Value::Node(number));
        Ok(())
    }

    fn text(&mut self, len: u64) -> Outcome<()> {
        let bytes = self.take(len)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        self.push_node(Node::Str(text))
    }

    fn pop(&mut self) -> Outcome<Value> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len() > floor {
            true => self.stack.pop().ok_or_else(|| CUT.to_owned()),
            false => Err(CUT.into()),
        }
    }

    fn up_to_mark(&mut self) -> Outcome<Vec<Value>> {
        let mark = self.marks.pop().ok_or(CUT)?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn many(&mut self, count: usize) -> Outcome<Vec<Value>> {
        let mut all = (0..count).map(|_| self.pop()).collect::<Outcome<Vec<_>>>()?;
        all.reverse();
        Ok(all)
    }

    pub fn node(&self, value: Value) -> Option<&Node> {
        match value {
            Value::Node(n) => self.nodes.get(n as usize),
            _ => None,
        }
    }

    fn top(&mut self) -> Outcome<&mut Node> {
        match self.stack.last() {
            Some(Value::Node(n)) => self.nodes.get_mut(*n as usize).ok_or_else(|| CUT.to_owned()),
            _ => Err(CUT.into()),
        }
    }

    /// Reads one pickle, to its end.
    pub fn run(&mut self) -> Outcome<Value> {
        loop {
            let code = self.take(1)?[0];
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

    /// Codes of simple values and of the memo; whether it was one.
    fn simple(&mut self, code: u8) -> Outcome<bool> {
        match code {
            0x80 => drop(self.take(1)?),
            0x95 => drop(self.take(8)?),
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'K' => self.int(1)?,
            b'M' => self.int(2)?,
            b'J' => {
                let n = self.number(4)? as u32 as i32;
                self.push(Value::Int(n.into()));
            }
            0x8a => self.long()?,
            b'I' | b'L' => self.digits()?,
            b'G' => {
                let bits = self.number(8)?.swap_bytes();
                self.push(Value::Float(f64::from_bits(bits)));
            }
            b'F' => {
                let line = self.line()?;
                let x = line.parse().map_err(|_| format!("{line:?} is no float"))?;
                self.push(Value::Float(x));
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
                self.push_node(Node::Str(line))?;
            }
            b'q' | b'r' | b'p' | 0x94 => self.remember(code)?,
            b'h' | b'j' | b'g' => {
                let key = self.place(code)?;
                let value = *self.memo.get(&key).ok_or(CUT)?;
                self.push(value);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn int(&mut self, len: u64) -> Outcome<()> {
        let n = self.number(len)?;
        self.push(Value::Int(n as i64));
        Ok(())
    }

    fn long(&mut self) -> Outcome<()> {
        let len = self.number(1)?;
        if len > 8 {
            return Err(format!("a whole number of {len} bytes; 8 can be read"));
        }
        let n = self.number(len)? as i64;
        let unused = 64 - 8 * len as u32;
        self.push(Value::Int(if len == 0 { 0 } else { n << unused >> unused }));
        Ok(())
    }

    fn digits(&mut self) -> Outcome<()> {
        let line = self.line()?;
        let value = match line.as_str() {
            "00" => Value::Bool(false),
            "01" => Value::Bool(true),
            text => {
                let n = text.trim_end_matches('L').parse();
                Value::Int(n.map_err(|_| format!("{text:?} is no whole number of 8 bytes"))?)
            }
        };
        self.push(value);
        Ok(())
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
        self.memo.insert(key, value);
        Ok(())
    }

    /// Codes of containers; whether it was one.
    fn container(&mut self, code: u8) -> Outcome<bool> {
        match code {
            b'(' => self.marks.push(self.stack.len()),
            b')' => self.push_node(Node::Tuple(Vec::new()))?,
            b'}' => self.push_node(Node::Dict(Vec::new()))?,
            b']' => self.push_node(Node::List(Vec::new()))?,
            0x85..=0x87 => {
                let parts = self.many(usize::from(code - 0x84))?;
                self.push_node(Node::Tuple(parts))?;
            }
            b't' | b'l' | b'd' => {
                let parts = self.up_to_mark()?;
                self.push_node(match code {
                    b't' => Node::Tuple(parts),
                    b'l' => Node::List(parts),
                    _ => Node::Dict(pairs(&parts)?),
                })?;
            }
            b'a' | b'e' => {
                let parts = if code == b'a' { self.many(1)? } else { self.up_to_mark()? };
                match self.top()? {
                    Node::List(list) => list.extend(parts),
                    _ => return Err("its pickle appends to what is no list".into()),
                }
            }
            b's' | b'u' => {
                let parts = if code == b's' { self.many(2)? } else { self.up_to_mark()? };
                match self.top()? {
                    Node::Dict(dict) => dict.extend(pairs(&parts)?),
                    _ => return Err("its pickle sets an item of what is no dictionary".into()),
                }
            }
            b'0' => drop(self.pop()?),
            b'1' => drop(self.up_to_mark()?),
            b'2' => {
                let value = *self.stack.last().ok_or(CUT)?;
                self.push(value);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Codes that make objects in Python, of which only known ones are understood.
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
                // The state of an OrderedDict, as `_metadata` of a module's; it has no elements.
                self.pop()?;
                match self.top()? {
                    Node::Dict(_) => Ok(()),
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

    fn global(&mut self, name: String) -> Outcome<()> {
        if !KNOWN.contains(&name.as_str()) && storage_dtype(&name).is_none() {
            return Err(format!(
                "its pickle names `{name}`, which is not called here: only tensors, numbers, texts \
                 and containers are read; save a state_dict instead"
            ));
        }
        self.push_node(Node::Global(name))
    }

    fn call(&mut self, function: Value, arguments: Value) -> Outcome<()> {
        let (Some(Node::Global(name)), Some(Node::Tuple(arguments))) =
            (self.node(function), self.node(arguments))
        else {
            return Err("its pickle calls what is no function".into());
        };
        let (name, arguments) = (name.clone(), arguments.clone());
        let wrong = || format!("its pickle calls `{name}` with arguments that do not fit");
        match name.as_str() {
            "collections.OrderedDict" => {
                let items = match arguments.first() {
                    None => Vec::new(),
                    Some(&list) => self.items(list).ok_or_else(wrong)?,
                };
                self.push_node(Node::Dict(items))
            }
            "torch.Size" => {
                let parts = arguments.first().and_then(|&a| self.parts(a)).ok_or_else(wrong)?;
                let parts = parts.to_vec();
                self.push_node(Node::Tuple(parts))
            }
            "torch._utils._rebuild_parameter" | "torch.nn.parameter.Parameter" => {
                match arguments.first() {
                    Some(&data) if matches!(self.node(data), Some(Node::Tensor(_))) => {
                        self.push(data);
                        Ok(())
                    }
                    _ => Err(wrong()),
                }
            }
            _ => {
                let tensor = self.described(&name, &arguments).ok_or_else(wrong)?;
                self.push_node(Node::Tensor(tensor))
            }
        }
    }

    fn parts(&self, value: Value) -> Option<&[Value]> {
        match self.node(value)? {
            Node::Tuple(parts) | Node::List(parts) => Some(parts),
            _ => None,
        }
    }

    /// Pairs of an OrderedDict that was pickled as a list of them.
    fn items(&self, list: Value) -> Option<Vec<(Value, Value)>> {
        let pair = |&item: &Value| match self.parts(item)? {
            [key, value] => Some((*key, *value)),
            _ => None,
        };
        self.parts(list)?.iter().map(pair).collect()
    }

    fn described(&self, name: &str, arguments: &[Value]) -> Option<Described> {
        let [storage, offset, shape, strides, rest @ ..] = arguments else { return None };
        let Some(Node::Storage(storage)) = self.node(*storage) else { return None };
        let whole = |value: &Value| match value {
            Value::Int(n) => u64::try_from(*n).ok(),
            _ => None,
        };
        let named = match name {
            "torch._utils._rebuild_tensor_v3" => match self.node(*rest.get(2)?)? {
                Node::Global(dtype) => storage_dtype(dtype),
                _ => None,
            },
            "torch._utils._rebuild_tensor_v2" | "torch._utils._rebuild_tensor" => None,
            _ => return None,
        };
        let shape = self.parts(*shape)?.iter().map(|v| usize::try_from(whole(v)?).ok());
        let shape = shape.collect::<Option<Vec<_>>>()?;
        let strides = self.parts(*strides)?.iter().map(whole).collect::<Option<Vec<_>>>()?;
        let dtype = named.or(storage.dtype)?;
        (shape.len() == strides.len()).then(|| Described {
            storage: storage.clone(),
            dtype,
            offset: whole(offset).unwrap_or(u64::MAX),
            shape,
            strides,
        })
    }

    /// `('storage', type, key, device, elements)`.
    fn storage(&mut self, id: Value) -> Outcome<()> {
        let found = || {
            let [word, kind, key, _, numel, ..] = self.parts(id)? else { return None };
            let Node::Str(word) = self.node(*word)? else { return None };
            let (Node::Global(kind), Node::Str(key)) = (self.node(*kind)?, self.node(*key)?) else {
                return None;
            };
            let Value::Int(numel) = numel else { return None };
            let dtype = storage_dtype(kind);
            let numel = u64::try_from(*numel).ok()?;
            (word == "storage").then(|| Storage { key: key.clone(), dtype, numel })
        };
        let storage = found().ok_or("its pickle has a storage that cannot be understood")?;
        self.push_node(Node::Storage(storage))
    }
}

fn pairs(parts: &[Value]) -> Outcome<Vec<(Value, Value)>> {
    match parts.len() % 2 {
        0 => Ok(parts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()),
        _ => Err(CUT.into()),
    }
}
