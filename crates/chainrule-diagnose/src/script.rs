//! A description as a script for PyTorch.

use crate::description::{Activation, Init, Layer, Loss, Named, Program};
use chainrule_nn::optim::keras::KerasRule;

/// The program as a script that people can read and run; it reads its data from `data.npz`, where
/// they must already be prepared.
pub fn script(program: &Program) -> String {
    let mut lines = vec![
        format!("# {}", program.id.replace(['\n', '\r'], " ")),
        "import numpy as np".into(),
        "import torch".into(),
        "from torch import nn".into(),
        "import torch.nn.functional as F".into(),
        String::new(),
        "data = np.load(\"data.npz\")".into(),
        "X = torch.tensor(data[\"X\"], dtype=torch.float32)".into(),
        "y = torch.tensor(data[\"y\"])".into(),
        "y = y if y.ndim == 1 and not y.is_floating_point() else y.float()".into(),
    ];
    let steps: Vec<&str> = program.preprocessing.iter().map(|s| s.word()).collect();
    if !steps.is_empty() {
        lines.push(format!("# prepared by: {}", steps.join(", ")));
    }
    lines.extend([String::new(), "model = nn.Sequential(".into()]);
    let mut shape = program.input.clone();
    for (i, layer) in program.layers.iter().enumerate() {
        lines.extend(module(layer, &shape).into_iter().map(|m| format!("    {m},")));
        shape = layer.shape(&shape, i).unwrap_or_default();
    }
    lines.push(")".into());
    lines.extend(inits(program));
    lines.push(optimizer(program));
    let decay = program.optimizer.decay;
    if decay != 0.0 {
        let schedule = format!("optimizer, lambda step: 1 / (1 + {decay} * step)");
        lines.push(format!("schedule = torch.optim.lr_scheduler.LambdaLR({schedule})"));
    }
    lines.push(String::new());
    let (batch, epochs) = (program.batch, program.epochs);
    let order = if program.shuffle { "torch.randperm(len(X))" } else { "torch.arange(len(X))" };
    lines.push(format!("for epoch in range({epochs}):"));
    lines.push(format!("    for rows in {order}.split({batch}):"));
    lines.push(format!("        o, t = model(X[rows]{}), y[rows]", channels_first(program)));
    lines.push(format!("        loss = {}", loss(program.loss)));
    for (i, layer) in trained(program).enumerate().filter(|(_, layer)| layer.l2() != 0.0) {
        let l2 = layer.l2();
        lines.push(format!("        loss = loss + {l2} * layers[{i}].weight.square().sum()"));
    }
    lines.push("        optimizer.zero_grad()".into());
    lines.push("        loss.backward()".into());
    lines.push("        optimizer.step()".into());
    if decay != 0.0 {
        lines.push("        schedule.step()".into());
    }
    lines.push("    print(epoch, loss.item())".into());
    lines.join("\n") + "\n"
}

/// Images have their channels last in a description and first in PyTorch.
fn channels_first(program: &Program) -> &'static str {
    let has =
        program.layers.iter().any(|l| matches!(l, Layer::Conv { .. } | Layer::MaxPool { .. }));
    if has { ".movedim(-1, 1)" } else { "" }
}

fn activation(a: Activation) -> Option<&'static str> {
    Some(match a {
        Activation::Linear => return None,
        Activation::Relu => "nn.ReLU()",
        Activation::LeakyRelu => "nn.LeakyReLU(0.3)",
        Activation::Elu => "nn.ELU()",
        Activation::Tanh => "nn.Tanh()",
        Activation::Sigmoid => "nn.Sigmoid()",
        Activation::Softmax => "nn.Softmax(-1)",
        Activation::Selu => "nn.SELU()",
        Activation::Softplus => "nn.Softplus()",
    })
}

fn module(layer: &Layer, input: &[usize]) -> Vec<String> {
    let channels = input.last().copied().unwrap_or(1);
    let then = |own: String, a: Activation| {
        [own].into_iter().chain(activation(a).map(str::to_string)).collect()
    };
    let side = |same: bool| if same { ", padding=\"same\"" } else { "" };
    match layer {
        Layer::Dense { units, activation, bias, .. } => {
            let bias = if bias.is_none() { ", bias=False" } else { "" };
            then(format!("nn.Linear({channels}, {units}{bias})"), *activation)
        }
        Layer::Conv { axes, filters, kernel, stride, same, activation, .. } => then(
            format!(
                "nn.Conv{axes}d({channels}, {filters}, {kernel}, stride={stride}{})",
                side(*same)
            ),
            *activation,
        ),
        Layer::MaxPool { axes, size, stride, same } => {
            let ceil = if *same { ", ceil_mode=True" } else { "" };
            vec![format!("nn.MaxPool{axes}d({size}, {stride}{ceil})")]
        }
        Layer::GlobalAvgPool1d => vec!["nn.AdaptiveAvgPool1d(1)".into(), "nn.Flatten()".into()],
        Layer::Flatten => vec!["nn.Flatten()".into()],
        Layer::Activation(a) => activation(*a).map(str::to_string).into_iter().collect(),
        Layer::Dropout(rate) => vec![format!("nn.Dropout({rate})")],
        Layer::BatchNorm { momentum, eps } => {
            let axes = input.len().saturating_sub(1).max(1);
            vec![format!("nn.BatchNorm{axes}d({channels}, eps={eps}, momentum={})", 1.0 - momentum)]
        }
    }
}

/// Layers with weights that are initialised.
fn trained(program: &Program) -> impl Iterator<Item = &Layer> {
    program.layers.iter().filter(|layer| layer.init().is_some())
}

fn init(init: &Init, parameter: &str) -> String {
    match init {
        Init::GlorotUniform => format!("nn.init.xavier_uniform_({parameter})"),
        Init::GlorotNormal => format!("nn.init.xavier_normal_({parameter})"),
        Init::HeUniform => format!("nn.init.kaiming_uniform_({parameter})"),
        Init::HeNormal => format!("nn.init.kaiming_normal_({parameter})"),
        Init::Normal { mean, std } => format!("nn.init.normal_({parameter}, {mean}, {std})"),
        Init::Uniform { bound } => format!("nn.init.uniform_({parameter}, -{bound}, {bound})"),
        Init::Constant(value) => format!("nn.init.constant_({parameter}, {value})"),
    }
}

/// Weights and biases as Keras initialises them, unlike PyTorch.
fn inits(program: &Program) -> Vec<String> {
    let has_weights = "isinstance(m, (nn.Linear, nn.Conv1d, nn.Conv2d))";
    let mut out = vec![format!("layers = [m for m in model if {has_weights}]")];
    for (i, layer) in trained(program).enumerate() {
        out.extend(layer.init().map(|of| init(&of, &format!("layers[{i}].weight"))));
        out.extend(layer.bias().map(|of| init(&of, &format!("layers[{i}].bias"))));
        if !layer.is_trained() {
            out.push(format!("layers[{i}].requires_grad_(False)"));
        }
    }
    out
}

fn optimizer(program: &Program) -> String {
    let o = program.optimizer;
    let (lr, all) = (o.lr, "optimizer = torch.optim.");
    match o.rule {
        KerasRule::Sgd => format!(
            "{all}SGD(model.parameters(), lr={lr}, momentum={}, nesterov={})",
            o.momentum,
            if o.nesterov && o.momentum > 0.0 { "True" } else { "False" }
        ),
        KerasRule::Adam | KerasRule::Nadam => {
            let name = if o.rule == KerasRule::Adam { "Adam" } else { "NAdam" };
            let (b1, b2, eps) = (o.beta1, o.beta2, o.eps);
            format!("{all}{name}(model.parameters(), lr={lr}, betas=({b1}, {b2}), eps={eps})")
        }
        KerasRule::RmsProp => {
            format!("{all}RMSprop(model.parameters(), lr={lr}, alpha={}, eps={})", o.beta2, o.eps)
        }
    }
}

fn loss(loss: Loss) -> &'static str {
    match loss {
        Loss::Mse => "F.mse_loss(o, t)",
        Loss::Mae => "F.l1_loss(o, t)",
        Loss::Sse => "((o - t) ** 2).sum()",
        Loss::MseHalf => "((o - t) ** 2).sum() / (2 * len(o))",
        Loss::MseBroadcast => "((o - t.reshape(1, -1)) ** 2).mean()",
        Loss::Poisson => "(o - t * torch.log(o + 1e-7)).mean()",
        Loss::BceProbs => {
            "-(t * o.clamp(1e-7, 1 - 1e-7).log() + (1 - t) * (1 - o.clamp(1e-7, 1 - 1e-7)).log()).mean()"
        }
        Loss::BceLogits => "F.binary_cross_entropy_with_logits(o, t)",
        Loss::BceRawSum => "-(t * o.log() + (1 - t) * (1 - o).log()).sum(-1).mean()",
        Loss::CceProbs => {
            "-(t * (o / o.sum(-1, keepdim=True)).clamp(1e-7, 1 - 1e-7).log()).sum(-1).mean()"
        }
        Loss::CeClip32 => "-(t * o.clamp(1e-32, 1).log()).sum(-1).mean()",
        Loss::CeSumClip => "-(t * o.clamp(1e-10, 1).log()).sum()",
        Loss::CceLogits => "-(t * torch.log_softmax(o, -1)).sum(-1).mean()",
        Loss::CceSumOver10 => "-(t * torch.log_softmax(o, -1)).sum() / 10",
        Loss::CceSumNaive => "-(t * torch.softmax(o, -1).log()).sum()",
        Loss::CceSoftmaxAxis0 => "-(t * torch.softmax(o, 0).clamp(1e-32, 1).log()).sum(-1).mean()",
        Loss::MseSoftmax => "F.mse_loss(torch.softmax(o, -1), t)",
        Loss::ScceLogits => "F.cross_entropy(o, t)",
        Loss::ScceProbs => "F.nll_loss((o / o.sum(-1, keepdim=True)).clamp(1e-7, 1).log(), t)",
    }
}
