//! A compiled step takes no memory from the allocator after its first runs.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use chainrule::nn::{Layer, Module};
use chainrule::optim::{AdamW, Optimizer, Sgd};
use chainrule::program::compile;
use chainrule::{DType, Generator, Tensor};
use chainrule_lab::models::{DigitsMlp, NamesMlp, NamesMlpConfig};

/// The system's allocator, counting the calls of this thread.
struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged; only a counter is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(ptr, layout, size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of each of five steps, after three others.
fn calls(
    model: &dyn Module,
    optimizer: &mut dyn Optimizer,
    batch: [Tensor; 2],
    loss: impl FnMut(&[Tensor]) -> chainrule::Result<Tensor>,
) -> Vec<usize> {
    let mut step = compile(model, optimizer, ["x", "y"], loss);
    let mut run = || step.run(&[&batch[0], &batch[1]]).unwrap();
    (0..3).for_each(|_| drop(run()));
    let mut out = Vec::with_capacity(5);
    for _ in 0..5 {
        CALLS.set(0);
        run();
        out.push(CALLS.get());
    }
    out
}

#[test]
fn a_compiled_step_allocates_nothing() {
    let g = &mut Generator::manual_seed(1);
    let names = NamesMlp::new(NamesMlpConfig::default(), g);
    let batch = [Tensor::randint(0, 27, [32, 3], g), Tensor::randint(0, 27, [32], g)];
    let mut sgd = Sgd::new(names.parameters(), 0.1);
    let found =
        calls(&names, &mut sgd, batch, |b| names.try_forward(&b[0])?.try_cross_entropy(&b[1]));
    assert_eq!(found, [0; 5], "names");

    // Columns that are too many or too long for totals on the stack; by ops of the table, as the
    // lecture writes them.
    let config = NamesMlpConfig { hidden: 300, ..NamesMlpConfig::default() };
    let wide = NamesMlp::new(config, g).with_primitive_batch_norm();
    let batch = [Tensor::randint(0, 27, [200, 3], g), Tensor::randint(0, 27, [200], g)];
    let mut sgd = Sgd::new(wide.parameters(), 0.1);
    let found = calls(&wide, &mut sgd, batch, |b| {
        let spread = wide.embedding.try_var(0, 1, false)?.try_sum_all()?;
        wide.try_forward(&b[0])?.try_cross_entropy(&b[1])?.try_add(&spread)
    });
    assert_eq!(found, [0; 5], "names, wide");

    let digits = DigitsMlp::try_new(&[32, 16], g).unwrap();
    let batch = [Tensor::rand([8, 784], DType::F32, g), Tensor::randint(0, 10, [8], g)];
    let mut adamw = AdamW::new(digits.parameters(), 0.1);
    let found =
        calls(&digits, &mut adamw, batch, |b| digits.try_forward(&b[0])?.try_cross_entropy(&b[1]));
    assert_eq!(found, [0; 5], "digits");
}
