//! What a module is: something with named parameters and buffers, a mode, and a state that can be saved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::rng::{Generator, GeneratorState};
use crate::tensor::Tensor;

/// One field of a module, as far as training goes.
pub enum Field<'a> {
    /// A tensor that is trained.
    Parameter(&'a Tensor),
    /// A tensor that is saved but not trained.
    Buffer(&'a Tensor),
    /// A module inside.
    Module(&'a dyn Module),
    /// Several modules or tensors, each by its name.
    List(Vec<(String, Field<'a>)>),
    /// The switch between training and evaluation.
    Training(&'a Training),
    /// The generator that the module draws from.
    Random(&'a Mutex<Generator>),
}

/// What a field of a struct is to `#[derive(Module)]`.
pub trait AsField {
    /// The field's role; `None` if it has none (a size, a rate).
    fn as_field(&self) -> Option<Field<'_>>;
}

/// A tensor field marked as a buffer; what else is so marked keeps its own role.
#[doc(hidden)]
pub fn buffer_field<'a>(name: &str, field: &'a impl AsField) -> Option<(String, Field<'a>)> {
    let field = match field.as_field()? {
        Field::Parameter(tensor) => Field::Buffer(tensor),
        other => other,
    };
    Some((name.to_string(), field))
}

impl AsField for Tensor {
    fn as_field(&self) -> Option<Field<'_>> {
        Some(Field::Parameter(self))
    }
}

impl<M: Module> AsField for M {
    fn as_field(&self) -> Option<Field<'_>> {
        Some(Field::Module(self))
    }
}

impl AsField for Training {
    fn as_field(&self) -> Option<Field<'_>> {
        Some(Field::Training(self))
    }
}

impl<F: AsField> AsField for Option<F> {
    fn as_field(&self) -> Option<Field<'_>> {
        self.as_ref()?.as_field()
    }
}

impl<F: AsField> AsField for Vec<F> {
    fn as_field(&self) -> Option<Field<'_>> {
        let fields = self.iter().enumerate();
        Some(Field::List(
            fields.filter_map(|(i, f)| Some((i.to_string(), f.as_field()?))).collect(),
        ))
    }
}

macro_rules! no_fields {
    ($($ty:ty)*) => {$(
        impl AsField for $ty {
            fn as_field(&self) -> Option<Field<'_>> {
                None
            }
        }
    )*};
}
no_fields!(usize u64 u32 i64 i32 f64 f32 bool String);

/// The switch between training and evaluation; on when new.
#[derive(Debug)]
pub struct Training(AtomicBool);

impl Default for Training {
    fn default() -> Self {
        Training(AtomicBool::new(true))
    }
}

impl Training {
    /// Whether the module is in training mode.
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }
}

/// Tensors by name, in the order of the names.
pub type StateDict = BTreeMap<String, Tensor>;

/// Something with named parameters and buffers; mostly written by `#[derive(Module)]`.
///
/// ```
/// use chainrule::nn::{Linear, Module};
/// use chainrule::Generator;
///
/// #[derive(Module)]
/// struct Net {
///     first: Linear,
///     second: Linear,
/// }
///
/// let g = &mut Generator::manual_seed(0);
/// let net = Net { first: Linear::new(3, 4, true, g), second: Linear::new(4, 2, false, g) };
/// let names: Vec<String> = net.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["first.weight", "first.bias", "second.weight"]);
/// assert_eq!(net.parameter_count(), 3 * 4 + 4 + 4 * 2);
/// ```
pub trait Module {
    /// The fields, in order.
    fn fields(&self) -> Vec<(String, Field<'_>)>;

    /// Parameters with their names, joined by dots.
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        collect(self.fields(), |field| match field {
            Field::Parameter(tensor) => Some((*tensor).clone()),
            _ => None,
        })
    }

    /// The parameters, as an optimizer takes them.
    fn parameters(&self) -> Vec<Tensor> {
        self.named_parameters().into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// Buffers with their names.
    fn named_buffers(&self) -> Vec<(String, Tensor)> {
        collect(self.fields(), |field| match field {
            Field::Buffer(tensor) => Some((*tensor).clone()),
            _ => None,
        })
    }

    /// The modules inside with their names, each before those inside it; this one itself is not among them.
    fn named_modules(&self) -> Vec<(String, &dyn Module)> {
        let mut out = Vec::new();
        modules("", self.fields(), &mut out);
        out
    }

    /// The parameter or buffer of this name.
    ///
    /// ```
    /// use chainrule::nn::{Linear, Module};
    /// let layer = Linear::new(3, 2, true, &mut chainrule::Generator::manual_seed(0));
    /// assert_eq!(layer.get("weight").unwrap().shape(), [2, 3]);
    /// assert!(layer.get("weights").unwrap_err().to_string().contains("there are weight, bias"));
    /// ```
    fn get(&self, name: &str) -> Result<Tensor> {
        let all: Vec<_> = self.named_parameters().into_iter().chain(self.named_buffers()).collect();
        match all.iter().find(|(own, _)| own == name) {
            Some((_, tensor)) => Ok(tensor.clone()),
            None => {
                let names: Vec<&str> = all.iter().map(|(own, _)| own.as_str()).collect();
                let why =
                    format!("no parameter or buffer is called `{name}`; there are {}", few(&names));
                Err(Error::argument("get", why))
            }
        }
    }

    /// The number of numbers in all parameters, frozen ones too.
    fn parameter_count(&self) -> usize {
        self.parameters().iter().map(Tensor::numel).sum()
    }

    /// The number of numbers that are trained: without the frozen ones.
    fn trained_count(&self) -> usize {
        self.parameters().iter().filter(|p| p.requires_grad()).map(Tensor::numel).sum()
    }

    /// Keeps all parameters as they are: they get no gradients, and optimizers pass over them. See [`Module::unfreeze`].
    ///
    /// ```
    /// use chainrule::nn::{Linear, Module, Sequential};
    /// let g = &mut chainrule::Generator::manual_seed(0);
    /// let net = Sequential::new().with(Linear::new(3, 4, true, g)).with(Linear::new(4, 1, true, g));
    /// net.layers()[0].freeze();
    /// assert_eq!((net.parameter_count(), net.trained_count()), (21, 5));
    /// ```
    fn freeze(&self) {
        set_trained(self, false);
    }

    /// Undoes [`Module::freeze`].
    fn unfreeze(&self) {
        set_trained(self, true);
    }

    /// The name of the type, without its path: `Linear`.
    fn kind(&self) -> &'static str {
        let name = std::any::type_name::<Self>();
        let name = name.split('<').next().unwrap_or(name);
        name.rsplit("::").next().unwrap_or(name)
    }

    /// Forgets the gradients of all parameters.
    fn zero_grad(&self) {
        self.parameters().iter().for_each(Tensor::zero_grad);
    }

    /// Switches to training mode: batch norm uses the batch's statistics, dropout drops.
    fn train(&self) {
        set_training(self.fields(), true);
    }

    /// Switches to evaluation mode.
    fn eval(&self) {
        set_training(self.fields(), false);
    }

    /// The states of the generators inside (of dropout layers) with the names of their modules: with the
    /// [`state_dict`](Module::state_dict) all that the next forward pass depends on.
    fn generator_states(&self) -> BTreeMap<String, GeneratorState> {
        let mut all = Vec::new();
        generators("", self.fields(), &mut all);
        let state = |g: &Mutex<Generator>| g.lock().unwrap_or_else(PoisonError::into_inner).state();
        all.into_iter().map(|(name, g)| (name, state(g))).collect()
    }

    /// Sets the generators inside to what [`Module::generator_states`] gave. Errors for other names; then nothing is changed.
    fn set_generator_states(&self, states: &BTreeMap<String, GeneratorState>) -> Result<()> {
        let mut all = Vec::new();
        generators("", self.fields(), &mut all);
        if all.len() != states.len() || all.iter().any(|(name, _)| !states.contains_key(name)) {
            let why = "the generators are not those of this module";
            return Err(Error::argument("set_generator_states", why));
        }
        for (name, g) in all {
            g.lock().unwrap_or_else(PoisonError::into_inner).set_state(&states[&name]);
        }
        Ok(())
    }

    /// Parameters and buffers by name, as values: later training does not change them.
    fn state_dict(&self) -> StateDict {
        let all = self.named_parameters().into_iter().chain(self.named_buffers());
        all.map(|(name, tensor)| (name, tensor.detach())).collect()
    }

    /// Takes over parameters and buffers by name. All names must be there, no others, and shapes and dtypes must match;
    /// on an error nothing is changed.
    fn load_state_dict(&self, state: &StateDict) -> Result<()> {
        let own: Vec<_> = self.named_parameters().into_iter().chain(self.named_buffers()).collect();
        let names: BTreeSet<&str> = own.iter().map(|(name, _)| name.as_str()).collect();
        let missing: Vec<&str> =
            names.iter().copied().filter(|name| !state.contains_key(*name)).collect();
        let unknown: Vec<&str> =
            state.keys().map(String::as_str).filter(|name| !names.contains(name)).collect();
        if !missing.is_empty() || !unknown.is_empty() {
            let why = format!(
                "the state does not fit the module: missing [{}], not known [{}]",
                few(&missing),
                few(&unknown)
            );
            return Err(Error::argument("load_state_dict", why));
        }
        for (name, tensor) in &own {
            let new = &state[name];
            if (new.shape(), new.dtype()) != (tensor.shape(), tensor.dtype()) {
                let why = format!(
                    "`{name}` is {} {} in the module but {} {} in the state",
                    tensor.dtype(),
                    tensor.shape(),
                    new.dtype(),
                    new.shape()
                );
                return Err(Error::argument("load_state_dict", why));
            }
        }
        own.iter().try_for_each(|(name, tensor)| tensor.try_set(&state[name]))
    }
}

/// The first few of the names: a state from elsewhere may have thousands.
fn few(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

/// The tensors that `pick` takes of the fields and of those inside them, with their full names.
fn collect(
    fields: Vec<(String, Field<'_>)>,
    pick: fn(&Field<'_>) -> Option<Tensor>,
) -> Vec<(String, Tensor)> {
    let mut out = Vec::new();
    gather("", fields, pick, &mut out);
    out
}

fn gather(
    prefix: &str,
    fields: Vec<(String, Field<'_>)>,
    pick: fn(&Field<'_>) -> Option<Tensor>,
    out: &mut Vec<(String, Tensor)>,
) {
    for (name, field) in fields {
        let path = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match field {
            Field::Module(module) => gather(&path, module.fields(), pick, out),
            Field::List(list) => gather(&path, list, pick, out),
            other => out.extend(pick(&other).map(|tensor| (path, tensor))),
        }
    }
}

fn modules<'a>(
    prefix: &str,
    fields: Vec<(String, Field<'a>)>,
    out: &mut Vec<(String, &'a dyn Module)>,
) {
    for (name, field) in fields {
        let path = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match field {
            Field::Module(module) => {
                out.push((path.clone(), module));
                modules(&path, module.fields(), out);
            }
            Field::List(list) => modules(&path, list, out),
            Field::Parameter(_) | Field::Buffer(_) | Field::Training(_) | Field::Random(_) => {}
        }
    }
}

fn generators<'a>(
    prefix: &str,
    fields: Vec<(String, Field<'a>)>,
    out: &mut Vec<(String, &'a Mutex<Generator>)>,
) {
    for (name, field) in fields {
        let path = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
        match field {
            Field::Random(generator) => out.push((path, generator)),
            Field::Module(module) => generators(&path, module.fields(), out),
            Field::List(list) => generators(&path, list, out),
            Field::Parameter(_) | Field::Buffer(_) | Field::Training(_) => {}
        }
    }
}

fn set_trained(module: &(impl Module + ?Sized), on: bool) {
    for p in module.parameters() {
        p.set_requires_grad(on).expect("a parameter is a leaf of floats");
    }
}

/// The switches of the fields and of those inside them.
pub(super) fn switches<'a>(fields: Vec<(String, Field<'a>)>, out: &mut Vec<&'a Training>) {
    for (_, field) in fields {
        match field {
            Field::Training(switch) => out.push(switch),
            Field::Module(module) => switches(module.fields(), out),
            Field::List(list) => switches(list, out),
            Field::Parameter(_) | Field::Buffer(_) | Field::Random(_) => {}
        }
    }
}

fn set_training(fields: Vec<(String, Field<'_>)>, on: bool) {
    let mut all = Vec::new();
    switches(fields, &mut all);
    all.into_iter().for_each(|switch| switch.set(on));
}
