//! Published language models, loaded from their files: GPT-2, and decoders of the Llama family.
//!
//! A folder holds `config.json`, the tokenizer (`tokenizer.json`, or `vocab.json` with
//! `merges.txt`) and the weights (`model.safetensors`, `pytorch_model.bin`, or the index of their
//! shards), as `transformers` writes them. [`TextModel::open`] reads it; the model generates text,
//! can be trained on with the library's optimizers, and [`TextModel::save`] writes a folder of the
//! same form. Computation is in f32, whatever the dtype in the files.
//!
//! ```no_run
//! use chainrule::models::{Generation, TextModel};
//! let model = TextModel::open("gpt2")?;
//! let options = Generation { length: 40, temperature: 0.8, ..Generation::default() };
//! println!("{}", model.generate("The sea", &options)?);
//! # Ok::<(), chainrule::Error>(())
//! ```

#![deny(missing_docs)]
#![forbid(unsafe_code)]

// The derive macro names the library by its path from outside.
extern crate self as chainrule;

use chainrule_nn::nn;

mod attend;
mod cache;
mod config;
mod decoder;
mod folder;
mod generate;
mod gpt2;
mod llama;
mod parts;
mod rope;
mod text_model;
mod tokenizer;
mod tune;

pub use cache::KvCache;
pub use decoder::Decoder;
pub use generate::Generation;
pub use gpt2::{Gpt2, Gpt2Config};
pub use llama::{Llama, LlamaConfig};
pub use rope::{RopeScaling, Rotary};
pub use text_model::TextModel;
pub use tokenizer::Tokenizer;
pub use tune::{FineTuning, TuningStep};
