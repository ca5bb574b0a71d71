//! Modules: named parameters and buffers, a mode, and a state dict.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Result;
use crate::rng::{Generator, GeneratorState};
use crate::tensor::Tensor;

pub(super) mod fields;

/// A field of a module.
pub enum Field<'a> {
    /// A parameter.
    Parameter(&'a Tensor),
    /// A buffer: saved but not trained.
    Buffer(&'a Tensor),
    /// A submodule.
    Module(&'a dyn Module),
    /// Several modules or tensors by name.
    List(Vec<(String, Field<'a>)>),
    /// The switch between training and evaluation.
    Training(&'a Training),
    /// The module's generator.
    Random(&'a Mutex<Generator>),
}

/// The role of a struct's field in `#[derive(Module)]`.
pub trait AsField {
    /// Role of the field; `None` for a plain value (a size, a rate).
    fn as_field(&self) -> Option<Field<'_>>;
}

/// Role of a field marked as a buffer: a tensor becomes a buffer, others keep their role.
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

/// Training or evaluation mode; a new one is in training.
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

/// Tensors by name, sorted.
pub type StateDict = BTreeMap<String, Tensor>;

/// A container of named parameters and buffers; mostly derived by `#[derive(Module)]`.
///
/// ```
/// use chainrule::nn::{Linear, LinearOptions, Module};
/// use chainrule::Generator;
///
/// #[derive(Module)]
/// struct Net {
///     first: Linear,
///     second: Linear,
/// }
///
/// let g = &mut Generator::manual_seed(0);
/// let no_bias = LinearOptions::default().no_bias();
/// let net = Net {
///     first: Linear::new(3, 4, g),
///     second: Linear::with_options(4, 2, no_bias, g),
/// };
/// let names: Vec<String> = net.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["first.weight", "first.bias", "second.weight"]);
/// assert_eq!(net.parameter_count(), 3 * 4 + 4 + 4 * 2);
/// ```
pub trait Module {
    /// The fields, in order.
    fn fields(&self) -> Vec<(String, Field<'_>)>;

    /// Parameters with their paths, joined by dots.
    fn named_parameters(&self) -> Vec<(String, Tensor)> {
        fields::collect(self.fields(), |field| match field {
            Field::Parameter(tensor) => Some((*tensor).clone()),
            _ => None,
        })
    }

    /// The parameters, as an optimizer takes them.
    fn parameters(&self) -> Vec<Tensor> {
        fields::without_names(self.named_parameters())
    }

    /// Buffers with their names.
    fn named_buffers(&self) -> Vec<(String, Tensor)> {
        fields::collect(self.fields(), |field| match field {
            Field::Buffer(tensor) => Some((*tensor).clone()),
            _ => None,
        })
    }

    /// The submodules with their names in pre-order, without this module itself.
    fn named_modules(&self) -> Vec<(String, &dyn Module)> {
        let mut out = Vec::new();
        fields::modules("", self.fields(), &mut out);
        out
    }

    /// The parameter or buffer of this name.
    ///
    /// ```
    /// use chainrule::nn::{Linear, Module};
    /// let layer = Linear::new(3, 2, &mut chainrule::Generator::manual_seed(0));
    /// assert_eq!(layer.get("weight").unwrap().shape(), [2, 3]);
    /// assert!(layer.get("weights").unwrap_err().to_string().contains("there are weight, bias"));
    /// ```
    fn get(&self, name: &str) -> Result<Tensor> {
        fields::find(fields::tensors(self.named_parameters(), self.named_buffers()), name)
    }

    /// Number of elements in all parameters, frozen ones too.
    fn parameter_count(&self) -> usize {
        fields::count(&self.parameters())
    }

    /// Number of trainable elements: without the frozen parameters.
    fn trained_count(&self) -> usize {
        fields::count_trained(&self.parameters())
    }

    /// Freezes all parameters: they get no gradients, and optimizers skip them. See
    /// [`Module::unfreeze`].
    ///
    /// ```
    /// use chainrule::nn::{Linear, Module, Sequential};
    /// let g = &mut chainrule::Generator::manual_seed(0);
    /// let net = Sequential::new().with(Linear::new(3, 4, g)).with(Linear::new(4, 1, g));
    /// net.layers()[0].freeze();
    /// assert_eq!((net.parameter_count(), net.trained_count()), (21, 5));
    /// ```
    fn freeze(&self) {
        fields::set_trained(&self.parameters(), false);
    }

    /// Undoes [`Module::freeze`].
    fn unfreeze(&self) {
        fields::set_trained(&self.parameters(), true);
    }

    /// Type name without its path: `Linear`.
    fn kind(&self) -> &'static str {
        fields::last_name(std::any::type_name::<Self>())
    }

    /// Clears the gradients of all parameters.
    fn zero_grad(&self) {
        fields::zero_grad(&self.parameters());
    }

    /// Sets training mode: batch norm uses the statistics of the batch, dropout drops.
    fn train(&self) {
        fields::set_training(self.fields(), true);
    }

    /// Sets evaluation mode.
    fn eval(&self) {
        fields::set_training(self.fields(), false);
    }

    /// States of the generators inside (of dropout layers) by the names of their modules; with the
    /// [`state_dict`](Module::state_dict) they determine the next forward pass.
    fn generator_states(&self) -> BTreeMap<String, GeneratorState> {
        fields::generator_states(self.fields())
    }

    /// Restores the generators from [`Module::generator_states`]. Errors for other names; then
    /// nothing is changed.
    fn set_generator_states(&self, states: &BTreeMap<String, GeneratorState>) -> Result<()> {
        fields::set_generator_states(self.fields(), states)
    }

    /// Parameters and buffers by name, as values that later training does not change.
    fn state_dict(&self) -> StateDict {
        fields::detached(fields::tensors(self.named_parameters(), self.named_buffers()))
    }

    /// Loads parameters and buffers by name. Missing or unknown names and other shapes or dtypes
    /// are errors, and then nothing is changed.
    fn load_state_dict(&self, state: &StateDict) -> Result<()> {
        fields::load(&fields::tensors(self.named_parameters(), self.named_buffers()), state)
    }
}
