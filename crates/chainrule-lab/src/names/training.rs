//! The fourth exercise: training with the hand-written backward pass beside autograd.

use super::collapse::backward_collapsed;
use super::forward::{Batch, Parameters, forward};
use crate::error::{Error, Result};
use crate::optim::{Optimizer, Sgd};
use crate::tensor::{Tensor, no_grad};

/// Two runs on the same batches from the same parameters.
#[derive(Clone, Debug)]
pub struct Training {
    /// The loss of each step with the hand-written backward pass.
    pub by_hand: Vec<f64>,
    /// The loss of each step with autograd.
    pub autograd: Vec<f64>,
    /// The largest difference between two losses of a step.
    pub losses_apart: f64,
    /// The largest difference between two parameters at the end.
    pub parameters_apart: f64,
}

/// Trains by gradient descent, once with the hand-written backward pass and no tape, once with
/// autograd. Both runs begin with copies of `parameters` and get the same batches; `parameters`
/// stays as it is.
pub fn train(
    parameters: &Parameters,
    lr: f64,
    batches: impl IntoIterator<Item = Result<Batch>>,
) -> Result<Training> {
    let (mut hand, mut tape) =
        (TrainingRun::new(parameters, lr)?, TrainingRun::new(parameters, lr)?);
    let (mut by_hand, mut autograd) = (Vec::new(), Vec::new());
    for batch in batches {
        let batch = batch?;
        by_hand.push(hand.step_by_hand(&batch)?);
        autograd.push(tape.step(&batch)?);
    }
    let pairs = hand.parameters.list().into_iter().zip(tape.parameters.list());
    let parameters_apart =
        worst(pairs.map(|((_, a), (_, b))| apart(&a.to_f64_vec(), &b.to_f64_vec())));
    let losses_apart = apart(&by_hand, &autograd);
    Ok(Training { by_hand, autograd, losses_apart, parameters_apart })
}

/// The largest difference; NaN if there is one.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    worst(a.iter().zip(b).map(|(a, b)| (a - b).abs()))
}

fn worst(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |m, x| if x > m || x.is_nan() { x } else { m })
}

struct TrainingRun {
    parameters: Parameters,
    sgd: Sgd,
}

impl TrainingRun {
    fn new(parameters: &Parameters, lr: f64) -> Result<TrainingRun> {
        let copy = |t: &Tensor| t.detach().try_parameter();
        let Parameters { c, w1, b1, w2, b2, bngain, bnbias } = parameters;
        let parameters = Parameters {
            c: copy(c)?,
            w1: copy(w1)?,
            b1: copy(b1)?,
            w2: copy(w2)?,
            b2: copy(b2)?,
            bngain: copy(bngain)?,
            bnbias: copy(bnbias)?,
        };
        let list = parameters.list().iter().map(|(_, t)| (*t).clone()).collect();
        Ok(TrainingRun { sgd: Sgd::new(list, lr), parameters })
    }

    fn step(&mut self, batch: &Batch) -> Result<f64> {
        let loss = forward(&self.parameters, batch)?.loss;
        self.sgd.zero_grad();
        loss.try_backward()?;
        self.sgd.step()?;
        loss.try_item()
    }

    fn step_by_hand(&mut self, batch: &Batch) -> Result<f64> {
        let pass = no_grad(|| forward(&self.parameters, batch))?;
        for (name, gradient) in backward_collapsed(&self.parameters, &pass, batch) {
            let list = self.parameters.list();
            let (_, parameter) = list
                .iter()
                .find(|(n, _)| *n == name)
                .ok_or_else(|| Error::argument("names", format!("there is no parameter {name}")))?;
            parameter.set_grad(Some(gradient))?;
        }
        self.sgd.step()?;
        pass.loss.try_item()
    }
}
