//! The reduction of the losses of the elements or rows: their mean, their sum, or nothing.

use crate::ops::prelude::*;

/// The reduction of the losses of the elements (or rows).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Parameters)]
pub enum Reduction {
    /// Their mean, weighted by the weights of the classes if the loss has any: a 0-d tensor.
    #[default]
    Mean,
    /// Their sum: a 0-d tensor.
    Sum,
    /// Their sum divided by the size of the first axis of the prediction, PyTorch's `batchmean`: a
    /// 0-d tensor. Divided so, the Kullback-Leibler divergence is what the books define.
    BatchMean,
    /// They stay as they are, one for each element (or row).
    None,
}

impl Reduction {
    /// The reduction that has PyTorch's name for it.
    pub(super) fn of(name: &str) -> Reduction {
        match name {
            "sum" => Reduction::Sum,
            "batchmean" => Reduction::BatchMean,
            "none" => Reduction::None,
            _ => Reduction::Mean,
        }
    }

    /// Shape of the result where the losses have `losses`.
    pub(super) fn shape(self, losses: Shape) -> Shape {
        match self {
            Reduction::None => losses,
            _ => Shape::SCALAR,
        }
    }

    /// Divisor of the sum of the losses of all elements of `x`.
    pub(super) fn divisor(self, x: &Shape) -> f64 {
        match self {
            Reduction::Mean => x.numel() as f64,
            Reduction::BatchMean => x.first().map_or(1.0, |&n| n as f64),
            Reduction::Sum | Reduction::None => 1.0,
        }
    }

    /// The reduction in tensor operations.
    pub(super) fn apply(self, losses: &Tensor, divisor: f64) -> Result<Tensor> {
        match self {
            Reduction::None => Ok(losses.clone()),
            Reduction::Sum => losses.try_sum_all(),
            Reduction::Mean | Reduction::BatchMean => losses.try_sum_all()?.try_div(divisor),
        }
    }
}
