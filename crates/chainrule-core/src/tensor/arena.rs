//! One piece of memory for all values of a program, at planned places.
//!
//! An [`ArenaPlace`] is a part of it. Two places may overlap; their creator guarantees that no
//! element is read through one while it is written through the other, and that the old contents of
//! a place are no longer needed when an overlapping one is written. The plan of a program does
//! both: see `program/place`.

use std::cell::UnsafeCell;
use std::sync::Arc;

use super::buffer::Block;

/// Memory that is handed out as places.
pub struct Arena {
    blocks: Box<[UnsafeCell<Block>]>,
}

// SAFETY: blocks are plain numbers, and a run of a program, which is the only one to use its arena,
// orders all reads and writes.
unsafe impl Sync for Arena {}

impl Arena {
    /// Room for this many blocks, or `None` if there is no memory for it.
    pub fn new(blocks: usize) -> Option<Arena> {
        let blocks: Vec<Block> = bytemuck::allocation::try_zeroed_vec(blocks).ok()?;
        let blocks = Box::into_raw(blocks.into_boxed_slice()) as *mut [UnsafeCell<Block>];
        // SAFETY: an `UnsafeCell` has the layout of its contents.
        Some(Arena { blocks: unsafe { Box::from_raw(blocks) } })
    }
}

/// A part of an arena.
#[derive(Clone)]
pub struct ArenaPlace {
    arena: Arc<Arena>,
    first: usize,
    blocks: usize,
}

impl ArenaPlace {
    /// The blocks from `first` on.
    ///
    /// # Panics
    ///
    /// If they reach beyond the arena.
    pub fn new(arena: &Arc<Arena>, first: usize, blocks: usize) -> ArenaPlace {
        assert!(first + blocks <= arena.blocks.len(), "the arena has no such place");
        ArenaPlace { arena: arena.clone(), first, blocks }
    }

    /// Its contents.
    #[inline]
    pub fn read(&self) -> &[Block] {
        // SAFETY: the blocks are inside the arena, which lives as long as this; they are not
        // written while they are read (see above).
        unsafe { std::slice::from_raw_parts(self.start(), self.blocks) }
    }

    /// Its contents, to write.
    #[inline]
    pub fn write(&mut self) -> &mut [Block] {
        // SAFETY: as above; the writer of a place is the only user of it and of any that overlaps
        // it until then.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.blocks) }
    }

    /// Its address.
    #[inline]
    pub fn start(&self) -> *mut Block {
        UnsafeCell::raw_get(self.arena.blocks.as_ptr().wrapping_add(self.first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::buffer::{BLOCK, Buffer};

    #[test]
    fn places_are_apart_at_odd_sizes() {
        let sizes = [0usize, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129];
        let blocks = sizes.map(|n| (n * 4).div_ceil(BLOCK));
        let arena = Arc::new(Arena::new(blocks.iter().sum()).unwrap());
        let mut first = 0;
        let mut buffers = Vec::new();
        for (n, blocks) in sizes.into_iter().zip(blocks) {
            let mut buffer = Buffer::at(ArenaPlace::new(&arena, first, blocks));
            buffer.as_mut_slice::<f32>(n).fill(n as f32);
            buffers.push((n, buffer));
            first += blocks;
        }
        for (n, buffer) in &buffers {
            assert!(buffer.as_slice::<f32>(*n).iter().all(|&x| x == *n as f32));
        }
    }

    #[test]
    #[should_panic = "no such place"]
    fn a_place_lies_inside() {
        let arena = Arc::new(Arena::new(3).unwrap());
        ArenaPlace::new(&arena, 2, 2);
    }
}
