//! Attention holds no matrix of scores: its memory grows with the length, not with the square of
//! it.

#[path = "../benches/shared/counting.rs"]
mod counting;

use std::sync::atomic::Ordering;

use chainrule::{Attention, DType, Generator, Tensor};
use counting::{Counting, LIVE, PEAK};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes in use during a forward and a backward pass, beyond those before them.
fn peak(tokens: usize) -> usize {
    let x = Tensor::randn([2, tokens, 16], DType::F32, &mut Generator::manual_seed(0)).parameter();
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    x.attention(&x, &x, &Attention::causal()).sum_all().backward();
    PEAK.load(Ordering::Relaxed) - before
}

#[test]
fn peak_bytes_grow_linearly() {
    // The first pass starts the threads.
    peak(64);
    let (short, long) = (peak(1024), peak(2048));
    let scores = 2048 * 2048 * size_of::<f32>();
    assert!(long < scores / 4, "{long} bytes; a matrix of scores has {scores}");
    assert!(long < 3 * short, "{short} bytes for 1,024 tokens, {long} for 2,048");
}
