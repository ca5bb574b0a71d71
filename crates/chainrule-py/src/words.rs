//! Messages of the library in the words of Python: its texts name what a Rust program writes.

use chainrule::DType;

/// Words of a Rust program, and those of a Python program in their place; the longer of two that
/// begin alike comes first.
const PHRASES: &[(&str, &str)] = &[
    ("backward_with().gradient(&g).run()", "backward(g)"),
    ("(Backward::keep_graph)", "(retain_graph=True)"),
    (
        "its saved values were freed by an earlier backward",
        "backward through the graph a second time: its saved values were freed by an earlier backward",
    ),
    ("give it with Tensor::named", "give it with x.named(name)"),
    ("Tensor::named", "x.named(name)"),
    ("program::Compiled", "compile"),
    ("make it with parameter() or buffer()", "call requires_grad_() on it"),
    ("make it with parameter()", "call requires_grad_() on it"),
    ("make the inputs with parameter()", "call requires_grad_() on the inputs"),
    ("made by parameter() or buffer()", "made by nn.Parameter() or register_buffer()"),
    ("parameter()", "requires_grad_()"),
    ("freeze()", "requires_grad_(False)"),
    ("to_dtype", "x.to(dtype)"),
];

/// The text with dtypes, methods and paths as Python has them. Quoted parts stay: they are names
/// and values of the user.
pub fn in_python(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    // The op itself stands first.
    let mut rest = match text.strip_prefix("to_dtype: ") {
        Some(rest) => {
            out.push_str("to: ");
            rest
        }
        None => text,
    };
    while let Some(first) = rest.chars().next() {
        let before = out.chars().next_back();
        let taken = match first {
            '\'' | '"' | '`' if !before.is_some_and(is_of_a_word) => quoted(rest, first),
            _ if before.is_some_and(is_of_a_word) => None,
            _ => phrase(rest, &mut out).or_else(|| word(rest, &mut out)),
        };
        match taken {
            Some(n) => {
                if matches!(first, '\'' | '"' | '`') {
                    out.push_str(&rest[..n]);
                }
                rest = &rest[n..];
            }
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Length of a quoted part, with its quotes.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut from = 1;
    loop {
        let end = from + text[from..].find(quote)? + 1;
        // An apostrophe inside a word ends nothing.
        if !text[end..].chars().next().is_some_and(is_of_a_word) {
            return Some(end);
        }
        from = end;
    }
}

fn phrase(text: &str, out: &mut String) -> Option<usize> {
    let (rust, python) = PHRASES.iter().find(|(rust, _)| {
        text.strip_prefix(rust).is_some_and(|rest| {
            !rust.ends_with(is_of_a_word) || !rest.chars().next().is_some_and(is_of_a_word)
        })
    })?;
    out.push_str(python);
    Some(rust.len())
}

/// A dtype, or a path: `Tensor::rand` is `rand`, and `a::b` is `a.b`.
fn word(text: &str, out: &mut String) -> Option<usize> {
    let end = text.find(|c| !is_of_a_word(c)).unwrap_or(text.len());
    let word = &text[..end];
    let after = &text[end..];
    let in_path = out.ends_with(['/', '\\', '.', '-'])
        || after.starts_with(['/', '\\', '-'])
        || after.strip_prefix('.').is_some_and(|rest| rest.starts_with(is_of_a_word));
    if in_path {
        return None;
    }
    if let Some(dtype) = DType::ALL.iter().find(|d| d.name() == word) {
        // "an f64" becomes "a float64".
        if dtype.is_float() && out.ends_with(" an ") {
            out.truncate(out.len() - 2);
            out.push(' ');
        }
        out.push_str(dtype.numpy_name());
        return Some(end);
    }
    if end > 0 && after.starts_with("::") {
        if word != "Tensor" {
            out.push_str(word);
            out.push('.');
        }
        return Some(end + 2);
    }
    None
}
