//! The values that Python passes to a binding, and PyTorch's rules for tensors meeting numbers.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{Axes, IntoAxes, Shape};
use crate::tensor::{IntoTensor, Tensor};

/// A value that was given.
#[derive(Clone, Debug)]
pub enum Argument {
    None,
    Tensor(Tensor),
    Float(f64),
    Int(i64),
    Bool(bool),
    DType(DType),
    Ints(Vec<i64>),
    Choice(&'static str),
}

/// The values of all parameters of a binding, in their order.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    pub values: &'a [Argument],
    /// The dtype that stands for floats where no operand decides.
    pub default_float: DType,
}

/// The axes of a reduction: all, one, or several.
#[derive(Clone, Copy)]
pub enum Picked<'a> {
    All,
    One(i64),
    Several(&'a [i64]),
}

impl IntoAxes for Picked<'_> {
    fn into_axes(self, op: &'static str, shape: &Shape) -> Result<Axes> {
        match self {
            Picked::All => (..).into_axes(op, shape),
            Picked::One(axis) => axis.into_axes(op, shape),
            Picked::Several(axes) => axes.into_axes(op, shape),
        }
    }
}

impl Argument {
    /// The value as a float, if it is a number.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Argument::Float(x) => Some(x),
            Argument::Int(x) => Some(x as f64),
            Argument::Bool(x) => Some(x.into()),
            _ => None,
        }
    }

    /// A tensor as it is; a number as a tensor of the dtype it takes beside `other`.
    pub fn beside(&self, other: &Tensor) -> Result<Tensor> {
        match self {
            Argument::Tensor(t) => Ok(t.clone()),
            Argument::Float(x) => x.into_tensor(other),
            Argument::Int(x) => x.into_tensor(other),
            Argument::Bool(x) if other.dtype() == DType::Bool => Ok(Tensor::scalar(*x)),
            Argument::Bool(x) => i64::from(*x).into_tensor(other),
            _ => unreachable!("an operand is a tensor or a number"),
        }
    }

    /// A tensor and this operand, converted by PyTorch's rules.
    pub(crate) fn meet(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        match self {
            Argument::Tensor(y) => meet(x.clone(), y.clone()),
            number => Ok((x.clone(), number.beside(x)?)),
        }
    }

    /// A tensor as it is; a number as a tensor of the dtype it has by itself.
    pub fn alone(&self, default_float: DType) -> Tensor {
        match self {
            Argument::Tensor(t) => t.clone(),
            Argument::Float(x) if default_float == DType::F64 => Tensor::scalar(*x),
            Argument::Float(x) => Tensor::scalar(*x as f32),
            Argument::Int(x) => Tensor::scalar(*x),
            Argument::Bool(x) => Tensor::scalar(*x),
            _ => unreachable!("an operand is a tensor or a number"),
        }
    }

    /// Whether it is a Python int or bool.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Argument::Int(_) | Argument::Bool(_))
    }
}

/// The values by the positions of their parameters, whose kinds determine what they are.
impl<'a> Arguments<'a> {
    fn wrong(&self, at: usize) -> ! {
        panic!("argument {at} of a binding is {:?}", self.values[at])
    }

    pub(crate) fn is_none(&self, at: usize) -> bool {
        matches!(self.values[at], Argument::None)
    }

    pub(crate) fn tensor(&self, at: usize) -> &'a Tensor {
        self.maybe_tensor(at).unwrap_or_else(|| self.wrong(at))
    }

    pub(crate) fn maybe_tensor(&self, at: usize) -> Option<&'a Tensor> {
        match &self.values[at] {
            Argument::Tensor(t) => Some(t),
            Argument::None => None,
            _ => self.wrong(at),
        }
    }

    pub(crate) fn operand(&self, at: usize) -> &'a Argument {
        &self.values[at]
    }

    /// A tensor, or a number as one of the dtype that it has by itself.
    pub(crate) fn alone(&self, at: usize) -> Tensor {
        self.values[at].alone(self.default_float)
    }

    /// The tensor and an operand, as PyTorch lets them meet.
    pub(crate) fn meet(&self, x: &Tensor, at: usize) -> Result<(Tensor, Tensor)> {
        self.values[at].meet(x)
    }

    /// As [`Arguments::meet`], with the operand this many times.
    pub(crate) fn meet_scaled(
        &self,
        x: &Tensor,
        at: usize,
        times: usize,
    ) -> Result<(Tensor, Tensor)> {
        if let Argument::Int(1) | Argument::Bool(true) = self.values[times] {
            return self.meet(x, at);
        }
        let (y, times) = self.meet(&self.alone(at), times)?;
        meet(x.clone(), y.try_mul(times)?)
    }

    pub(crate) fn float(&self, at: usize) -> f64 {
        self.maybe_float(at).unwrap_or_else(|| self.wrong(at))
    }

    pub(crate) fn maybe_float(&self, at: usize) -> Option<f64> {
        self.values[at].number()
    }

    pub(crate) fn int(&self, at: usize) -> i64 {
        self.maybe_int(at).unwrap_or_else(|| self.wrong(at))
    }

    pub(crate) fn maybe_int(&self, at: usize) -> Option<i64> {
        match self.values[at] {
            Argument::Int(x) => Some(x),
            Argument::None => None,
            _ => self.wrong(at),
        }
    }

    /// A number of [`Kind::Count`].
    pub(crate) fn count(&self, at: usize) -> usize {
        self.int(at) as usize
    }

    pub(crate) fn flag(&self, at: usize) -> bool {
        match self.values[at] {
            Argument::Bool(x) => x,
            _ => self.wrong(at),
        }
    }

    pub(crate) fn choice(&self, at: usize) -> &'static str {
        self.maybe_choice(at).unwrap_or_else(|| self.wrong(at))
    }

    pub(crate) fn maybe_choice(&self, at: usize) -> Option<&'static str> {
        match self.values[at] {
            Argument::Choice(word) => Some(word),
            Argument::None => None,
            _ => self.wrong(at),
        }
    }

    /// One integer or several.
    pub(crate) fn ints(&self, at: usize) -> &'a [i64] {
        match &self.values[at] {
            Argument::Ints(all) => all,
            Argument::Int(one) => std::slice::from_ref(one),
            _ => self.wrong(at),
        }
    }

    /// The same as sizes, which are not negative.
    pub(crate) fn sizes(&self, op: &'static str, at: usize) -> Result<Vec<usize>> {
        let ints = self.ints(at);
        let sizes = ints.iter().map(|&n| usize::try_from(n)).collect::<std::result::Result<_, _>>();
        sizes.map_err(|_| {
            Error::argument(op, format!("a shape has no negative sizes, got {ints:?}"))
        })
    }

    /// The axes to reduce. As in PyTorch, a tensor without axes has the axes 0 and -1.
    pub(crate) fn axes(&self, at: usize, x: &Tensor) -> Picked<'a> {
        let lone = |axes: &[i64]| x.rank() == 0 && axes.iter().all(|a| [0, -1].contains(a));
        match &self.values[at] {
            Argument::None => Picked::All,
            Argument::Int(axis) if !lone(&[*axis]) => Picked::One(*axis),
            Argument::Ints(axes) if !lone(axes) => Picked::Several(axes),
            _ => Picked::All,
        }
    }

    /// The tensor in the dtype that was asked for, if one was.
    pub(crate) fn cast(&self, at: usize, x: &Tensor) -> Result<Tensor> {
        match self.values[at] {
            Argument::DType(dtype) if x.dtype() != dtype => x.try_to_dtype(dtype),
            _ => Ok(x.clone()),
        }
    }

    /// The arguments of a reduction: the tensor in its dtype, the axes, and whether they stay.
    pub(crate) fn reduced(&self, x: &Tensor) -> Result<(Tensor, Picked<'a>, bool)> {
        Ok((self.cast(2, x)?, self.axes(0, x), self.flag(1)))
    }

    /// Integers and bools as the default float.
    pub(crate) fn as_float(&self, x: &Tensor) -> Result<Tensor> {
        if x.dtype().is_float() { Ok(x.clone()) } else { x.try_to_dtype(self.default_float) }
    }
}

/// Runs `f` along an axis. As in PyTorch, a tensor without axes stands for one of one element.
pub fn along_axis(
    x: &Tensor,
    axis: i64,
    f: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    match is_lone(x, axis) {
        true => without_axes(f(&with_axis(x)?)?),
        false => f(x),
    }
}

/// As [`along_axis`], for two results.
pub fn along_axis_pair(
    x: &Tensor,
    axis: i64,
    f: impl FnOnce(&Tensor) -> Result<(Tensor, Tensor)>,
) -> Result<(Tensor, Tensor)> {
    if !is_lone(x, axis) {
        return f(x);
    }
    let (a, b) = f(&with_axis(x)?)?;
    Ok((without_axes(a)?, without_axes(b)?))
}

/// An index or a source beside such a tensor, with an axis at least.
pub fn with_axis(x: &Tensor) -> Result<Tensor> {
    if x.rank() == 0 { x.try_reshape([1i64]) } else { Ok(x.clone()) }
}

fn is_lone(x: &Tensor, axis: i64) -> bool {
    x.rank() == 0 && matches!(axis, 0 | -1)
}

fn without_axes(x: Tensor) -> Result<Tensor> {
    x.try_reshape(Vec::<i64>::new())
}

/// PyTorch's sum, product, larger or smaller of two bools, which the library refuses.
pub fn or_of_bools(
    x: &Tensor,
    y: &Tensor,
    op: fn(&Tensor, &Tensor) -> Result<Tensor>,
    of_bools: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    match op(x, y) {
        // Called only then, since small ops are frequent.
        Err(_) if x.dtype() == DType::Bool && y.dtype() == DType::Bool => of_bools(x, y),
        out => out,
    }
}

/// PyTorch's rule for operands of different dtypes: those without axes count only if their kind
/// (bool, integer, float) is higher.
pub fn meet(a: Tensor, b: Tensor) -> Result<(Tensor, Tensor)> {
    let (da, db) = (a.dtype(), b.dtype());
    if da == db || (a.rank() == 0) == (b.rank() == 0) {
        return Ok((a, b));
    }
    let kind = |d: DType| u8::from(d != DType::Bool) + u8::from(d.is_float());
    let (scalar, other) = if a.rank() == 0 { (da, db) } else { (db, da) };
    if kind(scalar) > kind(other) || scalar.promote(other) == other {
        return Ok((a, b));
    }
    match a.rank() {
        0 => Ok((a.try_to_dtype(other)?, b)),
        _ => Ok((a, b.try_to_dtype(other)?)),
    }
}
