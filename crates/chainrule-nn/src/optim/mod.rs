//! Optimizers, gradient clipping, and learning rate schedules.
//!
//! A file each for the optimizers (options, formula, update), parameter groups, gradient clipping,
//! the moving average of weights [`Ema`], and in [`schedule`] the learning rate over time. The
//! loops over memory are in `kernels/`.
//!
//! All optimizers have the same three constructors: `new(parameters, lr)`;
//! `with_options(parameters, lr, options)`; and `with_groups(groups, lr, options)` for parameters
//! with their own settings:
//!
//! ```
//! use chainrule::nn::{Linear, Module};
//! use chainrule::optim::{AdamW, AdamWOptions, Group, Optimizer};
//! use chainrule::{Generator, Tensor};
//!
//! let layer = Linear::new(3, 2, &mut Generator::manual_seed(0));
//! // Matrices are decayed; biases and gains are not.
//! let (matrices, rest): (Vec<Tensor>, Vec<Tensor>) =
//!     layer.parameters().into_iter().partition(|p| p.rank() >= 2);
//! let options = AdamWOptions { weight_decay: 0.1, ..AdamWOptions::default() };
//! let mut adamw = AdamW::try_with_groups(
//!     [Group::new(matrices), Group::new(rest).weight_decay(0.0)],
//!     3e-4,
//!     options,
//! )?;
//! assert_eq!(adamw.lr(), 3e-4);
//! # Ok::<(), chainrule::Error>(())
//! ```
//!
//! A new optimizer is a file with an options struct, its `Rule` and an alias of [`Descent`].

mod adagrad;
mod adam;
mod adam_w;
mod clip;
mod clipped;
mod descent;
mod ema;
mod group;
#[doc(hidden)]
pub mod keras;
mod lion;
mod muon;
mod rms_prop;
mod rule;
pub mod schedule;
mod sgd;

pub use adagrad::{Adagrad, AdagradOptions};
pub use adam::{Adam, AdamOptions};
pub use adam_w::{AdamW, AdamWOptions};
pub use clip::{clip_finite_grad_norm, clip_grad_norm, clip_grad_value};
pub use clipped::Clipped;
pub use descent::Descent;
pub use ema::Ema;
pub use group::Group;
pub use lion::{Lion, LionOptions};
pub use muon::{Muon, MuonOptions};
pub use rms_prop::{RmsProp, RmsPropOptions};
pub use sgd::{Sgd, SgdOptions};

use crate::error::{Error, Result};
use crate::nn::StateDict;
use crate::tensor::Tensor;

/// An optimizer.
pub trait Optimizer {
    /// Updates all parameters that have a gradient.
    ///
    /// Errors if none has one: then backward was not called, or not on a loss that uses these
    /// parameters.
    fn step(&mut self) -> Result<()>;

    /// The parameters.
    fn parameters(&self) -> &[Tensor];

    /// The learning rate.
    fn lr(&self) -> f64;

    /// Changes the learning rate, as a schedule does. It must be 0 or more and finite.
    ///
    /// Groups with their own learning rate keep their ratio to it.
    fn set_lr(&mut self, lr: f64) -> Result<()>;

    /// Learning rates of the groups, in order.
    fn group_lrs(&self) -> Vec<f64> {
        vec![self.lr()]
    }

    /// The optimizer's state, as values that later steps do not change. Options are not part of it.
    ///
    /// The names are PyTorch's: `state.{i}.step`, `state.{i}.exp_avg`, ... for parameter `i`, and
    /// `lr`.
    fn state_dict(&self) -> StateDict;

    /// Loads [`Optimizer::state_dict`]: training resumes bitwise as if it had not been interrupted.
    ///
    /// Errors for names, shapes or dtypes that do not fit; then nothing is changed.
    fn load_state_dict(&mut self, state: &StateDict) -> Result<()>;

    /// Clears the gradients of all parameters.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(Tensor::zero_grad);
    }
}

/// Checks an initial learning rate.
fn checked_lr(op: &'static str, lr: f64) -> Result<f64> {
    if lr.is_finite() && lr > 0.0 {
        return Ok(lr);
    }
    Err(Error::argument(
        op,
        format!("the learning rate must be above 0 and finite, it is {lr}; try 0.1 or less"),
    ))
}

/// Checks a scheduled learning rate, which may be 0: a warm-up starts there and an annealing ends
/// there.
fn checked_later_lr(op: &'static str, lr: f64) -> Result<f64> {
    if lr.is_finite() && lr >= 0.0 {
        return Ok(lr);
    }
    Err(Error::argument(op, format!("the learning rate must be 0 or more and finite, it is {lr}")))
}

/// An error unless `x` is 0 or more and finite.
fn not_negative(op: &'static str, name: &str, x: f64) -> Result<()> {
    if x.is_finite() && x >= 0.0 {
        return Ok(());
    }
    Err(Error::argument(op, format!("{name} must be 0 or more and finite, it is {x}")))
}

/// An error unless `x` is from 0 up and below 1, as decay rates are.
fn share(op: &'static str, name: &str, x: f64) -> Result<()> {
    if (0.0..1.0).contains(&x) {
        return Ok(());
    }
    Err(Error::argument(op, format!("{name} must be 0 or more and below 1, it is {x}")))
}

/// The parameters without repeats (tied weights have two names), if they can be trained.
fn checked_parameters(op: &'static str, parameters: Vec<Tensor>) -> Result<Vec<Tensor>> {
    if parameters.is_empty() {
        return Err(Error::argument(
            op,
            "there are no parameters to train; pass module.parameters()",
        ));
    }
    if let Some(i) = parameters.iter().position(|p| !p.is_leaf() || p.source().number() == 0) {
        return Err(Error::argument(
            op,
            format!("tensor {i} is no parameter; make it with parameter()"),
        ));
    }
    Ok(unique(parameters))
}

/// Each leaf once, in order of first appearance.
fn unique(mut parameters: Vec<Tensor>) -> Vec<Tensor> {
    let mut seen = std::collections::HashSet::new();
    parameters.retain(|p| seen.insert(p.source().number()));
    parameters
}

fn no_gradients(op: &'static str) -> Error {
    Error::gradient(
        op,
        "no parameter has a gradient: call backward on a loss that uses them before step, and zero_grad after",
    )
}
