//! Conversions to and from the dtypes that are only stored.
//!
//! Elements go through one of three types that hold every number of their kind, a chunk at a time:
//! signed integers through i64, u64 by itself, floats through f64. So a dtype costs one loop to
//! read it and three to write it, not one for each pair, and every conversion rounds once.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::map::{PIECE, SHARED};
use super::threads;
use crate::dtype::DType;

/// Elements per chunk: the intermediate values stay in the cache.
const CHUNK: usize = 1024;

/// Converts all elements of `x`, the bytes of dtype `from`, to those of dtype `to`.
///
/// A float becomes an integer by truncation, and what i64 holds of it wraps around to the target's
/// width (NaN gives 0). A number becomes true unless it is 0. Integers wrap around; floats are
/// rounded to the nearest, ties to even.
pub fn cast(from: DType, x: &[u8], to: DType, out: &mut [u8]) {
    let n = out.len() / to.size();
    assert_eq!(x.len(), n * from.size(), "as many elements on both sides");
    let pieces = x.chunks(PIECE * from.size()).zip(out.chunks_mut(PIECE * to.size()));
    threads::for_each(n >= SHARED, pieces, |(x, out)| piece(from, x, to, out));
}

fn piece(from: DType, x: &[u8], to: DType, out: &mut [u8]) {
    use bytemuck::{cast_slice, cast_slice_mut};
    match (from, to) {
        _ if from == to => out.copy_from_slice(x),
        (DType::F16, DType::F32) => {
            cast_slice::<_, f16>(x).convert_to_f32_slice(cast_slice_mut(out))
        }
        (DType::BF16, DType::F32) => {
            cast_slice::<_, bf16>(x).convert_to_f32_slice(cast_slice_mut(out))
        }
        (DType::F32, DType::F16) => {
            cast_slice_mut::<_, f16>(out).convert_from_f32_slice(cast_slice(x))
        }
        (DType::F32, DType::BF16) => {
            cast_slice_mut::<_, bf16>(out).convert_from_f32_slice(cast_slice(x))
        }
        (DType::U64, _) => through::<u64>(from, x, to, out),
        _ if from.is_float() => through::<f64>(from, x, to, out),
        _ => through::<i64>(from, x, to, out),
    }
}

fn through<M: Middle>(from: DType, x: &[u8], to: DType, out: &mut [u8]) {
    let mut middle = [M::default(); CHUNK];
    for (x, out) in x.chunks(CHUNK * from.size()).zip(out.chunks_mut(CHUNK * to.size())) {
        let middle = &mut middle[..x.len() / from.size()];
        M::read(from, x, middle);
        M::write(middle, to, out);
    }
}

/// A type that holds every number of its kind.
trait Middle: Copy + Default {
    /// From bytes of a dtype of the kind.
    fn read(from: DType, x: &[u8], out: &mut [Self]);
    /// To bytes of any dtype.
    fn write(x: &[Self], to: DType, out: &mut [u8]);
}

fn map<A: Copy, B>(x: &[A], out: &mut [B], f: impl Fn(A) -> B) {
    out.iter_mut().zip(x).for_each(|(o, &x)| *o = f(x));
}

macro_rules! middle {
    ($middle:ty; read $($from:ident: |$f:ident: $stored:ty| $read:expr),+;
     write |$x:ident| $integer:expr, $unsigned:expr, $half:expr) => {
        impl Middle for $middle {
            fn read(from: DType, x: &[u8], out: &mut [Self]) {
                match from {
                    $(DType::$from => map(bytemuck::cast_slice(x), out, |$f: $stored| $read),)+
                    _ => unreachable!("{from} is of another kind"),
                }
            }

            fn write(x: &[Self], to: DType, out: &mut [u8]) {
                use bytemuck::cast_slice_mut as all;
                match to {
                    DType::Bool => map(x, out, |x| u8::from(x != <$middle>::default())),
                    DType::U8 => map(x, out, |$x| $integer as u8),
                    DType::I8 => map(x, all(out), |$x| $integer as i8),
                    DType::U16 => map(x, all(out), |$x| $integer as u16),
                    DType::I16 => map(x, all(out), |$x| $integer as i16),
                    DType::U32 => map(x, all(out), |$x| $integer as u32),
                    DType::I32 => map(x, all(out), |$x| $integer as i32),
                    DType::I64 => map(x, all(out), |$x| $integer),
                    DType::U64 => map(x, all(out), |$x| $unsigned),
                    DType::F16 => map(x, all(out), |$x| f16::from_f32(to_odd($half))),
                    DType::BF16 => map(x, all(out), |$x| bf16::from_f32(to_odd($half))),
                    DType::F32 => map(x, all(out), |$x| $x as f32),
                    DType::F64 => map(x, all(out), |$x| $x as f64),
                }
            }
        }
    };
}

middle! {
    i64;
    read Bool: |x: u8| x as i64, U8: |x: u8| x as i64, I8: |x: i8| x as i64, U16: |x: u16| x as i64,
        I16: |x: i16| x as i64, U32: |x: u32| x as i64, I32: |x: i32| x as i64, I64: |x: i64| x;
    write |x| x, x as u64,
        (if x.unsigned_abs() < EXACT { x } else { sticky(x) }) as f64
}
middle! {
    u64;
    read U64: |x: u64| x;
    write |x| x as i64, x,
        if x < EXACT { x as f64 } else { sticky((x >> 1 | x & 1) as i64) as f64 * 2.0 }
}
middle! {
    f64;
    read F16: |x: f16| x.to_f64(), BF16: |x: bf16| x.to_f64(), F32: |x: f32| x as f64,
        F64: |x: f64| x;
    write |x| x as i64, if x < 0.0 { x as i64 as u64 } else { x as u64 }, x
}

/// Below this every integer is an f64.
const EXACT: u64 = 1 << 53;

/// Sets one sticky bit for all low bits of a large integer: too low for a half to hold, it is
/// enough to round correctly, and the result is exact in f64.
fn sticky(x: i64) -> i64 {
    const LOW: i64 = 0xffff;
    x & !LOW | i64::from(x & LOW != 0) << 15
}

/// Rounds to f32 so that a second rounding, to a half, gives the same result as rounding once
/// (round to odd).
fn to_odd(x: f64) -> f32 {
    let near = x as f32;
    if near as f64 == x || x.is_nan() || near.to_bits() & 1 == 1 {
        return near;
    }
    if near as f64 > x { near.next_down() } else { near.next_up() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to<A: bytemuck::Pod, B: bytemuck::Pod>(from: DType, x: &[A], to: DType) -> Vec<B> {
        let mut out = vec![B::zeroed(); x.len()];
        cast(from, bytemuck::cast_slice(x), to, bytemuck::cast_slice_mut(&mut out));
        out
    }

    #[test]
    fn integers_wrap_around() {
        let x = [-1i64, 255, 256, 300, -129, i64::MAX, i64::MIN, 1 << 40];
        assert_eq!(to::<_, u8>(DType::I64, &x, DType::U8), x.map(|x| x as u8));
        assert_eq!(to::<_, i8>(DType::I64, &x, DType::I8), x.map(|x| x as i8));
        assert_eq!(to::<_, i32>(DType::I64, &x, DType::I32), x.map(|x| x as i32));
        assert_eq!(to::<_, u64>(DType::I64, &x, DType::U64), x.map(|x| x as u64));
        assert_eq!(
            to::<_, i16>(DType::F64, &[70000.9f64, -1.5, f64::NAN], DType::I16),
            [4464, -1, 0]
        );
        assert_eq!(to::<_, u8>(DType::F16, &[f16::from_f32(-1.5)], DType::U8), [255]);
    }

    #[test]
    fn u64_keeps_its_upper_half() {
        let x = [u64::MAX, 1 << 63, 7];
        assert_eq!(to::<_, f64>(DType::U64, &x, DType::F64), x.map(|x| x as f64));
        assert_eq!(
            to::<_, u64>(DType::F64, &[1.8e19f64, -1.0], DType::U64),
            [18000000000000000000, u64::MAX]
        );
    }

    /// Rounding to f32 first would land on a tie between two halves and send each of these to the
    /// wrong one.
    #[test]
    fn halves_are_rounded_once() {
        let tie = 1.0 + 2f64.powi(-11);
        let x = [
            tie,
            tie + 2f64.powi(-40),
            tie - 2f64.powi(-40),
            -tie - 2f64.powi(-40),
            65519.9,
            65520.0,
            1e300,
        ];
        let want = [
            1.0,
            1.0 + 2f64.powi(-10),
            1.0,
            -1.0 - 2f64.powi(-10),
            65504.0,
            f64::INFINITY,
            f64::INFINITY,
        ];
        let got = to::<_, f16>(DType::F64, &x, DType::F16);
        assert_eq!(got.iter().map(|x| x.to_f64()).collect::<Vec<_>>(), want);
        let tie = (1i64 << 62) + (1 << 54);
        let got = to::<_, bf16>(DType::I64, &[tie, tie + 1, tie - 1, -tie - 1], DType::BF16);
        let (low, high) = ((1i64 << 62) as f64, ((1i64 << 62) + (1 << 55)) as f64);
        assert_eq!(got.iter().map(|x| x.to_f64()).collect::<Vec<_>>(), [low, high, low, -high]);
    }

    #[test]
    fn every_pair_agrees_with_the_way_by_f64_at_odd_sizes() {
        for n in [0usize, 1, 7, 1023, 1025, 40_001] {
            let x: Vec<i64> = (0..n as i64).map(|i| i % 100).collect();
            for from in DType::ALL {
                let mut start = vec![0u64; n];
                let start: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut start)[..n * from.size()];
                cast(DType::I64, bytemuck::cast_slice(&x), from, start);
                for via in DType::ALL {
                    let mut middle = vec![0u64; n];
                    let middle: &mut [u8] =
                        &mut bytemuck::cast_slice_mut(&mut middle)[..n * via.size()];
                    cast(from, start, via, middle);
                    let back: Vec<i64> = to_i64(via, middle);
                    let want = |x: i64| {
                        if [from, via].contains(&DType::Bool) { (x != 0) as i64 } else { x }
                    };
                    assert!(x.iter().map(|&x| want(x)).eq(back), "{from} to {via}");
                }
            }
        }
    }

    fn to_i64(from: DType, x: &[u8]) -> Vec<i64> {
        let mut out = vec![0i64; x.len() / from.size()];
        cast(from, x, DType::I64, bytemuck::cast_slice_mut(&mut out));
        out
    }
}
