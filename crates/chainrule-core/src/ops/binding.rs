//! The Python names of an op, as data: the package's functions, methods, types and help texts are
//! made from it.

mod arguments;

pub use self::arguments::{
    Argument, Arguments, Picked, along_axis, along_axis_pair, meet, or_of_bools, with_axis,
};

use crate::error::Result;
use crate::tensor::Tensor;

/// A name of the Python package that calls an op: a method of `Tensor`, a function, or both.
#[derive(Clone, Copy)]
pub struct Binding {
    /// The name, which is PyTorch's where PyTorch has the op.
    pub name: &'static str,
    /// Other names of it.
    pub aliases: &'static [&'static str],
    /// The name of the tensor itself when it is an argument of a function.
    pub receiver: &'static str,
    /// The arguments after the tensor itself.
    pub parameters: &'static [Parameter],
    /// The formula of this name, if the row of the table has several; otherwise empty, which means
    /// the row's.
    pub formula: &'static str,
    /// Whether it is a method of `Tensor`.
    pub method: bool,
    /// Whether it is a function of the package.
    pub function: bool,
    /// Whether there is a method `name_` that writes the result to the tensor.
    pub in_place: bool,
    /// Whether it is a function of `nn.functional`.
    pub functional: bool,
    /// Whether that function has the argument `inplace`.
    pub inplace: bool,
    /// Whether integers and bools become the default float first.
    pub floats: bool,
    pub call: Call,
}

/// The computation of a binding, on the tensor itself and its arguments.
#[derive(Clone, Copy)]
pub enum Call {
    One(fn(&Tensor) -> Result<Tensor>),
    /// Another tensor, or a number that takes the dtype of the first.
    Two(fn(&Tensor, &Tensor) -> Result<Tensor>),
    With(fn(&Tensor, &Arguments<'_>) -> Result<Tensor>),
    /// Values and their positions.
    Pair(fn(&Tensor, &Arguments<'_>) -> Result<(Tensor, Tensor)>),
    /// A method that is written in the package, for this reason.
    ByHand(&'static str),
}

/// An argument of a binding.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// A second name, NumPy's; empty for none.
    pub also: &'static str,
    pub kind: Kind,
    /// Its value where it is not given; none if it must be.
    pub default: Option<Preset>,
    /// Whether it is keyword-only.
    pub by_name: bool,
}

/// The values that an argument can have. If its default is `None`, `None` is allowed too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Tensor,
    /// A tensor or a number.
    Operand,
    Float,
    Int,
    /// An integer from 0 up.
    Count,
    Bool,
    DType,
    /// One axis or several.
    Axes,
    /// One integer or several.
    Ints,
    /// Integers as separate arguments or as one list: the rest of the arguments.
    Sizes,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// An argument of older versions of PyTorch, which accepts only `None`.
    Unused,
}

/// A default value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preset {
    None,
    Float(f64),
    Int(i64),
    Bool(bool),
    Choice(&'static str),
}

impl Binding {
    const fn new(name: &'static str, parameters: &'static [Parameter], call: Call) -> Binding {
        Binding {
            name,
            aliases: &[],
            receiver: "input",
            parameters,
            formula: "",
            method: true,
            function: true,
            in_place: false,
            functional: false,
            inplace: false,
            floats: false,
            call,
        }
    }

    /// An elementwise op of one tensor that takes every dtype as it is.
    pub(crate) const fn any(name: &'static str, call: fn(&Tensor) -> Result<Tensor>) -> Binding {
        Binding { in_place: true, ..Binding::new(name, &[], Call::One(call)) }
    }

    /// An elementwise op of one tensor of floats.
    pub(crate) const fn floats(name: &'static str, call: fn(&Tensor) -> Result<Tensor>) -> Binding {
        Binding { floats: true, ..Binding::any(name, call) }
    }

    /// An elementwise op of two tensors, or of a tensor and a number.
    pub(crate) const fn two(
        name: &'static str,
        call: fn(&Tensor, &Tensor) -> Result<Tensor>,
    ) -> Binding {
        const OTHER: &[Parameter] = &[Parameter::operand("other")];
        Binding { in_place: true, ..Binding::new(name, OTHER, Call::Two(call)) }
    }

    /// An op with arguments of any kind.
    pub(crate) const fn with(
        name: &'static str,
        parameters: &'static [Parameter],
        call: fn(&Tensor, &Arguments<'_>) -> Result<Tensor>,
    ) -> Binding {
        Binding::new(name, parameters, Call::With(call))
    }

    /// An op that gives values and their positions.
    pub(crate) const fn pair(
        name: &'static str,
        parameters: &'static [Parameter],
        call: fn(&Tensor, &Arguments<'_>) -> Result<(Tensor, Tensor)>,
    ) -> Binding {
        Binding::new(name, parameters, Call::Pair(call))
    }

    /// A reduction: its arguments are [`REDUCED`], which [`Arguments::reduced`] reads.
    pub(crate) const fn reduction(
        name: &'static str,
        call: fn(&Tensor, &Arguments<'_>) -> Result<Tensor>,
    ) -> Binding {
        Binding::with(name, REDUCED, call)
    }

    /// An op whose method is written in the package, and why it has to be.
    pub(crate) const fn by_hand(name: &'static str, reason: &'static str) -> Binding {
        Binding::new(name, &[], Call::ByHand(reason))
    }

    /// The same with further names.
    pub(crate) const fn also(self, aliases: &'static [&'static str]) -> Binding {
        Binding { aliases, ..self }
    }

    /// The same with another name for the tensor itself, as an argument of a function.
    pub(crate) const fn receiver(self, receiver: &'static str) -> Binding {
        Binding { receiver, ..self }
    }

    /// The same with a formula of its own.
    pub(crate) const fn formula(self, formula: &'static str) -> Binding {
        Binding { formula, ..self }
    }

    /// The same with a method that writes the result to the tensor.
    pub(crate) const fn in_place(self) -> Binding {
        Binding { in_place: true, ..self }
    }

    /// The same without that.
    pub(crate) const fn out_of_place(self) -> Binding {
        Binding { in_place: false, ..self }
    }

    /// The same for floats: integers and bools become the default float.
    pub(crate) const fn of_floats(self) -> Binding {
        Binding { floats: true, ..self }
    }

    /// The same in `nn.functional`, too.
    pub(crate) const fn functional(self) -> Binding {
        Binding { functional: true, ..self }
    }

    /// The same in `nn.functional`, too, with the argument `inplace`.
    pub(crate) const fn activation(self) -> Binding {
        Binding { functional: true, inplace: true, ..self }
    }

    /// The same without a function of the package itself.
    pub(crate) const fn no_function(self) -> Binding {
        Binding { function: false, ..self }
    }

    /// The same without a method.
    pub(crate) const fn no_method(self) -> Binding {
        Binding { method: false, in_place: false, ..self }
    }

    /// A function of `nn.functional` alone.
    pub(crate) const fn only_functional(self) -> Binding {
        self.no_method().no_function().functional()
    }
}

/// The arguments of a reduction.
const REDUCED: &[Parameter] =
    &[Parameter::axes("dim").or_none().also("axis"), KEEPDIM, Parameter::dtype().by_name()];

/// Whether axes stay, with size 1.
pub(crate) const KEEPDIM: Parameter = Parameter::flag("keepdim", false).also("keepdims");

/// The arguments of a sort. All sorts are stable.
pub(crate) const SORTED: &[Parameter] = &[
    Parameter::int("dim").or(-1),
    Parameter::flag("descending", false),
    Parameter::flag("stable", false),
];

/// The axis that an op goes along, under either name.
pub(crate) const ALONG: Parameter = Parameter::int("dim").also("axis");

/// The reduction of the losses of the elements.
pub(crate) const REDUCTION: Parameter =
    Parameter::choice("reduction", &["mean", "sum", "none"], "mean");

impl Parameter {
    pub(crate) const fn new(name: &'static str, kind: Kind) -> Parameter {
        Parameter { name, also: "", kind, default: None, by_name: false }
    }

    pub(crate) const fn tensor(name: &'static str) -> Parameter {
        Parameter::new(name, Kind::Tensor)
    }

    pub(crate) const fn operand(name: &'static str) -> Parameter {
        Parameter::new(name, Kind::Operand)
    }

    pub(crate) const fn float(name: &'static str, default: f64) -> Parameter {
        Parameter { default: Some(Preset::Float(default)), ..Parameter::new(name, Kind::Float) }
    }

    pub(crate) const fn maybe_float(name: &'static str) -> Parameter {
        Parameter::new(name, Kind::Float).or_none()
    }

    pub(crate) const fn int(name: &'static str) -> Parameter {
        Parameter::new(name, Kind::Int)
    }

    pub(crate) const fn count(name: &'static str) -> Parameter {
        Parameter::new(name, Kind::Count)
    }

    pub(crate) const fn axes(name: &'static str) -> Parameter {
        Parameter::new(name, Kind::Axes)
    }

    pub(crate) const fn ints(name: &'static str) -> Parameter {
        Parameter::new(name, Kind::Ints)
    }

    pub(crate) const fn sizes(name: &'static str) -> Parameter {
        Parameter::new(name, Kind::Sizes)
    }

    pub(crate) const fn flag(name: &'static str, default: bool) -> Parameter {
        Parameter { default: Some(Preset::Bool(default)), ..Parameter::new(name, Kind::Bool) }
    }

    pub(crate) const fn dtype() -> Parameter {
        Parameter::new("dtype", Kind::DType).or_none()
    }

    pub(crate) const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        default: &'static str,
    ) -> Parameter {
        let default = Some(Preset::Choice(default));
        Parameter { default, ..Parameter::new(name, Kind::Choice(words)) }
    }

    pub(crate) const fn maybe_choice(
        name: &'static str,
        words: &'static [&'static str],
    ) -> Parameter {
        Parameter::new(name, Kind::Choice(words)).or_none()
    }

    pub(crate) const fn unused(name: &'static str) -> Parameter {
        Parameter::new(name, Kind::Unused).or_none()
    }

    /// The same with this default.
    pub(crate) const fn or(self, default: i64) -> Parameter {
        Parameter { default: Some(Preset::Int(default)), ..self }
    }

    /// The same, which can be `None` and is by default.
    pub(crate) const fn or_none(self) -> Parameter {
        Parameter { default: Some(Preset::None), ..self }
    }

    /// The same under a second name.
    pub(crate) const fn also(self, also: &'static str) -> Parameter {
        Parameter { also, ..self }
    }

    /// The same, given by name only.
    pub(crate) const fn by_name(self) -> Parameter {
        Parameter { by_name: true, ..self }
    }
}

#[cfg(test)]
mod tests;
