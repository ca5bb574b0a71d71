//! Expensive, rare looks: gradient noise from the halves of a batch, and sharpness.

use super::watch::Watch;
use crate::Task;
use crate::data::Batch;
use crate::error::Result;
use crate::monitor::Monitor;
use crate::optim::Optimizer;
use crate::tensor::{Tensor, no_grad};
use chainrule_core::autograd::{GradOptions, grad, grad_with};

/// Hessian-vector products per estimate of the largest eigenvalue.
const PRODUCTS: usize = 4;

/// Measures a batch, and restores buffers, generators and gradients. Skips a batch that cannot be
/// halved, and a model without second derivatives.
pub(super) fn look(
    task: &dyn Task,
    optimizer: &mut dyn Optimizer,
    batch: &Batch,
    watch: &mut Watch,
) -> Result<()> {
    let module = task.module();
    let buffers: Vec<(Tensor, Tensor)> =
        module.named_buffers().into_iter().map(|(_, b)| (b.clone(), b.detach())).collect();
    let generators = module.generator_states();
    let parameters: Vec<Tensor> =
        optimizer.parameters().iter().filter(|p| p.requires_grad()).cloned().collect();
    if let Some(halves) = halves(batch) {
        if let Ok([first, second]) = noise(task, &halves, &parameters) {
            let norms = (first.0 + second.0) / 2.0;
            watch.monitor.gradient_noise((0.5, norms), (1.0, (norms + first.1) / 2.0));
        }
        if let Ok(Some(largest)) = curvature(task, &halves[0], &parameters) {
            watch.monitor.curvature(largest);
        }
    }
    for (buffer, before) in &buffers {
        buffer.try_set(before)?;
    }
    module.set_generator_states(&generators)
}

/// Halves of a batch whose inputs and targets have the same even number of rows.
fn halves(batch: &Batch) -> Option<[Batch; 2]> {
    let rows = *batch.x.shape().first()?;
    if rows < 4 || rows % 2 == 1 || batch.y.shape().first() != Some(&rows) {
        return None;
    }
    let part = |from: usize| {
        let x = batch.x.try_narrow(0, from, rows / 2).ok()?;
        Some(Batch { x, y: batch.y.try_narrow(0, from, rows / 2).ok()? })
    };
    Some([part(0)?, part(rows / 2)?])
}

/// Squared gradient norm of each half, and their inner product.
fn noise(task: &dyn Task, halves: &[Batch; 2], parameters: &[Tensor]) -> Result<[(f64, f64); 2]> {
    let all: Vec<&Tensor> = parameters.iter().collect();
    let of = |half: &Batch| grad(&task.loss(half)?, &all);
    let (a, b) = (of(&halves[0])?, of(&halves[1])?);
    let product = |a: &[Option<Tensor>], b: &[Option<Tensor>]| -> Result<f64> {
        let mut sum = 0.0;
        for (a, b) in a.iter().zip(b) {
            if let (Some(a), Some(b)) = (a, b) {
                sum += a.try_mul(b)?.try_sum_all()?.try_item()?;
            }
        }
        Ok(sum)
    };
    let between = product(&a, &b)?;
    Ok([(product(&a, &a)?, between), (product(&b, &b)?, between)])
}

/// Largest eigenvalue of the Hessian by a few power iterations from the gradient.
fn curvature(task: &dyn Task, half: &Batch, parameters: &[Tensor]) -> Result<Option<f64>> {
    let all: Vec<&Tensor> = parameters.iter().collect();
    let slopes = grad_with(&task.loss(half)?, &all, &GradOptions::create_graph())?;
    let known: Vec<(&Tensor, &Tensor)> =
        all.iter().zip(&slopes).filter_map(|(p, g)| Some((*p, g.as_ref()?))).collect();
    let inputs: Vec<&Tensor> = known.iter().map(|(p, _)| *p).collect();
    let mut along: Vec<Tensor> = known.iter().map(|(_, g)| g.detach()).collect();
    let mut largest = None;
    for _ in 0..PRODUCTS {
        let norm = Monitor::norm(&along);
        if !(norm > 0.0 && norm.is_finite()) {
            break;
        }
        along = no_grad(|| along.iter().map(|v| v.try_mul(1.0 / norm)).collect::<Result<_>>())?;
        let mut sum: Option<Tensor> = None;
        for ((_, g), v) in known.iter().zip(&along) {
            let part = g.try_mul(v)?.try_sum_all()?;
            sum = Some(match sum {
                Some(sum) => sum.try_add(&part)?,
                None => part,
            });
        }
        let Some(sum) = sum.filter(Tensor::requires_grad) else { break };
        let products = grad(&sum, &inputs)?;
        // Rayleigh quotient of a unit vector.
        let mut quotient = 0.0;
        let mut next = Vec::with_capacity(along.len());
        for (product, v) in products.into_iter().zip(&along) {
            let product = product.unwrap_or_else(|| v.zeros_like());
            quotient += no_grad(|| product.try_mul(v)?.try_sum_all()?.try_item())?;
            next.push(product.detach());
        }
        if quotient.is_finite() {
            largest = Some(largest.map_or(quotient, |most: f64| most.max(quotient)));
        }
        along = next;
    }
    Ok(largest)
}
