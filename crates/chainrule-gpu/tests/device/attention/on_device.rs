//! The same cases on a device: by the kernels where it has units for matrices, else with the
//! square.

use std::collections::BTreeMap;

use chainrule::program::Program;
use chainrule::{Attention, DType, Generator, Tensor};
use chainrule_gpu::{DeviceSession, Dialect, Precision};

use super::{PRECISIONS, case, dropout, masks, widths};
use crate::common::{Case, apart};
use crate::on_device::session;
use crate::samples::with_gradients;

/// The precisions of a device: one without a library has f32.
fn precisions(session: &mut DeviceSession) -> Vec<Precision> {
    let all = PRECISIONS.iter().map(|p| p.0);
    all.filter(|&precision| session.set_precision(precision).is_ok()).collect()
}

/// The worst of all results that is farther from those of the processor than it may be.
fn wrong(session: &mut DeviceSession, case: &Case) -> Option<String> {
    let given: Vec<&Tensor> = case.inputs.iter().collect();
    let ran = session.load(&case.program).and_then(|at| {
        let got = session.run(at, &given)?;
        session.unload(at).map(|()| got)
    });
    let got = match ran {
        Ok(got) => got,
        Err(e) => return Some(format!("{}: {e}", case.name)),
    };
    let is_narrow = session.device().dialect() == Dialect::Wgsl;
    let off = got.iter().zip(&case.want).enumerate().filter_map(|(i, (got, want))| {
        let got = got.to_f64_vec();
        let size = want.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        // Functions of WebGPU are off by some last bits.
        let within = case.within[i] + if is_narrow { size / 8192.0 } else { 0.0 };
        let worst = got.iter().zip(want).map(|(a, b)| apart(*a, *b)).fold(0.0, f64::max);
        let wrong = got.len() != want.len() || worst > within;
        wrong.then(|| format!("{}: result {i} is off by {worst:e}, allowed {within:e}", case.name))
    });
    off.last()
}

/// Runs cases, of which each names its precision at the end.
fn check_there(session: &mut DeviceSession, cases: &[Case]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = Vec::new();
    for precision in precisions(session) {
        session.set_precision(precision).unwrap();
        let end = format!(" in {precision}");
        for case in cases.iter().filter(|c| c.name.ends_with(&end)) {
            *counts.entry(precision.to_string()).or_default() += 1;
            all.extend(wrong(session, case));
        }
    }
    println!("{counts:?} cases");
    assert!(all.is_empty(), "{} wrong:\n{}", all.len(), all.join("\n"));
}

/// Some of all cases: each compiles kernels of its own. `CHAINRULE_FUZZ` asks for all.
fn some(cases: Vec<Case>, step: usize) -> Vec<Case> {
    let step = if std::env::var_os("CHAINRULE_FUZZ").is_some() { 1 } else { step };
    cases.into_iter().step_by(step).collect()
}

#[test]
fn a_device_gives_attention_with_masks() {
    let Some(mut session) = session() else { return };
    // Three precisions each, bools and numbers in turn.
    check_there(&mut session, &some(masks::cases(), 7));
    check_there(&mut session, &some(masks::large_cases(), 2));
}

#[test]
fn a_device_gives_attention_of_rows_of_any_width() {
    let Some(mut session) = session() else { return };
    check_there(&mut session, &some(widths(), 7));
}

#[test]
fn a_device_gives_attention_with_dropout() {
    let Some(mut session) = session() else { return };
    check_there(&mut session, &some(dropout::cases(), 4));
}

/// Sizes of which each kernel has many blocks and tiles.
#[test]
fn a_device_gives_attention_of_many_tiles() {
    let Some(mut session) = session() else { return };
    let mut g = Generator::manual_seed(20);
    let (queries, keys) = (300, 520);
    let mut draw = |dims: &[usize]| Tensor::randn(dims, DType::F32, &mut g);
    let three = [queries, keys, keys].map(|rows| draw(&[2, 3, rows, 64]));
    let seen = draw(&[2, 1, 1, keys]).try_gt(-1.0).unwrap();
    let more = draw(&[3, queries, keys]);
    let dropout_p = 0.1;
    let all = [
        ("bools", Attention { mask: Some(seen.clone()), ..Attention::default() }),
        ("numbers", Attention { mask: Some(more), ..Attention::causal() }),
        ("dropout", Attention { dropout_p, seed: 5, ..Attention::causal() }),
        ("both", Attention { mask: Some(seen), dropout_p, seed: 6, ..Attention::default() }),
    ];
    let mut cases = Vec::new();
    for (name, options) in all {
        let f = |x: &[Tensor]| x[0].try_attention(&x[1], &x[2], &options);
        cases.extend(PRECISIONS.map(|precision| case(name, &f, &three, precision)));
    }
    check_there(&mut session, &cases);
}

/// Two runs draw other seeds, those of the stream.
#[test]
fn a_device_draws_the_seed_of_a_dropout() {
    let Some(session) = session() else { return };
    let is_narrow = session.device().dialect() == Dialect::Wgsl;
    let (all, f) = dropout::drawing();
    let names = ["q", "k", "v"].into_iter().zip(&all);
    let program = Program::trace(names, |x: &[Tensor]| with_gradients(&f, x)).unwrap();
    let mut session = session.with_seed(7);
    session.set_runs(1);
    let at = session.load(&program).unwrap();
    let given: Vec<&Tensor> = all.iter().collect();
    let got = session.run(at, &given).unwrap();
    let other = session.run(at, &given).unwrap();
    let seed = dropout::drawn(is_narrow);
    let want = with_gradients(&|x: &[Tensor]| dropout::with_seed(x, seed), &all).unwrap();
    for (i, ((got, want), other)) in got.iter().zip(&want).zip(&other).enumerate() {
        let [got, want, other] = [got, want, other].map(Tensor::to_f64_vec);
        let size = want.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let worst = got.iter().zip(&want).map(|(a, b)| apart(*a, *b)).fold(0.0, f64::max);
        assert!(worst <= 1e-3 * size, "result {i} is off by {worst} of {size}");
        assert!(got != other, "result {i} is the same in two runs");
    }
}

/// Prints the microseconds of each kernel of a layer of GPT-2, if `CHAINRULE_TIMES` asks for it.
#[test]
fn a_device_takes_so_long_for_attention() {
    if std::env::var_os("CHAINRULE_TIMES").is_none() {
        return;
    }
    let Some(mut session) = session() else { return };
    let mut g = Generator::manual_seed(21);
    let three = [0; 3].map(|_| Tensor::randn([16, 12, 1024, 64], DType::F32, &mut g));
    let seen = Tensor::rand([16, 1, 1, 1024], DType::F32, &mut g).try_gt(0.1).unwrap();
    let more = Tensor::randn([1024, 1024], DType::F32, &mut g);
    let dropout_p = 0.1;
    let all = [
        ("causal", Attention::causal()),
        ("whole", Attention::default()),
        ("bools", Attention { mask: Some(seen.clone()), ..Attention::default() }),
        ("numbers", Attention { mask: Some(more), ..Attention::default() }),
        ("dropout", Attention { dropout_p, ..Attention::causal() }),
        ("causal, both", Attention { mask: Some(seen), dropout_p, ..Attention::causal() }),
    ];
    for precision in precisions(&mut session) {
        session.set_precision(precision).unwrap();
        for (name, options) in &all {
            let f = |x: &[Tensor]| x[0].try_attention(&x[1], &x[2], options);
            let names = ["q", "k", "v"].into_iter().zip(&three);
            let program = Program::trace(names, |x: &[Tensor]| with_gradients(&f, x)).unwrap();
            let at = session.load(&program).unwrap();
            session.run(at, &three.iter().collect::<Vec<_>>()).unwrap();
            let pieces = session.measure(at).unwrap();
            let long = pieces.iter().filter(|p| p.1 > 20.0);
            let long: Vec<String> = long.map(|(name, us)| format!("{name} {us:.0}")).collect();
            let total: f64 = pieces.iter().map(|p| p.1).sum();
            println!("{precision}, {name}: {total:.0} us: {}", long.join(", "));
            session.unload(at).unwrap();
        }
    }
}
