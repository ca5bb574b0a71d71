//! Evaluation distributed over ranks.

use chainrule_exchange::{Exchange, SumTree};

use super::{Ranks, error, lock};
use crate::error::{Error, Result};
use crate::task::added;
use crate::{Metrics, Task};

impl Ranks {
    /// Measures of a task: each rank evaluates its share of the parts, and all receive the sums.
    pub fn evaluate(&self, task: &dyn Task) -> Result<Metrics> {
        let Some(evaluation) = task.evaluation().filter(|_| self.are_many()) else {
            return task.evaluate();
        };
        evaluation.prepare()?;
        let parts = evaluation.parts();
        let mut exchange = lock(&self.exchange);
        let mut bytes = Vec::new();
        for number in SumTree::new(parts).share(exchange.rank(), self.size) {
            let sums = evaluation.part(number)?;
            bytes.extend((sums.len() as u64).to_le_bytes());
            bytes.extend(sums.iter().flat_map(|x| x.to_le_bytes()));
        }
        let all = exchange.all_gather(&bytes).map_err(error)?.concat();
        let mut numbers = all.as_chunks().0.iter();
        let mut sums = Vec::new();
        while let Some(&count) = numbers.next() {
            let count = u64::from_le_bytes(count) as usize;
            sums.push(numbers.by_ref().take(count).map(|&b| f64::from_le_bytes(b)).collect());
        }
        if sums.len() != parts {
            let why = format!("an evaluation of {parts} parts has {} on the ranks", sums.len());
            return Err(Error::argument("Trainer", why));
        }
        Ok(evaluation.measures(&added(sums)))
    }
}
