//! `nll_loss`: minus the log-probability of the target's class.

use smallvec::SmallVec;

use super::classes::{Counting, batch, classes, expect_class_numbers, rows, without_classes};
use super::reduction::Reduction;
use super::weights_of_runs;
use crate::kernels::math::Real;
use crate::ops::prelude::*;
use crate::tensor::op::Definition;

/// Options of [`Tensor::nll_loss_with`].
#[derive(Clone, Debug, Default)]
pub struct NllLoss {
    /// The reduction of the losses of the rows; the default is their mean.
    pub reduction: Reduction,
    /// Rows with this target are left out: their loss is 0 and does not count in the mean. None by
    /// default.
    pub ignore_index: Option<i64>,
    /// A weight for each class, `[classes]`; a constant, which gets no gradient. None by default.
    pub weight: Option<Tensor>,
}

/// Inputs: log-probabilities `[n, classes, inner]` and class numbers `[n, inner]`.
#[derive(Clone, Debug, Parameters)]
struct Nll {
    counting: Counting,
}

impl Op for Nll {
    row!(nll_loss);

    fn role(&self) -> Role {
        Role::Loss(LossRole::NegativeLogLikelihood)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_nll({0}, {1}, {counting})".into())
    }

    fn picks_below(&self, input: usize, inputs: &[Shape]) -> Option<usize> {
        inputs[0].get(1).copied().filter(|_| input == 1)
    }

    /// The method has checked the shapes.
    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), &inputs[..1])?;
        Ok(Meta::new(self.counting.reduction.shape(inputs[1].shape), dtype))
    }

    fn tensors(&self) -> SmallVec<[&Tensor; 1]> {
        self.counting.weight.iter().collect()
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let meta = at.input_meta(0);
        let dx = apply(NllGrad { op: self.clone(), meta }, &[&at.input(1), cotangent])?;
        Ok(smallvec![Some(dx), None])
    }

    /// The loss is linear: the loss of the tangent, by way of the product with one-hot rows.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = rows(tangents[0].as_ref().expect("only the log-probabilities have a tangent"))?;
        let targets = at.input(1).try_reshape([at.input(1).numel()])?;
        let (numbers, kept) = self.counting.kept(&targets)?;
        let mut q = kept.try_one_hot(dx.shape()[1])?.try_to_dtype(dx.dtype())?;
        if let Some(weight) = &self.counting.weight {
            q = q.try_mul(weight)?;
        }
        let products = dx.try_index_select(0, &numbers)?.try_mul(&q)?;
        let losses = products.try_sum(-1, false)?.try_neg()?;
        self.in_shape(self.counting.reduce_kept(&losses, &numbers, &targets)?, &at.input(1))
    }

    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| {
            let targets = inputs[1].try_reshape([inputs[1].numel()])?;
            let (numbers, kept) = self.counting.kept(&targets)?;
            let x = rows(&inputs[0])?.try_index_select(0, &numbers)?;
            let losses = self.counting.picked(&x, &kept)?;
            self.in_shape(self.counting.reduce_kept(&losses, &numbers, &targets)?, &inputs[1])
        }))
    }
}

impl Nll {
    /// Losses that are not reduced, in the shape of the targets.
    fn in_shape(&self, losses: Tensor, targets: &Tensor) -> Result<Tensor> {
        match self.counting.reduction {
            Reduction::None => losses.try_reshape(targets.shape()),
            _ => Ok(losses),
        }
    }
}

impl WholeKernel for Nll {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, targets) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let [classes, inner] = [x.shape()[1], x.shape()[2]];
        let targets: &[i64] = targets.slice().expect("made contiguous");
        self.counting.expect_targets(self.name(), targets, classes)?;
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64], |T| self.forward(
            x.elements::<T>(),
            targets,
            [classes, inner],
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

impl Nll {
    /// Calls `visit` with the number of each row that counts, the place of its target's element,
    /// and the weight of that.
    fn each<T: Real>(
        &self,
        targets: &[i64],
        [classes, inner]: [usize; 2],
        mut visit: impl FnMut(usize, usize, T),
    ) {
        let weights = self.counting.weights::<T>();
        for (i, targets) in targets.chunks_exact(inner.max(1)).enumerate() {
            for (j, &target) in targets.iter().enumerate() {
                if self.counting.ignores(target) {
                    continue;
                }
                let class = target as usize;
                let weight = weights.as_ref().map_or(T::ONE, |w| w[class]);
                visit(i * inner + j, (i * classes + class) * inner + j, weight);
            }
        }
    }

    fn forward<T: Real>(&self, x: &[T], targets: &[i64], extent: [usize; 2], out: &mut [T]) {
        if self.counting.reduction == Reduction::None {
            out.fill(T::ZERO);
            self.each(targets, extent, |row, place, weight: T| out[row] = -(x[place] * weight));
            return;
        }
        let mut sum = 0.0;
        self.each(targets, extent, |_, place, weight: T| sum -= (x[place] * weight).to_f64());
        out[0] = T::from_f64(sum / self.counting.divisor(targets));
    }
}

/// The backward from the targets and the upstream gradient: minus that, times the weight, at each
/// target's place.
#[derive(Debug, Parameters)]
struct NllGrad {
    op: Nll,
    /// Meta of the log-probabilities.
    meta: Meta,
}

impl Op for NllGrad {
    fn name(&self) -> &'static str {
        "nll_loss_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_nll_grad({0}, {1}, {shape}, {dtype}, {counting})".into())
    }

    fn infer(&self, _: &[Meta]) -> Result<Meta> {
        Ok(self.meta)
    }

    fn tensors(&self) -> SmallVec<[&Tensor; 1]> {
        self.op.counting.weight.iter().collect()
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

impl WholeKernel for NllGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (targets, g) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let targets: &[i64] = targets.slice().expect("made contiguous");
        // A verdict tries targets that differ from those of the loss.
        self.op.counting.expect_targets(self.name(), targets, out.shape[1])?;
        let mut value = Value::uninit(self.name(), out)?;
        let extent = [out.shape[1], out.shape[2]];
        by_dtype!(g.dtype(), [F32, F64], |T| self.backward(
            targets,
            g.elements::<T>(),
            extent,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

impl NllGrad {
    fn backward<T: Real>(&self, targets: &[i64], g: &[T], extent: [usize; 2], out: &mut [T]) {
        out.fill(T::ZERO);
        let each = self.op.counting.reduction == Reduction::None;
        let divisor = self.op.counting.divisor(targets);
        let scale = |g: T| T::from_f64(g.to_f64() / divisor);
        self.op.each(targets, extent, |row, place, weight: T| {
            out[place] = -(weight * scale(g[if each { row } else { 0 }]));
        });
    }
}

methods! {
    /// The mean of `-x[target]` over the rows, where `x` holds logarithms of probabilities,
    /// `[n, classes]`, and the targets are class numbers, `[n]`: a 0-d tensor. After
    /// [`Tensor::log_softmax`] it is the cross-entropy, which [`Tensor::cross_entropy`] computes at
    /// once.
    ///
    /// The classes lie on axis 1: `[n, classes, d, ...]` has targets `[n, d, ...]`, and a single
    /// row `[classes]` a 0-d target. For f32 and f64; a target that is no class is an error.
    /// Without rows the mean is NaN. Gradient: `dx = -one_hot(target) * g / n`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let logp = Tensor::from([[0.5f64, 0.5], [0.25, 0.75]]).log();
    /// let loss = logp.nll_loss(&Tensor::from([0i64, 0]));
    /// assert!((loss.item() - 1.5 * 2f64.ln()).abs() < 1e-15);
    /// ```
    pub fn nll_loss / try_nll_loss(&self, targets: &Tensor) -> Tensor {
        let counting = Counting { batch: batch(self), ..Counting::default() };
        nll(self, targets, counting)
    }

    /// [`Tensor::nll_loss`] with options: another reduction, rows to leave out, weights of the
    /// classes. They mean what they mean in PyTorch: the mean is divided by the weights of the
    /// targets that count; if none does it is NaN.
    ///
    /// ```
    /// use chainrule::{NllLoss, Reduction, Tensor};
    /// let options =
    ///     NllLoss { ignore_index: Some(-1), reduction: Reduction::None, ..Default::default() };
    /// let x = Tensor::from([[-1.0f64, -2.0], [-3.0, -4.0]]);
    /// assert_eq!(
    ///     x.nll_loss_with(&Tensor::from([1i64, -1]), &options).to_vec::<f64>(),
    ///     [2.0, 0.0]
    /// );
    /// ```
    pub fn nll_loss_with / try_nll_loss_with(&self, targets: &Tensor, options: &NllLoss) -> Tensor {
        let NllLoss { reduction, ignore_index, weight } = options;
        if let Some(weight) = weights_of_runs::varying(weight) {
            return weights_of_runs::nll_loss(self, targets, weight, options);
        }
        let counting = Counting::new("nll_loss", self, *reduction, *ignore_index, weight)?;
        nll(self, targets, counting)
    }
}

#[track_caller]
fn nll(x: &Tensor, targets: &Tensor, counting: Counting) -> Result<Tensor> {
    let op = Nll { counting };
    let classes = classes(op.name(), x)?;
    expect_class_numbers(op.name(), x, targets)?;
    let n = batch(x);
    let inner = x.shape().iter().skip(2).product();
    let inputs = [&x.try_reshape([n, classes, inner])?, &targets.try_reshape([n, inner])?];
    let losses = apply(op, &inputs)?;
    if losses.rank() == 0 { Ok(losses) } else { losses.try_reshape(without_classes(x)) }
}

pub(super) const ENTRY: Entry = Entry {
    name: "nll_loss",
    family: Family::Fused,
    signature: "logp.nll_loss(&targets), logp.nll_loss_with(&targets, &options)",
    python: &[Binding::with(
        "nll_loss",
        &[
            Parameter::tensor("target"),
            Parameter::tensor("weight").or_none(),
            Parameter::int("ignore_index").or(-100),
            REDUCTION,
        ],
        |x, a| {
            let reduction = Reduction::of(a.choice(3));
            let (ignore_index, weight) = (a.maybe_int(2), a.maybe_tensor(1).cloned());
            x.try_nll_loss_with(a.tensor(0), &NllLoss { reduction, ignore_index, weight })
        },
    )
    .only_functional()],
    formula: "mean of -x[target] over the rows",
    gradient: "dx = -one_hot(target) * g / n",
    at_kinks: "the mean of no rows is NaN; a row that is left out has loss and gradient 0",
    samples,
    mistakes: &[
        Mistake {
            name: "ignored rows counted in the mean",
            what: "the gradient is divided by the number of all rows, with those that ignore_index leaves out",
            rule: |op, at, g, wanted| {
                let counting = &op.downcast::<Nll>()?.counting;
                op.vjp(at, &g.try_mul(counting.counted_too_often(&at.input(1))?)?, wanted)
            },
        },
        Mistake {
            name: "missing 1/n",
            what: "the gradient of the sum of the losses where the loss is their mean",
            rule: |op, at, g, wanted| {
                let n = at.input(1).numel() as f64;
                op.vjp(at, &g.try_mul(n)?, wanted)
            },
        },
        Mistake {
            name: "sign",
            what: "the gradient of the log-likelihood instead of the loss",
            rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
        },
    ],
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let weight = between(g, 0.5, 2.0, [4]);
    type NllLossCase<'a> = (&'static str, &'a [usize], Reduction, Option<i64>, bool);
    let cases: [NllLossCase<'_>; 10] = [
        ("a small batch", &[3, 4], Reduction::Mean, None, false),
        ("each row", &[3, 4], Reduction::None, None, false),
        ("summed", &[33, 4], Reduction::Sum, None, false),
        ("a single row", &[4], Reduction::Mean, None, true),
        ("a single row, as it is", &[4], Reduction::None, None, true),
        ("a class left out", &[5, 4], Reduction::Mean, Some(3), false),
        ("everything", &[2, 4, 3], Reduction::Mean, Some(1), true),
        ("everything, each place", &[2, 4, 3, 2], Reduction::None, Some(2), true),
        ("mean of the batch", &[2, 4, 3], Reduction::BatchMean, Some(1), false),
        ("no rows", &[0, 4], Reduction::Sum, None, false),
    ];
    let sample = |(note, shape, reduction, ignore_index, weighted): NllLossCase<'_>| {
        let weight = if weighted { Some(weight.clone()) } else { None };
        let options = NllLoss { reduction, ignore_index, weight };
        let x = normal(g, shape);
        let count = without_classes(&x).numel() as i64;
        let numbers: Vec<i64> = (0..count).map(|i| i * 3 % 4).collect();
        let targets = Tensor::from_slice(&numbers, without_classes(&x));
        Sample::new(note, vec![x], move |x| x[0].try_nll_loss_with(&targets, &options))
    };
    cases.into_iter().map(sample).collect()
}
