//! Checks of gradients by paths that do not share code with the backward pass.
//!
//! - [`dot_product`] compares reverse mode with forward mode, whose rules are written
//!   independently, at random probes.
//! - [`richardson`] differentiates any function of f64 tensors by differences alone, with an
//!   estimate of its own error, and sees kinks.
//! - [`gradcheck()`] compares all three for every output by every input, at first and second order,
//!   and finds the wrong element.
//! - [`ops()`] runs it on every op of the table, with views and stretched inputs.
//! - [`verdict()`] says which classic mistake made a gradient wrong, and in which op.
//! - [`compare()`] puts a hand-written backward pass beside autograd's, at every intermediate that
//!   you name.
//! - [`invariants`] are laws that right gradients obey, without a second way of computing them;
//!   [`Invariants`] checks them in training.
//! - [`Workflow`] watches a training loop and names the mistakes in it.
//! - [`backward()`] follows the backward of a custom op line by line and says which line is wrong
//!   and what it should be; [`compare_code`] does so for gradients that some code computes.
//! - [`explain`] is the verdict on a custom op, [`explain_opaque`] reads the numbers of any
//!   function, [`read_numbers`] those of two tensors.
//!
//! Checks of functions run in f64. Probes are Gaussian: almost every direction reveals an error of
//! a gradient, since a random one is not orthogonal to it.
//!
//! ```
//! use chainrule::{Tensor, check};
//! let w = Tensor::from([[1.0, -2.0], [0.5, 3.0]]);
//! let report = check::gradcheck(|x| (&x[0] * &x[0]).tanh(), &[w]).run()?;
//! assert!(report.passed(), "{report}");
//! # Ok::<(), chainrule::Error>(())
//! ```

#![deny(missing_docs)]
#![forbid(unsafe_code)]

use chainrule_core::{autograd, dtype, error, param, rng, shape, tensor};
use chainrule_nn::{nn, optim};
use chainrule_program as program;

#[doc(hidden)]
pub mod catalogue;
#[cfg(test)]
mod check_names;
pub mod compare;
mod dot_product;
#[cfg(test)]
mod every_op;
mod explicit;
mod extrapolate;
mod follow;
mod gradcheck;
pub mod invariants;
pub mod ops;
mod richardson;
mod rounding;
#[cfg(test)]
mod tests;
#[doc(hidden)]
pub mod verdict;
pub mod workflow;

pub use compare::{Comparison, compare};
pub use dot_product::{DotProduct, dot_product};
pub use explicit::gradcheck_explicit;
pub use follow::{Correction, Followed, backward, compare_code};
pub use gradcheck::{
    Blame, Break, BrokenLaw, Directional, GradCheck, GradChecker, Judgement, Kink, Law, NotFinite,
    Outcome, Outputs, PairCheck, Problem, Slot, Split, Worst, gradcheck,
};
pub use invariants::Invariants;
pub use ops::{op, ops};
pub use richardson::{Difference, richardson};
pub use verdict::{
    BatchRatio, Deviation, Diagnosis, Reading, SearchCost, Verdict, Wrong, explain,
    explain_numbers, explain_opaque, ratio_by_batch, read_numbers, verdict, verdict_with,
};
pub use workflow::{Finding, Mistake, Workflow};

use crate::error::{Error, Result};
use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_core::{DType, Shape};

/// An error unless all inputs are f64 tensors.
fn require_f64(op: &'static str, inputs: &[Tensor]) -> Result<()> {
    match inputs.iter().find(|x| x.dtype() != DType::F64) {
        None => Ok(()),
        Some(x) => Err(Error::dtype(
            op,
            &[x.dtype()],
            "the inputs must be f64; convert floats with to_dtype, and let the function capture integers",
        )),
    }
}

/// Gaussian numbers of a shape, in a float dtype.
fn probe(shape: Shape, dtype: DType, generator: &mut Generator) -> Result<Tensor> {
    Tensor::try_randn(shape, DType::F64, generator)?.try_to_dtype(dtype)
}

/// The inner product of two tensors of as many elements, and the sum of the magnitudes of its
/// terms: what rounding goes by.
#[doc(hidden)]
pub fn inner(a: &Tensor, b: &Tensor) -> (f64, f64) {
    let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
    let terms = a.iter().zip(&b).map(|(x, y)| x * y);
    terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
}
