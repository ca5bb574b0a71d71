//! Random expressions of the table's ops: reverse mode against forward mode, in f64.
//!
//! An expression is up to 30 steps on a few random tensors. A step takes an op of the table and one
//! of its samples, lets earlier results move the sample's inputs a little (so that they stay where
//! the op is smooth), and calls it; elementwise ops and reductions get random shapes that
//! broadcast, and between the steps stand random views. All of it follows from the seed, so that it
//! can be run again as a function of the first tensors.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::random_shapes::{REDUCTIONS, below, broadcast_pair, drawn};
use super::{On, SEED, largest, panic_text, report, table};
use crate::dot_product;
use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_core::ops::{Entry, Family, Sample};
use chainrule_core::{DType, Slice};

/// Number of expressions; `CHAINRULE_EXPRESSIONS` sets another number.
const EXPRESSIONS: u64 = 10_000;

/// Seeds that once failed, tried first.
const FAILED_ONCE: &[u64] = &[];

/// Tolerance between the modes, as a fraction of the terms of the inner products: 30 steps lose
/// some digits.
const MODES: f64 = 1e-10;

/// Tolerance if everything cancels, as in the variance of one element, where values and slopes are
/// of size 1.
const FLOOR: f64 = 1e-13;

/// Distance over which earlier results move the inputs of a sample.
const REACH: f64 = 0.02;

/// Ops without a gradient to check in an expression, and why.
const LEFT_OUT: &[(&str, &str)] = &[];

/// An op with the samples that an expression may use.
struct Brick {
    entry: &'static Entry,
    samples: Vec<Sample>,
}

fn bricks() -> Vec<Brick> {
    let usable = |s: &Sample| {
        let floats = s.floats();
        let wide = floats.iter().all(|x| x.dtype() == DType::F64 && x.numel() > 0);
        // A sample without elements, or one too large for many steps, adds nothing.
        !s.kink && !floats.is_empty() && wide && (1..=400).contains(&s.on(&floats).numel())
    };
    let brick = |entry: &'static Entry| {
        let mut samples = (entry.samples)(&mut Generator::manual_seed(SEED));
        samples.retain(usable);
        Brick { entry, samples }
    };
    table().filter(|e| !e.gradient.is_empty()).map(brick).collect()
}

fn pick<'a, T>(from: &'a [T], g: &mut Generator) -> &'a T {
    &from[below(from.len() as u64, g)]
}

/// `x` brought to a shape by picking elements of it at random.
fn mould(x: &Tensor, shape: &[usize], g: &mut Generator) -> Tensor {
    let n: usize = shape.iter().product();
    let places: Vec<i64> = (0..n).map(|_| below(x.numel() as u64, g) as i64).collect();
    x.flatten(0, -1).index_select(0, &Tensor::from(places)).reshape(shape)
}

/// `base`, moved by `x` a little; the derivative is as if it were moved by all of it.
fn moved(base: &Tensor, x: &Tensor, g: &mut Generator) -> Tensor {
    let step = mould(x, &base.shape(), g);
    let here = step.detach();
    // A far point moves no further than a near one.
    base + here.tanh() * REACH + (&step - &here)
}

/// A view of `x` at random.
fn viewed(x: &Tensor, g: &mut Generator) -> Tensor {
    let rank = x.rank();
    if rank == 0 {
        return x.expand([1 + below(3, g)]);
    }
    let axis = below(rank as u64, g);
    match below(6, g) {
        0 => x.transpose(axis as i64, below(rank as u64, g) as i64),
        1 => x.slice(&vec![Slice::Range { start: None, end: None, step: -1 }; rank]),
        2 => {
            let size = x.shape()[axis];
            let start = below(size as u64, g);
            x.narrow(axis as i64, start, 1 + below((size - start) as u64, g))
        }
        3 if rank < 5 => x.unsqueeze(axis as i64),
        4 if x.numel() < 100 => {
            let sizes: Vec<usize> = [2].into_iter().chain(x.shape().iter().copied()).collect();
            if rank < 5 { x.expand(sizes.as_slice()) } else { x.clone() }
        }
        _ => x.flatten(0, -1),
    }
}

/// A shape of rank 0 to 3 with sizes 1 to 5.
fn some_shape(g: &mut Generator) -> Vec<usize> {
    (0..below(4, g)).map(|_| 1 + below(5, g)).collect()
}

/// An elementwise op on random shapes, which broadcast if there are two. `None` if the sample takes
/// just its own shapes.
fn elementwise(sample: &Sample, from: &[Tensor], g: &mut Generator) -> Option<Tensor> {
    let one_shape = sample.inputs.windows(2).all(|x| x[0].shape() == x[1].shape());
    let floats = sample.floats();
    if !one_shape || floats.len() != sample.inputs.len() || sample.note.contains("view") {
        return None;
    }
    let full = some_shape(g);
    let shapes = match floats.len() {
        1 => vec![full],
        2 => {
            let (a, b) = broadcast_pair(&full, g);
            vec![a, b]
        }
        _ => return None,
    };
    let inputs = floats.iter().zip(&shapes).map(|(x, shape)| {
        let base = drawn(&x.to_vec::<f64>(), shape, g);
        moved(&base, pick(from, g), g)
    });
    let inputs: Vec<Tensor> = inputs.collect();
    Some(sample.on(&inputs))
}

/// A reduction of random axes. `None` if the op is not one that takes any.
fn reduction(name: &str, from: &[Tensor], g: &mut Generator) -> Option<Tensor> {
    let (_, fewest, call) = REDUCTIONS.iter().find(|(n, ..)| *n == name)?;
    let shape = some_shape(g);
    let axes: Vec<i64> = (0..shape.len() as i64).filter(|_| below(2, g) == 0).collect();
    let count: usize = axes.iter().map(|&a| shape[a as usize]).product();
    if count < *fewest || axes.is_empty() {
        return None;
    }
    let base = Tensor::randn(shape.as_slice(), DType::F64, g);
    let x = moved(&base, pick(from, g), g);
    Some(call(&x, &axes, below(2, g) == 0).unwrap_or_else(|e| panic!("{name}: {e}")))
}

/// One step: an op on earlier results. The names of the ops used go into `used`.
fn step(
    bricks: &[Brick],
    from: &[Tensor],
    used: &mut Vec<&'static str>,
    g: &mut Generator,
) -> Tensor {
    let brick = pick(bricks, g);
    if brick.samples.is_empty() {
        return from[0].clone();
    }
    used.push(brick.entry.name);
    let sample = pick(&brick.samples, g);
    let free = match brick.entry.family {
        Family::Unary | Family::Binary => elementwise(sample, from, g),
        Family::Reduce => reduction(brick.entry.name, from, g),
        _ => None,
    };
    let y = free.unwrap_or_else(|| {
        let inputs: Vec<Tensor> =
            sample.floats().iter().map(|base| moved(base, pick(from, g), g)).collect();
        sample.on(&inputs)
    });
    let y = if below(2, g) == 0 { viewed(&y, g) } else { y };
    // Values of size 1, so that no step drowns the others.
    let size = largest(&y.detach().to_f64_vec());
    assert!(size.is_finite(), "{} ({}) gives {size}", brick.entry.name, sample.note);
    if size > 1.0 { y * (1.0 / size) } else { y }
}

/// The first tensors of an expression.
fn leaves(g: &mut Generator) -> Vec<Tensor> {
    (0..1 + below(3, g)).map(|_| Tensor::randn(some_shape(g).as_slice(), DType::F64, g)).collect()
}

/// The expression of a seed as a function of its first tensors, and the ops it uses.
fn expression(
    bricks: &[Brick],
    leaves: &[Tensor],
    g: &mut Generator,
) -> (Tensor, Vec<&'static str>) {
    let (mut results, mut used) = (leaves.to_vec(), Vec::new());
    for _ in 0..1 + below(30, g) {
        let y = step(bricks, &results, &mut used, g);
        results.push(y);
    }
    // The last few results, so that more than one path leads to the end.
    let last: Vec<Tensor> = results.iter().rev().take(3).map(|x| x.flatten(0, -1)).collect();
    (Tensor::cat(&last.iter().collect::<Vec<_>>(), 0), used)
}

/// Checks the expression of a seed; `Err` says what is wrong, with the ops.
fn check(bricks: &[Brick], seed: u64) -> Result<Vec<&'static str>, String> {
    let g = &mut Generator::manual_seed(seed);
    let leaves = leaves(g);
    let start = g.clone();
    let used = std::cell::RefCell::new(Vec::new());
    let f = |x: &[Tensor]| {
        let (y, ops) = expression(bricks, x, &mut start.clone());
        used.replace(ops);
        y
    };
    let test = catch_unwind(AssertUnwindSafe(|| dot_product(f, &leaves, g)))
        .map_err(|p| format!("seed {seed}: {}", panic_text(&*p)))?
        .map_err(|e| format!("seed {seed}: {e}"))?;
    let used = used.into_inner();
    let allowed = MODES * test.scale + FLOOR;
    // Not `>`: a NaN must fail.
    if (test.forward - test.reverse).abs() <= allowed {
        return Ok(used);
    }
    Err(format!(
        "seed {seed}: <v, J u> = {:e} by forward mode, {:e} by reverse mode ({:.1e} of the terms); {}",
        test.forward,
        test.reverse,
        test.error(),
        used.join(" ")
    ))
}

#[test]
fn random_expressions_agree_in_both_modes() {
    let count = std::env::var("CHAINRULE_EXPRESSIONS").ok().and_then(|n| n.parse().ok());
    let seeds = FAILED_ONCE.iter().copied().chain(0..count.unwrap_or(EXPRESSIONS));
    let bricks = bricks();
    let (mut failures, mut seen) = (Vec::new(), BTreeSet::new());
    for seed in seeds {
        match check(&bricks, seed) {
            Ok(used) => seen.extend(used),
            Err(why) => failures.push(why),
        }
    }
    let unused = bricks.iter().map(|b| b.entry.name).filter(|name| !seen.contains(name));
    let excepted = |name: &&str| LEFT_OUT.iter().any(|(n, _)| n == name);
    failures.extend(unused.filter(|n| !excepted(n)).map(|n| format!("{n} is in no expression")));
    report("random expressions", failures);
}
