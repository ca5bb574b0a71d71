//! Signs between values: of numbers at once, of tensors by ops.

use chainrule::{DType, Tensor};
use chainrule_core::ops::binding::{Argument, meet};

use super::fault::{Fault, Outcome};
use super::value::Data;

/// `-x`
pub fn negative(x: &Data) -> Outcome<Data> {
    match x {
        Data::Int(x) => Ok(Data::Int(x.saturating_neg())),
        Data::Bool(x) => Ok(Data::Int(-i64::from(*x))),
        Data::Float(x) => Ok(Data::Float(-x)),
        other => Ok(Data::Tensor(other.tensor()?.try_neg()?)),
    }
}

/// `a sign b`
pub fn binary(sign: &str, a: &Data, b: &Data) -> Outcome<Data> {
    match (a, b) {
        (Data::List(a), Data::List(b)) if sign == "+" => {
            return Ok(Data::List(a.iter().chain(b).cloned().collect()));
        }
        (Data::List(a), Data::Int(n)) if sign == "*" => {
            let count = usize::try_from(*n).unwrap_or(0);
            if a.len().saturating_mul(count) > 100_000 {
                return Err(Fault::request("the list is too long"));
            }
            return Ok(Data::List((0..count).flat_map(|_| a.iter().cloned()).collect()));
        }
        (Data::None, _) | (_, Data::None) if matches!(sign, "==" | "!=") => {
            let equal = matches!((a, b), (Data::None, Data::None));
            return Ok(Data::Bool(equal == (sign == "==")));
        }
        (Data::Text(a), Data::Text(b)) if matches!(sign, "==" | "!=") => {
            return Ok(Data::Bool((a == b) == (sign == "==")));
        }
        (Data::Tensor(_) | Data::List(_), _) | (_, Data::Tensor(_) | Data::List(_)) => {}
        _ => return numbers(sign, a, b),
    }
    let (a, b) = together(a, b)?;
    tensors(sign, a, b).map(Data::Tensor)
}

/// Two operands as tensors of one dtype.
fn together(a: &Data, b: &Data) -> Outcome<(Tensor, Tensor)> {
    let operand = |x: &Data| match x {
        Data::Int(n) => Some(Argument::Int(*n)),
        Data::Float(x) => Some(Argument::Float(*x)),
        Data::Bool(x) => Some(Argument::Int(i64::from(*x))),
        _ => None,
    };
    let beside = |number: Argument, t: Tensor| {
        let t = match t.dtype() {
            DType::Bool => t.try_to_dtype(DType::F64)?,
            DType::I64 if matches!(number, Argument::Float(_)) => t.try_to_dtype(DType::F64)?,
            _ => t,
        };
        Ok::<_, Fault>((number.beside(&t)?, t))
    };
    match (operand(a), operand(b)) {
        (Some(a), None) => beside(a, b.tensor()?),
        (None, Some(b)) => beside(b, a.tensor()?).map(|(b, a)| (a, b)),
        _ => {
            let plain = |t: Tensor| match t.dtype() {
                DType::Bool => t.try_to_dtype(DType::F64),
                _ => Ok(t),
            };
            Ok(meet(plain(a.tensor()?)?, plain(b.tensor()?)?)?)
        }
    }
}

fn tensors(sign: &str, a: Tensor, b: Tensor) -> Outcome<Tensor> {
    let float = |t: Tensor| match t.dtype().is_float() {
        true => Ok(t),
        false => t.try_to_dtype(DType::F64),
    };
    // Masks are numbers, so that they can be multiplied by.
    let mask = |m: chainrule::Result<Tensor>| m.and_then(|m| m.try_to_dtype(DType::F64));
    let out = match sign {
        "+" => a.try_add(&b),
        "-" => a.try_sub(&b),
        "*" => a.try_mul(&b),
        "/" => float(a)?.try_div(&float(b)?),
        "**" => float(a)?.try_pow(&float(b)?),
        "@" => {
            let (a, b) = (float(a)?, float(b)?);
            a.try_matmul(&b)
        }
        "%" => a.try_remainder(&b),
        "<" => mask(a.try_lt(&b)),
        "<=" => mask(a.try_le(&b)),
        ">" => mask(a.try_gt(&b)),
        ">=" => mask(a.try_ge(&b)),
        "==" => mask(a.try_eq(&b)),
        "!=" => mask(a.try_ne(&b)),
        "&" => a.try_mul(&b),
        "|" => a.try_maximum(&b),
        _ => return Err(Fault::request(format!("`{sign}` is for numbers, not for tensors"))),
    };
    Ok(out?)
}

fn numbers(sign: &str, a: &Data, b: &Data) -> Outcome<Data> {
    let kinds = || Fault::request(format!("`{sign}` does not join {} and {}", a.kind(), b.kind()));
    let (x, y) = (a.number().ok_or_else(kinds)?, b.number().ok_or_else(kinds)?);
    let compared = match sign {
        "<" => Some(x < y),
        "<=" => Some(x <= y),
        ">" => Some(x > y),
        ">=" => Some(x >= y),
        "==" => Some(x == y),
        "!=" => Some(x != y),
        "&" => Some(x != 0.0 && y != 0.0),
        "|" => Some(x != 0.0 || y != 0.0),
        _ => None,
    };
    if let Some(holds) = compared {
        return Ok(Data::Bool(holds));
    }
    if y == 0.0 && matches!(sign, "/" | "//" | "%") {
        return Err(Fault::request("division by zero"));
    }
    if let (Some(m), Some(n)) = (a.whole(), b.whole()) {
        let whole = match sign {
            "+" => m.checked_add(n),
            "-" => m.checked_sub(n),
            "*" => m.checked_mul(n),
            "//" => Some(m.div_euclid(n)).filter(|_| n > 0),
            "%" => Some(m.rem_euclid(n)).filter(|_| n > 0),
            "**" => u32::try_from(n).ok().and_then(|n| m.checked_pow(n)),
            _ => None,
        };
        if let Some(n) = whole {
            return Ok(Data::Int(n));
        }
    }
    let out = match sign {
        "+" => x + y,
        "-" => x - y,
        "*" => x * y,
        "/" => x / y,
        "//" => (x / y).floor(),
        "%" => x - y * (x / y).floor(),
        "**" => x.powf(y),
        _ => return Err(kinds()),
    };
    Ok(Data::Float(out))
}
