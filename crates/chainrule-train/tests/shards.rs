//! The optimizer's state shared out to ranks: the same bits, a part of the memory, and checkpoints
//! that any number of ranks goes on from.

use std::collections::BTreeMap;
use std::sync::Arc;

use chainrule::data::{Batch, DataLoader, LoaderOptions, TensorDataset};
use chainrule::exchange::{Delayed, Exchange, Network, Threads};
use chainrule::nn::{BatchNorm1d, Dropout, Layer, Linear, Module, Sequential, StateDict, Tanh};
use chainrule::optim::{AdamW, Optimizer, Sgd, SgdOptions};
use chainrule::train::{End, Event, Task, Trainer, TrainerOptions};
use chainrule::{DType, Generator, Result, Tensor};

struct Net(Sequential);

impl Task for Net {
    fn module(&self) -> &dyn Module {
        &self.0
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor> {
        self.0.try_forward(&batch.x)?.try_mse(&batch.y)
    }
}

#[derive(Clone, Copy)]
struct Case {
    optimizer: fn(Vec<Tensor>) -> Box<dyn Optimizer>,
    clip: Option<f64>,
    ema: Option<f64>,
    sharded: bool,
}

const CASES: [Case; 3] = [
    Case { optimizer: |p| Box::new(AdamW::new(p, 0.01)), clip: None, ema: None, sharded: true },
    Case {
        optimizer: |p| Box::new(AdamW::new(p, 0.01)),
        clip: Some(0.1),
        ema: Some(0.9),
        sharded: true,
    },
    Case {
        optimizer: |p| {
            let options = SgdOptions { momentum: 0.9, ..SgdOptions::default() };
            Box::new(Sgd::with_options(p, 0.05, options))
        },
        clip: Some(0.05),
        ema: None,
        sharded: true,
    },
];

/// Dtype, shape and bits by name, which can go from thread to thread.
type State = BTreeMap<String, (DType, Vec<usize>, Vec<u64>)>;

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

/// The state of each rank after so many steps, from a state if there is one.
fn trained(case: Case, ranks: usize, steps: u64, from: Option<&State>) -> Vec<State> {
    let network = Network { latency: 1e-4, bandwidth: 1e9 };
    let on = move |exchange: Box<dyn Exchange>, from: Option<State>| {
        let g = &mut Generator::manual_seed(5);
        let net = Sequential::new().with(Linear::new(3, 16, g)).with(BatchNorm1d::new(16));
        let net = net.with(Tanh).with(Dropout::new(0.3, g));
        // A parameter that is larger than a bucket.
        let task = Net(net.with(Linear::new(16, 40_000, g)).with(Linear::new(40_000, 1, g)));
        let x = Tensor::randn([23, 3], DType::F32, &mut Generator::manual_seed(1));
        let data = Arc::new(TensorDataset::try_new(&x, &x.sum(1, true)).unwrap());
        let loader = LoaderOptions { batch: 5, shuffle: Some(3), ..LoaderOptions::default() };
        let batches = Box::new(DataLoader::try_new(data, loader).unwrap());
        let trainer = Trainer::builder(&task, (case.optimizer)(task.0.parameters()), batches);
        let Case { clip, ema, sharded, .. } = case;
        let options =
            TrainerOptions { steps, accumulate: 7, clip, ema, sharded, ..Default::default() };
        let mut trainer = trainer.options(options).build().unwrap().with_exchange(exchange, &[]);
        if let Some(from) = from {
            trainer.load_state_dict(&state_of(&from)).unwrap();
        }
        let ended = trainer.run(&mut |_: &Event<'_>| Ok(()), &|| false).unwrap();
        assert_eq!(ended, End::Finished);
        bits(&trainer.state_dict())
    };
    let handles: Vec<_> = Threads::group(ranks)
        .into_iter()
        .map(|rank| {
            let from = from.cloned();
            std::thread::spawn(move || on(Box::new(Delayed::new(rank, network)), from))
        })
        .collect();
    handles.into_iter().map(|handle| handle.join().unwrap()).collect()
}

/// Parts of a state that are shared out: the optimizer's, and the average of the weights.
const SHARED: [&str; 2] = ["optimizer.state.", "ema.average."];

fn numbers(state: &State, prefix: &str) -> usize {
    state.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, t)| t.2.len()).sum()
}

#[test]
fn shards_change_no_bit_and_are_a_part() {
    for (i, case) in CASES.into_iter().enumerate() {
        let wanted = trained(Case { sharded: false, ..case }, 1, 4, None).remove(0);
        for ranks in [1, 2, 3, 4, 6] {
            let states = trained(case, ranks, 4, None);
            assert!(states[0] == wanted, "case {i}: {ranks} ranks");
            // The others hold the parts of the whole that are theirs, and no part is held twice.
            let mut held = [0; 2];
            for state in &states[1..] {
                for (name, tensor) in state {
                    assert!(wanted.get(name) == Some(tensor), "case {i}: {ranks} ranks: {name}");
                }
                let is_shared = |name: &&String| SHARED.iter().any(|of| name.starts_with(of));
                let mut rest = wanted.keys().filter(|name| !is_shared(name));
                assert!(rest.all(|name| state.contains_key(name)));
                for (held, prefix) in held.iter_mut().zip(SHARED) {
                    *held += numbers(state, prefix);
                }
            }
            for (held, prefix) in held.into_iter().zip(SHARED) {
                let all = numbers(&wanted, prefix);
                assert!(held < all.max(1), "case {i}: {ranks} ranks hold {held} of {prefix}");
                assert!(ranks == 1 || all == 0 || held > 0, "case {i}: {prefix}");
            }
        }
    }
}

#[test]
fn any_number_of_ranks_goes_on() {
    for case in CASES {
        let wanted = trained(case, 1, 6, None).remove(0);
        for (first, next) in [(1, 3), (3, 1), (4, 2), (2, 6)] {
            let half = trained(case, first, 3, None).remove(0);
            let end = trained(case, next, 6, Some(&half)).remove(0);
            let model = |state: &State| {
                let mut state = state.clone();
                // The shorter run measures at its end, where the longer one does not.
                state.retain(|name, _| !name.starts_with("trainer."));
                state
            };
            assert!(model(&end) == model(&wanted), "{first} to {next} ranks");
        }
    }
}
