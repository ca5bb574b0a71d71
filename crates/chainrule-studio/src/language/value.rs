//! Values of the language.

use std::rc::Rc;

use chainrule::Tensor;

use super::fault::{Fault, Outcome};
use super::syntax::Definition;

/// A value of the language. Lists and tuples are one kind.
#[derive(Clone, Debug)]
pub enum Data {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Data>),
    Tensor(Tensor),
    /// A function of the program.
    Function(Rc<Definition>),
    /// A function of the language, by name.
    Builtin(String),
    /// `np`, `torch`, `F`: read over.
    Library,
}

impl Data {
    /// The kind in words, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Data::None => "None",
            Data::Bool(_) => "a bool",
            Data::Int(_) => "an integer",
            Data::Float(_) => "a number",
            Data::Text(_) => "a text",
            Data::List(_) => "a list",
            Data::Tensor(_) => "a tensor",
            Data::Function(_) | Data::Builtin(_) => "a function",
            Data::Library => "a library",
        }
    }

    /// A number, also of a tensor with one element.
    pub fn number(&self) -> Option<f64> {
        match self {
            Data::Bool(x) => Some(f64::from(*x)),
            Data::Int(x) => Some(*x as f64),
            Data::Float(x) => Some(*x),
            Data::Tensor(t) if t.numel() == 1 => t.try_item().ok(),
            _ => None,
        }
    }

    /// An integer; a float is none.
    pub fn whole(&self) -> Option<i64> {
        match self {
            Data::Bool(x) => Some(i64::from(*x)),
            Data::Int(x) => Some(*x),
            Data::Tensor(t) if t.numel() == 1 && !t.dtype().is_float() => {
                t.try_item().ok().map(|x| x as i64)
            }
            _ => None,
        }
    }

    /// Integers: one, or a list of them.
    pub fn wholes(&self) -> Option<Vec<i64>> {
        match self {
            Data::List(items) => items.iter().map(Data::whole).collect(),
            one => one.whole().map(|n| vec![n]),
        }
    }

    /// Whether a condition holds.
    pub fn truth(&self) -> Outcome<bool> {
        match self {
            Data::None => Ok(false),
            Data::List(items) => Ok(!items.is_empty()),
            Data::Text(text) => Ok(!text.is_empty()),
            other => match other.number() {
                Some(x) => Ok(x != 0.0),
                None => Err(Fault::request(format!("{} is no condition", other.kind()))),
            },
        }
    }

    /// A tensor: as it is, or made from numbers; nested lists of equal length give axes.
    pub fn tensor(&self) -> Outcome<Tensor> {
        match self {
            Data::Tensor(t) => Ok(t.clone()),
            Data::Bool(x) => Ok(Tensor::scalar(*x)),
            Data::Int(x) => Ok(Tensor::scalar(*x)),
            Data::Float(x) => Ok(Tensor::scalar(*x)),
            Data::List(items) => of_list(items),
            other => Err(Fault::request(format!("{} is no tensor", other.kind()))),
        }
    }

    /// A tensor of floats.
    pub fn floats(&self) -> Outcome<Tensor> {
        let tensor = self.tensor()?;
        match tensor.dtype().is_float() {
            true => Ok(tensor),
            false => Ok(tensor.try_to_dtype(chainrule::DType::F64)?),
        }
    }
}

fn of_list(items: &[Data]) -> Outcome<Tensor> {
    if items.iter().any(|item| matches!(item, Data::Tensor(_))) {
        let parts: Vec<Tensor> = items.iter().map(Data::tensor).collect::<Outcome<_>>()?;
        return Ok(Tensor::try_stack(&parts.iter().collect::<Vec<_>>(), 0)?);
    }
    let mut shape = Vec::new();
    let mut level = items.first();
    shape.push(items.len());
    while let Some(Data::List(inner)) = level {
        shape.push(inner.len());
        level = inner.first();
    }
    let mut flat = Vec::new();
    flatten(items, &shape, &mut flat)?;
    let whole: Option<Vec<i64>> = flat
        .iter()
        .map(|item| match item {
            Data::Int(n) => Some(*n),
            _ => None,
        })
        .collect();
    if let Some(whole) = whole.filter(|whole| !whole.is_empty()) {
        return Ok(Tensor::try_from_slice(&whole, shape)?);
    }
    let numbers: Option<Vec<f64>> = flat.iter().map(|item| item.number()).collect();
    let numbers = numbers.ok_or_else(|| Fault::request("a tensor is made of numbers"))?;
    Ok(Tensor::try_from_slice(&numbers, shape)?)
}

fn flatten<'a>(items: &'a [Data], shape: &[usize], out: &mut Vec<&'a Data>) -> Outcome<()> {
    if items.len() != shape[0] {
        return Err(Fault::request("the lists of a tensor must have equal lengths"));
    }
    for item in items {
        match item {
            Data::List(inner) if shape.len() > 1 => flatten(inner, &shape[1..], out)?,
            Data::List(_) => {
                return Err(Fault::request("the lists of a tensor must have equal lengths"));
            }
            _ if shape.len() > 1 => {
                return Err(Fault::request("the lists of a tensor must have equal lengths"));
            }
            one => out.push(one),
        }
    }
    Ok(())
}
