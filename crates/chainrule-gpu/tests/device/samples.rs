//! Every op of the table on its samples, forward and backward, in f64 and in f32.

use std::collections::BTreeMap;

use chainrule::program::Program;
use chainrule::{DType, Generator, Result, Tensor};
use chainrule_core::ops::table;
use chainrule_gpu::{Dialect, KernelModule};

use crate::common::{Case, apart, bytes, check, given};

/// Ops without a kernel, or whose backward rule has none.
const WITHOUT: &str = include_str!("without.txt");

/// Relative changes of inputs that show how results depend on them.
const NUDGES: [f64; 2] = [1.0, -1.0];

/// The result, and the gradients that a program of it gives.
pub fn with_gradients(
    f: &dyn Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>> {
    let own = |x: &Tensor| if x.dtype().is_float() { x.parameter() } else { x.clone() };
    let inputs: Vec<Tensor> = inputs.iter().map(own).collect();
    let y = f(&inputs)?;
    if !y.requires_grad() {
        return Ok(vec![y]);
    }
    let n = y.numel();
    let upstream = Tensor::linspace(-0.75, 1.0, n.max(1)).to_dtype(y.dtype());
    let upstream = if n == 0 { y.zeros_like() } else { upstream.try_reshape(y.shape())? };
    (&y * upstream).sum_all().try_backward()?;
    Ok([y].into_iter().chain(inputs.iter().filter_map(Tensor::grad)).collect())
}

pub fn in_dtype(x: &Tensor, dtype: DType) -> Tensor {
    if x.dtype().is_float() { x.to_dtype(dtype) } else { x.clone() }
}

fn numbers(all: &[Tensor]) -> Vec<Vec<f64>> {
    all.iter().map(Tensor::to_f64_vec).collect()
}

fn worst(a: &[f64], b: &[f64]) -> f64 {
    let finite = a.iter().zip(b).map(|(a, b)| apart(*a, *b)).filter(|d| d.is_finite());
    finite.fold(0.0, f64::max)
}

/// The distance that each result may have from the processor's: a few roundings of the largest
/// element, what a rounding of the inputs changes, and what roundings inside add up to on the
/// processor.
fn tolerances(
    run: &dyn Fn(&[Tensor]) -> Option<Vec<Tensor>>,
    inputs: &[Tensor],
    dtype: DType,
    got: &[Vec<f64>],
) -> Vec<f64> {
    let eps = if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let wide: Vec<Tensor> = inputs.iter().map(|x| in_dtype(x, DType::F64)).collect();
    let reference = run(&wide).map(|all| numbers(&all));
    let mut out: Vec<f64> = got
        .iter()
        .map(|all| {
            let size = all.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
            32.0 * eps * size.max(f64::MIN_POSITIVE)
        })
        .collect();
    let Some(reference) = reference.filter(|r| r.len() == got.len()) else { return out };
    // Roundings inside, as they add up in f32, in roundings of this dtype.
    let narrow: Vec<Tensor> = wide.iter().map(|x| in_dtype(x, DType::F32)).collect();
    if let Some(all) = run(&narrow).map(|all| numbers(&all)).filter(|a| a.len() == got.len()) {
        let share = eps / f64::from(f32::EPSILON);
        (0..got.len()).for_each(|i| out[i] += 16.0 * share * worst(&all[i], &reference[i]));
    }
    for nudge in NUDGES {
        let nudged = |(k, x): (usize, &Tensor)| match x.dtype().is_float() {
            true => {
                let signs = (0..x.numel()).map(|i| if (i + k) % 2 == 0 { nudge } else { -nudge });
                let signs: Vec<f64> = signs.map(|s| 1.0 + s * 4.0 * eps).collect();
                x * Tensor::from_slice(&signs, x.shape())
            }
            false => x.clone(),
        };
        let moved: Vec<Tensor> = wide.iter().enumerate().map(nudged).collect();
        if let Some(all) = run(&moved).map(|all| numbers(&all)).filter(|a| a.len() == got.len()) {
            (0..got.len()).for_each(|i| out[i] += 4.0 * worst(&all[i], &reference[i]));
        }
    }
    out
}

/// The cases, and the ops without a kernel with the reason.
pub fn cases() -> (Vec<Case>, BTreeMap<String, String>) {
    let (mut cases, mut without) = (Vec::new(), BTreeMap::new());
    for entry in table() {
        for sample in (entry.samples)(&mut Generator::manual_seed(5)) {
            let call = &*sample.call;
            for (backward, name) in
                [(false, entry.name.to_string()), (true, format!("{} backward", entry.name))]
            {
                let f = |x: &[Tensor]| match backward {
                    true => with_gradients(&|x| call(x), x),
                    false => Ok(vec![call(x)?]),
                };
                // Digits show a wrong formula in f64, and dtypes matter in f32.
                for dtype in [DType::F64, DType::F32] {
                    if (dtype == DType::F64) != backward {
                        continue;
                    }
                    let inputs: Vec<Tensor> =
                        sample.inputs.iter().map(|x| in_dtype(x, dtype)).collect();
                    match case(&f, &inputs, dtype, Dialect::Cuda) {
                        Ok(Some(mut case)) => {
                            case.name = format!("{name}, {}, {}", sample.note, dtype.name());
                            cases.push(case);
                        }
                        Ok(None) => {}
                        Err(e) => {
                            let why = format!("{}: {e}", sample.note);
                            without.entry(name.clone()).or_insert(why);
                        }
                    }
                }
            }
        }
    }
    (cases, without)
}

/// A case; nothing for a program that cannot be traced, or that draws.
pub fn case(
    f: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[Tensor],
    dtype: DType,
    dialect: Dialect,
) -> Result<Option<Case>> {
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let pairs = names.iter().map(String::as_str).zip(inputs);
    let Ok(program) = Program::trace(pairs, f) else { return Ok(None) };
    if program.list().iter().any(|i| i.op.generator().is_some()) {
        return Ok(None);
    }
    let module = KernelModule::new(&program, dialect)?;
    let want = numbers(&program.run(&inputs.iter().collect::<Vec<_>>()).unwrap());
    let run = |x: &[Tensor]| f(x).ok();
    let within = tolerances(&run, inputs, dtype, &want);
    let states = crate::common::cells(&program);
    let given = given(&module, inputs, &states);
    debug_assert!(inputs.iter().all(|x| !bytes(x).is_empty() || x.numel() == 0));
    let (name, inputs) = (String::new(), inputs.to_vec());
    Ok(Some(Case { name, module, given, want, within, program, inputs }))
}

#[test]
fn ops_give_the_same_values_as_kernels() {
    let (cases, without) = cases();
    let found: Vec<&str> = without.keys().map(String::as_str).collect();
    let op = |name: &str| name.trim_end_matches(" backward").to_string();
    // Decompositions are in the table with a feature.
    let known = WITHOUT.lines().filter(|name| table().any(|entry| entry.name == op(name)));
    let known: Vec<&str> = known.collect();
    println!("{} ops in the table, {} cases", table().count(), cases.len());
    if std::env::var_os("CHAINRULE_WRITE").is_some() {
        std::fs::write("tests/device/without.txt", found.join("\n") + "\n").unwrap();
        without.iter().for_each(|(name, why)| println!("{name}: {why}"));
    } else {
        assert_eq!(found, known, "run with CHAINRULE_WRITE=1 to write without.txt: {without:?}");
    }
    let wrong = check(&cases, "samples");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
