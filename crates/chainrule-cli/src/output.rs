//! What is printed. A closed stream is an error to handle here, where `println!` would panic.

use std::io::{self, Write};

use anyhow::{Error, Result};
use serde::Serialize;

/// Prints a text and a line break to standard output.
pub fn line(text: &str) -> Result<()> {
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
    line(&serde_json::to_string(value)?)
}

/// Prints a text as one line to standard error. A closed stream leaves nobody to tell.
pub fn complain(text: &str) {
    let text = text.replace(['\n', '\r'], " ");
    let _ = writeln!(io::stderr(), "{}", text.trim_end());
}

/// Whether the error is that standard output was closed by its reader.
pub fn is_closed(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}
