//! Factors by which the rows, columns or elements of an intermediate gradient were multiplied,
//! solved for from the given gradients.
//!
//! Every given gradient depends linearly on the gradient of a tensor above it, so the factors of
//! that tensor's rows solve linear equations: one for each given element, of which there must be
//! far more than factors. This finds a dropped row, the rows of one class with another sign, a
//! weight for each sample and a mask, none of which is an op.

use std::sync::Arc;

use super::case::{Case, Observed, label};
use super::other::{Deviation, fraction};
use super::search::Effort;
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::tensor::node::{Node, Source, lock};

/// The most factors that are solved for.
const MOST: usize = 160;
/// The most work, in elements that are walked down.
const WORK: usize = 40_000_000;

/// Factors of the rows of a gradient along an axis, or of its elements.
struct Factors {
    number: u64,
    axis: Option<usize>,
    each: Vec<f64>,
}

/// The simplest factors that explain the case, in as many places as they do.
pub(super) fn search(case: &mut Case, effort: &mut Effort) -> Result<Vec<Deviation>> {
    let mut numbers = suspects(case);
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    let mut found: Vec<Factors> = Vec::new();
    let mut work = 0;
    for by_element in [false, true] {
        for &number in &numbers {
            let shape = case.tape.gradients[&number].shape();
            let axes: Vec<Option<usize>> = match by_element {
                false => (0..shape.rank()).map(Some).collect(),
                true => vec![None],
            };
            for axis in axes {
                let count = axis.map_or(shape.numel(), |a| shape[a]);
                work += count * case.observed.iter().map(|o| o.right.len()).sum::<usize>();
                let fits = (2..=MOST).contains(&count) && work <= WORK;
                if !fits || axis.is_some() && shape.rank() < 2 {
                    continue;
                }
                effort.replays += 1;
                if let Some(each) = factors(case, number, axis)? {
                    found.push(Factors { number, axis, each });
                }
            }
        }
        if !found.is_empty() {
            break;
        }
    }
    // The fewer different factors, the likelier; of those alike the place nearest to the loss.
    let Some(least) = found.iter().map(|f| distinct(&f.each)).min() else { return Ok(Vec::new()) };
    let best = found.iter().filter(|f| distinct(&f.each) == least).take(3);
    Ok(best.map(|f| said(case, f)).collect())
}

/// The tensors whose gradients every wrong one depends on.
pub(super) fn suspects(case: &Case) -> Vec<u64> {
    let right = case.numbers(false);
    let mut common: Option<std::collections::HashSet<u64>> = None;
    for wrong in case.numbers(true) {
        let own = case.tape.suspects(wrong, &right);
        common = Some(match common {
            None => own,
            Some(before) => before.intersection(&own).copied().collect(),
        });
    }
    let known = |n: &u64| case.tape.gradients.contains_key(n) && case.tape.sources.contains_key(n);
    common.unwrap_or_default().into_iter().filter(known).collect()
}

fn distinct(x: &[f64]) -> usize {
    let mut seen: Vec<f64> = Vec::new();
    for x in x {
        if !seen.iter().any(|s| (s - x).abs() <= 1e-6) {
            seen.push(*x);
        }
    }
    seen.len()
}

/// The position along `axis` (or the element itself) of each element.
fn groups(shape: &Shape, axis: Option<usize>) -> Vec<usize> {
    let Some(axis) = axis else { return (0..shape.numel()).collect() };
    let inner: usize = shape[axis + 1..].iter().product();
    (0..shape.numel()).map(|i| i / inner % shape[axis]).collect()
}

/// The factors by which the parts of one gradient must be multiplied to make the right gradients
/// into the given ones.
fn factors(case: &mut Case, number: u64, axis: Option<usize>) -> Result<Option<Vec<f64>>> {
    let gradient = case.tape.gradients[&number].clone();
    let source = case.tape.sources[&number].clone();
    let (elements, shape) = (gradient.to_f64_vec(), gradient.shape());
    let group = groups(&shape, axis);
    let count = axis.map_or(shape.numel(), |a| shape[a]);
    let scale: Vec<f64> = case.observed.iter().map(|o| scale(case, o)).collect();
    let flat = |all: &[Vec<f64>]| -> Vec<f64> {
        all.iter().zip(&scale).flat_map(|(x, s)| x.iter().map(move |x| x * s)).collect()
    };
    let mut columns = Vec::new();
    for k in 0..count {
        let pick = |(x, g): (&f64, &usize)| if *g == k { *x } else { 0.0 };
        let own: Vec<f64> = elements.iter().zip(&group).map(pick).collect();
        if own.iter().all(|x| *x == 0.0) {
            columns.push(Vec::new());
            continue;
        }
        let part = Tensor::try_from_slice(&own, shape)?.try_to_dtype(gradient.dtype())?;
        columns.push(flat(&case.effect(&[(source.clone(), part)])?));
    }
    let missing: Vec<Vec<f64>> = case
        .observed
        .iter()
        .map(|o| o.given.iter().zip(&o.right).map(|(g, r)| g - r).collect())
        .collect();
    let missing = flat(&missing);
    let Some((found, rank)) = least_squares(&columns, &missing) else { return Ok(None) };
    let (f64s, allowed) = (case.closeness.relative < 1e-6, case.closeness.relative * 10.0);
    let left = residual(&columns, &found, &missing);
    let moved = missing.iter().filter(|m| m.abs() > allowed).count();
    let each: Vec<f64> = found.iter().map(|x| tidy(1.0 + x, f64s)).collect();
    // A factor of 0, 1 or the like needs no fitting; each other one uses up an equation.
    let plain = |x: &f64| [0.0, 1.0, -1.0, 2.0, 0.5].contains(x);
    let free = each.iter().filter(|x| !plain(x)).count().min(distinct(&each));
    let enough = moved >= 3 * free.max(1) && missing.len() >= rank + rank / 2 + 4
        || free <= 1 && moved >= 4 && missing.len() > rank;
    // With a factor of its own for each element, any gradient can be explained.
    let simple = axis.is_some() || free <= 2 && distinct(&each) * 4 <= each.len().max(8);
    Ok((left <= allowed && enough && simple && distinct(&each) > 1).then_some(each))
}

/// The factor of a gradient's differences by which the allowed one becomes the relative error of
/// the dtype: a gradient that is nothing but rounding beside the others counts as little.
pub(super) fn scale(case: &Case, o: &Observed) -> f64 {
    let allowed = case.closeness.allowed(&o.right, &o.given) + o.slack;
    case.closeness.relative / allowed.max(1e-300)
}

/// The factors with which the columns best add up to a vector (0 for dependent columns), and how
/// many columns are independent.
fn least_squares(columns: &[Vec<f64>], sum: &[f64]) -> Option<(Vec<f64>, usize)> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    if columns.iter().flatten().chain(sum).any(|x| !x.is_finite()) {
        return None;
    }
    let mut basis: Vec<(usize, Vec<f64>)> = Vec::new();
    // Row k of the triangle: column k as a sum of the basis.
    let mut triangle: Vec<Vec<f64>> = Vec::new();
    let mut found = vec![0.0; columns.len()];
    for (k, column) in columns.iter().enumerate().filter(|(_, c)| !c.is_empty()) {
        let (mut rest, mut row) = (column.clone(), vec![0.0; basis.len()]);
        // Orthogonalised twice, so that rounding leaves nothing of the basis.
        for _ in 0..2 {
            for (i, (_, b)) in basis.iter().enumerate() {
                let along = dot(&rest, b);
                row[i] += along;
                rest.iter_mut().zip(b).for_each(|(r, b)| *r -= along * b);
            }
        }
        let (size, own) = (dot(&rest, &rest).sqrt(), dot(column, column).sqrt());
        if size <= 1e-8 * own || own == 0.0 {
            continue;
        }
        rest.iter_mut().for_each(|r| *r /= size);
        row.push(size);
        basis.push((k, rest));
        triangle.push(row);
    }
    let mut along: Vec<f64> = basis.iter().map(|(_, b)| dot(b, sum)).collect();
    for k in (0..basis.len()).rev() {
        let x = along[k] / triangle[k][k];
        found[basis[k].0] = x;
        for (i, a) in along.iter_mut().enumerate().take(k) {
            *a -= x * triangle[k][i];
        }
    }
    Some((found, basis.len()))
}

fn residual(columns: &[Vec<f64>], by: &[f64], sum: &[f64]) -> f64 {
    let mut left = sum.to_vec();
    for (column, x) in columns.iter().zip(by) {
        left.iter_mut().zip(column).for_each(|(l, c)| *l -= x * c);
    }
    left.iter().fold(0.0, |m, l| m.max(l.abs()))
}

/// A factor that rounding moved from a small fraction.
fn tidy(x: f64, exact: bool) -> f64 {
    let near = if exact { 1e-6 } else { 2e-3 };
    let below =
        (1..=64).map(f64::from).find(|d| ((x * d).round() - x * d).abs() <= near * d.min(4.0));
    below.map_or(x, |d| (x * d).round() / d + 0.0)
}

/// The factors in words.
fn said(case: &Case, f: &Factors) -> Deviation {
    let source = &case.tape.sources[&f.number];
    let shape = case.tape.gradients[&f.number].shape();
    let what = match f.axis {
        Some(0) => "rows".to_string(),
        Some(axis) if axis + 1 == shape.rank() => "columns".to_string(),
        Some(axis) => format!("slices along axis {axis}"),
        None => "elements".to_string(),
    };
    let name = |k: usize| match f.axis {
        Some(_) => k.to_string(),
        None => format!("{:?}", super::evidence::index_of(k, &shape)),
    };
    let n = f.each.len();
    let by_place = (0..n).all(|k| (f.each[k] * n as f64 - (k + 1) as f64).abs() < 1e-6);
    let text = if by_place {
        format!(
            "its {what} are multiplied by 1/{n}, 2/{n}, ... {n}/{n}: by (i + 1) / n, a weight for each"
        )
    } else {
        let mut values: Vec<f64> = Vec::new();
        for x in f.each.iter().filter(|x| **x != 1.0) {
            if !values.contains(x) {
                values.push(*x);
            }
        }
        let parts = values.iter().map(|v| {
            let at: Vec<usize> = (0..n).filter(|&k| f.each[k] == *v).collect();
            let which = match labelled(case, &at, n) {
                Some(words) => words,
                None => at.iter().map(|&k| name(k)).collect::<Vec<_>>().join(", "),
            };
            match *v {
                0.0 => format!("{which} of {n} are 0"),
                v => format!("{which} of {n} are {} times the right ones", fraction(v)),
            }
        });
        format!("of its {what} {}", parts.collect::<Vec<_>>().join("; "))
    };
    let node = match source {
        Source::Node(node) => Some(node),
        _ => None,
    };
    let text = format!("the gradient of `{}` is right but for this: {text}", label(source));
    Deviation::at(node, label(source), text)
}

/// The rows as those of one class, if whole numbers of the forward pass distinguish them from the
/// others.
fn labelled(case: &Case, rows: &[usize], n: usize) -> Option<String> {
    let of_node = |node: &Arc<Node>| {
        let saved = lock(&node.saved).clone();
        let ints = saved
            .inputs
            .into_iter()
            .flatten()
            .filter(|v| v.dtype() == chainrule_core::DType::I64 && v.shape().numel() == n);
        let labels: Vec<Vec<f64>> =
            ints.map(|v| Tensor::from_parts(v, Source::None).to_f64_vec()).collect();
        labels.into_iter().map(|l| (node.op.name(), l)).collect::<Vec<_>>()
    };
    for (op, labels) in case.tape.nodes.values().flat_map(of_node) {
        let class = labels[*rows.first()?];
        let of_class: Vec<usize> = (0..n).filter(|&i| labels[i] == class).collect();
        if of_class == rows && rows.len() < n {
            let list: Vec<String> = rows.iter().map(usize::to_string).collect();
            return Some(format!("those whose index in `{op}` is {class} ({})", list.join(", ")));
        }
    }
    None
}
