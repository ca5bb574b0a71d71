//! `adaptive_max_pool1d`, `adaptive_max_pool2d`: the largest element of each window, where the
//! windows divide the image into this many parts.

use super::adaptive::{self, PYTHON_REASON};
use super::max_pool::{MISTAKES, PoolMax};
use crate::kernels::pool::Windows;
use crate::ops::prelude::*;

fn pool<const N: usize>(op: &'static str, x: &Tensor, sizes: [usize; N]) -> Result<Tensor> {
    adaptive::pool(op, x, sizes, largest)
}

fn largest(images: &Tensor, axes: [adaptive::Divided; 2]) -> Result<Tensor> {
    let [rows, cols] = axes.map(|axis| {
        let spans = axis.windows().map(|(first, end)| (first, end - first)).collect();
        Arc::new(Windows { step: 1, spans })
    });
    let name = Name::of(OpId::adaptive_max_pool, "adaptive_max_pool2d");
    apply(PoolMax { name, rows, cols }, &[images])
}

methods! {
    /// The largest element of each of `size` windows that divide a signal, `[n, channels, l]` or
    /// `[channels, l]`: [`Tensor::adaptive_max_pool2d`] for signals.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 5.0, 2.0, 3.0, 4.0]]);
    /// assert_eq!(x.adaptive_max_pool1d(2).to_vec::<f32>(), [5.0, 4.0]);
    /// ```
    pub fn adaptive_max_pool1d / try_adaptive_max_pool1d(&self, size: usize) -> Tensor {
        pool("adaptive_max_pool1d", self, [size])
    }

    /// The largest element of each window, where `sizes` says how many windows there are along each
    /// axis. They divide the image as those of [`Tensor::adaptive_avg_pool2d`] do; ties, NaN and
    /// the gradient are as for [`Tensor::max_pool2d`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[[1.0f32, 2.0, 0.0], [4.0, 3.0, 9.0]]]);
    /// assert_eq!(x.adaptive_max_pool2d([1, 2]).to_vec::<f32>(), [4.0, 9.0]);
    /// ```
    pub fn adaptive_max_pool2d / try_adaptive_max_pool2d(&self, sizes: [usize; 2]) -> Tensor {
        pool("adaptive_max_pool2d", self, sizes)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "adaptive_max_pool1d, adaptive_max_pool2d",
    family: Family::Conv,
    signature: "x.adaptive_max_pool2d([rows, columns]), x.adaptive_max_pool1d(size)",
    python: &[
        Binding::by_hand("adaptive_max_pool1d", PYTHON_REASON).no_method().no_function(),
        Binding::by_hand("adaptive_max_pool2d", PYTHON_REASON).no_method().no_function(),
    ],
    formula: "y[.., i, j] = the largest x[.., k, l] for floor(i * h / rows) <= k < ceil((i + 1) * h / rows) and the same for l",
    gradient: "dx[.., place of the maximum] += g[.., i, j]",
    at_kinks: "of several equal elements the first gets the whole gradient; a NaN is larger than all else, and of several the last counts",
    samples: |g| {
        adaptive::samples(
            g,
            |x, sizes| x.try_adaptive_max_pool2d(sizes),
            |x, size| x.try_adaptive_max_pool1d(size),
        )
    },
    mistakes: MISTAKES,
};
