//! Other things that stand in the place of a gradient on the way: the right one rounded, laid out
//! in another order, moved by a place, or with the slope of another function; and operands that an
//! update had changed already.

use std::collections::HashMap;
use std::sync::Arc;

use chainrule_core::DType;

use super::case::{Case, GradientChange, label};
use super::evidence::short;
use super::fit::suspects;
use super::other::{Deviation, fraction};
use super::search::Effort;
use crate::autograd::vjp;
use crate::catalogue::fault::fitted;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};
use crate::tensor::op::Saved;
use crate::tensor::value::Value;

/// A gradient in place of another one, with words for it.
type Candidate = (Tensor, String);
/// A function whose slope may be taken for another one's.
type Slope = (&'static str, fn(&Tensor) -> Result<Tensor>);

/// Functions of one operand that are mistaken for one another.
const FUNCTIONS: [Slope; 17] = [
    ("tanh", |x| x.try_tanh()),
    ("sigmoid", |x| x.try_sigmoid()),
    ("relu", |x| x.try_relu()),
    ("silu", |x| x.try_silu()),
    ("gelu", |x| x.try_gelu()),
    ("gelu_tanh", |x| x.try_gelu_tanh()),
    ("softplus", |x| x.try_softplus(1.0, f64::INFINITY)),
    ("mish", |x| x.try_mish()),
    ("elu", |x| x.try_elu(1.0)),
    ("selu", |x| x.try_selu()),
    ("log_sigmoid", |x| x.try_log_sigmoid()),
    ("erf", |x| x.try_erf()),
    ("exp", |x| x.try_exp()),
    ("square", |x| x.try_square()),
    ("sin", |x| x.try_sin()),
    ("cos", |x| x.try_cos()),
    ("abs", |x| x.try_abs()),
];
/// The longest axis that is read in other blocks.
const LONGEST: usize = 64;
/// The most gradients with which the slopes are tried, for each tensor.
const ABOVE: usize = 12;

/// The first of these kinds that explains the case, at the places where it does.
pub(super) fn search(
    case: &mut Case,
    nodes: &[Arc<Node>],
    effort: &mut Effort,
) -> Result<Vec<Deviation>> {
    let mut found = Vec::new();
    let mut numbers = suspects(case);
    numbers.sort_unstable();
    for &number in &numbers {
        let gradient = case.tape.gradients[&number].clone();
        for (now, words) in layouts(&gradient)? {
            try_one(case, number, now, words, effort, &mut found)?;
        }
    }
    if found.is_empty() {
        for node in nodes {
            updated(case, node, effort, &mut found)?;
            indices(case, node, effort, &mut found)?;
        }
    }
    if found.is_empty() {
        slopes(case, &numbers, effort, &mut found)?;
    }
    found.truncate(3);
    Ok(found)
}

/// Tries a gradient in place of a tensor's own.
fn try_one(
    case: &mut Case,
    number: u64,
    now: Tensor,
    words: String,
    effort: &mut Effort,
    found: &mut Vec<Deviation>,
) -> Result<()> {
    effort.replays += 1;
    let source = case.tape.sources[&number].clone();
    let change = now.try_sub(&case.tape.gradients[&number])?;
    if case.explains(&[(source.clone(), change)])? {
        let node = match &source {
            Source::Node(node) => Some(node),
            _ => None,
        };
        let text = format!("the gradient of `{}` is {words}", label(&source));
        found.push(Deviation::at(node, label(&source), text));
    }
    Ok(())
}

/// The same numbers rounded, in another order, moved by one place, or put into whole columns.
fn layouts(gradient: &Tensor) -> Result<Vec<Candidate>> {
    let (shape, dtype) = (gradient.shape(), gradient.dtype());
    let mut out = Vec::new();
    for narrow in [DType::F32, DType::BF16, DType::F16] {
        if narrow != dtype {
            let rounded = gradient.try_to_dtype(narrow)?.try_to_dtype(dtype)?;
            out.push((rounded, format!("right but for its digits: it was rounded to {narrow}")));
        }
    }
    for i in 0..shape.rank() {
        for j in i + 1..shape.rank() {
            let mut sizes: Vec<usize> = shape.iter().copied().collect();
            sizes.swap(i, j);
            if shape[i] < 2 || shape[j] < 2 {
                continue;
            }
            let (a, b) = (i as i64, j as i64);
            let read = gradient.try_reshape(sizes)?.try_transpose(a, b)?;
            let words = format!(
                "the right one read in another order: as if the axes {i} and {j} were exchanged in memory"
            );
            out.push((read, words));
            if shape[i] == shape[j] {
                let turned = gradient.try_transpose(a, b)?;
                out.push((turned, format!("the right one with the axes {i} and {j} exchanged")));
            }
        }
        if shape[i] > 1 {
            for (by, word) in [(1, "further"), (-1, "back")] {
                let moved = gradient.try_roll(&[by], &[i as i64])?;
                out.push((
                    moved,
                    format!("the right one moved by one place {word} along axis {i}"),
                ));
            }
            let flipped = gradient.try_flip([i as i64])?;
            out.push((flipped, format!("the right one in the reverse order along axis {i}")));
        }
    }
    out.extend(blocks(gradient)?);
    out.extend(whole_columns(gradient)?);
    Ok(out)
}

/// The numbers with one axis read in other blocks: elements copied as a block, as by `tile`,
/// mistaken for elements repeated one by one.
fn blocks(gradient: &Tensor) -> Result<Vec<Candidate>> {
    let shape = gradient.shape();
    let mut out = Vec::new();
    for axis in 0..shape.rank() {
        let size = shape[axis];
        for count in (2..=size / 2).filter(|n| size <= LONGEST && size.is_multiple_of(*n)) {
            let mut sizes: Vec<usize> = shape.iter().copied().collect();
            sizes.splice(axis..=axis, [count, size / count]);
            let (a, b) = (axis as i64, axis as i64 + 1);
            let read =
                gradient.try_reshape(sizes)?.try_transpose(a, b)?.try_reshape(shape.to_vec())?;
            let words = format!(
                "the right one with axis {axis} in another order: as {count} blocks of {0}, which are {0} of {count} (whole copies one after the other, or each element copied by itself)",
                size / count
            );
            out.push((read, words));
        }
    }
    Ok(out)
}

/// Whole columns in place of one element of each row.
fn whole_columns(gradient: &Tensor) -> Result<Option<Candidate>> {
    let shape = gradient.shape();
    let [rows, columns] = shape[..] else { return Ok(None) };
    let all = gradient.to_f64_vec();
    let mut picked = Vec::new();
    for row in all.chunks(columns.max(1)) {
        let mut own = row.iter().enumerate().filter(|(_, x)| **x != 0.0);
        match (own.next(), own.next()) {
            (Some((at, x)), None) => picked.push((at, *x)),
            _ => return Ok(None),
        }
    }
    let Some(&(_, value)) = picked.first() else { return Ok(None) };
    if rows < 2 || picked.iter().any(|(_, x)| *x != value) {
        return Ok(None);
    }
    let mut whole = vec![0.0; all.len()];
    for (at, _) in &picked {
        (0..rows).for_each(|row| whole[row * columns + at] = value);
    }
    let whole = Tensor::try_from_slice(&whole, shape)?.try_to_dtype(gradient.dtype())?;
    let words = "put into all rows of the columns that are picked, where each row has one element";
    Ok(Some((whole, words.to_string())))
}

/// Indices in place of others, with words for them: those of the next row or the last one, in
/// reverse order, or one more or less, within each of the given sizes.
fn other_indices(index: &Tensor, sizes: &[usize]) -> Result<Vec<Candidate>> {
    let mut out = Vec::new();
    for axis in (0..index.rank()).filter(|&i| index.shape()[i] > 1) {
        for (by, word) in [(1, "further"), (-1, "back")] {
            let moved = index.try_roll(&[by], &[axis as i64])?;
            out.push((moved, format!("moved by one place {word} along axis {axis}")));
        }
        let words = format!("in the reverse order along axis {axis}");
        out.push((index.try_flip([axis as i64])?, words));
    }
    let all = index.to_f64_vec();
    let most = all.iter().copied().fold(0.0, f64::max);
    for &size in sizes.iter().filter(|&&size| size as f64 > most) {
        for (by, word) in [(1.0, "one more"), (size as f64 - 1.0, "one less")] {
            let other: Vec<f64> = all.iter().map(|x| (x + by) % size as f64).collect();
            let other = Tensor::try_from_slice(&other, index.shape())?;
            out.push((other.try_to_dtype(index.dtype())?, format!("{word} each, of {size}")));
        }
    }
    Ok(out)
}

/// Tries other indices in place of those that an op uses: labels, or picked positions.
fn indices(
    case: &mut Case,
    node: &Arc<Node>,
    effort: &mut Effort,
    found: &mut Vec<Deviation>,
) -> Result<()> {
    let Some(gradient) = case.tape.gradients.get(&node.number).cloned() else { return Ok(()) };
    let saved = lock(&node.saved).clone();
    let metas = node.inputs.iter().filter_map(Source::meta);
    let mut sizes: Vec<usize> = metas.flat_map(|meta| meta.shape.to_vec()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    for (place, right) in saved.inputs.iter().enumerate() {
        let Some(right) = right.as_ref().filter(|right| right.dtype() == DType::I64) else {
            continue;
        };
        let index = Tensor::from_parts(right.clone(), Source::None);
        for (other, words) in other_indices(&index, &sizes)? {
            let changed = (place, other.value());
            let Some(parts) = with_operand(case, node, &gradient, changed) else { continue };
            let mut changes: Vec<GradientChange> = Vec::new();
            for (i, part) in parts.into_iter().enumerate() {
                if let (Some(part), Some(right)) = (part, case.tape.part(node, i)) {
                    changes.push((node.inputs[i].clone(), part.try_sub(right)?));
                }
            }
            effort.replays += 1;
            if !changes.is_empty() && case.explains(&changes)? {
                let text = format!(
                    "the indices of `{}` (input {place}) stand there {words}",
                    node.op.name()
                );
                let tensor = label(&Source::Node(node.clone()));
                found.push(Deviation::at(Some(node), tensor, text));
            }
        }
    }
    Ok(())
}

/// The parts of the gradient by the rule of `node` with another value in place of an operand, or,
/// after the last operand, of the result; none if the rule does not accept it.
pub(super) fn with_operand(
    case: &Case,
    node: &Arc<Node>,
    gradient: &Tensor,
    (place, value): (usize, Arc<Value>),
) -> Option<Vec<Option<Tensor>>> {
    let wanted = case.tape.wanted(node);
    let mut saved = lock(&node.saved).clone();
    match saved.inputs.get_mut(place) {
        Some(input) => *input = Some(value),
        None => saved.output = Some(value),
    }
    let parts = node.op.vjp(&Saved::new(node, &saved, false), gradient, wanted).ok()?;
    fitted(node, parts, wanted).ok()
}

/// Tries an operand after an update: itself and a number times its gradient.
fn updated(
    case: &mut Case,
    node: &Arc<Node>,
    effort: &mut Effort,
    found: &mut Vec<Deviation>,
) -> Result<()> {
    let Some(gradient) = case.tape.gradients.get(&node.number).cloned() else { return Ok(()) };
    let saved = lock(&node.saved).clone();
    for (place, input) in node.inputs.iter().enumerate() {
        let Some(slope) = case.tape.gradients.get(&input.number()).cloned() else { continue };
        let Some(Some(right)) = saved.inputs.get(place) else { continue };
        if slope.meta() != right.meta {
            continue;
        }
        let changed = (place, slope.value());
        let Some(parts) = with_operand(case, node, &gradient, changed) else { continue };
        let changes: Vec<GradientChange> = parts
            .into_iter()
            .enumerate()
            .filter(|(i, _)| *i != place)
            .filter_map(|(i, part)| Some((node.inputs[i].clone(), part?)))
            .collect();
        effort.replays += 1;
        if changes.is_empty() {
            continue;
        }
        if let Some(rate) = case.factor(&changes)?
            && rate.abs() > 1e-9
        {
            let (name, sign) = (label(input), if rate < 0.0 { "-" } else { "+" });
            let size = rate.abs();
            let near = (size * 1e4).round() / 1e4;
            let size = if (near - size).abs() < 1e-7 { short(near) } else { fraction(size) };
            let text = format!(
                "`{name}` stands there as it is after an update, `{name}` {sign} {size} times its gradient: the gradients are taken before any update"
            );
            let tensor = label(&Source::Node(node.clone()));
            let at = Deviation::at(Some(node), tensor, text);
            found.push(at);
        }
    }
    Ok(())
}

/// Tries the slopes of other functions of a value, with the gradient of each later tensor of its
/// shape.
fn slopes(
    case: &mut Case,
    numbers: &[u64],
    effort: &mut Effort,
    found: &mut Vec<Deviation>,
) -> Result<()> {
    let values = values(case);
    for &number in numbers {
        let Some(value) = values.get(&number) else { continue };
        let x = Tensor::from_parts(value.clone(), Source::None);
        let mut above: Vec<u64> = case.tape.gradients.keys().copied().collect();
        above.retain(|n| *n > number && case.tape.gradients[n].meta() == x.meta());
        above.sort_unstable();
        for &later in above.iter().take(ABOVE) {
            let g = case.tape.gradients[&later].clone();
            for (name, f) in FUNCTIONS {
                let slope = |x: &[Tensor]| f(&x[0]).unwrap_or_else(|_| x[0].clone());
                let Ok((_, parts)) = vjp(slope, std::slice::from_ref(&x), &g) else { continue };
                let of = label(&case.tape.sources[&later]);
                let words = format!("that of `{of}` times the slope of `{name}`");
                try_one(case, number, parts[0].clone(), words, effort, found)?;
            }
        }
    }
    Ok(())
}

/// The values of tensors by their numbers, as far as they are at hand.
pub(super) fn values(case: &Case) -> HashMap<u64, Arc<Value>> {
    let mut found: HashMap<u64, Arc<Value>> = case.tape.computed().into_iter().collect();
    found.extend(case.tape.leaves());
    for (number, node) in &case.tape.nodes {
        let saved = lock(&node.saved).clone();
        for (input, value) in node.inputs.iter().zip(saved.inputs) {
            if let (Some(value), true) = (value, input.number() > 0) {
                found.insert(input.number(), value);
            }
        }
        found.extend(saved.output.map(|v| (*number, v)));
    }
    found.retain(|_, value| value.dtype().is_float());
    found
}
