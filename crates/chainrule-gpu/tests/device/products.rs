//! Products of a device's library: operands as strided matrices, rounded and padded.

use chainrule::program::Program;
use chainrule::{DType, Generator, Result, Tensor, try_autocast};
use chainrule_gpu::{DeviceLaunch, Dialect, KernelModule, Precision, Products};

use crate::common::{Case, cells, check, given};
use crate::samples::with_gradients;

/// Random programs whose products are looked at.
const PROGRAMS: u64 = 2000;

/// The case with all products by the library; nothing where it has none.
fn by_library(mut case: Case, precision: Precision) -> Option<Case> {
    let products = Products { precision, from: 1, attention: true, ..Products::default() };
    case.module = KernelModule::with_products(&case.program, Dialect::Cuda, products).unwrap();
    case.given = given(&case.module, &case.inputs, &cells(&case.program));
    let is_product = |l: &DeviceLaunch| matches!(l, DeviceLaunch::Product(_));
    case.module.launches.iter().any(is_product).then_some(case)
}

#[test]
fn products_of_ops_are_those_of_the_library() {
    let (cases, _) = crate::samples::cases();
    let all = cases.into_iter().filter_map(|c| by_library(c, Precision::F32));
    let cases: Vec<Case> = all.collect();
    println!("{} cases", cases.len());
    assert!(cases.len() > 80, "{} cases", cases.len());
    let wrong = check(&cases, "library");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn products_of_random_programs_are_those_of_the_library() {
    let made = (0..PROGRAMS).filter_map(|seed| crate::random::made(seed, Dialect::Cuda));
    // Padding for TF32 changes no digit, and its rounding is the device's own.
    let precision = |i: usize| [Precision::F32, Precision::Tf32][i % 2];
    let all = made.enumerate().filter_map(|(i, c)| by_library(c, precision(i)));
    let cases: Vec<Case> = all.collect();
    println!("{} cases", cases.len());
    assert!(cases.len() > 50, "{} cases", cases.len());
    let wrong = check(&cases, "library-random");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// An operand of bf16 as a number of f64.
fn rounded(x: &Tensor) -> Tensor {
    x.detach().to_dtype(DType::BF16).to_dtype(DType::F64)
}

/// Views on both sides, a stack, and sizes that are padded.
fn mixed(x: &[Tensor]) -> Result<Tensor> {
    let (rows, turned) = (x[0].try_reshape([2, 3, 70])?, x[1].try_transpose(0, 1)?);
    let first = rows.try_matmul(&turned)?;
    first.try_matmul(&x[2])
}

#[test]
fn operands_and_results_of_bf16_are_rounded() {
    let mut g = Generator::manual_seed(9);
    let mut draw = |dims: &[usize]| Tensor::randn(dims, DType::F32, &mut g);
    let inputs = [draw(&[6, 70]), draw(&[77, 70]), draw(&[77, 65])];
    let f = |x: &[Tensor]| with_gradients(&mixed, x);
    let program = Program::trace([("a", &inputs[0]), ("b", &inputs[1]), ("c", &inputs[2])], f);
    let program = program.unwrap();
    // Each product by itself, of operands rounded to bf16, in f64.
    let [a, b, c] = [0, 1, 2].map(|i| rounded(&inputs[i]));
    let first = a.matmul(&b.transpose(0, 1));
    let middle = rounded(&first.to_dtype(DType::F32));
    let y = middle.matmul(&c);
    let upstream = Tensor::linspace(-0.75, 1.0, y.numel()).to_dtype(DType::F32);
    let d = rounded(&upstream.reshape([6, 65]));
    let d_first = rounded(&d.matmul(&c.transpose(0, 1)).to_dtype(DType::F32));
    let of_a = d_first.matmul(&b);
    let of_b = d_first.transpose(0, 1).matmul(&a);
    let of_c = middle.transpose(0, 1).matmul(&d);
    let all = [y, of_a, of_b, of_c].map(|x| rounded(&x.to_dtype(DType::F32)));
    let want: Vec<Vec<f64>> = all.iter().map(Tensor::to_f64_vec).collect();
    let size = |w: &Vec<f64>| w.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    // A value may round to the neighbour where f32 and f64 part.
    let within = want.iter().map(|w| size(w) / 256.0).collect();
    let (name, inputs) = ("bf16".to_string(), inputs.to_vec());
    let products =
        Products { precision: Precision::Bf16, from: 1, attention: true, ..Products::default() };
    let module = KernelModule::with_products(&program, Dialect::Cuda, products).unwrap();
    let product = |l: &DeviceLaunch| match l {
        DeviceLaunch::Product(p) => Some((**p).clone()),
        DeviceLaunch::Kernel(_) => None,
    };
    let products: Vec<_> = module.launches.iter().filter_map(product).collect();
    let narrow = |m: &chainrule_gpu::StridedMatrix| m.dtype == DType::BF16;
    assert!(products.iter().all(|p| narrow(&p.a) && narrow(&p.b) && narrow(&p.out)));
    let sizes: Vec<_> = products.iter().map(|p| p.sizes).collect();
    assert!(sizes.contains(&[6, 80, 72]), "{sizes:?}");
    let given = given(&module, &inputs, &[]);
    let case = Case { name, module, given, want, within, program, inputs };
    let wrong = check(&[case], "bf16");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Programs that were traced with narrow operands keep them: products by the library, padded.
#[test]
fn products_of_programs_under_autocast_are_of_bf16() {
    let mut g = Generator::manual_seed(10);
    let mut draw = |dims: &[usize]| Tensor::randn(dims, DType::F32, &mut g);
    let inputs = [draw(&[6, 70]), draw(&[77, 70]), draw(&[77, 65])];
    let f = |x: &[Tensor]| with_gradients(&mixed, x);
    let traced = try_autocast(DType::BF16, || {
        Program::trace([("a", &inputs[0]), ("b", &inputs[1]), ("c", &inputs[2])], f)
    });
    let program = traced.unwrap().unwrap();
    let want = program.run(&inputs.iter().collect::<Vec<_>>()).unwrap();
    let want: Vec<Vec<f64>> = want.iter().map(Tensor::to_f64_vec).collect();
    let size = |w: &Vec<f64>| w.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let within = want.iter().map(|w| size(w) / 64.0).collect();
    let products = Products { from: 1, ..Products::default() };
    let module = KernelModule::with_products(&program, Dialect::Cuda, products).unwrap();
    let narrow = |m: &chainrule_gpu::StridedMatrix| m.dtype == DType::BF16;
    let mut count = 0;
    for launch in &module.launches {
        if let DeviceLaunch::Product(p) = launch {
            count += 1;
            assert!(narrow(&p.a) && narrow(&p.b), "{p:?}");
            let whole = p.sizes.iter().all(|&n| n < 64 || n.is_multiple_of(8));
            assert!(whole, "{:?}", p.sizes);
        }
    }
    assert!(count >= 4, "{count}");
    let given = given(&module, &inputs, &[]);
    let (name, inputs) = ("autocast".to_string(), inputs.to_vec());
    let wrong = check(&[Case { name, module, given, want, within, program, inputs }], "autocast");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
