//! The GPT of a run, and how it is measured on a text or on sums.

use anyhow::Result;
use chainrule::data::{Batch, CharText, Dataset, Sums, Windows};
use chainrule::nn::{Layer, Module, summary};
use chainrule::train::{Evaluation, Metrics, Task};
use chainrule::{CrossEntropy, Generator, Tensor, no_grad};
use chainrule_lab::models::{Gpt, GptConfig};
use serde::{Deserialize, Serialize};

use super::sample::{How, generate};
use crate::args::train::{TextSizes, check_text};
use crate::train::Checked;

/// Model and data, as they stand in the settings of the run.
#[derive(Serialize, Deserialize)]
pub struct TextConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    pub digits: u32,
    pub symbols: String,
    pub context: usize,
    pub layers: usize,
    pub heads: usize,
    pub width: usize,
    pub dropout: f64,
    #[serde(default)]
    pub recompute: usize,
}

impl Checked for TextConfig {
    fn check(&self, batch: usize) -> Result<(), String> {
        let symbols: Vec<char> = self.symbols.chars().collect();
        if symbols.is_empty() || !symbols.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err("symbols must be characters in rising order, each once".into());
        }
        if self.data.is_none() && symbols != Sums::SYMBOLS {
            return Err("the symbols are not those of sums".into());
        }
        let sizes = TextSizes {
            digits: self.digits,
            layers: self.layers,
            heads: self.heads,
            width: self.width,
            context: self.context,
            recompute: self.recompute,
            dropout: self.dropout,
            symbols: symbols.len(),
        };
        check_text(&sizes, batch)
    }
}

impl TextConfig {
    pub fn gpt(&self, generator: &mut Generator) -> Result<Gpt> {
        let config = GptConfig {
            symbols: self.symbols.chars().count(),
            context: self.context.max(if self.data.is_none() {
                3 * self.digits as usize + 3
            } else {
                1
            }),
            layers: self.layers,
            heads: self.heads,
            width: self.width,
            dropout: self.dropout,
        };
        let mut gpt = Gpt::try_new(config, generator)?;
        gpt.recompute_every(self.recompute);
        Ok(gpt)
    }
}

/// Data that the model is measured on.
pub struct Corpus {
    text: CharText,
    /// In batches.
    held_out: Vec<Batch>,
    /// Questions and answers, for sums.
    sums: Vec<(String, String)>,
}

/// Stretches that go through the model at once when it is measured.
const PART: usize = 50;

/// Number of unseen sums asked.
const ASKED: usize = 200;

impl Corpus {
    /// Stretches of a text, one after the other without overlap, and at most this many, spread
    /// evenly.
    pub fn text(text: CharText, held_out: &Windows, most: usize) -> Result<Corpus> {
        let all: Vec<usize> = (0..held_out.len()).step_by(held_out.context()).collect();
        let step = all.len().div_ceil(most).max(1);
        let rows: Vec<usize> = all.into_iter().step_by(step).collect();
        let held_out =
            rows.chunks(PART).map(|rows| held_out.batch(rows)).collect::<Result<_, _>>()?;
        Ok(Corpus { text, held_out, sums: Vec::new() })
    }

    /// Sums that are not learned from.
    pub fn sums(test: &Sums) -> Result<Corpus> {
        let rows: Vec<usize> = (0..test.len().min(ASKED)).collect();
        let held_out =
            rows.chunks(PART * 4).map(|rows| test.batch(rows)).collect::<Result<_, _>>()?;
        let sums = (0..test.len().min(ASKED)).map(|i| test.sum(i)).collect();
        Ok(Corpus { text: CharText::with_symbols("", &Sums::SYMBOLS)?, held_out, sums })
    }
}

pub struct TextTask {
    pub gpt: Gpt,
    corpus: Corpus,
}

impl TextTask {
    pub fn new(model: &TextConfig, corpus: Corpus, generator: &mut Generator) -> Result<TextTask> {
        Ok(TextTask { gpt: model.gpt(generator)?, corpus })
    }

    /// The model as a table.
    pub fn summary(&self, model: &TextConfig) -> Result<String> {
        let x = Tensor::zeros([1, model.context]).try_to_dtype(chainrule::DType::I64)?;
        Ok(summary(&self.gpt, &x)?.to_string())
    }

    fn loss_of(&self, batch: &Batch) -> chainrule::Result<Tensor> {
        let logits = self.gpt.try_forward(&batch.x)?;
        let symbols = self.gpt.config().symbols as i64;
        let options = CrossEntropy { ignore_index: Some(Sums::IGNORED), ..CrossEntropy::default() };
        let targets = batch.y.try_reshape([-1])?;
        logits.try_reshape([-1, symbols])?.try_cross_entropy_with(&targets, &options)
    }

    /// The measures, in evaluation mode.
    pub fn measure(&self) -> Result<Metrics> {
        self.gpt.eval();
        Ok(no_grad(|| self.evaluate())?)
    }

    /// The model's writing, in evaluation mode: some text, or answers.
    pub fn show(&self, length: usize) -> Result<String> {
        self.gpt.eval();
        Ok(no_grad(|| self.write(length))?)
    }

    fn write(&self, length: usize) -> chainrule::Result<String> {
        if self.corpus.sums.is_empty() {
            let g = &mut Generator::manual_seed(7);
            let how = How { temperature: 0.8, top_k: None };
            let numbers = generate(&self.gpt, &[0], length, how, None, g)?;
            return Ok(self.corpus.text.decode(&numbers));
        }
        let shown = &self.corpus.sums[..self.corpus.sums.len().min(5)];
        let answers = self.answers(shown)?;
        let line = |((question, right), answer): (&(String, String), String)| match *right == answer
        {
            true => format!("{question}{answer}"),
            false => format!("{question}{answer} (it is {right})"),
        };
        Ok(shown.iter().zip(answers).map(line).collect::<Vec<_>>().join("   "))
    }

    /// The model's answers: the likeliest symbol each time. All questions go through it together;
    /// what stands to the right of a place does not reach it.
    fn answers(&self, sums: &[(String, String)]) -> chainrule::Result<Vec<String>> {
        let width = self.gpt.config().context;
        let mut x = vec![0i64; sums.len() * width];
        let mut ends: Vec<usize> = Vec::new();
        for (row, (question, _)) in x.chunks_mut(width).zip(sums) {
            let question = Sums::encode(question);
            row[..question.len()].copy_from_slice(&question);
            ends.push(question.len());
        }
        let longest = sums.iter().map(|(_, answer)| answer.len()).max().unwrap_or(0);
        let mut answers = vec![Vec::new(); sums.len()];
        for _ in 0..=longest {
            let logits = self.gpt.try_forward(&Tensor::try_from_slice(&x, [sums.len(), width])?)?;
            let next = logits.try_argmax(2, false)?.try_to_vec::<i64>()?;
            for (i, row) in x.chunks_mut(width).enumerate() {
                let symbol = next[i * width + ends[i] - 1];
                let ended = answers[i].last() == Some(&0);
                if !ended {
                    answers[i].push(symbol);
                    if ends[i] < width {
                        row[ends[i]] = symbol;
                        ends[i] = (ends[i] + 1).min(width);
                    }
                }
            }
        }
        let text = |answer: Vec<i64>| self.corpus.text.decode(&answer).trim_end().to_owned();
        Ok(answers.into_iter().map(text).collect())
    }
}

impl Task for TextTask {
    fn module(&self) -> &dyn Module {
        &self.gpt
    }

    fn loss(&self, batch: &Batch) -> chainrule::Result<Tensor> {
        self.loss_of(batch)
    }

    fn evaluation(&self) -> Option<&dyn Evaluation> {
        Some(self)
    }

    fn sample(&self) -> chainrule::Result<Option<String>> {
        self.write(120).map(Some)
    }

    fn counted(&self) -> &'static str {
        "tokens"
    }

    fn count(&self, batch: &Batch) -> u64 {
        batch.x.numel() as u64
    }
}

impl Evaluation for TextTask {
    fn parts(&self) -> usize {
        self.corpus.held_out.len()
    }

    /// Sum of the losses and number of symbols; right answers and number of questions.
    fn part(&self, number: usize) -> chainrule::Result<Vec<f64>> {
        let batch = &self.corpus.held_out[number];
        let counted = batch.y.try_to_vec::<i64>()?.iter().filter(|&&y| y != Sums::IGNORED).count();
        let loss = self.loss_of(batch)?.try_item()? * counted as f64;
        let asked = self.corpus.sums.chunks(PART * 4).nth(number).unwrap_or_default();
        let answers = if asked.is_empty() { Vec::new() } else { self.answers(asked)? };
        let right = answers.iter().zip(asked).filter(|(a, (_, b))| *a == b).count();
        Ok(vec![loss, counted as f64, right as f64, asked.len() as f64])
    }

    fn measures(&self, sums: &[f64]) -> Metrics {
        let &[loss, counted, right, asked] = sums else { return Metrics::new() };
        let mut measures = vec![("val_loss", loss / counted)];
        if asked > 0.0 {
            measures.push(("exact_match", right / asked));
        }
        measures
    }
}
