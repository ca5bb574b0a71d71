//! Sums over numbers for statistics, in f64, each in one pass over what is in the first cache.

use super::math::Real;
use super::simd::vectorized;

/// Sums that are kept side by side: two registers of the widest vectors for each kind, so that an
/// addition does not wait for the one before.
const LANES: usize = 16;

/// Sums over numbers; `sum` or `squares` is not finite where one of them is not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// The sum.
    pub sum: f64,
    /// The sum of squares.
    pub squares: f64,
    /// The largest size.
    pub largest: f64,
    /// Number of exact zeros.
    pub zeros: u64,
}

/// Moments in the making.
#[derive(Default)]
struct Lanes {
    sum: [f64; LANES],
    squares: [f64; LANES],
    largest: [f64; LANES],
    zeros: [u64; LANES],
}

impl Lanes {
    #[inline(always)]
    fn add(&mut self, lane: usize, x: f64) {
        let size = x.abs();
        self.sum[lane] += x;
        self.squares[lane] += x * x;
        self.largest[lane] = if size > self.largest[lane] { size } else { self.largest[lane] };
        self.zeros[lane] += u64::from(x == 0.0);
    }

    #[inline(always)]
    fn total(&self) -> Moments {
        Moments {
            sum: self.sum.iter().sum(),
            squares: self.squares.iter().sum(),
            largest: self.largest.iter().fold(0.0, |most, x| if *x > most { *x } else { most }),
            zeros: self.zeros.iter().sum(),
        }
    }
}

#[inline(always)]
fn moments_body<const FMA: bool, T: Real>(x: &[T]) -> Moments {
    let mut lanes = Lanes::default();
    let (whole, rest) = x.as_chunks::<LANES>();
    for few in whole {
        for (lane, x) in few.iter().enumerate() {
            lanes.add(lane, x.to_f64());
        }
    }
    for (lane, x) in rest.iter().enumerate() {
        lanes.add(lane, x.to_f64());
    }
    lanes.total()
}

vectorized! {
    /// The moments of numbers.
    pub fn moments[T](x: &[T]) -> Moments where [T: Real] = moments_body
}

#[inline(always)]
fn dot_body<const FMA: bool, T: Real>(a: &[T], b: &[T]) -> f64 {
    let mut sum = [0.0; LANES];
    let ((whole, rest), (of_b, rest_of_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in whole.iter().zip(of_b) {
        for lane in 0..LANES {
            sum[lane] += a[lane].to_f64() * b[lane].to_f64();
        }
    }
    for (lane, (a, b)) in rest.iter().zip(rest_of_b).enumerate() {
        sum[lane] += a.to_f64() * b.to_f64();
    }
    sum.iter().sum()
}

vectorized! {
    /// The sum of products of two lists of one length.
    pub fn dot[T](a: &[T], b: &[T]) -> f64 where [T: Real] = dot_body
}

#[inline(always)]
fn change_body<const FMA: bool, T: Real>(from: &[T], to: &[T], along: &[T]) -> (Moments, f64) {
    let mut lanes = Lanes::default();
    let mut products = [0.0; LANES];
    let (from, to) = (from.as_chunks::<LANES>(), to.as_chunks::<LANES>());
    let along = along.as_chunks::<LANES>();
    for ((from, to), along) in from.0.iter().zip(to.0).zip(along.0) {
        for lane in 0..LANES {
            let moved = to[lane].to_f64() - from[lane].to_f64();
            lanes.add(lane, moved);
            products[lane] += moved * along[lane].to_f64();
        }
    }
    for (lane, ((from, to), along)) in from.1.iter().zip(to.1).zip(along.1).enumerate() {
        let moved = to.to_f64() - from.to_f64();
        lanes.add(lane, moved);
        products[lane] += moved * along.to_f64();
    }
    (lanes.total(), products.iter().sum())
}

vectorized! {
    /// The moments of `to - from`, and the sum of its products with `along`; all are of one length.
    pub fn change[T](from: &[T], to: &[T], along: &[T]) -> (Moments, f64)
        where [T: Real] = change_body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919) % 101) as f32 / 8.0 - 5.0).collect()
    }

    #[test]
    fn sums_are_those_of_a_plain_loop() {
        for n in [0, 1, 15, 16, 17, 100, 515] {
            let x = numbers(n);
            let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
            let plain = Moments {
                sum: wide.iter().sum(),
                squares: wide.iter().map(|x| x * x).sum(),
                largest: wide.iter().fold(0.0, |most, x| most.max(x.abs())),
                zeros: wide.iter().filter(|x| **x == 0.0).count() as u64,
            };
            // Eighths and their squares have no rounding.
            assert_eq!((moments(&x), moments(&wide)), (plain, plain));
        }
    }

    #[test]
    fn a_change_is_seen_with_its_direction() {
        let (from, to, along) =
            (numbers(43), numbers(60)[17..].to_vec(), numbers(77)[34..].to_vec());
        let moved: Vec<f32> = from.iter().zip(&to).map(|(a, b)| b - a).collect();
        let (seen, product) = change(&from, &to, &along);
        assert_eq!(seen, moments(&moved));
        assert_eq!(product, dot(&moved, &along));
        assert_eq!(dot(&from, &from), moments(&from).squares);
    }

    #[test]
    fn numbers_that_are_not_finite_show() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = numbers(30);
            x[11] = bad;
            let seen = moments(&x);
            assert!(!(seen.sum.is_finite() && seen.squares.is_finite()), "{bad}");
        }
    }
}
