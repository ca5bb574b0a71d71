//! The names that the code of a custom op has for what its backward is given.

use std::collections::HashMap;

use super::replay::Replay;
use crate::program::{Id, bindings};

/// For each argument (inputs, result, gradient of the result) the variable that the code binds it
/// to, where that is seen.
pub(super) fn of_arguments(replay: &Replay) -> HashMap<Id, String> {
    let arguments = replay.program.arguments();
    let inputs = arguments.len().saturating_sub(2);
    let mut names: HashMap<Id, String> = HashMap::new();
    for (i, id) in arguments.iter().enumerate() {
        let word = match i {
            i if i < inputs => format!("ctx.inputs()[{i}]"),
            i if i == inputs => "ctx.output()".to_string(),
            _ => "cotangent".to_string(),
        };
        names.insert(*id, word);
    }
    let places = replay.program.list().iter().filter_map(|i| i.location.as_ref());
    let Some(place) = places.min_by_key(|p| p.line()) else { return names };
    let Some(text) = bindings::read(place.file()) else { return names };
    let rows: Vec<&str> = text.lines().collect();
    let last = replay.program.list().iter().filter_map(|i| i.location.as_ref()).map(|p| p.line());
    let last = last.max().unwrap_or(place.line()) as usize;
    let Some(head) =
        (0..(place.line() as usize).min(rows.len())).rev().take(60).find(|&i| is_head(rows[i]))
    else {
        return names;
    };
    if let (Some(name), Some(id)) = (second_parameter(rows[head]), arguments.last()) {
        names.insert(*id, name);
    }
    for row in &rows[head..last.min(rows.len())] {
        for (name, value) in bound(row) {
            let value = value.trim_start_matches('&').trim_end_matches(".clone()");
            for (i, id) in arguments.iter().enumerate().take(inputs + 1) {
                let read = match i {
                    i if i < inputs => format!("inputs()[{i}]"),
                    _ => "output()".to_string(),
                };
                let context = value.strip_suffix(&read).and_then(|c| c.strip_suffix('.'));
                if context.is_some_and(|c| c.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
                {
                    names.insert(*id, name.clone());
                }
            }
        }
    }
    names
}

/// Whether a row begins the backward of a custom op: a closure of two parameters, or the method.
fn is_head(row: &str) -> bool {
    row.contains("fn backward(") || second_parameter(row).is_some()
}

fn second_parameter(row: &str) -> Option<String> {
    let text = match row.split_once("fn backward(") {
        Some((_, rest)) => rest.split_once(')')?.0.split(',').next_back()?,
        None => {
            let (_, rest) = row.split_once('|')?;
            let (inside, _) = rest.split_once('|')?;
            inside.split_once(',')?.1
        }
    };
    let name = text.split(':').next()?.trim();
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain.then(|| name.to_string())
}

/// The names that a row binds, with their values: `let x = a;` and `let (x, y) = (a, b);`.
fn bound(row: &str) -> Vec<(String, String)> {
    let Some(rest) = row.trim().strip_prefix("let ") else { return Vec::new() };
    let Some((names, values)) = rest.split_once('=') else { return Vec::new() };
    let list = |text: &str| -> Vec<String> {
        let text = text.trim().trim_end_matches(';').trim();
        let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
        inner.unwrap_or(text).split(',').map(|p| p.trim().to_string()).collect()
    };
    let (names, values) = (list(names), list(values));
    if names.len() != values.len() {
        return Vec::new();
    }
    names.into_iter().zip(values).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_code_calls_its_arguments() {
        assert_eq!(second_parameter("    |ctx, dy| {"), Some("dy".to_string()));
        let method = "fn backward(&self, ctx: &CustomContext, g: &Tensor) -> Result<()> {";
        assert_eq!(second_parameter(method), Some("g".to_string()));
        assert_eq!(second_parameter("let a = b || c;"), None);
        let found = bound("let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);");
        assert_eq!(found[1], ("w".to_string(), "&ctx.inputs()[1]".to_string()));
    }
}
