//! A module that maps a tensor to a tensor, and the watch over the calls of such.

use std::cell::RefCell;

use super::{Field, Module};
use crate::error::{Result, raise};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// A module that maps one tensor to another.
///
/// [`Layer::forward`] runs a layer, and [`Layer::try_forward`] does so where an error is to be
/// returned; there is no other way. [`Layer::compute`] is the definition of a new layer, which only
/// these two call: through them [`summary`](super::summary()) sees each layer that runs.
pub trait Layer: Module {
    /// The definition of the layer: its result for `x`. To be written, not to be called; a layer
    /// that holds others calls their [`Layer::try_forward`].
    fn compute(&self, x: &Tensor) -> Result<Tensor>;

    /// The layer's result, or the error.
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.compute(x)?;
        Watch::saw(|| (Place::of(self, self.kind()), y.shape()));
        Ok(y)
    }

    /// As [`Layer::try_forward`], but panics with the error's text.
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        match self.try_forward(x) {
            Ok(y) => y,
            Err(e) => raise(e),
        }
    }
}

impl Module for Box<dyn Layer> {
    fn fields(&self) -> Vec<(String, Field<'_>)> {
        (**self).fields()
    }

    fn kind(&self) -> &'static str {
        (**self).kind()
    }
}

impl Layer for Box<dyn Layer> {
    fn compute(&self, x: &Tensor) -> Result<Tensor> {
        (**self).try_forward(x)
    }
}

/// Address, size and type of a module: a struct begins where its first field does, and modules
/// without fields may all lie at one address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    address: usize,
    size: usize,
    kind: &'static str,
}

impl Place {
    /// The place of a module whose [`Module::kind`] is `kind`.
    pub fn of<M: ?Sized>(module: &M, kind: &'static str) -> Place {
        let address = std::ptr::from_ref(module).addr();
        Place { address, size: size_of_val(module), kind }
    }

    /// Whether several modules of one kind can lie here.
    pub fn is_shared(self) -> bool {
        self.size == 0
    }
}

thread_local! {
    /// The shapes of layers' results, while somebody watches.
    static WATCHED: RefCell<Option<Vec<(Place, Shape)>>> = const { RefCell::new(None) };
}

/// Collects the shapes of the results of all layers that this thread calls.
pub(super) struct Watch;

impl Watch {
    pub fn start() -> Watch {
        WATCHED.set(Some(Vec::new()));
        Watch
    }

    /// Each layer that was called and the shape of its result, in the order in which the calls
    /// ended.
    pub fn seen(self) -> Vec<(Place, Shape)> {
        WATCHED.take().unwrap_or_default()
    }

    #[inline]
    fn saw(call: impl FnOnce() -> (Place, Shape)) {
        WATCHED.with_borrow_mut(|all| {
            if let Some(all) = all {
                all.push(call());
            }
        });
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHED.set(None);
    }
}
