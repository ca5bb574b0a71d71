//! The results as text: for the terminal, as CSV, as a page.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::{Counts, MistakeRow, Table};

/// The columns of the counts, in the order in which they are written.
const COLUMNS: [&str; 6] = ["planted", "detected", "named", "listed", "missed", "harmless"];

impl Counts {
    fn columns(&self) -> [usize; 6] {
        [self.planted, self.detected, self.named, self.listed, self.missed, self.harmless]
    }
}

impl Table {
    /// The sums of the rows of each setting, `alone` first.
    pub fn by_setting(&self) -> Vec<(String, Counts)> {
        let mut sums: BTreeMap<(bool, &str), Counts> = BTreeMap::new();
        for row in self.rows() {
            let sum = sums.entry((row.setting != "alone", &row.setting)).or_default();
            *sum = sum.plus(&row.counts);
        }
        sums.into_iter().map(|((_, setting), counts)| (setting.to_string(), counts)).collect()
    }

    /// The full table, one line for each mistake at each op in each setting.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "setting,op,mistake,planted,detected,named,listed,missed,harmless,misnamed,unidentified,said\n",
        );
        for row in self.rows() {
            let numbers = row.counts.columns().map(|n| n.to_string()).join(",");
            let Counts { misnamed, unidentified, .. } = row.counts;
            let texts = [&row.setting, row.op, row.mistake].map(quoted).join(",");
            let said = quoted(&row.said);
            let _ = writeln!(out, "{texts},{numbers},{misnamed},{unidentified},{said}");
        }
        out
    }

    /// The full table as a page in Markdown.
    pub fn page(&self) -> String {
        let mut out = String::from(HEAD);
        let mut settings = self.by_setting();
        settings.push(("all".to_string(), self.totals()));
        table(&mut out, "setting", settings.iter().map(|(name, c)| (name.clone(), *c)));
        let _ = writeln!(
            out,
            "\nWithout a planted mistake the check was run at {} points, kinks among them: {}.",
            self.untouched_runs(),
            match self.false_alarms().len() {
                0 => "no alarm".to_string(),
                1 => "1 false alarm".to_string(),
                n => format!("{n} false alarms"),
            }
        );
        let [named, listed, neither] = self.totals().from_parameters;
        let _ = writeln!(
            out,
            "\nFor every fifth mistake in the models the verdict was also asked with the gradients of the parameters alone, without those of the intermediates: it then named {named} and listed {listed} among several; of {neither} it did not find the place."
        );
        let _ = writeln!(out, "\n## Alone\n");
        self.section(&mut out, |row| row.setting == "alone");
        let models: Vec<String> = self.by_setting().into_iter().map(|(name, _)| name).collect();
        for model in models.iter().filter(|m| *m != "alone") {
            let _ = writeln!(out, "\n## In the {model}\n");
            self.section(&mut out, |row| row.setting == *model);
        }
        out
    }

    fn section(&self, out: &mut String, of: impl Fn(&MistakeRow) -> bool) {
        let rows = self.rows().filter(|r| of(r));
        table(
            out,
            "mistake",
            rows.map(|r| (format!("`{}`: {}", r.op, r.mistake.replace('`', "")), r.counts)),
        );
    }
}

const HEAD: &str = "\
# The benchmark of the mistakes

<!-- Written by `chainrule check mistakes`. -->

Each classic mistake of each op was planted in the backward pass, in the op alone and in three models, at random shapes and numbers. *Detected* means that
forward mode disagreed with the gradients that came out; *named* that the verdict, which saw the wrong numbers and nothing else, said the mistake and its place;
*listed*, that it did so among others that give the same numbers there. A *harmless* mistake changes no gradient of a parameter, such as
one in the path through a subtracted row maximum; it is not counted among the planted ones. `chainrule check mistakes` makes this page again.

";

/// A table of counts in Markdown.
fn table(out: &mut String, title: &str, rows: impl Iterator<Item = (String, Counts)>) {
    let _ = writeln!(out, "| {title} | {} |", COLUMNS.join(" | "));
    let _ = writeln!(out, "| --- |{}", " ---: |".repeat(COLUMNS.len()));
    for (name, counts) in rows {
        let numbers = counts.columns().map(|n| n.to_string()).join(" | ");
        let _ = writeln!(out, "| {name} | {numbers} |");
    }
}

/// A field of CSV.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}

impl fmt::Display for Table {
    /// The sums of each setting, what was not named, and the false alarms.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, name: &str, columns: [String; 6]| {
            let columns = columns.map(|c| format!("{c:>9}")).concat();
            writeln!(f, "{name:<34}{columns}")
        };
        line(f, "wrong backward of a right forward", COLUMNS.map(str::to_string))?;
        let mut settings = self.by_setting();
        settings.push(("all".to_string(), self.totals()));
        for (name, counts) in settings {
            line(f, &format!("  {name}"), counts.columns().map(|n| n.to_string()))?;
        }
        for row in self.rows() {
            let Counts { missed, misnamed, unidentified, .. } = row.counts;
            for (count, word) in
                [(missed, "missed"), (misnamed, "misnamed"), (unidentified, "not identified")]
            {
                if count > 0 {
                    let MistakeRow { mistake, op, setting, said, .. } = row;
                    writeln!(f, "{count} {word}: {mistake} in {op}, {setting}: {said}")?;
                }
            }
        }
        let alarms = self.false_alarms();
        write!(f, "{} untouched points, {} false alarms", self.untouched_runs(), alarms.len())?;
        alarms.iter().try_for_each(|alarm| write!(f, "\nfalse alarm: {alarm}"))
    }
}
