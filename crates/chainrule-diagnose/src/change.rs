//! The things that an experiment changes, each as edits of a description.

use serde_json::{Value, json};

use chainrule_nn::optim::keras::KerasRule;

use crate::description::{Activation, Init, Labels, Layer, Loss, Named, Program, Step, Task, edit};

/// Properties of the targets that decide on a change.
#[derive(Clone, Debug)]
pub struct TargetShape {
    /// Numbers in a row of targets; none if each row has the number of its class.
    pub columns: Option<usize>,
    /// Number of classes, if rows have one.
    pub classes: usize,
    /// Whether a number is below 0.
    pub negative: bool,
    /// Whether a number is above 1.
    pub is_stretched: bool,
}

/// One thing that an experiment changes, in the order in which several are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Standardised inputs.
    ScaleX,
    /// Standardised targets.
    ScaleY,
    /// The loss of the same kind in its right form: mean, stable, along the right axis.
    LossForm,
    /// The last activation that fits the loss.
    OutputFit,
    /// The last activation, units and loss that fit the task.
    OutputPair,
    /// Linear or sigmoid hidden layers become ReLUs.
    ReluHidden,
    /// He and Glorot initialisation.
    Init,
    /// No dropout, no weight decay.
    NoRegularisation,
    /// Wider hidden layers.
    Wider,
    /// Batches of 32.
    Batch32,
    /// Rows shuffled in each pass.
    Shuffle,
    /// A rate that does not decay.
    NoDecay,
    /// The optimizer's usual momentum and decay rates.
    UsualMoments,
    /// The usual optimizer, Adam with 0.001.
    Adam,
    /// The same with 0.01.
    AdamFast,
    /// The optimizer's usual rate, if that is higher.
    UsualRate,
    /// A tenth of the rate.
    Down10,
    /// A hundredth of it.
    Down100,
    /// Ten times the rate.
    Up10,
    /// A hundred times.
    Up100,
    /// More passes.
    Longer,
    /// A quarter of the passes.
    Shorter,
    /// Weight decay through squared weights in the loss.
    WeightDecay,
    /// Gradients without clipping.
    NoClip,
    /// The targets in random order, as a control: anything that a model learns of them is
    /// memorised.
    ShuffledTargets,
}

impl Named for Change {
    const WHAT: &'static str = "change";
    const ALL: &'static [(&'static str, Change)] = &[
        ("scale_x", Change::ScaleX),
        ("scale_y", Change::ScaleY),
        ("loss_form", Change::LossForm),
        ("output_fit", Change::OutputFit),
        ("output_pair", Change::OutputPair),
        ("relu_hidden", Change::ReluHidden),
        ("init", Change::Init),
        ("no_regularisation", Change::NoRegularisation),
        ("wider", Change::Wider),
        ("batch_32", Change::Batch32),
        ("shuffle", Change::Shuffle),
        ("no_decay", Change::NoDecay),
        ("usual_moments", Change::UsualMoments),
        ("adam", Change::Adam),
        ("adam_fast", Change::AdamFast),
        ("usual_rate", Change::UsualRate),
        ("down_10", Change::Down10),
        ("down_100", Change::Down100),
        ("up_10", Change::Up10),
        ("up_100", Change::Up100),
        ("longer", Change::Longer),
        ("shorter", Change::Shorter),
        ("weight_decay", Change::WeightDecay),
        ("no_clip", Change::NoClip),
        ("shuffled_targets", Change::ShuffledTargets),
    ];
}

/// The most steps of a longer run.
pub const LONG: usize = 3000;

impl Change {
    /// Its word, as in JSON.
    pub fn kind(self) -> &'static str {
        self.word()
    }

    /// The change with this word.
    pub fn of(word: &str) -> Option<Change> {
        Change::ALL.iter().find(|(w, _)| *w == word).map(|(_, change)| *change)
    }

    /// Its name in a report.
    pub fn text(self) -> &'static str {
        match self {
            Change::ScaleX => "standardised inputs",
            Change::ScaleY => "standardised targets",
            Change::LossForm => "the right form of the loss",
            Change::OutputFit => "a last activation that fits the loss",
            Change::OutputPair => "an output and a loss that fit the targets",
            Change::ReluHidden => "ReLU in the hidden layers",
            Change::Init => "He and Glorot initialisation",
            Change::NoRegularisation => "no dropout and no decay",
            Change::Wider => "wider hidden layers",
            Change::Batch32 => "batches of 32",
            Change::Shuffle => "shuffled rows",
            Change::NoDecay => "a rate that does not decay",
            Change::UsualMoments => "the usual momentum and decay rates",
            Change::Adam => "Adam with a rate of 0.001",
            Change::AdamFast => "Adam with a rate of 0.01",
            Change::UsualRate => "the usual rate, downhill",
            Change::Down10 => "a tenth of the rate",
            Change::Down100 => "a hundredth of the rate",
            Change::Up10 => "ten times the rate",
            Change::Up100 => "a hundred times the rate",
            Change::Longer => "more epochs",
            Change::Shorter => "a quarter of the epochs",
            Change::WeightDecay => "weight decay",
            Change::NoClip => "no clipping",
            Change::ShuffledTargets => "shuffled targets",
        }
    }

    /// Whether it concerns the rate or the optimizer; one such change is enough.
    pub fn is_of_rate(self) -> bool {
        matches!(
            self,
            Change::Adam
                | Change::AdamFast
                | Change::UsualRate
                | Change::Down10
                | Change::Down100
                | Change::Up10
                | Change::Up100
        )
    }

    /// The edits that make this change in a program with `rows` rows; none if nothing would change.
    pub fn edits(self, program: &Program, y: &TargetShape, rows: usize) -> Option<Vec<Value>> {
        let edits = match self {
            Change::ScaleX => scale_x(program),
            Change::ScaleY => scale_y(program),
            Change::LossForm => loss_form(program),
            Change::OutputFit => output_fit(program),
            Change::OutputPair => output_pair(program, y),
            Change::ReluHidden => relu_hidden(program),
            Change::Init => init(program),
            Change::NoRegularisation => no_regularisation(program),
            Change::Wider => wider(program),
            Change::Batch32 => match program.batch {
                16..=64 => Vec::new(),
                batch if batch > 64 && rows <= 64 => Vec::new(),
                _ => vec![edit("batch", 32)],
            },
            Change::Shuffle if program.shuffle => Vec::new(),
            Change::Shuffle => vec![edit("shuffle", true)],
            Change::NoDecay if program.optimizer.decay != 0.0 => {
                vec![edit("optimizer/decay", 0.0)]
            }
            Change::NoDecay => Vec::new(),
            Change::UsualMoments => usual_moments(program),
            Change::Adam => adam(program, 0.001),
            Change::AdamFast => adam(program, 0.01),
            Change::UsualRate => {
                let usual = if program.optimizer.rule == KerasRule::Sgd { 0.01 } else { 0.001 };
                vec![edit("optimizer/lr", usual)]
            }
            Change::Down10 => rate(program, 0.1),
            Change::Down100 => rate(program, 0.01),
            Change::Up10 => rate(program, 10.0),
            Change::Up100 => rate(program, 100.0),
            Change::Longer => longer(program, rows),
            Change::Shorter if program.epochs > 1 => {
                vec![edit("epochs", program.epochs.div_ceil(4))]
            }
            Change::Shorter => Vec::new(),
            Change::WeightDecay => weight_decay(program),
            // A description does not clip, and it brings its own control data.
            Change::NoClip | Change::ShuffledTargets => Vec::new(),
        };
        (!edits.is_empty()).then_some(edits)
    }
}

fn steps(steps: &[Step]) -> Value {
    steps.iter().map(|s| s.word()).collect::<Vec<_>>().into()
}

fn scale_x(program: &Program) -> Vec<Value> {
    let mut list = program.preprocessing.clone();
    if list.contains(&Step::StandardizeX) {
        return Vec::new();
    }
    let at = list.iter().position(|s| *s == Step::YIsX).unwrap_or(list.len());
    list.insert(at, Step::StandardizeX);
    vec![edit("preprocessing", steps(&list))]
}

fn scale_y(program: &Program) -> Vec<Value> {
    let mut list = program.preprocessing.clone();
    if program.task != Task::Regression || list.contains(&Step::StandardizeY) {
        return Vec::new();
    }
    list.push(Step::StandardizeY);
    vec![edit("preprocessing", steps(&list))]
}

fn rate(program: &Program, by: f64) -> Vec<Value> {
    let lr = program.optimizer.lr * by;
    if lr == 0.0 || !lr.is_finite() { Vec::new() } else { vec![edit("optimizer/lr", lr)] }
}

fn adam(program: &Program, lr: f64) -> Vec<Value> {
    let now = program.optimizer;
    if now.rule == KerasRule::Adam && (now.lr / lr - 1.0).abs() < 1e-9 {
        return Vec::new();
    }
    vec![edit(
        "optimizer",
        json!({"name": "adam", "lr": lr, "beta1": 0.9, "beta2": 0.999, "eps": 1e-7}),
    )]
}

/// The decay rates of the optimizer's state, if they are not the usual ones.
fn usual_moments(program: &Program) -> Vec<Value> {
    let now = &program.optimizer;
    let mut out = Vec::new();
    let mut put = |name: &str, now: f64, least: f64, most: f64, usual: f64| {
        if !(least..=most).contains(&now) {
            out.push(edit(format!("optimizer/{name}"), usual));
        }
    };
    match now.rule {
        KerasRule::Sgd => put("momentum", now.momentum, 0.0, 0.98, 0.9),
        KerasRule::RmsProp => {
            put("momentum", now.momentum, 0.0, 0.98, 0.0);
            put("rho", now.beta2, 0.5, 0.9999, 0.9);
        }
        _ => {
            put("beta1", now.beta1, 0.0, 0.98, 0.9);
            put("beta2", now.beta2, 0.9, 0.99999, 0.999);
        }
    }
    if now.rule != KerasRule::Sgd {
        put("eps", now.eps, 0.0, 1e-3, 1e-7);
    }
    out
}

fn weight_decay(program: &Program) -> Vec<Value> {
    let layers = program.layers.iter().enumerate();
    let free = layers.filter(|(_, l)| l.has_weights() && l.l2() == 0.0);
    free.map(|(i, _)| edit(format!("layers/{i}/l2"), 0.003)).collect()
}

fn longer(program: &Program, rows: usize) -> Vec<Value> {
    let per = rows.div_ceil(program.batch.min(rows).max(1)).max(1);
    let most = LONG.div_ceil(per);
    let epochs = program.epochs.saturating_mul(10).min(most);
    if epochs < program.epochs + program.epochs.div_ceil(2) {
        Vec::new()
    } else {
        vec![edit("epochs", epochs)]
    }
}

/// The activations of the output become this one: that of the last layer with weights, and of what
/// follows it.
fn last_activation(program: &Program, to: Activation) -> Vec<Value> {
    let last = program.last().unwrap_or(0);
    let after = (last + 1..program.layers.len())
        .filter(|&i| matches!(program.layers[i], Layer::Activation(_)))
        .collect::<Vec<_>>();
    let mut out = Vec::new();
    let mut put = |i: usize, a: Activation| {
        if program.layers[i].activation() != Some(a) {
            out.push(edit(format!("layers/{i}/activation"), a.word()));
        }
    };
    match after.split_last() {
        Some((&end, rest)) => {
            put(last, Activation::Linear);
            rest.iter().for_each(|&i| put(i, Activation::Linear));
            put(end, to);
        }
        None => put(last, to),
    }
    out
}

fn output_fit(program: &Program) -> Vec<Value> {
    let to = match program.loss {
        _ if program.task.is_numbers() && !program.loss.is_for_classes() => Activation::Linear,
        Loss::BceProbs | Loss::BceRawSum => Activation::Sigmoid,
        l if l.takes_probabilities() && program.output_units() > 1 => Activation::Softmax,
        l if l.takes_logits() => Activation::Linear,
        // Squares of classes: the output is a share.
        Loss::Mse | Loss::Mae if program.task == Task::Binary && program.output_units() == 1 => {
            Activation::Sigmoid
        }
        _ => return Vec::new(),
    };
    last_activation(program, to)
}

fn loss_form(program: &Program) -> Vec<Value> {
    let linear = program.output_activation() == Activation::Linear;
    let to = match program.loss {
        Loss::Sse | Loss::MseHalf | Loss::MseBroadcast => Loss::Mse,
        Loss::CceSumOver10 | Loss::CceSumNaive | Loss::CceSoftmaxAxis0 | Loss::MseSoftmax => {
            Loss::CceLogits
        }
        Loss::BceRawSum if linear => Loss::BceLogits,
        Loss::BceRawSum => Loss::BceProbs,
        Loss::CeSumClip | Loss::CeClip32 if !program.task.is_numbers() && linear => Loss::CceLogits,
        Loss::CeSumClip | Loss::CeClip32 if !program.task.is_numbers() => Loss::CceProbs,
        _ => return Vec::new(),
    };
    vec![edit("loss/name", to.word())]
}

fn output_pair(program: &Program, y: &TargetShape) -> Vec<Value> {
    let last = program.last().unwrap_or(0);
    let mut out = Vec::new();
    let mut units = None;
    let loss = match program.task {
        Task::Regression | Task::Autoencoder => {
            units = y.columns;
            Loss::Mse
        }
        Task::Multilabel => Loss::BceLogits,
        _ => match y.columns {
            Some(columns) if columns > 1 => {
                units = Some(columns);
                Loss::CceLogits
            }
            Some(_) if program.task == Task::Binary => {
                out.extend(zero_and_one(program, y));
                let fits = matches!(
                    (program.output_activation(), program.loss, program.output_units()),
                    (Activation::Sigmoid, Loss::BceProbs, 1)
                        | (Activation::Linear, Loss::BceLogits, 1)
                );
                if fits && !out.is_empty() {
                    return out;
                }
                units = Some(1);
                Loss::BceLogits
            }
            columns => {
                if columns.is_some() && program.labels != Labels::Class {
                    out.push(edit("labels_as", "class"));
                }
                let now = program.output_units();
                units = Some(y.classes.max(if now > 1 { now } else { 0 }).max(2));
                Loss::ScceLogits
            }
        },
    };
    out.extend(last_activation(program, Activation::Linear));
    let dense = matches!(program.layers[last], Layer::Dense { .. });
    if let Some(units) = units.filter(|&u| dense && u != program.output_units()) {
        out.push(edit(format!("layers/{last}/units"), units));
    }
    if loss != program.loss {
        out.push(edit("loss/name", loss.word()));
    }
    out
}

/// The edit that codes two classes as 0 and 1.
fn zero_and_one(program: &Program, y: &TargetShape) -> Option<Value> {
    if program.labels == Labels::ZeroOne {
        return None;
    }
    if y.negative {
        return Some(edit("labels_as", "01"));
    }
    let list = &program.preprocessing;
    let stretch = y.is_stretched && !list.contains(&Step::MinmaxY);
    stretch.then(|| edit("preprocessing", steps(&[&list[..], &[Step::MinmaxY]].concat())))
}

fn relu_hidden(program: &Program) -> Vec<Value> {
    let last = program.last().unwrap_or(0);
    let mut out = Vec::new();
    for (i, layer) in program.layers[..last].iter().enumerate() {
        let follows =
            program.layers[i + 1..].iter().take(2).any(|l| matches!(l, Layer::Activation(_)));
        let free = matches!(layer, Layer::Activation(_)) || (layer.has_weights() && !follows);
        let bends = matches!(
            layer.activation(),
            Some(Activation::Relu | Activation::LeakyRelu | Activation::Elu)
        );
        if free && !bends {
            out.push(edit(format!("layers/{i}/activation"), "relu"));
        }
    }
    out
}

fn init(program: &Program) -> Vec<Value> {
    let last = program.last().unwrap_or(0);
    let mut out = Vec::new();
    for (i, layer) in program.layers.iter().enumerate() {
        let Some(now) = layer.init() else { continue };
        let a = program.hidden_activation(i);
        let bends = matches!(a, Activation::Relu | Activation::LeakyRelu | Activation::Elu);
        let (init, word) = match i != last && bends {
            true => (Init::HeNormal, "he_normal"),
            false => (Init::GlorotUniform, "glorot_uniform"),
        };
        if now != init {
            out.push(edit(format!("layers/{i}/init"), word));
        }
        let bias = program.value.pointer(&format!("/layers/{i}/bias_init"));
        if bias.is_some_and(|b| b != "zeros") {
            out.push(edit(format!("layers/{i}/bias_init"), "zeros"));
        }
    }
    out
}

fn no_regularisation(program: &Program) -> Vec<Value> {
    let mut out = Vec::new();
    for (i, layer) in program.layers.iter().enumerate() {
        if matches!(layer, Layer::Dropout(rate) if *rate > 0.0) {
            out.push(edit(format!("layers/{i}/rate"), 0.0));
        }
        if layer.l2() != 0.0 {
            out.push(edit(format!("layers/{i}/l2"), 0.0));
        }
    }
    out
}

fn wider(program: &Program) -> Vec<Value> {
    let mut out = Vec::new();
    for i in program.hidden() {
        let (width, name) = match &program.layers[i] {
            Layer::Dense { units, .. } => (*units, "units"),
            Layer::Conv { filters, .. } => (*filters, "filters"),
            _ => continue,
        };
        let to = (4 * width).clamp(32, 64);
        if to > width {
            out.push(edit(format!("layers/{i}/{name}"), to));
        }
    }
    out
}
