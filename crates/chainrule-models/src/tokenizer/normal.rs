//! Normalization of texts.

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use super::words::Pattern;
use super::{kind, list, unknown};

/// Steps, in order.
#[derive(Default)]
pub struct Normal(Vec<NormalStep>);

enum NormalStep {
    Form(fn(&str) -> String),
    Prepend(String),
    Replace(Pattern, String),
    Strip([bool; 2]),
}

impl Normal {
    pub fn read(value: Option<&Value>) -> Result<Normal, String> {
        let mut steps = Vec::new();
        if let Some(value) = value {
            add(value, &mut steps)?;
        }
        Ok(Normal(steps))
    }

    pub fn of(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for step in &self.0 {
            text = match step {
                NormalStep::Form(form) => form(&text),
                NormalStep::Prepend(before) if !text.is_empty() => format!("{before}{text}"),
                NormalStep::Prepend(_) => text,
                NormalStep::Replace(pattern, with) => pattern.replace(&text, with),
                NormalStep::Strip([left, right]) => {
                    let mut part = text.as_str();
                    part = if *left { part.trim_start() } else { part };
                    part = if *right { part.trim_end() } else { part };
                    part.to_owned()
                }
            };
        }
        text
    }
}

fn add(value: &Value, steps: &mut Vec<NormalStep>) -> Result<(), String> {
    let text = |key: &str| value[key].as_str().ok_or_else(|| format!("`{key}` is no text"));
    steps.push(match kind(value)? {
        "Sequence" => return list(value, "normalizers")?.iter().try_for_each(|v| add(v, steps)),
        "Prepend" => NormalStep::Prepend(text("prepend")?.to_owned()),
        "Replace" => {
            NormalStep::Replace(Pattern::read(&value["pattern"])?, text("content")?.to_owned())
        }
        "Strip" => NormalStep::Strip(
            ["strip_left", "strip_right"].map(|key| value[key].as_bool().unwrap_or(true)),
        ),
        "Lowercase" => NormalStep::Form(str::to_lowercase),
        "NFC" => NormalStep::Form(|text| text.nfc().collect()),
        "NFD" => NormalStep::Form(|text| text.nfd().collect()),
        "NFKC" => NormalStep::Form(|text| text.nfkc().collect()),
        "NFKD" => NormalStep::Form(|text| text.nfkd().collect()),
        other => {
            let known = "Sequence, Prepend, Replace, Strip, Lowercase, NFC, NFD, NFKC, NFKD";
            return Err(unknown(other, known));
        }
    });
    Ok(())
}
