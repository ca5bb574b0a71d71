//! Common steps of the losses of classes: logits and targets of any rank become rows, and rows are
//! counted and weighted.

use smallvec::SmallVec;

use super::reduction::Reduction;
use crate::kernels::gather::first_outside;
use crate::kernels::math::Real;
use crate::ops::index::IndexSelectGrad;
use crate::ops::prelude::*;

/// How the losses of rows with class numbers are counted.
#[derive(Clone, Debug, Default, Parameters)]
pub(super) struct Counting {
    pub reduction: Reduction,
    /// Rows with this target are left out.
    pub ignore_index: Option<i64>,
    /// One for each class, in the dtype of the logits, a constant.
    pub weight: Option<Tensor>,
    /// The size of the first axis, or 1 for a single row.
    pub batch: usize,
}

impl Counting {
    pub fn new(
        op: &'static str,
        x: &Tensor,
        reduction: Reduction,
        ignore_index: Option<i64>,
        weight: &Option<Tensor>,
    ) -> Result<Counting> {
        let weight = weight.as_ref().map(|w| class_weight(op, w, x)).transpose()?;
        Ok(Counting { reduction, ignore_index, weight, batch: batch(x) })
    }

    pub fn ignores(&self, target: i64) -> bool {
        self.ignore_index == Some(target)
    }

    /// The weights of the classes as elements.
    pub fn weights<T: Real>(&self) -> Option<Vec<T>> {
        self.weight.as_ref().map(elements)
    }

    /// Divisor of the sum of the losses: for a mean the weights of the targets that count.
    pub fn divisor(&self, targets: &[i64]) -> f64 {
        match self.reduction {
            Reduction::Mean => {}
            Reduction::BatchMean => return self.batch as f64,
            Reduction::Sum | Reduction::None => return 1.0,
        }
        let kept = targets.iter().filter(|&&t| !self.ignores(t));
        match &self.weight {
            None => kept.count() as f64,
            Some(weight) => {
                let weight = weight.to_f64_vec();
                kept.map(|&t| weight[t as usize]).sum()
            }
        }
    }

    /// The classic mistake of a mean whose divisor counts the ignored rows: its factor.
    pub fn counted_too_often(&self, targets: &Tensor) -> Result<f64> {
        let targets = targets.try_to_vec::<i64>()?;
        let kept = targets.iter().filter(|&&t| !self.ignores(t)).count();
        let is_mean = self.reduction == Reduction::Mean;
        Ok(if is_mean { kept as f64 / targets.len() as f64 } else { 1.0 })
    }

    /// The error for a target that is no class and not left out.
    pub fn expect_targets(&self, op: &'static str, targets: &[i64], classes: usize) -> Result<()> {
        let Some(mut at) = first_outside(targets, classes) else {
            return Ok(());
        };
        if self.ignore_index.is_some() {
            let wrong = |&t: &i64| !self.ignores(t) && (t as u64) >= classes as u64;
            match targets.iter().position(wrong) {
                Some(found) => at = found,
                None => return Ok(()),
            }
        }
        let why = format!(
            "target {} at position {at} is no class: there are {classes} classes, numbered from 0 (to leave rows out, set ignore_index)",
            targets[at]
        );
        Err(Error::argument(op, why))
    }

    /// The numbers of the rows that count, and their targets.
    pub fn kept(&self, targets: &Tensor) -> Result<(Tensor, Tensor)> {
        let all = targets.try_to_vec::<i64>()?;
        let kept: Vec<i64> =
            (0..all.len() as i64).filter(|&row| !self.ignores(all[row as usize])).collect();
        let rows = Tensor::from(kept);
        let targets = targets.try_index_select(0, &rows)?;
        Ok((rows, targets))
    }

    /// In steps: minus each row's element at its target, times the weight of that.
    pub fn picked(&self, x: &Tensor, targets: &Tensor) -> Result<Tensor> {
        let n = targets.numel();
        let column = targets.try_reshape([n, 1])?;
        let losses = x.try_gather(1, &column)?.try_reshape([n])?.try_neg()?;
        match &self.weight {
            Some(weight) => losses.try_mul(&weight.try_index_select(0, targets)?),
            None => Ok(losses),
        }
    }

    /// In steps: the losses of the rows that count among those of all rows, reduced.
    pub fn reduce_kept(&self, losses: &Tensor, rows: &Tensor, targets: &Tensor) -> Result<Tensor> {
        let back = IndexSelectGrad { axis: 0, size: targets.numel() };
        self.reduce(&apply(back, &[losses, rows])?, targets)
    }

    /// In steps: the losses of all rows, reduced.
    pub fn reduce(&self, losses: &Tensor, targets: &Tensor) -> Result<Tensor> {
        self.reduction.apply(losses, self.divisor(&targets.try_to_vec::<i64>()?))
    }

    /// The reduction of the losses of rows, for kernels.
    pub fn total<T: Real>(&self, losses: &[T], targets: &[i64]) -> T {
        let sum: f64 = losses.iter().map(|loss| loss.to_f64()).sum();
        T::from_f64(sum / self.divisor(targets))
    }
}

/// A float tensor as elements of this type.
pub(super) fn elements<T: Real>(weight: &Tensor) -> Vec<T> {
    weight.to_f64_vec().into_iter().map(T::from_f64).collect()
}

/// Number of classes in `x`: the size of axis 1, or of the only one.
pub(super) fn classes(op: &'static str, x: &Tensor) -> Result<usize> {
    let shape = x.shape();
    match *shape {
        [] => {
            let why = "a 0-d tensor has no classes; they lie on axis 1, or on the only axis of a single row";
            Err(Error::shape(op, &[&shape], why))
        }
        [c] => Ok(c),
        [_, c, ..] => Ok(c),
    }
}

/// The size of the first axis, or 1 for a single row.
pub(super) fn batch(x: &Tensor) -> usize {
    if x.rank() < 2 { 1 } else { x.shape()[0] }
}

/// The weights as a constant in the dtype of `x`, if there is one for each class.
pub(super) fn class_weight(op: &'static str, weight: &Tensor, x: &Tensor) -> Result<Tensor> {
    if weight.shape() != [classes(op, x)?] {
        let why = "the weight must have one element for each class";
        return Err(Error::shape(op, &[&x.shape(), &weight.shape()], why));
    }
    if weight.requires_grad() && crate::tensor::is_grad_enabled() {
        let why = "the weight of the classes gets no gradient; give weight.detach()";
        return Err(Error::gradient(op, why));
    }
    weight.detach().try_to_dtype(x.dtype())
}

/// The shape without the classes.
pub(super) fn without_classes(x: &Tensor) -> Shape {
    let shape = x.shape();
    shape.without_axis(usize::from(shape.rank() > 1))
}

/// Fails unless `targets` are class numbers in the shape of `x` without the classes.
pub(super) fn expect_class_numbers(op: &'static str, x: &Tensor, targets: &Tensor) -> Result<()> {
    if !targets.dtype().is_integer() {
        let why = "the targets must be class numbers in i64; convert with to_dtype";
        return Err(Error::dtype(op, &[targets.dtype()], why));
    }
    if targets.shape() != without_classes(x) {
        let why = "the targets must have the shape of the logits without the classes (axis 1): [n] for [n, classes], [n, d] for [n, classes, d]";
        return Err(Error::shape(op, &[&x.shape(), &targets.shape()], why));
    }
    Ok(())
}

/// The tensor as `[rows, classes]`: axis 1 is moved to the end where it is not there yet.
#[track_caller]
pub(super) fn rows(x: &Tensor) -> Result<Tensor> {
    let shape = x.shape();
    match shape.rank() {
        1 => x.try_reshape([1, shape[0]]),
        2 => Ok(x.clone()),
        rank => {
            let mut order: SmallVec<[i64; MAX_RANK]> = (0..rank as i64).collect();
            order.remove(1);
            order.push(1);
            let rows = shape.without_axis(1).numel();
            x.try_permute(&order)?.try_reshape([rows, shape[1]])
        }
    }
}
