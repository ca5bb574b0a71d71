//! Memory stays flat over ten thousand training steps: no graph, value or gradient outlives its
//! step.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use chainrule::nn::Module;
use chainrule::optim::{Optimizer, Sgd};
use chainrule::{Generator, Tensor};
use chainrule_lab::models::{NamesMlp, NamesMlpConfig};

/// The system's allocator, counting the bytes that are in use.
struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; only a counter is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn live_bytes_are_flat_over_ten_thousand_steps() {
    let generator = &mut Generator::manual_seed(1);
    let config = NamesMlpConfig { hidden: 16, embedding: 4, ..NamesMlpConfig::default() };
    let model = NamesMlp::new(config, generator);
    let mut sgd = Sgd::new(model.parameters(), 0.1);
    let mut step = |generator: &mut Generator| {
        let contexts = Tensor::randint(0, 27, [8, 3], generator);
        let targets = Tensor::randint(0, 27, 8, generator);
        let loss = model.forward(&contexts).cross_entropy(&targets);
        sgd.zero_grad();
        loss.backward();
        sgd.step().unwrap();
        loss.item()
    };
    // The first steps fill the pool of buffers.
    for _ in 0..100 {
        step(generator);
    }
    let before = LIVE.load(Ordering::Relaxed);
    let mut last = 0.0;
    for _ in 0..10_000 {
        last = step(generator);
    }
    let grown = LIVE.load(Ordering::Relaxed) - before;
    assert!(last.is_finite());
    // One kept value of one step would be megabytes over ten thousand; the test runner itself moves
    // a few bytes.
    assert!(grown.abs() < 4096, "{grown} bytes more are in use after 10,000 steps");
}
