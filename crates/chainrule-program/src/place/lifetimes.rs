//! The parts of a run that never change: when values are dropped, and which updates are in place.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::Program;
use crate::ir::{Cell, Id};

/// The drops and the updates in place of a program, found once.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    /// For each instruction, the values that no later one needs.
    pub dropped: Vec<SmallVec<[Id; 2]>>,
    /// For each instruction at the end of the program that updates cells: the places of the inputs
    /// that become results, with the cell of each. Nothing that can fail comes after the first of
    /// them.
    pub in_place: HashMap<usize, SmallVec<[InPlace; 3]>>,
    /// Whether a cell gets its new value so.
    pub written: Vec<bool>,
}

/// An input of an update that becomes a result of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InPlace {
    pub input: usize,
    pub output: usize,
    pub cell: usize,
    /// Whether anybody takes the result beside the cell.
    pub kept: bool,
}

impl Lifetimes {
    pub fn of(program: &Program) -> Lifetimes {
        let mut lifetimes =
            Lifetimes { written: vec![false; program.cells.len()], ..Lifetimes::default() };
        let mut last = vec![None; program.values.len()];
        for (i, instruction) in program.instructions.iter().enumerate() {
            for id in instruction.outputs.iter().chain(&instruction.inputs) {
                last[id.index()] = Some(i);
            }
        }
        for id in program.roots() {
            last[id.index()] = None;
        }
        lifetimes.dropped.resize_with(program.instructions.len(), SmallVec::new);
        for (id, i) in last.iter().enumerate() {
            if let Some(i) = *i {
                lifetimes.dropped[i].push(Id(id as u32));
            }
        }
        let updates = |i: &usize| program.instructions[*i].op.replaces(0).is_some();
        for i in (0..program.instructions.len()).rev().take_while(updates) {
            lifetimes.update(program, i);
        }
        lifetimes
    }

    /// Notes the cells that instruction `i` reads and gives a new value.
    fn update(&mut self, program: &Program, i: usize) {
        let instruction = &program.instructions[i];
        let mut found: SmallVec<[InPlace; 3]> = SmallVec::new();
        for (output, id) in instruction.outputs.iter().enumerate() {
            let Some(input) = instruction.op.replaces(output) else { continue };
            let fits = |c: &Cell| c.read == instruction.inputs[input] && c.write == Some(*id);
            if let Some(cell) = program.cells.iter().position(fits) {
                let taken = program.instructions.iter().any(|i| i.inputs.contains(id));
                let kept = taken || program.outputs.iter().any(|output| output.id == *id);
                found.push(InPlace { input, output, cell, kept });
                self.written[cell] = true;
            }
        }
        self.in_place.insert(i, found);
    }
}
