//! The description alone: the last layer against the loss, the loss against the task.

use chainrule_nn::optim::keras::KerasRule;

use super::{Findings, Seen, target_range};
use crate::cause::Cause;
use crate::change::Change::{self, *};
use crate::data::Targets;
use crate::description::{Activation, Layer, Loss, Named, Task};

/// Range of an activation.
fn range(a: Activation) -> Option<(f64, f64)> {
    match a {
        Activation::Sigmoid | Activation::Softmax => Some((0.0, 1.0)),
        Activation::Relu | Activation::Softplus => Some((0.0, f64::INFINITY)),
        Activation::Tanh => Some((-1.0, 1.0)),
        Activation::Elu => Some((-1.0, f64::INFINITY)),
        _ => None,
    }
}

const OUTPUT: &[Change] = &[OutputFit, OutputPair];

pub(super) fn look(seen: &Seen<'_>, all: &mut Findings) {
    output(seen, all);
    loss(seen, all);
    layers(seen, all);
    optimizer(seen, all);
}

fn output(seen: &Seen<'_>, all: &mut Findings) {
    let program = seen.program;
    let (a, units, loss) = (program.output_activation(), program.output_units(), program.loss);
    let place = format!("layers/{}/activation", program.last().unwrap_or(0));
    let (word, name) = (a.word(), loss.word());
    if a == Activation::Softmax && units == 1 {
        let text = "a softmax over one unit is 1 for every input";
        all.add(Cause::OutputActivation, 1.0, &place, text, OUTPUT);
    }
    let numbers = match &seen.data.y {
        Targets::Numbers { numbers, .. } => &numbers[..],
        Targets::Classes(_) => &[],
    };
    // A sigmoid is right for shares and classes: the targets are then at fault.
    let is_of_labels = program.task.is_classes() && a == Activation::Sigmoid && loss.is_of_shares();
    if let Some((low, high)) = range(a).filter(|_| !loss.takes_logits() && !is_of_labels) {
        let outside = |v: &&f32| f64::from(**v) < low - 1e-6 || f64::from(**v) > high + 1e-6;
        let share = numbers.iter().filter(outside).count() as f64 / numbers.len().max(1) as f64;
        if share > 0.01 {
            let text =
                format!("{:.0} % of the targets lie outside the range of {word}", 100.0 * share);
            all.add(Cause::OutputActivation, 1.0, &place, text, OUTPUT).with(&[
                ("outside_share", share),
                ("low", low),
                ("high", high),
            ]);
        }
    }
    let open = matches!(
        a,
        Activation::Linear
            | Activation::Relu
            | Activation::Tanh
            | Activation::Elu
            | Activation::LeakyRelu
            | Activation::Selu
            | Activation::Softplus
    );
    if loss.takes_probabilities() && open {
        let text = format!("{name} takes probabilities, and the output is {word}");
        all.add(Cause::OutputActivation, 1.0, &place, text, OUTPUT);
    }
    if loss.takes_logits() && !matches!(a, Activation::Linear) {
        let text = format!("{name} takes logits, and the output is {word}");
        all.add(Cause::OutputActivation, 1.0, &place, text, OUTPUT);
    }
    if matches!(loss, Loss::CceProbs | Loss::CeClip32) && a == Activation::Sigmoid {
        let text = "cross-entropy over classes of sigmoids, which do not compete";
        all.add(Cause::OutputActivation, 1.0, &place, text, OUTPUT);
    }
    if program.task == Task::Multilabel && a == Activation::Softmax {
        let text = "a softmax for labels of which several can hold";
        all.add(Cause::OutputActivation, 1.0, &place, text, OUTPUT);
    }
    if a == Activation::Relu && loss == Loss::Mse {
        let text = "ReLU at the end: an output below 0 has no gradient";
        let strength = if program.task.is_classes() { 1.0 } else { 0.7 };
        all.add(Cause::OutputActivation, strength, &place, text, OUTPUT);
    }
}

/// The setting of the loss.
const LOSS: &str = "loss/name";

fn loss(seen: &Seen<'_>, all: &mut Findings) {
    targets(seen, all);
    outputs(seen, all);
    form(seen, all);
}

/// Targets that are invalid for the loss.
fn targets(seen: &Seen<'_>, all: &mut Findings) {
    let (loss, task) = (seen.program.loss, seen.program.task);
    let (place, name) = (LOSS, loss.word());
    let (low, high) = target_range(&seen.data.y);
    if matches!(loss, Loss::BceProbs | Loss::BceLogits | Loss::BceRawSum)
        && (low < -1e-6 || high > 1.0 + 1e-6)
    {
        let text =
            format!("{name} with targets from {low:.3} to {high:.3}, which are no probabilities");
        let coded = two_values(&seen.data.y).filter(|_| task == Task::Binary);
        if let Some((one, other)) = coded {
            let text =
                format!("the two classes are coded as {one} and {other}, and {name} takes 0 and 1");
            all.add(Cause::Labels, 1.0, "labels_as", text, &[OutputPair])
                .with(&[("lowest_target", low), ("highest_target", high)]);
        }
        // Class numbers above 1 are a question of units, and two numbers one of coding.
        let strength = if task == Task::Multiclass || coded.is_some() { 0.9 } else { 1.0 };
        all.add(Cause::Loss, strength, place, text, &[OutputPair])
            .with(&[("lowest_target", low), ("highest_target", high)]);
    }
    if loss == Loss::Poisson && low < 0.0 {
        all.add(
            Cause::Loss,
            1.0,
            place,
            format!("a Poisson loss with targets down to {low:.3}"),
            &[OutputPair],
        )
        .with(&[("lowest_target", low)]);
    }
}

/// The two numbers that the targets have, if there are just two.
fn two_values(y: &Targets) -> Option<(f32, f32)> {
    let Targets::Numbers { numbers, .. } = y else { return None };
    let (low, high) = target_range(y);
    let (low, high) = (low as f32, high as f32);
    let only = low < high && numbers.iter().all(|v| *v == low || *v == high);
    only.then_some((low, high))
}

/// Outputs that do not fit the loss and the targets.
fn outputs(seen: &Seen<'_>, all: &mut Findings) {
    let program = seen.program;
    let (units, loss, task) = (program.output_units(), program.loss, program.task);
    let unit_place = format!("layers/{}/units", program.last().unwrap_or(0));
    if matches!(loss, Loss::CceProbs | Loss::CceLogits) && units == 1 {
        all.add(
            Cause::OutputUnits,
            1.0,
            &unit_place,
            "a loss over classes with one unit",
            &[OutputPair],
        );
    }
    if task == Task::Multiclass && units == 1 {
        all.add(
            Cause::OutputUnits,
            1.0,
            &unit_place,
            "one unit for several classes",
            &[OutputPair],
        );
    }
    if let Targets::Classes(classes) = &seen.data.y {
        let most = classes.iter().max().copied().unwrap_or(0);
        if most >= units && units > 1 {
            let text = format!("class {most} has no unit: there are {units}");
            // With classes counted from 1 there are as many units as classes.
            let from_one = most == units && !classes.contains(&0);
            if from_one {
                let text = format!("classes are counted from 1 to {most}, and units from 0");
                all.add(Cause::Labels, 1.0, "data", text, &[OutputPair])
                    .with(&[("highest_class", most as f64), ("units", units as f64)]);
            }
            let strength = if from_one { 0.9 } else { 1.0 };
            all.add(Cause::OutputUnits, strength, &unit_place, text, &[OutputPair])
                .with(&[("highest_class", most as f64), ("units", units as f64)]);
        }
    }
    if task.is_numbers() && loss.is_for_classes() {
        // The binary cross-entropy of a share is least at its mean, as the square is.
        let (low, high) = target_range(&seen.data.y);
        let takes_shares = matches!(loss, Loss::BceProbs | Loss::BceLogits);
        let strength = if takes_shares && low >= 0.0 && high <= 1.0 { 0.4 } else { 1.0 };
        all.add(
            Cause::Loss,
            strength,
            LOSS,
            format!("{} is a loss for classes, the targets are numbers", loss.word()),
            &[OutputPair],
        );
    }
    let columns = seen.data.y.columns();
    let last = &program.layers[program.last().unwrap_or(0)];
    if matches!(&seen.data.y, Targets::Numbers { .. })
        && matches!(last, Layer::Dense { .. })
        && units != columns
    {
        let text = format!("{units} outputs for {columns} targets");
        all.add(Cause::OutputUnits, 0.8, &unit_place, text, &[OutputPair])
            .with(&[("units", units as f64), ("target_columns", columns as f64)]);
    }
}

/// How the loss is computed.
fn form(seen: &Seen<'_>, all: &mut Findings) {
    let (loss, task) = (seen.program.loss, seen.program.task);
    let (place, name) = (LOSS, loss.word());
    match loss {
        Loss::MseBroadcast => {
            let text = "[n, 1] - [n] is [n, n]: each output is pulled to the mean of all targets";
            all.add(Cause::LossBroadcast, 1.0, place, text, &[LossForm]);
        }
        Loss::CceSoftmaxAxis0 => {
            let text = "the softmax runs over the rows of the batch";
            all.add(Cause::Axis, 1.0, place, text, &[LossForm]);
        }
        Loss::BceRawSum | Loss::CeClip32 => {
            let text = format!("{name} takes logarithms without a guard");
            all.add(Cause::LossNumerics, 0.6, place, text, &[LossForm]);
        }
        Loss::CeSumClip => {
            all.add(Cause::LossReduction, 0.7, place, "the loss is a sum over rows", &[LossForm]);
        }
        Loss::MseSoftmax => {
            let text = "the squared error of a softmax is flat where it is most wrong";
            all.add(Cause::Loss, 0.9, place, text, &[LossForm]);
        }
        _ if loss.is_sum() => {
            let batch = seen.program.batch;
            let text =
                format!("the loss is a sum over {batch} rows: so many times the rate of a mean");
            all.add(Cause::LossReduction, 0.9, place, text, &[LossForm])
                .with(&[("batch", batch as f64)]);
        }
        Loss::Mse | Loss::Mae if task.is_classes() => {
            all.add(
                Cause::Loss,
                0.5,
                place,
                format!("{name} for classes is flat where it is most wrong"),
                &[OutputPair],
            );
        }
        _ => {}
    }
}

fn layers(seen: &Seen<'_>, all: &mut Findings) {
    let program = seen.program;
    let hidden = program.hidden();
    let of = |a: Activation| {
        hidden
            .iter()
            .copied()
            .filter(move |&i| program.hidden_activation(i) == a)
            .collect::<Vec<_>>()
    };
    if let [first, ..] = of(Activation::Softmax)[..] {
        let text = format!("layer {first} is a softmax inside the network: its outputs sum to 1");
        all.add(
            Cause::HiddenActivation,
            1.0,
            format!("layers/{first}/activation"),
            text,
            &[ReluHidden],
        );
    }
    let linear = of(Activation::Linear);
    if let [first, ..] = linear[..] {
        let text = format!("the layers {linear:?} have no activation, so they are one linear map");
        // An autoencoder may be linear by intent; another task has no use for such layers.
        let bends = |l: &Layer| matches!(l, Layer::MaxPool { .. });
        let is_one_map = linear.len() == hidden.len()
            && program.task != Task::Autoencoder
            && !program.layers.iter().any(bends);
        all.add(
            Cause::HiddenActivation,
            if is_one_map { 0.9 } else { 0.6 },
            format!("layers/{first}/activation"),
            text,
            &[ReluHidden],
        );
    }
    let last = program.last().unwrap_or(0);
    let late = program.layers[last + 1..]
        .iter()
        .position(|l| matches!(l, Layer::Dropout(rate) if *rate > 0.0));
    if let Some(at) = late {
        let place = format!("layers/{}", last + 1 + at);
        all.add(
            Cause::Architecture,
            1.0,
            place,
            "dropout after the last layer sets answers to 0",
            &[NoRegularisation],
        );
    }
    let rates = || {
        program.layers.iter().enumerate().filter_map(|(i, l)| match l {
            Layer::Dropout(rate) => Some((i, *rate)),
            _ => None,
        })
    };
    let narrow =
        hidden.iter().filter_map(|&i| program.layers[i].width()).min().unwrap_or(usize::MAX);
    if let Some((i, rate)) = rates().find(|(_, rate)| *rate > 0.5 || (*rate >= 0.5 && narrow < 8)) {
        let text = format!("dropout of {rate} beside layers of {narrow} units");
        all.add(Cause::Regularisation, 0.8, format!("layers/{i}/rate"), text, &[NoRegularisation])
            .with(&[("dropout", rate), ("narrowest_layer", narrow as f64)]);
    }
    let decays: Vec<f64> = program.layers.iter().map(Layer::l2).filter(|&l| l > 0.0).collect();
    let most = decays.iter().copied().fold(0.0, f64::max);
    if most >= 0.05 || decays.iter().filter(|&&l| l >= 0.005).count() >= 3 {
        let at = program.layers.iter().position(|l| l.l2() == most).unwrap_or(0);
        let text = format!("squared weights enter the loss with {most} in {} layers", decays.len());
        all.add(Cause::Regularisation, 0.8, format!("layers/{at}/l2"), text, &[NoRegularisation])
            .with(&[("l2", most), ("layers", decays.len() as f64)]);
    }
    if narrow <= 4 && program.task != Task::Autoencoder {
        let at = hidden
            .iter()
            .copied()
            .find(|&i| program.layers[i].width() == Some(narrow))
            .unwrap_or(0);
        let text = format!("layer {at} has {narrow} units");
        all.add(Cause::Capacity, 0.45, format!("layers/{at}/units"), text, &[Wider])
            .with(&[("units", narrow as f64)]);
    }
}

fn optimizer(seen: &Seen<'_>, all: &mut Findings) {
    let program = seen.program;
    let lr = program.optimizer.lr;
    if lr < 0.0 {
        let text = format!("the rate is {lr}: each step goes uphill");
        all.add(Cause::LrSign, 1.0, "optimizer/lr", text, &[UsualRate, Adam]).with(&[("lr", lr)]);
    }
    if lr == 0.0 {
        all.add(Cause::LrLow, 1.0, "optimizer/lr", "the rate is 0", &[UsualRate, Adam]);
    }
    moments(seen, all);
    let batch = program.batch.min(seen.data.rows);
    if batch <= 4 && seen.data.rows > 100 {
        let text = format!("batches of {batch} rows: each step follows a few rows");
        all.add(Cause::BatchSize, 0.4, "batch", text, &[Batch32])
            .with(&[("batch", batch as f64), ("rows", seen.data.rows as f64)]);
    }
    if program.batch >= 500 && seen.data.rows >= 500 {
        let text =
            format!("batches of {batch} rows, {} steps an epoch", seen.data.rows.div_ceil(batch));
        all.add(Cause::BatchSize, 0.4, "batch", text, &[Batch32])
            .with(&[("batch", batch as f64), ("rows", seen.data.rows as f64)]);
    }
}

/// Decay of the rate over the run, and the decay rates of the optimizer's state.
fn moments(seen: &Seen<'_>, all: &mut Findings) {
    let options = &seen.program.optimizer;
    let steps = seen.run.planned.max(1) as f64;
    let left = 1.0 / (1.0 + options.decay * steps);
    if options.decay > 0.0 && left < 0.1 {
        let half = 1.0 / options.decay;
        let text = format!(
            "the rate is halved by step {half:.0}, and {:.1} % of it is left at the end",
            100.0 * left
        );
        let strength = if left < 0.02 { 0.9 } else { 0.6 };
        all.add(Cause::LrDecay, strength, "optimizer/decay", text, &[NoDecay])
            .with(&[("share_of_rate_at_the_end", left), ("decay", options.decay)]);
    }
    let (momentum, beta1, beta2) = (options.momentum, options.beta1, options.beta2);
    let is_sgd = options.rule == KerasRule::Sgd;
    let mut odd = |name: &'static str, value: f64, strength: f64, text: String| {
        all.add(
            Cause::Optimizer,
            strength,
            format!("optimizer/{name}"),
            text,
            &[UsualMoments, Adam, Down10],
        )
        .with(&[(name, value)]);
    };
    if !(0.0..1.0).contains(&momentum) {
        let text = format!("a momentum of {momentum} lets old steps grow or turn back");
        odd("momentum", momentum, 1.0, text);
    } else if momentum > 0.98 {
        let times = 1.0 / (1.0 - momentum);
        let text = format!("a momentum of {momentum} makes each step {times:.0} times as long");
        odd("momentum", momentum, 0.7, text);
    }
    let adaptive = !is_sgd && options.rule != KerasRule::RmsProp;
    if adaptive && beta1 > 0.98 {
        let steps = 1.0 / (1.0 - beta1);
        let text = format!("a beta1 of {beta1} follows the gradients of the last {steps:.0} steps");
        odd("beta1", beta1, 0.7, text);
    }
    if adaptive && beta2 < 0.9 {
        let text = format!("a beta2 of {beta2} forgets the size of gradients within a few steps");
        odd("beta2", beta2, 0.6, text);
    }
    if !is_sgd && options.eps > 1e-3 {
        let text = format!("an eps of {} is as large as gradients are", options.eps);
        odd("eps", options.eps, 0.5, text);
    }
}
