//! The NumPy and Python functions that forms call.

use chainrule_core::dtype::DType;
use prost::bytes::Bytes;

use crate::elementwise::elementwise;
use crate::graph::{Array, Attr};
use crate::interpret::Interpreter;
use crate::ops::{Made, axis};
use crate::value::Val;

/// Arguments of a call.
pub(crate) struct Given<'a> {
    pub args: &'a [Val],
    named: &'a [(String, Val)],
}

impl Given<'_> {
    pub fn get(&self, i: usize, name: &str) -> Option<&Val> {
        let named = || self.named.iter().find(|(k, _)| k == name).map(|(_, v)| v);
        self.args.get(i).or_else(named)
    }

    fn axes(&self) -> Made<Option<Vec<i64>>> {
        match self.get(1, "axis") {
            None | Some(Val::None) => Some(None),
            Some(v) => Some(Some(v.ints()?)),
        }
    }

    fn keep(&self) -> bool {
        self.get(9, "keepdims").and_then(Val::truth).unwrap_or(false)
    }

    fn dtype(&self, i: usize) -> Option<DType> {
        dtype(self.get(i, "dtype")?)
    }
}

fn dtype(v: &Val) -> Option<DType> {
    match v {
        Val::DType(dtype) => Some(*dtype),
        Val::Function(name) if name == "bool" => Some(DType::Bool),
        _ => None,
    }
}

/// Functions that are one node.
const UNARY: [(&str, &str); 20] = [
    ("np.exp", "Exp"),
    ("np.log", "Log"),
    ("np.sqrt", "Sqrt"),
    ("np.tanh", "Tanh"),
    ("np.sin", "Sin"),
    ("np.cos", "Cos"),
    ("np.tan", "Tan"),
    ("np.arcsin", "Asin"),
    ("np.arccos", "Acos"),
    ("np.arctan", "Atan"),
    ("np.sinh", "Sinh"),
    ("np.cosh", "Cosh"),
    ("np.arcsinh", "Asinh"),
    ("np.arccosh", "Acosh"),
    ("np.arctanh", "Atanh"),
    ("np.floor", "Floor"),
    ("np.ceil", "Ceil"),
    ("np.round", "Round"),
    ("math.sqrt", "Sqrt"),
    ("math.log", "Log"),
];

/// Functions of two operands that are an operator.
const OPERATORS: [(&str, &str); 7] = [
    ("np.equal", "=="),
    ("np.not_equal", "!="),
    ("np.less", "<"),
    ("np.less_equal", "<="),
    ("np.greater", ">"),
    ("np.greater_equal", ">="),
    ("np.matmul", "@"),
];

/// A call, if the function is supported.
pub(crate) fn call(
    at: &mut Interpreter,
    name: &str,
    args: &[Val],
    named: &[(String, Val)],
) -> Made<Val> {
    let given = Given { args, named };
    if let Some(known) = numbers(name, args) {
        return Some(known);
    }
    if let Some((_, op)) = UNARY.iter().find(|(k, _)| *k == name) {
        return at.graph.float(op, args.first()?).map(Val::from);
    }
    if let Some((_, op)) = OPERATORS.iter().find(|(k, _)| *k == name) {
        return at.binary(op, args.first()?.clone(), args.get(1)?.clone());
    }
    elementwise(at, name, &given)
        .or_else(|| reductions(at, name, &given))
        .or_else(|| shapes(at, name, &given))
        .or_else(|| making(at, name, &given))
}

/// Functions of known numbers and vectors.
fn numbers(name: &str, args: &[Val]) -> Made<Val> {
    let x = args.first().and_then(Val::number);
    Some(match name {
        "math.sqrt" | "np.sqrt" => Val::Float(x?.sqrt()),
        "math.log" | "np.log" => Val::Float(x?.ln()),
        "math.isinf" => Val::Bool(x?.is_infinite()),
        "math.prod" => Val::Int(args[0].ints()?.iter().product()),
        "len" => match args.first()? {
            Val::Array(a) => Val::Int(*a.dims.first()?),
            row => Val::Int(row.row()?.len() as i64),
        },
        "max" | "min" if args.len() > 1 => {
            let all: Vec<f64> = args.iter().map(Val::number).collect::<Option<_>>()?;
            let pick = if name == "max" { f64::max } else { f64::min };
            let best = all.iter().copied().reduce(pick)?;
            let first = args.iter().find(|v| v.number() == Some(best))?;
            first.clone()
        }
        "range" => {
            let ints: Vec<i64> = args.iter().map(Val::int).collect::<Option<_>>()?;
            let (start, end) = if ints.len() == 1 { (0, ints[0]) } else { (ints[0], ints[1]) };
            let step = ints.get(2).copied().unwrap_or(1);
            let count =
                if step == 0 { return None } else { (end - start + step - step.signum()) / step };
            if count > 1 << 24 {
                return None;
            }
            Val::of_ints(&(0..count.max(0)).map(|i| start + i * step).collect::<Vec<_>>())
        }
        "zip" => {
            let rows: Vec<&[Val]> = args.iter().map(Val::row).collect::<Option<_>>()?;
            let n = rows.iter().map(|r| r.len()).min()?;
            let row = |i: usize| Val::Row(rows.iter().map(|r| r[i].clone()).collect());
            Val::Row((0..n).map(row).collect())
        }
        "enumerate" => {
            let pairs = args[0].row()?.iter().enumerate();
            Val::Row(pairs.map(|(i, v)| Val::Row(vec![Val::Int(i as i64), v.clone()])).collect())
        }
        "tuple" | "list" => Val::Row(args[0].row()?.to_vec()),
        "slice" => Val::Slice(args.iter().map(Val::int).collect()),
        ".get" => {
            let Val::Dict(pairs) = &args[0] else { return None };
            let found = pairs.iter().find(|(k, _)| k.same(&args[1]) == Some(true));
            found.map_or_else(|| args.get(2).cloned(), |(_, v)| Some(v.clone()))?
        }
        ".items" => {
            let Val::Dict(pairs) = &args[0] else { return None };
            Val::Row(pairs.iter().map(|(k, v)| Val::Row(vec![k.clone(), v.clone()])).collect())
        }
        "np.ndim" => match args.first()? {
            Val::Array(a) => Val::Int(a.rank()),
            _ => Val::Int(0),
        },
        "float" | "int" => match args.first()? {
            Val::Array(a) => Val::Array(Array { weak: true, ..a.clone() }),
            _ if name == "float" => Val::Float(x?),
            v @ Val::Int(_) => v.clone(),
            _ => Val::Int(x? as i64),
        },
        _ => return None,
    })
}

/// Whether elements are not zero.
pub(crate) fn truths(at: &mut Interpreter, v: &Val) -> Made<Array> {
    let a = at.graph.array(v, None)?;
    Some(at.graph.cast(&a, DType::Bool))
}

fn reductions(at: &mut Interpreter, name: &str, given: &Given<'_>) -> Made<Val> {
    let op = match name {
        "np.sum" => "ReduceSum",
        "np.mean" => "ReduceMean",
        "np.max" => "ReduceMax",
        "np.min" => "ReduceMin",
        "np.prod" => "ReduceProd",
        "np.any" | "np.all" | ".any" | ".all" => return truth_of_all(at, name, given),
        "np.argmax" | "np.argmin" => return position(at, name, given),
        "np.add.accumulate" | "np.cumsum" => {
            let a = at.graph.array(given.args.first()?, None)?;
            let along = axis(given.get(1, "axis")?.int()?, a.rank())?;
            let along = at.graph.scalar(DType::I64, along as f64);
            let dims = a.dims.clone();
            return Some(at.graph.node("CumSum", &[&a, &along], vec![], a.dtype, dims).into());
        }
        _ => return None,
    };
    let a = at.graph.array(given.args.first()?, None)?;
    let a = if a.dtype == DType::Bool { at.graph.cast(&a, DType::I64) } else { a };
    let axes = given.axes()?;
    if a.size() == 0 && matches!(op, "ReduceMax" | "ReduceMin") {
        return None;
    }
    Some(at.graph.reduce(op, &a, axes.as_deref(), given.keep())?.into())
}

fn truth_of_all(at: &mut Interpreter, name: &str, given: &Given<'_>) -> Made<Val> {
    let a = truths(at, given.args.first()?)?;
    let a = at.graph.cast(&a, DType::I64);
    let op = if name.ends_with("any") { "ReduceMax" } else { "ReduceMin" };
    if a.size() == 0 {
        let axes = given.axes()?.unwrap_or_else(|| (0..a.rank()).collect());
        let kept = a.dims.iter().enumerate().filter(|(i, _)| !axes.contains(&(*i as i64)));
        let dims: Vec<i64> = kept.map(|(_, d)| *d).collect();
        let all = f64::from(!name.ends_with("any"));
        return at.graph.full(DType::Bool, &dims, all).map(Val::from);
    }
    let out = at.graph.reduce(op, &a, given.axes()?.as_deref(), given.keep())?;
    Some(at.graph.cast(&out, DType::Bool).into())
}

fn position(at: &mut Interpreter, name: &str, given: &Given<'_>) -> Made<Val> {
    let mut a = at.graph.array(given.args.first()?, None)?;
    let along = match given.get(1, "axis") {
        Some(v) => axis(v.int()?, a.rank())?,
        None => {
            a = at.graph.reshape(&a, &[-1]);
            0
        }
    };
    let keep = given.keep();
    let mut dims = a.dims.clone();
    if keep {
        dims[along as usize] = 1;
    } else {
        dims.remove(along as usize);
    }
    let op = if name == "np.argmax" { "ArgMax" } else { "ArgMin" };
    let attrs = vec![("axis", Attr::Int(along)), ("keepdims", Attr::Int(i64::from(keep)))];
    Some(at.graph.node(op, &[&a], attrs, DType::I64, dims).into())
}

fn shapes(at: &mut Interpreter, name: &str, given: &Given<'_>) -> Made<Val> {
    let args = given.args;
    let g = &mut at.graph;
    if matches!(name, "np.concatenate" | "np.stack") {
        let along = given.get(1, "axis").and_then(Val::int).unwrap_or(0);
        let all = args.first()?.row()?.to_vec();
        if name == "np.concatenate" {
            return g.concat(&all, along).map(Val::from);
        }
        let mut parts = Vec::new();
        for v in &all {
            let a = g.array(v, None)?;
            let along = axis(along, a.rank() + 1)? as usize;
            let mut dims = a.dims.clone();
            dims.insert(along, 1);
            parts.push(g.reshape(&a, &dims).into());
        }
        return g.concat(&parts, along).map(Val::from);
    }
    let a = g.array(args.first()?, None)?;
    Some(match name {
        "np.reshape" | ".reshape" => {
            let dims = match args.get(1)? {
                one @ Val::Row(_) => one.ints()?,
                _ => args[1..].iter().map(Val::int).collect::<Option<_>>()?,
            };
            g.reshape(&a, &dims).into()
        }
        ".ravel" => g.reshape(&a, &[-1]).into(),
        ".squeeze" => {
            let axes = args.get(1)?.ints()?;
            let axes: Vec<i64> = axes.iter().map(|&i| axis(i, a.rank())).collect::<Option<_>>()?;
            let kept = a.dims.iter().enumerate().filter(|(i, _)| !axes.contains(&(*i as i64)));
            let dims: Vec<i64> = kept.map(|(_, d)| *d).collect();
            g.reshape(&a, &dims).into()
        }
        "np.transpose" => g.transpose(&a, &args.get(1)?.ints()?)?.into(),
        "np.swapaxes" => g.swap(&a, args.get(1)?.int()?, args.get(2)?.int()?)?.into(),
        "np.moveaxis" => {
            let (from, to) =
                (axis(args.get(1)?.int()?, a.rank())?, axis(args.get(2)?.int()?, a.rank())?);
            let mut order: Vec<i64> = (0..a.rank()).filter(|i| *i != from).collect();
            order.insert(to as usize, from);
            g.transpose(&a, &order)?.into()
        }
        "np.broadcast_to" => g.expand(&a, &args.get(1)?.ints()?)?.into(),
        "np.flip" => {
            let axes = given.axes()?.unwrap_or_else(|| (0..a.rank()).collect());
            let mut cuts = Vec::new();
            for i in axes {
                let i = axis(i, a.rank())?;
                cuts.push((i, a.dims[i as usize] - 1, a.dims[i as usize], -1));
            }
            g.slice(&a, &cuts).into()
        }
        "np.roll" => {
            let (shifts, axes) = (args.get(1)?.ints()?, args.get(2)?.ints()?);
            let mut out = a;
            for (&shift, &i) in shifts.iter().zip(&axes) {
                let i = axis(i, out.rank())?;
                let n = out.dims[i as usize];
                let k = if n == 0 { 0 } else { shift.rem_euclid(n) };
                let last = g.slice(&out, &[(i, n - k, k, 1)]);
                let first = g.slice(&out, &[(i, 0, n - k, 1)]);
                out = g.concat(&[last.into(), first.into()], i)?;
            }
            out.into()
        }
        "np.split" => {
            let (n, i) = (args.get(1)?.int()?, axis(args.get(2)?.int()?, a.rank())?);
            let each = a.dims[i as usize].checked_div(n)?;
            let part = |k: i64| Val::from(g.slice(&a, &[(i, k * each, each, 1)]));
            Val::Row((0..n).map(part).collect())
        }
        "np.take" => {
            let index = g.array(args.get(1)?, Some(DType::I64))?;
            let along = given.get(2, "axis")?.int()?;
            g.gather(&a, &index, along)?.into()
        }
        "np.take_along_axis" => {
            let index = g.array(args.get(1)?, None)?;
            g.elements(&a, &index, args.get(2)?.int()?)?.into()
        }
        "np.tril" | "np.triu" => {
            let k = g.scalar(DType::I64, args.get(1)?.int()? as f64);
            let upper = vec![("upper", Attr::Int(i64::from(name == "np.triu")))];
            let dims = a.dims.clone();
            g.node("Trilu", &[&a, &k], upper, a.dtype, dims).into()
        }
        _ => return None,
    })
}

fn making(at: &mut Interpreter, name: &str, given: &Given<'_>) -> Made<Val> {
    let args = given.args;
    let g = &mut at.graph;
    let first = args.first()?;
    Some(match name {
        ".astype" => {
            let a = g.array(first, None)?;
            let mut out = g.cast(&a, dtype(args.get(1)?)?);
            out.weak = false;
            out.into()
        }
        "np.asarray" | "np.array" => match (given.dtype(1), first) {
            (None, v) => v.clone(),
            (Some(to), v) => {
                let a = g.array(v, Some(to))?;
                let mut out = g.cast(&a, to);
                out.weak = false;
                out.into()
            }
        },
        "np.zeros" | "np.ones" => {
            let x = f64::from(name == "np.ones");
            g.full(given.dtype(1).unwrap_or(DType::F64), &first.ints()?, x)?.into()
        }
        "np.full" => {
            let to = given.dtype(2)?;
            g.full(to, &first.ints()?, args.get(1)?.number()?)?.into()
        }
        "np.zeros_like" => {
            let a = g.array(first, None)?;
            g.full(a.dtype, &a.dims, 0.0)?.into()
        }
        "rng.random" | "rng.standard_normal" => {
            let to = given.dtype(9).unwrap_or(DType::F64);
            let op = if name == "rng.random" { "RandomUniform" } else { "RandomNormal" };
            let dims = first.ints()?;
            let kind = Attr::Int(i64::from(crate::graph::number(to)));
            let attrs = vec![("dtype", kind), ("shape", Attr::Ints(dims.clone()))];
            g.node(op, &[], attrs, to, dims).into()
        }
        "rng.integers" => {
            let (low, high) = (first.number()?, args.get(1)?.number()?);
            let shape = vec![args.get(2)?.clone()];
            let dtype = vec![("dtype".to_string(), Val::DType(DType::F64))];
            let x = call(at, "rng.random", &shape, &dtype)?;
            let x = at.binary("*", x, Val::Float(high - low))?;
            let x = at.binary("+", x, Val::Float(low))?;
            let x = at.graph.float("Floor", &x)?;
            at.graph.cast(&x, DType::I64).into()
        }
        "bytes.fromhex" => first.clone(),
        "np.frombuffer" => {
            let Val::Text(hex) = first else { return None };
            let to = given.dtype(1)?;
            let byte = |i: usize| u8::from_str_radix(hex.get(i..i + 2)?, 16).ok();
            let bytes: Bytes = (0..hex.len()).step_by(2).map(byte).collect::<Option<_>>()?;
            let n = bytes.len() / to.size();
            g.constant(to, &[n as i64], bytes).into()
        }
        "np.arange" => {
            let n = first.int().filter(|n| (0..1 << 24).contains(n))?;
            g.ints(&(0..n).collect::<Vec<_>>()).into()
        }
        _ => return None,
    })
}
