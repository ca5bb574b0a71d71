//! Random programs of the ops that the algebra knows and of all others of the table, simplified and
//! fused, beside the plain ones.

use std::sync::Arc;

use super::super::compare::{apart, surely_agree};
use super::super::twin;
use crate::Program;
use crate::ops::{Sample, table};
use crate::tensor::value::Value;
use crate::tests::expressions;
use chainrule_core::{DType, Generator, Index, Slice, Tensor};

/// Number of programs; `CHAINRULE_PROGRAMS` sets another number.
const PROGRAMS: u64 = 10_000;

/// Bound of a difference beside the error of the plain program, as runs on moved inputs and steps
/// show it. All but one of these programs are within twice that error. The one has a softmax that
/// is nearly one-hot, at 17.7: the maximum that is taken off and the sum that is put back cancel
/// each other's rounding in the plain program, while `y (g - sum(y g))` keeps two roundings of `g`.
const RATIO: f64 = 32.0;

/// Roundings of the largest of all results that say nothing: a gradient may be zero but for these.
const ROUNDINGS: f64 = 4.0;

fn below(n: usize, g: &mut Generator) -> usize {
    g.random_u32() as usize % n.max(1)
}

/// One op of a program: which, of which earlier tensors, with which number and axis.
struct TableStep<'a> {
    op: usize,
    a: usize,
    b: usize,
    c: f64,
    axis: usize,
    constant: Tensor,
    sample: &'a Sample,
    places: Vec<Tensor>,
}

const OPS: usize = 56;

fn step<'a>(samples: &'a [Sample], shape: [usize; 2], g: &mut Generator) -> TableStep<'a> {
    let sample = &samples[below(samples.len(), g)];
    let floats = sample.inputs.iter().filter(|x| x.dtype().is_float());
    let places = floats.map(|x| Tensor::randint(0, 1 << 20, [x.numel()], g)).collect();
    TableStep {
        op: below(OPS, g),
        a: below(1 << 20, g),
        b: below(1 << 20, g),
        c: Tensor::randn([1], DType::F64, g).item(),
        axis: below(3, g),
        constant: Tensor::randn(shape, DType::F64, g),
        sample,
        places,
    }
}

/// The result of a step; `None` where it does not fit the tensors that there are.
fn apply(step: &TableStep<'_>, pool: &[Tensor], y: &Tensor) -> Option<Tensor> {
    // Every third follows from what came before it.
    let last = pool.len() - 1;
    let a = &pool[if step.a.is_multiple_of(3) { last } else { step.a % pool.len() }];
    let b = &pool[step.b % pool.len()];
    let axis = (a.rank() > 0).then(|| (step.axis % a.rank()) as i64);
    let size = axis.map_or(1, |k| a.shape()[k as usize]) as i64;
    let positive = |t: &Tensor| t.sigmoid() + 0.25;
    let number = Tensor::full((), step.c, a.dtype());
    let constant = step.constant.to_dtype(a.dtype());
    let narrow = |start: i64, count: i64| a.try_narrow(axis?, start as usize, count as usize).ok();
    Some(match step.op {
        0 => a.try_add(b).ok()?,
        1 => a.try_sub(b).ok()?,
        2 => a.try_mul(b).ok()?,
        3 => a.try_div(&(b.exp() + 1.0)).ok()?,
        4 => (a * 0.3).exp(),
        5 => (a.exp() + 1.0).log(),
        6 => a.tanh(),
        7 => a.sigmoid(),
        8 => (a * a + 0.1).sqrt(),
        9 => a.square(),
        10 => a.pow(3.0),
        11 => (a * a + 1.0).pow(-1.5),
        12 => a.sum(axis?, true),
        13 => a.sum(axis?, false),
        14 => a - a.mean(axis?, true),
        15 if size > 1 => {
            let variance = a.var(axis?, step.a % 2, true);
            (a - a.mean(axis?, true)) / (variance + 1e-3).sqrt()
        }
        16 => a.softmax(axis?),
        17 => a.log_softmax(axis?),
        18 => a.logsumexp(axis?, true),
        19 if a.rank() == 2 => a.t(),
        20 if a.rank() == 2 && b.rank() == 2 => a.try_matmul(b).ok()?,
        21 if a.rank() == 2 && b.rank() == 2 => a.try_matmul(&b.t()).ok()?,
        22 => a * step.c,
        23 => a + &number,
        24 => a.try_mul(&constant).ok()?,
        25 => a.try_add(&constant).ok()?,
        26 => b.gt(0.0).try_where(a, &(a * 0.5)).ok()?,
        27 => a.relu(),
        28 => a.abs(),
        29 if a.rank() == 2 && a.shape()[0] == y.numel() => {
            let at = y.remainder(a.shape()[1] as i64);
            a.gather(1, &at.unsqueeze(1))
        }
        30 if a.rank() > 0 && a.shape()[0] > 0 => {
            a.try_index(&[Index::from(&y.remainder(a.shape()[0] as i64))]).ok()?
        }
        31 => a.exp().try_div(b.exp().try_add(a.exp()).ok()?).ok()?,
        32 => positive(a).try_div(positive(b)).ok()?,
        33 => positive(a).log().try_add(positive(b).log()).ok()?,
        34 => positive(a).try_mul(positive(b)).ok()?.sqrt(),
        35 => {
            let e = (a - a.amax(axis?, true)).exp();
            &e / e.sum(axis?, true)
        }
        36 => a.reshape([-1]),
        37 => a / (a.square().sum(axis?, true) + 1e-2).sqrt(),
        38 if a.rank() == 1 => a.unsqueeze(1) - a.unsqueeze(0),
        39 => narrow(0, (size + 1) / 2)?,
        40 => narrow(size / 2, size - size / 2)?,
        41 => narrow(0, 1)? - narrow(size - 1, 1)?,
        42 => a.try_slice(&[Slice::from(..).step(-2)]).ok()?,
        43 if a.rank() > 0 && a.shape() == b.shape() => Tensor::cat(&[a, b], axis?),
        44 => a.cumsum(axis?),
        45 => a.flip(axis?),
        46 => a.roll(&[1], &[axis?]),
        47 if a.rank() == 2 => a.tril(0),
        48 => a.try_minimum(b).ok()?,
        49 => narrow(0, 1)? + a,
        50 => (a - narrow(0, 1)?).log_softmax(axis?),
        // No part of the gradient, by the algebra and not by the form.
        51 => narrow(0, 1)? * 0.0 + a,
        52 => a.try_slice(&[Slice::At(0)]).ok()? * (a - a.clone()),
        53 => a.sum_all(),
        54 => a.max_axis(axis?, true).0,
        _ => of_table(step, a)?,
    })
}

/// A sample of the table whose inputs depend on the tensor.
fn of_table(step: &TableStep<'_>, a: &Tensor) -> Option<Tensor> {
    if a.numel() == 0 {
        return None;
    }
    let mut places = step.places.iter();
    let mut inputs = Vec::new();
    for x in &step.sample.inputs {
        if !x.dtype().is_float() {
            inputs.push(x.clone());
            continue;
        }
        let at = places.next()?.remainder(a.numel() as i64);
        let picked = a.reshape([-1]).try_index_select(0, &at).ok()?;
        let moved = picked.reshape(x.shape()).tanh() * 0.02;
        inputs.push(x.to_dtype(a.dtype()).try_add(&moved).ok()?);
    }
    (step.sample.call)(&inputs).ok().filter(|y| y.dtype() == a.dtype())
}

fn loss(steps: &[TableStep<'_>], leaves: &[Tensor], y: &Tensor, weights: &[f64]) -> Tensor {
    let mut pool = leaves.to_vec();
    for step in steps {
        match apply(step, &pool, y) {
            Some(t) if t.numel() <= 200 && t.rank() <= 4 && t.dtype() == leaves[0].dtype() => {
                pool.push(t);
            }
            _ => {}
        }
    }
    let mut total = Tensor::full((), 0.0, leaves[0].dtype());
    for (t, weight) in pool.iter().rev().take(3).zip(weights) {
        if t.numel() > 0 {
            total = total + (t * *weight).mean_all() + t.square().sum_all() * 0.01;
        }
    }
    total
}

/// `None` where the optimised program runs; else the difference beside the plain program's error.
fn check(samples: &[Sample], seed: u64, dtype: DType) -> Result<Option<f64>, String> {
    let g = &mut Generator::manual_seed(seed);
    let [n, m] = [1 + below(4, g), 1 + below(4, g)];
    let shapes: [&[usize]; 9] =
        [&[n, m], &[1, m], &[n, 1], &[m], &[], &[n, m], &[1], &[1, 1], &[n, n]];
    let leaves: Vec<Tensor> = (0..1 + below(4, g))
        .map(|_| {
            let scale = [0.5, 1.0, 2.0][below(3, g)];
            (Tensor::randn(shapes[below(shapes.len(), g)], DType::F64, g) * scale).to_dtype(dtype)
        })
        .collect();
    let y = Tensor::randint(0, 1000, [n], g);
    let steps: Vec<TableStep<'_>> =
        (0..4 + below(10, g)).map(|_| step(samples, [n, m], g)).collect();
    let weights = Tensor::randn([3], DType::F64, g).to_f64_vec();
    let names = ["a", "b", "c", "d"];
    let arguments = names.into_iter().zip(&leaves).chain([("y", &y)]);
    let text = |e: chainrule_core::Error| e.to_string();
    let traced = Program::trace(arguments, |x| {
        let own: Vec<Tensor> = x[..leaves.len()].iter().map(Tensor::parameter).collect();
        let loss = loss(&steps, &own, &x[leaves.len()], &weights);
        loss.try_backward()?;
        let gradients = own.iter().map(|x| x.grad().unwrap_or_else(|| x.zeros_like()));
        Ok([loss].into_iter().chain(gradients).collect())
    });
    // Refusals that the algebra has no part in: indices that are read, decompositions that fail.
    let Ok(traced) = traced else { return Ok(None) };
    let plain = traced.optimized();
    let simple = plain.simplified().map_err(text)?.program;
    if simple.len() > plain.len() {
        return Err(format!("{} instructions became {}", plain.len(), simple.len()));
    }
    let given: Vec<&Tensor> = leaves.iter().chain([&y]).collect();
    let twin = twin::run_beside(&plain, &given, twin::Runs::All).map_err(text)?;
    let fused = [("simplified", &simple), ("simplified and fused", &simple.fused())];
    for (of, program) in fused.into_iter().chain([("fused", &plain.fused())]) {
        let got: Vec<_> = program.run(&given).map_err(text)?.iter().map(Tensor::value).collect();
        let parted = apart(&got, &twin);
        if parted.is_some() && surely_agree(&got, &twin.plain) {
            return Err(format!("taken for the same\n{plain}\n{simple}"));
        }
        if let Some(apart) = parted {
            // This program runs plain: the first run sees what is seen here.
            let unit = if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
            let plain_roots = twin.plain.iter().filter(|root| root.dtype() == dtype);
            let largest = plain_roots.flat_map(|root| twin::numbers(root));
            let largest = largest.map(f64::abs).filter(|x| x.is_finite()).fold(0.0, f64::max);
            let ratio = apart.by / own_error(&twin, apart.root);
            let is_rounding = apart.by <= ROUNDINGS * unit * largest;
            let harmless = is_rounding || ratio <= RATIO;
            if harmless && program.to_string() != plain.fused().to_string() {
                return Ok(Some(if is_rounding { 0.0 } else { ratio }));
            }
            let (by, size) = (apart.by, apart.size);
            return Err(format!("{of}: {by:e} of {size:e}, {ratio:.1} times\n{plain}\n{simple}"));
        }
    }
    Ok(None)
}

/// Distance of the plain program from the one in f64, or from itself on moved inputs and steps.
fn own_error(twin: &twin::Twin, root: usize) -> f64 {
    let plain = twin::numbers(&twin.plain[root]);
    let apart = |run: &Vec<Arc<Value>>| {
        let all = twin::numbers(&run[root]).into_iter().zip(&plain);
        all.map(|(a, b)| (a - b).abs()).filter(|x| x.is_finite()).fold(0.0, f64::max)
    };
    twin.wide.iter().chain(&twin.moved).chain(&twin.stepped).map(apart).fold(0.0, f64::max)
}

#[test]
fn random_programs_are_simplified_and_fused_rightly() {
    let count = std::env::var("CHAINRULE_PROGRAMS").ok().and_then(|n| n.parse().ok());
    let count = count.unwrap_or(PROGRAMS);
    let samples = expressions::usable();
    assert!(samples.len() > 300 && table().count() > 100);
    let (mut failures, mut plain, mut worst) = (Vec::new(), 0, 0f64);
    for seed in 0..count {
        let dtype = if seed % 4 == 3 { DType::F32 } else { DType::F64 };
        match check(&samples, seed, dtype) {
            Ok(None) => {}
            Ok(Some(ratio)) => (plain, worst) = (plain + 1, worst.max(ratio)),
            Err(why) => failures.push(format!("seed {seed}: {why}")),
        }
    }
    println!("{plain} of {count} would run plain; at worst {worst:.1} times the plain error");
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures[..failures.len().min(3)].join("\n")
    );
    // The plain program is taken where the last digits are in doubt; that is rare.
    assert!(plain * 50 <= count, "{plain} of {count} would run plain");
}
