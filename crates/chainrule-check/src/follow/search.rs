//! The search for the edits after which a recorded program gives the right results.

use super::edits::{Edit, edits};
use super::known::Known;
use super::replay::{Change, Replay, Run};
use crate::program::Id;
use crate::tensor::Tensor;
use crate::tensor::node::Source;
use crate::verdict::numbers::{Closeness, agree};

/// The right results of a program at one point.
pub(crate) struct Point {
    pub run: Run,
    pub due: Vec<Vec<f64>>,
}

/// The target of the search.
pub(crate) struct Goal {
    /// Edits are searched for at the first point, and confirmed at the others.
    pub points: Vec<Point>,
    pub close: Closeness,
    /// Rank of each instruction, which is added to the cost of its edits: the higher, the less
    /// likely it is the wrong one.
    pub ranks: Vec<f64>,
    /// Whether each instruction may be edited at all.
    pub open: Vec<bool>,
    /// The cost of each value that edits may take, by id.
    pub takes: Vec<Option<f64>>,
    /// Largest work of the search, in the units of [`Replay::spent`].
    pub work: u64,
}

/// The most cheap edits that are tried in pairs, each with each.
const CHEAP: usize = 700;

/// An edit that makes results right.
#[derive(Clone)]
pub(crate) struct Hit {
    pub edit: Edit,
    pub change: Change,
    pub cost: f64,
    /// The results that are right after it.
    pub right: Vec<bool>,
}

/// The outcome: edits that each suffice alone, or several that do together.
#[derive(Default)]
pub(crate) struct SearchOutcome {
    pub alone: Vec<Hit>,
    pub together: Vec<Hit>,
    /// Whether `together` makes every result right.
    pub is_whole: bool,
    pub tried: usize,
}

pub(crate) struct Search<'a> {
    replay: &'a Replay,
    goal: &'a Goal,
    /// The quantities of the right pass, if the program is not that pass itself.
    known: Option<&'a Known>,
    base: Vec<Vec<f64>>,
    right: Vec<bool>,
    until: u64,
    /// The changes kept so far.
    kept: Vec<Change>,
    tried: usize,
}

fn elements(value: &std::sync::Arc<crate::tensor::value::Value>) -> Vec<f64> {
    Tensor::from_parts(value.clone(), Source::None).to_f64_vec()
}

impl Goal {
    /// Whether a result is right at the first point.
    pub fn is_right(&self, result: usize, given: &[f64]) -> bool {
        self.close.same(&self.points[0].due[result], given)
    }
}

impl<'a> Search<'a> {
    pub fn new(replay: &'a Replay, goal: &'a Goal, known: Option<&'a Known>) -> Search<'a> {
        let mut search = Search {
            replay,
            goal,
            known,
            base: Vec::new(),
            right: Vec::new(),
            until: replay.spent() + goal.work,
            kept: Vec::new(),
            tried: 0,
        };
        search.settle();
        search
    }

    /// The results with all changes kept so far.
    fn settle(&mut self) {
        let found = self.replay.changed(&self.goal.points[0].run, &self.kept);
        let values = found.unwrap_or_default();
        self.base = values.iter().map(|v| v.as_ref().map(elements).unwrap_or_default()).collect();
        self.right = self.base.iter().enumerate().map(|(i, x)| self.goal.is_right(i, x)).collect();
    }

    fn is_late(&self) -> bool {
        self.replay.spent() > self.until
    }

    /// Edits of one instruction, or else several that suffice together.
    pub fn run(mut self) -> SearchOutcome {
        let mut found = SearchOutcome::default();
        if self.right.iter().all(|r| *r) {
            return found;
        }
        let (hits, mut partial) = self.one();
        if !hits.is_empty() {
            return SearchOutcome { alone: hits, tried: self.tried, ..found };
        }
        // Each of several mistakes makes some results wrong: an edit that repairs one and spoils
        // none is kept.
        let mut together: Vec<Hit> = Vec::new();
        for _ in 0..3 {
            let Some(best) = self.best(&partial) else { break };
            self.kept.push(best.change.clone());
            together.push(best);
            self.settle();
            if self.right.iter().all(|r| *r) {
                found.is_whole = true;
                break;
            }
            let (hits, more) = self.one();
            if let Some(last) = hits.into_iter().next() {
                together.push(last);
                found.is_whole = true;
                break;
            }
            partial = more;
        }
        if found.is_whole {
            found.together = together;
            found.tried = self.tried;
            return found;
        }
        self.kept.clear();
        self.settle();
        if let Some(by_value) = self.by_value() {
            return SearchOutcome {
                together: by_value,
                is_whole: true,
                tried: self.tried,
                ..found
            };
        }
        self.kept.clear();
        self.settle();
        if let Some(two) = self.two() {
            return SearchOutcome { together: two, is_whole: true, tried: self.tried, ..found };
        }
        SearchOutcome { together, tried: self.tried, ..found }
    }

    /// The best partial edit: the one that repairs most, then the cheapest.
    fn best(&self, partial: &[Hit]) -> Option<Hit> {
        let count = |h: &Hit| h.right.iter().filter(|r| **r).count();
        let most = partial.iter().map(count).max()?;
        let mut of_most = partial.iter().filter(|h| count(h) == most);
        let first = of_most.next()?;
        Some(of_most.fold(first, |a, b| if b.cost < a.cost { b } else { a }).clone())
    }

    /// Edits that make all right, the best first, and those that make more right than before.
    fn one(&mut self) -> (Vec<Hit>, Vec<Hit>) {
        let mut order: Vec<usize> = (0..self.replay.program.list().len()).collect();
        order.retain(|&at| self.goal.open[at] && self.matters(at));
        order.sort_by(|&a, &b| self.goal.ranks[a].total_cmp(&self.goal.ranks[b]));
        let (mut hits, mut partial): (Vec<Hit>, Vec<Hit>) = (Vec::new(), Vec::new());
        for at in order {
            if self.kept.iter().any(|c| c.at == at) {
                continue;
            }
            let takes = |id: Id| self.goal.takes[id.index()];
            let all = edits(self.replay, at, &takes);
            self.replay.wrote(all.len());
            for edit in all {
                let cost = edit.cost + self.goal.ranks[at];
                if self.is_late() || hits.iter().any(|h| h.cost + 0.4 < cost) {
                    break;
                }
                if let Some((change, right)) = self.try_edit(&edit) {
                    let all = right.iter().all(|r| *r);
                    let hit = Hit { edit, change, cost, right };
                    if all { hits.push(hit) } else { partial.push(hit) }
                }
            }
        }
        hits.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        (hits, partial)
    }

    /// Whether an instruction reaches a wrong result.
    fn matters(&self, at: usize) -> bool {
        let reaches = self.replay.reaches[at].iter().zip(&self.right);
        reaches.into_iter().any(|(reaches, right)| *reaches && !right)
    }

    /// The edit as a change with its number, if it makes more right than before, and which results.
    fn try_edit(&mut self, edit: &Edit) -> Option<(Change, Vec<bool>)> {
        self.tried += 1;
        let mut change = Change { at: edit.at, to: edit.to.clone(), number: 0.0 };
        if let Some(from) = edit.from {
            change.number = from + 1.0;
            change.number = self.solved(&change, from)?;
            if (change.number - from).abs() < 1e-9 {
                return None;
            }
        }
        let right = self.judged(0, &change)?;
        let better = right.iter().zip(&self.right).any(|(now, was)| *now && !was);
        let spoils = right.iter().zip(&self.right).any(|(now, was)| *was && !now);
        if !better || spoils || !self.tells(&change, &right) {
            return None;
        }
        for point in 1..self.goal.points.len() {
            if self.judged(point, &change)? != right {
                return None;
            }
        }
        Some((change, right))
    }

    fn with(&self, change: &Change) -> Vec<Change> {
        let mut all = self.kept.clone();
        all.push(change.clone());
        all.sort_by_key(|c| c.at);
        all
    }

    /// For each result whether it is right with a change.
    fn judged(&self, point: usize, change: &Change) -> Option<Vec<bool>> {
        let at = &self.goal.points[point];
        let results = self.replay.changed(&at.run, &self.with(change))?;
        let judge = |(i, value): (usize, &Option<_>)| {
            let Some(value) = value else { return false };
            if point == 0 && !self.replay.reaches[change.at][i] {
                return self.right[i];
            }
            self.goal.close.same(&at.due[i], &elements(value))
        };
        Some(results.iter().enumerate().map(judge).collect())
    }

    /// Whether enough numbers came right to rule out chance: each number that moved is one more
    /// equation, and this many edits were tried.
    fn tells(&self, change: &Change, right: &[bool]) -> bool {
        let came = |i: &usize| right[*i] && self.replay.reaches[change.at][*i];
        self.digits(came, usize::from(change.number != 0.0)) >= 9.0
    }

    /// Number of agreeing digits in results that were wrong, of numbers that are not the same one.
    fn digits(&self, came: impl Fn(&usize) -> bool, unknowns: usize) -> f64 {
        let mut moved = 0usize;
        for (i, due) in self.goal.points[0].due.iter().enumerate() {
            if self.right[i] || !came(&i) {
                continue;
            }
            let allowed = self.goal.close.allowed(due, &self.base[i]);
            let mut seen: Vec<f64> = Vec::new();
            for (d, b) in due.iter().zip(&self.base[i]) {
                let fresh = !seen.iter().any(|s| agree(*s, d - b, allowed));
                if (d - b).abs() > allowed && fresh && seen.len() < 16 {
                    seen.push(d - b);
                }
            }
            moved += seen.len();
        }
        let points = self.goal.points.len() as f64;
        (moved as f64 * points - unknowns as f64) * -self.goal.close.relative.log10()
    }

    /// The number that makes wrong results right, if they depend on it linearly; in `change` it is
    /// one more than in `from`.
    fn solved(&self, change: &Change, from: f64) -> Option<f64> {
        let run = &self.goal.points[0].run;
        let results = self.replay.changed(run, &self.with(change))?;
        let (mut top, mut below) = (0.0, 0.0);
        let wrong = |i: &usize| !self.right[*i] && self.replay.reaches[change.at][*i];
        let slopes: Vec<(usize, Vec<f64>)> = (0..results.len())
            .filter(wrong)
            .filter_map(|i| Some((i, elements(results[i].as_ref()?))))
            .collect();
        // One result is enough where another mistake spoils the others.
        let mut best = None;
        for (i, moved) in &slopes {
            let (base, due) = (&self.base[*i], &self.goal.points[0].due[*i]);
            let size = 1.0 / super::super::verdict::numbers::largest(due).max(1e-300);
            let (mut t, mut b) = (0.0, 0.0);
            for ((m, x), d) in moved.iter().zip(base).zip(due) {
                let (slope, missing) = ((m - x) * size, (d - x) * size);
                t += slope * missing;
                b += slope * slope;
            }
            if b < 1e-24 || !t.is_finite() {
                continue;
            }
            let c = t / b;
            let allowed = self.goal.close.allowed(due, base);
            let mut all = moved.iter().zip(base).zip(due);
            if all.all(|((m, x), d)| agree(x + c * (m - x), *d, 4.0 * allowed)) {
                best = best.or(Some(c));
                (top, below) = (top + t, below + b);
            }
        }
        best.filter(|_| below > 0.0).map(|c| {
            let all = top / below;
            tidy(from + if (all - c).abs() < 1e-4 * c.abs() { all } else { c })
        })
    }

    /// Mistakes on one path: an edit after which some value is a gradient of the right pass that no
    /// value was before, and then the rest.
    fn by_value(&mut self) -> Option<Vec<Hit>> {
        let known = self.known?;
        let mut together = Vec::new();
        for _ in 0..2 {
            let first = self.next_value(known)?;
            self.kept.push(first.change.clone());
            together.push(first);
            self.settle();
            let (hits, partial) = self.one();
            if let Some(last) = hits.into_iter().next() {
                together.push(last);
                return Some(together);
            }
            if let Some(best) = self.best(&partial) {
                self.kept.push(best.change.clone());
                together.push(best);
                self.settle();
            }
        }
        None
    }

    /// The likeliest edit after which a value next to it is a gradient that was missing.
    fn next_value(&mut self, known: &Known) -> Option<Hit> {
        let run = &self.goal.points[0].run;
        let gradient = |value: &std::sync::Arc<_>| {
            let found = known.find(&elements(value)).filter(|m| m.factor == 1.0)?;
            known.all[found.at].is_gradient.then_some(found.at)
        };
        let now = self.replay.changed_values(run, &self.kept)?;
        let mut had: Vec<usize> = Vec::new();
        for (now, before) in now.iter().zip(&run.values) {
            let value = now.as_ref().or(before.as_ref());
            had.extend(value.filter(|v| v.dtype().is_float()).and_then(gradient));
        }
        let mut best: Option<Hit> = None;
        let list = self.replay.program.list();
        let open = |at: &usize| self.goal.open[*at] && self.matters(*at);
        let places: Vec<usize> = (0..list.len()).filter(open).collect();
        for at in places {
            let takes = |id: Id| self.goal.takes[id.index()];
            for edit in edits(self.replay, at, &takes).into_iter().filter(|e| e.cost < 1.9) {
                let cost = edit.cost + self.goal.ranks[at];
                if self.is_late() || best.as_ref().is_some_and(|b| b.cost <= cost) {
                    break;
                }
                for number in numbers(&edit) {
                    self.tried += 1;
                    let change = Change { at, to: edit.to.clone(), number };
                    let Some(values) = self.replay.changed_values(run, &self.with(&change)) else {
                        continue;
                    };
                    let near = self.replay.below[at].iter().take(4);
                    let mut ids = near.map(|&k| list[k].result().index());
                    let fresh = ids.any(|i| {
                        let value = values[i].as_ref().filter(|v| v.dtype().is_float());
                        value.and_then(gradient).is_some_and(|q| !had.contains(&q))
                    });
                    if fresh {
                        let right = self.right.clone();
                        best = Some(Hit { edit: edit.clone(), change, cost, right });
                        break;
                    }
                }
            }
        }
        best
    }

    /// Two edits that together make everything right: on two paths, where their effects add up, or
    /// on one path, where each is tried with each.
    fn two(&mut self) -> Option<Vec<Hit>> {
        // Pairs come in millions.
        if self.digits(|_| true, 2) < 18.0 {
            return None;
        }
        let results = self.base.len();
        let weights: Vec<Vec<f64>> = (0..results).map(|i| self.weights(i)).collect();
        let sum = |x: &dyn Fn(usize) -> Vec<f64>| -> f64 {
            (0..results)
                .map(|i| x(i).iter().zip(&weights[i]).map(|(a, w)| a * w).sum::<f64>())
                .sum()
        };
        let due = sum(&|i| {
            let pairs = self.goal.points[0].due[i].iter().zip(&self.base[i]);
            pairs.map(|(d, b)| d - b).collect()
        });
        let mut all: Vec<(f64, Edit)> = Vec::new();
        for at in 0..self.replay.program.list().len() {
            if !self.goal.open[at] || !self.matters(at) {
                continue;
            }
            let takes = |id: Id| self.goal.takes[id.index()];
            for edit in edits(self.replay, at, &takes).into_iter().filter(|e| e.cost < 1.9) {
                if self.is_late() {
                    break;
                }
                for number in numbers(&edit) {
                    let change = Change { at, to: edit.to.clone(), number };
                    let Some(found) = self.replay.changed(&self.goal.points[0].run, &[change])
                    else {
                        continue;
                    };
                    let moved = sum(&|i| match &found[i] {
                        Some(v) if self.replay.reaches[at][i] => {
                            elements(v).iter().zip(&self.base[i]).map(|(x, b)| x - b).collect()
                        }
                        _ => Vec::new(),
                    });
                    if moved.is_finite() && moved != 0.0 {
                        let to = edit.to.with(number);
                        all.push((moved, Edit { to, from: None, ..edit.clone() }));
                    }
                }
            }
        }
        let cheap: Vec<Edit> = {
            let mut cheap: Vec<&Edit> =
                all.iter().map(|(_, e)| e).filter(|e| e.cost < 1.35).collect();
            cheap.sort_by(|a, b| a.cost.total_cmp(&b.cost));
            cheap.into_iter().take(CHEAP).cloned().collect()
        };
        self.adding(all, due).or_else(|| self.each_with_each(&cheap))
    }

    /// Two edits whose effects add up to what is missing.
    fn adding(&mut self, mut all: Vec<(f64, Edit)>, due: f64) -> Option<Vec<Hit>> {
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let size = all
            .iter()
            .fold(due.abs(), |m, (x, _)| if x.is_finite() { m.max(x.abs().min(1e6)) } else { m });
        let near = 10.0 * self.goal.close.relative * size.min(1e3).max(due.abs());
        let mut best: Option<(f64, Vec<Hit>)> = None;
        for (moved, edit) in &all {
            // In f32 almost any two fit by their sums.
            if self.is_late() {
                break;
            }
            let wanted = due - moved;
            let first = all.partition_point(|(x, _)| *x < wanted - near);
            for (_, other) in all[first..].iter().take_while(|(x, _)| *x <= wanted + near) {
                if other.at <= edit.at {
                    continue;
                }
                let cost =
                    edit.cost + other.cost + self.goal.ranks[edit.at] + self.goal.ranks[other.at];
                if best.as_ref().is_some_and(|b| b.0 <= cost) {
                    continue;
                }
                if let Some(hits) = self.pair(edit, other) {
                    best = Some((cost, hits));
                }
            }
        }
        best.map(|(_, hits)| hits)
    }

    /// Two cheap edits on one path, where the second changes the effect of the first.
    fn each_with_each(&mut self, cheap: &[Edit]) -> Option<Vec<Hit>> {
        for sum in 1..2 * cheap.len() {
            for i in sum.saturating_sub(cheap.len() - 1)..=(sum - 1) / 2 {
                let (a, b) = (&cheap[i], &cheap[sum - i]);
                let (first, second) = if a.at < b.at { (a, b) } else { (b, a) };
                if first.at == second.at || !self.replay.is_below(first.at, second.at) {
                    continue;
                }
                if self.is_late() {
                    return None;
                }
                if let Some(hits) = self.pair(first, second) {
                    return Some(hits);
                }
            }
        }
        None
    }

    /// The two edits as hits, if they make everything right at all points.
    fn pair(&mut self, first: &Edit, second: &Edit) -> Option<Vec<Hit>> {
        self.tried += 1;
        let of = |e: &Edit| Change { at: e.at, to: e.to.clone(), number: 0.0 };
        let (a, b) = (of(first), of(second));
        self.kept = vec![a.clone()];
        let all = |right: Vec<bool>| right.iter().all(|r| *r);
        let fits = (0..self.goal.points.len()).all(|p| {
            let due = &self.goal.points[p].due;
            let found = self.replay.changed(&self.goal.points[p].run, &[a.clone(), b.clone()]);
            found.is_some_and(|found| {
                let same = |(v, d): (&Option<_>, &Vec<f64>)| {
                    v.as_ref().is_some_and(|v| self.goal.close.same(d, &elements(v)))
                };
                all(found.iter().zip(due).map(same).collect())
            })
        });
        self.kept.clear();
        let right = vec![true; self.base.len()];
        fits.then(|| {
            [(first, a), (second, b)]
                .into_iter()
                .map(|(edit, change)| Hit {
                    cost: edit.cost,
                    edit: edit.clone(),
                    change,
                    right: right.clone(),
                })
                .collect()
        })
    }

    /// Random weights of a result's elements, relative to its size.
    fn weights(&self, result: usize) -> Vec<f64> {
        let due = &self.goal.points[0].due[result];
        // A result that is pure rounding beside the others counts little.
        let size = self.goal.close.allowed(due, &self.base[result]) / self.goal.close.relative;
        let scale = if size > 0.0 { 1.0 / size } else { 1.0 };
        let weight = |i: usize| {
            let x = ((result * 7919 + i + 1) as f64 * 0.618_033_988_749_894_9).fract();
            (x - 0.5) * scale
        };
        (0..due.len()).map(weight).collect()
    }
}

/// The numbers with which an edit is tried together with another one, since none can be solved for.
fn numbers(edit: &Edit) -> Vec<f64> {
    match edit.from {
        None => vec![0.0],
        Some(0.0) => vec![1.0, -1.0],
        Some(1.0) => vec![-1.0, 0.0, 2.0, 0.5],
        Some(x) => vec![-x, 2.0 * x, x / 2.0],
    }
}

/// A number that rounding moved from one with a meaning.
fn tidy(x: f64) -> f64 {
    (1..=64)
        .map(|d| ((x * f64::from(d)).round(), f64::from(d)))
        .find(|(top, d)| (top / d - x).abs() <= 1e-8 * x.abs().max(1e-3) && top.abs() < 4096.0)
        .map_or(x, |(top, d)| top / d)
}
