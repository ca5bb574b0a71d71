//! Compiled functions, and the checks of gradients.

use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use chainrule::check;
use chainrule::program::{Graded, Passes, Program, Remains, Validated};
use chainrule::{DType, Result, Slice, Tensor, json};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::alias::{Behind, follow_behind};
use crate::device::{DeviceOptions, OnDevice};
use crate::error::{run, through};
use crate::script::PYTHON;
use crate::spent;
use crate::tensor::{PyTensor, tensors_of};
use crate::variables::report;

/// Most steps of a call to a device, between two looks for Ctrl-C.
const AT_ONCE: usize = 256;

/// Calls a Python function with tensors; gives what it returned, and the tensors in it.
fn call(op: &'static str, f: &Py<PyAny>, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    Python::attach(|py| {
        let args = inputs
            .iter()
            .map(|t| Py::new(py, PyTensor::from(t.clone())))
            .collect::<PyResult<Vec<_>>>();
        let out = args
            .and_then(|a| f.bind(py).call1(PyTuple::new(py, a)?))
            .map_err(|e| through(op, e))?;
        if out.is_none() {
            return Ok(Vec::new());
        }
        tensors_of(op, &out)
    })
}

/// A function as a program.
#[pyclass(name = "Program", module = "chainrule._chainrule", frozen)]
pub struct PyProgram {
    program: RwLock<Validated>,
    /// The device that runs it, if it is not the processor.
    device: Option<OnDevice>,
    /// Its use of the gradients of leaves that are older than it.
    graded: Vec<Graded>,
    /// Results whose graph a backward pass used up, with the names of their ops.
    spent: Vec<(usize, &'static str)>,
}

impl PyProgram {
    /// As [`PyProgram::run`], with results that Python does not get.
    pub fn run_tensors(
        &self,
        py: Python<'_>,
        inputs: &[Bound<'_, PyTensor>],
    ) -> PyResult<Vec<Tensor>> {
        let inputs: Vec<Tensor> = inputs.iter().map(|t| t.get().tensor()).collect();
        let mut out = py.detach(|| {
            run(|| {
                self.give_gradients()?;
                let mut out = self.run_once(&inputs.iter().collect::<Vec<_>>())?;
                self.take_gradients(&mut out)?;
                Ok(out)
            })
        })?;
        follow_behind(py, &[Behind::Leaves, Behind::Gradients])?;
        self.spend(&mut out);
        Ok(out)
    }
}

#[pymethods]
impl PyProgram {
    /// Traces a function of tensors with these names.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "those of `compile` in Python")]
    fn new(
        f: Py<PyAny>,
        names: Vec<String>,
        inputs: Vec<Bound<'_, PyTensor>>,
        simplify: bool,
        fuse: bool,
        device: Option<&str>,
        precision: Option<&str>,
        compare_first: bool,
    ) -> PyResult<PyProgram> {
        let inputs: Vec<Tensor> = inputs.iter().map(|t| t.get().tensor()).collect();
        let passes = Passes { simplification: simplify, fusion: fuse };
        let mut spent = Vec::new();
        // An earlier trace may have failed.
        crate::monitor::is_trace_seen();
        let program = run(|| {
            let pairs = names.iter().map(String::as_str).zip(&inputs);
            let (program, graded) = Program::trace_graded(PYTHON, pairs, |x| {
                let results = call("compile", &f, x)?;
                spent = spent::of_trace(&results);
                Ok(results)
            })?;
            let program = if crate::monitor::is_trace_seen() { program.seen() } else { program };
            Ok((program.validated(passes), graded))
        })?;
        let (program, graded) = program;
        let options = device.map(|name| DeviceOptions { name, precision, compare_first });
        let device = options.map(|options| run(|| OnDevice::load(&options, program.program())));
        let device = device.transpose()?;
        Ok(PyProgram { program: RwLock::new(program), device, graded, spent })
    }

    /// Whether each parameter has a gradient, or none, as it had in the trace.
    pub fn fits_gradients(&self) -> bool {
        self.graded.iter().all(|g| {
            let lost = g.leaf.has_lost_grad();
            g.had.is_none_or(|had| lost == g.lost && g.leaf.grad().is_some() == had)
        })
    }

    /// Whether a run leaves gradients as it needs them, so that another one can follow.
    fn is_steady(&self) -> bool {
        self.graded.iter().all(|g| {
            let leaves = matches!(g.after, Remains::Result(_));
            g.had.is_none_or(|had| had == leaves && g.lost == (g.after == Remains::Lost))
        })
    }

    /// Warnings of optimisations that were left out, with the reason; complete after the first run.
    fn warnings(&self) -> Vec<String> {
        self.read().warnings().iter().map(ToString::to_string).collect()
    }

    /// The results for these arguments; the lock of the interpreter is released.
    pub fn run(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyTensor>>) -> PyResult<Vec<PyTensor>> {
        Ok(self.run_tensors(py, &inputs)?.into_iter().map(PyTensor::from).collect())
    }

    /// One run for each of these batches of arguments, in order: the results of each. A device does
    /// many in one launch where it can.
    fn run_steps(
        &self,
        py: Python<'_>,
        batches: Vec<Vec<Bound<'_, PyTensor>>>,
    ) -> PyResult<Vec<Vec<PyTensor>>> {
        let tensors = |batch: &Vec<Bound<'_, PyTensor>>| {
            batch.iter().map(|t| t.get().tensor()).collect::<Vec<Tensor>>()
        };
        let batches: Vec<Vec<Tensor>> = batches.iter().map(tensors).collect();
        let mut all = Vec::with_capacity(batches.len());
        // Python hears in between whether somebody pressed Ctrl-C.
        while all.len() < batches.len() {
            py.check_signals()?;
            let rest = &batches[all.len()..];
            all.extend(py.detach(|| run(|| self.some_steps(rest)))?);
        }
        follow_behind(py, &[Behind::Leaves, Behind::Gradients])?;
        all.iter_mut().for_each(|out| self.spend(out));
        Ok(all.into_iter().map(|out| out.into_iter().map(PyTensor::from).collect()).collect())
    }

    /// One run for each row of the arguments, which have one more axis in front; the results
    /// likewise. Python is not asked in between.
    fn run_many(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyTensor>>,
    ) -> PyResult<Vec<PyTensor>> {
        let inputs: Vec<Tensor> = inputs.iter().map(|t| t.get().tensor()).collect();
        let steps = inputs.first().map_or(0, |t| t.shape().first().copied().unwrap_or(0));
        if inputs.iter().any(|t| t.shape().first() != Some(&steps)) {
            return Err(PyValueError::new_err(
                "run_many: all arguments have one row for each step, and equally many",
            ));
        }
        let mut all: Vec<Vec<Tensor>> = Vec::new();
        let mut from = 0;
        // Python hears in between whether somebody pressed Ctrl-C.
        while from < steps {
            py.check_signals()?;
            let some = from..steps.min(from + AT_ONCE);
            let done = py.detach(|| {
                run(|| {
                    let rows: Result<Vec<_>> = some.map(|i| row_of(&inputs, i)).collect();
                    self.some_steps(&rows?)
                })
            })?;
            from += done.len();
            for out in done {
                all.resize_with(out.len(), Vec::new);
                all.iter_mut().zip(out).for_each(|(to, t)| to.push(t));
            }
        }
        follow_behind(py, &[Behind::Leaves, Behind::Gradients])?;
        let stacked = |rows: &Vec<Tensor>| {
            run(|| Tensor::try_stack(&rows.iter().collect::<Vec<_>>(), 0)).map(PyTensor::from)
        };
        all.iter().map(stacked).collect()
    }

    /// Writes the program as an ONNX model; with another of another size of the batch, as one for
    /// any. The names of its inputs and outputs.
    #[pyo3(signature = (path, resized=None))]
    fn to_onnx(
        &self,
        py: Python<'_>,
        path: std::path::PathBuf,
        resized: Option<Bound<'_, PyProgram>>,
    ) -> PyResult<(Vec<String>, Vec<String>)> {
        let other = resized.map(|o| o.get().read().program().clone());
        let own = self.read().program().clone();
        py.detach(|| {
            run(|| {
                let model = match other {
                    Some(other) => chainrule::onnx::export_batched(&own, &other)?,
                    None => chainrule::onnx::export(&own)?,
                };
                model.write(path)?;
                let all = |names: Vec<&str>| names.into_iter().map(str::to_string).collect();
                Ok((all(model.inputs()), all(model.outputs())))
            })
        })
    }

    /// The program as the text of a script that runs on its own: of NumPy, PyTorch or JAX.
    #[pyo3(signature = (library="numpy"))]
    fn to_python(&self, library: &str) -> PyResult<String> {
        run(|| self.read().program().to_python_with(library.parse()?))
    }

    /// The program as kernels of CUDA C.
    fn to_cuda(&self) -> PyResult<String> {
        run(|| chainrule::gpu::to_cuda(self.read().program()))
    }

    /// The program as kernels of WebGPU.
    fn to_wgsl(&self) -> PyResult<String> {
        run(|| chainrule::gpu::to_wgsl(self.read().program()))
    }

    #[getter]
    fn listing(&self) -> String {
        self.read().program().to_string()
    }

    /// The program as JSON text.
    fn to_json(&self) -> String {
        json::program(self.read().program()).to_string()
    }

    fn __len__(&self) -> usize {
        self.read().program().len()
    }

    /// The instructions: name, op, parameters, inputs, shape, dtype, phase, rule.
    #[expect(clippy::type_complexity, reason = "a row of a table")]
    fn lines(
        &self,
    ) -> Vec<(
        String,
        &'static str,
        String,
        Vec<String>,
        Vec<usize>,
        &'static str,
        &'static str,
        Option<String>,
    )> {
        self.read()
            .program()
            .lines()
            .map(|l| {
                let shape = l.shape().dims().to_vec();
                (
                    l.name().to_string(),
                    l.op(),
                    l.parameters(),
                    l.inputs(),
                    shape,
                    l.dtype().name(),
                    l.phase().name(),
                    l.rule(),
                )
            })
            .collect()
    }
}

impl PyProgram {
    fn read(&self) -> RwLockReadGuard<'_, Validated> {
        self.program.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks results whose graph was used up.
    fn spend(&self, out: &mut [Tensor]) {
        for &(i, op) in &self.spent {
            if let Some(t) = out.get_mut(i) {
                *t = spent::spent(t, op);
            }
        }
    }

    /// The results of the first of these steps: of as many as a device takes at once, or as a tenth
    /// of a second has room for.
    fn some_steps(&self, batches: &[Vec<Tensor>]) -> Result<Vec<Vec<Tensor>>> {
        if let (Some(device), true) = (&self.device, self.graded.iter().all(|g| g.entry.is_none()))
        {
            let some: Vec<Vec<&Tensor>> =
                batches.iter().take(AT_ONCE).map(|batch| batch.iter().collect()).collect();
            let mut all = device.run_steps(&some)?;
            all.iter_mut().try_for_each(|out| self.take_gradients(out))?;
            return Ok(all);
        }
        let (began, mut all) = (Instant::now(), Vec::new());
        for batch in batches {
            self.give_gradients()?;
            let mut out = self.run_once(&batch.iter().collect::<Vec<&Tensor>>())?;
            self.take_gradients(&mut out)?;
            all.push(out);
            if began.elapsed() > Duration::from_millis(100) {
                break;
            }
        }
        Ok(all)
    }

    /// Puts the gradients from before to where the program reads them.
    fn give_gradients(&self) -> Result<()> {
        for graded in &self.graded {
            if let (Some(entry), Some(gradient)) = (&graded.entry, graded.leaf.grad()) {
                entry.try_set(&gradient)?;
            }
        }
        Ok(())
    }

    /// Takes the gradients that the run left from its results.
    fn take_gradients(&self, out: &mut Vec<Tensor>) -> Result<()> {
        for graded in &self.graded {
            match graded.after {
                Remains::Nothing => graded.leaf.zero_grad(),
                Remains::Lost => graded.leaf.lose_grad(),
                Remains::Result(i) => graded.leaf.set_grad(Some(out[i].clone()))?,
            }
        }
        let first = self.graded.iter().filter_map(|g| match g.after {
            Remains::Result(i) => Some(i),
            _ => None,
        });
        if let Some(first) = first.min() {
            out.truncate(first);
        }
        Ok(())
    }

    /// One run. The first on the processor is compared with the plain program, which may take its
    /// place.
    fn run_once(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        if let Some(device) = &self.device {
            return device.run(inputs);
        }
        let validated = self.read();
        if !validated.is_pending() {
            return validated.program().run(inputs);
        }
        drop(validated);
        self.program.write().unwrap_or_else(PoisonError::into_inner).run(inputs)
    }
}

/// The arguments of a step: these rows of the tensors.
fn row_of(inputs: &[Tensor], i: usize) -> Result<Vec<Tensor>> {
    inputs.iter().map(|t| t.try_slice(&[Slice::At(i as i64)])).collect()
}

/// The report of `gradcheck`: whether it passed, its text, and what it says in one word.
#[pyfunction]
pub fn _gradcheck(
    f: Py<PyAny>,
    inputs: Vec<Bound<'_, PyTensor>>,
    order: usize,
    seeds: u64,
    tolerance: Option<f64>,
) -> PyResult<(bool, String, &'static str)> {
    let inputs: Vec<Tensor> = inputs.iter().map(|t| t.get().untaped()).collect::<PyResult<_>>()?;
    let report = run(|| {
        let mut checker = check::gradcheck(|x: &[Tensor]| call("gradcheck", &f, x), &inputs)
            .order(order)
            .seeds(seeds);
        if let Some(tolerance) = tolerance {
            checker = checker.tolerance(tolerance);
        }
        let report = checker.run()?;
        let outcome = match report.judgement() {
            check::Judgement::Right => "right",
            check::Judgement::Wrong => "wrong",
            check::Judgement::Uncertain => "uncertain",
        };
        Ok((report.passed(), report.to_string(), outcome))
    })?;
    // Beside the given point the function may have failed, which says nothing.
    let _ = crate::error::check();
    Ok(report)
}

fn doubles(inputs: &[Bound<'_, PyTensor>]) -> PyResult<Vec<Tensor>> {
    inputs
        .iter()
        .map(|t| match t.get().tensor() {
            t if t.dtype() == DType::F64 => Ok(t.detach()),
            t => Err(PyTypeError::new_err(format!(
                "the check runs in float64, an input is {}: convert it with double()",
                t.dtype()
            ))),
        })
        .collect()
}

/// A function that gives one tensor and cannot fail, for the library; the failure is told
/// afterwards.
fn one<'a>(
    op: &'static str,
    f: &'a Py<PyAny>,
    failed: &'a Mutex<Option<chainrule::Error>>,
) -> impl Fn(&[Tensor]) -> Tensor + 'a {
    move |x| {
        let out = call(op, f, x).map(|mut out| (out.len() == 1).then(|| out.swap_remove(0)));
        match out {
            Ok(Some(t)) => t,
            other => {
                let error = other.err().unwrap_or_else(|| {
                    chainrule::Error::argument(op, "the function must return one tensor")
                });
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Tensor::scalar(0.0f64)
            }
        }
    }
}

fn outcome<T>(failed: Mutex<Option<chainrule::Error>>, out: Result<T>) -> Result<T> {
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => out,
    }
}

/// A report's truth value, text and outcome, and what was found as JSON text.
type ReportParts = (bool, String, Option<&'static str>, String);

fn reported(verdict: &check::Verdict) -> ReportParts {
    let found = format!("{{\"verdict\": {}}}", json::verdict(verdict));
    (verdict.is_right(), verdict.to_string(), None, found)
}

/// The verdict on a function beside a reference that is known to be right: whether the gradients
/// agree, the text, no outcome of its own, and JSON.
#[pyfunction]
pub fn _explain(
    f: Py<PyAny>,
    reference: Py<PyAny>,
    inputs: Vec<Bound<'_, PyTensor>>,
    others: bool,
) -> PyResult<ReportParts> {
    let inputs: Vec<Tensor> = inputs.iter().map(|t| t.get().untaped()).collect::<PyResult<_>>()?;
    run(|| {
        let failed = Mutex::new(None);
        let verdict = check::explain_numbers(
            one("explain", &f, &failed),
            one("explain", &reference, &failed),
            &inputs,
            others,
        );
        outcome(failed, verdict.map(|verdict| reported(&verdict)))
    })
}

/// Readings of a function's gradients beside differences: for each input as text, none where they
/// agree.
#[pyfunction]
pub fn _explain_opaque(
    f: Py<PyAny>,
    inputs: Vec<Bound<'_, PyTensor>>,
) -> PyResult<Vec<Vec<String>>> {
    let inputs = doubles(&inputs)?;
    run(|| {
        let failed = Mutex::new(None);
        let all = check::explain_opaque(one("explain", &f, &failed), &inputs);
        outcome(
            failed,
            all.map(|all| all.iter().map(|r| r.iter().map(|r| r.to_string()).collect()).collect()),
        )
    })
}

/// The comparison of gradients by hand, by name, with autograd's: whether all agree, the table, no
/// outcome of its own, and JSON.
#[pyfunction]
pub fn _compare(
    py: Python<'_>,
    loss: &Bound<'_, PyTensor>,
    by_hand: Vec<(String, Bound<'_, PyTensor>)>,
    rtol: f64,
    atol: f64,
) -> PyResult<ReportParts> {
    let loss = loss.get().tensor();
    let claims: Vec<(String, Tensor)> =
        by_hand.iter().map(|(name, t)| (name.clone(), t.get().tensor())).collect();
    report(py, || {
        let claims = claims.iter().map(|(name, t)| (name.as_str(), t));
        let within = check::compare::Tolerance { rtol, atol };
        let report = check::compare::compare_within(&loss, claims, within)?;
        let found = format!("{{\"comparison\": {}}}", json::comparison(&report));
        Ok((report.passed(), report.to_string(), None, found))
    })
}

/// Stand-ins for the tensors of these names behind a loss.
#[pyfunction]
pub fn _named_behind(loss: &Bound<'_, PyTensor>, names: Vec<String>) -> Vec<Option<PyTensor>> {
    let loss = loss.get().tensor();
    let found = names.iter().map(|name| check::compare::named_behind(&loss, name));
    found.map(|t| t.map(PyTensor::from)).collect()
}

/// The verdict on gradients that somebody gives for leaves of a loss: whether they are right, the
/// text, no outcome of its own, and JSON.
#[pyfunction]
pub fn _verdict(
    py: Python<'_>,
    loss: &Bound<'_, PyTensor>,
    given: Vec<(Bound<'_, PyTensor>, Bound<'_, PyTensor>)>,
) -> PyResult<ReportParts> {
    let loss = loss.get().tensor();
    let given: Vec<(Tensor, Tensor)> =
        given.iter().map(|(x, g)| (x.get().tensor(), g.get().tensor())).collect();
    report(py, || {
        let pairs: Vec<(&Tensor, &Tensor)> = given.iter().map(|(x, g)| (x, g)).collect();
        let verdict = check::verdict(&loss, &pairs)?;
        Ok(reported(&verdict))
    })
}
