//! The report as a table.

use std::fmt;

use super::{Failure, OpReport, OpsReport, Property};

/// The width of the column of names; a longer one moves its own line.
const NAMES: usize = 29;

impl OpsReport {
    /// The heads of the columns.
    pub fn head() -> String {
        let names = Property::ALL.map(|property| format!("  {:>9}", property.name()));
        format!("{:NAMES$}  samples{}  {:>9}", "op", names.concat(), "error")
    }

    /// The failures, and a line with the sums.
    pub fn verdict(&self) -> String {
        let mut text = String::new();
        for op in &self.ops {
            for failure in &op.failures {
                text += &format!("\n{}, {failure}\n", op.name);
            }
        }
        let wrong = self.ops.iter().filter(|op| !op.passed()).count();
        let samples: usize = self.ops.iter().map(|op| op.samples).sum();
        let ops = match self.ops.len() {
            1 => "1 op".to_owned(),
            n => format!("{n} ops"),
        };
        let verdict = match wrong {
            0 => "all right".to_owned(),
            n => format!("{n} WRONG"),
        };
        text + &format!("\n{ops} on {samples} samples: {verdict}")
    }
}

impl OpReport {
    /// The op's line of the table: for each property how often it was looked at, or how often it
    /// did not hold.
    pub fn line(&self) -> String {
        let mut line = format!("{:NAMES$}  {:>7}", self.name, self.samples);
        for count in &self.counts {
            let text = match (count.checked, count.failed) {
                (0, _) => "-".to_owned(),
                (n, 0) => n.to_string(),
                (n, failed) => format!("{failed}/{n} BAD"),
            };
            line += &format!("  {text:>9}");
        }
        match self.count(Property::Modes).checked {
            0 => line + &format!("  {:>9}", "-"),
            _ => line + &format!("  {:>9.1e}", self.largest_error),
        }
    }
}

impl fmt::Display for OpsReport {
    /// One line for each op, then what did not hold, then a line with the sums.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", OpsReport::head())?;
        for op in &self.ops {
            writeln!(f, "{}", op.line())?;
        }
        f.write_str(&self.verdict())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {:?}: {}", self.property.name(), self.sample, self.what)
    }
}
