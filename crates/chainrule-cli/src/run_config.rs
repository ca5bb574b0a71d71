//! `config.toml`: the settings of a run, from which its model can be built again.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use chainrule::data::text::Vocabulary;
use chainrule::nn::models::NamesMlpConfig;
use serde::{Deserialize, Serialize};

use crate::args::{self, TrainNames};

/// The file's name in the folder of a run.
pub const FILE: &str = "config.toml";

/// The largest file that is read; ours have a few hundred bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The way this file is laid out.
const FORMAT: u32 = 1;

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunConfig {
    pub model: ModelConfig,
    pub training: TrainingConfig,
    pub data: DataConfig,
    pub versions: Versions,
}

/// What model it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    pub kind: String,
    pub vocabulary: String,
    pub context: usize,
    pub embedding: usize,
    pub hidden: usize,
    pub parameters: usize,
}

/// How it was trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingConfig {
    pub steps: u64,
    pub steps_taken: u64,
    pub batch: usize,
    pub lr: f64,
    pub lr_decay_at: u64,
    pub seed: u64,
    pub fused: bool,
}

/// What it was trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataConfig {
    pub label: String,
    /// The file's full path; none for the built-in list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub names: usize,
    pub training_examples: usize,
}

/// What wrote the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    pub format: u32,
    pub chainrule: String,
}

impl Versions {
    /// Those of this program.
    pub fn current() -> Versions {
        Versions { format: FORMAT, chainrule: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// The symbols of the names models, in the order of their numbers.
fn vocabulary() -> String {
    (0..Vocabulary::SIZE as i64).filter_map(|n| Vocabulary.decode(n)).collect()
}

impl ModelConfig {
    /// The names model that these arguments ask for.
    pub fn names(args: &TrainNames, parameters: usize) -> ModelConfig {
        ModelConfig {
            kind: "names".to_owned(),
            vocabulary: vocabulary(),
            context: args.context,
            embedding: args.embedding,
            hidden: args.hidden,
            parameters,
        }
    }

    /// The sizes, as the model takes them.
    pub fn sizes(&self) -> NamesMlpConfig {
        let ModelConfig { context, embedding, hidden, .. } = *self;
        NamesMlpConfig { symbols: Vocabulary::SIZE, context, embedding, hidden }
    }
}

impl RunConfig {
    /// The text of the file.
    pub fn to_text(&self) -> Result<String> {
        let head =
            "# The settings of a training run. `chainrule sample` and `eval` read this file.\n\n";
        Ok(format!("{head}{}", toml::to_string(self)?))
    }

    /// Reads the file of the run in `folder` and checks that its model can be built.
    pub fn read(folder: &Path) -> Result<RunConfig> {
        if !folder.is_dir() {
            let what = if folder.exists() { "is not a folder" } else { "there is no such folder" };
            bail!("{}: {what}; give the folder of a training run", folder.display());
        }
        let path = folder.join(FILE);
        let mut text = String::new();
        let read =
            File::open(&path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text));
        match read {
            Ok(n) if n as u64 > MOST_BYTES => bail!("{}: too large for settings", path.display()),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                bail!("{}: no such file; give the folder of a training run", path.display())
            }
            Err(e) => bail!("{}: cannot be read ({e}); train again or restore it", path.display()),
        }
        Self::parse(&text)
            .map_err(|why| anyhow!("{}: {why}; train again or restore the file", path.display()))
    }

    fn parse(text: &str) -> Result<RunConfig, String> {
        let config: RunConfig = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |at| text[..at.start].matches('\n').count() + 1);
            format!("line {line}: {}", e.message().replace('\n', " "))
        })?;
        if config.versions.format != FORMAT {
            return Err(format!("written in format {}, not {FORMAT}", config.versions.format));
        }
        let model = &config.model;
        if model.kind != "names" || model.vocabulary != vocabulary() {
            return Err("not the settings of a names model over . and a-z".to_owned());
        }
        args::check_sizes(model.context, model.embedding, model.hidden)?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> RunConfig {
        RunConfig {
            model: ModelConfig {
                kind: "names".into(),
                vocabulary: vocabulary(),
                context: 3,
                embedding: 10,
                hidden: 200,
                parameters: 12_297,
            },
            training: TrainingConfig {
                steps: 20_000,
                steps_taken: 7,
                batch: 32,
                lr: 0.1,
                lr_decay_at: 10_000,
                seed: i64::MAX as u64,
                fused: false,
            },
            data: DataConfig {
                label: "a \"strange\"\nname".into(),
                file: None,
                names: 5,
                training_examples: 33,
            },
            versions: Versions::current(),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = config().to_text().unwrap();
        assert_eq!(RunConfig::parse(&text), Ok(config()));
        assert!(text.contains("vocabulary = \".abcdefghijklmnopqrstuvwxyz\""), "{text}");
    }

    #[test]
    fn broken_settings_are_told_in_one_line() {
        let good = config().to_text().unwrap();
        for (from, to, part) in [
            ("hidden = 200", "hidden = 0", "the width of the hidden layer"),
            ("hidden = 200", "hidden = 9000000000", "the width of the hidden layer"),
            ("hidden = 200", "hidden = -1", "line "),
            ("hidden = 200", "hidden = ", "line "),
            ("hidden = 200", "", "hidden"),
            ("context = 3", "context = 65", "the context"),
            ("format = 1", "format = 2", "format 2"),
            ("kind = \"names\"", "kind = \"gpt\"", "not the settings"),
            (".abc", ".bac", "not the settings"),
        ] {
            assert!(good.contains(from), "{from}");
            let why = RunConfig::parse(&good.replace(from, to)).unwrap_err();
            assert!(why.contains(part) && !why.contains('\n'), "{why}");
        }
        for text in ["", "\0", "[model", "x = 1"] {
            let why = RunConfig::parse(text).unwrap_err();
            assert!(!why.contains('\n'), "{why}");
        }
    }
}
