//! The actions of a run with planned memory, in order.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use smallvec::SmallVec;

use super::block::Block;
use super::lifetimes::{InPlace, Lifetimes};
use super::memory::{self, Need};
use crate::Program;
use crate::fuse::head::{self, Head};
use crate::fuse::layout::Layouts;
use crate::ir::{Id, Instruction, Origin};
use crate::tensor::buffer::BLOCK;
use crate::tensor::op::Kernel;

/// One action of a run.
#[derive(Debug)]
pub(crate) enum Action {
    /// Instructions that run tile by tile.
    Group(Block),
    /// A window on a value that differs from run to run.
    View(usize),
    /// An update of cells in place.
    Update(Update),
    /// Any other instruction.
    Op(usize),
}

impl Action {
    /// The values that are there after it.
    pub fn outputs<'a>(&'a self, program: &'a Program) -> &'a [Id] {
        match self {
            Action::Group(block) => &block.outputs,
            Action::View(i) | Action::Op(i) => &program.instructions[*i].outputs,
            Action::Update(update) => &program.instructions[update.instruction].outputs,
        }
    }
}

/// An update of cells in place.
#[derive(Debug)]
pub(crate) struct Update {
    pub instruction: usize,
    /// The instruction that makes the gradient, if it is a product that is added to the parameter
    /// while it is computed.
    pub product: Option<usize>,
    pub places: SmallVec<[InPlace; 3]>,
}

/// Memory of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Newly set in each run: an input, a cell, a result that is handed out, or a window on one of
    /// these.
    Loose,
    /// In the arena, from this block on.
    Arena { first: usize, blocks: usize },
    /// A window on a value whose address never changes.
    View,
    /// A constant.
    Constant,
    /// Inside a group, never in memory.
    Inside,
}

/// The actions of a run and the homes of its values, found once for a program.
pub(crate) struct Placement {
    pub(crate) actions: Vec<Action>,
    /// For each action the loose values that nothing after it needs.
    pub(crate) dropped: Vec<SmallVec<[Id; 2]>>,
    pub(crate) homes: Vec<Home>,
    /// For each cell, whether its own update is the only reader, which takes it as it is by then.
    pub(crate) read: Vec<bool>,
    /// The instructions of each action: a stretch of the list, and of an update the product that
    /// it takes in.
    pub(crate) parts: Vec<(Range<usize>, Option<usize>)>,
    /// The values in the arena, with the stretch of instructions over which each is kept.
    pub(crate) kept: Vec<(Id, Range<usize>)>,
    /// Blocks of the arena, and how many no layout can do without.
    pub size: usize,
    pub lower_bound: usize,
    pub(crate) layouts: Layouts,
}

impl Placement {
    pub fn of(program: &Program, lifetimes: &Lifetimes) -> Placement {
        let layouts = Layouts::of(program);
        let Descents { taken: descents, beside } = Descents::of(program, lifetimes, &layouts);
        let mut actions = Vec::new();
        let mut action_of = vec![0; program.instructions.len()];
        let mut ranges = Vec::new();
        let mut i = 0;
        while i < program.instructions.len() {
            let end = program.group_at(i).map_or(i + 1, |group| group.end);
            if !descents.values().any(|&product| product == i) || beside.contains(&i) {
                action_of[i..end].fill(ranges.len());
                ranges.push(i..end);
            }
            i = end;
        }
        for (&update, &product) in descents.iter().filter(|(_, product)| !beside.contains(product))
        {
            action_of[product] = action_of[update];
        }
        let mut uses = Uses::of(program, &layouts, &action_of);
        for (&update, product) in descents.iter().filter(|(_, product)| beside.contains(product)) {
            uses.take(&layouts, &program.instructions[*product].inputs, action_of[update]);
        }
        let mut homes = homes(program, &layouts, lifetimes, &uses, (&action_of, &descents));
        let mut needs = Vec::new();
        let mut ids = Vec::new();
        for (at, home) in homes.iter().enumerate() {
            if let Home::Arena { blocks, .. } = *home {
                let (from, to) = (uses.made[at], uses.last[at]);
                needs.push(Need { size: blocks, from, to: to.max(from) });
                ids.push(at);
            }
        }
        let memory = memory::lay_out(&needs);
        for (&id, &start) in ids.iter().zip(&memory.starts) {
            if let Home::Arena { first, .. } = &mut homes[id] {
                *first = start;
            }
        }
        let kept = needs
            .iter()
            .zip(&ids)
            .map(|(need, &id)| (Id(id as u32), ranges[need.from].start..ranges[need.to].end));
        let kept = kept.collect();
        let (mut dropped, mut parts) = (Vec::new(), Vec::new());
        for (at, range) in ranges.into_iter().enumerate() {
            let i = range.start;
            let loose = |id: &Id| homes[id.index()] == Home::Loose;
            let all = (0..program.values.len() as u32).map(Id);
            let last = |id: &Id| uses.last[id.index()] == at && !uses.kept[id.index()];
            let drops = all.filter(loose).filter(last).collect();
            let part = (range.clone(), descents.get(&i).copied().filter(|at| !beside.contains(at)));
            let action = if program.group_at(i).is_some() {
                let wanted = |id: Id| homes[id.index()] != Home::Inside;
                actions.push(Action::Group(Block::of(program, &layouts, range.clone(), wanted)));
                dropped.push(SmallVec::new());
                parts.push(part);
                // Windows on results that are handed out.
                for i in range {
                    let id = program.instructions[i].result();
                    if layouts.is_view(id) && loose(&id) {
                        actions.push(Action::View(i));
                        dropped.push(SmallVec::new());
                        parts.push((i..i + 1, None));
                    }
                }
                *dropped.last_mut().expect("one was pushed") = drops;
                continue;
            } else if let Some(places) = lifetimes.in_place.get(&i) {
                let (product, places) = (descents.get(&i).copied(), places.clone());
                Action::Update(Update { instruction: i, product, places })
            } else if is_product(program, &layouts, i) {
                let wanted = |id: Id| homes[id.index()] != Home::Inside;
                Action::Group(Block::of(program, &layouts, range, wanted))
            } else if layouts.is_view(program.instructions[i].result()) {
                match homes[program.instructions[i].result().index()] {
                    Home::Loose => Action::View(i),
                    _ => continue,
                }
            } else {
                Action::Op(i)
            };
            actions.push(action);
            dropped.push(drops);
            parts.push(part);
        }
        let (size, lower_bound) = (memory.size, memory.lower_bound);
        let read =
            program.cells.iter().map(|cell| is_read(program, lifetimes, cell.read)).collect();
        Placement { actions, dropped, homes, read, parts, kept, size, lower_bound, layouts }
    }
}

/// Whether an instruction is a product of floats whose result lies row by row: such a one runs as
/// the head of a group does.
fn is_product(program: &Program, layouts: &Layouts, i: usize) -> bool {
    let instruction = &program.instructions[i];
    let result = instruction.result();
    let in_rows = || layouts.layout(result).is_row_major(&program.info(result).meta.shape);
    head::product(program, instruction).is_some() && in_rows()
}

/// Whether anything reads a cell but its own update.
fn is_read(program: &Program, lifetimes: &Lifetimes, id: Id) -> bool {
    let reads = |(i, instruction): (usize, &Instruction)| {
        let own = |at| lifetimes.in_place.get(&i).is_some_and(|p| p.iter().any(|p| p.input == at));
        instruction.inputs.iter().enumerate().any(|(at, input)| *input == id && !own(at))
    };
    program.instructions.iter().enumerate().any(reads) || program.roots().any(|root| root == id)
}

/// When values are made and needed, counted in actions; by root, since windows need what they look
/// at.
struct Uses {
    made: Vec<usize>,
    last: Vec<usize>,
    /// Whether the caller or a cell gets it.
    kept: Vec<bool>,
}

impl Uses {
    fn of(program: &Program, layouts: &Layouts, action_of: &[usize]) -> Uses {
        let count = program.values.len();
        let mut uses =
            Uses { made: vec![0; count], last: vec![0; count], kept: vec![false; count] };
        for (i, instruction) in program.instructions.iter().enumerate() {
            let action = action_of[i];
            for id in &instruction.outputs {
                uses.made[id.index()] = action;
                uses.last[id.index()] = uses.last[id.index()].max(action);
            }
            // A window that is made inside a group is available to its users.
            uses.take(layouts, &instruction.inputs, action);
        }
        for id in program.roots() {
            uses.kept[id.index()] = true;
            uses.kept[layouts.root(id).index()] = true;
        }
        uses
    }

    /// An action takes these values.
    fn take(&mut self, layouts: &Layouts, ids: &[Id], action: usize) {
        for &id in ids {
            for id in [id, layouts.root(id)] {
                self.last[id.index()] = self.last[id.index()].max(action);
            }
        }
    }
}

fn homes(
    program: &Program,
    layouts: &Layouts,
    lifetimes: &Lifetimes,
    uses: &Uses,
    (action_of, descents): (&[usize], &HashMap<usize, usize>),
) -> Vec<Home> {
    let mut homes = vec![Home::Loose; program.values.len()];
    for (at, info) in program.values.iter().enumerate() {
        if matches!(info.from, Origin::Constant(_)) {
            homes[at] = Home::Constant;
        }
    }
    // Values read after the action that makes them, or by an instruction that needs them whole.
    let mut wanted = vec![false; program.values.len()];
    for (i, instruction) in program.instructions.iter().enumerate() {
        let view = layouts.is_view(instruction.result());
        for &id in instruction.inputs.iter().filter(|_| !view) {
            let root = layouts.root(id);
            wanted[root.index()] |= uses.made[root.index()] != action_of[i];
        }
    }
    for (i, instruction) in program.instructions.iter().enumerate() {
        let updates = lifetimes.in_place.contains_key(&i);
        let group = program.groups.iter().find(|group| group.contains(&i));
        let stays_inside = |id: Id| match group {
            Some(group) => inside(program, layouts, group, i, |other| {
                program.info(other).meta == program.info(id).meta
                    && (wanted[other.index()] || uses.kept[other.index()])
            }),
            None => descents.values().any(|&product| product == i),
        };
        for &id in &instruction.outputs {
            let at = id.index();
            let root = layouts.root(id);
            homes[at] = if layouts.is_view(id) {
                match homes[root.index()] {
                    Home::Loose => Home::Loose,
                    Home::Inside => Home::Inside,
                    _ => Home::View,
                }
            } else if uses.kept[at] || updates {
                Home::Loose
            } else if !wanted[at] && stays_inside(id) {
                Home::Inside
            } else {
                let bytes = program.info(id).meta;
                let bytes = bytes.shape.numel() * bytes.dtype.size();
                Home::Arena { first: 0, blocks: bytes.div_ceil(BLOCK) }
            };
        }
    }
    homes
}

/// Largest product with memory of its own rather than tiles that are moved, in bytes: it stays in
/// L1 and L2.
const MOVED: usize = 64 << 10;

/// Whether the result of instruction `i` needs no memory if no instruction outside its group reads
/// it. A product writes to the place of a result like it.
fn inside(
    program: &Program,
    layouts: &Layouts,
    group: &Range<usize>,
    i: usize,
    is_like: impl Fn(Id) -> bool,
) -> bool {
    let instruction = &program.instructions[i];
    match Head::of(program, layouts, group) {
        Some(head) if head.result == instruction.result() => {
            let takes = |j: &usize| {
                let mut roots = program.instructions[*j].inputs.iter().map(|id| layouts.root(*id));
                roots.any(|root| root == head.result)
            };
            let meta = program.info(head.result).meta;
            // A result that is made while the product is still read takes its memory, so the
            // product's tiles must be moved away first.
            let first = match meta.shape.numel() * meta.dtype.size() {
                ..=MOVED => group.clone().rfind(takes).map_or(i, |last| last.max(i)),
                _ => i,
            };
            // A window has no memory of its own to compute in.
            let result = |j: usize| program.instructions[j].result();
            (first + 1..group.end).any(|j| !layouts.is_view(result(j)) && is_like(result(j)))
        }
        Some(head) if head.has(i) => true,
        _ => matches!(instruction.op.kernel(), Kernel::Map(_)),
    }
}

/// The products that updates add to their parameters.
struct Descents {
    /// The product by the update: a gradient that nothing else takes.
    taken: HashMap<usize, usize>,
    /// Those that are computed by themselves, too, as a result of a [`Program::seen`].
    beside: HashSet<usize>,
}

impl Descents {
    fn of(program: &Program, lifetimes: &Lifetimes, layouts: &Layouts) -> Descents {
        let taken = descents(program, lifetimes, layouts);
        let is_given = |product: &usize| {
            let result = program.instructions[*product].result();
            program.outputs.iter().any(|output| output.id == result)
        };
        let beside = taken.values().copied().filter(is_given).collect();
        Descents { taken, beside }
    }
}

fn descents(program: &Program, lifetimes: &Lifetimes, layouts: &Layouts) -> HashMap<usize, usize> {
    let mut uses = vec![0; program.values.len()];
    let taken = program.instructions.iter().flat_map(|i| i.inputs.iter().copied());
    let results = program.outputs.iter().filter(|_| !program.is_seen).map(|output| output.id);
    let written = program.cells.iter().filter_map(|cell| cell.write);
    taken.chain(results).chain(written).for_each(|id| uses[id.index()] += 1);
    let mut made_by = HashMap::new();
    for (i, instruction) in program.instructions.iter().enumerate() {
        made_by.insert(instruction.result(), i);
    }
    let grouped = |i: usize| program.groups.iter().any(|group| group.contains(&i));
    let product = |(&update, places): (&usize, &SmallVec<[InPlace; 3]>)| {
        let instruction = &program.instructions[update];
        let Kernel::Whole(kernel) = instruction.op.kernel() else { return None };
        kernel.update_kernel().filter(|update| update.descends())?;
        let &[p, g, ..] = &instruction.inputs[..] else { return None };
        let &product = made_by.get(&g)?;
        let maker = &program.instructions[product];
        head::product(program, maker)?;
        // A product that would have to copy its operands could fail, after other parameters have
        // changed.
        let ready = |&id: &Id| {
            let layout = layouts.layout(id);
            program.info(id).meta.shape.rank() == 2
                && layout.strides.iter().all(|&s| s >= 0)
                && layouts.root(id) != p
        };
        let fits = uses[g.index()] == 1
            && !grouped(product)
            && places.iter().any(|place| place.input == 0 && place.output == 0)
            && maker.inputs.iter().all(ready);
        fits.then_some((update, product))
    };
    lifetimes.in_place.iter().filter_map(product).collect()
}
