//! Products of operands that are rounded to bf16.
//!
//! Both operands are packed first, as words of two numbers that follow each other along the depth:
//! as far as the plan and the tiles go, they are then operands of f32 with half the depth.

use super::drive::{self, Operand, Room, Shared, Target, run};
use super::tile::{GemmElement, GemmKernels};
use crate::simd::vectorized;

/// Numbers that one task packs.
pub(crate) const TASK: usize = 1 << 16;

thread_local! {
    static LEFT: Room = const { Room::new() };
    static RIGHT: Room = const { Room::new() };
}

/// As [`drive::product`], with operands rounded to bf16: by `pairs`, or by the kernels of f32.
///
/// # Safety
///
/// As [`drive::product`].
pub(super) unsafe fn product(
    pairs: Option<&'static GemmKernels<f32>>,
    alpha: f32,
    a: Operand<f32>,
    b: Operand<f32>,
    target: Target<'_, f32>,
) {
    // A single row or column is a matter of memory, not of multiplications.
    let pairs = pairs.filter(|_| a.rows > 1 && b.cols > 1);
    let parallel = target.parallel;
    let depth = if pairs.is_some() { a.cols.div_ceil(2) } else { a.cols };
    let kernels = pairs.unwrap_or_else(f32::current);
    LEFT.with(|left| {
        left.with(a.rows * depth, |left: *mut f32| {
            RIGHT.with(|right| {
                right.with(depth * b.cols, |right: *mut f32| {
                    let lines = |m: Operand<f32>| Lines { paired: pairs.is_some(), ..m.into() };
                    // SAFETY: the caller's promise; the rooms are as large as what is packed.
                    unsafe {
                        let (line, step) = lines(a).pack(left, parallel);
                        let a = Operand {
                            data: left.cast_const(),
                            rows: a.rows,
                            cols: depth,
                            row: line,
                            col: step,
                        };
                        let (line, step) = lines(b.transposed()).pack(right, parallel);
                        let b = Operand {
                            data: right.cast_const(),
                            rows: depth,
                            cols: b.cols,
                            row: step,
                            col: line,
                        };
                        drive::product(kernels, alpha, a, b, target);
                    }
                })
            })
        })
    });
}

/// An operand as lines that run along the depth.
#[derive(Clone, Copy)]
struct Lines {
    data: *const f32,
    count: usize,
    depth: usize,
    /// Between one line and the next.
    line: usize,
    /// Between one step of the depth and the next.
    step: usize,
    paired: bool,
}

impl From<Operand<f32>> for Lines {
    fn from(m: Operand<f32>) -> Self {
        let Operand { data, rows: count, cols: depth, row: line, col: step } = m;
        Lines { data, count, depth, line, step, paired: false }
    }
}

// SAFETY: operands are only read.
unsafe impl Sync for Lines {}

impl Lines {
    /// Writes all lines, and says how far a line and a step of the depth are from the next.
    /// Contiguous operands stay so.
    ///
    /// # Safety
    ///
    /// The lines must be readable, and `to` writable for all that is packed.
    unsafe fn pack(self, to: *mut f32, parallel: bool) -> (usize, usize) {
        let steps = if self.paired { self.depth.div_ceil(2) } else { self.depth };
        let across = self.line == 1 && self.step != 1;
        let (outer, inner) = if across { (steps, self.count) } else { (self.count, steps) };
        let (to, group) = (Shared(to), (TASK / inner.max(1)).max(1));
        run(outer.div_ceil(group), parallel, |task| {
            for at in task * group..outer.min((task + 1) * group) {
                // SAFETY: the caller's promise; each task writes lines or steps of its own.
                unsafe {
                    let out = std::slice::from_raw_parts_mut(to.at(at * inner), inner);
                    match across {
                        true => self.across(at, out),
                        false => self.along(at, out),
                    }
                }
            }
        });
        if across { (1, inner) } else { (inner, 1) }
    }

    /// One step of the depth, or two as a pair, of all lines, which lie side by side.
    ///
    /// # Safety
    ///
    /// The numbers must be readable.
    unsafe fn across(&self, at: usize, out: &mut [f32]) {
        // SAFETY: the caller's promise.
        let row = |p: usize| unsafe {
            std::slice::from_raw_parts(self.data.add(p * self.step), self.count)
        };
        if !self.paired {
            return round(row(at), out);
        }
        let second = (2 * at + 1 < self.depth).then(|| row(2 * at + 1));
        // SAFETY: lines are paired where the processor has the instructions.
        unsafe { convert::rows(row(2 * at), second, out) }
    }

    /// One line.
    ///
    /// # Safety
    ///
    /// The numbers must be readable.
    unsafe fn along(&self, line: usize, out: &mut [f32]) {
        let from = self.data.wrapping_add(line * self.line);
        if self.step != 1 {
            // SAFETY: the caller's promise, for steps below the depth.
            let number = |p: usize| match p < self.depth {
                true => unsafe { *from.add(p * self.step) },
                false => 0.0,
            };
            for (p, out) in out.iter_mut().enumerate() {
                *out = match self.paired {
                    true => pair(number(2 * p), number(2 * p + 1)),
                    false => widened(number(p)),
                };
            }
            return;
        }
        // SAFETY: the caller's promise.
        let numbers = unsafe { std::slice::from_raw_parts(from, self.depth) };
        match self.paired {
            // SAFETY: as in `across`.
            true => unsafe { convert::line(numbers, out) },
            false => round(numbers, out),
        }
    }
}

/// The bits of the nearest bf16, to even if there are two; NaN stays NaN.
#[inline(always)]
fn nearest(x: f32) -> u32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    if x.is_nan() { bits >> 16 | 0x40 } else { rounded }
}

#[inline(always)]
fn widened(x: f32) -> f32 {
    f32::from_bits(nearest(x) << 16)
}

#[inline(always)]
fn pair(first: f32, second: f32) -> f32 {
    f32::from_bits(nearest(first) | nearest(second) << 16)
}

#[inline(always)]
fn round_body<const FMA: bool>(from: &[f32], out: &mut [f32]) {
    out.iter_mut().zip(from).for_each(|(out, x)| *out = widened(*x));
}

vectorized! { pub(crate) fn round(from: &[f32], out: &mut [f32]) = round_body }

/// Numbers as pairs of bf16, by the processor's own rounding, which takes subnormal numbers as
/// zero as its products do.
#[cfg(target_arch = "x86_64")]
pub(crate) mod convert {
    use std::arch::x86_64::{
        __m512, __m512bh, __m512i, _mm512_cvtne2ps_pbh, _mm512_loadu_ps, _mm512_mask_storeu_epi32,
        _mm512_maskz_loadu_ps, _mm512_permutexvar_epi16, _mm512_setzero_ps, _mm512_storeu_si512,
    };

    /// The numbers of both halves in turn.
    const IN_TURN: [u16; 32] = {
        let mut order = [0; 32];
        let mut i = 0;
        while i < 16 {
            (order[2 * i], order[2 * i + 1]) = (i as u16, 16 + i as u16);
            i += 1;
        }
        order
    };

    /// The first `lanes` of sixteen lanes.
    fn first(lanes: usize) -> u16 {
        if lanes >= 16 { u16::MAX } else { (1 << lanes) - 1 }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn rounded(high: __m512, low: __m512) -> __m512i {
        // SAFETY: 64 bytes either way.
        unsafe { std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low)) }
    }

    /// Each number of `a` with that of `b`, or with 0.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    pub fn rows(a: &[f32], b: Option<&[f32]>, out: &mut [f32]) {
        let n = a.len();
        assert!(out.len() == n && b.is_none_or(|b| b.len() == n));
        // SAFETY: all stays inside of slices of `n` numbers; the last lanes are masked.
        unsafe {
            let in_turn = std::mem::transmute::<[u16; 32], __m512i>(IN_TURN);
            for at in (0..n).step_by(16) {
                let mask = first(n - at);
                let low = _mm512_maskz_loadu_ps(mask, a.as_ptr().add(at));
                let high = match b {
                    Some(b) => _mm512_maskz_loadu_ps(mask, b.as_ptr().add(at)),
                    None => _mm512_setzero_ps(),
                };
                let pairs = _mm512_permutexvar_epi16(in_turn, rounded(high, low));
                _mm512_mask_storeu_epi32(out.as_mut_ptr().add(at).cast(), mask, pairs);
            }
        }
    }

    /// Each number with the next; the last one of an odd count with 0.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub fn line(numbers: &[f32], out: &mut [f32]) {
        let n = numbers.len();
        assert!(out.len() == n.div_ceil(2));
        let whole = n - n % 32;
        // SAFETY: as above.
        unsafe {
            let (from, to) = (numbers.as_ptr(), out.as_mut_ptr());
            for at in (0..whole).step_by(32) {
                let low = _mm512_loadu_ps(from.add(at));
                let high = _mm512_loadu_ps(from.add(at + 16));
                _mm512_storeu_si512(to.add(at / 2).cast(), rounded(high, low));
            }
            let rest = n - whole;
            if rest > 0 {
                let low = _mm512_maskz_loadu_ps(first(rest), from.add(whole));
                let mask = first(rest.saturating_sub(16));
                let high = _mm512_maskz_loadu_ps(mask, from.wrapping_add(whole + 16));
                let mask = first(rest.div_ceil(2));
                let to = to.add(whole / 2).cast();
                _mm512_mask_storeu_epi32(to, mask, rounded(high, low));
            }
        }
    }
}

/// Without kernels of pairs.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) mod convert {
    pub unsafe fn rows(_: &[f32], _: Option<&[f32]>, _: &mut [f32]) {
        unreachable!("no kernels take pairs here")
    }

    pub unsafe fn line(_: &[f32], _: &mut [f32]) {
        unreachable!("no kernels take pairs here")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tile::pairs;
    use super::super::{Batch, Finish, Mat, Plus, finished_bf16, products};
    use super::*;
    use crate::gemm::drive::Addend;
    use crate::threads::with_num_threads;
    use half::bf16;

    fn numbers(len: usize, seed: u64) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        };
        (0..len).map(|_| next()).collect()
    }

    /// The product of the operands rounded to bf16, in f64, and that of their sizes.
    fn expected(a: &Mat<'_, f32>, b: &Mat<'_, f32>, i: usize, j: usize) -> (f64, f64) {
        let at = |m: &Mat<'_, f32>, i: usize, j: usize| {
            bf16::from_f32(m.data[i * m.row_stride as usize + j * m.col_stride as usize]).to_f64()
        };
        let terms = (0..a.cols).map(|p| at(a, i, p) * at(b, p, j));
        terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs()))
    }

    fn check(what: &str, a: Mat<'_, f32>, b: Mat<'_, f32>) {
        for kernels in [pairs(), None] {
            let mut out = vec![f32::NAN; a.rows * b.cols];
            // SAFETY: `products` checks the operands.
            let one = |a: Operand<f32>, b: Operand<f32>, target: Target<'_, f32>| unsafe {
                product(kernels, -0.75, a, b, target)
            };
            products(one, (a, b), Batch::ONE, Addend::Nothing, None, &mut out);
            for (at, got) in out.iter().enumerate() {
                let (sum, size) = expected(&a, &b, at / b.cols, at % b.cols);
                let bound = (a.cols + 2) as f64 * f32::EPSILON as f64 * size;
                let off = (f64::from(*got) + 0.75 * sum).abs();
                assert!(off <= bound, "{what}: element {at} is {got}, not {}", -0.75 * sum);
            }
        }
    }

    #[test]
    fn products_are_those_of_rounded_operands() {
        const SIZES: [usize; 9] = [0, 1, 2, 7, 16, 17, 33, 64, 129];
        for (m, k, n) in SIZES
            .iter()
            .flat_map(|m| SIZES.iter().flat_map(move |k| SIZES.iter().map(move |n| (*m, *k, *n))))
        {
            let (a, b) = (numbers(2 * m * k + 1, 1), numbers(2 * k * n + 1, 2));
            let gaps = |data, rows, cols| Mat {
                data,
                rows,
                cols,
                row_stride: 2 * cols as isize,
                col_stride: 2,
            };
            let what = format!("{m}x{k}x{n}");
            check(&what, Mat::new(&a, m, k), Mat::new(&b, k, n));
            check(&what, Mat::new(&a, k, m).transposed(), Mat::new(&b, n, k).transposed());
            check(&what, gaps(&a, m, k / 2 + k % 2), Mat::new(&b, k / 2 + k % 2, n));
            check(
                &what,
                Mat::new(&a, m, k),
                Mat { row_stride: 1, col_stride: 0, ..gaps(&b, k, n) },
            );
        }
        let (a, b) = (numbers(150 * 1100, 3), numbers(1100 * 70, 4));
        check("deeper than a block", Mat::new(&a, 150, 1100), Mat::new(&b, 1100, 70));
    }

    /// Rounding as the `half` crate has it, for every upper half and the ties beside it.
    #[test]
    fn numbers_round_to_the_nearest_even() {
        for upper in 0..=u16::MAX {
            for lower in [0u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let x = f32::from_bits(u32::from(upper) << 16 | lower);
                assert_eq!(nearest(x), bf16::from_f32(x).to_bits().into(), "{x:e}");
            }
        }
    }

    /// The processor's rounding, over whole vectors and their ends.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn words_have_the_nearest_numbers() {
        if pairs().is_none() {
            return;
        }
        let halves = (0x80..=0x7f7fu32).flat_map(|upper| [upper, upper | 0x8000]);
        let all = halves.flat_map(|upper| {
            [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff].map(|lower| f32::from_bits(upper << 16 | lower))
        });
        let all: Vec<f32> = all.collect();
        let mut at = 0;
        for n in (0..70).cycle() {
            if at + 2 * n + 2 > all.len() {
                break;
            }
            let (first, second) = (&all[at..at + n], &all[at + n..at + 2 * n]);
            let mut out = vec![0.0; n];
            // SAFETY: the processor has the instructions.
            unsafe { convert::rows(first, Some(second), &mut out) };
            for ((out, x), y) in out.iter().zip(first).zip(second) {
                assert_eq!(out.to_bits(), pair(*x, *y).to_bits(), "{x:e} {y:e}");
            }
            // SAFETY: as above.
            unsafe { convert::rows(first, None, &mut out) };
            assert!(out.iter().zip(first).all(|(o, x)| o.to_bits() == pair(*x, 0.0).to_bits()));
            let mut out = vec![0.0; n.div_ceil(2)];
            // SAFETY: as above.
            unsafe { convert::line(first, &mut out) };
            for (out, x) in out.iter().zip(first.chunks(2)) {
                let wanted = pair(x[0], x.get(1).copied().unwrap_or(0.0));
                assert_eq!(out.to_bits(), wanted.to_bits(), "{x:?}");
            }
            at += 2 * n + 1;
        }
    }

    #[test]
    fn threads_change_no_bit_and_addends_and_batches_come_through() {
        let (m, k, n) = (97, 301, 230);
        let (a, b, row) = (numbers(3 * m * k, 5), numbers(k * n, 6), numbers(n, 7));
        let batch = Batch { sizes: &[3], a_strides: &[(m * k) as isize], b_strides: &[0] };
        let operands = (Mat::new(&a, m, k), Mat::new(&b, k, n));
        let run = |threads: usize| {
            with_num_threads(threads, || {
                let mut out = vec![f32::NAN; 3 * m * n];
                let double = |_: usize, at: *mut u8, count: usize| {
                    // SAFETY: stretches are apart and writable.
                    let all = unsafe { std::slice::from_raw_parts_mut(at.cast::<f32>(), count) };
                    all.iter_mut().for_each(|x| *x *= 2.0);
                };
                let finish: Option<Finish<'_>> = Some(&double);
                finished_bf16(1.0, operands, batch, Plus::Row(&row), finish, &mut out);
                out
            })
        };
        let out = run(1);
        assert!(run(4).iter().zip(&out).all(|(x, y)| x.to_bits() == y.to_bits()));
        for (at, got) in out.iter().enumerate() {
            let (product, j) = (at / (m * n), at % n);
            let a = Mat::new(&a[product * m * k..], m, k);
            let (sum, size) = expected(&a, &operands.1, at % (m * n) / n, j);
            let (sum, size) = (sum + f64::from(row[j]), size + f64::from(row[j].abs()));
            let bound = 2.0 * (k + 2) as f64 * f32::EPSILON as f64 * size;
            assert!((f64::from(*got) - 2.0 * sum).abs() <= bound, "{at}: {got} for {}", 2.0 * sum);
        }
    }

    #[test]
    fn nan_and_infinities_come_through() {
        for (bad, k) in [(f32::NAN, 5), (f32::INFINITY, 4), (f32::NEG_INFINITY, 7), (f32::MAX, 3)] {
            let mut a = vec![1.0f32; 3 * k];
            a[k + 1] = bad;
            let (b, mut out) = (vec![1.0f32; k * 2], vec![0.0f32; 6]);
            let operands = (Mat::new(&a, 3, k), Mat::new(&b, k, 2));
            finished_bf16(1.0, operands, Batch::ONE, Plus::Nothing, None, &mut out);
            let wanted = bf16::from_f32(bad).to_f32();
            assert_eq!((out[0], out[5]), (k as f32, k as f32));
            assert!(out[2] == wanted || (out[2].is_nan() && wanted.is_nan()), "{bad}: {out:?}");
        }
    }
}
