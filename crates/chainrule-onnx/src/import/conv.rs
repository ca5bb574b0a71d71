//! Convolutions.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use chainrule_core::ops::{Conv, ConvTranspose, PadMode, Padding, Slice};

use super::call::{Call, NodeResult, dims, one, signed};
use super::wrong;

/// A sliding window along the spatial axes.
pub(super) struct Window {
    pub kernel: Vec<usize>,
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    /// Padding before and after each axis.
    pub pads: Vec<[usize; 2]>,
}

impl Window {
    /// The window of a node over an image of these sizes.
    pub fn of(c: &Call<'_>, image: &[usize], kernel: Vec<usize>) -> Result<Window> {
        let n = image.len();
        let strides = c.sizes("strides")?.unwrap_or_else(|| vec![1; n]);
        let dilations = c.sizes("dilations")?.unwrap_or_else(|| vec![1; n]);
        let given = c.sizes("pads")?.unwrap_or_else(|| vec![0; 2 * n]);
        let counts = [kernel.len(), strides.len(), dilations.len(), given.len()];
        if counts != [n, n, n, 2 * n] {
            return Err(wrong(format!("sizes of {counts:?} numbers for {n} axes")));
        }
        if kernel.iter().chain(&strides).chain(&dilations).any(|&d| d == 0) {
            return Err(wrong("a size, step or distance is 0"));
        }
        let mut window = Window { kernel, strides, dilations, pads: Vec::new() };
        let auto = c.text("auto_pad", "NOTSET");
        for i in 0..n {
            window.pads.push(match auto {
                "NOTSET" => [given[i], given[n + i]],
                "VALID" => [0, 0],
                "SAME_UPPER" | "SAME_LOWER" => {
                    let steps = image[i].div_ceil(window.strides[i]);
                    let reach = steps.saturating_sub(1) * window.strides[i] + window.reach(i)?;
                    let more = reach.saturating_sub(image[i]);
                    let (small, large) = (more / 2, more - more / 2);
                    if auto == "SAME_UPPER" { [small, large] } else { [large, small] }
                }
                other => return Err(wrong(format!("auto_pad {other:?} is not known"))),
            });
        }
        Ok(window)
    }

    /// Extent of the window along an axis.
    pub fn reach(&self, i: usize) -> Result<usize> {
        let far = (self.kernel[i] - 1).checked_mul(self.dilations[i]);
        far.and_then(|far| far.checked_add(1)).ok_or_else(|| wrong("its window has no end"))
    }

    /// Symmetric padding, if both sides are equal.
    pub fn symmetric<const N: usize>(&self) -> Option<[usize; N]> {
        let mut out = [0; N];
        for (out, &[before, after]) in out.iter_mut().zip(&self.pads) {
            if before != after {
                return None;
            }
            *out = before;
        }
        Some(out)
    }

    /// The padded image.
    pub fn padded(&self, x: &Tensor, value: f64, more: &[usize]) -> Result<Tensor> {
        let mut all = Vec::new();
        for (i, &[before, after]) in self.pads.iter().enumerate() {
            let after = after + more.get(i).copied().unwrap_or(0);
            if before + after > 0 {
                all.push((2 + i as i64, [before as i64, after as i64]));
            }
        }
        if all.is_empty() { Ok(x.clone()) } else { x.try_pad(&all, PadMode::Constant(value)) }
    }

    /// Unfolded windows, with kernel axes behind: `[n, c, places, kernel]`.
    pub fn views(&self, padded: &Tensor) -> Result<Tensor> {
        let mut x = padded.clone();
        for i in 0..self.kernel.len() {
            x = x.try_unfold(2 + i as i64, self.reach(i)?, self.strides[i])?;
            if self.dilations[i] > 1 {
                let step = self.dilations[i] as i64;
                x =
                    x.try_slice(&[Slice::Ellipsis, Slice::Range { start: None, end: None, step }])?;
            }
        }
        Ok(x)
    }
}

pub(super) fn array<const N: usize>(all: &[usize]) -> [usize; N] {
    std::array::from_fn(|i| all[i])
}

/// A convolution with any number of axes.
fn convolved(x: &Tensor, weight: &Tensor, window: &Window, groups: usize) -> Result<Tensor> {
    let n = window.kernel.len();
    match n {
        1 => {
            let (x, zeros) = match window.symmetric::<1>() {
                Some(zeros) => (x.clone(), zeros),
                None => (window.padded(x, 0.0, &[])?, [0]),
            };
            let conv = Conv {
                stride: array(&window.strides),
                padding: Padding::Zeros(zeros),
                dilation: array(&window.dilations),
                groups,
            };
            x.try_conv1d_with(weight, None, &conv)
        }
        2 => {
            let (x, zeros) = match window.symmetric::<2>() {
                Some(zeros) => (x.clone(), zeros),
                None => (window.padded(x, 0.0, &[])?, [0; 2]),
            };
            let conv = Conv {
                stride: array(&window.strides),
                padding: Padding::Zeros(zeros),
                dilation: array(&window.dilations),
                groups,
            };
            x.try_conv2d_with(weight, None, &conv)
        }
        _ => by_products(x, weight, window, groups),
    }
}

/// A convolution as a matrix product (im2col).
fn by_products(x: &Tensor, weight: &Tensor, window: &Window, groups: usize) -> Result<Tensor> {
    let n = window.kernel.len();
    let views = window.views(&window.padded(x, 0.0, &[])?)?;
    let sizes = signed(&views);
    let places = &sizes[2..2 + n];
    let order: Vec<i64> = [0]
        .into_iter()
        .chain(2..2 + n as i64)
        .chain([1])
        .chain(2 + n as i64..2 + 2 * n as i64)
        .collect();
    let (count, out) = (sizes[0] * places.iter().product::<i64>(), weight.shape()[0] as i64);
    let g = groups as i64;
    let volume: i64 = sizes[1] * sizes[2 + n..].iter().product::<i64>();
    if g < 1 || volume % g != 0 || out % g != 0 {
        return Err(wrong(format!("{groups} groups of {} channels and {out} kernels", sizes[1])));
    }
    let columns = views.try_permute(&order)?.try_reshape(&[count, g, volume / g][..])?;
    let weight = weight.try_reshape(&[g, out / g, volume / g][..])?.try_transpose(1, 2)?;
    let y = columns.try_transpose(0, 1)?.try_matmul(&weight)?.try_transpose(0, 1)?;
    let full = [&[sizes[0]], places, &[out]].concat();
    y.try_reshape(full.as_slice())?.try_movedim(&[-1], &[1])
}

/// Adds a bias per channel.
fn biased(y: Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let Some(bias) = bias else { return Ok(y) };
    let mut shape = vec![1i64; y.rank() - 1];
    shape[0] = -1;
    y.try_add(&bias.try_reshape(shape.as_slice())?)
}

fn image(x: &Tensor) -> Result<Vec<usize>> {
    match x.rank() {
        0..3 => Err(wrong(format!("its input has {} axes, and not 3 or more", x.rank()))),
        _ => Ok(dims(x)[2..].to_vec()),
    }
}

/// The convolution of a node, of operands that may differ from its inputs.
pub(super) fn of(c: &Call<'_>, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let image = image(x)?;
    if weight.rank() != x.rank() {
        return Err(wrong(format!("kernels of {} axes for {}", weight.rank(), x.rank())));
    }
    let window = Window::of(c, &image, dims(weight)[2..].to_vec())?;
    convolved(x, weight, &window, c.int("group", 1).max(0) as usize)
}

/// A depthwise convolution of one axis, without padding.
pub(super) fn of_window(x: &Tensor, weight: &Tensor, channels: usize) -> Result<Tensor> {
    x.try_conv1d_with(weight, None, &Conv { groups: channels, ..Conv::default() })
}

pub(super) fn conv(c: &Call<'_>) -> NodeResult {
    one(biased(of(c, c.x(0)?, c.x(1)?)?, c.opt(2))?)
}

/// A transposed convolution.
pub(super) fn conv_transpose(c: &Call<'_>) -> NodeResult {
    let (x, weight) = (c.x(0)?, c.x(1)?);
    let (image, n) = (image(x)?, x.rank() - 2);
    if weight.rank() != x.rank() {
        return Err(wrong(format!("kernels of {} axes for {}", weight.rank(), x.rank())));
    }
    let kernel = dims(weight)[2..].to_vec();
    let strides = c.sizes("strides")?.unwrap_or_else(|| vec![1; n]);
    let dilations = c.sizes("dilations")?.unwrap_or_else(|| vec![1; n]);
    let extra = c.sizes("output_padding")?.unwrap_or_else(|| vec![0; n]);
    let given = c.sizes("pads")?.unwrap_or_else(|| vec![0; 2 * n]);
    let groups = c.int("group", 1).max(1) as usize;
    if [strides.len(), dilations.len(), extra.len(), given.len()] != [n, n, n, 2 * n] {
        return Err(wrong("its sizes are not of one number"));
    }
    let window = Window { kernel, strides, dilations, pads: vec![[0, 0]; n] };
    let mut y = reversed(x, weight, &window, groups)?;
    let auto = c.text("auto_pad", "NOTSET");
    let wanted = match c.sizes("output_shape")? {
        // Some files include the batch and channel axes.
        Some(all) => Some(all[all.len().saturating_sub(n)..].to_vec()),
        None if auto.starts_with("SAME") => {
            Some((0..n).map(|i| image[i] * window.strides[i]).collect())
        }
        None => None,
    };
    for i in 0..n {
        let at = 2 + i as i64;
        if extra[i] > 0 {
            y = y.try_pad(&[(at, [0, extra[i] as i64])], PadMode::Constant(0.0))?;
        }
        let full = y.size(at);
        let (before, size) = match &wanted {
            None if auto == "VALID" => (0, full),
            None => (given[i], full.saturating_sub(given[i] + given[n + i])),
            Some(wanted) => {
                let over = full.saturating_sub(wanted[i]);
                let before = if auto == "SAME_UPPER" { over / 2 } else { over - over / 2 };
                (before, wanted[i])
            }
        };
        if before + size > full {
            let more = [0, (before + size - full) as i64];
            y = y.try_pad(&[(at, more)], PadMode::Constant(0.0))?;
        }
        y = y.try_narrow(at, before, size)?;
    }
    one(biased(y, c.opt(2))?)
}

fn reversed(x: &Tensor, weight: &Tensor, window: &Window, groups: usize) -> Result<Tensor> {
    let n = window.kernel.len();
    match n {
        1 => {
            let options = ConvTranspose {
                stride: array(&window.strides),
                dilation: array(&window.dilations),
                groups,
                ..ConvTranspose::default()
            };
            return x.try_conv_transpose1d_with(weight, None, &options);
        }
        2 => {
            let options = ConvTranspose {
                stride: array(&window.strides),
                dilation: array(&window.dilations),
                groups,
                ..ConvTranspose::default()
            };
            return x.try_conv_transpose2d_with(weight, None, &options);
        }
        _ => {}
    }
    // Zeros between the elements, and a convolution with the flipped kernel.
    let mut y = x.clone();
    for (i, &step) in window.strides.iter().enumerate() {
        let at = 2 + i as i64;
        let size = y.size(at);
        if step > 1 && size > 0 {
            let apart = y.try_unsqueeze(at + 1)?;
            let apart = apart.try_pad(&[(at + 1, [0, step as i64 - 1])], PadMode::Constant(0.0))?;
            y = apart.try_flatten(at, at + 1)?.try_narrow(at, 0, (size - 1) * step + 1)?;
        }
    }
    let sizes = signed(weight);
    let g = groups as i64;
    if sizes[0] % g != 0 {
        return Err(wrong(format!("{groups} groups of {} channels", sizes[0])));
    }
    let split = [&[g, sizes[0] / g, sizes[1]], &sizes[2..]].concat();
    let joined = [&[g * sizes[1], sizes[0] / g], &sizes[2..]].concat();
    let axes: Vec<i64> = (2..2 + n as i64).collect();
    let kernel = weight.try_reshape(split.as_slice())?.try_transpose(1, 2)?;
    let kernel = kernel.try_reshape(joined.as_slice())?.try_flip(axes.as_slice())?;
    let mut pads = Vec::new();
    for i in 0..n {
        pads.push([window.reach(i)? - 1; 2]);
    }
    let inner = Window {
        kernel: window.kernel.clone(),
        strides: vec![1; n],
        dilations: window.dilations.clone(),
        pads,
    };
    by_products(&y, &kernel, &inner, groups)
}

/// An integer convolution.
pub(super) fn conv_integer(c: &Call<'_>) -> NodeResult {
    let wide = |i: usize, zero: usize| {
        let t = c.x(i)?.try_to_dtype(DType::F64)?;
        match c.opt(zero) {
            // Kernels may have a zero point each.
            Some(zero) if zero.numel() > 1 => {
                let mut shape = vec![1i64; t.rank()];
                shape[0] = -1;
                t.try_sub(&zero.try_to_dtype(DType::F64)?.try_reshape(shape.as_slice())?)
            }
            Some(zero) => t.try_sub(&zero.try_to_dtype(DType::F64)?.try_reshape(())?),
            None => Ok(t),
        }
    };
    // A fast algorithm may round an integer result.
    one(of(c, &wide(0, 2)?, &wide(1, 3)?)?.try_round()?.try_to_dtype(DType::I32)?)
}
