//! Cells: copies of them that the step reads, and those that last in the blocks' own memory from
//! step to step.

use super::pieces::{Targets, Task, Writer};
use super::shares::Share;
use crate::graph::{Graph, Step, Value, ValueId};

/// A cell, the copy that is read in its place, and its new value.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    pub number: usize,
    pub read: ValueId,
    pub copy: ValueId,
    pub write: Option<ValueId>,
}

/// Lets a copy of each cell be read in its place.
pub(crate) fn copied(graph: &mut Graph) {
    for i in 0..graph.states.len() {
        let v = graph.states[i].0;
        let wanted = format!("{}_copy", graph.values[v].name);
        let (mut name, mut n) = (wanted.clone(), 1);
        while !graph.names.insert(name.clone()) {
            n += 1;
            name = format!("{wanted}_{n}");
        }
        let cell = graph.values.len();
        let Value { dtype, dims, line, .. } = &graph.values[v];
        let (dtype, dims, line) = (*dtype, dims.clone(), line.clone());
        let step = std::mem::replace(&mut graph.values[v].step, Step::Map("Identity", vec![cell]));
        let name = std::mem::replace(&mut graph.values[v].name, name);
        graph.values.push(Value { name, dtype, dims, step, line });
        graph.states[i].0 = cell;
    }
}

/// The cells of a graph whose copies are read; after [`copied`].
pub(crate) fn cells(graph: &Graph) -> Vec<Cell> {
    let copies = |read: ValueId| {
        let is_copy = |value: &Value| value.step == Step::Map("Identity", vec![read]);
        graph.values.iter().position(is_copy)
    };
    let cell = |(number, &(read, write)): (usize, &(ValueId, Option<ValueId>))| {
        Some(Cell { number, read, copy: copies(read)?, write })
    };
    graph.states.iter().enumerate().filter_map(cell).collect()
}

/// The arrays of a cell that lasts: the value of one step and, after it, that of the next one,
/// alternating.
#[derive(Clone, Copy)]
pub(crate) struct LastingRoom {
    /// Bytes from the beginning of the block's memory.
    pub at: usize,
    /// Bytes of one of both.
    pub bytes: usize,
}

impl LastingRoom {
    /// The position of the value of a step, or of its new value.
    pub fn place(self, step: &str, new: bool) -> String {
        let turn = if new { format!("1 - {step} % 2") } else { format!("{step} % 2") };
        format!("arena + {} + ({turn}) * {}", self.at, self.bytes)
    }
}

/// Lines that name the arrays of a cell at the head of a step.
pub(crate) fn named(
    cell: &Cell,
    room: LastingRoom,
    kind: &str,
    [own, new]: [&str; 2],
    step: &str,
) -> Vec<String> {
    if cell.write.is_none() {
        return vec![format!("const {kind}* {own} = (const {kind}*)(arena + {});", room.at)];
    }
    let place = |new| room.place(step, new);
    vec![
        format!("const {kind}* {own} = (const {kind}*)({});", place(false)),
        format!("{kind}* {new} = ({kind}*)({});", place(true)),
    ]
}

impl Writer<'_> {
    /// Lines that fill a cell's array before the first step.
    pub fn filled(
        &self,
        cell: &Cell,
        share: Share,
        room: LastingRoom,
        (kind, own): (&str, &str),
    ) -> Vec<String> {
        let task = Task::new(self.graph, cell.copy, share, self.places.cluster);
        let kept = [(cell.copy, own.to_string())].into();
        let piece = self.piece(&task, &Targets { kept, ..Targets::default() }, 0);
        let mut out = vec![
            "    {".to_string(),
            format!("        {kind}* {own} = ({kind}*)(arena + {});", room.at),
        ];
        out.extend(piece.lines);
        out.push("    }".into());
        out
    }

    /// Lines that write a cell's last value to its memory after the last step.
    pub fn emptied(
        &self,
        cell: &Cell,
        share: Share,
        room: LastingRoom,
        (kind, own): (&str, &str),
    ) -> Vec<String> {
        let task = Task::new(self.graph, cell.copy, share, self.places.cluster);
        let place = room.place(&self.names.steps, false);
        let mut out = vec![
            "    {".to_string(),
            format!("        const {kind}* {own} = (const {kind}*)({place});"),
        ];
        out.extend(self.back(&task, own, &self.graph.values[cell.read].name));
        out.push("    }".into());
        out
    }
}
