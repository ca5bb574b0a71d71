//! The training loop's inside: drawing a batch, its loss, the update; and what happened when a loss
//! is not finite.

use anyhow::Result;
use chainrule::data::text::NameDataset;
use chainrule::nn::models::NamesMlp;
use chainrule::nn::{Module, StateDict};
use chainrule::optim::{Optimizer, Sgd, SgdOptions};
use chainrule::program::Program;
use chainrule::rng::GeneratorState;
use chainrule::{Generator, Tensor, record_all};

/// Every so many steps the state is kept, so that a run that broke can be followed again from there.
const KEEP_EVERY: u64 = 256;

/// The learning rate: full at first, a tenth from a step on.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    pub lr: f64,
    pub decay_at: u64,
}

impl Schedule {
    /// The rate of the step after `done` steps.
    #[inline]
    pub fn rate(&self, done: u64) -> f64 {
        if done < self.decay_at { self.lr } else { self.lr / 10.0 }
    }
}

/// A model in training.
pub struct Trainer<'a> {
    pub model: &'a NamesMlp,
    sgd: Sgd,
    schedule: Schedule,
    generator: Generator,
    pairs: &'a NameDataset,
    /// How many steps are done.
    pub done: u64,
    /// The whole step, once it was traced.
    program: Option<Program>,
    /// The loss of the last step by the program.
    results: Vec<Tensor>,
    kept: Kept,
    picked: Vec<i64>,
    contexts: Vec<i64>,
    targets: Vec<i64>,
}

/// All that decides how the run goes on.
struct Kept {
    done: u64,
    state: StateDict,
    generator: GeneratorState,
}

/// Why a loss is not finite, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

impl<'a> Trainer<'a> {
    /// Goes on drawing from `generator`, which has drawn the weights.
    pub fn new(
        model: &'a NamesMlp,
        pairs: &'a NameDataset,
        batch: usize,
        schedule: Schedule,
        generator: Generator,
    ) -> Result<Trainer<'a>> {
        model.train();
        let sgd = Sgd::try_new(model.parameters(), schedule.rate(0), SgdOptions::default())?;
        let kept = Kept { done: 0, state: model.state_dict(), generator: generator.state() };
        Ok(Trainer {
            model,
            sgd,
            schedule,
            generator,
            pairs,
            done: 0,
            program: None,
            results: Vec::new(),
            kept,
            picked: vec![0; batch],
            contexts: Vec::new(),
            targets: Vec::new(),
        })
    }

    /// Draws a batch and computes its loss. Weights and gradients stay as they are.
    #[inline]
    pub fn forward(&mut self) -> Result<Tensor> {
        if self.done.is_multiple_of(KEEP_EVERY) {
            self.keep();
        }
        let (x, y) = self.draw()?;
        Ok(self.model.try_forward(&x)?.try_cross_entropy(&y)?)
    }

    /// New gradients, from the loss of [`Trainer::forward`].
    #[inline]
    pub fn backward(&mut self, loss: &Tensor) -> Result<()> {
        self.sgd.zero_grad();
        Ok(loss.try_backward()?)
    }

    /// The update by the gradients of [`Trainer::backward`].
    #[inline]
    pub fn step(&mut self) -> Result<()> {
        let rate = self.rate();
        if rate != self.sgd.lr() {
            self.sgd.set_lr(rate)?;
        }
        self.sgd.step()?;
        self.done += 1;
        Ok(())
    }

    /// Draws a batch and does the whole step as a program: the loss before the update. If that is not finite, weights and generator are as before the update.
    #[inline]
    pub fn compiled(&mut self) -> Result<f64> {
        if self.done.is_multiple_of(KEEP_EVERY) {
            self.keep();
        }
        let loss = self.run_program()?;
        if loss.is_finite() {
            self.done += 1;
        } else {
            self.undo()?;
        }
        Ok(loss)
    }

    fn run_program(&mut self) -> Result<f64> {
        let (x, y) = self.draw()?;
        let rate = self.rate();
        if rate != self.sgd.lr() {
            self.sgd.set_lr(rate)?;
        }
        let program = match self.program.take() {
            Some(program) => program,
            None => self.trace(&x, &y)?,
        };
        let ran = program.run_into(&[&x, &y], &mut self.results);
        self.program = Some(program);
        ran?;
        Ok(self.results[0].try_item()?)
    }

    fn trace(&mut self, x: &Tensor, y: &Tensor) -> Result<Program> {
        self.sgd.zero_grad();
        let program = Program::trace([("x", x), ("y", y)], |batch| {
            let loss = self.model.try_forward(&batch[0])?.try_cross_entropy(&batch[1])?;
            loss.try_backward()?;
            self.sgd.step()?;
            Ok(vec![loss])
        })?;
        Ok(program.optimized().fused())
    }

    /// Goes back before the step that was just run, by way of the kept state. The batch of that step is at hand again.
    fn undo(&mut self) -> Result<()> {
        let end = self.done;
        self.model.load_state_dict(&self.kept.state)?;
        self.generator.set_state(&self.kept.generator);
        self.done = self.kept.done;
        while self.done < end {
            self.run_program()?;
            self.done += 1;
        }
        self.draw()?;
        Ok(())
    }

    /// The learning rate of the next update.
    #[inline]
    pub fn rate(&self) -> f64 {
        self.schedule.rate(self.done)
    }

    #[inline]
    fn draw(&mut self) -> Result<(Tensor, Tensor)> {
        self.generator.fill_randint(0, self.pairs.count as i64, &mut self.picked)?;
        let width = self.model.config().context;
        self.contexts.clear();
        self.targets.clear();
        for &row in &self.picked {
            let row = row as usize;
            self.contexts.extend_from_slice(&self.pairs.contexts[row * width..(row + 1) * width]);
            self.targets.push(self.pairs.targets[row]);
        }
        let n = self.picked.len();
        let contexts = Tensor::try_from_slice(&self.contexts, [n, width])?;
        Ok((contexts, Tensor::try_from_slice(&self.targets, [n])?))
    }

    fn keep(&mut self) {
        self.kept = Kept {
            done: self.done,
            state: self.model.state_dict(),
            generator: self.generator.state(),
        };
    }

    /// Finds out why the loss of the batch drawn last is not finite, and takes the model back to its
    /// last good state: the weights before that batch, or, if an update had already spoilt them, those
    /// before that update.
    pub fn explain(&mut self) -> Result<Broken> {
        if self.is_finite() {
            // The batch drawn last is still at hand.
            let n = self.targets.len();
            let x = Tensor::try_from_slice(&self.contexts, [n, self.contexts.len() / n])?;
            let y = Tensor::try_from_slice(&self.targets, [n])?;
            let loss = record_all(|| self.model.try_forward(&x)?.try_cross_entropy(&y))?;
            return Ok(Broken(match loss.first_non_finite() {
                Some(first) => {
                    let made = match &first.name {
                        Some(name) => format!(" (which made `{name}`)"),
                        None => String::new(),
                    };
                    format!("the first op that gave {} was `{}`{made}", first.value, first.op)
                }
                None => "no op gave it when the batch was run again".to_owned(),
            }));
        }
        self.follow_again()
    }

    fn is_finite(&self) -> bool {
        self.sgd.parameters().iter().all(Tensor::is_finite)
    }

    /// Repeats the steps since the kept state up to the update that made a weight not finite, and
    /// stops before it.
    fn follow_again(&mut self) -> Result<Broken> {
        let end = self.done;
        self.model.load_state_dict(&self.kept.state)?;
        self.generator.set_state(&self.kept.generator);
        self.done = self.kept.done;
        while self.done < end {
            let before = self.model.state_dict();
            let (x, y) = self.draw()?;
            let loss = record_all(|| self.model.try_forward(&x)?.try_cross_entropy(&y))?;
            let culprit = first_bad_gradient(&loss)?;
            let done = self.done;
            self.backward(&loss)?;
            self.step()?;
            if !self.is_finite() {
                self.model.load_state_dict(&before)?;
                self.done = done;
                return Ok(Broken(culprit.unwrap_or_else(|| self.first_bad_update())));
            }
        }
        Ok(Broken("the run did not repeat itself, so the op is not known".to_owned()))
    }

    fn first_bad_update(&self) -> String {
        let rate = self.rate();
        let named = self.model.named_parameters();
        let bad = named.iter().find(|(_, p)| {
            let largest = |t: &Tensor| t.to_f64_vec().iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            p.grad().is_some_and(|g| {
                largest(p) + rate * largest(&g) > f64::from(f32::MAX) || !g.is_finite()
            })
        });
        let name = bad.map_or("a parameter", |(name, _)| name);
        format!("the update of step {} made `{name}` overflow", self.done + 1)
    }
}

/// Which op's backward first gives a gradient that is not finite, if one does.
fn first_bad_gradient(loss: &Tensor) -> Result<Option<String>> {
    let trace = loss.try_trace()?;
    let bad = trace.steps().iter().find(|step| {
        step.cotangent().is_finite() && step.sent().iter().any(|part| !part.gradient().is_finite())
    });
    Ok(bad.map(|step| {
        let op = step.op().unwrap_or("the loss");
        let made = match step.tensor() {
            label if label.contains('#') => String::new(),
            label => format!(" (which made `{label}`)"),
        };
        format!("the first op whose gradient overflowed was `{op}`{made}")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule::nn::models::NamesMlpConfig;

    fn pairs() -> NameDataset {
        NameDataset::build(&["emma", "olivia", "ava", "isabella", "sophia"], 3).unwrap()
    }

    fn model() -> (NamesMlp, Generator) {
        let mut generator = Generator::manual_seed(3);
        let model = NamesMlp::try_new(NamesMlpConfig::default(), &mut generator).unwrap();
        (model.with_primitive_batch_norm(), generator)
    }

    fn scaled_normal(shape: [usize; 2], factor: f64) -> Tensor {
        let generator = &mut Generator::manual_seed(5);
        Tensor::randn(shape, chainrule::DType::F32, generator).try_mul(factor).unwrap()
    }

    fn bits(model: &NamesMlp) -> Vec<u64> {
        let state = model.state_dict();
        state.values().flat_map(Tensor::to_f64_vec).map(f64::to_bits).collect()
    }

    /// Takes steps until a loss is not finite; the step of that loss and the reason.
    fn train_until_it_breaks(trainer: &mut Trainer<'_>) -> (u64, String) {
        for _ in 0..1_000 {
            let loss = trainer.forward().unwrap();
            if !loss.item().is_finite() {
                return (trainer.done + 1, trainer.explain().unwrap().0);
            }
            trainer.backward(&loss).unwrap();
            trainer.step().unwrap();
        }
        panic!("it did not break");
    }

    #[test]
    fn the_rate_falls_to_a_tenth() {
        let schedule = Schedule { lr: 0.1, decay_at: 2 };
        assert_eq!([0, 1, 2, 9].map(|done| schedule.rate(done)), [0.1, 0.1, 0.01, 0.01]);
        assert_eq!(Schedule { lr: 0.1, decay_at: 0 }.rate(0), 0.01);
    }

    #[test]
    fn an_overflow_forward_names_its_op_and_leaves_the_weights() {
        let (model, generator) = model();
        // The product with W1 is finite, below 1e38; the sum of its squares, which `var` takes, is not.
        model.w1.set(&scaled_normal([30, 200], 1e36));
        let before = bits(&model);
        let pairs = pairs();
        let schedule = Schedule { lr: 0.1, decay_at: 9 };
        let mut trainer = Trainer::new(&model, &pairs, 32, schedule, generator).unwrap();
        let loss = trainer.forward().unwrap();
        let first = trainer.explain().unwrap().0;
        // Whether the loss itself survives depends on the ops after it; the reason does not.
        let said = first.starts_with("the first op that gave ") && first.ends_with(" was `var`");
        assert!(said, "{first}: {}", loss.item());
        assert_eq!(bits(&model), before);
        assert_eq!(trainer.done, 0);
    }

    #[test]
    fn an_update_that_overflows_is_taken_back() {
        let (model, generator) = model();
        model.w2.set(&scaled_normal([200, 27], 1e30));
        let before = bits(&model);
        let pairs = pairs();
        let schedule = Schedule { lr: 1e12, decay_at: 9 };
        let mut trainer = Trainer::new(&model, &pairs, 32, schedule, generator).unwrap();
        let (step, why) = train_until_it_breaks(&mut trainer);
        assert_eq!((step, trainer.done), (2, 0));
        assert!(why.starts_with("the update of step 1 made `"), "{why}");
        assert_eq!(bits(&model), before);
    }

    #[test]
    fn a_gradient_that_overflows_is_taken_back_and_its_op_named() {
        let (model, generator) = model();
        // The hidden layer is 0 before batch norm, whose slope is then 1 / sqrt(eps) times the gain: the
        // gradient of 1e35 or more that comes from W2 overflows there, and the loss is that of b2 alone.
        model.w1.set(&Tensor::zeros([30, 200]));
        model.b1.set(&Tensor::zeros([200]));
        model.bngain.set(&Tensor::full([1, 200], 1e4, chainrule::DType::F32));
        model.bnbias.set(&Tensor::zeros([1, 200]));
        model.w2.set(&scaled_normal([200, 27], 1e37));
        let before = bits(&model);
        let pairs = pairs();
        let schedule = Schedule { lr: 1e-3, decay_at: 9 };
        let mut trainer = Trainer::new(&model, &pairs, 32, schedule, generator).unwrap();
        let (step, why) = train_until_it_breaks(&mut trainer);
        assert_eq!((step, trainer.done), (2, 0));
        assert!(why.starts_with("the first op whose gradient overflowed was `"), "{why}");
        assert_eq!(bits(&model), before);
    }

    /// The run is followed again from a kept state that lies some steps back, and gets to the same place.
    #[test]
    fn a_run_that_breaks_later_is_followed_to_the_last_good_state() {
        let pairs = pairs();
        let schedule = Schedule { lr: 0.1, decay_at: 1_000 };
        let at = KEEP_EVERY + 20;
        let broken = |spoil: bool| {
            let (model, generator) = model();
            let mut trainer = Trainer::new(&model, &pairs, 32, schedule, generator).unwrap();
            while trainer.done < at {
                let loss = trainer.forward().unwrap();
                trainer.backward(&loss).unwrap();
                trainer.step().unwrap();
            }
            if spoil {
                // As if the last update had made it so; the kept state knows nothing of it.
                model.b2.set(&Tensor::full([27], f64::INFINITY, chainrule::DType::F32));
                let loss = trainer.forward().unwrap();
                assert!(!loss.item().is_finite());
                let why = trainer.explain().unwrap().0;
                assert!(why.starts_with("the run did not repeat itself"), "{why}");
                assert_eq!(trainer.done, at);
            }
            bits(&model)
        };
        assert_eq!(broken(true), broken(false));
    }
}
