//! Pooling over windows whose number is given by the size of the result.

use super::{as_given, as_images, expect_sizes, image_sizes, of_image};
use crate::ops::prelude::*;

/// Why the Python methods are written by hand.
pub(super) const PYTHON_REASON: &str =
    "an image or a batch of them, and one number or one for each axis";

/// An axis of an image, divided into windows.
#[derive(Clone, Copy)]
pub(super) struct Divided {
    /// Elements along it.
    pub size: usize,
    count: usize,
}

impl Divided {
    /// Start and end of the windows, which divide the elements about evenly and overlap where the
    /// division has a remainder.
    pub fn windows(self) -> impl Iterator<Item = (usize, usize)> {
        let Divided { size, count } = self;
        (0..count).map(move |i| (i * size / count, ((i + 1) * size).div_ceil(count)))
    }
}

/// The pool of images or signals that `of_images` computes for the two axes of a batch of images.
pub(super) fn pool<const N: usize>(
    op: &'static str,
    x: &Tensor,
    sizes: [usize; N],
    of_images: fn(&Tensor, [Divided; 2]) -> Result<Tensor>,
) -> Result<Tensor> {
    let images = as_images::<N>(op, x)?;
    let [_, _, height, width] = image_sizes(&images.shape());
    expect_sizes(op, &x.shape(), &[height, width], &sizes)?;
    let [rows, cols] = of_image(sizes, 1);
    let axes = [Divided { size: height, count: rows }, Divided { size: width, count: cols }];
    as_given::<N>(of_images(&images, axes)?, x.rank())
}

/// Samples of a pool over images, and of that over signals.
pub(super) fn samples(
    g: &mut Generator,
    images: fn(&Tensor, [usize; 2]) -> Result<Tensor>,
    signals: fn(&Tensor, usize) -> Result<Tensor>,
) -> Vec<Sample> {
    let cases: [(&str, [usize; 4], [usize; 2]); 4] = [
        ("windows that overlap", [2, 2, 5, 7], [3, 4]),
        ("more windows than elements", [1, 1, 2, 3], [4, 3]),
        ("one window", [1, 2, 3, 3], [1, 1]),
        ("no images", [0, 2, 4, 4], [2, 2]),
    ];
    let mut out = Vec::new();
    for (note, shape, sizes) in cases {
        out.push(Sample::new(note, vec![normal(g, shape)], move |x| images(&x[0], sizes)));
    }
    out.push(Sample::new("signals", vec![normal(g, [3, 8])], move |x| signals(&x[0], 3)));
    out
}
