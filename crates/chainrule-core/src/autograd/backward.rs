//! `backward`: gradients into the leaves.

use super::walk::{Observer, Walk};
use crate::error::{Error, Result, raise};
use crate::tensor::{Tensor, watch};

/// A backward pass with options; made by [`Tensor::backward_with`].
///
/// ```
/// use chainrule::Tensor;
/// let x = Tensor::from([1.0f32, 2.0]).parameter();
/// let y = &x * &x;
/// y.backward_with().gradient(&Tensor::from([1.0f32, 10.0])).run().unwrap();
/// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [2.0, 40.0]);
/// ```
#[must_use = "the pass starts with run()"]
pub struct Backward<'a> {
    root: &'a Tensor,
    gradient: Option<Tensor>,
    keep_graph: bool,
    create_graph: bool,
}

impl Backward<'_> {
    /// The upstream gradient; needed for a tensor of more than one element.
    pub fn gradient(mut self, gradient: &Tensor) -> Self {
        self.gradient = Some(gradient.clone());
        self
    }

    /// Keeps what the tape saved, so that another backward can walk it.
    pub fn keep_graph(mut self) -> Self {
        self.keep_graph = true;
        self
    }

    /// Records the backward pass itself, so that gradients can be differentiated again. Keeps the
    /// graph.
    ///
    /// The gradient then refers to the leaf and the leaf to the gradient: call
    /// [`Tensor::zero_grad`] when done, or use [`crate::autograd::grad`], which has no such cycle.
    pub fn create_graph(mut self) -> Self {
        self.create_graph = true;
        self
    }

    /// Walks back. Gradients are added to those that leaves and retained intermediates have.
    pub fn run(self) -> Result<()> {
        self.observed(None)
    }

    #[doc(hidden)]
    pub fn observed(self, observer: Option<&mut dyn Observer>) -> Result<()> {
        let upstream = upstream("backward", self.root, self.gradient)?;
        let walk = Walk {
            create_graph: self.create_graph,
            keep_graph: self.keep_graph,
            observer,
            ..Walk::default()
        };
        walk.run(&[(self.root, upstream)])?;
        watch::passed();
        Ok(())
    }
}

/// The upstream gradient of `root`: as given, or 1 for a single element.
#[doc(hidden)]
pub fn upstream(op: &'static str, root: &Tensor, given: Option<Tensor>) -> Result<Tensor> {
    if !root.requires_grad() {
        let why = "the tensor does not depend on anything that requires a gradient: make the inputs with parameter(), \
                   and check for no_grad or detach on the way";
        return Err(Error::gradient(op, why));
    }
    match given {
        Some(gradient) if gradient.meta() == root.meta() => Ok(gradient),
        Some(gradient) => {
            let why = format!(
                "the upstream gradient must have the tensor's shape and dtype ({}), it is {}",
                root.dtype(),
                gradient.dtype()
            );
            Err(Error::shape(op, &[&root.shape(), &gradient.shape()], why))
        }
        None if root.numel() == 1 => Ok(root.ones_like()),
        None => {
            let why = "without an upstream gradient it starts from a single element; reduce the tensor (sum, mean) or \
                       give one: backward_with().gradient(&g).run()";
            Err(Error::shape(op, &[&root.shape()], why))
        }
    }
}

impl Tensor {
    /// The backward pass from this single element: adds d(self)/d(leaf) to the gradient of every
    /// leaf that requires it, and of every intermediate that retains it. The graph's saved values
    /// are freed; see [`Tensor::backward_with`] to keep them.
    ///
    /// Panics if this has more than one element or depends on no parameter;
    /// [`Tensor::try_backward`] returns the error.
    #[track_caller]
    pub fn backward(&self) {
        if let Err(e) = self.try_backward() {
            raise(e)
        }
    }

    /// Like [`Tensor::backward`], but returns the error.
    pub fn try_backward(&self) -> Result<()> {
        self.backward_with().run()
    }

    /// A backward pass with options: an upstream gradient, keeping the graph, recording the pass
    /// itself.
    pub fn backward_with(&self) -> Backward<'_> {
        Backward { root: self, gradient: None, keep_graph: false, create_graph: false }
    }
}
