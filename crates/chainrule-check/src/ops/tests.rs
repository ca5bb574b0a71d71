//! The table passes its own checks, and at random points that include kinks there are no false
//! alarms.

use super::*;
use crate::gradcheck::GradCheck;
use crate::tensor::{Tensor, no_grad};

#[test]
fn every_op_of_the_table_passes() {
    let report = ops();
    assert!(report.passed(), "{report}");
    let derived = |op: &OpReport| op.count(Property::First).checked > 0;
    for entry in chainrule_core::ops::table().filter(|e| !e.gradient.is_empty()) {
        let op = report.ops.iter().find(|op| op.name == entry.name).unwrap();
        assert!(derived(op), "{} was not checked", entry.name);
    }
}

#[test]
fn names_are_found_and_unknown_ones_get_a_hint() {
    assert_eq!(name::entry("relu").unwrap().name, "relu");
    assert_eq!(name::entry("triu").unwrap().name, "tril, triu");
    let error = op("sofmax").unwrap_err().to_string();
    assert!(
        error.starts_with("check: no op is called \"sofmax\"; the nearest names are softmax"),
        "{error}"
    );
    assert!(!error.contains('\n'));
}

/// Number of times that all samples are turned into random points; `CHAINRULE_POINTS` sets another
/// number, `CHAINRULE_OP` looks at one op alone.
const ROUNDS: u64 = 1;

fn below(n: u64, g: &mut Generator) -> u64 {
    g.random_u64() % n
}

/// The sample's float inputs, with zeros, ties and numbers from a grid strewn in: there are the
/// kinks.
fn strewn(sample: &Sample, g: &mut Generator) -> Vec<Tensor> {
    let (kind, grid) = (below(4, g), [0.5, 0.25, 1.0][below(3, g) as usize]);
    let strew = |x: &Tensor| {
        let mut all = x.to_f64_vec();
        for j in 0..all.len() {
            match kind {
                0 => {}
                1 => all[j] = (all[j] / grid).round() * grid,
                2 if below(3, g) == 0 => all[j] = 0.0,
                3 if below(3, g) == 0 => all[j] = all[below(all.len() as u64, g) as usize],
                _ => {}
            }
        }
        Tensor::from_slice(&all, x.shape()).to_dtype(x.dtype())
    };
    sample.floats().iter().map(strew).collect()
}

/// Whether some element of the value has another slope on the other side, by differences of the
/// values alone. One input moves at a time, as in the check: the cosine of two vectors that are
/// both 0 jumps when both move, and has derivatives by each of them.
fn bends(f: &dyn Fn(&[Tensor]) -> Result<Tensor>, inputs: &[Tensor], g: &mut Generator) -> bool {
    (0..inputs.len()).any(|moving| bends_by(f, inputs, moving, g))
}

fn bends_by(
    f: &dyn Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[Tensor],
    moving: usize,
    g: &mut Generator,
) -> bool {
    let direction = Tensor::randn(inputs[moving].shape(), inputs[moving].dtype(), g);
    let at = |h: f64| -> Vec<f64> {
        let mut moved = inputs.to_vec();
        moved[moving] = &moved[moving] + &direction * h;
        no_grad(|| f(&moved)).map_or(Vec::new(), |y| y.to_f64_vec())
    };
    let middle = at(0.0);
    let bend = |h: f64| -> Vec<f64> {
        let (up, down) = (at(h), at(-h));
        let each = up.iter().zip(&middle).zip(&down);
        each.map(|((u, m), d)| ((u - m) - (m - d)).abs() / h).collect()
    };
    let (far, close) = (bend(1e-5), bend(1e-6));
    far.iter().zip(&close).any(|(far, close)| *far > 1e-3 && *close > 0.5 * far)
}

/// Results at many points.
#[derive(Debug, Default)]
struct Tally {
    points: usize,
    passed: usize,
    kinks: usize,
    uncertain: usize,
    not_finite: usize,
    outside: usize,
    alarms: Vec<String>,
    silent: Vec<String>,
}

fn visit(tally: &mut Tally, entry: &Entry, sample: &Sample, g: &mut Generator) {
    let inputs = strewn(sample, g);
    let f = |x: &[Tensor]| sample.try_on(x);
    let order = if sample.twice { 2 } else { 1 };
    let found: GradCheck = match gradcheck(f, &inputs).order(order).first_seed(g.random_u64()).run()
    {
        Ok(found) if !found.pairs.is_empty() => found,
        _ => {
            tally.outside += 1;
            return;
        }
    };
    tally.points += 1;
    let is = |outcome: Outcome| found.pairs.iter().any(|p| p.outcome == outcome);
    let wrong = |p: &&PairCheck| matches!(p.outcome, Outcome::Wrong(_) | Outcome::CutOff);
    let name = format!("{} ({})", entry.name, sample.note);
    let wrong: Vec<String> = found.pairs.iter().filter(wrong).map(PairCheck::to_string).collect();
    let silent = !is(Outcome::Kink) && !is(Outcome::NotFinite) && bends(&f, &inputs, g);
    match () {
        _ if !wrong.is_empty() => {
            tally.alarms.push(format!("{name}: {inputs:?}: {}", wrong.join("\n    ")))
        }
        _ if silent => tally.silent.push(format!("{name}: {inputs:?}: {found}")),
        _ if is(Outcome::Kink) => tally.kinks += 1,
        _ if is(Outcome::NotFinite) => tally.not_finite += 1,
        _ if is(Outcome::Uncertain) => tally.uncertain += 1,
        _ => tally.passed += 1,
    }
}

/// Right rules are never called wrong, and no kink is passed in silence, however many zeros and
/// ties the inputs have.
#[test]
fn no_false_alarm_and_no_silent_kink_at_random_points() {
    let rounds = std::env::var("CHAINRULE_POINTS").ok().and_then(|n| n.parse().ok());
    let only = std::env::var("CHAINRULE_OP").ok();
    let mut tally = Tally::default();
    for round in 0..rounds.unwrap_or(ROUNDS) {
        let g = &mut Generator::manual_seed(1000 + round);
        for entry in chainrule_core::ops::table().filter(|e| !e.gradient.is_empty()) {
            for sample in (entry.samples)(g) {
                let left_out = only.as_ref().is_some_and(|only| only != entry.name);
                let empty = sample.floats().iter().all(|x| x.numel() == 0);
                if !left_out && !empty && sample.by_design.is_none() {
                    let g = &mut Generator::manual_seed(round ^ g.random_u64());
                    visit(&mut tally, entry, &sample, g);
                }
            }
        }
    }
    println!("{tally:#?}");
    assert!(
        tally.alarms.is_empty(),
        "{} false alarms:\n  {}",
        tally.alarms.len(),
        tally.alarms.join("\n  ")
    );
    assert!(
        tally.silent.is_empty(),
        "{} silent kinks:\n  {}",
        tally.silent.len(),
        tally.silent.join("\n  ")
    );
}
