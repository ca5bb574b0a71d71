//! Ops on shapes and layout.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use chainrule_core::ops::{PadMode, Slice};

use super::call::{
    Call, NodeResult, axis, bounded, dims, integers, one, row, scalar, signed, sizes,
};
use super::wrong;

pub(super) fn reshape(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let wanted = c.ints_at(1, "shape")?.ok_or_else(|| wrong("its shape is missing"))?;
    let zero_stays = c.flag("allowzero");
    let size = |(i, &d): (usize, &i64)| match d {
        0 if !zero_stays => x.shape().get(i).map(|&d| d as i64).ok_or_else(|| {
            wrong(format!("size 0 at axis {i} takes that of the input, which has {}", x.rank()))
        }),
        d => Ok(d),
    };
    let mut new = wanted.iter().enumerate().map(size).collect::<Result<Vec<_>>>()?;
    // The inferred size is computed here if another size is 0.
    if let Some(open) = new.iter().position(|&d| d == -1) {
        let rest: i64 = new.iter().filter(|&&d| d != -1).product();
        if rest > 0 {
            new[open] = x.numel() as i64 / rest;
        }
    }
    one(x.try_reshape(new.as_slice())?)
}

pub(super) fn transpose(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let order = c.ints("perm").unwrap_or_else(|| (0..x.rank() as i64).rev().collect());
    one(x.try_permute(&order)?)
}

pub(super) fn squeeze(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    match c.ints_at(1, "axes")? {
        None => one(x.try_squeeze_all()?),
        Some(axes) => {
            for &a in &axes {
                let at = axis(a, x.rank())?;
                if x.shape()[at] != 1 {
                    return Err(wrong(format!("axis {a} has size {}, not 1", x.shape()[at])));
                }
            }
            one(x.try_squeeze(axes.as_slice())?)
        }
    }
}

pub(super) fn unsqueeze(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let axes = c.ints_at(1, "axes")?.ok_or_else(|| wrong("its axes are missing"))?;
    let rank = x.rank() + axes.len();
    let mut places = axes.iter().map(|&a| axis(a, rank)).collect::<Result<Vec<_>>>()?;
    places.sort_unstable();
    if places.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(wrong(format!("axes {axes:?} name one twice")));
    }
    let mut sizes = signed(x);
    places.iter().for_each(|&at| sizes.insert(at, 1));
    one(x.try_reshape(sizes.as_slice())?)
}

pub(super) fn concat(c: &Call<'_>) -> NodeResult {
    let all = c.all()?;
    one(Tensor::try_cat(&all, c.int("axis", 1))?)
}

pub(super) fn split(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let at = c.axis("axis", 0, x.rank())?;
    let size = x.shape()[at];
    let parts = match c.ints_at(1, "split")? {
        Some(parts) => sizes(&parts)?,
        None => {
            let count = c.int("num_outputs", c.step.outputs.len() as i64).max(1) as usize;
            let each = size.div_ceil(count);
            (0..count).map(|i| each.min(size.saturating_sub(i * each))).collect()
        }
    };
    x.try_split_with_sizes(&parts, at as i64)
}

pub(super) fn slice(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let needed = |list: Option<Vec<i64>>| list.ok_or_else(|| wrong("its bounds are missing"));
    let (starts, ends) = (needed(c.ints_at(1, "starts")?)?, needed(c.ints_at(2, "ends")?)?);
    let axes = c.ints_at(3, "axes")?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = c.ints_at(4, "steps")?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return Err(wrong("its bounds, axes and steps are not of one number"));
    }
    let mut all = vec![Slice::Range { start: None, end: None, step: 1 }; x.rank()];
    for (i, &a) in axes.iter().enumerate() {
        let at = axis(a, x.rank())?;
        let (size, step) = (x.shape()[at] as i64, steps[i]);
        let from_front = |bound: i64| if bound < 0 { bound.saturating_add(size) } else { bound };
        let (start, end) = (from_front(starts[i]), from_front(ends[i]));
        all[at] = match step {
            0 => return Err(wrong("its step is 0")),
            1.. => {
                let start = start.clamp(0, size);
                Slice::Range { start: Some(start), end: Some(end.clamp(start, size)), step }
            }
            // An end before the first element isn't a negative index.
            _ => {
                let start = start.clamp(-1, size - 1);
                let end = end.clamp(-1, size - 1).min(start);
                match start {
                    -1 => Slice::Range { start: Some(0), end: Some(0), step: 1 },
                    _ => Slice::Range { start: Some(start), end: (end >= 0).then_some(end), step },
                }
            }
        };
    }
    one(x.try_slice(&all)?)
}

pub(super) fn flatten(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let at = match c.int("axis", 1) {
        a if a == x.rank() as i64 => x.rank(),
        a => axis(a, x.rank())?,
    };
    let rows: usize = x.shape()[..at].iter().product();
    let columns: usize = x.shape()[at..].iter().product();
    one(x.try_reshape(&[rows as i64, columns as i64][..])?)
}

pub(super) fn expand(c: &Call<'_>) -> NodeResult {
    let (x, wanted) = (c.x(0)?, sizes(&integers(c.x(1)?)?)?);
    let rank = wanted.len().max(x.rank());
    let mut shape = vec![1; rank];
    shape[rank - wanted.len()..].copy_from_slice(&wanted);
    // A size of 1 keeps that of the input.
    for (to, &from) in shape[rank - x.rank()..].iter_mut().zip(x.shape().iter()) {
        if *to == 1 {
            *to = from;
        }
    }
    one(x.try_expand(shape.as_slice())?)
}

pub(super) fn tile(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    // Older opsets had a count and an axis.
    let times = match c.opt(2) {
        Some(at) if c.opset() < 6 => {
            let at = axis(integers(at)?.first().copied().unwrap_or(0), x.rank())?;
            let mut times = vec![1; x.rank()];
            times[at] = c.int_at(1)?.unwrap_or(1);
            times
        }
        _ => integers(c.x(1)?)?,
    };
    one(x.try_tile(sizes(&times)?.as_slice())?)
}

pub(super) fn shape(c: &Call<'_>) -> NodeResult {
    let all = signed(c.x(0)?);
    let rank = all.len() as i64;
    let bound = |at: i64| if at < 0 { (at + rank).max(0) } else { at.min(rank) } as usize;
    let (start, end) = (bound(c.int("start", 0)), bound(c.int("end", rank)));
    one(row(all.get(start..end).unwrap_or_default())?)
}

pub(super) fn size(c: &Call<'_>) -> NodeResult {
    one(Tensor::scalar(c.x(0)?.numel() as i64))
}

pub(super) fn pad(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let amounts = match c.ints_at(1, "pads")? {
        Some(amounts) => amounts,
        None => c.ints("paddings").ok_or_else(|| wrong("its amounts are missing"))?,
    };
    let axes = match c.opt(3) {
        Some(axes) => integers(axes)?,
        None => (0..x.rank() as i64).collect(),
    };
    if amounts.len() != 2 * axes.len() {
        return Err(wrong(format!("{} amounts for {} axes", amounts.len(), axes.len())));
    }
    let mut all = Vec::new();
    for (i, &a) in axes.iter().enumerate() {
        axis(a, x.rank())?;
        all.push((a, [amounts[i], amounts[axes.len() + i]]));
    }
    let value = match c.opt(2) {
        Some(_) => c.float_at(2)?.unwrap_or(0.0),
        None => c.float("value", 0.0),
    };
    let mode = match c.text("mode", "constant") {
        "constant" => PadMode::Constant(value),
        "reflect" => PadMode::Reflect,
        "edge" => PadMode::Replicate,
        "wrap" => PadMode::Circular,
        other => return Err(wrong(format!("mode {other:?} is not known"))),
    };
    match x.dtype() {
        DType::Bool => {
            let y = x.try_to_dtype(DType::U8)?.try_pad(&all, mode)?;
            one(y.try_to_dtype(DType::Bool)?)
        }
        _ => one(x.try_pad(&all, mode)?),
    }
}

/// Moves channels to space, or back.
pub(super) fn depth_to_space(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let b = c.int("blocksize", 0);
    let [n, depth, h, w] = signed(x)[..] else { return Err(wrong("its input has not 4 axes")) };
    if b < 1 || depth % (b * b) != 0 {
        return Err(wrong(format!("{depth} channels are no blocks of {b} by {b}")));
    }
    let rest = depth / (b * b);
    let y = match c.text("mode", "DCR") {
        "CRD" => x.try_reshape(&[n, rest, b, b, h, w][..])?.try_permute(&[0, 1, 4, 2, 5, 3])?,
        _ => x.try_reshape(&[n, b, b, rest, h, w][..])?.try_permute(&[0, 3, 4, 1, 5, 2])?,
    };
    one(y.try_reshape(&[n, rest, h * b, w * b][..])?)
}

pub(super) fn space_to_depth(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let b = c.int("blocksize", 0);
    let [n, depth, h, w] = signed(x)[..] else { return Err(wrong("its input has not 4 axes")) };
    if b < 1 || h % b != 0 || w % b != 0 {
        return Err(wrong(format!("{h} by {w} are no blocks of {b}")));
    }
    let y = x.try_reshape(&[n, depth, h / b, b, w / b, b][..])?;
    let y = match c.text("mode", "DCR") {
        "CRD" => y.try_permute(&[0, 1, 3, 5, 2, 4])?,
        _ => y.try_permute(&[0, 3, 5, 1, 2, 4])?,
    };
    one(y.try_reshape(&[n, depth * b * b, h / b, w / b][..])?)
}

pub(super) fn trilu(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let k = c.int_at(1)?.unwrap_or(0);
    one(if c.int("upper", 1) != 0 { x.try_triu(k)? } else { x.try_tril(k)? })
}

/// Crops or pads centrally.
pub(super) fn center_crop_pad(c: &Call<'_>) -> NodeResult {
    let (mut x, wanted) = (c.x(0)?.clone(), sizes(&integers(c.x(1)?)?)?);
    let axes = c.ints("axes").unwrap_or_else(|| (0..x.rank() as i64).collect());
    for (&a, &to) in axes.iter().zip(&wanted) {
        let at = axis(a, x.rank())?;
        let size = x.shape()[at];
        x = match size > to {
            true => x.try_narrow(at as i64, (size - to) / 2, to)?,
            false => {
                let before = (to - size) / 2;
                let around = [before as i64, (to - size - before) as i64];
                x.try_pad(&[(at as i64, around)], PadMode::Constant(0.0))?
            }
        };
    }
    one(x)
}

/// Reverses the first elements of each sequence.
pub(super) fn reverse_sequence(c: &Call<'_>) -> NodeResult {
    let (x, lens) = (c.x(0)?, integers(c.x(1)?)?);
    let (time, batch) = (c.axis("time_axis", 0, x.rank())?, c.axis("batch_axis", 1, x.rank())?);
    let (steps, rows) = (x.shape()[time] as i64, x.shape()[batch]);
    if lens.len() != rows || lens.iter().any(|&n| !(0..=steps).contains(&n)) {
        return Err(wrong(format!("lengths {lens:?} for {rows} sequences of {steps}")));
    }
    let mut parts = Vec::new();
    for (row, &len) in lens.iter().enumerate() {
        let from = (0..steps).map(|t| if t < len { len - 1 - t } else { t });
        let from: Vec<i64> = from.collect();
        let one = x.try_narrow(batch as i64, row, 1)?;
        parts.push(one.try_index_select(time as i64, &super::call::row(&from)?)?);
    }
    one(Tensor::try_cat(&parts.iter().collect::<Vec<_>>(), batch as i64)?)
}

/// Col2im: sums sliding blocks into images.
pub(super) fn col2im(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let (image, block) = (sizes(&integers(c.x(1)?)?)?, sizes(&integers(c.x(2)?)?)?);
    let n = image.len();
    let dilations = c.sizes("dilations")?.unwrap_or_else(|| vec![1; n]);
    let strides = c.sizes("strides")?.unwrap_or_else(|| vec![1; n]);
    let pads = c.sizes("pads")?.unwrap_or_else(|| vec![0; 2 * n]);
    if [block.len(), dilations.len(), strides.len(), pads.len()] != [n, n, n, 2 * n] {
        return Err(wrong("its sizes are not of one number"));
    }
    if x.rank() != 3 || block.contains(&0) || strides.contains(&0) {
        return Err(wrong("its input has not 3 axes, or a size or step is 0"));
    }
    for sizes in [&image, &block, &dilations, &strides, &pads] {
        bounded(sizes)?;
    }
    let volume: usize = block.iter().product();
    let padded: Vec<usize> = (0..n).map(|i| image[i] + pads[i] + pads[n + i]).collect();
    let steps: Vec<usize> = (0..n)
        .map(|i| (padded[i].saturating_sub(dilations[i] * (block[i] - 1) + 1)) / strides[i] + 1)
        .collect();
    bounded(&[&steps[..], &[volume]].concat())?;
    bounded(&padded)?;
    let channels = x.shape()[1] / volume.max(1);
    let (count, total) = (steps.iter().product::<usize>(), padded.iter().product::<usize>());
    // Flat index of each element of each block.
    let mut places = vec![0i64; volume * count];
    for (at, place) in places.iter_mut().enumerate() {
        let (mut inner, mut outer) = (at / count, at % count);
        let mut step = 1;
        for i in (0..n).rev() {
            let k = inner % block[i];
            let o = outer % steps[i];
            *place += ((o * strides[i] + k * dilations[i]) * step) as i64;
            (inner, outer, step) = (inner / block[i], outer / steps[i], step * padded[i]);
        }
    }
    let batch = x.shape()[0];
    let rows = x.try_reshape(&[(batch * channels) as i64, (volume * count) as i64][..])?;
    let zero = Tensor::try_full(&[batch * channels, total][..], 0.0, x.dtype())?;
    let y = zero.try_index_add(1, &row(&places)?, &rows)?;
    let full = [&[batch, channels], padded.as_slice()].concat();
    let full: Vec<i64> = full.iter().map(|&d| d as i64).collect();
    let mut y = y.try_reshape(full.as_slice())?;
    for i in 0..n {
        y = y.try_narrow(2 + i as i64, pads[i], image[i])?;
    }
    one(y)
}

/// An identity matrix, possibly off the diagonal.
pub(super) fn eye_like(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let [rows, columns] = dims(x)[..] else { return Err(wrong("its input has not 2 axes")) };
    let dtype = match c.int_or_none("dtype") {
        Some(number) => super::stored::dtype(number)?,
        None => x.dtype(),
    };
    let column = Tensor::arange(0, columns as i64);
    let row = Tensor::arange(0, rows as i64).try_unsqueeze(1)?;
    let on = row.try_add(&scalar(c.int("k", 0) as f64, DType::I64)?)?.try_eq(&column)?;
    one(on.try_to_dtype(dtype)?)
}
