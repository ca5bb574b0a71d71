//! `cross_entropy_probabilities`: the case of [`Tensor::cross_entropy`] whose targets are
//! probabilities of the classes.

use smallvec::SmallVec;

use super::classes::elements;
use super::reduction::Reduction;
use super::{log_softmax_in_steps, shifted};
use crate::kernels::math::exp_slice;
use crate::kernels::softmax::{self, Row};
use crate::ops::fused::cross_entropy::CrossEntropy;
use crate::ops::prelude::*;
use crate::tensor::op::Definition;

/// Inputs: logits and probabilities, both `[rows, classes]`. A row's loss is `-sum(q *
/// log(softmax(x)))` with `q = weight * (target * (1 - s) + s / classes)`.
#[derive(Clone, Debug, Parameters)]
pub(super) struct SoftCrossEntropy {
    pub reduction: Reduction,
    pub label_smoothing: f64,
    pub weight: Option<Tensor>,
    pub batch: usize,
}

impl SoftCrossEntropy {
    /// The mean is over the rows, whatever the classes weigh.
    fn divisor(&self, rows: usize) -> f64 {
        match self.reduction {
            Reduction::Mean => rows as f64,
            Reduction::BatchMean => self.batch as f64,
            Reduction::Sum | Reduction::None => 1.0,
        }
    }

    /// `q` in tensor operations.
    pub fn given(&self, targets: &Tensor) -> Result<Tensor> {
        let (s, classes) = (self.label_smoothing, targets.shape()[1].max(1));
        let q = targets.try_mul(1.0 - s)?.try_add(s / classes as f64)?;
        match &self.weight {
            Some(weight) => q.try_mul(weight),
            None => Ok(q),
        }
    }

    fn reduce(&self, losses: &Tensor) -> Result<Tensor> {
        self.reduction.apply(losses, self.divisor(losses.numel()))
    }
}

impl Op for SoftCrossEntropy {
    row!(cross_entropy_probabilities);

    fn role(&self) -> Role {
        Role::Loss(LossRole::SoftCrossEntropy)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(
            "_soft_cross_entropy({0}, {1}, {reduction}, {tensor}, {batch}, {label_smoothing})"
                .into(),
        )
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(5, inputs, outputs)
    }

    /// The method has checked the shapes.
    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs("cross_entropy", inputs)?;
        let rows = inputs[0].shape.without_axis(1);
        Ok(Meta::new(self.reduction.shape(rows), dtype))
    }

    fn tensors(&self) -> SmallVec<[&Tensor; 1]> {
        self.weight.iter().collect()
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::EXTRA)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let inputs = [&at.extra(0), &at.input(1), cotangent];
        let grad = |to_target: bool| {
            let wanted = wanted.get(usize::from(to_target));
            let op = || SoftGrad { op: self.clone(), to_target };
            wanted.then(|| apply(op(), &inputs)).transpose()
        };
        Ok(smallvec![grad(false)?, grad(true)?])
    }

    /// A row's loss is `sum(q) * lse - sum(q * x)`, where `lse` is the logarithm of the sum of
    /// exponentials: by the rule of the product.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (x, q) = (at.input(0), self.given(&at.input(1))?);
        let z = shifted(&x)?;
        let e = z.try_exp()?;
        let sum = |t: &Tensor| t.try_sum(-1, false);
        let mut rows = x.try_narrow(1, 0, 0)?.try_sum(-1, false)?;
        if let Some(dx) = &tangents[0] {
            let dlse = sum(&e.try_mul(dx)?)?.try_div(&sum(&e)?)?;
            rows = rows.try_add(&sum(&q)?.try_mul(&dlse)?)?.try_sub(&sum(&q.try_mul(dx)?)?)?;
        }
        if let Some(dt) = &tangents[1] {
            let dq = match &self.weight {
                Some(weight) => dt.try_mul(weight)?,
                None => dt.clone(),
            };
            let dq = dq.try_mul(1.0 - self.label_smoothing)?;
            let lse = sum(&e)?.try_log()?;
            rows = rows.try_add(&sum(&dq)?.try_mul(&lse)?)?.try_sub(&sum(&dq.try_mul(&z)?)?)?;
        }
        self.reduce(&rows)
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| {
            let logp = log_softmax_in_steps(&inputs[0])?;
            let products = logp.try_mul(&self.given(&inputs[1])?)?;
            self.reduce(&products.try_sum(-1, false)?.try_neg()?)
        }))
    }
}

impl WholeKernel for SoftCrossEntropy {
    /// Beside the loss: the logarithms of the probabilities, which the backward needs.
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, t) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let [rows, classes] = [x.shape()[0], x.shape()[1]];
        let mut value = Value::uninit(self.name(), out)?;
        let mut logp = Value::uninit(self.name(), x.meta)?;
        by_dtype!(x.dtype(), [F32, F64], |T| self.forward(
            x.elements::<T>(),
            t.elements(),
            [rows, classes],
            value.elements_mut(),
            logp.elements_mut()
        ));
        Ok(Outcome { value: value.share(), extra: smallvec![logp.share()] })
    }
}

/// The shares of the classes in the loss of a row, for kernels.
struct RowShare<T> {
    own: T,
    share: T,
    weight: Option<Vec<T>>,
    row: Vec<T>,
}

impl<T: Row> RowShare<T> {
    fn new(op: &SoftCrossEntropy, classes: usize) -> Self {
        let s = op.label_smoothing;
        RowShare {
            own: T::from_f64(1.0 - s),
            share: T::from_f64(s / classes.max(1) as f64),
            weight: op.weight.as_ref().map(elements),
            row: vec![T::ZERO; classes],
        }
    }

    /// `q` of a row with these targets.
    fn of(&mut self, targets: &[T]) -> &[T] {
        for (q, &t) in self.row.iter_mut().zip(targets) {
            *q = t * self.own + self.share;
        }
        if let Some(weight) = &self.weight {
            self.row.iter_mut().zip(weight).for_each(|(q, &w)| *q *= w);
        }
        &self.row
    }
}

impl SoftCrossEntropy {
    fn forward<T: Row>(
        &self,
        x: &[T],
        targets: &[T],
        [rows, classes]: [usize; 2],
        out: &mut [T],
        logp: &mut [T],
    ) {
        softmax::log_softmax_rows(x, classes, logp);
        let mut given = RowShare::new(self, classes);
        let mut loss = |row: usize| {
            let part = row * classes..(row + 1) * classes;
            -T::row_dot(&logp[part.clone()], given.of(&targets[part]))
        };
        match self.reduction {
            Reduction::None => out.iter_mut().enumerate().for_each(|(row, o)| *o = loss(row)),
            _ => {
                let sum: f64 = (0..rows).map(|row| loss(row).to_f64()).sum();
                out[0] = T::from_f64(sum / self.divisor(rows));
            }
        }
    }
}

/// The backward for the logits or the targets, from the logarithms of the probabilities, the
/// targets and the upstream gradient.
#[derive(Debug, Parameters)]
struct SoftGrad {
    op: SoftCrossEntropy,
    to_target: bool,
}

impl Op for SoftGrad {
    fn name(&self) -> &'static str {
        "cross_entropy_probabilities_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_soft_cross_entropy_grad({0}, {1}, {2}, {reduction}, {tensor}, {batch}, {label_smoothing}, {to_target})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(2, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(inputs[0])
    }

    fn tensors(&self) -> SmallVec<[&Tensor; 1]> {
        self.op.weight.iter().collect()
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

impl WholeKernel for SoftGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let [logp, t, g] = [&inputs[0], &inputs[1], &inputs[2]].map(Value::contiguous);
        let (logp, t, g) = (logp?, t?, g?);
        let classes = out.shape[1];
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(logp.dtype(), [F32, F64], |T| self.backward(
            logp.elements::<T>(),
            t.elements(),
            g.elements(),
            classes,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

impl SoftGrad {
    fn backward<T: Row>(&self, logp: &[T], targets: &[T], g: &[T], classes: usize, out: &mut [T]) {
        if out.is_empty() {
            return;
        }
        let rows = out.len() / classes;
        let divisor = self.op.divisor(rows);
        let each = self.op.reduction == Reduction::None;
        let scale = |row: usize| T::from_f64(g[if each { row } else { 0 }].to_f64() / divisor);
        let mut given = RowShare::new(&self.op, classes);
        if self.to_target {
            let ones = vec![T::ONE; classes];
            given.share = T::ZERO;
            let own = given.of(&ones);
            for (row, (out, logp)) in
                out.chunks_exact_mut(classes).zip(logp.chunks_exact(classes)).enumerate()
            {
                let g = -scale(row);
                out.iter_mut().zip(logp).zip(own).for_each(|((o, &l), &q)| *o = g * q * l);
            }
            return;
        }
        exp_slice(logp, out);
        for (row, (out, targets)) in
            out.chunks_exact_mut(classes).zip(targets.chunks_exact(classes)).enumerate()
        {
            let (g, q) = (scale(row), given.of(targets));
            let total = T::row_sum(q);
            out.iter_mut().zip(q).for_each(|(o, &q)| *o = g * (*o * total - q));
        }
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cross_entropy_probabilities",
    family: Family::Fused,
    signature: "logits.cross_entropy(&probabilities), logits.cross_entropy_with(&probabilities, &options)",
    python: &[Binding::by_hand(
        "cross_entropy",
        "the dtype of the target says which of both ops it is",
    )
    .no_method()
    .no_function()],
    formula: "mean of -sum(target * log(softmax(x))) over the rows",
    gradient: "dx = (softmax(x) * sum(target) - target) * g / n; dtarget = -log(softmax(x)) * g / n",
    at_kinks: "the mean of no rows is NaN; a logit of minus infinity makes its row's loss NaN even where the target is 0, as in PyTorch; rows without classes cost 0 (in PyTorch their mean is NaN)",
    samples,
    mistakes: MISTAKES,
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let weight = between(g, 0.5, 2.0, [4]);
    let cases: [(&str, &[usize], Reduction, f64, bool); 10] = [
        ("a small batch", &[3, 4], Reduction::Mean, 0.0, false),
        ("a single row", &[4], Reduction::Mean, 0.0, false),
        ("a single row, as it is", &[4], Reduction::None, 0.1, false),
        ("many rows of 27", &[33, 27], Reduction::Sum, 0.0, false),
        ("smoothed", &[3, 4], Reduction::Mean, 0.2, false),
        ("weights", &[3, 4], Reduction::Mean, 0.0, true),
        ("everything, each row", &[3, 4], Reduction::None, 0.3, true),
        ("classes in the middle", &[2, 4, 3], Reduction::Mean, 0.1, true),
        ("mean of the batch, each place", &[2, 4, 3, 2], Reduction::BatchMean, 0.0, false),
        ("no rows", &[0, 4], Reduction::Sum, 0.0, false),
    ];
    let sample =
        |(note, shape, reduction, label_smoothing, weighted): (&'static str, &[usize], _, _, _)| {
            let options = CrossEntropy {
                reduction,
                label_smoothing,
                weight: if weighted { Some(weight.clone()) } else { None },
                ignore_index: None,
            };
            // The targets of a row need not sum to 1.
            let inputs = vec![normal(g, shape) * 2.0, between(g, 0.1, 1.0, shape)];
            Sample::new(note, inputs, move |x| x[0].try_cross_entropy_with(&x[1], &options))
        };
    cases.into_iter().map(sample).collect()
}

fn this(op: &dyn Op) -> Result<&SoftCrossEntropy> {
    op.downcast()
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "targets taken to sum to 1",
        what: "softmax(x) - target, where a row's targets (with smoothing and weights) sum to something else",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            let q = this(op)?.given(&at.input(1))?;
            let g = match this(op)?.reduction {
                Reduction::None => g.try_reshape([g.numel(), 1])?,
                _ => g.try_div(this(op)?.divisor(q.shape()[0]))?,
            };
            grads[0] = Some(at.extra(0).try_exp()?.try_sub(&q)?.try_mul(&g)?);
            Ok(grads)
        },
    },
    Mistake {
        name: "missing 1/n",
        what: "the gradient of the sum of the losses where the loss is their mean",
        rule: |op, at, g, wanted| {
            let rows = at.input(0).shape()[0];
            op.vjp(at, &g.try_mul(this(op)?.divisor(rows))?, wanted)
        },
    },
    Mistake {
        name: "sign",
        what: "target - softmax(x): the gradient of the log-likelihood instead of the loss",
        rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
    },
];
