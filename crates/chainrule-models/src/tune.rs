//! Fine-tuning on a text.

use chainrule_core::error::{Error, Result};
use chainrule_core::rng::Generator;
use chainrule_core::tensor::{Tensor, no_grad};
use chainrule_nn::optim::{AdamW, AdamWOptions, Group, Optimizer, clip_finite_grad_norm};

use crate::text_model::TextModel;

/// Options of fine-tuning: AdamW on random windows of the text.
#[derive(Debug, Clone, PartialEq)]
pub struct FineTuning {
    /// Steps; 100.
    pub steps: usize,
    /// Windows per step; 4.
    pub batch: usize,
    /// Predicted tokens per window, at most the context length; 64.
    pub context: usize,
    /// Peak learning rate, which decays to a tenth along a cosine; 5e-5.
    pub lr: f64,
    /// Weight decay of matrices; 0.01.
    pub weight_decay: f64,
    /// Gradient clipping norm; 1.
    pub clip: f64,
    /// Seed of the windows; 7.
    pub seed: u64,
}

impl Default for FineTuning {
    fn default() -> Self {
        FineTuning {
            steps: 100,
            batch: 4,
            context: 64,
            lr: 5e-5,
            weight_decay: 0.01,
            clip: 1.0,
            seed: 7,
        }
    }
}

/// A step of fine-tuning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TuningStep {
    /// Number of the step, from 1 on.
    pub step: usize,
    /// Mean loss of its windows before the step, in nats per token.
    pub loss: f64,
}

impl TextModel {
    /// Trains all weights on tokens from [`crate::Tokenizer::encode`]; `each` is called after every
    /// step. The model is changed in place; [`TextModel::save`] saves it.
    ///
    /// Errors for a text shorter than a window, and for options out of range.
    pub fn fine_tune(
        &self,
        tokens: &[i64],
        options: &FineTuning,
        mut each: impl FnMut(TuningStep) -> Result<()>,
    ) -> Result<()> {
        let model = self.model();
        let error = |why: String| Err(Error::argument("fine_tune", why));
        let FineTuning { steps, batch, context, lr, weight_decay, clip, seed } = *options;
        if [steps, batch, context].contains(&0) || context > model.context() {
            return error(format!(
                "steps, batch and context must be 1 at least, and the context at most the model's \
                 {}; they are {steps}, {batch} and {context}",
                model.context()
            ));
        }
        if tokens.len() <= context {
            return error(format!(
                "the text has {} tokens, and a piece takes {}; give a longer text or a smaller \
                 context",
                tokens.len(),
                context + 1
            ));
        }
        let (matrices, rest): (Vec<Tensor>, Vec<Tensor>) =
            model.parameters().into_iter().partition(|p| p.rank() >= 2);
        let groups = [Group::new(matrices), Group::new(rest).weight_decay(0.0)];
        let adamw = AdamWOptions { weight_decay, ..AdamWOptions::default() };
        let mut optimizer = AdamW::try_with_groups(groups, lr, adamw)?;
        let mut generator = Generator::manual_seed(seed);
        for step in 1..=steps {
            let share = (step - 1) as f64 / steps as f64;
            let cosine = 0.5 * (1.0 + (std::f64::consts::PI * share).cos());
            optimizer.set_lr(lr * (0.1 + 0.9 * cosine))?;
            let mut rows = Vec::with_capacity(batch * (context + 1));
            for _ in 0..batch {
                let first = generator.random_u64() % (tokens.len() - context) as u64;
                rows.extend_from_slice(&tokens[first as usize..][..=context]);
            }
            let rows = Tensor::try_from_slice(&rows, [batch, context + 1])?;
            optimizer.zero_grad();
            let loss = model.loss(&rows)?;
            loss.try_backward()?;
            clip_finite_grad_norm(optimizer.parameters(), clip, 2.0)?;
            optimizer.step()?;
            each(TuningStep { step, loss: loss.detach().try_item()? })?;
        }
        optimizer.zero_grad();
        Ok(())
    }

    /// Mean loss over a text in consecutive windows, in nats per token.
    pub fn mean_loss(&self, tokens: &[i64], context: usize) -> Result<f64> {
        let context = context.clamp(1, self.model().context());
        if tokens.len() < 2 {
            return Err(Error::argument("mean_loss", "the text must have two tokens at least"));
        }
        let (mut sum, mut first) = (0.0, 0);
        while first + 1 < tokens.len() {
            let piece = &tokens[first..tokens.len().min(first + context + 1)];
            let rows = Tensor::try_from_slice(piece, [1, piece.len()])?;
            let loss = no_grad(|| self.model().loss(&rows))?;
            sum += loss.try_item()? * (piece.len() - 1) as f64;
            first += piece.len() - 1;
        }
        Ok(sum / (tokens.len() - 1) as f64)
    }
}
