//! Optimizers: they read the gradients of parameters and give the parameters new values.

mod sgd;

pub use sgd::{Sgd, SgdOptions};

use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// What every optimizer does.
pub trait Optimizer {
    /// One update of all parameters that have a gradient.
    ///
    /// Errors if none has one: then backward was not called, or not on a loss that uses these parameters.
    fn step(&mut self) -> Result<()>;

    /// The parameters.
    fn parameters(&self) -> &[Tensor];

    /// The learning rate.
    fn lr(&self) -> f64;

    /// Changes the learning rate, as a schedule does. It must be above 0 and finite.
    fn set_lr(&mut self, lr: f64) -> Result<()>;

    /// Forgets the gradients of all parameters.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(Tensor::zero_grad);
    }
}

/// The learning rate, if it is one.
fn checked_lr(op: &'static str, lr: f64) -> Result<f64> {
    if lr.is_finite() && lr > 0.0 {
        return Ok(lr);
    }
    Err(Error::argument(
        op,
        format!("the learning rate must be above 0 and finite, it is {lr}; try 0.1 or less"),
    ))
}

/// The parameters, if they can be trained.
fn checked_parameters(op: &'static str, parameters: Vec<Tensor>) -> Result<Vec<Tensor>> {
    if parameters.is_empty() {
        return Err(Error::argument(
            op,
            "there are no parameters to train; pass module.parameters()",
        ));
    }
    match parameters.iter().position(|p| !p.is_leaf() || p.source().number() == 0) {
        Some(i) => Err(Error::argument(
            op,
            format!("tensor {i} is no parameter; make it with parameter()"),
        )),
        None => Ok(parameters),
    }
}

fn no_gradients(op: &'static str) -> Error {
    Error::gradient(
        op,
        "no parameter has a gradient: call backward on a loss that uses them before step, and zero_grad after",
    )
}
