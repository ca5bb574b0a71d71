//! Fusion: elementwise instructions, and the sums of their rows and columns, run together, tile by
//! tile.
//!
//! On its own, each instruction reads whole arrays from memory and writes whole arrays. In a group
//! the first instruction computes a few rows, then the second, and so on: values between two
//! members stay in L1, and reach memory only if an instruction outside the group reads them. The
//! members run the same kernels as they do alone.
//!
//! A group is a range of the list of instructions, so listings, checks and other passes need not
//! know about groups.
//!
//! A group may begin with a product: it adds a row itself (a bias), and the elementwise
//! instructions that follow take its elements as they are computed.
//!
//! - `split`: ops that become several.
//! - `beside`: results that an instruction has beside its own.
//! - `layout`: where the elements of views lie.
//! - `member`: which instructions can be part of a group.
//! - `head`: products that a group can begin with.
//! - `cluster`: which of them form one.

mod beside;
mod cluster;
pub(super) mod head;
pub(super) mod layout;
pub(super) mod member;
mod split;

use std::ops::Range;

use super::Program;
use cluster::Clusters;
use layout::Layouts;

impl Program {
    /// The program with elementwise instructions that follow from each other, and the sums of their
    /// rows and columns, in groups that run tile by tile. The list stays the same but for its
    /// order; a listing shows the groups.
    ///
    /// A run then uses memory that is planned once, and asks for none after the first run. Results
    /// may differ from those without fusion in the last digits, since long sums are taken in other
    /// pieces; they depend on no number of threads.
    ///
    /// ```
    /// use chainrule::{Tensor, program::Program};
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// let program =
    ///     Program::trace([("x", &x)], |args| Ok(vec![(args[0].exp() * &args[0]).sum(1, false)]))?;
    /// let fused = program.optimized().fused();
    /// assert!(fused.to_string().contains("fused"));
    /// assert_eq!(fused.run(&[&x])?[0].to_vec::<f32>(), program.run(&[&x])?[0].to_vec::<f32>());
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn fused(&self) -> Program {
        let mut program = self.clone();
        split::split(&mut program);
        beside::take(&mut program);
        let whole = program.clone();
        let layouts = Layouts::of(&whole);
        let mut instructions: Vec<Option<_>> =
            std::mem::take(&mut program.instructions).into_iter().map(Some).collect();
        program.groups.clear();
        for cluster in Clusters::of(&whole, &layouts) {
            let start = program.instructions.len();
            let mut members = cluster.members;
            members.sort_unstable();
            for i in members {
                program.instructions.push(instructions[i].take().expect("each is in one cluster"));
            }
            if cluster.space.is_some() {
                program.groups.push(start..program.instructions.len());
            }
        }
        program.is_planned = true;
        if cfg!(debug_assertions)
            && let Err(e) = program.check()
        {
            panic!("fusion broke the program: {e}");
        }
        program
    }

    /// The group that begins with instruction `i`.
    pub(super) fn group_at(&self, i: usize) -> Option<&Range<usize>> {
        let at = self.groups.binary_search_by_key(&i, |group| group.start).ok()?;
        Some(&self.groups[at])
    }
}
