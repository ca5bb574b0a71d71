//! The report of a monitored training as one HTML file.

use serde_json::{Value, json};

use crate::monitor::Monitor;
use crate::stats::Stats;
use crate::symptom::Symptom;

/// Page with a script that draws what `DATA` holds.
const PAGE: &str = include_str!("report.html");

/// Approximate limit on the bytes of all histograms.
const HISTOGRAM_BYTES: usize = 400_000;

/// The most parameters and outputs that are drawn.
const ROWS: usize = 200;

/// The report: curves with validation, the layers over time, histograms, and the findings at their
/// place on the time axis. The file stands alone and is below 1 MB.
///
/// ```
/// let mut monitor = chainrule::monitor::Monitor::new();
/// (0..10).for_each(|i| monitor.step(Some(1.0 / f64::from(i + 1)), Some(0.1)));
/// let page = chainrule::monitor::html(&monitor, "a <first> run", &monitor.findings());
/// assert!(page.contains("a \\u003cfirst> run") && page.len() < 1_000_000);
/// ```
pub fn html(monitor: &Monitor, title: &str, findings: &[Symptom]) -> String {
    let data = data(monitor, title, findings).to_string();
    // No text within a script may close it.
    PAGE.replacen("/*DATA*/null", &data.replace('<', "\\u003c"), 1)
}

fn data(monitor: &Monitor, title: &str, findings: &[Symptom]) -> Value {
    let losses: Vec<Value> = monitor
        .losses
        .spans()
        .iter()
        .map(|s| json!([s.step, short(s.mean), short(s.least), short(s.most)]))
        .collect();
    let validations: Vec<Value> =
        monitor.validations.points().iter().map(|(s, v)| json!([s, short(v.0)])).collect();
    let rates: Vec<Value> =
        monitor.rates.points().iter().map(|(s, rate)| json!([s, short(*rate)])).collect();
    let norms: Vec<Value> =
        monitor.norms.points().iter().map(|(s, n)| json!([s, short(n.0), short(n.1)])).collect();
    let parts = (monitor.parameters.len() + monitor.outputs.len()).clamp(1, ROWS);
    let times = (HISTOGRAM_BYTES / 600 / parts).clamp(2, 24);
    let parameters: Vec<Value> = monitor
        .parameters
        .iter()
        .take(ROWS)
        .map(|p| {
            let points = p.points();
            let of = |f: &dyn Fn(&crate::ParameterPoint) -> Option<f64>| -> Vec<Value> {
                points.iter().map(|(_, p)| f(p).map_or(Value::Null, short)).collect()
            };
            let kept = thinned(points, times);
            json!({
                "name": p.name(),
                "steps": points.iter().map(|p| p.0).collect::<Vec<_>>(),
                "values": of(&|p| Some(p.value.rms())),
                "gradients": of(&|p| p.gradient.as_ref().map(Stats::rms)),
                "agreement": of(&|p| p.agreement),
                "updates": of(&|p| Some(p.update.as_ref()?.rms() / p.value.rms().max(1e-12))),
                "histograms": kept.iter().map(|(step, p)| json!({
                    "step": step, "values": bins(&p.value),
                    "gradients": p.gradient.as_ref().map(bins),
                })).collect::<Vec<_>>(),
            })
        })
        .collect();
    let outputs: Vec<Value> = monitor
        .outputs
        .iter()
        .take(ROWS)
        .map(|o| {
            let points = o.points();
            json!({
                "name": o.name(),
                "steps": points.iter().map(|p| p.0).collect::<Vec<_>>(),
                "values": points.iter().map(|(_, p)| short(p.value.rms())).collect::<Vec<_>>(),
                "gradients": points
                    .iter()
                    .map(|(_, p)| p.gradient.as_ref().map_or(Value::Null, |g| short(g.rms())))
                    .collect::<Vec<_>>(),
                "dead": o.dead(),
                "rank": points.iter().rev().find_map(|(_, p)| p.rank).map(short),
                "bound": o.stuck_at_bounds(),
                "histograms": thinned(points, times).iter().map(|(step, p)| json!({
                    "step": step, "values": bins(&p.value),
                    "gradients": p.gradient.as_ref().map(bins),
                })).collect::<Vec<_>>(),
            })
        })
        .collect();
    let confusion: Vec<Value> = monitor
        .answers
        .confusion
        .iter()
        .map(|((right, said), n)| json!([right, said, n]))
        .collect();
    let findings: Vec<Value> = findings.iter().map(Symptom::to_json).collect();
    json!({
        "title": title, "steps": monitor.steps, "losses": losses, "validations": validations,
        "rates": rates, "norms": norms, "parameters": parameters, "outputs": outputs,
        "measures": monitor.measured(), "findings": findings, "samples": monitor.samples, "confusion": confusion,
    })
}

/// Evenly chosen points, the last among them.
fn thinned<T>(points: &[T], most: usize) -> Vec<&T> {
    let every = points.len().div_ceil(most).max(1);
    points.iter().rev().step_by(every).collect::<Vec<_>>().into_iter().rev().collect()
}

fn bins(stats: &Stats) -> Vec<Value> {
    stats.histogram().iter().map(|(low, high, n)| json!([short(*low), short(*high), n])).collect()
}

/// A number of four digits; null if it is not finite.
fn short(x: f64) -> Value {
    if !x.is_finite() {
        return Value::Null;
    }
    format!("{x:.3e}").parse::<f64>().map_or(Value::Null, |x| json!(x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_core::tensor::Tensor;

    #[test]
    fn the_report_of_a_long_run_is_small() {
        let mut monitor = Monitor::new().every(10);
        for step in 0..20_000u64 {
            if monitor.is_due() {
                for i in 0..40 {
                    let numbers: Vec<f64> = (0..64)
                        .map(|j| ((j * 37 + i + step as usize) % 101) as f64 / 7.0 - 7.0)
                        .collect();
                    let t = Tensor::from(numbers);
                    monitor.parameter(&format!("blocks.{i}.weight"), &t, Some(&t));
                }
            }
            monitor.step(Some(1.0 / (step + 1) as f64), Some(0.1));
        }
        let page = html(&monitor, "long", &monitor.findings());
        assert!(page.len() < 1_000_000, "{} bytes", page.len());
        assert!(!page.contains("/*DATA*/null") && !page.contains("http"));
    }
}
