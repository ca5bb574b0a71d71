//! Gather and scatter of elements, rows, slices and windows, as nodes.

use super::{array, int, ints, padded};
use crate::graph::{Array, Attr};
use crate::interpret::Interpreter;
use crate::ops::{Made, axis};
use crate::value::Val;

pub(super) fn elements(args: &[Val]) -> Made<Val> {
    Some(Val::Places(Box::new(args.first()?.clone()), int(args, 1)?))
}

pub(super) fn place(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (x, index) = (array(args, 0)?, array(args, 1)?);
    let (along, count) = (axis(int(args, 2)?, x.rank())?, int(args, 3)?);
    let mut dims = x.dims.clone();
    dims[along as usize] = count;
    let zeros = at.graph.full(x.dtype, &dims, 0.0)?;
    Some(at.graph.add_elements(&zeros, &index, &x, along).into())
}

pub(super) fn embedding_grad(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (g, index, rows) = (array(args, 0)?, array(args, 1)?, int(args, 2)?);
    let width = *g.dims.last()?;
    let zeros = at.graph.full(g.dtype, &[rows, width], 0.0)?;
    let out = add_rows(at, &zeros, &index, &g, width);
    match args.get(3)? {
        Val::None => Some(out.into()),
        v => {
            let rows: Vec<i64> = (0..rows).collect();
            let rows = at.graph.ints(&rows);
            let column = at.graph.reshape(&rows, &[-1, 1]);
            let padding = at.binary("==", column.into(), v.clone())?;
            Some(at.graph.choose(&padding, &Val::Float(0.0), &out.into())?.into())
        }
    }
}

/// Adds rows of `g` to the indexed rows of `x`.
fn add_rows(at: &mut Interpreter, x: &Array, index: &Array, g: &Array, width: i64) -> Array {
    let index = at.graph.reshape(index, &[index.size(), 1]);
    let g = at.graph.reshape(g, &[index.size(), width]);
    let add = vec![("reduction", Attr::Text("add"))];
    at.graph.node("ScatterND", &[x, &index, &g], add, x.dtype, x.dims.clone())
}

pub(super) fn rows_grad(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (g, index, along) = (array(args, 0)?, array(args, 1)?, int(args, 2)?);
    let shape = ints(args, 3)?;
    if index.rank() != 1 {
        return None;
    }
    let zeros = at.graph.full(g.dtype, &shape, 0.0)?;
    spread(at, &zeros, &index, &g, along, true)
}

/// Writes or adds rows along an axis: the index is broadcast over the other axes.
fn spread(
    at: &mut Interpreter,
    x: &Array,
    index: &Array,
    g: &Array,
    along: i64,
    add: bool,
) -> Made<Val> {
    let mut dims = vec![1; g.dims.len()];
    dims[along as usize] = index.size();
    let index = at.graph.reshape(index, &dims);
    let index = at.graph.expand(&index, &g.dims)?;
    scatter(at, x, &index, g, along, add)
}

fn scatter(
    at: &mut Interpreter,
    x: &Array,
    index: &Array,
    g: &Array,
    along: i64,
    add: bool,
) -> Made<Val> {
    if add {
        return Some(at.graph.add_elements(x, index, g, along).into());
    }
    let attrs = vec![("axis", Attr::Int(along))];
    Some(at.graph.node("ScatterElements", &[x, index, g], attrs, x.dtype, x.dims.clone()).into())
}

pub(super) fn gather_grad(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (g, index, along) = (array(args, 0)?, array(args, 1)?, int(args, 2)?);
    let zeros = at.graph.full(g.dtype, &ints(args, 3)?, 0.0)?;
    Some(at.graph.add_elements(&zeros, &index, &g, axis(along, g.rank())?).into())
}

pub(super) fn put(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (x, source, index) = (array(args, 0)?, array(args, 1)?, array(args, 2)?);
    let (along, rows, add) = (int(args, 3)?, args.get(4)?.truth()?, args.get(5)?.truth()?);
    if rows {
        return if index.rank() == 1 { spread(at, &x, &index, &source, along, add) } else { None };
    }
    let cuts: Vec<_> = index.dims.iter().enumerate().map(|(i, &n)| (i as i64, 0, n, 1)).collect();
    let source = at.graph.slice(&source, &cuts);
    scatter(at, &x, &index, &source, along, add)
}

/// Writes slices into zeros.
pub(super) fn unslice(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let shape = ints(args, 0)?;
    let mut sum: Option<Val> = None;
    for part in &args[1..] {
        let [index, g] = part.row()? else { return None };
        let Val::Array(g) = g else { return None };
        let places = places(index, &shape)?;
        let part: Val = match places.iter().all(|p| p.step == 1) {
            true => {
                let dims: Vec<i64> = places.iter().map(|p| p.count).collect();
                let g = at.graph.reshape(g, &dims);
                let amounts: Vec<_> = places
                    .iter()
                    .zip(&shape)
                    .map(|(p, n)| (p.start, n - p.start - p.count))
                    .collect();
                padded(at, &g, &amounts, 0.0)?.into()
            }
            false => at.graph.scattered(g, &flat_places(&places, &shape)?, &shape)?.into(),
        };
        sum = Some(match sum {
            Some(before) => at.binary("+", before, part)?,
            None => part,
        });
    }
    sum
}

/// Range of an axis.
struct Stretch {
    start: i64,
    count: i64,
    step: i64,
}

fn places(index: &Val, shape: &[i64]) -> Made<Vec<Stretch>> {
    let parts = match index {
        Val::Row(parts) => parts.clone(),
        one => vec![one.clone()],
    };
    let parts = parts.iter().filter(|p| !matches!(p, Val::None));
    let mut out = Vec::new();
    for (part, &n) in parts.zip(shape) {
        out.push(match part {
            Val::Int(start) => Stretch { start: *start, count: 1, step: 1 },
            Val::Slice(s) => {
                let part = |i: usize| s.get(i).copied().flatten();
                let step = part(2).unwrap_or(1);
                let start = part(0).unwrap_or(if step < 0 { n - 1 } else { 0 });
                let end = part(1).unwrap_or(if step < 0 { -1 } else { n });
                let count = (end - start + step - step.signum()).checked_div(step)?.max(0);
                Stretch { start, count, step }
            }
            _ => return None,
        });
    }
    out.extend(shape[out.len()..].iter().map(|&n| Stretch { start: 0, count: n, step: 1 }));
    Some(out)
}

/// Flat indices.
fn flat_places(places: &[Stretch], shape: &[i64]) -> Made<Vec<i64>> {
    let mut out = vec![0i64];
    for (p, n) in places.iter().zip(shape) {
        let steps = |before: i64| (0..p.count).map(move |i| before * n + p.start + i * p.step);
        out = out.into_iter().flat_map(steps).collect();
        if out.len() > 1 << 24 {
            return None;
        }
    }
    Some(out)
}

/// Flat indices under a window.
fn window_places(start: &[i64], moves: &Val, seen: &[i64], of: &[i64]) -> Made<Vec<i64>> {
    let strides: Vec<i64> = (0..of.len()).map(|i| of[i + 1..].iter().product()).collect();
    let mut steps = vec![0i64; seen.len()];
    for m in moves.row()? {
        let m = m.ints()?;
        steps[m[0] as usize] += m[2] * strides[m[1] as usize];
    }
    let first: i64 = start.iter().zip(&strides).map(|(a, b)| a * b).sum();
    let mut out = vec![first];
    for (&n, &step) in seen.iter().zip(&steps) {
        out = out.into_iter().flat_map(|a| (0..n).map(move |i| a + i * step)).collect();
        if out.len() > 1 << 24 {
            return None;
        }
    }
    Some(out)
}

pub(super) fn window(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (x, shape) = (array(args, 0)?, ints(args, 3)?);
    let places = window_places(&ints(args, 1)?, args.get(2)?, &shape, &x.dims)?;
    let flat = at.graph.reshape(&x, &[-1]);
    let index = at.graph.ints(&places);
    let out = at.graph.gather(&flat, &index, 0)?;
    Some(at.graph.reshape(&out, &shape).into())
}

pub(super) fn window_grad(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (g, shape) = (array(args, 0)?, ints(args, 3)?);
    let places = window_places(&ints(args, 1)?, args.get(2)?, &g.dims, &shape)?;
    at.graph.scattered(&g, &places, &shape).map(Val::from)
}

pub(super) fn remap_grad(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (mut g, shape) = (array(args, 0)?, ints(args, 2)?);
    let Val::Dict(maps) = args.get(1)? else { return None };
    for (along, places) in maps {
        let along = along.int()?;
        let mut dims = g.dims.clone();
        dims[along as usize] = *shape.get(along as usize)?;
        let zeros = at.graph.full(g.dtype, &dims, 0.0)?;
        let index = at.graph.ints(&places.ints()?);
        let Val::Array(next) = spread(at, &zeros, &index, &g, along, true)? else { return None };
        g = next;
    }
    Some(g.into())
}
