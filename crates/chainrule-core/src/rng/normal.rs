//! Normal numbers from uniform ones, bit for bit as PyTorch's CPU kernels make them.
//!
//! Sixteen or more numbers are made in blocks of 16: the first eight uniforms give the radii, the
//! last eight the angles (Box and Muller). In f64 the block uses the system's `log`, `sin` and
//! `cos`. In f32 PyTorch runs AVX2 polynomials that differ from any system library in the last
//! bit, so [`log`] and [`sin_cos`] follow the same polynomials (S. Moshier's Cephes library, by
//! way of J. Pommier's vector version) with the same operations fused. `mul_add` rounds once
//! whether or not the machine can fuse, so that every machine yields the same bits.

use crate::kernels::simd::vectorized;

/// The numbers of a block.
pub(super) const BLOCK: usize = 16;

vectorized! {
    /// Turns blocks of uniform f32 into normal ones, in place.
    pub(super) fn blocks_f32(blocks: &mut [[f32; BLOCK]]) = blocks_f32_body
}

/// `FMA` only changes the time: operations that are fused stay fused.
#[inline(always)]
fn blocks_f32_body<const FMA: bool>(blocks: &mut [[f32; BLOCK]]) {
    // A closure would be compiled outside of the wrapper and lose the fused instruction.
    for block in blocks {
        block_f32(block);
    }
}

#[inline(always)]
fn block_f32(block: &mut [f32; BLOCK]) {
    let (first, last) = block.split_at_mut(BLOCK / 2);
    for (a, b) in first.iter_mut().zip(last) {
        // From [0, 1) to (0, 1], of which there is a logarithm.
        let radius = (-2.0 * log(1.0 - *a)).sqrt();
        let (sin, cos) = sin_cos(std::f32::consts::TAU * *b);
        // PyTorch adds the mean, 0: that makes 0 of -0.
        *a = radius * cos + 0.0;
        *b = radius * sin + 0.0;
    }
}

/// Turns blocks of uniform f64 into normal ones, in place.
pub(super) fn blocks_f64(blocks: &mut [[f64; BLOCK]]) {
    blocks.iter_mut().for_each(block_f64);
}

fn block_f64(block: &mut [f64; BLOCK]) {
    let (first, last) = block.split_at_mut(BLOCK / 2);
    for (a, b) in first.iter_mut().zip(last) {
        let radius = (-2.0 * (1.0 - *a).ln()).sqrt();
        let angle = std::f64::consts::TAU * *b;
        *a = radius * angle.cos() + 0.0;
        *b = radius * angle.sin() + 0.0;
    }
}

/// Two normal numbers from two uniform ones of [0, 1), as PyTorch makes them in tensors of fewer
/// than 16 elements: the angle comes first, then the radius.
pub(super) fn pair(angle: f64, radius: f64) -> (f64, f64) {
    let radius = (-2.0 * (-radius).ln_1p()).sqrt();
    let angle = std::f64::consts::TAU * angle;
    (radius * angle.cos() + 0.0, radius * angle.sin())
}

/// The natural logarithm of a normal `x > 0`.
#[inline(always)]
fn log(x: f32) -> f32 {
    // x = 2^e * m with m in [sqrt(1/2), sqrt(2)); then the series of log(1 + t), t = m - 1.
    let bits = x.to_bits();
    let half = f32::from_bits(bits & 0x007f_ffff | 0x3f00_0000);
    let small = half < std::f32::consts::FRAC_1_SQRT_2;
    let e = ((bits >> 23) as i32 - 126 - i32::from(small)) as f32;
    let t = (half - 1.0) + if small { half } else { 0.0 };
    let t2 = t * t;
    let mut y = 7.037_683_6e-2;
    for coefficient in [
        -1.151_461e-1,
        1.167_699_87e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_7e-1,
        2.000_071_4e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ] {
        y = t.mul_add(y, coefficient);
    }
    y *= t;
    // ln 2 in two parts, of which the greater has so few bits that its product with e is exact.
    y = y.mul_add(t2, e * -2.121_944_4e-4);
    y = t2.mul_add(-0.5, y);
    e.mul_add(355.0 / 512.0, t + y)
}

/// The sine and the cosine of `0 <= x <= 2 pi`.
#[inline(always)]
fn sin_cos(x: f32) -> (f32, f32) {
    // The nearest even multiple of pi/4, subtracted in three parts.
    let octant = ((x * (4.0 / std::f32::consts::PI)) as i32 + 1) & !1;
    let y = octant as f32;
    let mut x = y.mul_add(-0.785_156_25, x);
    x = y.mul_add(-2.418_756_5e-4, x);
    x = y.mul_add(-3.774_895e-8, x);

    let x2 = x * x;
    let mut c: f32 = 2.443_315_7e-5;
    c = c.mul_add(x2, -1.388_731_6e-3);
    c = c.mul_add(x2, 4.166_664_6e-2) * x2;
    c = c.mul_add(x2, -(x2 * 0.5)) + 1.0;
    let mut s: f32 = -1.951_529_6e-4;
    s = s.mul_add(x2, 8.332_161e-3);
    s = s.mul_add(x2, -1.666_665_5e-1) * x2;
    s = s.mul_add(x, x);

    let (sin, cos) = if octant & 2 == 0 { (s, c) } else { (c, s) };
    let sin_sign = (octant as u32 & 4) << 29;
    let cos_sign = (!(octant - 2) as u32 & 4) << 29;
    (f32::from_bits(sin.to_bits() ^ sin_sign), f32::from_bits(cos.to_bits() ^ cos_sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The polynomials against the system's f64 functions, over every uniform that they can meet
    /// at a coarse step: far from exact bits, but a wrong branch or sign cannot hide.
    #[test]
    fn polynomials_are_near_the_true_functions() {
        for k in (1..=1 << 24).step_by(101) {
            let u = k as f32 / 16_777_216.0;
            let exact = f64::from(u).ln();
            assert!((f64::from(log(u)) - exact).abs() <= 1.2e-7 * exact.abs().max(1e-7), "log {u}");
            let angle = std::f32::consts::TAU * (1.0 - u);
            let (sin, cos) = sin_cos(angle);
            let (exact_sin, exact_cos) = f64::from(angle).sin_cos();
            assert!((f64::from(sin) - exact_sin).abs() < 2e-7, "sin {angle}");
            assert!((f64::from(cos) - exact_cos).abs() < 2e-7, "cos {angle}");
        }
    }

    /// The instructions of this machine against plain code, at every number of blocks to 20.
    #[test]
    fn every_machine_makes_the_same_bits() {
        let uniform = |i: usize| (i.wrapping_mul(2_654_435_761) & 0xff_ffff) as f32 / 16_777_216.0;
        for count in 0..=20 {
            let from = |b: usize| std::array::from_fn(|i| uniform((count * 20 + b) * BLOCK + i));
            let mut here: Vec<[f32; BLOCK]> = (0..count).map(from).collect();
            let mut plain = here.clone();
            blocks_f32(&mut here);
            blocks_f32_body::<false>(&mut plain);
            let bits = |v: &[[f32; BLOCK]]| v.concat().into_iter().map(f32::to_bits).collect();
            let (here, plain): (Vec<u32>, Vec<u32>) = (bits(&here), bits(&plain));
            assert_eq!(here, plain, "{count} blocks");
        }
    }

    #[test]
    fn the_smallest_and_the_largest_uniforms_stay_finite() {
        let largest = 1.0 - f32::EPSILON / 2.0;
        for (u1, u2) in [(0.0, 0.0), (0.0, largest), (largest, 0.0), (largest, largest)] {
            let mut block = [u1; BLOCK];
            block[8..].fill(u2);
            blocks_f32(std::slice::from_mut(&mut block));
            assert!(block.iter().all(|v| v.is_finite() && v.abs() < 6.0), "{u1} {u2}: {block:?}");
            assert!(u1 != 0.0 || block.iter().all(|v| v.to_bits() == 0), "radius 0 gives +0");
        }
    }
}
