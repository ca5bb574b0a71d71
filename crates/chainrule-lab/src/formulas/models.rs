//! Training steps of whole models.

use super::{log_softmax, mean_of_picked, normalised};
use crate::dtype::DType;
use crate::error::Result;
use crate::models::{DigitsMlp, Gpt, GptConfig};
use crate::nn::{Layer, Module};
use crate::optim::{AdamW, Optimizer, Sgd};
use crate::rng::Generator;
use crate::tensor::Tensor;
use chainrule_program::{Program, compile};

/// The names model, batch 32, hidden layer of 200, each step by itself; with SGD.
pub(super) fn names() -> Result<Program> {
    let g = &mut Generator::manual_seed(1);
    let mut weight = |name: &str, shape: &[usize]| -> Result<Tensor> {
        Ok(Tensor::try_randn(shape, DType::F32, g)?.try_parameter()?.named(name))
    };
    let table = weight("C", &[27, 10])?;
    let (w1, b1) = (weight("W1", &[30, 200])?, weight("b1", &[200])?);
    let (w2, b2) = (weight("W2", &[200, 27])?, weight("b2", &[27])?);
    let (gain, bias) = (weight("bngain", &[1, 200])?, weight("bnbias", &[1, 200])?);
    let all = [&table, &w1, &b1, &w2, &b2, &gain, &bias].map(Tensor::clone);
    let mut sgd = Sgd::try_new(all.to_vec(), 0.1)?;
    let x = Tensor::try_randint(0, 27, [32, 3], g)?;
    let y = Tensor::try_randint(0, 27, [32], g)?;
    Program::trace([("x", &x), ("y", &y)], |a| {
        let emb = table.try_embedding(&a[0])?.named("emb");
        let embcat = emb.try_reshape([32, 30])?.named("embcat");
        let hprebn = embcat.try_matmul(&w1)?.try_add(&b1)?.named("hprebn");
        let hpreact = normalised(&hprebn, &gain, &bias, 1.0)?.named("hpreact");
        let h = hpreact.try_tanh()?.named("h");
        let logits = h.try_matmul(&w2)?.try_add(&b2)?.named("logits");
        let loss = mean_of_picked(&log_softmax(&logits)?, &a[1])?.named("loss");
        loss.try_backward()?;
        sgd.step()?;
        Ok(vec![loss])
    })
}

/// Three hidden layers of 1,024 on a batch of 512 pictures; with SGD.
pub(super) fn mnist() -> Result<Program> {
    let g = &mut Generator::manual_seed(1);
    let net = DigitsMlp::try_new(&[1024; 3], g)?;
    let mut sgd = Sgd::try_new(net.parameters(), 0.01)?;
    let x = Tensor::try_rand([512, 784], DType::F32, g)?;
    let y = Tensor::try_randint(0, 10, [512], g)?;
    let mut step =
        compile(&net, &mut sgd, ["x", "y"], |b| net.try_forward(&b[0])?.try_cross_entropy(&b[1]));
    step.trace_raw(&[&x, &y])
}

/// 4 layers, 4 heads, 128 wide, context 64, batch 12; with AdamW.
pub(super) fn gpt_small() -> Result<Program> {
    let g = &mut Generator::manual_seed(1);
    let (symbols, context, batch) = (65, 64, 12);
    let config = GptConfig { symbols, context, layers: 4, heads: 4, width: 128, dropout: 0.0 };
    let model = Gpt::try_new(config, g)?;
    let mut adamw = AdamW::try_new(model.parameters(), 5e-4)?;
    let mut draw = || Tensor::try_randint(0, symbols as i64, [batch, context], g);
    let (x, y) = (draw()?, draw()?);
    let mut step = compile(&model, &mut adamw, ["x", "y"], |b| {
        let logits = model.try_forward(&b[0])?.try_reshape([-1, symbols as i64])?;
        logits.try_cross_entropy(&b[1].try_flatten(0, -1)?)
    });
    step.trace_raw(&[&x, &y])
}
