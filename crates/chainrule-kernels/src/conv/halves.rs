//! Convolutions of operands that are rounded to bf16.
//!
//! Two numbers that are summed over share a word: two channels, or two images for the gradient of
//! the weight. Patches, bands and tiles of such words are those of an f32 convolution with half as
//! many channels or images.

use super::tile::pairs;
use super::weight::weight_gradient_by;
use super::{Conv, forward, forward_by, input_gradient, input_gradient_by, weight_gradient};
use crate::gemm::GemmElement;
use crate::gemm::drive::{Room, Shared, run, threaded};
use crate::gemm::halves::{TASK, convert, round};
use crate::simd::level;

thread_local! {
    static LEFT: Room = const { Room::new() };
    static RIGHT: Room = const { Room::new() };
}

/// As [`forward`], of an input and a weight that are rounded to bf16; sums and bias are f32.
///
/// As in products, AVX512-BF16 adds two products at once and takes subnormal numbers as zero;
/// elsewhere rounded copies are multiplied in f32.
///
/// # Panics
///
/// As [`forward`].
pub fn forward_bf16(
    conv: &Conv,
    input: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
    output: &mut [f32],
) {
    conv.check(input.len(), weight.len(), output.len());
    let Some(kernels) = pairs() else {
        return forward(conv, &rounded(input), &rounded(weight), bias, output);
    };
    let half = Conv { inputs: conv.inputs.div_ceil(2), ..*conv };
    let images = PairedLines { count: conv.inputs, len: conv.input_plane() };
    let taps = PairedLines { count: conv.inputs, len: conv.taps() };
    with_words(conv, (images, input), (taps, weight), |input, weight| {
        forward_by(kernels, &half, input, weight, bias, output);
    });
}

/// As [`input_gradient`], of operands that are rounded to bf16; see [`forward_bf16`].
///
/// # Panics
///
/// As [`forward`].
pub fn input_gradient_bf16(conv: &Conv, gradient: &[f32], weight: &[f32], input: &mut [f32]) {
    conv.check(input.len(), weight.len(), gradient.len());
    let Some(kernels) = pairs() else {
        return input_gradient(conv, &rounded(gradient), &rounded(weight), input);
    };
    let half = Conv { outputs: conv.outputs.div_ceil(2), ..*conv };
    let images = PairedLines { count: conv.outputs, len: conv.output_plane() };
    let taps = PairedLines { count: conv.outputs, len: conv.inputs * conv.taps() };
    with_words(conv, (images, gradient), (taps, weight), |gradient, weight| {
        input_gradient_by(kernels, &half, gradient, weight, input);
    });
}

/// As [`weight_gradient`], of operands that are rounded to bf16; see [`forward_bf16`].
///
/// # Panics
///
/// As [`forward`].
pub fn weight_gradient_bf16(conv: &Conv, input: &[f32], gradient: &[f32], weight: &mut [f32]) {
    conv.check(input.len(), weight.len(), gradient.len());
    let Some(kernels) = pairs() else {
        return weight_gradient(conv, &rounded(input), &rounded(gradient), weight);
    };
    let half = Conv { images: conv.images.div_ceil(2), ..*conv };
    let channels = |n: usize, plane: usize| conv.groups * n * plane;
    let images = PairedLines { count: conv.images, len: channels(conv.inputs, conv.input_plane()) };
    let results =
        PairedLines { count: conv.images, len: channels(conv.outputs, conv.output_plane()) };
    // A table of packing of the level that has pairs: it moves words as they are.
    let packing = <f32 as GemmElement>::kernels(level());
    with_words(conv, (images, input), (results, gradient), |input, gradient| {
        weight_gradient_by((kernels, packing), &half, input, gradient, weight);
    });
}

fn rounded(numbers: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; numbers.len()];
    round(numbers, &mut out);
    out
}

/// Groups of `count` lines of `len` numbers; each two lines of a group become one line of words.
#[derive(Clone, Copy)]
struct PairedLines {
    count: usize,
    len: usize,
}

impl PairedLines {
    /// Words for this many numbers; the last line of an odd count is paired with zeros.
    fn words(&self, numbers: usize) -> usize {
        numbers / (self.count * self.len).max(1) * self.count.div_ceil(2) * self.len
    }

    /// Writes the words of all groups.
    ///
    /// # Safety
    ///
    /// The processor must have AVX512-BF16, and `to` room for [`PairedLines::words`].
    unsafe fn pack(&self, numbers: &[f32], to: *mut f32, parallel: bool) {
        let PairedLines { count, len } = *self;
        let (words, halves) = (self.words(numbers.len()), count.div_ceil(2));
        let lines = words.checked_div(len).unwrap_or(0);
        let together = (TASK / len.max(1)).max(1);
        let to = Shared(to);
        run(lines.div_ceil(together), parallel, |task| {
            for at in task * together..lines.min((task + 1) * together) {
                let (group, line) = (at / halves, at % halves * 2);
                let from = |line: usize| &numbers[(group * count + line) * len..][..len];
                let second = (line + 1 < count).then(|| from(line + 1));
                // SAFETY: the caller's promise; each line of words has its own place.
                unsafe {
                    let out = std::slice::from_raw_parts_mut(to.at(at * len), len);
                    convert::rows(from(line), second, out);
                }
            }
        });
    }
}

/// Calls `f` with the words of both operands. For a processor that has AVX512-BF16.
fn with_words(
    conv: &Conv,
    a: (PairedLines, &[f32]),
    b: (PairedLines, &[f32]),
    f: impl FnOnce(&[f32], &[f32]),
) {
    let parallel = threaded(conv.work().saturating_mul(conv.groups * conv.images));
    let words =
        |(lines, numbers): (PairedLines, &[f32]), room: &Room, f: &mut dyn FnMut(&[f32])| {
            let len = lines.words(numbers.len());
            room.with(len, |to: *mut f32| {
                if len == 0 {
                    return f(&[]);
                }
                // SAFETY: the room is as large as what is packed, and is read after it was written.
                unsafe {
                    lines.pack(numbers, to, parallel);
                    f(std::slice::from_raw_parts(to, len));
                }
            });
        };
    let mut f = Some(f);
    LEFT.with(|left| {
        words(a, left, &mut |a| {
            RIGHT.with(|right| {
                words(b, right, &mut |b| f.take().expect("called once")(a, b));
            });
        });
    });
}
