//! Training of a program's leaves, step by step, as the page asks for steps.

use std::collections::HashMap;

use chainrule::data::text::Vocabulary;
use chainrule::monitor::{Monitor, OutputKind, Symptom, SymptomKind};
use chainrule::nn::StateDict;
use chainrule::ops::OpId;
use chainrule::optim::{Adam, AdamW, Optimizer, Sgd, SgdOptions};
use chainrule::{Generator, Tensor, no_grad};
use serde_json::{Value, json};

use super::json as values;
use super::request::Args;
use crate::language::fault::{Fault, Outcome};
use crate::language::interpreter::{Interpreter, Memory};
use crate::language::value::Data;

/// The most steps of one request.
const STEPS: u64 = 1000;

/// An activation beyond this is saturated.
const SATURATED: f64 = 0.97;

/// Steps between two looks of the monitor.
const LOOKS: u64 = 5;

/// Looks in a row that must find a symptom before it is told, so that none is told that passes; and
/// the steps before which nothing is told but what is not finite.
const SEEN_BEFORE_TOLD: u32 = 3;
const FIRST_TOLD: u64 = 20;

/// Names that are made up at once, and their greatest length.
const NAMES: usize = 32;
const LONGEST_NAME: usize = 20;

/// The rule by which leaves change.
#[derive(Clone, Copy, PartialEq)]
enum Descending {
    Sgd,
    Momentum,
    Adam,
    AdamW,
}

/// A run of training.
pub struct Training {
    text: String,
    seed: u64,
    fresh_draws: bool,
    rule: Descending,
    rate: f64,
    clip: Option<f64>,
    step: u64,
    leaves: Vec<Tensor>,
    names: Vec<String>,
    draws: Vec<Tensor>,
    optimizer: Box<dyn Optimizer>,
    checkpoints: Vec<Checkpoint>,
    monitor: Monitor,
    /// Looks in a row at which a symptom was there, and whether it was told.
    seen: HashMap<(SymptomKind, String), (u32, bool)>,
}

/// A state of a run: leaves and optimizer, after that many steps.
#[derive(Clone)]
struct Checkpoint {
    step: u64,
    leaves: Vec<Tensor>,
    optimizer: StateDict,
}

fn optimizer(rule: Descending, leaves: &[Tensor], rate: f64) -> Outcome<Box<dyn Optimizer>> {
    let leaves = leaves.to_vec();
    let heavy = SgdOptions { momentum: 0.9, ..SgdOptions::default() };
    Ok(match rule {
        Descending::Sgd => Box::new(Sgd::try_new(leaves, rate)?),
        Descending::Momentum => Box::new(Sgd::try_with_options(leaves, rate, heavy)?),
        Descending::Adam => Box::new(Adam::try_new(leaves, rate)?),
        Descending::AdamW => Box::new(AdamW::try_new(leaves, rate)?),
    })
}

impl Training {
    /// Begins where the program's own leaves do.
    pub fn start(text: &str, seed: u64, args: &Args<'_>) -> Outcome<Training> {
        let rule = match args.maybe_text("optimizer").unwrap_or("sgd") {
            "sgd" => Descending::Sgd,
            "momentum" => Descending::Momentum,
            "adam" => Descending::Adam,
            "adamw" => Descending::AdamW,
            other => {
                let why = format!(
                    "there is no optimizer `{other}`; there are sgd, momentum, adam, adamw"
                );
                return Err(Fault::request(why));
            }
        };
        let rate = rate(args)?.unwrap_or(0.1);
        let mut first = Interpreter::new(seed);
        first.run(text)?;
        let Memory { leaves, draws } = first.memory().clone();
        if leaves.is_empty() {
            return Err(Fault::request("there is nothing to train: the program has no leaf"));
        }
        loss(&first)?;
        let names = leaves.iter().enumerate();
        let names =
            names.map(|(i, leaf)| leaf.name().unwrap_or_else(|| format!("leaf {i}"))).collect();
        Ok(Training {
            text: text.to_string(),
            seed,
            fresh_draws: args.0.get("batch_seed").and_then(Value::as_bool).unwrap_or(true),
            rule,
            rate,
            clip: args.0.get("clip").and_then(Value::as_f64).filter(|&clip| clip > 0.0),
            step: 0,
            optimizer: optimizer(rule, &leaves, rate)?,
            leaves,
            names,
            draws,
            checkpoints: Vec::new(),
            monitor: Monitor::new().every(LOOKS),
            seen: HashMap::new(),
        })
    }

    /// Names and shapes of what is trained.
    pub fn parameters(&self) -> Value {
        let parameters = self.names.iter().zip(&self.leaves);
        parameters
            .map(|(name, leaf)| json!({"name": name, "shape": leaf.shape().to_vec()}))
            .collect()
    }

    /// The program as it is at this step.
    fn run(&self, replaced: Option<(&str, Data)>) -> Outcome<Interpreter> {
        let draws = if self.fresh_draws { Vec::new() } else { self.draws.clone() };
        let seed = if self.fresh_draws { self.seed.wrapping_add(self.step) } else { self.seed };
        let mut run = Interpreter::new(seed).after(Memory { leaves: self.leaves.clone(), draws });
        if let Some((name, value)) = replaced {
            run = run.replacing(name, value);
        }
        run.run(&self.text)?;
        Ok(run)
    }

    /// Some steps; an event for each.
    pub fn steps(&mut self, count: u64, histograms: bool) -> Outcome<Vec<Value>> {
        let count = count.clamp(1, STEPS);
        (0..count).map(|i| self.one(histograms && i + 1 == count)).collect()
    }

    fn one(&mut self, histograms: bool) -> Outcome<Value> {
        let run = self.run(None)?;
        let loss = loss(&run)?;
        self.leaves.iter().for_each(Tensor::zero_grad);
        loss.try_backward()?;
        let norm = self.clipped()?;
        let is_due = self.monitor.is_due();
        if is_due {
            self.watch(&run);
        }
        let before: Vec<Vec<f64>> = self.leaves.iter().map(Tensor::to_f64_vec).collect();
        let gradients: Vec<Option<Tensor>> = self.leaves.iter().map(Tensor::grad).collect();
        self.optimizer.step()?;
        let layers: Vec<Value> = (0..self.leaves.len())
            .map(|i| {
                let after = self.leaves[i].to_f64_vec();
                let gradient = gradients[i].as_ref().map_or_else(Vec::new, Tensor::to_f64_vec);
                let moved = after.iter().zip(&before[i]).map(|(a, b)| a - b).collect::<Vec<f64>>();
                let mut layer = json!({
                    "name": self.names[i],
                    "shape": self.leaves[i].shape().to_vec(),
                    "grad_norm": values::number(norm_of(&gradient)),
                    "grad_std": values::number(spread(&gradient)),
                    "value_std": values::number(spread(&before[i])),
                    "update_ratio": values::number(spread(&moved) / spread(&before[i])),
                    "value": values::spread(&before[i]),
                    "gradient": gradients[i].as_ref().map(|_| values::spread(&gradient)),
                });
                if histograms {
                    layer["grad_histogram"] = values::histogram(&gradient);
                }
                layer
            })
            .collect();
        self.step += 1;
        let loss = loss.try_item()?;
        if is_due {
            for (name, leaf) in self.names.iter().zip(&self.leaves) {
                self.monitor.updated(name, leaf);
            }
        }
        self.monitor.step(Some(loss), Some(self.rate));
        Ok(json!({
            "step": self.step,
            "loss": values::number(loss),
            "rate": self.rate,
            "grad_norm": values::number(norm),
            "findings": self.findings(is_due, loss),
            "layers": layers,
            "activations": activations(&run, &self.leaves, histograms),
        }))
    }

    /// Shows the monitor the tensors of a step before its update.
    fn watch(&mut self, run: &Interpreter) {
        for (name, leaf) in self.names.iter().zip(&self.leaves) {
            self.monitor.parameter(name, leaf, leaf.grad().as_ref());
        }
        for (name, value) in run.variables() {
            let Data::Tensor(t) = value else { continue };
            let kind = match t.op_id() {
                Some(OpId::tanh) => OutputKind::Bounded { low: -1, high: 1 },
                Some(OpId::sigmoid) => OutputKind::Bounded { low: 0, high: 1 },
                Some(OpId::relu) => OutputKind::Any,
                _ => continue,
            };
            self.monitor.output(name, kind, t);
        }
    }

    /// Symptoms that are told now for the first time.
    fn findings(&mut self, has_looked: bool, loss: f64) -> Vec<Value> {
        if !has_looked && loss.is_finite() {
            return Vec::new();
        }
        let found: Vec<Symptom> =
            self.monitor.findings().into_iter().filter(|s| s.confidence > 0.5).collect();
        let key = |s: &Symptom| (s.kind, s.place.clone());
        let there: Vec<(SymptomKind, String)> = found.iter().map(key).collect();
        // One that went away is counted anew, and told once.
        self.seen.iter_mut().filter(|(key, _)| !there.contains(key)).for_each(|(_, n)| n.0 = 0);
        let mut news = Vec::new();
        for symptom in found {
            let (times, told) = self.seen.entry(key(&symptom)).or_insert((0, false));
            *times += 1;
            let is_sure = symptom.kind == SymptomKind::NotFinite
                || *times >= SEEN_BEFORE_TOLD && self.step >= FIRST_TOLD;
            if is_sure && !*told {
                *told = true;
                news.push(json!({
                    "kind": symptom.kind.name().replace('_', " "),
                    "words": symptom.to_string(),
                    "place": symptom.place,
                    "fix": symptom.kind.fix(),
                }));
            }
        }
        news
    }

    /// The norm of all gradients, which are shortened to the bound if there is one.
    fn clipped(&self) -> Outcome<f64> {
        let gradients = self.leaves.iter().filter_map(Tensor::grad);
        let squares: f64 = gradients.flat_map(|g| g.to_f64_vec()).map(|x| x * x).sum();
        let norm = squares.sqrt();
        if let Some(bound) = self.clip.filter(|&bound| norm > bound) {
            for leaf in &self.leaves {
                if let Some(gradient) = leaf.grad() {
                    leaf.set_grad(Some(no_grad(|| gradient.try_mul(bound / norm))?))?;
                }
            }
        }
        Ok(norm)
    }

    /// Another learning rate from the next step on.
    pub fn set_rate(&mut self, args: &Args<'_>) -> Outcome<Value> {
        let rate = rate(args)?.ok_or_else(|| Fault::request("the argument `rate` is missing"))?;
        self.rate = rate;
        self.optimizer.set_lr(rate)?;
        Ok(json!({"rate": rate}))
    }

    /// Keeps the leaves and the optimizer as they are.
    pub fn checkpoint(&mut self) -> Outcome<Value> {
        let copy = |t: &Tensor| t.detach().try_copied();
        let leaves = self.leaves.iter().map(copy).collect::<chainrule::Result<_>>()?;
        let state = self.optimizer.state_dict();
        let optimizer = state
            .iter()
            .map(|(name, t)| Ok((name.clone(), copy(t)?)))
            .collect::<chainrule::Result<_>>()?;
        self.checkpoints.push(Checkpoint { step: self.step, leaves, optimizer });
        Ok(json!({"checkpoint": self.checkpoints.len() - 1, "step": self.step}))
    }

    /// Another run from a checkpoint on, with the optimizer as it was then.
    pub fn fork(&self, args: &Args<'_>) -> Outcome<Training> {
        let at = args.integer("checkpoint")? as usize;
        let found = self
            .checkpoints
            .get(at)
            .ok_or_else(|| Fault::request(format!("there is no checkpoint {at}")))?;
        let copy = |(value, name): (&Tensor, &String)| {
            Ok::<_, Fault>(value.try_copied()?.try_parameter()?.named(name))
        };
        let leaves: Vec<Tensor> =
            found.leaves.iter().zip(&self.names).map(copy).collect::<Outcome<_>>()?;
        let rate = rate(args)?.unwrap_or(self.rate);
        let mut optimizer = optimizer(self.rule, &leaves, rate)?;
        optimizer.load_state_dict(&found.optimizer)?;
        // The state has the rate that it was made with.
        optimizer.set_lr(rate)?;
        Ok(Training {
            text: self.text.clone(),
            seed: self.seed,
            fresh_draws: self.fresh_draws,
            rule: self.rule,
            rate,
            clip: self.clip,
            step: found.step,
            optimizer,
            leaves,
            names: self.names.clone(),
            draws: self.draws.clone(),
            checkpoints: vec![found.clone()],
            monitor: Monitor::new().every(LOOKS).from_step(found.step),
            seen: HashMap::new(),
        })
    }

    /// Names that the model makes up, letter by letter: `want` is the expression of the scores of
    /// the next letter, and contexts of letters take the place of `X`.
    ///
    /// All names go through the model together, so that a batch norm has its batch.
    pub fn sample(&self, args: &Args<'_>) -> Outcome<Value> {
        let want = args.text("want")?;
        let context = match self.run(None)?.variable("X") {
            Some(Data::Tensor(x)) if x.rank() == 2 => x.shape()[1],
            _ => return Err(Fault::request("the program has no contexts `X` of letters")),
        };
        let g = &mut Generator::manual_seed(self.seed.wrapping_add(self.step));
        let mut names = vec![Vec::<i64>::new(); NAMES];
        for _ in 0..LONGEST_NAME {
            let window = |name: &Vec<i64>| {
                let end = [vec![Vocabulary::END; context], name.clone()].concat();
                end[end.len() - context..].to_vec()
            };
            let x: Vec<i64> = names.iter().flat_map(window).collect();
            let x = Tensor::try_from_slice(&x, [NAMES, context])?;
            let mut run = self.run(Some(("X", Data::Tensor(x))))?;
            let scores = no_grad(|| run.evaluate(want))?.floats()?;
            if scores.shape() != [NAMES, Vocabulary::SIZE] {
                let why = format!(
                    "`{want}` has the shape {}, not a score for each of {} letters",
                    scores.shape(),
                    Vocabulary::SIZE
                );
                return Err(Fault::request(why));
            }
            let chances = scores.try_softmax(1)?.to_f64_vec();
            for (name, row) in names.iter_mut().zip(chances.chunks(Vocabulary::SIZE)) {
                if name.last() == Some(&Vocabulary::END) {
                    continue;
                }
                let row: Vec<f32> = row.iter().map(|&p| p as f32).collect();
                if row.iter().any(|p| !p.is_finite()) {
                    return Err(Fault::request("the scores are not finite"));
                }
                let next = g.multinomial(&row, 1, true);
                name.push(next.map_err(|e| Fault::request(e.to_string()))?[0]);
            }
            if names.iter().all(|name| name.last() == Some(&Vocabulary::END)) {
                break;
            }
        }
        let letters = |name: &Vec<i64>| {
            let letters = name.iter().filter(|&&n| n != Vocabulary::END);
            letters.filter_map(|&n| Vocabulary.decode(n)).collect::<String>()
        };
        Ok(json!({"names": names.iter().map(letters).collect::<Vec<_>>()}))
    }

    /// The value of an expression at the points of a grid, which take the place of `X`.
    pub fn predict(&self, args: &Args<'_>) -> Outcome<Value> {
        let wrong = || {
            Fault::request("the argument `grid` is {\"x\": [low, high, n], \"y\": [low, high, n]}")
        };
        let side = |name: &str| -> Outcome<(f64, f64, usize)> {
            let side =
                args.0.get("grid").and_then(|grid| grid[name].as_array()).ok_or_else(wrong)?;
            let ends: Vec<f64> = side.iter().filter_map(Value::as_f64).collect();
            let [low, high, n] = ends[..] else { return Err(wrong()) };
            Ok((low, high, n.clamp(2.0, 200.0) as usize))
        };
        let ((x0, x1, nx), (y0, y1, ny)) = (side("x")?, side("y")?);
        let points = (0..nx * ny).flat_map(|i| {
            let (row, column) = (i / nx, i % nx);
            let part = |low: f64, high: f64, i: usize, n: usize| {
                low + (high - low) * i as f64 / (n - 1) as f64
            };
            [part(x0, x1, column, nx), part(y0, y1, row, ny)]
        });
        let points = Tensor::try_from_slice(&points.collect::<Vec<f64>>(), [nx * ny, 2])?;
        let text = args.text("want")?;
        let run = self.run(Some(("X", Data::Tensor(points.clone()))));
        // The grid's points have no targets, so that the loss fails; the lines before it ran.
        let mut run = match run {
            Ok(run) => run,
            Err(_) => self.until_failure(points)?,
        };
        let found = no_grad(|| run.evaluate(text))?.floats()?;
        Ok(
            json!({"shape": found.shape().to_vec(), "data": values::numbers(&found.to_f64_vec()), "rows": ny, "columns": nx}),
        )
    }

    fn until_failure(&self, points: Tensor) -> Outcome<Interpreter> {
        let memory = Memory { leaves: self.leaves.clone(), draws: Vec::new() };
        let mut run =
            Interpreter::new(self.seed).after(memory).replacing("X", Data::Tensor(points));
        let _ = no_grad(|| run.run(&self.text));
        Ok(run)
    }
}

fn rate(args: &Args<'_>) -> Outcome<Option<f64>> {
    let rate = args.0.get("rate").and_then(Value::as_f64);
    match rate {
        Some(rate) if !(rate.is_finite() && rate > 0.0) => {
            Err(Fault::request("a learning rate is a number above 0"))
        }
        rate => Ok(rate),
    }
}

/// The loss of a run: a single element that depends on a leaf.
fn loss(run: &Interpreter) -> Outcome<Tensor> {
    match run.result() {
        Some(Data::Tensor(t)) if t.numel() == 1 && t.requires_grad() => Ok(t.clone()),
        _ => Err(Fault::request("training needs a `loss` of one element that depends on a leaf")),
    }
}

/// Statistics of the variables between the leaves and the loss that have more than one element.
fn activations(run: &Interpreter, leaves: &[Tensor], histograms: bool) -> Value {
    let shown = |(name, value): (&str, &Data)| {
        let Data::Tensor(t) = value else { return None };
        if t.numel() < 2 || !t.requires_grad() || leaves.iter().any(|leaf| leaf.is_same(t)) {
            return None;
        }
        let elements = t.to_f64_vec();
        let share = |of: &dyn Fn(f64) -> bool| {
            elements.iter().filter(|&&x| of(x)).count() as f64 / elements.len() as f64
        };
        let bounded = matches!(t.op_id(), Some(OpId::tanh | OpId::sigmoid));
        let gradient = t.grad().map(|gradient| values::spread(&gradient.to_f64_vec()));
        let mut out = json!({
            "name": name,
            "op": t.op_name(),
            "shape": t.shape().to_vec(),
            "value": values::spread(&elements),
            "gradient": gradient,
            "mean": values::number(elements.iter().sum::<f64>() / elements.len() as f64),
            "std": values::number(spread(&elements)),
            "saturated": bounded.then(|| share(&|x| x.abs() > SATURATED)),
            "dead": share(&|x| x == 0.0),
        });
        if histograms {
            out["histogram"] = values::histogram(&elements);
        }
        Some(out)
    };
    run.variables().filter_map(shown).collect()
}

fn norm_of(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn spread(x: &[f64]) -> f64 {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
}
