//! Several steps of a graph of launches as one graph: their arguments lie side by side in memory,
//! and so do their results.

use std::sync::Arc;

use chainrule_core::error::Result;
use chainrule_core::tensor::Tensor;
use chainrule_core::tensor::value::Value;

use super::{DeviceSession, Loaded, Way};
use crate::device::{Device, DeviceGraph, DeviceMemory, DeviceRead, DeviceWork};
use crate::words::{to_device, width};

/// Most steps of a graph.
const MOST: usize = 16;

/// Fewest steps of a graph that is worth recording.
const FEWEST: usize = 4;

/// Most bytes of arguments and results of all of them.
const BYTES: usize = 64 << 20;

/// Bytes of the words that draws follow from.
const WORDS: usize = 16;

/// Whether some steps are one graph.
pub(super) enum Many {
    /// Not tried yet.
    Unknown,
    /// It is not worth it, or there is no room for it.
    Never,
    /// They are one graph.
    Graph(Box<ManySteps>),
}

/// Some steps as one graph.
pub(super) struct ManySteps {
    pub graph: DeviceGraph,
    pub steps: usize,
    /// For each argument that is read the memory of its values, and those that are there.
    arguments: Vec<Option<(DeviceMemory, Vec<Arc<Value>>)>>,
    draws: Option<DeviceMemory>,
    results: Vec<DeviceMemory>,
}

/// Memory that was allocated, to be given back if the rest fails.
struct NewRooms<'a> {
    device: &'a mut dyn Device,
    made: Vec<DeviceMemory>,
    work: Vec<DeviceWork>,
}

impl NewRooms<'_> {
    fn copy(&mut self, from: DeviceMemory, to: DeviceMemory, begins: [usize; 2], bytes: usize) {
        if bytes > 0 {
            self.work.push(DeviceWork::Copy { from, to, begins, bytes });
        }
    }

    fn room(&mut self, bytes: usize) -> Result<DeviceMemory> {
        let memory = self.device.allocate(bytes)?;
        self.made.push(memory);
        Ok(memory)
    }
}

impl Loaded {
    /// Bytes of the arguments that are read, of the words of draws, and of the results of a step.
    fn bytes(&self, device: &dyn Device) -> usize {
        let each = |meta: &chainrule_core::tensor::value::Meta| {
            width(device.dialect(), meta.dtype) * meta.shape.numel()
        };
        let read = self.arguments.iter().filter(|a| a.memory.is_some());
        read.map(|a| each(&a.meta)).sum::<usize>()
            + self.results.iter().map(|r| each(&r.1)).sum::<usize>()
    }

    /// Records some steps as one graph; nothing where that is not worth it.
    fn many_steps(&self, rooms: &mut NewRooms, steps: usize) -> Result<ManySteps> {
        let Way::Graph(_, work) = &self.way else { unreachable!("asked of graphs alone") };
        let dialect = rooms.device.dialect();
        let each = |meta: &chainrule_core::tensor::value::Meta| {
            width(dialect, meta.dtype) * meta.shape.numel()
        };
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            arguments.push(match argument.memory {
                Some(_) => Some((rooms.room(steps * each(&argument.meta))?, Vec::new())),
                None => None,
            });
        }
        let draws = match self.draws {
            Some(_) => Some(rooms.room(steps * WORDS)?),
            None => None,
        };
        let results = self.results.iter().map(|r| rooms.room(steps * each(&r.1)));
        let results = results.collect::<Result<Vec<DeviceMemory>>>()?;
        for step in 0..steps {
            for (argument, room) in self.arguments.iter().zip(&arguments) {
                let bytes = each(&argument.meta);
                if let (Some(to), Some((from, _))) = (argument.memory, room) {
                    rooms.copy(*from, to, [step * bytes, 0], bytes);
                }
            }
            if let (Some(to), Some(from)) = (self.draws, draws) {
                rooms.copy(from, to, [step * WORDS, 0], WORDS);
            }
            rooms.work.extend(work.iter().map(|(_, piece)| piece.clone()));
            for (&(from, meta), &to) in self.results.iter().zip(&results) {
                rooms.copy(from, to, [0, step * each(&meta)], each(&meta));
            }
        }
        let graph = rooms.device.graph(std::mem::take(&mut rooms.work))?;
        Ok(ManySteps { graph, steps, arguments, draws, results })
    }
}

impl DeviceSession {
    /// Steps of a program that are one graph, which is recorded when it is first asked for.
    pub(super) fn steps_of_graph(&mut self, program: usize) -> Option<usize> {
        let loaded = self.programs.get_mut(program).and_then(Option::as_mut)?;
        let Way::Graph(_, work) = &loaded.way else { return None };
        if let Many::Unknown = loaded.many {
            let fits = BYTES / loaded.bytes(&*self.device).max(1);
            let steps = (self.device.longest() / work.len().max(1)).min(fits).min(MOST);
            let device = &mut *self.device;
            let mut rooms = NewRooms { device, made: Vec::new(), work: Vec::new() };
            let made = (steps >= FEWEST).then(|| loaded.many_steps(&mut rooms, steps));
            let NewRooms { device, made: memory, .. } = rooms;
            loaded.many = match made {
                Some(Ok(many)) => {
                    loaded.own.extend(memory);
                    Many::Graph(Box::new(many))
                }
                // Each step is a graph of its own if there is no room.
                _ => {
                    memory.into_iter().for_each(|m| device.free(m));
                    Many::Never
                }
            };
        }
        match &loaded.many {
            Many::Graph(many) => Some(many.steps),
            _ => None,
        }
    }

    /// Steps of a loaded program that one launch does, where [`DeviceSession::run_steps`] has as
    /// many.
    pub fn steps_at_once(&mut self, program: usize) -> usize {
        match self.programs.get(program).and_then(Option::as_ref).map(|loaded| &loaded.way) {
            Some(Way::Persistent(persistent)) => persistent.most(),
            _ => self.steps_of_graph(program).unwrap_or(1),
        }
    }

    /// Begins as many steps as a graph has, and the copies of their results.
    pub(super) fn start_many(
        &mut self,
        program: usize,
        batches: &[Vec<&Tensor>],
        reads: &mut Vec<DeviceRead>,
    ) -> Result<()> {
        self.put_cells(program)?;
        let Some(loaded) = &mut self.programs[program] else { return Ok(()) };
        let Many::Graph(many) = &mut loaded.many else { return Ok(()) };
        let device = &mut *self.device;
        let dialect = device.dialect();
        for (i, (argument, room)) in
            loaded.arguments.iter_mut().zip(&mut many.arguments).enumerate()
        {
            let Some((memory, held)) = room else { continue };
            let values: Vec<Arc<Value>> = batches.iter().map(|b| b[i].value()).collect();
            let pairs = held.iter().zip(&values);
            if held.len() != values.len() || !pairs.into_iter().all(|(a, b)| Arc::ptr_eq(a, b)) {
                held.clear();
                let mut bytes = Vec::new();
                for value in &values {
                    let rows = value.row_major()?;
                    bytes.extend(to_device(dialect, value.dtype(), rows.bytes())?);
                }
                device.send(*memory, &bytes)?;
                held.clone_from(&values);
            }
            // The last step leaves its own there.
            argument.held = values.last().cloned();
        }
        if let Some(draws) = many.draws {
            let words = (0..many.steps as u64).flat_map(|step| [self.seed, self.runs + step]);
            let words: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            device.send(draws, &words)?;
        }
        self.runs += many.steps as u64;
        device.launch(many.graph)?;
        for (&memory, (_, meta)) in many.results.iter().zip(&loaded.results) {
            let bytes = many.steps * width(dialect, meta.dtype) * meta.shape.numel();
            reads.push(device.begin_read(memory, bytes)?);
        }
        self.changed(program);
        Ok(())
    }
}
