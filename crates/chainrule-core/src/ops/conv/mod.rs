//! Ops on images (and signals, which are images of one row): convolutions, pooling, resampling.
//!
//! Images are `[n, channels, h, w]`, signals `[n, channels, l]`; both may come without the axis of
//! examples. A signal is computed as an image of height 1. The gradients are ops of this folder
//! too, or of `index`: the gradient of a convolution's input is a transposed convolution, that of a
//! linear resampling is another one, and a maximum passes its gradient to the position that it was
//! taken from.

pub(super) mod adaptive_avg_pool;
pub(super) mod adaptive_max_pool;
pub(super) mod avg_pool;
pub(super) mod conv_transpose;
pub(super) mod convolution;
pub(super) mod interpolate;
pub(super) mod max_pool;

include!(concat!(env!("OUT_DIR"), "/conv.rs"));

mod adaptive;
mod options;
mod resample;

pub use options::{AvgPool, Conv, ConvTranspose, Interpolation, MaxPool, Padding};

use crate::error::{Error, Result};
use crate::shape::{IntoSizes, Shape};
use crate::tensor::Tensor;

/// `x` as a batch of images, whatever its form: `[channels, h, w]` and, for `N = 1`, signals get
/// the missing axes.
fn as_images<const N: usize>(op: &'static str, x: &Tensor) -> Result<Tensor> {
    let shape = x.shape();
    let rank = shape.rank();
    if rank != N + 1 && rank != N + 2 {
        let why = match N {
            1 => "the input must be [n, channels, l] or [channels, l]",
            _ => "the input must be [n, channels, h, w] or [channels, h, w]",
        };
        return Err(Error::shape(op, &[&shape], why));
    }
    let mut sizes: Vec<i64> = shape.into_sizes();
    if rank == N + 1 {
        sizes.insert(0, 1);
    }
    if N == 1 {
        sizes.insert(2, 1);
    }
    if sizes.len() == rank { Ok(x.clone()) } else { x.try_reshape(sizes.as_slice()) }
}

/// The reverse of [`as_images`] for a result: without the axes that an input of this rank did not
/// have.
fn as_given<const N: usize>(y: Tensor, rank: usize) -> Result<Tensor> {
    let mut sizes: Vec<i64> = y.shape().into_sizes();
    if N == 1 {
        sizes.remove(2);
    }
    if rank == N + 1 {
        sizes.remove(0);
    }
    if sizes.len() == y.rank() { Ok(y) } else { y.try_reshape(sizes.as_slice()) }
}

/// Sizes, strides and the like of `N` axes as those of an image; for signals, the rows get `one`.
fn of_image<T: Copy, const N: usize>(axes: [T; N], one: T) -> [T; 2] {
    match N {
        1 => [one, axes[0]],
        _ => [axes[0], axes[1]],
    }
}

/// The images' sizes, `[n, channels, h, w]`.
fn image_sizes(shape: &Shape) -> [usize; 4] {
    [shape[0], shape[1], shape[2], shape[3]]
}

/// Strides, paddings and the like are smaller than this, so that sums and products of a few of them
/// do not overflow.
const MOST: usize = 1 << 31;

/// The error for a parameter out of its range.
fn expect_range(op: &'static str, name: &str, values: &[usize], least: usize) -> Result<()> {
    if values.iter().all(|&v| (least..MOST).contains(&v)) {
        return Ok(());
    }
    let why = format!("{name} must lie between {least} and {}; it is {values:?}", MOST - 1);
    Err(Error::argument(op, why))
}

/// Number of windows of `reach` elements along an axis, as PyTorch counts them.
fn windows(
    op: &'static str,
    x: &Shape,
    (size, kernel, reach): (usize, usize, usize),
    (stride, padding): (usize, usize),
    ceil_mode: bool,
) -> Result<usize> {
    if padding > kernel / 2 {
        let why = format!(
            "the padding must be at most half of the window; it is {padding}, and the window {kernel}"
        );
        return Err(Error::argument(op, why));
    }
    let room = size + 2 * padding;
    if room < reach || size == 0 {
        let why = format!(
            "the window reaches over {reach} elements, but the padded input has only {room}"
        );
        return Err(Error::shape(op, &[x], why));
    }
    let rest = room - reach;
    if !ceil_mode {
        return Ok(rest / stride + 1);
    }
    let count = rest.div_ceil(stride) + 1;
    // The last window must not begin in the padding at the end.
    Ok(if (count - 1) * stride >= size + padding { count - 1 } else { count })
}

/// The sizes that a user gives for a result are at most this: a table of all elements is made for
/// each axis.
const LARGEST: usize = 1 << 24;

/// The error for requested sizes that are too large, or 0 where there must be some.
fn expect_sizes(op: &'static str, x: &Shape, input: &[usize], sizes: &[usize]) -> Result<()> {
    if input.contains(&0) {
        return Err(Error::shape(op, &[x], "the images have no elements"));
    }
    if sizes.iter().any(|&s| s > LARGEST) {
        let why = format!("the sizes of the result must be at most {LARGEST}; they are {sizes:?}");
        return Err(Error::argument(op, why));
    }
    Ok(())
}
