//! Elementwise ops and reductions on random shapes of up to four axes of 0 to 5 elements, against
//! their own results on single elements and single rows, which are picked by index arithmetic of
//! the test's own.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{On, SEED, difference, panic_text, report, table};
use crate::dot_product;
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_core::ops::{Family, Sample};
use chainrule_core::{DType, Shape};

/// Shapes for each op.
const CASES: u64 = 60;

pub(super) fn below(n: u64, g: &mut Generator) -> usize {
    (g.random_u64() % n) as usize
}

/// A shape of rank 0 to 4 with sizes 0 to 5, of which an empty one is rarer.
fn shape(g: &mut Generator) -> Vec<usize> {
    (0..below(5, g)).map(|_| if below(12, g) == 0 { 0 } else { 1 + below(5, g) }).collect()
}

/// Two shapes that broadcast to `full`, each with some axes of size 1 and some leading axes left
/// out.
pub(super) fn broadcast_pair(full: &[usize], g: &mut Generator) -> (Vec<usize>, Vec<usize>) {
    let (mut a, mut b) = (full.to_vec(), full.to_vec());
    for axis in 0..full.len() {
        match below(4, g) {
            0 => a[axis] = 1,
            1 => b[axis] = 1,
            _ => {}
        }
    }
    // Only axes of size 1, or those that the other one keeps whole, may be left out.
    let droppable = |x: &[usize], other: &[usize]| {
        (0..x.len()).take_while(|&i| x[i] == 1 || other[i] == x[i]).count()
    };
    if below(3, g) == 0 {
        let n = droppable(&a, &b);
        a.drain(..below(n as u64 + 1, g));
    } else if below(2, g) == 0 {
        let n = droppable(&b, &a);
        b.drain(..below(n as u64 + 1, g));
    }
    (a, b)
}

/// All indices of a shape, in row-major order.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![Vec::new()], |all, &size| {
        let grow = |index: &Vec<usize>| {
            let index = index.clone();
            (0..size).map(move |i| index.iter().copied().chain([i]).collect::<Vec<_>>())
        };
        all.iter().flat_map(grow).collect()
    })
}

/// The element of `x` that is used at index `at` of the broadcast result.
fn stretched(x: &Tensor, at: &[usize]) -> f64 {
    let shape = x.shape();
    let at = &at[at.len() - shape.rank()..];
    let own: Vec<usize> =
        at.iter().zip(shape.iter()).map(|(&i, &d)| if d == 1 { 0 } else { i }).collect();
    x.at::<f64>(&own)
}

/// Random elements of `pool`, which lies in the op's domain.
pub(super) fn drawn(pool: &[f64], shape: &[usize], g: &mut Generator) -> Tensor {
    let n = shape.iter().product();
    let elements: Vec<f64> = (0..n).map(|_| pool[below(pool.len() as u64, g)]).collect();
    Tensor::from_slice(&elements, shape)
}

/// Whether reverse mode agrees with forward mode.
fn modes_agree(
    f: impl Fn(&[Tensor]) -> Tensor,
    inputs: &[Tensor],
    g: &mut Generator,
) -> Option<String> {
    let test = dot_product(f, inputs, g).unwrap_or_else(|e| panic!("{e}"));
    let agree = test.error() <= 1e-12;
    (!agree).then(|| format!("forward mode {:e}, reverse mode {:e}", test.forward, test.reverse))
}

fn binary_case(sample: &Sample, g: &mut Generator) -> Option<String> {
    let full = shape(g);
    let (a, b) = broadcast_pair(&full, g);
    let case = format!("shapes {a:?} and {b:?}");
    let pools = [sample.inputs[0].to_vec::<f64>(), sample.inputs[1].to_vec::<f64>()];
    let inputs = [drawn(&pools[0], &a, g), drawn(&pools[1], &b, g)];
    let y = sample.on(&inputs);
    let out: Vec<usize> = y.shape().to_vec();
    let want = Shape::new(&a).broadcast(&Shape::new(&b)).expect("made to broadcast");
    if out != want.to_vec() {
        return Some(format!("{case}: the result has {out:?}"));
    }
    let single = |at: &Vec<usize>| {
        let scalars = inputs.each_ref().map(|x| Tensor::scalar(stretched(x, at)));
        sample.on(&scalars).item()
    };
    let want: Vec<f64> = indices(&out).iter().map(single).collect();
    difference("value", &y, &Tensor::from_slice(&want, y.shape()), 1e-14)
        .or_else(|| modes_agree(|x| sample.on(x), &inputs, g))
        .map(|why| format!("{case}: {why}"))
}

/// Entries of the family that are not functions of two operands, and why.
const NOT_BINARY: &[(&str, &str)] =
    &[("where", "the condition is an operand with a shape of its own")];

#[test]
fn binary_ops_on_random_shapes() {
    let mut failures = Vec::new();
    for entry in table().filter(|e| e.family == Family::Binary && !e.gradient.is_empty()) {
        let samples = (entry.samples)(&mut Generator::manual_seed(SEED));
        let plain = |s: &&Sample| {
            let [a, b] = s.inputs.as_slice() else {
                return false;
            };
            !s.kink
                && a.dtype() == DType::F64
                && b.dtype() == DType::F64
                && a.shape() == b.shape()
                && a.numel() > 1
        };
        if NOT_BINARY.iter().any(|(name, _)| *name == entry.name) {
            continue;
        }
        let Some(sample) = samples.iter().find(plain) else {
            failures.push(format!("{}: no sample of two operands of one shape", entry.name));
            continue;
        };
        for seed in 0..CASES {
            let run = || binary_case(sample, &mut Generator::manual_seed(seed));
            let found =
                catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|p| Some(panic_text(&*p)));
            failures.extend(found.map(|why| format!("{}, seed {seed}: {why}", entry.name)));
        }
    }
    report("binary ops on random shapes", failures);
}

/// A reduction over the axes it is given.
pub(super) type Reduction = fn(&Tensor, &[i64], bool) -> Result<Tensor>;

/// The reductions, by the names of their entries, and the fewest elements of a row at which they
/// are smooth.
pub(super) const REDUCTIONS: &[(&str, usize, Reduction)] = &[
    ("sum", 0, |x, axes, keep| x.try_sum(axes, keep)),
    ("mean", 1, |x, axes, keep| x.try_mean(axes, keep)),
    ("var", 1, |x, axes, keep| x.try_var(axes, 0, keep)),
    // A single element deviates by 0, where the square root has a kink.
    ("std", 2, |x, axes, keep| x.try_std(axes, 0, keep)),
    ("max", 1, |x, axes, keep| x.try_max(axes, keep)),
    ("min", 1, |x, axes, keep| x.try_min(axes, keep)),
    ("amax", 1, |x, axes, keep| x.try_amax(axes, keep)),
    ("amin", 1, |x, axes, keep| x.try_amin(axes, keep)),
    ("prod", 0, |x, axes, keep| x.try_prod(axes, keep)),
    ("norm", 1, |x, axes, keep| x.try_norm(2.0, axes, keep)),
    ("logsumexp", 1, |x, axes, keep| x.try_logsumexp(axes, keep)),
];

/// Entries of the family that do not reduce any set of axes to one element each, and why.
const NOT_REDUCTIONS: &[(&str, &str)] = &[
    ("max_axis", "one axis only, with indices; `max` has the same values"),
    ("min_axis", "one axis only, with indices; `min` has the same values"),
    ("argmax", "one axis only, and no gradient"),
    ("argmin", "one axis only, and no gradient"),
    ("cumsum", "a scan keeps the axis"),
    ("cumprod", "a scan keeps the axis"),
    ("logcumsumexp", "a scan keeps the axis"),
    ("cummax", "a scan keeps the axis"),
    ("cummin", "a scan keeps the axis"),
    ("sort", "the axis stays"),
    ("argsort", "the axis stays"),
    ("topk", "the axis stays, with fewer elements"),
    ("median", "one axis only, with indices"),
    ("histogram", "a result of its own shape, and no gradient"),
    ("bincount", "a result of its own shape, and no gradient"),
    ("unique", "a result of its own shape, and no gradient"),
    ("any, all", "the result is bool, and there is no gradient"),
    ("count_nonzero", "the result is i64, and there is no gradient"),
];

fn reduction_case(call: Reduction, fewest: usize, g: &mut Generator) -> Option<String> {
    let shape = shape(g);
    let x = Tensor::randn(shape.as_slice(), DType::F64, g);
    let gone: Vec<bool> = shape.iter().map(|_| below(2, g) == 0).collect();
    let keepdim = below(2, g) == 0;
    let rank = shape.len() as i64;
    // Axes in falling order and some from the end: the order must not matter.
    let axes: Vec<i64> = (0..rank)
        .rev()
        .filter(|&a| gone[a as usize])
        .map(|a| if a % 2 == 0 { a } else { a - rank })
        .collect();
    let case = format!("shape {shape:?}, axes {axes:?}, keepdim {keepdim}");
    let (kept, inner): (Vec<usize>, Vec<usize>) = (0..shape.len()).partition(|&a| !gone[a]);
    let empty_rows = inner.iter().any(|&a| shape[a] == 0);
    let y = match call(&x, &axes, keepdim) {
        Ok(y) => y,
        // A maximum of nothing is an error, as it should be.
        Err(_) if empty_rows => return None,
        Err(e) => return Some(format!("{case}: {e}")),
    };
    let sizes = |axes: &[usize]| axes.iter().map(|&a| shape[a]).collect::<Vec<_>>();
    let want_shape: Vec<usize> = match keepdim {
        true => (0..shape.len()).map(|a| if gone[a] { 1 } else { shape[a] }).collect(),
        false => sizes(&kept),
    };
    if y.shape().to_vec() != want_shape {
        return Some(format!("{case}: the result has {}", y.shape()));
    }
    let row = |at: &Vec<usize>| {
        let element = |within: &Vec<usize>| {
            let mut index = vec![0; shape.len()];
            kept.iter().zip(at).for_each(|(&a, &i)| index[a] = i);
            inner.iter().zip(within).for_each(|(&a, &i)| index[a] = i);
            x.at::<f64>(&index)
        };
        let elements: Vec<f64> = indices(&sizes(&inner)).iter().map(element).collect();
        call(&Tensor::from(elements), &[0], false).unwrap_or_else(|e| panic!("{e}")).item()
    };
    let want: Vec<f64> = match axes.is_empty() {
        // No axes: each element is a row of its own.
        true => indices(&shape)
            .iter()
            .map(|at| {
                call(&Tensor::from([x.at::<f64>(at)]), &[0], false)
                    .unwrap_or_else(|e| panic!("{e}"))
                    .item()
            })
            .collect(),
        false => indices(&sizes(&kept)).iter().map(row).collect(),
    };
    let count: usize = sizes(&inner).iter().product();
    let modes = |g: &mut Generator| {
        let f = |x: &[Tensor]| call(&x[0], &axes, keepdim).unwrap_or_else(|e| panic!("{e}"));
        (count >= fewest).then(|| modes_agree(f, std::slice::from_ref(&x), g)).flatten()
    };
    difference("value", &y, &Tensor::from_slice(&want, y.shape()), 1e-13)
        .or_else(|| modes(g))
        .map(|why| format!("{case}: {why}"))
}

#[test]
fn reductions_on_random_shapes() {
    let mut failures = Vec::new();
    let family: Vec<_> = table().filter(|e| e.family == Family::Reduce).collect();
    for entry in &family {
        let listed = REDUCTIONS.iter().any(|(n, ..)| *n == entry.name)
            || NOT_REDUCTIONS.iter().any(|(n, _)| *n == entry.name);
        if !listed {
            failures.push(format!("{}: in neither list of this file", entry.name));
        }
    }
    for (name, fewest, call) in REDUCTIONS {
        for seed in 0..CASES {
            let run = || reduction_case(*call, *fewest, &mut Generator::manual_seed(seed));
            let found =
                catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|p| Some(panic_text(&*p)));
            failures.extend(found.map(|why| format!("{name}, seed {seed}: {why}")));
        }
    }
    report("reductions on random shapes", failures);
}
