//! Report of a verdict.

use std::fmt;
use std::panic::Location;

use super::super::follow::{Correction, follow_custom, write_corrections};
use super::case::{Case, Observed, label};
use super::evidence;
use super::explain::Custom;
use super::other::{Deviation, fraction};
use super::reading::{Reading, Sizes, meaning, sizes_of};
use super::search::{Effort, Suspect};
use crate::catalogue::Fault;
use crate::program::Place;
use crate::tensor::node::{Node, Source, lock};
use chainrule_core::ops::twins::scales;

/// The findings of [`verdict`](crate::verdict()). `Display` writes it as a report.
#[derive(Clone, Debug)]
pub struct Verdict {
    wrong: Vec<Wrong>,
    given: usize,
    /// The given gradients that belong to leaves.
    leaves: usize,
    diagnoses: Vec<Diagnosis>,
    deviations: Vec<Deviation>,
    readings: Vec<Reading>,
    corrections: Vec<Correction>,
    /// Error of the gradients with the corrections, if these make all right.
    error: Option<f64>,
    cost: SearchCost,
}

/// A given gradient that is wrong.
#[derive(Clone, Debug)]
pub struct Wrong {
    tensor: String,
    index: Vec<usize>,
    given: f64,
    right: f64,
    is_leaf: bool,
}

/// A classic mistake in one place that gives exactly the wrong numbers.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    op: &'static str,
    tensor: String,
    location: Option<&'static Location<'static>>,
    place: Option<Place>,
    mistake: &'static str,
    what: String,
    input: Option<usize>,
    evidence: String,
    formula: String,
    fix: String,
    number: u64,
    /// Whether the mistake belongs to no op, and so says less than one of the op's own.
    is_general: bool,
    /// Whether the op involves a number, which a wrong factor may come from.
    has_number: bool,
}

/// The effort of the search.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchCost {
    /// Ops at which mistakes were planted.
    pub places: usize,
    /// Mistakes that were tried.
    pub replays: usize,
    /// Candidates that needed a walk down the tape; the others were ruled out at their place.
    pub walks: usize,
}

impl Verdict {
    pub(super) fn write(
        case: &Case,
        suspects: &[Suspect],
        deviations: Vec<Deviation>,
        effort: Effort,
    ) -> Verdict {
        let mut wrong: Vec<&Observed> = case.observed.iter().filter(|o| o.wrong).collect();
        wrong.sort_by_key(|o| std::cmp::Reverse(o.number));
        let readings = match wrong.first() {
            Some(first) if suspects.is_empty() && deviations.is_empty() => {
                evidence::readings(case, first)
            }
            _ => Vec::new(),
        };
        Verdict {
            wrong: wrong.into_iter().map(Wrong::of).collect(),
            given: case.observed.len(),
            leaves: case.observed.iter().filter(|o| is_leaf(o)).count(),
            diagnoses: suspects.iter().map(|s| Diagnosis::of(case, s)).collect(),
            deviations,
            readings,
            corrections: Vec::new(),
            error: None,
            cost: SearchCost { places: effort.nodes, replays: effort.replays, walks: case.walks },
        }
    }

    /// Whether every given gradient is right.
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Whether something is wrong that does not matter: the given tensors include parameters or
    /// other leaves, and the gradients of all of these are right. Examples are the path through a
    /// row maximum that is subtracted, and a bias before batch norm.
    pub fn is_harmless(&self) -> bool {
        !self.wrong.is_empty() && self.leaves > 0 && self.wrong.iter().all(|w| !w.is_leaf)
    }

    /// The given gradients that are wrong, that nearest to the loss first.
    pub fn wrong(&self) -> &[Wrong] {
        &self.wrong
    }

    /// The classic mistakes that give exactly these numbers, each alone. Several may coincide; with
    /// none, [`deviations`](Verdict::deviations) may have an explanation, also for two at once.
    pub fn diagnoses(&self) -> &[Diagnosis] {
        &self.diagnoses
    }

    /// Other edits that give just these numbers, where no classic mistake does: another gradient or
    /// another value in the place of the one that is due, or two parts with factors of their own.
    ///
    /// ```
    /// use chainrule::{Tensor, check};
    /// let a = Tensor::from([[0.5, -1.0], [2.0, 0.3]]).parameter().named("a");
    /// let x = Tensor::from([[1.0, 2.0], [-0.7, 0.4]]);
    /// let h = x.matmul(&a).tanh().named("h");
    /// let loss = h.sigmoid().sum_all();
    /// // By hand, with the gradient of `h` where that before the tanh is due.
    /// let dh = h.sigmoid() * (1.0 - h.sigmoid());
    /// let verdict = check::verdict(&loss, &[(&a, &x.t().matmul(&dh))])?;
    /// assert!(verdict.to_string().contains("the gradient of `h` stands"), "{verdict}");
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn deviations(&self) -> &[Deviation] {
        &self.deviations
    }

    /// The wrong lines of a custom op's backward, with their corrections; only
    /// [`explain`](crate::explain()) has them, since it is given the op.
    pub fn corrections(&self) -> &[Correction] {
        &self.corrections
    }

    /// Follows the backward of custom ops.
    pub(super) fn follow(&mut self, customs: Vec<Custom>) {
        for (op, inputs) in customs {
            // An op that cannot be followed is judged by its gradients alone.
            if let Ok(found) = follow_custom(op.as_ref(), &inputs) {
                self.error = found.is_whole().then(|| found.error());
                self.corrections.extend(found.corrections().iter().cloned());
            }
        }
    }

    /// Patterns of the first wrong gradient, if no mistake explains them all.
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// The diagnoses, grouped by mistake: along a path it makes no difference in which op a sign or
    /// a factor is lost.
    fn kinds(&self) -> Vec<Vec<&Diagnosis>> {
        let mut kinds: Vec<Vec<&Diagnosis>> = Vec::new();
        for e in &self.diagnoses {
            match kinds.iter_mut().find(|k| k[0].mistake == e.mistake) {
                Some(kind) => kind.push(e),
                None => kinds.push(vec![e]),
            }
        }
        kinds.sort_by_key(|kind| kind[0].is_general && kind[0].input.is_some());
        for kind in kinds.iter_mut().filter(|kind| kind[0].is_general) {
            kind.sort_by_key(|e| !e.has_number);
        }
        kinds
    }

    /// Whether an explanation was found that gives exactly these numbers.
    pub(crate) fn is_explained(&self) -> bool {
        !self.diagnoses.is_empty() || !self.deviations.is_empty()
    }

    /// The cause, without its numbers.
    pub(crate) fn text(&self) -> String {
        let all = self.to_string();
        let (_, rest) = all.split_once('\n').unwrap_or(("", &all));
        rest.rsplit_once('\n').map_or(rest, |(text, _)| text).trim().to_string()
    }

    /// The effort of the search.
    pub fn cost(&self) -> SearchCost {
        self.cost
    }
}

impl Wrong {
    fn of(o: &Observed) -> Wrong {
        let at = evidence::worst(&o.right, &o.given);
        let pick = |x: &[f64]| x.get(at).copied().unwrap_or(0.0);
        Wrong {
            tensor: o.label.clone(),
            index: evidence::index_of(at, &o.tensor.shape()),
            given: pick(&o.given),
            right: pick(&o.right),
            is_leaf: is_leaf(o),
        }
    }

    /// The tensor's name; `op#number` if it has none, or `a parameter` with its shape.
    pub fn tensor(&self) -> &str {
        &self.tensor
    }

    /// The index of the element that is farthest off.
    pub fn index(&self) -> &[usize] {
        &self.index
    }

    /// The given element.
    pub fn given(&self) -> f64 {
        self.given
    }

    /// The right element.
    pub fn right(&self) -> f64 {
        self.right
    }
}

fn is_leaf(o: &Observed) -> bool {
    matches!(o.tensor.source(), Source::Leaf(_))
}

impl Diagnosis {
    fn of(case: &Case, suspect: &Suspect) -> Diagnosis {
        let (op, location, place) = match &suspect.place {
            Source::Node(node) => (node.op.name(), Some(node.location), node.place()),
            _ => ("leaf", None, None),
        };
        let general = suspect.fault.general();
        let (formula, what, fix) = match (&suspect.fault, &suspect.place) {
            (Fault::Overwrite { kept }, place) => {
                let parts = &case.tape.parts[&place.number()];
                let each: Vec<String> = parts.iter().map(|p| source_of(&p.node)).collect();
                let sum = format!(
                    "d({}) = sum of {} parts: {}",
                    label(place),
                    parts.len(),
                    each.join(" + ")
                );
                let general = general.expect("it belongs to no op");
                let what = format!("{}: only the part from {} is there", general.what, each[*kept]);
                (sum, what, general.fix.to_string())
            }
            (Fault::Rule(mistake), Source::Node(node)) => {
                let fix = format!("in the backward of this line compute {}", rule(node));
                (formula(node), mistake.what.to_string(), fix)
            }
            (Fault::Factor { factor, .. }, Source::Node(node)) => {
                let general = general.expect("it belongs to no op");
                let what = format!("{}: {}", general.what, times(*factor, node));
                (formula(node), what, general.fix.to_string())
            }
            (_, Source::Node(node)) => {
                let general = general.expect("it belongs to no op");
                (formula(node), general.what.to_string(), general.fix.to_string())
            }
            _ => Default::default(),
        };
        Diagnosis {
            op,
            tensor: label(&suspect.place),
            location,
            place,
            mistake: suspect.fault.name(),
            what,
            input: suspect.fault.input(),
            evidence: evidence::of(case, suspect),
            formula,
            fix,
            number: suspect.place.number(),
            is_general: general.is_some(),
            has_number: has_number(&suspect.place),
        }
    }

    /// The op whose backward is wrong; `leaf` where the parts of a leaf's gradient were not added.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// The op's result: its name, or `op#number`. For an overwritten gradient the tensor that it
    /// belongs to.
    pub fn tensor(&self) -> &str {
        &self.tensor
    }

    /// The line of Rust code that called the op.
    pub fn location(&self) -> Option<&'static Location<'static>> {
        self.location
    }

    /// The user's line that called the op: the backward of this line is the one to change.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The mistake, as the catalogue calls it.
    pub fn mistake(&self) -> &'static str {
        self.mistake
    }

    /// The mistake in words: the wrong step, and the right one.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Number of the input whose part of the gradient is wrong, where the mistake is in one.
    pub fn input(&self) -> Option<usize> {
        self.input
    }

    /// Numbers that can be computed again.
    pub fn evidence(&self) -> &str {
        &self.evidence
    }

    /// The right rule, with its shapes.
    pub fn formula(&self) -> &str {
        &self.formula
    }

    /// The fix.
    pub fn fix(&self) -> &str {
        &self.fix
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// The place, in words.
    fn place_text(&self) -> String {
        let input = self.input.map_or(String::new(), |input| format!(", input {input}"));
        let line = self.place.as_ref().map_or(String::new(), |at| format!(", {at}"));
        format!("in `{}`{input} (result `{}`{line})", self.op, self.tensor)
    }
}

/// Whether an op multiplies or divides by a constant of one element.
fn has_number(place: &Source) -> bool {
    let Source::Node(node) = place else { return false };
    if !scales(node.op.as_ref()) {
        return false;
    }
    let saved = lock(&node.saved);
    let mut inputs = node.inputs.iter().zip(&saved.inputs);
    inputs.any(|(input, value)| {
        input.number() == 0 && value.as_ref().is_some_and(|v| v.shape().numel() == 1)
    })
}

/// A factor with its origin in the sizes of an op, as far as there is one.
pub(super) fn times(factor: f64, node: &Node) -> String {
    let metas = node.inputs.iter().filter_map(Source::meta).chain([node.meta]);
    let sizes: Sizes = metas.flat_map(|meta| sizes_of(&meta.shape)).collect();
    match meaning(factor, &sizes) {
        text if text.is_empty() => format!("{} times the right one", fraction(factor)),
        text => format!("{} times the right one: {text}", fraction(factor)),
    }
}

/// Origin of a part.
fn source_of(node: &Node) -> String {
    match node.place() {
        Some(at) => format!("{} ({at})", node.op.name()),
        None => node.op.name().to_string(),
    }
}

/// The gradient of an op, as the table states it.
fn rule(node: &Node) -> String {
    match node.op.entry() {
        Some(entry) if !entry.gradient.is_empty() => entry.gradient.to_string(),
        _ => format!("the reverse rule of {}", node.op.name()),
    }
}

/// The right rule with the shapes of its operands.
fn formula(node: &Node) -> String {
    let mut shapes = vec![format!("g {}", node.meta.shape)];
    for (i, input) in node.inputs.iter().enumerate() {
        if let Some(meta) = input.meta() {
            shapes.push(format!("input {i} {}", meta.shape));
        }
    }
    format!("{}, with {}", rule(node), shapes.join(", "))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.wrong.first() else {
            return write!(f, "all {} gradients are right", self.given);
        };
        writeln!(
            f,
            "{} of {} gradients are wrong, first that of {first}",
            self.wrong.len(),
            self.given
        )?;
        if self.is_harmless() {
            writeln!(f, "harmless: the gradients of all {} leaves are right", self.leaves)?;
        }
        if !self.corrections.is_empty() {
            write_corrections(f, &self.corrections, self.error)?;
            writeln!(f)?;
        }
        match self.diagnoses.len() {
            0 if !self.corrections.is_empty() => {}
            0 if !self.deviations.is_empty() => {
                writeln!(f, "no classic mistake; these numbers come out so:")?;
                for deviation in &self.deviations {
                    writeln!(f, "  {deviation}")?;
                }
            }
            0 => {
                writeln!(f, "unidentified: no classic mistake in one place gives these numbers")?;
                for reading in &self.readings {
                    writeln!(f, "  the numbers show: {reading}")?;
                }
            }
            n => {
                let kinds = self.kinds();
                match kinds.len() {
                    1 => writeln!(f)?,
                    kinds => writeln!(
                        f,
                        "{kinds} mistakes coincide here, in {n} places; each gives just these numbers:"
                    )?,
                }
                for of_kind in kinds {
                    writeln!(f, "{}", of_kind[0])?;
                    if let [_, others @ ..] = &of_kind[..] {
                        let others: Vec<String> = others.iter().map(|e| e.place_text()).collect();
                        writeln!(f, "    or so:    {}", others.join("; "))?;
                    }
                }
            }
        }
        let SearchCost { places, replays, walks } = self.cost;
        write!(f, "({replays} mistakes tried at {places} places, {walks} walked down)")
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wrong { tensor, index, given, right, .. } = self;
        write!(
            f,
            "`{tensor}`: {} for {} at {index:?}",
            evidence::short(*given),
            evidence::short(*right)
        )
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "- {} {}", self.mistake, self.place_text())?;
        writeln!(f, "    what:     {}", self.what)?;
        writeln!(f, "    evidence: {}", self.evidence)?;
        writeln!(f, "    right:    {}", self.formula)?;
        write!(f, "    fix:      {}", self.fix)
    }
}
