//! Names of values: unique ones, and those that the source gives them.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use crate::tensor::log::{Address, Log, Origin};

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

/// What Python, or a script, would take for something else.
const RESERVED: [&str; 39] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
    "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield", "None",
    "True", "False", "np", "math", "rng", "draws",
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

/// Gives results the names that `let` binds them to in the source, where the source can be read and the user gave no name.
pub(super) fn from_source(log: &Log, names: &mut HashMap<Address, String>) {
    let mut files: HashMap<&str, Vec<Binding>> = HashMap::new();
    // The last op of a statement makes what is bound.
    let mut open: Option<(&str, usize, Address)> = None;
    let mut close = |open: &mut Option<(&str, usize, Address)>,
                     files: &HashMap<&str, Vec<Binding>>| {
        if let Some((file, at, address)) = open.take() {
            names.entry(address).or_insert_with(|| files[file][at].name.clone());
        }
    };
    for entry in log.entries.iter().filter(|e| e.origin == Origin::Forward) {
        let file = entry.location.file();
        let bindings = files.entry(file).or_insert_with(|| read_bindings(file));
        let line = entry.location.line() as usize;
        // The statement that begins last encloses the others.
        let found = bindings.iter().rposition(|b| (b.first..=b.last).contains(&line));
        let same = matches!((&open, found), (Some((f, at, _)), Some(b)) if *f == file && *at == b);
        if !same {
            close(&mut open, &files);
        }
        open = found.map(|b| (file, b, Arc::as_ptr(&entry.outputs[0])));
    }
    close(&mut open, &files);
}

/// A statement `let name = ...;` and its lines.
struct Binding {
    name: String,
    first: usize,
    last: usize,
}

fn read_bindings(file: &str) -> Vec<Binding> {
    // The compiler names files from the root of the workspace; the program may run in a folder below it.
    let mut base = Some(Path::new(""));
    let here = std::env::current_dir().unwrap_or_default();
    let mut text = None;
    let mut above = Some(here.as_path());
    while text.is_none() {
        let path = match base.take() {
            Some(empty) => empty.join(file),
            None => match above {
                Some(folder) => {
                    above = folder.parent();
                    folder.join(file)
                }
                None => break,
            },
        };
        text = std::fs::read_to_string(path).ok();
    }
    text.map_or_else(Vec::new, |text| bindings(&text))
}

fn bindings(text: &str) -> Vec<Binding> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(rest) = line.trim_start().strip_prefix("let ") else { continue };
        let rest = rest.strip_prefix("mut ").unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let binds = after.starts_with(':') || after.trim_start().starts_with('=');
        if name.is_empty() || name.starts_with('_') || !binds {
            continue;
        }
        // It ends with the first `;` outside brackets.
        let mut depth = 0i32;
        let mut last = None;
        'lines: for (k, line) in lines[i..].iter().enumerate().take(40) {
            for c in line.chars() {
                match c {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth -= 1,
                    ';' if depth == 0 => {
                        last = Some(i + k + 1);
                        break 'lines;
                    }
                    _ => {}
                }
            }
        }
        // A block or a closure holds statements of its own; only what is one expression names its result.
        if let Some(last) = last
            && !lines[i..last].iter().any(|l| l.trim_end().ends_with('{') || l.contains("|| "))
        {
            out.push(Binding { name: name.to_string(), first: i + 1, last });
        }
    }
    out
}
