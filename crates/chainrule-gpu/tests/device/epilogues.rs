//! Epilogues of the device's library of products, by C++ in its place, and that they are there only
//! where nothing else reads the product.

use chainrule::program::{Program, Simplify};
use chainrule::{DType, Generator, Result, Tensor};
use chainrule_gpu::{
    DeviceLaunch, Dialect, Epilogues, KernelModule, Precision, ProductFunction, ProductLaunch,
    Products,
};

use crate::common::{Case, check, given};
use crate::samples::{in_dtype, with_gradients};

fn products(module: &KernelModule) -> Vec<&ProductLaunch> {
    module
        .launches
        .iter()
        .filter_map(|l| match l {
            DeviceLaunch::Product(p) => Some(&**p),
            DeviceLaunch::Kernel(_) => None,
        })
        .collect()
}

/// A function with its gradients as kernels of a precision, beside f64.
fn case(
    name: &str,
    f: &dyn Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[Tensor],
    precision: Precision,
    epilogues: Epilogues,
) -> Case {
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let pairs = names.iter().map(String::as_str).zip(inputs);
    let program = Program::trace(pairs, |x: &[Tensor]| with_gradients(f, x)).unwrap();
    let program = program.explain_with(name, &Simplify::new()).unwrap().simplified.program;
    let wide: Vec<Tensor> = inputs.iter().map(|x| in_dtype(x, DType::F64)).collect();
    let all = with_gradients(f, &wide).unwrap();
    let want: Vec<Vec<f64>> = all.iter().map(Tensor::to_f64_vec).collect();
    let size = |w: &Vec<f64>| w.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    // Operands, results and gradients of bf16 have 8 bits; a wrong place is off by about 1.
    let part = if precision == Precision::Bf16 { 0.03 } else { 1e-5 };
    let within = want.iter().map(|w| part * size(w)).collect();
    let products = Products { precision, from: 1, epilogues, ..Products::default() };
    let module = KernelModule::with_products(&program, Dialect::Cuda, products).unwrap();
    let (given, inputs) = (given(&module, inputs, &[]), inputs.to_vec());
    let name = format!("{name} in {precision}");
    Case { name, module, given, want, within, program, inputs }
}

/// Arguments of `block`: rows, two layers with their biases, and what is added.
fn arguments(rows: usize, width: usize, inner: usize) -> Vec<Tensor> {
    let mut g = Generator::manual_seed(12);
    let mut draw = |dims: &[usize]| &Tensor::randn(dims, DType::F32, &mut g) * 0.5;
    vec![
        draw(&[2, rows, width]),
        draw(&[width, inner]),
        draw(&[inner]),
        draw(&[inner, width]),
        draw(&[width]),
    ]
}

/// The second half of a layer of a language model.
fn block(x: &[Tensor]) -> Result<Tensor> {
    let h = x[0].try_layer_norm(x[0].shape()[2], None, None, 1e-5)?;
    let h = h.try_matmul(&x[1])?.try_add(&x[2])?.try_gelu_tanh()?;
    x[0].try_add(&h.try_matmul(&x[3])?.try_add(&x[4])?)
}

#[test]
fn blocks_with_epilogues_are_those_of_f64() {
    let mut cases = Vec::new();
    let only = |bias, added, gelu| Epilogues { bias, added, gelu };
    for (rows, width, inner) in [(72, 16, 24), (3, 16, 24), (1, 8, 8), (5, 24, 12)] {
        let x = arguments(rows, width, inner);
        for precision in [Precision::F32, Precision::Tf32, Precision::Bf16] {
            for epilogues in [
                Epilogues::ALL,
                Epilogues::NONE,
                only(true, false, false),
                only(false, true, false),
                only(true, false, true),
                only(true, true, false),
            ] {
                let name = format!("[{rows}, {width}, {inner}] with {epilogues:?}");
                cases.push(case(&name, &block, &x, precision, epilogues));
            }
        }
    }
    let wrong = check(&cases, "epilogues");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_block_has_the_epilogues_that_its_precision_admits() {
    // Columns of so many rows are summed as they were rounded.
    let x = arguments(72, 16, 24);
    let of = |precision| case("block", &block, &x, precision, Epilogues::ALL);
    for precision in [Precision::F32, Precision::Tf32] {
        let whole = of(precision);
        let all = products(&whole.module);
        let kind = |p: &&&ProductLaunch| (p.bias.is_some(), p.added.is_some(), p.function);
        let count = |want| all.iter().filter(|p| kind(p) == want).count();
        let plain = ProductFunction::Identity;
        assert_eq!([count((true, false, plain)), count((true, true, plain))], [1, 1]);
        assert!(all.iter().all(|p| p.function == plain && p.before.is_none()));
    }
    let whole = of(Precision::Bf16);
    let all = products(&whole.module);
    let one = |f| all.iter().find(|p| p.function == f).copied().unwrap();
    let (gelu, slope) = (one(ProductFunction::Gelu), one(ProductFunction::GeluSlope));
    assert_eq!(gelu.before.as_ref().unwrap().buffer, slope.before.as_ref().unwrap().buffer);
    let dtype = |p: &ProductLaunch| p.matrices().iter().map(|m| m.dtype).collect::<Vec<_>>();
    assert!(dtype(gelu).iter().all(|&d| d == DType::BF16), "{gelu:?}");
    assert!(gelu.bias.is_some() && slope.bias.is_none());
    let sum = all.iter().find(|p| p.added.is_some()).unwrap();
    use DType::{BF16, F32};
    assert_eq!(dtype(sum), [BF16, BF16, F32, F32, F32]);
    let text = whole.module.text();
    assert!(text.contains(", gelu of before_gelu\n"), "{text}");
    assert!(text.contains(", by the slope of gelu at before_gelu\n"), "{text}");
}

/// gelu by erf, the value before read by others, a bias along rows, a product that is given back.
#[test]
fn what_others_read_or_the_library_lacks_stays_a_kernel() {
    let x = arguments(3, 16, 24);
    type Maker<'a> = (&'a str, &'a dyn Fn(&[Tensor]) -> Result<Tensor>);
    let erf: Maker = ("erf", &|x| {
        let h = x[0].try_matmul(&x[1])?.try_add(&x[2])?.try_gelu()?;
        h.try_matmul(&x[3])
    });
    let twice: Maker = ("twice", &|x| {
        let p = x[0].try_matmul(&x[1])?;
        p.try_add(&x[2])?.try_gelu_tanh()?.try_mul(&p)
    });
    let rows: Maker = ("rows", &|x| {
        let column = x[4].try_narrow(0, 0, 3)?.try_reshape([3, 1])?;
        x[0].try_matmul(&x[1])?.try_add(&column)?.try_tanh()
    });
    let mut cases = Vec::new();
    for precision in [Precision::F32, Precision::Bf16] {
        for (name, f) in [erf, twice, rows] {
            let case = case(name, f, &x, precision, Epilogues::ALL);
            for p in products(&case.module) {
                assert_eq!(p.function, ProductFunction::Identity, "{}: {p:?}", case.name);
                let plain = name != "erf" || precision == Precision::Bf16;
                assert!(!plain || !p.is_finished(), "{}: {p:?}", case.name);
            }
            cases.push(case);
        }
    }
    let wrong = check(&cases, "no-epilogues");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
