//! The threads that large kernels share.
//!
//! A kernel splits its work by size alone and calls [`for_each`] on the pieces: this thread takes
//! them one after the other, and helper threads that are awake take some too. Nobody waits for a
//! helper to wake up. Between two kernels of a training step there are microseconds, and waking a
//! thread takes tens of them, so a helper spins for a while before it sleeps.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time that a helper spins before it sleeps, and before it yields to other processes in between.
const AWAKE: Duration = Duration::from_millis(2);
const ALERT: Duration = Duration::from_micros(200);
/// Checks of the gate between two readings of the clock.
const LOOKS: usize = 128;

/// Sets how many threads large operations use: this one and `count - 1` helpers; 0 is one a core,
/// as at the start.
///
/// Results do not depend on it, to the last bit.
///
/// ```
/// chainrule::set_num_threads(1);
/// assert_eq!(chainrule::num_threads(), 1);
/// chainrule::set_num_threads(0);
/// assert!(chainrule::num_threads() >= 1);
/// ```
pub fn set_num_threads(count: usize) {
    COUNT.store(count, Ordering::Relaxed);
}

/// Number of threads that large operations use.
pub fn num_threads() -> usize {
    let count = match LIMIT.get() {
        0 => COUNT.load(Ordering::Relaxed),
        limit => limit,
    };
    match count {
        0 => cores(),
        count => count,
    }
}

/// Calls `f`, in which large operations of this thread use `count` threads.
pub fn with_num_threads<R>(count: usize, f: impl FnOnce() -> R) -> R {
    let before = LIMIT.replace(count);
    let result = catch_unwind(AssertUnwindSafe(f));
    LIMIT.set(before);
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Calls `f` on every item; if `shared`, on several threads, each item on one.
///
/// This thread takes the first item that is left, and every other helper the last. A kernel mostly
/// reads the output of the one before: a thread thus finds its own output in its own cache, and
/// does not have to fetch it from another's, which takes several times as long.
///
/// A panic in `f` reaches the caller when all threads have come to an end.
pub fn for_each<T>(
    shared: bool,
    mut items: impl DoubleEndedIterator<Item = T> + Send,
    f: impl Fn(T) + Sync,
) {
    // Dynamic dispatch costs nothing compared with an item; compiled for each caller, this function
    // would be a tenth of the library.
    hand_out(shared, &mut items, &f)
}

fn hand_out<T>(
    shared: bool,
    items: &mut (dyn DoubleEndedIterator<Item = T> + Send),
    f: &(dyn Fn(T) + Sync),
) {
    if !shared || is_alone() {
        return items.for_each(f);
    }
    let items = Mutex::new(items);
    POOL.together(&|| {
        let from_end = FROM_END.get();
        loop {
            let next = match from_end {
                true => lock(&items).next_back(),
                false => lock(&items).next(),
            };
            let Some(item) = next else { return };
            f(item);
        }
    });
}

/// Whether the work stays on this thread: there is only one, or this is part of shared work
/// already.
pub fn is_alone() -> bool {
    INSIDE.get() || num_threads() == 1
}

/// The number that was set; 0 is one a core.
static COUNT: AtomicUsize = AtomicUsize::new(0);

static POOL: Pool = Pool {
    busy: AtomicBool::new(false),
    gate: AtomicU64::new(0),
    work: Slot(UnsafeCell::new(None)),
    left: AtomicUsize::new(0),
    panic: Mutex::new(None),
    helpers: AtomicUsize::new(0),
    sleeping: AtomicUsize::new(0),
    bed: Mutex::new(()),
    bell: Condvar::new(),
};

thread_local! {
    /// The number of threads for this thread's work, where it differs.
    static LIMIT: Cell<usize> = const { Cell::new(0) };
    /// Whether this thread is doing shared work.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread takes items from the end.
    static FROM_END: Cell<bool> = const { Cell::new(false) };
}

fn cores() -> usize {
    static CORES: AtomicUsize = AtomicUsize::new(0);
    match CORES.load(Ordering::Relaxed) {
        0 => {
            let cores = thread::available_parallelism().map_or(1, NonZero::get);
            CORES.store(cores, Ordering::Relaxed);
            cores
        }
        cores => cores,
    }
}

/// Everything behind these locks is whole at all times.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state that helpers and callers share.
type Work = dyn Fn() + Sync;

/// The current work, by address.
struct Slot(UnsafeCell<Option<*const Work>>);

// SAFETY: written by the owner of `busy` while the gate is closed and no helper is inside, read by
// those inside.
unsafe impl Sync for Slot {}
// SAFETY: what it points to may be called from any thread.
unsafe impl Send for Slot {}

struct Pool {
    /// Whether somebody's work is being shared: at most one caller's is.
    busy: AtomicBool,
    /// The number of the current work, and in the low bits how many helpers may still join: none
    /// when the gate is closed.
    gate: AtomicU64,
    work: Slot,
    /// Helpers that have come in and gone out again.
    left: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Number of helpers, awake or not.
    helpers: AtomicUsize,
    sleeping: AtomicUsize,
    bed: Mutex<()>,
    bell: Condvar,
}

/// The bits of the gate that count free seats.
const SEATS: u64 = 0xffff;

impl Pool {
    /// Calls `work` here and, at the same time, on each helper that joins. Returns when all calls
    /// have returned.
    fn together(&'static self, work: &(dyn Fn() + Sync + '_)) {
        if self.busy.swap(true, Ordering::Acquire) {
            // Another thread's work is being shared; this thread does its own work alone.
            return work();
        }
        let seats = (num_threads() - 1).min(SEATS as usize);
        self.hire(seats);
        // SAFETY: the lifetime is only forgotten: nobody is inside before the gate opens nor after
        // `close`, which this function awaits on every path, so `work` outlives every call.
        unsafe {
            let work = std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const Work>(work);
            *self.work.0.get() = Some(work);
        }
        self.left.store(0, Ordering::Relaxed);
        let number = (self.gate.load(Ordering::Relaxed) | SEATS) + 1;
        self.gate.store(number | seats as u64, Ordering::SeqCst);
        if self.sleeping.load(Ordering::SeqCst) > 0 {
            let _bed = lock(&self.bed);
            self.bell.notify_all();
        }
        INSIDE.set(true);
        let mine = catch_unwind(AssertUnwindSafe(work));
        INSIDE.set(false);
        self.close(number, seats);
        let theirs = lock(&self.panic).take();
        self.busy.store(false, Ordering::Release);
        if let Some(panic) = mine.err().or(theirs) {
            resume_unwind(panic);
        }
    }

    /// Closes the gate, and waits for the helpers inside.
    fn close(&self, number: u64, seats: usize) {
        let free = (self.gate.swap(number, Ordering::AcqRel) & SEATS) as usize;
        let mut looks = 0usize;
        while self.left.load(Ordering::Acquire) < seats - free {
            looks += 1;
            // A helper that the system has suspended needs a processor to finish.
            if looks.is_multiple_of(64 * LOOKS) {
                thread::yield_now()
            } else {
                std::hint::spin_loop()
            }
        }
    }

    /// Starts helpers until there are `count`, or as many as the system lets us.
    fn hire(&'static self, count: usize) {
        while self.helpers.load(Ordering::Relaxed) < count {
            let number = self.helpers.load(Ordering::Relaxed) + 1;
            let name = format!("chainrule-{number}");
            if thread::Builder::new().name(name).spawn(move || self.help(number)).is_err() {
                return;
            }
            self.helpers.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The loop of a helper.
    fn help(&self, number: usize) {
        INSIDE.set(true);
        FROM_END.set(number % 2 == 1);
        let mut seen = 0;
        loop {
            let gate = self.look_out(seen);
            seen = gate & !SEATS;
            if self
                .gate
                .compare_exchange(gate, gate - 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                // Another helper came in, or the gate closed: look again, at this work too.
                seen = seen.wrapping_sub(1);
                continue;
            }
            // SAFETY: inside, the work is there, and stays until this helper has left.
            let work = unsafe { (*self.work.0.get()).map(|work| &*work) };
            if let Some(Err(panic)) = work.map(|work| catch_unwind(AssertUnwindSafe(work))) {
                *lock(&self.panic) = Some(panic);
            }
            self.left.fetch_add(1, Ordering::Release);
        }
    }

    /// Waits until the gate is open to a work other than the one `seen`, and returns the gate.
    fn look_out(&self, seen: u64) -> u64 {
        let open = || {
            let gate = self.gate.load(Ordering::SeqCst);
            (gate & SEATS != 0 && gate & !SEATS != seen).then_some(gate)
        };
        let began = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if let Some(gate) = open() {
                    return gate;
                }
                std::hint::spin_loop();
            }
            match began.elapsed() {
                t if t > AWAKE => break,
                t if t > ALERT => thread::yield_now(),
                _ => {}
            }
        }
        let mut bed = lock(&self.bed);
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        let gate = loop {
            match open() {
                Some(gate) => break gate,
                None => bed = self.bell.wait(bed).unwrap_or_else(PoisonError::into_inner),
            }
        };
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
        gate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_taken_once() {
        for threads in [1, 2, 3, 8] {
            for n in [0usize, 1, 2, 7, 100, 1000] {
                let counts: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
                with_num_threads(threads, || {
                    for_each(true, counts.iter(), |c| {
                        c.fetch_add(1, Ordering::Relaxed);
                    });
                });
                assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1), "{threads}, {n}");
            }
        }
    }

    #[test]
    fn helpers_do_come() {
        let callers = Mutex::new(std::collections::HashSet::new());
        // The pool may be at another test's work for a moment.
        for _ in 0..1000 {
            with_num_threads(3, || {
                for_each(true, 0..20, |_| {
                    lock(&callers).insert(thread::current().id());
                    thread::sleep(Duration::from_micros(50));
                });
            });
            if lock(&callers).len() > 1 {
                return;
            }
        }
        panic!("nobody helped");
    }

    #[test]
    fn work_inside_work_and_from_many_threads_is_done() {
        let total = AtomicUsize::new(0);
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..200 {
                        with_num_threads(3, || {
                            for_each(true, 0..10, |_| {
                                for_each(true, 0..3, |_| {
                                    total.fetch_add(1, Ordering::Relaxed);
                                });
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 4 * 200 * 10 * 3);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_leaves_the_pool_usable() {
        for _ in 0..50 {
            let result = catch_unwind(AssertUnwindSafe(|| {
                with_num_threads(3, || for_each(true, 0..100, |i| assert!(i != 50, "fifty")));
            }));
            assert!(result.is_err());
        }
        let sum = AtomicUsize::new(0);
        with_num_threads(3, || {
            for_each(true, 0..100, |i| {
                sum.fetch_add(i, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), 4950);
    }
}
