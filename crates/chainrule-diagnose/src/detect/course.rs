//! The course of a run: losses, updates, units that die or saturate.

use super::{Findings, Seen};
use crate::cause::Cause;
use crate::change::Change::*;

/// Means of the losses over tenths of the run.
fn tenths(losses: &[f64]) -> Vec<f64> {
    let n = losses.len();
    if n < 20 {
        return losses.to_vec();
    }
    let part = |i: usize| {
        let part = &losses[i * n / 10..(i + 1) * n / 10];
        part.iter().sum::<f64>() / part.len().max(1) as f64
    };
    (0..10).map(part).collect()
}

fn median(mut x: Vec<f64>) -> f64 {
    x.sort_by(f64::total_cmp);
    if x.is_empty() { 0.0 } else { x[x.len() / 2] }
}

/// The typical size of an update relative to the weights it changes.
pub(crate) fn update_size(seen: &Seen<'_>) -> f64 {
    let live = seen.watch.snapshots.iter().filter(|s| s.finite && !s.updates.is_empty());
    let each =
        live.take(8).map(|s| median(s.updates.iter().copied().filter(|u| *u > 0.0).collect()));
    median(each.collect())
}

pub(super) fn look(seen: &Seen<'_>, all: &mut Findings) {
    rate(seen, all);
    length(seen, all);
    units(seen, all);
    ends(seen, all);
}

/// Memorised rows, and a loss that fell and then stayed.
fn ends(seen: &Seen<'_>, all: &mut Findings) {
    if let Some(held) = seen.run.held {
        let (fit, lead) = (seen.run.fit, seen.run.fit - held);
        if lead > 0.3 && held < 0.7 {
            let text =
                format!("skill {fit:.2} on the rows trained on, {held:.2} on rows kept back");
            all.add(Cause::Overfitting, 0.5, "model", text, &[WeightDecay, Shorter])
                .with(&[("fit", fit), ("held", held)]);
        }
    }
    let losses: Vec<f64> = seen.run.losses.iter().map(|&l| f64::from(l)).collect();
    let smooth = tenths(&losses);
    if losses.len() < 50 || !losses.iter().all(|l| l.is_finite()) {
        return;
    }
    let (first, end) = (losses[0].max(smooth[0]), smooth[9]);
    let fell = (first - end) / first.abs().max(1e-12);
    let half = smooth[4..].iter().copied().fold(f64::NEG_INFINITY, f64::max)
        - smooth[4..].iter().copied().fold(f64::INFINITY, f64::min);
    if fell > 0.05 && half < 0.03 * (first - end) && end > 0.2 * first {
        let text =
            format!("the loss falls from {first:.4} to {end:.4} and stays for half of the run");
        all.since(Cause::Plateau, 0.5, "optimizer/lr", losses.len() * 4 / 10, text, &[Down10])
            .with(&[("first_loss", first), ("last_tenth", end)]);
    }
}

fn rate(seen: &Seen<'_>, all: &mut Findings) {
    if seen.program.optimizer.lr < 0.0 {
        return;
    }
    let losses: Vec<f64> = seen.run.losses.iter().map(|&l| f64::from(l)).collect();
    overflow(&losses, all);
    let finite: Vec<f64> = losses.iter().copied().filter(|l| l.is_finite()).collect();
    if finite.is_empty() {
        return;
    }
    let size = update_size(seen);
    growth(&finite, all);
    jump(&finite, size, all);
    step_size(size, all);
    killed_units(seen, all);
}

/// The setting of the rate.
const RATE: &str = "optimizer/lr";

/// A loss that is not finite.
fn overflow(losses: &[f64], all: &mut Findings) {
    if let Some(at) = losses.iter().position(|l| !l.is_finite()) {
        let text = format!("the loss is not finite since step {at}");
        all.since(Cause::LrHigh, 0.8, RATE, at, text, &[Down10, Down100, Adam])
            .with(&[("step", at as f64)]);
        if all.has(Cause::LossNumerics) {
            all.since(
                Cause::LossNumerics,
                0.95,
                "loss/name",
                at,
                format!("the loss takes the logarithm of 0 at step {at}"),
                &[LossForm, OutputPair],
            )
            .with(&[("step", at as f64)]);
        }
    }
}

/// A loss that grows, or falls below 0.
fn growth(finite: &[f64], all: &mut Findings) {
    let smooth = tenths(finite);
    let least = smooth.iter().copied().fold(f64::INFINITY, f64::min);
    if least < -1.0 && smooth.last() < smooth.first() {
        all.add(
            Cause::Loss,
            0.9,
            "loss/name",
            format!("the loss falls below 0, to {least:.2e}"),
            &[OutputPair],
        )
        .with(&[("lowest_loss", least)]);
    }
    let end = smooth.last().copied().unwrap_or(finite[0]);
    if smooth.len() > 3 && end > 2.0 * smooth[0].abs() + 1e-9 && end > least + least.abs() {
        all.add(
            Cause::LrHigh,
            0.95,
            RATE,
            format!("the loss grows from {:.3e} to {end:.3e}", smooth[0]),
            &[Down10, Down100, Adam],
        )
        .with(&[("first_tenth", smooth[0]), ("last_tenth", end)]);
    }
}

/// A loss that jumps at the beginning.
fn jump(finite: &[f64], size: f64, all: &mut Findings) {
    let first = finite[0];
    let early = &finite[1..finite.len().min((finite.len() / 3).max(3)).max(1)];
    let peak = early.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if finite.len() > 5 && peak > 5.0 * first.abs() + 1e-9 && size > 0.01 {
        let at = finite.iter().position(|&l| l == peak).unwrap_or(0);
        let times = peak / (first.abs() + 1e-12);
        all.since(
            Cause::LrHigh,
            0.9,
            RATE,
            at,
            format!("the loss jumps to {times:.0} times its first value at step {at}"),
            &[Down10, Adam],
        )
        .with(&[("step", at as f64), ("peak", peak), ("first_loss", first)]);
    }
}

/// The size of an update relative to that of the weights.
fn step_size(size: f64, all: &mut Findings) {
    if size > 0.1 {
        all.add(
            Cause::LrHigh,
            0.65,
            RATE,
            format!("a step changes the weights by {size:.2} of their size"),
            &[Down10, Down100, Adam],
        )
        .with(&[("update_beside_weights", size)]);
    }
    if size > 0.0 && size < 5e-4 {
        let strength = if size < 1e-4 { 0.8 } else { 0.5 };
        all.add(
            Cause::LrLow,
            strength,
            RATE,
            format!("a step changes the weights by {size:.1e} of their size"),
            &[Up10, Up100, AdamFast],
        )
        .with(&[("update_beside_weights", size)]);
    }
}

/// Units left without a gradient by the first step.
fn killed_units(seen: &Seen<'_>, all: &mut Findings) {
    let (start, after) = (seen.watch.start.as_ref(), seen.watch.snapshots.first());
    if let (Some(start), Some(after)) = (start, after) {
        let pairs = start.layers.iter().zip(&after.layers);
        let killed = pairs
            .filter_map(|(a, b)| Some((a.layer, a.dead?, b.dead?)))
            .find(|(_, a, b)| b - a > 0.3);
        if let Some((i, a, b)) = killed {
            let text = format!(
                "the first step kills ReLUs of layer {i}: {:.0} % dead before, {:.0} % after",
                100.0 * a,
                100.0 * b
            );
            all.since(Cause::LrHigh, 0.85, RATE, 1, text, &[Down10, Adam, ScaleX])
                .with(&[("dead_before", a), ("dead_after", b)]);
        }
    }
}

fn length(seen: &Seen<'_>, all: &mut Findings) {
    let losses: Vec<f64> =
        seen.run.losses.iter().map(|&l| f64::from(l)).filter(|l| l.is_finite()).collect();
    let n = losses.len();
    let smooth = tenths(&losses);
    if let [first, .., w, x, y, z] = smooth[..]
        && n >= 20
    {
        let fall = (y - z) / ((first - z).abs() + 1e-12);
        let tail = &losses[n - (4 * (n / 10).max(1)).min(n)..];
        let jumps: Vec<f64> = tail.windows(2).map(|p| p[1] - p[0]).collect();
        let mean = jumps.iter().sum::<f64>() / jumps.len().max(1) as f64;
        let noise = (jumps.iter().map(|j| (j - mean).powi(2)).sum::<f64>()
            / jumps.len().max(1) as f64)
            .sqrt()
            / (2.0 * (n as f64 / 10.0).max(1.0)).sqrt();
        if fall > 0.03 && z < y && y < x && x < w && x - z > 4.0 * noise && z < first {
            let text = format!(
                "the last tenth of the run still brought {:.0} % of the fall of the loss",
                100.0 * fall
            );
            all.add(
                Cause::EpochsFew,
                (fall / 0.08).min(0.95),
                "epochs",
                text,
                &[Longer, Up10, AdamFast],
            )
            .with(&[("share_of_last_tenth", fall), ("steps", n as f64)]);
        }
    }
    if n < 100 {
        let strength = if n < 30 { 0.8 } else { 0.5 };
        all.add(
            Cause::EpochsFew,
            strength,
            "epochs",
            format!("{n} steps in all"),
            &[Longer, AdamFast],
        )
        .with(&[("steps", n as f64)]);
    }
}

fn units(seen: &Seen<'_>, all: &mut Findings) {
    let Some(end) = seen.watch.last() else { return };
    let last = seen.program.last().unwrap_or(0);
    let worst = |of: fn(&crate::watch::LayerStats) -> Option<f64>| {
        let each = end
            .layers
            .iter()
            .filter(|l| l.layer < last)
            .filter_map(move |l| Some((l.layer, of(l)?)));
        each.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    if let Some((i, share)) = worst(|l| l.dead).filter(|w| w.1 > 0.9) {
        let text =
            format!("{:.0} % of the ReLUs of layer {i} fire for no row at the end", 100.0 * share);
        all.add(Cause::LrHigh, 0.5, "optimizer/lr", text.clone(), &[Down10, Adam])
            .with(&[("dead_share", share)]);
        all.add(Cause::InitScale, 0.45, format!("layers/{i}/init"), text, &[Init, Wider, ScaleX])
            .with(&[("dead_share", share)]);
    }
    if let Some((i, share)) = worst(|l| l.saturated).filter(|w| w.1 > 0.5) {
        let text = format!(
            "{:.0} % of the units of layer {i} are saturated for nearly all rows",
            100.0 * share
        );
        all.add(
            Cause::InitScale,
            0.6,
            format!("layers/{i}/init"),
            text.clone(),
            &[Init, ScaleX, Down10],
        )
        .with(&[("saturated_share", share)]);
        all.add(Cause::InputScale, 0.4, "preprocessing", text, &[ScaleX]);
    }
    let flat = seen.base.is_some_and(|base| {
        let n = seen.run.losses.len();
        let tail = &seen.run.losses[n - (n / 10).max(1).min(n)..];
        let mean = tail.iter().map(|&l| f64::from(l)).sum::<f64>() / tail.len().max(1) as f64;
        base > 0.0 && n > 20 && (mean - base).abs() < 0.02 * base
    });
    if flat {
        let text = "the loss is that of the best constant answer to the end";
        all.add(Cause::LrLow, 0.35, "optimizer/lr", text, &[Up10, AdamFast])
            .with(&[("constant_loss", seen.base.unwrap_or(0.0))]);
    }
}
