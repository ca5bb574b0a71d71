//! Layers, and recording of their calls.

use std::cell::RefCell;
use std::collections::HashMap;

use super::scopes::LayerScope;
use super::{Field, Module};
use crate::error::{Result, raise};
use crate::tensor::Tensor;
use crate::tensor::log;
use crate::tensor::place::Called;

/// A module that maps one tensor to another.
///
/// [`Layer::forward`] runs a layer, and [`Layer::try_forward`] does so where an error is to be
/// returned; there is no other way. [`Layer::compute`] is the definition of a new layer, which only
/// these two call: through them [`summary`](super::summary()) sees each layer that runs.
pub trait Layer: Module {
    /// The definition of the layer: its output for `x`. Implement it, but don't call it; a layer
    /// that contains others calls their [`Layer::try_forward`].
    fn compute(&self, x: &Tensor) -> Result<Tensor>;

    /// Bounds of the output, as of a tanh.
    fn bounds(&self) -> Option<(f64, f64)> {
        None
    }

    /// The layer's output, or the error. Ops of the library's own layers are attributed to the line
    /// of this call.
    #[track_caller]
    fn try_forward(&self, x: &Tensor) -> Result<Tensor> {
        let _called = Called::here();
        let scope = log::is_on().then(|| LayerScope::enter(Place::of(self, self.kind())));
        let y = self.compute(x)?;
        drop(scope);
        Watch::saw(|| Call {
            place: Place::of(self, self.kind()),
            output: y.clone(),
            bounds: self.bounds(),
        });
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

    fn bounds(&self) -> Option<(f64, f64)> {
        (**self).bounds()
    }
}

/// Address, size and type of a module: a struct shares its address with its first field, and all
/// modules without fields may share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    address: usize,
    size: usize,
    kind: &'static str,
}

impl Place {
    /// Place of a module whose [`Module::kind`] is `kind`.
    pub fn of<M: ?Sized>(module: &M, kind: &'static str) -> Place {
        let address = std::ptr::from_ref(module).addr();
        Place { address, size: size_of_val(module), kind }
    }

    /// Whether several modules of one kind can share this place.
    pub fn is_shared(self) -> bool {
        self.size == 0
    }
}

/// A call of a layer.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub place: Place,
    pub output: Tensor,
    bounds: Option<(f64, f64)>,
}

/// Output of a layer that was called inside [`watched`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LayerOutput {
    /// Path of the layer in the module, joined by dots.
    pub name: String,
    /// Output of its last call.
    pub output: Tensor,
    /// See [`Layer::bounds`].
    pub bounds: Option<(f64, f64)>,
}

/// Runs a function, and returns the last output of each layer of the module that it called on this
/// thread, in the order of completion.
///
/// Layers without fields, such as [`Tanh`](super::Tanh), are identified by their order if each was
/// called once; otherwise they are left out.
///
/// ```
/// use chainrule::nn::{Layer, Linear, Sequential, Tanh, watched};
/// use chainrule::{Generator, Tensor};
/// let g = &mut Generator::manual_seed(0);
/// let net = Sequential::new().with(Linear::new(2, 8, g)).with(Tanh).with(Linear::new(8, 1, g));
/// let (y, outputs) = watched(&net, || net.forward(&Tensor::zeros([5, 2])));
/// let names: Vec<&str> = outputs.iter().map(|o| o.name.as_str()).collect();
/// assert_eq!(names, ["0", "1", "2"]);
/// assert_eq!(outputs[1].bounds, Some((-1.0, 1.0)));
/// assert_eq!(outputs[2].output.to_f64_vec(), y.to_f64_vec());
/// ```
pub fn watched<R>(module: &dyn Module, f: impl FnOnce() -> R) -> (R, Vec<LayerOutput>) {
    let watch = Watch::start();
    let result = f();
    let calls = watch.seen();
    let mut names: HashMap<Place, Vec<String>> = HashMap::new();
    for (name, inner) in module.named_modules() {
        names.entry(Place::of(inner, inner.kind())).or_default().push(name);
    }
    let mut counts: HashMap<Place, usize> = HashMap::new();
    calls.iter().for_each(|call| *counts.entry(call.place).or_default() += 1);
    let mut out: Vec<LayerOutput> = Vec::new();
    let mut passed: HashMap<Place, usize> = HashMap::new();
    for Call { place, output, bounds } in calls {
        let Some(here) = names.get(&place) else { continue };
        let turn = passed.entry(place).or_default();
        let name = match here.len() {
            1 => &here[0],
            // A place shared by several modules.
            n if place.is_shared() && counts[&place] == n => &here[*turn],
            _ => continue,
        };
        *turn += 1;
        out.retain(|o| o.name != *name);
        out.push(LayerOutput { name: name.clone(), output, bounds });
    }
    (result, out)
}

thread_local! {
    /// Recorded calls of layers.
    static WATCHED: RefCell<Option<Vec<Call>>> = const { RefCell::new(None) };
}

/// Records the outputs of all layers that this thread calls.
pub(super) struct Watch;

impl Watch {
    pub fn start() -> Watch {
        WATCHED.set(Some(Vec::new()));
        Watch
    }

    /// Each layer that was called and its output, in the order of completion.
    pub fn seen(self) -> Vec<Call> {
        WATCHED.take().unwrap_or_default()
    }

    #[inline]
    fn saw(call: impl FnOnce() -> Call) {
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
