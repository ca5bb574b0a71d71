//! The Python functions that forms call.

use std::collections::BTreeSet;

pub(super) const FILES: [&str; 4] = [
    include_str!("helpers_math.py"),
    include_str!("helpers_arrays.py"),
    include_str!("helpers_layers.py"),
    include_str!("helpers_optim.py"),
];

/// The name and the text of each function.
fn all() -> Vec<(&'static str, &'static str)> {
    let files = FILES.iter().flat_map(|file| file.split("\n\n\n"));
    files.map(|text| (text[4..].split('(').next().unwrap_or_default(), text.trim())).collect()
}

/// Whether a text speaks of a function.
fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let letter = |c: char| c.is_alphanumeric() || c == '_';
        let before = text[..at].chars().next_back().is_some_and(letter);
        let after = text[at + name.len()..].chars().next().is_some_and(letter);
        !before && !after
    })
}

/// The functions that these texts need, and those that these need in turn.
pub(super) fn needed(texts: &[&str]) -> String {
    let all = all();
    let mut found: BTreeSet<usize> = BTreeSet::new();
    let mut open: Vec<&str> = texts.to_vec();
    while let Some(text) = open.pop() {
        for (i, (name, body)) in all.iter().enumerate() {
            if !found.contains(&i) && mentions(text, name) {
                found.insert(i);
                open.push(body);
            }
        }
    }
    found.into_iter().map(|i| format!("\n\n{}\n", all[i].1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_bring_those_that_they_call() {
        let text = needed(&["y = _std(x, (0,), 1, False)"]);
        assert!(text.contains("def _std(") && text.contains("def _var("), "{text}");
        assert!(!text.contains("def _variance") && !text.contains("def _softmax"), "{text}");
        for (name, text) in all() {
            assert!(name.starts_with('_') && text.starts_with("def _"), "{name}");
        }
    }
}
