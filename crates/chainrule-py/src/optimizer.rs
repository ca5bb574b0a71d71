//! Optimizers with the options of Python's.

use std::sync::{Mutex, PoisonError};

use chainrule::optim::{
    Adagrad, AdagradOptions, Adam, AdamOptions, AdamW, AdamWOptions, Lion, LionOptions, Muon,
    MuonOptions, Optimizer, RmsProp, RmsPropOptions, Sgd, SgdOptions,
};
use chainrule::{Result, Tensor};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::alias::{Behind, follow_behind};
use crate::error::run;
use crate::tensor::PyTensor;

/// One group of parameters with its optimizer.
#[pyclass(name = "Optimizer", module = "chainrule._chainrule", frozen)]
pub struct PyOptimizer(Mutex<Native>);

/// The optimizer, and the learning rate that it was given last: it does not tell during a trace.
struct Native {
    inner: Box<dyn Optimizer + Send>,
    lr: f64,
}

impl Native {
    fn set_lr(&mut self, lr: f64) -> Result<()> {
        if lr != self.lr {
            self.inner.set_lr(lr)?;
            self.lr = lr;
        }
        Ok(())
    }
}

fn option<'py, T>(options: &Bound<'py, PyDict>, name: &str, default: T) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    match options.get_item(name)? {
        Some(x) if !x.is_none() => x.extract(),
        _ => Ok(default),
    }
}

fn sgd(o: &Bound<'_, PyDict>) -> PyResult<SgdOptions> {
    Ok(SgdOptions {
        momentum: option(o, "momentum", 0.0)?,
        dampening: option(o, "dampening", 0.0)?,
        weight_decay: option(o, "weight_decay", 0.0)?,
        nesterov: option(o, "nesterov", false)?,
    })
}

fn adam(o: &Bound<'_, PyDict>) -> PyResult<AdamOptions> {
    Ok(AdamOptions {
        betas: option(o, "betas", (0.9, 0.999))?,
        eps: option(o, "eps", 1e-8)?,
        weight_decay: option(o, "weight_decay", 0.0)?,
        amsgrad: option(o, "amsgrad", false)?,
    })
}

fn adamw(o: &Bound<'_, PyDict>) -> PyResult<AdamWOptions> {
    Ok(AdamWOptions {
        betas: option(o, "betas", (0.9, 0.999))?,
        eps: option(o, "eps", 1e-8)?,
        weight_decay: option(o, "weight_decay", 0.01)?,
        amsgrad: option(o, "amsgrad", false)?,
    })
}

fn rmsprop(o: &Bound<'_, PyDict>) -> PyResult<RmsPropOptions> {
    Ok(RmsPropOptions {
        alpha: option(o, "alpha", 0.99)?,
        eps: option(o, "eps", 1e-8)?,
        weight_decay: option(o, "weight_decay", 0.0)?,
        momentum: option(o, "momentum", 0.0)?,
        centered: option(o, "centered", false)?,
    })
}

fn adagrad(o: &Bound<'_, PyDict>) -> PyResult<AdagradOptions> {
    Ok(AdagradOptions {
        lr_decay: option(o, "lr_decay", 0.0)?,
        weight_decay: option(o, "weight_decay", 0.0)?,
        initial_accumulator_value: option(o, "initial_accumulator_value", 0.0)?,
        eps: option(o, "eps", 1e-10)?,
    })
}

fn lion(o: &Bound<'_, PyDict>) -> PyResult<LionOptions> {
    Ok(LionOptions {
        betas: option(o, "betas", (0.9, 0.99))?,
        weight_decay: option(o, "weight_decay", 0.0)?,
    })
}

fn muon(o: &Bound<'_, PyDict>) -> PyResult<MuonOptions> {
    Ok(MuonOptions {
        momentum: option(o, "momentum", 0.95)?,
        nesterov: option(o, "nesterov", true)?,
        steps: option(o, "ns_steps", 5)?,
        weight_decay: option(o, "weight_decay", 0.1)?,
    })
}

#[pymethods]
impl PyOptimizer {
    #[new]
    fn new(
        kind: &str,
        parameters: Vec<Bound<'_, PyTensor>>,
        lr: f64,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<PyOptimizer> {
        let parameters: Vec<Tensor> = parameters.iter().map(|p| p.get().tensor()).collect();
        macro_rules! make {
            ($optimizer:ident, $options:expr) => {{
                let options = $options;
                Box::new(run(|| $optimizer::try_with_options(parameters, lr, options))?)
                    as Box<dyn Optimizer + Send>
            }};
        }
        let inner = match kind {
            "SGD" => make!(Sgd, sgd(options)?),
            "Adam" => make!(Adam, adam(options)?),
            "AdamW" => make!(AdamW, adamw(options)?),
            "RMSprop" => make!(RmsProp, rmsprop(options)?),
            "Adagrad" => make!(Adagrad, adagrad(options)?),
            "Lion" => make!(Lion, lion(options)?),
            "Muon" => make!(Muon, muon(options)?),
            _ => return Err(PyValueError::new_err(format!("there is no optimizer '{kind}'"))),
        };
        Ok(PyOptimizer(Mutex::new(Native { inner, lr })))
    }

    /// One update of the parameters that have gradients, at this learning rate.
    fn step(&self, py: Python<'_>, lr: f64) -> PyResult<()> {
        py.detach(|| {
            let mut native = self.lock();
            run(|| {
                native.set_lr(lr)?;
                if native.inner.parameters().iter().any(Tensor::has_lost_grad) {
                    let why = "a compiled function computed the gradient of a parameter and used it up in a step of its own; \
                               step the optimizer there or here, and not in both";
                    return Err(chainrule::Error::gradient("step", why));
                }
                if native.inner.parameters().iter().all(|p| p.grad().is_none()) {
                    return Ok(());
                }
                native.inner.step()
            })
        })?;
        follow_behind(py, &[Behind::Leaves])
    }

    /// The learning rate from now on, for programs, which read it when they run.
    pub fn set_lr(&self, lr: f64) -> PyResult<()> {
        run(|| self.lock().set_lr(lr))
    }

    /// Whether it steps just these parameters, and none of them is another leaf by now.
    fn holds(&self, parameters: Vec<Bound<'_, PyTensor>>) -> PyResult<bool> {
        for p in &parameters {
            crate::alias::check_outside(p)?;
        }
        let native = self.lock();
        let own = native.inner.parameters();
        Ok(own.len() == parameters.len()
            && own.iter().zip(&parameters).all(|(p, q)| p.is_same(&q.get().tensor())))
    }

    fn zero_grad(&self) {
        self.lock().inner.zero_grad();
    }

    fn state_dict(&self) -> Vec<(String, PyTensor)> {
        self.lock().inner.state_dict().into_iter().map(|(name, t)| (name, t.into())).collect()
    }

    fn load_state_dict(&self, state: Vec<(String, Bound<'_, PyTensor>)>) -> PyResult<()> {
        let state = state.into_iter().map(|(name, t)| (name, t.get().tensor())).collect();
        let mut native = self.lock();
        run(|| native.inner.load_state_dict(&state))?;
        native.lr = native.inner.lr();
        Ok(())
    }
}

impl PyOptimizer {
    fn lock(&self) -> std::sync::MutexGuard<'_, Native> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
