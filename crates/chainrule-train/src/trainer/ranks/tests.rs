//! Steps shared out to ranks.

use std::sync::Arc;

use super::*;
use crate::data::{Batches, DataLoader, LoaderOptions, RandomBatches, TensorDataset};
use crate::dtype::DType;
use crate::nn::{BatchNorm1d, Dropout, Layer, Linear, Sequential, StateDict, Tanh};
use crate::optim::{AdamW, Lion, Sgd, SgdOptions};
use crate::{End, Evaluation, Event, Listeners, Metrics, Trainer};

/// A net with all that could depend on who computes what: dropout, running statistics.
struct Net(Sequential);

impl Net {
    fn new(seed: u64) -> Net {
        let g = &mut Generator::manual_seed(seed);
        let net = Sequential::new()
            .with(Linear::new(3, 8, g))
            .with(BatchNorm1d::new(8))
            .with(Tanh)
            .with(Dropout::new(0.3, g))
            .with(Linear::new(8, 1, g));
        Net(net)
    }
}

impl Task for Net {
    fn module(&self) -> &dyn Module {
        &self.0
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor> {
        self.0.try_forward(&batch.x)?.try_mse(&batch.y)
    }

    fn evaluation(&self) -> Option<&dyn Evaluation> {
        Some(self)
    }
}

/// Sums whose last digits depend on their order.
impl Evaluation for Net {
    fn parts(&self) -> usize {
        5
    }

    fn part(&self, number: usize) -> Result<Vec<f64>> {
        let size = self.0.parameters()[0].abs().sum_all().try_item()?;
        Ok(vec![size / (number as f64 + 0.3), 1.0])
    }

    fn measures(&self, sums: &[f64]) -> Metrics {
        assert_eq!(sums[1], 5.0);
        vec![("size", sums[0])]
    }
}

#[derive(Clone, Copy)]
struct Case {
    optimizer: fn(Vec<Tensor>) -> Box<dyn Optimizer>,
    random: bool,
    options: fn(u64) -> TrainerOptions,
    /// Whether each rank has but a part of the optimizer's state.
    sharded: bool,
}

impl Case {
    fn options(self, steps: u64) -> TrainerOptions {
        TrainerOptions { sharded: self.sharded, ..(self.options)(steps) }
    }
}

fn options(steps: u64) -> TrainerOptions {
    TrainerOptions { steps, accumulate: 12, ..TrainerOptions::default() }
}

const CASES: [Case; 8] = [
    Case { optimizer: |p| Box::new(AdamW::new(p, 0.01)), random: false, options, sharded: false },
    Case { optimizer: |p| Box::new(AdamW::new(p, 0.01)), random: true, options, sharded: true },
    Case {
        optimizer: |p| {
            let options = SgdOptions { momentum: 0.9, ..SgdOptions::default() };
            Box::new(Sgd::with_options(p, 0.05, options))
        },
        random: true,
        options: |steps| TrainerOptions { clip: Some(0.1), ema: Some(0.9), ..options(steps) },
        sharded: false,
    },
    Case {
        optimizer: |p| {
            let options = SgdOptions { momentum: 0.9, ..SgdOptions::default() };
            Box::new(Sgd::with_options(p, 0.05, options))
        },
        random: false,
        options: |steps| TrainerOptions { clip: Some(0.1), ema: Some(0.9), ..options(steps) },
        sharded: true,
    },
    Case {
        optimizer: |p| Box::new(Sgd::new(p, 0.05)),
        random: false,
        options: |steps| TrainerOptions { accumulate: 7, eval_every: 2, ..options(steps) },
        sharded: true,
    },
    Case {
        optimizer: |p| Box::new(Lion::new(p, 0.01)),
        random: true,
        options: |steps| TrainerOptions { compiled: true, ..options(steps) },
        sharded: false,
    },
    Case {
        optimizer: |p| Box::new(AdamW::new(p, 0.01)),
        random: false,
        options: program,
        sharded: true,
    },
    Case {
        optimizer: |p| {
            let options = SgdOptions { momentum: 0.9, ..SgdOptions::default() };
            Box::new(Sgd::with_options(p, 0.05, options))
        },
        random: false,
        options: |steps| TrainerOptions { eval_every: 2, ..program(steps) },
        sharded: false,
    },
];

/// Two shapes, as the last batch of an epoch is a short one.
fn program(steps: u64) -> TrainerOptions {
    TrainerOptions { compiled: true, clip: Some(0.1), ema: Some(0.9), ..options(steps) }
}

fn trainer<'a>(task: &'a Net, case: Case, steps: u64) -> Trainer<'a> {
    let x = Tensor::randn([23, 3], DType::F32, &mut Generator::manual_seed(1));
    let data = Arc::new(TensorDataset::try_new(&x, &x.sum(1, true)).unwrap());
    let batches: Box<dyn Batches> = if case.random {
        Box::new(RandomBatches::try_new(data, 5, Generator::manual_seed(2)).unwrap())
    } else {
        let loader = LoaderOptions { batch: 5, shuffle: Some(3), ..LoaderOptions::default() };
        Box::new(DataLoader::try_new(data, loader).unwrap())
    };
    let optimizer = (case.optimizer)(task.0.parameters());
    let trainer = Trainer::builder(task, optimizer, batches);
    trainer.options(case.options(steps)).build().unwrap()
}

/// Dtype, shape and bits of tensors by name, which can go from thread to thread.
type State = std::collections::BTreeMap<String, (DType, Vec<usize>, Vec<u64>)>;

fn bits(state: &StateDict) -> State {
    // Whole numbers of generators have more digits than f64.
    let bits = |t: &Tensor| match t.dtype() {
        DType::I64 => t.to_vec::<i64>().into_iter().map(|x| x as u64).collect(),
        _ => t.to_f64_vec().into_iter().map(f64::to_bits).collect(),
    };
    let kept = |t: &Tensor| (t.dtype(), t.shape().to_vec(), bits(t));
    state.iter().map(|(name, t)| (name.clone(), kept(t))).collect()
}

fn state_of(state: &State) -> StateDict {
    let tensor = |(dtype, shape, bits): &(DType, Vec<usize>, Vec<u64>)| match dtype {
        DType::I64 => {
            let numbers: Vec<i64> = bits.iter().map(|&b| b as i64).collect();
            Tensor::try_from_slice(&numbers, &shape[..]).unwrap()
        }
        _ => {
            let numbers: Vec<f64> = bits.iter().map(|&b| f64::from_bits(b)).collect();
            Tensor::try_from_slice(&numbers, &shape[..]).unwrap().to_dtype(*dtype)
        }
    };
    state.iter().map(|(name, t)| (name.clone(), tensor(t))).collect()
}

/// All states and the losses after training on so many ranks, from a state if there is one.
fn trained(case: Case, ranks: usize, steps: u64, from: Option<State>) -> Vec<(State, Vec<f64>)> {
    trained_with(case, ranks, steps, from, || ())
}

/// As [`trained`], each rank after it has done `first`.
fn trained_with(
    case: Case,
    ranks: usize,
    steps: u64,
    from: Option<State>,
    first: fn(),
) -> Vec<(State, Vec<f64>)> {
    let on = move |exchange: Threads, from: Option<State>| {
        first();
        let task = Net::new(5);
        let mut trainer = trainer(&task, case, steps).with_exchange(Box::new(exchange), &[]);
        if let Some(from) = from {
            trainer.load_state_dict(&state_of(&from)).unwrap();
        }
        let mut losses = Vec::new();
        let mut hear = |event: &Event<'_>| {
            if let Event::Step(step) = event {
                losses.push(step.loss);
            }
            Ok(())
        };
        assert_eq!(trainer.run(&mut hear, &|| false).unwrap(), End::Finished);
        (bits(&trainer.state_dict()), losses)
    };
    let handles: Vec<_> = Threads::group(ranks)
        .into_iter()
        .map(|exchange| {
            let from = from.clone();
            std::thread::spawn(move || on(exchange, from))
        })
        .collect();
    handles.into_iter().map(|handle| handle.join().unwrap()).collect()
}

#[test]
fn the_number_of_ranks_changes_no_bit() {
    for (i, case) in CASES.into_iter().enumerate() {
        let wanted = trained(case, 1, 5, None).remove(0);
        assert!(wanted.1.iter().all(|loss| loss.is_finite()));
        for ranks in [2, 3, 4, 6] {
            for (rank, mut got) in trained(case, ranks, 5, None).into_iter().enumerate() {
                let mut wanted = wanted.clone();
                if case.sharded && rank > 0 {
                    // Parts of the optimizer's state and of the average: those of the whole.
                    let is_shared = |name: &str| {
                        name.starts_with("optimizer.") || name.starts_with("ema.average.")
                    };
                    let is_of_all = |(name, t): (&String, &_)| wanted.0.get(name) == Some(t);
                    let mut held = got.0.iter().filter(|(name, _)| is_shared(name));
                    assert!(held.all(is_of_all), "case {i}, rank {rank} of {ranks}");
                    got.0.retain(|name, _| !is_shared(name));
                    wanted.0.retain(|name, _| !is_shared(name));
                }
                assert!(got == wanted, "case {i}, rank {rank} of {ranks}");
            }
        }
    }
}

/// Clipping of shards is that of the optimizer.
#[test]
fn shards_change_no_bit() {
    for case in CASES {
        let [own, whole] =
            [true, false].map(|sharded| trained(Case { sharded, ..case }, 1, 5, None));
        assert!(own == whole);
    }
}

/// For tests that count programs that were given up.
static GIVING_UP: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Programs that do not hold on one rank are given up on all, and the step is done again op by op:
/// with the bits of a training without programs.
#[test]
fn a_program_that_parts_is_given_up_on_all_ranks() {
    let _alone = lock(&GIVING_UP);
    let case = CASES[6];
    let eager =
        Case { options: |steps| TrainerOptions { compiled: false, ..program(steps) }, ..case };
    let wanted = trained(eager, 1, 5, None).remove(0);
    for ranks in [1, 2, 3] {
        let distrust = || programs::DISTRUST.set(true);
        let mut got = trained_with(case, ranks, 5, None, distrust).remove(0);
        got.0.retain(|name, _| !name.starts_with("programs."));
        assert!(got == wanted, "{ranks} ranks");
        let times = programs::GIVEN_UP.swap(0, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(times, ranks, "once on each rank");
    }
}

/// The verdict on a program is part of the state: whoever goes on does not ask again, and comes to
/// the bits of a run that was never interrupted.
#[test]
fn a_program_that_was_given_up_stays_so() {
    let _alone = lock(&GIVING_UP);
    let case = CASES[6];
    let eager =
        Case { options: |steps| TrainerOptions { compiled: false, ..program(steps) }, ..case };
    let without = |mut state: State| {
        state.retain(|name, _| !name.starts_with("trainer.") && !name.starts_with("programs."));
        state
    };
    let wanted = without(trained(eager, 1, 6, None).remove(0).0);
    let half = trained_with(case, 2, 3, None, || programs::DISTRUST.set(true)).remove(0).0;
    programs::GIVEN_UP.store(0, std::sync::atomic::Ordering::Relaxed);
    let verdicts = |state: &State| {
        let of = |(name, (.., bits)): (&String, &(_, _, Vec<u64>))| {
            name.strip_prefix("programs.").map(|name| (name.to_string(), bits.clone()))
        };
        state.iter().filter_map(of).collect::<Vec<_>>()
    };
    assert!(!verdicts(&half).is_empty() && verdicts(&half).iter().all(|(_, v)| v[..] == [1]));
    for ranks in [1, 3] {
        let end = trained(case, ranks, 6, Some(half.clone())).remove(0).0;
        assert!(without(end.clone()) == wanted, "{ranks} ranks");
        assert!(verdicts(&end).starts_with(&verdicts(&half)));
    }
    // Without its verdict the program is compared once more, and believed now.
    let mut forgotten = half;
    forgotten.retain(|name, _| !name.starts_with("programs."));
    let end = trained(case, 2, 6, Some(forgotten)).remove(0).0;
    assert!(verdicts(&end).iter().all(|(_, v)| v[..] == [0]));
}

/// Layers that exchange sums within a step: the statistics of all micro-batches, as of one batch.
#[test]
fn a_trainer_has_room_for_layers_that_exchange() {
    use crate::{SharedExchange, SyncBatchNorm};
    struct Synced(Sequential);
    impl Task for Synced {
        fn module(&self) -> &dyn Module {
            &self.0
        }
        fn loss(&self, batch: &Batch) -> Result<Tensor> {
            self.0.try_forward(&batch.x)?.try_mse(&batch.y)
        }
    }
    let run = |layer: &dyn Fn() -> Box<dyn Layer>,
               batch: usize,
               options: TrainerOptions,
               exchange: Option<SharedExchange>| {
        let g = &mut Generator::manual_seed(3);
        let net = Sequential::new().with(Linear::new(3, 8, g)).with(layer());
        let task = Synced(net.with(Tanh).with(Linear::new(8, 1, g)));
        let x = Tensor::randn([24, 3], DType::F64, &mut Generator::manual_seed(1));
        task.0.parameters().iter().for_each(|p| assert!(p.dtype() == DType::F32));
        let x = x.to_dtype(DType::F32);
        let data = Arc::new(TensorDataset::try_new(&x, &x.sum(1, true)).unwrap());
        let loader = LoaderOptions { batch, ..LoaderOptions::default() };
        let batches = Box::new(DataLoader::try_new(data, loader).unwrap());
        let sgd = Box::new(Sgd::new(task.0.parameters(), 0.1));
        let mut trainer = Trainer::builder(&task, sgd, batches).options(options).build().unwrap();
        if let Some(exchange) = &exchange {
            trainer = trainer.with_shared_exchange(exchange, &[]);
        }
        trainer.run(&mut |_: &Event<'_>| Ok(()), &|| false).map_err(|e| e.to_string())?;
        Ok::<_, String>(task.0.state_dict().values().map(|t| t.to_f64_vec()).collect::<Vec<_>>())
    };
    let options = |accumulate| TrainerOptions { steps: 6, accumulate, ..Default::default() };
    let whole = run(&|| Box::new(BatchNorm1d::new(8)), 12, options(1), None).unwrap();
    let on = |ranks: usize, of: fn(TrainerOptions) -> TrainerOptions, sharded: bool| {
        let handles: Vec<_> = Threads::group(ranks)
            .into_iter()
            .map(|rank| {
                std::thread::spawn(move || {
                    let shared: SharedExchange = Arc::new(std::sync::Mutex::new(Box::new(rank)));
                    let layer = || Box::new(SyncBatchNorm::new(8, &shared)) as Box<dyn Layer>;
                    let options = of(TrainerOptions { sharded, ..options(ranks) });
                    run(&layer, 12 / ranks, options, Some(shared.clone()))
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect::<Vec<_>>()
    };
    for (ranks, sharded) in [(2, false), (3, true), (4, true)] {
        for got in on(ranks, |options| options, sharded) {
            for (got, wanted) in got.unwrap().iter().zip(&whole) {
                for (a, b) in got.iter().zip(wanted) {
                    assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{ranks} ranks: {a} {b}");
                }
            }
        }
    }
    // The layer alone, in each micro-batch, is another thing.
    let apart = run(&|| Box::new(BatchNorm1d::new(8)), 6, options(2), None).unwrap();
    let far = apart.concat().iter().zip(whole.concat()).any(|(a, b)| (a - b).abs() > 1e-3);
    assert!(far);
    for error in on(2, |options| TrainerOptions { accumulate: 4, ..options }, false) {
        assert!(error.unwrap_err().contains("need a rank for each micro-batch"));
    }
    for error in on(2, |options| TrainerOptions { compiled: true, ..options }, false) {
        assert!(error.unwrap_err().contains("let the steps be eager"));
    }
}

/// A training without an exchange has the bits of one rank.
#[test]
fn one_process_is_one_rank() {
    for case in CASES {
        let task = Net::new(5);
        let mut alone = trainer(&task, case, 5);
        alone.run(&mut |_: &Event<'_>| Ok(()), &|| false).unwrap();
        assert!(bits(&alone.state_dict()) == trained(case, 3, 5, None)[0].0);
    }
}

#[test]
fn other_ranks_go_on_to_the_same_bits() {
    // The shorter run measures at its end, where the longer one does not.
    let without_measures = |mut state: State| {
        state.retain(|name, _| !name.starts_with("trainer."));
        state
    };
    for case in CASES {
        let wanted = without_measures(trained(case, 3, 6, None).remove(0).0);
        let half = trained(case, 4, 3, None).remove(0).0;
        for ranks in [1, 2, 6] {
            let got = trained(case, ranks, 6, Some(half.clone())).remove(0).0;
            assert!(without_measures(got) == wanted, "{ranks} ranks");
        }
    }
}

/// The gradient of several micro-batches is that of the whole batch, where neither dropout nor
/// batch norm ties examples together.
#[test]
fn the_mean_is_the_gradient_of_all_examples() {
    struct Plain(Linear);
    impl Task for Plain {
        fn module(&self) -> &dyn Module {
            &self.0
        }
        fn loss(&self, batch: &Batch) -> Result<Tensor> {
            self.0.try_forward(&batch.x)?.try_mse(&batch.y)
        }
    }
    let x = Tensor::randn([24, 3], DType::F32, &mut Generator::manual_seed(1));
    let data = Arc::new(TensorDataset::try_new(&x, &x.sum(1, true)).unwrap());
    let weights = |batch, accumulate| {
        let task = Plain(Linear::new(3, 1, &mut Generator::manual_seed(0)));
        let loader = LoaderOptions { batch, ..LoaderOptions::default() };
        let batches = DataLoader::try_new(data.clone(), loader).unwrap();
        let sgd = Sgd::new(task.0.parameters(), 0.1);
        let options = TrainerOptions { steps: 3, accumulate, ..TrainerOptions::default() };
        let trainer = Trainer::builder(&task, Box::new(sgd), Box::new(batches));
        let mut trainer = trainer.options(options).build().unwrap();
        trainer.run(&mut |_: &Event<'_>| Ok(()), &|| false).unwrap();
        task.0.weight.to_f64_vec()
    };
    for (a, b) in weights(24, 1).iter().zip(weights(4, 6)) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }
}

fn errors(of: fn(usize) -> (u64, usize, &'static str)) -> Vec<String> {
    let handles: Vec<_> = Threads::group(3)
        .into_iter()
        .enumerate()
        .map(|(rank, exchange)| {
            std::thread::spawn(move || {
                let (seed, accumulate, data) = of(rank);
                let task = Net::new(seed);
                let mut trainer = trainer(&task, CASES[0], 4)
                    .with_exchange(Box::new(exchange), &[("data", data)]);
                trainer.rest.options.accumulate = accumulate;
                let ran = trainer.run(&mut |_: &Event<'_>| Ok(()), &|| false);
                ran.unwrap_err().to_string()
            })
        })
        .collect();
    handles.into_iter().map(|handle| handle.join().unwrap()).collect()
}

#[test]
fn ranks_that_differ_end_with_the_reason() {
    for error in errors(|rank| (if rank == 2 { 6 } else { 5 }, 12, "a")) {
        assert!(error.contains("rank 2 has another set of first weights than rank 0"), "{error}");
    }
    for error in errors(|rank| (5, 12, if rank == 1 { "b" } else { "a" })) {
        assert!(
            error.contains("rank 1 has another data than rank 0: `b` in place of `a`"),
            "{error}"
        );
    }
    for error in errors(|rank| (5, if rank == 1 { 6 } else { 12 }, "a")) {
        assert!(error.contains("rank 1 has another number of micro-batches"), "{error}");
    }
    for error in errors(|_| (5, 2, "a")) {
        assert!(error.contains("3 ranks need 3 micro-batches a step at least"), "{error}");
    }
}

/// A rank that is asked to stop stops all after the same step; an error of one ends all with its
/// reason.
#[test]
fn all_ranks_end_together() {
    let run = |stop_at: Option<u64>, fail_at: Option<u64>| {
        let handles: Vec<_> = Threads::group(3)
            .into_iter()
            .enumerate()
            .map(|(rank, exchange)| {
                std::thread::spawn(move || {
                    let task = Net::new(5);
                    let mut trainer =
                        trainer(&task, CASES[0], 50).with_exchange(Box::new(exchange), &[]);
                    let steps = std::cell::Cell::new(0);
                    let mut hear = |event: &Event<'_>| {
                        if let Event::Step(step) = event {
                            steps.set(step.step);
                            if rank == 1 && Some(step.step) == fail_at {
                                return Err(Error::argument("metrics", "the disk is full"));
                            }
                        }
                        Ok(())
                    };
                    let stop = || rank == 2 && stop_at.is_some_and(|at| steps.get() >= at);
                    (trainer.run(&mut hear, &stop), trainer.step())
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect::<Vec<_>>()
    };
    for (end, step) in run(Some(4), None) {
        assert_eq!((end.unwrap(), step), (End::Stopped, 5));
    }
    for (rank, (end, _)) in run(None, Some(3)).into_iter().enumerate() {
        let error = end.unwrap_err().to_string();
        assert!(error.contains("the disk is full"), "{error}");
        assert!(rank == 1 || error.contains("rank 1 has ended"), "{error}");
    }
}

/// The verdict on the program of a whole step is a part of the state, too: a run that goes on does
/// not ask again. One that had to be given up so has the bits of the steps op by op.
#[test]
fn one_process_keeps_its_verdict() {
    let plain = |steps| TrainerOptions { compiled: true, accumulate: 1, ..options(steps) };
    let optimizer: fn(Vec<Tensor>) -> Box<dyn Optimizer> = |p| Box::new(AdamW::new(p, 0.01));
    let case = Case { optimizer, random: true, options: plain, sharded: false };
    let run = |case: Case, steps: u64, from: Option<&State>| {
        let task = Net::new(5);
        let mut trainer = trainer(&task, case, steps);
        if let Some(from) = from {
            trainer.load_state_dict(&state_of(from)).unwrap();
        }
        assert_eq!(trainer.run(&mut Listeners::new(), &|| false).unwrap(), End::Finished);
        bits(&trainer.state_dict())
    };
    let verdict = |state: &State| {
        let of = |(name, t): (&String, &(DType, Vec<usize>, Vec<u64>))| {
            name.starts_with("programs.").then(|| t.2.clone())
        };
        state.iter().filter_map(of).collect::<Vec<_>>()
    };
    let half = run(case, 3, None);
    assert_eq!(verdict(&half), [[0]]);
    assert!(run(case, 6, Some(&half)) == run(case, 6, None));
    let mut given_up = half;
    for (name, (_, _, bits)) in &mut given_up {
        if name.starts_with("programs.") {
            bits[0] = 1;
        }
    }
    let eager = |steps| TrainerOptions { accumulate: 1, ..options(steps) };
    let wanted = run(Case { options: eager, ..case }, 6, Some(&given_up));
    assert!(run(case, 6, Some(&given_up)) == wanted);
}
