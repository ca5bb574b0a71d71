//! The model before its first step: signal, gradients, first loss.

use super::{Findings, Seen};
use crate::cause::Cause;
use crate::change::Change::*;
use crate::description::{Activation, Loss};
use crate::model::is_constant;

pub(super) fn look(seen: &Seen<'_>, all: &mut Findings) {
    let (program, watch) = (seen.program, seen.watch);
    let Some(start) = &watch.start else { return };
    let last = program.last().unwrap_or(0);
    let hidden: Vec<_> = start.layers.iter().filter(|l| l.layer < last).collect();
    let scale = deviation(&seen.data.x) + 1e-12;
    if let ([first, .., end], true) = (&hidden[..], hidden.len() >= 2) {
        let steps = (hidden.len() - 1) as f64;
        let each = (end.spread / (first.spread + 1e-12)).powf(1.0 / steps);
        let place = format!("layers/{}/init", first.layer);
        let squashes = hidden
            .iter()
            .filter(|l| program.hidden_activation(l.layer) == Activation::Sigmoid)
            .count();
        if end.spread < 0.003 || (each < 0.3 && end.spread < 0.05) {
            let strength = if end.spread < 0.003 { 0.9 } else { 0.5 };
            let text = format!(
                "the signal shrinks {each:.2} times a layer, to {:.1e} before the last",
                end.spread
            );
            all.add(Cause::InitScale, strength, &place, text, &[Init])
                .with(&[("spread_before_last_layer", end.spread), ("factor_a_layer", each)]);
        }
        if each > 4.0 || end.spread > 50.0 * scale.max(1.0) {
            let text = format!(
                "the signal grows {each:.1} times a layer, to {:.1e} before the last",
                end.spread
            );
            all.add(Cause::InitScale, 0.95, &place, text, &[Init])
                .with(&[("spread_before_last_layer", end.spread), ("factor_a_layer", each)]);
        }
        if squashes >= 2 && end.spread < 0.05 {
            let text = format!(
                "{squashes} layers of sigmoids: outputs differ by {:.1e} between rows",
                end.spread
            );
            let place = format!("layers/{}/activation", first.layer);
            all.add(Cause::HiddenActivation, 0.9, place, text, &[ReluHidden, Init]).with(&[
                ("spread_before_last_layer", end.spread),
                ("sigmoid_layers", squashes as f64),
            ]);
        }
    }
    let constant = (0..last).find(|&i| {
        let wide = program.layers[i].width().is_some_and(|w| w > 1);
        wide && program.layers[i].init().is_some_and(is_constant)
    });
    if let Some(i) = constant {
        let text = format!("all weights of layer {i} begin equal, so its units stay the same");
        all.add(Cause::InitConstant, 1.0, format!("layers/{i}/init"), text, &[Init]);
    }
    let flat = !watch.gradients.is_empty() && watch.gradients.iter().all(|(_, g)| *g == 0.0);
    if flat {
        let text = "all gradients are exactly 0 before the first step";
        if all.has(Cause::OutputActivation) {
            all.add(Cause::OutputActivation, 1.0, "layers/-1", text, &[OutputPair]);
        } else {
            all.add(Cause::InitScale, 0.7, "layers/0/init", text, &[Init, OutputPair, Wider]);
        }
    }
    let first = seen.run.losses.first().copied().map_or(f64::NAN, f64::from);
    if let Some(base) = seen.base.filter(|&b| b > 1e-6 && first.is_finite()) {
        let squared = matches!(program.loss, Loss::Mse | Loss::Sse | Loss::Mae);
        if first > 10.0 * base && !squared {
            let text =
                format!("the first loss is {first:.3}, that of the best constant answer {base:.3}");
            all.add(Cause::InitScale, 0.5, format!("layers/{last}/init"), text, &[Init, ScaleX])
                .with(&[("first_loss", first), ("constant_loss", base)]);
        }
    }
    let dead =
        start.layers.iter().filter(|l| l.layer < last).filter_map(|l| Some((l.layer, l.dead?)));
    if let Some((i, share)) = dead.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|d| d.1 > 0.9) {
        let text = format!(
            "{:.0} % of the ReLUs of layer {i} fire for no row before the first step",
            100.0 * share
        );
        all.add(Cause::InitScale, 0.7, format!("layers/{i}/init"), text, &[Init, Wider])
            .with(&[("dead_share", share)]);
    }
}

fn deviation(x: &[f32]) -> f64 {
    let n = x.len().max(1) as f64;
    let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    (x.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n).sqrt()
}
