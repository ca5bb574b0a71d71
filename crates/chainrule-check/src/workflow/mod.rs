//! Mistakes of the training loop, found while it runs.
//!
//! A [`Workflow`] is put around an existing loop. It sees each op that runs, what the tape keeps of
//! it, and the gradients and values before and after each step; a detector for each mistake of the
//! [`CATALOGUE`] looks for its signature. Few steps are enough:
//!
//! ```
//! use chainrule::check::{Mistake, Workflow};
//! use chainrule::nn::{Layer, Linear, Module};
//! use chainrule::optim::{Optimizer, Sgd};
//! use chainrule::{DType, Generator, Tensor};
//!
//! let g = &mut Generator::manual_seed(1);
//! let model = Linear::new(4, 3, g);
//! let mut sgd = Sgd::new(model.parameters(), 0.1);
//! let mut watch = Workflow::watch(&model, &sgd);
//! for _ in 0..5 {
//!     let x = Tensor::randn([8, 4], DType::F32, g);
//!     let y = x.argmax(1, false).clamp_max(2);
//!     // takes logits, gets probabilities
//!     let loss = model.forward(&x).softmax(1).cross_entropy(&y);
//!     watch.forward(&x, &y, &loss)?;
//!     loss.backward(); // and zero_grad is missing
//!     sgd.step()?;
//!     watch.step()?;
//! }
//! let report = watch.report();
//! println!("{report}");
//! assert!(report.get(Mistake::DoubleSoftmax).unwrap().location.is_some());
//! assert!(report.get(Mistake::MissingZeroGrad).is_some());
//! # Ok::<(), chainrule::Error>(())
//! ```
//!
//! Beside mistakes in the code it reports what goes wrong in the numbers, by the detectors of the
//! [monitor](chainrule_monitor): gradients that vanish or explode, dead or identical units, a rate
//! that is too high or too low, a loss that rises.
//!
//! ```
//! use chainrule::check::Workflow;
//! use chainrule::monitor::SymptomKind;
//! use chainrule::nn::{Layer, Linear, Module, Sequential, Sigmoid};
//! use chainrule::optim::{Optimizer, Sgd};
//! use chainrule::{DType, Generator, Tensor};
//!
//! let g = &mut Generator::manual_seed(1);
//! let mut model = Sequential::new();
//! for _ in 0..20 {
//!     model = model.with(Linear::new(8, 8, g)).with(Sigmoid);
//! }
//! let mut sgd = Sgd::new(model.parameters(), 0.1);
//! let mut watch = Workflow::watch(&model, &sgd);
//! let (x, y) = (Tensor::randn([32, 8], DType::F32, g), Tensor::rand([32, 8], DType::F32, g));
//! for _ in 0..10 {
//!     let loss = model.forward(&x).mse(&y);
//!     watch.forward(&x, &y, &loss)?;
//!     sgd.zero_grad();
//!     loss.backward();
//!     sgd.step()?;
//!     watch.step()?;
//! }
//! assert_eq!(watch.report().symptoms[0].kind, SymptomKind::Vanishing);
//! # Ok::<(), chainrule::Error>(())
//! ```
//!
//! Contents: the session, the catalogue, and a file for each detector or pair of them. A new
//! detector is a file with a function of a `flow::Flow` (the ops of a forward pass and their
//! operands) or of gradients, a variant of [`Mistake`] with its [`Record`], a run of the benchmark
//! that has the mistake, and a test.

mod attention;
mod catalogue;
mod course;
mod detached;
mod evaluation;
mod finding;
mod flow;
mod gradients;
mod held;
mod inputs;
mod labels;
mod losses;
mod numbers;
mod parameters;
mod session;
mod softmax;
mod statistics;
#[cfg(test)]
mod tests;

pub use catalogue::{CATALOGUE, Record};
pub use finding::{Finding, Mistake, WorkflowReport};
pub use session::{Tensors, Workflow};

use std::collections::HashMap;
use std::panic::Location;
use std::sync::Arc;

use crate::nn::Module;
use crate::tensor::Tensor;
use crate::tensor::value::Value;
use flow::Flow;
use parameters::Parameters;

/// A forward pass, as detectors see it.
struct Forward<'a> {
    flow: Flow<'a>,
    inputs: &'a [Tensor],
    targets: &'a [Tensor],
    /// The values whose elements were read as plain numbers, by where they lie.
    read: &'a HashMap<*const Value, Arc<Value>>,
    module: Option<&'a dyn Module>,
    parameters: &'a Parameters,
    /// This pass's own gradients by the parameters' numbers.
    own: &'a HashMap<u64, Vec<f64>>,
}

/// State between forward and step.
#[derive(Default)]
struct Pending {
    /// This pass's own gradients by the parameters' numbers.
    own: HashMap<u64, Vec<f64>>,
    /// The same as tensors.
    gradients: HashMap<u64, Tensor>,
    retained: Vec<Retained>,
    /// Whether the backward pass has been looked at.
    settled: bool,
}

/// An intermediate that keeps its gradient.
struct Retained {
    tensor: Tensor,
    label: String,
    location: Option<&'static Location<'static>>,
    before: Option<Vec<f64>>,
    own: Vec<f64>,
}
