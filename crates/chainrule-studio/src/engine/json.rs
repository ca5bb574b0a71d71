//! Tensors as JSON.

pub use chainrule::json::{number, numbers, tensor, tensor_up_to};
use chainrule::{DType, Tensor};
use serde_json::{Value, json};

/// The most elements of a tensor that was asked for by name.
pub const ASKED: usize = 65_536;

/// Bars of a histogram.
const BARS: usize = 30;

/// A tensor that is looked at: statistics, histogram, and the elements as a matrix
/// of at most `most` rows and columns.
pub fn look(t: &Tensor, most: usize) -> Value {
    let elements = t.to_f64_vec();
    json!({
        "shape": t.shape().to_vec(),
        "dtype": t.dtype().name(),
        "stats": statistics(&elements),
        "histogram": histogram(&elements),
        "slice": slice(t, &elements, most),
    })
}

fn statistics(of: &[f64]) -> Value {
    let finite: Vec<f64> = of.iter().copied().filter(|x| x.is_finite()).collect();
    let n = finite.len() as f64;
    let mean = finite.iter().sum::<f64>() / n;
    let squares: f64 = finite.iter().map(|x| (x - mean).powi(2)).sum();
    json!({
        "min": number(finite.iter().copied().fold(f64::INFINITY, f64::min)),
        "max": number(finite.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        "mean": number(mean),
        "std": number((squares / n).sqrt()),
        "norm": number(of.iter().map(|x| x * x).sum::<f64>().sqrt()),
        "zeros": of.iter().filter(|&&x| x == 0.0).count(),
        "nonfinite": of.len() - finite.len(),
        "count": of.len(),
    })
}

/// Mean, standard deviation of the sample, norm and share of zeros, as the table of `train names`
/// has them.
pub fn spread(of: &[f64]) -> Value {
    let n = of.len() as f64;
    let mean = of.iter().sum::<f64>() / n;
    let squares: f64 = of.iter().map(|x| (x - mean).powi(2)).sum();
    json!({
        "mean": number(mean),
        "std": number((squares / (n - 1.0)).sqrt()),
        "norm": number(of.iter().map(|x| x * x).sum::<f64>().sqrt()),
        "zeros": of.iter().filter(|&&x| x == 0.0).count() as f64 / n,
    })
}

/// Counts of the finite elements between their ends.
pub fn histogram(of: &[f64]) -> Value {
    let finite: Vec<f64> = of.iter().copied().filter(|x| x.is_finite()).collect();
    let low = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let high = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if finite.is_empty() {
        return json!({"edges": [0.0, 1.0], "counts": [0]});
    }
    let width = match (high - low) / BARS as f64 {
        width if width > 0.0 && width.is_finite() => width,
        _ => 1.0 / BARS as f64,
    };
    let mut counts = [0usize; BARS];
    for x in finite {
        counts[(((x - low) / width) as usize).min(BARS - 1)] += 1;
    }
    let edges: Vec<f64> = (0..=BARS).map(|i| low + width * i as f64).collect();
    json!({"edges": edges, "counts": counts})
}

/// The tensor as a matrix whose columns are the last axis; blocks of a large one are averaged.
fn slice(t: &Tensor, elements: &[f64], most: usize) -> Value {
    let columns = t.shape().last().copied().unwrap_or(1).max(1);
    let rows = elements.len() / columns;
    let most = most.clamp(1, 512);
    let (height, width) = (rows.div_ceil(most).max(1), columns.div_ceil(most).max(1));
    let (down, across) = (rows.div_ceil(height), columns.div_ceil(width));
    let mut sums = vec![(0.0, 0.0); down * across];
    for (i, &x) in elements.iter().enumerate() {
        let cell = &mut sums[(i / columns / height) * across + i % columns / width];
        *cell = (cell.0 + x, cell.1 + 1.0);
    }
    let data: Vec<f64> = sums.into_iter().map(|(sum, count)| sum / count).collect();
    json!({"shape": [down, across], "data": numbers(&data), "reduced": height * width > 1})
}

/// A tensor of integers.
pub fn sizes(of: &[usize]) -> Value {
    json!({"shape": [of.len()], "dtype": DType::I64.name(), "data": of})
}
