//! Memory layout of each value, known before a run: a view is a window on a root, and a root is
//! row-major or laid out as its op asks.

use std::collections::HashSet;

use crate::Program;
use crate::ir::Id;
use crate::shape::{MAX_RANK, Shape};
use crate::tensor::op::Kernel;
use crate::tensor::value::Layout;

/// For each value, the root that holds its elements, and where in it they lie.
pub(crate) struct Layouts {
    root: Vec<Id>,
    layout: Vec<Layout>,
}

impl Layouts {
    pub fn of(program: &Program) -> Layouts {
        // Outputs of the program are row-major.
        let layouts = Layouts::with(program, &HashSet::new());
        let kept = program.roots().map(|id| layouts.root(id)).collect();
        Layouts::with(program, &kept)
    }

    /// All roots are laid out as their ops ask, except these.
    fn with(program: &Program, row_major: &HashSet<Id>) -> Layouts {
        let count = program.values.len();
        let mut layouts = Layouts {
            root: (0..count as u32).map(Id).collect(),
            layout: program.values.iter().map(|v| Layout::row_major(&v.meta.shape)).collect(),
        };
        for instruction in &program.instructions {
            let kernel = match instruction.op.kernel() {
                Kernel::View(kernel) => kernel,
                Kernel::Whole(kernel) => {
                    for (at, id) in instruction.outputs.iter().enumerate() {
                        if !row_major.contains(id) {
                            let shape = program.info(*id).meta.shape;
                            layouts.layout[id.index()] = kernel.layout(at, &shape);
                        }
                    }
                    continue;
                }
                _ => continue,
            };
            let (from, to) = (instruction.inputs[0], instruction.result());
            let (shape, out) = (program.info(from).meta.shape, program.info(to).meta.shape);
            // Without a layout the elements are copied, so the result is a root.
            if let Some(layout) = kernel.view(&shape, layouts.layout(from), &out) {
                layouts.root[to.index()] = layouts.root(from);
                layouts.layout[to.index()] = layout;
            }
        }
        layouts
    }

    /// The value that holds the elements.
    pub fn root(&self, id: Id) -> Id {
        self.root[id.index()]
    }

    pub fn layout(&self, id: Id) -> &Layout {
        &self.layout[id.index()]
    }

    /// Whether it is a window on another value.
    pub fn is_view(&self, id: Id) -> bool {
        self.root(id) != id
    }
}

/// Access of an operand over rows of `n` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All rows, one after the other.
    Whole,
    /// The same row for all.
    Row,
    /// One element for each row.
    Column,
    /// One element for all.
    Single,
}

/// Access of a value of shape `own` in an elementwise op whose result has shape `shape`, if one of
/// these patterns fits.
pub(crate) fn part(own: &Shape, layout: &Layout, shape: &Shape) -> Option<Part> {
    let lead = shape.rank() - own.rank();
    let mut strides = [0isize; MAX_RANK];
    for (i, &d) in own.iter().enumerate() {
        strides[lead + i] = if d == 1 { 0 } else { layout.strides[i] };
    }
    let last = shape.rank().saturating_sub(1);
    // Whether the axes before `end` have the strides of rows that are `step` elements apart.
    let even = |end: usize, step: isize| {
        let mut next = step;
        (0..end).rev().all(|a| {
            let fits = shape[a] == 1 || strides[a] == next;
            next *= shape[a] as isize;
            fits
        })
    };
    let fixed = |end: usize| (0..end).all(|a| shape[a] == 1 || strides[a] == 0);
    let rank = shape.rank();
    if fixed(rank) && shape.numel() != 1 {
        return Some(Part::Single);
    }
    if even(rank, 1) {
        return Some(Part::Whole);
    }
    if fixed(last) && strides[last] == 1 {
        return Some(Part::Row);
    }
    (even(last, 1) && strides[last] == 0).then_some(Part::Column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_told_apart() {
        let shape = Shape::new(&[2, 3, 4]);
        let of = |own: &[usize], strides: &[isize]| {
            let mut all = [0; MAX_RANK];
            all[..strides.len()].copy_from_slice(strides);
            part(&Shape::new(own), &Layout { offset: 5, strides: all }, &shape)
        };
        assert_eq!(of(&[2, 3, 4], &[12, 4, 1]), Some(Part::Whole));
        assert_eq!(of(&[4], &[1]), Some(Part::Row));
        assert_eq!(of(&[2, 3, 4], &[0, 0, 1]), Some(Part::Row));
        assert_eq!(of(&[2, 3, 1], &[3, 1, 1]), Some(Part::Column));
        assert_eq!(of(&[2, 3, 4], &[3, 1, 0]), Some(Part::Column));
        assert_eq!(of(&[1], &[1]), Some(Part::Single));
        assert_eq!(of(&[], &[]), Some(Part::Single));
        assert_eq!(of(&[3, 4], &[4, 1]), None);
        assert_eq!(of(&[2, 3, 4], &[1, 2, 6]), None);
        assert_eq!(of(&[2, 1, 4], &[4, 4, 1]), None);
        assert_eq!(of(&[2, 1, 1], &[1, 1, 1]), None);
    }
}
