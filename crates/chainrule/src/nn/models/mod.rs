//! Models ready to train.

mod names_mlp;

pub use names_mlp::{NamesMlp, NamesMlpConfig};
