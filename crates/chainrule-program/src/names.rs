//! Names of values: unique ones, and those that the source gives them.

use std::collections::{HashMap, HashSet};

use super::bindings::{self, Binding};
use crate::tensor::log::{Address, Cause, TraceLog};

/// Names that are in use.
#[derive(Clone, Default)]
pub(super) struct Names {
    used: HashSet<String>,
    next: HashMap<String, usize>,
}

impl Names {
    /// `wanted` as a name in Rust and Python, with a number if it is in use.
    pub fn unique(&mut self, wanted: &str) -> String {
        let stem = identifier(wanted);
        if !stem.ends_with('_') && self.used.insert(stem.clone()) {
            return stem;
        }
        let next = self.next.entry(stem.clone()).or_insert(1);
        loop {
            *next += 1;
            let name = format!("{stem}_{next}");
            if self.used.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Reserved words of Python and of the script.
const RESERVED: [&str; 47] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
    "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "None",
    "True", "False", "np", "math", "rng", "draws", "torch", "jax", "jnp", "float", "int", "bool",
    "range", "slice",
];

fn identifier(wanted: &str) -> String {
    let mut out: String =
        wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit() || c == '_') {
        out.insert(0, 'v');
    }
    if RESERVED.contains(&out.as_str()) {
        out.push('1');
    }
    out
}

/// Names results after the variables that statements bind them to in the source, where the source
/// can be read and the user gave no name.
pub(super) fn from_source(log: &TraceLog, names: &mut HashMap<Address, String>) {
    let mut files: HashMap<&str, Vec<Binding>> = HashMap::new();
    // The last op of a statement computes the value that is bound.
    let mut open: Option<(&str, usize, Address)> = None;
    let mut close = |open: &mut Option<(&str, usize, Address)>,
                     files: &HashMap<&str, Vec<Binding>>| {
        if let Some((file, at, address)) = open.take() {
            names.entry(address).or_insert_with(|| files[file][at].name.clone());
        }
    };
    for entry in log.entries.iter().filter(|e| e.cause == Cause::Forward) {
        let Some(place) = &entry.place else {
            close(&mut open, &files);
            continue;
        };
        let file = place.file();
        let bindings = files.entry(file).or_insert_with(|| match &log.script {
            Some(script) => bindings::of_python(&(script.source)(file).unwrap_or_default()),
            None => bindings::of_rust(&bindings::read(file).unwrap_or_default()),
        });
        let line = place.line() as usize;
        // The statement that begins last encloses the others.
        let found = bindings.iter().rposition(|b| (b.first..=b.last).contains(&line));
        let same = matches!((&open, found), (Some((f, at, _)), Some(b)) if *f == file && *at == b);
        if !same {
            close(&mut open, &files);
        }
        open = found.map(|b| (file, b, entry.outputs[0].address()));
    }
    close(&mut open, &files);
}
