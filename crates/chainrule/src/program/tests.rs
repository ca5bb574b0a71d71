//! Programs against the eager mode.

use super::*;
use crate::{DType, Generator, Tensor};

/// The names model in small steps, as its textbook has it.
pub(super) fn chunked(p: &[Tensor], x: &Tensor, y: &Tensor, n: usize) -> Tensor {
    let emb = p[0].embedding(x);
    let embcat = emb.reshape([n as i64, -1]);
    let hprebn = embcat.matmul(&p[1]) + &p[2];
    let n = n as f64;
    let bnmeani: Tensor = 1.0 / n * hprebn.sum(0, true);
    let bndiff = &hprebn - &bnmeani;
    let bndiff2 = bndiff.pow(2.0);
    let bnvar: Tensor = 1.0 / (n - 1.0) * bndiff2.sum(0, true);
    let bnvar_inv = (&bnvar + 1e-5).pow(-0.5);
    let bnraw = &bndiff * &bnvar_inv;
    let hpreact = &p[5] * &bnraw + &p[6];
    let h = hpreact.tanh();
    let logits = h.matmul(&p[3]) + &p[4];
    let logit_maxes = logits.max_axis(1, true).0;
    let norm_logits = &logits - &logit_maxes;
    let counts = norm_logits.exp();
    let counts_sum = counts.sum(1, true);
    let counts_sum_inv = counts_sum.pow(-1.0);
    let probs = &counts * &counts_sum_inv;
    let logprobs = probs.log();
    let loss = -(logprobs.gather(1, &y.reshape([-1, 1])).sum_all() / n);
    loss.named("loss")
}

/// Parameters of a small names model, and a batch.
pub(super) fn small(dtype: DType) -> (Vec<Tensor>, Tensor, Tensor) {
    let mut g = Generator::manual_seed(5);
    let shapes: [(&str, &[usize]); 7] = [
        ("C", &[7, 2]),
        ("W1", &[6, 5]),
        ("b1", &[5]),
        ("W2", &[5, 7]),
        ("b2", &[7]),
        ("bngain", &[1, 5]),
        ("bnbias", &[1, 5]),
    ];
    let parameters = shapes
        .iter()
        .map(|(name, shape)| Tensor::randn(*shape, dtype, &mut g).parameter().named(name))
        .collect();
    let x = Tensor::randint(0, 7, [4, 3], &mut g);
    let y = Tensor::randint(0, 7, [4], &mut g);
    (parameters, x, y)
}

pub(super) fn chunked_program(dtype: DType) -> (Program, Vec<Tensor>, Tensor, Tensor) {
    let (p, x, y) = small(dtype);
    let program = Program::trace([("x", &x), ("y", &y)], |args| {
        let loss = chunked(&p, &args[0], &args[1], 4);
        loss.backward();
        Ok([loss].into_iter().chain(p.iter().map(|p| p.grad().unwrap())).collect())
    });
    (program.unwrap(), p, x, y)
}

#[test]
fn the_chunked_model_is_bit_for_bit_that_of_the_eager_mode() {
    for dtype in [DType::F32, DType::F64] {
        let (program, p, x, y) = chunked_program(dtype);
        assert!(p.iter().all(|p| p.grad().is_none()), "a trace leaves no gradients");
        let optimized = program.optimized();
        println!("{program}\n{optimized}");
        for program in [&program, &optimized] {
            for seed in 0..2 {
                let mut g = Generator::manual_seed(seed);
                p.iter().for_each(|p| {
                    p.set(&Tensor::randn(p.shape(), dtype, &mut g));
                    p.zero_grad();
                });
                let out = program.run(&[&x, &y]).unwrap();
                let loss = chunked(&p, &x, &y, 4);
                loss.backward();
                assert_eq!(out[0].to_f64_vec(), loss.to_f64_vec());
                for (got, p) in out[1..].iter().zip(&p) {
                    assert_eq!(got.to_f64_vec(), p.grad().unwrap().to_f64_vec(), "{:?}", p.name());
                    p.zero_grad();
                }
            }
        }
        let asked = optimized.run_with(&[&x, &y], &["hpreact", "d_logits"]).unwrap();
        assert_eq!(asked.last().unwrap().shape(), [4, 7]);
    }
}
