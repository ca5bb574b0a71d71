//! Checks of a model, its data and its loss before the first step, most of them exact.

use chainrule_core::dtype::DType;
use chainrule_core::tensor::{Tensor, no_grad};
use chainrule_nn::nn::{Layer, Module};

use crate::cause::Cause;
use crate::change::Change;
use crate::detect::Suspicion;
use crate::error::Result;

/// The most rows that are examined.
const ROWS: usize = 128;
/// The most rows whose losses are taken one by one.
const FEW: usize = 6;

fn sign(
    cause: Cause,
    strength: f64,
    place: impl Into<String>,
    text: String,
    numbers: &[(&'static str, f64)],
    remedies: &[Change],
) -> Suspicion {
    let (place, numbers, remedies) = (place.into(), numbers.to_vec(), remedies.to_vec());
    Suspicion { cause, strength, place, since: 0, text, numbers, remedies }
}

/// Signs of mistakes in a batch, a model and a loss, the strongest first. No step is taken, and the
/// model stays as it is; gradients are cleared.
///
/// It examines numbers that are not finite, constant inputs and targets, scales, weights that start
/// equal, the first loss compared with the best constant answer's, the first gradients from layer
/// to layer, and whether the loss of a batch is the mean of the losses of its rows: otherwise an
/// example's answer depends on the others, or the loss is a sum. `x` and `y` have their rows along
/// the first axis; classes below 0 are ignored.
///
/// ```
/// use chainrule_diagnose::{Cause, before};
/// use chainrule_nn::nn::{Layer, Linear};
/// # use chainrule_core::{rng::Generator, tensor::Tensor};
/// let net = Linear::try_new(3, 1, &mut Generator::manual_seed(1))?;
/// let rows = [0.5f32, 1.0, -1.0, 0.2, -0.4, 0.9, 1.0, f32::NAN, 0.0];
/// let x = Tensor::try_from_slice(&rows, [3, 3])?;
/// let y = Tensor::try_from_slice(&[1.0f32, 0.0, 2.0], [3, 1])?;
/// let signs = before(&net, &x, &y, &|x, y| net.try_forward(x)?.try_mse(y))?;
/// assert_eq!(signs[0].cause, Cause::Data);
/// assert!(signs[0].text.contains("row 2"));
/// # Ok::<(), chainrule_core::error::Error>(())
/// ```
///
/// # Errors
/// Errors of the loss.
pub fn before(
    module: &dyn Module,
    x: &Tensor,
    y: &Tensor,
    loss: &dyn Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Vec<Suspicion>> {
    let rows = x.shape().first().copied().unwrap_or(0).min(ROWS);
    if rows == 0 || y.shape().first().is_none_or(|&n| n < rows) {
        return Ok(Vec::new());
    }
    let (x, y) = (x.try_narrow(0, 0, rows)?, y.try_narrow(0, 0, rows)?);
    let mut out = data(&x, &y)?;
    out.extend(weights(module)?);
    if !out.iter().any(|s| s.cause == Cause::Data && s.strength >= 1.0) {
        module.eval();
        let found = first_loss(module, &x, &y, loss);
        module.train();
        out.extend(found?);
    }
    out.sort_by(|a, b| b.strength.total_cmp(&a.strength));
    Ok(out)
}

fn data(x: &Tensor, y: &Tensor) -> Result<Vec<Suspicion>> {
    let mut out = Vec::new();
    for (name, t) in [("inputs", x), ("targets", y)] {
        let numbers = t.to_f64_vec();
        let width = (numbers.len() / t.shape()[0].max(1)).max(1);
        if let Some(at) = numbers.iter().position(|v| !v.is_finite()) {
            let row = at / width;
            let text = format!("row {row} of the {name} has the value {}", numbers[at]);
            out.push(sign(Cause::Data, 1.0, "data", text, &[("row", row as f64)], &[]));
        } else if numbers.chunks_exact(width).all(|row| row == &numbers[..width])
            && t.shape()[0] > 8
        {
            let (cause, text) = match name {
                "inputs" => (Cause::Data, "all rows of the inputs are equal"),
                _ => (Cause::Labels, "all targets are equal"),
            };
            out.push(sign(cause, 1.0, "data", text.to_owned(), &[], &[]));
        }
    }
    let largest = x.to_f64_vec().into_iter().fold(0.0f64, |m, v| m.max(v.abs()));
    if x.dtype() == DType::F32 && largest > 1e3 && largest.is_finite() {
        let text = format!("inputs up to {largest:.3e}");
        let numbers = [("largest_input", largest)];
        out.push(sign(Cause::InputScale, 0.7, "data", text, &numbers, &[Change::ScaleX]));
    }
    Ok(out)
}

/// Weights that are not finite, or whose units start equal. Biases and gains may be equal, and so
/// may the weights of the last layer, since its units have different targets.
fn weights(module: &dyn Module) -> Result<Vec<Suspicion>> {
    let mut out = Vec::new();
    let all: Vec<(String, Tensor)> =
        module.named_parameters().into_iter().filter(|(_, p)| p.rank() > 1).collect();
    let last = all.len().saturating_sub(1);
    for (i, (name, p)) in all.into_iter().enumerate() {
        let numbers = p.to_f64_vec();
        let Some(&first) = numbers.first().filter(|_| p.shape().iter().all(|&n| n > 1)) else {
            continue;
        };
        if numbers.iter().any(|v| !v.is_finite()) {
            let text = format!("`{name}` holds a number that is none");
            out.push(sign(Cause::InitScale, 1.0, name, text, &[], &[Change::Init]));
        } else if i < last && numbers.iter().all(|&v| v == first) {
            let text = format!("all weights of `{name}` begin at {first}, so its units stay equal");
            let (value, init) = ([("weight", first)], [Change::Init]);
            out.push(sign(Cause::InitConstant, 0.9, name, text, &value, &init));
        }
    }
    Ok(out)
}

fn first_loss(
    module: &dyn Module,
    x: &Tensor,
    y: &Tensor,
    loss: &dyn Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Vec<Suspicion>> {
    let mut out = Vec::new();
    module.parameters().iter().for_each(Tensor::zero_grad);
    let first = loss(x, y)?;
    let value = first.try_item()?;
    if !value.is_finite() {
        let text = format!("the loss is {value} before the first step");
        let remedies = [Change::Init, Change::LossForm];
        out.push(sign(Cause::LossNumerics, 0.95, "loss", text, &[], &remedies));
        return Ok(out);
    }
    if y.dtype() == DType::I64 {
        let mut classes: Vec<i64> = y.to_vec();
        classes.retain(|&c| c >= 0);
        classes.sort_unstable();
        classes.dedup();
        let even = (classes.len().max(2) as f64).ln();
        if value > 10.0 * even {
            let text = format!(
                "the first loss is {value:.2}, and that of a guess among {} classes {even:.2}",
                classes.len()
            );
            let numbers = [("first_loss", value), ("loss_of_a_guess", even)];
            out.push(sign(
                Cause::InitScale,
                0.9,
                "the last layer",
                text,
                &numbers,
                &[Change::Init],
            ));
        }
    }
    if first.requires_grad() {
        first.try_backward()?;
        out.extend(gradients(module));
        module.parameters().iter().for_each(Tensor::zero_grad);
    }
    out.extend(mixing(x, y, loss)?);
    Ok(out)
}

/// Gradients of the weights from the first layer to the last.
fn gradients(module: &dyn Module) -> Vec<Suspicion> {
    let norm = |t: &Tensor| t.to_f64_vec().iter().map(|v| v * v).sum::<f64>().sqrt();
    let all: Vec<(String, f64)> = module
        .named_parameters()
        .into_iter()
        .filter(|(_, p)| p.rank() > 1)
        .filter_map(|(name, p)| Some((name, norm(&p.grad()?))))
        .collect();
    let ([(name, first), .., (last_name, last)], true) = (&all[..], all.len() > 1) else {
        return Vec::new();
    };
    if all.iter().all(|(_, g)| *g == 0.0) {
        let text = "all gradients are exactly 0 before the first step".to_owned();
        return vec![sign(Cause::InitScale, 1.0, name.clone(), text, &[], &[Change::Init])];
    }
    if all.len() > 2 && *first < 1e-5 * last {
        let text = format!(
            "the first gradient of `{name}` is {first:.1e}, that of `{last_name}` {last:.1e}: it vanishes on the way"
        );
        let numbers = [("first_layer", *first), ("last_layer", *last)];
        let remedies = [Change::ReluHidden, Change::Init];
        return vec![sign(Cause::HiddenActivation, 0.9, name.clone(), text, &numbers, &remedies)];
    }
    Vec::new()
}

/// The loss of a few rows together, compared with their losses one by one.
fn mixing(
    x: &Tensor,
    y: &Tensor,
    loss: &dyn Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Option<Suspicion>> {
    let rows = x.shape()[0].min(FEW);
    if rows < 2 {
        return Ok(None);
    }
    let part = |from: usize, n: usize| -> Result<(f64, f64)> {
        let (x, y) = (x.try_narrow(0, from, n)?, y.try_narrow(0, from, n)?);
        let counted = match y.dtype() {
            DType::I64 => y.to_vec::<i64>().iter().filter(|&&c| c >= 0).count(),
            _ => y.numel(),
        };
        Ok((no_grad(|| loss(&x, &y))?.try_item()?, counted as f64))
    };
    let (together, _) = part(0, rows)?;
    let each = (0..rows).map(|i| part(i, 1)).collect::<Result<Vec<_>>>()?;
    let counted: f64 = each.iter().map(|(_, n)| n).sum();
    if each.iter().any(|(l, n)| !l.is_finite() || *n == 0.0) || counted == 0.0 {
        return Ok(None);
    }
    let sum: f64 = each.iter().map(|(l, _)| l).sum();
    let mean = each.iter().map(|(l, n)| l * n).sum::<f64>() / counted;
    let same = |a: f64, b: f64| (a - b).abs() <= 1e-3 * a.abs().max(b.abs()).max(1e-6);
    if same(together, mean) {
        return Ok(None);
    }
    let numbers = [("loss_together", together), ("mean_of_rows", mean), ("rows", rows as f64)];
    Ok(Some(if same(together, sum) {
        let text = format!("the loss of {rows} rows is the sum of their losses, not the mean");
        sign(Cause::LossReduction, 0.7, "loss", text, &numbers, &[Change::LossForm])
    } else if same(together * rows as f64, mean) {
        let text = format!("the loss of {rows} rows is their mean divided by {rows} once more");
        sign(Cause::LossReduction, 0.9, "loss", text, &numbers, &[Change::LossForm])
    } else {
        let text = format!(
            "{rows} rows have the loss {together:.4} together and {mean:.4} on average by themselves: a row's answer depends on the others, or the loss is averaged over something else than rows"
        );
        sign(Cause::Architecture, 0.8, "model", text, &numbers, &[])
    }))
}

/// Whether an example's answer depends on another example, in evaluation mode: one is changed, and
/// the answers to the others must stay the same up to rounding.
///
/// # Errors
/// Errors of the model.
pub fn mixes_examples(model: &dyn Layer, x: &Tensor) -> Result<Option<Suspicion>> {
    let rows = x.shape().first().copied().unwrap_or(0).min(8);
    if rows < 4 {
        return Ok(None);
    }
    let x = x.try_narrow(0, 0, rows)?;
    let at = 2;
    let order: Vec<i64> = (0..rows as i64).map(|i| if i == at { i + 1 } else { i }).collect();
    let changed = x.try_index_select(0, &Tensor::from(order))?;
    let (before, after) = (answers(model, &x)?, answers(model, &changed)?);
    if before.len() != after.len() || !before.len().is_multiple_of(rows) {
        return Ok(None);
    }
    let width = before.len() / rows;
    let (size, moved) = (largest(&before), |row: usize| {
        let part = row * width..(row + 1) * width;
        apart(&before[part.clone()], &after[part])
    });
    let others = (0..rows).filter(|&row| row != at as usize);
    let worst = others.map(|row| (row, moved(row) / size)).max_by(|a, b| a.1.total_cmp(&b.1));
    Ok(worst.filter(|(_, share)| *share > 1e-4).map(|(row, share)| {
        let text = format!(
            "when row {at} of a batch is changed, the answer to row {row} moves by {:.2} %: an example's answer depends on another example",
            100.0 * share
        );
        sign(Cause::Architecture, 1.0, "model", text, &[("moved_share", share)], &[])
    }))
}

/// Whether an answer at a position of a sequence depends on a later position, which it is to
/// predict: `tokens` are `[rows, positions]` and answers `[rows, positions, ...]`. This finds a
/// missing causal mask, or one that is off by one.
///
/// # Errors
/// Errors of the model.
pub fn sees_the_future(model: &dyn Layer, tokens: &Tensor) -> Result<Option<Suspicion>> {
    let [rows, places] = tokens.shape()[..] else { return Ok(None) };
    if rows < 2 || places < 2 {
        return Ok(None);
    }
    let before = answers(model, tokens)?;
    if !before.len().is_multiple_of(rows * places) || before.is_empty() {
        return Ok(None);
    }
    let (size, width) = (largest(&before), before.len() / (rows * places));
    let numbers = tokens.to_f64_vec();
    for place in 1..places {
        let mut changed = numbers.clone();
        (0..rows)
            .for_each(|r| changed[r * places + place] = numbers[(r + 1) % rows * places + place]);
        if changed == numbers {
            continue;
        }
        let changed: Vec<i64> = changed.iter().map(|&t| t as i64).collect();
        let changed =
            Tensor::try_from_slice(&changed, [rows, places])?.try_to_dtype(tokens.dtype())?;
        let after = answers(model, &changed)?;
        for row in 0..rows {
            let part = row * places * width..(row * places + place) * width;
            let share = apart(&before[part.clone()], &after[part]) / size;
            if share > 1e-5 {
                let text = format!(
                    "an answer before place {place} depends on the token at place {place}, which it is to predict: no causal mask, or one that is off by one"
                );
                let numbers = [("place", place as f64), ("moved_share", share)];
                return Ok(Some(sign(Cause::Architecture, 1.0, "model", text, &numbers, &[])));
            }
        }
    }
    Ok(None)
}

/// Answers in evaluation mode.
fn answers(model: &dyn Layer, x: &Tensor) -> Result<Vec<f64>> {
    model.eval();
    let out = no_grad(|| model.try_forward(x));
    model.train();
    Ok(out?.to_f64_vec())
}

fn largest(numbers: &[f64]) -> f64 {
    numbers.iter().fold(1e-12, |m, v| m.max(v.abs()))
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |m, (a, b)| m.max((a - b).abs()))
}
