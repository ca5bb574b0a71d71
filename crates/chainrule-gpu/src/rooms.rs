//! Memory for values that live for part of a step: a room is reused for another value after the
//! last use of the one before.

use crate::module::{Buffer, KernelModule, Source};

/// The rooms of a step.
pub(crate) struct Rooms {
    /// The room of each buffer that kernels write; others have none.
    pub of: Vec<usize>,
    /// The bytes of each room, and the first buffer in it.
    pub sizes: Vec<(usize, usize)>,
}

impl Rooms {
    /// Rooms for all buffers that kernels write. Results and new values of cells are read after the
    /// step, so theirs are not reused.
    pub fn of(module: &KernelModule, size: impl Fn(&Buffer) -> usize) -> Rooms {
        let count = module.buffers.len();
        let mut last = vec![0; count];
        for (i, launch) in module.launches.iter().enumerate() {
            let (read, written) = launch.buffers();
            read.into_iter().chain(written).for_each(|b| last[b] = i);
        }
        let new = module.states.iter().filter_map(|(_, write)| *write);
        module.results.iter().copied().chain(new).for_each(|b| last[b] = usize::MAX);
        let mut rooms = Rooms { of: vec![usize::MAX; count], sizes: Vec::new() };
        let mut free: Vec<usize> = Vec::new();
        for (i, launch) in module.launches.iter().enumerate() {
            let (read, written) = launch.buffers();
            let is_new = |b: &&usize| module.buffers[**b].source == Source::Kernel;
            for &b in written.iter().filter(is_new) {
                rooms.enter(b, size(&module.buffers[b]), &mut free);
            }
            for b in read.into_iter().chain(written) {
                let ends = last[b] == i && module.buffers[b].source == Source::Kernel;
                if ends && !free.contains(&rooms.of[b]) {
                    free.push(rooms.of[b]);
                }
            }
        }
        // A value without elements has no kernel.
        for (b, buffer) in module.buffers.iter().enumerate() {
            if buffer.source == Source::Kernel {
                rooms.enter(b, size(buffer), &mut Vec::new());
            }
        }
        rooms
    }

    /// The smallest free room that is large enough and not twice as large, or a new one.
    fn enter(&mut self, b: usize, bytes: usize, free: &mut Vec<usize>) {
        if self.of[b] != usize::MAX {
            return;
        }
        let fits = |&&room: &&usize| (bytes..=2 * bytes).contains(&self.sizes[room].0);
        let found = free.iter().filter(fits).min_by_key(|&&room| self.sizes[room].0).copied();
        self.of[b] = match found {
            Some(room) => {
                free.retain(|&r| r != room);
                room
            }
            None => {
                self.sizes.push((bytes, b));
                self.sizes.len() - 1
            }
        };
    }
}
