//! Gradients as functions, custom ops, and what shows the backward pass.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chainrule::autograd::{self, CustomContext, CustomOp};
use chainrule::{Tensor, json};
use chainrule_core::tensor::node::Mode;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{argument_error, check, run, through};
use crate::tensor::PyTensor;
use crate::variables::report;

fn all_of(tensors: &[Bound<'_, PyTensor>]) -> Vec<Tensor> {
    tensors.iter().map(|t| t.get().tensor()).collect()
}

#[pyfunction]
pub fn _grad(
    py: Python<'_>,
    outputs: Vec<Bound<'_, PyTensor>>,
    inputs: Vec<Bound<'_, PyTensor>>,
    upstream: Vec<Option<Bound<'_, PyTensor>>>,
    create_graph: bool,
) -> PyResult<Vec<Option<PyTensor>>> {
    let (outputs, inputs) = (all_of(&outputs), all_of(&inputs));
    run(chainrule::check_lent)?;
    if !create_graph {
        crate::session::walked();
    }
    let upstream: Vec<Option<Tensor>> =
        upstream.iter().map(|u| u.as_ref().map(|u| u.get().tensor())).collect();
    let grads = py.detach(|| {
        run(|| {
            let refs: Vec<&Tensor> = inputs.iter().collect();
            let mut sums: Vec<Option<Tensor>> = vec![None; inputs.len()];
            for (y, up) in outputs.iter().zip(&upstream) {
                let options = autograd::GradOptions { gradient: up.clone(), create_graph };
                let grads = autograd::grad_with(y, &refs, &options)?;
                for (sum, g) in sums.iter_mut().zip(grads) {
                    *sum = match (sum.take(), g) {
                        (Some(a), Some(b)) => Some(a.try_add(&b)?),
                        (a, b) => a.or(b),
                    };
                }
            }
            Ok(sums)
        })
    })?;
    check()?;
    Ok(grads.into_iter().map(|g| g.map(PyTensor::from)).collect())
}

/// Calls a Python function with these tensors.
fn call(op: &'static str, f: &Py<PyAny>, inputs: &[Tensor]) -> chainrule::Result<Tensor> {
    Python::attach(|py| {
        let inputs = inputs.iter().map(|t| PyTensor::from(t.clone()));
        let args = inputs.map(|t| Py::new(py, t)).collect::<PyResult<Vec<_>>>();
        let out = args
            .and_then(|args| f.bind(py).call1(PyTuple::new(py, args)?))
            .map_err(|e| through(op, e))?;
        match out.cast::<PyTensor>() {
            Ok(t) => Ok(t.get().tensor()),
            Err(_) => Err(through(
                op,
                PyTypeError::new_err(format!("{op}: the function must return a tensor")),
            )),
        }
    })
}

/// The value of `f` and its change along the tangents, in forward mode.
#[pyfunction]
pub fn _jvp(
    f: Py<PyAny>,
    inputs: Vec<Bound<'_, PyTensor>>,
    tangents: Vec<Bound<'_, PyTensor>>,
) -> PyResult<(PyTensor, PyTensor)> {
    let (inputs, tangents) = (all_of(&inputs), all_of(&tangents));
    let mut failed = None;
    let (y, dy) = run(|| {
        let f = |x: &[Tensor]| match call("jvp", &f, x) {
            Ok(t) => t,
            Err(error) => {
                failed = Some(error);
                // A value that the caller never sees.
                Tensor::scalar(0.0f32)
            }
        };
        let out = autograd::jvp(f, &inputs, &tangents);
        match failed.take() {
            Some(error) => Err(error),
            None => out,
        }
    })?;
    Ok((y.into(), dy.into()))
}

/// Whether `y` depends on a leaf that is none of `leaves`.
#[pyfunction]
pub fn _leads_beside(y: &Bound<'_, PyTensor>, leaves: Vec<Bound<'_, PyTensor>>) -> bool {
    autograd::leads_beside(&y.get().tensor(), &all_of(&leaves))
}

/// A function whose backward pass is given by hand.
struct ByHand {
    name: String,
    forward: Py<PyAny>,
    backward: Py<PyAny>,
}

impl CustomOp for ByHand {
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(&self, inputs: &[Tensor]) -> chainrule::Result<Tensor> {
        call("forward", &self.forward, inputs)
    }

    fn backward(
        &self,
        ctx: &CustomContext,
        cotangent: &Tensor,
    ) -> chainrule::Result<Vec<Option<Tensor>>> {
        Python::attach(|py| {
            let mut args = vec![cotangent.clone()];
            args.extend(ctx.inputs().iter().cloned());
            args.push(ctx.output().clone());
            let args: PyResult<Vec<_>> =
                args.into_iter().map(|t| Py::new(py, PyTensor::from(t))).collect();
            let out = args
                .and_then(|a| self.backward.bind(py).call1(PyTuple::new(py, a)?))
                .and_then(|out| {
                    if out.is_instance_of::<PyTensor>() {
                        Ok(PyTuple::new(py, [out])?.into_any())
                    } else {
                        Ok(out)
                    }
                })
                .and_then(|out| out.extract::<Vec<Option<Py<PyTensor>>>>());
            let out = out.map_err(|e| through("backward", e))?;
            Ok(out.into_iter().map(|g| g.map(|g| g.bind(py).get().tensor())).collect())
        })
    }
}

/// `forward(*inputs)` with the reverse rule `backward(cotangent, *inputs, output)`.
#[pyfunction]
pub fn _apply_custom(
    name: String,
    forward: Py<PyAny>,
    backward: Py<PyAny>,
    inputs: Vec<Bound<'_, PyTensor>>,
) -> PyResult<PyTensor> {
    crate::session::custom();
    let inputs = all_of(&inputs);
    let op = ByHand { name, forward, backward };
    run(|| autograd::apply_custom(op, &inputs.iter().collect::<Vec<_>>())).map(PyTensor::from)
}

#[pymethods]
impl PyTensor {
    /// The backward pass, step by step, as text.
    fn trace_backward(&self, py: Python<'_>) -> PyResult<String> {
        Ok(report(py, || self.tensor().try_trace())?.to_string())
    }

    /// The backward pass, step by step, as JSON text.
    fn trace_json(&self, py: Python<'_>) -> PyResult<String> {
        Ok(json::trace(&report(py, || self.tensor().try_trace())?).to_string())
    }

    /// The graph of the ops that made this tensor, as JSON text.
    fn graph_json(&self, py: Python<'_>) -> PyResult<String> {
        Ok(json::graph(&report(py, || self.tensor().try_graph())?).to_string())
    }

    /// The contributions of the uses of `tensor` to its gradient, as JSON text.
    fn contributions_json(&self, py: Python<'_>, tensor: &Bound<'_, PyTensor>) -> PyResult<String> {
        let all = report(py, || self.tensor().contributions(&tensor.get().tensor()))?;
        Ok(json::contributions(&all).to_string())
    }

    /// Contribution of each use of `tensor` to its gradient: op, position of the argument,
    /// gradient.
    fn contributions(
        &self,
        tensor: &Bound<'_, PyTensor>,
    ) -> PyResult<Vec<(&'static str, usize, PyTensor)>> {
        let all = run(|| self.tensor().contributions(&tensor.get().tensor()))?;
        Ok(all.iter().map(|c| (c.op(), c.position(), c.gradient().clone().into())).collect())
    }

    /// The graph of the ops that made this tensor, as an SVG picture.
    fn graph_svg(&self, py: Python<'_>) -> PyResult<String> {
        Ok(report(py, || self.tensor().try_graph())?.to_svg())
    }

    /// The graph of the ops that made this tensor, in the language of Graphviz.
    fn graph_dot(&self, py: Python<'_>) -> PyResult<String> {
        Ok(report(py, || self.tensor().try_graph())?.to_dot())
    }

    /// The first value of the graph that is not finite, or the first part of a gradient, as text,
    /// or None.
    fn first_non_finite(&self, py: Python<'_>) -> PyResult<Option<String>> {
        report(py, || Ok(self.tensor().first_non_finite().map(|n| n.to_string())))
    }
}

/// The table of all ops: name, family, formula, gradient, behaviour at kinks.
#[pyfunction]
pub fn op_table() -> Vec<(&'static str, String, &'static str, &'static str, &'static str)> {
    chainrule::ops::table()
        .map(|e| (e.name, format!("{:?}", e.family), e.formula, e.gradient, e.at_kinks))
        .collect()
}

/// Sets how many threads large ops use.
#[pyfunction]
pub fn set_num_threads(n: usize) -> PyResult<()> {
    if n == 0 {
        return Err(argument_error("set_num_threads: at least one thread is needed"));
    }
    chainrule::set_num_threads(n);
    Ok(())
}

/// Number of threads that large ops use.
#[pyfunction]
pub fn get_num_threads() -> usize {
    chainrule::num_threads()
}

/// Gives the memory of dropped tensors back.
#[pyfunction]
pub fn _memory_trim() {
    chainrule::memory::trim();
}

/// The memory of dropped tensors that is kept, by name.
#[pyfunction]
pub fn _memory_statistics() -> Vec<(&'static str, u64)> {
    let all = chainrule::memory::statistics();
    vec![
        ("kept", all.kept as u64),
        ("in_use", all.in_use as u64),
        ("most_in_use", all.most_in_use as u64),
        ("limit", all.limit as u64),
        ("limit_of_all", all.limit_of_all as u64),
        ("reused", all.reused),
        ("fresh", all.fresh),
        ("given_back", all.given_back),
    ]
}

/// Tensors by name from a safetensors file.
#[pyfunction]
pub fn _safetensors_load(path: std::path::PathBuf) -> PyResult<Vec<(String, PyTensor)>> {
    let all = run(|| chainrule::io::load(&path))?;
    Ok(all.into_iter().map(|(name, t)| (name, t.into())).collect())
}

/// Writes tensors by name to a safetensors file.
#[pyfunction]
pub fn _safetensors_save(
    path: std::path::PathBuf,
    tensors: Vec<(String, Bound<'_, PyTensor>)>,
    metadata: std::collections::BTreeMap<String, String>,
) -> PyResult<()> {
    let named = tensors.iter().map(|(name, t)| Ok((name.clone(), t.get().untaped()?)));
    let all = named.collect::<PyResult<_>>()?;
    run(|| chainrule::io::save(&path, &all, &metadata))
}

/// `backward(inputs=...)`: adds to the gradients of these only.
pub(crate) fn backward_to(
    py: Python<'_>,
    t: &Tensor,
    upstream: Option<Tensor>,
    inputs: &[Py<PyTensor>],
    create_graph: bool,
    retain_graph: Option<bool>,
) -> PyResult<()> {
    let _ = retain_graph;
    let inputs: Vec<Tensor> = inputs.iter().map(|p| p.bind(py).get().tensor()).collect();
    run(|| {
        let refs: Vec<&Tensor> = inputs.iter().collect();
        let gradient = Some(upstream.unwrap_or_else(|| t.ones_like()));
        let options = autograd::GradOptions { gradient, create_graph };
        let grads = autograd::grad_with(t, &refs, &options)?;
        for (x, g) in inputs.iter().zip(grads) {
            if let Some(g) = g {
                x.set_grad(Some(match x.grad() {
                    Some(before) => before.try_add(&g)?,
                    None => g,
                }))?;
            }
        }
        Ok(())
    })
}

/// Removes a hook.
#[pyclass(module = "chainrule", frozen)]
pub struct Handle {
    pub(crate) hook: Mutex<Option<chainrule::HookHandle>>,
    pub(crate) counter: Option<Arc<AtomicU64>>,
}

#[pymethods]
impl Handle {
    fn remove(&self) {
        if let Some(hook) = self.hook.lock().unwrap_or_else(PoisonError::into_inner).take() {
            hook.remove();
            if let Some(counter) = &self.counter {
                counter.fetch_add(crate::session::REPLACED, Ordering::Relaxed);
            }
        }
    }
}

#[pyfunction]
pub fn _set_grad_enabled(on: bool) -> bool {
    chainrule::set_grad_enabled(on)
}

/// Whether ops are recorded for a backward pass.
#[pyfunction]
pub fn is_grad_enabled() -> bool {
    chainrule::is_grad_enabled()
}

/// Whether a gradient that is NaN is an error from now on; whether it was before.
#[pyfunction]
pub fn _set_check_nan(on: bool) -> bool {
    chainrule::set_check_nan(on)
}

#[pyfunction]
pub fn _set_record_all(on: bool) -> bool {
    chainrule::set_record_all(on)
}

/// Switches products on bf16 on this thread until they are switched again, and returns whether
/// they were on.
#[pyfunction]
pub fn _set_autocast(on: bool) -> bool {
    let mode = Mode::get();
    mode.rounding(on).set();
    mode.has(Mode::BF16)
}

#[pyfunction]
pub fn _is_autocast() -> bool {
    chainrule::autocast_dtype().is_some()
}
