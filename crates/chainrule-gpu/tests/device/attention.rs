//! Attention that does not hold the square, beside the plain one in f64.

use chainrule::program::Program;
use chainrule::{Attention, DType, Generator, Result, Tensor};
use chainrule_gpu::{DeviceLaunch, Dialect, KernelModule, Precision, Products};

use crate::common::{Case, check, given};
use crate::samples::with_gradients;

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

fn case(
    name: &str,
    f: &dyn Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[Tensor],
    (precision, part): (Precision, f64),
) -> Case {
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let pairs = names.iter().map(String::as_str).zip(inputs);
    let program = Program::trace(pairs, |x: &[Tensor]| with_gradients(f, x)).unwrap();
    let to = if precision == Precision::Bf16 { DType::BF16 } else { DType::F32 };
    let rounded: Vec<Tensor> = inputs.iter().map(|x| x.to_dtype(to).to_dtype(DType::F64)).collect();
    let all = with_gradients(f, &rounded).unwrap();
    let want: Vec<Vec<f64>> = all.iter().map(Tensor::to_f64_vec).collect();
    let size = |w: &Vec<f64>| w.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    // Weights and upstream gradients are rounded to 8 bits too, where the sums of tens of them are
    // of either sign; a wrong place is off by about 1.
    let within = want.iter().map(|w| part * size(w)).collect();
    let products = Products { precision, from: usize::MAX, attention: true };
    let module = KernelModule::with_products(&program, Dialect::Cuda, products).unwrap();
    let given = given(&module, inputs, &[]);
    let inputs = inputs.to_vec();
    let name = format!("{name} in {precision}");
    Case { name, module, given, want, within, program, inputs }
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
    for case in &cases {
        let calls = ["attention_forward<", "attention_queries<", "attention_keys<"];
        let attends = |l: &DeviceLaunch| {
            l.kernel().is_some_and(|k| calls.iter().any(|call| k.text.contains(call)))
        };
        let count = case.module.launches.iter().filter(|l| attends(l)).count();
        assert_eq!(count, 3, "{}", case.name);
        let square = |b: &chainrule_gpu::Buffer| b.dims.len() > 1 && b.dims.ends_with(&[70, 70]);
        assert!(!case.module.buffers.iter().any(square), "{}", case.name);
    }
    let wrong = check(&cases, "attention");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
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
