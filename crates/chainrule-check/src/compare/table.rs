//! The comparison as a table.

use std::fmt;

use super::super::follow::write_corrections;
use super::{Comparison, ComparisonRow, Discrepancy, Standing};
use chainrule_core::ops::OpId;

/// Headings of the columns: shape, exact, approximate, largest difference, its index, mean relative
/// error.
const HEAD: [&str; 7] = ["", "shape", "exact", "approx", "max diff", "at", "mean rel"];

impl fmt::Display for Comparison {
    /// One line for each row, and below them the findings about each mistake.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<[String; 7]> = self.rows.iter().map(cells).collect();
        let mut widths = HEAD.map(|head| head.chars().count());
        for row in &cells {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        write_line(f, "  ", &HEAD, &widths, "")?;
        for (row, cells) in self.rows.iter().zip(&cells) {
            let mark = if row.is_mistake() { "> " } else { "  " };
            writeln!(f)?;
            let cells: [&str; 7] = std::array::from_fn(|i| cells[i].as_str());
            write_line(f, mark, &cells, &widths, &note(row))?;
        }
        for row in self.mistakes() {
            write!(f, "\n\n{}", MistakeText(row))?;
        }
        if let Some(verdict) = &self.verdict
            && self.corrections.is_empty()
        {
            write!(f, "\n\n{}", verdict.text())?;
        }
        if !self.corrections.is_empty() {
            writeln!(f)?;
        }
        write_corrections(f, &self.corrections, self.error)
    }
}

fn write_line(
    f: &mut fmt::Formatter<'_>,
    mark: &str,
    cells: &[&str; 7],
    widths: &[usize; 7],
    note: &str,
) -> fmt::Result {
    let mut line = mark.to_string();
    for (cell, &width) in cells.iter().zip(widths) {
        line += &format!("{cell:width$}  ");
    }
    f.write_str((line + note).trim_end())
}

fn cells(row: &ComparisonRow) -> [String; 7] {
    let yes = |on: bool| if on { "yes" } else { "no" }.to_string();
    let shape = row.shape.map_or_else(String::new, |shape| shape.to_string());
    let found = match &row.outcome {
        Ok(d) => [
            yes(d.exact),
            yes(d.approximate),
            short(d.largest),
            if d.largest == 0.0 { String::new() } else { format!("{:?}", d.at) },
            short(d.mean_relative),
        ],
        Err(_) => std::array::from_fn(|_| String::new()),
    };
    let [exact, approximate, largest, at, relative] = found;
    [row.name.clone(), shape, exact, approximate, largest, at, relative]
}

/// Two digits.
fn short(x: f64) -> String {
    match x {
        0.0 => "0".into(),
        x if x.is_nan() => "nan".into(),
        x if x.is_infinite() => "inf".into(),
        x => format!("{x:.1e}"),
    }
}

/// The words at the end of a line.
fn note(row: &ComparisonRow) -> String {
    match (&row.outcome, &row.standing) {
        (Err(problem), Standing::NotCompared) => problem.to_string(),
        (Err(problem), _) => format!("WRONG: {problem}"),
        (_, Standing::Rounding) => "rounding".into(),
        (_, Standing::First) => "WRONG, nothing above it is".into(),
        (_, Standing::AlsoWrong) => "WRONG, also by itself".into(),
        (_, Standing::Consequence(of)) => format!("follows from {}", of.join(", ")),
        _ => String::new(),
    }
}

/// The text of one mistake.
struct MistakeText<'a>(&'a ComparisonRow);

impl fmt::Display for MistakeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = self.0;
        write!(f, "{}: the mistake is in this step", row.name)?;
        if !row.made_from.is_empty() {
            write!(f, ", from the gradient of {}", row.made_from.join(" and "))?;
        }
        if let Ok(Discrepancy { at, by_hand, autograd, .. }) = &row.outcome {
            write!(f, "\n  at {at:?}: {by_hand:.6e} by hand, {autograd:.6e} by autograd")?;
        }
        for used in &row.uses {
            write!(f, "\n  ")?;
            if let Some(result) = &used.result {
                write!(f, "{result} = ")?;
            }
            write!(f, "{}", used.op)?;
            if let Some(at) = &used.place {
                write!(f, " at {at}")?;
            }
            let rule = used.id.map(OpId::entry);
            if let Some(rule) = rule.filter(|entry| !entry.gradient.is_empty()) {
                write!(f, ": {}", rule.gradient)?;
            }
        }
        Ok(())
    }
}
