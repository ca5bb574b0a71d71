//! NumPy's elementwise functions that take several nodes.

use chainrule_core::dtype::DType;

use crate::graph::{Array, Attr};
use crate::interpret::Interpreter;
use crate::numpy::{Given, call, truths};
use crate::ops::Made;
use crate::precise::{arctan2, expm1, log1p};
use crate::value::Val;

pub(crate) fn elementwise(at: &mut Interpreter, name: &str, given: &Given<'_>) -> Made<Val> {
    let first = given.args.first()?;
    if name == "np.nan_to_num" {
        return nan_to_num(at, first, given);
    }
    selections(at, name, given.args)
        .or_else(|| conditions(at, name, given.args))
        .or_else(|| powers(at, name, given.args))
        .or_else(|| divisions(at, name, given.args))
}

/// Decomposition of numbers, and selection.
fn selections(at: &mut Interpreter, name: &str, args: &[Val]) -> Made<Val> {
    let first = args.first()?;
    Some(match name {
        "np.abs" => {
            let a = at.graph.array(first, None)?;
            at.graph.unary("Abs", &a).into()
        }
        "np.sign" => {
            let a = at.graph.array(first, None)?;
            let nan = is_nan(at, &a);
            let sign = at.graph.unary("Sign", &a);
            match nan {
                Some(nan) => at.graph.choose(&nan.into(), &a.into(), &sign.into())?.into(),
                None => sign.into(),
            }
        }
        "np.copysign" => {
            let both = at.graph.together(&[first, args.get(1)?])?;
            let size: Val = at.graph.unary("Abs", &both[0]).into();
            let back = at.binary("*", size.clone(), Val::Float(-1.0))?;
            // The reciprocal tells the sign of a zero.
            let one = at.binary("/", Val::Float(1.0), args.get(1)?.clone())?;
            let negative = at.binary("<", one, Val::Int(0))?;
            let below = at.binary("<", args.get(1)?.clone(), Val::Int(0))?;
            let negative = at.binary("|", negative, below)?;
            at.graph.choose(&negative, &back, &size)?.into()
        }
        "np.trunc" => {
            let a = at.graph.array(first, None)?;
            let down = at.graph.unary("Floor", &a);
            let up = at.graph.unary("Ceil", &a);
            let negative = at.graph.binary("Less", first, &Val::Int(0))?;
            at.graph.choose(&negative.into(), &up.into(), &down.into())?.into()
        }
        "np.maximum" | "np.minimum" => {
            let all = at.graph.together(&[first, args.get(1)?])?;
            let op = if name == "np.maximum" { "Max" } else { "Min" };
            at.graph.pair(op, &all[0], &all[1])?.into()
        }
        "np.where" => at.graph.choose(first, args.get(1)?, args.get(2)?)?.into(),
        "np.clip" => {
            let low = call(at, "np.maximum", &[first.clone(), args.get(1)?.clone()], &[])?;
            call(at, "np.minimum", &[low, args.get(2)?.clone()], &[])?
        }
        _ => return None,
    })
}

/// Predicates.
fn conditions(at: &mut Interpreter, name: &str, args: &[Val]) -> Made<Val> {
    let first = args.first()?;
    Some(match name {
        "np.isnan" => {
            let a = at.graph.array(first, None)?;
            is_nan(at, &a)?.into()
        }
        "np.isinf" => {
            let a = at.graph.array(first, None)?;
            let dims = a.dims.clone();
            at.graph.node("IsInf", &[&a], vec![], DType::Bool, dims).into()
        }
        "np.isfinite" => {
            let difference = at.binary("-", first.clone(), first.clone())?;
            at.binary("==", difference, Val::Int(0))?
        }
        "np.logical_and" | "np.logical_or" | "np.logical_xor" => {
            let op = match name {
                "np.logical_and" => "And",
                "np.logical_or" => "Or",
                _ => "Xor",
            };
            let (a, b) = (truths(at, first)?, truths(at, args.get(1)?)?);
            at.graph.pair(op, &a, &b)?.into()
        }
        "np.logical_not" => {
            let a = truths(at, first)?;
            at.graph.unary("Not", &a).into()
        }
        _ => return None,
    })
}

/// Exponentials, logarithms and roots.
fn powers(at: &mut Interpreter, name: &str, args: &[Val]) -> Made<Val> {
    let first = args.first()?;
    Some(match name {
        "np.exp2" => {
            let two = Val::Float(2.0);
            at.graph.binary("Pow", &two, first)?.into()
        }
        "np.log2" | "np.log10" => {
            let base: f64 = if name == "np.log2" { 2.0 } else { 10.0 };
            let log = at.graph.float("Log", first)?;
            at.binary("*", log.into(), Val::Float(1.0 / base.ln()))?
        }
        "np.expm1" => expm1(at, first)?,
        "np.log1p" => log1p(at, first)?,
        "np.hypot" => {
            let (a, b) = (first.clone(), args.get(1)?.clone());
            let a = at.binary("*", a.clone(), a)?;
            let b = at.binary("*", b.clone(), b)?;
            let sum = at.binary("+", a, b)?;
            at.graph.float("Sqrt", &sum)?.into()
        }
        "np.arctan2" => arctan2(at, first, args.get(1)?)?,
        "np.logaddexp" => {
            let top = call(at, "np.maximum", args, &[])?;
            let d = at.binary("-", first.clone(), args.get(1)?.clone())?;
            let size = call(at, "np.abs", &[d], &[])?;
            let size = at.binary("*", size, Val::Float(-1.0))?;
            let e = at.graph.float("Exp", &size)?;
            let rest = log1p(at, &e.into())?;
            at.binary("+", top, rest)?
        }
        _ => return None,
    })
}

/// Division with remainder.
fn divisions(at: &mut Interpreter, name: &str, args: &[Val]) -> Made<Val> {
    let first = args.first()?;
    Some(match name {
        "np.floor_divide" => {
            let all = at.graph.together(&[first, args.get(1)?])?;
            if all[0].dtype.is_float() {
                let q = at.graph.pair("Div", &all[0], &all[1])?;
                at.graph.unary("Floor", &q).into()
            } else {
                let rest = at.graph.pair("Mod", &all[0], &all[1])?;
                let whole = at.graph.pair("Sub", &all[0], &rest)?;
                at.graph.pair("Div", &whole, &all[1])?.into()
            }
        }
        "np.fmod" | "np.remainder" => {
            let all = at.graph.together(&[first, args.get(1)?])?;
            if name == "np.remainder" && !all[0].dtype.is_float() {
                return at.graph.pair("Mod", &all[0], &all[1]).map(Val::from);
            }
            let dims = crate::ops::broadcast(&all[0].dims, &all[1].dims)?;
            let fmod = vec![("fmod", Attr::Int(1))];
            let rest = at.graph.node("Mod", &[&all[0], &all[1]], fmod, all[0].dtype, dims);
            let rest: Val = rest.into();
            if name == "np.fmod" {
                return Some(rest);
            }
            let sign = at.binary("*", rest.clone(), args.get(1)?.clone())?;
            let apart = at.binary("<", sign, Val::Int(0))?;
            let other = at.binary("+", rest.clone(), args.get(1)?.clone())?;
            at.graph.choose(&apart, &other, &rest)?.into()
        }
        _ => return None,
    })
}

/// Replaces NaN and infinities.
fn nan_to_num(at: &mut Interpreter, first: &Val, given: &Given<'_>) -> Made<Val> {
    let a = at.graph.array(first, None)?;
    let nan = is_nan(at, &a)?;
    let most = if a.dtype == DType::F64 { f64::MAX } else { f64::from(f32::MAX) };
    let of = |k: &str| match (given.get(9, k), k) {
        (Some(Val::None) | None, "posinf") => Val::Float(most),
        (Some(Val::None) | None, "neginf") => Val::Float(-most),
        (Some(Val::None) | None, _) => Val::Float(0.0),
        (Some(v), _) => v.clone(),
    };
    let mut out = at.graph.choose(&nan.into(), &of("nan"), first)?;
    for (k, inf) in [("posinf", f64::INFINITY), ("neginf", f64::NEG_INFINITY)] {
        let same = at.binary("==", first.clone(), Val::Float(inf))?;
        out = at.graph.choose(&same, &of(k), &out.into())?;
    }
    Some(out.into())
}

fn is_nan(at: &mut Interpreter, a: &Array) -> Option<Array> {
    let dims = a.dims.clone();
    a.dtype.is_float().then(|| at.graph.node("IsNaN", &[a], vec![], DType::Bool, dims))
}
