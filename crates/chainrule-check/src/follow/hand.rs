//! Hand-written gradients compared together with the code that computes them.

use std::collections::HashMap;
use std::sync::Arc;

use super::WORK;
use super::known::{Known, forward_values, names};
use super::replay::{Change, Replay, takes};
use super::report::Writer;
use super::search::{Goal, Point, Search};
use crate::autograd::upstream;
use crate::compare::{ByHand, Comparison, compare};
use crate::error::Result;
use crate::program::{Id, Origin, Program};
use crate::tensor::node::Mode;
use crate::tensor::{Tensor, no_grad};
use crate::verdict::numbers::{Closeness, largest};
use crate::verdict::tape::RecordedPass;

/// As [`compare`], for gradients that `code` computes: where one is wrong,
/// [`Comparison::corrections`] has the line of `code` in which the mistake is, and what it should
/// be.
///
/// The ops of `code` are recorded while it runs once, and replayed with one of them edited, or two,
/// until all gradients are right. The code takes the values of the forward pass from its own
/// tensors, as they are; it may not read elements (`item`, `to_vec`), or its gradients are compared
/// and no line is named.
///
/// ```
/// use chainrule::{Tensor, check};
/// let w = Tensor::from([[0.5f64, -1.0], [2.0, 0.25], [0.1, 0.7]]).parameter().named("w");
/// let x = Tensor::from([[1.0f64, 2.0, -1.0], [0.5, -0.3, 2.0]]);
/// let z = x.matmul(&w).named("z");
/// let h = z.tanh().named("h");
/// let loss = h.square().sum_all();
/// let report = check::compare_code(&loss, || {
///     let dh = 2.0 * h.detach();
///     let dz = &dh * (1.0 - h.detach()); // of the square of h
///     let dw = x.t().matmul(&dz);
///     Ok(vec![("h", dh), ("z", dz), ("w", dw)])
/// })?;
/// assert_eq!(report.first_wrong().unwrap().name, "z");
/// assert_eq!(report.corrections().len(), 1, "{report}");
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn compare_code<C: Into<ByHand>>(
    loss: &Tensor,
    code: impl FnOnce() -> Result<Vec<C>>,
) -> Result<Comparison> {
    let upstream = upstream("compare_code", loss, None)?;
    let mut claims: Vec<ByHand> = Vec::new();
    let traced = no_grad(|| {
        let keep = &mut claims;
        Program::trace([], move |_| {
            keep.extend(code()?.into_iter().map(Into::into));
            Ok(keep.iter().map(|c| c.gradient().clone()).collect())
        })
    });
    if claims.is_empty() {
        traced?;
        return compare(loss, claims);
    }
    let mut report = compare(loss, claims.clone())?;
    let Ok(mut replay) = traced.and_then(Replay::new) else { return Ok(report) };
    if report.passed() {
        return Ok(report);
    }
    // A claim that cannot be compared has no gradient to search with.
    let targets: Option<Vec<Tensor>> = claims.iter().map(|c| c.on_tape(loss)).collect();
    let Some(targets) = targets else { return Ok(report) };
    if targets.iter().zip(&claims).any(|(t, c)| t.shape() != c.gradient().shape()) {
        return Ok(report);
    }
    let _guard = Mode::get().with(Mode::NO_GRAD).enter();
    let tape = RecordedPass::record(&[(loss, upstream)], &targets)?;
    let due: Vec<Vec<f64>> = targets
        .iter()
        .map(|t| match tape.gradients.get(&t.source().number()) {
            Some(g) => g.to_f64_vec(),
            None => vec![0.0; t.numel()],
        })
        .collect();
    let all = due.iter().map(|g| largest(g)).fold(0.0, f64::max);
    let known = Known::of(&tape);
    let run = replay.run(&[])?;
    replay.donate(&tape, &run);
    let ranks = known.ranks(&replay, &run);
    let count = replay.program.list().len();
    let names = bound(&replay, &tape);
    let takes = takes(&replay, &names);
    let close = Closeness::of(loss.dtype(), all);
    let points = vec![Point { run, due }];
    let goal = Goal { points, close, ranks, open: vec![true; count], takes, work: WORK };
    let found = Search::new(&replay, &goal, Some(&known)).run();
    let hits = if found.alone.is_empty() { &found.together[..] } else { &found.alone[..1] };
    let writer = Writer { replay: &replay, run: &goal.points[0].run, known: &known, names };
    let is_whole = !found.alone.is_empty() || found.is_whole;
    let changes: Vec<Change> = hits.iter().map(|h| h.change.clone()).collect();
    let error = is_whole.then(|| replay.error(&goal.points[0], &changes));
    report.correct(hits.iter().map(|h| writer.correction(h)).collect(), error);
    Ok(report)
}

/// The names of values of the forward pass that the code takes.
fn bound(replay: &Replay, tape: &RecordedPass) -> HashMap<Id, String> {
    let own = names(&tape.nodes);
    let values: HashMap<_, String> = forward_values(tape, &own)
        .into_iter()
        .filter(|(words, _)| words.starts_with('`'))
        .map(|(words, value)| (Arc::as_ptr(&value), words.replace('`', "")))
        .collect();
    let ids = (0..replay.program.infos().len() as u32).map(Id);
    ids.filter_map(|id| match &replay.program.infos()[id.index()].from {
        Origin::Constant(value) => Some((id, values.get(&Arc::as_ptr(value))?.clone())),
        _ => None,
    })
    .collect()
}
