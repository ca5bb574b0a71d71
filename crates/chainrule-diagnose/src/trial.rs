//! Diagnosis of a training that is not a description: a user's own loop, which this crate can only
//! run with some things changed.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cause::Cause;
use crate::change::Change::{self, *};
use crate::curves::{self, Curve, words};
use crate::detect::Suspicion;
use crate::diagnosis::{Rate, proved, remedies, unproved};
use crate::lab::{Experiment, Trial};
use crate::reason::{Losses, Reason, short};
use crate::search::{Search, clash};

/// One run of a training.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// The loss of each step.
    pub losses: Vec<f32>,
    /// Skill on the rows that were trained on: 0 for the best constant answer, 1 for a perfect one.
    pub fit: f64,
    /// Skill on rows that were kept back.
    pub held: Option<f64>,
}

/// A training that can be run with some things changed.
///
/// A run with no changes is the training as it is. The same changes and seed give the same run.
pub trait Trainable: Sync {
    /// Changes that it can make, and that change something.
    fn offers(&self) -> Vec<Change>;

    /// Trains with these changes; none if they cannot be combined, or if time ran out before the
    /// end.
    fn train(&self, changes: &[Change], seed: usize, deadline: Instant) -> Option<Course>;

    /// The edit that makes a change, in terms of the training's own settings.
    fn edit(&self, change: Change) -> String {
        change.text().to_string()
    }

    /// The learning rate.
    fn lr(&self) -> f64;

    /// Whether the optimizer is plain gradient descent, with or without momentum.
    fn is_sgd(&self) -> bool;

    /// Suspicions from the model, the data or the loss, known before the first step.
    fn findings(&self) -> Vec<Suspicion> {
        Vec::new()
    }

    /// Whether single runs say little, since the model and the table are tiny.
    fn is_chancy(&self) -> bool {
        false
    }
}

/// Limits of a diagnosis.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Training runs at most.
    pub runs: usize,
    /// Time for all of them.
    pub time: Duration,
    /// Runs in parallel; the report does not depend on it.
    pub threads: usize,
}

impl Default for Effort {
    /// 60 runs in a minute, one at a time.
    fn default() -> Effort {
        Effort { runs: 60, time: Duration::from_secs(60), threads: 1 }
    }
}

/// Result of a diagnosis of a training.
#[derive(Clone, Debug)]
pub struct Proof {
    /// Whether it learns what it can.
    pub learns: bool,
    /// The causes, the likeliest first.
    pub causes: Vec<Reason>,
    /// Skill of the training as it is, the median over seeds.
    pub skill: f64,
    /// The best skill that any set of changes had.
    pub best: f64,
    /// Skill with the edits of all causes.
    pub after: f64,
    /// Other sets of changes that do as well.
    pub alternatives: Vec<String>,
    /// The sets of changes whose curves the report shows.
    shown: Vec<Vec<Change>>,
    /// The runs of the first seed that finished, by their changes.
    pub curves: BTreeMap<Vec<Change>, Course>,
    /// The changes of the proposed edits.
    pub changes: Vec<Change>,
    /// Training runs.
    pub runs: usize,
    /// Whether time ran out.
    pub late: bool,
}

/// Runs by their changes and seed; none for those that did not finish.
type Known = BTreeMap<(Vec<Change>, usize), Option<Course>>;

/// The bench of one training.
struct Runs<'a> {
    training: &'a dyn Trainable,
    deadline: Instant,
    known: Mutex<Known>,
}

impl Runs<'_> {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn course(&self, changes: &[Change], seed: usize) -> Option<Course> {
        let mut key = changes.to_vec();
        key.sort();
        if let Some(known) = self.known().get(&(key.clone(), seed)) {
            return known.clone();
        }
        let is_over = Instant::now() >= self.deadline;
        let course = match is_over {
            true => None,
            false => self.training.train(&key, seed, self.deadline),
        };
        self.known().insert((key, seed), course.clone());
        course
    }
}

impl Experiment for Runs<'_> {
    fn run(&self, changes: &[Change], seed: usize) -> Option<Trial> {
        self.course(changes, seed).map(|c| Trial { fit: c.fit, held: c.held })
    }

    fn seeds(&self) -> usize {
        3
    }

    fn is_chancy(&self) -> bool {
        self.training.is_chancy()
    }
}

/// Names why a training does not learn, and proves it by runs with one thing changed.
///
/// ```
/// use std::time::Instant;
/// use chainrule_diagnose::{Cause, Change, Course, Effort, Trainable, prove};
///
/// /// A parabola, down which steps are far too short.
/// struct Parabola;
///
/// impl Trainable for Parabola {
///     fn offers(&self) -> Vec<Change> {
///         vec![Change::Up10, Change::Up100, Change::Down10]
///     }
///
///     fn train(&self, changes: &[Change], _seed: usize, _: Instant) -> Option<Course> {
///         let lr = changes.iter().fold(self.lr(), |lr, c| match c {
///             Change::Up10 => lr * 10.0,
///             Change::Up100 => lr * 100.0,
///             _ => lr / 10.0,
///         });
///         let mut w = 1.0f64;
///         let mut losses = Vec::new();
///         for _ in 0..50 {
///             losses.push((w * w) as f32);
///             w -= lr * 2.0 * w;
///         }
///         Some(Course { losses, fit: 1.0 - w.abs(), held: None })
///     }
///
///     fn lr(&self) -> f64 { 1e-3 }
///     fn is_sgd(&self) -> bool { true }
/// }
///
/// let proof = prove(&Parabola, Effort::default());
/// assert_eq!(proof.causes[0].cause, Cause::LrLow);
/// assert!(proof.skill < 0.1 && proof.after > 0.9);
/// ```
pub fn prove(training: &dyn Trainable, effort: Effort) -> Proof {
    let deadline = Instant::now() + effort.time;
    let runs = Runs { training, deadline, known: Mutex::default() };
    let mut findings = training.findings();
    let first = runs.course(&[], 0);
    findings.extend(of_losses(first.as_ref().map_or(&[][..], |c| &c.losses)));
    findings.sort_by(|a, b| b.strength.total_cmp(&a.strength));
    let offers = training.offers();
    let fits = |changes: &[Change]| {
        changes.iter().enumerate().all(|(i, &c)| {
            offers.contains(&c)
                && c != ShuffledTargets
                && !changes[..i].iter().any(|&d| clash(c, d))
        })
    };
    let (certain, suspects) = remedies(&findings);
    let keep = |list: Vec<Change>| list.into_iter().filter(|c| fits(&[*c])).collect::<Vec<_>>();
    let search = Search::new(&runs, effort.runs, effort.threads);
    let found = search.run(&keep(certain), &keep(suspects), &fits);
    let rate = Rate { lr: training.lr(), is_sgd: training.is_sgd() };
    let edits = |order: &[Change]| order.iter().map(|&c| vec![training.edit(c).into()]).collect();
    let mut causes = proved(&edits, rate, &findings, &found);
    let late = Instant::now() >= deadline;
    if causes.is_empty() && !late && offers.contains(&ShuffledTargets) {
        causes.extend(control(&runs, found.base, found.ceiling.max(found.after), first.as_ref()));
    }
    let unknown = !found.repaired && found.base < 0.3;
    if causes.is_empty() && (unknown || found.base < 0.5 * found.goal()) {
        causes.extend(unproved(&findings, &found));
    }
    let losses = Losses { course: first.as_ref().map_or(&[][..], |c| &c.losses), constant: None };
    causes.iter_mut().for_each(|cause| losses.tell(cause));
    let known = runs.known();
    let curves = known.iter().filter(|((_, seed), _)| *seed == 0);
    Proof {
        learns: causes.is_empty() && !unknown,
        skill: found.base,
        best: found.ceiling.max(found.after),
        after: found.after,
        alternatives: if causes.is_empty() { Vec::new() } else { found.as_good() },
        shown: if causes.is_empty() { vec![Vec::new()] } else { found.shown() },
        curves: curves.filter_map(|((c, _), run)| Some((c.clone(), run.clone()?))).collect(),
        changes: if causes.is_empty() { Vec::new() } else { found.changes.clone() },
        runs: known.len(),
        late,
        causes,
    }
}

/// Shuffled labels as the cause, if the model learns no more from the labels than from labels in
/// another order.
fn control(runs: &Runs<'_>, base: f64, best: f64, first: Option<&Course>) -> Option<Reason> {
    let held = first?.held?;
    if best > 0.25 {
        return None;
    }
    let control = runs.course(&[ShuffledTargets], 0)?;
    if held > control.held? + 0.1 {
        return None;
    }
    let evidence = format!(
        "on rows kept back the skill is {held:.2}, with the targets shuffled {:.2}, and no change that was tried reached more than {:.2}",
        control.held?,
        best.max(0.0)
    );
    Some(Reason {
        cause: Cause::Labels,
        place: "data".to_string(),
        since: 0,
        confidence: 0.7,
        evidence,
        numbers: vec![("held", held), ("held_shuffled", control.held?)],
        end: Cause::Labels.in_the_end().to_string(),
        edit: Vec::new(),
        before: base,
        after: best,
    })
}

fn mean(part: &[f64]) -> f64 {
    part.iter().sum::<f64>() / part.len().max(1) as f64
}

/// Suspicions from the course of the loss alone.
fn of_losses(losses: &[f32]) -> Vec<Suspicion> {
    let finding = |cause, strength, since, text: String, remedies: &[Change]| Suspicion {
        cause,
        strength,
        place: "optimizer/lr".to_string(),
        since,
        text,
        numbers: Vec::new(),
        remedies: remedies.to_vec(),
    };
    let mut out = Vec::new();
    if let Some(at) = losses.iter().position(|l| !l.is_finite()) {
        let text = format!("the loss is not finite since step {at}");
        out.push(finding(Cause::LrHigh, 0.8, at, text, &[Down10, Down100, Adam]));
        return out;
    }
    let losses: Vec<f64> = losses.iter().map(|&l| f64::from(l)).collect();
    if losses.len() < 8 {
        return out;
    }
    let tenth = losses.len().div_ceil(10);
    let (start, end) = (mean(&losses[..tenth]), mean(&losses[losses.len() - tenth..]));
    let before = mean(&losses[losses.len() - 2 * tenth..losses.len() - tenth]);
    let fell = |from: f64, to: f64| (from - to) / from.abs().max(1e-12);
    if end > 1.5 * losses[0].abs().max(1e-12) || fell(start, end) < -0.2 {
        let text = format!("the loss goes from {:.4} to {end:.4}", losses[0]);
        out.push(finding(Cause::LrHigh, 0.8, 0, text, &[Down10, Down100, Adam]));
    } else if fell(losses[0].max(start), end) < 0.02 {
        let text = format!("the loss goes from {start:.4} to {end:.4} only");
        out.push(finding(Cause::LrLow, 0.6, 0, text.clone(), &[Up10, Up100, AdamFast]));
        out.push(finding(Cause::InitScale, 0.3, 0, text.clone(), &[Init]));
        out.push(finding(Cause::LrHigh, 0.3, 0, text, &[Down10, Down100]));
    } else if fell(before, end) > 0.02 {
        let text = format!("the loss still falls at the end, from {before:.4} to {end:.4}");
        out.push(finding(Cause::EpochsFew, 0.5, 0, text.clone(), &[Longer]));
        out.push(finding(Cause::LrLow, 0.45, 0, text, &[Up10, AdamFast, Up100]));
    } else {
        let text = format!("the loss stays at {end:.4}");
        out.push(finding(Cause::LrHigh, 0.3, 0, text.clone(), &[Down10]));
        out.push(finding(Cause::Capacity, 0.2, 0, text, &[Wider]));
    }
    out
}

impl Proof {
    /// The report as JSON with the curves that `text` shows.
    pub fn shown_json(&self) -> Value {
        let mut all = self.json();
        all["curves"] = curves::json(&self.shown_curves());
        all
    }

    /// The report as JSON, with the curves of all runs.
    pub fn json(&self) -> Value {
        let kinds = |set: &[Change]| set.iter().map(|c| c.kind()).collect::<Vec<_>>();
        let curve = |(set, course): (&Vec<Change>, &Course)| {
            json!({
                "changes": kinds(set), "text": words(set), "losses": course.losses,
                "fit": short(course.fit), "held": course.held.map(short),
            })
        };
        json!({
            "learns": self.learns, "skill": short(self.skill), "best": short(self.best),
            "after": short(self.after), "late": self.late, "runs": self.runs,
            "causes": self.causes.iter().map(Reason::json).collect::<Vec<_>>(),
            "alternatives": self.alternatives, "changes": kinds(&self.changes),
            "curves": self.curves.iter().map(curve).collect::<Vec<_>>(),
        })
    }

    fn shown_curves(&self) -> Vec<Curve> {
        let curve = |set: &Vec<Change>| Some((set.clone(), self.curves.get(set)?.clone()));
        self.shown.iter().filter_map(curve).collect()
    }

    /// The report as a self-contained page, with the curves as pictures.
    pub fn html(&self, title: &str) -> String {
        curves::html(title, &self.text(), &self.shown_curves())
    }

    /// The report as text for people.
    pub fn text(&self) -> String {
        let (skill, runs) = (self.skill, self.runs);
        let late = if self.late { " Time ran out; more seconds may say more." } else { "" };
        if self.causes.is_empty() {
            return match self.learns {
                true => format!(
                    "It learns: skill {skill:.2} (0 is the best constant answer, 1 perfect); the best of {runs} runs came to {:.2}.{late}",
                    self.best
                ),
                false => format!("Skill {skill:.2}, and none of {runs} runs says why.{late}"),
            };
        }
        let proved = self.causes.iter().any(|v| !v.edit.is_empty());
        let mended = format!(", and {:.2} with the edits below", self.after);
        let mended = if proved { mended } else { String::new() };
        let mut out = vec![format!("Skill {skill:.2}{mended}.")];
        out.extend(self.causes.iter().enumerate().map(|(i, v)| v.text(i + 1)));
        if !self.alternatives.is_empty() {
            out.push(format!("\nJust as good: {}.", self.alternatives.join("; ")));
        }
        out.push("\ncurves beside the original:".to_string());
        out.extend(curves::lines(&self.shown_curves()));
        out.push(format!("\n{runs} runs.{late}"));
        out.join("\n")
    }
}
