//! Ready-made models.

mod digits_cnn;
mod digits_mlp;
mod gpt;
mod names_family;
mod names_mlp;

pub use digits_cnn::DigitsCnn;
pub use digits_mlp::DigitsMlp;
pub use gpt::{Gpt, GptConfig};
pub use names_family::NamesFamily;
pub use names_mlp::{NamesMlp, NamesMlpConfig};
