//! Training loops that are unusual and right: none may raise an alarm.

mod attention;
mod layers;
mod loops;
mod losses;
mod sequences;

use super::super::{Workflow, WorkflowReport};
use crate::dtype::DType;
use crate::error::Result;
use crate::optim::Optimizer;
use crate::rng::Generator;
use crate::tensor::Tensor;

type Loop = fn(&mut Generator) -> Result<WorkflowReport>;

/// Runs a loop with several seeds.
fn silent(run: Loop) {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let first = number("CHAINRULE_WORKFLOW_SEED").unwrap_or(0);
    for seed in first..first + number("CHAINRULE_WORKFLOW_SEEDS").unwrap_or(4) {
        let report = run(&mut Generator::manual_seed(seed)).unwrap();
        assert!(report.steps >= 4, "only {} steps were looked at", report.steps);
        assert!(report.is_clean(), "seed {seed}: {report}");
    }
}

fn between(g: &mut Generator, low: u64, high: u64) -> usize {
    (low + g.random_u64() % (high - low)) as usize
}

fn normal(g: &mut Generator, shape: &[usize]) -> Tensor {
    Tensor::randn(shape, DType::F32, g)
}

fn weight(g: &mut Generator, rows: usize, columns: usize) -> Tensor {
    (normal(g, &[rows, columns]) * (1.0 / (rows as f64).sqrt())).parameter()
}

fn symbols(g: &mut Generator, shape: &[usize], count: usize) -> Tensor {
    let mut all = vec![0i64; shape.iter().product()];
    g.fill_randint(0, count as i64, &mut all).expect("the range is not empty");
    Tensor::from_slice(&all, shape)
}

/// The usual step after a loss.
fn step(
    watch: &mut Workflow<'_>,
    inputs: &[&Tensor],
    targets: &[&Tensor],
    loss: &Tensor,
    optimizer: &mut dyn Optimizer,
) -> Result<()> {
    let own = |all: &[&Tensor]| all.iter().map(|&x| x.clone()).collect::<Vec<_>>();
    watch.forward(&own(inputs)[..], &own(targets)[..], loss)?;
    optimizer.zero_grad();
    loss.try_backward()?;
    optimizer.step()?;
    watch.step()
}
