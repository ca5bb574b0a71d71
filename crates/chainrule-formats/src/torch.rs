//! `.pt` and `.pth`: a pickle and storages, in a zip or, before version 1.6, concatenated.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read as _;
use std::sync::Arc;

use crate::budget::Budget;
use crate::pickle::{Described, Node, Pickle, Value};
use crate::place::{Data, Form, Place, span};
use crate::source::{Outcome, Source};
use crate::tree::Tree;
use crate::weights::{Read, WeightEntry};
use crate::zip;

/// Longest pickle: names and shapes of millions of tensors.
const MOST_PICKLE: u64 = 256 << 20;
/// Highest compression ratio of a deflated pickle, which layer names hardly reach; that of zeros is
/// a thousand.
const MOST_UNPACKED: u64 = 100;
/// Limit on values of a nest, in which a part may occur several times.
const MOST_VALUES: usize = 1 << 20;
/// Limit on depth.
const DEEPEST: usize = 100;

/// Whether a zip contains a pickle of PyTorch.
pub fn is_torch(source: &Source) -> Outcome<bool> {
    Ok(zip::list(source)?.iter().any(|m| m.name.ends_with("/data.pkl") || m.name == "data.pkl"))
}

/// Whether these bytes begin a file of the old format: a pickle of its magic number, of any
/// protocol.
pub fn is_legacy(head: &[u8]) -> bool {
    const MAGIC: [u8; 4] = [0x8a, 0x0a, 0x6c, 0xfc];
    match head {
        // A frame of protocol 4, with its length.
        [0x80, _, 0x95, rest @ ..] => rest.get(8..).is_some_and(|rest| rest.starts_with(&MAGIC)),
        [0x80, _, rest @ ..] => rest.starts_with(&MAGIC),
        _ => false,
    }
}

/// Location of a storage, and its length.
type Places = HashMap<Arc<str>, (Data, u64)>;

/// Tensors and nest of a zip.
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
            places.insert(key.into(), (member.data(source)?, member.len));
        }
    }
    if main.len > MOST_PICKLE.min(main.packed.saturating_mul(MOST_UNPACKED)) {
        return Err(format!("its pickle claims {} bytes, packed in {}", main.len, main.packed));
    }
    let mut pickle = Pickle::new(main.reader(source)?, main.len, Budget::of(source.len()));
    let value = pickle.run()?;
    let (nodes, budget) = pickle.into_nodes();
    Nest::new(&nodes, places, swapped, budget, into).tree(value, 0)
}

/// Tensors and nest of a file of the old format: pickles, the keys of storages, the storages.
pub fn read_legacy(source: &Source, into: &mut Read) -> Outcome<Tree> {
    let most = source.len().min(MOST_PICKLE);
    let mut pickle = Pickle::new(source.buffered(0)?, most, Budget::of(source.len()));
    // The magic number, the version, and facts of the machine.
    for _ in 0..3 {
        pickle.run()?;
    }
    let value = pickle.run()?;
    let keys = pickle.run()?;
    let Some(Node::List(keys)) = pickle.node(keys) else {
        return Err("the list of its storages is damaged".into());
    };
    let mut names = Vec::new();
    let of_place = 4 * size_of::<(Arc<str>, Data, u64)>();
    let taken = keys.len() * of_place;
    for key in keys {
        match pickle.node(*key) {
            Some(Node::Str(key)) => names.push(key.clone()),
            _ => return Err("the list of its storages is damaged".into()),
        }
    }
    pickle.budget.take(taken)?;
    pickle.budget.take(pickle.nodes.len() * size_of::<(&str, u64)>())?;
    let sizes: HashMap<&str, u64> = pickle.nodes.iter().filter_map(storage_size).collect();
    let mut at = pickle.read;
    let mut lengths = Vec::new();
    for key in &names {
        let size = sizes.get(&**key).ok_or("a storage without tensors is damaged")?;
        lengths.push(*size);
    }
    let (nodes, budget) = pickle.into_nodes();
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
    Nest::new(&nodes, places, false, budget, into).tree(value, 0)
}

fn storage_size(node: &Node) -> Option<(&str, u64)> {
    match node {
        Node::Storage(s) => Some((&*s.key, s.dtype.map_or(1, |d| d.size() as u64))),
        _ => None,
    }
}

/// Flattening of a nest to tensors by name.
struct Nest<'a> {
    nodes: &'a [Node],
    places: Places,
    swapped: bool,
    into: &'a mut Read,
    /// Keys on the path to the current value, joined only for tensors: keys may be long, and each
    /// may be on the path to a million values.
    path: Vec<Key>,
    /// Indices of tensors by name, with that of their value.
    seen: HashMap<String, (u32, usize)>,
    values: usize,
    budget: Budget,
}

/// A step of the traversal.
#[derive(Clone, Copy)]
enum Key {
    Index(usize),
    Of(Value),
}

/// Memory of a tensor in the tables, beside its name and sizes.
const OF_TENSOR: usize = 640;

impl<'a> Nest<'a> {
    fn new(
        nodes: &'a [Node],
        places: Places,
        swapped: bool,
        budget: Budget,
        into: &'a mut Read,
    ) -> Nest<'a> {
        let (path, seen) = (Vec::new(), HashMap::new());
        Nest { nodes, places, swapped, into, path, seen, values: 0, budget }
    }

    fn tree(&mut self, value: Value, depth: usize) -> Outcome<Tree> {
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
            Node::Str(text) | Node::Global(text) => Tree::Str(text.clone()),
            Node::Digits(digits) => Tree::LargeInt(digits.clone()),
            Node::Tuple(parts) => Tree::Tuple(self.all(parts, depth)?),
            Node::List(parts) => Tree::List(self.all(parts, depth)?),
            Node::Dict(items) => {
                self.budget.take(items.len() * size_of::<(Tree, Tree)>())?;
                let mut out = Vec::with_capacity(items.len());
                for &(key, value) in items {
                    let name = self.tree(key, DEEPEST.max(depth))?;
                    self.path.push(Key::Of(key));
                    out.push((name, self.tree(value, depth + 1)?));
                    self.path.pop();
                }
                Tree::Dict(out)
            }
            Node::Tensor(tensor) => Tree::Tensor(self.tensor(tensor, number)?),
            Node::Storage(_) => {
                let name = self.name()?;
                return Err(format!("`{name}` is a storage without a tensor"));
            }
        })
    }

    fn all(&mut self, parts: &[Value], depth: usize) -> Outcome<Vec<Tree>> {
        self.budget.take(parts.len() * size_of::<Tree>())?;
        let mut out = Vec::with_capacity(parts.len());
        for (i, &part) in parts.iter().enumerate() {
            self.path.push(Key::Index(i));
            out.push(self.tree(part, depth + 1)?);
            self.path.pop();
        }
        Ok(out)
    }

    /// The path, joined by dots.
    fn name(&mut self) -> Outcome<String> {
        let mut name = String::new();
        for (i, &key) in self.path.iter().enumerate() {
            let word = match key {
                Key::Index(i) => i.to_string().into(),
                Key::Of(value) => word(self.nodes, value),
            };
            // Three copies: in the tensor and in two tables.
            self.budget.take(3 * (word.len() + 1))?;
            if i > 0 {
                name.push('.');
            }
            name.push_str(&word);
        }
        Ok(if name.is_empty() { "tensor".into() } else { name })
    }

    fn tensor(&mut self, tensor: &Described, number: u32) -> Outcome<usize> {
        let name = self.name()?;
        match self.seen.get(&name) {
            Some(&(value, at)) if value == number => return Ok(at),
            _ => {}
        }
        self.budget.take(OF_TENSOR + 4 * size_of_val(&*tensor.shape))?;
        let at = self.into.entries.len();
        let entry = self.entry(tensor, &name).map_err(|e| format!("`{name}`: {e}"))?;
        self.into.add(entry)?;
        self.seen.insert(name, (number, at));
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

/// Whether the elements are contiguous in row-major order.
fn is_rows(shape: &[usize], strides: &[u64]) -> bool {
    let mut step = 1u64;
    shape.contains(&0)
        || shape.iter().zip(strides).rev().all(|(&d, &s)| {
            let fits = d == 1 || s == step;
            step = step.saturating_mul(d as u64);
            fits
        })
}

/// A key as part of a name.
fn word(nodes: &[Node], key: Value) -> Cow<'_, str> {
    match key {
        Value::Int(n) => n.to_string().into(),
        Value::Bool(x) => x.to_string().into(),
        Value::Float(x) => x.to_string().into(),
        Value::None => "?".into(),
        Value::Node(n) => match &nodes[n as usize] {
            Node::Str(text) | Node::Global(text) | Node::Digits(text) => (&**text).into(),
            _ => "?".into(),
        },
    }
}
