//! Tensors as JSON.

pub use chainrule::json::{number, numbers, tensor, tensor_up_to};
use chainrule::{DType, Tensor};
use serde_json::{Value, json};

/// The most elements of a tensor that was asked for by name.
pub const ASKED: usize = 65_536;

/// Bars of a histogram.
const BARS: usize = 30;

/// A tensor as it travels first: `shape`, `dtype`, the elements as `data` where they are no more
/// than `most`, and of its finite elements the root mean square, `rms`, and the largest magnitude,
/// `largest`.
pub fn brief(t: &Tensor, most: usize) -> Value {
    sized(t, &Size::of(t), most)
}

/// As [`brief`], of a tensor whose size is known.
pub fn sized(t: &Tensor, size: &Size, most: usize) -> Value {
    let mut out = tensor_up_to(t, most);
    out["rms"] = number((size.squares / size.count.max(1.0)).sqrt());
    out["largest"] = number(size.largest);
    out
}

/// Sums over finite elements.
#[derive(Default, Clone, Copy)]
pub struct Size {
    squares: f64,
    count: f64,
    largest: f64,
}

impl Size {
    pub fn of(t: &Tensor) -> Size {
        let f32s = |bytes: &[u8]| {
            Size::sum(bytes.as_chunks().0.iter().map(|x| f64::from(f32::from_le_bytes(*x))))
        };
        match t.dtype() {
            DType::F32 => t.try_with_bytes(f32s).unwrap_or_default(),
            _ => Size::sum(t.to_f64_vec().into_iter()),
        }
    }

    /// Eight sums side by side, so that the processor adds them at once: a page of a large model
    /// waits for a hundred million elements.
    fn sum(elements: impl Iterator<Item = f64>) -> Size {
        let mut sums = [Size::default(); 8];
        for (i, x) in elements.enumerate() {
            let (x, one) = if x.is_finite() { (x, 1.0) } else { (0.0, 0.0) };
            let sum = &mut sums[i % 8];
            sum.squares += x * x;
            sum.count += one;
            sum.largest = sum.largest.max(x.abs());
        }
        let add = |a: Size, b: Size| Size {
            squares: a.squares + b.squares,
            count: a.count + b.count,
            largest: a.largest.max(b.largest),
        };
        sums.into_iter().fold(Size::default(), add)
    }
}

/// A tensor that is looked at: statistics, histogram, and the size of the matrix as which its
/// elements may be asked for.
pub fn look(t: &Tensor, most: usize) -> Value {
    let elements = t.to_f64_vec();
    let blocks = Blocks::of(t, most);
    json!({
        "shape": t.shape().to_vec(),
        "dtype": t.dtype().name(),
        "stats": statistics(&elements),
        "histogram": histogram(&elements),
        "slice": {"shape": blocks.shape(), "reduced": blocks.is_reduced()},
    })
}

/// The elements as a matrix of at most `most` rows and columns, or as a row of at most the square
/// of that, as bytes in the order of little
/// ends: the number of the request, the rows, the columns, and a word of flags, 1 for means of
/// blocks and 2 for elements of f64 in the place of f32; then the elements.
pub fn slice(id: u32, t: &Tensor, most: usize) -> Vec<u8> {
    let blocks = Blocks::of(t, most);
    let [rows, columns] = blocks.shape();
    let is_wide = t.dtype() == DType::F64;
    let flags = u32::from(blocks.is_reduced()) + 2 * u32::from(is_wide);
    let mut out = Vec::with_capacity(16 + 8 * rows * columns);
    let head = [id, rows as u32, columns as u32, flags];
    head.iter().for_each(|word| out.extend(word.to_le_bytes()));
    for x in blocks.means(&t.to_f64_vec()) {
        match is_wide {
            true => out.extend(x.to_le_bytes()),
            false => out.extend((x as f32).to_le_bytes()),
        }
    }
    out
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

/// A tensor as a matrix whose columns are the last axis, in blocks that become one cell each.
struct Blocks {
    rows: usize,
    columns: usize,
    height: usize,
    width: usize,
}

impl Blocks {
    fn of(t: &Tensor, most: usize) -> Blocks {
        let columns = t.shape().last().copied().unwrap_or(1).max(1);
        let rows = t.numel() / columns;
        let most = most.clamp(1, 512);
        // A single row is shown as a rectangle.
        let across = if rows == 1 { most * most } else { most };
        let (height, width) = (rows.div_ceil(most).max(1), columns.div_ceil(across).max(1));
        Blocks { rows, columns, height, width }
    }

    fn shape(&self) -> [usize; 2] {
        [self.rows.div_ceil(self.height), self.columns.div_ceil(self.width)]
    }

    fn is_reduced(&self) -> bool {
        self.height * self.width > 1
    }

    fn means(&self, elements: &[f64]) -> impl Iterator<Item = f64> + use<> {
        let [down, across] = self.shape();
        let mut sums = vec![(0.0, 0.0); down * across];
        for (i, &x) in elements.iter().enumerate() {
            let row = i / self.columns / self.height;
            let cell = &mut sums[row * across + i % self.columns / self.width];
            *cell = (cell.0 + x, cell.1 + 1.0);
        }
        sums.into_iter().map(|(sum, count)| sum / count)
    }
}

/// A tensor of integers.
pub fn sizes(of: &[usize]) -> Value {
    json!({"shape": [of.len()], "dtype": DType::I64.name(), "data": of})
}
