//! The parameters of an op as data. Two uses of an op are equal if their parameters are, and
//! listings and scripts print them.
//!
//! `#[derive(Parameters)]` on a struct or an enum visits every field, so none can be forgotten. A
//! field is left out with `#[parameters(skip)]` where the others determine it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

pub use chainrule_derive::Parameters;
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::shape::{Axes, Shape};

/// A parameter, with its type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Param {
    /// No data: a marker type, or a field that the other fields determine.
    Unit,
    Bool(bool),
    Int(i128),
    Float(Bits),
    /// A string.
    Text(Arc<str>),
    /// A variant without fields, or a struct without any.
    Word(&'static str),
    Axes(Axes),
    /// An array, a list, a tuple, the sizes of a shape.
    List(Vec<Param>),
    /// A struct, or a variant with fields; fields without names are numbered.
    Struct(&'static str, Vec<(&'static str, Param)>),
    Some(Box<Param>),
    None,
    /// A tensor, identified by the address of its value.
    Tensor(usize),
}

/// A float by its bits, so that NaN equals itself and 0 is not -0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bits(u64);

impl Bits {
    /// The number.
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.get(), f)
    }
}

/// A type whose values can be parameters of an op.
pub trait Parameters {
    /// The parameters as data.
    fn parameters(&self) -> Param;
}

impl Param {
    /// The name of a struct or a variant.
    pub fn name(&self) -> &'static str {
        match self {
            Param::Struct(name, _) | Param::Word(name) => name,
            _ => "",
        }
    }

    /// The fields of a struct, with their names; also of one in an option.
    pub fn fields(&self) -> &[(&'static str, Param)] {
        match self.inner() {
            Param::Struct(_, fields) => fields,
            _ => &[],
        }
    }

    /// The field of this name, also of a struct inside.
    pub fn field(&self, name: &str) -> Option<&Param> {
        let own = self.fields().iter().find(|(k, _)| *k == name).map(|(_, v)| v);
        own.or_else(|| self.fields().iter().find_map(|(_, v)| v.field(name)))
    }

    /// The value that an option holds; the parameter itself if it is no option.
    pub fn inner(&self) -> &Param {
        match self {
            Param::Some(inner) => inner.inner(),
            other => other,
        }
    }

    /// The elements of a list, or the fields of a struct.
    pub fn items(&self) -> Vec<&Param> {
        match self.inner() {
            Param::List(items) => items.iter().collect(),
            Param::Struct(_, fields) => fields.iter().map(|(_, v)| v).collect(),
            _ => Vec::new(),
        }
    }

    /// A whole number, also of an option.
    pub fn integer(&self) -> Option<i64> {
        match self.inner() {
            Param::Int(n) => i64::try_from(*n).ok(),
            _ => None,
        }
    }

    /// A whole number from 0 up: a size, an axis.
    pub fn size(&self) -> Option<usize> {
        self.integer().and_then(|n| usize::try_from(n).ok())
    }

    /// A number, also of an option.
    pub fn number(&self) -> Option<f64> {
        match self.inner() {
            Param::Float(x) => Some(x.get()),
            Param::Int(n) => Some(*n as f64),
            _ => None,
        }
    }

    /// Whether it is true.
    pub fn is_true(&self) -> bool {
        *self == Param::Bool(true)
    }

    /// A set or a list of axes.
    pub fn axes(&self) -> Option<Vec<usize>> {
        match self.inner() {
            Param::Axes(axes) => Some(axes.iter().collect()),
            Param::List(items) => items.iter().map(Param::size).collect(),
            _ => None,
        }
    }
}

impl fmt::Display for Param {
    /// As Rust writes it; a set of axes as a list, and a tensor as three dots.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Param::Unit => Ok(()),
            Param::Bool(x) => x.fmt(f),
            Param::Int(x) => x.fmt(f),
            Param::Float(x) => fmt::Debug::fmt(x, f),
            Param::Text(text) => fmt::Debug::fmt(text, f),
            Param::Word(word) => f.write_str(word),
            Param::Axes(axes) => f.debug_list().entries(axes.iter()).finish(),
            Param::List(items) => separated(f, ["[", "]"], items.iter().map(|v| ("", v))),
            Param::Struct(name, fields) => {
                let named = fields.first().is_some_and(|(k, _)| !is_number(k));
                f.write_str(name)?;
                let ends = if named { [" { ", " }"] } else { ["(", ")"] };
                let fields = fields.iter().map(|(k, v)| (if named { *k } else { "" }, v));
                separated(f, ends, fields)
            }
            Param::Some(inner) => write!(f, "Some({inner})"),
            Param::None => f.write_str("None"),
            Param::Tensor(_) => f.write_str("..."),
        }
    }
}

/// Whether a field has no name.
pub fn is_number(field: &str) -> bool {
    field.starts_with(|c: char| c.is_ascii_digit())
}

fn separated<'a>(
    f: &mut fmt::Formatter<'_>,
    [open, close]: [&str; 2],
    items: impl Iterator<Item = (&'a str, &'a Param)>,
) -> fmt::Result {
    f.write_str(open)?;
    for (i, (name, value)) in items.enumerate() {
        f.write_str(if i == 0 { "" } else { ", " })?;
        if !name.is_empty() {
            write!(f, "{name}: ")?;
        }
        fmt::Display::fmt(value, f)?;
    }
    f.write_str(close)
}

macro_rules! whole_numbers {
    ($($ty:ty)*) => {$(
        impl Parameters for $ty {
            fn parameters(&self) -> Param {
                Param::Int(*self as i128)
            }
        }
    )*};
}
whole_numbers! { u8 u32 u64 usize i32 i64 isize }

impl Parameters for bool {
    fn parameters(&self) -> Param {
        Param::Bool(*self)
    }
}

impl Parameters for f64 {
    fn parameters(&self) -> Param {
        Param::Float(Bits(self.to_bits()))
    }
}

impl Parameters for &'static str {
    fn parameters(&self) -> Param {
        Param::Text((*self).into())
    }
}

impl Parameters for String {
    fn parameters(&self) -> Param {
        Param::Text(self.as_str().into())
    }
}

impl Parameters for DType {
    fn parameters(&self) -> Param {
        Param::Word(match self {
            DType::Bool => "Bool",
            DType::U8 => "U8",
            DType::I8 => "I8",
            DType::U16 => "U16",
            DType::I16 => "I16",
            DType::U32 => "U32",
            DType::I32 => "I32",
            DType::U64 => "U64",
            DType::I64 => "I64",
            DType::F16 => "F16",
            DType::BF16 => "BF16",
            DType::F32 => "F32",
            DType::F64 => "F64",
        })
    }
}

impl Parameters for Axes {
    fn parameters(&self) -> Param {
        Param::Axes(*self)
    }
}

impl Parameters for Shape {
    fn parameters(&self) -> Param {
        self.dims().parameters()
    }
}

impl<T> Parameters for PhantomData<T> {
    fn parameters(&self) -> Param {
        Param::Unit
    }
}

impl<T: Parameters> Parameters for Option<T> {
    fn parameters(&self) -> Param {
        self.as_ref().map_or(Param::None, |x| Param::Some(Box::new(x.parameters())))
    }
}

impl<T: Parameters> Parameters for [T] {
    fn parameters(&self) -> Param {
        Param::List(self.iter().map(T::parameters).collect())
    }
}

impl<T: Parameters, const N: usize> Parameters for [T; N] {
    fn parameters(&self) -> Param {
        self.as_slice().parameters()
    }
}

impl<T: Parameters> Parameters for Vec<T> {
    fn parameters(&self) -> Param {
        self.as_slice().parameters()
    }
}

impl<T: Parameters, const N: usize> Parameters for SmallVec<[T; N]>
where
    [T; N]: smallvec::Array<Item = T>,
{
    fn parameters(&self) -> Param {
        self.as_slice().parameters()
    }
}

impl<A: Parameters, B: Parameters> Parameters for (A, B) {
    fn parameters(&self) -> Param {
        Param::List(vec![self.0.parameters(), self.1.parameters()])
    }
}

impl<T: Parameters + ?Sized> Parameters for Arc<T> {
    fn parameters(&self) -> Param {
        (**self).parameters()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[derive(Parameters)]
    enum NestedKind {
        Plain,
        Pair(i64, Option<f64>),
        Named { on: bool },
    }

    #[derive(Parameters)]
    struct Outer {
        kind: NestedKind,
        axes: Axes,
        marker: PhantomData<Shape>,
        shape: Shape,
        #[parameters(skip)]
        #[allow(dead_code, reason = "it is left out, which is what is tested")]
        shown: &'static str,
    }

    fn outer(kind: NestedKind, x: usize) -> Param {
        let axes = Axes::of(&[0, 2]);
        let shape = Shape::new(&[2, x]);
        Outer { kind, axes, marker: PhantomData, shape, shown: "x" }.parameters()
    }

    #[test]
    fn every_field_is_visited_with_its_type() {
        let param = outer(NestedKind::Pair(-3, Some(0.5)), 3);
        assert_eq!(param.name(), "Outer");
        assert_eq!(param.field("shape").unwrap().items()[1].integer(), Some(3));
        assert_eq!(param.field("1").map(Param::inner), Some(&0.5.parameters()));
        assert!(param.field("shown").is_none());
        let text = "Outer { kind: Pair(-3, Some(0.5)), axes: [0, 2], marker: , shape: [2, 3] }";
        assert_eq!(param.to_string(), text);
        assert_eq!(outer(NestedKind::Named { on: true }, 0).field("on"), Some(&Param::Bool(true)));
        assert_eq!(outer(NestedKind::Plain, 0).field("kind"), Some(&Param::Word("Plain")));
    }

    #[test]
    fn what_differs_in_one_parameter_differs() {
        let all = [
            outer(NestedKind::Plain, 3),
            outer(NestedKind::Plain, 4),
            outer(NestedKind::Pair(1, None), 3),
            outer(NestedKind::Pair(1, Some(0.0)), 3),
            outer(NestedKind::Pair(1, Some(-0.0)), 3),
            outer(NestedKind::Pair(1, Some(f64::NAN)), 3),
            outer(NestedKind::Named { on: false }, 3),
        ];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        assert_eq!(all[5], outer(NestedKind::Pair(1, Some(f64::NAN)), 3));
    }
}
