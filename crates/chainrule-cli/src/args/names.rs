//! `chainrule train names`: the main model, and which words belong to the others.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};

use super::train::{Common, FamilyKind};
use super::{CONTEXT, EMBEDDING, HIDDEN, MAX_NUMBERS, MAX_STEPS, SYMBOLS, size, whole};

/// `chainrule train names`
#[derive(Debug, Clone, PartialEq, Args)]
#[command(
    after_help = "Defaults: 20,000 steps, batch 32, sgd with rate 0.1 and a tenth of it in the second half,
seed 2147483647; measured at the end.

These are the options of the main model, bn-mlp. The others have options of their own:
  chainrule train names --model gru --help

Examples:
  chainrule train names
  chainrule train names --data names.txt --steps 200000
  chainrule train names --resume runs/names-0001 --steps 40000
  chainrule train names --model transformer"
)]
pub struct TrainNames {
    /// A text file with one name a line, letters a-z only [default: the built-in list]
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub data: Option<PathBuf>,

    /// The model
    #[arg(long, value_name = "MODEL", default_value = MAIN, value_parser = models())]
    #[arg(conflicts_with = "resume")]
    pub model: String,

    /// Width of the hidden layer, in units
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = hidden)]
    #[arg(allow_negative_numbers = true, conflicts_with = "resume")]
    pub hidden: usize,

    /// Number of letters that the model sees before the one that it guesses
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = context)]
    #[arg(allow_negative_numbers = true, conflicts_with = "resume")]
    pub context: usize,

    /// Size of a letter's embedding
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = embedding)]
    #[arg(allow_negative_numbers = true, conflicts_with = "resume")]
    pub embedding: usize,

    /// When the learning rate falls to a tenth, in steps [default: half of the steps]
    #[arg(long, value_name = "STEP", value_parser = decay_step)]
    #[arg(allow_negative_numbers = true, conflicts_with_all = ["resume", "schedule"])]
    pub lr_decay_at: Option<u64>,

    /// Use fused operations (faster; the last digits may differ)
    #[arg(long, conflicts_with = "resume")]
    pub fused: bool,

    #[command(flatten)]
    pub common: Common,
}

/// The main model.
pub const MAIN: &str = "bn-mlp";

/// The word by which the parser knows the command of the other models; nobody types it, and no word
/// is so like it that a refusal proposes it.
pub(super) const FAMILY_WORD: &str = "+";

/// The examples of a step if nothing is said.
pub const BATCH: usize = 32;

impl TrainNames {
    /// Checks what no single option can: whether batch norm gets a batch, and whether model and
    /// batch fit into memory.
    pub(super) fn check(&self) -> Result<(), String> {
        check_sizes(self.context, self.embedding, self.hidden)?;
        let batch = self.common.batch.unwrap_or(BATCH);
        check_batch(batch, self.context, self.embedding, self.hidden)
    }
}

/// Checks the batch of a names model whose sizes are checked.
pub fn check_batch(
    batch: usize,
    context: usize,
    embedding: usize,
    hidden: usize,
) -> Result<(), String> {
    if batch < 2 {
        return Err(format!(
            "--batch {batch}: batch normalisation needs at least 2 examples a step"
        ));
    }
    let inputs = (context * embedding) as u64;
    let widest = (batch as u64).saturating_mul(inputs.max(hidden as u64).max(SYMBOLS));
    if widest > MAX_NUMBERS {
        return Err(format!(
            "--batch {batch} makes a layer of {widest} values, more than {MAX_NUMBERS}; \
             make the batch or the model smaller"
        ));
    }
    Ok(())
}

/// Checks the sizes of a names model: each by itself, and that the whole fits into memory.
pub fn check_sizes(context: usize, embedding: usize, hidden: usize) -> Result<(), String> {
    for (number, what, most) in [
        (context, CONTEXT.0, CONTEXT.1),
        (embedding, EMBEDDING.0, EMBEDDING.1),
        (hidden, HIDDEN.0, HIDDEN.1),
    ] {
        size(&number.to_string(), what, 1, most)?;
    }
    let [wide, high, units] = [context, embedding, hidden].map(|n| n as u64);
    let weights = SYMBOLS * high + wide * high * units + units * SYMBOLS;
    if weights > MAX_NUMBERS {
        return Err(format!(
            "--hidden {hidden} with --context {context} and --embedding {embedding} makes \
             {weights} weights, more than {MAX_NUMBERS}; make one of them smaller"
        ));
    }
    Ok(())
}

/// `train names` with another `--model` than the main one, or with the `--resume` of such a run,
/// has options of its own: those of a hidden command.
pub(super) fn by_model(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.len() < 3 || words[1] != "train" || words[2] != "names" {
        return words;
    }
    let is_other = match option(&words, "--model") {
        // A model that there is not is refused with the list of all.
        Some(name) => name.to_str().is_some_and(|name| FamilyKind::from_str(name, false).is_ok()),
        None => option(&words, "--resume").is_some_and(|folder| {
            let kind = crate::train::kind_of(Path::new(&folder));
            kind.is_ok_and(|kind| kind == crate::commands::train::names::KIND)
        }),
    };
    if is_other {
        words[2] = FAMILY_WORD.into();
    }
    words
}

/// Value of an option, as `--name value` or `--name=value`.
fn option(words: &[OsString], name: &str) -> Option<OsString> {
    words.iter().enumerate().find_map(|(at, word)| {
        if word == name {
            return Some(words.get(at + 1).cloned().unwrap_or_default());
        }
        Some(word.to_str()?.strip_prefix(name)?.strip_prefix('=')?.into())
    })
}

/// The words of `--model`: the main model and the others.
fn models() -> PossibleValuesParser {
    let others = FamilyKind::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let main = PossibleValue::new(MAIN).help("Letters before it, through a hidden layer");
    std::iter::once(main).chain(others).collect::<Vec<_>>().into()
}

fn hidden(text: &str) -> Result<usize, String> {
    size(text, HIDDEN.0, 1, HIDDEN.1)
}

fn context(text: &str) -> Result<usize, String> {
    size(text, CONTEXT.0, 1, CONTEXT.1)
}

fn embedding(text: &str) -> Result<usize, String> {
    size(text, EMBEDDING.0, 1, EMBEDDING.1)
}

fn decay_step(text: &str) -> Result<u64, String> {
    whole(text, "the step at which the learning rate falls", 0, MAX_STEPS)
}
