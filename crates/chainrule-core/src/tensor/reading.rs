//! The meaning of an op to the algebra of programs, in the terms that its rules use.

use smallvec::SmallVec;

use crate::shape::{Axes, MAX_RANK};

/// An op as the algebra reads it, with the parameters that it needs. An op without a reading is
/// opaque and stays as it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// It is not read.
    Opaque,
    /// Whether the two are equal.
    Equal,
    Add,
    Sub,
    Neg,
    Mul,
    Div,
    /// The first operand to the power of the second.
    Pow,
    /// To this power.
    Power(f64),
    Exp,
    Log,
    Log1p,
    Expm1,
    Tanh,
    Sigmoid,
    LogSigmoid,
    /// Along the last axis.
    Softmax,
    LogSoftmax,
    /// Op of the result of softmax and a gradient.
    SoftmaxGrad,
    LogSoftmaxGrad,
    /// The last operand, a gradient, times a slope at the first.
    Slope(SlopeReading),
    /// `factor (x - mean) g`, of x, mean and g.
    VarGrad {
        factor: f64,
    },
    Fold {
        fold: Fold,
        axes: Axes,
        keepdim: bool,
    },
    /// The axis that each axis of the result was.
    Permute(SmallVec<[u8; MAX_RANK]>),
    Expand,
    Reshape,
    Gather {
        axis: usize,
    },
    GatherGrad {
        axis: usize,
    },
    OneHot,
    /// To another dtype.
    Cast,
    /// Opaque, but never negative.
    NotNegative,
    /// Opaque, but above 0.
    Positive,
}

/// A slope that is read, of the result or the operand that backward has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlopeReading {
    /// `1 - y^2`.
    Tanh,
    /// `y (1 - y)`.
    Sigmoid,
    /// `1 / 2y`.
    Sqrt,
    /// `-y^3 / 2`.
    Rsqrt,
    /// `-y^2`.
    Reciprocal,
    /// `2x`.
    Square,
    /// `1 / (1 + x)`.
    Log1p,
    /// `e x^(e - 1)`, of x and e.
    Pow,
}

/// Fold of elements along axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fold {
    Sum,
    Mean,
    /// Divided by `n - correction`.
    Var {
        correction: usize,
    },
    Std {
        correction: usize,
    },
    LogSumExp,
    /// The p-norm.
    Norm {
        p: f64,
    },
    /// The largest or the smallest, with its position.
    Extreme,
}

/// The operands in which an op is linear, taken as a group: it gives zeros where a whole group is
/// zero. An op that joins several parts is linear in all of them together, so a single zero part
/// says nothing about the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linear {
    /// In none, as far as is known.
    No,
    /// In the first.
    First,
    /// In the last.
    Last,
    /// In each alone.
    Each,
    /// In all together.
    All,
    /// In those from this one on together.
    From(usize),
}
