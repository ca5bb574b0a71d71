//! Resizing and sampling of images.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use super::call::{Call, NodeResult, axis, bounded, dims, integers, numbers, one, row, sizes};
use super::wrong;

/// Input and output size of one axis.
struct Line<'a> {
    c: &'a Call<'a>,
    from: usize,
    to: usize,
    scale: f64,
    /// Region of interest, relative to the size.
    part: [f64; 2],
}

impl Line<'_> {
    /// Input coordinate of an output element.
    fn place(&self, i: usize) -> Result<f64> {
        let (x, from, wide) = (i as f64, self.from as f64, self.scale * self.from as f64);
        let middle = (x + 0.5) / self.scale - 0.5;
        Ok(match self.c.text("coordinate_transformation_mode", "half_pixel") {
            "half_pixel" => middle,
            "half_pixel_symmetric" => {
                let centre = from / 2.0 * (1.0 - self.to as f64 / wide);
                centre + middle
            }
            "pytorch_half_pixel" if self.to <= 1 => -0.5,
            "pytorch_half_pixel" => middle,
            "align_corners" if wide == 1.0 => 0.0,
            "align_corners" => x * (from - 1.0) / (wide - 1.0),
            "asymmetric" => x / self.scale,
            "tf_crop_and_resize" => {
                let [start, end] = self.part;
                let inner = match self.to {
                    0 | 1 => (end - start) * (from - 1.0) / 2.0,
                    to => x * (end - start) * (from - 1.0) / (to as f64 - 1.0),
                };
                start * (from - 1.0) + inner
            }
            other => return Err(wrong(format!("mode {other:?} of coordinates is not known"))),
        })
    }

    fn is_outside(&self, place: f64) -> bool {
        let crops = self.c.text("coordinate_transformation_mode", "") == "tf_crop_and_resize";
        crops && !(0.0..=self.from as f64 - 1.0).contains(&place)
    }

    /// Neighbours from which the nearest is chosen.
    fn nearest(&self) -> Result<Vec<i64>> {
        let mut all = Vec::new();
        for i in 0..bounded(&[self.to])? {
            let x = self.place(i)?;
            let near = match self.c.text("nearest_mode", "round_prefer_floor") {
                "round_prefer_floor" => (x - 0.5).ceil(),
                "round_prefer_ceil" => (x + 0.5).floor(),
                "floor" => x.floor(),
                "ceil" => x.ceil(),
                other => return Err(wrong(format!("mode {other:?} of rounding is not known"))),
            };
            all.push(near.clamp(0.0, self.from as f64 - 1.0) as i64);
        }
        Ok(all)
    }

    /// Interpolation matrix: weight of each input element in each output element.
    fn shares(&self, cubic: bool) -> Result<Vec<f64>> {
        let a = self.c.float("cubic_coeff_a", -0.75);
        let smaller = if self.c.flag("antialias") { self.scale.min(1.0) } else { 1.0 };
        let kernel = |x: f64| {
            let x = x.abs();
            match cubic {
                false => (1.0 - x).max(0.0),
                true if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
                true if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
                true => 0.0,
            }
        };
        let reach = if cubic { 2.0 } else { 1.0 } / smaller;
        let mut all = vec![0.0; bounded(&[self.to, self.from])?];
        for i in 0..self.to {
            let x = self.place(i)?;
            if self.is_outside(x) {
                continue;
            }
            let row = &mut all[i * self.from..(i + 1) * self.from];
            let mut sum = 0.0;
            let (first, last) = ((x - reach).ceil() as i64, (x + reach).floor() as i64);
            for k in first..=last {
                let share = kernel((k as f64 - x) * smaller);
                let inside = (0..self.from as i64).contains(&k);
                if inside || !self.c.flag("exclude_outside") {
                    row[k.clamp(0, self.from as i64 - 1) as usize] += share;
                    sum += share;
                }
            }
            row.iter_mut().for_each(|share| *share /= sum);
        }
        Ok(all)
    }
}

pub(super) fn resize(c: &Call<'_>) -> NodeResult {
    // Before opset 11 there was no region of interest.
    let (scales_at, sizes_at, part_at) = if c.opset() < 11 { (1, 9, 9) } else { (2, 3, 1) };
    let x = c.x(0)?;
    let axes = match c.ints("axes") {
        Some(axes) => axes.iter().map(|&a| axis(a, x.rank())).collect::<Result<Vec<_>>>()?,
        None => (0..x.rank()).collect(),
    };
    let from: Vec<usize> = axes.iter().map(|&at| x.shape()[at]).collect();
    let list = |i: usize| c.opt(i).filter(|t| t.numel() > 0).map(numbers).transpose();
    let (mut scales, wanted) = match (list(scales_at)?, list(sizes_at)?) {
        (Some(scales), _) => (scales, None),
        (None, Some(sizes)) => (Vec::new(), Some(sizes)),
        (None, None) => match c.floats("scales") {
            Some(scales) => (scales, None),
            None => return Err(wrong("neither sizes nor scales are given")),
        },
    };
    let mut to: Vec<usize> = match &wanted {
        Some(all) => all.iter().map(|&d| d.max(0.0) as usize).collect(),
        None => from.iter().zip(&scales).map(|(&d, s)| (d as f64 * s).floor() as usize).collect(),
    };
    if to.len() != axes.len() {
        return Err(wrong(format!("{} sizes or scales for {} axes", to.len(), axes.len())));
    }
    if wanted.is_some() {
        scales = to.iter().zip(&from).map(|(&to, &from)| to as f64 / from as f64).collect();
        let policy = c.text("keep_aspect_ratio_policy", "stretch");
        if policy != "stretch" {
            let all = scales.iter().copied();
            let scale = match policy {
                "not_larger" => all.fold(f64::INFINITY, f64::min),
                _ => all.fold(0.0, f64::max),
            };
            scales = vec![scale; axes.len()];
            to = from.iter().map(|&d| (d as f64 * scale + 0.5).floor() as usize).collect();
        }
    }
    let part = list(part_at)?.unwrap_or_default();
    let mode = c.text("mode", "nearest");
    let outside = c.float("extrapolation_value", 0.0);
    let dtype = x.dtype();
    let mut y =
        if mode == "nearest" || dtype.is_float() { x.clone() } else { x.try_to_dtype(DType::F64)? };
    for (i, &at) in axes.iter().enumerate() {
        let n = axes.len();
        let part = [*part.get(i).unwrap_or(&0.0), *part.get(n + i).unwrap_or(&1.0)];
        let line = Line { c, from: from[i], to: to[i], scale: scales[i], part };
        let is_same = line.from == line.to && line.scale == 1.0 && part == [0.0, 1.0];
        if is_same || line.from == 0 {
            continue;
        }
        let at = at as i64;
        y = match mode {
            "nearest" => y.try_index_select(at, &row(&line.nearest()?)?)?,
            "linear" | "bilinear" | "trilinear" | "cubic" => {
                let shares = line.shares(mode == "cubic")?;
                let shares = Tensor::try_from_slice(&shares, [line.to, line.from])?;
                let shares = shares.try_to_dtype(y.dtype())?.try_transpose(0, 1)?;
                let last = y.try_movedim(&[at], &[-1])?;
                let moved = match last.rank() {
                    1 => last.try_unsqueeze(0)?.try_matmul(&shares)?.try_squeeze(&[0i64][..])?,
                    _ => last.try_matmul(&shares)?,
                };
                moved.try_movedim(&[-1], &[at])?
            }
            other => return Err(wrong(format!("mode {other:?} is not known"))),
        };
        // Positions outside of the image.
        let mut inside = Vec::new();
        for k in 0..line.to {
            inside.push(i64::from(!line.is_outside(line.place(k)?)));
        }
        if inside.contains(&0) {
            let mut shape = vec![1i64; y.rank()];
            shape[at as usize] = line.to as i64;
            let inside = row(&inside)?.try_reshape(shape.as_slice())?;
            let outside = super::call::scalar(outside, y.dtype())?;
            y = inside.try_ne(Tensor::scalar(0i64))?.try_where(&y, &outside)?;
        }
    }
    one(y.try_to_dtype(dtype)?)
}

/// Samples images at normalised grid positions, from -1 to 1 along each axis.
pub(super) fn grid_sample(c: &Call<'_>) -> NodeResult {
    let (x, grid) = (c.x(0)?, c.x(1)?);
    let n = x.rank().saturating_sub(2);
    if n == 0 || grid.rank() != n + 2 || grid.size(-1) != n {
        return Err(wrong(format!("a grid of shape {:?} for {:?}", grid.shape(), x.shape())));
    }
    let mode = c.text("mode", "linear").to_owned();
    let (corners, around) = (c.flag("align_corners"), c.text("padding_mode", "zeros").to_owned());
    let image = dims(x)[2..].to_vec();
    let (batch, channels) = (x.shape()[0], x.shape()[1]);
    let count: usize = dims(grid)[1..=n].iter().product();
    // Pixel coordinates per axis of the image: [batch, count].
    let mut places = Vec::new();
    for (i, &size) in image.iter().enumerate() {
        let at = grid.try_narrow(-1, n - 1 - i, 1)?;
        let at = at.try_reshape(&[batch as i64, count as i64][..])?;
        let d = size as f64;
        let mut at = match corners {
            true => at.try_add(1.0)?.try_mul((d - 1.0) / 2.0)?,
            false => at.try_add(1.0)?.try_mul(d / 2.0)?.try_sub(0.5)?,
        };
        let (low, high) = if corners { (0.0, d - 1.0) } else { (-0.5, d - 0.5) };
        if mode == "nearest" {
            at = at.try_round()?;
        }
        if mode != "cubic" && mode != "bicubic" {
            at = around_image(&at, &around, low, high, d)?;
        }
        places.push(at);
    }
    let flat = x.try_reshape(&[batch as i64, channels as i64, -1][..])?;
    let neighbours: Vec<i64> = match mode.as_str() {
        "nearest" => vec![0],
        "linear" | "bilinear" => vec![0, 1],
        "cubic" | "bicubic" => vec![-1, 0, 1, 2],
        other => return Err(wrong(format!("mode {other:?} is not known"))),
    };
    // All combinations of neighbours along the axes.
    let mut sum: Option<Tensor> = None;
    for number in 0..neighbours.len().pow(n as u32) {
        let mut rest = number;
        let (mut index, mut share): (Option<Tensor>, Option<Tensor>) = (None, None);
        for (i, at) in places.iter().enumerate() {
            let offset = neighbours[rest % neighbours.len()] as f64;
            rest /= neighbours.len();
            let d = image[i] as f64;
            let base = if mode == "nearest" { at.clone() } else { at.try_floor()?.detach() };
            let from = at.try_sub(&base)?;
            let mut k = base.try_add(offset)?.detach();
            let mut here = match neighbours.len() {
                1 => k.ones_like(),
                2 if offset == 0.0 => from.try_neg()?.try_add(1.0)?,
                2 => from,
                _ => cubic(&from.try_sub(offset)?)?,
            };
            if neighbours.len() == 4 {
                let (low, high) = if corners { (0.0, d - 1.0) } else { (-0.5, d - 0.5) };
                k = around_image(&k, &around, low, high, d)?;
            }
            let inside = k.try_ge(0.0)?.try_logical_and(&k.try_le(d - 1.0)?)?;
            here = inside.try_where(&here, 0.0)?;
            let k = k.try_clamp(0.0, d - 1.0)?.try_to_dtype(DType::I64)?;
            index = Some(match index {
                None => k,
                Some(before) => before.try_mul(Tensor::scalar(image[i] as i64))?.try_add(&k)?,
            });
            share = Some(match share {
                None => here,
                Some(before) => before.try_mul(&here)?,
            });
        }
        let (Some(index), Some(share)) = (index, share) else { break };
        let index = index.try_unsqueeze(1)?.try_expand(&[batch, channels, count][..])?;
        let part = flat.try_gather(2, &index)?.try_mul(&share.try_unsqueeze(1)?)?;
        sum = Some(match sum {
            None => part,
            Some(sum) => sum.try_add(&part)?,
        });
    }
    let y = sum.ok_or_else(|| wrong("its image has no axes"))?;
    let shape = [&dims(x)[..2], &dims(grid)[1..=n]].concat();
    one(y.try_reshape(&shape.iter().map(|&d| d as i64).collect::<Vec<_>>()[..])?)
}

/// Clamps or reflects positions outside of the image.
fn around_image(at: &Tensor, around: &str, low: f64, high: f64, size: f64) -> Result<Tensor> {
    match around {
        "border" => at.try_clamp(0.0, size - 1.0),
        "reflection" => {
            let range = high - low;
            if range <= 0.0 {
                return Ok(at.zeros_like());
            }
            // Reflection between the limits.
            let from = at.try_sub(low)?.try_abs()?;
            let rest = from.try_remainder(2.0 * range)?;
            let back = rest.try_neg()?.try_add(2.0 * range)?;
            let folded = rest.try_minimum(&back)?.try_add(low)?;
            folded.try_clamp(0.0, size - 1.0)
        }
        _ => Ok(at.clone()),
    }
}

/// The cubic convolution kernel.
fn cubic(x: &Tensor) -> Result<Tensor> {
    const A: f64 = -0.75;
    let x = x.try_abs()?;
    let inner = x.try_mul(A + 2.0)?.try_sub(A + 3.0)?.try_mul(&x)?.try_mul(&x)?.try_add(1.0)?;
    let outer = x.try_mul(A)?.try_sub(5.0 * A)?.try_mul(&x)?.try_add(8.0 * A)?;
    let outer = outer.try_mul(&x)?.try_sub(4.0 * A)?;
    let far = x.try_lt(2.0)?.try_where(&outer, 0.0)?;
    x.try_le(1.0)?.try_where(&inner, &far)
}

/// Region-of-interest pooling: the maximum or mean over parts of images.
pub(super) fn roi_align(c: &Call<'_>) -> NodeResult {
    let (x, boxes, rows) = (c.x(0)?, numbers(c.x(1)?)?, integers(c.x(2)?)?);
    let [_, channels, h, w] = dims(x)[..] else { return Err(wrong("its input has not 4 axes")) };
    let out = sizes(&[c.int("output_height", 1), c.int("output_width", 1)])?;
    let ratio = c.int("sampling_ratio", 0).max(0) as usize;
    let scale = c.float("spatial_scale", 1.0);
    let usual = if c.opset() < 16 { "output_half_pixel" } else { "half_pixel" };
    let half = c.text("coordinate_transformation_mode", usual) == "half_pixel";
    let offset = if half { 0.5 } else { 0.0 };
    let flat = x.try_reshape(&[-1, channels as i64, (h * w) as i64][..])?;
    let mut parts = Vec::new();
    for (number, &row_of) in rows.iter().enumerate() {
        let at: Vec<f64> =
            boxes.iter().skip(4 * number).take(4).map(|b| b * scale - offset).collect();
        let [x1, y1, x2, y2] = at[..] else { return Err(wrong("a box has not 4 numbers")) };
        let (mut wide, mut high) = (x2 - x1, y2 - y1);
        if !half {
            (wide, high) = (wide.max(1.0), high.max(1.0));
        }
        let (step_y, step_x) = (high / out[0] as f64, wide / out[1] as f64);
        let count = |step: f64| if ratio > 0 { ratio } else { step.ceil().max(1.0) as usize };
        let (ny, nx) = (count(step_y), count(step_x));
        bounded(&[out[0], out[1], ny, nx])?;
        // Bilinear weights and neighbours of each sample.
        let (mut places, mut shares) = (Vec::new(), Vec::new());
        for cell in 0..out[0] * out[1] {
            for sample in 0..ny * nx {
                let near = |start: f64, i: usize, step: f64, k: usize, n: usize, size: usize| {
                    let at = start + i as f64 * step + (k as f64 + 0.5) * step / n as f64;
                    let live = (-1.0..=size as f64).contains(&at);
                    let at = at.clamp(0.0, size as f64 - 1.0);
                    let low = at.floor().min(size as f64 - 1.0);
                    let next = (low + 1.0).min(size as f64 - 1.0);
                    (live, low as usize, next as usize, at - low)
                };
                let (live_y, a, b, f) = near(y1, cell / out[1], step_y, sample / nx, ny, h);
                let (live_x, p, q, g) = near(x1, cell % out[1], step_x, sample % nx, nx, w);
                let live = f64::from(u8::from(live_y && live_x));
                places.extend([a * w + p, a * w + q, b * w + p, b * w + q].map(|at| at as i64));
                let four = [(1.0 - f) * (1.0 - g), (1.0 - f) * g, f * (1.0 - g), f * g];
                shares.extend(four.map(|share| share * live));
            }
        }
        let image = flat.try_narrow(0, usize::try_from(row_of).unwrap_or(usize::MAX), 1)?;
        let picked = image.try_squeeze(&[0i64][..])?.try_index_select(1, &row(&places)?)?;
        let shares = Tensor::try_from_slice(&shares, [shares.len()])?.try_to_dtype(x.dtype())?;
        let four = picked.try_mul(&shares)?;
        let shape = [channels, out[0], out[1], ny * nx, 4].map(|d| d as i64);
        let four = four.try_reshape(&shape[..])?;
        parts.push(match c.text("mode", "avg") {
            "max" => four.try_flatten(3, 4)?.try_amax(&[3i64][..], false)?,
            _ => four.try_sum(&[4i64][..], false)?.try_mean(&[3i64][..], false)?,
        });
    }
    one(Tensor::try_stack(&parts.iter().collect::<Vec<_>>(), 0)?)
}
