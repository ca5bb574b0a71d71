//! Kernels whose threads compute several neighbours each, at sizes where they would not be taken:
//! ops, random programs, rows of all lengths, views that are not aligned, and what is empty.

use chainrule::program::Program;
use chainrule::{DType, Generator, Result, Tensor};
use chainrule_gpu::{DeviceLaunch, Dialect, KernelModule, Precision, Products};

use crate::common::{Case, cells, check, given};
use crate::samples::{case, with_gradients};

/// Random programs that are looked at.
const PROGRAMS: u64 = 1000;

/// The case with neighbours from one element on.
fn wide(mut case: Case, products: Option<Products>) -> Case {
    case.module = KernelModule::with_wide(&case.program, Dialect::Cuda, products, 1).unwrap();
    case.given = given(&case.module, &case.inputs, &cells(&case.program));
    case
}

/// Kernels of a case whose threads compute neighbours.
fn neighbours(case: &Case) -> usize {
    let texts = case.module.launches.iter().filter_map(DeviceLaunch::kernel);
    texts.filter(|k| k.text.contains("for (int e = 0;")).count()
}

fn checked(cases: Vec<Case>, least: usize, tag: &str) {
    checked_as_they_are(cases.into_iter().map(|c| wide(c, None)).collect(), least, tag);
}

fn checked_as_they_are(cases: Vec<Case>, least: usize, tag: &str) {
    let count: usize = cases.iter().map(neighbours).sum();
    println!("{} cases, {count} kernels of neighbours", cases.len());
    assert!(count > least, "{count} kernels");
    let wrong: Vec<String> = cases.chunks(400).flat_map(|c| check(c, tag)).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn neighbours_of_ops_are_those_of_single_elements() {
    checked(crate::samples::cases().0, 300, "wide");
}

#[test]
fn neighbours_of_sorted_rows_are_those_of_single_elements() {
    checked(crate::long::cases(DType::F32, Dialect::Cuda), 20, "wide-long");
}

#[test]
fn neighbours_of_random_programs_are_those_of_single_elements() {
    let all = (0..PROGRAMS).filter_map(|seed| crate::random::made(seed, Dialect::Cuda));
    checked(all.collect(), 400, "wide-random");
}

#[test]
fn neighbours_of_training_steps_are_those_of_single_elements() {
    let names = ["names", "softmax-ce", "batch-norm"];
    let wide = |p: &Program| KernelModule::with_wide(p, Dialect::Cuda, None, 1).unwrap();
    let cases = names.map(|name| crate::steps::case_of(name, &wide)).into();
    checked_as_they_are(cases, 5, "wide-steps");
}

/// Norms, softmax, running and whole sums of rows, with maps before and behind.
pub fn rows(x: &[Tensor]) -> Result<Tensor> {
    let y = x[0].try_layer_norm(x[1].shape(), Some(&x[1]), Some(&x[2]), 1e-5)?;
    let z = (&y + &x[0]).try_softmax(-1)?;
    let wide = y.try_gelu()?.try_mul(&z.try_sum(&[0][..], true)?)?;
    wide.try_add(&x[0].try_amax(&[1][..], true)?)
}

#[test]
fn rows_of_all_lengths_are_those_of_single_elements() {
    let mut g = Generator::manual_seed(7);
    let mut cases = Vec::new();
    for dtype in [DType::F32, DType::F64] {
        for (height, width) in
            [(3, 32), (5, 33), (2, 100), (130, 64), (1, 255), (3, 1028), (2, 4099)]
        {
            let mut draw = |dims: &[usize]| Tensor::randn(dims, dtype, &mut g);
            let inputs = [draw(&[height, width]), draw(&[width]), draw(&[width])];
            let f = |x: &[Tensor]| with_gradients(&|x: &[Tensor]| rows(x), x);
            let mut made = case(&f, &inputs, dtype, Dialect::Cuda).unwrap().unwrap();
            made.name = format!("rows of [{height}, {width}]");
            cases.push(made);
        }
    }
    checked(cases, 40, "wide-rows");
}

/// Parts of a row that begin anywhere, beside one another, behind padding and turned.
fn views(x: &[Tensor]) -> Result<Tensor> {
    let width = x[0].shape()[1];
    let part = |from: usize| x[0].try_narrow(1, from, width - 8);
    let some = part(1)?.try_mul(&part(4)?)?.try_sub(&part(8)?)?;
    let all = Tensor::try_cat(&[&some, &x[0], &some], 1)?.try_sin()?;
    let stacked = Tensor::try_cat(&[&x[0], &x[0].try_exp()?], 0)?;
    let sum = all.try_matmul(&all.try_transpose(0, 1)?)?;
    let turned = stacked.try_transpose(0, 1)?.try_reshape([2, width / 2, x[0].shape()[0] * 2])?;
    sum.sum_all().try_mul(&turned.try_tanh()?)
}

#[test]
fn views_that_are_not_aligned_are_those_of_single_elements() {
    let mut g = Generator::manual_seed(8);
    let mut cases = Vec::new();
    for (height, width) in [(4, 16), (3, 12), (1, 24), (8, 40), (2, 10)] {
        let inputs = [Tensor::randn([height, width], DType::F32, &mut g)];
        let f = |x: &[Tensor]| with_gradients(&|x: &[Tensor]| views(x), x);
        let mut made = case(&f, &inputs, DType::F32, Dialect::Cuda).unwrap().unwrap();
        made.name = format!("views of [{height}, {width}]");
        cases.push(made);
    }
    checked(cases, 10, "wide-views");
}

/// A layer with its activation and the loss of classes: values that are rounded to bf16.
fn classes(x: &[Tensor]) -> Result<Tensor> {
    let h = x[0].try_matmul(&x[1])?.try_add(&x[2])?.try_gelu_tanh()?;
    let h = h.try_layer_norm(h.shape()[1], None, None, 1e-5)?;
    h.try_matmul(&x[3])?.try_cross_entropy(&x[4])
}

#[test]
fn rounded_values_of_neighbours_are_those_of_f64() {
    let mut g = Generator::manual_seed(9);
    let mut cases = Vec::new();
    for [rows, inner, symbols] in [[130, 64, 65], [6, 40, 72], [1, 8, 3]] {
        let mut draw = |dims: &[usize]| &Tensor::randn(dims, DType::F32, &mut g) * 0.3;
        let mut inputs = vec![draw(&[rows, 16]), draw(&[16, inner]), draw(&[inner])];
        inputs.push(draw(&[inner, symbols]));
        inputs.push(Tensor::randint(0, symbols as i64, [rows], &mut g));
        let f = |x: &[Tensor]| with_gradients(&|x: &[Tensor]| classes(x), x);
        let mut made = case(&f, &inputs, DType::F32, Dialect::Cuda).unwrap().unwrap();
        let wide_inputs: Vec<Tensor> =
            inputs.iter().map(|x| crate::samples::in_dtype(x, DType::F64)).collect();
        made.want = f(&wide_inputs).unwrap().iter().map(Tensor::to_f64_vec).collect();
        let size = |w: &Vec<f64>| w.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        // Operands, results and gradients have 8 bits; a wrong place is off by about 1.
        made.within = made.want.iter().map(|w| 0.03 * size(w).max(0.02)).collect();
        made.name = format!("classes of [{rows}, {inner}, {symbols}]");
        let products = Products {
            precision: Precision::Bf16,
            from: 1,
            attention: true,
            ..Products::default()
        };
        let made = wide(made, Some(products));
        assert!(neighbours(&made) > 5, "{}", neighbours(&made));
        cases.push(made);
    }
    let wrong = check(&cases, "wide-bf16");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
