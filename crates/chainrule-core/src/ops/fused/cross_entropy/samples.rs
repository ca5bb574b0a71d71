//! Samples of `cross_entropy`, and the mistakes that people make in its backward.

use super::{CrossEntropy, CrossEntropyOp, target_weights, without_classes};
use crate::ops::fused::reduction::Reduction;
use crate::ops::prelude::*;

pub(super) fn samples(g: &mut Generator) -> Vec<Sample> {
    let mut out = Vec::new();
    for (note, shape, targets) in [
        ("a small batch", [3, 5], vec![0i64, 4, 4]),
        ("one row", [1, 2], vec![1]),
        ("many rows of 27", [33, 27], (0..33).map(|i| i * 5 % 27).collect()),
        ("one class", [2, 1], vec![0, 0]),
    ] {
        let targets = Tensor::from(targets);
        out.push(Sample::new(note, vec![normal(g, shape) * 3.0], move |x| {
            x[0].try_cross_entropy(&targets)
        }));
    }
    let weight = between(g, 0.5, 2.0, [4]);
    let base = CrossEntropy::default();
    for (note, options) in [
        ("sum", CrossEntropy { reduction: Reduction::Sum, ..base.clone() }),
        ("each row", CrossEntropy { reduction: Reduction::None, ..base.clone() }),
        ("a row left out", CrossEntropy { ignore_index: Some(2), ..base.clone() }),
        ("smoothed", CrossEntropy { label_smoothing: 0.1, ..base.clone() }),
        ("weights", CrossEntropy { weight: Some(weight.clone()), ..base.clone() }),
        (
            "everything, each row",
            CrossEntropy {
                reduction: Reduction::None,
                ignore_index: Some(1),
                label_smoothing: 0.3,
                weight: Some(weight.clone()),
            },
        ),
        (
            "everything",
            CrossEntropy {
                ignore_index: Some(1),
                label_smoothing: 0.3,
                weight: Some(weight),
                ..base
            },
        ),
    ] {
        let targets = Tensor::from([2i64, 0, 1, 3, 3]);
        out.push(Sample::new(note, vec![normal(g, [5, 4]) * 2.0], move |x| {
            x[0].try_cross_entropy_with(&targets, &options)
        }));
    }
    for (note, shape, reduction) in [
        ("a single row", &[4][..], Reduction::Mean),
        ("a single row, as it is", &[4], Reduction::None),
        ("classes in the middle", &[2, 4, 3], Reduction::Mean),
        ("classes in the middle, each", &[2, 4, 3, 1], Reduction::None),
        ("mean of the batch", &[2, 4, 3], Reduction::BatchMean),
    ] {
        let options = CrossEntropy { reduction, label_smoothing: 0.1, ..CrossEntropy::default() };
        let x = normal(g, shape);
        let count = without_classes(&x).numel() as i64;
        let numbers: Vec<i64> = (0..count).map(|i| i * 3 % 4).collect();
        let targets = Tensor::from_slice(&numbers, without_classes(&x));
        out.push(Sample::new(note, vec![x], move |x| {
            x[0].try_cross_entropy_with(&targets, &options)
        }));
    }
    out.push(Sample::new("a transposed view", vec![normal(g, [4, 3])], |x| {
        x[0].try_t()?.try_cross_entropy(&Tensor::from([3i64, 0, 1]))
    }));
    out.push(Sample::new("no rows", vec![normal(g, [0, 3])], |x| {
        let options = CrossEntropy { reduction: Reduction::Sum, ..CrossEntropy::default() };
        x[0].try_cross_entropy_with(&Tensor::from(Vec::<i64>::new()), &options)
    }));
    out
}

fn this(op: &dyn Op) -> Result<&CrossEntropyOp> {
    op.downcast()
}

/// Factor of each row's gradient: the upstream one, over the number of rows for a mean.
fn row_scale(op: &dyn Op, at: &Saved<'_>, g: &Tensor) -> Result<Tensor> {
    let options = &this(op)?.counting;
    let g = match options.reduction {
        Reduction::None => g.try_reshape([g.numel(), 1])?,
        _ => g.clone(),
    };
    g.try_div(options.divisor(&at.input(1).try_to_vec::<i64>()?))
}

pub(super) const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "target not subtracted",
        what: "softmax(x) was taken for softmax(x) - one_hot(target)",
        rule: |op, at, g, wanted| {
            let targets = at.input(1);
            let dx = op.vjp(at, g, wanted)?.remove(0).expect("the only gradient");
            let q = target_weights(this(op)?, &targets, dx.meta())?;
            let missing = q.try_mul(&row_scale(op, at, g)?)?;
            Ok(smallvec![Some(dx.try_add(&missing)?), None])
        },
    },
    Mistake {
        name: "one-hot assigned, not subtracted",
        what: "the target's element is set to -1 (`=-` for `-=`): its probability is lost",
        rule: |op, at, g, wanted| {
            let dx = op.vjp(at, g, wanted)?.remove(0).expect("the only gradient");
            let plain = CrossEntropyOp { label_smoothing: 0.0, ..this(op)?.clone() };
            let q = target_weights(&plain, &at.input(1), dx.meta())?;
            let lost = q.try_mul(at.extra(0))?.try_mul(&row_scale(op, at, g)?)?;
            Ok(smallvec![Some(dx.try_sub(&lost)?), None])
        },
    },
    Mistake {
        name: "ignored rows counted in the mean",
        what: "the gradient is divided by the number of all rows, with those that ignore_index leaves out",
        rule: |op, at, g, wanted| {
            let ratio = this(op)?.counting.counted_too_often(&at.input(1))?;
            op.vjp(at, &g.try_mul(ratio)?, wanted)
        },
    },
    Mistake {
        name: "divided twice",
        what: "the gradient is divided by the number of rows twice",
        rule: |op, at, g, wanted| {
            let targets = at.input(1).try_to_vec::<i64>()?;
            op.vjp(at, &g.try_div(this(op)?.counting.divisor(&targets))?, wanted)
        },
    },
    Mistake {
        name: "missing 1/n",
        what: "the gradient of the sum of the losses where the loss is their mean",
        rule: |op, at, g, wanted| {
            let targets = at.input(1).try_to_vec::<i64>()?;
            let divisor = this(op)?.counting.divisor(&targets);
            op.vjp(at, &g.try_mul(divisor)?, wanted)
        },
    },
    Mistake {
        name: "sign",
        what: "one_hot(target) - softmax(x): the gradient of the log-likelihood instead of the loss",
        rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
    },
];
