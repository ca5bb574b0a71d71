//! Known calls in a pickle: PyTorch's descriptions of tensors, and containers.

use std::io::Read;
use std::sync::Arc;

use chainrule_core::dtype::DType;

use super::{Described, Node, Pickle, Storage, Value, node};
use crate::budget::Budget;
use crate::source::Outcome;

/// Known functions and types beside containers, by their names in Python.
const KNOWN: [&str; 18] = [
    "collections.OrderedDict",
    "__builtin__.set",
    "__builtin__.frozenset",
    "builtins.set",
    "builtins.frozenset",
    "torch.device",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._utils._rebuild_tensor",
    "torch._tensor._rebuild_from_type_v2",
    "torch.Size",
    "torch.Tensor",
    "torch.nn.parameter.Buffer",
    "torch.nn.parameter.Parameter",
    "torch.storage.UntypedStorage",
    "torch.UntypedStorage",
];

/// PyTorch's limit on axes.
const MOST_AXES: usize = 64;

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

/// The result of a call.
enum Made {
    New(Node),
    /// An argument.
    Given(Value),
}

impl<R: Read> Pickle<R> {
    pub(super) fn global(&mut self, name: String) -> Outcome<()> {
        if !KNOWN.contains(&name.as_str()) && storage_dtype(&name).is_none() {
            return Err(format!(
                "its pickle names `{name}`, which is not called here: only tensors, numbers, texts \
                 and containers are read; save a state_dict instead"
            ));
        }
        self.budget.take(name.len() + size_of::<[usize; 2]>())?;
        self.push_node(Node::Global(name.into()))
    }

    pub(super) fn call(&mut self, function: Value, arguments: Value) -> Outcome<()> {
        let (nodes, budget) = (&self.nodes, &mut self.budget);
        let Some((name, arguments)) = called(nodes, function, arguments) else {
            return Err("its pickle calls what is no function".into());
        };
        // A tensor with attributes is pickled as its function followed by them.
        let (name, arguments) = match (&**name, arguments) {
            ("torch._tensor._rebuild_from_type_v2", &[inner, _, of_inner, ..]) => {
                called(nodes, inner, of_inner)
                    .ok_or_else(|| format!("its pickle calls `{name}` without a function"))?
            }
            _ => (name, arguments),
        };
        match made(nodes, name, arguments, budget)? {
            Made::Given(value) => self.push(value),
            Made::New(node) => self.push_node(node),
        }
    }

    /// `('storage', type, key, device, elements)`.
    pub(super) fn storage(&mut self, id: Value) -> Outcome<()> {
        let nodes = &self.nodes;
        let found = || {
            let [word, kind, key, _, numel, ..] = parts(nodes, id)? else { return None };
            let Node::Str(word) = node(nodes, *word)? else { return None };
            let (Node::Global(kind), Node::Str(key)) = (node(nodes, *kind)?, node(nodes, *key)?)
            else {
                return None;
            };
            let Value::Int(numel) = numel else { return None };
            let dtype = storage_dtype(kind);
            let numel = u64::try_from(*numel).ok()?;
            (&**word == "storage").then(|| Storage { key: key.clone(), dtype, numel })
        };
        let storage = found().ok_or("its pickle has a storage that cannot be understood")?;
        self.budget.take(size_of::<Storage>() + size_of::<[usize; 2]>())?;
        self.push_node(Node::Storage(Arc::new(storage)))
    }
}

/// A function's name, and its arguments.
fn called(nodes: &[Node], function: Value, arguments: Value) -> Option<(&Arc<str>, &[Value])> {
    match (node(nodes, function)?, node(nodes, arguments)?) {
        (Node::Global(name), Node::Tuple(arguments)) => Some((name, arguments)),
        _ => None,
    }
}

/// The value of a call, whose size is charged before it is allocated.
fn made(nodes: &[Node], name: &str, arguments: &[Value], budget: &mut Budget) -> Outcome<Made> {
    let wrong = || format!("its pickle calls `{name}` with arguments that do not fit");
    let first = arguments.first().copied();
    match name {
        "collections.OrderedDict" => {
            let list = first.map_or(Some(&[][..]), |list| parts(nodes, list)).ok_or_else(wrong)?;
            budget.take(list.len() * size_of::<(Value, Value)>())?;
            Ok(Made::New(Node::Dict(items(nodes, list).ok_or_else(wrong)?)))
        }
        // A set is stored as a list in arbitrary order.
        "__builtin__.set" | "__builtin__.frozenset" | "builtins.set" | "builtins.frozenset" => {
            let list = first.map_or(Some(&[][..]), |list| parts(nodes, list)).ok_or_else(wrong)?;
            budget.take(size_of_val(list))?;
            Ok(Made::New(Node::List(list.to_vec())))
        }
        "torch.device" => {
            let name = device(nodes, arguments).ok_or_else(wrong)?;
            budget.take(name.len() + size_of::<[usize; 2]>())?;
            Ok(Made::New(Node::Str(name.into())))
        }
        "torch.Size" => {
            let sizes = first.and_then(|sizes| parts(nodes, sizes)).ok_or_else(wrong)?;
            budget.take(size_of_val(sizes))?;
            Ok(Made::New(Node::Tuple(sizes.to_vec())))
        }
        "torch._utils._rebuild_parameter"
        | "torch._utils._rebuild_parameter_with_state"
        | "torch.nn.parameter.Parameter" => {
            let is_tensor = |&v: &Value| matches!(node(nodes, v), Some(Node::Tensor(_)));
            first.filter(is_tensor).map(Made::Given).ok_or_else(wrong)
        }
        _ => {
            let tensor = described(nodes, name, arguments)?.ok_or_else(wrong)?;
            let sizes = size_of_val(&*tensor.shape) + size_of_val(&*tensor.strides);
            budget.take(size_of::<Described>() + sizes)?;
            Ok(Made::New(Node::Tensor(Box::new(tensor))))
        }
    }
}

/// Pairs of an OrderedDict that was pickled as a list.
fn items(nodes: &[Node], list: &[Value]) -> Option<Vec<(Value, Value)>> {
    let mut items = Vec::with_capacity(list.len());
    for &item in list {
        let [key, value] = parts(nodes, item)? else { return None };
        items.push((*key, *value));
    }
    Some(items)
}

/// A device by name, such as `cuda:0`.
fn device(nodes: &[Node], arguments: &[Value]) -> Option<String> {
    let Node::Str(kind) = node(nodes, *arguments.first()?)? else { return None };
    Some(match arguments.get(1) {
        Some(Value::Int(index)) => format!("{kind}:{index}"),
        _ => kind.to_string(),
    })
}

fn parts(nodes: &[Node], value: Value) -> Option<&[Value]> {
    match node(nodes, value)? {
        Node::Tuple(parts) | Node::List(parts) => Some(parts),
        _ => None,
    }
}

/// A tensor of a storage, offset, shape and strides; `None` if they do not fit.
fn described(nodes: &[Node], name: &str, arguments: &[Value]) -> Outcome<Option<Described>> {
    let [storage, offset, shape, strides, rest @ ..] = arguments else { return Ok(None) };
    let (is_v3, is_known) = match name {
        "torch._utils._rebuild_tensor_v3" => (true, true),
        "torch._utils._rebuild_tensor_v2" | "torch._utils._rebuild_tensor" => (false, true),
        _ => (false, false),
    };
    // The dtype follows requires_grad and hooks in version 3.
    let (dtype, marks) = if is_v3 { (rest.get(2), rest.get(3)) } else { (None, rest.get(2)) };
    if let Some(mark) = marks.and_then(|&marks| changed(nodes, marks)) {
        return Err(format!(
            "it has a view whose elements count as changed (`{mark}`), and the file has those \
             before; call resolve_{mark}() and save it again"
        ));
    }
    let build = || {
        let Node::Storage(storage) = node(nodes, *storage)? else { return None };
        let dtype = match node(nodes, *dtype.unwrap_or(&Value::None)) {
            Some(Node::Global(dtype)) if is_v3 => storage_dtype(dtype)?,
            _ if is_v3 => return None,
            _ => storage.dtype?,
        };
        let (shape, strides) = (parts(nodes, *shape)?, parts(nodes, *strides)?);
        if !is_known || shape.len() != strides.len() || shape.len() > MOST_AXES {
            return None;
        }
        let shape = shape.iter().map(|v| usize::try_from(whole(v)?).ok());
        let shape = shape.collect::<Option<Vec<_>>>()?;
        let strides = strides.iter().map(whole).collect::<Option<Vec<_>>>()?;
        let offset = whole(offset).unwrap_or(u64::MAX);
        Some(Described { storage: storage.clone(), dtype, offset, shape, strides })
    };
    Ok(build())
}

fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Int(n) => u64::try_from(*n).ok(),
        _ => None,
    }
}

/// Flags of a lazily negated (`neg`, as the imaginary part of a conjugate) or conjugated (`conj`)
/// tensor.
fn changed(nodes: &[Node], marks: Value) -> Option<&'static str> {
    let Node::Dict(items) = node(nodes, marks)? else { return None };
    let is_set = |mark: &str| {
        let of_mark = |&(key, value): &(Value, Value)| {
            let found = matches!(node(nodes, key), Some(Node::Str(text)) if &**text == mark);
            found && !matches!(value, Value::Bool(false) | Value::None)
        };
        items.iter().any(of_mark)
    };
    ["neg", "conj"].into_iter().find(|mark| is_set(mark))
}
