//! Layer names for traced programs.

use std::cell::RefCell;
use std::collections::HashMap;

use super::Module;
use super::layer::Place;
use crate::tensor::{Tensor, scope};

/// Runs `f`; a trace inside of it knows the layers of the module by name. Each instruction of a
/// program records the layer that made it, those of a backward pass the layer of the forward op,
/// and an [ONNX model](https://docs.rs/chainrule) has these names as the scopes of its nodes.
/// Unnamed parameters and buffers are named too.
///
/// ```
/// use chainrule::nn::{Layer, Linear, Sequential, Tanh, with_scopes};
/// use chainrule::{Generator, Tensor, program::Program};
/// let g = &mut Generator::manual_seed(0);
/// let net = Sequential::new().with(Linear::new(2, 8, g)).with(Tanh);
/// let x = Tensor::zeros([5, 2]);
/// let program = with_scopes(&net, || {
///     Program::trace([("x", &x)], |args| Ok(vec![net.try_forward(&args[0])?]))
/// })?;
/// let scopes: Vec<_> = program.list().iter().map(|i| i.scope.as_deref()).collect();
/// assert_eq!(scopes, [Some("0"), Some("1")]);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn with_scopes<R>(module: &dyn Module, f: impl FnOnce() -> R) -> R {
    let named = module.named_parameters().into_iter().chain(module.named_buffers());
    for (name, tensor) in named.filter(|(_, tensor): &(_, Tensor)| tensor.name().is_none()) {
        tensor.named(&name);
    }
    LayerNames::of(module).during(f)
}

/// Layers of a module by place.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct LayerNames {
    names: HashMap<Place, Vec<String>>,
    /// Calls so far at places that several layers share.
    calls: HashMap<Place, usize>,
}

impl LayerNames {
    /// Names in this module, which must not move.
    pub fn of(module: &dyn Module) -> LayerNames {
        let mut names: HashMap<Place, Vec<String>> = HashMap::new();
        for (name, inner) in module.named_modules() {
            names.entry(Place::of(inner, inner.kind())).or_default().push(name);
        }
        LayerNames { names, calls: HashMap::new() }
    }

    /// Runs `f` with these names on this thread.
    pub fn during<R>(&self, f: impl FnOnce() -> R) -> R {
        struct End(Option<LayerNames>);
        impl Drop for End {
            fn drop(&mut self) {
                NAMES.set(self.0.take());
            }
        }
        let _end = End(NAMES.replace(Some(self.clone())));
        f()
    }

    /// Name of the layer that is called at a place. Layers without fields may share one: then those
    /// within the running layer alternate in order.
    fn called(&mut self, place: Place) -> Option<String> {
        let all = self.names.get(&place)?;
        if let [one] = all.as_slice() {
            return Some(one.clone());
        }
        let outer = scope::name().map_or_else(String::new, |name| name + ".");
        let inner: Vec<&String> = all.iter().filter(|name| name.starts_with(&outer)).collect();
        let call = self.calls.entry(place).or_default();
        let name = inner.get(*call % inner.len().max(1)).map(|name| name.to_string());
        *call += 1;
        name
    }
}

thread_local! {
    static NAMES: RefCell<Option<LayerNames>> = const { RefCell::new(None) };
}

/// A running layer; dropped when it returns.
pub(super) struct LayerScope {
    named: bool,
}

impl LayerScope {
    #[cold]
    pub fn enter(place: Place) -> LayerScope {
        let name = NAMES.with_borrow_mut(|names| names.as_mut()?.called(place));
        name.iter().for_each(|name| scope::enter(name));
        LayerScope { named: name.is_some() }
    }
}

impl Drop for LayerScope {
    fn drop(&mut self) {
        if self.named {
            scope::leave();
        }
    }
}
