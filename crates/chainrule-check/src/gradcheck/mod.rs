//! The gradient of a function, checked by paths that share no code with the backward pass.

mod beside;
mod differences;
mod far;
mod kinks;
mod laws;
mod level;
mod localise;
mod noise;
mod outputs;
mod pair;
mod precision;
mod problems;
mod products;
mod report;
mod survey;
mod tape;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_laws;
mod wild;

pub use kinks::{Break, Kink};
pub use laws::{BrokenLaw, Law, Split};
pub use outputs::Outputs;
pub use problems::Problem;
pub use report::{
    Blame, Directional, GradCheck, Judgement, NotFinite, Outcome, PairCheck, Slot, Worst,
};

use std::cell::Cell;

use level::Level;
use precision::DOUBLE;
use tape::is_float;

use crate::autograd::functional::pull_back_all;
use crate::error::{Error, Result};
use crate::tensor::{Tensor, no_grad};
use chainrule_core::DType;

/// A check of the derivatives of a function, to be [run](GradChecker::run). Made by [`gradcheck`].
#[must_use = "nothing is checked before run()"]
pub struct GradChecker<'a> {
    f: Box<tape::Function<'a>>,
    inputs: Vec<Tensor>,
    order: usize,
    first_seed: u64,
    seeds: u64,
    tolerance: f64,
}

/// Checks the gradients of `f` with respect to every float input.
///
/// `f` may return one tensor or several, or a `Result` of them. Inputs that are not floats are
/// passed on as they are.
///
/// # Method
///
/// Let `J` be the Jacobian of an output by an input, and `u` and `v` Gaussian numbers. Three values
/// must agree:
///
/// - `<J^T v, u>` by reverse mode: what is checked;
/// - `<v, J u>` by forward mode, whose rules are written independently. Both are right to about
///   1e-15, and must agree to [`tolerance`](GradChecker::tolerance), 1e-9 unless told otherwise;
/// - the same by [differences](super::richardson()) along `u`, right to about 1e-9 and compared to
///   1e-7. They tell which of the modes is wrong if those disagree, and see what both get wrong,
///   such as a part of the function that is cut off from the tape. For a [custom
///   op](crate::autograd::custom()), whose forward rule is made from its backward, they alone
///   count.
///
/// Each input has a probe of its own, so that a large gradient of one cannot hide a small one of
/// another. An error is measured against the root of the sum of the squares of the products
/// `g_j u_j`. It does not grow with the rounding that a plain sum of their magnitudes allows for:
/// among `n` elements of about the same size, one that is off by a relative 1e-9 `sqrt(n)` is seen,
/// which is a millionth for a million elements.
///
/// A disagreement of the modes of no more than 64 times what a change of the inputs and probes in
/// their last bits does to them is rounding, and passes.
///
/// Differences judge only where they could have shown a mistake: what they allow for must be less
/// than a sixteenth of the derivative. If they drown in rounding, and no independent forward mode
/// is there, the outcome is [`Outcome::Uncertain`], which does not pass. A derivative that is zero,
/// or nothing but rounding, is measured by the value over the input instead.
///
/// # Laws
///
/// Every backward rule gives the same numbers each time and is linear in the cotangent. It is run
/// twice again with the same cotangent, with zeros, with multiples of -1, 2, 1024 and their like,
/// and with the cotangent taken apart by sign, into ones and the rest, and by element. A rule that
/// does not is reported as a [`BrokenLaw`], and is wrong.
///
/// # Beside the point
///
/// All this is done once more at a point beside the given one, at which no element is zero, one, or
/// equal to another: a gradient that is right at a special point alone is wrong. It is left out
/// where the function cannot be evaluated beside the point.
///
/// # Far from the point
///
/// Bounds, gates and thresholds may lie where none of the inputs is. So inputs with elements of
/// both signs are also drawn anew, 4 and 20 times as large as they are on average; inputs of fewer
/// than 24 elements several times, until 24 of each were placed. The look is one derivative along a
/// direction of all inputs at once, beside its differences. Only if they disagree along two such
/// directions, the check is done there for each input, and an error counts if it is 256 times what
/// the last bits of the inputs do to the gradient there. Inputs of one sign stay: they may be
/// probabilities or sizes. A point at which the function fails, is not finite or drowns in rounding
/// is left out, and [`GradCheck::notes`] says so.
///
/// # Narrow arithmetic
///
/// Values or gradients whose bits show that they come from f32, float16 or bfloat16 are checked
/// within the rounding of that type, and the report says so.
///
/// # Kinks
///
/// The function is also recorded on both sides of the point, and each op on the tape is compared
/// with itself there, element by element: a value that jumps, a slope that is another one, an
/// operand computed off the tape that changes. These places are [`Kink`]s, and the outcome is
/// [`Outcome::Kink`]; so it is if differences meet one beside the point.
///
/// # Cost
///
/// Two recorded calls of `f` at the point and two on its sides; on the tapes, for each seed, one
/// backward pass for each output and one forward pass for each input, and 17 backward passes for
/// each output for the laws; three plain calls to measure rounding, and 10 to 22 for the
/// differences along each input (10 more where those are not sure). Nearly the same again beside
/// the point, and as for one input at each of two points far from it; if an input has fewer than 24
/// elements, `n`, also five calls and a backward pass of each output at `24 / n - 1` more points of
/// each kind. Else this does not depend on how many elements there are. Only to find the wrong
/// element of a wrong gradient, parts of the probe are tried: three if it is the only one, else
/// about `log2(n)`. The report says how many calls and passes there were.
///
/// ```
/// use chainrule::{Tensor, check::gradcheck};
/// let (a, b) = (Tensor::from([[1.0, 2.0]]), Tensor::from([[0.5], [-1.5]]));
/// let report = gradcheck(|x| x[0].matmul(&x[1]).tanh(), &[a, b]).order(2).run()?;
/// assert!(report.passed(), "{report}");
/// # Ok::<(), chainrule::Error>(())
/// ```
///
/// A wrong gradient is reported with its worst element:
///
/// ```
/// use chainrule::check::{Blame, Outcome, gradcheck};
/// use chainrule::{Tensor, autograd::custom};
/// let square = custom(
///     "square",
///     |x| x[0].try_mul(&x[0]),
///     |ctx, g| Ok(vec![Some(g.try_mul(&ctx.inputs()[0])?)]), // the factor 2 is missing
/// );
/// let report = gradcheck(|x| square.apply(&[&x[0]]), &[Tensor::from([3.0])]).run()?;
/// assert_eq!(report.pairs[0].outcome, Outcome::Wrong(Blame::Reverse));
/// let worst = report.pairs[0].worst.as_ref().unwrap();
/// assert_eq!((worst.difference / worst.reverse).round(), 2.0);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn gradcheck<'a, F, O>(f: F, inputs: &[Tensor]) -> GradChecker<'a>
where
    F: Fn(&[Tensor]) -> O + 'a,
    O: Outputs,
{
    GradChecker {
        f: Box::new(move |x| f(x).into_tensors()),
        inputs: inputs.to_vec(),
        order: 1,
        first_seed: 1,
        seeds: 3,
        tolerance: GradCheck::TOLERANCE,
    }
}

impl GradCheck {
    /// The largest relative error against forward mode that passes, unless
    /// [`GradChecker::tolerance`] says otherwise.
    pub const TOLERANCE: f64 = 1e-9;
}

impl GradChecker<'_> {
    /// 1 to check gradients, the default; 2 to check also those of the gradients, by the inputs and
    /// by the cotangents.
    pub fn order(mut self, order: usize) -> Self {
        self.order = order;
        self
    }

    /// Number of probes; 3 by default, and 1 at least. Differences are taken along the first of
    /// them.
    pub fn seeds(mut self, seeds: u64) -> Self {
        self.seeds = seeds.max(1);
        self
    }

    /// The seed of the first probe; the others are those that follow. The same seeds give the same
    /// report.
    pub fn first_seed(mut self, seed: u64) -> Self {
        self.first_seed = seed;
        self
    }

    /// The largest relative error of reverse against forward mode that passes; 1e-9 by default.
    /// Against differences it is 1e-7 at least.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Runs the check.
    ///
    /// Errors of `f` come up, and so do those of a backward rule, such as a gradient of a wrong
    /// shape or a missing one; they name the op. A panic of `f` is not caught.
    pub fn run(self) -> Result<GradCheck> {
        if !(1..=2).contains(&self.order) {
            let why = format!("order {} cannot be checked; 1 and 2 can", self.order);
            return Err(Error::argument("gradcheck", why));
        }
        let inputs: Vec<Tensor> = self.inputs.iter().map(widened).collect::<Result<_>>()?;
        let first = Level {
            order: 1,
            f: self.f.as_ref(),
            input_slots: (0..inputs.len()).map(Slot::Input).collect(),
            output_slot: Slot::Output,
            inputs,
            first_seed: self.first_seed,
            seeds: self.seeds,
            tolerance: self.tolerance,
            given: None,
            coarsest: Cell::new(DOUBLE),
            lawless: false,
            drawn: Default::default(),
        };
        let mut found = first.thorough()?;
        if self.order == 2 && found.problems.is_empty() {
            let second = self.second(&first.inputs)?;
            found.pairs.extend(second.pairs);
            found.problems.extend(second.problems);
            found.notes.extend(second.notes);
            found.calls += second.calls;
            found.passes += second.passes;
        }
        Ok(GradCheck {
            pairs: found.pairs,
            problems: found.problems,
            notes: found.notes,
            tolerance: self.tolerance,
            calls: found.calls,
            passes: found.passes,
        })
    }

    /// The gradients as a function of the inputs and the cotangents, checked in the same way.
    fn second(&self, inputs: &[Tensor]) -> Result<level::OrderReport> {
        let outputs = no_grad(|| (self.f)(inputs))?;
        let generator = &mut chainrule_core::Generator::manual_seed(self.first_seed ^ 0x5eed);
        let (mut all, mut slots) = (inputs.to_vec(), Vec::new());
        slots.extend((0..inputs.len()).map(Slot::Input));
        for (o, y) in outputs.iter().enumerate().filter(|(_, y)| is_float(y)) {
            all.push(Tensor::try_randn(y.shape(), y.dtype(), generator)?);
            slots.push(Slot::Cotangent(o));
        }
        let n = inputs.len();
        let gradients = |z: &[Tensor]| -> Result<Vec<Tensor>> {
            let (x, mut v) = (&z[..n], z[n..].iter());
            let cotangents: Vec<Option<Tensor>> = outputs
                .iter()
                .map(|y| if is_float(y) { v.next().cloned() } else { None })
                .collect();
            let found = pull_back_all(|x| (self.f)(x), x, &cotangents)?;
            // An input that is no float stands for its gradient, so that the numbering stays.
            Ok(found.into_iter().zip(x).map(|(g, x)| g.unwrap_or_else(|| x.clone())).collect())
        };
        let second = Level {
            order: 2,
            f: &gradients,
            inputs: all,
            input_slots: slots,
            output_slot: Slot::Gradient,
            first_seed: self.first_seed,
            seeds: self.seeds,
            tolerance: self.tolerance,
            given: None,
            coarsest: Cell::new(DOUBLE),
            lawless: false,
            drawn: Default::default(),
        };
        second.thorough()
    }
}

/// A float input as a constant in f64, in which everything is checked.
fn widened(x: &Tensor) -> Result<Tensor> {
    if is_float(x) { x.detach().try_to_dtype(DType::F64) } else { Ok(x.detach()) }
}
