//! Data far from zero and badly scaled: the gradient of the program that runs is as accurate as the
//! plain one.

use super::*;

type FarLoss = fn(&[Tensor]) -> Tensor;

fn standardised(x: &Tensor, axis: i64) -> Tensor {
    let diff = x - x.mean(axis, true);
    &diff * (diff.square().mean(axis, true) + 1e-5).pow(-0.5)
}

/// Losses of a matrix and two rows.
const LOSSES: [(&str, FarLoss); 13] = [
    ("radial basis", |x| {
        let rows = x[1].unsqueeze(1);
        ((rows - x[2].unsqueeze(0)) / (x[2].tanh() * 0.1 + 1.0).unsqueeze(0)).square().mean_all()
    }),
    ("distances", |x| (x[1].unsqueeze(1) - x[2].unsqueeze(0)).square().sum_all()),
    ("weighted distances", |x| {
        let d = x[1].unsqueeze(1) - x[1].unsqueeze(0);
        ((d.square() + 1e-2).sqrt() * x[0].slice(&[chainrule_core::Slice::from(..5)]).tanh())
            .sum_all()
    }),
    ("Gaussian", |x| ((&x[0] - &x[1]).square() * 50.0 + x[2].tanh()).mean_all()),
    ("batch norm", |x| (standardised(&x[0], 0) * x[1].tanh()).tanh().sum_all()),
    ("layer norm", |x| (standardised(&x[0], 1) * x[2].tanh()).tanh().sum_all()),
    ("variance", |x| (x[0].var(0, 1, false) * x[1].tanh()).sum_all()),
    ("ratio of variances", |x| {
        1.0 - (&x[1] - &x[2]).square().sum_all() / (&x[2] - x[2].mean_all()).square().sum_all()
    }),
    ("correlation", |x| {
        let (a, b) = (&x[1] - x[1].mean_all(), &x[2] - x[2].mean_all());
        (&a * &b).sum_all() / (a.square().sum_all() * b.square().sum_all()).sqrt()
    }),
    ("unit vectors", |x| {
        let unit = |x: &Tensor| x / (x.square().sum(1, true) + 1e-6).sqrt();
        (unit(&x[0]) * x[1].tanh()).sum_all()
    }),
    ("root mean square", |x| {
        (&x[0] * (x[0].square().mean(1, true) + 1e-6).rsqrt() * x[1].tanh()).sum_all()
    }),
    ("softmax", |x| {
        let e = (&x[0] - x[0].amax(1, true)).exp();
        ((&e / e.sum(1, true)).log() * x[1].tanh()).sum_all()
    }),
    ("divergence of two normals", |x| {
        ((&x[0] - &x[1]).square() + x[2].tanh().exp() - x[2].tanh()).mean_all()
    }),
];

#[test]
fn gradients_far_from_zero_keep_their_digits() {
    let mut failures = Vec::new();
    for (far, scale) in
        [(0.0, 1.0), (100.0, 1.0), (1000.0, 1.0), (-1e4, 1.0), (0.0, 1e-3), (0.0, 1e3)]
    {
        let g = &mut Generator::manual_seed(7);
        let mut data = |shape: &[usize]| {
            (Tensor::randn(shape, DType::F64, g) * scale + far).to_dtype(DType::F32)
        };
        let inputs = [data(&[9, 5]), data(&[5]), data(&[5])];
        for (what, loss) in LOSSES {
            let wide: Vec<Tensor> = inputs.iter().map(|x| x.to_dtype(DType::F64)).collect();
            let truth = gradients(&wide, loss).0;
            let (plain, simple) = gradients(&inputs, loss).1;
            let error = |got: &[Tensor]| -> f64 {
                let pairs = got.iter().zip(&truth).map(|(a, b)| {
                    let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
                    let apart = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    apart / b.iter().map(|b| b.abs()).fold(1e-30, f64::max)
                });
                pairs.fold(0.0, f64::max)
            };
            let (before, after) = (error(&plain), error(&simple));
            println!("{what}, {far} and {scale}: {before:.1e}, simplified {after:.1e}");
            if after > 8.0 * before.max(3e-7) && before < 0.5 {
                failures.push(format!(
                    "{what}, {far} and {scale}: {before:.1e}, simplified {after:.1e}"
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The gradients by the plain program, and then by the plain and the optimised one.
fn gradients(inputs: &[Tensor], loss: FarLoss) -> (Vec<Tensor>, (Vec<Tensor>, Vec<Tensor>)) {
    let names = ["x", "a", "b"];
    let program = Program::trace(names.into_iter().zip(inputs), |x| {
        let own: Vec<Tensor> = x.iter().map(Tensor::parameter).collect();
        loss(&own).try_backward()?;
        Ok(own.iter().map(|x| x.grad().unwrap_or_else(|| x.zeros_like())).collect())
    })
    .unwrap()
    .optimized();
    let mut validated = program.validated(crate::Passes::default());
    let given: Vec<&Tensor> = inputs.iter().collect();
    let (plain, simple) = (program.run(&given).unwrap(), validated.run(&given).unwrap());
    validated.warnings().iter().for_each(|w| println!("{w}"));
    (plain.clone(), (plain, simple))
}

/// Rules that ask whether an operand is zero: an op gives zeros where the operands that count are
/// zero, and only where all of them are.
#[test]
fn zeros_come_of_zeros() {
    use crate::algebra::ops::linear_in;
    use crate::ops::table;
    let mut seen = std::collections::BTreeSet::new();
    for entry in table() {
        for sample in (entry.samples)(&mut Generator::manual_seed(2)) {
            let names: Vec<String> = (0..sample.inputs.len()).map(|i| format!("x{i}")).collect();
            let given = names.iter().map(String::as_str).zip(&sample.inputs);
            let Ok(program) =
                Program::trace(given, |x| crate::tests::with_gradients(&*sample.call, x))
            else {
                continue;
            };
            for instruction in &program.instructions {
                let metas: Vec<_> =
                    instruction.inputs.iter().map(|id| program.info(*id).meta).collect();
                let name = instruction.op.name();
                for group in linear_in(&*instruction.op, metas.len()) {
                    seen.insert(name);
                    let g = &mut Generator::manual_seed(3);
                    let value = |k: usize| match metas[k].dtype {
                        d if d.is_float() && group.contains(&k) => {
                            Tensor::full(metas[k].shape, 0.0, d)
                        }
                        d if d.is_float() => Tensor::randn(metas[k].shape, d, g),
                        d => Tensor::full(metas[k].shape, 0.0, d),
                    };
                    let values: Vec<_> = (0..metas.len()).map(value).map(|t| t.value()).collect();
                    let meta = program.info(instruction.result()).meta;
                    let out = crate::tensor::run::compute_as(&*instruction.op, &values, meta);
                    let Ok(out) = out else { continue };
                    let zeros = crate::algebra::elements(&out.value);
                    assert!(zeros.iter().all(|x| *x == 0.0), "{name} of {}", entry.name);
                }
            }
        }
    }
    assert!(seen.contains("unslice") && seen.contains("matmul") && seen.len() > 15, "{seen:?}");
}
