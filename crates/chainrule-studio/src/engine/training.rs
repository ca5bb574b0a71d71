//! Training of a program's leaves, step by step, as the page asks for steps.

use chainrule::optim::{Adam, AdamW, Optimizer, Sgd, SgdOptions};
use chainrule::{Tensor, no_grad};
use serde_json::{Value, json};

use super::Args;
use super::json as values;
use crate::language::fault::{Fault, Outcome};
use crate::language::interpreter::{Interpreter, Memory};
use crate::language::value::Data;

/// The most steps of one request.
const STEPS: u64 = 1000;

/// An activation beyond this is saturated.
const SATURATED: f64 = 0.97;

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
    checkpoints: Vec<(u64, Vec<Tensor>)>,
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
                    "grad_norm": values::number(norm_of(&gradient)),
                    "grad_std": values::number(spread(&gradient)),
                    "value_std": values::number(spread(&before[i])),
                    "update_ratio": values::number(spread(&moved) / spread(&before[i])),
                });
                if histograms {
                    layer["grad_histogram"] = values::histogram(&gradient);
                }
                layer
            })
            .collect();
        self.step += 1;
        let loss = loss.try_item()?;
        let activations = activations(&run, &self.leaves, histograms);
        Ok(json!({
            "step": self.step,
            "loss": values::number(loss),
            "rate": self.rate,
            "grad_norm": values::number(norm),
            "findings": findings(loss, norm, &activations),
            "layers": layers,
            "activations": activations,
        }))
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

    /// Keeps the leaves as they are.
    pub fn checkpoint(&mut self) -> Value {
        let copies = self.leaves.iter().map(Tensor::detach).collect();
        self.checkpoints.push((self.step, copies));
        json!({"checkpoint": self.checkpoints.len() - 1, "step": self.step})
    }

    /// Another run from a checkpoint on; the optimizer begins anew.
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
            found.1.iter().zip(&self.names).map(copy).collect::<Outcome<_>>()?;
        let rate = rate(args)?.unwrap_or(self.rate);
        Ok(Training {
            text: self.text.clone(),
            seed: self.seed,
            fresh_draws: self.fresh_draws,
            rule: self.rule,
            rate,
            clip: self.clip,
            step: found.0,
            optimizer: optimizer(self.rule, &leaves, rate)?,
            leaves,
            names: self.names.clone(),
            draws: self.draws.clone(),
            checkpoints: vec![found.clone()],
        })
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
        let bounded = matches!(t.op_name(), Some("tanh" | "sigmoid"));
        let mut out = json!({
            "name": name,
            "op": t.op_name(),
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

/// Findings that one step shows.
fn findings(loss: f64, norm: f64, activations: &Value) -> Value {
    let mut out = Vec::new();
    let mut add = |kind: &str, words: String| out.push(json!({"kind": kind, "words": words}));
    if !loss.is_finite() {
        add(
            "not finite",
            "the loss is not finite; go back to a checkpoint with a smaller rate".into(),
        );
    } else if !norm.is_finite() {
        add("not finite", "a gradient is not finite".into());
    } else if norm == 0.0 {
        add("no gradient", "all gradients are 0: nothing is learned".into());
    }
    for activation in activations.as_array().into_iter().flatten() {
        let name = activation["name"].as_str().unwrap_or_default();
        if activation["saturated"].as_f64().is_some_and(|share| share > 0.5) {
            add(
                "saturated",
                format!("more than half of {name} is saturated, where the slope is near 0"),
            );
        }
        if activation["op"] == "relu"
            && activation["dead"].as_f64().is_some_and(|share| share > 0.9)
        {
            add("dead", format!("more than nine tenths of {name} are 0"));
        }
    }
    json!(out)
}

fn norm_of(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn spread(x: &[f64]) -> f64 {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
}
