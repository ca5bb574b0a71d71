//! One training run of a description, on some rows and measured on others.

use std::time::Instant;

use chainrule_core::kernels::threads::with_num_threads;
use chainrule_core::rng::Generator;
use chainrule_core::tensor::{Tensor, no_grad};
use chainrule_nn::nn::Module;
use chainrule_nn::optim::keras::Keras;
use chainrule_program as programs;

use crate::data::Prepared;
use crate::description::Program;
use crate::detect;
use crate::error::Result;
use crate::model::{self, Net};
use crate::watch::Watch;

/// Rows of one forward pass of a measurement.
const ROWS: usize = 512;

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Steps at most.
    pub steps: usize,
    /// The time at which it stops, finished or not.
    pub deadline: Option<Instant>,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The loss of each step.
    pub losses: Vec<f32>,
    /// Skill on the rows that were trained on.
    pub fit: f64,
    /// Skill on held-out rows.
    pub held: Option<f64>,
    /// Skill on the program's own validation.
    pub own: Option<f64>,
    /// The ratio of right answers on rows of rare classes to those on all rows, held-out rows if
    /// there are any. None if no class is rare, or none of its rows occurs.
    pub rare: Option<f64>,
    /// Whether losses and outputs were finite.
    pub finite: bool,
    /// Steps that the description asks for.
    pub planned: usize,
    /// Whether time ran out.
    pub late: bool,
}

/// The rows of a run.
pub struct Rows<'a> {
    /// Trained on.
    pub train: &'a Prepared,
    /// Kept back.
    pub held: Option<&'a Prepared>,
    /// The program's own validation.
    pub own: Option<&'a Prepared>,
    /// Steps that the description asks for on all its rows.
    pub planned: usize,
}

/// Outputs for these inputs in evaluation mode.
pub(crate) fn outputs(net: &Net, data: &Prepared) -> Result<(Vec<f32>, usize)> {
    let x = data.inputs()?;
    let mut all = Vec::new();
    let mut columns = 1;
    for start in (0..data.rows).step_by(ROWS) {
        let rows = ROWS.min(data.rows - start);
        let part = x.try_narrow(0, start, rows)?;
        let o = no_grad(|| net.forward(&part, None, None))?;
        columns = o.numel() / rows;
        all.extend(o.try_to_vec::<f32>()?);
    }
    Ok((all, columns))
}

fn skill(program: &Program, net: &Net, data: &Prepared) -> Result<(f64, bool)> {
    let (outputs, columns) = outputs(net, data)?;
    Ok(model::score(program, &outputs, columns, &data.y))
}

/// How well the rows of rare classes are answered, compared with all rows.
fn on_rare_classes(program: &Program, net: &Net, rows: &Rows<'_>) -> Result<Option<f64>> {
    if !program.task.is_classes() {
        return Ok(None);
    }
    let rare = detect::rare_classes(&rows.train.y);
    if rare.is_empty() {
        return Ok(None);
    }
    let asked = rows.held.unwrap_or(rows.train);
    let (outputs, columns) = outputs(net, asked)?;
    Ok(model::share_on(program, &outputs, columns, &asked.y, &rare))
}

/// Trains and measures on this thread alone: models are small, and experiments run in parallel.
pub fn train(
    program: &Program,
    rows: &Rows<'_>,
    seed: u64,
    limits: Limits,
    watch: Option<&mut Watch>,
) -> Result<Outcome> {
    with_num_threads(1, || train_alone(program, rows, seed, limits, watch))
}

fn train_alone(
    program: &Program,
    rows: &Rows<'_>,
    seed: u64,
    limits: Limits,
    mut watch: Option<&mut Watch>,
) -> Result<Outcome> {
    let data = rows.train;
    let units = program.shapes()?.last().and_then(|s| s.last().copied()).unwrap_or(1);
    let (x, y) = (data.inputs()?, model::targets(program.loss, &data.y, data.rows, units)?);
    let net = Net::new(program, seed)?;
    let mut draw = Generator::manual_seed(7 + seed);
    let dropout = draw.share();
    if let Some(watch) = watch.as_deref_mut() {
        watch.begin(program, &net, data, &x, &y, limits.steps.min(rows.planned))?;
    }
    let forward = |args: &[Tensor]| {
        let o = net.forward(&args[0], Some(&mut dropout.share()), None)?;
        model::loss(program.loss, &o, &args[1])
    };
    let total = rows.planned.min(limits.steps);
    let mut losses = Vec::with_capacity(total);
    let mut stopped = None;
    if net.parameters().is_empty() {
        losses = vec![no_grad(|| forward(&[x.clone(), y.clone()]))?.item() as f32];
    } else {
        let mut keras = Keras::try_with_options(net.parameters(), 1.0, program.optimizer)?;
        let mut step = programs::compile(&net, &mut keras, ["x", "y"], |args| {
            let own = forward(args)?;
            match net.penalty()? {
                // The reported loss excludes weight decay.
                Some(penalty) => own.try_add(&penalty.try_sub(penalty.detach())?),
                None => Ok(own),
            }
        })
        .with_simplification(false);
        let batch = program.batch.min(data.rows);
        'run: while losses.len() < total {
            let (px, py) = match program.shuffle {
                true => {
                    let order = Tensor::from(draw.randperm(data.rows));
                    (x.try_index_select(0, &order)?, y.try_index_select(0, &order)?)
                }
                false => (x.clone(), y.clone()),
            };
            for start in (0..data.rows).step_by(batch) {
                if losses.len() >= total {
                    break 'run;
                }
                let len = batch.min(data.rows - start);
                let (bx, by) = match len == data.rows {
                    true => (px.clone(), py.clone()),
                    false => (px.try_narrow(0, start, len)?, py.try_narrow(0, start, len)?),
                };
                let k = losses.len();
                let watched = watch.as_deref_mut().filter(|w| w.wants(k));
                let watched = watched.map(|w| (w.before(&net), w));
                let now = step.run(&[&bx, &by])?.item() as f32;
                losses.push(now);
                if let Some((before, watch)) = watched {
                    watch.after(k, &net, before)?;
                }
                if !now.is_finite() && k > 3 {
                    stopped = Some(false);
                    break 'run;
                }
                if k % 16 == 0 && limits.deadline.is_some_and(|at| Instant::now() > at) {
                    stopped = Some(true);
                    break 'run;
                }
            }
        }
    }
    let (fit, finite) = skill(program, &net, data)?;
    let held = rows.held.map(|h| skill(program, &net, h)).transpose()?;
    let own = rows.own.map(|h| skill(program, &net, h)).transpose()?;
    let rare = on_rare_classes(program, &net, rows)?;
    if let Some(watch) = watch {
        watch.end(&net, &losses)?;
    }
    Ok(Outcome {
        losses,
        fit,
        held: held.map(|(skill, _)| skill),
        own: own.map(|(skill, _)| skill),
        rare,
        finite: finite && stopped != Some(false),
        planned: rows.planned,
        late: stopped == Some(true),
    })
}
