//! The Python functions that forms call.

use std::collections::BTreeMap;

use super::library::Library;
use super::spell::Speller;

pub(super) const FILES: [&str; 4] = [
    include_str!("helpers_math.py"),
    include_str!("helpers_arrays.py"),
    include_str!("helpers_layers.py"),
    include_str!("helpers_optim.py"),
];

const TORCH: [&str; 3] = [
    include_str!("torch/math.py"),
    include_str!("torch/arrays.py"),
    include_str!("torch/layers.py"),
];

const JAX: [&str; 2] = [include_str!("jax/arrays.py"), include_str!("jax/layers.py")];

/// A function that forms call.
struct Function {
    name: &'static str,
    text: &'static str,
    /// Whether it is written for NumPy.
    numpy: bool,
}

fn functions(files: &[&'static str], numpy: bool) -> Vec<Function> {
    let texts = files.iter().flat_map(|file| file.split("\n\n\n")).map(str::trim);
    let name = |text: &'static str| text[4..].split('(').next().unwrap_or_default();
    texts.map(|text| Function { name: name(text), text, numpy }).collect()
}

/// The functions for a library: its own, and those of NumPy that it has none for.
fn all(library: Library) -> Vec<Function> {
    let own: &[&str] = match library {
        Library::Numpy => &[],
        Library::Torch => &TORCH,
        Library::Jax => &JAX,
    };
    let mut all = functions(own, false);
    let numpy = functions(&FILES, true);
    let rest: Vec<Function> =
        numpy.into_iter().filter(|f| all.iter().all(|own| own.name != f.name)).collect();
    all.extend(rest);
    all
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

/// The functions that these texts need, and those that these need in turn; the error is what the
/// library has no spelling for.
pub(super) fn needed(speller: &Speller, texts: &[&str]) -> Result<String, String> {
    let all = all(speller.library);
    let mut found: BTreeMap<usize, String> = BTreeMap::new();
    let mut open: Vec<String> = texts.iter().map(ToString::to_string).collect();
    while let Some(text) = open.pop() {
        for (i, function) in all.iter().enumerate() {
            if !found.contains_key(&i) && mentions(&text, function.name) {
                let body = match function.numpy {
                    true => speller.function(function.text)?,
                    false => function.text.to_string(),
                };
                open.push(body.clone());
                found.insert(i, body);
            }
        }
    }
    Ok(found.into_values().map(|body| format!("\n\n{body}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_bring_those_that_they_call() {
        for (_, library) in Library::ALL {
            let text = needed(&Speller::new(library), &["y = _std(x, (0,), 1, False)"]).unwrap();
            assert!(text.contains("def _std(") && text.contains("def _var("), "{text}");
            assert!(!text.contains("def _variance") && !text.contains("def _softmax"), "{text}");
        }
    }

    #[test]
    fn each_function_has_a_form_for_each_library() {
        for (_, library) in Library::ALL {
            let speller = Speller::new(library);
            for Function { name, text, numpy } in all(library) {
                assert!(name.starts_with('_') && text.starts_with("def _"), "{name}");
                if numpy {
                    let text = speller.function(text).unwrap_or_else(|w| panic!("{name}: {w}"));
                    assert!(library == Library::Numpy || !text.contains(" np."), "{text}");
                }
            }
        }
    }
}
