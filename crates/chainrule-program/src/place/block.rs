//! A group of instructions as it runs: tile by tile, or behind a product.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::chains::{self, Pass};
use super::memory::{self, Need};
use crate::Program;
use crate::dtype::DType;
use crate::fuse::head::Head;
use crate::fuse::layout::{Layouts, Part};
use crate::fuse::member::{Kind, Member};
use crate::ir::Id;
use crate::kernels::chain::{Arithmetic, Then};
use crate::tensor::op::Op;

/// Bytes of a tile, at most, in L1.
const TILE: usize = 24 << 10;
/// Rows that sums of columns take at a time.
const SUMMED: usize = 8;
/// Elements from which threads share a group.
const SHARED: usize = 1 << 16;
/// Elements that go to a thread at a time, about.
const PIECE: usize = 1 << 15;
/// Alignment for the widest instructions, in bytes.
const ALIGNED: usize = 64;
/// Shorter rows cost less together than one by one.
const SHORT: usize = 512;
/// Fewest elements of a group for which copying rows pays off.
const REPEATED: usize = 1 << 11;

/// The rows of a group, and the kernels that each tile of them runs through.
#[derive(Debug)]
pub(crate) struct Block {
    /// Rows, and their length; elements that form no rows are rows of one.
    pub rows: usize,
    pub n: usize,
    /// Rows of a tile, and of the share that a thread takes at a time.
    pub tile: usize,
    pub piece: usize,
    pub members: Vec<TileOp>,
    /// Inputs in memory: the value that holds the elements, and the first byte.
    pub inputs: Vec<(Id, usize)>,
    /// Outputs in memory.
    pub outputs: Vec<Id>,
    /// Rows that every row of a tile uses: they are laid out as a tile of copies.
    pub repeats: Vec<Repeat>,
    /// Scratch bytes of a tile, for values that stay inside the group.
    pub scratch: usize,
    /// Number of sums of columns.
    pub sums: usize,
    /// The product that it begins with.
    pub product: Option<Product>,
}

/// The product that a group begins with. It is computed where the first of the outputs goes.
#[derive(Debug)]
pub(crate) struct Product {
    pub head: Head,
    /// Offset in the scratch buffer of a tile's first copy, if its consumer may not find it in
    /// place.
    pub moved: Option<usize>,
    /// Bytes of an element.
    pub size: usize,
}

/// A row that is copied once for each row of a tile.
#[derive(Debug)]
pub(crate) struct Repeat {
    /// Number of the input.
    pub input: usize,
    /// Offset of its copies in the scratch buffer.
    pub place: usize,
    /// Its bytes.
    pub size: usize,
}

/// One op of a group, which runs tile by tile.
#[derive(Debug)]
pub(crate) struct TileOp {
    pub op: Arc<dyn Op>,
    pub kind: Kind,
    pub inputs: SmallVec<[Arg; 3]>,
    pub out: Arg,
    /// Both steps, with three operands, of a chain whose second instruction this is.
    pub chain: Option<(Arithmetic, Then)>,
    /// Whether it does not matter where a row ends.
    pub flat: bool,
    /// The number of a sum of columns.
    pub sum: usize,
}

/// Address of an operand's tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arg {
    pub at: At,
    pub part: Part,
    pub dtype: DType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// In an array of the list of inputs.
    Input(usize),
    /// In an array of the list of outputs.
    Output(usize),
    /// In the tile's scratch, from this byte on.
    Scratch(usize),
}

/// The value in whose place the product of a group is computed, and whether its tiles must be moved
/// away before others use them: the result may be written while it is still needed.
fn target(
    program: &Program,
    layouts: &Layouts,
    product: Id,
    passes: &[Pass],
    wanted: impl Fn(Id) -> bool,
) -> (Id, bool) {
    if wanted(product) {
        return (product, false);
    }
    let result = |pass: &Pass| program.instructions[pass.instruction].result();
    let meta = program.info(product).meta;
    let fits = |pass: &&Pass| wanted(result(pass)) && program.info(result(pass)).meta == meta;
    let takes = |pass: &Pass| pass.inputs.iter().any(|(id, _)| layouts.root(*id) == product);
    let last = passes.iter().rposition(takes).map_or(0, |at| at + 1);
    match passes[last..].iter().find(fits) {
        Some(pass) => (result(pass), false),
        None => {
            let pass = passes.iter().find(fits);
            (result(pass.expect("a product inside has a result that is like it")), true)
        }
    }
}

impl Block {
    /// The group of these instructions; `wanted` says which values are needed after it.
    pub fn of(
        program: &Program,
        layouts: &Layouts,
        group: Range<usize>,
        wanted: impl Fn(Id) -> bool,
    ) -> Block {
        let head = Head::of(program, layouts, &group);
        let in_head = |i: usize| head.as_ref().is_some_and(|head| head.has(i));
        let own = |&i: &usize| !layouts.is_view(program.instructions[i].result()) && !in_head(i);
        let found = group.clone().filter(own);
        let member = |i: usize| {
            let instruction = &program.instructions[i];
            let why = "a group has members that run on rows";
            (i, Member::of(program, layouts, instruction).expect(why))
        };
        let members: Vec<(usize, Member)> = found.map(member).collect();
        let (rows, n) = match (members.iter().find(|(_, m)| !m.is_flat()), &head) {
            (Some((_, member)), _) => (member.rows, member.n),
            (None, Some(head)) => (program.info(head.result).meta.shape.numel(), 1),
            (None, None) => (members[0].1.rows * members[0].1.n, 1),
        };
        let mut block = Block {
            rows,
            n,
            tile: 0,
            piece: 0,
            members: Vec::with_capacity(members.len()),
            inputs: Vec::new(),
            outputs: Vec::new(),
            repeats: Vec::new(),
            scratch: 0,
            sums: 0,
            product: None,
        };
        let passes = chains::passes(program, &group, members, &wanted);
        let mut inside: Vec<(Id, Arg)> = Vec::new();
        let mut needs: Vec<Need> = Vec::new();
        if let Some(head) = head {
            let (target, moves) = target(program, layouts, head.result, &passes, &wanted);
            let dtype = program.info(head.result).meta.dtype;
            block.outputs.push(target);
            let (at, moved) = if moves {
                needs.push(Need { size: dtype.size(), from: 0, to: 0 });
                (At::Scratch(0), Some(0))
            } else {
                (At::Output(0), None)
            };
            inside.push((head.result, Arg { at, part: Part::Whole, dtype }));
            block.product = Some(Product { head, moved, size: dtype.size() });
        }
        for (at, pass) in passes.into_iter().enumerate() {
            let step = block.step(program, layouts, (at, pass), &mut inside, &mut needs, &wanted);
            block.members.push(step);
        }
        block.repeat_rows(&mut needs);
        block.cut(&needs);
        block
    }

    /// One member; scratch places are numbers of `needs` until [`Block::cut`].
    fn step(
        &mut self,
        program: &Program,
        layouts: &Layouts,
        (at, pass): (usize, Pass),
        inside: &mut Vec<(Id, Arg)>,
        needs: &mut Vec<Need>,
        wanted: &impl Fn(Id) -> bool,
    ) -> TileOp {
        let instruction = &program.instructions[pass.instruction];
        let mut inputs: SmallVec<[Arg; 3]> = SmallVec::new();
        for (id, part) in pass.inputs {
            let root = layouts.root(id);
            let dtype = program.info(id).meta.dtype;
            let known = inside.iter().find(|(other, _)| *other == root);
            inputs.push(match known {
                Some((_, arg)) => {
                    if let At::Scratch(need) = arg.at {
                        needs[need].to = at;
                    }
                    Arg { part, ..*arg }
                }
                None => {
                    let first = layouts.layout(id).offset * dtype.size();
                    let same = |input: &(Id, usize)| *input == (root, first);
                    let place = self.inputs.iter().position(same).unwrap_or_else(|| {
                        self.inputs.push((root, first));
                        self.inputs.len() - 1
                    });
                    Arg { at: At::Input(place), part, dtype }
                }
            });
        }
        let result = instruction.result();
        let dtype = program.info(result).meta.dtype;
        let (part, sum) = match pass.kind {
            Kind::Map => (Part::Whole, 0),
            Kind::RowSum => (Part::Column, 0),
            Kind::ColumnSum { .. } => {
                self.sums += 1;
                (Part::Row, self.sums - 1)
            }
        };
        let place = if wanted(result) || part == Part::Row {
            let known = self.outputs.iter().position(|&id| id == result);
            At::Output(known.unwrap_or_else(|| {
                self.outputs.push(result);
                self.outputs.len() - 1
            }))
        } else {
            let size = if part == Part::Whole { self.n } else { 1 } * dtype.size();
            needs.push(Need { size, from: at, to: at });
            At::Scratch(needs.len() - 1)
        };
        let out = Arg { at: place, part, dtype };
        inside.push((result, out));
        let Pass { kind, flat, chain, .. } = pass;
        TileOp { op: instruction.op.clone(), kind, inputs, out, chain, flat, sum }
    }

    /// Copies short rows that every row of a tile uses into a tile of their own, so that members
    /// which use them need not run row by row.
    fn repeat_rows(&mut self, needs: &mut Vec<Need>) {
        if self.product.is_some() || self.n >= SHORT || self.rows * self.n < REPEATED {
            return;
        }
        let last = self.members.len() - 1;
        for step in self.members.iter_mut().filter(|step| step.kind == Kind::Map && !step.flat) {
            let fits = |arg: &Arg| match arg.part {
                Part::Whole | Part::Single => true,
                Part::Row => matches!(arg.at, At::Input(_)),
                Part::Column => false,
            };
            if !step.inputs.iter().all(fits) {
                continue;
            }
            step.flat = true;
            for arg in step.inputs.iter_mut().filter(|arg| arg.part == Part::Row) {
                let At::Input(input) = arg.at else { unreachable!("the others were left out") };
                let known = self.repeats.iter().find(|repeat| repeat.input == input);
                let place = known.map_or(needs.len(), |repeat| repeat.place);
                if place == needs.len() {
                    let size = self.n * arg.dtype.size();
                    needs.push(Need { size, from: 0, to: last });
                    self.repeats.push(Repeat { input, place, size });
                }
                (arg.at, arg.part) = (At::Scratch(place), Part::Whole);
            }
        }
    }

    /// Decides how many rows a tile has, and where in the scratch everything goes.
    fn cut(&mut self, needs: &[Need]) {
        let apart = memory::lay_out(needs);
        let size = |arg: &Arg| if arg.part == Part::Whole { self.n * arg.dtype.size() } else { 0 };
        let all = self.members.iter().flat_map(|m| m.inputs.iter().chain([&m.out]));
        let mut arrays: Vec<(At, usize)> = Vec::new();
        for arg in all.filter(|arg| !matches!(arg.at, At::Scratch(_))) {
            if !arrays.iter().any(|(at, _)| *at == arg.at) {
                arrays.push((arg.at, size(arg)));
            }
        }
        let streams: usize = arrays.iter().map(|(_, size)| size).sum();
        let row = apart.size + streams / 2;
        let least = if self.n == 1 { 512 } else { 1 };
        self.tile = (TILE / row.max(1)).max(least).min(self.rows);
        if self.n == 1 {
            self.tile = self.tile.next_multiple_of(64).min(self.rows);
        } else {
            // Tiles of nearly the same size.
            self.tile = self.rows.div_ceil(self.rows.div_ceil(self.tile));
            if self.sums > 0 {
                self.tile = self.tile.next_multiple_of(SUMMED).min(self.rows);
            }
        }
        let per_piece = (PIECE / self.n).max(1).next_multiple_of(self.tile);
        self.piece = if self.rows * self.n >= SHARED { per_piece } else { self.rows };
        let scaled: Vec<Need> = needs
            .iter()
            .map(|n| Need { size: (n.size * self.tile).next_multiple_of(ALIGNED), ..*n })
            .collect();
        let places = memory::lay_out(&scaled);
        self.scratch = places.size;
        for step in &mut self.members {
            for arg in step.inputs.iter_mut().chain([&mut step.out]) {
                if let At::Scratch(need) = &mut arg.at {
                    *need = places.starts[*need];
                }
            }
        }
        for repeat in &mut self.repeats {
            repeat.place = places.starts[repeat.place];
        }
        if let Some(Product { moved: Some(need), .. }) = &mut self.product {
            *need = places.starts[*need];
        }
    }

    /// Number of pieces that threads share.
    pub fn pieces(&self) -> usize {
        self.rows.div_ceil(self.piece)
    }
}
