//! The bounded history of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::engine::number;

/// The most rows that are kept; of a longer run every second one is, and so on.
const ROWS: usize = 4000;

/// The most looks at tensors that are kept.
const LOOKS: usize = 160;

/// The most findings, texts and measures of one kind.
const TOLD: usize = 400;

/// The longest text, in characters.
const TEXT: usize = 20_000;

/// The layers and activations of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    pub layers: Value,
    pub activations: Value,
}

/// A step.
#[derive(Clone, Debug, Default)]
pub(super) struct RunStep {
    pub step: u64,
    pub loss: f64,
    pub rate: f64,
    pub grad_norm: Option<f64>,
    pub reading: Option<Arc<Reading>>,
    pub findings: Vec<(String, String)>,
}

impl RunStep {
    fn is_plain(&self) -> bool {
        self.reading.is_none() && self.findings.is_empty()
    }

    pub fn to_json(&self) -> Value {
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|(kind, words)| json!({"kind": kind.replace('_', " "), "words": words}))
            .collect();
        let none = || json!([]);
        json!({
            "step": self.step,
            "loss": number(self.loss),
            "rate": self.rate,
            "grad_norm": self.grad_norm.map(number),
            "layers": self.reading.as_ref().map_or_else(none, |r| r.layers.clone()),
            "activations": self.reading.as_ref().map_or_else(none, |r| r.activations.clone()),
            "findings": findings,
        })
    }
}

#[derive(Default)]
pub(super) struct History {
    /// Rows with their numbers, which rise.
    rows: Vec<(u64, RunStep)>,
    told: u64,
    stride: u64,
    /// Parts of steps that have not come yet.
    early: BTreeMap<u64, RunStep>,
    texts: Vec<(u64, String, String)>,
    measures: Vec<(u64, String, f64)>,
    texts_told: u64,
    generation: u64,
    pub ended: Option<String>,
    /// States that were kept: their steps and places.
    pub checkpoints: Vec<(u64, String)>,
}

impl History {
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn texts_told(&self) -> u64 {
        self.texts_told
    }

    /// The number of the newest row; 0 if there is none.
    pub fn newest(&self) -> u64 {
        self.told
    }

    /// The rows after that number, the oldest first, and the newest in any case.
    pub fn after(&self, row: u64, most: usize) -> Vec<(u64, RunStep)> {
        let from = self.rows.partition_point(|(number, _)| *number <= row);
        self.rows[from..].iter().take(most).cloned().collect()
    }

    pub fn begin_anew(&mut self) {
        *self = History { generation: self.generation + 1, ..History::default() };
    }

    pub fn step(&mut self, mut row: RunStep) {
        if let Some(early) = self.early.remove(&row.step) {
            (row.reading, row.findings) = (early.reading, early.findings);
        }
        // The row before was there for its being the newest.
        let stride = self.stride.max(1);
        if let Some((_, last)) = self.rows.last()
            && last.is_plain()
            && !last.step.is_multiple_of(stride)
        {
            self.rows.pop();
        }
        self.push(row);
    }

    fn push(&mut self, row: RunStep) {
        self.told += 1;
        let has_reading = row.reading.is_some();
        self.rows.push((self.told, row));
        if has_reading {
            self.thin_readings();
        }
        while self.rows.len() > ROWS {
            self.stride = (self.stride.max(1)) * 2;
            let (stride, newest) = (self.stride, self.told);
            let before = self.rows.len();
            self.rows.retain(|(number, row)| {
                !row.is_plain() || row.step.is_multiple_of(stride) || *number == newest
            });
            // Steps that are far apart already: every second one goes.
            if self.rows.len() == before {
                let mut count = 0u64;
                self.rows.retain(|(number, row)| {
                    count += 1;
                    !row.is_plain() || count.is_multiple_of(2) || *number == newest
                });
                if self.rows.len() == before {
                    break;
                }
            }
        }
    }

    fn thin_readings(&mut self) {
        let count = self.rows.iter().filter(|(_, row)| row.reading.is_some()).count();
        if count <= LOOKS {
            return;
        }
        let mut nth = 0u64;
        for (_, row) in self.rows.iter_mut().filter(|(_, row)| row.reading.is_some()) {
            nth += 1;
            if nth.is_multiple_of(2) {
                row.reading = None;
            }
        }
    }

    /// The row of a step that came before, with more; kept for its step if that has not come.
    fn amend(&mut self, step: u64, more: impl FnOnce(&mut RunStep)) {
        let known = self.rows.iter().rev().find(|(_, row)| row.step <= step);
        match known.filter(|(_, row)| row.step == step) {
            Some((_, row)) => {
                let mut row = row.clone();
                more(&mut row);
                self.rows.retain(|(_, old)| old.step != step);
                self.push(row);
                self.rows.sort_by_key(|(number, _)| *number);
            }
            None => {
                let early = self
                    .early
                    .entry(step)
                    .or_insert_with(|| RunStep { step, ..RunStep::default() });
                more(early);
                while self.early.len() > LOOKS {
                    self.early.pop_first();
                }
            }
        }
    }

    pub fn look(&mut self, step: u64, reading: Reading) {
        self.amend(step, |row| row.reading = Some(Arc::new(reading)));
    }

    pub fn found(&mut self, step: u64, kind: &str, words: &str) {
        let finding = (kind.to_owned(), words.to_owned());
        self.amend(step, |row| {
            if row.findings.len() < TOLD {
                row.findings.push(finding);
            }
        });
    }

    pub fn measured(&mut self, step: u64, name: &str, value: f64) {
        self.measures.push((step, name.to_owned(), value));
        let same = self.measures.iter().filter(|(_, known, _)| known == name).count();
        if same > TOLD {
            let mut nth = 0u64;
            self.measures.retain(|(_, known, _)| {
                nth += u64::from(known == name);
                known != name || nth.is_multiple_of(2)
            });
        }
        self.texts_told += 1;
    }

    pub fn text(&mut self, step: u64, title: &str, text: &str) {
        let text = text.chars().take(TEXT).collect();
        self.texts.push((step, title.to_owned(), text));
        if self.texts.len() > TOLD / 20 {
            self.texts.remove(0);
        }
        self.texts_told += 1;
    }

    pub fn checkpoints(&self) -> Value {
        let all = self.checkpoints.iter().enumerate();
        all.map(|(i, (step, place))| json!({"checkpoint": i, "step": step, "place": place}))
            .collect()
    }

    pub fn texts(&self) -> Value {
        let texts = self.texts.iter();
        texts
            .map(|(step, title, text)| json!({"step": step, "title": title, "text": text}))
            .collect()
    }

    pub fn measures(&self) -> Value {
        let measures = self.measures.iter();
        measures
            .map(|(step, name, value)| json!({"step": step, "name": name, "value": number(*value)}))
            .collect()
    }
}
