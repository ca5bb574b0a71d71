//! Attention that does not hold the square, beside the plain one in f64.

use chainrule::program::Program;
use chainrule::{Attention, DType, Generator, Result, Tensor};
use chainrule_gpu::{DeviceLaunch, Dialect, KernelModule, Precision, Products, Source};

use crate::common::{Case, check, given};
use crate::samples::{in_dtype, with_gradients};

mod dropout;
mod masks;
#[cfg(feature = "wgpu")]
mod on_device;

/// Heads of queries, keys and values that stand beside one another in a row, as a model has them.
fn split(x: &Tensor, heads: usize) -> Result<[Tensor; 3]> {
    let (batch, rows, width) = (x.shape()[0], x.shape()[1], x.shape()[2] / 3 / heads);
    let part = |i: usize| -> Result<Tensor> {
        let part = x.try_narrow(2, i * heads * width, heads * width)?;
        part.try_reshape([batch, rows, heads, width])?.try_permute(&[0, 2, 1, 3])
    };
    Ok([part(0)?, part(1)?, part(2)?])
}

/// Precisions and how far results may be off, in parts of the largest.
const PRECISIONS: [(Precision, f64); 3] =
    [(Precision::F32, 1e-5), (Precision::Tf32, 2e-3), (Precision::Bf16, 0.015)];

type Call<'a> = &'a dyn Fn(&[Tensor]) -> Result<Tensor>;

fn case(name: &str, f: Call<'_>, inputs: &[Tensor], precision: (Precision, f64)) -> Case {
    case_like(name, f, f, inputs, precision)
}

/// A case of a function beside another one that gives the same on the processor.
fn case_like(
    name: &str,
    f: Call<'_>,
    reference: Call<'_>,
    inputs: &[Tensor],
    (precision, part): (Precision, f64),
) -> Case {
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let pairs = names.iter().map(String::as_str).zip(inputs);
    let program = Program::trace(pairs, |x: &[Tensor]| with_gradients(f, x)).unwrap();
    let to = if precision == Precision::Bf16 { DType::BF16 } else { DType::F32 };
    let rounded = inputs.iter().map(|x| in_dtype(&in_dtype(x, to), DType::F64));
    let all = with_gradients(reference, &rounded.collect::<Vec<_>>()).unwrap();
    let want: Vec<Vec<f64>> = all.iter().map(Tensor::to_f64_vec).collect();
    let size = |w: &Vec<f64>| w.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    // Weights and upstream gradients are rounded to 8 bits too, where the sums of tens of them are
    // of either sign; a wrong place is off by about 1.
    let largest = want.iter().map(size).fold(0.0, f64::max);
    // All terms of the gradient of a query that sees one key cancel.
    let scale = |w: &Vec<f64>| if size(w) < 1e-9 * largest { largest } else { size(w) };
    let within = want.iter().map(|w| part * scale(w)).collect();
    let products = Products { precision, from: usize::MAX, attention: true, ..Products::default() };
    let module = KernelModule::with_products(&program, Dialect::Cuda, products).unwrap();
    let given = given(&module, inputs, &[]);
    let inputs = inputs.to_vec();
    let name = format!("{name} in {precision}");
    Case { name, module, given, want, within, program, inputs }
}

/// The launches of kernels of attention.
fn attends(case: &Case) -> usize {
    let calls = ["attention_forward<", "attention_queries<", "attention_keys<"];
    let one = |l: &&DeviceLaunch| {
        l.kernel().is_some_and(|k| calls.iter().any(|call| k.text.contains(call)))
    };
    case.module.launches.iter().filter(one).count()
}

/// Runs cases of one attention each, none of which may hold a square of these sizes.
fn check_all(cases: &[Case], square: impl Fn(&Case) -> Option<[usize; 2]>, tag: &str) {
    for case in cases {
        assert_eq!(attends(case), 3, "{}", case.name);
        if let Some(square) = square(case) {
            let is_square = |b: &chainrule_gpu::Buffer| b.dims.ends_with(&square);
            let written = |b: &chainrule_gpu::Buffer| b.source == Source::Kernel && is_square(b);
            assert!(!case.module.buffers.iter().any(written), "{}", case.name);
        }
    }
    let wrong = check(cases, tag);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn attention_is_that_of_the_whole_square() {
    let mut g = Generator::manual_seed(4);
    let mut draw = |dims: &[usize]| Tensor::randn(dims, DType::F32, &mut g);
    let mut cases = Vec::new();
    // A tile and a part, whole tiles, less than a tile, one row.
    for (rows, heads, width) in
        [(70, 2, 32), (200, 1, 64), (9, 3, 16), (1, 1, 48), (70, 1, 128), (40, 1, 80)]
    {
        for options in [Attention::default(), Attention::causal()] {
            let x = draw(&[2, rows, 3 * heads * width]);
            let f = |x: &[Tensor]| {
                let [q, k, v] = split(&x[0], heads)?;
                let y = q.try_attention(&k, &v, &options)?.try_permute(&[0, 2, 1, 3])?;
                y.try_reshape([2, rows, heads * width])
            };
            let name = format!("{rows} rows, {heads} heads of {width}, {options:?}");
            let inputs = [x];
            cases.extend(PRECISIONS.map(|precision| case(&name, &f, &inputs, precision)));
        }
    }
    // Other keys than queries, more of them and less; matrices without heads.
    for (queries, keys) in [(65, 20), (20, 130)] {
        for options in [Attention::default(), Attention::causal()] {
            let all = [draw(&[queries, 16]), draw(&[keys, 16]), draw(&[keys, 16])];
            let f = |x: &[Tensor]| x[0].try_attention(&x[1], &x[2], &options);
            let name = format!("{queries} of {keys}, {options:?}");
            cases.extend(PRECISIONS.map(|precision| case(&name, &f, &all, precision)));
        }
    }
    let square = |c: &Case| c.name.starts_with("70 ").then_some([70, 70]);
    check_all(&cases, square, "attention");
}

/// Wide rows, and other things that the kernels do not take, are computed with the square.
#[test]
fn other_attention_is_computed_with_the_square() {
    let mut g = Generator::manual_seed(4);
    let x = Tensor::randn([5, 144], DType::F32, &mut g);
    let f = |x: &[Tensor]| x[0].try_attention(&x[0], &x[0], &Attention::causal());
    let inputs = [x];
    let cases = PRECISIONS.map(|precision| case("wide", &f, &inputs, precision));
    assert!(cases.iter().all(|c| !c.module.attends));
    assert!(check(&cases, "square").is_empty());
}

/// An attention that the kernels do not take changes no other one.
#[test]
fn an_attention_with_the_square_leaves_others_alone() {
    let mut g = Generator::manual_seed(4);
    let inputs = [[9, 144], [9, 32]].map(|dims| Tensor::randn(dims, DType::F32, &mut g));
    let f = |x: &[Tensor]| {
        let wide = x[0].try_attention(&x[0], &x[0], &Attention::causal())?;
        let narrow = x[1].try_attention(&x[1], &x[1], &Attention::causal())?;
        wide.try_narrow(1, 0, 32)?.try_mul(&narrow)
    };
    let cases = PRECISIONS.map(|precision| case("both", &f, &inputs, precision));
    check_all(&cases, |_| None, "both");
}

/// Rows of any width, and values of another one than queries.
fn widths() -> Vec<Case> {
    let mut g = Generator::manual_seed(5);
    let mut draw = |dims: &[usize]| Tensor::randn(dims, DType::F32, &mut g);
    let mut cases = Vec::new();
    let widths = [(1, 1), (5, 5), (17, 17), (40, 40), (64, 64), (100, 100), (128, 128)];
    let others = [(24, 40), (5, 17), (16, 8), (8, 100)];
    let lengths = [(1, 1), (15, 15), (16, 16), (17, 17), (65, 65), (200, 200), (17, 65)];
    for (i, (deep, wide)) in widths.into_iter().chain(others).enumerate() {
        // Each width with two of the lengths, in turn.
        for (queries, keys) in [lengths[i % 7], lengths[(i + 3) % 7]] {
            let options = [Attention::default(), Attention::causal()][i % 2].clone();
            let all = [draw(&[2, queries, deep]), draw(&[2, keys, deep]), draw(&[2, keys, wide])];
            let f = |x: &[Tensor]| x[0].try_attention(&x[1], &x[2], &options);
            let name = format!("{queries} of {keys}, rows of {deep} and {wide}, {options:?}");
            cases.extend(PRECISIONS.map(|precision| case(&name, &f, &all, precision)));
        }
    }
    // Heads side by side whose rows cannot be loaded at once.
    for (heads, width) in [(3, 5), (2, 40)] {
        let x = [draw(&[2, 19, 3 * heads * width])];
        let f = |x: &[Tensor]| {
            let [q, k, v] = split(&x[0], heads)?;
            let y = q.try_attention(&k, &v, &Attention::causal())?.try_permute(&[0, 2, 1, 3])?;
            y.try_reshape([2, 19, heads * width])
        };
        let name = format!("{heads} heads of {width}");
        cases.extend(PRECISIONS.map(|precision| case(&name, &f, &x, precision)));
    }
    cases
}

#[test]
fn rows_of_any_width_are_those_of_the_whole_square() {
    check_all(&widths(), |_| None, "widths");
}

/// Kernels with each kind of mask and dropout, narrow and wide, for each precision.
#[test]
fn nvrtc_compiles_attention() {
    let mut cases: Vec<Case> = masks::cases().into_iter().step_by(13).collect();
    cases.extend(widths().into_iter().step_by(17));
    cases.extend(dropout::cases().into_iter().step_by(4));
    crate::texts::compile(cases.into_iter().map(|c| (c.name, c.module.text())));
}
