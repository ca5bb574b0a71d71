//! Gather, scatter and selection.

use std::cmp::Ordering;
use std::collections::HashMap;

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use super::call::{Call, NodeResult, axis, dims, integers, numbers, one, row, scalar, signed};
use super::wrong;

/// Indices normalised along an axis of this size.
fn from_front(places: &Tensor, size: usize) -> Result<Tensor> {
    let places = places.try_to_dtype(DType::I64)?;
    let moved = places.try_add(Tensor::scalar(size as i64))?;
    places.try_lt(Tensor::scalar(0i64))?.try_where(&moved, &places)
}

pub(super) fn gather(c: &Call<'_>) -> NodeResult {
    let (x, places) = (c.x(0)?, c.x(1)?);
    let at = c.axis("axis", 0, x.rank())?;
    let sizes = signed(x);
    let flat = from_front(places, x.shape()[at])?.try_reshape(&[-1][..])?;
    let new = [&sizes[..at], signed(places).as_slice(), &sizes[at + 1..]].concat();
    one(x.try_index_select(at as i64, &flat)?.try_reshape(new.as_slice())?)
}

pub(super) fn gather_elements(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let at = c.axis("axis", 0, x.rank())?;
    one(x.try_gather(at as i64, &from_front(c.x(1)?, x.shape()[at])?)?)
}

/// Slice indices as row numbers, of a tensor whose first axes (but for the batch) they index.
fn linear(x: &Tensor, places: &Tensor, batch: usize) -> Result<(Tensor, usize)> {
    let depth = *places.shape().last().ok_or_else(|| wrong("its places have no axis"))?;
    if batch + depth > x.rank() || batch >= places.rank() {
        return Err(wrong(format!("places of {depth} numbers for {} axes", x.rank())));
    }
    let last = places.rank() as i64 - 1;
    let mut sum: Option<Tensor> = None;
    for i in 0..depth {
        let size = x.shape()[batch + i];
        let at = places.try_narrow(last, i, 1)?.try_squeeze(&[last][..])?;
        let at = from_front(&at, size)?;
        sum = Some(match sum {
            None => at,
            Some(sum) => sum.try_mul(Tensor::scalar(size as i64))?.try_add(&at)?,
        });
    }
    let slices: usize = x.shape()[batch..batch + depth].iter().product();
    let sum = match sum {
        Some(sum) => sum,
        None => Tensor::try_full(&dims(places)[..places.rank() - 1], 0.0, DType::I64)?,
    };
    Ok((sum, slices))
}

pub(super) fn gather_nd(c: &Call<'_>) -> NodeResult {
    let (x, places) = (c.x(0)?, c.x(1)?);
    let batch = c.int("batch_dims", 0).max(0) as usize;
    let (mut at, slices) = linear(x, places, batch)?;
    let depth = *places.shape().last().unwrap_or(&0);
    let rows: usize = x.shape()[..batch].iter().product();
    let rest = signed(x)[batch + depth..].to_vec();
    let new = [&signed(&at)[..], rest.as_slice()].concat();
    at = at.try_reshape(&[rows as i64, -1][..])?;
    let first = Tensor::arange(0, rows as i64).try_mul(Tensor::scalar(slices as i64))?;
    at = at.try_add(&first.try_unsqueeze(1)?)?.try_reshape(&[-1][..])?;
    let flat = [&[(rows * slices) as i64], rest.as_slice()].concat();
    one(x.try_reshape(flat.as_slice())?.try_index_select(0, &at)?.try_reshape(new.as_slice())?)
}

/// Scatters rows, with possible duplicates, reduced by a rule for two.
fn put(x: &Tensor, at: &Tensor, rows: &Tensor, rule: &str) -> Result<Tensor> {
    let two: fn(&Tensor, &Tensor) -> Result<Tensor> = match rule {
        "none" => return x.try_index_copy(0, at, rows),
        "add" => return x.try_index_add(0, at, rows),
        "mul" => |a, b| a.try_mul(b),
        "max" => |a, b| a.try_maximum(b),
        "min" => |a, b| a.try_minimum(b),
        other => return Err(wrong(format!("reduction {other:?} is not known"))),
    };
    // In rounds, each without duplicates.
    let mut rounds: Vec<(Vec<i64>, Vec<i64>)> = Vec::new();
    let mut seen: HashMap<i64, usize> = HashMap::new();
    for (from, &to) in integers(at)?.iter().enumerate() {
        let round = seen.entry(to).or_default();
        if *round == rounds.len() {
            rounds.push(Default::default());
        }
        rounds[*round].0.push(to);
        rounds[*round].1.push(from as i64);
        *round += 1;
    }
    let mut x = x.clone();
    for (to, from) in rounds {
        let (to, from) = (row(&to)?, row(&from)?);
        let new = two(&x.try_index_select(0, &to)?, &rows.try_index_select(0, &from)?)?;
        x = x.try_index_copy(0, &to, &new)?;
    }
    Ok(x)
}

pub(super) fn scatter_nd(c: &Call<'_>) -> NodeResult {
    let (x, places, updates) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let (at, slices) = linear(x, places, 0)?;
    let depth = *places.shape().last().unwrap_or(&0);
    let size: i64 = signed(x)[depth..].iter().product();
    let flat = x.try_reshape(&[slices as i64, size][..])?;
    let at = at.try_reshape(&[-1][..])?;
    let updates = updates.try_reshape(&[at.numel() as i64, size][..])?;
    let y = put(&flat, &at, &updates, c.text("reduction", "none"))?;
    one(y.try_reshape(x.shape())?)
}

pub(super) fn scatter_elements(c: &Call<'_>) -> NodeResult {
    let (x, updates) = (c.x(0)?, c.x(2)?);
    let at = c.axis("axis", 0, x.rank())?;
    let places = from_front(c.x(1)?, x.shape()[at])?;
    match c.text("reduction", "none") {
        "none" => one(x.try_scatter(at as i64, &places, updates)?),
        "add" => one(x.try_scatter_add(at as i64, &places, updates)?),
        rule => {
            // Flat indices.
            let sizes = dims(x);
            let mut sum = Tensor::try_full(places.shape(), 0.0, DType::I64)?;
            for (i, &size) in sizes.iter().enumerate() {
                let here = match i == at {
                    true => places.clone(),
                    false => {
                        let mut shape = vec![1i64; sizes.len()];
                        shape[i] = places.shape()[i] as i64;
                        let line = Tensor::arange(0, shape[i]);
                        line.try_reshape(shape.as_slice())?
                    }
                };
                sum = sum.try_mul(Tensor::scalar(size as i64))?.try_add(&here)?;
            }
            let (flat, at) = (x.try_reshape(&[-1, 1][..])?, sum.try_reshape(&[-1][..])?);
            let y = put(&flat, &at, &updates.try_reshape(&[-1, 1][..])?, rule)?;
            one(y.try_reshape(x.shape())?)
        }
    }
}

/// Writes new rows into a cache, from each sequence's position on.
pub(super) fn tensor_scatter(c: &Call<'_>) -> NodeResult {
    let (x, update) = (c.x(0)?, c.x(1)?);
    let at = c.axis("axis", -2, x.rank())?;
    let (batch, len, size) = (x.shape()[0], update.shape()[at] as i64, x.shape()[at] as i64);
    let starts = match c.opt(2) {
        Some(starts) => integers(starts)?,
        None => vec![0; batch],
    };
    let circular = c.text("mode", "linear") == "circular";
    let mut parts = Vec::new();
    for (i, &start) in starts.iter().enumerate() {
        let to = (start..start + len).map(|t| if circular { t.rem_euclid(size) } else { t });
        let to = row(&to.collect::<Vec<_>>())?;
        let (x, update) = (x.try_narrow(0, i, 1)?, update.try_narrow(0, i, 1)?);
        parts.push(x.try_index_copy(at as i64, &to, &update)?);
    }
    one(Tensor::try_cat(&parts.iter().collect::<Vec<_>>(), 0)?)
}

pub(super) fn one_hot(c: &Call<'_>) -> NodeResult {
    let (places, values) = (c.x(0)?, c.x(2)?);
    let depth = c.int_at(1)?.unwrap_or(0);
    let size = usize::try_from(depth).map_err(|_| wrong(format!("a depth of {depth}")))?;
    let at = axis(c.int("axis", -1), places.rank() + 1)?;
    let mut shape = vec![1; places.rank() + 1];
    shape[at] = size;
    let line = Tensor::arange(0, depth)
        .try_reshape(&shape.iter().map(|&d| d as i64).collect::<Vec<_>>()[..])?;
    let places = from_front(places, size)?.try_unsqueeze(at as i64)?;
    let value = |i| values.try_narrow(0, i, 1)?.try_squeeze(&[0][..]);
    one(places.try_eq(&line)?.try_where(&value(1)?, &value(0)?)?)
}

pub(super) fn non_zero(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    if x.rank() == 0 {
        let count = i64::from(numbers(x)?.first().is_some_and(|&x| x != 0.0));
        return one(Tensor::try_full(&[0, count as usize][..], 0.0, DType::I64)?);
    }
    one(x.try_ne(&scalar(0.0, x.dtype())?)?.try_nonzero()?.try_transpose(0, 1)?)
}

pub(super) fn compress(c: &Call<'_>) -> NodeResult {
    let (x, mask) = (c.x(0)?, c.x(1)?);
    let kept = numbers(mask)?.into_iter().enumerate().filter(|(_, keep)| *keep != 0.0);
    let kept = row(&kept.map(|(i, _)| i as i64).collect::<Vec<_>>())?;
    match c.int_or_none("axis") {
        Some(at) => one(x.try_index_select(axis(at, x.rank())? as i64, &kept)?),
        None => one(x.try_reshape(&[-1][..])?.try_index_select(0, &kept)?),
    }
}

pub(super) fn unique(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let at = c.int_or_none("axis").map(|a| axis(a, x.rank())).transpose()?;
    let moved = match at {
        Some(at) => x.try_movedim(&[at as i64], &[0])?,
        None => x.try_reshape(&[-1][..])?,
    };
    let rows = moved.shape().first().copied().unwrap_or(0);
    let all = numbers(&moved)?;
    let width = all.len().checked_div(rows).unwrap_or(0);
    let slice = |i: usize| &all[i * width..(i + 1) * width];
    let order = |a: &[f64], b: &[f64]| {
        let pairs = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
        pairs.fold(Ordering::Equal, Ordering::then)
    };
    // First occurrence of each value, sorted or in order of appearance.
    let mut sorted: Vec<usize> = (0..rows).collect();
    sorted.sort_by(|&a, &b| order(slice(a), slice(b)));
    let mut kinds: Vec<Vec<usize>> = Vec::new();
    for i in sorted {
        match kinds.last_mut() {
            Some(kind) if order(slice(kind[0]), slice(i)).is_eq() => kind.push(i),
            _ => kinds.push(vec![i]),
        }
    }
    if c.int("sorted", 1) == 0 {
        kinds.sort_by_key(|kind| kind[0]);
    }
    let mut inverse = vec![0; rows];
    for (number, kind) in kinds.iter().enumerate() {
        kind.iter().for_each(|&i| inverse[i] = number as i64);
    }
    let first: Vec<i64> = kinds.iter().map(|kind| kind[0] as i64).collect();
    let counts: Vec<i64> = kinds.iter().map(|kind| kind.len() as i64).collect();
    let y = moved.try_index_select(0, &row(&first)?)?;
    let y = match at {
        Some(at) => y.try_movedim(&[0], &[at as i64])?,
        None => y,
    };
    Ok(vec![y, row(&first)?, row(&inverse)?, row(&counts)?])
}

/// Non-maximum suppression: boxes in order of scores, without those that overlap an earlier one.
pub(super) fn non_max_suppression(c: &Call<'_>) -> NodeResult {
    let (boxes, scores) = (c.x(0)?, c.x(1)?);
    let ([batches, count, 4], [_, classes, _]) = (&dims(boxes)[..], &dims(scores)[..]) else {
        return Err(wrong("boxes are [batch, boxes, 4], scores [batch, classes, boxes]"));
    };
    let most = c.int_at(2)?.unwrap_or(0).max(0) as usize;
    let overlap = c.float_at(3)?.unwrap_or(0.0);
    let least = c.float_at(4)?;
    let (boxes, scores) = (numbers(boxes)?, numbers(scores)?);
    let center = c.flag("center_point_box");
    let corners = |b: usize, i: usize| {
        let at = (b * count + i) * 4;
        let [p, q, r, s] = [boxes[at], boxes[at + 1], boxes[at + 2], boxes[at + 3]];
        match center {
            true => [q - s / 2.0, p - r / 2.0, q + s / 2.0, p + r / 2.0],
            false => [p.min(r), q.min(s), p.max(r), q.max(s)],
        }
    };
    let area = |[a, b, c, d]: [f64; 4]| (c - a).max(0.0) * (d - b).max(0.0);
    let mut found = Vec::new();
    for b in 0..*batches {
        for class in 0..*classes {
            let score = |i: usize| scores[(b * classes + class) * count + i];
            let mut order: Vec<usize> =
                (0..*count).filter(|&i| least.is_none_or(|least| score(i) > least)).collect();
            order.sort_by(|&i, &j| score(j).total_cmp(&score(i)));
            let mut kept: Vec<usize> = Vec::new();
            for i in order {
                if kept.len() >= most {
                    break;
                }
                let x = corners(b, i);
                let is_new = kept.iter().all(|&k| {
                    let y = corners(b, k);
                    let both = [x[0].max(y[0]), x[1].max(y[1]), x[2].min(y[2]), x[3].min(y[3])];
                    let shared = area(both);
                    shared <= overlap * (area(x) + area(y) - shared)
                });
                if is_new {
                    kept.push(i);
                    found.extend([b as i64, class as i64, i as i64]);
                }
            }
        }
    }
    one(row(&found)?.try_reshape(&[found.len() as i64 / 3, 3][..])?)
}
