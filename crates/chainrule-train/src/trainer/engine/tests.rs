//! A device that runs many steps at once, beside one that runs one after the other.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::data::{Batch, DataLoader, LoaderOptions, TensorDataset};
use crate::error::Result;
use crate::nn::{Layer, Linear, Module, Sequential, Tanh};
use crate::optim::Sgd;
use crate::program::Program;
use crate::runner::ProgramRunner;
use crate::tensor::Tensor;
use crate::{End, Event, Metrics, Task, Trainer, TrainerOptions};
use chainrule_core::{DType, Generator};

struct Net(Sequential);

impl Task for Net {
    fn module(&self) -> &dyn Module {
        &self.0
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor> {
        self.0.try_forward(&batch.x)?.try_mse(&batch.y)
    }

    fn evaluate(&self) -> Result<Metrics> {
        let x = Tensor::ones([2, 3]);
        Ok(vec![("val_loss", self.0.try_forward(&x)?.try_mse(&Tensor::ones([2, 1]))?.try_item()?)])
    }
}

/// The processor in place of a device.
struct Runner {
    programs: Vec<Program>,
    at_once: usize,
    /// Steps of each call.
    calls: Rc<RefCell<Vec<usize>>>,
}

impl ProgramRunner for Runner {
    fn load(&mut self, program: &Program) -> Result<usize> {
        self.programs.push(program.fused());
        Ok(self.programs.len() - 1)
    }

    fn mismatch(&self, program: usize, arguments: &[&Tensor]) -> Option<String> {
        let program = &self.programs[program];
        let dims = program.arguments().iter().map(|id| program.infos()[id.index()].meta.shape);
        let differ = dims.zip(arguments).any(|(shape, x)| shape != x.shape());
        differ.then(|| "another shape".to_string())
    }

    fn run(&mut self, program: usize, arguments: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.programs[program].run(arguments)
    }

    fn at_once(&self, _: usize) -> usize {
        self.at_once
    }

    fn run_steps(&mut self, program: usize, batches: &[Vec<&Tensor>]) -> Result<Vec<Vec<Tensor>>> {
        self.calls.borrow_mut().push(batches.len());
        batches.iter().map(|batch| self.run(program, batch)).collect()
    }

    fn fetch(&mut self) -> Result<()> {
        Ok(())
    }

    fn fetch_one(&mut self, _: &Tensor) -> Result<()> {
        Ok(())
    }
}

/// Results of a training: events and parameters in bits, the steps of each call, the last step.
type Trained = (Vec<(u64, u64)>, Vec<u64>, Vec<usize>, u64);

fn trained(at_once: usize, stop_at: u64) -> Trained {
    let g = &mut Generator::manual_seed(5);
    let first = Linear::new(3, 8, g);
    let net = Net(Sequential::new().with(first).with(Tanh).with(Linear::new(8, 1, g)));
    let x = Tensor::randn([23, 3], DType::F32, g);
    let data = Arc::new(TensorDataset::try_new(&x, &x.sum(1, true)).unwrap());
    let loader = LoaderOptions { batch: 5, shuffle: Some(3), ..LoaderOptions::default() };
    let batches = DataLoader::try_new(data, loader).unwrap();
    let options =
        TrainerOptions { steps: 40, eval_every: 16, compiled: true, ..TrainerOptions::default() };
    let calls = Rc::new(RefCell::new(Vec::new()));
    let runner = Runner { programs: Vec::new(), at_once, calls: calls.clone() };
    let sgd = Sgd::new(net.0.parameters(), 0.05);
    let trainer = Trainer::builder(&net, Box::new(sgd), Box::new(batches)).options(options);
    let mut trainer = trainer.build().unwrap().with_runner(Box::new(runner));
    let heard = RefCell::new(Vec::new());
    let mut listener = |event: &Event<'_>| {
        match event {
            Event::Step(step) => heard.borrow_mut().push((step.step, step.loss.to_bits())),
            Event::Evaluated { step, metrics, .. } => {
                heard.borrow_mut().push((*step, metrics[1].1.to_bits()));
            }
            _ => {}
        }
        Ok(())
    };
    let asked = || heard.borrow().len() as u64 >= stop_at;
    let end = trainer.run(&mut listener, &asked).unwrap();
    assert_eq!(end, if stop_at > 40 { End::Finished } else { End::Stopped });
    let step = trainer.step();
    drop(trainer);
    let parameters = net.0.parameters();
    let bits = parameters.iter().flat_map(Tensor::to_f64_vec).map(f64::to_bits).collect();
    (heard.into_inner(), bits, calls.take(), step)
}

#[test]
fn steps_ahead_are_those_of_one_after_the_other() {
    let (heard, bits, calls, _) = trained(1, u64::MAX);
    assert!(calls.is_empty());
    for at_once in [2, 3, 64] {
        let (got, ahead, calls, _) = trained(at_once, u64::MAX);
        assert!(got == heard && ahead == bits, "{at_once} at once");
        assert!(calls.iter().all(|n| *n <= at_once.min(16)) && calls.iter().any(|n| *n > 1));
    }
}

/// A task whose loss has the logarithm of its data beside it, which no gradient sees.
struct WithLog(Net);

impl Task for WithLog {
    fn module(&self) -> &dyn Module {
        self.0.module()
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor> {
        self.0.loss(batch)?.try_add(batch.y.try_abs()?.try_log()?.try_sum(0, false)?)?.try_sum_all()
    }

    fn evaluate(&self) -> Result<Metrics> {
        Ok(vec![("val_loss", 0.0)])
    }
}

/// The end of a training, and the parameters after it; on the processor for no steps at once.
fn ended(lr: f64, zero: bool, at_once: usize) -> (End, Vec<f64>) {
    let g = &mut Generator::manual_seed(5);
    let first = Linear::new(3, 8, g);
    let net = Net(Sequential::new().with(first).with(Linear::new(8, 1, g)));
    let task = WithLog(net);
    let x = Tensor::randn([40, 3], DType::F32, g);
    let mut y = x.sum(1, true).to_vec::<f32>();
    if zero {
        y[33] = 0.0;
    }
    let y = Tensor::from_slice(&y, [40, 1]);
    let data = Arc::new(TensorDataset::try_new(&x, &y).unwrap());
    let loader = LoaderOptions { batch: 1, shuffle: Some(3), ..LoaderOptions::default() };
    let batches = DataLoader::try_new(data, loader).unwrap();
    let options = TrainerOptions { steps: 200, compiled: true, ..TrainerOptions::default() };
    let sgd = Sgd::new(task.0.0.parameters(), lr);
    let trainer = Trainer::builder(&task, Box::new(sgd), Box::new(batches)).options(options);
    let mut trainer = trainer.build().unwrap();
    if at_once > 0 {
        let runner = Runner { programs: Vec::new(), at_once, calls: Rc::default() };
        trainer = trainer.with_runner(Box::new(runner));
    }
    let end = trainer.run(&mut |_: &Event<'_>| Ok(()), &|| false).unwrap();
    drop(trainer);
    (end, task.0.0.parameters().iter().flat_map(Tensor::to_f64_vec).collect())
}

/// A loss that is not finite in the midst of steps that a device did at once ends the training with
/// its step, and with the op that made it; parameters are those before it.
#[test]
fn a_loss_that_is_not_finite_is_told_of_with_its_step() {
    for (lr, zero) in [(1.0, false), (0.01, true)] {
        let (end, parameters) = ended(lr, zero, 0);
        let End::NotFinite { step, why, .. } = &end else { panic!("{end:?}") };
        assert!(*step > 3 && why.contains("first op"), "{step}: {why}");
        if zero {
            assert!(why.contains("`add`"), "{why}");
        }
        for at_once in [1, 7, 64] {
            let (got, left) = ended(lr, zero, at_once);
            let End::NotFinite { step: other, why: reason, .. } = &got else { panic!("{got:?}") };
            assert_eq!((other, reason), (step, why), "{at_once} at once");
            assert!(left.iter().all(|x| x.is_finite()));
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-3 * b.abs().max(1.0);
            assert!(at_once == 1 || left.iter().zip(&parameters).all(near), "{at_once} at once");
        }
    }
}

/// A wish to stop is heard when the steps that were begun are told of.
#[test]
fn a_training_stops_after_the_steps_that_were_begun() {
    let (heard, ..) = trained(1, u64::MAX);
    let (got, _, _, step) = trained(64, 7);
    assert!((7..=16).contains(&step), "{step}");
    assert_eq!(got, heard[..step as usize]);
}
