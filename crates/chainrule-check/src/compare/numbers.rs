//! Distance of two gradients of one tensor.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Tolerance within which two numbers count as approximately equal: `|a - b| <= atol + rtol * |b|`,
/// with `b` the one of autograd.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// The part proportional to the number.
    pub rtol: f64,
    /// The constant part: a difference below it counts as zero.
    pub atol: f64,
}

impl Default for Tolerance {
    /// `rtol` 1e-5, as in `torch.allclose`, and no `atol`: a gradient is judged by its own size,
    /// even if that is 1e-18.
    fn default() -> Self {
        Tolerance { rtol: 1e-5, atol: 0.0 }
    }
}

/// Largest distance of two right gradients, in units in the last place of each element.
const UNITS: f64 = 8.0;

/// Two gradients of one tensor, compared element by element.
#[derive(Clone, Debug, PartialEq)]
pub struct Discrepancy {
    /// Whether all elements are equal: the same bits, but that -0 equals 0. A NaN equals nothing.
    pub exact: bool,
    /// Whether all elements are equal within the [`Tolerance`].
    pub approximate: bool,
    /// The largest `|a - b|`. NaN if there is a NaN on one side.
    pub largest: f64,
    /// Index of that element.
    pub at: Vec<usize>,
    /// The element there in the hand-written gradient.
    pub by_hand: f64,
    /// The element there in autograd's.
    pub autograd: f64,
    /// The mean of `|a - b| / (|a| + |b| + 1e-11)`.
    pub mean_relative: f64,
    /// Whether each element is off by no more than a few units in its last place.
    pub(super) rounding_only: bool,
}

impl Discrepancy {
    /// Compares a hand-written gradient with that of autograd. An error if their shapes differ.
    ///
    /// ```
    /// use chainrule::{Tensor, check::compare::{Discrepancy, Tolerance}};
    /// let (a, b) = (Tensor::from([1.0, 2.5]), Tensor::from([1.0, 2.0]));
    /// let found = Discrepancy::between(&a, &b, Tolerance::default())?;
    /// assert!(!found.exact && !found.approximate);
    /// assert_eq!((found.largest, found.at, found.by_hand), (0.5, vec![1], 2.5));
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn between(by_hand: &Tensor, autograd: &Tensor, within: Tolerance) -> Result<Discrepancy> {
        let shape = by_hand.shape();
        if shape != autograd.shape() {
            let why = "the hand-written gradient and that of autograd must have the same shape";
            return Err(Error::shape("compare", &[&shape, &autograd.shape()], why));
        }
        let unit = unit(by_hand.dtype()).max(unit(autograd.dtype()));
        let (by_hand, autograd) = (by_hand.to_f64_vec(), autograd.to_f64_vec());
        let mut found = Self::of(&by_hand, &autograd, &shape, within);
        let near = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= UNITS * unit * b.abs();
        found.rounding_only = found.exact || by_hand.iter().zip(&autograd).all(near);
        Ok(found)
    }

    fn of(by_hand: &[f64], autograd: &[f64], shape: &Shape, within: Tolerance) -> Discrepancy {
        let (mut exact, mut approximate) = (true, true);
        let (mut largest, mut at, mut relative) = (0.0f64, 0, 0.0);
        for (i, (&a, &b)) in by_hand.iter().zip(autograd).enumerate() {
            // Equal infinities have no distance, though their difference is NaN.
            let apart = if a == b { 0.0 } else { (a - b).abs() };
            exact &= a == b;
            approximate &=
                apart <= within.atol + within.rtol * b.abs() && (a == b || apart.is_finite());
            relative += if a == b { 0.0 } else { apart / (a.abs() + b.abs() + 1e-11) };
            if apart > largest || (apart.is_nan() && !largest.is_nan()) {
                (largest, at) = (apart, i);
            }
        }
        let pick = |of: &[f64]| of.get(at).copied().unwrap_or(0.0);
        Discrepancy {
            exact,
            approximate,
            largest,
            at: index_of(at, shape),
            by_hand: pick(by_hand),
            autograd: pick(autograd),
            mean_relative: relative / by_hand.len().max(1) as f64,
            rounding_only: exact,
        }
    }
}

/// The distance from 1 to the next number of a float type.
pub(crate) fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::EPSILON),
        DType::BF16 => 1.0 / f64::from(1 << 7),
        DType::F16 => 1.0 / f64::from(1 << 10),
        _ => f64::EPSILON,
    }
}

/// Index of element `position` of a row-major array.
pub(crate) fn index_of(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (place, &size) in index.iter_mut().zip(shape).rev() {
        *place = position % size.max(1);
        position /= size.max(1);
    }
    index
}
