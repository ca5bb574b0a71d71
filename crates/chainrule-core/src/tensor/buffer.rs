//! Memory for elements: aligned blocks, recycled by a pool for each thread.
//!
//! A training step makes and drops the same sizes again and again. Keeping them saves the
//! allocator's work for small tensors and the page faults for large ones, which otherwise cost a
//! third of a large step.

mod pool;

pub use self::pool::MemoryStatistics;
use self::pool::POOL;
use super::arena::ArenaPlace;
use crate::dtype::Stored;

/// 64 bytes: a cache line, and one vector of the widest instructions.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub struct Block([u64; 8]);

pub const BLOCK: usize = size_of::<Block>();

/// Elements in memory, 64-byte aligned. After [`Buffer::new`] their contents are arbitrary; its
/// creator writes all of them.
pub struct Buffer {
    memory: BufferMemory,
}

enum BufferMemory {
    Own(Vec<Block>),
    /// A part of the arena of a program.
    Planned(ArenaPlace),
}

impl Buffer {
    /// An empty buffer.
    pub const NONE: Buffer = Buffer { memory: BufferMemory::Own(Vec::new()) };

    /// A part of an arena.
    pub fn at(place: ArenaPlace) -> Buffer {
        Buffer { memory: BufferMemory::Planned(place) }
    }

    /// Room for `bytes` bytes, or `None` if there is no memory for it.
    pub fn new(bytes: usize) -> Option<Buffer> {
        let class = Class::of(bytes.div_ceil(BLOCK));
        let kept = POOL.try_with(|pool| pool.borrow_mut().take(class, bytes)).ok().flatten();
        match kept {
            Some(memory) => Some(Buffer { memory }),
            None => Buffer::fresh(class),
        }
    }

    /// The next buffers of this size on this thread are placed here, until [`Buffer::unplan`].
    pub fn plan(places: impl Iterator<Item = (usize, ArenaPlace)>) {
        let _ = POOL.try_with(|pool| pool.borrow_mut().planned.extend(places));
    }

    /// Discards planned places that were not taken.
    pub fn unplan() {
        let _ = POOL.try_with(|pool| pool.borrow_mut().planned.clear());
    }

    /// Returns the free buffers of this thread to the allocator.
    pub fn trim() {
        let _ = POOL.try_with(|pool| pool.borrow_mut().clear());
    }

    /// As [`Buffer::trim`]; other threads do the same when they next drop a buffer.
    pub fn trim_all() {
        pool::ask_all_to_clear();
        Buffer::trim();
    }

    /// The memory that this thread keeps.
    pub fn statistics() -> MemoryStatistics {
        POOL.try_with(|pool| pool.borrow_mut().statistics()).unwrap_or_default()
    }

    /// Whether it is a part of an arena.
    pub fn is_planned(&self) -> bool {
        matches!(self.memory, BufferMemory::Planned(_))
    }

    #[cold]
    fn fresh(class: Class) -> Option<Buffer> {
        let room = || bytemuck::allocation::try_zeroed_vec(class.blocks());
        let blocks = room().or_else(|_| {
            // Memory that is kept for reuse may be what is missing now.
            Buffer::trim_all();
            room()
        });
        let blocks = blocks.ok()?;
        let _ = POOL.try_with(|pool| pool.borrow_mut().grew(blocks.len()));
        Some(Buffer { memory: BufferMemory::Own(blocks) })
    }

    /// The first `len` elements.
    #[inline]
    pub fn as_slice<T: Stored>(&self, len: usize) -> &[T] {
        let blocks = match &self.memory {
            BufferMemory::Own(blocks) => blocks,
            BufferMemory::Planned(place) => place.read(),
        };
        &bytemuck::cast_slice(blocks)[..len]
    }

    /// The first `len` elements, to write.
    #[inline]
    pub fn as_mut_slice<T: Stored>(&mut self, len: usize) -> &mut [T] {
        let blocks = match &mut self.memory {
            BufferMemory::Own(blocks) => blocks,
            BufferMemory::Planned(place) => place.write(),
        };
        &mut bytemuck::cast_slice_mut(blocks)[..len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let BufferMemory::Own(blocks) = &mut self.memory else { return };
        let blocks = std::mem::take(blocks);
        if !blocks.is_empty() {
            let n = blocks.len();
            // At the end of a thread its pool may be gone already: the memory then goes straight
            // back to the allocator.
            if POOL.try_with(|pool| pool.borrow_mut().put(blocks)).is_err() {
                pool::is_dropped(n);
            }
        }
    }
}

/// Sizes are rounded up to one of these classes, so that buffers of nearly equal size are
/// interchangeable: exact up to 16 blocks, then four steps to each doubling.
#[derive(Clone, Copy)]
struct Class(usize);

const EXACT: usize = 16;

impl Class {
    #[inline]
    fn of(blocks: usize) -> Class {
        if blocks <= EXACT {
            return Class(blocks);
        }
        let log = (blocks - 1).ilog2() as usize;
        let quarter = (blocks - 1) >> (log - 2) & 3;
        Class(EXACT + 1 + (log - 4) * 4 + quarter)
    }

    #[inline]
    fn blocks(self) -> usize {
        if self.0 <= EXACT {
            return self.0;
        }
        let step = self.0 - EXACT - 1;
        (5 + step % 4) << (step / 4 + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_was_asked_for() {
        for n in (0..5000).chain([1 << 20, (1 << 20) + 1, (1 << 30) - 1]) {
            let class = Class::of(n);
            assert!(class.blocks() >= n, "{n}");
            assert!(class.blocks() <= n + n / 4 + 1, "{n} takes {}", class.blocks());
            assert_eq!(Class::of(class.blocks()).0, class.0, "{n}");
        }
    }

    #[test]
    fn buffers_are_counted_wherever_they_are_dropped() {
        const BYTES: usize = 1 << 28;
        let told = |now: usize, before: usize| now.abs_diff(before) < BYTES / 2;
        let before = Buffer::statistics().in_use;
        let made = std::thread::spawn(|| Buffer::new(BYTES).unwrap()).join().unwrap();
        let all = Buffer::statistics();
        assert!(told(all.in_use, before + BYTES) && all.most_in_use >= BYTES);
        drop(made);
        assert!(told(Buffer::statistics().in_use, before));
        // Dropped by the end of a thread, after its pool or before it.
        std::thread_local!(static LAST: std::cell::RefCell<Option<Buffer>> = const { std::cell::RefCell::new(None) });
        let hold = || LAST.with(|last| *last.borrow_mut() = Some(Buffer::new(BYTES).unwrap()));
        std::thread::spawn(hold).join().unwrap();
        assert!(told(Buffer::statistics().in_use, before));
    }

    #[test]
    fn buffers_are_aligned_and_recycled() {
        for len in [0usize, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
            let mut buffer = Buffer::new(len * 4).unwrap();
            let slice = buffer.as_mut_slice::<f32>(len);
            assert!(len == 0 || slice.as_ptr().addr().is_multiple_of(64));
            slice.fill(1.0);
        }
        Buffer::trim();
        assert_eq!(Buffer::statistics().kept, 0);
        // Another test may trim the pools of all threads.
        let is_recycled = (0..10).any(|_| {
            let first = Buffer::new(4000).unwrap();
            let address = first.as_slice::<f32>(1).as_ptr().addr();
            drop(first);
            Buffer::new(3990).unwrap().as_slice::<f32>(1).as_ptr().addr() == address
        });
        assert!(is_recycled);
    }
}
