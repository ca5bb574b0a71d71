//! The explanation as text of 100 columns.

use std::fmt;

use super::Explanation;
use super::repeats::stretches;
use crate::access::Line;
use crate::algebra::Applied;
use crate::{Cost, Phase, Program};

/// The width of the page.
const COLUMNS: usize = 100;

/// Longer lines are written without the op's parameters, unless everything is asked for.
const CODE: usize = 64;

/// Programs with more lines are abbreviated.
const LONG: usize = 120;

/// Steps written out at most; a longer list becomes a summary, unless all are asked for.
const STEPS: usize = 60;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.title)?;
        self.costs(f)?;
        heading(f, "The traced program")?;
        self.listing(f, &self.traced)?;
        heading(f, "The steps")?;
        self.steps(f)?;
        heading(f, "The result")?;
        self.listing(f, &self.simplified.program)?;
        self.last(f)
    }
}

fn heading(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    writeln!(f, "\n{text}\n{}\n", "-".repeat(text.chars().count()))
}

impl Explanation {
    fn costs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["instructions", "operations", "bytes", "operations left"];
        let [a, b, c, d] = heads;
        writeln!(f, "{:<34}{a:>14}{b:>14}{c:>14}{d:>18}", "")?;
        let rows = [
            ("as traced", &self.traced),
            ("each value once, no dead code", &self.optimized),
            ("simplified", &self.simplified.program),
        ];
        let first = self.traced.cost();
        for (what, program) in rows {
            let cost = program.cost();
            let left = 100.0 * cost.flops as f64 / first.flops.max(1) as f64;
            writeln!(f, "{what:<34}{}{left:>17.0}%", columns(cost))?;
            let phases = [Phase::Forward, Phase::Backward, Phase::Update];
            let parts = phases.map(|phase| (phase, program.phase_cost(phase)));
            for (phase, cost) in parts.into_iter().filter(|(_, c)| c.instructions > 0) {
                writeln!(f, "  {:<32}{}", phase.name(), columns(cost))?;
            }
        }
        let memory = self.memory();
        let (planned, least) = (short(memory.planned as u64), short(memory.lower_bound as u64));
        writeln!(
            f,
            "\nA run takes {planned} bytes of planned memory, and none can do with less than {least}."
        )
    }

    fn steps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = &self.simplified.steps;
        if steps.is_empty() {
            return writeln!(f, "No rule of algebra applies.");
        }
        summary(f, steps)?;
        let shown = if self.whole { steps.len() } else { steps.len().min(STEPS) };
        let mut at = None;
        for step in &steps[..shown] {
            if at.replace(&step.at) != Some(&step.at) {
                writeln!(f, "\n{}", step.at)?;
            }
            let saved = match step.saved {
                0 => String::new(),
                n if n < 0 => format!(", {} more", -n),
                n => format!(", saves {n}"),
            };
            writeln!(f, "  {}{saved}", step.rule)?;
            let formula = |f: &mut fmt::Formatter<'_>, sign: &str, text: &str| {
                folded(text, COLUMNS - 8).into_iter().enumerate().try_for_each(|(i, line)| {
                    writeln!(f, "    {} {line}", if i == 0 { sign } else { "   " })
                })
            };
            formula(f, "   ", &step.before)?;
            formula(f, "  =", &step.after)?;
        }
        match steps.len() - shown {
            0 => Ok(()),
            more => writeln!(f, "\n... and {more} more steps (--full writes them all)"),
        }
    }

    /// The final formula of each output that a rule rewrote.
    fn last(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |name: &str| self.simplified.steps.iter().rfind(|step| step.at == name);
        let outputs = self.simplified.program.outputs();
        let known: Vec<_> = outputs.filter_map(|name| Some((name, &of(name)?.after))).collect();
        if known.is_empty() {
            return Ok(());
        }
        heading(f, "In one line")?;
        known.into_iter().try_for_each(|(name, formula)| {
            folded(&format!("{name} = {formula}"), COLUMNS)
                .into_iter()
                .try_for_each(|line| writeln!(f, "{line}"))
        })
    }

    fn listing(&self, f: &mut fmt::Formatter<'_>, program: &Program) -> fmt::Result {
        let lines: Vec<Row> = program.lines().map(|line| Row::of(line, self.whole)).collect();
        let keys: Vec<_> = lines.iter().map(|row| &row.key).collect();
        let long = lines.len() > LONG && !self.whole;
        let all = [super::repeats::Stretch { range: 0..lines.len(), again: 0 }];
        let parts = if long { stretches(&keys) } else { all.to_vec() };
        let widest = |f: fn(&Row) -> usize| lines.iter().map(f).max().unwrap_or(0);
        let shapes = widest(|row| row.shape.chars().count());
        let room = COLUMNS.saturating_sub(6 + shapes + widest(|row| row.note.chars().count()));
        let widths = lines.iter().map(|row| row.code.chars().count());
        let wide = widths.filter(|w| *w <= room.max(24)).max().unwrap_or(0);
        let mut phase = None;
        for part in parts {
            for row in &lines[part.range.clone()] {
                if phase.replace(row.phase) != Some(row.phase) {
                    writeln!(f, "{}", row.phase.name())?;
                }
                row.write(f, wide, shapes)?;
            }
            if part.again > 0 {
                let (n, last) =
                    (part.range.len(), part.range.end - 1 + part.again * part.range.len());
                let times = if part.again == 1 { "once" } else { "times" };
                let count =
                    if part.again == 1 { String::new() } else { format!("{} ", part.again) };
                let what =
                    if n == 1 { "this line".to_string() } else { format!("these {n} lines") };
                writeln!(f, "  ... {what} {count}{times} more, up to {}", lines[last].name)?;
            }
        }
        let outputs: Vec<&str> = program.outputs().collect();
        writeln!(f, "return {}", outputs.join(", "))
    }
}

/// Uses of each rule, and the operations it saved.
fn summary(f: &mut fmt::Formatter<'_>, steps: &[Applied]) -> fmt::Result {
    let mut rules: Vec<(&str, usize, i64)> = Vec::new();
    for step in steps {
        match rules.iter_mut().find(|(rule, ..)| *rule == step.rule) {
            Some((_, count, saved)) => (*count, *saved) = (*count + 1, *saved + step.saved),
            None => rules.push((step.rule, 1, step.saved)),
        }
    }
    writeln!(f, "{:<34}{:>14}{:>14}", "rule", "used", "saved")?;
    rules
        .iter()
        .try_for_each(|(rule, count, saved)| writeln!(f, "{rule:<34}{count:>14}{saved:>14}"))
}

/// A line of a listing.
struct Row {
    name: String,
    code: String,
    shape: String,
    note: String,
    phase: Phase,
    /// A key that is equal for lines that do the same to other values.
    key: (Phase, &'static str, usize, String),
}

impl Row {
    fn of(line: Line<'_>, whole: bool) -> Row {
        let shape = format!("{} {}", line.dtype(), line.shape());
        let phase = line.phase();
        // The same update of another shape counts as equal.
        let like = if phase == Phase::Update { String::new() } else { shape.clone() };
        let code = Some(line.code()).filter(|code| whole || code.chars().count() <= CODE);
        let code = code.unwrap_or_else(|| {
            let inputs = line.inputs().join(", ");
            format!("{} = {}({inputs}, ...)", line.name(), line.op())
        });
        Row {
            name: line.name().to_string(),
            code,
            note: line.rule().unwrap_or_default(),
            key: (phase, line.op(), line.inputs().len(), like),
            shape,
            phase,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, wide: usize, shapes: usize) -> fmt::Result {
        let rest = format!("{:<shapes$}  {}", self.shape, self.note);
        let code = folded(&self.code, COLUMNS - 6);
        let (last, before) = code.split_last().expect("a line at least");
        for (i, line) in before.iter().enumerate() {
            writeln!(f, "  {}{line}", if i == 0 { "" } else { "    " })?;
        }
        let last = format!("{}{last}", if before.is_empty() { "" } else { "    " });
        match last.chars().count() <= wide {
            true => writeln!(f, "  {}", format!("{last:<wide$}  {rest}").trim_end()),
            false => writeln!(f, "  {last}\n  {:<wide$}  {}", "", rest.trim_end()),
        }
    }
}

/// A text in lines of this many columns, broken at spaces.
fn folded(text: &str, columns: usize) -> Vec<String> {
    let mut out = vec![String::new()];
    for word in text.split(' ') {
        let line = out.last_mut().expect("one at least");
        let new = line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && new > columns {
            out.push(word.to_string());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    out
}

fn columns(cost: Cost) -> String {
    format!("{:>14}{:>14}{:>14}", cost.instructions, short(cost.flops), short(cost.bytes))
}

/// Three digits and a prefix: `1.23 M`.
fn short(n: u64) -> String {
    let (mut x, mut k) = (n as f64, 0);
    while x >= 999.5 && k < 4 {
        x /= 1000.0;
        k += 1;
    }
    let digits = if k == 0 || x >= 99.95 {
        0
    } else if x >= 9.995 {
        1
    } else {
        2
    };
    format!("{x:.digits$} {}", ["", "k", "M", "G", "T"][k]).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_lines_are_folded() {
        let cases =
            [(0, "0"), (999, "999"), (1000, "1.00 k"), (12_345, "12.3 k"), (999_600, "1.00 M")];
        for (n, text) in cases {
            assert_eq!(short(n), text);
        }
        assert_eq!(folded("aa bb cc dd", 5), ["aa bb", "cc dd"]);
        assert_eq!(folded("toolong a", 3), ["toolong", "a"]);
    }
}
