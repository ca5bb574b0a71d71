//! `avg_pool1d`, `avg_pool2d`: the mean of each window.

use super::resample::Resample;
use super::{AvgPool, as_given, as_images, expect_range, image_sizes, of_image, windows};
use crate::kernels::resample::Taps;
use crate::ops::prelude::*;

fn pool<const N: usize>(
    op: &'static str,
    x: &Tensor,
    kernel: [usize; N],
    options: &AvgPool<N>,
) -> Result<Tensor> {
    let images = as_images::<N>(op, x)?;
    let stride = options.stride.unwrap_or(kernel);
    expect_range(op, "the window", &kernel, 1)?;
    expect_range(op, "stride", &stride, 1)?;
    expect_range(op, "padding", &options.padding, 0)?;
    let [_, _, height, width] = image_sizes(&images.shape());
    let (kernel, stride) = (of_image(kernel, 1), of_image(stride, 1));
    let padding = of_image(options.padding, 0);
    let along = |axis: usize, size: usize| -> Result<Arc<Taps>> {
        let (reach, padding) = (kernel[axis], padding[axis]);
        let count = windows(
            op,
            &x.shape(),
            (size, reach, reach),
            (stride[axis], padding),
            options.ceil_mode,
        )?;
        let line = |i: usize| {
            // Counted from the first zero of the padding on; positions past the padding at the end
            // are no elements at all.
            let begin = i * stride[axis];
            let end = (begin + reach).min(size + 2 * padding);
            let first = begin.max(padding) - padding;
            let last = end.saturating_sub(padding).min(size);
            let inside = last.saturating_sub(first);
            let elements = if options.count_include_pad { end - begin } else { inside };
            (first..first + inside).map(move |at| (at, 1.0 / elements as f64))
        };
        Ok(Arc::new(Taps::new(size, (0..count).map(line))))
    };
    let (rows, cols) = (along(0, height)?, along(1, width)?);
    let names = [Name::of(OpId::avg_pool, "avg_pool2d"), Name::rule("avg_pool2d_grad")];
    let y = apply(Resample { names, rows, cols }, &[&images])?;
    as_given::<N>(y, x.rank())
}

methods! {
    /// The mean of each window of `kernel` elements, window beside window: [`Tensor::avg_pool2d`]
    /// for signals, `[n, channels, l]` or `[channels, l]`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 5.0, 2.0, 3.0, 4.0]]);
    /// assert_eq!(x.avg_pool1d(2).to_vec::<f32>(), [3.0, 2.5]);
    /// ```
    pub fn avg_pool1d / try_avg_pool1d(&self, kernel: usize) -> Tensor {
        pool("avg_pool1d", self, [kernel], &AvgPool::default())
    }

    /// [`Tensor::avg_pool1d`] with options, for which see [`Tensor::avg_pool2d_with`].
    pub fn avg_pool1d_with / try_avg_pool1d_with(&self, kernel: usize, options: &AvgPool<1>) -> Tensor {
        pool("avg_pool1d", self, [kernel], options)
    }

    /// The mean of each window of `kernel` rows and columns, window beside window; what is left
    /// over at the end does not count.
    ///
    /// The input is `[n, channels, h, w]` or `[channels, h, w]`, f32 or f64. Gradient: each element
    /// of a window gets an equal share of that of the mean. Sums are taken in f64.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[[1.0f32, 2.0, 0.0], [4.0, 3.0, 9.0]]]);
    /// assert_eq!(x.avg_pool2d([2, 2]).to_vec::<f32>(), [2.5]);
    /// ```
    pub fn avg_pool2d / try_avg_pool2d(&self, kernel: [usize; 2]) -> Tensor {
        pool("avg_pool2d", self, kernel, &AvgPool::default())
    }

    /// [`Tensor::avg_pool2d`] with options. They mean what they mean in PyTorch.
    ///
    /// The number of windows, and the errors, are those of [`Tensor::max_pool2d_with`]. With
    /// `count_include_pad` the zeros of the padding count as elements; what a last window has
    /// beyond them, in `ceil_mode`, never does.
    ///
    /// ```
    /// use chainrule::{AvgPool, Tensor};
    /// let x = Tensor::ones([1, 2, 2]);
    /// let options = AvgPool { stride: Some([2, 2]), padding: [1, 1], ..AvgPool::default() };
    /// assert_eq!(x.avg_pool2d_with([2, 2], &options).to_vec::<f32>(), [0.25; 4]);
    /// ```
    pub fn avg_pool2d_with / try_avg_pool2d_with(&self, kernel: [usize; 2], options: &AvgPool<2>) -> Tensor {
        pool("avg_pool2d", self, kernel, options)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "avg_pool1d, avg_pool2d",
    family: Family::Conv,
    signature: "x.avg_pool2d([kh, kw]), x.avg_pool2d_with([kh, kw], &options), x.avg_pool1d(k), x.avg_pool1d_with(k, &options)",
    python: &[
        Binding::by_hand(
            "avg_pool1d",
            "an image or a batch of them, and one number or one for each axis",
        )
        .no_method()
        .no_function(),
        Binding::by_hand(
            "avg_pool2d",
            "an image or a batch of them, and one number or one for each axis",
        )
        .no_method()
        .no_function(),
    ],
    formula: "y[.., i, j] = the mean of x[.., i * stride + k - padding, ..] over k and l",
    gradient: "dx[.., i * stride + k - padding, ..] += g[.., i, j] / (kh * kw)",
    at_kinks: "",
    samples,
    mistakes: &[
        Mistake {
            name: "missing 1/n",
            what: "each element gets the whole gradient of the mean of its window",
            rule: |op, _, g, _| Resample::wrong_gradient(op, g, |_, _, _| 1.0),
        },
        Mistake {
            name: "mean instead of sum",
            what: "the gradients of windows that overlap are averaged instead of summed",
            rule: |op, _, g, _| Resample::wrong_gradient(op, g, |w, _, count| w / count as f64),
        },
    ],
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let base = AvgPool::<2>::default();
    let padded = AvgPool { stride: Some([2, 1]), padding: [1, 1], ..base };
    let cases: [(&str, [usize; 4], [usize; 2], AvgPool<2>); 6] = [
        ("window beside window", [2, 2, 4, 5], [2, 2], base),
        ("windows that overlap", [1, 2, 5, 6], [3, 2], AvgPool { stride: Some([1, 1]), ..base }),
        ("padding", [1, 1, 5, 4], [3, 3], padded),
        (
            "padding that does not count",
            [1, 1, 5, 4],
            [3, 2],
            AvgPool { count_include_pad: false, ..padded },
        ),
        ("rounded up", [1, 2, 6, 6], [3, 4], AvgPool { ceil_mode: true, ..padded }),
        ("no images", [0, 2, 4, 4], [2, 2], base),
    ];
    let mut out = Vec::new();
    for (note, x, kernel, options) in cases {
        out.push(Sample::new(note, vec![normal(g, x)], move |x| {
            x[0].try_avg_pool2d_with(kernel, &options)
        }));
    }
    out.push(Sample::new("signals", vec![normal(g, [2, 3, 9])], |x| {
        x[0].try_avg_pool1d_with(3, &AvgPool { stride: Some([2]), ..AvgPool::default() })
    }));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values as PyTorch 2.15 gives them.
    #[test]
    fn infinity_and_nan_stay_in_their_windows() {
        let x = Tensor::from([[1.0f32, f32::INFINITY, 2.0, f32::NAN, 3.0, 4.0]]);
        assert_eq!(format!("{:?}", x.avg_pool1d(2).to_vec::<f32>()), "[inf, NaN, 3.5]");
        let even = x.adaptive_avg_pool1d(4).to_vec::<f32>();
        assert_eq!(format!("{even:?}"), "[inf, inf, NaN, 3.5]");
    }

    #[test]
    fn the_mean_of_ones_is_one() {
        for k in 1..12 {
            let x = Tensor::ones([1, k, 12]);
            assert!(x.avg_pool2d([k, 11]).to_vec::<f32>().iter().all(|&y| y == 1.0), "{k}");
        }
    }

    #[test]
    fn wrong_sizes_are_errors() {
        let x = Tensor::zeros([1, 2, 3, 4]);
        assert!(x.try_avg_pool2d([4, 4]).is_err());
        assert!(x.try_avg_pool1d(2).is_err());
        let padded = AvgPool { padding: [2, 0], ..AvgPool::default() };
        assert!(x.try_avg_pool2d_with([3, 3], &padded).is_err());
        assert!(x.try_adaptive_avg_pool2d([usize::MAX, 1]).is_err());
        assert_eq!(x.adaptive_avg_pool2d([0, 1]).shape(), [1, 2, 0, 1]);
        assert!(Tensor::zeros([1, 1, 0, 4]).try_adaptive_avg_pool2d([1, 1]).is_err());
    }
}
