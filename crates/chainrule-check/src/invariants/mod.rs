//! Laws that right gradients obey whatever the numbers are, testable without a second way of
//! computing them.
//!
//! Each law is a function of tensors that returns an [`InvariantReport`]: how far apart the two
//! sides are, and how far apart rounding may put them. The bound is proportional to the size of the
//! terms before they cancel, so that a law holds for f32 and f64 alike, for large inputs and for
//! gradients of nearly 0.
//!
//! - [`cross_entropy_rows`]: a row of the gradient with respect to logits sums to 0. Precondition:
//!   the targets of the row are probabilities.
//! - [`row_maximum`]: the gradient of the subtracted row maximum is 0. Precondition: the loss is
//!   one of softmax, which a shift of the row does not change.
//! - [`Norm::sums`]: the gradient into a norm sums to 0 over the axes it normalises. For batch and
//!   layer norm.
//! - [`Norm::products`]: its product with the normalised values is `s eps / (v + eps)` times that
//!   of the incoming gradient. For batch, layer and RMS norm.
//! - [`Norm::bias`]: a bias before batch norm gets no gradient. Precondition: nothing but the norm
//!   takes the sum.
//! - [`Norm::weight`]: the gradient of a weight before a norm is orthogonal to it, up to eps.
//!   Precondition: nothing but the norm takes the product.
//! - [`parts`]: gradients of a batch are the weighted sum of its parts'. Precondition: no batch
//!   statistics, no dropout.
//!
//! ```
//! use chainrule::check::invariants::{Norm, cross_entropy_rows};
//! use chainrule::{DType, Generator, Tensor};
//!
//! let g = &mut Generator::manual_seed(1);
//! let x = Tensor::randn([8, 3], DType::F32, g).parameter();
//! let h = x.batch_norm(None, None, 1e-5, 0).retain_grad();
//! let logits = (&h * &h).retain_grad();
//! let loss = logits.cross_entropy(&Tensor::from(vec![0i64, 1, 2, 0, 1, 2, 0, 1]));
//! loss.backward();
//!
//! // Each row's loss has the gradient 1/8.
//! let rows = cross_entropy_rows(&logits.try_grad()?, &Tensor::scalar(1.0f32 / 8.0))?;
//! assert!(rows.holds(), "{rows}");
//! let norm = Norm::batch(&x).eps(1e-5);
//! let sums = norm.sums(&h.try_grad()?, &x.try_grad()?)?;
//! assert!(sums.holds(), "{sums}");
//! // A gradient without the path through the mean does not obey.
//! let wrong = h.try_grad()? / x.var(0, 0, true).sqrt();
//! assert!(!norm.sums(&h.try_grad()?, &wrong)?.holds());
//! # Ok::<(), chainrule::Error>(())
//! ```
//!
//! [`Invariants`] looks at a whole backward pass: it finds the ops that have a law and checks them
//! all, in one line of a training loop.

mod norm;
mod observer;
mod parts;
mod softmax;
#[cfg(test)]
mod tests;

pub use norm::{Before, Norm};
pub use observer::{Invariants, TestedInvariant};
pub use parts::{Combine, parts};
pub use softmax::{cross_entropy_rows, row_maximum};

use std::fmt;

use crate::error::{Error, Result};
use crate::tensor::Tensor;
use chainrule_core::DType;

/// A law of right gradients.
#[derive(Debug, PartialEq)]
pub struct Invariant {
    /// A short name.
    pub name: &'static str,
    /// The equation.
    pub formula: &'static str,
    /// When it holds.
    pub preconditions: &'static str,
}

/// A law put to the test.
#[derive(Clone, Debug)]
pub struct InvariantReport {
    /// The law.
    pub law: &'static Invariant,
    /// Distance of the two sides, at the worst place.
    pub value: f64,
    /// Bound of the distance there, for rounding.
    pub bound: f64,
    /// The worst place: the number of the row, column or tensor.
    pub place: usize,
    /// At how many places the law was tested.
    pub places: usize,
}

impl InvariantReport {
    /// Whether the law holds at all places. It does not hold of NaN.
    pub fn holds(&self) -> bool {
        self.value <= self.bound
    }

    /// Report from the distance of the sides and its bound at each place.
    fn of(
        law: &'static Invariant,
        places: impl IntoIterator<Item = (f64, f64)>,
    ) -> InvariantReport {
        let mut worst = InvariantReport { law, value: 0.0, bound: 0.0, place: 0, places: 0 };
        let mut most = f64::NEG_INFINITY;
        for (place, (value, bound)) in places.into_iter().enumerate() {
            worst.places += 1;
            let over =
                if value <= bound { value / bound.max(f64::MIN_POSITIVE) } else { f64::INFINITY };
            if over > most {
                most = over;
                worst = InvariantReport { value, bound, place, ..worst };
            }
        }
        worst
    }
}

impl fmt::Display for InvariantReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, than) =
            if self.holds() { ("holds", "at most") } else { ("is broken", "more than") };
        write!(f, "{}: {verb}. The sides of {} ", self.law.name, self.law.formula)?;
        write!(f, "are {:.3e} apart at place {} of {}, ", self.value, self.place, self.places)?;
        write!(f, "{than} the {:.3e} of rounding", self.bound)?;
        if !self.holds() {
            write!(f, " (the law needs: {})", self.law.preconditions)?;
        }
        Ok(())
    }
}

/// Rounding of a sum whose terms' magnitudes add up to `terms`, in steps of this dtype, over sums
/// of `n`: `c` units of rounding, plus a share of the square root of `n`, to which errors of random
/// sign add up.
fn rounding(dtype: DType, c: f64, n: usize, terms: f64) -> f64 {
    let (unit, least) = match dtype {
        DType::F64 => (f64::EPSILON, f64::MIN_POSITIVE),
        _ => (f32::EPSILON as f64, f32::MIN_POSITIVE as f64),
    };
    (c + (n as f64).sqrt() / 4.0) * unit * terms + n as f64 * least
}

/// An error unless two shapes are the same.
fn same_shape(op: &'static str, what: &str, x: &Tensor, like: &Tensor) -> Result<()> {
    if x.shape() == like.shape() {
        return Ok(());
    }
    let why = format!("{what} must have the shape {}", like.shape());
    Err(Error::shape(op, &[&x.shape(), &like.shape()], why))
}

/// An error unless this is a float tensor.
fn floats(op: &'static str, x: &Tensor) -> Result<()> {
    match x.dtype().is_float() {
        true => Ok(()),
        false => Err(Error::dtype(op, &[x.dtype()], "gradients are f32 or f64")),
    }
}
