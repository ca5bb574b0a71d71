//! Offsets of a convolution's patches in images that were copied once.
//!
//! An image is copied with the zeros around it, and where a patch steps by a stride, each phase of
//! the columns (and rows) goes to a plane of its own. Then neighbouring patches are neighbours in
//! memory, whatever the stride, padding and dilation: tap `t` of the patch of output `p` is element
//! `offset(t) + p`. Positions run on over the columns of padding; what is computed there is thrown
//! away.

use super::tile::{ConvElement, ConvKernels};
use super::{Band, Conv};

/// One tap of the kernel along one axis: it meets source element
/// `(position + shift) * step + phase`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tap {
    /// Its number in the kernel.
    pub at: usize,
    pub phase: usize,
    pub shift: isize,
}

/// One axis of a pass: which target elements it computes, and from which taps.
#[derive(Clone, Debug)]
pub(super) struct AxisPlan {
    /// Number of positions computed.
    pub count: usize,
    /// Position `q` is target element `start + q * target_step`.
    pub start: usize,
    pub target_step: usize,
    /// The size of the source, and its elements between one position and the next.
    source: usize,
    source_step: usize,
    /// The taps that meet the source somewhere; others only meet zeros.
    pub taps: Vec<Tap>,
    /// The phases that occur.
    phases: Vec<usize>,
    /// The least and the largest shift.
    low: isize,
    high: isize,
}

impl AxisPlan {
    fn new(
        count: usize,
        (start, target_step): (usize, usize),
        (source, source_step): (usize, usize),
        taps: impl Iterator<Item = Tap>,
    ) -> AxisPlan {
        // Source element `u * source_step + phase` lies inside for `u` below this.
        let inside = |phase: usize| {
            if phase < source { (source - 1 - phase) / source_step + 1 } else { 0 }
        };
        let meets = |tap: &Tap| {
            let first = (-tap.shift).max(0);
            let last = (count as isize).min(inside(tap.phase) as isize - tap.shift);
            first < last
        };
        let taps: Vec<Tap> = taps.filter(meets).collect();
        let mut phases: Vec<usize> = taps.iter().map(|tap| tap.phase).collect();
        phases.sort_unstable();
        phases.dedup();
        let low = taps.iter().map(|tap| tap.shift).min().unwrap_or(0);
        let high = taps.iter().map(|tap| tap.shift).max().unwrap_or(0);
        AxisPlan { count, start, target_step, source, source_step, taps, phases, low, high }
    }

    /// From input to output.
    fn forward(conv: &Conv, axis: usize) -> AxisPlan {
        let (stride, dilation) = (conv.stride[axis], conv.dilation[axis]);
        let tap = |at: usize| {
            let first = (at * dilation) as isize - conv.padding[axis] as isize;
            let (phase, shift) =
                (first.rem_euclid(stride as isize) as usize, first.div_euclid(stride as isize));
            Tap { at, phase, shift }
        };
        let taps = (0..conv.kernel[axis]).map(tap);
        AxisPlan::new(conv.output[axis], (0, 1), (conv.input[axis], stride), taps)
    }

    /// From the gradient of the output to that of the input: of the elements `phase`,
    /// `phase + stride`, ... of the input.
    fn backward(conv: &Conv, axis: usize, phase: usize) -> AxisPlan {
        let (stride, dilation) = (conv.stride[axis] as isize, conv.dilation[axis]);
        let tap = |at: usize| {
            let from = (phase + conv.padding[axis]) as isize - (at * dilation) as isize;
            (from % stride == 0).then_some(Tap { at, phase: 0, shift: from / stride })
        };
        let taps = (0..conv.kernel[axis]).filter_map(tap);
        let count = (conv.input[axis] - phase).div_ceil(conv.stride[axis]);
        AxisPlan::new(count, (phase, conv.stride[axis]), (conv.output[axis], 1), taps)
    }

    /// Elements beyond the positions that the shifts of the taps reach.
    fn halo(&self) -> usize {
        (self.high - self.low) as usize
    }

    /// The plane of a phase.
    fn plane(&self, phase: usize) -> usize {
        self.phases.iter().position(|&p| p == phase).expect("a phase of one of the taps")
    }

    /// The `len` elements of a plane from position `first` on, in terms of the source: leading
    /// zeros, then source elements, and the first of these.
    fn part(&self, phase: usize, first: usize, len: usize) -> (usize, usize, usize) {
        let from = first as isize + self.low;
        let zeros = len.min((-from).max(0) as usize);
        let u = (from + zeros as isize).max(0) as usize;
        let inside =
            if phase < self.source { (self.source - 1 - phase) / self.source_step + 1 } else { 0 };
        let run = (len - zeros).min(inside.saturating_sub(u));
        (zeros, run, u.saturating_mul(self.source_step).saturating_add(phase))
    }
}

/// A pass over images: the positions that it computes and the taps that it reads.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    pub rows: AxisPlan,
    pub cols: AxisPlan,
    /// Positions from one row to the next: as many as a row has, or a few more. The zeros after a
    /// row are those before the next one.
    pub pitch: usize,
    /// Zeros after the last row of a plane, which has no next row to supply them.
    tail: usize,
    /// Planes of a channel.
    planes: usize,
}

impl Pass {
    fn new(rows: AxisPlan, cols: AxisPlan) -> Pass {
        let full = cols.count + cols.halo();
        let needed = |&phase: &usize| {
            let (left, run, _) = cols.part(phase, 0, full);
            run + left.max(full - left - run)
        };
        let pitch = cols.phases.iter().map(needed).max().unwrap_or(0).max(cols.count);
        let planes = rows.phases.len() * cols.phases.len();
        Pass { rows, cols, pitch, tail: full.saturating_sub(pitch), planes }
    }

    /// From input to output.
    pub fn forward(conv: &Conv) -> Pass {
        Pass::new(AxisPlan::forward(conv, 0), AxisPlan::forward(conv, 1))
    }

    /// From the gradient of the output to that of the input. A stride makes several passes, each
    /// for the elements that it alone computes.
    pub fn backward(conv: &Conv) -> Vec<Pass> {
        let phases = |axis: usize| 0..conv.stride[axis].min(conv.input[axis]);
        let pass = |(row, col)| {
            Pass::new(AxisPlan::backward(conv, 0, row), AxisPlan::backward(conv, 1, col))
        };
        phases(0).flat_map(|row| phases(1).map(move |col| (row, col))).map(pass).collect()
    }

    /// Taps of both axes together.
    pub fn taps(&self) -> usize {
        self.rows.taps.len() * self.cols.taps.len()
    }

    /// The index of every tap in the kernel, which is `width` wide.
    pub fn kernel_places(&self, width: usize) -> Vec<usize> {
        let row = |ky: &Tap| {
            let from = ky.at * width;
            self.cols.taps.iter().map(move |kx| from + kx.at)
        };
        self.rows.taps.iter().flat_map(row).collect()
    }

    /// The size of one plane of a band of this many rows of positions.
    fn plane(&self, band: usize) -> usize {
        (band + self.rows.halo()) * self.pitch + self.tail
    }

    /// The size of what [`Pass::copy`] writes for this many channels.
    pub fn copied(&self, band: usize, channels: usize) -> usize {
        channels * self.planes * self.plane(band)
    }

    /// The positions of a band of rows, with those between one row and the next.
    pub fn positions(&self, band: usize) -> usize {
        (band.saturating_sub(1)) * self.pitch + self.cols.count
    }

    /// The offset in the copy at which the first patch begins, for every channel and tap.
    pub fn offsets(&self, band: usize, channels: usize) -> Vec<usize> {
        let plane = self.plane(band);
        let mut out = Vec::with_capacity(channels * self.taps());
        for channel in 0..channels {
            for ky in &self.rows.taps {
                for kx in &self.cols.taps {
                    let which = (channel * self.rows.phases.len() + self.rows.plane(ky.phase))
                        * self.cols.phases.len()
                        + self.cols.plane(kx.phase);
                    let (down, right) = (ky.shift - self.rows.low, kx.shift - self.cols.low);
                    out.push(which * plane + down as usize * self.pitch + right as usize);
                }
            }
        }
        out
    }

    /// Copies `channels` channels of an image, for a band of rows of positions.
    ///
    /// # Safety
    ///
    /// `to` must have room for [`Pass::copied`] numbers.
    pub unsafe fn copy<T: ConvElement>(
        &self,
        kernels: &ConvKernels<T>,
        image: &[T],
        channels: usize,
        band: Band,
        to: *mut T,
    ) {
        let (height, width) = (self.rows.source, self.cols.source);
        let image = &image[..channels * height * width];
        let mut to = to;
        for channel in image.chunks_exact((height * width).max(1)) {
            for &row_phase in &self.rows.phases {
                let rows = band.height + self.rows.halo();
                let (above, inside, row) = self.rows.part(row_phase, band.first, rows);
                for &col_phase in &self.cols.phases {
                    let full = self.cols.count + self.cols.halo();
                    let (left, run, col) = self.cols.part(col_phase, 0, full);
                    let right = self.pitch - left - run;
                    // SAFETY: the plane has `rows` rows of `pitch` numbers; `part` keeps the
                    // source's rows and columns inside it.
                    unsafe {
                        zero(to, above * self.pitch);
                        let middle = to.add(above * self.pitch);
                        if inside > 0 && run > 0 {
                            let from = &channel[row * width + col..];
                            let down = width.saturating_mul(self.rows.source_step);
                            let along = self.cols.source_step;
                            let last = (inside - 1) * down + (run - 1) * along;
                            assert!(last < from.len(), "conv: a patch outside of the image");
                            if along == 1 {
                                let zero = T::default();
                                (kernels.copy)(
                                    inside,
                                    run,
                                    from.as_ptr(),
                                    down,
                                    middle.add(left),
                                    self.pitch,
                                    zero,
                                );
                            } else {
                                every(
                                    from,
                                    (inside, down),
                                    (run, along),
                                    middle.add(left),
                                    self.pitch,
                                );
                            }
                        }
                        for i in 0..inside {
                            zero(middle.add(i * self.pitch), left);
                            zero(middle.add(i * self.pitch + left + run), right);
                        }
                        let below = rows - above - inside;
                        zero(middle.add(inside * self.pitch), below * self.pitch + self.tail);
                        to = to.add(rows * self.pitch + self.tail);
                    }
                }
            }
        }
    }
}

/// Writes zeros; a plain loop, since mostly there are one or two.
unsafe fn zero<T: ConvElement>(to: *mut T, n: usize) {
    for i in 0..n {
        // SAFETY: the caller promises `n` numbers.
        unsafe { to.add(i).write(T::default()) }
    }
}

/// Copies rows of `run` elements that lie `along` apart.
unsafe fn every<T: ConvElement>(
    from: &[T],
    (rows, down): (usize, usize),
    (run, along): (usize, usize),
    to: *mut T,
    to_row: usize,
) {
    for i in 0..rows {
        for (j, &x) in from[i * down..].iter().step_by(along).take(run).enumerate() {
            // SAFETY: the caller promises `rows` rows of `run` numbers.
            unsafe { to.add(i * to_row + j).write(x) }
        }
    }
}
