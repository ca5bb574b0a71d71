//! The looks of a monitor, as the page reads them.

use chainrule::monitor::Stats;
use serde_json::{Map, Value, json};

use super::history::Reading;
use crate::engine::number;

/// The layers and activations of a line of a monitor.
pub(super) fn of(line: &Value) -> Reading {
    let none = Map::new();
    let part = |name: &str| line[name].as_object().unwrap_or(&none).clone();
    let layers = part("parameters").into_iter().filter_map(|(name, row)| layer(&name, &row));
    let activations = part("outputs").into_iter().filter_map(|(name, row)| output(&name, &row));
    Reading { layers: layers.collect(), activations: activations.collect() }
}

fn layer(name: &str, row: &Value) -> Option<Value> {
    let value = Stats::from_json(&row["value"])?;
    let gradient = Stats::from_json(&row["gradient"]);
    let update = Stats::from_json(&row["update"]);
    let of_gradient = |f: fn(&Stats) -> f64| number(gradient.as_ref().map_or(f64::NAN, f));
    let ratio = update.map_or(f64::NAN, |update| update.std() / value.std());
    Some(json!({
        "name": name,
        "grad_norm": of_gradient(Stats::norm),
        "grad_std": of_gradient(Stats::std),
        "value_std": number(value.std()),
        "update_ratio": number(ratio),
        "value": row_of(&value),
        "gradient": gradient.as_ref().map(row_of),
        "grad_histogram": gradient.as_ref().map(histogram),
    }))
}

fn output(name: &str, row: &Value) -> Option<Value> {
    let value = Stats::from_json(&row["value"])?;
    let is_bounded = row.get("low").is_some();
    let zeros = value.zeros() as f64 / value.count().max(1) as f64;
    Some(json!({
        "name": name,
        "op": null,
        "mean": number(value.mean()),
        "std": number(value.std()),
        "saturated": row["saturated"].as_f64().filter(|_| is_bounded),
        "dead": zeros,
        "histogram": histogram(&value),
    }))
}

/// Mean, standard deviation, norm and share of zeros, as the table of `train names` has them.
fn row_of(of: &Stats) -> Value {
    json!({
        "mean": number(of.mean()),
        "std": number(of.std()),
        "norm": number(of.norm()),
        "zeros": of.zeros() as f64 / of.count().max(1) as f64,
    })
}

/// Counts between rising edges, which double in width; empty bins at the ends are left out.
fn histogram(of: &Stats) -> Value {
    let bins = of.histogram();
    let filled: Vec<usize> =
        bins.iter().enumerate().filter(|(_, (.., n))| *n > 0).map(|(i, _)| i).collect();
    let (Some(&first), Some(&last)) = (filled.first(), filled.last()) else {
        return json!({"edges": [0.0, 1.0], "counts": [0]});
    };
    let bins = &bins[first..=last];
    let mut edges: Vec<f64> = bins.iter().map(|(low, ..)| *low).collect();
    edges.extend(bins.last().map(|(_, high, _)| *high));
    let counts: Vec<u64> = bins.iter().map(|(.., n)| *n).collect();
    json!({"edges": edges, "counts": counts})
}
