//! A language model with its tokenizer.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use chainrule_core::error::{Error, Result};
use chainrule_formats::Weights;
use chainrule_nn::io;
use serde_json::Value;

use crate::config::Json;
use crate::decoder::Decoder;
use crate::folder::{self, Opening};
use crate::generate::{Generation, generate};
use crate::gpt2::{Gpt2, Gpt2Config};
use crate::llama::{Llama, LlamaConfig};
use crate::tokenizer::Tokenizer;
use crate::{gpt2, llama};

/// Files of the tokenizer and of generation, copied unchanged to a saved model.
const BESIDE: [&str; 9] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "generation_config.json",
    "tokenizer.model",
    "chat_template.jinja",
];

/// A language model and its tokenizer, from a folder in the layout of `transformers`.
pub struct TextModel {
    model: Box<dyn Decoder>,
    tokenizer: Tokenizer,
    config: Json,
    folder: PathBuf,
    /// End-of-text tokens.
    ends: Vec<i64>,
    /// The begin-of-text token.
    begin: Option<i64>,
}

impl TextModel {
    /// Loads a folder with `config.json`, a tokenizer and weights. Errors name the file, and what
    /// is missing, unknown or of another shape.
    pub fn open(folder: impl AsRef<Path>) -> Result<TextModel> {
        TextModel::open_by(folder.as_ref(), |path| Weights::open(path))
    }

    /// As [`TextModel::open`], with weights in f32 mapped by [`Weights::open_mapped`], which
    /// describes its demands on the files.
    pub fn open_mapped(folder: impl AsRef<Path>) -> Result<TextModel> {
        TextModel::open_by(folder.as_ref(), |path| Weights::open_mapped(path))
    }

    fn open_by(folder: &Path, open: Opening) -> Result<TextModel> {
        if !folder.is_dir() {
            let why = "is no folder; give one with config.json, a tokenizer and weights".into();
            return Err(Error::File { path: folder.to_owned(), why });
        }
        let config = Json::read(&folder.join("config.json"))?;
        let in_folder = |e: Error| match e {
            Error::Argument { why, .. } => Error::File { path: folder.to_owned(), why },
            other => other,
        };
        let tokenizer = Tokenizer::open(folder)?;
        let model: Box<dyn Decoder> = match config.text("model_type")? {
            Some("gpt2") => {
                let sizes = Gpt2Config::read(&config)?;
                let state = folder::load(folder, &gpt2::names()?, open)?;
                Box::new(Gpt2::new(sizes, state).map_err(in_folder)?)
            }
            Some(kind @ ("llama" | "mistral" | "qwen2")) => {
                let sizes = LlamaConfig::read(&config, kind)?;
                let state = folder::load(folder, &llama::names()?, open)?;
                Box::new(Llama::new(sizes, state).map_err(in_folder)?)
            }
            other => {
                return Err(config.error(format!(
                    "`model_type` is {}; there are gpt2, llama, mistral and qwen2",
                    other.map_or("absent".to_owned(), |kind| format!("`{kind}`"))
                )));
            }
        };
        let generation = folder.join("generation_config.json");
        let generation = generation.exists().then(|| Json::read(&generation)).transpose()?;
        let tokens = |key: &str| match &generation {
            Some(own) if own.get(key).is_some() => own.tokens(key),
            _ => config.tokens(key),
        };
        let (ends, begin) = (tokens("eos_token_id")?, tokens("bos_token_id")?.first().copied());
        Ok(TextModel { model, tokenizer, config, folder: folder.to_owned(), ends, begin })
    }

    /// The network.
    pub fn model(&self) -> &dyn Decoder {
        &*self.model
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The kind in the configuration: `gpt2`, `llama`, `mistral`, `qwen2`.
    pub fn kind(&self) -> &str {
        self.config.get("model_type").and_then(Value::as_str).unwrap_or_default()
    }

    /// Encodes a prompt, with the tokens that the tokenizer puts before a text. An empty prompt
    /// becomes the begin-of-text token, if the model has one.
    pub fn prompt(&self, text: &str) -> Result<Vec<i64>> {
        let mut tokens = self.tokenizer.encode(text, true)?;
        if tokens.is_empty() {
            tokens.extend(self.begin);
        }
        Ok(tokens)
    }

    /// The text that follows `prompt`.
    ///
    /// Errors if prompt and new tokens exceed the context length, and for options out of range.
    pub fn generate(&self, prompt: &str, options: &Generation) -> Result<String> {
        self.generate_each(prompt, options, |_| Ok(()))
    }

    /// As [`TextModel::generate`]; `each` receives every piece of the text as soon as it is
    /// complete.
    pub fn generate_each(
        &self,
        prompt: &str,
        options: &Generation,
        mut each: impl FnMut(&str) -> Result<()>,
    ) -> Result<String> {
        let before = self.prompt(prompt)?;
        let start = self.tokenizer.decode(&before)?;
        let mut all = before.clone();
        let mut told = start.len();
        // Decoded from the first token on, since a decoder may join and strip.
        let mut tell = |all: &[i64], is_last: bool| -> Result<String> {
            let text = self.tokenizer.decode(all)?;
            let end = match is_last {
                true => text.len(),
                // A character with missing bytes.
                false => text.trim_end_matches('\u{fffd}').len(),
            };
            if end > told && text.is_char_boundary(told) {
                each(&text[told..end])?;
                told = end;
            }
            Ok(text)
        };
        self.generate_tokens(&before, options, |token| {
            all.push(token);
            tell(&all, false).map(|_| ())
        })?;
        let text = tell(&all, true)?;
        Ok(text.get(start.len()..).unwrap_or_default().to_owned())
    }

    /// The tokens that follow `prompt`; `each` receives every one.
    pub fn generate_tokens(
        &self,
        prompt: &[i64],
        options: &Generation,
        each: impl FnMut(i64) -> Result<()>,
    ) -> Result<Vec<i64>> {
        let ends = if options.ends { &self.ends[..] } else { &[] };
        generate(&*self.model, prompt, options, ends, each)
    }

    /// Saves a folder in the same layout, with the current weights in f32: configuration,
    /// tokenizer, `model.safetensors`. Existing files of these names are replaced atomically.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        let error = |path: &Path, e: &std::io::Error| Error::File {
            path: path.to_owned(),
            why: e.to_string(),
        };
        fs::create_dir_all(folder).map_err(|e| error(folder, &e))?;
        for name in BESIDE {
            let (from, to) = (self.folder.join(name), folder.join(name));
            if from.exists() {
                let bytes = fs::read(&from).map_err(|e| error(&from, &e))?;
                io::write_atomic(&to, |out| out.write_all(&bytes)).map_err(|e| error(&to, &e))?;
            }
        }
        let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
        io::save(folder.join("model.safetensors"), &self.model.published()?, &metadata)?;
        let mut config = self.config.map().clone();
        config.remove("quantization_config");
        for key in ["dtype", "torch_dtype"] {
            if config.contains_key(key) {
                config.insert(key.to_owned(), Value::from("float32"));
            }
        }
        let path = folder.join("config.json");
        let text = serde_json::to_string_pretty(&Value::Object(config))
            .map_err(|e| self.config.error(e.to_string()))?;
        io::write_atomic(&path, |out| writeln!(out, "{text}")).map_err(|e| error(&path, &e))
    }
}
