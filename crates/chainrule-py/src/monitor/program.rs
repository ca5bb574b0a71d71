//! Looks of a monitor at a step that a program makes.

use chainrule::Tensor;
use chainrule::monitor;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PySequence, PyTuple};

use super::MonitoredTensors;
use super::sights::kind_of;
use crate::alias::ViewPath;
use crate::tensor::PyTensor;

/// Name and bounds of an output, and the numbers of it and of its gradient among results.
type SeenOutput = (String, Option<(i8, i8)>, usize, Option<usize>);

/// The places of what a look is to see among the results of a program.
#[pyclass(module = "chainrule._chainrule", frozen)]
pub struct MonitorLook {
    outputs: Vec<SeenOutput>,
    /// For each parameter that is held the number of its gradient after the backward pass, and of
    /// that at the update.
    before: Vec<Option<usize>>,
    after: Vec<Option<usize>>,
    losses: Vec<usize>,
    /// The inputs of the model, where they are a result.
    inputs: Option<usize>,
    /// The answer, its gradient, and the bounds of the module that gave it.
    answer: Option<(usize, usize)>,
    bounds: Option<(f64, f64)>,
    /// Views that are counted after the results of the program, each of a result.
    views: Vec<(usize, Py<ViewPath>)>,
}

#[pymethods]
impl MonitorLook {
    #[new]
    fn new(
        outputs: Vec<SeenOutput>,
        gradients: (Vec<Option<usize>>, Vec<Option<usize>>),
        losses: Vec<usize>,
        inputs: Option<usize>,
        answer: Option<(usize, usize)>,
        bounds: Option<(f64, f64)>,
    ) -> MonitorLook {
        let (before, after) = gradients;
        let views = Vec::new();
        MonitorLook { outputs, before, after, losses, inputs, answer, bounds, views }
    }

    /// The same look where the results that were counted have these numbers, and these views come
    /// after those of the program.
    fn renumbered(
        &self,
        numbers: Vec<usize>,
        views: Vec<(usize, Py<ViewPath>)>,
    ) -> PyResult<MonitorLook> {
        let number = |at: usize| {
            let out = || PyIndexError::new_err(format!("there is no result {at}"));
            numbers.get(at).copied().ok_or_else(out)
        };
        let perhaps = |at: Option<usize>| at.map(number).transpose();
        let all = |of: &[Option<usize>]| -> PyResult<Vec<Option<usize>>> {
            of.iter().map(|at| perhaps(*at)).collect()
        };
        let output = |(name, bounds, at, gradient): &SeenOutput| {
            Ok((name.clone(), *bounds, number(*at)?, perhaps(*gradient)?))
        };
        let pair = |(a, b): (usize, usize)| PyResult::Ok((number(a)?, number(b)?));
        Ok(MonitorLook {
            outputs: self.outputs.iter().map(output).collect::<PyResult<_>>()?,
            before: all(&self.before)?,
            after: all(&self.after)?,
            losses: self.losses.iter().map(|at| number(*at)).collect::<PyResult<_>>()?,
            inputs: perhaps(self.inputs)?,
            answer: self.answer.map(pair).transpose()?,
            bounds: self.bounds,
            views,
        })
    }
}

impl MonitorLook {
    /// The results of the program, and the views of them.
    pub(super) fn seen(&self, results: Vec<Tensor>) -> PyResult<Vec<Tensor>> {
        let mut seen = results;
        for (at, path) in &self.views {
            let out = || PyIndexError::new_err(format!("there is no result {at}"));
            let view = path.get().take(seen.get(*at).ok_or_else(out)?)?;
            seen.push(view);
        }
        Ok(seen)
    }

    pub(super) fn tell(
        &self,
        held: &mut MonitoredTensors,
        monitor: &mut monitor::Monitor,
        results: &[Tensor],
        inputs: Option<&Tensor>,
    ) {
        self.tell_outputs(monitor, results);
        self.tell_parameters(held, monitor, results);
        for loss in self.losses.iter().filter_map(|at| results.get(*at)) {
            monitor.backward();
            held.note_loss(loss);
        }
        let inputs = inputs.or_else(|| results.get(self.inputs?));
        inputs.filter(|x| x.dtype().is_float()).iter().for_each(|x| monitor.inputs(x));
        let Some((answer, gradient)) = self.answer else { return };
        if let (Some(loss), Some(answer), Some(gradient)) =
            (held.losses.last(), results.get(answer), results.get(gradient))
            && !monitor.passes_over_answer()
        {
            monitor.answer(*loss, answer, gradient, self.bounds);
        }
    }

    /// Outputs with their gradients; neighbours that are one tensor are looked at once.
    fn tell_outputs(&self, monitor: &mut monitor::Monitor, results: &[Tensor]) {
        let mut last: Option<(usize, &str)> = None;
        for (name, bounds, at, gradient) in &self.outputs {
            let kind = kind_of(*bounds);
            match last.filter(|last| last.0 == *at) {
                Some((_, same)) => {
                    monitor.same_output(name, kind, same);
                    monitor.same_output_gradient(name, same);
                    continue;
                }
                None => last = Some((*at, name)),
            }
            results.get(*at).iter().for_each(|t| monitor.output(name, kind, t));
            let gradient = gradient.and_then(|at| results.get(at));
            gradient.iter().for_each(|g| monitor.output_gradient(name, g));
        }
    }

    /// Parameters as they were before the step, with their gradients.
    fn tell_parameters(
        &self,
        held: &mut MonitoredTensors,
        monitor: &mut monitor::Monitor,
        results: &[Tensor],
    ) {
        if self.before.iter().zip(&self.after).any(|(before, after)| before != after) {
            let of_all = |all: &[Option<usize>]| -> Vec<Tensor> {
                all.iter().flatten().filter_map(|at| results.get(*at).cloned()).collect()
            };
            monitor.changed_gradients(&of_all(&self.before), &of_all(&self.after));
        }
        let values = std::mem::take(&mut held.values);
        for (((name, _), value), gradient) in held.parameters.iter().zip(&values).zip(&self.after) {
            monitor.parameter(name, value, gradient.and_then(|at| results.get(at)));
        }
    }
}

/// The number with a fraction that a tensor holds, if it is one.
pub(super) fn number_of(t: &Tensor) -> Option<f64> {
    (t.numel() == 1 && t.dtype().is_float()).then(|| t.try_item().ok()).flatten()
}

/// The first tensor of one number with a fraction: the result, or one of several.
pub(super) fn first_number(out: &Bound<'_, PyAny>) -> Option<f64> {
    let number = |x: &Bound<'_, PyAny>| number_of(&x.cast::<PyTensor>().ok()?.get().tensor());
    if let Some(x) = number(out) {
        return Some(x);
    }
    if !(out.is_instance_of::<PyList>() || out.is_instance_of::<PyTuple>()) {
        return None;
    }
    let all = out.cast::<PySequence>().ok()?.try_iter().ok()?;
    all.filter_map(Result::ok).find_map(|x| number(&x))
}
