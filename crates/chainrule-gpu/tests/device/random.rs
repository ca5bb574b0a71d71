//! Random programs: odd sizes, empty ones, single numbers, and views of views.
//!
//! `CHAINRULE_FUZZ=10000` sets how many there are.

use chainrule::program::Program;
use chainrule::rng::CounterRng;
use chainrule::{DType, Generator, Result, Tensor};
use chainrule_gpu::{Dialect, KernelModule};

use crate::common::{Case, check, given};
use crate::samples::case;

const PROGRAMS: u64 = 2000;

/// Sizes of axes: none, one, odd ones, and enough for a block to share a row.
const SIZES: [usize; 10] = [0, 1, 1, 2, 3, 5, 7, 17, 33, 70];

/// A number below `n`.
fn below(rng: &mut CounterRng, n: usize) -> usize {
    rng.next_u32() as usize % n.max(1)
}

fn shape(rng: &mut CounterRng) -> Vec<usize> {
    let rank = below(rng, 4);
    // Three long axes would take more time than they show.
    let most = if rank > 2 { 7 } else { SIZES.len() };
    (0..rank).map(|_| SIZES[below(rng, most)]).collect()
}

/// A step of a program on what there is by now; none where it does not fit.
fn step(rng: &mut CounterRng, x: &Tensor, y: &Tensor) -> Option<Tensor> {
    let dims = x.shape().to_vec();
    let rank = dims.len();
    let axis = below(rng, rank) as i64;
    let has_axes = rank > 0;
    let full = x.numel() > 0;
    let out = match below(rng, 30) {
        0 => x.try_tanh(),
        1 => x.try_sigmoid(),
        2 => x.try_sin(),
        3 => (x * 0.25).try_exp(),
        4 => x.try_relu(),
        5 => x.try_gelu(),
        6 => (x * x + 1.0).try_log(),
        7 => (x * x + 0.5).try_sqrt(),
        8 | 9 => x.try_add(y),
        10 | 11 => x.try_mul(y),
        12 => x.try_sub(y),
        13 => x.try_maximum(y),
        14 => x.try_div(&(y * y + 1.0)),
        15 if has_axes => x.try_sum(&[axis as usize][..], below(rng, 2) == 0),
        16 if has_axes && full => x.try_mean(&[axis as usize][..], below(rng, 2) == 0),
        17 if has_axes && full => x.try_amax(&[axis as usize][..], below(rng, 2) == 0),
        18 if has_axes => x.try_softmax(axis),
        19 if has_axes => x.try_log_softmax(axis),
        20 if rank == 2 => x.try_matmul(&x.try_transpose(0, 1).ok()?),
        21 if rank == 2 => x.try_transpose(0, 1),
        22 if rank == 3 => x.try_permute(&[2, 0, 1]),
        23 => x.try_reshape([x.numel()]),
        24 if has_axes && dims[axis as usize] > 1 => x.try_narrow(axis, 1, dims[axis as usize] - 1),
        25 if has_axes => x.try_flip(&[axis as usize][..]),
        26 if has_axes => x.try_cumsum(axis),
        27 if has_axes => Tensor::try_cat(&[x, x], axis),
        28 if rank == 2 && y.shape().rank() == 2 => x.try_matmul(y),
        29 if has_axes => x.try_unsqueeze(axis),
        _ => return None,
    };
    out.ok().filter(|t| t.numel() <= 20_000)
}

/// The results of the program of this seed: a function of its inputs alone.
fn program(seed: u64, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let mut rng = CounterRng::new(seed, 1);
    let own: Vec<Tensor> = inputs.iter().map(Tensor::parameter).collect();
    let mut all = own.clone();
    let steps = 2 + below(&mut rng, 10);
    for _ in 0..steps {
        let recent = all.len().saturating_sub(4);
        let x = all[recent + below(&mut rng, all.len() - recent)].clone();
        let y = all[below(&mut rng, all.len())].clone();
        all.extend(step(&mut rng, &x, &y));
    }
    let last = all[own.len()..].last().unwrap_or(&own[0]).clone();
    last.try_sin()?.sum_all().try_backward()?;
    Ok([last].into_iter().chain(own.iter().filter_map(Tensor::grad)).collect())
}

/// The case of a seed, if it can be traced; in f32 for an odd one.
pub fn made(seed: u64, dialect: Dialect) -> Option<Case> {
    let mut rng = CounterRng::new(seed, 0);
    let mut g = Generator::manual_seed(seed);
    let dtype = if seed.is_multiple_of(2) { DType::F64 } else { DType::F32 };
    let inputs: Vec<Tensor> = (0..1 + below(&mut rng, 3))
        .map(|_| Tensor::randn(shape(&mut rng).as_slice(), dtype, &mut g))
        .collect();
    let f = |x: &[Tensor]| program(seed, x);
    let made = case(&f, &inputs, dtype, dialect).unwrap_or_else(|e| panic!("program {seed}: {e}"));
    let mut case = made?;
    case.name = format!("program {seed}");
    Some(case)
}

#[test]
fn random_programs_give_the_same_values_as_kernels() {
    let count = std::env::var("CHAINRULE_FUZZ").ok().and_then(|n| n.parse().ok());
    let count: u64 = count.unwrap_or(PROGRAMS);
    let mut cases: Vec<Case> = Vec::new();
    cases.extend((0..count).filter_map(|seed| made(seed, Dialect::Cuda)));
    assert!(cases.len() as u64 > count * 9 / 10, "{} of {count} were traced", cases.len());
    // A file for all would take long to compile as one.
    let wrong: Vec<String> = cases.chunks(500).flat_map(|c| check(c, "random")).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Arguments by the names of variables that kernels have: of products, rows, columns and elements.
#[test]
fn arguments_may_have_the_names_of_variables() {
    let mut g = Generator::manual_seed(2);
    let names =
        ["m", "n", "k", "t", "u", "w", "x", "i", "e", "row", "col", "block", "thread", "half"];
    let names =
        names.into_iter().chain(["seed", "draws", "stack", "top", "left", "tx", "k0", "sums"]);
    let names: Vec<&str> = names.chain(["part", "sum", "inside", "philox", "lid", "wid"]).collect();
    let all: Vec<Tensor> =
        names.iter().map(|_| Tensor::randn([40, 40], DType::F32, &mut g)).collect();
    let f = |x: &[Tensor]| {
        let mut y = x[0].try_matmul(&x[1])?;
        for pair in x[2..].chunks(2) {
            y = y.try_add(&pair[0].try_softmax(-1)?.try_matmul(&pair[1].try_t()?)?.try_tanh()?)?;
        }
        Ok(vec![y.try_sum(0, false)?, y])
    };
    let program = Program::trace(names.into_iter().zip(&all), f).unwrap();
    let module = KernelModule::new(&program, Dialect::Cuda).unwrap();
    let want: Vec<Vec<f64>> = f(&all).unwrap().iter().map(Tensor::to_f64_vec).collect();
    let (given, name) = (given(&module, &all, &[]), "names".to_string());
    let within = vec![1e-3; want.len()];
    let case = Case { name, module, given, want, within, program, inputs: all };
    let wrong = check(&[case], "names");
    assert!(wrong.is_empty(), "{wrong:?}");
}
