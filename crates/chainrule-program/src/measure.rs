//! The measured cost of a run: the time of each line, and the memory of each value.

use std::ops::Range;

use super::Program;
use super::ir::Id;
use super::place::Home;
use super::run::Told;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::tensor::buffer::BLOCK;

/// Lines that run as a unit, and the time that they took.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedLines {
    /// Their places in [`Program::lines`]: one line, the lines of a fused group, or an update and
    /// the product that it takes in.
    pub lines: Vec<usize>,
    /// Mean over the passes, in the unit of the clock.
    pub time: f64,
}

/// A value in the arena of a fused program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaBlock {
    /// The name of the value.
    pub name: String,
    /// Its first byte in the arena.
    pub offset: usize,
    /// Its bytes, rounded up to a whole number of cache lines.
    pub bytes: usize,
    /// The line from which it is kept, in [`Program::lines`].
    pub from: usize,
    /// The last line that may read it. No other block has a byte of this one from the first of
    /// these lines to the last.
    pub to: usize,
}

impl Program {
    /// Runs the program `passes` times and tells what each of its lines took, in the order in which
    /// they ran: each line alone, and of a fused program the lines of a group together. `clock`
    /// gives the present time in any unit, so that it can be that of a page, too. Before that there
    /// is one run that is not measured.
    ///
    /// Times include reading a clock after each line; a pair of readings stands for the work
    /// between them. Each pass is a whole run, so a program of a training step trains. Errors as
    /// [`Program::run`] does.
    ///
    /// ```
    /// use chainrule::{Tensor, program::Program};
    /// let x = Tensor::ones([64, 64]);
    /// let step = |a: &[Tensor]| Ok(vec![a[0].exp().tanh(), a[0].matmul(&a[0])]);
    /// let program = Program::trace([("x", &x)], step)?;
    /// let start = std::time::Instant::now();
    /// let mut clock = || start.elapsed().as_secs_f64();
    /// let times = program.time_lines(&[&x], 10, &mut clock)?;
    /// assert_eq!(times.iter().map(|t| t.lines[0]).collect::<Vec<_>>(), [0, 1, 2]);
    /// // The fused program runs exp and tanh as one.
    /// let fused = program.fused().time_lines(&[&x], 10, &mut clock)?;
    /// assert!(fused.iter().any(|t| t.lines.len() == 2));
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn time_lines(
        &self,
        arguments: &[&Tensor],
        passes: u32,
        clock: &mut dyn FnMut() -> f64,
    ) -> Result<Vec<TimedLines>> {
        let mut results = Vec::new();
        self.run_into(arguments, &mut results)?;
        let mut times: Vec<TimedLines> = match self.is_planned {
            false => (0..self.len()).map(|i| TimedLines { lines: vec![i], time: 0.0 }).collect(),
            true => {
                let parts = self.placement().parts.iter();
                let lines =
                    parts.map(|(range, product)| product.iter().copied().chain(range.clone()));
                lines.map(|lines| TimedLines { lines: lines.collect(), time: 0.0 }).collect()
            }
        };
        for _ in 0..passes {
            results.drain(..).for_each(Tensor::recycle);
            let mut before = clock();
            let mut done = |at: usize| {
                let now = clock();
                times[at].time += (now - before) / f64::from(passes);
                before = now;
            };
            let told = Told { made: None, done: Some(&mut done) };
            self.run_all(arguments, &[], &mut results, told)?;
        }
        Ok(times)
    }

    /// The map of the arena of a fused program: each value in it with its place, and the lines over
    /// which it is there. Values that the caller gets, and those that live inside a group, are not
    /// in the arena.
    ///
    /// ```
    /// use chainrule::{Tensor, program::Program};
    /// let x = Tensor::ones([64, 64]);
    /// let program = Program::trace([("x", &x)], |a| Ok(vec![a[0].matmul(&a[0]).matmul(&a[0])]))?;
    /// let fused = program.fused();
    /// let map = fused.arena();
    /// assert_eq!((map.len(), map[0].bytes), (1, 64 * 64 * 4)); // the first product
    /// assert_eq!((map[0].from, map[0].to), (0, 1));
    /// assert_eq!(fused.memory().planned, map[0].bytes);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn arena(&self) -> Vec<ArenaBlock> {
        let placement = self.placement();
        let block = |(id, lines): &(Id, Range<usize>)| {
            let Home::Arena { first, blocks } = placement.homes[id.index()] else { return None };
            Some(ArenaBlock {
                name: self.name(*id).to_owned(),
                offset: first * BLOCK,
                bytes: blocks * BLOCK,
                from: lines.start,
                to: lines.end - 1,
            })
        };
        placement.kept.iter().filter_map(block).collect()
    }
}
