//! Decoding of tokens to text.

use serde_json::Value;

use super::bytes::from_alphabet;
use super::words::Pattern;
use super::{kind, list, unknown};

/// Steps, in order.
pub struct TokenDecoder(Vec<DecodeStep>);

enum DecodeStep {
    Bytes,
    Replace(Pattern, String),
    /// Byte tokens such as `<0xE2>`.
    ByteFallback,
    Fuse,
    /// Strips up to so many of this character at both ends of each token.
    Strip(char, [usize; 2]),
    Metaspace {
        sign: String,
        prepend: bool,
    },
}

impl TokenDecoder {
    pub fn bytes() -> TokenDecoder {
        TokenDecoder(vec![DecodeStep::Bytes])
    }

    pub fn read(value: Option<&Value>) -> Result<TokenDecoder, String> {
        let mut steps = Vec::new();
        if let Some(value) = value {
            add(value, &mut steps)?;
        }
        Ok(TokenDecoder(steps))
    }

    pub fn of(&self, mut tokens: Vec<String>) -> String {
        // Without a decoder tokens are joined by spaces.
        if self.0.is_empty() {
            return tokens.join(" ");
        }
        for step in &self.0 {
            tokens = step.of(tokens);
        }
        tokens.concat()
    }
}

impl DecodeStep {
    fn of(&self, tokens: Vec<String>) -> Vec<String> {
        match self {
            DecodeStep::Bytes => {
                let bytes: Vec<u8> = tokens.iter().flat_map(|t| from_alphabet(t)).collect();
                vec![String::from_utf8_lossy(&bytes).into_owned()]
            }
            DecodeStep::Replace(pattern, with) => {
                tokens.iter().map(|t| pattern.replace(t, with)).collect()
            }
            DecodeStep::ByteFallback => join_bytes(tokens),
            DecodeStep::Fuse => vec![tokens.concat()],
            DecodeStep::Strip(c, [left, right]) => {
                tokens.iter().map(|t| strip(t, *c, *left, *right).to_owned()).collect()
            }
            DecodeStep::Metaspace { sign, prepend } => {
                let text = |(i, t): (usize, &String)| {
                    let t = t.replace(sign.as_str(), " ");
                    match t.strip_prefix(' ') {
                        Some(rest) if i == 0 && *prepend => rest.to_owned(),
                        _ => t,
                    }
                };
                tokens.iter().enumerate().map(text).collect()
            }
        }
    }
}

fn strip(mut text: &str, c: char, left: usize, right: usize) -> &str {
    for _ in 0..left {
        text = text.strip_prefix(c).unwrap_or(text);
    }
    for _ in 0..right {
        text = text.strip_suffix(c).unwrap_or(text);
    }
    text
}

/// Runs of bytes as characters; invalid UTF-8 gives U+FFFD for each byte.
fn join_bytes(tokens: Vec<String>) -> Vec<String> {
    let (mut out, mut run) = (Vec::new(), Vec::new());
    let flush = |run: &mut Vec<u8>, out: &mut Vec<String>| {
        if !run.is_empty() {
            let bytes = std::mem::take(run);
            let count = bytes.len();
            out.push(String::from_utf8(bytes).unwrap_or_else(|_| "\u{fffd}".repeat(count)));
        }
    };
    for token in tokens {
        let hex = token.strip_prefix("<0x").and_then(|t| t.strip_suffix('>'));
        match hex.filter(|h| h.len() == 2).and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(byte) => run.push(byte),
            None => {
                flush(&mut run, &mut out);
                out.push(token);
            }
        }
    }
    flush(&mut run, &mut out);
    out
}

fn add(value: &Value, steps: &mut Vec<DecodeStep>) -> Result<(), String> {
    let text = |key: &str| value[key].as_str().ok_or_else(|| format!("`{key}` is no text"));
    let count = |key: &str| value[key].as_u64().map_or(0, |n| n.min(1 << 20) as usize);
    steps.push(match kind(value)? {
        "Sequence" => return list(value, "decoders")?.iter().try_for_each(|v| add(v, steps)),
        "ByteLevel" => DecodeStep::Bytes,
        "Replace" => {
            DecodeStep::Replace(Pattern::read(&value["pattern"])?, text("content")?.to_owned())
        }
        "ByteFallback" => DecodeStep::ByteFallback,
        "Fuse" => DecodeStep::Fuse,
        "Strip" => {
            let c = text("content")?.chars().next().ok_or("`content` is empty")?;
            DecodeStep::Strip(c, ["start", "stop"].map(count))
        }
        "Metaspace" => DecodeStep::Metaspace {
            sign: value["replacement"].as_str().unwrap_or("\u{2581}").to_owned(),
            prepend: value["prepend_scheme"].as_str() != Some("never")
                && value["add_prefix_space"].as_bool() != Some(false),
        },
        other => {
            let known = "Sequence, ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace";
            return Err(unknown(other, known));
        }
    });
    Ok(())
}
