//! Finding an op by its name.

use crate::error::{Error, Result};
use chainrule_core::ops::{Entry, table};

/// The entry with that name, or with a method of that name.
pub fn entry(name: &str) -> Result<&'static Entry> {
    let wanted = name.trim();
    let named = |e: &&Entry| e.name == wanted || e.name.split(", ").any(|own| own == wanted);
    table().find(named).ok_or_else(|| {
        let near = nearest(wanted).join(", ");
        Error::argument(
            "check",
            format!("no op is called {wanted:?}; the nearest names are {near}"),
        )
    })
}

/// The three names that take the fewest changes, those that hold the text first.
fn nearest(wanted: &str) -> Vec<&'static str> {
    let mut names: Vec<&str> = table().flat_map(|e| e.name.split(", ")).collect();
    let holds = |name: &str| wanted.len() > 1 && name.contains(wanted);
    names.sort_by_key(|name| (changes(wanted, name) - 2 * i64::from(holds(name)), *name));
    names.truncate(3);
    names
}

/// Edit distance of two words: letters inserted, deleted or replaced (Levenshtein 1965).
fn changes(a: &str, b: &str) -> i64 {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<i64> = (0..=b.len() as i64).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i as i64 + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = before + i64::from(x != *y);
            before = row[j + 1];
            row[j + 1] = changed.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
