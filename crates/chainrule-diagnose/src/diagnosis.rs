//! From findings and experiments to a report.

use std::time::Instant;

use chainrule_nn::optim::keras::KerasRule;
use serde_json::{Value, json};

use crate::cause::Cause;
use crate::change::Change;
use crate::curves::{self, Curve};
use crate::data::{Prepared, prepare};
use crate::description::edit;
use crate::detect::{self, Seen, Suspicion};
use crate::error::Result;
use crate::lab::{Bench, Experiment};
use crate::reason::{Losses, Reason, short};
use crate::run::Outcome;
use crate::search::{Found, Search};
use crate::watch::Watch;

/// A gain below which a program counts as learning, if the description shows no mistake.
const GAIN: f64 = 0.12;
/// The same for a program that learns something, if the changes only concern length and size.
const SOFT_GAIN: f64 = 0.25;
/// Skill from which on a program without an obvious mistake works, and could only be better.
const WORKS: f64 = 0.5;
/// The gain from which on an improvement is reported all the same.
const LARGE_GAIN: f64 = 0.4;
/// The rate of plain descent above which another optimizer does not count as a faster one, unless a
/// sign stronger than this indicates slowness.
const LARGE_RATE: f64 = 0.1;
const WEAK: f64 = 0.35;
/// Ratio of right answers on rare classes to those on all rows from which on the rare classes are
/// learned.
const RARE_IS_ANSWERED: f64 = 0.6;
/// Skill below which nothing counts as repaired: 0 is a constant answer.
const LEAST_SKILL: f64 = 0.1;

/// Result of a diagnosis.
#[derive(Clone, Debug)]
pub struct Report {
    /// The program.
    pub id: String,
    /// Whether it learns what it can.
    pub learns: bool,
    /// The causes, the likeliest first.
    pub causes: Vec<Reason>,
    /// Skill of the program as it is.
    pub skill: f64,
    /// The best skill that any experiment had.
    pub best: f64,
    /// Skill with the edits of all causes.
    pub after: f64,
    /// Other sets of changes that do as well.
    pub alternatives: Vec<String>,
    /// The runs as it is, with the edits, with all of them but one, and with the alternatives.
    pub curves: Vec<Curve>,
    /// Training runs.
    pub runs: usize,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Number of runs in parallel.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(4)
}

/// Diagnoses the program on the bench.
pub fn diagnose(bench: &Bench) -> Result<Report> {
    let start = Instant::now();
    let program = bench.program();
    let whole = prepare(program, &bench.table(0).x, &bench.table(0).y)?;
    let watched = bench.watched(0);
    let (train, own, run, watch) = match watched {
        Ok(w) => (w.train, w.own, w.run, w.watch),
        Err(_) => (whole.clone(), None, nothing(), Watch::default()),
    };
    let base = detect::constant_loss(program.loss, &train.y);
    let seen = Seen { program, data: &train, watch: &watch, run: &run, base };
    let findings = detect::findings(&seen);
    if std::env::var_os("CHAINRULE_DIAGNOSE_DEBUG").is_some() {
        for f in &findings {
            eprintln!(
                "  {:<18} {:.2} {} [{}] {:?}",
                f.cause.kind(),
                f.strength,
                f.text,
                f.place,
                f.remedies
            );
        }
    }
    let damaged = detect::not_finite(&whole);
    let (certain, suspects) = remedies(&findings);
    let search = Search::new(bench, bench.budget(), threads());
    let fits = |changes: &[Change]| bench.edited(changes).is_some();
    let found = match damaged.is_none() {
        true => search.run(&certain, &suspects, &fits),
        false => {
            let none = f64::NEG_INFINITY;
            Found { base: -1.0, ceiling: -1.0, after: -1.0, everything: none, ..Found::default() }
        }
    };
    let rate = Rate { lr: program.optimizer.lr, is_sgd: program.optimizer.rule == KerasRule::Sgd };
    let mut causes = proved(&|order| bench.edits_of_each(order), rate, &findings, &found);
    if let Some(text) = damaged {
        causes.push(Reason {
            cause: Cause::Data,
            place: "data".to_string(),
            since: 0,
            confidence: 0.95,
            evidence: text,
            numbers: Vec::new(),
            end: "every answer and every weight becomes NaN".to_string(),
            edit: Vec::new(),
            before: found.base,
            after: found.after,
        });
    }
    let data = of_data(bench, &whole, own.as_ref(), &run, &findings, &found, causes.is_empty());
    if causes.is_empty() && !data.is_empty() && found.base < LEAST_SKILL {
        causes.extend(plain_mistakes(bench, &findings, &found));
    }
    causes.extend(data);
    // Running out of time does not make a program at chance healthy.
    let unknown = !found.repaired && found.base < 0.3;
    if causes.is_empty() && (unknown || found.base < 0.5 * found.goal()) {
        causes.extend(plain_mistakes(bench, &findings, &found));
        let mut rest = unproved(&findings, &found);
        rest.retain(|reason| !causes.iter().any(|said| said.cause == reason.cause));
        causes.extend(rest);
    }
    let alternatives = if causes.is_empty() { Vec::new() } else { found.as_good() };
    let losses = Losses { course: &run.losses, constant: base };
    causes.iter_mut().for_each(|cause| losses.tell(cause));
    let shown = if causes.is_empty() { vec![Vec::new()] } else { found.shown() };
    Ok(Report {
        id: program.id.clone(),
        learns: causes.is_empty() && !unknown && found.base >= LEAST_SKILL,
        causes,
        skill: found.base,
        best: found.ceiling.max(found.after),
        after: found.after,
        alternatives,
        curves: bench.curves(&shown),
        runs: bench.runs(),
        seconds: start.elapsed().as_secs_f64(),
    })
}

fn nothing() -> Outcome {
    Outcome {
        losses: Vec::new(),
        fit: -1.0,
        held: None,
        own: None,
        rare: None,
        finite: false,
        planned: 0,
        late: false,
    }
}

/// The remedies of what the description itself shows, and those of all findings, best first.
pub(crate) fn remedies(findings: &[Suspicion]) -> (Vec<Change>, Vec<Change>) {
    let mut certain = Vec::new();
    let mut all: Vec<Change> = Vec::new();
    for finding in findings {
        if finding.strength >= 1.0 {
            certain.extend(finding.remedies.first());
        }
        if let Some(first) = finding.remedies.first().filter(|r| !all.contains(r)) {
            all.push(*first);
        }
    }
    // The second-best remedies come after the best ones of all findings.
    for remedy in findings.iter().flat_map(|f| f.remedies.iter().skip(1)) {
        if !all.contains(remedy) {
            all.push(*remedy);
        }
    }
    // Any model fits better if it is wider, so that comes last.
    all.sort_by_key(|r| *r == Change::Wider);
    (certain, all)
}

const OF_OUTPUT: &[Cause] = &[
    Cause::OutputActivation,
    Cause::Loss,
    Cause::OutputUnits,
    Cause::LossBroadcast,
    Cause::Axis,
    Cause::LossReduction,
    Cause::LossNumerics,
];

/// Facts about the optimizer that the naming of causes needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub lr: f64,
    pub is_sgd: bool,
}

/// The cause that a change fixes.
fn cause_of(change: Change, now: Rate, findings: &[Suspicion]) -> Cause {
    let strength =
        |cause: Cause| findings.iter().find(|f| f.cause == cause).map_or(0.0, |f| f.strength);
    match change {
        Change::OutputFit | Change::OutputPair | Change::LossForm => {
            let asks = |f: &&Suspicion| {
                let of_it = OF_OUTPUT.contains(&f.cause) || f.cause == Cause::Labels;
                of_it && f.remedies.contains(&change)
            };
            let default =
                if change == Change::OutputFit { Cause::OutputActivation } else { Cause::Loss };
            findings.iter().find(asks).map_or(default, |f| f.cause)
        }
        Change::ScaleX => Cause::InputScale,
        Change::ScaleY => Cause::TargetScale,
        Change::ReluHidden => Cause::HiddenActivation,
        Change::Init if strength(Cause::InitConstant) > 0.0 => Cause::InitConstant,
        Change::Init => Cause::InitScale,
        Change::NoRegularisation if strength(Cause::Architecture) > 0.0 => Cause::Architecture,
        Change::NoRegularisation => Cause::Regularisation,
        Change::Wider => Cause::Capacity,
        Change::Batch32 => Cause::BatchSize,
        Change::Shuffle => Cause::DataOrder,
        Change::NoDecay => Cause::LrDecay,
        Change::UsualMoments => Cause::Optimizer,
        Change::Shorter | Change::WeightDecay => Cause::Overfitting,
        Change::UsualRate => Cause::LrSign,
        Change::Down10 | Change::Down100 => Cause::LrHigh,
        Change::Up10 | Change::Up100 => Cause::LrLow,
        Change::Longer => Cause::EpochsFew,
        Change::NoClip => Cause::Clipping,
        Change::ShuffledTargets => Cause::Labels,
        Change::Adam | Change::AdamFast => {
            let new = if change == Change::Adam { 0.001 } else { 0.01 };
            if now.lr <= 0.0 {
                Cause::LrSign
            } else {
                let low = strength(Cause::LrLow).max(strength(Cause::EpochsFew));
                let falls = !now.is_sgd && now.lr > new;
                // Plain descent has no usual rate, but few trainings need more than this.
                let is_large = now.is_sgd && now.lr > LARGE_RATE && low <= WEAK;
                let is_high = strength(Cause::LrHigh) > low || falls || is_large;
                if is_high { Cause::LrHigh } else { Cause::LrLow }
            }
        }
    }
}

/// The causes whose remedies repaired the program.
pub(crate) fn proved(
    edits: &dyn Fn(&[Change]) -> Vec<Vec<Value>>,
    rate: Rate,
    findings: &[Suspicion],
    found: &Found,
) -> Vec<Reason> {
    let gain = found.after - found.base;
    let mistaken = findings.iter().any(|f| f.strength >= 1.0);
    let soft = found.base > 0.3
        && !mistaken
        && found.changes.iter().all(|c| {
            c.is_of_rate()
                || matches!(
                    c,
                    Change::Longer
                        | Change::Wider
                        | Change::Init
                        | Change::Batch32
                        | Change::NoRegularisation
                )
        });
    let plain = findings.iter().any(|f| f.strength >= 0.9);
    let least = match soft {
        _ if found.base > WORKS && !plain => LARGE_GAIN,
        true => SOFT_GAIN,
        false => GAIN,
    };
    // A result that was far worse than a constant answer and now equals one has lost a mistake.
    let at_nothing = found.after < LEAST_SKILL && gain < WORKS;
    if found.changes.is_empty() || gain < least || at_nothing {
        return Vec::new();
    }
    let mut ranked: Vec<(f64, Change, Cause, f64)> = found
        .changes
        .iter()
        .map(|&change| {
            let cause = cause_of(change, rate, findings);
            let finding = findings.iter().find(|f| f.cause == cause);
            let strength = finding.map_or(0.2, |f| f.strength);
            let without = found.without.iter().find(|w| w.0 == change).map_or(found.base, |w| w.1);
            let share = ((found.after - without) / gain.max(0.1)).clamp(0.0, 1.0);
            let certain = if strength >= 1.0 { 0.6 } else { 0.0 };
            (strength + certain + 0.7 * share, change, cause, without)
        })
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let order: Vec<Change> = ranked.iter().map(|r| r.1).collect();
    let edits = edits(&order);
    let mut out: Vec<Reason> = Vec::new();
    for ((_, change, cause, without), edit) in ranked.into_iter().zip(edits) {
        if let Some(same) = out.iter_mut().find(|v| v.cause == cause) {
            same.edit.extend(edit);
            continue;
        }
        let finding = findings.iter().find(|f| f.cause == cause);
        let seen_text = finding.map(|f| format!("{}; ", f.text)).unwrap_or_default();
        let proof =
            format!("with {}: skill {:.2} in place of {without:.2}", change.text(), found.after);
        let strength = finding.map_or(0.2, |f| f.strength);
        let reached = if found.repaired { 0.1 } else { 0.0 };
        let confidence = 0.45 + 0.25 * strength + reached + 0.2 * (gain / 0.5).min(1.0);
        let most = match cause {
            // It learns all it can, and only overfits.
            Cause::Overfitting => 0.5,
            // Another seed fixes it as well.
            _ if found.learns_by_chance && strength < 1.0 => 0.5,
            _ => 0.99,
        };
        out.push(Reason {
            cause,
            place: place_of(finding, &edit),
            since: finding.map_or(0, |f| f.since),
            confidence: confidence.min(most),
            evidence: format!("{seen_text}{proof}"),
            numbers: finding.map_or_else(Vec::new, |f| f.numbers.clone()),
            end: cause.in_the_end().to_string(),
            edit,
            before: without,
            after: found.after,
        });
    }
    out.extend(certain_beside(findings, &out, found));
    out
}

fn place_of(finding: Option<&Suspicion>, edits: &[Value]) -> String {
    let edited = || edits.first().and_then(|e| e["path"].as_str()).unwrap_or("").to_string();
    finding.map_or_else(edited, |f| f.place.clone())
}

/// Obvious mistakes, in addition to the causes that had to be fixed.
fn certain_beside(findings: &[Suspicion], said: &[Reason], found: &Found) -> Vec<Reason> {
    let beside =
        findings.iter().filter(|f| f.strength >= 0.9 && !said.iter().any(|v| v.cause == f.cause));
    beside
        .map(|f| Reason {
            cause: f.cause,
            place: f.place.clone(),
            since: f.since,
            confidence: 0.4,
            evidence: format!("{}; the skill comes back without mending it", f.text),
            numbers: f.numbers.clone(),
            end: f.cause.in_the_end().to_string(),
            edit: Vec::new(),
            before: found.after,
            after: found.after,
        })
        .collect()
}

/// Mistakes that the description itself shows, with their edits, for data on which no change can
/// prove itself: they are mistakes whatever the data are.
fn plain_mistakes(bench: &Bench, findings: &[Suspicion], found: &Found) -> Vec<Reason> {
    let plain = findings.iter().filter(|f| f.strength >= 1.0 && OF_OUTPUT.contains(&f.cause));
    let reason = |f: &Suspicion| {
        let first = f.remedies.iter().rev().find(|&&r| bench.edited(&[r]).is_some());
        let (changes, fit) = first.map_or_else(Default::default, |&r| best_fit(bench, r));
        let edit = bench.edited(&changes).map_or_else(Vec::new, |edited| edited.0);
        // A cause that no run has confirmed, not even on its own rows, is a suspicion.
        let confidence = if fit.is_some() { 0.6 } else { 0.45 };
        let fit = match fit {
            Some((before, after)) => format!(
                "; on the rows trained on, with {}: skill {after:.2} in place of {before:.2}",
                curves::words(&changes)
            ),
            None => String::new(),
        };
        Reason {
            cause: f.cause,
            place: f.place.clone(),
            since: f.since,
            confidence,
            evidence: format!("{}; no change could prove itself on these data{fit}", f.text),
            numbers: f.numbers.clone(),
            end: f.cause.in_the_end().to_string(),
            edit,
            before: found.base,
            after: found.after,
        }
    };
    plain.take(1).map(reason).collect()
}

/// The fewest changes of length and capacity, in addition to this one, with which the model fits
/// its own rows about as well as with any, and its skill there without and with this change. It is
/// used where held-out rows tell nothing: those changes then only make the effect of the fix
/// visible.
fn best_fit(bench: &Bench, first: Change) -> (Vec<Change>, Option<(f64, f64)>) {
    let beside: [&[Change]; 4] = [
        &[],
        &[Change::NoRegularisation],
        &[Change::Longer],
        &[Change::NoRegularisation, Change::Longer],
    ];
    let fit = |set: &[Change]| bench.run(set, 0).map(|trial| trial.fit);
    let sets = beside.iter().map(|more| [&[first], *more].concat());
    let fitted: Vec<(Vec<Change>, f64)> = sets
        .filter(|set| bench.edited(set).is_some())
        .filter_map(|s| Some((s.clone(), fit(&s)?)))
        .collect();
    let most = fitted.iter().map(|f| f.1).fold(f64::NEG_INFINITY, f64::max);
    let before = fit(&[]).unwrap_or(-1.0);
    match fitted.into_iter().find(|(_, fit)| *fit >= most - 0.08) {
        Some((set, after)) if after > before + GAIN => (set, Some((before, after))),
        _ => (vec![first], None),
    }
}

/// Causes in the data, which no change of the training fixes.
fn of_data(
    bench: &Bench,
    whole: &Prepared,
    own: Option<&Prepared>,
    run: &Outcome,
    findings: &[Suspicion],
    found: &Found,
    alone: bool,
) -> Vec<Reason> {
    let program = bench.program();
    let verdict = |cause: Cause, confidence, evidence: String| Reason {
        cause,
        place: "data".to_string(),
        since: 0,
        confidence,
        evidence,
        numbers: Vec::new(),
        end: cause.in_the_end().to_string(),
        edit: Vec::new(),
        before: found.base,
        after: found.after,
    };
    let mut out = Vec::new();
    for f in findings.iter().filter(|f| f.strength >= 1.0 && f.cause == Cause::Labels) {
        if alone {
            out.push(verdict(f.cause, 0.95, f.text.clone()));
        }
    }
    if let Some(own) = own {
        let missing = detect::is_split_by_class(whole, own);
        if missing > 0.3 && program.task.is_classes() {
            let text = format!(
                "{:.0} % of the validation's rows are of classes that are rare in training",
                100.0 * missing
            );
            let skill = run
                .own
                .map(|s| format!("; skill there {s:.2}, on the training rows {:.2}", run.fit))
                .unwrap_or_default();
            out.push(verdict(Cause::DataOrder, 0.9, format!("{text}{skill}")));
        }
        let copies = detect::share_of_copies(own, whole);
        if copies > 0.5 {
            let text = format!(
                "{:.0} % of the validation's rows are among those trained on",
                100.0 * copies
            );
            // The measurement is wrong, and the training may be right.
            out.push(verdict(Cause::Validation, 0.5, text));
        }
    }
    // Changes were tried, and even they achieved nothing.
    let tried = found.everything.is_finite();
    // A model that fits its rows learns something, even if only a few extreme ones.
    let fits = program.task.is_numbers() && run.fit > 0.3;
    let low = tried && !fits && found.ceiling.max(found.after) < 0.25 && whole.rows >= 100;
    if low
        && out.is_empty()
        && let Some(says) = detect::information(whole, program.task).filter(|&i| i < 0.1)
    {
        let text = format!(
            "nearest neighbours and a ridge fit predict rows that were kept back no better than a constant ({says:.2}), and so does every model that was tried (at most {:.2})",
            found.ceiling.max(found.after)
        );
        // A few extreme numbers can hide what there is to learn; classes have none.
        let (cause, confidence) = match program.task.is_numbers() {
            true => (Cause::Data, 0.5),
            false => (Cause::Labels, 0.7),
        };
        out.push(verdict(cause, confidence, text));
    }
    let unbalanced = findings.iter().find(|f| f.cause == Cause::Unbalanced);
    // A class with few rows is no fault if it is answered about as well as the others.
    let is_answered = run.rare.is_some_and(|share| share >= RARE_IS_ANSWERED);
    if let (Some(f), true) = (unbalanced, alone && !is_answered) {
        let mut v = verdict(Cause::Unbalanced, 0.5, f.text.clone());
        if let Some(code) = &program.data.numpy {
            v.edit.push(edit("data/numpy", format!("{}\n{BALANCED}", code.trim_end())));
        }
        out.push(v);
    }
    out
}

/// Oversamples each class to the size of the largest.
const BALANCED: &str = "_c = y if y.ndim == 1 else (y.argmax(1) if y.shape[1] > 1 else y[:, 0])
_k, _n = np.unique(_c, return_counts=True)
_i = np.concatenate([rng.choice(np.flatnonzero(_c == k), _n.max()) for k in _k])
X, y = X[_i], y[_i]
";

/// The suspicions, if nothing repaired a program that stays at chance.
pub(crate) fn unproved(findings: &[Suspicion], found: &Found) -> Vec<Reason> {
    let strong = findings.iter().filter(|f| f.strength >= 0.5).take(3);
    strong
        .map(|f| Reason {
            cause: f.cause,
            place: f.place.clone(),
            since: f.since,
            confidence: 0.2 + 0.2 * f.strength,
            evidence: format!("{}; no change that was tried repaired the program", f.text),
            numbers: f.numbers.clone(),
            end: f.cause.in_the_end().to_string(),
            edit: Vec::new(),
            before: found.base,
            after: found.after,
        })
        .collect()
}

impl Report {
    /// As JSON, for the command's `--json`.
    pub fn json(&self) -> Value {
        json!({
            "id": self.id, "learns": self.learns,
            "causes": self.causes.iter().map(Reason::json).collect::<Vec<_>>(),
            "skill": short(self.skill), "best": short(self.best), "after": short(self.after),
            "alternatives": self.alternatives, "curves": curves::json(&self.curves),
            "runs": self.runs, "seconds": (self.seconds * 1e3).round() / 1e3,
        })
    }

    /// As text for people.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        if self.causes.is_empty() && !self.learns {
            let (id, skill, runs) = (&self.id, self.skill, self.runs);
            return format!(
                "{id}: skill {skill:.2}, and none of {runs} runs with changes says why."
            );
        }
        if self.causes.is_empty() {
            out.push(format!(
                "{}: it learns. Skill {:.2} (0 is the best constant answer, 1 perfect); the best of {} runs with changes came to {:.2}.",
                self.id, self.skill, self.runs, self.best
            ));
            return out.join("\n");
        }
        let known = self.causes.iter().any(|v| !v.edit.is_empty());
        out.push(match known {
            true => format!(
                "{}: skill {:.2}, and {:.2} with the edits below.",
                self.id, self.skill, self.after
            ),
            false => format!("{}: skill {:.2}.", self.id, self.skill),
        });
        out.extend(self.causes.iter().enumerate().map(|(i, v)| v.text(i + 1)));
        if !self.alternatives.is_empty() {
            out.push(format!("\nJust as good: {}.", self.alternatives.join("; ")));
        }
        out.push("\ncurves beside the original:".to_string());
        out.extend(curves::lines(&self.curves));
        out.push(format!("\n{} runs in {:.1} s.", self.runs, self.seconds));
        out.join("\n")
    }

    /// The report as a self-contained page, with the curves as pictures.
    pub fn html(&self) -> String {
        curves::html(&format!("Diagnosis of {}", self.id), &self.text(), &self.curves)
    }
}
