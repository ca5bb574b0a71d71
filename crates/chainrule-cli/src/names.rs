//! Common parts of the commands about the main model of names: its settings, the data, the loss
//! over a set, loading, making up names.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use chainrule::data::text::{NameDataset, NameList, Vocabulary};
use chainrule::nn::{Module, StateDict};
use chainrule::rng::PythonRandom;
use chainrule::{Generator, Tensor, io, no_grad};
use chainrule_lab::models::{NamesMlp, NamesMlpConfig};
use serde::{Deserialize, Serialize};

use crate::args::TrainNames;
use crate::args::names::{check_batch, check_sizes};
use crate::train::{CONFIG_FILE, Checked, Config, DataSums, absolute};

/// The file of the weights in the folder of a run.
pub const MODEL_FILE: &str = "model.safetensors";

/// The seed of the shuffle before the list is split, in Python's generator.
const SPLIT_SEED: i64 = 42;

/// The most numbers that a layer may have when a whole set goes through the model; the set is taken
/// in parts. The memory therefore does not depend on the length of the list.
const PART_NUMBERS: usize = 1 << 22;

/// The longest name that is made up: a model that learned nothing might never end one.
const LONGEST_NAME: usize = 200;

/// The kind of the main model, as it stands in the settings of a run.
pub const KIND: &str = "names";

/// The main model and what it is trained on, as they stand in the settings of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MainModelConfig {
    pub vocabulary: String,
    pub context: usize,
    pub embedding: usize,
    pub hidden: usize,
    pub fused: bool,
    /// The list's full path; none for the built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    pub list: String,
    pub names: usize,
    pub training_examples: usize,
}

/// The symbols of the names models, in the order of their numbers.
fn vocabulary() -> String {
    (0..Vocabulary::SIZE as i64).filter_map(|n| Vocabulary.decode(n)).collect()
}

impl MainModelConfig {
    /// The model that these arguments ask for; of its data only the file is known yet.
    pub fn of(args: &TrainNames) -> MainModelConfig {
        MainModelConfig {
            vocabulary: vocabulary(),
            context: args.context,
            embedding: args.embedding,
            hidden: args.hidden,
            fused: args.fused,
            data: args.data.as_deref().map(absolute),
            list: String::new(),
            names: 0,
            training_examples: 0,
        }
    }

    /// The file of the names, if it is not the built-in list.
    pub fn file(&self) -> Option<&Path> {
        self.data.as_deref().map(Path::new)
    }

    /// Notes what the data turned out to be.
    pub fn fill(&mut self, list: &NameList, data: &NamesData) {
        self.list = list.label().to_owned();
        (self.names, self.training_examples) = (list.len(), data.train.count);
    }

    /// With random weights.
    pub fn build(&self, generator: &mut Generator) -> Result<NamesMlp> {
        let MainModelConfig { context, embedding, hidden, .. } = *self;
        let sizes = NamesMlpConfig { symbols: Vocabulary::SIZE, context, embedding, hidden };
        let model = NamesMlp::try_new(sizes, generator)?;
        Ok(if self.fused { model } else { model.with_primitive_batch_norm() })
    }
}

impl Checked for MainModelConfig {
    fn check(&self, batch: usize) -> Result<(), String> {
        if self.vocabulary != vocabulary() {
            return Err("not the settings of a names model over . and a-z".into());
        }
        check_sizes(self.context, self.embedding, self.hidden)?;
        check_batch(batch, self.context, self.embedding, self.hidden)
    }
}

/// Reads a list of names, the built-in one without a file.
pub fn read_list(file: Option<&Path>) -> Result<NameList> {
    Ok(match file {
        Some(path) => NameList::read(path)?,
        None => NameList::embedded(),
    })
}

/// The examples of the three parts of a list.
pub struct NamesData {
    pub train: NameDataset,
    pub validation: NameDataset,
    pub test: NameDataset,
}

impl NamesData {
    /// The checksums of the list and of the three parts.
    pub fn sums(&self, list: &NameList) -> DataSums {
        let parts = [
            ("training examples", &self.train),
            ("validation examples", &self.validation),
            ("test examples", &self.test),
        ];
        parts.into_iter().fold(DataSums::names(list), |sums, (name, part)| {
            sums.wholes(name, &[&part.contexts[..], &part.targets].concat())
        })
    }

    /// Shuffles the list as the lectures do, splits it 80/10/10 and makes the examples.
    pub fn split(list: &NameList, context: usize) -> Result<NamesData> {
        let split = list.split(|names| PythonRandom::seed(SPLIT_SEED).shuffle(names))?;
        Ok(NamesData {
            train: NameDataset::build(&split.train, context)?,
            validation: NameDataset::build(&split.validation, context)?,
            test: NameDataset::build(&split.test, context)?,
        })
    }
}

/// Number of rows that go through the model at once.
fn part_rows(model: &NamesMlp) -> usize {
    let sizes = model.config();
    let widest = (sizes.context * sizes.embedding).max(sizes.hidden).max(sizes.symbols);
    (PART_NUMBERS / widest).max(1)
}

/// The mean cross-entropy of the model over all examples, in evaluation mode.
pub fn mean_loss(model: &NamesMlp, pairs: &NameDataset) -> chainrule::Result<f64> {
    model.eval();
    let sums = (0..parts(model, pairs)).map(|part| part_loss(model, pairs, part));
    let sum = sums.sum::<chainrule::Result<f64>>()?;
    Ok(sum / pairs.count as f64)
}

/// The number of parts in which examples go through the model.
pub fn parts(model: &NamesMlp, pairs: &NameDataset) -> usize {
    pairs.count.div_ceil(part_rows(model))
}

/// The sum of the losses over a part of the examples.
pub fn part_loss(model: &NamesMlp, pairs: &NameDataset, part: usize) -> chainrule::Result<f64> {
    let (rows, context) = (part_rows(model), model.config().context);
    let range = part * rows..pairs.count.min((part + 1) * rows);
    let [x, y] = [
        Tensor::try_from_slice(
            &pairs.contexts[range.start * context..range.end * context],
            [range.len(), context],
        )?,
        Tensor::try_from_slice(&pairs.targets[range.clone()], [range.len()])?,
    ];
    no_grad(|| Ok(model.try_forward(&x)?.try_cross_entropy(&y)?.try_item()? * range.len() as f64))
}

/// Sets mean and variance of batch norm to those over all examples.
pub fn calibrate(model: &NamesMlp, pairs: &NameDataset) -> chainrule::Result<()> {
    let shape = [pairs.count, model.config().context];
    let contexts = Tensor::try_from_slice(&pairs.contexts, shape)?;
    model.calibrate_in_parts(&contexts, part_rows(model))
}

/// The model of a finished run, in evaluation mode.
pub fn load(folder: &Path) -> Result<(NamesMlp, MainModelConfig)> {
    let settings: MainModelConfig = Config::read(folder, KIND)?.model(folder)?;
    let help = "train again or restore the file";
    // The weights are drawn and then replaced; the draw costs little beside reading the file.
    let model = settings.build(&mut Generator::manual_seed(0));
    let model =
        model.map_err(|e| anyhow!("{}: {e}; {help}", folder.join(CONFIG_FILE).display()))?;
    let path = folder.join(MODEL_FILE);
    let state = io::load(&path).map_err(|e| anyhow!("{e}"))?;
    check_state(&state, &model).map_err(|why| anyhow!("{}: {why}; {help}", path.display()))?;
    model.eval();
    Ok((model, settings))
}

fn check_state(state: &StateDict, model: &NamesMlp) -> Result<(), String> {
    model.load_state_dict(state).map_err(|e| {
        let text = e.to_string();
        text.strip_prefix("load_state_dict: ").unwrap_or(&text).to_owned()
    })?;
    if let Some((name, _)) = state.iter().find(|(_, tensor)| !tensor.is_finite()) {
        return Err(format!("`{name}` holds values that are not finite"));
    }
    if state["bnvar"].to_f64_vec().iter().any(|&x| x < 0.0) {
        return Err("`bnvar` holds variances below 0".to_owned());
    }
    Ok(())
}

/// Makes up `count` names, each given to `each` as soon as it is there.
pub fn sample(
    model: &NamesMlp,
    count: usize,
    seed: u64,
    mut each: impl FnMut(String) -> Result<()>,
) -> Result<()> {
    model.eval();
    let generator = &mut Generator::manual_seed(seed);
    for _ in 0..count {
        let symbols = no_grad(|| one_name(model, generator))?;
        let Some(name) = Vocabulary.spell(&symbols) else {
            bail!("the model chose a symbol that is not in its vocabulary");
        };
        each(name)?;
    }
    Ok(())
}

/// The numbers of one made-up name, drawn symbol by symbol as the model expects them.
fn one_name(model: &NamesMlp, generator: &mut Generator) -> Result<Vec<i64>> {
    let context = model.config().context;
    let mut symbols = vec![Vocabulary::END; context];
    while symbols.len() < context + LONGEST_NAME {
        let last = &symbols[symbols.len() - context..];
        let logits = model.try_forward(&Tensor::try_from_slice(last, [1, context])?)?;
        let chances = logits.try_softmax(1)?.try_to_vec::<f32>()?;
        let next = generator.multinomial(&chances, 1, true)?[0];
        if next == Vocabulary::END {
            break;
        }
        symbols.push(next);
    }
    symbols.drain(..context);
    Ok(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> NamesMlp {
        NamesMlp::try_new(NamesMlpConfig::default(), &mut Generator::manual_seed(3)).unwrap()
    }

    fn pairs() -> NameDataset {
        NameDataset::build(&NameList::embedded().names()[..50], 3).unwrap()
    }

    /// Sums in parts are those of the whole, but for rounding.
    #[test]
    fn calibration_in_parts_is_that_of_the_whole() {
        let (model, pairs) = (model(), pairs());
        let contexts = Tensor::from_slice(&pairs.contexts, [pairs.count, 3]);
        model.calibrate(&contexts).unwrap();
        let whole = [model.bnmean.to_f64_vec(), model.bnvar.to_f64_vec()];
        for rows in [1, 7, pairs.count - 1, pairs.count, 10_000] {
            model.calibrate_in_parts(&contexts, rows).unwrap();
            let parts = [model.bnmean.to_f64_vec(), model.bnvar.to_f64_vec()];
            for (a, b) in whole.iter().flatten().zip(parts.iter().flatten()) {
                assert!((a - b).abs() < 1e-5 * a.abs().max(1.0), "{rows}: {a} {b}");
            }
        }
        assert!(model.calibrate_in_parts(&contexts, 0).is_err());
        let one = Tensor::from_slice(&pairs.contexts[..3], [1, 3]);
        assert!(model.calibrate_in_parts(&one, 5).is_err());
    }

    /// A model that gives every symbol the same chance has a loss of ln 27, whatever the examples.
    #[test]
    fn the_loss_of_a_model_that_knows_nothing() {
        let (model, pairs) = (model(), pairs());
        model.w2.set(&Tensor::zeros([200, 27]));
        model.b2.set(&Tensor::zeros([27]));
        let loss = mean_loss(&model, &pairs).unwrap();
        assert!((loss - 27f64.ln()).abs() < 1e-6, "{loss}");
    }

    /// A model that never ends a name is stopped.
    #[test]
    fn endless_names_are_cut() {
        let model = model();
        model.w2.set(&Tensor::zeros([200, 27]));
        let mut bias = [0.0f32; 27];
        bias[0] = -100.0;
        model.b2.set(&Tensor::from(bias));
        let mut names = Vec::new();
        sample(&model, 2, 1, |name| {
            names.push(name.len());
            Ok(())
        })
        .unwrap();
        assert_eq!(names, [LONGEST_NAME; 2]);
    }
}
