//! A hand-written backward pass beside autograd's: [`compare`](compare()) and what it gives.

mod claim;
mod numbers;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use numbers::{index_of, unit};

use std::collections::{HashMap, HashSet};

pub use super::rounding::Use;
pub use claim::{ByHand, Incomparable};
pub use numbers::{Discrepancy, Tolerance};

use super::follow::Correction;
use super::rounding::{LossGraph, Noise};
use super::verdict::{Verdict, verdict_with};
use crate::autograd::upstream;
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Report of [`compare`]: a row for each hand-written gradient. `Display` writes it as a table.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// In the order in which the backward pass completes the gradients; gradients that could not be
    /// found on the tape are at the end.
    pub rows: Vec<ComparisonRow>,
    corrections: Vec<Correction>,
    /// Error of the gradients once the corrections are made, if these make all of them right.
    error: Option<f64>,
    verdict: Option<Verdict>,
}

/// One hand-written gradient beside that of autograd.
#[derive(Clone, Debug)]
pub struct ComparisonRow {
    /// The name that the gradient was given with.
    pub name: String,
    /// The shape of the tensor, if it was found.
    pub shape: Option<Shape>,
    /// Distance of the gradient from that of autograd, or the reason why the two could not be
    /// compared.
    pub outcome: Result<Discrepancy, Incomparable>,
    /// Whether it is right, and if not, where the fault lies.
    pub standing: Standing,
    /// The compared tensors whose gradients this one is computed from, with no compared tensor
    /// between.
    pub made_from: Vec<String>,
    /// The ops that use the tensor: their rules make its gradient. The last one called comes first.
    pub uses: Vec<Use>,
}

/// Whether a hand-written gradient is right.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Standing {
    /// It equals that of autograd within the tolerance.
    Right,
    /// Some elements miss the tolerance by rounding alone. Either they are off by no more than a
    /// change of every number of the backward pass in its last bits moves them; or the gradient is
    /// exactly what the chain rule makes of the hand-written gradients above it, which are right to
    /// the last digits, and most of it cancels.
    Rounding,
    /// It is wrong, and all that it is computed from is right: the mistake is here.
    First,
    /// It is wrong, and so is something that it is computed from; but that does not explain it,
    /// since the chain rule turns those wrong gradients into another one. There is one more mistake
    /// here.
    AlsoWrong,
    /// It follows by the chain rule from the wrong gradients above it. The field lists the mistakes
    /// behind it.
    Consequence(Vec<String>),
    /// It could not be compared.
    NotCompared,
}

/// A tensor behind the loss, by its name, with zeros for its elements.
#[doc(hidden)]
pub fn named_behind(loss: &Tensor, name: &str) -> Option<Tensor> {
    ByHand::from((name, loss)).on_tape(loss)
}

/// Compares hand-written gradients with those of autograd, at every tensor that you name.
///
/// Each item is `(name, &tensor, gradient)`, or `(name, gradient)` for the tensor that was given
/// this name by [`Tensor::named`]. Intermediates and leaves may be given in any order. `loss` must
/// have one element; its graph must not have been freed, so call this before `loss.backward()`. No
/// gradient changes and the graph is kept; hooks are called.
///
/// The rows come in the order of the backward pass. A wrong gradient with nothing wrong above it is
/// a [`Standing::First`]: the mistake is in the step that leads to it. There are several if they do
/// not depend on each other. For a wrong one below, the backward pass is run once more with the
/// hand-written gradients put in place of autograd's: if the chain rule makes just this of them, it
/// is only a [`Standing::Consequence`].
///
/// Errors if the loss has more than one element, depends on no parameter, or its graph was freed. A
/// gradient that cannot be compared, because its shape is wrong or its tensor is not on the tape,
/// is a row with a [`Incomparable`].
///
/// ```
/// use chainrule::{Tensor, check};
/// let w = Tensor::from([0.5f64, -1.0, 2.0]).parameter();
/// let h = w.tanh().named("h");
/// let loss = (&h * &h).sum_all();
///
/// let dh = 2.0 * h.detach();
/// let dw = &dh * (1.0 - h.detach()); // should be 1 - h^2
/// let report = check::compare(&loss, [("w", &w, &dw), ("h", &h, &dh)])?;
/// assert!(!report.passed());
/// assert_eq!(report.rows[0].name, "h");
/// assert!(report.rows[0].outcome.as_ref().unwrap().exact);
/// assert_eq!(report.first_wrong().unwrap().name, "w");
/// println!("{report}");
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn compare<C: Into<ByHand>>(
    loss: &Tensor,
    by_hand: impl IntoIterator<Item = C>,
) -> Result<Comparison> {
    compare_within(loss, by_hand, Tolerance::default())
}

/// [`compare`] with another tolerance for what counts as approximately equal.
///
/// Without an `atol`, the default, each element is judged relative to its own size, however small
/// it is and whatever its neighbours are: a row of 3e-12 has none of the rounding of a row of 3e12.
/// An element that cancels to nearly nothing can miss the tolerance by rounding alone. If one does,
/// the backward pass is run again four times with every number in it (the gradients on the way and
/// the values that the rules saved) changed by up to eight units in its last place (two for f16 and
/// bf16): 4 times the spread is the rounding of that element. If the spread may be small by chance,
/// 28 more runs decide. A zero that did not move in any run gets the spread of the elements along
/// the axis where that is least. A row within its rounding is a [`Standing::Rounding`] and passes.
/// To see mistakes as small as the rounding of f32, compare in f64.
pub fn compare_within<C: Into<ByHand>>(
    loss: &Tensor,
    by_hand: impl IntoIterator<Item = C>,
    within: Tolerance,
) -> Result<Comparison> {
    let upstream = upstream("compare", loss, None)?;
    let claims: Vec<ByHand> = by_hand.into_iter().map(Into::into).collect();
    let (tape, own_upstream) = (LossGraph::of(loss), upstream.clone());
    let mut found: Vec<(ByHand, Result<u64, Incomparable>)> =
        claims.into_iter().map(|claim| (tape.find(&claim), claim)).map(|(n, c)| (c, n)).collect();
    found.sort_by_key(|(_, number)| std::cmp::Reverse(number.as_ref().ok().map(|&n| tape.time(n))));
    let numbers: HashSet<u64> =
        found.iter().filter_map(|(_, n)| n.as_ref().ok().copied()).collect();
    let right = tape.gradients((loss, upstream.clone()), &numbers, &HashMap::new())?;
    let links = tape.made_from(&numbers);

    let mut rows = Vec::with_capacity(found.len());
    for (claim, number) in &found {
        let outcome = number.clone().and_then(|n| difference(&tape, n, claim, &right, within));
        rows.push(ComparisonRow {
            name: claim.name.clone(),
            shape: number.as_ref().ok().map(|&n| meta(&tape, n).shape),
            standing: match &outcome {
                Ok(found) if found.approximate => Standing::Right,
                Err(problem) if !problem.is_of_the_gradient() => Standing::NotCompared,
                _ => Standing::First,
            },
            outcome,
            made_from: Vec::new(),
            uses: number.as_ref().map_or_else(|_| Vec::new(), |&n| tape.uses(n)),
        });
    }
    let order = Order::of(&found, &links);
    order.name(&mut rows);
    if rows.iter().any(ComparisonRow::is_wrong) {
        let none = HashMap::new();
        let own = Noise::of(&tape, (loss, &upstream), &numbers, &none)?;
        let rounded = |(i, (claim, number)): (usize, &(ByHand, Result<u64, Incomparable>))| {
            let exact = rows[i].outcome.as_ref().is_ok_and(|found| found.rounding_only);
            let relative = if rows[i].is_wrong() { within.rtol } else { 0.0 };
            let near = |n: &u64| {
                right.get(n).is_some_and(|right| {
                    let coarser = coarser(&claim.gradient, right);
                    let (a, b) = (claim.gradient.to_f64_vec(), right.to_f64_vec());
                    own.covers(*n, (&a, &b), relative, coarser)
                })
            };
            exact || (rows[i].outcome.is_ok() && number.as_ref().is_ok_and(near))
        };
        let order = Order { rounded: found.iter().enumerate().map(rounded).collect(), ..order };
        let given = Order::substitutes(&tape, &found, &rows)?;
        let made_noise = Noise::of(&tape, (loss, &upstream), &numbers, &given)?;
        let replayed = tape.gradients((loss, upstream.clone()), &numbers, &given)?;
        for i in 0..rows.len() {
            if let (true, Ok(number)) = (rows[i].is_wrong(), &found[i].1) {
                let (made, noise) = (replayed.get(number), &made_noise);
                let view = View { number: *number, gradient: &found[i].0.gradient, made, noise };
                rows[i].standing = order.judge(&rows, i, view);
            }
        }
    }
    let verdict = match rows.iter().any(ComparisonRow::is_mistake) {
        true => explained((loss, &own_upstream), &tape, &found),
        false => None,
    };
    Ok(Comparison { rows, corrections: Vec::new(), error: None, verdict })
}

/// The most work that a verdict may take, in elements walked.
const WORK: usize = 50_000_000;

/// The mistake that gives exactly these gradients, if all of them can be compared and the search
/// takes no more than seconds.
fn explained(
    (loss, upstream): (&Tensor, &Tensor),
    tape: &LossGraph,
    found: &[(ByHand, Result<u64, Incomparable>)],
) -> Option<Verdict> {
    let elements: usize = found.iter().map(|(claim, _)| claim.gradient.numel()).sum();
    if elements * tape.nodes().len() * tape.nodes().len() > WORK {
        return None;
    }
    let given: Option<Vec<(Tensor, &Tensor)>> = found
        .iter()
        .map(|(claim, number)| {
            let tensor = tape.tensor(number.as_ref().ok().copied()?)?;
            let fits =
                tensor.shape() == claim.gradient.shape() && claim.gradient.dtype().is_float();
            fits.then_some((tensor, &claim.gradient))
        })
        .collect();
    let given = given?;
    let pairs: Vec<(&Tensor, &Tensor)> = given.iter().map(|(t, g)| (t, *g)).collect();
    let verdict = verdict_with(loss, upstream, &pairs).ok()?;
    verdict.is_explained().then_some(verdict)
}

fn meta(tape: &LossGraph, number: u64) -> crate::tensor::value::Meta {
    tape.source(number).meta().expect("only what carries gradients is on the tape")
}

fn difference(
    tape: &LossGraph,
    number: u64,
    claim: &ByHand,
    right: &HashMap<u64, Tensor>,
    within: Tolerance,
) -> Result<Discrepancy, Incomparable> {
    let (gradient, meta) = (&claim.gradient, meta(tape, number));
    if !gradient.dtype().is_float() {
        return Err(Incomparable::NotFloat(gradient.dtype()));
    }
    let shapes =
        Incomparable::Shape { by_hand: Box::new(gradient.shape()), tensor: Box::new(meta.shape) };
    match right.get(&number) {
        Some(right) => Discrepancy::between(gradient, right, within).map_err(|_| shapes),
        // No rule passed anything on: the gradient is 0.
        None => {
            let zeros = Tensor::zeros(meta.shape);
            Discrepancy::between(gradient, &zeros, within).map_err(|_| shapes)
        }
    }
}

/// One gradient, and its expected value.
struct View<'a> {
    number: u64,
    gradient: &'a Tensor,
    /// Gradient by the chain rule from the hand-written gradients above it.
    made: Option<&'a Tensor>,
    /// The effect of rounding on that.
    noise: &'a Noise<'a>,
}

impl View<'_> {
    /// Whether the chain rule gives this gradient, from those above it.
    fn is_explained(&self) -> bool {
        // The rounding of one step, and beside it that of another way to write the step.
        self.made.is_some_and(|made| {
            let rounding = match made.dtype() {
                DType::F64 => 1e-9,
                DType::F32 => 1e-5,
                half => 2.0 * unit(half),
            };
            let (a, b) = (self.gradient.to_f64_vec(), made.to_f64_vec());
            self.noise.covers(self.number, (&a, &b), rounding, coarser(self.gradient, made))
        })
    }
}

/// The rounding of a gradient, and beside it that of autograd's where its dtype has fewer digits.
fn coarser(by_hand: &Tensor, autograd: &Tensor) -> f64 {
    (unit(by_hand.dtype()) / unit(autograd.dtype())).max(1.0)
}

/// Dependencies between the rows' gradients.
struct Order {
    /// For each row, the rows directly above it.
    above: Vec<Vec<usize>>,
    /// For each row, whether its gradient differs from the right one by rounding alone, if that was
    /// asked for.
    rounded: Vec<bool>,
}

impl Order {
    fn of(found: &[(ByHand, Result<u64, Incomparable>)], links: &HashMap<u64, Vec<u64>>) -> Order {
        let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
        for (i, (_, number)) in found.iter().enumerate() {
            if let Ok(number) = number {
                places.entry(*number).or_default().push(i);
            }
        }
        let above = found.iter().map(|(_, number)| {
            let links = number.as_ref().ok().and_then(|n| links.get(n));
            links.into_iter().flatten().flat_map(|n| places[n].iter().copied()).collect()
        });
        Order { above: above.collect(), rounded: Vec::new() }
    }

    fn name(&self, rows: &mut [ComparisonRow]) {
        for (i, above) in self.above.iter().enumerate() {
            let mut above = above.clone();
            above.sort_unstable();
            rows[i].made_from = above.iter().map(|&j| rows[j].name.clone()).collect();
        }
    }

    /// All rows above row `i`, directly or not.
    fn all_above(&self, i: usize) -> Vec<usize> {
        let (mut seen, mut open) = (HashSet::new(), self.above[i].clone());
        while let Some(j) = open.pop() {
            if seen.insert(j) {
                open.extend(&self.above[j]);
            }
        }
        let mut all: Vec<usize> = seen.into_iter().collect();
        all.sort_unstable();
        all
    }

    /// The hand-written gradients from which the backward pass can go on.
    fn substitutes(
        tape: &LossGraph,
        found: &[(ByHand, Result<u64, Incomparable>)],
        rows: &[ComparisonRow],
    ) -> Result<HashMap<u64, Tensor>> {
        let mut given = HashMap::new();
        for ((claim, number), row) in found.iter().zip(rows) {
            if let (Ok(number), Ok(_)) = (number, &row.outcome)
                && !given.contains_key(number)
            {
                let dtype = meta(tape, *number).dtype;
                given.insert(*number, claim.gradient.detach().try_to_dtype(dtype)?);
            }
        }
        Ok(given)
    }

    /// Whether row `i` equals autograd's to the last digits, or would if nothing cancelled.
    fn is_exact_but_for_rounding(&self, rows: &[ComparisonRow], i: usize) -> bool {
        match rows[i].standing {
            Standing::Rounding => true,
            Standing::Right => self.rounded[i],
            _ => false,
        }
    }

    /// Decides how row `i` is wrong; the rows above it have been judged.
    fn judge(&self, rows: &[ComparisonRow], i: usize, view: View<'_>) -> Standing {
        let above = self.all_above(i);
        let compared = rows[i].outcome.is_ok();
        if self.rounded[i] {
            return Standing::Rounding;
        }
        let explained = compared && view.is_explained();
        if !above.iter().any(|&j| rows[j].is_wrong()) {
            let inherited = explained
                && !above.is_empty()
                && above.iter().all(|&j| self.is_exact_but_for_rounding(rows, j));
            return match compared && inherited {
                true => Standing::Rounding,
                false => Standing::First,
            };
        }
        // If a wrong gradient could not replace autograd's, the graph alone decides.
        let open = above.iter().any(|&j| rows[j].is_wrong() && rows[j].outcome.is_err());
        match explained || (compared && open) {
            true => {
                let mistakes = above.iter().filter(|&&j| rows[j].is_mistake());
                Standing::Consequence(mistakes.map(|&j| rows[j].name.clone()).collect())
            }
            false => Standing::AlsoWrong,
        }
    }
}

impl ComparisonRow {
    /// Whether the gradient was compared and found wrong, by its own fault or by another's.
    pub fn is_wrong(&self) -> bool {
        !matches!(self.standing, Standing::Right | Standing::Rounding | Standing::NotCompared)
    }

    /// Whether the mistake is in the step that leads to this gradient.
    pub fn is_mistake(&self) -> bool {
        matches!(self.standing, Standing::First | Standing::AlsoWrong)
    }
}

impl Comparison {
    /// Whether every gradient was compared and is right.
    pub fn passed(&self) -> bool {
        self.rows.iter().all(|row| matches!(row.standing, Standing::Right | Standing::Rounding))
    }

    /// The first wrong gradient in the order of the backward pass.
    pub fn first_wrong(&self) -> Option<&ComparisonRow> {
        self.rows.iter().find(|row| row.is_wrong())
    }

    /// The gradients whose own step is wrong; all other wrong ones follow from them.
    pub fn mistakes(&self) -> impl Iterator<Item = &ComparisonRow> {
        self.rows.iter().filter(|row| row.is_mistake())
    }

    /// The lines of the code that computes the wrong gradients, and their corrections. Only
    /// [`compare_code`](crate::compare_code) has them, since it is given the code.
    pub fn corrections(&self) -> &[Correction] {
        &self.corrections
    }

    /// The mistake that gives exactly these gradients, if one was found: a classic one, another
    /// value in place of the right one, or rows or elements that are multiplied by numbers. In
    /// large models no search is made.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    pub(crate) fn correct(&mut self, corrections: Vec<Correction>, error: Option<f64>) {
        (self.corrections, self.error) = (corrections, error);
    }

    /// The row of this name.
    pub fn row(&self, name: &str) -> Option<&ComparisonRow> {
        self.rows.iter().find(|row| row.name == name)
    }
}
