//! `chainrule bench`: how long one training step takes, on workloads that other engines run too.
//!
//! The step has all that training needs: the batch is drawn or cut out, forward, gradients to
//! nothing, backward, update. Nothing else is in the time.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::{Result, bail};
use chainrule::gpu::{DeviceName, DeviceSession};
use chainrule::nn::{Layer, Linear, Module, Relu, Sequential};
use chainrule::optim::{AdamW, Optimizer, Sgd};
use chainrule::program::{Passes, Program, Validated};
use chainrule::{DType, Generator, Tensor, try_autocast};
use chainrule_lab::models::{Gpt, GptConfig};
use serde::Serialize;

use crate::args::{Bench, Mode, Workload};
use crate::machine::{self, Stopwatch};
use crate::output;

/// Timing of a workload.
struct Plan {
    name: &'static str,
    /// Steps before the time counts.
    warm_up: usize,
    /// Steps of a group; a group's time is divided by them.
    group: usize,
    /// Number of groups timed.
    groups: usize,
}

const NAMES: Plan = Plan { name: "names", warm_up: 300, group: 500, groups: 7 };
const MNIST: Plan = Plan { name: "mnist", warm_up: 3, group: 1, groups: 15 };
const GPT_SMALL: Plan = Plan { name: "gpt-small", warm_up: 3, group: 1, groups: 8 };
const GPT2: Plan = Plan { name: "gpt2", warm_up: 2, group: 1, groups: 5 };
const GPT_MEDIUM: Plan = Plan { name: "gpt-medium", warm_up: 3, group: 1, groups: 8 };

/// The last line of `--json`.
#[derive(Serialize)]
struct Measured {
    workload: &'static str,
    mode: &'static str,
    threads: usize,
    /// The dtype of the operands of products, if it is not their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    autocast: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    us_min: f64,
    us_median: f64,
    /// Milliseconds from the first call to a planned program.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_ms: Option<f64>,
    /// Milliseconds of the first run, which is compared with the plain program.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_ms: Option<f64>,
    /// The most memory of the whole process.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_mib: Option<f64>,
}

/// Runs the command.
pub fn run(args: &Bench) -> Result<()> {
    machine::use_threads(args.threads);
    let probe = machine::probe_gflops()?;
    match args.autocast {
        Some(to) => try_autocast(to.dtype(), || measure(args, probe))?,
        None => measure(args, probe),
    }
}

fn measure(args: &Bench, probe: f64) -> Result<()> {
    let plan = match args.workload {
        Workload::Names => NAMES,
        Workload::Mnist => MNIST,
        Workload::GptSmall => GPT_SMALL,
        Workload::GptMedium => GPT_MEDIUM,
        Workload::Gpt2 => GPT2,
    };
    let generator = &mut Generator::manual_seed(0);
    let watch = Stopwatch::start();
    let groups = args.rounds.unwrap_or(plan.groups);
    let mut step = step_of(args, plan.name, generator)?;
    let mut device = opened(args)?;
    let on = device.as_ref().map(|session| session.device().describe().to_owned());
    let timed = match (args.mode, &mut device) {
        (Mode::Eager, _) => Timed {
            times: time(&plan, groups, || eager(&mut *step, generator))?,
            trace_ms: None,
            first_ms: None,
        },
        (Mode::Compiled, Some(session)) => {
            time_on_device(args, &plan, groups, &mut *step, session, generator)?
        }
        (Mode::Compiled, None) => time_compiled(args, &plan, groups, &mut *step, generator)?,
    };
    let (wall, cpu) = watch.read();
    let threads = chainrule::num_threads();
    let measured = Measured {
        workload: plan.name,
        mode: match args.mode {
            Mode::Eager => "eager",
            Mode::Compiled => "compiled",
        },
        threads,
        autocast: args.autocast.map(|to| to.dtype().name()),
        device: on,
        us_min: (timed.times[0] * 10.0).round() / 10.0,
        us_median: (timed.times[timed.times.len() / 2] * 10.0).round() / 10.0,
        trace_ms: timed.trace_ms,
        first_ms: timed.first_ms,
        peak_mib: machine::peak_mib(),
    };
    let cpu = cpu.map_or("?".to_owned(), |cpu| format!("{cpu:.2}"));
    let machine = format!(
        "machine: {probe:.0} GFLOP/s in 256x256x256 products on {threads} thread(s); processor time \
         {cpu} s in {wall:.2} s"
    );
    if args.json {
        output::complain(&machine);
        return output::json(&measured);
    }
    print(&measured, args.fused, groups, plan.group)?;
    output::line(&machine)
}

/// The step of a workload.
fn step_of(args: &Bench, name: &str, generator: &mut Generator) -> Result<Box<dyn BenchStep>> {
    if args.batch.is_some() && matches!(args.workload, Workload::Names | Workload::Mnist) {
        bail!("--batch is for the GPTs; {name} has a batch of its own");
    }
    let batch = |usual| args.batch.unwrap_or(usual);
    Ok(match args.workload {
        Workload::Names => Box::new(NamesStep::new(args.fused, generator)?),
        Workload::Mnist => Box::new(Mnist::new(generator)?),
        Workload::GptSmall => Box::new(GptStep::new(GptStep::SMALL, batch(12), generator)?),
        Workload::GptMedium => Box::new(GptStep::new(GptStep::MEDIUM, batch(4), generator)?),
        Workload::Gpt2 => Box::new(GptStep::new(GptStep::GPT2, batch(4), generator)?),
    })
}

/// Times of the groups, rising, and those of a program's trace and first run.
struct Timed {
    times: Vec<f64>,
    trace_ms: Option<f64>,
    first_ms: Option<f64>,
}

fn time_on_device(
    args: &Bench,
    plan: &Plan,
    groups: usize,
    step: &mut dyn BenchStep,
    session: &mut DeviceSession,
    generator: &mut Generator,
) -> Result<Timed> {
    let began = Instant::now();
    let program = compiled(step, !args.no_simplify, generator)?;
    let at = session.load(program.program())?;
    let trace_ms = Some(milliseconds(began));
    let mut steps = DeviceSteps { session, at, batches: Vec::new() };
    let mut run = |begins: bool| -> Result<()> {
        match begins {
            true if step.draws() => steps.begin(Vec::new()),
            true => steps.begin(step.batch(generator)?.into()),
            false => steps.end(),
        }
    };
    let began = Instant::now();
    run(true)?;
    run(false)?;
    let first_ms = Some(milliseconds(began));
    let times = time_with(plan, groups, &mut run)?;
    if args.profile {
        profile(session.measure(at)?);
    }
    Ok(Timed { times, trace_ms, first_ms })
}

fn time_compiled(
    args: &Bench,
    plan: &Plan,
    groups: usize,
    step: &mut dyn BenchStep,
    generator: &mut Generator,
) -> Result<Timed> {
    let began = Instant::now();
    let mut program = compiled(step, !args.no_simplify, generator)?;
    program.program().memory();
    let trace_ms = Some(milliseconds(began));
    let mut results = Vec::new();
    let mut run = || -> Result<()> {
        if step.draws() {
            return Ok(program.run_into(&[], &mut results)?);
        }
        let [x, y] = step.batch(generator)?;
        Ok(program.run_into(&[&x, &y], &mut results)?)
    };
    let began = Instant::now();
    run()?;
    let first_ms = Some(milliseconds(began));
    let times = time(plan, groups, run)?;
    program.warnings().iter().for_each(|w| output::complain(&format!("warning: {w}")));
    Ok(Timed { times, trace_ms, first_ms })
}

/// The result as text, but for the machine's line.
fn print(measured: &Measured, fused: bool, groups: usize, group: usize) -> Result<()> {
    if let Some(device) = &measured.device {
        output::line(&format!("on {device}"))?;
    }
    output::line(&format!(
        "{}, {}{}{}, {} thread(s): {} us a step at best, {} us in the middle of {groups} groups \
         of {group} step(s)",
        measured.workload,
        measured.mode,
        if fused { " with fused operations" } else { "" },
        measured.autocast.map_or(String::new(), |to| format!(" with products on {to}")),
        measured.threads,
        measured.us_min,
        measured.us_median,
    ))?;
    if let (Some(ms), Some(first)) = (measured.trace_ms, measured.first_ms) {
        output::line(&format!("traced and planned in {ms} ms, first run compared in {first} ms"))?;
    }
    if let Some(mib) = measured.peak_mib {
        output::line(&format!("{mib} MiB of memory at most"))?;
    }
    Ok(())
}

/// Steps of a launch, where a step is so small that many are one.
const AT_ONCE: usize = 500;

/// Steps that are begun together, where some of them are one graph.
const TOGETHER: usize = 64;

/// Steps on a device. The batches of a launch of many steps are copied there at once, and all
/// losses are fetched.
struct DeviceSteps<'a> {
    session: &'a mut DeviceSession,
    at: usize,
    /// Arguments of steps that were not begun yet.
    batches: Vec<Vec<Tensor>>,
}

impl DeviceSteps<'_> {
    fn begin(&mut self, batch: Vec<Tensor>) -> Result<()> {
        let most = match self.session.steps_at_once(self.at) {
            1 => return Ok(self.session.start(self.at, &batch.iter().collect::<Vec<_>>())?),
            _ if self.session.is_persistent(self.at) => AT_ONCE,
            _ => TOGETHER,
        };
        self.batches.push(batch);
        if self.batches.len() < most { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<()> {
        let batches: Vec<Vec<&Tensor>> = self.batches.iter().map(|b| b.iter().collect()).collect();
        let losses = self.session.run_steps(self.at, &batches)?;
        if let Some(loss) = losses.iter().map(|l| l[0].item()).find(|l| !l.is_finite()) {
            bail!("a loss is {loss}");
        }
        self.batches.clear();
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.flush()?;
        Ok(self.session.wait()?)
    }
}

/// The device that is measured, if it is not the processor.
fn opened(args: &Bench) -> Result<Option<DeviceSession>> {
    let Some(name) = args.device.filter(|d| *d != DeviceName::Cpu) else { return Ok(None) };
    if args.mode == Mode::Eager {
        bail!("--device runs a step as a program: add --mode compiled");
    }
    if args.autocast.is_some() && matches!(name, DeviceName::Wgpu(_)) {
        bail!("--autocast needs kernels of bf16, which WebGPU lacks; use cuda, or leave it out");
    }
    let mut session = DeviceSession::new(name.open()?);
    session.set_precision(args.precision.unwrap_or_default())?;
    Ok(Some(session))
}

/// Prints the time of each kernel, of all its launches together, the longest first.
fn profile(times: Vec<(String, f64)>) {
    let mut all: HashMap<String, (usize, f64)> = HashMap::new();
    let whole: f64 = times.iter().map(|(_, us)| us).sum();
    for (name, us) in times {
        let of = all.entry(name).or_default();
        *of = (of.0 + 1, of.1 + us);
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|a, b| b.1.1.total_cmp(&a.1.1).then_with(|| a.0.cmp(&b.0)));
    output::complain(&format!("{:>10}  {:>8}  kernel", "us", "launches"));
    for (name, (count, us)) in all {
        output::complain(&format!("{us:>10.1}  {count:>8}  {name}"));
    }
    output::complain(&format!("{whole:>10.1}            together, one after the other"));
}

/// The time of a step in microseconds, for each group, in rising order.
fn time(plan: &Plan, groups: usize, mut step: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    time_with(plan, groups, |run| if run { step() } else { Ok(()) })
}

/// As [`time`] for steps that are begun; `false` waits for the end of all.
fn time_with(
    plan: &Plan,
    groups: usize,
    mut step: impl FnMut(bool) -> Result<()>,
) -> Result<Vec<f64>> {
    for _ in 0..plan.warm_up {
        step(true)?;
    }
    step(false)?;
    let mut times = Vec::with_capacity(groups);
    for _ in 0..groups {
        let began = Instant::now();
        for _ in 0..plan.group {
            step(true)?;
        }
        step(false)?;
        times.push(began.elapsed().as_secs_f64() / plan.group as f64 * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// A training step that can be run either way.
trait BenchStep {
    /// The next batch.
    fn batch(&mut self, generator: &mut Generator) -> chainrule::Result<[Tensor; 2]>;
    /// Whether a batch is drawn by ops: then the draw is a part of the program.
    fn draws(&self) -> bool {
        false
    }
    /// Forward.
    fn loss(&self, x: &Tensor, y: &Tensor) -> chainrule::Result<Tensor>;
    fn optimizer(&mut self) -> &mut dyn Optimizer;
}

fn eager(step: &mut dyn BenchStep, generator: &mut Generator) -> Result<()> {
    let [x, y] = step.batch(generator)?;
    let loss = step.loss(&x, &y)?;
    step.optimizer().zero_grad();
    loss.try_backward()?;
    Ok(step.optimizer().step()?)
}

/// The step as a program, whose first run is compared with the plain one as everywhere.
fn compiled(
    step: &mut dyn BenchStep,
    simplify: bool,
    generator: &mut Generator,
) -> Result<Validated> {
    let train = |step: &mut dyn BenchStep, [x, y]: [&Tensor; 2]| {
        let loss = step.loss(x, y)?;
        loss.try_backward()?;
        step.optimizer().step()?;
        Ok(vec![loss])
    };
    step.optimizer().zero_grad();
    let program = if step.draws() {
        Program::trace([], |_| {
            let [x, y] = step.batch(generator)?;
            train(step, [&x, &y])
        })?
    } else {
        let [x, y] = step.batch(generator)?;
        Program::trace([("x", &x), ("y", &y)], |batch| train(step, [&batch[0], &batch[1]]))?
    };
    Ok(program.validated(Passes { simplification: simplify, fusion: true }))
}

/// Milliseconds since then, with one decimal.
fn milliseconds(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1e4).round() / 10.0
}

/// The names model on random examples.
struct NamesStep {
    contexts: Tensor,
    targets: Tensor,
    embedding: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    gain: Tensor,
    bias: Tensor,
    sgd: Sgd,
    fused: bool,
}

impl NamesStep {
    const EXAMPLES: usize = 182_625;
    const BATCH: usize = 32;
    const CONTEXT: usize = 3;

    fn new(fused: bool, generator: &mut Generator) -> Result<NamesStep> {
        let contexts = Tensor::try_randint(0, 27, [Self::EXAMPLES, Self::CONTEXT], generator)?;
        let targets = Tensor::try_randint(0, 27, [Self::EXAMPLES], generator)?;
        let mut weight = |rows: usize, columns: usize, factor: f64, shift: f64| {
            let normal = Tensor::try_randn([rows, columns], DType::F32, generator)?;
            normal.try_mul(factor)?.try_add(shift)
        };
        let embedding = weight(27, 10, 1.0, 0.0)?.try_parameter()?;
        let w1 = weight(30, 200, 5.0 / 3.0 / 30f64.sqrt(), 0.0)?.try_parameter()?;
        let b1 = weight(1, 200, 0.1, 0.0)?.try_reshape(200)?.try_parameter()?;
        let w2 = weight(200, 27, 0.1, 0.0)?.try_parameter()?;
        let b2 = weight(1, 27, 0.1, 0.0)?.try_reshape(27)?.try_parameter()?;
        let (mut gain, mut bias) = (weight(1, 200, 0.1, 1.0)?, weight(1, 200, 0.1, 0.0)?);
        if fused {
            // The fused op takes one number a feature.
            (gain, bias) = (gain.try_reshape(200)?, bias.try_reshape(200)?);
        }
        let (gain, bias) = (gain.try_parameter()?, bias.try_parameter()?);
        let all = [&embedding, &w1, &b1, &w2, &b2, &gain, &bias].map(Tensor::clone);
        let sgd = Sgd::new(all.to_vec(), 0.1);
        Ok(NamesStep { contexts, targets, embedding, w1, b1, w2, b2, gain, bias, sgd, fused })
    }
}

impl BenchStep for NamesStep {
    fn batch(&mut self, generator: &mut Generator) -> chainrule::Result<[Tensor; 2]> {
        let rows = Tensor::try_randint(0, Self::EXAMPLES as i64, [Self::BATCH], generator)?;
        Ok([self.contexts.try_index_select(0, &rows)?, self.targets.try_index_select(0, &rows)?])
    }

    fn draws(&self) -> bool {
        true
    }

    fn optimizer(&mut self) -> &mut dyn Optimizer {
        &mut self.sgd
    }

    /// Written as in the programs that it is compared with.
    fn loss(&self, x: &Tensor, y: &Tensor) -> chainrule::Result<Tensor> {
        let embedded = self.embedding.try_embedding(x)?.try_reshape([Self::BATCH, 30])?;
        let h = embedded.try_matmul(&self.w1)?.try_add(&self.b1)?;
        let normalised = if self.fused {
            h.try_batch_norm(Some(&self.gain), Some(&self.bias), 1e-5, 1)?
        } else {
            let (mean, var) = (h.try_mean(0, true)?, h.try_var(0, 1, true)?);
            let scaled = self.gain.try_mul(&h.try_sub(&mean)?)?;
            scaled.try_mul(&var.try_add(1e-5)?.try_pow(-0.5)?)?.try_add(&self.bias)?
        };
        let logits = normalised.try_tanh()?.try_matmul(&self.w2)?.try_add(&self.b2)?;
        logits.try_cross_entropy(y)
    }
}

/// A fully connected network on random pictures of digits.
struct Mnist {
    pictures: Tensor,
    digits: Tensor,
    net: Sequential,
    sgd: Sgd,
    batch: usize,
}

impl Mnist {
    const BATCH: usize = 512;
    const BATCHES: usize = 8;

    fn new(generator: &mut Generator) -> Result<Mnist> {
        let n = Self::BATCH * Self::BATCHES;
        let pictures = Tensor::try_rand([n, 784], DType::F32, generator)?;
        let digits = Tensor::try_randint(0, 10, [n], generator)?;
        let mut layer = |inputs, outputs| Linear::try_new(inputs, outputs, generator);
        let net = Sequential::new()
            .with(layer(784, 1024)?)
            .with(Relu)
            .with(layer(1024, 1024)?)
            .with(Relu)
            .with(layer(1024, 1024)?)
            .with(Relu)
            .with(layer(1024, 10)?);
        let sgd = Sgd::new(net.parameters(), 0.01);
        Ok(Mnist { pictures, digits, net, sgd, batch: 0 })
    }
}

impl BenchStep for Mnist {
    fn batch(&mut self, _: &mut Generator) -> chainrule::Result<[Tensor; 2]> {
        let start = self.batch % Self::BATCHES * Self::BATCH;
        self.batch += 1;
        let x = self.pictures.try_narrow(0, start, Self::BATCH)?;
        let y = self.digits.try_narrow(0, start, Self::BATCH)?;
        Ok([x, y])
    }

    fn loss(&self, x: &Tensor, y: &Tensor) -> chainrule::Result<Tensor> {
        self.net.try_forward(x)?.try_cross_entropy(y)
    }

    fn optimizer(&mut self) -> &mut dyn Optimizer {
        &mut self.sgd
    }
}

/// A GPT on one batch of random symbols, trained with AdamW.
struct GptStep {
    model: Gpt,
    adamw: AdamW,
    x: Tensor,
    y: Tensor,
    symbols: usize,
}

impl GptStep {
    const SMALL: GptConfig =
        GptConfig { symbols: 65, context: 64, layers: 4, heads: 4, width: 128, dropout: 0.0 };
    const MEDIUM: GptConfig =
        GptConfig { symbols: 65, context: 256, layers: 6, heads: 6, width: 384, dropout: 0.0 };
    const GPT2: GptConfig = GptConfig {
        symbols: 50_257,
        context: 1_024,
        layers: 12,
        heads: 12,
        width: 768,
        dropout: 0.0,
    };

    fn new(config: GptConfig, batch: usize, generator: &mut Generator) -> Result<GptStep> {
        let (symbols, context) = (config.symbols, config.context);
        let model = Gpt::try_new(config, generator)?;
        let adamw = AdamW::new(model.parameters(), 5e-4);
        let mut draw = || Tensor::try_randint(0, symbols as i64, [batch, context], generator);
        let (x, y) = (draw()?, draw()?);
        Ok(GptStep { model, adamw, x, y, symbols })
    }
}

impl BenchStep for GptStep {
    fn batch(&mut self, _: &mut Generator) -> chainrule::Result<[Tensor; 2]> {
        Ok([self.x.clone(), self.y.clone()])
    }

    fn loss(&self, x: &Tensor, y: &Tensor) -> chainrule::Result<Tensor> {
        let logits = self.model.try_forward(x)?.try_reshape([-1, self.symbols as i64])?;
        logits.try_cross_entropy(&y.try_flatten(0, -1)?)
    }

    fn optimizer(&mut self) -> &mut dyn Optimizer {
        &mut self.adamw
    }
}
