//! The kinks that lie between each input and each output.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use super::kinks::{AT, BESIDE, Kink, NodeKink, Scan};
use super::tape::{Function, Tape, is_float, nodes};
use crate::error::Result;
use crate::tensor::Tensor;

/// The known kinks of a function at a point.
pub(super) struct Survey<'a> {
    scan: Scan<'a>,
    /// The nodes that lead to each output.
    reach: Vec<HashSet<u64>>,
    /// The kinks at the point, for each input when it moves alone.
    at: Vec<Vec<NodeKink>>,
    /// The kinks beside it, for the inputs examined so far.
    beside: RefCell<HashMap<usize, Vec<NodeKink>>>,
}

impl<'a> Survey<'a> {
    /// Looks for kinks at the point: two recorded calls if there are none. The last argument is the
    /// seed, and the rounding units of the values and of the gradients.
    pub fn new(
        f: &'a Function<'a>,
        inputs: &'a [Tensor],
        tape: &'a Tape,
        (seed, unit, slopes): (u64, f64, f64),
    ) -> Result<Survey<'a>> {
        let scan = Scan { f, inputs, tape, seed, unit, slopes, calls: Cell::new(0) };
        let mut at: Vec<Vec<NodeKink>> = inputs.iter().map(|_| Vec::new()).collect();
        let joint = scan.run(&|_| true, AT)?;
        let floats: Vec<usize> = (0..inputs.len()).filter(|&i| is_float(&inputs[i])).collect();
        match floats[..] {
            _ if joint.is_empty() => {}
            [only] => at[only] = joint,
            _ => {
                for i in floats {
                    at[i] = scan.run(&|k| k == i, AT)?;
                }
            }
        }
        let numbers =
            |y: &Tensor| nodes(std::slice::from_ref(y)).iter().map(|n| n.number).collect();
        let reach = tape.outputs.iter().map(numbers).collect();
        Ok(Survey { scan, reach, at, beside: RefCell::default() })
    }

    /// The kinks at the point, on the way from input `i` to output `o`.
    pub fn at(&self, o: usize, i: usize) -> Vec<Kink> {
        self.on_the_way(o, &self.at[i])
    }

    /// Those beside it. The first time for an input it takes two recorded calls, or four.
    pub fn beside(&self, o: usize, i: usize) -> Result<Vec<Kink>> {
        if !self.beside.borrow().contains_key(&i) {
            let found = self.scan.run(&|k| k == i, BESIDE)?;
            self.beside.borrow_mut().insert(i, found);
        }
        Ok(self.on_the_way(o, &self.beside.borrow()[&i]))
    }

    pub fn calls(&self) -> usize {
        self.scan.calls.get()
    }

    fn on_the_way(&self, o: usize, found: &[NodeKink]) -> Vec<Kink> {
        let there =
            |found: &&NodeKink| found.number.is_none_or(|number| self.reach[o].contains(&number));
        found.iter().filter(there).map(|found| found.kink.clone()).collect()
    }
}
