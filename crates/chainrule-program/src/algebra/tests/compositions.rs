//! Compositions that no rule was made for, over random shapes and in f32.

use super::*;

fn unit(x: &Tensor) -> Tensor {
    x / (x.square().sum(1, true) + 1e-6).sqrt()
}

fn softmax(x: &Tensor) -> Tensor {
    let e = (x - x.amax(1, true)).exp();
    &e / e.sum(1, true)
}

fn layer_norm(x: &Tensor) -> Tensor {
    let diff = x - x.mean(1, true);
    &diff / (diff.square().mean(1, true) + 1e-5).sqrt()
}

type BinaryLoss = fn(&Tensor, &Tensor) -> Tensor;

const COMPOSITIONS: [(&str, BinaryLoss); 12] = [
    ("layer norm, softmax, cross-entropy", |x, t| -(softmax(&layer_norm(x)).log() * t).sum_all()),
    ("tanh, softmax, entropy", |x, t| {
        let p = softmax(&(x.tanh() * t));
        -(&p * p.log()).sum_all()
    }),
    ("unit vectors, scaled softmax", |x, t| -(softmax(&(unit(x) * 10.0)).log() * t).mean_all()),
    ("softmax of softmax", |x, t| (softmax(&softmax(x)) * t).sum_all()),
    ("focal", |x, t| {
        let p = x.sigmoid();
        -((1.0 - &p).square() * p.log() * t).sum_all()
    }),
    ("norm of a norm", |x, t| (layer_norm(&unit(x)) * t).sum_all()),
    ("divergence of two", |x, t| {
        let (p, q) = (softmax(x), softmax(t));
        (&p * (p.log() - q.log())).sum_all()
    }),
    ("swish by hand", |x, t| (x / (1.0 + (-x).exp()) * t).sum_all()),
    ("tanh by exponentials", |x, t| {
        let (a, b) = (x.exp(), (-x).exp());
        (((&a - &b) / (&a + &b)) * t).sum_all()
    }),
    ("softplus and variance", |x, t| ((x.exp() + 1.0).log() * t).var(0, 1, false).sum_all()),
    ("logsumexp less the picked", |x, t| {
        let z = x * 0.5;
        (z.logsumexp(1, true) - (&z * softmax(t)).sum(1, true)).mean_all()
    }),
    ("log-softmax, smoothed", |x, t| {
        let soft = t.square() / t.square().sum(1, true) * 0.9 + 0.01;
        -(x.log_softmax(1) * soft).sum_all()
    }),
];

#[test]
fn compositions_are_right_and_no_longer() {
    for seed in 0..3u64 {
        let g = &mut Generator::manual_seed(50 + seed);
        let (n, m) = (2 + seed as usize * 3, 5 + seed as usize * 2);
        let (x, t) = (normal(&[n, m], g), normal(&[n, m], g));
        for (what, loss) in COMPOSITIONS {
            let t = t.clone();
            let how = Simplify::new().checked(seed);
            let case = Case::with(&["x"], std::slice::from_ref(&x), |x| loss(&x[0], &t), &how);
            let count = |p: &Program| {
                p.lines()
                    .filter(|l| l.shape().numel() >= n * m)
                    .filter(|l| l.phase() == crate::Phase::Backward)
                    .count()
            };
            println!("{what}: {} to {}", count(&case.raw), count(&case.simple.program));
            assert!(count(&case.simple.program) <= count(&case.raw), "{what}");
        }
    }
}

#[test]
fn in_f32_the_error_is_no_larger() {
    let g = &mut Generator::manual_seed(60);
    let (x, t) = (normal(&[16, 12], g), normal(&[16, 12], g));
    for (what, loss) in COMPOSITIONS {
        let want = {
            let x = x.to_dtype(DType::F32).to_dtype(DType::F64).parameter();
            let t = t.to_dtype(DType::F32).to_dtype(DType::F64);
            loss(&x, &t).backward();
            x.grad().unwrap().to_f64_vec()
        };
        let (x, t) = (x.to_dtype(DType::F32), t.to_dtype(DType::F32));
        let case = Case::new(&["x"], &[x], |x| loss(&x[0], &t));
        let error = |p: &Program| {
            let got = p.run(&[]).unwrap()[1].to_f64_vec();
            let apart: f64 = got.iter().zip(&want).map(|(a, b)| (a - b) * (a - b)).sum();
            (apart / want.iter().map(|b| b * b).sum::<f64>()).sqrt()
        };
        let (raw, simple) = (error(&case.raw), error(&case.simple.program));
        println!("{what}: {raw:e} and {simple:e}");
        assert!(simple <= 2.0 * raw.max(6e-8), "{what}: {simple:e} for {raw:e}");
    }
}
