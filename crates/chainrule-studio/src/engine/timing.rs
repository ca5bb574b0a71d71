//! The times that forms of a program take, by a clock that may be coarse: that of a browser tells
//! tenths of a millisecond.

use chainrule::Tensor;
use chainrule::program::{Program, TimedLines};

use crate::language::fault::Outcome;

/// Programs take turns in rounds, and of each the quickest counts: other work of the machine thus
/// disturbs all of them alike. There are rounds until for so many milliseconds none of them has
/// become quicker by a share of its time; no more than for the longest time. A browser compiles
/// code again, in the background, once it has run for some tenths of a second, and a program that
/// is measured before that seems slower than others, which share more of what ran before.
const SETTLED: f64 = 250.0;
const QUICKER: f64 = 0.05;
const LONGEST: f64 = 2000.0;

/// Rounds of runs in which parts are measured.
const ROUNDS: usize = 4;

/// The least time of the runs of a round, in milliseconds and in ticks of the clock.
const RUN: (f64, f64) = (10.0, 100.0);

/// The same for runs in which each part is measured. A part that takes a share `s` of a run is read
/// off by ticks: over `n` of them in all, its relative error is `1 / sqrt(s n)`, which is a third
/// for a hundredth of the run.
const PARTS: (f64, f64) = (25.0, 1000.0);

/// Reads of a clock after which it is taken for one that stands still.
const READS: usize = 10_000_000;

/// The microseconds of a run, and of its parts.
pub struct Took {
    pub run: f64,
    pub parts: Vec<TimedLines>,
}

/// The times of the programs for these arguments.
pub fn measured<const N: usize>(
    programs: [&Program; N],
    arguments: &[&Tensor],
    clock: fn() -> f64,
) -> Outcome<Vec<Took>> {
    let tick = tick(clock);
    let mut all = Vec::new();
    for program in programs {
        // The first run of a program plans it.
        program.run(arguments)?;
        all.push(Took { run: f64::INFINITY, parts: Vec::new() });
    }
    let start = clock();
    let mut changed = start;
    while clock() - changed < SETTLED && clock() - start < LONGEST {
        for (took, program) in all.iter_mut().zip(programs) {
            let run = mean(program, arguments, clock, least(RUN, tick))?;
            if run < (1.0 - QUICKER) * took.run {
                changed = clock();
            }
            took.run = took.run.min(run);
        }
    }
    for _ in 0..ROUNDS {
        for (took, program) in all.iter_mut().zip(programs) {
            let passes = (least(PARTS, tick) * 1e3 / took.run / ROUNDS as f64).ceil().max(1.0);
            let parts = program.time_lines(arguments, passes as u32, &mut || clock() * 1e3)?;
            took.keep(parts);
        }
    }
    all.iter_mut().for_each(Took::settle);
    Ok(all)
}

impl Took {
    /// Adds the times of a round.
    fn keep(&mut self, parts: Vec<TimedLines>) {
        match self.parts.is_empty() {
            true => self.parts = parts,
            false => self.parts.iter_mut().zip(parts).for_each(|(sum, part)| sum.time += part.time),
        }
    }

    /// Makes means of the sums over the rounds.
    fn settle(&mut self) {
        self.parts.iter_mut().for_each(|part| part.time /= ROUNDS as f64);
    }
}

fn least((milliseconds, ticks): (f64, f64), tick: f64) -> f64 {
    milliseconds.max(ticks * tick)
}

/// The microseconds of a run, as the mean of as many as take `least` milliseconds together.
fn mean(program: &Program, arguments: &[&Tensor], clock: fn() -> f64, least: f64) -> Outcome<f64> {
    let start = clock();
    let mut runs = 0u32;
    loop {
        // Doubled, so that reading the clock does not count.
        for _ in 0..runs.max(1) {
            program.run(arguments)?.into_iter().for_each(Tensor::recycle);
        }
        runs += runs.max(1);
        let took = clock() - start;
        if took >= least || runs > u32::MAX / 4 {
            return Ok(took * 1e3 / f64::from(runs));
        }
    }
}

/// The milliseconds between two values of the clock that differ, at the least.
fn tick(clock: fn() -> f64) -> f64 {
    let mut least = f64::INFINITY;
    let mut before = clock();
    let mut changes = 0;
    for _ in 0..READS {
        let now = clock();
        if now > before {
            least = least.min(now - before);
            changes += 1;
        }
        before = now;
        if changes == 8 {
            break;
        }
    }
    if least.is_finite() { least } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;
    use std::time::Instant;

    use super::*;

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);

    fn fine() -> f64 {
        START.elapsed().as_secs_f64() * 1e3
    }

    /// As a browser rounds its clock.
    fn coarse() -> f64 {
        (fine() * 10.0).floor() / 10.0
    }

    #[test]
    fn a_coarse_clock_tells_what_a_fine_one_does() {
        assert!(tick(fine) < 0.02 && (tick(coarse) - 0.1).abs() < 1e-6);
        let x = Tensor::ones([64, 64]);
        let step = |a: &[Tensor]| Ok(vec![a[0].matmul(&a[0]).tanh(), a[0].exp()]);
        let program = Program::trace([("x", &x)], step).unwrap();
        let of = |clock| measured([&program, &program.fused()], &[&x], clock).unwrap();
        let (a, b) = (of(fine), of(coarse));
        for (a, b) in a.iter().zip(&b) {
            assert!(a.run > 0.0 && b.run < 3.0 * a.run && a.run < 3.0 * b.run);
            let whole: f64 = b.parts.iter().map(|part| part.time).sum();
            assert!(whole > 0.2 * b.run && whole < 5.0 * b.run, "{whole} of {}", b.run);
            for (i, j) in a.parts.iter().zip(&b.parts).filter(|(i, _)| i.time > 0.1 * a.run) {
                assert!(i.time < 4.0 * j.time && j.time < 4.0 * i.time, "{i:?} {j:?}");
            }
        }
    }
}
