//! Two steps of arithmetic in one pass over memory.

use super::map::{Rows, ternary};
use super::math::Real;

/// The op of the first step, on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
}

/// The second step, on the result `r` of the first and a third number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// `r + c`
    Add,
    /// `r - c`
    Sub,
    /// `c - r`
    From,
    /// `r * c`
    Mul,
}

impl Then {
    /// The second step, `second(r, c)`, or `second(c, r)` if `swapped`.
    pub fn new(second: Arithmetic, swapped: bool) -> Then {
        match second {
            Arithmetic::Add => Then::Add,
            Arithmetic::Sub if swapped => Then::From,
            Arithmetic::Sub => Then::Sub,
            Arithmetic::Mul => Then::Mul,
        }
    }
}

/// `out[i, j] = then(first(a[i, j], b[i, j]), c[i, j])` for rows of `n` elements, each step rounded
/// as it is alone.
pub fn chain<T: Real>(
    first: Arithmetic,
    then: Then,
    rows: [&Rows<'_, T>; 3],
    n: usize,
    out: &mut [T],
) {
    macro_rules! with {
        ($first:expr) => {
            match then {
                Then::Add => ternary(rows, n, out, |a, b, c| $first(a, b) + c),
                Then::Sub => ternary(rows, n, out, |a, b, c| $first(a, b) - c),
                Then::From => ternary(rows, n, out, |a, b, c| c - $first(a, b)),
                Then::Mul => ternary(rows, n, out, |a, b, c| $first(a, b) * c),
            }
        };
    }
    match first {
        Arithmetic::Add => with!(|a, b| a + b),
        Arithmetic::Sub => with!(|a, b| a - b),
        Arithmetic::Mul => with!(|a, b| a * b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_steps_are_those_of_each_alone() {
        use Arithmetic::{Add, Mul, Sub};
        let step = |f, a: f32, b: f32| match f {
            Add => a + b,
            Sub => a - b,
            Mul => a * b,
        };
        for n in [1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 127, 128, 129, 300] {
            let rows = 3;
            let numbers = |k: usize| -> Vec<f32> {
                (0..rows * n).map(|i| ((i * 7 + k) % 101) as f32 * 0.37 - 11.0).collect()
            };
            let (a, b, c) = (numbers(1), numbers(5), numbers(9));
            let whole = |data| Rows { data, step: n, splat: false };
            let (row, one) =
                (Rows { step: 0, ..whole(&b) }, Rows { step: 1, splat: true, ..whole(&c) });
            for first in [Add, Sub, Mul] {
                for second in [Add, Sub, Mul] {
                    for swapped in [false, true] {
                        let mut out = vec![0.0; rows * n];
                        chain(
                            first,
                            Then::new(second, swapped),
                            [&whole(&a), &row, &one],
                            n,
                            &mut out,
                        );
                        for (at, &out) in out.iter().enumerate() {
                            let (r, c) = (step(first, a[at], b[at % n]), c[at / n]);
                            let want =
                                if swapped { step(second, c, r) } else { step(second, r, c) };
                            assert_eq!(out, want, "{first:?} {second:?} {swapped} {n}");
                        }
                    }
                }
            }
        }
    }
}
