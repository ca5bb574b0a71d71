//! Models that break in known ways.

use std::sync::Arc;

use crate::data::text::NameDataset;
use crate::data::{Batch, RandomBatches, TensorDataset};
use crate::nn::Module;
use crate::optim::Sgd;
use crate::{End, Event, Task, Trainer, TrainerOptions};
use chainrule_core::{DType, Generator, Result, Tensor};
use chainrule_lab::models::{NamesMlp, NamesMlpConfig};

struct Names(NamesMlp);

impl Task for Names {
    fn module(&self) -> &dyn Module {
        &self.0
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor> {
        self.0.try_forward(&batch.x)?.try_cross_entropy(&batch.y)
    }
}

fn scaled_normal(shape: [usize; 2], factor: f64) -> Tensor {
    Tensor::randn(shape, DType::F32, &mut Generator::manual_seed(5)).try_mul(factor).unwrap()
}

fn bits(model: &NamesMlp) -> Vec<u64> {
    let state = model.state_dict();
    state.values().flat_map(Tensor::to_f64_vec).map(f64::to_bits).collect()
}

/// Trains a spoilt model until a loss is not finite: its step, the reason, how many steps are done
/// then, and whether the model is as it was at first.
fn breaks(compiled: bool, lr: f64, spoil: impl Fn(&NamesMlp)) -> (u64, String, u64, bool) {
    let g = &mut Generator::manual_seed(3);
    let model = NamesMlp::new(NamesMlpConfig::default(), g).with_primitive_batch_norm();
    spoil(&model);
    let before = bits(&model);
    let names = ["emma", "olivia", "ava", "isabella", "sophia"];
    let pairs = NameDataset::build(&names, 3).unwrap();
    let x = Tensor::from_slice(&pairs.contexts, [pairs.count, 3]);
    let y = Tensor::from_slice(&pairs.targets, [pairs.count]);
    let data = Arc::new(TensorDataset::try_new(&x, &y).unwrap());
    let batches = Box::new(RandomBatches::try_new(data, 32, g.clone()).unwrap());
    let task = Names(model);
    let sgd = Box::new(Sgd::new(task.0.parameters(), lr));
    let options = TrainerOptions { compiled, simplified: false, ..TrainerOptions::default() };
    let mut trainer = Trainer::builder(&task, sgd, batches).options(options).build().unwrap();
    let end = trainer.run(&mut |_: &Event<'_>| Ok(()), &|| false).unwrap();
    let End::NotFinite { step, why, .. } = end else { panic!("{end:?}") };
    (step, why, trainer.step(), bits(&task.0) == before)
}

#[test]
fn an_overflow_forward_names_its_op_and_leaves_the_weights() {
    for compiled in [false, true] {
        let (step, why, done, is_as_before) =
            breaks(compiled, 0.1, |model| model.w2.set(&scaled_normal([200, 27], 1e38)));
        assert_eq!((step, done, is_as_before), (1, 0, true), "{compiled}: {why}");
        let said = why.starts_with("the first op that gave ") && why.contains(" was `matmul`");
        assert!(said, "{why}");
    }
}

#[test]
fn an_update_that_overflows_is_taken_back() {
    for compiled in [false, true] {
        let (step, why, done, is_as_before) =
            breaks(compiled, 1e12, |model| model.w2.set(&scaled_normal([200, 27], 1e30)));
        assert_eq!((step, done, is_as_before), (2, 0, true), "{compiled}: {why}");
        assert!(why.starts_with("the update of step 1 made `"), "{why}");
    }
}

#[test]
fn a_gradient_that_overflows_is_taken_back_and_its_op_named() {
    for compiled in [false, true] {
        // The hidden layer is 0 before batch norm, whose slope is then 1 / sqrt(eps) times the
        // gain: the gradient of 1e35 or more that comes from W2 overflows there, and the loss is
        // that of b2 alone.
        let spoil = |model: &NamesMlp| {
            model.w1.set(&Tensor::zeros([30, 200]));
            model.b1.set(&Tensor::zeros([200]));
            model.bngain.set(&Tensor::full([1, 200], 1e4, DType::F32));
            model.bnbias.set(&Tensor::zeros([1, 200]));
            model.w2.set(&scaled_normal([200, 27], 1e37));
        };
        let (step, why, done, is_as_before) = breaks(compiled, 1e-3, spoil);
        assert_eq!((step, done, is_as_before), (2, 0, true), "{compiled}: {why}");
        assert!(why.starts_with("the first op whose gradient overflowed was `"), "{why}");
    }
}
