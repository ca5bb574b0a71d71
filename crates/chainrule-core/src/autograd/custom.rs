//! Ops that users define: a forward and a backward, as a type or as two closures.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex};

use smallvec::SmallVec;

use super::walk::Walk;
use crate::error::{Error, Result};
use crate::param::{Param, Parameters};
use crate::tensor::node::{Mode, lock};
use crate::tensor::op::{Grads, Kernel, Op, Outcome, Saved, Saves, Wanted, WholeKernel};
use crate::tensor::run::apply;
use crate::tensor::value::{Layout, Meta, Value};
use crate::tensor::{Tensor, log, no_grad};

/// An op of one's own: a function of tensors with its reverse rule.
///
/// Gradients of higher order and forward mode come from `backward`, so they are right if it is
/// written in tensor operations on what the context and the cotangent give; numbers that it takes
/// from elsewhere count as constants.
///
/// ```
/// use chainrule::autograd::{CustomContext, CustomOp, apply_custom};
/// use chainrule::{Result, Tensor};
///
/// struct Square;
///
/// impl CustomOp for Square {
///     fn name(&self) -> &str {
///         "square"
///     }
///     fn forward(&self, inputs: &[Tensor]) -> Result<Tensor> {
///         inputs[0].try_mul(&inputs[0])
///     }
///     fn backward(&self, ctx: &CustomContext, cotangent: &Tensor) -> Result<Vec<Option<Tensor>>> {
///         Ok(vec![Some(cotangent.try_mul(&ctx.inputs()[0])?.try_mul(2.0)?)])
///     }
/// }
///
/// let x = Tensor::from([3.0f32]).parameter();
/// apply_custom(Square, &[&x]).unwrap().backward();
/// assert_eq!(x.grad().unwrap().item(), 6.0);
/// ```
pub trait CustomOp: Send + Sync + 'static {
    /// The name that errors, traces and drawings use.
    fn name(&self) -> &str;

    /// The result. Runs without recording.
    fn forward(&self, inputs: &[Tensor]) -> Result<Tensor>;

    /// The gradient of each input, from that of the output: a vector-Jacobian product. Each has the
    /// shape and dtype of its input (broadcasting must be undone); `None` where an input needs
    /// none. Elements may be infinite or not a number: they are passed on.
    fn backward(&self, ctx: &CustomContext, cotangent: &Tensor) -> Result<Vec<Option<Tensor>>>;
}

/// The forward pass as the backward of a [`CustomOp`] sees it.
#[derive(Debug)]
pub struct CustomContext {
    inputs: Vec<Tensor>,
    output: Tensor,
    wanted: Vec<bool>,
}

impl CustomContext {
    /// The inputs, as they were.
    pub fn inputs(&self) -> &[Tensor] {
        &self.inputs
    }

    /// The result, as it was.
    pub fn output(&self) -> &Tensor {
        &self.output
    }

    /// Whether the gradient of input `i` is needed; otherwise `None` may be returned for it.
    pub fn needs(&self, i: usize) -> bool {
        self.wanted.get(i).copied().unwrap_or(false)
    }
}

/// Applies a custom op. It is recorded if a gradient can flow, as any op is.
///
/// Errors as its `forward` does; those of its `backward` come up in the backward pass.
#[track_caller]
pub fn apply_custom(op: impl CustomOp, inputs: &[&Tensor]) -> Result<Tensor> {
    run(Arc::new(op), inputs)
}

#[track_caller]
fn run(op: Arc<dyn CustomOp>, inputs: &[&Tensor]) -> Result<Tensor> {
    let name = intern(op.name());
    let constants: Vec<Tensor> = inputs.iter().map(|t| t.detach()).collect();
    let output = no_grad(|| op.forward(&constants))?;
    let node = Custom {
        name,
        op,
        meta: output.meta(),
        first: Mutex::new(Some(output.value())),
        traced: log::is_on(),
    };
    apply(node, inputs)
}

/// A custom op from two closures; see [`CustomOp`] for what they must do. Apply it with
/// [`CustomFn::apply`].
///
/// ```
/// use chainrule::{Tensor, autograd};
/// let square = autograd::custom(
///     "square",
///     |x| x[0].try_mul(&x[0]),
///     |ctx, g| Ok(vec![Some(g.try_mul(&ctx.inputs()[0])?.try_mul(2.0)?)]),
/// );
/// let x = Tensor::from([3.0f32]).parameter();
/// square.apply(&[&x]).unwrap().backward();
/// assert_eq!(x.grad().unwrap().item(), 6.0);
/// ```
pub fn custom<F, B>(name: &str, forward: F, backward: B) -> CustomFn
where
    F: Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    B: Fn(&CustomContext, &Tensor) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
{
    let closures = Closures { name: name.to_string(), forward, backward };
    CustomFn(Arc::new(closures))
}

/// The context of a custom op, for code that calls its backward directly.
#[doc(hidden)]
pub fn context(inputs: &[Tensor], output: &Tensor, wanted: &[bool]) -> CustomContext {
    CustomContext { inputs: inputs.to_vec(), output: output.clone(), wanted: wanted.to_vec() }
}

/// The custom op that a node of the tape is a use of, if it is one.
#[doc(hidden)]
pub fn op_of(op: &dyn Op) -> Option<Arc<dyn CustomOp>> {
    (op as &dyn std::any::Any).downcast_ref::<Custom>().map(|c| c.op.clone())
}

/// A custom op made by [`custom`], to be applied as often as needed.
#[derive(Clone)]
pub struct CustomFn(Arc<dyn CustomOp>);

impl CustomFn {
    #[doc(hidden)]
    pub fn inner(&self) -> &dyn CustomOp {
        self.0.as_ref()
    }

    /// Applies the op.
    #[track_caller]
    pub fn apply(&self, inputs: &[&Tensor]) -> Result<Tensor> {
        run(self.0.clone(), inputs)
    }
}

struct Closures<F, B> {
    name: String,
    forward: F,
    backward: B,
}

impl<F, B> CustomOp for Closures<F, B>
where
    F: Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
    B: Fn(&CustomContext, &Tensor) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(&self, inputs: &[Tensor]) -> Result<Tensor> {
        (self.forward)(inputs)
    }

    fn backward(&self, ctx: &CustomContext, cotangent: &Tensor) -> Result<Vec<Option<Tensor>>> {
        (self.backward)(ctx, cotangent)
    }
}

/// One string for each name: errors and listings refer to ops by names that live as long as the
/// program.
fn intern(name: &str) -> &'static str {
    static NAMES: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut names = lock(&NAMES);
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.into());
    names.insert(kept);
    kept
}

/// Whether this is a custom op, whose forward rule follows from its backward.
#[doc(hidden)]
pub fn is_custom(op: &dyn Op) -> bool {
    op.is::<Custom>()
}

/// One use of a custom op.
struct Custom {
    name: &'static str,
    op: Arc<dyn CustomOp>,
    meta: Meta,
    /// The result, which was needed to know its shape; the kernel hands it out instead of computing
    /// it again.
    first: Mutex<Option<Arc<Value>>>,
    /// Whether it was made in a trace, which knows the result by the ops inside: it is handed out
    /// as it is.
    traced: bool,
}

impl Parameters for Custom {
    /// The user's op by its address: two ops of one name are two ops.
    fn parameters(&self) -> Param {
        let own = Arc::as_ptr(&self.op).addr().parameters();
        Param::Struct("Custom", vec![("name", self.name.parameters()), ("op", own)])
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Custom({})", self.name)
    }
}

impl Custom {
    fn backward(
        &self,
        at: &Saved<'_>,
        cotangent: &Tensor,
        wanted: Wanted,
    ) -> Result<Vec<Option<Tensor>>> {
        let inputs = at.inputs();
        let metas: Vec<Meta> = inputs.iter().map(Tensor::meta).collect();
        let ctx = CustomContext {
            wanted: (0..inputs.len()).map(|i| wanted.get(i)).collect(),
            inputs,
            output: at.output(),
        };
        let grads = self.op.backward(&ctx, cotangent)?;
        if grads.len() != metas.len() {
            let why = format!(
                "its backward gave {} gradients for {} inputs; give one for each, None where none is needed",
                grads.len(),
                metas.len()
            );
            return Err(Error::gradient(self.name, why));
        }
        for (i, (grad, meta)) in grads.iter().zip(&metas).enumerate() {
            if wanted.get(i) {
                self.check(i, grad.as_ref(), *meta)?;
            }
        }
        Ok(grads)
    }

    /// Checks that `grad` is a valid gradient for input `i`, which needs one.
    fn check(&self, i: usize, grad: Option<&Tensor>, meta: Meta) -> Result<()> {
        let why = match grad {
            Some(grad) if grad.meta() == meta => return Ok(()),
            Some(grad) => format!(
                "its backward gave a gradient of {} {} for input {i}, which is {} {}; they must be the same (sum over axes that \
                 were broadcast)",
                grad.dtype(),
                grad.shape(),
                meta.dtype,
                meta.shape
            ),
            None => format!(
                "its backward gave no gradient for input {i}, which needs one; if it is zero, give zeros"
            ),
        };
        Err(Error::gradient(self.name, why))
    }
}

impl Op for Custom {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, _: &[Meta]) -> Result<Meta> {
        Ok(self.meta)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn takes_stored(&self) -> bool {
        true
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::ALL
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let grads = self.backward(at, cotangent, wanted)?;
        // A gradient that depends on the cotangent must be recorded as such, or derivatives of
        // higher order would silently miss this branch.
        let cut = |g: &Tensor| !g.requires_grad() && !is_zero(g);
        if at.is_linked() && cotangent.requires_grad() {
            let mut needed = grads.iter().enumerate().filter(|(i, _)| wanted.get(*i));
            if let Some((i, _)) = needed.find(|(_, g)| g.as_ref().is_some_and(cut)) {
                let why = format!(
                    "the gradient of input {i} is cut off from the tape, so it cannot be differentiated again; write its backward in \
                     tensor operations on the cotangent"
                );
                return Err(Error::gradient(self.name, why));
            }
        }
        Ok(grads.into())
    }

    /// The backward is linear in its cotangent `u`: the gradient of `<J^T u, t>` with respect to
    /// `u` is `J t`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let _guard = Mode::get().without(Mode::NO_GRAD).enter();
        let output = at.output_meta();
        let probe = probe(output)?;
        let mut wanted = Wanted::NONE;
        for (i, _) in tangents.iter().enumerate().filter(|(_, t)| t.is_some()) {
            wanted = wanted.with(i);
        }
        let grads = self.backward(at, &probe, wanted)?;
        let pairs = grads.iter().zip(tangents);
        let pairs: Vec<(&Tensor, Tensor)> =
            pairs.filter_map(|(g, t)| Some((g.as_ref()?, t.clone()?))).collect();
        let mut linked = pairs.clone();
        linked.retain(|(g, _)| g.requires_grad());
        let walk = Walk {
            create_graph: at.is_linked(),
            targets: Some(std::slice::from_ref(&probe)),
            ..Walk::default()
        };
        let found = walk.run(&linked)?.remove(0);
        let tangent = found.unwrap_or_else(|| probe.zeros_like());
        self.check_tangent(&pairs, &probe, &tangent)?;
        Ok(tangent)
    }
}

impl Custom {
    /// `<J t, u>` must be `<J^T u, t>`; it is not if the backward, or a part of it, is hidden from
    /// the tape or not linear.
    fn check_tangent(&self, pairs: &[(&Tensor, Tensor)], u: &Tensor, jt: &Tensor) -> Result<()> {
        let (forward, size) = dot(jt, u);
        let (mut reverse, mut scale) = (0.0, size);
        for (g, t) in pairs {
            let (product, size) = dot(g, t);
            reverse += product;
            scale += size;
        }
        let tolerance = if jt.dtype() == crate::DType::F64 { 1e-9 } else { 1e-3 };
        if (forward - reverse).abs() > tolerance * scale {
            let why = "it has no forward rule of its own, and none follows from its backward, which is not linear in the cotangent or leaves the \
                       tape: write it in tensor operations on the cotangent";
            return Err(Error::gradient(self.name, why));
        }
        Ok(())
    }
}

/// The dot product, and the sum of the magnitudes of its terms.
fn dot(a: &Tensor, b: &Tensor) -> (f64, f64) {
    let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
    let terms = a.iter().zip(&b).map(|(x, y)| x * y);
    terms.fold((0.0, 0.0), |(sum, size), p| (sum + p, size + p.abs()))
}

/// A leaf without a pattern that a rule might annihilate by chance: the fractional parts of
/// multiples of the golden ratio.
fn probe(meta: Meta) -> Result<Tensor> {
    let elements: Vec<f64> = (1..=meta.shape.numel())
        .map(|i| 0.25 + (i as f64 * 0.618_033_988_749_894_9).fract())
        .collect();
    let flat = Tensor::try_from_slice(&elements, meta.shape)?;
    flat.try_to_dtype(meta.dtype)?.try_parameter()
}

fn is_zero(t: &Tensor) -> bool {
    t.to_f64_vec().iter().all(|&x| x == 0.0)
}

impl WholeKernel for Custom {
    fn run(&self, inputs: &[Arc<Value>], _: Meta) -> Result<Outcome> {
        let value = match lock(&self.first).take() {
            Some(value) => value,
            None => {
                let constant = |v: &Arc<Value>| {
                    Tensor::from_parts(v.clone(), crate::tensor::node::Source::None)
                };
                let inputs: Vec<Tensor> = inputs.iter().map(constant).collect();
                no_grad(|| self.op.forward(&inputs))?.value()
            }
        };
        if self.traced {
            return Ok(Outcome { value, extra: SmallVec::new() });
        }
        Ok(whole(&value).into())
    }
}

/// A value of its own for the same elements.
pub(super) fn whole(value: &Arc<Value>) -> Value {
    let Layout { offset, strides } = value.layout();
    Value::view(value, *value.shape(), Layout { offset, strides })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::{GradOptions, grad, grad_with, hessian, hvp, jvp};

    /// `a * tanh(b)`, with a backward in tensor operations.
    fn gate() -> CustomFn {
        custom(
            "gate",
            |x| x[0].try_mul(&x[1].try_tanh()?),
            |ctx, g| {
                let (a, t) = (&ctx.inputs()[0], ctx.inputs()[1].try_tanh()?);
                let slope = 1.0 - &t * &t;
                Ok(vec![Some(g * &t), Some(g * a * slope)])
            },
        )
    }

    fn inputs() -> (Tensor, Tensor) {
        let a = Tensor::from([0.5f64, -2.0, 3.0]);
        let b = Tensor::from([0.25f64, 1.0, -0.5]);
        (a, b)
    }

    fn assert_close(a: &Tensor, b: &Tensor) {
        assert_eq!(a.shape(), b.shape());
        for (x, y) in a.to_f64_vec().into_iter().zip(b.to_f64_vec()) {
            assert!((x - y).abs() <= 1e-12 * (1.0 + y.abs()), "{x} {y}");
        }
    }

    #[test]
    fn gradients_of_all_orders_and_forward_mode() {
        let (a, b) = inputs();
        let (pa, pb) = (a.parameter(), b.parameter());
        let ours = gate().apply(&[&pa, &pb]).unwrap();
        assert_eq!(ours.op_name(), Some("gate"));
        let plain = &pa * pb.tanh();
        assert_eq!(ours.to_vec::<f64>(), plain.to_vec::<f64>());
        let ours = grad(&ours.sum_all(), &[&pa, &pb]).unwrap();
        let plain = grad(&plain.sum_all(), &[&pa, &pb]).unwrap();
        for (x, y) in ours.iter().zip(&plain) {
            assert_close(x.as_ref().unwrap(), y.as_ref().unwrap());
        }
        let f = |b: &Tensor| gate().apply(&[&(b * b), b]).unwrap().sum_all();
        let g = |b: &Tensor| (b * b * b.tanh()).sum_all();
        assert_close(&hessian(f, &b).unwrap(), &hessian(g, &b).unwrap());
        assert_close(&hvp(f, &b, &a).unwrap(), &hvp(g, &b, &a).unwrap());
        let both = [a.clone(), b.clone()];
        let tangents = [Tensor::from([1.0f64, 2.0, 3.0]), Tensor::from([-1.0f64, 0.5, 0.0])];
        let (_, ours) = jvp(|x| gate().apply(&[&x[0], &x[1]]).unwrap(), &both, &tangents).unwrap();
        let (_, plain) = jvp(|x| &x[0] * x[1].tanh(), &both, &tangents).unwrap();
        assert_close(&ours, &plain);
    }

    #[test]
    fn forward_is_not_recorded_and_constants_stay_so() {
        let (a, b) = inputs();
        let y = gate().apply(&[&a, &b]).unwrap();
        assert!(!y.requires_grad());
        let seen = custom(
            "seen",
            |x| {
                assert!(!x[0].requires_grad() && !crate::is_grad_enabled());
                Ok(x[0].clone())
            },
            |ctx, g| {
                assert!(ctx.needs(0) && !ctx.needs(1) && !ctx.needs(2));
                Ok(vec![Some(g.clone()), None])
            },
        );
        let p = a.parameter();
        seen.apply(&[&p, &b]).unwrap().sum_all().backward();
        assert_eq!(p.grad().unwrap().to_vec::<f64>(), [1.0; 3]);
    }

    type Rule = fn(&CustomContext, &Tensor) -> Result<Vec<Option<Tensor>>>;

    fn failure(rule: Rule) -> String {
        let (a, b) = inputs();
        let op = custom("mine", |x| x[0].try_mul(&x[1]), rule);
        let y = op.apply(&[&a.parameter(), &b.parameter()]).unwrap();
        y.sum_all().try_backward().unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_op_and_its_line() {
        let number = failure(|_, g| Ok(vec![Some(g.clone())]));
        assert!(number.starts_with("mine: its backward gave 1 gradients for 2 inputs"), "{number}");
        assert!(number.contains("custom.rs:"), "{number}");
        let shape = failure(|_, g| Ok(vec![Some(g.sum_all()), Some(g.clone())]));
        assert!(shape.starts_with(
            "mine: its backward gave a gradient of f64 [] for input 0, which is f64 [3]"
        ));
        let stretched =
            failure(|_, g| Ok(vec![Some(Tensor::try_stack(&[g, g], 0)?), Some(g.clone())]));
        assert!(stretched.contains("sum over axes that were broadcast"), "{stretched}");
        let missing = failure(|_, g| Ok(vec![Some(g.clone()), None]));
        assert!(
            missing.starts_with("mine: its backward gave no gradient for input 1"),
            "{missing}"
        );
    }

    #[test]
    fn what_is_not_finite_is_passed_on() {
        let op = custom("wild", |x| Ok(x[0].clone()), |_, g| Ok(vec![Some(g * f64::INFINITY)]));
        let x = Tensor::from([1.0f64]).parameter();
        op.apply(&[&x]).unwrap().sum_all().backward();
        assert_eq!(x.grad().unwrap().item(), f64::INFINITY);
    }

    /// Doubles, by a backward that leaves the tape.
    fn hidden() -> CustomFn {
        custom(
            "hidden",
            |x| x[0].try_mul(2.0),
            |_, g| Ok(vec![Some(Tensor::from(g.to_vec::<f64>()) * 2.0)]),
        )
    }

    #[test]
    fn a_backward_off_the_tape_is_an_error_where_it_matters() {
        let (a, b) = inputs();
        let x = a.parameter();
        hidden().apply(&[&x]).unwrap().sum_all().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [2.0; 3]);
        let f = |x: &[Tensor]| hidden().apply(&[&x[0]]).unwrap();
        let error = jvp(f, std::slice::from_ref(&a), &[b]).unwrap_err().to_string();
        assert!(error.starts_with("hidden: it has no forward rule"), "{error}");
        let y = hidden().apply(&[&(&x * &x)]).unwrap().exp().sum_all();
        let error = grad_with(&y, &[&x], &GradOptions::create_graph()).unwrap_err().to_string();
        assert!(error.starts_with("hidden: the gradient of input 0 is cut off"), "{error}");
        // A half of the rule on the tape and a half off it.
        let half = custom(
            "half",
            |x| x[0].try_mul(2.0),
            |_, g| Ok(vec![Some(g + Tensor::from(g.to_vec::<f64>()))]),
        );
        let f = |x: &[Tensor]| half.apply(&[&x[0]]).unwrap();
        let only = std::slice::from_ref(&a);
        let error = jvp(f, only, only).unwrap_err().to_string();
        assert!(error.starts_with("half: it has no forward rule"), "{error}");
    }

    #[test]
    fn names_may_be_made_at_run_time() {
        let name = format!("op {}", 7);
        let op = custom(&name, |x| Ok(x[0].clone()), |_, g| Ok(vec![Some(g.clone())]));
        let y = op.apply(&[&Tensor::scalar(1.0f32).parameter()]).unwrap();
        assert_eq!(y.op_name(), Some("op 7"));
        assert!(std::ptr::eq(intern("op 7"), intern(&name)));
    }
}
