//! Position of the user's Python code, so that programs name its lines and its variables.

use chainrule::program::Script;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

pub const PYTHON: Script = Script { caller, source };

/// The folder of the package, whose own lines say nothing to its user.
static FOLDER: PyOnceLock<String> = PyOnceLock::new();

pub fn folder(py: Python<'_>) -> PyResult<&String> {
    FOLDER.get_or_try_init(py, || {
        let file: String = py.import("chainrule")?.getattr("__file__")?.extract()?;
        Ok(file.trim_end_matches("__init__.py").to_string())
    })
}

/// The innermost line outside the package.
fn caller() -> Option<(String, u32)> {
    Python::attach(|py| {
        let own = folder(py).ok()?;
        let mut frame = py.import("sys").ok()?.call_method0("_getframe").ok()?;
        while !frame.is_none() {
            let file = frame.getattr("f_code").ok()?.getattr("co_filename").ok()?;
            let file: String = file.extract().ok()?;
            if !file.starts_with(own.as_str()) {
                return Some((file, frame.getattr("f_lineno").ok()?.extract().ok()?));
            }
            frame = frame.getattr("f_back").ok()?;
        }
        None
    })
}

/// The text of a file, or of a cell of a notebook.
fn source(file: &str) -> Option<String> {
    Python::attach(|py| {
        let lines = py.import("linecache").ok()?.call_method1("getlines", (file,)).ok()?;
        Some(lines.extract::<Vec<String>>().ok()?.concat())
    })
}
