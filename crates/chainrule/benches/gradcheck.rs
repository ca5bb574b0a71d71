//! Cost of checking a gradient: the names model of 4137 parameters with a batch of 32, at both
//! orders.
//!
//! `cargo bench -p chainrule --bench gradcheck`

use chainrule::{DType, Generator, Tensor, check};
use criterion::{Criterion, criterion_group, criterion_main};

fn gradcheck(c: &mut Criterion) {
    let g = &mut Generator::manual_seed(0);
    let mut draw = |shape: &[usize], scale: f64| Tensor::randn(shape, DType::F64, g) * scale;
    let parameters = [
        draw(&[27, 10], 1.0),
        draw(&[30, 64], 0.3),
        draw(&[64], 0.1),
        draw(&[64], 0.1) + 1.0,
        draw(&[64], 0.1),
        draw(&[64, 27], 0.1),
        draw(&[27], 0.1),
    ];
    assert_eq!(parameters.iter().map(Tensor::numel).sum::<usize>(), 4137);
    let x = Tensor::randint(0, 27, [32, 3], g);
    let y = Tensor::randint(0, 27, [32], g);
    let loss = |p: &[Tensor]| {
        let embedded = p[0].embedding(&x).reshape([32, 30]);
        let hidden = (embedded.matmul(&p[1]) + &p[2]).batch_norm(Some(&p[3]), Some(&p[4]), 1e-5, 1);
        (hidden.tanh().matmul(&p[5]) + &p[6]).cross_entropy(&y)
    };
    for order in [1, 2] {
        c.bench_function(&format!("gradcheck of the names model, order {order}"), |b| {
            b.iter(|| {
                let report = check::gradcheck(loss, &parameters).order(order).run().unwrap();
                assert!(report.passed(), "{report}");
            })
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = gradcheck
}
criterion_main!(benches);
