//! `--diagnose`: short runs of the same training with one thing changed, and what repairs it.
//!
//! Model, data and settings are those of the command. Every run begins with the weights and at the
//! place in the data that the training began with; other seeds begin with these weights in another
//! order, which are as likely as they are, and elsewhere in the data.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use chainrule::data::{Batch, Batches};
use chainrule::nn::{Module, StateDict};
use chainrule::rng::GeneratorState;
use chainrule::train::{Event, Task, Trainer, TrainerOptions};
use chainrule::{DType, Generator, Tensor};
use chainrule_diagnose::{
    Cause, Change, Course, Effort, Proof, Suspicion, Trainable, before, prove,
};

use super::settings::Settings;
use crate::args::train::{OptimizerKind, ScheduleKind};

/// The most time that is spent if nothing else is said.
const MOST: Duration = Duration::from_secs(60);
/// The least: a training of a tenth of a second is worth more than that.
const LEAST: Duration = Duration::from_secs(4);
/// Runs that should fit into the time.
const RUNS: u32 = 14;
/// Difference of skills that counts as none.
const SAME: f64 = 0.15;
/// Steps of a run at least, if the training has so many.
const SHORT: u64 = 60;
/// Strength of a sign that is told before a training.
const CERTAIN: f64 = 0.8;
/// Batches that the constant answer is measured on.
const BATCHES: usize = 30;
/// Factor from the steps of a run to those of a longer one.
const LONGER: u64 = 4;

/// Batches that several trainings take one after another.
#[derive(Clone)]
pub struct SharedBatches(Rc<RefCell<Box<dyn Batches>>>);

impl SharedBatches {
    /// These batches, to be shared.
    pub fn new(batches: Box<dyn Batches>) -> SharedBatches {
        SharedBatches(Rc::new(RefCell::new(batches)))
    }
}

impl Batches for SharedBatches {
    fn next_batch(&mut self) -> chainrule::Result<Batch> {
        self.0.borrow_mut().next_batch()
    }

    fn per_epoch(&self) -> Option<u64> {
        self.0.borrow().per_epoch()
    }

    fn state_dict(&self) -> StateDict {
        self.0.borrow().state_dict()
    }

    fn load_state_dict(&mut self, state: &StateDict) -> chainrule::Result<()> {
        self.0.borrow_mut().load_state_dict(state)
    }
}

/// Batches whose targets are in another order than their inputs.
struct Shuffled(SharedBatches, Generator);

impl Batches for Shuffled {
    fn next_batch(&mut self) -> chainrule::Result<Batch> {
        let Batch { x, y } = self.0.next_batch()?;
        let flat = y.try_reshape([-1])?;
        let order = Tensor::from(self.1.randperm(flat.numel()));
        let sizes: Vec<i64> = y.shape().iter().map(|&n| n as i64).collect();
        Ok(Batch { x, y: flat.try_index_select(0, &order)?.try_reshape(sizes)? })
    }

    fn per_epoch(&self) -> Option<u64> {
        self.0.per_epoch()
    }

    fn state_dict(&self) -> StateDict {
        self.0.state_dict()
    }

    fn load_state_dict(&mut self, state: &StateDict) -> chainrule::Result<()> {
        self.0.load_state_dict(state)
    }
}

/// State of a training before its first step.
pub struct Beginning {
    weights: StateDict,
    /// The generators inside the model, such as those of dropout.
    generators: BTreeMap<String, GeneratorState>,
    place: StateDict,
}

impl Beginning {
    /// The state now; to be taken before the first step.
    pub fn of(task: &dyn Task, batches: &SharedBatches) -> Beginning {
        let module = task.module();
        let (weights, generators) = (module.state_dict(), module.generator_states());
        Beginning { weights, generators, place: batches.state_dict() }
    }
}

/// Signs of mistakes before the first step that are as good as certain; the place in the data and
/// the model stay as they are.
pub fn signs(task: &dyn Task, batches: &SharedBatches) -> Result<Vec<Suspicion>> {
    let (mut batches, place) = (batches.clone(), batches.state_dict());
    let batch = batches.next_batch()?;
    batches.load_state_dict(&place)?;
    let module = task.module();
    let loss = |x: &Tensor, y: &Tensor| task.loss(&Batch { x: x.clone(), y: y.clone() });
    // A batch that cannot be measured by rows is told of by the training itself.
    let signs = before(module, &batch.x, &batch.y, &loss).unwrap_or_default();
    Ok(signs.into_iter().filter(|sign| sign.strength >= CERTAIN).collect())
}

/// A training and all that its runs need.
pub struct Experiments<'a> {
    pub task: &'a dyn Task,
    pub batches: SharedBatches,
    pub settings: &'a Settings,
    pub options: TrainerOptions,
    pub beginning: Beginning,
    /// The loss over the last tenth of the training itself.
    pub reached: f64,
    /// Signs from before the first step.
    pub signs: Vec<Suspicion>,
}

impl Experiments<'_> {
    /// Runs them after a training that took so long, and gives the model its weights back.
    pub fn prove(&self, took: f64, seconds: Option<f64>) -> Result<Proof> {
        let usual = Duration::from_secs_f64(took.clamp(0.0, 1e6)).clamp(LEAST, MOST);
        let time = seconds.map_or(usual, Duration::from_secs_f64);
        let trained = self.task.module().state_dict();
        let scale = self.scale()?;
        let share = time.as_secs_f64() / (f64::from(RUNS) * took.max(1e-6));
        let steps = self.settings.steps;
        let short = (share * steps as f64).min(steps as f64) as u64;
        let bench = ShortRuns { all: self, scale, steps: short.max(SHORT).min(steps) };
        let proof = bench.prove(Effort { runs: 60, time, threads: 1 });
        self.task.module().load_state_dict(&trained)?;
        let mut proof = proof?;
        // A run that was cut is not blamed for what the whole one does.
        if bench.steps < steps && scale.skill(self.reached) > proof.after - SAME {
            proof.causes.clear();
            (proof.learns, proof.skill) = (true, scale.skill(self.reached));
            proof.best = proof.best.max(proof.skill);
        }
        Ok(proof)
    }

    /// The loss of the best answer that does not look at the input (the entropy of the classes, or
    /// the variance of the numbers), and that of a good one: where inputs are symbols, nine tenths
    /// of what a table of pairs could reach, else 0.
    fn scale(&self) -> Result<Scale> {
        let mut batches = self.batches.clone();
        batches.load_state_dict(&self.beginning.place)?;
        let (mut numbers, mut pairs) = (Vec::new(), Vec::new());
        let mut is_classes = true;
        for _ in 0..BATCHES {
            let Batch { x, y } = batches.next_batch()?;
            is_classes &= y.dtype() == DType::I64;
            let (symbols, targets) = (x.to_f64_vec(), y.to_f64_vec());
            if x.dtype() == DType::I64 && !targets.is_empty() {
                // The symbol before each target: the last of its context, or the one at its place.
                let each = (symbols.len() / targets.len()).max(1);
                let last = symbols.chunks_exact(each).filter_map(|context| context.last());
                pairs.extend(last.copied().zip(targets.iter().copied()).filter(|p| p.1 >= 0.0));
            }
            numbers.extend(targets);
        }
        let constant = if is_classes { entropy(numbers) } else { variance(&numbers) };
        let good = if is_classes && !pairs.is_empty() { 0.9 * given_one(pairs) } else { 0.0 };
        Ok(Scale { constant, good: good.min(0.9 * constant) })
    }
}

/// Losses that stand for a skill of 0 and of 1.
#[derive(Clone, Copy, Debug)]
struct Scale {
    constant: f64,
    good: f64,
}

impl Scale {
    fn skill(&self, loss: f64) -> f64 {
        if !loss.is_finite() {
            return -1.0;
        }
        ((self.constant - loss) / (self.constant - self.good).max(1e-9)).clamp(-1.0, 1.0)
    }
}

/// The entropy of the second of two symbols where the first is known.
fn given_one(mut pairs: Vec<(f64, f64)>) -> f64 {
    let n = pairs.len().max(1) as f64;
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let of = |group: &[(f64, f64)]| {
        group.len() as f64 / n * entropy(group.iter().map(|p| p.1).collect())
    };
    pairs.chunk_by(|a, b| a.0 == b.0).map(of).sum()
}

/// The entropy of classes, without those below 0, which count for nothing.
fn entropy(mut classes: Vec<f64>) -> f64 {
    classes.retain(|&c| c >= 0.0);
    classes.sort_by(f64::total_cmp);
    let n = classes.len().max(1) as f64;
    let share = |group: &[f64]| group.len() as f64 / n;
    classes.chunk_by(|a, b| a == b).map(share).map(|p| -p * p.ln()).sum()
}

fn variance(numbers: &[f64]) -> f64 {
    let n = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n
}

/// The runs of one diagnosis.
struct ShortRuns<'a> {
    all: &'a Experiments<'a>,
    scale: Scale,
    /// Steps of a run.
    steps: u64,
}

type Asked = (Vec<Change>, usize, Instant);

impl ShortRuns<'_> {
    /// The search runs on a thread of its own and asks this one for runs: a model stays where it
    /// was made.
    fn prove(&self, effort: Effort) -> Result<Proof> {
        let (ask, asked) = channel::<Asked>();
        let (answer, answers) = channel();
        let settings = self.all.settings;
        let remote = Remote {
            offers: self.offers(),
            edits: |change: Change| edit(settings, change),
            lr: settings.lr,
            is_sgd: settings.optimizer == OptimizerKind::Sgd,
            signs: self.signs(),
            line: Mutex::new((ask, answers)),
        };
        let proof = std::thread::scope(|scope| {
            let search = scope.spawn(move || prove(&remote, effort));
            for (changes, seed, deadline) in asked {
                let course = self.run(&changes, seed, deadline);
                // A search that has ended asks for nothing more.
                let _ = answer.send(course);
            }
            search.join()
        });
        proof.map_err(|_| anyhow!("the diagnosis came to no end"))
    }

    /// The changes that change something here.
    fn offers(&self) -> Vec<Change> {
        use Change::*;
        let s = self.all.settings;
        let mut out = vec![Down10, Down100, Up10, Up100, Longer, Init, ShuffledTargets];
        let adam = |lr: f64| s.optimizer == OptimizerKind::Adam && (s.lr / lr - 1.0).abs() < 1e-9;
        out.extend([(Adam, 0.001), (AdamFast, 0.01)].iter().filter(|c| !adam(c.1)).map(|c| c.0));
        let decays = s.schedule != ScheduleKind::Constant || s.tenth_at.is_some();
        let odd = s.momentum > 0.98;
        let more = [
            (NoClip, s.clip.is_some()),
            (NoRegularisation, s.weight_decay > 0.0),
            (WeightDecay, s.weight_decay == 0.0),
            (NoDecay, decays),
            (UsualMoments, odd),
            (Shorter, self.steps > 8),
        ];
        out.extend(more.into_iter().filter(|m| m.1).map(|m| m.0));
        out
    }

    /// Signs that the settings show.
    fn signs(&self) -> Vec<Suspicion> {
        use Change::*;
        let s = self.all.settings;
        let mut out = self.all.signs.clone();
        let mut add = |cause, strength, place: &str, text: String, value, remedies: &[Change]| {
            out.push(Suspicion {
                cause,
                strength,
                place: place.to_owned(),
                since: 0,
                text,
                numbers: vec![("setting", value)],
                remedies: remedies.to_vec(),
            });
        };
        if let Some(clip) = s.clip.filter(|clip| *clip < 0.05) {
            let text = format!("gradients are shortened to a norm of {clip}");
            add(Cause::Clipping, 0.8, "--clip", text, clip, &[NoClip]);
        }
        if s.weight_decay > 0.5 {
            let text = format!("weights decay by {} times the rate a step", s.weight_decay);
            add(
                Cause::Regularisation,
                0.9,
                "--weight-decay",
                text,
                s.weight_decay,
                &[NoRegularisation],
            );
        }
        if s.momentum > 0.98 {
            let times = 1.0 / (1.0 - s.momentum);
            let text = format!("a momentum of {} makes steps {times:.0} times as long", s.momentum);
            add(Cause::Optimizer, 0.7, "--momentum", text, s.momentum, &[UsualMoments, Down10]);
        }
        out
    }

    /// Trains with changes from the beginning. None where they do not run, or time is over.
    fn run(&self, changes: &[Change], seed: usize, deadline: Instant) -> Option<Course> {
        self.trained(changes, seed, deadline).unwrap_or(None)
    }

    fn trained(
        &self,
        changes: &[Change],
        seed: usize,
        deadline: Instant,
    ) -> Result<Option<Course>> {
        let all = self.all;
        let mut settings = all.settings.clone();
        settings.steps = self.steps;
        changes.iter().for_each(|&change| apply(&mut settings, change));
        settings.warm_up = settings.warm_up.min(settings.steps / 2);
        settings.tenth_at = settings.tenth_at.map(|at| {
            (at as f64 * settings.steps as f64 / all.settings.steps.max(1) as f64) as u64
        });
        let module = all.task.module();
        module.load_state_dict(&all.beginning.weights)?;
        module.set_generator_states(&all.beginning.generators)?;
        reordered(module, seed)?;
        if changes.contains(&Change::Init) {
            initialised(module, seed)?;
        }
        let mut batches = all.batches.clone();
        batches.load_state_dict(&all.beginning.place)?;
        for _ in 0..17 * seed {
            batches.next_batch()?;
        }
        let batches: Box<dyn Batches> = match changes.contains(&Change::ShuffledTargets) {
            true => Box::new(Shuffled(batches, Generator::manual_seed(99 + seed as u64))),
            false => Box::new(batches),
        };
        let options = TrainerOptions {
            steps: settings.steps,
            clip: settings.clip,
            eval_every: TrainerOptions::NEVER,
            save_every: 0,
            patience: None,
            looks_at_the_last: false,
            // The average of a short run is mostly its beginning.
            ema: None,
            ..all.options.clone()
        };
        let optimizer = settings.optimizer(module.parameters())?;
        let builder = Trainer::builder(all.task, optimizer, batches);
        let mut trainer = builder.schedule(settings.schedule()).options(options).build()?;
        let mut losses = Vec::new();
        let mut hear = |event: &Event<'_>| {
            if let Event::Step(step) = event {
                losses.push(step.loss as f32);
            }
            Ok(())
        };
        trainer.run(&mut hear, &|| Instant::now() > deadline)?;
        let done = losses.len() as u64;
        let broke = done < settings.steps && Instant::now() <= deadline;
        if done < settings.steps && !broke {
            return Ok(None);
        }
        if broke {
            losses.push(f32::NAN);
            return Ok(Some(Course { losses, fit: -1.0, held: None }));
        }
        let tenth = &losses[losses.len() - losses.len().div_ceil(10)..];
        let end = tenth.iter().map(|&l| f64::from(l)).sum::<f64>() / tenth.len() as f64;
        let measured = trainer.evaluate()?;
        let held = ["val_loss", "test_loss"].iter().find_map(|name| {
            measured.iter().find(|(n, _)| n == name).map(|(_, loss)| self.scale.skill(*loss))
        });
        Ok(Some(Course { losses, fit: self.scale.skill(end), held }))
    }
}

/// The settings with a change that is one of settings.
fn apply(settings: &mut Settings, change: Change) {
    use Change::*;
    let rate = |settings: &mut Settings, lr: f64| {
        settings.last_lr *= lr / settings.lr;
        settings.lr = lr;
    };
    let now = settings.lr;
    match change {
        Down10 => rate(settings, now * 0.1),
        Down100 => rate(settings, now * 0.01),
        Up10 => rate(settings, now * 10.0),
        Up100 => rate(settings, now * 100.0),
        Adam | AdamFast => {
            rate(settings, if change == Adam { 0.001 } else { 0.01 });
            settings.optimizer = OptimizerKind::Adam;
            settings.betas = (0.9, 0.999);
            settings.momentum = 0.0;
        }
        NoClip => settings.clip = None,
        NoRegularisation => settings.weight_decay = 0.0,
        WeightDecay => settings.weight_decay = 0.01,
        NoDecay => (settings.schedule, settings.tenth_at) = (ScheduleKind::Constant, None),
        UsualMoments => settings.momentum = 0.9,
        Longer => settings.steps = settings.steps.saturating_mul(LONGER),
        Shorter => settings.steps = settings.steps.div_ceil(4),
        _ => {}
    }
}

/// The option that makes a change.
fn edit(settings: &Settings, change: Change) -> String {
    use Change::*;
    let mut changed = settings.clone();
    apply(&mut changed, change);
    match change {
        Down10 | Down100 | Up10 | Up100 => format!("--lr {}", short(changed.lr)),
        Adam | AdamFast => format!("--optimizer adam --lr {}", short(changed.lr)),
        NoClip => "a larger --clip, or none".to_owned(),
        NoRegularisation => "--weight-decay 0".to_owned(),
        WeightDecay => "--weight-decay 0.01".to_owned(),
        NoDecay => "--schedule constant".to_owned(),
        UsualMoments => "--momentum 0.9".to_owned(),
        Longer | Shorter => format!("--steps {}", changed.steps),
        other => other.text().to_owned(),
    }
}

fn short(x: f64) -> String {
    // Without the noise of a product: 0.3, not 0.30000000000000004.
    let x: f64 = format!("{x:.5e}").parse().unwrap_or(x);
    if (0.01..1e4).contains(&x) { format!("{x}") } else { format!("{x:e}") }
}

/// The numbers of each weight in another order, for seeds after the first.
fn reordered(module: &dyn Module, seed: usize) -> Result<()> {
    if seed == 0 {
        return Ok(());
    }
    let g = &mut Generator::manual_seed(seed as u64);
    put(module, |_, numbers| {
        let order = g.randperm(numbers.len());
        order.iter().map(|&i| numbers[i as usize]).collect()
    })
}

/// Glorot's initialisation for weights, which is the same for `x @ w` and for its transpose.
fn initialised(module: &dyn Module, seed: usize) -> Result<()> {
    let g = &mut Generator::manual_seed(1000 + seed as u64);
    put(module, |shape, numbers| {
        let ends = (numbers.len() / shape[0].max(1) + numbers.len() / shape[1].max(1)).max(1);
        let mut fresh = vec![0.0f32; numbers.len()];
        g.fill_normal_f32(&mut fresh);
        let size = (2.0 / ends as f64).sqrt() as f32;
        fresh.iter().map(|x| x * size).collect()
    })
}

/// Weights of two axes or more through a function of shape and numbers.
fn put(module: &dyn Module, mut new: impl FnMut(&[usize], &[f32]) -> Vec<f32>) -> Result<()> {
    let mut state = module.state_dict();
    let names: Vec<String> = module
        .named_parameters()
        .into_iter()
        .filter(|(_, p)| p.rank() >= 2 && p.dtype() == DType::F32)
        .map(|(name, _)| name)
        .collect();
    for name in names {
        let Some(old) = state.get(&name) else { continue };
        let numbers = old.try_to_vec::<f32>()?;
        let fresh = new(&old.shape(), &numbers);
        let fresh = Tensor::try_from_slice(&fresh, old.shape())?;
        state.insert(name, fresh);
    }
    Ok(module.load_state_dict(&state)?)
}

/// The training as the search knows it: it asks, and waits for the answer.
struct Remote<F> {
    offers: Vec<Change>,
    edits: F,
    lr: f64,
    is_sgd: bool,
    signs: Vec<Suspicion>,
    line: Mutex<(Sender<Asked>, Receiver<Option<Course>>)>,
}

impl<F: Fn(Change) -> String + Sync> Trainable for Remote<F> {
    fn offers(&self) -> Vec<Change> {
        self.offers.clone()
    }

    fn train(&self, changes: &[Change], seed: usize, deadline: Instant) -> Option<Course> {
        let line = self.line.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        line.0.send((changes.to_vec(), seed, deadline)).ok()?;
        line.1.recv().ok()?
    }

    fn edit(&self, change: Change) -> String {
        (self.edits)(change)
    }

    fn lr(&self) -> f64 {
        self.lr
    }

    fn is_sgd(&self) -> bool {
        self.is_sgd
    }

    fn findings(&self) -> Vec<Suspicion> {
        self.signs.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::train::Common;
    use crate::train::Defaults;

    #[test]
    fn the_best_constant_answers_are_measured() {
        assert!((entropy(vec![0.0, 1.0, 1.0, 0.0, -1.0]) - 2f64.ln()).abs() < 1e-12);
        assert_eq!(entropy(vec![3.0; 5]), 0.0);
        assert_eq!(variance(&[1.0, 3.0]), 1.0);
        // After a 0 both are as likely, after a 1 the answer is known.
        let pairs = vec![(0.0, 0.0), (1.0, 2.0), (0.0, 1.0), (1.0, 2.0)];
        assert!((given_one(pairs) - 0.5 * 2f64.ln()).abs() < 1e-12);
        let scale = Scale { constant: 3.0, good: 1.0 };
        let skills = [3.0, 2.0, 1.0, 0.0, 9.0, f64::NAN].map(|loss| scale.skill(loss));
        assert_eq!(skills, [0.0, 0.5, 1.0, 1.0, -1.0, -1.0]);
    }

    #[test]
    fn edits_are_options() {
        let settings = Settings::new(&Common::default(), &Defaults::new());
        let edits = [Change::Down10, Change::AdamFast, Change::Longer, Change::NoDecay];
        let edits = edits.map(|change| edit(&settings, change));
        assert_eq!(
            edits,
            ["--lr 1e-3", "--optimizer adam --lr 0.01", "--steps 4000", "--schedule constant"]
        );
    }
}
