//! `cross_entropy`: the loss of classification from logits and class numbers, and the backward of it as one kernel.

use super::reduction::Reduction;
use super::{backward_only, log_softmax_in_steps, shifted};
use crate::kernels::gather::first_outside;
use crate::kernels::softmax::{self, Row};
use crate::ops::index::IndexAdd;
use crate::ops::prelude::*;
use crate::tensor::op::Definition;

/// Options of [`Tensor::cross_entropy_with`].
#[derive(Clone, Debug, Default)]
pub struct CrossEntropy {
    /// What becomes of the losses of the rows; the default is their mean.
    pub reduction: Reduction,
    /// Rows with this target are left out: their loss is 0 and does not count in the mean. None by default.
    pub ignore_index: Option<i64>,
    /// The share of the target's probability, from 0 to 1, that is spread evenly over all classes; 0 by default.
    pub label_smoothing: f64,
    /// A weight for each class, `[classes]`; a constant, which gets no gradient. None by default.
    pub weight: Option<Tensor>,
}

impl CrossEntropy {
    fn ignores(&self, target: i64) -> bool {
        self.ignore_index == Some(target)
    }

    /// Whether a row's loss is just minus the logarithm of its target's probability.
    fn is_plain(&self) -> bool {
        self.label_smoothing == 0.0 && self.weight.is_none()
    }

    /// The weights of the classes as elements.
    fn weights<T: Row>(&self) -> Option<Vec<T>> {
        let weight = self.weight.as_ref()?.to_f64_vec();
        Some(weight.into_iter().map(T::from_f64).collect())
    }

    /// What the sum of the losses is divided by: for a mean the weights of the targets that count, else 1.
    fn divisor(&self, targets: &[i64]) -> f64 {
        match self.reduction {
            Reduction::Mean => {}
            Reduction::BatchMean => return targets.len() as f64,
            _ => return 1.0,
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

    fn expect_targets(&self, targets: &[i64], classes: usize) -> Result<()> {
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
            "target {} at position {at} is no class: the logits have {classes} classes, numbered from 0 (to leave rows out, set ignore_index)",
            targets[at]
        );
        Err(Error::argument("cross_entropy", why))
    }
}

/// Inputs: logits `[n, classes]` and targets `[n]`.
#[derive(Debug)]
pub(crate) struct CrossEntropyOp {
    options: CrossEntropy,
}

impl Op for CrossEntropyOp {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let (x, targets) = (inputs[0], inputs[1]);
        let dtype = float_inputs(self.name(), &inputs[..1])?;
        if targets.dtype != DType::I64 {
            let why = "the targets must be class numbers in i64; convert with to_dtype";
            return Err(Error::dtype(self.name(), &[targets.dtype], why));
        }
        if x.shape.rank() != 2 || targets.shape != [x.shape[0]] {
            let why = "the logits must be [n, classes] and the targets [n]; reshape them, e.g. with reshape([-1, classes])";
            return Err(Error::shape(self.name(), &[&x.shape, &targets.shape], why));
        }
        Ok(Meta::new(
            match self.options.reduction {
                Reduction::None => targets.shape,
                _ => Shape::SCALAR,
            },
            dtype,
        ))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::EXTRA)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let options = self.options.clone();
        let inputs = [&at.extra(0), &at.input(1), cotangent];
        let dx = apply(CrossEntropyGrad { options }, &inputs)?;
        Ok(smallvec![Some(dx), None])
    }

    /// A row's loss is `sum(q) * lse - sum(q * x)`, where `q` are the weights that the row gives to the classes and `lse` is the logarithm of the
    /// sum of exponentials; its tangent is `sum(q) * sum(e * dx) / sum(e) - sum(q * dx)`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (x, dx) = (at.input(0), tangents[0].as_ref());
        let dx = dx.expect("only the logits have a tangent");
        let q = target_weights(&self.options, &at.input(1), x.meta())?;
        let e = shifted(&x)?.try_exp()?;
        let sum = |t: &Tensor| t.try_sum(-1, false);
        let dlse = sum(&e.try_mul(dx)?)?.try_div(&sum(&e)?)?;
        let rows = sum(&q)?.try_mul(&dlse)?.try_sub(&sum(&q.try_mul(dx)?)?)?;
        self.reduce(&rows, &at.input(1))
    }

    /// In steps: the logarithm of softmax, the target's element of each row that counts, and the mean.
    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| self.in_steps(&inputs[0], &inputs[1])))
    }
}

impl CrossEntropyOp {
    fn in_steps(&self, x: &Tensor, targets: &Tensor) -> Result<Tensor> {
        let options = &self.options;
        let all = targets.try_to_vec::<i64>()?;
        let kept: Vec<i64> =
            (0..all.len() as i64).filter(|&row| !options.ignores(all[row as usize])).collect();
        let rows = Tensor::from(kept);
        let logp = log_softmax_in_steps(&x.try_index_select(0, &rows)?)?;
        let targets_kept = targets.try_index_select(0, &rows)?;
        let column = targets_kept.try_reshape([rows.numel(), 1])?;
        let mut losses = logp.try_gather(1, &column)?.try_reshape([rows.numel()])?.try_neg()?;
        if let Some(weight) = &options.weight {
            losses = losses.try_mul(&weight.try_index_select(0, &targets_kept)?)?;
        }
        let s = options.label_smoothing;
        if s != 0.0 {
            let weighted = match &options.weight {
                Some(weight) => logp.try_mul(weight)?,
                None => logp,
            };
            let even = weighted.try_sum(-1, false)?;
            let share = s / x.shape()[1] as f64;
            losses = losses.try_mul(1.0 - s)?.try_sub(&even.try_mul(share)?)?;
        }
        let back = IndexAdd { axis: 0, size: all.len() };
        self.reduce(&apply(back, &[&losses, &rows])?, targets)
    }

    fn reduce(&self, losses: &Tensor, targets: &Tensor) -> Result<Tensor> {
        match self.options.reduction {
            Reduction::None => Ok(losses.clone()),
            Reduction::Sum => losses.try_sum_all(),
            Reduction::Mean | Reduction::BatchMean => {
                let divisor = self.options.divisor(&targets.try_to_vec::<i64>()?);
                losses.try_sum_all()?.try_div(divisor)
            }
        }
    }
}

/// What each row gives to each class: `weight[target] * (1 - s)` to its target and `weight * s / classes` to every class, nothing in a row that
/// is left out. Shape and dtype of the logits.
fn target_weights(options: &CrossEntropy, targets: &Tensor, like: Meta) -> Result<Tensor> {
    let (n, classes) = (like.shape[0], like.shape[1]);
    let (s, column) = (options.label_smoothing, Shape::new(&[n, 1]));
    let kept = match options.ignore_index {
        Some(ignored) => targets.try_ne(ignored)?.try_to_dtype(DType::I64)?,
        None => targets.ones_like(),
    };
    let one_hot = targets.try_mul(&kept)?.try_one_hot(classes)?;
    let one_hot = one_hot.try_to_dtype(like.dtype)?;
    let mut q = one_hot.try_mul(1.0 - s)?.try_add(s / classes.max(1) as f64)?;
    if let Some(weight) = &options.weight {
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
        self.options.expect_targets(targets, classes)?;
        let mut value = Value::uninit(self.name(), out)?;
        let mut probs = Value::uninit(self.name(), x.meta)?;
        match (array(&x), output(&mut value), output(&mut probs)) {
            (Array::F32(x), Output::F32(o), Output::F32(p)) => {
                self.forward(x, targets, classes, o, p)
            }
            (Array::F64(x), Output::F64(o), Output::F64(p)) => {
                self.forward(x, targets, classes, o, p)
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(Outcome { value: Arc::new(value), extra: smallvec![Arc::new(probs)] })
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
    ) {
        let options = &self.options;
        let each = options.reduction == Reduction::None;
        let mut scratch = vec![T::ZERO; if each { 0 } else { targets.len() }];
        let losses = if each { &mut *out } else { &mut scratch };
        if targets.iter().any(|&t| options.ignores(t)) {
            // Class 0 stands in, and the row's loss is then set to 0.
            let stand_in = |&t: &i64| if options.ignores(t) { 0 } else { t };
            let present: Vec<i64> = targets.iter().map(stand_in).collect();
            softmax::cross_entropy_rows(x, &present, classes, losses, probs);
        } else {
            softmax::cross_entropy_rows(x, targets, classes, losses, probs);
        }
        if !options.is_plain() {
            self.spread(x, targets, classes, losses);
        }
        for (loss, &t) in losses.iter_mut().zip(targets) {
            if options.ignores(t) {
                *loss = T::ZERO;
            }
        }
        if !each {
            let sum: f64 = losses.iter().map(|loss| loss.to_f64()).sum();
            out[0] = T::from_f64(sum / options.divisor(targets));
        }
    }

    /// Turns the losses of plain rows into weighted and smoothed ones.
    fn spread<T: Row>(&self, x: &[T], targets: &[i64], classes: usize, losses: &mut [T]) {
        let options = &self.options;
        let s = options.label_smoothing;
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

/// The backward from the probabilities, the targets and the upstream gradient: for plain rows `(p - one_hot(target)) * g`.
#[derive(Debug)]
struct CrossEntropyGrad {
    options: CrossEntropy,
}

impl Op for CrossEntropyGrad {
    fn name(&self) -> &'static str {
        "cross_entropy_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(inputs[0])
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    backward_only!();
}

impl WholeKernel for CrossEntropyGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let inputs = [&inputs[0], &inputs[1], &inputs[2]].map(Value::contiguous);
        let [probs, targets, g] = inputs;
        let (probs, targets, g) = (probs?, targets?, g?);
        let targets: &[i64] = targets.slice().expect("made contiguous");
        let classes = out.shape[1];
        let mut value = Value::uninit(self.name(), out)?;
        match (array(&probs), array(&g), output(&mut value)) {
            (Array::F32(p), Array::F32(g), Output::F32(o)) => {
                self.backward(p, targets, g, classes, o)
            }
            (Array::F64(p), Array::F64(g), Output::F64(o)) => {
                self.backward(p, targets, g, classes, o)
            }
            _ => unreachable!("a gradient has the dtype of its tensor"),
        }
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
        let options = &self.options;
        let divisor = options.divisor(targets);
        let scale = |g: T| T::from_f64(g.to_f64() / divisor);
        let each = options.reduction == Reduction::None;
        let ignored = targets.iter().any(|&t| options.ignores(t));
        if !each && !ignored && options.is_plain() {
            softmax::cross_entropy_grad_rows(probs, targets, classes, scale(g[0]), out);
            return;
        }
        if out.is_empty() {
            return;
        }
        let weights = options.weights::<T>();
        let weight = |class: usize| weights.as_ref().map_or(T::ONE, |w| w[class]);
        let s = options.label_smoothing;
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
    /// The mean cross-entropy of logits `[n, classes]` with class numbers `[n]`: the mean of `-log(softmax(x)[target])`, a 0-d tensor.
    ///
    /// The logits are f32 or f64, the targets i64; a target that is no class is an error. Without rows the mean is NaN. A logit of minus
    /// infinity has probability 0; as a target it gives an infinite loss. Gradient: `dx = (softmax(x) - one_hot(target)) * g / n`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let logits = Tensor::from([[0.0f64, 0.0], [0.0, 0.0]]);
    /// let loss = logits.cross_entropy(&Tensor::from([0i64, 1]));
    /// assert!((loss.item() - 2f64.ln()).abs() < 1e-15);
    /// ```
    pub fn cross_entropy / try_cross_entropy(&self, targets: &Tensor) -> Tensor {
        apply(CrossEntropyOp { options: CrossEntropy::default() }, &[self, targets])
    }

    /// [`Tensor::cross_entropy`] with options: another reduction, rows to leave out, smoothed labels, weights of the classes. They mean
    /// what they mean in PyTorch.
    ///
    /// If all rows are left out the mean is NaN and the gradient 0. In a row that is left out the gradient is 0 whatever the logits are (in PyTorch
    /// it is NaN if one of them is).
    pub fn cross_entropy_with / try_cross_entropy_with(&self, targets: &Tensor, options: &CrossEntropy) -> Tensor {
        let mut options = options.clone();
        if !(0.0..=1.0).contains(&options.label_smoothing) {
            let why = format!("label_smoothing must lie between 0 and 1; it is {}", options.label_smoothing);
            return Err(Error::argument("cross_entropy", why));
        }
        if let Some(weight) = options.weight.take() {
            let shape = self.shape();
            if shape.rank() != 2 || weight.shape() != [shape[1]] {
                let why = "the weight must have one element for each class";
                return Err(Error::shape("cross_entropy", &[&shape, &weight.shape()], why));
            }
            options.weight = Some(weight.detach().try_to_dtype(self.dtype())?);
        }
        apply(CrossEntropyOp { options }, &[self, targets])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cross_entropy",
    family: Family::Fused,
    signature: "logits.cross_entropy(&targets), logits.cross_entropy_with(&targets, &options)",
    formula: "mean of -log(softmax(x)[target]) over the rows",
    gradient: "dx = (softmax(x) - one_hot(target)) * g / n",
    at_kinks: "the mean of no rows is NaN; a target with a logit of minus infinity gives an infinite loss; a row that is left out has gradient 0",
    samples,
    mistakes: MISTAKES,
};

fn samples(g: &mut Generator) -> Vec<Sample> {
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
    out.push(Sample::new("a transposed view", vec![normal(g, [4, 3])], |x| {
        x[0].try_t()?.try_cross_entropy(&Tensor::from([3i64, 0, 1]))
    }));
    out.push(Sample::new("no rows", vec![normal(g, [0, 3])], |x| {
        let options = CrossEntropy { reduction: Reduction::Sum, ..CrossEntropy::default() };
        x[0].try_cross_entropy_with(&Tensor::from(Vec::<i64>::new()), &options)
    }));
    out
}

fn this(op: &dyn Op) -> &CrossEntropyOp {
    (op as &dyn std::any::Any).downcast_ref().expect("the rule of cross_entropy")
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "target not subtracted",
        what: "softmax(x) was taken for softmax(x) - one_hot(target)",
        rule: |op, at, g, wanted| {
            let (options, targets) = (&this(op).options, at.input(1));
            let dx = op.vjp(at, g, wanted)?.remove(0).expect("the only gradient");
            let q = target_weights(options, &targets, dx.meta())?;
            let divisor = options.divisor(&targets.try_to_vec::<i64>()?);
            let g = match options.reduction {
                Reduction::None => g.try_reshape([g.numel(), 1])?,
                _ => g.clone(),
            };
            let missing = q.try_mul(&g)?.try_div(divisor)?;
            Ok(smallvec![Some(dx.try_add(&missing)?), None])
        },
    },
    Mistake {
        name: "missing 1/n",
        what: "the gradient of the sum of the losses where the loss is their mean",
        rule: |op, at, g, wanted| {
            let targets = at.input(1).try_to_vec::<i64>()?;
            let divisor = this(op).options.divisor(&targets);
            op.vjp(at, &g.try_mul(divisor)?, wanted)
        },
    },
    Mistake {
        name: "sign",
        what: "one_hot(target) - softmax(x): the gradient of the log-likelihood instead of the loss",
        rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
    },
];
