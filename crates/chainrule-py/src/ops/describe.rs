//! A name as Python is told of it: its signature, its types and its help.

use std::fmt::Write;

use chainrule::ops::binding::{Binding, Call, Kind, Parameter, Preset};
use chainrule::ops::{Entry, table};
use pyo3::prelude::*;

use super::{INPLACE, Point, Way};

impl Point {
    /// The signature as `inspect` reads it, and the line behind it.
    pub(super) fn text_signature(&self, name: &str) -> String {
        let first = match self.way {
            Way::Method | Way::InPlace => "$self, /",
            _ => self.binding.receiver,
        };
        let is_method = matches!(self.way, Way::Method | Way::InPlace);
        format!("{name}({first}{})\n--\n\n", parameters(&self.parameters, is_method, false))
    }

    /// The help without the signature.
    pub(super) fn help(&self) -> String {
        let text = help(self.entry, self.binding);
        match self.way {
            Way::InPlace => format!(
                "As `{}`; the tensor takes the result as its value.\n\n{text}",
                self.binding.name
            ),
            _ => text,
        }
    }
}

/// Formula, gradient and edges, from the row of the table.
fn help(entry: &Entry, binding: &Binding) -> String {
    let formula = if binding.formula.is_empty() { entry.formula } else { binding.formula };
    let mut text = format!("{formula}.\n");
    // Writing to a string cannot fail.
    match entry.gradient {
        "" => text.push_str("\nNo gradient flows through it.\n"),
        rule => {
            let _ = write!(text, "\nGradient: {rule}\n");
        }
    }
    if !entry.at_kinks.is_empty() {
        let _ = write!(text, "\nEdges: {}\n", entry.at_kinks);
    }
    if !binding.aliases.is_empty() {
        let _ = write!(text, "\nOther names: {}\n", binding.aliases.join(", "));
    }
    text
}

/// The parameters behind the first one, each with a comma before it.
fn parameters(all: &[Parameter], is_method: bool, typed: bool) -> String {
    let mut text = String::new();
    let mut star = false;
    let seconds = all.iter().filter(|p| !p.also.is_empty()).map(|p| Parameter {
        name: p.also,
        by_name: true,
        default: p.default.or(Some(Preset::None)),
        ..*p
    });
    let (places, names): (Vec<_>, Vec<_>) =
        all.iter().copied().chain(seconds).partition(|p| !p.by_name);
    for p in places.iter().chain(&names) {
        let spread = p.kind == Kind::Sizes && is_method;
        if p.by_name && !star {
            text.push_str(", *");
            star = true;
        }
        let default = match p.default {
            // It may be given by its other name.
            None if !p.also.is_empty() => Some(Preset::None),
            default => default,
        };
        let _ = write!(text, ", {}{}", if spread { "*" } else { "" }, p.name);
        if typed {
            let none = if default == Some(Preset::None) { " | None" } else { "" };
            let _ = write!(text, ": {}{none}", if spread { "Any" } else { type_of(p.kind) });
        }
        let (before, after) = if typed { (" = ", "") } else { ("=", "") };
        let _ = match default {
            None => Ok(()),
            Some(Preset::None) => write!(text, "{before}None{after}"),
            Some(Preset::Float(x)) => write!(text, "{before}{x:?}{after}"),
            Some(Preset::Int(x)) => write!(text, "{before}{x}{after}"),
            Some(Preset::Bool(x)) => {
                write!(text, "{before}{}{after}", if x { "True" } else { "False" })
            }
            Some(Preset::Choice(word)) => write!(text, "{before}'{word}'{after}"),
        };
    }
    text
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Tensor => "Tensor",
        Kind::Operand => "_TensorLike",
        Kind::Float => "builtins.float",
        Kind::Int | Kind::Count => "builtins.int",
        Kind::Bool => "builtins.bool",
        Kind::DType => "_DTypeLike",
        Kind::Axes | Kind::Ints | Kind::Sizes => "builtins.int | Sequence[builtins.int]",
        Kind::Choice(_) => "builtins.str",
        Kind::Unused => "None",
    }
}

/// A name of the table for the types: the name, its other names, the reason why it is written by
/// hand, what it gives, and its signatures as a method and as functions.
type Described = (
    &'static str,
    &'static [&'static str],
    Option<&'static str>,
    &'static str,
    [Option<String>; 4],
);

/// All names of the table: for each its signatures with types as a method, a method that writes, a
/// function, and a function of `nn.functional`.
#[pyfunction]
pub fn _bindings() -> Vec<Described> {
    let all = table().flat_map(|entry| entry.python);
    all.map(|b| {
        let result = match b.call {
            Call::Pair(_) => "ValuesIndices",
            _ => "Tensor",
        };
        let reason = match b.call {
            Call::ByHand(reason) => Some(reason),
            _ => None,
        };
        let method = format!("(self, /{})", parameters(b.parameters, true, true));
        let function = |parameters: &[Parameter]| {
            format!("({}: _TensorLike{})", b.receiver, self::parameters(parameters, false, true))
        };
        let mut functional = b.parameters.to_vec();
        functional.extend(b.inplace.then_some(INPLACE));
        let ways = [
            b.method.then(|| method.clone()),
            b.in_place.then_some(method),
            b.function.then(|| function(b.parameters)),
            b.functional.then(|| function(&functional)),
        ];
        (b.name, b.aliases, reason, result, ways)
    })
    .collect()
}

/// The names that are written by hand: help, further names, and whether there is a method that
/// writes to the tensor; or those of them that are functions.
#[pyfunction]
#[pyo3(signature = (functions=false))]
pub fn _by_hand(functions: bool) -> Vec<(&'static str, String, &'static [&'static str], bool)> {
    let wanted = |b: &Binding| match b.call {
        Call::ByHand(_) if functions => b.function,
        Call::ByHand(_) => b.method,
        _ => false,
    };
    let all = table().flat_map(|entry| entry.python.iter().map(move |b| (entry, b)));
    let of = |(entry, b): (&Entry, &Binding)| (b.name, help(entry, b), b.aliases, b.in_place);
    all.filter(|(_, b)| wanted(b)).map(of).collect()
}
