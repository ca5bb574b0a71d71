//! The models of digits: built, trained by the tape or by hand, measured, loaded.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use chainrule::data::{Batch, Dataset, Digits};
use chainrule::nn::explicit::{self, Explicit, ExplicitCrossEntropy, ExplicitNet};
use chainrule::nn::{Layer, Linear, Module, summary};
use chainrule::train::{Evaluation, Metrics, Task};
use chainrule::{Generator, Tensor, no_grad};
use chainrule_lab::models::{DigitsCnn, DigitsMlp};
use serde::{Deserialize, Serialize};

use crate::args::train::{Backprop, DigitsModelKind, check_digits};
use crate::train::{Checked, Config, load_weights};

/// Model and data, as they stand in the settings of the run.
#[derive(Serialize, Deserialize)]
pub struct DigitsConfig {
    pub architecture: DigitsModelKind,
    pub hidden: Vec<usize>,
    pub backprop: Backprop,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    pub examples: usize,
}

impl Checked for DigitsConfig {
    fn check(&self, batch: usize) -> Result<(), String> {
        if self.backprop == Backprop::Explicit && self.architecture == DigitsModelKind::Cnn {
            return Err("explicit backprop has no convolutions; use it with the mlp".into());
        }
        check_digits(&self.hidden, self.examples, batch)
    }
}

/// Pictures that go through the model at once when it is measured.
const PART: usize = 500;

pub struct DigitsTask {
    net: Box<dyn Layer>,
    /// The backward pass by hand, on the same parameters.
    by_hand: Option<Mutex<(ExplicitNet, ExplicitCrossEntropy)>>,
    test: Arc<Digits>,
}

/// Prediction of a model for a picture.
#[derive(Clone)]
pub struct Seen {
    pub is: usize,
    pub taken_for: usize,
    /// The probability of that.
    pub sure: f64,
    /// `-log` of the probability of what it is.
    pub loss: f64,
}

impl DigitsTask {
    /// With random weights.
    pub fn new(model: &DigitsConfig, test: Arc<Digits>, seed: u64) -> Result<DigitsTask> {
        let g = &mut Generator::manual_seed(seed);
        let net: Box<dyn Layer> = match model.architecture {
            DigitsModelKind::Mlp => Box::new(DigitsMlp::try_new(&model.hidden, g)?),
            DigitsModelKind::Cnn => Box::new(DigitsCnn::try_new(g)?),
        };
        let by_hand = match model.backprop {
            Backprop::Autograd => None,
            Backprop::Explicit => {
                Some(Mutex::new((by_hand(&*net), ExplicitCrossEntropy::default())))
            }
        };
        Ok(DigitsTask { net, by_hand, test })
    }

    /// The model as a table.
    pub fn summary(&self) -> Result<String> {
        Ok(summary(&self.net, &Tensor::zeros([1, DigitsMlp::PIXELS]))?.to_string())
    }

    /// The scores of each digit.
    pub fn logits(&self, pictures: &Tensor) -> chainrule::Result<Tensor> {
        self.net.try_forward(pictures)
    }

    /// Its predictions for the pictures, in evaluation mode.
    pub fn see(&self, pictures: &Digits) -> Result<Vec<Seen>> {
        self.net.eval();
        Ok(self.look(pictures)?)
    }

    fn look(&self, pictures: &Digits) -> chainrule::Result<Vec<Seen>> {
        let parts = pictures.len().div_ceil(PART);
        Ok((0..parts)
            .map(|number| self.look_at(pictures, number))
            .collect::<chainrule::Result<Vec<_>>>()?
            .concat())
    }

    /// Its predictions for the pictures of a part.
    fn look_at(&self, pictures: &Digits, part: usize) -> chainrule::Result<Vec<Seen>> {
        let rows: Vec<usize> = (part * PART..pictures.len().min((part + 1) * PART)).collect();
        let mut all = Vec::with_capacity(rows.len());
        let batch = pictures.batch(&rows)?;
        let logs = no_grad(|| self.net.try_forward(&batch.x)?.try_log_softmax(1))?;
        let (logs, labels) = (logs.try_to_vec::<f32>()?, batch.y.try_to_vec::<i64>()?);
        for (logs, label) in logs.chunks(DigitsMlp::DIGITS).zip(labels) {
            let (mut taken_for, is) = (0, label as usize);
            for (digit, &log) in logs.iter().enumerate() {
                if log > logs[taken_for] {
                    taken_for = digit;
                }
            }
            let sure = f64::from(logs[taken_for]).exp();
            all.push(Seen { is, taken_for, sure, loss: -f64::from(logs[is]) });
        }
        Ok(all)
    }
}

/// Mean loss and accuracy.
pub fn measure(seen: &[Seen]) -> (f64, f64) {
    let n = seen.len().max(1) as f64;
    let right = seen.iter().filter(|seen| seen.is == seen.taken_for).count();
    (seen.iter().map(|seen| seen.loss).sum::<f64>() / n, right as f64 / n)
}

impl Task for DigitsTask {
    fn module(&self) -> &dyn Module {
        &self.net
    }

    fn loss(&self, batch: &Batch) -> chainrule::Result<Tensor> {
        self.net.try_forward(&batch.x)?.try_cross_entropy(&batch.y)
    }

    fn gradients(&self, batch: &Batch) -> chainrule::Result<Tensor> {
        let Some(by_hand) = &self.by_hand else {
            let loss = self.loss(batch)?;
            loss.try_backward()?;
            return Ok(loss);
        };
        let (net, criterion) = &mut *by_hand.lock().unwrap_or_else(PoisonError::into_inner);
        let logits = net.try_forward(&batch.x)?;
        let loss = criterion.try_forward(&logits, &batch.y)?;
        net.try_backward(&criterion.try_backward()?)?;
        Ok(loss)
    }

    fn has_plain_gradients(&self) -> bool {
        self.by_hand.is_none()
    }

    fn evaluation(&self) -> Option<&dyn Evaluation> {
        Some(self)
    }
}

impl Evaluation for DigitsTask {
    fn parts(&self) -> usize {
        self.test.len().div_ceil(PART)
    }

    fn part(&self, number: usize) -> chainrule::Result<Vec<f64>> {
        let seen = self.look_at(&self.test, number)?;
        let n = seen.len() as f64;
        let (loss, accuracy) = measure(&seen);
        Ok(vec![loss * n, (accuracy * n).round(), n])
    }

    fn measures(&self, sums: &[f64]) -> Metrics {
        let &[loss, right, n] = sums else { return Metrics::new() };
        vec![("test_loss", loss / n), ("test_accuracy", right / n)]
    }
}

/// Explicit layers on the parameters of a fully connected net.
fn by_hand(net: &dyn Layer) -> ExplicitNet {
    let parameters = net.parameters();
    let mut out = ExplicitNet::new();
    let layers = parameters.len() / 2;
    for (i, pair) in parameters.chunks(2).enumerate() {
        let linear = Linear { weight: pair[0].clone(), bias: Some(pair[1].clone()) };
        out = out.with(explicit::ExplicitLinear::from(linear));
        if i + 1 < layers {
            out = out.with(explicit::ExplicitRelu::default());
        }
    }
    out
}

/// The model of a run, in evaluation mode.
pub fn load(run: &Path) -> Result<(DigitsTask, DigitsConfig)> {
    let config = Config::read(run, super::KIND)?;
    let model: DigitsConfig = config.model(run)?;
    let none = Arc::new(Digits { pixels: Vec::new(), labels: Vec::new() });
    let task = DigitsTask::new(&model, none, 0)?;
    load_weights(run, &task.net)?;
    task.net.eval();
    Ok((task, model))
}
