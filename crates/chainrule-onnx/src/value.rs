//! Values of expressions of a NumPy form: arrays of the graph, and numbers that are known.

use chainrule_core::dtype::DType;

use crate::graph::Array;

/// A value while a form is read.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    Array(Array),
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    None,
    Ellipsis,
    Row(Vec<Val>),
    Dict(Vec<(Val, Val)>),
    Slice(Vec<Option<i64>>),
    DType(DType),
    /// A function by its name: `np.sum`, `_softmax`, `int`.
    Function(String),
    /// A method of a value.
    Method(Box<Val>, String),
    /// The places of elements along an axis.
    Places(Box<Val>, i64),
}

impl Val {
    pub fn int(&self) -> Option<i64> {
        match self {
            Val::Int(n) => Some(*n),
            Val::Bool(b) => Some(i64::from(*b)),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Val::Float(x) => Some(*x),
            other => other.int().map(|n| n as f64),
        }
    }

    pub fn ints(&self) -> Option<Vec<i64>> {
        match self {
            Val::Row(items) => items.iter().map(Val::int).collect(),
            other => other.int().map(|n| vec![n]),
        }
    }

    pub fn row(&self) -> Option<&[Val]> {
        match self {
            Val::Row(items) => Some(items),
            _ => None,
        }
    }

    pub fn of_ints(all: &[i64]) -> Val {
        Val::Row(all.iter().map(|&n| Val::Int(n)).collect())
    }

    /// Whether it holds, where that is known.
    pub fn truth(&self) -> Option<bool> {
        match self {
            Val::None => Some(false),
            Val::Row(items) => Some(!items.is_empty()),
            Val::Text(text) => Some(!text.is_empty()),
            other => other.number().map(|x| x != 0.0),
        }
    }

    /// The dtype of an array that keeps it.
    pub fn strong(&self) -> Option<DType> {
        match self {
            Val::Array(a) if !a.weak => Some(a.dtype),
            _ => None,
        }
    }

    /// The dtype that a number of Python has by itself.
    pub fn weak(&self) -> Option<DType> {
        match self {
            Val::Array(a) if a.weak => Some(a.dtype),
            Val::Int(_) => Some(DType::I64),
            Val::Float(_) => Some(DType::F64),
            Val::Bool(_) => Some(DType::Bool),
            _ => None,
        }
    }

    /// Whether two known values are the same.
    pub fn same(&self, other: &Val) -> Option<bool> {
        Some(match (self, other) {
            (Val::Array(_), _) | (_, Val::Array(_)) => return None,
            (Val::Text(a), Val::Text(b)) => a == b,
            (Val::DType(a), Val::DType(b)) => a == b,
            (Val::DType(a), Val::Function(name)) => *a == DType::Bool && name == "bool",
            (Val::None, Val::None) => true,
            (Val::Row(a), Val::Row(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b) == Some(true))
            }
            (a, b) => a.number().is_some() && a.number() == b.number(),
        })
    }
}

impl From<Array> for Val {
    fn from(a: Array) -> Val {
        Val::Array(a)
    }
}
