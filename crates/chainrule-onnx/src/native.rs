//! Hand-written nodes for functions of the forms whose Python writes into arrays or loops over
//! elements.

mod attention;
mod indexing;
mod windows;

use chainrule_core::dtype::DType;

use crate::graph::{Array, Attr};
use crate::interpret::Interpreter;
use crate::ops::{Made, axis};
use crate::value::Val;

/// The result of a supported function, or `None`.
pub(crate) fn call(
    at: &mut Interpreter,
    name: &str,
    args: &[Val],
    named: &[(String, Val)],
) -> Option<Made<Val>> {
    Some(match name {
        "_each" => each(at, args),
        "_linear_grad" => linear_grad(at, args, false),
        "_linear_grad_bf16" => linear_grad(at, args, true),
        "_bf16" => Some(bf16(at, &array(args, 0)?).into()),
        "_conv2d" => windows::conv(at, args, named),
        "_conv2d_weight_grad" => windows::conv_weight_grad(at, args, named),
        "_conv_transpose2d" => windows::conv_transpose(at, args, named),
        "_max_pool" => windows::max_pool(at, args),
        "_elements" => indexing::elements(args),
        "_place" => indexing::place(at, args),
        "_embedding_grad" => indexing::embedding_grad(at, args),
        "_rows_grad" => indexing::rows_grad(at, args),
        "_gather_grad" => indexing::gather_grad(at, args),
        "_unslice" => indexing::unslice(at, args),
        "_window" => indexing::window(at, args),
        "_window_grad" => indexing::window_grad(at, args),
        "_remap_grad" => indexing::remap_grad(at, args),
        "_pad" => pad(at, args),
        "_cumulate" => cumulate(at, args),
        "_order" => None,
        "_sort" => sort(at, args),
        "_taps" => taps(at, args),
        "_put" => indexing::put(at, args),
        "_grad_norm" => grad_norm(at, args),
        "_attention" => Some(attention::forward(at, args, named)?),
        "_attention_grad" => Some(attention::backward(at, args, named)?),
        "_keep" if at.takes.is_some() => attention::keep_factors(at, args),
        _ => return None,
    })
}

fn array(args: &[Val], i: usize) -> Made<Array> {
    match args.get(i)? {
        Val::Array(a) => Some(a.clone()),
        _ => None,
    }
}

fn ints(args: &[Val], i: usize) -> Made<Vec<i64>> {
    args.get(i)?.ints()
}

fn int(args: &[Val], i: usize) -> Made<i64> {
    args.get(i)?.int()
}

fn each(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let Val::Function(name) = args.first()? else { return None };
    let x = at.graph.float("Erf", args.get(1)?)?;
    match name.as_str() {
        "math.erf" => Some(x.into()),
        "math.erfc" => at.binary("-", Val::Float(1.0), x.into()),
        _ => None,
    }
}

/// Elements rounded to bf16, in their own dtype.
fn bf16(at: &mut Interpreter, x: &Array) -> Array {
    let near = at.graph.cast(x, DType::BF16);
    at.graph.cast(&near, x.dtype)
}

/// The requested gradients; `rounds` rounds the operands of products.
fn linear_grad(at: &mut Interpreter, args: &[Val], rounds: bool) -> Made<Val> {
    let (g, mut x, mut weight) = (array(args, 0)?, array(args, 1)?, array(args, 2)?);
    let mut near = g.clone();
    if rounds {
        [near, x, weight] = [g.clone(), x, weight].map(|operand| bf16(at, &operand));
    }
    let wants = args.get(3)?.row()?;
    let graph = &mut at.graph;
    let rows = x.dims[..x.dims.len().checked_sub(1)?].iter().product();
    let flat = graph.reshape(&near, &[rows, weight.dims[0]]);
    let x2 = graph.reshape(&x, &[rows, weight.dims[1]]);
    let mut out = Vec::new();
    for (i, wanted) in wants.iter().enumerate() {
        if !wanted.truth()? {
            continue;
        }
        let made = match i {
            0 => {
                let dx = graph.matmul(&flat.clone().into(), &weight.clone().into())?;
                graph.reshape(&dx, &x.dims)
            }
            1 => {
                let turned = graph.swap(&flat, 0, 1)?;
                graph.matmul(&turned.into(), &x2.clone().into())?
            }
            _ => {
                let whole = graph.reshape(&g, &[rows, weight.dims[0]]);
                graph.reduce("ReduceSum", &whole, Some(&[0]), false)?
            }
        };
        out.push(Val::from(made));
    }
    if out.len() == 1 { out.pop() } else { Some(Val::Row(out)) }
}

/// Norm of the concatenated arrays, in f64.
fn grad_norm(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (p, gradients) = (args.first()?.number()?, args.get(1..)?);
    let power = |at: &mut Interpreter, x: Array, p: f64| at.binary("**", x.into(), Val::Float(p));
    let mut total: Option<Array> = None;
    for g in gradients {
        let Val::Array(g) = g else { return None };
        let g = at.graph.cast(g, DType::F64);
        let (part, join) = if p.is_infinite() {
            let size = at.graph.unary("Abs", &g);
            (at.graph.reduce("ReduceMax", &size, None, false)?, "Max")
        } else {
            let parts = match p {
                2.0 => at.binary("*", g.clone().into(), g.into())?,
                _ => {
                    let size = at.graph.unary("Abs", &g);
                    power(at, size, p)?
                }
            };
            let Val::Array(parts) = parts else { return None };
            (at.graph.reduce("ReduceSum", &parts, None, false)?, "Add")
        };
        total = Some(match total {
            Some(before) => at.graph.pair(join, &before, &part)?,
            None => part,
        });
    }
    match p {
        p if p.is_infinite() => Some(total?.into()),
        2.0 => Some(at.graph.unary("Sqrt", &total?).into()),
        _ => power(at, total?, 1.0 / p),
    }
}

fn padded(at: &mut Interpreter, x: &Array, amounts: &[(i64, i64)], value: f64) -> Made<Array> {
    if amounts.iter().all(|a| *a == (0, 0)) {
        return Some(x.clone());
    }
    let dims = x.dims.iter().zip(amounts).map(|(n, (a, b))| n + a + b).collect();
    let pads: Vec<i64> = amounts.iter().map(|a| a.0).chain(amounts.iter().map(|a| a.1)).collect();
    let pads = at.graph.ints(&pads);
    let value = at.graph.scalar(x.dtype, value);
    Some(at.graph.node("Pad", &[x, &pads, &value], vec![], x.dtype, dims))
}

fn pad(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let x = array(args, 0)?;
    let amounts: Vec<(i64, i64)> = args
        .get(1)?
        .row()?
        .iter()
        .map(|a| Some((a.row()?.first()?.int()?, a.row()?.get(1)?.int()?)))
        .collect::<Option<_>>()?;
    padded(at, &x, &amounts, args.get(2)?.number()?).map(Val::from)
}

fn cumulate(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let Val::Function(f) = args.first()? else { return None };
    if f != "np.add" {
        return None;
    }
    let x = array(args, 1)?;
    let along = at.graph.scalar(DType::I64, axis(int(args, 2)?, x.rank())? as f64);
    let flag = |i: usize| Some(Attr::Int(i64::from(args.get(i)?.truth()?)));
    let attrs = vec![("reverse", flag(3)?), ("exclusive", flag(4)?)];
    Some(at.graph.node("CumSum", &[&x, &along], attrs, x.dtype, x.dims.clone()).into())
}

fn sort(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (x, down) = (array(args, 0)?, args.get(2)?.truth()?);
    let along = axis(int(args, 1)?, x.rank())?;
    let count = args.get(3)?.int().unwrap_or(x.dims[along as usize]);
    let k = at.graph.ints(&[count]);
    let mut dims = x.dims.clone();
    dims[along as usize] = count;
    let attrs = vec![("axis", Attr::Int(along)), ("largest", Attr::Int(i64::from(down)))];
    let y = at.graph.node("TopK", &[&x, &k], attrs, x.dtype, dims.clone());
    let places = at.graph.beside(DType::I64, dims);
    Some(Val::Row(vec![y.into(), places.into()]))
}

/// A matrix from the weights of each row.
fn taps(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (size, starts) = (int(args, 0)?, ints(args, 1)?);
    let entries = args.get(2)?.row()?;
    let Val::DType(dtype) = args.get(3)? else { return None };
    let rows = starts.len().checked_sub(1)?;
    let mut out = vec![0.0; rows * usize::try_from(size).ok()?];
    for (i, ends) in starts.windows(2).enumerate() {
        for entry in entries.get(ends[0] as usize..ends[1] as usize)? {
            let [place, weight] = entry.row()? else { return None };
            *out.get_mut(i * size as usize + place.int()? as usize)? += weight.number()?;
        }
    }
    let bytes = out.iter().flat_map(|x| match dtype {
        DType::F64 => x.to_le_bytes().to_vec(),
        _ => (*x as f32).to_le_bytes().to_vec(),
    });
    let bytes = bytes.collect();
    Some(at.graph.constant(*dtype, &[rows as i64, size], bytes).into())
}
