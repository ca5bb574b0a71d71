use std::cell::RefCell;
use std::sync::Arc;

use super::*;
use crate::data::{DataLoader, LoaderOptions, RandomBatches, TensorDataset};
use crate::io::Checkpoint;
use crate::monitor::Stats;
use crate::nn::{Dropout, Layer, Linear, Module, Sequential, StateDict, Tanh};
use crate::optim::schedule::CosineLr;
use crate::optim::{AdamW, Sgd};
use crate::tensor::Tensor;
use chainrule_core::{DType, Generator};

/// A small net with dropout on random examples.
struct Net {
    net: Sequential,
    held_out: Batch,
}

impl Net {
    fn new() -> Net {
        let g = &mut Generator::manual_seed(5);
        let net = Sequential::new()
            .with(Linear::new(3, 8, g))
            .with(Tanh)
            .with(Dropout::new(0.3, g))
            .with(Linear::new(8, 1, g));
        let x = Tensor::randn([6, 3], DType::F32, g);
        Net { net, held_out: Batch { y: x.sum(1, true), x } }
    }
}

impl Task for Net {
    fn module(&self) -> &dyn Module {
        &self.net
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor> {
        self.net.try_forward(&batch.x)?.try_mse(&batch.y)
    }

    fn evaluate(&self) -> Result<Metrics> {
        Ok(vec![("val_loss", self.loss(&self.held_out)?.try_item()?)])
    }
}

fn data() -> Arc<TensorDataset> {
    let x = Tensor::randn([23, 3], DType::F32, &mut Generator::manual_seed(1));
    Arc::new(TensorDataset::try_new(&x, &x.sum(1, true)).unwrap())
}

fn options(steps: u64) -> TrainerOptions {
    TrainerOptions { steps, eval_every: 7, ema: Some(0.9), ..TrainerOptions::default() }
}

fn trainer(task: &Net, options: TrainerOptions) -> Trainer<'_> {
    let loader = LoaderOptions { batch: 5, shuffle: Some(3), ..LoaderOptions::default() };
    let batches = DataLoader::try_new(data(), loader).unwrap();
    let adamw = AdamW::new(task.net.parameters(), 0.01);
    let cosine = CosineLr { lr: 0.01, min_lr: 0.001, warm_up: 4, steps: 60 };
    let trainer = Trainer::builder(task, Box::new(adamw), Box::new(batches));
    trainer.schedule(cosine).options(options).build().unwrap()
}

fn bits(state: &StateDict) -> Vec<(String, Vec<u64>)> {
    let bits = |t: &Tensor| t.to_f64_vec().into_iter().map(f64::to_bits).collect();
    state.iter().map(|(name, t)| (name.clone(), bits(t))).collect()
}

/// Losses and measurements that a listener heard, in bits.
fn run(trainer: &mut Trainer<'_>, stop_at: u64) -> (End, Vec<(u64, u64)>) {
    let heard = RefCell::new(Vec::new());
    let count = RefCell::new(trainer.step());
    let mut listener = |event: &Event<'_>| {
        match event {
            Event::Step(step) => {
                *count.borrow_mut() = step.step;
                heard.borrow_mut().push((step.step, step.loss.to_bits()));
            }
            Event::Evaluated { step, metrics, .. } => {
                heard.borrow_mut().push((*step, metrics[1].1.to_bits()));
            }
            _ => {}
        }
        Ok(())
    };
    let end = trainer.run(&mut listener, &|| *count.borrow() >= stop_at).unwrap();
    (end, heard.into_inner())
}

/// As in Keras and Lightning: no step is in it that is older than an epoch.
#[test]
fn the_training_loss_of_a_measurement_is_the_mean_of_an_epoch_at_most() {
    let net = Net::new();
    // An epoch has 5 steps.
    for (eval_every, means) in [(7, [(7, 5), (14, 5)]), (3, [(3, 3), (6, 3)])] {
        let mut trainer = trainer(&net, TrainerOptions { eval_every, ..options(14) });
        let (losses, heard) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let mut listener = |event: &Event<'_>| {
            match event {
                Event::Step(step) => losses.borrow_mut().push(step.loss),
                Event::Evaluated { step, metrics, averaged, .. } => {
                    let (losses, averaged) = (losses.borrow(), *averaged);
                    let newest = &losses[losses.len() - averaged as usize..];
                    let mean = newest.iter().sum::<f64>() / newest.len() as f64;
                    assert_eq!(metrics[0], ("train_loss", mean), "after {step}");
                    heard.borrow_mut().push((*step, averaged));
                }
                _ => {}
            }
            Ok(())
        };
        trainer.run(&mut listener, &|| false).unwrap();
        assert_eq!(heard.borrow()[..2], means);
    }
}

#[test]
fn stopped_anywhere_and_taken_up_it_gives_the_same_bits() {
    let bf16 = Some(DType::BF16);
    for (compiled, autocast) in [(false, None), (true, None), (false, bf16), (true, bf16)] {
        let options = || TrainerOptions { compiled, autocast, ..options(33) };
        let whole = Net::new();
        let mut whole = trainer(&whole, options());
        let (end, heard) = run(&mut whole, u64::MAX);
        assert_eq!(end, End::Finished);
        let want = bits(&whole.state_dict());
        for stop in [1, 2, 4, 5, 6, 7, 13, 14, 20, 32] {
            let first = Net::new();
            let mut first = trainer(&first, options());
            let (end, mut before) = run(&mut first, stop);
            assert_eq!((end, first.step()), (End::Stopped, stop));
            let checkpoint = Checkpoint { about: String::new(), state: first.state_dict() };
            let back = Checkpoint::from_bytes(&checkpoint.to_bytes().unwrap()).unwrap();
            let second = Net::new();
            // Spoilt on purpose: all of it must come from the checkpoint.
            second.net.parameters()[0].set(&Tensor::ones([8, 3]));
            let mut second = trainer(&second, options());
            second.load_state_dict(&back.state).unwrap();
            before.extend(run(&mut second, u64::MAX).1);
            assert_eq!(before, heard, "stopped after {stop}, compiled: {compiled}");
            assert_eq!(bits(&second.state_dict()), want, "stopped after {stop}");
        }
    }
}

/// Steps round their products, also the trial; measurements, and what comes after, do not.
#[test]
fn autocast_is_for_steps_alone() {
    let first = |compiled: bool, autocast: Option<DType>| {
        let net = Net::new();
        let options = TrainerOptions { compiled, autocast, ema: None, ..options(7) };
        let trial = trainer(&net, options.clone()).trial_loss().unwrap();
        let (_, heard) = run(&mut trainer(&net, options), u64::MAX);
        assert_eq!(chainrule_core::autocast_dtype(), None);
        net.net.eval();
        let measured = net.evaluate().unwrap()[0].1;
        assert_eq!(heard.last().unwrap().1, measured.to_bits());
        [trial, f64::from_bits(heard[0].1), measured]
    };
    for compiled in [false, true] {
        let (whole, near) = (first(compiled, None), first(compiled, Some(DType::BF16)));
        for (whole, near) in whole.into_iter().zip(near) {
            let off = (whole - near).abs() / whole;
            assert!(off > 1e-6 && off < 0.05, "{whole} and {near}, compiled: {compiled}");
        }
    }
    let net = Net::new();
    let batches = DataLoader::try_new(data(), LoaderOptions::default()).unwrap();
    let sgd = Sgd::new(net.net.parameters(), 0.1);
    let options = TrainerOptions { autocast: Some(DType::F16), ..options(1) };
    let trainer = Trainer::builder(&net, Box::new(sgd), Box::new(batches)).options(options);
    let error = trainer.build().err().unwrap().to_string();
    assert!(error.contains("bf16 or f32"), "{error}");
}

#[test]
fn the_state_of_another_training_is_refused() {
    let (net, other) = (Net::new(), Net::new());
    let (a, mut b) =
        (trainer(&net, options(9)), trainer(&other, TrainerOptions { ema: None, ..options(9) }));
    let error = b.load_state_dict(&a.state_dict()).unwrap_err().to_string();
    assert!(error.contains("a part `ema`"), "{error}");
    assert!(b.load_state_dict(&StateDict::new()).unwrap_err().to_string().contains("trainer."));
}

#[test]
fn batches_in_parts_give_the_update_of_the_whole() {
    let weights = |accumulate: usize, batch: usize| {
        let net = Net::new();
        net.net.layers()[2].eval();
        let loader = LoaderOptions { batch, ..LoaderOptions::default() };
        let batches = DataLoader::try_new(data(), loader).unwrap();
        let sgd = Sgd::new(net.net.parameters(), 0.1);
        let options = TrainerOptions { steps: 1, accumulate, ..TrainerOptions::default() };
        let trainer = Trainer::builder(&net, Box::new(sgd), Box::new(batches));
        let mut trainer = trainer.options(options).build().unwrap();
        // In evaluation dropout drops nothing; run switches to training, so a step is taken
        // directly.
        let Trainer { task, optimizer, rest, .. } = &mut trainer;
        let loss = eager(*task, &mut **optimizer, rest).unwrap().loss;
        (loss, net.net.parameters().iter().flat_map(Tensor::to_f64_vec).collect::<Vec<_>>())
    };
    let ((a, whole), (b, parts)) = (weights(1, 20), weights(4, 5));
    assert!((a - b).abs() < 1e-6);
    assert!(whole.iter().zip(&parts).all(|(a, b)| (a - b).abs() < 1e-6));
}

#[test]
fn one_batch_is_learned_by_heart() {
    let net = Net::new();
    net.net.layers()[2].eval();
    let options = TrainerOptions { steps: 40, overfit_batch: true, ..options(40) };
    let mut seen = Vec::new();
    let mut trainer = trainer(&net, options);
    trainer
        .run(
            &mut |event: &Event<'_>| {
                if let Event::Step(step) = event {
                    seen.push(step.loss);
                }
                Ok(())
            },
            &|| false,
        )
        .unwrap();
    assert_eq!(trainer.rest.batches.state_dict()["at"].to_vec::<i64>(), [1]);
    assert!(seen[39] < seen[0]);
}

#[test]
fn it_ends_when_nothing_gets_better() {
    struct Stuck(Linear);
    impl Task for Stuck {
        fn module(&self) -> &dyn Module {
            &self.0
        }
        fn loss(&self, batch: &Batch) -> Result<Tensor> {
            self.0.try_forward(&batch.x)?.try_mse(&batch.y)
        }
        fn evaluate(&self) -> Result<Metrics> {
            Ok(vec![("val_loss", f64::NAN)])
        }
    }
    let task = Stuck(Linear::new(3, 1, &mut Generator::manual_seed(0)));
    let sgd = Box::new(Sgd::new(task.0.parameters(), 0.01));
    let batches = RandomBatches::try_new(data(), 4, Generator::manual_seed(1)).unwrap();
    let options = TrainerOptions { eval_every: 2, patience: Some(3), ..TrainerOptions::default() };
    let trainer = Trainer::builder(&task, sgd, Box::new(batches));
    let mut trainer = trainer.options(options).build().unwrap();
    let end = trainer.run(&mut |_: &Event<'_>| Ok(()), &|| false).unwrap();
    assert_eq!((end, trainer.step()), (End::NoBetter { evaluations: 4 }, 8));
}

#[test]
fn a_loss_that_is_not_finite_is_explained_and_the_model_is_good() {
    for compiled in [false, true] {
        let net = Net::new();
        let sgd = Box::new(Sgd::new(net.net.parameters(), 1e20));
        let batches = RandomBatches::try_new(data(), 4, Generator::manual_seed(1)).unwrap();
        let options = TrainerOptions { compiled, ..TrainerOptions::default() };
        let trainer = Trainer::builder(&net, sgd, Box::new(batches));
        let mut trainer = trainer.options(options).build().unwrap();
        let end = trainer.run(&mut |_: &Event<'_>| Ok(()), &|| false).unwrap();
        let End::NotFinite { why, .. } = end else { panic!("{end:?}") };
        assert!(why.contains("the first op") || why.contains("the update of step"), "{why}");
        assert!(net.net.parameters().iter().all(Tensor::is_finite));
    }
}

#[test]
fn the_range_of_rates_is_found_and_nothing_has_changed() {
    let net = Net::new();
    let mut trainer = trainer(&net, options(50));
    let before = bits(&trainer.state_dict());
    let found = trainer.find_range(crate::RangeOptions::default()).unwrap();
    assert_eq!(bits(&trainer.state_dict()), before);
    assert!(found.steepest.is_some_and(|lr| lr > 1e-5 && lr < 10.0), "{:?}", found.steepest);
    assert!(found.points.windows(2).all(|w| w[0].0 < w[1].0));
}

/// The end of a run with a monitor that looks at every `n`th step, and the findings told.
fn monitored(net: &Net, every: Option<u64>, compiled: bool) -> (Vec<(String, Vec<u64>)>, u64) {
    let options = TrainerOptions { compiled, clip: Some(0.5), ..options(40) };
    let mut trainer = trainer(net, options);
    if let Some(n) = every {
        trainer = trainer.with_monitor(Monitor::new().every(n), None);
    }
    let mut looks = 0;
    let mut listener = |event: &Event<'_>| {
        if let Event::Looked { step, monitor } = event {
            looks += 1;
            assert_eq!(monitor.line().unwrap()["step"], *step);
        }
        Ok(())
    };
    assert_eq!(trainer.run(&mut listener, &|| false).unwrap(), End::Finished);
    (bits(&trainer.state_dict()), looks)
}

#[test]
fn a_monitored_run_has_the_same_bits() {
    for compiled in [false, true] {
        let (want, none) = monitored(&Net::new(), None, compiled);
        assert_eq!(none, 0);
        // Steps 0, 1, 2, 3, 4, 6, 9, 13, 14, 21 and 31: half of the steps so far on, at most ten,
        // and the one after the eighth.
        for (every, looks) in [(1, 40), (10, 11)] {
            let (got, seen) = monitored(&Net::new(), Some(every), compiled);
            assert_eq!(got, want, "every {every}, compiled: {compiled}");
            assert_eq!(seen, looks);
        }
    }
}

#[test]
fn looks_that_took_their_share_come_again_before_the_end() {
    let net = Net::new();
    // A share that no look fits in.
    let mut trainer =
        trainer(&net, options(400)).with_monitor(Monitor::new().every(1), Some(1e-12));
    let mut looks = Vec::new();
    let mut listener = |event: &Event<'_>| {
        if let Event::Looked { step, .. } = event {
            looks.push(*step);
        }
        Ok(())
    };
    assert_eq!(trainer.run(&mut listener, &|| false).unwrap(), End::Finished);
    assert!((11..20).contains(&looks.len()), "{looks:?}");
    assert!(looks.windows(2).all(|w| w[1] <= 4 * w[0].max(10) + 4), "{looks:?}");
    assert!(looks.last().is_some_and(|&last| 4 * last + 4 > 400), "{looks:?}");
}

/// Norms of all that a monitor saw of a run, by name and step.
fn norms(compiled: bool) -> Vec<(String, u64, Vec<f64>)> {
    let net = Net::new();
    let options = TrainerOptions { compiled, ..options(30) };
    let mut trainer = trainer(&net, options).with_monitor(Monitor::new().every(1), None);
    trainer.run(&mut |_: &Event<'_>| Ok(()), &|| false).unwrap();
    let monitor = trainer.monitor().unwrap();
    let norm = |stats: Option<&Stats>| stats.map_or(-1.0, Stats::norm);
    let mut out = Vec::new();
    for track in monitor.parameters() {
        for (step, p) in track.points() {
            let all = [Some(&p.value), p.gradient.as_ref(), p.update.as_ref()].map(norm);
            let all = [&all[..], &[p.slope.unwrap(), p.agreement.unwrap_or(0.0)]].concat();
            out.push((track.name().to_owned(), *step, all));
        }
    }
    for track in monitor.outputs() {
        for (step, o) in track.points() {
            let all = [Some(&o.value), o.gradient.as_ref()].map(norm);
            out.push((track.name().to_owned(), *step, [&all[..], &[o.saturated]].concat()));
        }
    }
    out
}

#[test]
fn a_program_gives_the_monitor_what_steps_op_by_op_do() {
    let (op_by_op, program) = (norms(false), norms(true));
    assert!(op_by_op.len() == program.len() && op_by_op.len() >= 8 * 30, "{}", op_by_op.len());
    for ((name, step, want), (other, at, got)) in op_by_op.iter().zip(&program) {
        assert_eq!((name, step), (other, at));
        for (want, got) in want.iter().zip(got) {
            assert!(
                (want - got).abs() <= 1e-3 * want.abs().max(1e-3),
                "{name} {step} {want} {got}"
            );
        }
    }
}

#[test]
fn a_monitor_tells_once_of_a_rate_that_is_too_high() {
    for compiled in [false, true] {
        let net = Net::new();
        let sgd = Box::new(Sgd::new(net.net.parameters(), 1e20));
        let batches = RandomBatches::try_new(data(), 4, Generator::manual_seed(1)).unwrap();
        let options = TrainerOptions { compiled, ..TrainerOptions::default() };
        let trainer = Trainer::builder(&net, sgd, Box::new(batches)).options(options);
        let mut trainer = trainer.build().unwrap().with_monitor(Monitor::new(), Some(0.02));
        let mut told = Vec::new();
        let mut listener = |event: &Event<'_>| {
            if let Event::Found { symptom, .. } = event {
                told.push(symptom.kind.name());
            }
            Ok(())
        };
        trainer.run(&mut listener, &|| false).unwrap();
        told.sort_unstable();
        assert_eq!(told, ["not_finite", "rate_too_high"], "compiled: {compiled}");
        assert!(net.net.parameters().iter().all(Tensor::is_finite));
    }
}

#[test]
fn rare_looks_measure_noise_and_curvature_and_change_no_bit() {
    let end = |compiled: bool, is_watched: bool| {
        let net = Net::new();
        let loader = LoaderOptions { batch: 8, shuffle: Some(3), ..LoaderOptions::default() };
        let batches = DataLoader::try_new(data(), loader).unwrap();
        let sgd = Sgd::new(net.net.parameters(), 0.01);
        let trainer = Trainer::builder(&net, Box::new(sgd), Box::new(batches));
        let options = TrainerOptions { steps: 140, compiled, ..TrainerOptions::default() };
        let mut trainer = trainer.options(options).build().unwrap();
        if is_watched {
            trainer = trainer.with_monitor(Monitor::new().every(1), None);
        }
        let mut told = None;
        let mut hear = |event: &Event<'_>| {
            if let Event::Looked { monitor, .. } = event {
                let names: Vec<String> =
                    monitor.outputs().iter().map(|o| o.name().to_owned()).collect();
                let gradients = monitor.outputs()[0].points()[0].1.gradient.is_some();
                let curvatures: Vec<f64> = monitor.curvatures().iter().map(|c| c.1).collect();
                told = Some((names, gradients, monitor.noise_scale(), curvatures));
            }
            Ok(())
        };
        trainer.run(&mut hear, &|| false).unwrap();
        drop(trainer);
        (bits(&net.net.state_dict()), told)
    };
    for compiled in [false, true] {
        let ((plain, _), (watched, told)) = (end(compiled, false), end(compiled, true));
        assert_eq!(plain, watched);
        let (names, gradients, noise, curvatures) = told.unwrap();
        assert_eq!(
            (names.as_slice(), gradients),
            (&["0", "1", "2", "3"].map(String::from)[..], true)
        );
        // The looks 16 and 128 are rare ones, and the first has a batch of an even number of rows.
        // A mean of squares is convex in the last layer.
        assert!(noise.unwrap() >= 0.0 && curvatures.len() == 1, "{noise:?} {curvatures:?}");
        assert!(curvatures.iter().all(|c| *c > 0.0), "{curvatures:?}");
    }
}
