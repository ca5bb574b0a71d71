//! The same op on the same numbers in another layout, or in f32, gives the same result.

use super::{difference, difference_above, each_sample, largest, probe};
use crate::autograd::grad_of;
use crate::ops::{Entry, Family, Sample};
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::{DType, Shape, Slice};

/// The value of a sample and the gradients of its inputs, from a fixed upstream gradient.
fn run(sample: &Sample, inputs: &[Tensor], v: &Tensor) -> (Tensor, Vec<Tensor>) {
    let y = sample.on(inputs);
    let gradients = if y.requires_grad() {
        let v = v.to_dtype(y.dtype());
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        grad_of(&y, &v, &inputs, false).unwrap_or_else(|e| panic!("{e}"))
    } else {
        vec![None; inputs.len()]
    };
    let dense = |(g, x): (Option<Tensor>, &Tensor)| g.unwrap_or_else(|| x.zeros_like());
    let gradients = gradients.into_iter().zip(inputs).map(dense).collect();
    (y.detach(), gradients)
}

/// A leaf, and the view of it that is wanted.
type Seen = (&'static str, Tensor, fn(&Tensor) -> Tensor);

/// Leaves that hold `x` in another order or with gaps, each with the view that gives `x` back.
fn layouts(x: &Tensor) -> Vec<Seen> {
    fn turned(x: &Tensor) -> Tensor {
        x.permute(&(0..x.rank() as i64).rev().collect::<Vec<_>>())
    }
    fn flipped(x: &Tensor) -> Tensor {
        let back = Slice::Range { start: None, end: None, step: -1 };
        x.slice(&vec![back; x.rank()])
    }
    fn thinned(x: &Tensor) -> Tensor {
        x.slice(&[Slice::Ellipsis, Slice::Range { start: Some(1), end: None, step: 2 }])
    }
    fn copied(x: &Tensor) -> Tensor {
        Tensor::from_slice(&x.to_vec::<f64>(), x.shape())
    }
    if x.rank() == 0 {
        let pair = Tensor::from([x.item() + 7.0, x.item()]);
        return vec![("a position of a larger leaf", pair, |leaf| leaf.slice(&[Slice::At(1)]))];
    }
    // Every second position along the last axis; the others hold numbers that must not be seen.
    let shape: Vec<usize> = x.shape().iter().copied().chain([1]).collect();
    let mut doubled = x.shape().to_vec();
    *doubled.last_mut().expect("rank 1 or more") *= 2;
    let wide = x.reshape(shape.as_slice());
    let gaps = Tensor::cat(&[&(&wide * 0.5 + 7.0), &wide], -1).reshape(doubled.as_slice());
    vec![
        ("transposed", copied(&turned(x)), turned),
        ("backward", copied(&flipped(x)), flipped),
        ("every second", copied(&gaps), thinned),
    ]
}

/// One layout for all inputs: value and gradients as from contiguous inputs.
fn same_in_layout(sample: &Sample, which: usize, g: &mut Generator) -> Vec<String> {
    let floats = sample.floats();
    let plain: Vec<Tensor> = floats.iter().map(|x| copy(x).parameter()).collect();
    let y = sample.on(&plain);
    let v = probe(y.shape(), DType::F64, g);
    let (value, gradients) = run(sample, &plain, &v);
    let (mut name, mut leaves, mut views) = ("", Vec::new(), Vec::new());
    for x in &floats {
        let mut all = layouts(x);
        let (n, leaf, view) = all.swap_remove(which.min(all.len() - 1));
        name = n;
        leaves.push(leaf.parameter());
        views.push(view);
    }
    let seen: Vec<Tensor> = leaves.iter().zip(&views).map(|(leaf, view)| view(leaf)).collect();
    let y = sample.on(&seen);
    let mut failures: Vec<String> =
        difference(&format!("value, {name}"), &y, &value, 1e-13).into_iter().collect();
    if y.requires_grad() {
        y.backward_with().gradient(&v.to_dtype(y.dtype())).run().unwrap_or_else(|e| panic!("{e}"));
    }
    for (i, (leaf, view)) in leaves.iter().zip(&views).enumerate() {
        let g = leaf.grad().unwrap_or_else(|| leaf.zeros_like());
        let what = format!("gradient of input {i}, {name}");
        failures.extend(difference(&what, &view(&g), &gradients[i], 1e-13));
        // Nothing flows to the positions that the view leaves out.
        let (all, part) = (size(&g), size(&gradients[i]));
        if (all - part).abs() > 1e-12 * part {
            failures.push(format!("{what}: {all:e} in the leaf, {part:e} in its view"));
        }
    }
    failures
}

/// The sum of magnitudes.
fn size(x: &Tensor) -> f64 {
    x.to_f64_vec().iter().map(|x| x.abs()).sum()
}

fn copy(x: &Tensor) -> Tensor {
    Tensor::from_slice(&x.to_f64_vec(), x.shape()).to_dtype(x.dtype())
}

/// Inputs that are one row (or element) stretched along the first axis: as from a copy, and the leaf gets the sum.
fn same_when_expanded(sample: &Sample, g: &mut Generator) -> Vec<String> {
    let floats = sample.floats();
    if floats.iter().any(|x| x.rank() == 0 || x.shape()[0] == 0) {
        return Vec::new();
    }
    let leaves: Vec<Tensor> = floats.iter().map(|x| copy(&x.narrow(0, 0, 1)).parameter()).collect();
    let expand = |(leaf, x): (&Tensor, &Tensor)| leaf.expand(x.shape());
    let seen: Vec<Tensor> = leaves.iter().zip(&floats).map(expand).collect();
    let plain: Vec<Tensor> = seen.iter().map(|x| copy(x).parameter()).collect();
    let y = sample.on(&plain);
    let v = probe(y.shape(), DType::F64, g);
    let (value, gradients) = run(sample, &plain, &v);
    let y = sample.on(&seen);
    let mut failures: Vec<String> =
        difference("value, expanded", &y, &value, 1e-13).into_iter().collect();
    if y.requires_grad() {
        y.backward_with().gradient(&v.to_dtype(y.dtype())).run().unwrap_or_else(|e| panic!("{e}"));
    }
    for (i, leaf) in leaves.iter().enumerate() {
        let g = leaf.grad().unwrap_or_else(|| leaf.zeros_like());
        let what = format!("gradient of input {i}, expanded");
        // What cancels in the sum is right to the size of its terms.
        let wanted = gradients[i].sum(0, true);
        let apart = size(&(&g - &wanted));
        let close = apart <= 1e-13 * size(&gradients[i]);
        if !close {
            failures
                .push(format!("{what}: {apart:e} apart in total, of {:e}", size(&gradients[i])));
        }
    }
    failures
}

#[test]
fn views_give_the_same_as_copies() {
    let known =
        |s: &Sample| !s.floats().is_empty() && s.floats().iter().all(|x| x.dtype() == DType::F64);
    each_sample(
        "inputs as views",
        |_, s| known(s),
        |_, s, g| (0..3).flat_map(|which| same_in_layout(s, which, g)).collect(),
    );
}

/// Ops on matrices that have no result or gradient where all rows are equal.
const NEED_DIFFERENT_ROWS: &[&str] = &["solve", "inverse", "qr", "det, slogdet"];

#[test]
fn expanded_inputs_give_the_same_as_copies() {
    let singular =
        |e: &Entry, s: &Sample| NEED_DIFFERENT_ROWS.contains(&e.name) && s.inputs[0].rank() == 2;
    each_sample(
        "expanded inputs",
        |e, s| !s.kink && !s.floats().is_empty() && !singular(e, s),
        |_, s, g| same_when_expanded(s, g),
    );
}

#[test]
fn f32_is_close_to_f64() {
    each_sample(
        "f32 against f64",
        |_, s| !s.kink && !s.floats().is_empty(),
        |_, s, g| {
            // The same numbers in both: rounded to f32 first.
            let narrow: Vec<Tensor> = s.floats().iter().map(|x| x.to_dtype(DType::F32)).collect();
            let wide: Vec<Tensor> =
                narrow.iter().map(|x| x.to_dtype(DType::F64).parameter()).collect();
            let narrow: Vec<Tensor> = narrow.iter().map(Tensor::parameter).collect();
            let y = s.on(&wide);
            // The upstream gradient is rounded too, so that only the op's own arithmetic differs.
            let v = probe(y.shape(), DType::F32, g).to_dtype(DType::F64);
            let (want, wanted) = run(s, &wide, &v);
            let (got, gradients) = run(s, &narrow, &v);
            // Where values cancel (a loss near 0, a normalised gradient), they are right to the size of what cancelled.
            let floor = |terms: &[f64]| 8.0 * f64::from(f32::EPSILON) * largest(terms);
            let inputs: Vec<f64> = wide.iter().flat_map(Tensor::to_f64_vec).collect();
            let mut failures: Vec<String> =
                difference_above("value in f32", &got, &want, 1e-5, floor(&inputs))
                    .into_iter()
                    .collect();
            let floor = floor(&v.to_f64_vec());
            for (i, (got, want)) in gradients.iter().zip(&wanted).enumerate() {
                let what = format!("gradient of input {i} in f32");
                failures.extend(difference_above(&what, got, want, 1e-5, floor));
            }
            failures
        },
    );
}

/// Elements enough that a map is split among threads, and not a multiple of anything.
const MANY: usize = (1 << 17) + 12_345;

/// `x` repeated until it has `MANY` rows (or elements, if it is 0-d), as a copy.
fn repeated(x: &Tensor) -> Tensor {
    let elements = x.to_f64_vec();
    let all: Vec<f64> = elements.iter().copied().cycle().take(MANY * elements.len()).collect();
    let sizes: Vec<usize> = [MANY].into_iter().chain(x.shape().iter().copied()).collect();
    Tensor::from_slice(&all, sizes.as_slice()).to_dtype(x.dtype())
}

/// An elementwise op does the same to every copy of a small input, however many there are: large arrays are split among threads.
#[test]
fn large_arrays_give_the_same_as_small_ones() {
    let small = |s: &Sample| {
        let sizes: usize = s.floats().iter().map(Tensor::numel).sum();
        !s.kink && s.floats().len() == s.inputs.len() && (1..=12).contains(&sizes)
    };
    let admit = |e: &Entry, s: &Sample| {
        let elementwise = matches!(e.family, Family::Unary | Family::Binary);
        let one_shape = s.inputs.windows(2).all(|x| x[0].shape() == x[1].shape());
        elementwise && small(s) && one_shape && s.inputs[0].rank() == 0
    };
    each_sample("large arrays", admit, |_, s, g| {
        let once: Vec<Tensor> = s.floats().iter().map(Tensor::parameter).collect();
        let many: Vec<Tensor> = s.floats().iter().map(|x| repeated(x).parameter()).collect();
        let v = probe(s.on(&once).shape(), DType::F64, g);
        let (value, gradients) = run(s, &once, &v);
        let (values, all) = run(s, &many, &repeated(&v));
        let mut failures: Vec<String> =
            difference("value", &values, &repeated(&value), 1e-14).into_iter().collect();
        for (i, (got, want)) in all.iter().zip(&gradients).enumerate() {
            let what = format!("gradient of input {i}");
            failures.extend(difference(&what, got, &repeated(want), 1e-14));
        }
        failures
    });
}

/// The same where one operand is a row that every row of a large matrix meets, or a single element.
#[test]
fn large_broadcasts_give_the_same_as_copies() {
    let admit = |e: &Entry, s: &Sample| {
        let floats = s.floats();
        e.family == Family::Binary && !s.kink && s.note == "row" && floats.len() == s.inputs.len()
    };
    each_sample("large broadcasts", admit, |_, s, g| {
        let floats = s.floats();
        let rows = MANY / 16;
        let width = floats[0].shape()[1];
        let wide = repeated(&floats[0].narrow(0, 0, 1)).narrow(0, 0, rows).reshape([rows, width]);
        let (wide, row) = (copy(&wide).parameter(), copy(&floats[1]).parameter());
        let v = probe(Shape::new(&[rows, width]), DType::F64, g);
        let (value, gradients) = run(s, &[wide.clone(), row.clone()], &v);
        let spread = copy(&row.detach().expand([rows, width])).parameter();
        let (want, wanted) = run(s, &[wide, spread], &v);
        let mut failures: Vec<String> =
            difference("value", &value, &want, 1e-14).into_iter().collect();
        failures.extend(difference("gradient of the matrix", &gradients[0], &wanted[0], 1e-14));
        failures.extend(difference(
            "gradient of the row",
            &gradients[1],
            &wanted[1].sum(0, false),
            1e-12,
        ));
        failures
    });
}
