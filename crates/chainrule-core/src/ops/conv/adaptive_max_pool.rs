//! `adaptive_max_pool1d`, `adaptive_max_pool2d`: the largest element of each window, where the
//! windows divide the image into this many parts.

use super::max_pool::{MISTAKES, PoolMax};
use super::{as_given, as_images, even_window, expect_sizes, image_sizes, of_image};
use crate::kernels::pool::Windows;
use crate::ops::prelude::*;

fn pool<const N: usize>(op: &'static str, x: &Tensor, sizes: [usize; N]) -> Result<Tensor> {
    let images = as_images::<N>(op, x)?;
    let [_, _, height, width] = image_sizes(&images.shape());
    expect_sizes(op, &x.shape(), &[height, width], &sizes)?;
    let sizes = of_image(sizes, 1);
    let along = |size: usize, count: usize| {
        let span = |i: usize| {
            let (first, end) = even_window(size, count, i);
            (first, end - first)
        };
        Arc::new(Windows { step: 1, spans: (0..count).map(span).collect() })
    };
    let (rows, cols) = (along(height, sizes[0]), along(width, sizes[1]));
    let y = apply(
        PoolMax { name: Name::of(OpId::adaptive_max_pool, "adaptive_max_pool2d"), rows, cols },
        &[&images],
    )?;
    as_given::<N>(y, x.rank())
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
        Binding::by_hand(
            "adaptive_max_pool1d",
            "an image or a batch of them, and one number or one for each axis",
        )
        .no_method()
        .no_function(),
        Binding::by_hand(
            "adaptive_max_pool2d",
            "an image or a batch of them, and one number or one for each axis",
        )
        .no_method()
        .no_function(),
    ],
    formula: "y[.., i, j] = the largest x[.., k, l] for floor(i * h / rows) <= k < ceil((i + 1) * h / rows) and the same for l",
    gradient: "dx[.., place of the maximum] += g[.., i, j]",
    at_kinks: "of several equal elements the first gets the whole gradient; a NaN is larger than all else, and of several the last counts",
    samples: |g| {
        let cases: [(&str, [usize; 4], [usize; 2]); 4] = [
            ("windows that overlap", [2, 2, 5, 7], [3, 4]),
            ("more windows than elements", [1, 1, 2, 3], [4, 3]),
            ("one window", [1, 2, 3, 3], [1, 1]),
            ("no images", [0, 2, 4, 4], [2, 2]),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, shape, sizes)| {
                Sample::new(note, vec![normal(g, shape)], move |x| {
                    x[0].try_adaptive_max_pool2d(sizes)
                })
            })
            .collect();
        out.push(Sample::new("signals", vec![normal(g, [3, 8])], |x| {
            x[0].try_adaptive_max_pool1d(3)
        }));
        out
    },
    mistakes: MISTAKES,
};
