//! Convolutions of images, and both of their gradients, as products whose patches are never laid
//! out.
//!
//! `plan` says where the patches lie, `tile` multiplies, `weight` has the gradient of the kernel,
//! and this file the two passes from image to image. The gradient of the input is such a pass
//! itself, from the gradient of the output and over the same taps; where the convolution has a
//! stride there is one for each set of input elements that meet the same taps, so that nothing is
//! multiplied by zero.
//!
//! An image is computed in bands of rows that fit into L2 with what they read. Bands, images and
//! the order of all sums depend on the sizes alone, so the bits of a result do not depend on the
//! number of threads.

mod halves;
mod plan;
#[cfg(test)]
mod tests;
mod tile;
mod weight;

use super::gemm::drive::{Shared, run, threaded, with_buffer};
use super::simd::level;
use crate::param::Parameters;
pub use halves::{forward_bf16, input_gradient_bf16, weight_gradient_bf16};
use plan::Pass;
pub use tile::ConvElement;
use tile::{ConvKernels, Shifted, tile_rows};
pub use weight::weight_gradient;

/// Sizes and parameters of a convolution; those with two entries are for rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub struct Conv {
    pub images: usize,
    /// The channels are split into this many groups, each with kernels of its own.
    pub groups: usize,
    /// Channels of one group, in and out.
    pub inputs: usize,
    pub outputs: usize,
    pub input: [usize; 2],
    pub output: [usize; 2],
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    /// Zeros before the first element. The size of `output` decides the number after the last one.
    pub padding: [usize; 2],
    pub dilation: [usize; 2],
}

impl Conv {
    /// Elements of a channel, in and out.
    fn input_plane(&self) -> usize {
        self.input[0] * self.input[1]
    }

    fn output_plane(&self) -> usize {
        self.output[0] * self.output[1]
    }

    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Multiplications of one pass over one group of one image, about.
    fn work(&self) -> usize {
        let channels = self.inputs.saturating_mul(self.outputs);
        let plane = self.output_plane().saturating_mul(self.taps());
        channels.saturating_mul(plane)
    }

    #[track_caller]
    fn check(&self, input: usize, weight: usize, output: usize) {
        let images = self.images * self.groups;
        assert_eq!(input, images * self.inputs * self.input_plane(), "conv: the size of the input");
        assert_eq!(
            weight,
            self.groups * self.outputs * self.inputs * self.taps(),
            "conv: the size of the weight"
        );
        assert_eq!(
            output,
            images * self.outputs * self.output_plane(),
            "conv: the size of the output"
        );
    }
}

/// Length of a block of k: what a panel reads of it stays in L1.
const DEPTH: usize = 320;

/// Bytes of a band and its inputs, about: part of L2.
const BAND: usize = 384 << 10;

/// `output = input * weight + bias`: input `[images, channels, h, w]`, weight
/// `[out channels, channels of a group, kh, kw]`.
///
/// # Panics
///
/// If a slice has another length than `conv` says.
pub fn forward<T: ConvElement>(
    conv: &Conv,
    input: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    output: &mut [T],
) {
    forward_by(T::tiles(level()), conv, input, weight, bias, output);
}

fn forward_by<T: ConvElement>(
    kernels: &'static ConvKernels<T>,
    conv: &Conv,
    input: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    output: &mut [T],
) {
    conv.check(input.len(), weight.len(), output.len());
    let pass = Pass::forward(conv);
    let kernel = Weights {
        weight,
        rows: conv.outputs,
        channels: conv.inputs,
        row: conv.inputs * conv.taps(),
        channel: conv.taps(),
        group: conv.outputs * conv.inputs * conv.taps(),
    };
    let step =
        Step { kernels, conv, source: input, plane: conv.input_plane(), target: conv.output, bias };
    step.run(&[pass], &kernel, output);
}

/// The gradient of the input from that of the output; the weight as for [`forward`].
///
/// # Panics
///
/// As [`forward`].
pub fn input_gradient<T: ConvElement>(conv: &Conv, gradient: &[T], weight: &[T], input: &mut [T]) {
    input_gradient_by(T::tiles(level()), conv, gradient, weight, input);
}

fn input_gradient_by<T: ConvElement>(
    kernels: &'static ConvKernels<T>,
    conv: &Conv,
    gradient: &[T],
    weight: &[T],
    input: &mut [T],
) {
    conv.check(input.len(), weight.len(), gradient.len());
    let kernel = Weights {
        weight,
        rows: conv.inputs,
        channels: conv.outputs,
        row: conv.taps(),
        channel: conv.inputs * conv.taps(),
        group: conv.outputs * conv.inputs * conv.taps(),
    };
    let step = Step {
        kernels,
        conv,
        source: gradient,
        plane: conv.output_plane(),
        target: conv.input,
        bias: None,
    };
    step.run(&Pass::backward(conv), &kernel, input);
}

/// The kernels of all groups as a pass sees them: each a matrix of `rows` by (`channels` times
/// taps).
struct Weights<'a, T> {
    weight: &'a [T],
    rows: usize,
    channels: usize,
    /// Elements between rows, channels and groups.
    row: usize,
    channel: usize,
    group: usize,
}

impl<T: ConvElement> Weights<'_, T> {
    /// The matrix of each group as tiles read it: block of k by block, tile by tile.
    fn packed(&self, kernels: &ConvKernels<T>, groups: usize, places: &[usize]) -> Vec<T> {
        let depth = self.channels * places.len();
        let mut out = vec![T::default(); groups * self.rows * depth];
        let place = |p: usize| p / places.len() * self.channel + places[p % places.len()];
        let columns: Vec<usize> = (0..depth).map(place).collect();
        for (group, out) in out.chunks_exact_mut((self.rows * depth).max(1)).enumerate() {
            let blocks = columns.chunks(DEPTH).zip(out.chunks_mut(self.rows * DEPTH));
            for (columns, mut out) in blocks {
                let mut row = 0;
                while row < self.rows {
                    let rows = tile_rows(self.rows - row, kernels.rows);
                    let (tile, rest) = out.split_at_mut(rows * columns.len());
                    for i in 0..rows {
                        let line = &self.weight[group * self.group + (row + i) * self.row..];
                        for (out, &column) in tile[i..].iter_mut().step_by(rows).zip(columns) {
                            *out = line[column];
                        }
                    }
                    (row, out) = (row + rows, rest);
                }
            }
        }
        out
    }
}

/// A band: some rows of positions.
#[derive(Clone, Copy)]
struct Band {
    first: usize,
    rows: usize,
    /// The number of rows that the copied planes are laid out for; the last band may have fewer.
    height: usize,
}

/// A pass from images to images: the forward pass or the gradient of the input.
struct Step<'a, T: 'static> {
    kernels: &'static ConvKernels<T>,
    conv: &'a Conv,
    source: &'a [T],
    /// Elements of a channel of the source.
    plane: usize,
    /// The sizes of a channel of the target.
    target: [usize; 2],
    bias: Option<&'a [T]>,
}

impl<T: ConvElement> Step<'_, T> {
    fn run(&self, passes: &[Pass], weights: &Weights<'_, T>, out: &mut [T]) {
        if out.is_empty() {
            return;
        }
        let images = self.conv.images;
        let work = self.conv.work().saturating_mul(self.conv.groups);
        let parallel = threaded(work.saturating_mul(images));
        let out = Shared(out.as_mut_ptr());
        for pass in passes {
            let tiles = weights.packed(
                self.kernels,
                self.conv.groups,
                &pass.kernel_places(self.conv.kernel[1]),
            );
            let band = self.band(pass, weights);
            let bands = pass.rows.count.div_ceil(band);
            let offsets = pass.offsets(band, weights.channels);
            run(images * bands, parallel, |task| {
                let (image, first) = (task / bands, task % bands * band);
                let band = Band { first, rows: band.min(pass.rows.count - first), height: band };
                for group in 0..self.conv.groups {
                    self.band_of_image(pass, weights, &tiles, &offsets, (image, group), band, out);
                }
            });
        }
    }

    /// Rows of positions that fit the buffer.
    fn band(&self, pass: &Pass, weights: &Weights<'_, T>) -> usize {
        let bytes = |band: usize| {
            let sums = weights.rows.saturating_mul(pass.positions(band));
            pass.copied(band, weights.channels).saturating_add(sums).saturating_mul(size_of::<T>())
        };
        let (one, two) = (bytes(1), bytes(2));
        let fit = 1 + BAND.saturating_sub(one) / (two - one).max(1);
        // Makes all bands about equally high.
        let bands = pass.rows.count.div_ceil(fit);
        pass.rows.count.div_ceil(bands)
    }

    #[allow(clippy::too_many_arguments)]
    fn band_of_image(
        &self,
        pass: &Pass,
        weights: &Weights<'_, T>,
        tiles: &[T],
        offsets: &[usize],
        (image, group): (usize, usize),
        band: Band,
        out: Shared<T>,
    ) {
        let kernels = self.kernels;
        let (rows, channels) = (weights.rows, weights.channels);
        let which = image * self.conv.groups + group;
        let size = channels * self.plane;
        let source = &self.source[which * size..][..size];
        let sums_row = pass.positions(band.rows).next_multiple_of(kernels.lanes);
        // Room for the last vectors, which read past the last plane.
        let copied = (pass.copied(band.height, channels) + kernels.lanes).next_multiple_of(64);
        let size = rows * offsets.len();
        let tiles = &tiles[group * size..][..size];
        with_buffer(copied + rows * sums_row, |buffer: *mut T| {
            let sums = buffer.wrapping_add(copied);
            // SAFETY: the buffer has room for the copy and the sums. The largest offset and
            // position together lie in the last plane.
            unsafe {
                pass.copy(kernels, source, channels, band, buffer);
                self.multiply(tiles, rows, offsets, buffer, sums, sums_row);
                let target = out.at(which * rows * self.target[0] * self.target[1]);
                let bias = self.bias.map(|b| &b[group * rows..][..rows]);
                self.write(pass, band, (sums, sums_row), rows, bias, target);
            }
        });
    }

    /// All sums of a band.
    ///
    /// # Safety
    ///
    /// `tiles` holds `rows` rows for all offsets. From `source` on, `sums_row` numbers must be
    /// readable at each offset; `sums` has room for `rows` rows of `sums_row`, a multiple of the
    /// lanes.
    unsafe fn multiply(
        &self,
        tiles: &[T],
        rows: usize,
        offsets: &[usize],
        source: *const T,
        sums: *mut T,
        sums_row: usize,
    ) {
        let kernels = self.kernels;
        let vectors = sums_row / kernels.lanes;
        let panels = vectors.div_ceil(kernels.wide);
        // At least one block, so that sums over nothing become zero.
        for from in (0..offsets.len().max(1)).step_by(DEPTH) {
            let k = DEPTH.min(offsets.len() - from);
            for panel in 0..panels {
                // Panels of nearly the same width: a narrow one at the end would be slow.
                let (begin, end) = (panel * vectors / panels, (panel + 1) * vectors / panels);
                let at = begin * kernels.lanes;
                // SAFETY: the panel lies inside what the caller promises.
                unsafe {
                    (kernels.shifted[end - begin - 1])(&Shifted {
                        rows,
                        k,
                        a: tiles.as_ptr().add(rows * from),
                        b: source.add(at),
                        offsets: offsets.as_ptr().add(from),
                        add: from > 0,
                        out: sums.add(at),
                        out_row: sums_row,
                    });
                }
            }
        }
    }

    /// Copies the sums of a band to the output, leaving out those at columns of padding.
    ///
    /// # Safety
    ///
    /// `target` is the first of `rows` channels, whose elements that belong to the band nobody else
    /// writes with other numbers.
    unsafe fn write(
        &self,
        pass: &Pass,
        band: Band,
        (sums, sums_row): (*const T, usize),
        rows: usize,
        bias: Option<&[T]>,
        target: *mut T,
    ) {
        let [height, width] = self.target;
        let (down, along) = (pass.rows.target_step.saturating_mul(width), pass.cols.target_step);
        for row in 0..rows {
            let plus = bias.map_or(T::default(), |b| b[row]);
            // SAFETY: the positions of a pass are elements of its target.
            unsafe {
                let from = sums.add(row * sums_row);
                let to = target.add(
                    (row * height + pass.rows.start + band.first * pass.rows.target_step) * width
                        + pass.cols.start,
                );
                if along == 1 {
                    (self.kernels.copy)(
                        band.rows,
                        pass.cols.count,
                        from,
                        pass.pitch,
                        to,
                        down,
                        plus,
                    );
                    continue;
                }
                for i in 0..band.rows {
                    for j in 0..pass.cols.count {
                        to.add(i * down + j * along).write(*from.add(i * pass.pitch + j) + plus);
                    }
                }
            }
        }
    }
}
