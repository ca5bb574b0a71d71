//! `chainrule compare`: runs side by side: the settings that differ, the final figures, the curves.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use crate::args::Compare;
use crate::output;
use crate::plot;
use crate::run_folder::write_atomic;
use crate::run_log::RunLog;
use crate::view::{Curve, chart, short, text};

/// The size of the picture in the terminal.
const SIZE: (u16, u16) = (100, 24);

/// A table: its head and its rows.
struct Rows(Vec<Vec<String>>);

/// Runs the command.
pub fn run(args: &Compare) -> Result<()> {
    let runs: Vec<RunLog> =
        args.runs.iter().map(|path| RunLog::open(path)).collect::<Result<_>>()?;
    let names = names(&runs);
    let (settings, figures) = (settings(&runs, &names), figures(&runs, &names));
    let curves = curves(&runs, &names);
    if let Some(path) = &args.out {
        write(path, &settings, &figures, &curves)?;
    }
    if args.json {
        return output::json(&as_json(&runs));
    }
    let (width, height) = SIZE;
    let title = "Loss (mean over neighbouring steps)";
    output::line(&format!("Settings that differ:\n{}", settings.text()))?;
    output::line(&format!("\nFigures:\n{}\n", figures.text()))?;
    output::line(&text(width, height, |area, buffer| {
        chart(&curves, title, args.log, area, buffer);
    }))
}

/// Names of the folders, or their paths where two have one name.
fn names(runs: &[RunLog]) -> Vec<String> {
    let short: BTreeSet<String> = runs.iter().map(RunLog::name).collect();
    let is_clear = short.len() == runs.len();
    let name = |run: &RunLog| if is_clear { run.name() } else { run.path.display().to_string() };
    runs.iter().map(name).collect()
}

fn head(first: &str, names: &[String]) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(names.iter().cloned()).collect()
}

fn settings(runs: &[RunLog], names: &[String]) -> Rows {
    let keys: BTreeSet<&String> = runs.iter().flat_map(|run| run.settings.keys()).collect();
    let mut rows = vec![head("setting", names)];
    for key in keys {
        let values: Vec<Option<&String>> = runs.iter().map(|run| run.settings.get(key)).collect();
        if values.windows(2).any(|pair| pair[0] != pair[1]) {
            let shown = values.into_iter().map(|v| v.map_or_else(|| "-".to_owned(), String::clone));
            rows.push(std::iter::once(key.clone()).chain(shown).collect());
        }
    }
    Rows(rows)
}

/// Whether more is better of a measure, as of an accuracy.
fn is_gain(name: &str) -> bool {
    name.ends_with("accuracy")
}

fn best(run: &RunLog, name: &str) -> Option<(u64, f64)> {
    let points = run.measures.get(name)?.points().iter().copied().filter(|p| p.1.is_finite());
    points.reduce(|a, b| match (b.1 > a.1, is_gain(name)) {
        (true, true) => b,
        (false, false) if b.1 < a.1 => b,
        _ => a,
    })
}

fn last_loss(run: &RunLog) -> Option<f64> {
    // The mean of the last twentieth: single batches jump about.
    let spans = run.losses.spans();
    let part = &spans[spans.len() - spans.len().div_ceil(20).min(spans.len())..];
    let count: u64 = part.iter().map(|s| s.count).sum();
    let sum: f64 = part.iter().map(|s| s.mean * s.count as f64).sum();
    (count > 0).then(|| sum / count as f64)
}

fn figures(runs: &[RunLog], names: &[String]) -> Rows {
    let mut rows = vec![head("figure", names)];
    let mut add = |name: &str, of: &dyn Fn(&RunLog) -> Option<String>| {
        let values = runs.iter().map(|run| of(run).unwrap_or_else(|| "-".to_owned()));
        rows.push(std::iter::once(name.to_owned()).chain(values).collect());
    };
    add("steps", &|run| Some(run.step.to_string()));
    add("training loss, last twentieth", &|run| last_loss(run).map(short));
    let measures: BTreeSet<&String> = runs.iter().flat_map(|run| run.measures.keys()).collect();
    for name in measures {
        let last = |run: &RunLog| Some(short(run.measures.get(name)?.points().last()?.1));
        add(name, &last);
        let best =
            |run: &RunLog| best(run, name).map(|(step, x)| format!("{} at step {step}", short(x)));
        add(&format!("best {name}"), &best);
    }
    let seconds = |run: &RunLog| Some(short(run.end.as_ref()?.get("seconds")?.as_f64()?));
    add("seconds", &seconds);
    add("findings", &|run| Some(run.findings.len().to_string()));
    let is_known = |row: &Vec<String>| row[1..].iter().any(|value| value != "-");
    rows.retain(is_known);
    Rows(rows)
}

fn curves(runs: &[RunLog], names: &[String]) -> Vec<Curve> {
    let curve = |(run, name): (&RunLog, &String)| Curve {
        name: name.clone(),
        points: run.losses.spans().iter().map(|s| (s.step as f64, s.mean)).collect(),
    };
    runs.iter().zip(names).map(curve).collect()
}

fn as_json(runs: &[RunLog]) -> Value {
    let run = |run: &RunLog| {
        let measures: Map<String, Value> = run
            .measures
            .iter()
            .filter_map(|(name, series)| {
                let (step, value) = best(run, name)?;
                let last = series.points().last()?.1;
                Some((name.clone(), json!({ "last": last, "best": value, "best_step": step })))
            })
            .collect();
        json!({
            "run": run.path.display().to_string(), "steps": run.step, "loss": last_loss(run),
            "settings": run.settings, "measures": measures, "findings": run.findings.len(),
            "is_finished": run.end.is_some(),
        })
    };
    Value::Array(runs.iter().map(run).collect())
}

fn write(path: &Path, settings: &Rows, figures: &Rows, curves: &[Curve]) -> Result<()> {
    let points: Vec<(&str, &[(f64, f64)])> =
        curves.iter().map(|curve| (curve.name.as_str(), curve.points.as_slice())).collect();
    let picture = plot::overlay(&points, "Loss of the runs");
    let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("svg") => write_atomic(path, picture.as_bytes()),
        Some("html" | "htm") => {
            let picture = picture.get(picture.find("<svg").unwrap_or(0)..).unwrap_or_default();
            let page = format!(
                "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Runs</title>\n\
                 <style>body {{ font: 15px system-ui, sans-serif; margin: 1rem; }} \
                 td, th {{ padding: .2rem .8rem; text-align: left; }} svg {{ max-width: 100%; }}\
                 </style>\n<h1>Runs</h1>\n<h2>Settings that differ</h2>\n{}\n<h2>Figures</h2>\n{}\n\
                 <h2>Curves</h2>\n{picture}\n</html>\n",
                settings.html(),
                figures.html(),
            );
            write_atomic(path, page.as_bytes())
        }
        _ => bail!("{}: the file's name ends with .svg or .html", path.display()),
    }
}

impl Rows {
    /// In columns.
    fn text(&self) -> String {
        let columns = self.0.first().map_or(0, Vec::len);
        let wide = |i: usize| self.0.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(wide).collect();
        if self.0.len() < 2 {
            return "  none".to_owned();
        }
        let mut out = String::new();
        for row in &self.0 {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            let _ = writeln!(out, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        out.trim_end().to_owned()
    }

    fn html(&self) -> String {
        if self.0.len() < 2 {
            return "<p>none</p>".to_owned();
        }
        let escaped = |text: &str| {
            text.replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;")
        };
        let row = |(i, row): (usize, &Vec<String>)| {
            let tag = if i == 0 { "th" } else { "td" };
            let cells = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
            format!("<tr>{}</tr>", cells.collect::<String>())
        };
        let rows: Vec<String> = self.0.iter().enumerate().map(row).collect();
        format!("<table>\n{}\n</table>", rows.join("\n"))
    }
}
