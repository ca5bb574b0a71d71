//! The data: their scale, balance and order, and whether they contain information about the
//! targets.

use super::{Findings, Seen, target_range};
use crate::cause::Cause;
use crate::change::Change::*;
use crate::data::{Prepared, Targets};
use crate::description::{Loss, Task};

/// Tables with more columns are images, which are examined as a whole.
const WIDE: usize = 200;
/// The most rows used to measure what inputs say about targets.
const LOOKED_AT: usize = 800;
/// A class is rare if the largest one has more than this many times its rows.
const RARE: usize = 10;

/// Mean, deviation and largest size of each column.
fn columns(x: &[f32], columns: usize) -> Vec<(f64, f64)> {
    let rows = (x.len() / columns.max(1)).max(1) as f64;
    let one = |j: usize| {
        let values = || x.iter().skip(j).step_by(columns).map(|&v| f64::from(v));
        let mean = values().sum::<f64>() / rows;
        (mean, (values().map(|v| (v - mean).powi(2)).sum::<f64>() / rows).sqrt())
    };
    (0..columns).map(one).collect()
}

pub(super) fn look(seen: &Seen<'_>, all: &mut Findings) {
    inputs(seen, all);
    targets(seen, all);
}

/// First place at which the data are not finite.
pub(crate) fn not_finite(data: &Prepared) -> Option<String> {
    if data.is_finite() {
        return None;
    }
    let row = |at: usize| at / data.columns().max(1);
    Some(match data.x.iter().position(|v| !v.is_finite()) {
        Some(at) => format!("row {} of the inputs has the value {}", row(at), data.x[at]),
        None => "a target is not finite".to_string(),
    })
}

fn inputs(seen: &Seen<'_>, all: &mut Findings) {
    let data = seen.data;
    let largest = data.x.iter().fold(0.0f64, |m, &v| m.max(f64::from(v.abs())));
    let mean = data.x.iter().map(|&v| f64::from(v.abs())).sum::<f64>() / data.x.len().max(1) as f64;
    let is_table = data.shape.len() == 1 && data.columns() <= WIDE;
    let spread = match is_table {
        true => {
            let deviations: Vec<f64> =
                columns(&data.x, data.columns()).iter().map(|c| c.1).filter(|&s| s > 0.0).collect();
            let (low, high) =
                deviations.iter().fold((f64::INFINITY, 0.0f64), |(a, b), &s| (a.min(s), b.max(s)));
            if deviations.len() > 1 { high / low } else { 1.0 }
        }
        false => 1.0,
    };
    let place = "preprocessing";
    if largest > 20.0 {
        let strength = (0.5 + (largest / 20.0).log10() / 2.0).min(0.95);
        all.add(
            Cause::InputScale,
            strength,
            place,
            format!("inputs up to {largest:.3e}"),
            &[ScaleX],
        )
        .with(&[("largest_input", largest)]);
    } else if spread > 100.0 {
        let text = format!("columns differ {spread:.0} times in spread");
        all.add(Cause::InputScale, 0.7, place, text, &[ScaleX]).with(&[("spread_ratio", spread)]);
    } else if mean < 0.01 && largest < 0.1 {
        all.add(
            Cause::InputScale,
            0.9,
            place,
            format!("inputs of at most {largest:.2e}"),
            &[ScaleX],
        )
        .with(&[("largest_input", largest)]);
    } else if largest > 4.0 && is_table {
        all.add(Cause::InputScale, 0.2, place, format!("inputs up to {largest:.3}"), &[ScaleX])
            .with(&[("largest_input", largest)]);
    }
}

fn targets(seen: &Seen<'_>, all: &mut Findings) {
    let data = seen.data;
    let task = seen.program.task;
    if let (Targets::Numbers { numbers, .. }, Task::Regression) = (&data.y, task) {
        let n = numbers.len().max(1) as f64;
        let size = numbers.iter().map(|&v| f64::from(v.abs())).sum::<f64>() / n;
        let mean = numbers.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let spread =
            (numbers.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n).sqrt();
        let largest = size.max(spread);
        if largest > 10.0 {
            let strength = (0.5 + (largest / 10.0).log10() / 2.0).min(0.95);
            all.add(
                Cause::TargetScale,
                strength,
                "preprocessing",
                format!("targets of size {largest:.3e}"),
                &[ScaleY],
            )
            .with(&[("target_size", largest)]);
        } else if mean.abs() > 3.0 * spread && spread > 0.0 {
            let text = format!("targets of mean {mean:.3} and spread {spread:.3}");
            all.add(Cause::TargetScale, 0.5, "preprocessing", text, &[ScaleY])
                .with(&[("target_mean", mean), ("target_spread", spread)]);
        }
    }
    let (low, high) = target_range(&data.y);
    let same = match &data.y {
        Targets::Classes(classes) => classes.iter().all(|c| *c == classes[0]),
        Targets::Numbers { numbers, .. } => match data.y.columns() {
            1 => low == high,
            k => numbers.chunks_exact(k).all(|row| row == &numbers[..k]),
        },
    };
    if same && data.rows > 1 {
        all.add(Cause::Labels, 1.0, "data", "all targets are equal", &[]);
    }
    let order = data.y.classes();
    let turns = order.windows(2).filter(|p| p[0] != p[1]).count();
    if !seen.program.shuffle
        && task.is_classes()
        && data.rows > 20
        && 5 * turns < data.rows.min(200)
    {
        let text = format!(
            "rows are not shuffled, and the class changes {turns} times in {} rows",
            data.rows
        );
        all.add(Cause::DataOrder, 0.9, "shuffle", text, &[Shuffle])
            .with(&[("class_changes", turns as f64), ("rows", data.rows as f64)]);
    }
    if task.is_classes() {
        let counts = counts(&data.y);
        let (most, least) = (counts.iter().max(), counts.iter().min());
        if let (Some(&most), Some(&least)) = (most, least)
            && counts.len() > 1
            && most > RARE * least
        {
            let text = format!("the largest class has {most} rows, the smallest {least}");
            all.add(Cause::Unbalanced, 0.9, "data", text, &[])
                .with(&[("largest_class", most as f64), ("smallest_class", least as f64)]);
        }
    }
}

/// Classes with less than a tenth of the rows of the largest one.
pub(crate) fn rare_classes(y: &Targets) -> Vec<i64> {
    let mut sorted = y.classes();
    sorted.sort_unstable();
    let most = sorted.chunk_by(|a, b| a == b).map(<[i64]>::len).max().unwrap_or(0);
    let rare = sorted.chunk_by(|a, b| a == b).filter(|rows| most > RARE * rows.len());
    rare.map(|rows| rows[0]).collect()
}

/// The rows of each class that occurs.
pub(super) fn counts(y: &Targets) -> Vec<usize> {
    let mut sorted = y.classes();
    sorted.sort_unstable();
    sorted.chunk_by(|a, b| a == b).map(<[i64]>::len).collect()
}

/// The loss of the best constant answer, for losses where it is known.
pub(crate) fn constant_loss(loss: Loss, y: &Targets) -> Option<f64> {
    let entropy =
        |shares: &[f64]| -shares.iter().filter(|&&p| p > 0.0).map(|p| p * p.ln()).sum::<f64>();
    match (loss, y) {
        (Loss::Mse, Targets::Numbers { numbers, .. }) => {
            let c = columns(numbers, y.columns());
            Some(c.iter().map(|(_, s)| s * s).sum::<f64>() / c.len().max(1) as f64)
        }
        (Loss::Mae, Targets::Numbers { numbers, .. }) => {
            let mut sorted = numbers.clone();
            sorted.sort_by(f32::total_cmp);
            let middle = f64::from(sorted[sorted.len() / 2]);
            Some(
                numbers.iter().map(|&v| (f64::from(v) - middle).abs()).sum::<f64>()
                    / numbers.len() as f64,
            )
        }
        (Loss::BceProbs | Loss::BceLogits, Targets::Numbers { numbers, .. }) => {
            let inside = numbers.iter().all(|v| (0.0..=1.0).contains(v));
            let one = |(m, _): &(f64, f64)| {
                let p = m.clamp(1e-6, 1.0 - 1e-6);
                entropy(&[p, 1.0 - p])
            };
            let c = columns(numbers, y.columns());
            inside.then(|| c.iter().map(one).sum::<f64>() / c.len().max(1) as f64)
        }
        (
            Loss::CceProbs | Loss::CceLogits | Loss::ScceProbs | Loss::ScceLogits | Loss::CeClip32,
            _,
        ) => {
            if y.columns() == 1 && matches!(y, Targets::Numbers { .. }) {
                return None;
            }
            let counts = counts(y);
            let n = counts.iter().sum::<usize>().max(1) as f64;
            Some(entropy(&counts.iter().map(|&c| c as f64 / n).collect::<Vec<_>>()))
        }
        _ => None,
    }
}

/// The share of the rows of one set that also occur in another, bit for bit.
pub(crate) fn share_of_copies(of: &Prepared, among: &Prepared) -> f64 {
    let key = |row: &[f32]| row.iter().map(|v| v.to_bits()).collect::<Vec<u32>>();
    let columns = of.columns();
    let known: std::collections::HashSet<Vec<u32>> =
        among.x.chunks_exact(columns).map(key).collect();
    let copies = of.x.chunks_exact(columns).filter(|row| known.contains(&key(row))).count();
    copies as f64 / of.rows.max(1) as f64
}

/// The share of validation rows whose class is missing or rare in training, as happens when the
/// rows are sorted by class.
pub(crate) fn is_split_by_class(train: &Prepared, own: &Prepared) -> f64 {
    let (known, asked) = (train.y.classes(), own.y.classes());
    let share = |class: i64, of: &[i64]| {
        of.iter().filter(|&&c| c == class).count() as f64 / of.len().max(1) as f64
    };
    let rare = |class: i64| share(class, &known) < 0.2 * share(class, &asked);
    asked.iter().filter(|&&c| rare(c)).count() as f64 / asked.len().max(1) as f64
}

/// Whether the rows are all that can exist: each combination of the columns' values, as in a truth
/// table. Held-out rows would then ask for something that no other row tells.
pub(crate) fn is_complete(data: &Prepared) -> bool {
    let width = data.columns();
    let mut combinations = 1usize;
    for j in 0..width {
        let mut values: Vec<u32> =
            data.x.iter().skip(j).step_by(width).map(|v| v.to_bits()).collect();
        values.sort_unstable();
        values.dedup();
        combinations = combinations.saturating_mul(values.len());
        if combinations > data.rows {
            return false;
        }
    }
    let key = |row: &[f32]| row.iter().map(|v| v.to_bits()).collect::<Vec<u32>>();
    let rows: std::collections::HashSet<Vec<u32>> = data.x.chunks_exact(width).map(key).collect();
    // With few combinations each has many rows, and held-out rows resemble the others.
    width > 1 && rows.len() == combinations && 2 * combinations > data.rows
}

/// Information of the inputs about the targets: the skill on held-out rows of a ridge fit or of the
/// nearest neighbour, whichever is better. None for too few rows.
pub(crate) fn information(data: &Prepared, task: Task) -> Option<f64> {
    let n = data.rows.min(LOOKED_AT);
    if n < 60 {
        return None;
    }
    let mut order = chainrule_core::rng::Generator::manual_seed(5).randperm(data.rows);
    order.truncate(n);
    let rows: Vec<usize> = order.iter().map(|&i| i as usize).collect();
    let data = data.pick(&rows);
    let width = data.columns();
    let half = n / 2;
    let moments = columns(&data.x, width);
    let x: Vec<f64> = data
        .x
        .chunks_exact(width)
        .flat_map(|row| {
            row.iter().zip(&moments).map(|(&v, (m, s))| (f64::from(v) - m) / (s + 1e-6))
        })
        .collect();
    let x: Vec<&[f64]> = x.chunks_exact(width).collect();
    let (targets, outputs) = coded(&data.y, task);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut kernel: Vec<Vec<f64>> =
        (0..half).map(|i| (0..half).map(|j| 1.0 + dot(x[i], x[j])).collect()).collect();
    let near: Vec<usize> = (half..n)
        .map(|i| {
            let far = |j: usize| x[i].iter().zip(x[j]).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
            (0..half).map(|j| (far(j), j)).min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0, |(_, j)| j)
        })
        .collect();
    (0..half).for_each(|i| kernel[i][i] += 0.1 * width as f64);
    let weights = solved(kernel, &targets[..half], outputs);
    let fitted: Vec<Vec<f64>> = (half..n)
        .map(|i| {
            let mut out = vec![0.0; outputs];
            for (j, w) in weights.iter().enumerate() {
                let k = 1.0 + dot(x[i], x[j]);
                out.iter_mut().zip(w).for_each(|(o, w)| *o += k * w);
            }
            out
        })
        .collect();
    let neighbours: Vec<Vec<f64>> = near.iter().map(|&j| targets[j].clone()).collect();
    let real = &targets[half..];
    let skill = |said: &[Vec<f64>]| said_skill(said, real, task);
    Some(skill(&fitted).max(skill(&neighbours)))
}

/// Targets as rows of numbers: one for each class, or as they are.
fn coded(y: &Targets, task: Task) -> (Vec<Vec<f64>>, usize) {
    if task.is_classes() {
        let classes = y.classes();
        let mut kinds = classes.clone();
        kinds.sort_unstable();
        kinds.dedup();
        let row = |c: &i64| kinds.iter().map(|k| f64::from(k == c)).collect();
        return (classes.iter().map(row).collect(), kinds.len());
    }
    match y {
        Targets::Numbers { numbers, .. } => {
            let k = y.columns();
            (numbers.chunks_exact(k).map(|r| r.iter().map(|&v| v.into()).collect()).collect(), k)
        }
        Targets::Classes(c) => (c.iter().map(|&c| vec![c as f64]).collect(), 1),
    }
}

/// `K w = t` by Cholesky; `K` is positive.
fn solved(mut k: Vec<Vec<f64>>, t: &[Vec<f64>], outputs: usize) -> Vec<Vec<f64>> {
    let n = k.len();
    for j in 0..n {
        for i in j..n {
            let s: f64 = (0..j).map(|m| k[i][m] * k[j][m]).sum();
            let v = k[i][j] - s;
            k[i][j] = if i == j { v.max(1e-12).sqrt() } else { v / k[j][j] };
        }
    }
    let mut w = t.to_vec();
    #[allow(clippy::needless_range_loop)] // Rows of `k` and `w` are read by index beside it.
    for o in 0..outputs {
        for i in 0..n {
            let s: f64 = (0..i).map(|m| k[i][m] * w[m][o]).sum();
            w[i][o] = (w[i][o] - s) / k[i][i];
        }
        for i in (0..n).rev() {
            let s: f64 = (i + 1..n).map(|m| k[m][i] * w[m][o]).sum();
            w[i][o] = (w[i][o] - s) / k[i][i];
        }
    }
    w
}

fn said_skill(said: &[Vec<f64>], real: &[Vec<f64>], task: Task) -> f64 {
    let n = real.len().max(1) as f64;
    let best = |row: &[f64]| (1..row.len()).fold(0, |b, i| if row[i] > row[b] { i } else { b });
    if task.is_classes() {
        let right = said.iter().zip(real).filter(|(s, r)| best(s) == best(r)).count() as f64 / n;
        let share = |j: usize| real.iter().map(|r| r[j]).sum::<f64>() / n;
        let usual = (0..real.first().map_or(0, Vec::len)).map(share).fold(0.0, f64::max);
        return (right - usual) / (1.0 - usual).max(1e-9);
    }
    let outputs = real.first().map_or(1, Vec::len);
    let mut error = 0.0f64;
    let mut variance = 0.0f64;
    for j in 0..outputs {
        let mean = real.iter().map(|r| r[j]).sum::<f64>() / n;
        error += said.iter().zip(real).map(|(s, r)| (s[j] - r[j]).powi(2)).sum::<f64>();
        variance += real.iter().map(|r| (r[j] - mean).powi(2)).sum::<f64>();
    }
    1.0 - error / variance.max(1e-12)
}
