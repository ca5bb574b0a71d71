//! The search for the smallest set of changes that repairs a program.
//!
//! A ceiling says what can be reached: a run with everything changed at once. Changes are added one
//! at a time, from the suspects. If that does not reach the ceiling, everything is changed and
//! changes are taken back one at a time, unsuspected ones first. Changes that turn out not to be
//! needed are left out, and the remaining set is tried on other seeds.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::change::Change::{self, *};
use crate::curves::words;
use crate::lab::Experiment;

/// Gain below which two runs count as equal.
const EVEN: f64 = 0.03;
/// If a program's skills over seeds are further apart than this, the seed decides.
const CHANCE: f64 = 0.3;
/// Skill below which a program is hardly better than a constant.
const AT_CHANCE: f64 = 0.3;
/// The gain that a change must bring if the ceiling is low.
const WORTH: f64 = 0.12;
/// A skill above every goal.
const ENOUGH: f64 = 0.92;
/// Sets of changes that are tried before the best of them is chosen; the same on all machines.
const TOGETHER: usize = 2;
/// Sets of changes that are tried on all seeds to replace one that does not hold there.
const OTHER_SETS: usize = 3;
/// Seeds for each set of changes in the search, if one seed says little.
const FEW_SEEDS: usize = 3;
/// Everything at once, except the rate.
const ALL: &[Change] = &[
    ScaleX,
    ScaleY,
    OutputPair,
    ReluHidden,
    Init,
    NoRegularisation,
    Wider,
    Shuffle,
    Longer,
    NoClip,
];
/// Changes to try if the suspects do not repair it, in this order.
const OTHERS: &[Change] = &[
    ScaleX,
    AdamFast,
    OutputPair,
    ScaleY,
    Init,
    Up10,
    Longer,
    Wider,
    ReluHidden,
    Down10,
    Adam,
    NoRegularisation,
    Batch32,
    Shuffle,
    NoClip,
    NoDecay,
    UsualMoments,
];

/// Result of a search.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Skill of the program as it is, over seeds.
    pub base: f64,
    /// Skill with everything changed at once.
    pub ceiling: f64,
    /// Skill of the run with everything changed; minus infinity if there was none.
    pub everything: f64,
    /// The changes that repair it; none if none do, or if there is nothing to repair.
    pub changes: Vec<Change>,
    /// Skill with them, over seeds.
    pub after: f64,
    /// Skill with all of them but one, for each.
    pub without: Vec<(Change, f64)>,
    /// Single changes that do as well.
    pub alternatives: Vec<(Vec<Change>, f64)>,
    /// Whether the target skill is reached.
    pub repaired: bool,
    /// Whether the program as it is reaches the goal with some of the seeds.
    pub learns_by_chance: bool,
}

impl Found {
    /// The skill that a repair must reach.
    pub fn goal(&self) -> f64 {
        goal(self.ceiling)
    }

    /// The alternatives in words, with their skill.
    pub(crate) fn as_good(&self) -> Vec<String> {
        self.alternatives.iter().map(|(s, v)| format!("{} ({v:.2})", words(s))).collect()
    }

    /// The sets of changes whose curves a report shows: none, the repair, the repair but for one,
    /// and what does as well.
    pub(crate) fn shown(&self) -> Vec<Vec<Change>> {
        let sorted = |mut set: Vec<Change>| {
            set.sort();
            set
        };
        let mut out = vec![Vec::new()];
        let mut add = |set: Vec<Change>| {
            let set = sorted(set);
            if !out.contains(&set) {
                out.push(set);
            }
        };
        add(self.changes.clone());
        for &left_out in &self.changes {
            add(self.changes.iter().copied().filter(|&c| c != left_out).collect());
        }
        self.alternatives.iter().for_each(|(set, _)| add(set.clone()));
        out
    }
}

fn goal(ceiling: f64) -> f64 {
    (0.9 * ceiling).max(ceiling - 0.08)
}

/// The share of the skill that must remain when a change is left out.
fn enough(is_certain: bool, with: f64, goal: f64) -> f64 {
    match is_certain {
        true => with - 0.005,
        false => (with - EVEN).min(goal.max(with - 2.0 * EVEN)),
    }
}

/// The search over one program.
pub struct Search<'a> {
    bench: &'a dyn Experiment,
    /// Runs at most.
    budget: usize,
    threads: usize,
    runs: AtomicUsize,
    /// Whether the program as it is learns from some seeds and not from others, so that one run of
    /// a change tells little.
    differs: AtomicBool,
    tried: Mutex<BTreeMap<Vec<Change>, f64>>,
}

/// The median of up to three skills; of more, the one that two thirds reach.
fn usual(mut x: Vec<f64>) -> f64 {
    x.sort_by(f64::total_cmp);
    x.get(x.len() / 3).copied().unwrap_or(f64::NEG_INFINITY)
}

/// Whether two changes concern the same thing, so that they exclude each other.
pub(crate) fn clash(a: Change, b: Change) -> bool {
    let output = |c| matches!(c, OutputFit | OutputPair);
    let form = |c| matches!(c, LossForm | OutputPair);
    let whole = |c| matches!(c, Adam | AdamFast);
    let part = |c| matches!(c, NoDecay | UsualMoments);
    let length = |c| matches!(c, Longer | Shorter);
    let decay = |c| matches!(c, NoRegularisation | WeightDecay);
    if (whole(a) && part(b)) || (part(a) && whole(b)) {
        return true;
    }
    a == b
        || (length(a) && length(b))
        || (decay(a) && decay(b))
        || (a.is_of_rate() && b.is_of_rate())
        || (output(a) && output(b))
        || (form(a) && form(b))
}

impl<'a> Search<'a> {
    /// A search with at most this many runs, this many in parallel.
    pub fn new(bench: &'a dyn Experiment, budget: usize, threads: usize) -> Search<'a> {
        let (runs, differs, tried) = Default::default();
        Search { bench, budget, threads, runs, differs, tried }
    }

    fn spent(&self) -> bool {
        self.runs.load(Ordering::Relaxed) >= self.budget
    }

    /// The skills of these sets of changes over this many seeds; the number of threads makes no
    /// difference.
    fn values(&self, sets: &[Vec<Change>], seeds: usize) -> Vec<Option<f64>> {
        let jobs: Vec<(usize, usize)> =
            (0..sets.len()).flat_map(|set| (0..seeds).map(move |seed| (set, seed))).collect();
        let results = Mutex::new(vec![None; jobs.len()]);
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(&(set, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let trial = self.bench.run(&sets[set], seed);
                let at = set * seeds + seed;
                results.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[at] = trial;
            }
        };
        self.runs.fetch_add(jobs.len(), Ordering::Relaxed);
        match self.threads.min(jobs.len()) {
            0 | 1 => work(),
            threads => std::thread::scope(|scope| {
                (0..threads).for_each(|_| {
                    scope.spawn(work);
                })
            }),
        }
        let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut tried = self.tried.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        sets.iter()
            .zip(results.chunks(seeds))
            .map(|(set, trials)| {
                let each: Option<Vec<f64>> =
                    trials.iter().map(|t| t.as_ref().map(|t| t.value())).collect();
                let value = each.map(usual);
                if let Some(value) = value {
                    let mut key = set.clone();
                    key.sort();
                    tried.insert(key, value);
                }
                value
            })
            .collect()
    }

    fn seeds(&self) -> usize {
        let is_chancy = self.bench.is_chancy() || self.differs.load(Ordering::Relaxed);
        if is_chancy { self.few_seeds() } else { 1 }
    }

    /// Seeds of the search itself; a repair is tried on all seeds.
    fn few_seeds(&self) -> usize {
        self.bench.seeds().min(FEW_SEEDS)
    }

    fn value(&self, set: &[Change]) -> Option<f64> {
        self.values(&[set.to_vec()], self.seeds())[0]
    }

    /// The changes of a list that change something, one after another.
    fn fitting(&self, wanted: &[Change], fits: &dyn Fn(&[Change]) -> bool) -> Vec<Change> {
        let mut out = Vec::new();
        for &change in wanted {
            out.push(change);
            if !fits(&out) {
                out.pop();
            }
        }
        out
    }

    /// The skill of the program as it is, over seeds.
    pub fn base(&self) -> f64 {
        let median = self.values(&[Vec::new()], self.few_seeds())[0].unwrap_or(-1.0);
        let each = (0..self.few_seeds()).filter_map(|seed| self.bench.run(&[], seed));
        let (low, high) = each.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), trial| {
            (low.min(trial.value()), high.max(trial.value()))
        });
        self.differs.store(high - low > CHANCE, Ordering::Relaxed);
        median
    }

    /// The best of the sets that change everything, and its skill.
    fn ceiling(&self, fits: &dyn Fn(&[Change]) -> bool) -> (Vec<Change>, f64) {
        let mut best = (Vec::new(), f64::NEG_INFINITY);
        // Without Adam, the rate itself can be changed.
        let adam = fits(&[AdamFast]) || fits(&[Adam]);
        let rates: &[Change] = if adam { &[AdamFast, Adam] } else { &[Up10, Up100, Down10] };
        for &rate in rates {
            let set = self.fitting(&[ALL, &[rate]].concat(), fits);
            match self.value(&set) {
                Some(value) if value > best.1 => best = (set, value),
                _ => {}
            }
            if best.1 >= ENOUGH {
                return best;
            }
        }
        // Wider layers cost steps where work is limited, and the usual rates do not suit every
        // program.
        for left_out in [|c: Change| c == Wider, |c: Change| c.is_of_rate()] {
            let set: Vec<Change> = best.0.iter().copied().filter(|c| !left_out(*c)).collect();
            if set.len() < best.0.len()
                && let Some(value) = self.value(&set).filter(|&v| v > best.1 + EVEN)
            {
                best = (set, value);
            }
        }
        best
    }

    /// Searches. `certain` are the changes that the description itself asks for, `suspects` those
    /// that findings propose, best first; `fits` says whether changes can stand together.
    pub fn run(
        &self,
        certain: &[Change],
        suspects: &[Change],
        fits: &dyn Fn(&[Change]) -> bool,
    ) -> Found {
        let mut found = Found { base: self.base(), ..Found::default() };
        found.everything = f64::NEG_INFINITY;
        (found.ceiling, found.after) = (found.base, found.base);
        if found.base >= ENOUGH {
            found.repaired = true;
            return found;
        }
        let mut now = (Vec::new(), self.value(&[]).unwrap_or(-1.0));
        self.start(certain, ENOUGH, fits, &mut now);
        let mut everything = Vec::new();
        if now.1 < ENOUGH {
            (everything, found.everything) = self.ceiling(fits);
        }
        found.ceiling = found.everything.max(found.base).max(now.1);
        let goal = found.goal();
        if found.base >= goal {
            found.repaired = found.everything.is_finite();
            if found.base < AT_CHANCE {
                self.above_the_ceiling(&mut found, certain, suspects, fits, now);
            }
            return found;
        }
        self.climb(suspects, goal, fits, &mut now);
        if now.1 < goal {
            self.descend(&everything, found.everything, suspects, goal, &mut now);
        }
        if now.1 < goal {
            self.climb(OTHERS, goal, fits, &mut now);
        }
        self.trim(certain, suspects, goal, &mut now);
        self.confirm(&mut found, certain, goal, fits, now);
        found
    }

    /// Tries the suspected changes for a program that stays at chance even with everything changed
    /// at once: one of those changes may be what holds it down.
    fn above_the_ceiling(
        &self,
        found: &mut Found,
        certain: &[Change],
        suspects: &[Change],
        fits: &dyn Fn(&[Change]) -> bool,
        mut now: (Vec<Change>, f64),
    ) {
        let least = found.base + WORTH;
        self.climb(suspects, least, fits, &mut now);
        if now.1 >= least {
            found.ceiling = found.ceiling.max(now.1);
            self.trim(certain, suspects, least, &mut now);
            self.confirm(found, certain, least, fits, now);
        }
    }

    /// Applies the changes that the description asks for, together.
    fn start(
        &self,
        certain: &[Change],
        goal: f64,
        fits: &dyn Fn(&[Change]) -> bool,
        now: &mut (Vec<Change>, f64),
    ) {
        let mut wanted: Vec<Change> = Vec::new();
        // A change that does nothing here must not exclude another of its kind.
        for &change in certain.iter().filter(|&&change| fits(&[change])) {
            if !wanted.iter().any(|&w| clash(w, change)) {
                wanted.push(change);
            }
        }
        let first = self.fitting(&wanted, fits);
        if first.is_empty() {
            return;
        }
        // An obvious mistake is fixed first, even if that alone does not help.
        if let Some(value) = self.value(&first).filter(|&v| v > now.1 - EVEN) {
            *now = (first.clone(), value);
        }
        if now.1 < goal && first.contains(&OutputFit) {
            let pair: Vec<Change> =
                first.iter().map(|&c| if c == OutputFit { OutputPair } else { c }).collect();
            if let Some(value) = self.value(&pair).filter(|&v| v > now.1 + EVEN) {
                *now = (pair, value);
            }
        }
    }

    /// Adds the change that helps most, again and again, until the goal is reached.
    fn climb(
        &self,
        changes: &[Change],
        goal: f64,
        fits: &dyn Fn(&[Change]) -> bool,
        now: &mut (Vec<Change>, f64),
    ) {
        while now.1 < goal && !self.spent() && now.0.len() < 6 {
            let with = |c: Change| {
                let kept = now.0.iter().copied().filter(|&n| !clash(n, c));
                kept.chain([c]).collect::<Vec<Change>>()
            };
            let sets = changes.iter().filter(|c| !now.0.contains(c)).map(|&c| with(c));
            let sets: Vec<Vec<Change>> = sets.filter(|s| fits(s)).collect();
            let mut best: Option<(Vec<Change>, f64)> = None;
            for part in sets.chunks(TOGETHER) {
                for (set, value) in part.iter().zip(self.values(part, self.seeds())) {
                    let Some(value) = value else { continue };
                    // Among those that reach the goal, the first suspect wins.
                    if best.as_ref().is_none_or(|b| b.1 < goal && value > b.1) {
                        best = Some((set.clone(), value));
                    }
                }
                if self.spent() || best.as_ref().is_some_and(|b| b.1 >= goal) {
                    break;
                }
            }
            match best.filter(|b| b.1 > now.1 + EVEN) {
                Some(best) => *now = best,
                None => break,
            }
        }
    }

    /// From everything changed at once down to the needed changes.
    fn descend(
        &self,
        everything: &[Change],
        ceiling: f64,
        suspects: &[Change],
        goal: f64,
        now: &mut (Vec<Change>, f64),
    ) {
        if ceiling < now.1 + 0.05 {
            return;
        }
        let suspected = everything.iter().copied().filter(|c| suspects.contains(c));
        let few: Vec<Change> = suspected.collect();
        *now = match self.value(&few).filter(|&v| v >= goal && few.len() < everything.len()) {
            Some(value) => (few, value),
            None => (everything.to_vec(), ceiling),
        };
    }

    /// Leaves out unneeded changes, the least suspected first. A change that the description itself
    /// asks for is left out only if nothing at all is lost without it.
    fn trim(
        &self,
        certain: &[Change],
        suspects: &[Change],
        goal: f64,
        now: &mut (Vec<Change>, f64),
    ) {
        let rank = |c: &Change| suspects.iter().position(|s| s == c).unwrap_or(usize::MAX);
        let mut order = now.0.clone();
        order.sort_by_key(|c| (std::cmp::Reverse(rank(c)), std::cmp::Reverse(*c)));
        for change in order {
            if now.0.len() < 2 {
                break;
            }
            let rest: Vec<Change> = now.0.iter().copied().filter(|&c| c != change).collect();
            let enough = enough(certain.contains(&change), now.1, goal);
            if let Some(value) = self.value(&rest).filter(|&v| v >= enough) {
                *now = (rest, value);
            }
        }
    }

    /// Sets of changes that reached the goal with one seed and are no larger than this one, the
    /// smallest first. They include the changes that the description itself asks for.
    fn others(&self, set: &[Change], certain: &[Change], goal: f64) -> Vec<Vec<Change>> {
        let asked: Vec<Change> = set.iter().copied().filter(|c| certain.contains(c)).collect();
        let tried = self.tried.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_other = |s: &[Change]| {
            !s.is_empty() && s.len() <= set.len() && asked.iter().all(|c| s.contains(c))
        };
        let mut out: Vec<(&Vec<Change>, f64)> =
            tried.iter().map(|(s, v)| (s, *v)).filter(|(s, v)| *v >= goal && is_other(s)).collect();
        out.sort_by(|a, b| a.0.len().cmp(&b.0.len()).then(b.1.total_cmp(&a.1)));
        let same = |s: &&Vec<Change>| s.iter().any(|c| !set.contains(c));
        out.into_iter().map(|(s, _)| s).filter(same).take(OTHER_SETS).cloned().collect()
    }

    /// Replacements for a set that does not reach the goal on all seeds, with their skill: another
    /// set that does, or one change more.
    fn instead(
        &self,
        now: (Vec<Change>, f64),
        certain: &[Change],
        goal: f64,
        fits: &dyn Fn(&[Change]) -> bool,
    ) -> (Vec<Change>, f64) {
        let seeds = self.bench.seeds();
        let set = &now.0;
        let best = |sets: Vec<Vec<Change>>, from: (Vec<Change>, f64)| {
            let values = self.values(&sets, seeds);
            let each = sets.into_iter().zip(values).filter_map(|(s, v)| Some((s, v?)));
            each.fold(from, |a, b| if b.1 > a.1 + EVEN { b } else { a })
        };
        let now = best(self.others(set, certain, goal), now.clone());
        if now.1 >= goal {
            return now;
        }
        let more = [Longer, Wider, Init, ScaleX, AdamFast, Adam]
            .iter()
            .filter(|c| !now.0.iter().any(|&s| clash(s, **c)))
            .map(|&c| [&now.0[..], &[c]].concat())
            .filter(|s| fits(s));
        best(more.collect(), now)
    }

    /// Tries the changes on all seeds, replaces them if that is not enough, and leaves out those
    /// that no seed needs.
    fn confirm(
        &self,
        found: &mut Found,
        certain: &[Change],
        goal: f64,
        fits: &dyn Fn(&[Change]) -> bool,
        now: (Vec<Change>, f64),
    ) {
        if now.0.is_empty() {
            return;
        }
        let seeds = self.bench.seeds();
        let (mut set, one) = now;
        // If time runs out, the search's own runs must suffice.
        let mut value = self.values(std::slice::from_ref(&set), seeds)[0].unwrap_or(one);
        if value < goal {
            (set, value) = self.instead((set, value), certain, goal, fits);
        }
        found.without = vec![(set[0], found.base)];
        while set.len() > 1 {
            let rest = |c: Change| set.iter().copied().filter(|&s| s != c).collect::<Vec<_>>();
            let rests: Vec<Vec<Change>> = set.iter().map(|&c| rest(c)).collect();
            let values = self.values(&rests, seeds);
            found.without =
                set.iter().zip(values).map(|(&c, v)| (c, v.unwrap_or(found.base))).collect();
            let needless = |(change, left): &&(Change, f64)| {
                *left >= enough(certain.contains(change), value, goal)
            };
            let most = found.without.iter().filter(needless).max_by(|a, b| a.1.total_cmp(&b.1));
            let Some(&(change, left)) = most else { break };
            set.retain(|&c| c != change);
            value = left;
            found.without = vec![(set[0], found.base)];
        }
        let tried = self.tried.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let as_good = |(s, v): &(&Vec<Change>, &f64)| {
            **v >= value - EVEN && **s != set && s.len() <= set.len() && !s.is_empty()
        };
        found.alternatives =
            tried.iter().filter(as_good).map(|(s, v)| (s.clone(), *v)).take(3).collect();
        let each = (0..self.few_seeds()).filter_map(|seed| self.bench.run(&[], seed));
        found.learns_by_chance = each.into_iter().any(|trial| trial.value() >= goal);
        found.repaired = value >= goal - EVEN;
        found.after = value;
        found.changes = set;
    }
}
