//! The format of a training program: data, layers, loss, optimizer, and how long.

mod edit;
mod layer;
mod read;

pub use edit::{apply, edit, remove};
pub use layer::{Activation, Init, Layer, Named};

use chainrule_nn::optim::keras::KerasOptions;
use serde_json::Value;

use crate::error::{Result, wrong};
use read::Fields;

/// Limits on sizes; a description that exceeds them is rejected as a mistake.
const MOST_LAYERS: usize = 500;
const MOST_EPOCHS: usize = 10_000_000;
/// Numbers in all parameters.
const MOST_WEIGHTS: usize = 50_000_000;

/// The kind of answer that a program learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// One of two classes.
    Binary,
    /// One of several classes.
    Multiclass,
    /// Several answers of yes or no.
    Multilabel,
    /// Numbers.
    Regression,
    /// The input itself.
    Autoencoder,
}

impl Task {
    /// Whether each row has one class.
    pub fn is_classes(self) -> bool {
        matches!(self, Task::Binary | Task::Multiclass)
    }

    /// Whether the targets are numbers.
    pub fn is_numbers(self) -> bool {
        matches!(self, Task::Regression | Task::Autoencoder)
    }
}

/// How targets are coded before use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// As they are.
    Given,
    /// The number of the class.
    Class,
    /// 1 for what is above 0.
    ZeroOne,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $what:literal { $($(#[$each:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$each])* $variant,)* }

        impl Named for $name {
            const WHAT: &'static str = $what;
            const ALL: &'static [(&'static str, $name)] = &[$(($word, $name::$variant),)*];
        }
    };
}
pub(crate) use words;

words! {
    /// A step of the preparation of data, over the whole table.
    Step: "preprocessing step" {
        /// Mean 0 and deviation 1, by column; over all numbers for images and wide tables.
        StandardizeX = "standardize_x",
        /// The same for targets, by column.
        StandardizeY = "standardize_y",
        /// Columns to 0..1.
        MinmaxX = "minmax_x",
        /// Columns to 0..1, then divided by their range once more.
        MinmaxXTwice = "minmax_x_twice",
        /// Columns to -1..1.
        MinmaxXPm1 = "minmax_x_pm1",
        /// Columns to -1.92..1.92.
        MinmaxXPm192 = "minmax_x_pm192",
        /// Targets to 0..1.
        MinmaxY = "minmax_y",
        /// Targets to -1..1.
        MinmaxYPm1 = "minmax_y_pm1",
        /// Targets clipped to their quantiles 0.02 and 0.98.
        ClipYQuantile = "clip_y_quantile",
        /// Divided by 255.
        Over255 = "x/255",
        /// The targets become the inputs, as prepared so far.
        YIsX = "y_is_x",
    }
}

words! {
    /// A loss: `*_probs` take probabilities, `*_logits` logits.
    Loss: "loss" {
        /// Mean squared error.
        Mse = "mse",
        /// Mean absolute error.
        Mae = "mae",
        /// Sum of squared errors.
        Sse = "sse",
        /// Half of the sum of squared errors, by row.
        MseHalf = "mse_half",
        /// `[n, 1] - [n]`, which broadcasts to `[n, n]`.
        MseBroadcast = "mse_broadcast",
        /// `mean(o - y log o)`.
        Poisson = "poisson",
        /// Binary cross-entropy of probabilities.
        BceProbs = "bce_probs",
        /// Binary cross-entropy of logits.
        BceLogits = "bce_logits",
        /// Binary cross-entropy by its formula, summed by row, without a guard.
        BceRawSum = "bce_raw_sum",
        /// Cross-entropy of probabilities, which are divided by their sum first.
        CceProbs = "cce_probs",
        /// Cross-entropy with a guard of 1e-32.
        CeClip32 = "ce_clip32",
        /// The same with 1e-10, summed over all.
        CeSumClip = "ce_sum_clip",
        /// Cross-entropy of logits.
        CceLogits = "cce_logits",
        /// Its sum over 10.
        CceSumOver10 = "cce_sum_over10",
        /// The log of a softmax, by two functions, summed.
        CceSumNaive = "cce_sum_naive",
        /// The softmax taken over the batch.
        CceSoftmaxAxis0 = "cce_softmax_axis0",
        /// Squared error of a softmax.
        MseSoftmax = "mse_softmax",
        /// Cross-entropy of logits, for numbers of classes.
        ScceLogits = "scce_logits",
        /// Cross-entropy of probabilities, for numbers of classes.
        ScceProbs = "scce_probs",
    }
}

impl Loss {
    /// Whether it takes logits.
    pub fn takes_logits(self) -> bool {
        use Loss::*;
        matches!(
            self,
            BceLogits
                | CceLogits
                | ScceLogits
                | CceSumOver10
                | CceSumNaive
                | CceSoftmaxAxis0
                | MseSoftmax
        )
    }

    /// Whether it takes probabilities.
    pub fn takes_probabilities(self) -> bool {
        use Loss::*;
        matches!(self, BceProbs | CceProbs | ScceProbs | CeClip32 | CeSumClip | BceRawSum)
    }

    /// Whether it is one of shares, each between 0 and 1 by itself.
    pub fn is_of_shares(self) -> bool {
        matches!(self, Loss::BceProbs | Loss::BceRawSum)
    }

    /// Whether it is one for classes.
    pub fn is_for_classes(self) -> bool {
        self.takes_probabilities() || (self.takes_logits() && self != Loss::MseSoftmax)
    }

    /// Whether it is a sum over rows, so that the step grows with the batch.
    pub fn is_sum(self) -> bool {
        matches!(self, Loss::Sse | Loss::CeSumClip | Loss::CceSumNaive | Loss::CceSumOver10)
    }
}

/// Origin of the arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Data {
    /// Python text that sets `X`, `y`, perhaps `Xv`, `yv`.
    pub numpy: Option<String>,
    /// An `.npz` file beside the description.
    pub file: Option<String>,
}

/// A training program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub id: String,
    /// The kind of its answers.
    pub task: Task,
    /// The source of its arrays.
    pub data: Data,
    /// The preparation of the data, in order.
    pub preprocessing: Vec<Step>,
    /// How targets are coded.
    pub labels: Labels,
    /// The shape of an example.
    pub input: Vec<usize>,
    /// The layers, in order.
    pub layers: Vec<Layer>,
    /// The loss.
    pub loss: Loss,
    /// The optimizer.
    pub optimizer: KerasOptions,
    /// Rows in a step.
    pub batch: usize,
    /// Passes over the data.
    pub epochs: usize,
    /// Whether rows are shuffled in each pass.
    pub shuffle: bool,
    /// The description that it was read from.
    pub value: Value,
}

impl Program {
    /// Reads a description from its text; errors name the place.
    pub fn parse(text: &str) -> Result<Program> {
        let value = serde_json::from_str(text).map_err(|e| wrong(format!("not JSON: {e}")))?;
        Program::of(value)
    }

    /// Reads a description.
    pub fn of(value: Value) -> Result<Program> {
        let program = Program::read(&value)?;
        program.check()?;
        Ok(Program { value, ..program })
    }

    fn read(value: &Value) -> Result<Program> {
        let all = Fields::of(value, "")?;
        let data = all.object("data")?;
        let task = match all.text("task")? {
            "binary" => Task::Binary,
            "multiclass" => Task::Multiclass,
            "multilabel" => Task::Multilabel,
            "regression" => Task::Regression,
            "autoencoder" => Task::Autoencoder,
            other => {
                let known = "binary, multiclass, multilabel, regression and autoencoder";
                return Err(wrong(format!("`task` is `{other}`; there are {known}")));
            }
        };
        let labels = match all.text_or("labels_as", "")? {
            "" => Labels::Given,
            "class" => Labels::Class,
            "01" => Labels::ZeroOne,
            other => {
                return Err(wrong(format!("`labels_as` is `{other}`; there are class and 01")));
            }
        };
        let steps = all.list_or_empty("preprocessing")?;
        let layers = all.list("layers")?;
        if layers.is_empty() || layers.len() > MOST_LAYERS {
            return Err(wrong(format!(
                "`layers` has {} entries; 1 to {MOST_LAYERS} can be run",
                layers.len()
            )));
        }
        let layer = |(i, v)| Layer::read(&Fields::of(v, &format!("layers/{i}"))?);
        let sizes = all.list("input")?;
        let size = |(i, v): (usize, &Value)| read::size(v, &format!("input/{i}"), 1 << 24);
        Ok(Program {
            id: all.text_or("id", "program")?.to_string(),
            task,
            data: Data { numpy: data.some_text("numpy")?, file: data.some_text("file")? },
            preprocessing: steps
                .iter()
                .enumerate()
                .map(|(i, v)| Step::read(v, &format!("preprocessing/{i}")))
                .collect::<Result<_>>()?,
            labels,
            input: sizes.iter().enumerate().map(size).collect::<Result<_>>()?,
            layers: layers.iter().enumerate().map(layer).collect::<Result<_>>()?,
            loss: Loss::read(all.object("loss")?.value("name")?, "loss/name")?,
            optimizer: read::optimizer(&all.object("optimizer")?)?,
            batch: all.size("batch", 1 << 24)?,
            epochs: all.size("epochs", MOST_EPOCHS)?,
            shuffle: all.flag_or("shuffle", true)?,
            value: Value::Null,
        })
    }

    /// The shapes after each layer, or an error if layers do not fit together.
    pub fn shapes(&self) -> Result<Vec<Vec<usize>>> {
        let mut shape = self.input.clone();
        let mut shapes = Vec::with_capacity(self.layers.len());
        for (i, layer) in self.layers.iter().enumerate() {
            shape = layer.shape(&shape, i)?;
            shapes.push(shape.clone());
        }
        Ok(shapes)
    }

    fn check(&self) -> Result<()> {
        if self.input.is_empty() || self.input.len() > 4 {
            let why = format!("`input` has {} sizes; 1 to 4 can be run", self.input.len());
            return Err(wrong(why));
        }
        self.shapes()?;
        let weights = self.weights();
        if weights > MOST_WEIGHTS {
            return Err(wrong(format!(
                "the layers have {weights} weights; up to {MOST_WEIGHTS} can be run"
            )));
        }
        if self.last().is_none() {
            return Err(wrong(
                "no layer has weights; there must be a dense layer or a convolution",
            ));
        }
        Ok(())
    }

    /// The numbers in all weights.
    pub fn weights(&self) -> usize {
        let mut shape = self.input.clone();
        let mut count = 0usize;
        for (i, layer) in self.layers.iter().enumerate() {
            count = count.saturating_add(layer.weights(&shape));
            shape = layer.shape(&shape, i).unwrap_or_default();
        }
        count
    }

    /// Multiplications for one row, forward.
    pub fn work(&self) -> usize {
        let mut shape = self.input.clone();
        let mut work = 0usize;
        for (i, layer) in self.layers.iter().enumerate() {
            let after = layer.shape(&shape, i).unwrap_or_default();
            let places: usize = match layer {
                Layer::Conv { .. } => after[..after.len() - 1].iter().product(),
                _ => 1,
            };
            work = work.saturating_add(layer.weights(&shape).saturating_mul(places));
            shape = after;
        }
        work
    }

    /// The place of the last layer with weights.
    pub fn last(&self) -> Option<usize> {
        self.layers.iter().rposition(Layer::has_weights)
    }

    /// The activation of the output: that of the last layer with weights, or of a layer after it.
    pub fn output_activation(&self) -> Activation {
        let last = self.last().unwrap_or(0);
        let own = self.layers[last].activation().unwrap_or(Activation::Linear);
        let mut after = self.layers[last + 1..].iter().rev().filter_map(|l| match l {
            Layer::Activation(a) => Some(*a),
            _ => None,
        });
        after.next().unwrap_or(own)
    }

    /// The units of the last layer with weights.
    pub fn output_units(&self) -> usize {
        self.last().and_then(|i| self.layers[i].width()).unwrap_or(0)
    }

    /// The activation that follows the weights of a hidden layer: its own, or that of a layer after
    /// it.
    pub fn hidden_activation(&self, i: usize) -> Activation {
        let own = self.layers[i].activation().unwrap_or(Activation::Linear);
        for layer in self.layers[i + 1..].iter().take(2) {
            match layer {
                Layer::Activation(a) if own == Activation::Linear => return *a,
                Layer::BatchNorm { .. } | Layer::Activation(_) => {}
                _ => break,
            }
        }
        own
    }

    /// The layers with weights before the last one.
    pub fn hidden(&self) -> Vec<usize> {
        let last = self.last().unwrap_or(0);
        (0..last).filter(|&i| self.layers[i].has_weights()).collect()
    }

    /// Steps of the whole run on `rows` rows.
    pub fn steps(&self, rows: usize) -> usize {
        rows.div_ceil(self.batch.min(rows).max(1)).max(1).saturating_mul(self.epochs)
    }
}
