//! The gradient of the kernel: patches of the input times the gradient of the output, summed over
//! positions and images.
//!
//! The gradient is computed transposed, one row for each channel and tap of the input, so that the
//! patches are the operand read through a table; the gradient of the output is laid out with its
//! channels side by side. Each task sums over a fixed group of images, and the groups are added in
//! order.

use super::plan::Pass;
use super::tile::{ConvElement, ConvKernels, Gathered};
use super::{BAND, Band, Conv};
use crate::gemm::drive::{Shared, run, threaded, with_buffer};
use crate::gemm::tile::{GemmKernels as Packing, Source};
use crate::simd::level;

/// Positions that are summed up at a time: what they read stays in L1.
const DEPTH: usize = 256;

/// Number of tasks, about, as long as there are images.
const TASKS: usize = 16;

/// Bytes of one task's sums at most: part of L2.
const SUMS: usize = 192 << 10;

/// The gradient of the weight from the input and the gradient of the output, shaped as for
/// [`forward`](super::forward).
///
/// # Panics
///
/// If a slice has another length than `conv` says.
pub fn weight_gradient<T: ConvElement>(conv: &Conv, input: &[T], gradient: &[T], weight: &mut [T]) {
    weight_gradient_by((T::tiles(level()), T::kernels(level())), conv, input, gradient, weight);
}

pub(super) fn weight_gradient_by<T: ConvElement>(
    (kernels, packing): (&'static ConvKernels<T>, &'static Packing<T>),
    conv: &Conv,
    input: &[T],
    gradient: &[T],
    weight: &mut [T],
) {
    conv.check(input.len(), weight.len(), gradient.len());
    weight.fill(T::default());
    if input.is_empty() || gradient.is_empty() || weight.is_empty() {
        return;
    }
    let pass = Pass::forward(conv);
    let wide = conv.outputs.next_multiple_of(kernels.lanes);
    let places = pass.kernel_places(conv.kernel[1]);
    if places.is_empty() {
        return;
    }
    let line = places.len() * wide * size_of::<T>();
    let channels = (SUMS / line).clamp(1, conv.inputs);
    let parts = conv.inputs.div_ceil(channels);
    let images = conv.images.div_ceil((TASKS / (parts * conv.groups).min(TASKS)).min(conv.images));
    let work = Gradient {
        kernels,
        packing,
        conv,
        input,
        gradient,
        wide,
        channels,
        images,
        band: band(conv, &pass, channels, wide, size_of::<T>()),
        pass,
    };
    work.run(&places, weight);
}

/// Number of rows of positions that fit beside the sums.
fn band(conv: &Conv, pass: &Pass, channels: usize, wide: usize, size: usize) -> usize {
    let bytes = |band: usize| {
        let across = wide.saturating_mul(band * pass.pitch);
        pass.copied(band, channels).saturating_add(across).saturating_mul(size)
    };
    let (one, two) = (bytes(1), bytes(2));
    let fit = 1 + (BAND - SUMS).saturating_sub(one) / (two - one).max(1);
    conv.output[0].div_ceil(conv.output[0].div_ceil(fit))
}

struct Gradient<'a, T: 'static> {
    kernels: &'static ConvKernels<T>,
    packing: &'static Packing<T>,
    conv: &'a Conv,
    input: &'a [T],
    gradient: &'a [T],
    pass: Pass,
    /// The output's channels of a group, filled up to whole vectors.
    wide: usize,
    /// Channels of the input that one task takes, images that it sums over, and rows that it takes
    /// at a time.
    channels: usize,
    images: usize,
    band: usize,
}

impl<T: ConvElement> Gradient<'_, T> {
    fn run(&self, places: &[usize], weight: &mut [T]) {
        let conv = self.conv;
        let groups_of_images = conv.images.div_ceil(self.images);
        let parts = conv.inputs.div_ceil(self.channels);
        let lines = conv.inputs * places.len();
        // For each group of images and each group of channels the gradient, transposed.
        let size = conv.groups * lines * self.wide;
        let mut sums = vec![T::default(); groups_of_images * size];
        let out = Shared(sums.as_mut_ptr());
        let offsets = self.pass.offsets(self.band, self.channels);
        let work = conv.work().saturating_mul(conv.groups * conv.images);
        run(groups_of_images * conv.groups * parts, threaded(work), |task| {
            let (outer, part) = (task / parts, task % parts);
            let (images, group) = (outer / conv.groups, outer % conv.groups);
            let from = part * self.channels;
            let channels = self.channels.min(conv.inputs - from);
            let line = (outer * conv.inputs + from) * places.len();
            let offsets = &offsets[..channels * places.len()];
            for image in (0..conv.images).skip(images * self.images).take(self.images) {
                for first in (0..conv.output[0]).step_by(self.band) {
                    let rows = self.band.min(conv.output[0] - first);
                    let band = Band { first, rows, height: self.band };
                    let which = image * conv.groups + group;
                    // SAFETY: each task has lines of its own.
                    unsafe {
                        self.add(which, (from, channels), band, offsets, out.at(line * self.wide))
                    }
                }
            }
        });
        self.collect(&sums, places, weight);
    }

    /// Adds the contribution of one band, image and group.
    ///
    /// # Safety
    ///
    /// `out` has a line of `wide` sums for each offset.
    unsafe fn add(
        &self,
        which: usize,
        (from, channels): (usize, usize),
        band: Band,
        offsets: &[usize],
        out: *mut T,
    ) {
        let (kernels, conv, pass, wide) = (self.kernels, self.conv, &self.pass, self.wide);
        let plane = conv.input_plane();
        let input = &self.input[(which * conv.inputs + from) * plane..][..channels * plane];
        let copied = (pass.copied(band.height, channels) + kernels.lanes).next_multiple_of(64);
        let positions = pass.positions(band.rows);
        let vectors = wide / kernels.lanes;
        let panels = vectors.div_ceil(kernels.wide);
        with_buffer(copied + band.rows * pass.pitch * wide, |buffer: *mut T| {
            let across = buffer.wrapping_add(copied);
            // SAFETY: the buffer has room for the copy and for the gradient's rows of positions.
            // The largest offset and position together lie in the last plane.
            unsafe {
                pass.copy(kernels, input, channels, band, buffer);
                self.turn(which, band, across);
                for start in (0..positions).step_by(DEPTH) {
                    for panel in 0..panels {
                        let (begin, end) =
                            (panel * vectors / panels, (panel + 1) * vectors / panels);
                        let at = begin * kernels.lanes;
                        (kernels.gathered[end - begin - 1])(&Gathered {
                            rows: offsets.len(),
                            k: DEPTH.min(positions - start),
                            a: buffer.add(start),
                            offsets: offsets.as_ptr(),
                            b: across.add(start * wide + at),
                            b_row: wide,
                            out: out.add(at),
                            out_row: wide,
                        });
                    }
                }
            }
        });
    }

    /// Lays out a band of the gradient with the channels side by side, and zeros at the positions
    /// over columns of padding.
    ///
    /// # Safety
    ///
    /// `to` has room for the rows of the band, `wide` numbers for each position.
    unsafe fn turn(&self, which: usize, band: Band, to: *mut T) {
        let (conv, wide, pitch) = (self.conv, self.wide, self.pass.pitch);
        let [height, width] = conv.output;
        let size = conv.outputs * height * width;
        let image = &self.gradient[which * size..][..size];
        for i in 0..band.rows {
            let row = Source {
                data: image[(band.first + i) * width..].as_ptr(),
                line: height * width,
                depth: 1,
                len: conv.outputs,
                k: width,
            };
            // SAFETY: all channels have the row; the positions of a row are `pitch`, which is not
            // less than its width.
            unsafe {
                let to = to.add(i * pitch * wide);
                (self.packing.transpose)(&row, to, wide);
                std::slice::from_raw_parts_mut(to.add(width * wide), (pitch - width) * wide)
                    .fill(T::default());
            }
        }
    }

    /// Adds up the sums of all groups of images, and turns them to where the weight has them.
    fn collect(&self, sums: &[T], places: &[usize], weight: &mut [T]) {
        let conv = self.conv;
        let size = conv.groups * conv.inputs * places.len() * self.wide;
        let (first, others) = sums.split_at(size);
        let mut total = first.to_vec();
        for sums in others.chunks_exact(size) {
            for (total, &x) in total.iter_mut().zip(sums) {
                *total = *total + x;
            }
        }
        let taps = conv.taps();
        for (line, sums) in total.chunks_exact(self.wide).enumerate() {
            let (channel, tap) = (line / places.len(), line % places.len());
            let (group, channel) = (channel / conv.inputs, channel % conv.inputs);
            for (o, &x) in sums[..conv.outputs].iter().enumerate() {
                let kernel = (group * conv.outputs + o) * conv.inputs + channel;
                weight[kernel * taps + places[tap]] = x;
            }
        }
    }
}
