//! Products on bf16: each is compared with the f64 product of operands that are rounded to bf16.

use std::process::{Command, Stdio};

use chainrule::autograd::checkpoint;
use chainrule::optim::{Optimizer, Sgd};
use chainrule::program::Program;
use chainrule::{
    Attention, Conv, ConvTranspose, DType, Generator, Tensor, autocast, autocast_dtype,
    try_autocast,
};

fn draw(shape: &[usize], seed: u64) -> Tensor {
    Tensor::randn(shape, DType::F32, &mut Generator::manual_seed(seed))
}

/// The nearest numbers of bf16, in f64.
fn rounded(t: &Tensor) -> Tensor {
    t.detach().to_dtype(DType::BF16).to_dtype(DType::F64)
}

/// `a @ b` of rounded operands: `got` may be off by the rounding of sums in f32.
#[track_caller]
fn assert_product(got: &Tensor, a: &Tensor, b: &Tensor) {
    let (a, b) = (rounded(a), rounded(b));
    let inner = a.shape()[a.rank() - 1];
    let (sum, size) = (a.matmul(&b).to_f64_vec(), a.abs().matmul(&b.abs()).to_f64_vec());
    assert_eq!((got.dtype(), got.to_f64_vec().len()), (DType::F32, sum.len()));
    for ((got, sum), size) in got.to_f64_vec().into_iter().zip(sum).zip(size) {
        let bound = (inner + 2) as f64 * f64::from(f32::EPSILON) * size;
        assert!((got - sum).abs() <= bound, "{got} for {sum}, within {bound:e}");
    }
}

#[test]
fn products_and_their_gradients_round_their_operands() {
    let shapes: [(&[usize], &[usize]); 5] = [
        (&[5, 7], &[7, 3]),
        (&[33, 65], &[65, 130]),
        (&[1, 9], &[9, 4]),
        (&[2, 3, 17, 8], &[2, 1, 8, 20]),
        (&[0, 3], &[3, 2]),
    ];
    for (i, (left, right)) in shapes.into_iter().enumerate() {
        let seed = 10 * i as u64;
        let a = draw(left, seed).parameter();
        let b = draw(right, seed + 1).parameter();
        let y = autocast(DType::BF16, || a.matmul(&b));
        assert_product(&y, &a, &b);
        if left.len() > 2 {
            continue;
        }
        // The backward pass runs outside of the scope.
        let g = draw(&y.shape(), seed + 2);
        y.mul(&g).sum_all().backward();
        assert_product(&a.grad().unwrap(), &g, &b.t());
        assert_product(&b.grad().unwrap(), &a.t(), &g);
    }
}

#[test]
fn linear_rounds_but_for_its_bias() {
    let x = draw(&[3, 11, 37], 1).parameter();
    let (w, bias) = (draw(&[21, 37], 2).parameter(), draw(&[21], 3).parameter());
    let y = autocast(DType::BF16, || x.linear(&w, Some(&bias)));
    let rows = x.reshape([33, 37]);
    let whole = rounded(&rows).matmul(&rounded(&w).t()).add(bias.detach().to_dtype(DType::F64));
    let off = y.reshape([33, 21]).to_dtype(DType::F64).sub(&whole).abs().max_all().item();
    assert!(off < 1e-5, "{off:e}");
    let g = draw(&[3, 11, 21], 4);
    y.mul(&g).sum_all().backward();
    let flat = g.reshape([33, 21]);
    assert_product(&x.grad().unwrap().reshape([33, 37]), &flat, &w);
    assert_product(&w.grad().unwrap(), &flat.t(), &rows);
    // The sum of the gradient is no product.
    let sums = flat.to_dtype(DType::F64).sum(0, false).to_f64_vec();
    for (got, sum) in bias.grad().unwrap().to_f64_vec().into_iter().zip(sums) {
        assert!((got - sum).abs() < 1e-5, "{got} for {sum}");
    }
}

/// Convolutions, their transposes, and all gradients of both: each is a convolution in f64 of
/// rounded operands.
#[test]
fn convolutions_and_their_gradients_round_their_operands() {
    let options = Conv { stride: [2, 1], padding: [1, 2].into(), groups: 2, ..Conv::default() };
    let back = ConvTranspose { stride: [2, 1], padding: [1, 2], groups: 2, ..Default::default() };
    let (x, w) = (draw(&[3, 6, 9, 8], 1).parameter(), draw(&[10, 3, 3, 4], 2).parameter());
    let bias = draw(&[10], 3).parameter();
    let y = autocast(DType::BF16, || x.conv2d_with(&w, Some(&bias), &options));
    let doubles = |t: &Tensor| rounded(t).parameter();
    let (x64, w64) = (doubles(&x), doubles(&w));
    let whole = x64.conv2d_with(&w64, Some(&bias.detach().to_dtype(DType::F64)), &options);
    assert_near(&y, &whole);
    let g = draw(&y.shape(), 4);
    y.mul(&g).sum_all().backward();
    whole.mul(rounded(&g)).sum_all().backward();
    assert_near(&x.grad().unwrap(), &x64.grad().unwrap());
    assert_near(&w.grad().unwrap(), &w64.grad().unwrap());
    let sums = g.to_dtype(DType::F64).sum([0, 2, 3], false);
    assert_near(&bias.grad().unwrap(), &sums);

    let (z, z64) = (g.parameter(), doubles(&g));
    [&w, &w64].into_iter().for_each(Tensor::zero_grad);
    let y = autocast(DType::BF16, || z.conv_transpose2d_with(&w, None, &back));
    let whole = z64.conv_transpose2d_with(&w64, None, &back);
    assert_near(&y, &whole);
    let g = draw(&y.shape(), 5);
    y.mul(&g).sum_all().backward();
    whole.mul(rounded(&g)).sum_all().backward();
    assert_near(&z.grad().unwrap(), &z64.grad().unwrap());
    assert_near(&w.grad().unwrap(), &w64.grad().unwrap());
}

/// Attention and its gradients beside those of rounded operands in f64, where only the weights and
/// their gradients are not rounded: that leaves a few roundings of bf16.
#[test]
fn attention_rounds_the_operands_of_its_products() {
    for (causal, t, s, d) in [(true, 150, 150, 17), (false, 30, 137, 32), (false, 1, 7, 5)] {
        let (q, k) = (draw(&[2, t, d], 1).parameter(), draw(&[2, s, d], 2).parameter());
        let (v, g) = (draw(&[2, s, 9], 3).parameter(), draw(&[2, t, 9], 4));
        let options = Attention { causal, ..Attention::default() };
        let run = |[q, k, v]: [&Tensor; 3], g: &Tensor| {
            [q, k, v].into_iter().for_each(Tensor::zero_grad);
            let y = q.attention(k, v, &options);
            y.mul(g).sum_all().backward();
            [y.detach(), q.grad().unwrap(), k.grad().unwrap(), v.grad().unwrap()]
        };
        let got = autocast(DType::BF16, || run([&q, &k, &v], &g));
        let f32s = run([&q, &k, &v], &g);
        let doubles = [&q, &k, &v].map(|t| rounded(t).parameter());
        let want = run([&doubles[0], &doubles[1], &doubles[2]], &rounded(&g));
        for ((got, f32s), want) in got.iter().zip(&f32s).zip(&want) {
            assert_eq!((got.dtype(), got.shape()), (DType::F32, want.shape()));
            assert_ne!(got.to_vec::<f32>(), f32s.to_vec::<f32>());
            let norm = |t: &Tensor| t.square().sum_all().sqrt().item();
            let off = norm(&got.to_dtype(DType::F64).sub(want)) / norm(want);
            assert!(off < 4e-3, "{off:e}, {causal}, {t}");
        }
    }
}

/// Equal but for the rounding of sums in f32, of some hundred numbers of order one.
#[track_caller]
fn assert_near(got: &Tensor, whole: &Tensor) {
    assert_eq!((got.dtype(), got.shape()), (DType::F32, whole.shape()));
    let off = got.to_dtype(DType::F64).sub(whole).abs().max_all().item();
    let size = whole.abs().max_all().item();
    assert!(off <= 2e-6 * size, "{off:e} of {size:e}");
}

#[test]
fn scopes_nest_and_end_and_leave_other_dtypes_alone() {
    let (a, b) = (draw(&[4, 6], 1), draw(&[6, 5], 2));
    let whole = a.matmul(&b).to_vec::<f32>();
    let (inner, outer) = autocast(DType::BF16, || {
        assert_eq!(autocast_dtype(), Some(DType::BF16));
        let inner = autocast(DType::F32, || a.matmul(&b));
        (inner, a.matmul(&b))
    });
    assert_eq!(autocast_dtype(), None);
    assert_eq!(inner.to_vec::<f32>(), whole);
    assert_ne!(outer.to_vec::<f32>(), whole);
    assert_eq!(a.matmul(&b).to_vec::<f32>(), whole);
    let doubles = [&a, &b].map(|t| t.to_dtype(DType::F64));
    let y = autocast(DType::BF16, || doubles[0].matmul(&doubles[1]));
    assert_eq!(y.to_vec::<f64>(), doubles[0].matmul(&doubles[1]).to_vec::<f64>());
    let error = try_autocast(DType::F16, || ()).unwrap_err().to_string();
    assert!(error.contains("bf16 or f32"), "{error}");
}

/// A function that runs again in the backward pass does so with the products that it had.
#[test]
fn a_checkpoint_remembers_its_products() {
    let gradient = |checkpointed: bool| {
        let (x, w) = (draw(&[6, 9], 1).parameter(), draw(&[9, 9], 2).parameter());
        let twice = |x: &Tensor, w: &Tensor| x.try_matmul(w)?.try_tanh()?.try_matmul(w);
        let y = autocast(DType::BF16, || match checkpointed {
            true => {
                let held = w.clone();
                checkpoint(move |x| twice(&x[0], &held), &[&x])
            }
            false => twice(&x, &w),
        });
        y.unwrap().square().sum_all().backward();
        [x.grad().unwrap().to_vec::<f32>(), w.grad().unwrap().to_vec::<f32>()]
    };
    assert_eq!(gradient(true), gradient(false));
}

/// A step of two layers in the given precision: loss, and the weights after it.
fn step(dtype: DType, compiled: bool) -> Vec<Vec<f64>> {
    let w1 = draw(&[40, 24], 1).parameter().named("w1");
    let w2 = draw(&[10, 40], 2).parameter().named("w2");
    let bias = draw(&[40], 3).parameter().named("bias");
    let (x, y) = (draw(&[32, 24], 4), Tensor::arange(0, 32).remainder(10));
    let mut sgd = Sgd::new(vec![w1.clone(), w2.clone(), bias.clone()], 0.1);
    let mut run = |x: &Tensor, y: &Tensor| {
        let loss = try_autocast(dtype, || {
            x.try_linear(&w1, Some(&bias))?.try_tanh()?.try_linear(&w2, None)?.try_cross_entropy(y)
        })??;
        loss.try_backward()?;
        sgd.step()?;
        Ok(vec![loss])
    };
    let loss = match compiled {
        false => run(&x, &y).unwrap(),
        true => {
            let program = Program::trace([("x", &x), ("y", &y)], |args| run(&args[0], &args[1]));
            let program = program.unwrap().simplified().unwrap().program.optimized();
            assert_eq!(program.to_python().unwrap().contains("_bf16("), dtype == DType::BF16);
            program.run(&[&x, &y]).unwrap()
        }
    };
    [&loss[0], &w1, &w2, &bias].map(|t| t.to_f64_vec()).to_vec()
}

#[test]
fn compiled_steps_have_the_products_of_the_eager_ones() {
    let off = |a: &[Vec<f64>], b: &[Vec<f64>]| {
        let pairs = a.iter().flatten().zip(b.iter().flatten());
        pairs.map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
    };
    let [eager, compiled] = [false, true].map(|compiled| step(DType::BF16, compiled));
    // A sum in another order may round an operand of the next product the other way.
    assert!(off(&eager, &compiled) < 2e-4, "{}", off(&eager, &compiled));
    let whole = step(DType::F32, true);
    assert!(off(&whole, &compiled) > 2e-4 && off(&whole, &compiled) < 0.05);
}

/// PyTorch's autocast rounds results to bf16, too, which makes the tolerance.
#[test]
fn values_are_those_of_autocast_in_pytorch() {
    let python = std::env::var("CHAINRULE_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let there = Command::new(&python).args(["-c", "import torch"]).stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        println!("{python} with PyTorch is not there: autocast is not compared with it");
        return;
    }
    let (x, w) = (draw(&[12, 40], 1).parameter(), draw(&[9, 40], 2).parameter());
    let script = format!(
        "import torch
x, w = (torch.tensor(t, requires_grad=True) for t in ({:?}, {:?}))
a, b = x.reshape(12, 40), w.reshape(9, 40)
with torch.autocast('cpu', dtype=torch.bfloat16):
    y = torch.nn.functional.linear(a, b)
y.float().square().sum().backward()
print(*y.flatten().tolist(), *x.grad.tolist(), *w.grad.tolist())",
        x.to_vec::<f32>(),
        w.to_vec::<f32>()
    );
    let output = Command::new(python).args(["-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let theirs: Vec<f64> = said.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let y = autocast(DType::BF16, || x.linear(&w, None));
    y.square().sum_all().backward();
    let ours = [&y, &x.grad().unwrap(), &w.grad().unwrap()].map(|t| t.to_f64_vec());
    assert_eq!(theirs.len(), ours.iter().map(Vec::len).sum::<usize>());
    let mut theirs = theirs.into_iter();
    for (ours, roundings) in ours.into_iter().zip([1.0, 3.0, 3.0]) {
        let theirs: Vec<f64> = theirs.by_ref().take(ours.len()).collect();
        let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
        let off = norm(&mut ours.iter().zip(&theirs).map(|(x, y)| x - y));
        let size = norm(&mut theirs.iter().copied());
        assert!(off <= roundings * size / 256.0, "{off:e} of {size:e}");
    }
}
