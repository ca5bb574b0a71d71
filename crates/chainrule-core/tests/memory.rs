//! The memory of dropped tensors that is kept. A program of its own, because a failed allocation
//! asks all threads to give theirs back.

use std::sync::{Mutex, PoisonError};

use chainrule_core::memory::{statistics, trim};
use chainrule_core::rng::CounterRng;
use chainrule_core::tensor::buffer::Buffer;

/// Runs a test on a thread of its own, whose pool is empty, and while no other one runs.
fn alone(test: impl FnOnce() + Send + 'static) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::spawn(test).join().unwrap();
}

#[test]
fn an_allocation_that_fails_empties_the_pool_first() {
    alone(|| {
        let many: Vec<Buffer> = (1..50).map(|n| Buffer::new(n * 1000).unwrap()).collect();
        drop(many);
        assert!(statistics().kept > 1_000_000);
        assert!(Buffer::new(1 << 60).is_none());
        assert_eq!((statistics().kept, statistics().in_use), (0, 0));
    });
}

/// Sizes drift from 4 KiB to 64 MiB, twice, and end small. The pages are never touched, so that the
/// test takes no memory.
#[test]
fn changing_sizes_do_not_add_up() {
    alone(|| {
        let rng = &mut CounterRng::new(5, 0);
        let mut step = |octave: u32| {
            let mut size = || (4096 << octave) + (rng.next_u64() as usize % (4096 << octave));
            drop((0..4).map(|_| Buffer::new(size()).unwrap()).collect::<Vec<_>>());
            let now = statistics();
            assert!(now.kept <= now.limit && now.kept_by_all <= now.limit_of_all, "{now:?}");
            assert_eq!(now.in_use, 0);
        };
        (0..14_000).for_each(|i| step(i / 500 % 14));
        let peak = statistics();
        // Four buffers of at most 80 MiB.
        assert!(peak.most_in_use <= 320 << 20 && peak.limit <= 4 * peak.most_in_use, "{peak:?}");
        (0..40_000).for_each(|_| step(0));
        let end = statistics();
        assert!(end.kept <= 1 << 20, "{end:?}");
        assert!(end.given_back > peak.kept as u64 - (1 << 20), "{end:?}");
    });
}

/// The same sizes again and again are all kept: nothing new is taken.
#[test]
fn a_step_that_repeats_takes_nothing_new() {
    alone(|| {
        let step = || {
            let parts: Vec<Buffer> =
                (0..400).map(|i| Buffer::new(1000 * (i % 37 + 1)).unwrap()).collect();
            let other: Vec<Buffer> =
                (0..100).map(|i| Buffer::new(90_000 + 7000 * i).unwrap()).collect();
            drop((parts, other));
        };
        step();
        let before = statistics();
        (0..500).for_each(|_| step());
        let after = statistics();
        assert_eq!((after.fresh, after.given_back), (before.fresh, before.given_back));
        assert_eq!(after.reused - before.reused, 500 * 500);
    });
}

#[test]
fn other_threads_are_asked_to_trim() {
    alone(|| {
        let (ask, asked) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel::<usize>();
        let thread = std::thread::spawn(move || {
            drop(Buffer::new(1 << 20));
            for () in asked {
                tell.send(statistics().kept).unwrap();
                drop(Buffer::new(64));
            }
            tell.send(statistics().kept).unwrap();
        });
        ask.send(()).unwrap();
        assert!(told.recv().unwrap() >= 1 << 20);
        trim();
        ask.send(()).unwrap();
        drop(ask);
        told.recv().unwrap();
        assert!(told.recv().unwrap() <= 64);
        thread.join().unwrap();
    });
}

#[test]
fn what_a_thread_kept_is_free_for_others_when_it_ends() {
    alone(|| {
        let before = statistics().kept_by_all;
        let thread = std::thread::spawn(|| {
            drop((0..64).map(|_| Buffer::new(1 << 20).unwrap()).collect::<Vec<_>>());
            let now = statistics();
            assert!(now.kept >= 64 << 20 && now.kept_by_all >= now.kept, "{now:?}");
        });
        thread.join().unwrap();
        assert_eq!(statistics().kept_by_all, before);
    });
}

/// Tensors, forward and backward, in shapes that are new each time.
#[test]
fn training_on_changing_shapes_does_not_grow() {
    alone(|| {
        use chainrule_core::{DType, Tensor};
        for n in 1..1_500usize {
            let x = Tensor::full([n, 70], 0.5, DType::F32).parameter();
            (x.tanh() * &x).sum_all().backward();
        }
        let end = statistics();
        assert!(end.kept <= end.limit && end.kept <= 64 << 20, "{end:?}");
        trim();
        assert_eq!(statistics().kept, 0);
    });
}
