//! Printing to the standard streams. A closed stream is an error to handle here, where `println!`
//! would panic.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Error, Result};
use serde::Serialize;

/// Whether another process prints the results: rank 0 of a training.
static IS_SILENT: AtomicBool = AtomicBool::new(false);

/// Prints nothing more to standard output.
pub fn silence() {
    IS_SILENT.store(true, Ordering::Relaxed);
}

/// Whether nothing is printed to standard output.
pub fn is_silent() -> bool {
    IS_SILENT.load(Ordering::Relaxed)
}

/// A text in which control characters but tabs and line breaks are written out, as `\u{1b}`: what
/// comes from a file or a model must not move the cursor of a terminal, or worse.
pub fn plain(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    match text.chars().all(is_plain) {
        true => Cow::Borrowed(text),
        false => {
            let escaped = |c: char| match is_plain(c) {
                true => c.to_string(),
                false => c.escape_unicode().to_string(),
            };
            Cow::Owned(text.chars().map(escaped).collect())
        }
    }
}

/// Prints a text, made [`plain`], and a line break to standard output.
pub fn line(text: &str) -> Result<()> {
    coloured(&plain(text))
}

/// Prints a text with the control characters that are in it, and a line break.
pub fn coloured(text: &str) -> Result<()> {
    if is_silent() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::new(e).context("cannot print the results"))
        }
        done => Ok(done?),
    }
}

/// Prints a value as one line of JSON to standard output.
pub fn json(value: &impl Serialize) -> Result<()> {
    // JSON escapes some control characters, and lets the others stand.
    let is_open = |c: char| c.is_control() && c as u32 >= 0x7f;
    let text = serde_json::to_string(value)?;
    let open = text.chars().any(is_open);
    let escaped = |c: char| match is_open(c) {
        true => format!("\\u{:04x}", c as u32),
        false => c.to_string(),
    };
    line(&if open { text.chars().map(escaped).collect() } else { text })
}

/// Prints a text as one line to standard error. A closed stream leaves nobody to tell.
pub fn complain(text: &str) {
    let text = text.replace(['\n', '\r'], " ");
    // One write, so that the lines of several ranks do not mix.
    let _ = io::stderr().write_all(format!("{}\n", plain(text.trim_end())).as_bytes());
}

/// An error unless a result is a number: a loss or a prediction that is none comes from a model or
/// data of no use.
pub fn number(what: &str, x: f64) -> Result<f64> {
    match x.is_finite() {
        true => Ok(x),
        false => anyhow::bail!(
            "{what} is {x}, not a number; train again with a smaller --lr, or check the data"
        ),
    }
}

/// Whether the error is that standard output was closed by its reader.
pub fn is_closed(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        for (text, want) in [
            ("plain, with\ttab\nand \u{e9}", "plain, with\ttab\nand \u{e9}"),
            ("a\x1b[2Jb", "a\\u{1b}[2Jb"),
            ("\r\x08\u{9b}\x7f", "\\u{d}\\u{8}\\u{9b}\\u{7f}"),
        ] {
            assert_eq!(plain(text), want);
        }
    }

    #[test]
    fn what_is_no_number_is_an_error() {
        assert_eq!(number("the loss", 1.5).unwrap(), 1.5);
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(number("the loss", x).unwrap_err().to_string().starts_with("the loss is "));
        }
    }
}
