//! Mutated texts of tokenizers and configurations: no panic, and errors of one line.
//!
//! `CHAINRULE_FUZZ=10000000` sets how many inputs each reader gets.

use std::path::Path;

use chainrule_core::Generator;
use chainrule_core::error::Result;

use super::Tokenizer;
use crate::config::Json;
use crate::gpt2::Gpt2Config;
use crate::llama::LlamaConfig;

/// Characters with a meaning in these texts.
const SIGNS: &[u8] = b"0123456789-.{}[]\",:*(\\eE";

fn inputs() -> u64 {
    let text = std::env::var("CHAINRULE_FUZZ").unwrap_or_default();
    text.parse().unwrap_or(500)
}

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Feeds mutated copies of a text, which stay UTF-8, to the reader.
fn fuzz(name: &str, good: &str, read: impl Fn(&str) -> Result<()>) {
    read(good).unwrap();
    let g = &mut Generator::manual_seed(3);
    let mut errors = 0;
    for _ in 0..inputs() {
        let mut bytes = good.as_bytes().to_vec();
        let draw = g.random_u64();
        for round in 0..1 + draw % 3 {
            if bytes.is_empty() {
                break;
            }
            let draw = g.random_u64();
            let at = (draw >> 16) as usize % bytes.len();
            match (draw & 0xff, draw >> 8 & 7) {
                (byte, 0..4) => bytes[at] = SIGNS[byte as usize % SIGNS.len()],
                (_, 4) => drop(bytes.remove(at)),
                (count, 5) => {
                    let piece = bytes[at..bytes.len().min(at + count as usize % 16)].to_vec();
                    bytes.splice(at..at, piece);
                }
                (_, 6) if round == 0 => bytes.truncate(at.max(1)),
                (byte, _) => bytes[at] ^= 1 << (byte & 7),
            }
        }
        let damaged = String::from_utf8_lossy(&bytes);
        if let Err(e) = read(&damaged) {
            errors += 1;
            let text = e.to_string();
            assert!(!text.contains('\n') && text.len() < 4_000, "{name}: {text}");
        }
    }
    println!("{name}: {} inputs, {errors} refused", inputs());
    assert!(errors > inputs() / 20, "{name}: changes have no effect");
}

/// A text through the tokenizer and back.
fn use_of(tokenizer: &Tokenizer) -> Result<()> {
    let tokens = tokenizer.encode("The sea 12 na\u{ef}ve", true)?;
    tokenizer.decode(&tokens).map(drop)
}

fn tokenizer(name: &str) {
    let path = Path::new("tokenizer.json");
    fuzz(name, &text(&format!("{name}/tokenizer.json")), |text| {
        use_of(&Tokenizer::whole(&Json::parse(path, text)?)?)
    });
}

#[test]
fn tokenizer_of_llama2() {
    tokenizer("llama2");
}

#[test]
fn tokenizer_of_llama3() {
    tokenizer("llama3");
}

/// A vocabulary and its merges.
fn read(words: &str, merges: &str) -> Result<()> {
    let words = Json::parse(Path::new("vocab.json"), words)?;
    use_of(&Tokenizer::of_texts(&words, (Path::new("merges.txt"), merges), Vec::new())?)
}

#[test]
fn vocabulary() {
    let merges = text("gpt2/merges.txt");
    fuzz("vocab.json", &text("gpt2/vocab.json"), |text| read(text, &merges));
}

#[test]
fn merges() {
    let words = text("gpt2/vocab.json");
    fuzz("merges.txt", &text("gpt2/merges.txt"), |text| read(&words, text));
}

#[test]
fn configurations() {
    let path = Path::new("config.json");
    fuzz("gpt2", &text("gpt2/config.json"), |text| {
        Gpt2Config::read(&Json::parse(path, text)?).map(drop)
    });
    for name in ["llama2", "llama3"] {
        fuzz(name, &text(&format!("{name}/config.json")), |text| {
            LlamaConfig::read(&Json::parse(path, text)?, "llama").map(drop)
        });
    }
}
