//! A look as the text of a line: that of [`Monitor::line`], with no object made for it. Objects for
//! the lines of a training that is looked at in each step took as long as all other statistics.

use serde_json::to_writer;

use crate::monitor::Monitor;
use crate::stats::Stats;
use crate::track::{OutputKind, OutputPoint, OutputTrack, ParameterPoint, ParameterTrack};

/// Writes what JSON has a text for.
macro_rules! put {
    ($out:expr, $value:expr) => {
        to_writer(&mut *$out, $value).expect("memory takes what is written")
    };
}

/// Writes an object of named parts; names come in their order.
macro_rules! object {
    ($out:ident, $($name:literal: $part:expr),+ $(,)?) => {{
        let mut mark = b'{';
        $(
            $out.push(mark);
            $out.extend_from_slice(concat!("\"", $name, "\":").as_bytes());
            $part;
            mark = b',';
        )+
        let _ = mark;
        $out.push(b'}');
    }};
}

impl Monitor {
    /// The text of [`Monitor::line`].
    ///
    /// ```
    /// use chainrule::{Tensor, monitor::Monitor};
    /// let w = Tensor::from([1.0, -1.0]);
    /// let mut monitor = Monitor::new();
    /// monitor.parameter("w", &w, Some(&w));
    /// monitor.step(Some(0.5), None);
    /// assert_eq!(monitor.line_text().unwrap(), monitor.line().unwrap().to_string());
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn line_text(&self) -> Option<String> {
        let last = self.steps.checked_sub(1)?;
        let mut parameters: Vec<(&ParameterTrack, &ParameterPoint)> = Vec::new();
        for track in &self.parameters {
            let latest = track.latest.as_ref().filter(|latest| latest.0 == last);
            parameters.extend(latest.map(|(_, point)| (track, point)));
        }
        let mut outputs: Vec<(&OutputTrack, &OutputPoint)> = Vec::new();
        for track in &self.outputs {
            let latest = track.latest.as_ref().filter(|latest| latest.0 == last);
            outputs.extend(latest.map(|(_, point)| (track, point)));
        }
        if parameters.is_empty() && outputs.is_empty() {
            return None;
        }
        parameters.sort_by_key(|(track, _)| &track.name);
        outputs.sort_by_key(|(track, _)| &track.name);
        let norm = self.last_norm.filter(|norm| norm.0 == last);
        let norm = norm.map(|(_, before, after)| [before, after]);
        let mut out = Vec::new();
        let out = &mut out;
        object!(out,
            "measures": put!(out, &self.measured()),
            "norm": put!(out, &norm),
            "outputs": named(out, &outputs, |track| &track.name, output),
            "parameters": named(out, &parameters, |track| &track.name, parameter),
            "step": put!(out, &self.steps),
        );
        String::from_utf8(std::mem::take(out)).ok()
    }
}

/// Tracks by name.
fn named<T, P>(
    out: &mut Vec<u8>,
    all: &[(&T, &P)],
    name: fn(&T) -> &str,
    write: fn(&mut Vec<u8>, &T, &P),
) {
    out.push(b'{');
    for (at, (track, point)) in all.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        put!(out, name(track));
        out.push(b':');
        write(out, track, point);
    }
    out.push(b'}');
}

fn parameter(out: &mut Vec<u8>, track: &ParameterTrack, p: &ParameterPoint) {
    object!(out,
        "agreement": put!(out, &p.agreement),
        "gradient": perhaps(out, p.gradient.as_ref()),
        "is_alike": put!(out, &p.is_alike),
        "shape": put!(out, &track.shape),
        "slope": put!(out, &p.slope),
        "update": perhaps(out, p.update.as_ref()),
        "value": p.value.write(out),
    );
}

fn output(out: &mut Vec<u8>, track: &OutputTrack, o: &OutputPoint) {
    match track.kind {
        OutputKind::Bounded { low, high } => object!(out,
            "gradient": perhaps(out, o.gradient.as_ref()),
            "high": put!(out, &high),
            "is_constant": put!(out, &o.is_constant),
            "low": put!(out, &low),
            "rank": put!(out, &o.rank),
            "saturated": put!(out, &o.saturated),
            "value": o.value.write(out),
        ),
        OutputKind::Any => object!(out,
            "gradient": perhaps(out, o.gradient.as_ref()),
            "is_constant": put!(out, &o.is_constant),
            "rank": put!(out, &o.rank),
            "saturated": put!(out, &o.saturated),
            "value": o.value.write(out),
        ),
    }
}

fn perhaps(out: &mut Vec<u8>, stats: Option<&Stats>) {
    match stats {
        Some(stats) => stats.write(out),
        None => out.extend_from_slice(b"null"),
    }
}

impl Stats {
    /// The text of [`Stats::to_json`].
    fn write(&self, out: &mut Vec<u8>) {
        object!(out,
            "bins": self.write_bins(out),
            "count": put!(out, &self.count()),
            "largest": put!(out, &self.largest()),
            "mean": put!(out, &self.mean()),
            "norm": put!(out, &self.norm()),
            "not_finite": put!(out, &self.not_finite()),
            "std": put!(out, &self.std()),
            "zeros": put!(out, &self.zeros()),
        );
    }

    fn write_bins(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.push(b'[');
        for (number, count) in self.filled() {
            if out.len() > begin + 1 {
                out.push(b',');
            }
            put!(out, &[number, i64::from(count)]);
        }
        out.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_core::tensor::Tensor;

    #[test]
    fn the_text_is_that_of_the_object() {
        let mut monitor = Monitor::new().every(1);
        let mut w = Tensor::from([[1.0f64, -2.0, 0.0], [3.0, 1e-300, 0.5]]);
        assert_eq!(monitor.line_text(), None);
        for step in 0..12 {
            let g = &w * 2.0;
            // Names that are not in order, one with a quote; numbers without a text of their own.
            let odd = if step == 5 { f64::NAN } else { 0.25 };
            let o = Tensor::from([[0.5, odd], [-1.0, 1.0]]);
            monitor.output("z", OutputKind::Bounded { low: -1, high: 1 }, &o);
            monitor.output_gradient("z", &o);
            monitor.output("a \"b\"", OutputKind::Any, &o);
            monitor.parameter("w", &w, Some(&g));
            monitor.parameter("b", &o, None);
            w = &w - &(&g * 0.1);
            monitor.updated("w", &w);
            monitor.step(Some(f64::from(step)), Some(0.1));
            assert_eq!(monitor.line_text(), monitor.line().map(|line| line.to_string()));
        }
        monitor.step(None, None);
        assert_eq!(monitor.line_text(), None);
    }
}
