//! The limits of WGSL.

use chainrule_core::dtype::DType;
use chainrule_core::error::{Error, Result};

use crate::graph::{Graph, Step};

/// Errors for values that WebGPU cannot hold, take or give.
pub(crate) fn admitted(graph: &Graph) -> Result<()> {
    let given = |step: &Step| matches!(step, Step::Argument(_) | Step::State(_));
    let outside = graph.values.iter().enumerate().filter(|(_, v)| given(&v.step));
    if let Some(value) = graph.values.iter().find(|value| value.dtype == DType::BF16) {
        let why = format!("`{}` is of bf16, which kernels of WebGPU lack; use f32", value.name);
        return Err(Error::argument("wgsl", why));
    }
    for v in outside.map(|(i, _)| i).chain(graph.roots()) {
        let value = &graph.values[v];
        // A single number, such as a learning rate, becomes one of f32.
        if value.dtype == DType::F64 && value.numel() > 1 {
            let why = format!("`{}` is of f64, which WebGPU does not have; use f32", value.name);
            return Err(Error::argument("wgsl", why));
        }
    }
    Ok(())
}
