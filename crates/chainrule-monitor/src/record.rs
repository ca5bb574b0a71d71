//! The looks of a monitor as lines of JSON, and a monitor that continues from such lines.

use serde_json::{Map, Value, json};

use crate::monitor::Monitor;
use crate::stats::Stats;
use crate::track::{OutputKind, OutputPoint, OutputTrack, ParameterPoint, ParameterTrack};

impl Monitor {
    /// The tensors examined in the last finished step, as one JSON object; `None` if that step was
    /// not examined.
    ///
    /// `step` counts from 1, as in the metrics of a run. `parameters` has for each name the
    /// `shape`, and [statistics](Stats::to_json) of `value`, `gradient` and `update`; `outputs`
    /// those of `value` and `gradient`; `norm` the norm of all gradients before and after clipping;
    /// `measures` what is known of `smoothness`, `noise_scale`, `curvature` beside
    /// `stable_curvature` (2 / rate), `seconds` of a step and `bytes` of tensors.
    ///
    /// ```
    /// use chainrule::{Tensor, monitor::Monitor};
    /// let w = Tensor::from([1.0, -1.0]);
    /// let mut monitor = Monitor::new();
    /// monitor.parameter("w", &w, Some(&w));
    /// monitor.step(Some(0.5), None);
    /// let line = monitor.line().unwrap();
    /// assert_eq!(line["step"], 1);
    /// assert_eq!(line["parameters"]["w"]["value"]["std"], 1.0);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn line(&self) -> Option<Value> {
        let last = self.steps.checked_sub(1)?;
        let parameters: Map<String, Value> =
            self.parameters.iter().filter_map(|track| parameter(track, last)).collect();
        let outputs: Map<String, Value> =
            self.outputs.iter().filter_map(|track| output(track, last)).collect();
        if parameters.is_empty() && outputs.is_empty() {
            return None;
        }
        let norm = self.last_norm.filter(|norm| norm.0 == last);
        let norm = norm.map(|(_, before, after)| json!([before, after]));
        Some(json!({
            "step": self.steps, "norm": norm, "parameters": parameters, "outputs": outputs,
            "measures": self.measured(),
        }))
    }

    /// Reads a line that [`Monitor::line`] wrote, or a line of a run's metrics: `step` with `loss`
    /// and `lr`, or with `evaluation` and a held-out loss. Other entries of a line are ignored.
    /// Dead units are counted anew.
    pub fn restore(&mut self, row: &Value) {
        let Some(step) = row.get("step").and_then(Value::as_u64) else { return };
        if row.get("final").is_some() || row.get("finding").is_some() {
            return;
        }
        let number = |name: &str| row.get(name).and_then(Value::as_f64);
        let at = step.saturating_sub(1);
        if row.get("evaluation").is_some() {
            let held_out = ["val_loss", "test_loss"].into_iter().find_map(number);
            held_out.into_iter().for_each(|loss| self.validated_at(step, loss));
        } else if row.get("parameters").is_none() {
            self.note(at, number("loss"), number("lr"));
        }
        if let Some([before, after]) = row.get("norm").and_then(Value::as_array).map(Vec::as_slice)
            && let Some(norm) = before.as_f64().zip(after.as_f64())
        {
            self.norms.push(at, norm);
        }
        for (name, row) in rows(row, "parameters") {
            let shape = row.get("shape").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let dims: Vec<usize> =
                shape.iter().filter_map(|n| usize::try_from(n.as_u64()?).ok()).collect();
            if let Some(point) = parameter_point(row) {
                self.parameter_track(name, &dims).take(at, point);
            }
        }
        for (name, row) in rows(row, "outputs") {
            let bound = |name: &str| i8::try_from(row.get(name)?.as_i64()?).ok();
            let kind = match (bound("low"), bound("high")) {
                (Some(low), Some(high)) => OutputKind::Bounded { low, high },
                _ => OutputKind::Any,
            };
            if let Some(point) = output_point(row) {
                self.output_track(name, kind).take(at, point);
            }
        }
        self.go_to(step);
    }
}

fn rows<'a>(row: &'a Value, part: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    row.get(part).and_then(Value::as_object).into_iter().flatten()
}

fn parameter(track: &ParameterTrack, at: u64) -> Option<(String, Value)> {
    let (_, p) = track.latest.as_ref().filter(|latest| latest.0 == at)?;
    let stats = |stats: &Option<Stats>| stats.as_ref().map(Stats::to_json);
    let row = json!({
        "shape": track.shape, "value": p.value.to_json(), "gradient": stats(&p.gradient),
        "update": stats(&p.update), "slope": p.slope, "agreement": p.agreement,
        "is_alike": p.is_alike,
    });
    Some((track.name.clone(), row))
}

fn parameter_point(row: &Value) -> Option<ParameterPoint> {
    let stats = |name: &str| row.get(name).and_then(Stats::from_json);
    Some(ParameterPoint {
        value: stats("value")?,
        gradient: stats("gradient"),
        update: stats("update"),
        slope: row.get("slope").and_then(Value::as_f64),
        agreement: row.get("agreement").and_then(Value::as_f64),
        is_alike: row.get("is_alike").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn output(track: &OutputTrack, at: u64) -> Option<(String, Value)> {
    let (_, o) = track.latest.as_ref().filter(|latest| latest.0 == at)?;
    let mut row = json!({
        "value": o.value.to_json(), "gradient": o.gradient.as_ref().map(Stats::to_json),
        "saturated": o.saturated, "is_constant": o.is_constant, "rank": o.rank,
    });
    if let (OutputKind::Bounded { low, high }, Some(row)) = (track.kind, row.as_object_mut()) {
        row.extend([("low".to_owned(), json!(low)), ("high".to_owned(), json!(high))]);
    }
    Some((track.name.clone(), row))
}

fn output_point(row: &Value) -> Option<OutputPoint> {
    Some(OutputPoint {
        value: Stats::from_json(row.get("value")?)?,
        gradient: row.get("gradient").and_then(Stats::from_json),
        saturated: row.get("saturated")?.as_f64()?,
        is_constant: row.get("is_constant")?.as_bool()?,
        rank: row.get("rank").and_then(Value::as_f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_core::tensor::Tensor;

    /// A training of one matrix, in which the rate is far too high; its lines.
    fn lines() -> (Monitor, Vec<Value>) {
        let mut monitor = Monitor::new().every(1);
        let mut lines = Vec::new();
        let mut w = Tensor::from([[1.0f64, -2.0], [3.0, 0.5]]);
        for step in 0..30 {
            let g = &w * 2.0;
            monitor.parameter("w", &w, Some(&g));
            let loss = w.square().sum_all().item();
            w = &w - &(&g * 1.2);
            monitor.updated("w", &w);
            monitor.step(Some(loss), Some(1.2));
            lines.push(json!({"step": step + 1, "loss": loss, "lr": 1.2}));
            lines.extend(monitor.line());
        }
        (monitor, lines)
    }

    #[test]
    fn lines_give_the_monitor_back() {
        let (monitor, lines) = lines();
        let mut again = Monitor::new().every(1);
        for line in &lines {
            again.restore(&serde_json::from_str(&line.to_string()).unwrap());
        }
        assert_eq!(again.steps(), 30);
        let [a, b] = [&monitor, &again].map(|m| m.findings());
        assert_eq!(
            a.iter().map(|s| s.kind).collect::<Vec<_>>(),
            b.iter().map(|s| s.kind).collect::<Vec<_>>()
        );
        assert!(!a.is_empty());
        assert_eq!(monitor.parameters()[0].points().len(), again.parameters()[0].points().len());
    }

    #[test]
    fn lines_of_anything_else_change_nothing() {
        let mut monitor = Monitor::new();
        for text in [
            "null",
            "[]",
            "{}",
            r#"{"step":-1}"#,
            r#"{"step":3,"parameters":7,"outputs":[1]}"#,
            r#"{"step":3,"parameters":{"w":{"shape":[-1],"value":{}}}}"#,
            r#"{"step":3,"final":true,"loss":1}"#,
            r#"{"step":4,"outputs":{"o":{"low":1000,"high":2}}}"#,
        ] {
            monitor.restore(&serde_json::from_str(text).unwrap());
        }
        assert!(monitor.findings().is_empty() && monitor.parameters().is_empty());
    }
}
