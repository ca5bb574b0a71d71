//! `.pt` and `.pth`: a pickle beside storages, in a zip or, before version 1.6, one after another.

use std::collections::HashMap;
use std::io::{Cursor, Read as _};

use crate::pickle::{Described, Node, Pickle, Value};
use crate::place::{Data, Form, Place, span};
use crate::source::{Outcome, Source};
use crate::tree::Tree;
use crate::weights::{Read, WeightEntry};
use crate::zip;

/// The longest pickle: names and shapes of millions of tensors.
const MOST_PICKLE: u64 = 256 << 20;
/// The most values of a nest, where parts may be named several times.
const MOST_VALUES: usize = 1 << 20;
/// The deepest nest.
const DEEPEST: usize = 100;

/// Whether a zip has the pickle of PyTorch.
pub fn is_torch(source: &Source) -> Outcome<bool> {
    Ok(zip::list(source)?.iter().any(|m| m.name.ends_with("/data.pkl") || m.name == "data.pkl"))
}

/// A storage's place, and its bytes.
type Places = HashMap<String, (Data, u64)>;

/// The tensors and the nest of a zip.
pub fn read(source: &Source, into: &mut Read) -> Outcome<Tree> {
    let members = zip::list(source)?;
    let main = members.iter().find(|m| m.name.ends_with("data.pkl")).ok_or("it has no data.pkl")?;
    let folder = main.name.strip_suffix("data.pkl").unwrap_or_default();
    let swapped = match members.iter().find(|m| m.name == format!("{folder}byteorder")) {
        Some(order) => order.head(source, 16)?.starts_with(b"big"),
        None => false,
    };
    if members.iter().any(|m| m.name.starts_with(&format!("{folder}code/"))) {
        return Err(
            "it is a TorchScript program, which is not run; save a state_dict instead".into()
        );
    }
    let mut places = Places::new();
    for member in &members {
        let key = member.name.strip_prefix(folder).and_then(|name| name.strip_prefix("data/"));
        if let Some(key) = key {
            places.insert(key.to_owned(), (member.data(source)?, member.len));
        }
    }
    if main.len > MOST_PICKLE {
        return Err(format!("its pickle claims {} bytes", main.len));
    }
    let bytes = main.head(source, main.len)?;
    let len = bytes.len() as u64;
    let mut pickle = Pickle::new(Cursor::new(bytes), len);
    let value = pickle.run()?;
    Nest { nodes: &pickle.nodes, places, swapped, into, seen: HashMap::new(), values: 0 }
        .root(value)
}

/// The tensors and the nest of a file without a zip: pickles, the keys of storages, the storages.
pub fn read_legacy(source: &Source, into: &mut Read) -> Outcome<Tree> {
    // The number that begins such a file is a pickle of 15 bytes.
    const MAGIC: u64 = 15;
    let reader = source.buffered(MAGIC)?;
    let mut pickle = Pickle::new(reader, (source.len() - MAGIC.min(source.len())).min(MOST_PICKLE));
    pickle.run()?;
    pickle.run()?;
    let value = pickle.run()?;
    let keys = pickle.run()?;
    let Some(Node::List(keys)) = pickle.node(keys) else {
        return Err("the list of its storages is damaged".into());
    };
    let mut names = Vec::new();
    for key in keys {
        match pickle.node(*key) {
            Some(Node::Str(key)) => names.push(key.clone()),
            _ => return Err("the list of its storages is damaged".into()),
        }
    }
    let sizes: HashMap<&str, u64> = pickle.nodes.iter().filter_map(storage_size).collect();
    let mut at = MAGIC + pickle.read;
    let mut lengths = Vec::new();
    for key in &names {
        let size = sizes.get(key.as_str()).ok_or("a storage without tensors is damaged")?;
        lengths.push(*size);
    }
    let nodes = pickle.into_nodes();
    let mut places = Places::new();
    for (key, size) in names.into_iter().zip(lengths) {
        source.check(at, 8)?;
        let mut count = [0; 8];
        source.from(at)?.read_exact(&mut count).map_err(|e| e.to_string())?;
        let bytes = u64::from_le_bytes(count).checked_mul(size);
        let bytes = bytes.ok_or("a storage claims more than memory has")?;
        source.check(at + 8, bytes)?;
        places.insert(key, (Data::Plain { at: at + 8 }, bytes));
        at += 8 + bytes;
    }
    Nest { nodes: &nodes, places, swapped: false, into, seen: HashMap::new(), values: 0 }
        .root(value)
}

fn storage_size(node: &Node) -> Option<(&str, u64)> {
    match node {
        Node::Storage(s) => Some((s.key.as_str(), s.dtype.map_or(1, |d| d.size() as u64))),
        _ => None,
    }
}

/// A nest that is turned into tensors by name.
struct Nest<'a> {
    nodes: &'a [Node],
    places: Places,
    swapped: bool,
    into: &'a mut Read,
    /// The tensors that have a number, by their value's.
    seen: HashMap<(u32, String), usize>,
    values: usize,
}

impl Nest<'_> {
    fn root(mut self, value: Value) -> Outcome<Tree> {
        self.tree(value, "", 0)
    }

    fn tree(&mut self, value: Value, name: &str, depth: usize) -> Outcome<Tree> {
        self.values += 1;
        if depth > DEEPEST || self.values > MOST_VALUES {
            return Err("its containers are nested in each other without end".into());
        }
        let number = match value {
            Value::None => return Ok(Tree::None),
            Value::Bool(x) => return Ok(Tree::Bool(x)),
            Value::Int(x) => return Ok(Tree::Int(x)),
            Value::Float(x) => return Ok(Tree::Float(x)),
            Value::Node(number) => number,
        };
        let nodes = self.nodes;
        Ok(match &nodes[number as usize] {
            Node::Str(text) => Tree::Str(text.clone()),
            Node::Tuple(parts) => Tree::Tuple(self.all(parts, name, depth)?),
            Node::List(parts) => Tree::List(self.all(parts, name, depth)?),
            Node::Dict(items) => {
                let mut out = Vec::new();
                for (key, value) in items {
                    let key = self.tree(*key, "", DEEPEST.max(depth))?;
                    let name = join(name, &word(&key));
                    out.push((key, self.tree(*value, &name, depth + 1)?));
                }
                Tree::Dict(out)
            }
            Node::Tensor(tensor) => Tree::Tensor(self.tensor(tensor, number, name)?),
            Node::Global(name) => Tree::Str(name.clone()),
            Node::Storage(_) => return Err(format!("`{name}` is a storage without a tensor")),
        })
    }

    fn all(&mut self, parts: &[Value], name: &str, depth: usize) -> Outcome<Vec<Tree>> {
        let part = |(i, &v): (usize, &Value)| self.tree(v, &join(name, &i.to_string()), depth + 1);
        parts.iter().enumerate().map(part).collect()
    }

    fn tensor(&mut self, tensor: &Described, number: u32, name: &str) -> Outcome<usize> {
        let name = if name.is_empty() { "tensor" } else { name };
        if let Some(&at) = self.seen.get(&(number, name.to_owned())) {
            return Ok(at);
        }
        let entry = self.entry(tensor, name).map_err(|e| format!("`{name}`: {e}"))?;
        let at = self.into.entries.len();
        self.into.add(entry)?;
        self.seen.insert((number, name.to_owned()), at);
        Ok(at)
    }

    fn entry(&self, tensor: &Described, name: &str) -> Outcome<WeightEntry> {
        let Described { storage, dtype, offset, shape, strides } = tensor;
        let key = &storage.key;
        let (data, len) =
            self.places.get(key).ok_or_else(|| format!("its storage {key:?} is missing"))?;
        let size = dtype.size() as u64;
        let claimed = storage.dtype.map_or(1, |d| d.size() as u64).checked_mul(storage.numel);
        if claimed.is_none_or(|claimed| claimed > *len) {
            return Err(format!("its storage claims {} elements of {len} bytes", storage.numel));
        }
        let form = match (is_rows(shape, strides), self.swapped) {
            (true, false) => Form::Rows,
            (true, true) => Form::Swapped,
            (false, swapped) => Form::Strided { strides: strides.clone(), swapped },
        };
        let skip = offset.checked_mul(size).ok_or("its offset is beyond all memory")?;
        let reach = skip.checked_add(span(shape, *dtype, &form)?);
        if reach.is_none_or(|reach| reach > *len) {
            return Err(format!(
                "shape {shape:?} with strides {strides:?} from {offset} on is beyond its storage \
                 of {len} bytes"
            ));
        }
        let data = match data {
            Data::Plain { at } => Data::Plain { at: at + skip },
            Data::Deflated { at, packed, .. } => Data::Deflated { at: *at, packed: *packed, skip },
        };
        Ok(WeightEntry::new(name.to_owned(), *dtype, shape.clone(), Place { file: 0, data, form }))
    }
}

/// Whether elements lie row by row without gaps.
fn is_rows(shape: &[usize], strides: &[u64]) -> bool {
    let mut step = 1u64;
    shape.contains(&0)
        || shape.iter().zip(strides).rev().all(|(&d, &s)| {
            let fits = d == 1 || s == step;
            step = step.saturating_mul(d as u64);
            fits
        })
}

fn join(name: &str, part: &str) -> String {
    if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") }
}

/// A key as part of a name.
fn word(key: &Tree) -> String {
    match key {
        Tree::Str(text) => text.clone(),
        Tree::Int(n) => n.to_string(),
        Tree::Bool(x) => x.to_string(),
        Tree::Float(x) => x.to_string(),
        _ => "?".into(),
    }
}
