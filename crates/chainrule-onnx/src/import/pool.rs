//! Pooling.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use chainrule_core::ops::MaxPool;

use super::call::{Call, NodeResult, bounded, dims, integers, one, row, signed, sizes};
use super::conv::{Window, array};
use super::wrong;

/// The window of a pooling node, and how far the last positions reach beyond the padded image.
fn window(c: &Call<'_>, x: &Tensor) -> Result<(Window, Vec<usize>)> {
    if x.rank() < 3 {
        return Err(wrong(format!("its input has {} axes, and not 3 or more", x.rank())));
    }
    let image = &dims(x)[2..];
    let kernel = c.sizes("kernel_shape")?.ok_or_else(|| wrong("its kernel_shape is missing"))?;
    let window = Window::of(c, image, kernel)?;
    let mut over = vec![0; image.len()];
    for (i, over) in over.iter_mut().enumerate() {
        let padded = image[i] + window.pads[i][0] + window.pads[i][1];
        let reach = window.reach(i)?;
        if reach > padded {
            return Err(wrong(format!("a window of {reach} over {padded} elements")));
        }
        if c.flag("ceil_mode") {
            let mut places = (padded - reach).div_ceil(window.strides[i]) + 1;
            // Drops a window that starts beyond the image.
            if (places - 1) * window.strides[i] >= image[i] + window.pads[i][0] {
                places -= 1;
            }
            *over = ((places - 1) * window.strides[i] + reach).saturating_sub(padded);
        }
    }
    Ok((window, over))
}

/// Merges the kernel axes.
fn joined(views: &Tensor, n: usize) -> Result<Tensor> {
    views.try_flatten(2 + n as i64, -1)
}

pub(super) fn max(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let (window, over) = window(c, x)?;
    let n = window.kernel.len();
    let inside = |zeros: &[usize]| zeros.iter().zip(&window.kernel).all(|(z, k)| 2 * z <= *k);
    if n == 2
        && x.dtype().is_float()
        && !c.wants(1)
        && over.iter().all(|&o| o == 0)
        && let Some(padding) = window.symmetric::<2>().filter(|z| inside(z))
    {
        let options = MaxPool {
            stride: Some(array(&window.strides)),
            padding,
            dilation: array(&window.dilations),
            ceil_mode: false,
        };
        return one(x.try_max_pool2d_with(array(&window.kernel), &options)?);
    }
    let float = x.dtype().is_float();
    let wide = if float { x.clone() } else { x.try_to_dtype(DType::F64)? };
    let views = window.views(&window.padded(&wide, f64::NEG_INFINITY, &over)?)?;
    let (y, at) = joined(&views, n)?.try_max_axis(-1, false)?;
    let y = y.try_to_dtype(x.dtype())?;
    if !c.wants(1) {
        return one(y);
    }
    Ok(vec![y.clone(), places(c, x, &window, &at)?])
}

/// Flat indices of the maxima, from their indices in the windows.
fn places(c: &Call<'_>, x: &Tensor, window: &Window, at: &Tensor) -> Result<Tensor> {
    let n = window.kernel.len();
    let (image, out) = (&dims(x)[2..], dims(at));
    // The storage order may be column-major.
    let columns = c.int("storage_order", 0) == 1;
    let size: usize = image.iter().product();
    let mut found = integers(at)?;
    let count: usize = out[2..].iter().product();
    for (number, place) in found.iter_mut().enumerate() {
        let (mut inner, mut outer) = (*place as usize, number % count.max(1));
        let mut coordinates = vec![0usize; n];
        for i in (0..n).rev() {
            let (k, o) = (inner % window.kernel[i], outer % out[2 + i]);
            let far = o * window.strides[i] + k * window.dilations[i];
            coordinates[i] = far.saturating_sub(window.pads[i][0]);
            (inner, outer) = (inner / window.kernel[i], outer / out[2 + i]);
        }
        let mut sum = 0;
        if columns {
            (0..n).rev().for_each(|i| sum = sum * image[i] + coordinates[i]);
        } else {
            (0..n).for_each(|i| sum = sum * image[i] + coordinates[i]);
        }
        *place = (number / count.max(1) * size + sum) as i64;
    }
    row(&found)?.try_reshape(at.shape())
}

pub(super) fn average(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let (window, over) = window(c, x)?;
    let n = window.kernel.len();
    let sum = |x: &Tensor| joined(&window.views(x)?, n)?.try_sum(&[-1i64][..], false);
    // Number of elements in each window, with or without padding.
    let ones = Tensor::try_full(&[&[1, 1], &dims(x)[2..]].concat()[..], 1.0, x.dtype())?;
    let around = if c.flag("count_include_pad") { 1.0 } else { 0.0 };
    let bare = Window {
        kernel: window.kernel.clone(),
        strides: window.strides.clone(),
        dilations: window.dilations.clone(),
        pads: vec![[0, 0]; n],
    };
    let counts = bare.padded(&window.padded(&ones, around, &[])?, 0.0, &over)?;
    one(sum(&window.padded(x, 0.0, &over)?)?.try_div(&sum(&counts)?)?)
}

pub(super) fn lp(c: &Call<'_>) -> NodeResult {
    let x = c.x(0)?;
    let (window, over) = window(c, x)?;
    let p = c.float("p", 2.0);
    let powers = window.padded(x, 0.0, &over)?.try_abs()?.try_pow(p)?;
    let sum = joined(&window.views(&powers)?, window.kernel.len())?.try_sum(&[-1i64][..], false)?;
    one(sum.try_pow(1.0 / p)?)
}

fn whole(c: &Call<'_>, f: impl Fn(&Tensor, &[i64]) -> Result<Tensor>) -> NodeResult {
    let x = c.x(0)?;
    let axes: Vec<i64> = (2..x.rank() as i64).collect();
    one(f(x, &axes)?)
}

pub(super) fn global_average(c: &Call<'_>) -> NodeResult {
    whole(c, |x, axes| x.try_mean(axes, true))
}

pub(super) fn global_max(c: &Call<'_>) -> NodeResult {
    whole(c, |x, axes| x.try_amax(axes, true))
}

pub(super) fn global_lp(c: &Call<'_>) -> NodeResult {
    let p = c.float("p", 2.0);
    whole(c, |x, axes| x.try_abs()?.try_pow(p)?.try_sum(axes, true)?.try_pow(1.0 / p))
}

/// The largest elements back at their places among zeros.
pub(super) fn max_unpool(c: &Call<'_>) -> NodeResult {
    let (x, at) = (c.x(0)?, c.x(1)?);
    let n = x.rank().saturating_sub(2);
    let kernel = c.sizes("kernel_shape")?.ok_or_else(|| wrong("its kernel_shape is missing"))?;
    let strides = c.sizes("strides")?.unwrap_or_else(|| vec![1; n]);
    let pads = c.sizes("pads")?.unwrap_or_else(|| vec![0; 2 * n]);
    if [kernel.len(), strides.len(), pads.len()] != [n, n, 2 * n] {
        return Err(wrong("its sizes are not of one number"));
    }
    let inner: Vec<usize> = (0..n)
        .map(|i| {
            let full = (dims(x)[2 + i].saturating_sub(1)) * strides[i] + kernel[i];
            full.saturating_sub(pads[i] + pads[n + i])
        })
        .collect();
    let own = [&dims(x)[..2], &inner].concat();
    bounded(&own)?;
    let shape = match c.opt(2) {
        Some(shape) => sizes(&integers(shape)?)?,
        None => own.clone(),
    };
    let place = |own: &[usize]| -> Result<Tensor> {
        let total: usize = own.iter().product();
        let zero = Tensor::try_full(&[total][..], 0.0, x.dtype())?;
        zero.try_index_copy(0, &at.try_reshape(&[-1][..])?, &x.try_reshape(&[-1][..])?)
    };
    // Places count in an image of the size that the window gives, not of the one that is wanted.
    let y = place(&own)?.try_reshape(&own.iter().map(|&d| d as i64).collect::<Vec<_>>()[..])?;
    let mut y = y;
    for (i, (&to, &from)) in shape.iter().zip(&own).enumerate() {
        if to > from {
            let zero = chainrule_core::ops::PadMode::Constant(0.0);
            y = y.try_pad(&[(i as i64, [0, (to - from) as i64])], zero)?;
        }
    }
    let wanted: Vec<i64> = shape.iter().map(|&d| d as i64).collect();
    match signed(&y) == wanted {
        true => one(y),
        false => Err(wrong(format!("{shape:?} is smaller than {own:?}"))),
    }
}
