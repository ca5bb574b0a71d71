//! Formulas that are as short as a person would write them, and as accurate as the eager mode: the
//! instructions of the backward pass are counted, views and one-hot rows among them.

use super::*;

/// A formula with the number of instructions that its backward pass may have.
struct Formula {
    what: &'static str,
    most: usize,
    /// Distance of its matrices from zero at most: scores of attention and logits saturate softmax
    /// there, and then the eager mode has no digits either.
    far: f64,
    inputs: &'static [&'static [usize]],
    loss: fn(&[Tensor]) -> Tensor,
}

fn unit(x: &Tensor) -> Tensor {
    x / x.square().sum(1, true).sqrt()
}

fn log_softmax(x: &Tensor) -> Tensor {
    let shifted = x - x.amax(1, true);
    &shifted - shifted.exp().sum(1, true).log()
}

fn softmax(x: &Tensor) -> Tensor {
    let e = (x - x.amax(1, true)).exp();
    &e / e.sum(1, true)
}

/// Minus the mean of the element of each row that belongs to its class: `p[range(n), y]`, of fixed
/// classes.
fn cross_entropy(logs: &Tensor) -> Tensor {
    let n = logs.shape()[0] as i64;
    let classes = (Tensor::arange(0, n) * 5).remainder(logs.shape()[1] as i64);
    -logs.index(&[(&Tensor::arange(0, n)).into(), (&classes).into()]).mean_all()
}

const ROWS: &[usize] = &[8, 5];
const ROW: &[usize] = &[5];

const FORMULAS: [Formula; 17] = [
    Formula {
        what: "unit vectors and their dot products",
        most: 9,
        far: 30.0,
        inputs: &[ROWS, ROWS],
        loss: |x| (unit(&x[0]) * unit(&x[1])).sum(1, false).mean_all(),
    },
    Formula {
        what: "layer norm",
        most: 11,
        far: 30.0,
        inputs: &[ROWS, ROW, ROW],
        loss: |x| {
            let d = &x[0] - x[0].mean(1, true);
            let y = &d / (d.square().mean(1, true) + 1e-5).sqrt() * &x[1] + &x[2];
            (y * upstream(ROWS)).sum_all()
        },
    },
    Formula {
        what: "layer norm by a power",
        most: 11,
        far: 30.0,
        inputs: &[ROWS, ROW, ROW],
        loss: |x| {
            let d = &x[0] - x[0].mean(1, true);
            let y = &d * ((&d * &d).mean(1, true) + 1e-5).pow(-0.5) * &x[1] + &x[2];
            (y * upstream(ROWS)).sum_all()
        },
    },
    Formula {
        what: "layer norm without gain and bias",
        most: 6,
        far: 30.0,
        inputs: &[ROWS],
        loss: |x| {
            let d = &x[0] - x[0].mean(1, true);
            (&d / (d.square().mean(1, true) + 1e-5).sqrt() * upstream(ROWS)).sum_all()
        },
    },
    Formula {
        what: "RMS norm",
        most: 7,
        far: 30.0,
        inputs: &[ROWS, ROW],
        loss: |x| {
            let y = &x[0] / (x[0].square().mean(1, true) + 1e-5).sqrt() * &x[1];
            (y * upstream(ROWS)).sum_all()
        },
    },
    Formula {
        what: "attention by hand",
        most: 9,
        far: 0.0,
        inputs: &[&[6, 5], &[7, 5], &[7, 5]],
        loss: |x| {
            let scores = x[0].matmul(&x[1].t()) / 5f64.sqrt();
            (softmax(&scores).matmul(&x[2]) * upstream(&[6, 5])).sum_all()
        },
    },
    Formula {
        what: "attention by hand, one row",
        most: 9,
        far: 0.0,
        inputs: &[ROW, &[7, 5], &[7, 5]],
        loss: |x| {
            let scores = (&x[1] * &x[0]).sum(1, false) / 5f64.sqrt();
            let e = (&scores - scores.amax(0, true)).exp();
            let p = &e / e.sum_all();
            ((p.unsqueeze(1) * &x[2]).sum(0, false) * upstream(ROW)).sum_all()
        },
    },
    Formula {
        what: "attention by softmax",
        most: 9,
        far: 0.0,
        inputs: &[&[6, 5], &[7, 5], &[7, 5]],
        loss: |x| {
            let scores = x[0].matmul(&x[1].t()) / 5f64.sqrt();
            (scores.softmax(1).matmul(&x[2]) * upstream(&[6, 5])).sum_all()
        },
    },
    Formula {
        what: "cross-entropy at a temperature, by probabilities",
        most: 6,
        far: 0.0,
        inputs: &[&[8, 7], &[]],
        loss: |x| cross_entropy(&softmax(&(&x[0] / &x[1])).log()),
    },
    Formula {
        what: "cross-entropy at a temperature, by logarithms",
        most: 5,
        far: 0.0,
        inputs: &[&[8, 7], &[]],
        loss: |x| cross_entropy(&log_softmax(&(&x[0] / &x[1]))),
    },
    Formula {
        what: "unit vectors by their norms",
        most: 9,
        far: 30.0,
        inputs: &[ROWS, ROWS],
        loss: |x| {
            let unit = |x: &Tensor| x / x.norm(2.0, 1, true);
            (unit(&x[0]) * unit(&x[1])).sum(1, false).mean_all()
        },
    },
    Formula {
        what: "RMS norm by a norm",
        most: 8,
        far: 30.0,
        inputs: &[ROWS, ROW],
        loss: |x| {
            let y = &x[0] / (x[0].norm(2.0, 1, true) / 5f64.sqrt()) * &x[1];
            (y * upstream(ROWS)).sum_all()
        },
    },
    Formula {
        what: "InfoNCE by cross_entropy",
        most: 14,
        far: 0.0,
        inputs: &[&[6, 5], &[6, 5]],
        loss: |x| {
            let scores = unit(&x[0]).matmul(&unit(&x[1]).t()) / 0.1;
            scores.cross_entropy(&Tensor::arange(0, 6))
        },
    },
    Formula {
        what: "InfoNCE",
        most: 14,
        far: 0.0,
        inputs: &[&[6, 5], &[6, 5]],
        loss: |x| cross_entropy(&log_softmax(&(unit(&x[0]).matmul(&unit(&x[1]).t()) / 0.1))),
    },
    Formula {
        what: "mixture of Gaussians",
        most: 10,
        far: 0.0,
        inputs: &[&[4], &[4], &[4]],
        loss: |x| {
            let data = upstream(&[9, 1]);
            let z = (data - &x[0]) / x[1].exp();
            let weights = &x[2] - x[2].exp().sum_all().log();
            let logs = weights - &x[1] - z.square() * 0.5 - 0.9189385332046727;
            let top = logs.amax(1, true);
            -((&logs - &top).exp().sum(1, true).log() + top).mean_all()
        },
    },
    Formula {
        what: "GELU by tanh",
        most: 8,
        far: 0.0,
        inputs: &[&[6, 5]],
        loss: |x| {
            let k = (2.0 / std::f64::consts::PI).sqrt();
            let inner = (&x[0] + x[0].pow(3.0) * 0.044715) * k;
            (&x[0] * 0.5 * (inner.tanh() + 1.0) * upstream(&[6, 5])).sum_all()
        },
    },
    Formula {
        what: "cosine of two rows",
        most: 10,
        far: 30.0,
        inputs: &[ROWS, ROWS],
        loss: |x| {
            let length = |x: &Tensor| x.square().sum(1, true).sqrt();
            ((&x[0] * &x[1]).sum(1, true) / (length(&x[0]) * length(&x[1]))).sum_all()
        },
    },
];

/// Fixed numbers for what comes from outside.
fn upstream(shape: &[usize]) -> Tensor {
    normal(shape, &mut Generator::manual_seed(91)).to_dtype(DTYPE.get())
}

thread_local! {
    static DTYPE: std::cell::Cell<DType> = const { std::cell::Cell::new(DType::F64) };
}

fn inputs(formula: &Formula, g: &mut Generator) -> Vec<Tensor> {
    formula
        .inputs
        .iter()
        .map(|shape| normal(shape, g) + if shape.is_empty() { 2.0 } else { 0.0 })
        .collect()
}

const NAMES: [&str; 3] = ["a", "b", "c"];

#[test]
fn formulas_are_as_short_as_by_hand() {
    DTYPE.set(DType::F64);
    let g = &mut Generator::manual_seed(70);
    let mut long = Vec::new();
    for formula in &FORMULAS {
        let how = Simplify::new().checked(5);
        let names = &NAMES[..formula.inputs.len()];
        let case = Case::with(names, &inputs(formula, g), formula.loss, &how);
        let lines = case.simple.program.lines();
        let count = lines.filter(|l| l.phase() == crate::Phase::Backward).count();
        println!("{}: {count}", formula.what);
        if count > formula.most {
            let Formula { what, most, .. } = formula;
            long.push(format!("{what}: {count} for {most}\n{}", case.simple.program));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// The errors of f32 beside those of the eager mode, both against f64, near zero and far from it.
#[test]
fn formulas_are_as_accurate_as_the_eager_mode() {
    for (seed, far) in [(1, 0.0), (2, 0.0), (3, 1.0)] {
        let g = &mut Generator::manual_seed(seed);
        for formula in &FORMULAS {
            let narrow: Vec<Tensor> = inputs(formula, g)
                .iter()
                .map(|x| {
                    if x.rank() == 2 {
                        (x + far * formula.far).to_dtype(DType::F32)
                    } else {
                        x.to_dtype(DType::F32)
                    }
                })
                .collect();
            let names = &NAMES[..formula.inputs.len()];
            DTYPE.set(DType::F64);
            let wide: Vec<Tensor> =
                narrow.iter().map(|x| x.to_dtype(DType::F64).parameter()).collect();
            (formula.loss)(&wide).backward();
            DTYPE.set(DType::F32);
            let case = Case::loose(names, &narrow, formula.loss);
            let run = |p: &Program| p.run(&[]).unwrap();
            for (k, (eager, simple)) in
                run(&case.raw).iter().zip(run(&case.simple.program)).enumerate().skip(1)
            {
                let truth = wide[k - 1].grad().unwrap().to_f64_vec();
                let error = |x: &Tensor| {
                    let off = x
                        .to_f64_vec()
                        .iter()
                        .zip(&truth)
                        .map(|(a, b)| (a - b) * (a - b))
                        .sum::<f64>();
                    off.sqrt() / truth.iter().map(|b| b * b).sum::<f64>().sqrt()
                };
                let (eager, simple) = (error(eager), error(&simple));
                // A few roundings, by which lucky ones differ.
                assert!(
                    simple <= 4.0 * eager.max(1.2e-7),
                    "{} at {far}: {simple:e} for {eager:e}",
                    formula.what
                );
            }
        }
    }
}
