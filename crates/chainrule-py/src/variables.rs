//! Names of the user's variables, for reports.

use std::collections::HashMap;

use chainrule_core::tensor::shown::with_shown_names;
use pyo3::intern;
use pyo3::prelude::*;

use crate::tensor::PyTensor;

/// As [`crate::error::run`], of a report: it names tensors by the paths of modules and by the
/// variables of the functions that led here.
pub fn report<T>(py: Python<'_>, f: impl FnOnce() -> chainrule::Result<T>) -> PyResult<T> {
    let all = py.import(intern!(py, "chainrule._variables"))?;
    let all = all.call_method0(intern!(py, "shown_names"))?;
    let mut names = HashMap::new();
    for (tensor, name) in all.extract::<Vec<(Bound<'_, PyTensor>, String)>>()? {
        let number = tensor.get().tensor().source().number();
        if number > 0 {
            names.entry(number).or_insert(name);
        }
    }
    with_shown_names(names, || crate::error::run(f))
}
