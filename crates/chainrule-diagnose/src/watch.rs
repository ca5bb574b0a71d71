//! Statistics of a run on a probe of random rows: layers, gradients and updates.

use chainrule_core::rng::Generator;
use chainrule_core::tensor::{Tensor, no_grad};
use chainrule_nn::nn::Module;

use crate::data::Prepared;
use crate::description::{Activation, Program};
use crate::error::Result;
use crate::model::{self, Net};

/// Rows of the probe. They are drawn at random: the first rows of a sorted table are of one class.
const PROBE: usize = 256;

/// A layer on the probe.
#[derive(Clone, Debug)]
pub struct LayerStats {
    /// Number of the layer.
    pub layer: usize,
    /// Mean deviation of its outputs between rows.
    pub spread: f64,
    /// The share of its ReLUs that fire for no row.
    pub dead: Option<f64>,
    /// The share of its units that are saturated for nearly all rows.
    pub saturated: Option<f64>,
    /// The share of its units that equal the first one.
    pub twins: f64,
}

/// The model on the probe at one step.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Steps before it.
    pub step: usize,
    /// Whether the outputs are finite.
    pub finite: bool,
    /// The layers with weights or activations.
    pub layers: Vec<LayerStats>,
    /// Mean deviation of the outputs between rows.
    pub spread: f64,
    /// The size of the last update relative to the matrix it changed, for each matrix.
    pub updates: Vec<f64>,
}

/// Watches a run.
#[derive(Default)]
pub struct Watch {
    marks: Vec<usize>,
    probe: Option<Tensor>,
    activations: Vec<Option<Activation>>,
    /// Before the first step.
    pub start: Option<Snapshot>,
    /// The norms of the gradients of the matrices before the first step, with the layers' names.
    pub gradients: Vec<(String, f64)>,
    /// During the run; the last one is its end.
    pub snapshots: Vec<Snapshot>,
}

impl Watch {
    pub(crate) fn begin(
        &mut self,
        program: &Program,
        net: &Net,
        data: &Prepared,
        x: &Tensor,
        y: &Tensor,
        total: usize,
    ) -> Result<()> {
        let mut order = Generator::manual_seed(3).randperm(data.rows);
        order.truncate(PROBE);
        let order = Tensor::from(order);
        let probe = x.try_index_select(0, &order)?;
        let quarters = [1, 2, 3].map(|q| total * q / 4);
        self.marks =
            [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, total.saturating_sub(1)].to_vec();
        self.marks.extend(quarters);
        self.activations = program.layers.iter().map(|l| l.activation()).collect();
        self.probe = Some(probe.clone());
        self.start = Some(self.snapshot(0, net)?);
        if !net.parameters().is_empty() {
            let o = net.forward(&probe, None, None)?;
            let loss = model::loss(program.loss, &o, &y.try_index_select(0, &order)?)?;
            loss.try_backward()?;
            for (name, p) in net.named_parameters().into_iter().filter(|(_, p)| p.rank() > 1) {
                self.gradients.push((name, p.grad().map_or(0.0, |g| norm(&g))));
            }
            net.parameters().iter().for_each(Tensor::zero_grad);
        }
        Ok(())
    }

    pub(crate) fn wants(&self, step: usize) -> bool {
        self.marks.contains(&step)
    }

    /// The matrices as they are now.
    pub(crate) fn before(&self, net: &Net) -> Vec<Tensor> {
        matrices(net).iter().map(Tensor::detach).collect()
    }

    pub(crate) fn after(&mut self, step: usize, net: &Net, before: Vec<Tensor>) -> Result<()> {
        let mut snapshot = self.snapshot(step + 1, net)?;
        for (old, new) in before.iter().zip(matrices(net)) {
            let (old, new) = (old.try_to_vec::<f32>()?, new.detach().try_to_vec::<f32>()?);
            let change: Vec<f32> = new.iter().zip(&old).map(|(n, o)| n - o).collect();
            snapshot.updates.push(match old.len() {
                1 => f64::from(change[0].abs()) / (f64::from(old[0].abs()) + 1e-12),
                _ => deviation(&change) / (deviation(&old) + 1e-12),
            });
        }
        self.snapshots.push(snapshot);
        Ok(())
    }

    pub(crate) fn end(&mut self, net: &Net, losses: &[f32]) -> Result<()> {
        let snapshot = self.snapshot(losses.len(), net)?;
        self.snapshots.push(snapshot);
        Ok(())
    }

    fn snapshot(&self, step: usize, net: &Net) -> Result<Snapshot> {
        let Some(probe) = &self.probe else { unreachable!("a run begins with `begin`") };
        let mut taps = Vec::new();
        let o = no_grad(|| net.forward(probe, None, Some(&mut taps)))?;
        let rows = probe.size(0);
        let outputs = o.try_to_vec::<f32>()?;
        let mut layers = Vec::new();
        for tap in taps {
            let a = self.activations[tap.layer];
            if a.is_none() {
                continue;
            }
            let values = tap.after.try_to_vec::<f32>()?;
            let units = tap.after.shape().last().copied().unwrap_or(1);
            layers.push(LayerStats {
                layer: tap.layer,
                spread: spread(&values, rows),
                dead: (a == Some(Activation::Relu))
                    .then(|| share(&values, units, |u| u.iter().all(|&v| v <= 0.0))),
                saturated: saturated(a, &values, units),
                twins: twins(&values, units),
            });
        }
        let finite = outputs.iter().all(|v| v.is_finite());
        Ok(Snapshot { step, finite, layers, spread: spread(&outputs, rows), updates: Vec::new() })
    }

    /// The last snapshot.
    pub fn last(&self) -> Option<&Snapshot> {
        self.snapshots.last().or(self.start.as_ref())
    }
}

fn matrices(net: &Net) -> Vec<Tensor> {
    net.parameters().into_iter().filter(|p| p.rank() > 1).collect()
}

fn norm(x: &Tensor) -> f64 {
    x.to_f64_vec().iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn deviation(x: &[f32]) -> f64 {
    let n = x.len().max(1) as f64;
    let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    (x.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n).sqrt()
}

/// The mean over columns of the deviation between rows.
fn spread(values: &[f32], rows: usize) -> f64 {
    let columns = values.len() / rows.max(1);
    let (mut sum, mut squares) = (vec![0.0f64; columns], vec![0.0f64; columns]);
    for row in values.chunks_exact(columns.max(1)) {
        for ((s, q), &v) in sum.iter_mut().zip(&mut squares).zip(row) {
            let d = f64::from(v) - f64::from(values[0]);
            *s += d;
            *q += d * d;
        }
    }
    let n = rows.max(1) as f64;
    let one = |(s, q): (&f64, &f64)| (q / n - (s / n) * (s / n)).max(0.0).sqrt();
    sum.iter().zip(&squares).map(one).sum::<f64>() / columns.max(1) as f64
}

/// The share of units for which a property holds for all their values.
fn share(values: &[f32], units: usize, holds: impl Fn(&[f32]) -> bool) -> f64 {
    let column = |j: usize| values.iter().skip(j).step_by(units).copied().collect::<Vec<f32>>();
    (0..units).filter(|&j| holds(&column(j))).count() as f64 / units.max(1) as f64
}

fn saturated(a: Option<Activation>, values: &[f32], units: usize) -> Option<f64> {
    let far = |v: f32| match a {
        Some(Activation::Tanh) => v.abs() > 0.97,
        _ => !(0.03..=0.97).contains(&v),
    };
    let most = |u: &[f32]| u.iter().filter(|&&v| far(v)).count() as f64 > 0.95 * u.len() as f64;
    matches!(a, Some(Activation::Tanh | Activation::Sigmoid)).then(|| share(values, units, most))
}

fn twins(values: &[f32], units: usize) -> f64 {
    let largest = values.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    if units < 2 || largest == 0.0 {
        return 0.0;
    }
    let near = 1e-6 * (1.0 + largest);
    let same = |j: &usize| values.chunks_exact(units).all(|row| (row[*j] - row[0]).abs() < near);
    (1..units).filter(same).count() as f64 / (units - 1) as f64
}
