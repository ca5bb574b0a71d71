//! Cost of the tape: one small op, forward and backward, and a chain of a million.
//!
//! `cargo bench -p chainrule --bench tape`

use std::time::Duration;

use chainrule::{Tensor, no_grad};
use criterion::{Criterion, criterion_group, criterion_main};

fn one_op(c: &mut Criterion) {
    let x = Tensor::from([1.5f32]).parameter();
    let y = Tensor::from([0.5f32]).parameter();
    c.bench_function("add of one element, recorded", |b| b.iter(|| &x + &y));
    c.bench_function("multiply of one element, recorded", |b| b.iter(|| &x * &y));
    c.bench_function("multiply of one element, unrecorded", |b| no_grad(|| b.iter(|| &x * &y)));
    c.bench_function("multiply of two elements and a scalar, recorded", |b| b.iter(|| &x * 2.0));
    c.bench_function("multiply and backward", |b| {
        b.iter(|| {
            x.zero_grad();
            y.zero_grad();
            (&x * &y).backward();
        })
    });
}

fn long_chain(c: &mut Criterion) {
    let mut group = c.benchmark_group("a chain of a million ops");
    group.sample_size(10).measurement_time(Duration::from_secs(10));
    group.bench_function("forward, backward and drop", |b| {
        let x = Tensor::from([1.0f32]).parameter();
        b.iter(|| {
            let mut y = x.clone();
            for _ in 0..1_000_000 {
                y = -&y;
            }
            y.backward();
        })
    });
}

criterion_group!(benches, one_op, long_chain);
criterion_main!(benches);
