//! Groups, and the memory of a run.

use super::*;
use crate::fuse::layout::Layouts;
use crate::kernels::threads::with_num_threads;
use crate::nn::{Layer, Module};
use crate::optim::{AdamW, Optimizer, Sgd};
use chainrule_core::{Attention, Slice};
use chainrule_lab::models::{DigitsMlp, Gpt, GptConfig, NamesMlp, NamesMlpConfig};

const SIZES: [usize; 11] = [1, 2, 7, 8, 9, 15, 16, 17, 127, 128, 129];

/// Broadcasting of all kinds, and sums of rows and columns that are used again.
fn chain(x: &Tensor, row: &Tensor) -> chainrule_core::Result<Vec<Tensor>> {
    let y = ((x + row).tanh() * 0.5).named("y");
    let rows = y.square().sum(1, true);
    let scaled = &y / (&rows + 1.0).sqrt();
    let columns = (&scaled * x).mean(0, true);
    let last = (&scaled - &columns).exp() * &rows;
    let more = last.reshape([-1]) * 2.0 - x.flatten(0, -1);
    Ok(vec![last.sum(0, false), columns, more, scaled.sum(1, false), rows])
}

fn inputs(rows: usize, n: usize, dtype: DType) -> [Tensor; 2] {
    let g = &mut Generator::manual_seed((rows * 1000 + n) as u64);
    [Tensor::randn([rows, n], dtype, g), Tensor::randn([n], dtype, g)]
}

fn traced(x: &[Tensor; 2]) -> Program {
    let named = [("x", &x[0]), ("row", &x[1])];
    Program::trace(named, |args| chain(&args[0], &args[1])).unwrap().optimized()
}

#[test]
fn chains_are_right_at_odd_sizes() {
    for rows in SIZES {
        for n in SIZES {
            let x = inputs(rows, n, DType::F64);
            let fused = traced(&x).fused();
            let want = chain(&x[0], &x[1]).unwrap();
            for _ in 0..2 {
                let got = fused.run(&[&x[0], &x[1]]).unwrap();
                assert_eq!(distance(&got, &want, 1e-12), None, "{rows} {n}\n{fused}");
            }
        }
    }
}

#[test]
fn arithmetic_of_any_operands_has_the_same_bits_two_at_a_time() {
    let g = &mut Generator::manual_seed(5);
    for (rows, n) in [(1, 1), (3, 1), (1, 9), (7, 33), (40, 200), (300, 129), (900, 100)] {
        for dtype in [DType::F32, DType::F64] {
            let [x, y, row, column, one] =
                [vec![rows, n], vec![rows, n], vec![n], vec![rows, 1], vec![1]]
                    .map(|shape| Tensor::randn(shape, dtype, g));
            let named = [("x", &x), ("y", &y), ("row", &row), ("column", &column), ("one", &one)];
            let steps = |a: &[Tensor]| {
                let [x, y, row, column, one] = a else { unreachable!("five were given") };
                let hat = (x - row) * column;
                let out = &hat * row + y;
                let both = row - (y * one - x);
                let twice = &out * &out;
                let more = (column - (x + y)) * (one - (row + column));
                vec![hat, (out + twice) * x, both - 2.0 * more]
            };
            let plain = Program::trace(named, |a| Ok(steps(a))).unwrap().optimized();
            let fused = plain.clone().fused();
            let inputs = [&x, &y, &row, &column, &one];
            let want = plain.run(&inputs).unwrap();
            for _ in 0..2 {
                assert_eq!(
                    difference(&fused.run(&inputs).unwrap(), &want),
                    None,
                    "{rows} {n}\n{fused}"
                );
            }
        }
    }
}

#[test]
fn f32_is_as_near_to_the_truth_as_the_eager_mode() {
    for (rows, n) in [(7, 17), (129, 16), (400, 65), (1, 300)] {
        let x = inputs(rows, n, DType::F32);
        let wide = [0, 1].map(|i: usize| x[i].to_dtype(DType::F64));
        let truth = chain(&wide[0], &wide[1]).unwrap();
        let eager = chain(&x[0], &x[1]).unwrap();
        let got = traced(&x).fused().run(&[&x[0], &x[1]]).unwrap();
        for ((got, eager), truth) in got.iter().zip(&eager).zip(&truth) {
            let error = |t: &Tensor| (t.to_dtype(DType::F64) - truth).norm(2.0, .., false).item();
            let rounding = f64::from(f32::EPSILON) * truth.norm(2.0, .., false).item();
            assert!(error(got) <= 2.0 * error(eager) + rounding, "{rows} {n}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let x = inputs(1030, 201, DType::F32);
    let program = traced(&x).fused();
    let run = |threads| with_num_threads(threads, || program.run(&[&x[0], &x[1]]).unwrap());
    let one = run(1);
    for threads in [2, 3] {
        assert_eq!(difference(&run(threads), &one), None, "{threads}");
    }
}

#[test]
fn a_group_is_listed_and_its_inside_can_be_asked_for() {
    let x = inputs(8, 5, DType::F64);
    let (plain, fused) = (traced(&x), traced(&x).fused());
    let text = fused.to_string();
    assert!(text.contains("\n  fused\n    add = x + row"), "{text}");
    assert_eq!(plain.len(), fused.len());
    let arguments = [&x[0], &x[1]];
    let [want, got] = [&plain, &fused].map(|p| p.run_with(&arguments, &["y"]).unwrap());
    assert_eq!(difference(&got, &want), None);
    assert!(!fused.optimized().to_string().contains("fused"));
}

/// The names of what the groups of a program make.
fn grouped(program: &Program) -> Vec<Vec<&str>> {
    let name = |i: usize| program.name(program.instructions[i].result());
    program.groups.iter().map(|group| group.clone().map(name).collect()).collect()
}

#[test]
fn groups_that_follow_from_each_other_become_one() {
    let g = &mut Generator::manual_seed(11);
    let [x, y] = [0, 1].map(|_| Tensor::randn([16, 9], DType::F64, g));
    // The gradient of a batch norm: two sums, each of which is needed by a part of what follows.
    let f = |x: &Tensor, y: &Tensor| {
        let (one, other) = (x.sum(0, true), (x * y).sum(0, true));
        let a = (x - one * 0.5).named("a");
        let second = other * 0.25;
        let b = (&second * y).named("b");
        vec![(a - b).named("out")]
    };
    let named = [("x", &x), ("y", &y)];
    let program = Program::trace(named, |v| Ok(f(&v[0], &v[1]))).unwrap().fused();
    let groups = grouped(&program);
    assert!(groups.contains(&vec!["a", "b", "out"]), "{groups:?}");
    let got = program.run(&[&x, &y]).unwrap();
    assert_eq!(distance(&got, &f(&x, &y), 1e-15), None);
    // A group in between keeps two apart: it needs the one, and the other needs it.
    let f = |x: &Tensor, y: &Tensor| {
        let a = (x - x.sum(0, true) * 0.5).named("a");
        let second = (&a * y).sum(0, true) * 0.25;
        let b = (&second * y).named("b");
        vec![(a - b).named("out")]
    };
    let program = Program::trace(named, |v| Ok(f(&v[0], &v[1]))).unwrap().fused();
    let groups = grouped(&program);
    assert!(groups.contains(&vec!["b", "out"]), "{groups:?}");
    assert_eq!(distance(&program.run(&[&x, &y]).unwrap(), &f(&x, &y), 1e-15), None);
}

#[test]
fn what_is_only_summed_goes_with_its_sums() {
    let g = &mut Generator::manual_seed(12);
    let [x, y] = [0, 1].map(|_| Tensor::randn([12, 12], DType::F64, g));
    let f = |x: &Tensor, y: &Tensor| {
        let d = (x.matmul(y) * x).named("d");
        let e = (&d * y).named("e");
        vec![e.sum(0, false).named("of_e"), d.sum(0, false).named("of_d"), d]
    };
    let named = [("x", &x), ("y", &y)];
    let program = Program::trace(named, |v| Ok(f(&v[0], &v[1]))).unwrap().fused();
    let groups = grouped(&program);
    assert!(groups.contains(&vec!["e", "of_e", "of_d"]), "{groups:?}");
    assert!(groups.contains(&vec!["matmul", "d"]), "{groups:?}");
    assert_eq!(distance(&program.run(&[&x, &y]).unwrap(), &f(&x, &y), 1e-14), None);
}

#[test]
fn the_switches_say_what_is_done_to_a_trace() {
    let x = Tensor::randn([6, 5], DType::F64, &mut Generator::manual_seed(3));
    let f = |a: &[Tensor]| {
        let e = (&a[0] - a[0].max_axis(1, true).0).exp();
        Ok(vec![(&e / e.sum(1, true)).log().mean(0, false)])
    };
    let want = f(std::slice::from_ref(&x)).unwrap();
    for (simplification, fusion) in [(false, false), (false, true), (true, false), (true, true)] {
        let compiled = Compiled::new(["x"], f);
        let mut compiled = compiled.with_simplification(simplification).with_fusion(fusion);
        let got = compiled.run(&[&x]).unwrap();
        assert_eq!(distance(&got, &want, 1e-12), None);
        let text = compiled.programs()[0].to_string();
        assert_eq!(text.contains("fused"), fusion, "{text}");
        if !simplification && !fusion {
            assert_eq!(difference(&got, &want), None);
        }
    }
}

/// The program of a step, fused.
fn step(
    optimizer: &mut dyn Optimizer,
    batch: [&Tensor; 2],
    loss: impl Fn(&Tensor, &Tensor) -> chainrule_core::Result<Tensor>,
) -> Program {
    let program = Program::trace([("x", batch[0]), ("y", batch[1])], |b| {
        let loss = loss(&b[0], &b[1])?;
        loss.try_backward()?;
        optimizer.step()?;
        Ok(vec![loss])
    });
    program.unwrap().optimized().fused()
}

#[test]
fn little_memory_is_wasted() {
    let g = &mut Generator::manual_seed(1);
    let names = NamesMlp::new(NamesMlpConfig::default(), g).with_primitive_batch_norm();
    let mut sgd = Sgd::new(names.parameters(), 0.1);
    let batch = [Tensor::randint(0, 27, [32, 3], g), Tensor::randint(0, 27, [32], g)];
    let loss = |x: &Tensor, y: &Tensor| names.try_forward(x)?.try_cross_entropy(y);
    let mut programs = vec![("names", step(&mut sgd, [&batch[0], &batch[1]], loss))];

    let digits = DigitsMlp::try_new(&[128, 64], g).unwrap();
    let mut sgd = Sgd::new(digits.parameters(), 0.1);
    let batch = [Tensor::rand([32, 784], DType::F32, g), Tensor::randint(0, 10, [32], g)];
    let loss = |x: &Tensor, y: &Tensor| digits.try_forward(x)?.try_cross_entropy(y);
    programs.push(("digits", step(&mut sgd, [&batch[0], &batch[1]], loss)));

    let config =
        GptConfig { symbols: 11, context: 8, layers: 3, heads: 2, width: 16, dropout: 0.0 };
    let gpt = Gpt::try_new(config, g).unwrap();
    let mut adamw = AdamW::new(gpt.parameters(), 0.1);
    let batch = [Tensor::randint(0, 11, [3, 8], g), Tensor::randint(0, 11, [24], g)];
    let loss =
        |x: &Tensor, y: &Tensor| gpt.try_forward(x)?.try_reshape([24, 11])?.try_cross_entropy(y);
    programs.push(("gpt", step(&mut adamw, [&batch[0], &batch[1]], loss)));

    for (name, program) in programs {
        let ProgramMemory { planned, lower_bound } = program.memory();
        assert!(lower_bound > 0 && lower_bound <= planned, "{name}");
        assert!(planned as f64 <= 1.1 * lower_bound as f64, "{name}: {planned} for {lower_bound}");
    }
}

/// The heads of attention lie beside each other in a program's memory too, so that joining them is
/// a view; not where the heads themselves are handed out, or something that only looks at them.
#[test]
fn joined_heads_are_views() {
    let qkv = Tensor::randn([2, 5, 12], DType::F64, &mut Generator::manual_seed(7));
    let part = |x: &Tensor, i: usize| x.narrow(2, 4 * i, 4).reshape([2, 5, 2, 2]).transpose(1, 2);
    let steps = |x: &Tensor, all: bool| {
        let heads = part(x, 0).attention(&part(x, 1), &part(x, 2), &Attention::causal());
        let joined = heads.transpose(1, 2).reshape([2, 5, 4]);
        let mut out = vec![&joined * 2.0, joined.sum(1, false)];
        if all {
            out.push(heads.slice(&[Slice::from(..), Slice::At(1)]));
        }
        Ok(out)
    };
    for all in [false, true] {
        let traced = Program::trace([("qkv", &qkv)], |a| steps(&a[0], all)).unwrap();
        for program in [traced.optimized(), traced.optimized().fused()] {
            let layouts = Layouts::of(&program);
            let joined = program.instructions.iter().find(|i| {
                i.op.name() == "reshape" && program.info(i.result()).meta.shape.rank() == 3
            });
            let joined = joined.expect("the heads are joined").result();
            assert_eq!(layouts.is_view(joined), !all, "{program}");
            let want = steps(&qkv, all).unwrap();
            for _ in 0..2 {
                let got = program.run(&[&qkv]).unwrap();
                assert_eq!(distance(&got, &want, 1e-12), None, "{program}");
            }
        }
    }
}

#[test]
fn a_mean_is_taken_from_the_variance_beside_it() {
    let g = &mut Generator::manual_seed(11);
    for shape in [vec![32, 200], vec![7, 9], vec![2, 300, 17], vec![1, 1]] {
        for dtype in [DType::F32, DType::F64] {
            for axis in [0, -1] {
                let x = Tensor::randn(shape.clone(), dtype, g) + 3.0;
                let function = |x: &Tensor| {
                    let mean = x.mean(axis, true).named("center");
                    let hat = (x - &mean) * (x.var(axis, 1, true) + 0.1).pow(-0.5);
                    Ok(vec![hat, mean, x.std(axis, 0, true), x.mean(axis, false)])
                };
                let program = Program::trace([("x", &x)], |args| function(&args[0])).unwrap();
                let fused = program.optimized().fused();
                let listing = fused.to_string();
                assert_eq!(listing.matches(" = mean(").count(), 1, "{listing}");
                assert!(listing.contains("center"), "{listing}");
                let (got, want) = (fused.run(&[&x]).unwrap(), function(&x).unwrap());
                assert_eq!(distance(&got[..3], &want[..3], 0.0), None, "{shape:?} {axis}");
                assert_eq!(distance(&got, &want, 1e-6), None, "{shape:?} {axis}");
            }
        }
    }
}
