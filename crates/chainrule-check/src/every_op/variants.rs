//! The same op on the same numbers in another layout, or in f32, gives the same result.

use super::{On, difference, difference_above, each_sample, largest, probe};
use crate::error::Result;
use crate::ops::layouts::{LAYOUTS, copy, same_in_layout, same_when_expanded, value_and_gradients};
use crate::ops::needs_different_rows;
use crate::tensor::Tensor;
use chainrule_core::ops::{Entry, Family, Sample};
use chainrule_core::{DType, Shape};

fn run(sample: &Sample, inputs: &[Tensor], v: &Tensor) -> (Tensor, Vec<Tensor>) {
    value_and_gradients(sample, inputs, v).unwrap_or_else(|e| panic!("{e}"))
}

fn found(failures: Result<Vec<String>>) -> Vec<String> {
    failures.unwrap_or_else(|e| vec![e.to_string()])
}

#[test]
fn views_give_the_same_as_copies() {
    let known =
        |s: &Sample| !s.floats().is_empty() && s.floats().iter().all(|x| x.dtype() == DType::F64);
    each_sample(
        "inputs as views",
        |_, s| known(s),
        |_, s, g| (0..LAYOUTS).flat_map(|which| found(same_in_layout(s, which, g))).collect(),
    );
}

#[test]
fn expanded_inputs_give_the_same_as_copies() {
    let singular = |e: &Entry, s: &Sample| needs_different_rows(e) && s.inputs[0].rank() == 2;
    each_sample(
        "expanded inputs",
        |e, s| !s.kink && !s.floats().is_empty() && !singular(e, s),
        |_, s, g| found(same_when_expanded(s, g)),
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
            // Values that cancel (a loss near 0, a normalised gradient) are right to the size of
            // their terms.
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

/// An elementwise op does the same to every copy of a small input, however many there are: large
/// arrays are split among threads.
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
