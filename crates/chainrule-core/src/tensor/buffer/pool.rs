//! Free blocks of a thread, and how many are kept; see [`crate::memory`] for the bounds.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};

use super::{BLOCK, Block, BufferMemory, Class};
use crate::tensor::arena::ArenaPlace;

/// Blocks that a thread may always keep: 256 MiB.
const FLOOR: usize = (256 << 20) / BLOCK;
/// Factor of the blocks in use at one time that it keeps beyond that.
const TIMES: usize = 4;
/// The machine's memory divided by this is the share of all threads.
const SHARE: u64 = 4;
/// The memory assumed where the system does not report it.
const ASSUMED: u64 = 16 << 30;
/// Threads take their part of the share in pieces of this many blocks, 16 MiB, so that they seldom
/// meet.
const LEASE: usize = (16 << 20) / BLOCK;
/// Between two scans for unused sizes, new memory of this many blocks, 32 MiB, is taken, or this
/// many buffers are used again.
const GROWTH: usize = (32 << 20) / BLOCK;
const USES: u64 = 1 << 16;

/// Blocks that a thread takes and returns before it updates the count of all threads: 64 KiB.
const UNTOLD: isize = (64 << 10) / BLOCK as isize;

/// Blocks in use on all threads, and the most at one time, except what threads have not reported
/// yet.
static IN_USE: AtomicIsize = AtomicIsize::new(0);
static MOST_IN_USE: AtomicIsize = AtomicIsize::new(0);
/// The blocks that all threads may keep by their leases.
static LEASED: AtomicUsize = AtomicUsize::new(0);
/// Rises when all threads are asked to clear their pools.
static CLEARED: AtomicU64 = AtomicU64::new(0);

/// The memory of dropped tensors that a thread keeps; see [`crate::memory::statistics`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// Bytes of dropped tensors that are kept for the next ones.
    pub kept: usize,
    /// Bytes of the tensors of all threads, and the most at one time: exact for this thread, to
    /// within 64 KiB for each other one.
    pub in_use: usize,
    /// See [`MemoryStatistics::in_use`].
    pub most_in_use: usize,
    /// The most bytes that this thread keeps now.
    pub limit: usize,
    /// Bytes that all threads keep together, rounded up to pieces of 16 MiB, and the most.
    pub kept_by_all: usize,
    /// See [`MemoryStatistics::kept_by_all`].
    pub limit_of_all: usize,
    /// Number of tensors made in memory that was kept.
    pub reused: u64,
    /// Number of tensors made in memory from the system.
    pub fresh: u64,
    /// Number of bytes that went back to the system.
    pub given_back: u64,
}

/// Free blocks of one class.
struct FreeList {
    free: Vec<Vec<Block>>,
    /// The minimum since the last scan: this many were not needed.
    fewest: usize,
}

/// The pool of a thread.
pub struct BufferPool {
    lists: Vec<FreeList>,
    held: usize,
    /// Number of blocks it may hold under its leases.
    leased: usize,
    /// Blocks that this thread took and did not give back: negative where others allocate the
    /// buffers that it drops.
    in_use: isize,
    most_in_use: isize,
    /// The part of `in_use` that is not in [`IN_USE`] yet.
    untold: isize,
    /// Blocks from the system since the last scan.
    grown: usize,
    cleared: u64,
    reused: u64,
    fresh: u64,
    given_back: usize,
    /// See [`super::Buffer::plan`].
    pub planned: Vec<(usize, ArenaPlace)>,
}

/// Number of free buffers kept of one class: enough for a long tape of small values, and for the
/// like values of many layers.
#[inline]
fn most_of(blocks: usize) -> usize {
    (1 << 16) / blocks.max(1) + 256
}

impl BufferPool {
    const NEW: BufferPool = BufferPool {
        lists: Vec::new(),
        held: 0,
        leased: 0,
        in_use: 0,
        most_in_use: 0,
        untold: 0,
        grown: 0,
        cleared: 0,
        reused: 0,
        fresh: 0,
        given_back: 0,
        planned: Vec::new(),
    };

    #[inline]
    pub fn take(&mut self, class: Class, bytes: usize) -> Option<BufferMemory> {
        if !self.planned.is_empty()
            && let Some(at) = self.planned.iter().position(|(size, _)| *size == bytes)
        {
            return Some(BufferMemory::Planned(self.planned.remove(at).1));
        }
        let list = self.lists.get_mut(class.0)?;
        let blocks = list.free.pop()?;
        list.fewest = list.fewest.min(list.free.len());
        self.held -= blocks.len();
        self.reused += 1;
        self.is_used(blocks.len());
        if self.reused.is_multiple_of(USES) {
            self.give_back_idle();
        }
        Some(BufferMemory::Own(blocks))
    }

    #[inline]
    fn is_used(&mut self, blocks: usize) {
        self.in_use += blocks as isize;
        self.most_in_use = self.most_in_use.max(self.in_use);
        self.untold += blocks as isize;
        if self.untold >= UNTOLD {
            self.tell();
        }
    }

    /// Adds this thread's blocks to those of all threads.
    fn tell(&mut self) {
        let untold = std::mem::take(&mut self.untold);
        let in_use = IN_USE.fetch_add(untold, Ordering::Relaxed) + untold;
        MOST_IN_USE.fetch_max(in_use, Ordering::Relaxed);
    }

    /// Notes that this many blocks came from the system, and frees the blocks not needed since the
    /// last time.
    pub fn grew(&mut self, blocks: usize) {
        self.fresh += 1;
        self.is_used(blocks);
        self.grown = self.grown.saturating_add(blocks);
        if self.grown > GROWTH.max(self.held / 2) {
            self.give_back_idle();
        }
    }

    #[inline]
    pub fn put(&mut self, blocks: Vec<Block>) {
        let n = blocks.len();
        self.in_use -= n as isize;
        self.untold -= n as isize;
        if self.untold <= -UNTOLD {
            self.tell();
        }
        if self.cleared != CLEARED.load(Ordering::Relaxed) {
            self.clear();
        }
        let class = Class::of(n).0;
        if self.lists.len() <= class {
            self.lists.resize_with(class + 1, || FreeList { free: Vec::new(), fewest: 0 });
        }
        let is_full = self.lists[class].free.len() >= most_of(n);
        let may = self.held + n <= self.leased || (!is_full && self.lease(n));
        if is_full || !may {
            self.given_back += n;
            return;
        }
        self.held += n;
        self.lists[class].free.push(blocks);
    }

    /// The most blocks that this thread keeps.
    fn limit(&self) -> usize {
        (self.most_in_use.max(0) as usize).saturating_mul(TIMES).max(FLOOR)
    }

    /// Claims another part of the share of all threads. False if there is none left, or the thread
    /// has its maximum.
    #[cold]
    fn lease(&mut self, n: usize) -> bool {
        let want = self.held + n;
        if want > self.limit() {
            return false;
        }
        let most_more = self.limit().saturating_sub(self.leased);
        let more = (want - self.leased).max(LEASE.min(most_more));
        let most = limit_of_all();
        let taken = LEASED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |leased| {
            leased.checked_add(more).filter(|&all| all <= most)
        });
        if taken.is_ok() {
            self.leased += more;
        }
        taken.is_ok()
    }

    /// Frees the blocks of each class that were not needed since the last time.
    #[cold]
    fn give_back_idle(&mut self) {
        self.grown = 0;
        for list in &mut self.lists {
            let idle: usize = list.free.drain(..list.fewest).map(|blocks| blocks.len()).sum();
            list.fewest = list.free.len();
            self.held -= idle;
            self.given_back += idle;
        }
        self.end_leases();
    }

    /// Gives all free blocks back.
    #[cold]
    pub fn clear(&mut self) {
        self.lists.clear();
        self.given_back += self.held;
        (self.held, self.grown) = (0, 0);
        self.cleared = CLEARED.load(Ordering::Relaxed);
        self.end_leases();
    }

    /// Offers its unused share to other threads.
    fn end_leases(&mut self) {
        LEASED.fetch_sub(self.leased - self.held, Ordering::Relaxed);
        self.leased = self.held;
    }

    pub fn statistics(&mut self) -> MemoryStatistics {
        self.tell();
        let bytes = |blocks: usize| blocks.saturating_mul(BLOCK);
        let of_all = limit_of_all();
        MemoryStatistics {
            kept: bytes(self.held),
            in_use: bytes(IN_USE.load(Ordering::Relaxed).max(0) as usize),
            most_in_use: bytes(MOST_IN_USE.load(Ordering::Relaxed).max(0) as usize),
            limit: bytes(self.limit().min(of_all)),
            kept_by_all: bytes(LEASED.load(Ordering::Relaxed)),
            limit_of_all: bytes(of_all),
            reused: self.reused,
            fresh: self.fresh,
            given_back: bytes(self.given_back) as u64,
        }
    }
}

/// Counts blocks that were dropped on a thread whose pool is gone.
pub fn is_dropped(blocks: usize) {
    IN_USE.fetch_sub(blocks as isize, Ordering::Relaxed);
}

impl Drop for BufferPool {
    fn drop(&mut self) {
        self.held = 0;
        self.end_leases();
        self.tell();
    }
}

thread_local! {
    pub static POOL: RefCell<BufferPool> = const { RefCell::new(BufferPool::NEW) };
}

/// Asks all threads to clear their pools the next time they return a buffer.
pub fn ask_all_to_clear() {
    CLEARED.fetch_add(1, Ordering::Relaxed);
}

/// The most blocks that all threads keep.
fn limit_of_all() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let bytes = memory_of_the_machine().unwrap_or(ASSUMED) / SHARE;
        usize::try_from(bytes).unwrap_or(usize::MAX) / BLOCK
    })
}

/// The bytes of memory that the process may have at most, where the system says so in files.
fn memory_of_the_machine() -> Option<u64> {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let group = group.into_iter().find_map(number);
    let about = std::fs::read_to_string("/proc/meminfo").ok();
    let total = about.and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    });
    match (group, total) {
        (Some(group), Some(total)) => Some(group.min(total)),
        (group, total) => group.or(total),
    }
}
