//! Functions of the language: its own, and every op by the names that the table has for Python.

use std::collections::HashMap;
use std::sync::OnceLock;

use chainrule::ops::{Entry, table};
use chainrule::{Attention, DType, Tensor};
use chainrule_core::ops::binding::{Argument, Arguments, Binding, Call, Kind, Parameter, Preset};

use super::arguments::CallArguments;
use super::datasets;
use super::fault::{Fault, Outcome};
use super::interpreter::Interpreter;
use super::value::Data;

/// Names that the language has of its own.
const OWN: &[&str] = &[
    "leaf",
    "parameter",
    "array",
    "tensor",
    "asarray",
    "zeros",
    "ones",
    "full",
    "arange",
    "linspace",
    "eye",
    "zeros_like",
    "ones_like",
    "randn",
    "rand",
    "randint",
    "normal",
    "range",
    "len",
    "float",
    "int",
    "str",
    "round",
    "abs",
    "max",
    "min",
    "sum",
    "enumerate",
    "zip",
    "list",
    "tuple",
    "item",
    "tolist",
    "copy",
    "clone",
    "detach",
    "concatenate",
    "cat",
    "stack",
    "reshape",
    "view",
    "transpose",
    "permute",
    "swapaxes",
    "squeeze",
    "unsqueeze",
    "expand_dims",
    "expand",
    "broadcast_to",
    "flatten",
    "ravel",
    "clip",
    "clamp",
    "norm",
    "where",
    "one_hot",
    "embedding",
    "layer_norm",
    "batch_norm",
    "attention",
    "gelu",
    "scatter_add",
    "astype",
    "var",
    "std",
    "moons",
    "circles",
    "spiral",
    "names_batch",
    "names_parameters",
];

/// Other names of what the table has under one.
const OTHER: &[(&str, &str)] = &[
    ("power", "pow"),
    ("multiply", "mul"),
    ("subtract", "sub"),
    ("divide", "div"),
    ("negative", "neg"),
    ("absolute", "abs"),
    ("arcsin", "asin"),
    ("arctan", "atan"),
    ("swish", "silu"),
    ("binary_cross_entropy_with_logits", "bce_with_logits"),
];

type Row = (&'static Entry, &'static Binding);

fn rows() -> &'static HashMap<&'static str, Row> {
    static ROWS: OnceLock<HashMap<&str, Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut rows = HashMap::new();
        for entry in table() {
            for binding in entry.python {
                for name in std::iter::once(&binding.name).chain(binding.aliases) {
                    rows.entry(*name).or_insert((entry, binding));
                }
            }
        }
        for &(name, known) in OTHER {
            if let Some(&row) = rows.get(known) {
                rows.entry(name).or_insert(row);
            }
        }
        rows
    })
}

/// Whether there is a function of this name.
pub fn is_known(name: &str) -> bool {
    OWN.contains(&name)
        || rows().get(name).is_some_and(|(_, binding)| !matches!(binding.call, Call::ByHand(_)))
}

/// The result of a function of the language.
pub fn call(
    run: &mut Interpreter,
    name: &str,
    places: Vec<Data>,
    named: Vec<(String, Data)>,
) -> Outcome<Data> {
    let given = CallArguments { name: name.to_string(), places, named };
    if let Some(out) = own(run, &given)? {
        return Ok(out);
    }
    let Some(&(_, binding)) = rows().get(name) else {
        return Err(Fault::request(format!("there is no function `{name}`")));
    };
    of_table(&given, binding)
}

/// The functions of the language alone; `None` if it is none of them.
fn own(run: &mut Interpreter, given: &CallArguments) -> Outcome<Option<Data>> {
    if let Some(out) = plain(given)? {
        return Ok(Some(out));
    }
    if let Some(out) = drawn(run, given)? {
        return Ok(Some(out));
    }
    made(given)
}

/// Functions of numbers and lists.
fn plain(given: &CallArguments) -> Outcome<Option<Data>> {
    let first = given.places.first();
    let out = match (given.name.as_str(), first) {
        ("range", _) => range(given)?,
        ("len", Some(Data::List(items))) => Data::Int(items.len() as i64),
        ("len", Some(Data::Tensor(t))) if t.rank() > 0 => Data::Int(t.shape()[0] as i64),
        ("float", _) => Data::Float(given.number(0, &["x"], None)?),
        ("item", _) => match given.get(0, &["x"])? {
            x if x.whole().is_some() => Data::Int(x.whole().unwrap_or_default()),
            _ => Data::Float(given.number(0, &["x"], None)?),
        },
        ("int", _) => Data::Int(given.number(0, &["x"], None)? as i64),
        ("abs", Some(x @ (Data::Int(_) | Data::Float(_)))) => match x {
            Data::Int(n) => Data::Int(n.saturating_abs()),
            _ => Data::Float(given.number(0, &["x"], None)?.abs()),
        },
        ("round", Some(Data::Int(_) | Data::Float(_))) => {
            let power = 10f64.powi(given.whole(1, &["ndigits"], Some(0))? as i32);
            Data::Float((given.number(0, &["x"], None)? * power).round() / power)
        }
        ("max" | "min", Some(first)) if !matches!(first, Data::Tensor(_)) => {
            let items = match (first, &given.places[..]) {
                (Data::List(items), [_]) => items,
                (_, all) => all,
            };
            let numbers: Option<Vec<f64>> = items.iter().map(Data::number).collect();
            let numbers = numbers.ok_or_else(|| given.wrong("only numbers can be compared"))?;
            let largest = given.name == "max";
            let better = |&a: &usize, &b: &usize| {
                let order = numbers[a].total_cmp(&numbers[b]);
                if largest { order } else { order.reverse() }
            };
            let at = (0..numbers.len()).max_by(better);
            at.map(|at| items[at].clone()).ok_or_else(|| given.wrong("there is no element"))?
        }
        ("sum", Some(Data::List(items))) if items.iter().any(|x| x.number().is_some()) => {
            let mut sum = Data::Int(0);
            for item in items {
                sum = super::operators::binary("+", &sum, item)?;
            }
            sum
        }
        ("enumerate", Some(Data::List(items))) => {
            let pair = |(i, x): (usize, &Data)| Data::List(vec![Data::Int(i as i64), x.clone()]);
            Data::List(items.iter().enumerate().map(pair).collect())
        }
        ("zip", Some(Data::List(a))) => {
            let Data::List(b) = given.get(1, &["b"])? else {
                return Err(given.wrong("zip takes two lists"));
            };
            let pair = |(a, b): (&Data, &Data)| Data::List(vec![a.clone(), b.clone()]);
            Data::List(a.iter().zip(b).map(pair).collect())
        }
        ("list" | "tuple", Some(Data::List(items))) => Data::List(items.clone()),
        (
            "exp" | "log" | "sqrt" | "tanh" | "sin" | "cos",
            Some(x @ (Data::Int(_) | Data::Float(_))),
        ) => {
            let x = x.number().unwrap_or(f64::NAN);
            Data::Float(match given.name.as_str() {
                "exp" => x.exp(),
                "log" => x.ln(),
                "sqrt" => x.sqrt(),
                "tanh" => x.tanh(),
                "sin" => x.sin(),
                _ => x.cos(),
            })
        }
        _ => return Ok(None),
    };
    Ok(Some(out))
}

fn range(given: &CallArguments) -> Outcome<Data> {
    let ends = given.places.iter().map(Data::whole).collect::<Option<Vec<i64>>>();
    let ends = ends.ok_or_else(|| given.wrong("range takes integers"))?;
    let (start, end, step) = match ends[..] {
        [end] => (0, end, 1),
        [start, end] => (start, end, 1),
        [start, end, step] if step != 0 => (start, end, step),
        _ => return Err(given.wrong("range takes an end, or start, end and step")),
    };
    let count = ((end - start) as f64 / step as f64).ceil().max(0.0);
    if count > 1e5 {
        return Err(given.wrong("the range is too long"));
    }
    Ok(Data::List((0..count as i64).map(|i| Data::Int(start + i * step)).collect()))
}

/// Leaves, draws and data.
fn drawn(run: &mut Interpreter, given: &CallArguments) -> Outcome<Option<Data>> {
    let out = match given.name.as_str() {
        "leaf" | "parameter" => run.leaf(&given.floats(0, &["value"])?)?,
        "randn" | "normal" => {
            let shape = given.shape(0, &["size"])?;
            run.drawn(|g| Ok(Tensor::try_randn(shape, DType::F64, g)?))?
        }
        "rand" => {
            let shape = given.shape(0, &["size"])?;
            run.drawn(|g| Ok(Tensor::try_rand(shape, DType::F64, g)?))?
        }
        "randint" => {
            let low = given.whole(0, &["low"], None)?;
            let high = given.whole(1, &["high"], None)?;
            let shape = given.shape(2, &["size"])?;
            run.drawn(|g| Ok(Tensor::try_randint(low, high, shape, g)?))?
        }
        name => return datasets::call(run, name, given.places.first()),
    };
    Ok(Some(Data::Tensor(out)))
}

/// Functions that give tensors, with arguments as NumPy and PyTorch have them.
#[allow(clippy::too_many_lines, reason = "a line or two for each name")]
fn made(given: &CallArguments) -> Outcome<Option<Data>> {
    for family in [created, moved, reduced, picked, layered] {
        if let Some(out) = family(given)? {
            return Ok(Some(Data::Tensor(out)));
        }
    }
    Ok(None)
}

/// The first argument as a tensor.
fn operand(given: &CallArguments) -> Outcome<Tensor> {
    given.tensor(0, &["x", "input", "a"])
}

/// Tensors of given sizes and numbers.
fn created(given: &CallArguments) -> Outcome<Option<Tensor>> {
    let x = || operand(given);
    Ok(Some(match given.name.as_str() {
        "array" | "tensor" | "asarray" => x()?,
        "zeros" => Tensor::try_full(given.shape(0, &["shape"])?, 0.0, DType::F64)?,
        "ones" => Tensor::try_full(given.shape(0, &["shape"])?, 1.0, DType::F64)?,
        "full" => {
            let only = CallArguments {
                places: given.places.iter().take(1).cloned().collect(),
                named: vec![],
                name: "full".into(),
            };
            let value = given.number(1, &["fill_value"], None)?;
            Tensor::try_full(only.shape(0, &["shape"])?, value, DType::F64)?
        }
        "zeros_like" => x()?.zeros_like(),
        "ones_like" => x()?.ones_like(),
        "arange" => {
            let Data::List(items) = range(given)? else { return Ok(None) };
            Data::List(items).tensor()?
        }
        "linspace" => {
            let (a, b) = (given.number(0, &["start"], None)?, given.number(1, &["stop"], None)?);
            let n = given.whole(2, &["num"], Some(50))?.clamp(2, 100_000);
            let at = |i: i64| a + (b - a) * i as f64 / (n - 1) as f64;
            let numbers: Vec<f64> = (0..n).map(at).collect();
            Tensor::try_from_slice(&numbers, [numbers.len()])?
        }
        "eye" => {
            let n = usize::try_from(given.whole(0, &["n"], None)?.clamp(0, 2000)).unwrap_or(0);
            let cell = |i: usize| f64::from(u8::from(i / n == i % n));
            let numbers: Vec<f64> = (0..n * n).map(cell).collect();
            Tensor::try_from_slice(&numbers, [n, n])?
        }
        _ => return Ok(None),
    }))
}

/// The same elements in other places.
fn moved(given: &CallArguments) -> Outcome<Option<Tensor>> {
    let x = || operand(given);
    let axes = |from| given.integers(from, &["axis", "dim", "axes", "dims"]);
    let axis = |at, default| given.whole(at, &["axis", "dim"], default);
    Ok(Some(match given.name.as_str() {
        "copy" | "clone" | "astype" | "tolist" => x()?,
        "detach" => x()?.detach(),
        "concatenate" | "cat" | "stack" => {
            let Data::List(parts) = given.get(0, &["arrays", "tensors"])? else {
                return Err(given.wrong("it takes a list of tensors"));
            };
            let parts: Vec<Tensor> = parts.iter().map(Data::tensor).collect::<Outcome<_>>()?;
            let parts: Vec<&Tensor> = parts.iter().collect();
            match given.name.as_str() {
                "stack" => Tensor::try_stack(&parts, axis(1, Some(0))?)?,
                _ => Tensor::try_cat(&parts, axis(1, Some(0))?)?,
            }
        }
        "reshape" | "view" => x()?.try_reshape(given.integers(1, &["shape"])?)?,
        "transpose" | "permute" | "swapaxes" => match (axes(1)?, x()?) {
            (axes, x) if axes.is_empty() => x.try_t()?,
            (axes, x) if axes.len() == 2 && x.rank() != 2 => x.try_transpose(axes[0], axes[1])?,
            (axes, x) => x.try_permute(&axes)?,
        },
        "squeeze" => match axes(1)? {
            axes if axes.is_empty() => x()?.try_squeeze_all()?,
            axes => x()?.try_squeeze(&axes[..])?,
        },
        "unsqueeze" | "expand_dims" => x()?.try_unsqueeze(axis(1, None)?)?,
        "expand" | "broadcast_to" => x()?.try_expand(given.shape(1, &["shape"])?)?,
        "flatten" | "ravel" => x()?.try_flatten(given.whole(1, &["start_dim"], Some(0))?, -1)?,
        _ => return Ok(None),
    }))
}

/// Reductions, and numbers held between bounds.
fn reduced(given: &CallArguments) -> Outcome<Option<Tensor>> {
    let x = || operand(given);
    let axes = |from| given.integers(from, &["axis", "dim", "axes", "dims"]);
    Ok(Some(match given.name.as_str() {
        "clip" | "clamp" => {
            let low = given.number(1, &["min", "a_min"], Some(f64::NEG_INFINITY))?;
            x()?.try_clamp(low, given.number(2, &["max", "a_max"], Some(f64::INFINITY))?)?
        }
        "norm" => match axes(1)? {
            axes if axes.is_empty() => x()?.try_norm(2.0, .., false)?,
            axes => x()?.try_norm(2.0, &axes[..], given.flag(2, &["keepdims", "keepdim"])?)?,
        },
        "max" | "min" => {
            let (axes, keep) = (axes(1)?, given.flag(2, &["keepdims", "keepdim"])?);
            match (given.name.as_str(), &axes[..]) {
                ("max", []) => x()?.try_max(.., keep)?,
                ("max", [one]) => x()?.try_max_axis(*one, keep)?.0,
                ("max", many) => x()?.try_max(many, keep)?,
                (_, []) => x()?.try_min(.., keep)?,
                (_, [one]) => x()?.try_min_axis(*one, keep)?.0,
                (_, many) => x()?.try_min(many, keep)?,
            }
        }
        "var" | "std" if !given.named.iter().any(|(n, _)| n == "correction" || n == "unbiased") => {
            let x = given.floats(0, &["x"])?;
            let (axes, keep) = (axes_of(given, 1)?, given.flag(2, &["keepdims", "keepdim"])?);
            let ddof = given.whole(3, &["ddof"], Some(0))?.clamp(0, 1_000_000) as usize;
            match (given.name.as_str(), &axes[..]) {
                ("var", []) => x.try_var(.., ddof, keep)?,
                ("var", axes) => x.try_var(axes, ddof, keep)?,
                (_, []) => x.try_std(.., ddof, keep)?,
                (_, axes) => x.try_std(axes, ddof, keep)?,
            }
        }
        _ => return Ok(None),
    }))
}

/// Elements picked by masks and indices.
fn picked(given: &CallArguments) -> Outcome<Option<Tensor>> {
    let x = || operand(given);
    Ok(Some(match given.name.as_str() {
        "where" => {
            let mask = x()?;
            let mask = mask.try_ne(mask.zeros_like())?;
            let (a, b) = (given.floats(1, &["a"])?, given.floats(2, &["b"])?);
            mask.try_where(&a, &b)?
        }
        "one_hot" => {
            let n = given.whole(1, &["num_classes", "n"], None)?.clamp(0, 100_000);
            x()?.try_one_hot(n as usize)?.try_to_dtype(DType::F64)?
        }
        "embedding" => {
            let (weight, indices) = (x()?, given.tensor(1, &["indices"])?);
            match weight.dtype().is_float() {
                true => weight.try_embedding(&indices)?,
                false => indices.try_embedding(&weight)?,
            }
        }
        "scatter_add" => {
            let only = CallArguments {
                places: given.places.iter().take(1).cloned().collect(),
                named: vec![],
                name: "scatter_add".into(),
            };
            let zeros = Tensor::try_full(only.shape(0, &["shape"])?, 0.0, DType::F64)?;
            let rows = given.tensor(1, &["indices"])?.try_flatten(0, -1)?;
            let source = given.floats(2, &["x"])?;
            let width: usize = zeros.shape().iter().skip(1).product();
            let source = source.try_reshape([rows.numel() as i64, width as i64])?;
            zeros.try_index_add(0, &rows, &source)?
        }
        _ => return Ok(None),
    }))
}

/// Steps of a model.
fn layered(given: &CallArguments) -> Outcome<Option<Tensor>> {
    let x = || operand(given);
    Ok(Some(match given.name.as_str() {
        "layer_norm" => {
            let x = x()?;
            let (gain, bias) =
                (given.maybe_floats(1, &["gain", "weight"])?, given.maybe_floats(2, &["bias"])?);
            let last = x.shape().last().copied().unwrap_or(1);
            let eps = given.number(3, &["eps"], Some(1e-5))?;
            x.try_layer_norm([last], gain.as_ref(), bias.as_ref(), eps)?
        }
        "batch_norm" => {
            let (gain, bias) =
                (given.maybe_floats(1, &["gain", "weight"])?, given.maybe_floats(2, &["bias"])?);
            let eps = given.number(3, &["eps"], Some(1e-5))?;
            let correction = given.whole(4, &["ddof", "correction"], Some(0))?.clamp(0, 1);
            x()?.try_batch_norm(gain.as_ref(), bias.as_ref(), eps, correction as usize)?
        }
        "attention" => {
            let (k, v) = (given.floats(1, &["k", "key"])?, given.floats(2, &["v", "value"])?);
            let causal = given.flag(3, &["causal", "is_causal"])?;
            let options = if causal { Attention::causal() } else { Attention::default() };
            x()?.try_attention(&k, &v, &options)?
        }
        "gelu" => x()?.try_gelu()?,
        _ => return Ok(None),
    }))
}

/// The axes of a reduction; none for all.
fn axes_of(given: &CallArguments, at: usize) -> Outcome<Vec<i64>> {
    match given.maybe(at, &["axis", "dim"]) {
        None | Some(Data::None) => Ok(Vec::new()),
        Some(x) => x.wholes().ok_or_else(|| given.wrong("axes are integers")),
    }
}

/// An op of the table, with its arguments as the table says.
fn of_table(given: &CallArguments, binding: &'static Binding) -> Outcome<Data> {
    // PyTorch's softmax has no default axis; here it is the last.
    let receiver = given.places.first().or_else(|| given.maybe(usize::MAX, &["input", "x", "a"]));
    let receiver = receiver.ok_or_else(|| given.wrong("an argument is missing"))?;
    let x = match (binding.floats, receiver) {
        (true, x) => x.floats()?,
        // A number takes the dtype of the other operand.
        (false, x @ (Data::Int(_) | Data::Float(_))) => x.floats()?,
        (false, x) => x.tensor()?,
    };
    let rest = given.places.get(1..).unwrap_or_default();
    let one = |t: chainrule::Result<Tensor>| Ok(Data::Tensor(t?));
    match binding.call {
        Call::One(f) => one(f(&x)),
        Call::Two(f) => {
            let other = rest.first().ok_or_else(|| given.wrong("a second operand is missing"))?;
            let other = match (x.dtype().is_float(), other) {
                (true, other) => other.floats()?,
                (false, other) => other.tensor()?,
            };
            one(f(&x, &other))
        }
        Call::With(f) => {
            let values = arguments(given, binding, rest)?;
            one(f(&x, &Arguments { values: &values, default_float: DType::F64 }))
        }
        Call::Pair(f) => {
            let values = arguments(given, binding, rest)?;
            let (a, b) = f(&x, &Arguments { values: &values, default_float: DType::F64 })?;
            Ok(Data::List(vec![Data::Tensor(a), Data::Tensor(b)]))
        }
        Call::ByHand(_) => Err(Fault::request(format!("there is no function `{}`", given.name))),
    }
}

fn arguments(given: &CallArguments, binding: &Binding, rest: &[Data]) -> Outcome<Vec<Argument>> {
    let known = |name: &str| binding.parameters.iter().any(|p| is_named(p, name));
    if let Some((name, _)) = given.named.iter().find(|(name, _)| !known(name)) {
        return Err(given.wrong(format!("there is no argument `{name}`")));
    }
    let mut rest = rest.iter();
    let mut values = Vec::new();
    for p in binding.parameters {
        let takes_rest = matches!(p.kind, Kind::Sizes);
        let named = given.named.iter().find(|(name, _)| is_named(p, name)).map(|(_, value)| value);
        let value = match named {
            Some(value) => Some(value.clone()),
            None if takes_rest && rest.len() > 1 => {
                Some(Data::List(rest.by_ref().cloned().collect()))
            }
            None if p.by_name => None,
            None => rest.next().cloned(),
        };
        values.push(argument(given, p, value)?);
    }
    match rest.next() {
        Some(_) => Err(given.wrong("there are too many arguments")),
        None => Ok(values),
    }
}

/// Whether this is the parameter's name, or NumPy's for it.
fn is_named(p: &Parameter, name: &str) -> bool {
    let numpy = match p.name {
        "dim" => "axis",
        "keepdim" => "keepdims",
        _ => p.also,
    };
    p.name == name || (!name.is_empty() && (p.also == name || numpy == name))
}

fn argument(given: &CallArguments, p: &Parameter, value: Option<Data>) -> Outcome<Argument> {
    let Some(value) = value else {
        return match p.default {
            Some(Preset::None) => Ok(Argument::None),
            Some(Preset::Float(x)) => Ok(Argument::Float(x)),
            Some(Preset::Int(n)) => Ok(Argument::Int(n)),
            Some(Preset::Bool(b)) => Ok(Argument::Bool(b)),
            Some(Preset::Choice(word)) => Ok(Argument::Choice(word)),
            // PyTorch asks for the axis of these; the last is meant where none is given.
            None if p.kind == Kind::Int && p.name == "dim" => Ok(Argument::Int(-1)),
            None => Err(given.wrong(format!("the argument `{}` is missing", p.name))),
        };
    };
    let wrong = || given.wrong(format!("`{}` cannot be {}", p.name, value.kind()));
    if matches!(value, Data::None) && p.default == Some(Preset::None) {
        return Ok(Argument::None);
    }
    Ok(match p.kind {
        Kind::Tensor => Argument::Tensor(value.tensor()?),
        Kind::Operand => match &value {
            Data::Float(x) => Argument::Float(*x),
            Data::Int(n) => Argument::Int(*n),
            Data::Bool(b) => Argument::Bool(*b),
            other => Argument::Tensor(other.tensor()?),
        },
        Kind::Float => Argument::Float(value.number().ok_or_else(wrong)?),
        Kind::Int | Kind::Count => Argument::Int(value.whole().ok_or_else(wrong)?),
        Kind::Bool => Argument::Bool(value.truth()?),
        Kind::Axes | Kind::Ints | Kind::Sizes => match (p.kind, value.wholes()) {
            (Kind::Axes, Some(axes)) if axes.len() == 1 => Argument::Int(axes[0]),
            (_, Some(axes)) => Argument::Ints(axes),
            _ => return Err(wrong()),
        },
        Kind::Choice(words) => match &value {
            Data::Text(text) => {
                let word = words.iter().find(|word| *word == text);
                Argument::Choice(word.ok_or_else(|| {
                    given.wrong(format!("`{}` is one of {}", p.name, words.join(", ")))
                })?)
            }
            _ => return Err(wrong()),
        },
        Kind::DType | Kind::Unused => return Err(wrong()),
    })
}
