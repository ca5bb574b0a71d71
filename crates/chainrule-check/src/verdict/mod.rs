//! The verdict: which classic mistake turns the right gradient into the wrong one that was found.
//!
//! The right backward pass is walked once and kept. Then one mistake is planted at a time, in one
//! place at a time, and its effect is walked down to the tensors whose gradients were given. The
//! mistakes that give exactly the wrong numbers, and leave the right ones right, are the verdict.

pub(super) mod case;
mod clipped;
mod evidence;
mod explain;
mod fit;
mod meant;
#[cfg(test)]
mod named;
pub(super) mod numbers;
pub(super) mod other;
pub(super) mod reading;
mod repeated;
mod report;
mod search;
mod softmaxes;
pub mod tape;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_meant;
#[cfg(test)]
mod tests_repeated;

use crate::autograd::upstream;
use crate::error::Result;
use crate::tensor::Tensor;

use case::Case;
pub use evidence::{index_of, worst};
pub use explain::{explain, explain_numbers, explain_opaque};
pub use other::Deviation;
pub use reading::{BatchRatio, Reading, ratio_by_batch, read_numbers};
pub use report::{Diagnosis, SearchCost, Verdict, Wrong};
use search::{search, search_others};

/// Explains wrong gradients of a loss. `given` lists tensors behind it (parameters, intermediates,
/// or both) with the gradients that some other backward pass gave for them, at least one of which
/// is wrong.
///
/// `loss` is a single element with its tape (do not free it: call this before `backward`, or keep
/// the graph). Replayed are the classic mistakes of each op's own list and those that can be made
/// at any op: a wrong sign or factor, a mean or a slice or another axis where stretched axes must
/// be summed, a part of a gradient that overwrites the others, a gradient cut off by value. If
/// none of them gives the numbers alone, other edits of the right backward pass are tried, one and
/// two at a time: see [`Verdict::deviations`].
///
/// The more intermediates are given, the fewer places are suspected: with all of them there is one.
/// The cost is one backward pass, and for each mistake tried at most one walk from its place down;
/// [`Verdict::cost`] counts them. Hooks on tensors are called by every walk, and must be linear.
///
/// Errors for a constant, a gradient of another shape than its tensor, and a graph that was freed.
///
/// ```
/// use chainrule::{Tensor, check};
/// let w = Tensor::from([[1.0, -2.0], [0.5, 3.0]]).parameter().named("w");
/// let x = Tensor::from([[0.3, 0.7], [-0.2, 0.1], [0.9, -0.4]]);
/// let loss = x.matmul(&w).tanh().mean_all();
/// // A backward written by hand, which forgot that the loss is a mean of six.
/// let h = x.matmul(&w).tanh();
/// let wrong = x.t().matmul(&(1.0 - &h * &h));
///
/// let verdict = check::verdict(&loss, &[(&w, &wrong)])?;
/// assert_eq!(verdict.diagnoses()[0].op(), "mean");
/// assert_eq!(verdict.diagnoses()[0].mistake(), "missing 1/n");
/// println!("{verdict}");
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn verdict(loss: &Tensor, given: &[(&Tensor, &Tensor)]) -> Result<Verdict> {
    let upstream = upstream("verdict", loss, None)?;
    explain_given(Case::new(&[(loss, upstream)], given)?, true)
}

/// As [`verdict`], for an output of any shape and the gradient that reaches it from above.
///
/// ```
/// use chainrule::{Tensor, check};
/// let a = Tensor::from([1.0, 2.0, 3.0]).parameter();
/// let (y, g) = (a.exp(), Tensor::from([0.5, -1.0, 2.0]));
/// let verdict = check::verdict_with(&y, &g, &[(&a, &g)])?;
/// assert_eq!(verdict.diagnoses()[0].mistake(), "factor forgotten");
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn verdict_with(
    output: &Tensor,
    cotangent: &Tensor,
    given: &[(&Tensor, &Tensor)],
) -> Result<Verdict> {
    let upstream = upstream("verdict", output, Some(cotangent.clone()))?;
    explain_given(Case::new(&[(output, upstream)], given)?, true)
}

/// The verdict; with `others`, also candidates beyond the classic mistakes.
fn explain_given(mut case: Case, others: bool) -> Result<Verdict> {
    let also = others;
    let (mut suspects, mut effort) = Default::default();
    let mut others = Vec::new();
    if case.first_wrong().is_some() && case.can_be_told() {
        (suspects, effort) = search(&mut case)?;
        if suspects.is_empty() && case.cut() {
            // A path that carries nothing in the right pass may carry something once a mistake is
            // made.
            let again = search(&mut case)?;
            suspects = again.0;
            effort.replays += again.1.replays;
        }
        if suspects.is_empty() && also {
            others = search_others(&mut case, &mut effort)?;
        }
    }
    Ok(Verdict::write(&case, &suspects, others, effort))
}
