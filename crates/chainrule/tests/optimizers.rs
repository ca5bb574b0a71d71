//! Twenty updates by each optimizer against PyTorch.

mod common;

use chainrule::Tensor;
use chainrule::optim::{
    Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, AdamWOptions, Lion, LionOptions, Muon,
    MuonOptions, Optimizer, RmsProp, RmsPropOptions, Sgd, SgdOptions,
};
use common::{Reference, distance};

/// The updates of `make`'s optimizer on the reference's noisy quadratic, against the trajectory
/// `name`.
fn follows(name: &str, make: impl Fn(Vec<Tensor>) -> Box<dyn Optimizer>) {
    let reference = Reference::read("optimizers");
    let (a, noise, want) = (reference.get("A"), reference.get("noise"), reference.get(name));
    let w = reference.get("w0").parameter();
    let mut optimizer = make(vec![w.clone()]);
    for i in 0..20 {
        optimizer.zero_grad();
        let noise = noise.narrow(0, i, 1).reshape([3, 4]);
        let loss = (&a * &w * &w).sum_all() * 0.5 + (noise * &w).sum_all() * 0.1;
        loss.backward();
        optimizer.step().unwrap_or_else(|e| panic!("{name}: {e}"));
        let apart = distance(&w, &want.narrow(0, i, 1).reshape([3, 4]));
        assert!(apart <= 1e-6, "{name}, update {i}: {apart:.1e} apart");
    }
}

fn sgd(lr: f64, options: SgdOptions) -> impl Fn(Vec<Tensor>) -> Box<dyn Optimizer> {
    move |parameters| {
        Box::new(Sgd::try_with_options(parameters, lr, options).expect("good options"))
    }
}

#[test]
fn sgd_follows_pytorch() {
    follows("sgd", |parameters| Box::new(Sgd::new(parameters, 0.05)));
}

#[test]
fn sgd_with_momentum_follows_pytorch() {
    let momentum = SgdOptions { momentum: 0.9, ..SgdOptions::default() };
    follows("sgd_momentum", sgd(0.05, momentum));
    follows("sgd_dampening", sgd(0.05, SgdOptions { dampening: 0.5, ..momentum }));
}

#[test]
fn sgd_with_nesterov_and_weight_decay_follows_pytorch() {
    let options = SgdOptions { momentum: 0.9, weight_decay: 0.01, nesterov: true, dampening: 0.0 };
    follows("sgd_nesterov", sgd(0.05, options));
}

#[test]
fn rmsprop_follows_pytorch() {
    let make = |options| {
        move |parameters| -> Box<dyn Optimizer> {
            Box::new(RmsProp::try_with_options(parameters, 0.01, options).expect("good options"))
        }
    };
    let usual = RmsPropOptions::default();
    follows("rmsprop", make(usual));
    follows("rmsprop_momentum", make(RmsPropOptions { momentum: 0.9, alpha: 0.95, ..usual }));
    follows(
        "rmsprop_centered",
        make(RmsPropOptions { centered: true, weight_decay: 0.01, ..usual }),
    );
}

#[test]
fn adagrad_follows_pytorch() {
    follows("adagrad", |parameters| Box::new(Adagrad::new(parameters, 0.05)));
}

#[test]
fn adam_follows_pytorch() {
    let make = |options| {
        move |parameters| -> Box<dyn Optimizer> {
            Box::new(Adam::try_with_options(parameters, 0.01, options).expect("good options"))
        }
    };
    follows("adam", make(AdamOptions::default()));
    follows("adam_l2", make(AdamOptions { weight_decay: 0.1, ..AdamOptions::default() }));
    follows("adam_amsgrad", make(AdamOptions { amsgrad: true, ..AdamOptions::default() }));
}

#[test]
fn adamw_follows_pytorch() {
    let options = AdamWOptions { betas: (0.9, 0.99), weight_decay: 0.1, ..AdamWOptions::default() };
    follows("adamw", move |parameters| {
        Box::new(AdamW::try_with_options(parameters, 0.01, options).expect("good options"))
    });
}

/// Ten updates of a matrix in f64 by an optimizer and by a rule written out, which has a momentum
/// for state.
fn agrees(mut optimizer: impl Optimizer, mut rule: impl FnMut(&mut [f64], &[f64], &mut [f64])) {
    let w = optimizer.parameters()[0].clone();
    let (mut p, mut m) = (w.to_vec::<f64>(), vec![0.0; w.numel()]);
    for step in 0..10 {
        let g: Vec<f64> =
            p.iter().enumerate().map(|(i, x)| x + ((i + step) as f64).sin()).collect();
        w.set_grad(Some(Tensor::from_slice(&g, w.shape()))).unwrap();
        optimizer.step().unwrap();
        rule(&mut p, &g, &mut m);
        for (got, want) in w.to_vec::<f64>().iter().zip(&p) {
            assert!((got - want).abs() <= 1e-12, "update {step}: {got} for {want}");
        }
    }
}

fn matrix(rows: usize, columns: usize) -> Tensor {
    let x: Vec<f64> = (0..rows * columns).map(|i| (i as f64 * 1.7).cos()).collect();
    Tensor::from_slice(&x, [rows, columns]).parameter()
}

/// Six updates of four numbers in f64, with all options in use, against PyTorch 2.15.
fn ends(mut optimizer: impl Optimizer, want: [f64; 4]) {
    let w = optimizer.parameters()[0].clone();
    for step in 0..6 {
        let g = w.to_vec::<f64>().into_iter().enumerate();
        let g: Vec<f64> = g.map(|(i, x)| x + ((i + step) as f64).sin()).collect();
        w.set_grad(Some(Tensor::from_slice(&g, w.shape()))).unwrap();
        optimizer.step().unwrap();
    }
    let apart = distance(&w, &Tensor::from_slice(&want, w.shape()));
    assert!(apart <= 1e-14, "{apart:.1e} apart");
}

#[test]
#[rustfmt::skip]
fn all_options_together_follow_pytorch() {
    let p = || vec![matrix(2, 2)];
    let (betas, eps) = ((0.8, 0.95), 1e-3);
    let options = AdagradOptions { lr_decay: 0.1, weight_decay: 0.05, initial_accumulator_value: 0.3, eps };
    ends(Adagrad::try_with_options(p(), 0.05, options).unwrap(),
        [0.8755085956762395, -0.14115240129527115, -0.8404954285249678, 0.33439647421589125]);
    let options = AdamWOptions { betas, eps, weight_decay: 0.3, amsgrad: true };
    ends(AdamW::try_with_options(p(), 0.02, options).unwrap(),
        [0.8600698711474969, -0.1569675876656269, -0.8270436593161842, 0.3403918297594718]);
    let options = AdamOptions { betas, eps, weight_decay: 0.3, amsgrad: true };
    ends(Adam::try_with_options(p(), 0.02, options).unwrap(),
        [0.8900512747847737, -0.15853123784329268, -0.8534580387504911, 0.33561103544976206]);
    let options = RmsPropOptions { alpha: 0.9, eps, weight_decay: 0.05, momentum: 0.7, centered: true };
    ends(RmsProp::try_with_options(p(), 0.02, options).unwrap(),
        [0.47452119489392375, -0.22854003024729425, -0.28412518588774827, 0.2628445825257568]);
    let options = SgdOptions { momentum: 0.9, dampening: 0.3, weight_decay: 0.05, nesterov: false };
    ends(Sgd::try_with_options(p(), 0.02, options).unwrap(),
        [0.6643518084422343, -0.163344955452803, -0.7160885779165496, 0.32579521909044795]);
}

/// Algorithm 2 of Chen et al. 2023.
#[test]
fn lion_follows_its_paper() {
    let (lr, b1, b2, decay) = (0.03, 0.9, 0.99, 0.2);
    let options = LionOptions { betas: (b1, b2), weight_decay: decay };
    let lion = Lion::try_with_options(vec![matrix(3, 4)], lr, options).unwrap();
    agrees(lion, |p, g, m| {
        for i in 0..p.len() {
            let c: f64 = b1 * m[i] + (1.0 - b1) * g[i];
            let sign = if c == 0.0 { 0.0 } else { c.signum() };
            p[i] -= lr * (sign + decay * p[i]);
            m[i] = b2 * m[i] + (1.0 - b2) * g[i];
        }
    });
}

/// The product of two row-major matrices, `[n, k]` and `[k, m]`.
fn product(a: &[f64], b: &[f64], n: usize, k: usize, m: usize) -> Vec<f64> {
    let at = |i: usize| (0..k).map(|l| a[i / m * k + l] * b[l * m + i % m]).sum();
    (0..n * m).map(at).collect()
}

fn transposed(a: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..rows * columns).map(|i| a[i % rows * columns + i / rows]).collect()
}

/// The iteration as Jordan et al. 2024 publish it, on a matrix no taller than wide.
fn newton_schulz(g: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let (a, b, c) = (3.4445, -4.7750, 2.0315);
    let norm = g.iter().map(|x| x * x).sum::<f64>().sqrt() + 1e-7;
    let mut x: Vec<f64> = g.iter().map(|x| x / norm).collect();
    for _ in 0..5 {
        let s = product(&x, &transposed(&x, rows, columns), rows, columns, rows);
        let ss = product(&s, &s, rows, rows, rows);
        let both: Vec<f64> = s.iter().zip(&ss).map(|(s, ss)| b * s + c * ss).collect();
        let bx = product(&both, &x, rows, rows, columns);
        x = x.iter().zip(&bx).map(|(x, bx)| a * x + bx).collect();
    }
    x
}

#[test]
fn muon_follows_its_description() {
    for (rows, columns) in [(3, 5), (5, 3), (4, 4), (1, 6)] {
        for nesterov in [true, false] {
            let (lr, momentum, decay) = (0.02, 0.95, 0.1);
            let options = MuonOptions { nesterov, weight_decay: decay, ..MuonOptions::default() };
            let muon = Muon::try_with_options(vec![matrix(rows, columns)], lr, options).unwrap();
            agrees(muon, |p, g, buffer| {
                buffer.iter_mut().zip(g).for_each(|(b, g)| *b = momentum * *b + g);
                let ahead = |(b, g): (&f64, &f64)| if nesterov { g + momentum * b } else { *b };
                let d: Vec<f64> = buffer.iter().zip(g).map(ahead).collect();
                let o = match rows > columns {
                    true => {
                        let t = newton_schulz(&transposed(&d, rows, columns), columns, rows);
                        transposed(&t, columns, rows)
                    }
                    false => newton_schulz(&d, rows, columns),
                };
                let scale = (rows as f64 / columns as f64).max(1.0).sqrt();
                for (p, o) in p.iter_mut().zip(o) {
                    *p = *p * (1.0 - lr * decay) - lr * scale * o;
                }
            });
        }
    }
}

#[test]
fn muon_is_for_matrices() {
    for shape in [&[3][..], &[2, 2, 2]] {
        let parameter = Tensor::zeros(shape).parameter();
        let text = Muon::try_new(vec![parameter], 0.02).unwrap_err();
        assert!(text.to_string().contains("AdamW"), "{text}");
    }
    // No direction and no size: nothing moves, and nothing fails.
    for shape in [[2, 3], [0, 3], [3, 0]] {
        let w = Tensor::zeros(shape).parameter();
        w.set_grad(Some(Tensor::zeros(shape))).unwrap();
        Muon::new(vec![w.clone()], 0.02).step().unwrap();
        assert!(w.to_vec::<f32>().iter().all(|&x| x == 0.0));
    }
}
