//! The report as a table.

use std::fmt;

use super::{Failure, OpReport, OpsReport, Property};

impl fmt::Display for OpsReport {
    /// One line for each op, then what did not hold, then a line with the sums.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.ops.iter().map(|op| op.name.len()).max().unwrap_or(0).min(40);
        write!(f, "{:width$}  samples", "")?;
        for property in Property::ALL {
            write!(f, "  {:>9}", property.name())?;
        }
        writeln!(f, "  {:>9}", "error")?;
        for op in &self.ops {
            writeln!(f, "{:width$}  {}", op.name, Line(op))?;
        }
        for op in &self.ops {
            for failure in &op.failures {
                writeln!(f, "\n{}, {failure}", op.name)?;
            }
        }
        let wrong = self.ops.iter().filter(|op| !op.passed()).count();
        let samples: usize = self.ops.iter().map(|op| op.samples).sum();
        write!(f, "\n{} ops on {samples} samples: ", self.ops.len())?;
        match wrong {
            0 => f.write_str("all right"),
            n => write!(f, "{n} WRONG"),
        }
    }
}

struct Line<'a>(&'a OpReport);

impl fmt::Display for Line<'_> {
    /// For each property how often it was checked, or how often it failed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = self.0;
        write!(f, "{:>7}", op.samples)?;
        for count in &op.counts {
            let text = match (count.checked, count.failed) {
                (0, _) => "-".to_string(),
                (n, 0) => n.to_string(),
                (n, failed) => format!("{failed}/{n} BAD"),
            };
            write!(f, "  {text:>9}")?;
        }
        write!(f, "  {:>9.1e}", op.largest_error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {:?}: {}", self.property.name(), self.sample, self.what)
    }
}
