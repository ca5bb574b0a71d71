//! Cost of a convolution: 64 images of 28 by 28 with 32 channels, a 3 by 3 kernel, forward alone
//! and with both gradients.
//!
//! `cargo bench -p chainrule --bench conv`

use std::time::Duration;

use chainrule::{Conv, DType, Generator, Tensor, no_grad};
use criterion::{Criterion, criterion_group, criterion_main};

fn convolution(c: &mut Criterion) {
    let mut g = Generator::manual_seed(1);
    let x = Tensor::randn([64, 32, 28, 28], DType::F32, &mut g).parameter();
    let weight = Tensor::randn([32, 32, 3, 3], DType::F32, &mut g).parameter();
    let bias = Tensor::randn([32], DType::F32, &mut g).parameter();
    let options = Conv { padding: [1, 1].into(), ..Conv::default() };
    let upstream = Tensor::randn([64, 32, 28, 28], DType::F32, &mut g);
    let mut group = c.benchmark_group("conv2d");
    group.sample_size(30).measurement_time(Duration::from_secs(3));
    group.bench_function("forward", |b| {
        no_grad(|| b.iter(|| x.conv2d_with(&weight, Some(&bias), &options)))
    });
    group.bench_function("forward and backward", |b| {
        b.iter(|| {
            [&x, &weight, &bias].into_iter().for_each(Tensor::zero_grad);
            let y = x.conv2d_with(&weight, Some(&bias), &options);
            y.backward_with().gradient(&upstream).run().expect("a graph of one op");
        })
    });
    group.bench_function("max_pool2d, forward and backward", |b| {
        let upstream = upstream.narrow(2, 0, 14).narrow(3, 0, 14);
        b.iter(|| {
            x.zero_grad();
            let y = x.max_pool2d([2, 2]);
            y.backward_with().gradient(&upstream).run().expect("a graph of one op");
        })
    });
}

criterion_group!(benches, convolution);
criterion_main!(benches);
