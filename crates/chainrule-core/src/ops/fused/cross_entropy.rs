//! `cross_entropy`: the loss of classification from logits and class numbers, and the backward of
//! it as one kernel.

use smallvec::SmallVec;

use super::classes::{
    Counting, batch, class_weight, classes, expect_class_numbers, rows, without_classes,
};
use super::cross_entropy_probabilities::SoftCrossEntropy;
use super::reduction::Reduction;
use super::{log_softmax_in_steps, shifted, weights_of_runs};
use crate::kernels::softmax::{self, Row};
use crate::ops::prelude::*;
use crate::tensor::op::Definition;

mod samples;

use samples::{MISTAKES, samples};

/// Options of [`Tensor::cross_entropy_with`].
#[derive(Clone, Debug, Default)]
pub struct CrossEntropy {
    /// The reduction of the losses of the rows; the default is their mean.
    pub reduction: Reduction,
    /// Rows with this target are left out: their loss is 0 and does not count in the mean. None by
    /// default.
    pub ignore_index: Option<i64>,
    /// The share of the target's probability, from 0 to 1, that is spread evenly over all classes;
    /// 0 by default.
    pub label_smoothing: f64,
    /// A weight for each class, `[classes]`; a constant, which gets no gradient. None by default.
    pub weight: Option<Tensor>,
}

/// Inputs: logits `[n, classes]` and class numbers `[n]`.
#[derive(Clone, Debug, Parameters)]
pub(crate) struct CrossEntropyOp {
    counting: Counting,
    label_smoothing: f64,
}

impl Op for CrossEntropyOp {
    row!(cross_entropy);

    fn role(&self) -> Role {
        Role::Loss(LossRole::CrossEntropy)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_cross_entropy({0}, {1}, {counting}, {label_smoothing})".into())
    }

    fn picks_below(&self, input: usize, inputs: &[Shape]) -> Option<usize> {
        inputs[0].get(1).copied().filter(|_| input == 1)
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(5, inputs, outputs)
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

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::EXTRA)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let inputs = [&at.extra(0), &at.input(1), cotangent];
        let dx = apply(CrossEntropyGrad(self.clone()), &inputs)?;
        Ok(smallvec![Some(dx), None])
    }

    /// A row's loss is `sum(q) * lse - sum(q * x)`, where `q` are the weights that the row gives to
    /// the classes and `lse` is the logarithm of the sum of exponentials; its tangent is
    /// `sum(q) * sum(e * dx) / sum(e) - sum(q * dx)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (x, dx) = (at.input(0), tangents[0].as_ref());
        let dx = dx.expect("only the logits have a tangent");
        let q = target_weights(self, &at.input(1), x.meta())?;
        let e = shifted(&x)?.try_exp()?;
        let sum = |t: &Tensor| t.try_sum(-1, false);
        let dlse = sum(&e.try_mul(dx)?)?.try_div(&sum(&e)?)?;
        let rows = sum(&q)?.try_mul(&dlse)?.try_sub(&sum(&q.try_mul(dx)?)?)?;
        self.counting.reduce(&rows, &at.input(1))
    }

    /// In steps: the logarithm of softmax, the target's element of each row that counts, and the
    /// mean.
    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| self.in_steps(&inputs[0], &inputs[1])))
    }
}

impl CrossEntropyOp {
    /// Whether a row's loss is minus the logarithm of its target's probability, and nothing more.
    fn is_plain(&self) -> bool {
        self.label_smoothing == 0.0 && self.counting.weight.is_none()
    }

    fn in_steps(&self, x: &Tensor, targets: &Tensor) -> Result<Tensor> {
        let (rows, kept) = self.counting.kept(targets)?;
        let logp = log_softmax_in_steps(&x.try_index_select(0, &rows)?)?;
        let mut losses = self.counting.picked(&logp, &kept)?;
        let s = self.label_smoothing;
        if s != 0.0 {
            let weighted = match &self.counting.weight {
                Some(weight) => logp.try_mul(weight)?,
                None => logp,
            };
            let even = weighted.try_sum(-1, false)?;
            let share = s / x.shape()[1] as f64;
            losses = losses.try_mul(1.0 - s)?.try_sub(&even.try_mul(share)?)?;
        }
        self.counting.reduce_kept(&losses, &rows, targets)
    }
}

/// The weight of each class in each row's loss: `weight[target] * (1 - s)` to its target and
/// `weight * s / classes` to every class, nothing in a row that is left out. Shape and dtype of the
/// logits.
fn target_weights(op: &CrossEntropyOp, targets: &Tensor, like: Meta) -> Result<Tensor> {
    let (n, classes) = (like.shape[0], like.shape[1]);
    let (s, column) = (op.label_smoothing, Shape::new(&[n, 1]));
    let kept = match op.counting.ignore_index {
        Some(ignored) => targets.try_ne(ignored)?.try_to_dtype(DType::I64)?,
        None => targets.ones_like(),
    };
    let one_hot = targets.try_mul(&kept)?.try_one_hot(classes)?;
    let one_hot = one_hot.try_to_dtype(like.dtype)?;
    let mut q = one_hot.try_mul(1.0 - s)?.try_add(s / classes.max(1) as f64)?;
    if let Some(weight) = &op.counting.weight {
        let own = one_hot.try_matmul(weight)?.try_reshape(column)?;
        let even = weight.try_mul(s / classes.max(1) as f64)?;
        q = one_hot.try_mul(&own)?.try_mul(1.0 - s)?.try_add(&even)?;
    }
    q.try_mul(&kept.try_to_dtype(like.dtype)?.try_reshape(column)?)
}

impl WholeKernel for CrossEntropyOp {
    /// Beside the loss: the probabilities, which the backward needs.
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, targets) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let classes = x.shape()[1];
        let targets: &[i64] = targets.slice().expect("made contiguous");
        self.counting.expect_targets(self.name(), targets, classes)?;
        let mut value = Value::uninit(self.name(), out)?;
        let mut probs = Value::uninit(self.name(), x.meta)?;
        let each = self.counting.reduction == Reduction::None;
        let rows = Shape::new(&[if each { 0 } else { targets.len() }]);
        let mut scratch = Value::uninit(self.name(), Meta::new(rows, out.dtype))?;
        by_dtype!(x.dtype(), [F32, F64], |T| self.forward(
            x.elements::<T>(),
            targets,
            classes,
            value.elements_mut(),
            probs.elements_mut(),
            scratch.elements_mut()
        ));
        Ok(Outcome { value: value.share(), extra: smallvec![probs.share()] })
    }
}

impl CrossEntropyOp {
    fn forward<T: Row>(
        &self,
        x: &[T],
        targets: &[i64],
        classes: usize,
        out: &mut [T],
        probs: &mut [T],
        scratch: &mut [T],
    ) {
        let options = &self.counting;
        let each = options.reduction == Reduction::None;
        let losses = if each { &mut *out } else { scratch };
        if targets.iter().any(|&t| options.ignores(t)) {
            // Class 0 stands in for the target, and the row's loss is then set to 0.
            let stand_in = |&t: &i64| if options.ignores(t) { 0 } else { t };
            let present: Vec<i64> = targets.iter().map(stand_in).collect();
            softmax::cross_entropy_rows(x, &present, classes, losses, probs);
        } else {
            softmax::cross_entropy_rows(x, targets, classes, losses, probs);
        }
        if !self.is_plain() {
            self.spread(x, targets, classes, losses);
        }
        for (loss, &t) in losses.iter_mut().zip(targets) {
            if options.ignores(t) {
                *loss = T::ZERO;
            }
        }
        if !each {
            out[0] = options.total(losses, targets);
        }
    }

    /// Turns the losses of plain rows into weighted and smoothed ones.
    fn spread<T: Row>(&self, x: &[T], targets: &[i64], classes: usize, losses: &mut [T]) {
        let options = &self.counting;
        let s = self.label_smoothing;
        let weights = options.weights::<T>();
        let mut log_sums = vec![T::ZERO; losses.len()];
        softmax::logsumexp_rows(x, classes, &mut log_sums);
        let (own, share) = (T::from_f64(1.0 - s), T::from_f64(s / classes as f64));
        for (row, (loss, &target)) in losses.iter_mut().zip(targets).enumerate() {
            if options.ignores(target) {
                continue;
            }
            if let Some(weights) = &weights {
                *loss *= weights[target as usize];
            }
            if s == 0.0 {
                continue;
            }
            let mut even = T::ZERO;
            for (class, &x) in x[row * classes..][..classes].iter().enumerate() {
                let weight = weights.as_ref().map_or(T::ONE, |w| w[class]);
                even += weight * (log_sums[row] - x);
            }
            *loss = own * *loss + share * even;
        }
    }
}

/// The backward from the probabilities, the targets and the upstream gradient: for plain rows
/// `(p - one_hot(target)) * g`.
#[derive(Debug, Parameters)]
struct CrossEntropyGrad(CrossEntropyOp);

impl Op for CrossEntropyGrad {
    fn name(&self) -> &'static str {
        "cross_entropy_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_cross_entropy_grad({0}, {1}, {2}, {counting}, {label_smoothing})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(2, inputs, outputs)
    }

    fn linear(&self) -> Linear {
        Linear::Last
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(inputs[0])
    }

    fn tensors(&self) -> SmallVec<[&Tensor; 1]> {
        self.0.counting.weight.iter().collect()
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

impl WholeKernel for CrossEntropyGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let inputs = [&inputs[0], &inputs[1], &inputs[2]].map(Value::contiguous);
        let [probs, targets, g] = inputs;
        let (probs, targets, g) = (probs?, targets?, g?);
        let targets: &[i64] = targets.slice().expect("made contiguous");
        let classes = out.shape[1];
        // A verdict tries targets that differ from those of the loss.
        self.0.counting.expect_targets(self.name(), targets, classes)?;
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(probs.dtype(), [F32, F64], |T| self.backward(
            probs.elements::<T>(),
            targets,
            g.elements(),
            classes,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

impl CrossEntropyGrad {
    fn backward<T: Row>(
        &self,
        probs: &[T],
        targets: &[i64],
        g: &[T],
        classes: usize,
        out: &mut [T],
    ) {
        let options = &self.0.counting;
        let divisor = options.divisor(targets);
        let scale = |g: T| T::from_f64(g.to_f64() / divisor);
        let each = options.reduction == Reduction::None;
        let ignored = targets.iter().any(|&t| options.ignores(t));
        if !each && !ignored && self.0.is_plain() {
            softmax::cross_entropy_grad_rows(probs, targets, classes, scale(g[0]), out);
            return;
        }
        if out.is_empty() {
            return;
        }
        let weights = options.weights::<T>();
        let weight = |class: usize| weights.as_ref().map_or(T::ONE, |w| w[class]);
        let s = self.0.label_smoothing;
        let (own, share) = (T::from_f64(1.0 - s), T::from_f64(s / classes as f64));
        let all: f64 = (0..classes).map(|class| weight(class).to_f64()).sum();
        let all = T::from_f64(all);
        let rows = probs.chunks_exact(classes).zip(targets).enumerate();
        for ((row, (probs, &target)), out) in rows.zip(out.chunks_exact_mut(classes)) {
            if options.ignores(target) {
                out.fill(T::ZERO);
                continue;
            }
            let g = scale(g[if each { row } else { 0 }]);
            let (target, own) = (target as usize, own * weight(target as usize));
            let total = own + share * all;
            for (class, (out, &p)) in out.iter_mut().zip(probs).enumerate() {
                *out = g * (p * total - share * weight(class));
            }
            out[target] = g * ((probs[target] * total - share * weight(target)) - own);
        }
    }
}

methods! {
    /// The mean cross-entropy of logits and targets: for logits `[n, classes]` with class numbers
    /// `[n]` the mean of `-log(softmax(x)[target])`, a 0-d tensor.
    ///
    /// The classes lie on axis 1: logits `[n, classes, d, ...]` have targets `[n, d, ...]`, and a
    /// single row `[classes]` has a 0-d target. Targets of a float dtype are probabilities of the
    /// classes, in the shape of the logits; the loss of a row is then
    /// `-sum(target * log(softmax(x)))`. The logits are f32 or f64, class numbers i64; a target
    /// that is no class is an error.
    ///
    /// Without rows the mean is NaN. A logit of minus infinity has probability 0; as a target it
    /// gives an infinite loss. Gradient: `dx = (softmax(x) - one_hot(target)) * g / n`; for
    /// probabilities `dx = (softmax(x) * sum(target) - target) * g / n` and
    /// `dtarget = -log(softmax(x)) * g / n`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let logits = Tensor::from([[0.0f64, 0.0], [0.0, 0.0]]);
    /// let loss = logits.cross_entropy(&Tensor::from([0i64, 1]));
    /// assert!((loss.item() - 2f64.ln()).abs() < 1e-15);
    /// let loss = logits.cross_entropy(&Tensor::from([[0.5f64, 0.5], [0.9, 0.1]]));
    /// assert!((loss.item() - 2f64.ln()).abs() < 1e-15);
    /// ```
    pub fn cross_entropy / try_cross_entropy(&self, targets: &Tensor) -> Tensor {
        if targets.dtype().is_float() {
            return of_probabilities(self, targets, &CrossEntropy::default());
        }
        let counting = Counting { batch: batch(self), ..Counting::default() };
        of_classes(self, targets, CrossEntropyOp { counting, label_smoothing: 0.0 })
    }

    /// [`Tensor::cross_entropy`] with options: another reduction, rows to leave out, smoothed
    /// labels, weights of the classes. They mean what they mean in PyTorch: the mean of rows with
    /// class numbers is divided by the weights of their targets, that of rows with probabilities by
    /// their number.
    ///
    /// If all rows are left out the mean is NaN and the gradient 0. In a row that is left out the
    /// gradient is 0 whatever the logits are (in PyTorch it is NaN if one of them is). No row with
    /// probabilities can be left out.
    ///
    /// ```
    /// use chainrule::{CrossEntropy, Reduction, Tensor};
    /// let logits = Tensor::from([[0.0f64, 0.0], [0.0, 0.0]]);
    /// let options = CrossEntropy {
    ///     reduction: Reduction::None,
    ///     ignore_index: Some(1),
    ///     ..Default::default()
    /// };
    /// let losses = logits.cross_entropy_with(&Tensor::from([0i64, 1]), &options).to_vec::<f64>();
    /// assert!((losses[0] - 2f64.ln()).abs() < 1e-15 && losses[1] == 0.0);
    /// ```
    pub fn cross_entropy_with / try_cross_entropy_with(&self, targets: &Tensor, options: &CrossEntropy) -> Tensor {
        let CrossEntropy { reduction, ignore_index, label_smoothing, ref weight } = *options;
        if !(0.0..=1.0).contains(&label_smoothing) {
            let why = format!("label_smoothing must lie between 0 and 1; it is {label_smoothing}");
            return Err(Error::argument("cross_entropy", why));
        }
        if targets.dtype().is_float() {
            return of_probabilities(self, targets, options);
        }
        if let Some(weight) = weights_of_runs::varying(weight) {
            return weights_of_runs::cross_entropy(self, targets, weight, options);
        }
        let counting = Counting::new("cross_entropy", self, reduction, ignore_index, weight)?;
        of_classes(self, targets, CrossEntropyOp { counting, label_smoothing })
    }
}

#[track_caller]
fn of_classes(x: &Tensor, targets: &Tensor, op: CrossEntropyOp) -> Result<Tensor> {
    classes(op.name(), x)?;
    expect_class_numbers(op.name(), x, targets)?;
    if x.rank() == 2 {
        return apply(op, &[x, targets]);
    }
    let losses = apply(op, &[&rows(x)?, &targets.try_reshape([targets.numel()])?])?;
    if losses.rank() == 0 { Ok(losses) } else { losses.try_reshape(targets.shape()) }
}

#[track_caller]
fn of_probabilities(x: &Tensor, targets: &Tensor, options: &CrossEntropy) -> Result<Tensor> {
    const NAME: &str = "cross_entropy";
    classes(NAME, x)?;
    if options.ignore_index.is_some() {
        let why = "ignore_index means class numbers, and the targets are probabilities; scale a row by 0 to leave it out";
        return Err(Error::argument(NAME, why));
    }
    if targets.shape() != x.shape() {
        let why = "float targets are probabilities of the classes, in the shape of the logits; class numbers must be i64 (convert with to_dtype)";
        return Err(Error::shape(NAME, &[&x.shape(), &targets.shape()], why));
    }
    let dtype = x.dtype().promote(targets.dtype());
    let (x, targets) = (x.try_to_dtype(dtype)?, targets.try_to_dtype(dtype)?);
    let mut op = SoftCrossEntropy {
        reduction: options.reduction,
        label_smoothing: options.label_smoothing,
        weight: options.weight.as_ref().map(|w| class_weight(NAME, w, &x)).transpose()?,
        batch: batch(&x),
    };
    let mut given = rows(&targets)?;
    if weights_of_runs::varying(&options.weight).is_some() {
        // The op would hold the weights as numbers.
        given = op.given(&given)?;
        (op.weight, op.label_smoothing) = (None, 0.0);
    }
    let losses = apply(op, &[&rows(&x)?, &given])?;
    if losses.rank() == 0 { Ok(losses) } else { losses.try_reshape(without_classes(&x)) }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cross_entropy",
    family: Family::Fused,
    signature: "logits.cross_entropy(&targets), logits.cross_entropy_with(&targets, &options)",
    python: &[Binding::with(
        "cross_entropy",
        &[
            Parameter::tensor("target"),
            Parameter::tensor("weight").or_none(),
            Parameter::unused("size_average"),
            Parameter::int("ignore_index").or(-100),
            Parameter::unused("reduce"),
            REDUCTION,
            Parameter::float("label_smoothing", 0.0),
        ],
        |x, a| {
            let classes = !a.tensor(0).dtype().is_float();
            let options = CrossEntropy {
                reduction: Reduction::of(a.choice(5)),
                ignore_index: a.maybe_int(3).filter(|_| classes),
                label_smoothing: a.float(6),
                weight: a.maybe_tensor(1).cloned(),
            };
            x.try_cross_entropy_with(a.tensor(0), &options)
        },
    )
    .only_functional()],
    formula: "mean of -log(softmax(x)[target]) over the rows",
    gradient: "dx = (softmax(x) - one_hot(target)) * g / n",
    at_kinks: "the mean of no rows is NaN; a target with a logit of minus infinity gives an infinite loss; a row that is left out has gradient 0",
    samples,
    mistakes: MISTAKES,
};
