//! A backward pass that somebody wrote, followed op by op and compared by value with the right one.
//!
//! The ops that run inside it are recorded as a program. The program runs again with one
//! instruction edited, in every way in which one operand, op or number may have been written for
//! another; an edit after which every gradient is right, at several random points, is the
//! correction. Instructions whose operands are quantities of the right passes and whose result is
//! none are edited first.

mod edits;
mod expression;
mod hand;
mod known;
mod replay;
mod report;
mod search;
mod source;
#[cfg(test)]
mod tests;
mod walk;

pub use hand::compare_code;
pub(crate) use report::write_corrections;
pub use report::{Correction, Followed};
pub(crate) use walk::{Edited, edited};

use std::collections::HashSet;
use std::sync::Arc;

use super::probe;
use super::verdict::numbers::{Closeness, largest};
use super::verdict::tape::RecordedPass;
use crate::autograd::{CustomFn, CustomOp, custom_context};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::program::Program;
use crate::rng::Generator;
use crate::tensor::value::Value;
use crate::tensor::watch::Watching;
use crate::tensor::{Tensor, no_grad};
use known::Known;
use replay::{Change, Replay, takes};
use report::Writer;
use search::{Goal, Point, Search};

/// The most work of a search, in the units of [`replay::Replay::spent`]: about a second on an idle
/// machine. Since it is counted, a busy machine searches as far.
pub(crate) const WORK: u64 = 1_000_000_000;

/// Whether the backward of a custom op gives the gradients of what its forward computes, at
/// `inputs` and near them; if not, the line of the mistake and what it should be.
///
/// The forward runs with its ops recorded, and autograd differentiates it: those are the right
/// gradients. The ops of the backward are recorded too, and edited one at a time, and where one is
/// not enough two: another operand, a transposition, another axis, a factor (which is told with its
/// origin in the sizes), a number, an op or a term too many or too few. Every printed correction
/// has been run, at three points. Inputs in f32 are taken in f64; integers stay.
///
/// Errors if the forward cannot be differentiated (it leaves the ops of the engine), and as forward
/// and backward do. A backward that reads elements (`to_vec`, `item`) cannot be followed: it is
/// judged, and no line is named.
///
/// ```
/// use chainrule::{Tensor, autograd, check};
/// let layer = autograd::custom(
///     "layer",
///     |x| x[0].try_matmul(&x[1])?.try_tanh(),
///     |ctx, dy| {
///         let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);
///         let dz = dy * (1.0 - ctx.output().square());
///         let dw = x.t().matmul(dy); // of dz
///         Ok(vec![Some(dz.matmul(&w.t())), Some(dw)])
///     },
/// );
/// let x = Tensor::from([[0.3, 0.7], [-0.2, 0.1], [0.9, -0.4]]);
/// let w = Tensor::from([[1.0, -2.0, 0.3, 0.2], [0.5, 3.0, -0.4, 1.0]]);
/// let found = check::backward(&layer, &[x, w])?;
/// assert_eq!(found.wrong(), ["input 1"]);
/// assert_eq!(found.corrections().len(), 1, "{found}");
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn backward(op: &CustomFn, inputs: &[Tensor]) -> Result<Followed> {
    follow_custom(op.inner(), inputs)
}

/// As [`backward`], for any custom op.
pub(crate) fn follow_custom(op: &dyn CustomOp, inputs: &[Tensor]) -> Result<Followed> {
    let graded: Vec<bool> = inputs.iter().map(|x| x.dtype().is_float()).collect();
    let wide: Vec<Tensor> = inputs.iter().map(double).collect::<Result<_>>()?;
    let points = |inputs: &[Tensor]| -> Result<Vec<Right>> {
        [1, 2, 0].into_iter().map(|seed| Right::at(op, &moved(inputs, seed)?, seed)).collect()
    };
    // A forward that has tensors of its own may run in the given dtype only.
    let (points, dtype) = match points(&wide) {
        Ok(points) => (points, DType::F64),
        Err(_) if inputs.iter().any(|x| x.dtype() == DType::F32) => (points(inputs)?, DType::F32),
        Err(e) => return Err(e),
    };
    let all = points.iter().flat_map(|p| &p.due).map(|g| largest(g)).fold(0.0, f64::max);
    let close = Closeness::of(dtype, all);
    let names: Vec<String> = (0..inputs.len())
        .filter(|i| graded[*i])
        .map(|i| inputs[i].name().map_or(format!("input {i}"), |n| format!("`{n}`")))
        .collect();
    let mut wrong = vec![false; names.len()];
    for p in &points {
        for (i, g) in p.given(op, &graded)?.iter().enumerate() {
            wrong[i] |= !close.same(&p.due[i], g);
        }
    }
    let mut followed = Followed {
        given: names.len(),
        wrong: names.iter().zip(&wrong).filter(|(_, w)| **w).map(|(n, _)| n.clone()).collect(),
        corrections: Vec::new(),
        is_whole: false,
        error: 0.0,
    };
    if followed.is_right() {
        return Ok(followed);
    }
    // A backward that reads elements or draws numbers cannot be followed: only its gradients are
    // judged.
    let Ok(mut replay) = points[0].recorded(op, &graded).and_then(Replay::new) else {
        return Ok(followed);
    };
    correct(&mut replay, points, close, &mut followed)?;
    Ok(followed)
}

fn correct(
    replay: &mut Replay,
    points: Vec<Right>,
    close: Closeness,
    followed: &mut Followed,
) -> Result<()> {
    let _guard = crate::tensor::node::Mode::get().with(crate::tensor::node::Mode::NO_GRAD).enter();
    let known = Known::of(&points[0].tape);
    let run = replay.run(&points[0].arguments)?;
    replay.donate(&points[0].tape, &run);
    let replay = &*replay;
    let mut at = Vec::new();
    for p in points {
        at.push(Point { run: replay.run(&p.arguments)?, due: p.due });
    }
    let ranks = known.ranks(replay, &at[0].run);
    let count = replay.program.list().len();
    let names = source::of_arguments(replay);
    let takes = takes(replay, &names);
    let goal = Goal { points: at, close, ranks, open: vec![true; count], takes, work: WORK };
    let found = Search::new(replay, &goal, Some(&known)).run();
    let writer = Writer { replay, run: &goal.points[0].run, known: &known, names };
    let hits = if found.alone.is_empty() { &found.together[..] } else { &found.alone[..1] };
    followed.corrections = hits.iter().map(|h| writer.correction(h)).collect();
    followed.is_whole = !found.alone.is_empty() || found.is_whole;
    let changes: Vec<Change> = hits.iter().map(|h| h.change.clone()).collect();
    followed.error = goal.points.iter().map(|p| replay.error(p, &changes)).fold(0.0, f64::max);
    Ok(())
}

fn double(x: &Tensor) -> Result<Tensor> {
    match x.dtype().is_float() {
        true => {
            let wide = x.detach().try_to_dtype(DType::F64)?;
            Ok(x.name().map_or(wide.clone(), |name| wide.named(&name)))
        }
        false => Ok(x.detach()),
    }
}

/// Inputs near the given ones, with the same signs, so that they are in the function's domain if
/// those are.
fn moved(inputs: &[Tensor], seed: u64) -> Result<Vec<Tensor>> {
    let generator = &mut Generator::manual_seed(seed);
    let mut out = Vec::new();
    for x in inputs {
        if seed == 0 || !x.dtype().is_float() {
            out.push(x.clone());
            continue;
        }
        let elements = x.to_f64_vec();
        let mean = elements.iter().map(|x| x.abs()).sum::<f64>() / elements.len().max(1) as f64;
        let draw = probe(x.shape(), DType::F64, generator)?.to_f64_vec();
        let other = |(x, z): (&f64, &f64)| match *x == 0.0 {
            true => 0.3 * mean * z,
            false => x * (1.0 + 0.3 * z.clamp(-2.0, 2.0)),
        };
        let new: Vec<f64> = elements.iter().zip(&draw).map(other).collect();
        out.push(Tensor::try_from_slice(&new, x.shape())?.try_to_dtype(x.dtype())?);
    }
    Ok(out)
}

/// The right gradients of a custom op at one point, and the arguments of its backward.
struct Right {
    /// Inputs, result, and the gradient of the result.
    arguments: Vec<Tensor>,
    due: Vec<Vec<f64>>,
    tape: RecordedPass,
}

impl Right {
    fn at(op: &dyn CustomOp, inputs: &[Tensor], seed: u64) -> Result<Right> {
        let leaves: Vec<Tensor> = inputs
            .iter()
            .map(|x| if x.dtype().is_float() { x.detach().try_parameter() } else { Ok(x.clone()) })
            .collect::<Result<_>>()?;
        for (leaf, x) in leaves.iter().zip(inputs) {
            if let (Some(name), true) = (x.name(), x.dtype().is_float()) {
                leaf.clone().named(&name);
            }
        }
        let output = op.forward(&leaves)?;
        if !output.requires_grad() {
            let why = format!(
                "the forward of `{}` does not go through the engine's ops, or takes no floats, so autograd has no gradients to compare with",
                op.name()
            );
            return Err(Error::gradient("backward", why));
        }
        let upstream =
            probe(output.shape(), output.dtype(), &mut Generator::manual_seed(seed + 9))?;
        let floats: Vec<Tensor> = leaves.iter().filter(|x| x.dtype().is_float()).cloned().collect();
        let tape = RecordedPass::record(&[(&output, upstream.clone())], &floats)?;
        let due = floats
            .iter()
            .map(|x| match tape.gradients.get(&x.source().number()) {
                Some(g) => g.to_f64_vec(),
                None => vec![0.0; x.numel()],
            })
            .collect();
        let mut arguments: Vec<Tensor> = inputs.iter().map(Tensor::detach).collect();
        arguments.push(output.detach());
        arguments.push(upstream);
        Ok(Right { arguments, due, tape })
    }

    /// The gradients that the backward gives for the floats, of `arguments` in the order of
    /// `self.arguments`.
    fn call(op: &dyn CustomOp, arguments: &[Tensor], graded: &[bool]) -> Result<Vec<Tensor>> {
        let n = graded.len();
        let context = custom_context(&arguments[..n], &arguments[n], graded);
        let found = op.backward(&context, &arguments[n + 1])?;
        let mut out = Vec::new();
        for i in (0..n).filter(|i| graded[*i]) {
            let x = &arguments[i];
            let g = match found.get(i).cloned().flatten() {
                Some(g) => g,
                None => Tensor::try_full(x.shape(), 0.0, DType::F64)?,
            };
            if g.shape() != x.shape() {
                let why = format!(
                    "its backward gave a gradient of shape {} for input {i}, which is {}; they must be the same (sum over axes that were broadcast)",
                    g.shape(),
                    x.shape()
                );
                return Err(Error::gradient("backward", why));
            }
            out.push(g.try_to_dtype(DType::F64)?);
        }
        Ok(out)
    }

    fn given(&self, op: &dyn CustomOp, graded: &[bool]) -> Result<Vec<Vec<f64>>> {
        let found = no_grad(|| Right::call(op, &self.arguments, graded))?;
        Ok(found.iter().map(Tensor::to_f64_vec).collect())
    }

    /// The ops of the backward as a program of its arguments.
    fn recorded(&self, op: &dyn CustomOp, graded: &[bool]) -> Result<Program> {
        let names: Vec<String> = (0..graded.len())
            .map(|i| format!("input_{i}"))
            .chain(["output".to_string(), "cotangent".to_string()])
            .collect();
        let arguments = names.iter().map(String::as_str).zip(&self.arguments);
        // A backward that reads elements cannot be traced, and would panic there.
        let watching = Watching::start();
        no_grad(|| Right::call(op, &self.arguments, graded))?;
        let seen = watching.take();
        drop(watching);
        let made = seen.ran.iter().flat_map(|r| &r.outputs).map(Arc::as_ptr);
        let own: HashSet<*const Value> =
            made.chain(self.arguments.iter().map(|x| Arc::as_ptr(&x.value()))).collect();
        if seen.read.keys().any(|read| own.contains(read)) {
            return Err(Error::argument("backward", "it reads elements"));
        }
        no_grad(|| Program::trace(arguments, |x| Right::call(op, x, graded)))
    }
}
