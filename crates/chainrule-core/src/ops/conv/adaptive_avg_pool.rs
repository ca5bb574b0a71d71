//! `adaptive_avg_pool1d`, `adaptive_avg_pool2d`: the mean of each window, where the windows divide
//! the image into this many parts.

use super::adaptive::{self, PYTHON_REASON};
use super::resample::Resample;
use crate::kernels::resample::Taps;
use crate::ops::prelude::*;

fn pool<const N: usize>(op: &'static str, x: &Tensor, sizes: [usize; N]) -> Result<Tensor> {
    adaptive::pool(op, x, sizes, mean)
}

fn mean(images: &Tensor, axes: [adaptive::Divided; 2]) -> Result<Tensor> {
    let [rows, cols] = axes.map(|axis| {
        let line = |(first, end): (usize, usize)| {
            (first..end).map(move |at| (at, 1.0 / (end - first) as f64))
        };
        Arc::new(Taps::new(axis.size, axis.windows().map(line)))
    });
    let names = [
        Name::of(OpId::adaptive_avg_pool, "adaptive_avg_pool2d"),
        Name::rule("adaptive_avg_pool2d_grad"),
    ];
    apply(Resample { names, rows, cols }, &[images])
}

methods! {
    /// The mean of each of `size` windows that divide a signal, `[n, channels, l]` or
    /// `[channels, l]`: [`Tensor::adaptive_avg_pool2d`] for signals.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 5.0, 3.0, 4.0, 2.0]]);
    /// assert_eq!(x.adaptive_avg_pool1d(2).to_vec::<f32>(), [3.0, 3.0]);
    /// ```
    pub fn adaptive_avg_pool1d / try_adaptive_avg_pool1d(&self, size: usize) -> Tensor {
        pool("adaptive_avg_pool1d", self, [size])
    }

    /// The mean of each window, where `sizes` says how many windows there are along each axis; with
    /// `[1, 1]` the mean of each channel.
    ///
    /// Window `i` of `count` goes from `floor(i * size / count)` to `ceil((i + 1) * size / count)`,
    /// as in PyTorch, so that neighbours overlap where the division has a remainder. The input is
    /// `[n, channels, h, w]` or `[channels, h, w]`, f32 or f64, with at least one element to an
    /// image. Gradient: each element of a window gets an equal share of that of the mean.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[[1.0f32, 2.0, 0.0], [4.0, 3.0, 8.0]]]);
    /// assert_eq!(x.adaptive_avg_pool2d([1, 1]).to_vec::<f32>(), [3.0]);
    /// ```
    pub fn adaptive_avg_pool2d / try_adaptive_avg_pool2d(&self, sizes: [usize; 2]) -> Tensor {
        pool("adaptive_avg_pool2d", self, sizes)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "adaptive_avg_pool1d, adaptive_avg_pool2d",
    family: Family::Conv,
    signature: "x.adaptive_avg_pool2d([rows, columns]), x.adaptive_avg_pool1d(size)",
    python: &[
        Binding::by_hand("adaptive_avg_pool1d", PYTHON_REASON).no_method().no_function(),
        Binding::by_hand("adaptive_avg_pool2d", PYTHON_REASON).no_method().no_function(),
    ],
    formula: "y[.., i, j] = the mean of x[.., k, l] for floor(i * h / rows) <= k < ceil((i + 1) * h / rows) and the same for l",
    gradient: "dx[.., k, l] = sum over the windows of k, l of g[.., i, j] / their size",
    at_kinks: "",
    samples: |g| {
        adaptive::samples(
            g,
            |x, sizes| x.try_adaptive_avg_pool2d(sizes),
            |x, size| x.try_adaptive_avg_pool1d(size),
        )
    },
    mistakes: &[Mistake {
        name: "missing 1/n",
        what: "each element gets the whole gradient of the mean of its window",
        rule: |op, _, g, _| Resample::wrong_gradient(op, g, |_, _, _| 1.0),
    }],
};
