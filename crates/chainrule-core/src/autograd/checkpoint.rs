//! Checkpoints trade time for memory: the intermediates of a function are not kept for backward but
//! computed again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use super::custom::whole;
use super::functional::push_forward;
use super::walk::{Walk, reachable};
use crate::error::{Error, Result};
use crate::param::{Param, Parameters};
use crate::shape::MAX_RANK;
use crate::tensor::node::{Leaf, Mode, Source, lock, next_number};
use crate::tensor::op::{Grads, Kernel, Op, Outcome, Saved, Saves, Wanted, WholeKernel};
use crate::tensor::run::apply;
use crate::tensor::value::{Layout, Meta, Value};
use crate::tensor::{Tensor, log, no_grad};

type Function = dyn Fn(&[Tensor]) -> Result<Tensor> + Send + Sync;

/// `f(inputs)`, for which the tape keeps only the inputs: backward runs `f` again and walks through
/// that.
///
/// Parameters and other recorded tensors that `f` captures get their gradients too. `f` must
/// compute the same both times: random numbers must come from a generator that it makes or resets
/// itself, and the parameters that it captures must keep their values until backward (else backward
/// is an error). Gradients are those without the checkpoint to the last bit, but for the order of
/// summation of a tensor that is used several times inside and also outside.
///
/// Errors as `f` does.
///
/// ```
/// use chainrule::{Tensor, autograd::checkpoint};
/// let x = Tensor::from([0.5f64, -1.0]).parameter();
/// let w = Tensor::from([2.0f64, 3.0]).parameter();
/// let captured = w.clone();
/// let y = checkpoint(move |x| Ok((&x[0] * &captured).tanh().exp()), &[&x]).unwrap();
/// y.sum_all().backward();
/// assert!(x.grad().is_some() && w.grad().is_some());
/// ```
#[track_caller]
pub fn checkpoint<F>(f: F, inputs: &[&Tensor]) -> Result<Tensor>
where
    F: Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
{
    let start = next_number();
    let given = fresh(inputs.iter().map(|t| t.value()), |i| inputs[i].requires_grad())?;
    let output = {
        let _guard = Mode::get().with(Mode::SAVE_NOTHING).without(Mode::RECORD_ALL).enter();
        f(&given)?
    };
    let captured = captured(&output, start);
    let op = Checkpoint {
        f: Arc::new(f),
        given: inputs.len(),
        captured: captured.iter().map(|t| t.source().clone()).collect(),
        meta: output.meta(),
        first: Mutex::new(Some(output.value())),
        traced: log::is_on(),
        bf16: Mode::get().has(Mode::BF16),
    };
    // The recording has served its purpose: to find the captured tensors.
    drop((given, output));
    let all: Vec<&Tensor> = inputs.iter().copied().chain(&captured).collect();
    apply(op, &all)
}

/// New leaves with these values; those that `wanted` names require gradients.
fn fresh(
    values: impl Iterator<Item = Arc<Value>>,
    wanted: impl Fn(usize) -> bool,
) -> Result<Vec<Tensor>> {
    let leaf = |(i, value)| {
        let constant = Tensor::from_parts(value, Source::None);
        if wanted(i) { constant.try_parameter() } else { Ok(constant) }
    };
    values.enumerate().map(leaf).collect()
}

/// The recorded tensors older than `start` that `output` was computed from, directly or by newer
/// ones: what the function captured.
fn captured(output: &Tensor, start: u64) -> Vec<Tensor> {
    let nodes = reachable([output.source()].into_iter(), start);
    let sources = nodes.iter().flat_map(|node| node.inputs.iter());
    let mut found = BTreeMap::new();
    for source in sources.chain([output.source()]) {
        if source.requires_grad() && source.number() < start {
            found.entry(source.number()).or_insert_with(|| stand_in(source));
        }
    }
    found.into_values().collect()
}

/// A tensor with this source. A leaf brings its value. The value of an intermediate is known only
/// to the function, so a zero stands for its elements.
fn stand_in(source: &Source) -> Tensor {
    let value = match source {
        Source::Leaf(leaf) => leaf.value(),
        Source::Node(node) => {
            let zero = match node.meta.dtype {
                crate::DType::F64 => Value::scalar(0.0f64),
                _ => Value::scalar(0.0f32),
            };
            let layout = Layout { offset: 0, strides: [0; MAX_RANK] };
            Arc::new(Value::view(&Arc::new(zero), node.meta.shape, layout))
        }
        Source::None => unreachable!("only what needs a gradient is captured"),
    };
    Tensor::from_parts(value, source.clone())
}

/// One checkpoint on the tape. Its inputs are those given, then what the function captured.
struct Checkpoint {
    f: Arc<Function>,
    given: usize,
    captured: Vec<Source>,
    meta: Meta,
    /// The result of the first run, which the kernel hands out.
    first: Mutex<Option<Arc<Value>>>,
    /// Whether it was made in a trace, which knows the result by the ops inside: it is handed out
    /// as it is.
    traced: bool,
    /// Whether its products rounded their operands.
    bf16: bool,
}

impl Parameters for Checkpoint {
    /// The address of the function, and how many inputs it was given.
    fn parameters(&self) -> Param {
        let function = Arc::as_ptr(&self.f).addr().parameters();
        Param::Struct(
            "Checkpoint",
            vec![("function", function), ("inputs", self.given.parameters())],
        )
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checkpoint({} inputs)", self.given)
    }
}

/// The inside of a checkpoint, computed again and recorded.
struct Again {
    /// All that is recorded from here on belongs to it.
    start: u64,
    output: Tensor,
    /// Inputs to differentiate with respect to: the given ones, then the captured ones.
    inputs: Vec<Tensor>,
}

impl Checkpoint {
    fn again(&self, at: &Saved<'_>, mode: Mode) -> Result<Again> {
        self.check_unchanged(at)?;
        let _guard = mode
            .without(Mode::NO_GRAD)
            .without(Mode::SAVE_NOTHING)
            .without(Mode::RECORD_ALL)
            .enter();
        let given = (0..self.given).map(|i| at.input(i));
        let given: Vec<Tensor> = if at.is_linked() {
            // Aliases distinguish the derivative with respect to an input from that with respect to
            // the tensor it was computed from.
            given.map(|t| t.alias()).collect::<Result<_>>()?
        } else {
            let floats = |i: usize| at.input(i).dtype().is_float();
            fresh(given.map(|t| t.value()), floats)?
        };
        // Numbered after the aliases: a walk that stops at this number stops at them, and does not
        // continue to the tensors they are aliases of.
        let start = next_number();
        let output = (self.f)(&given)?;
        if output.meta() != self.meta {
            let why = "the function gave another shape or dtype when it was run again; it must compute the same both times";
            return Err(Error::shape(self.name(), &[&self.meta.shape, &output.shape()], why));
        }
        let captured = self.captured.iter().map(stand_in);
        Ok(Again { start, output, inputs: given.into_iter().chain(captured).collect() })
    }

    /// An error if a captured leaf was given a new value in the meantime.
    fn check_unchanged(&self, at: &Saved<'_>) -> Result<()> {
        for (i, source) in self.captured.iter().enumerate() {
            if let Source::Leaf(leaf) = source
                && !Arc::ptr_eq(&at.input(self.given + i).value(), &leaf.value())
            {
                return Err(changed(self.name(), leaf));
            }
        }
        Ok(())
    }
}

fn changed(op: &'static str, leaf: &Leaf) -> Error {
    let notes = lock(&leaf.notes);
    let name = notes.as_ref().and_then(|notes| notes.name.clone());
    let name = name.map_or_else(String::new, |name| format!(" \"{name}\""));
    let why = format!(
        "the parameter{name} {} {}, which the function captured, was given a new value before backward; step the optimizer after it",
        leaf.meta.dtype, leaf.meta.shape
    );
    Error::gradient(op, why)
}

impl Op for Checkpoint {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn infer(&self, _: &[Meta]) -> Result<Meta> {
        Ok(self.meta)
    }

    fn takes_stored(&self) -> bool {
        true
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let Again { start, output, inputs } = self.again(at, Mode::get().rounding(self.bf16))?;
        let mut grads: Grads = inputs.iter().map(|_| None).collect();
        let asked: Vec<usize> =
            (0..inputs.len()).filter(|&i| wanted.get(i) && inputs[i].requires_grad()).collect();
        if !output.requires_grad() {
            return Ok(grads);
        }
        let targets: Vec<Tensor> = asked.iter().map(|&i| inputs[i].clone()).collect();
        let walk = Walk {
            create_graph: at.is_linked(),
            targets: Some(&targets),
            floor: start,
            ..Walk::default()
        };
        let found = walk.run(&[(&output, cotangent.clone())])?;
        for (i, grad) in asked.into_iter().zip(found) {
            grads[i] = grad;
        }
        Ok(grads)
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let again = self.again(at, Mode::get().with(Mode::SAVE_ALL).rounding(self.bf16))?;
        let moving = again.inputs.iter().zip(tangents);
        let (inputs, tangents): (Vec<Tensor>, Vec<Tensor>) =
            moving.filter_map(|(x, t)| Some((x.clone(), t.clone()?))).unzip();
        push_forward(&again.output, &inputs, &tangents, at.is_linked())
    }
}

impl WholeKernel for Checkpoint {
    fn run(&self, inputs: &[Arc<Value>], _: Meta) -> Result<Outcome> {
        let value = match lock(&self.first).take() {
            Some(value) => value,
            None => {
                let given = fresh(inputs[..self.given].iter().cloned(), |_| false)?;
                no_grad(|| (self.f)(&given))?.value()
            }
        };
        if self.traced {
            return Ok(Outcome { value, extra: SmallVec::new() });
        }
        Ok(whole(&value).into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::autograd::{GradOptions, grad, grad_with, hvp, jvp, value_and_grad};

    fn numbers(n: usize, shape: impl crate::IntoShape) -> Tensor {
        let elements: Vec<f32> = (0..n).map(|i| ((i * 37 % 19) as f32 - 9.0) / 7.0).collect();
        Tensor::from_slice(&elements, shape)
    }

    fn block(x: &Tensor, w: &Tensor, b: &Tensor) -> Result<Tensor> {
        let h = x.try_matmul(w)?.try_add(b)?.try_tanh()?;
        h.try_mul(&h)?.try_exp()
    }

    struct Net {
        x: Tensor,
        w: [Tensor; 2],
        b: [Tensor; 2],
    }

    impl Net {
        fn new() -> Net {
            let w = |_| numbers(25, [5, 5]).parameter();
            let b = |_| numbers(5, [5]).parameter();
            Net { x: numbers(15, [3, 5]).parameter(), w: [0, 1].map(w), b: [0, 1].map(b) }
        }

        fn loss(&self, checkpointed: bool) -> Tensor {
            let mut h = self.x.clone();
            for i in 0..2 {
                let (w, b) = (self.w[i].clone(), self.b[i].clone());
                h = match checkpointed {
                    true => checkpoint(move |x| block(&x[0], &w, &b), &[&h]).unwrap(),
                    false => block(&h, &w, &b).unwrap(),
                };
            }
            h.sum_all()
        }

        fn all(&self) -> [&Tensor; 5] {
            [&self.x, &self.w[0], &self.w[1], &self.b[0], &self.b[1]]
        }
    }

    fn bits(grads: Vec<Option<Tensor>>) -> Vec<Vec<u32>> {
        let of = |g: Option<Tensor>| g.unwrap().to_vec::<f32>();
        let grads = grads.into_iter().map(of);
        grads.map(|g| g.iter().map(|x| x.to_bits()).collect()).collect()
    }

    #[test]
    fn gradients_are_the_same_to_the_bit() {
        let net = Net::new();
        let plain = net.loss(false);
        let saved = net.loss(true);
        assert_eq!(plain.item().to_bits(), saved.item().to_bits());
        let expected = bits(grad(&plain, &net.all()).unwrap());
        assert_eq!(bits(grad(&saved, &net.all()).unwrap()), expected);
        saved.backward();
        assert_eq!(bits(net.all().map(Tensor::grad).to_vec()), expected);
        let error = saved.try_backward().unwrap_err().to_string();
        assert!(error.contains("freed by an earlier backward"), "{error}");
    }

    #[test]
    fn the_inside_is_not_kept() {
        let kept: Arc<Mutex<Vec<Weak<Value>>>> = Arc::default();
        let runs = Arc::new(AtomicUsize::new(0));
        let (seen, count) = (kept.clone(), runs.clone());
        let f = move |x: &[Tensor]| {
            count.fetch_add(1, Ordering::Relaxed);
            let h = x[0].try_tanh()?;
            lock(&seen).push(Arc::downgrade(&h.value()));
            h.try_mul(&h)
        };
        let alive = || lock(&kept).iter().filter(|v| v.upgrade().is_some()).count();
        let x = numbers(10, [10]).parameter();
        let y = f(std::slice::from_ref(&x)).unwrap();
        assert_eq!(alive(), 1);
        drop(y);
        assert_eq!(alive(), 0);
        let y = checkpoint(f, &[&x]).unwrap();
        assert_eq!((alive(), runs.load(Ordering::Relaxed)), (0, 2));
        y.sum_all().backward();
        assert_eq!((alive(), runs.load(Ordering::Relaxed)), (0, 3));
        assert!(x.grad().is_some());
    }

    #[test]
    fn captured_intermediates_pass_their_gradients_on_once() {
        // y = x * h + h with h = tanh(w) captured twice, w also captured, and used outside.
        let x = Tensor::from([0.5f64, -1.5]).parameter();
        let w = Tensor::from([0.3f64, 0.8]).parameter();
        let calls = Arc::new(AtomicUsize::new(0));
        let count = calls.clone();
        w.register_hook(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            None
        })
        .unwrap();
        let loss = |checkpointed: bool| {
            let h = w.tanh();
            let (h2, w2) = (h.clone(), w.clone());
            let f = move |x: &[Tensor]| Ok(&x[0] * &h2 * &w2 + &h2);
            let y = match checkpointed {
                true => checkpoint(f, &[&x]).unwrap(),
                false => f(std::slice::from_ref(&x)).unwrap(),
            };
            (y * &h).sum_all()
        };
        let of = |loss: &Tensor| {
            let grads = grad(loss, &[&x, &w]).unwrap();
            grads.into_iter().flat_map(|g| g.unwrap().to_vec::<f64>()).collect::<Vec<_>>()
        };
        let (plain, saved) = (of(&loss(false)), of(&loss(true)));
        for (a, b) in plain.iter().zip(&saved) {
            assert!((a - b).abs() <= 1e-15, "{a} {b}");
        }
        assert_eq!(calls.swap(0, Ordering::Relaxed), 2);
        loss(true).backward();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert!((w.grad().unwrap().to_vec::<f64>()[0] - plain[2]).abs() <= 1e-15);
    }

    #[test]
    fn higher_orders_and_forward_mode() {
        let x = Tensor::from([0.5f64, -1.5, 0.25]);
        let v = Tensor::from([1.0f64, 2.0, -1.0]);
        let plain = |x: &Tensor| (x.tanh() * x).exp().sum_all();
        // The function captures what it is differentiated with respect to, and is given it too.
        let saved = |x: &Tensor| {
            let captured = x.clone();
            checkpoint(move |x| Ok((x[0].tanh() * &captured).exp()), &[x]).unwrap().sum_all()
        };
        let close = |a: &Tensor, b: &Tensor| {
            for (a, b) in a.to_f64_vec().iter().zip(b.to_f64_vec()) {
                assert!((a - b).abs() <= 1e-12, "{a} {b}");
            }
        };
        close(&hvp(saved, &x, &v).unwrap(), &hvp(plain, &x, &v).unwrap());
        let inputs = std::slice::from_ref(&x);
        let (_, a) = jvp(|x| saved(&x[0]), inputs, std::slice::from_ref(&v)).unwrap();
        let (_, b) = jvp(|x| plain(&x[0]), inputs, std::slice::from_ref(&v)).unwrap();
        close(&a, &b);
        let third = |f: &dyn Fn(&Tensor) -> Tensor| {
            let x = x.parameter();
            let first =
                grad_with(&f(&x), &[&x], &GradOptions::create_graph()).unwrap().remove(0).unwrap();
            let second = grad_with(&(&first * &v).sum_all(), &[&x], &GradOptions::create_graph())
                .unwrap()
                .remove(0)
                .unwrap();
            grad(&(&second * &v).sum_all(), &[&x]).unwrap().remove(0).unwrap()
        };
        close(&third(&saved), &third(&plain));
    }

    #[test]
    fn inside_functional_derivatives_and_other_checkpoints() {
        let w = Tensor::from([0.3f64, 0.8]);
        let f = |p: &[Tensor]| {
            let w = p[0].clone();
            let outer = move |x: &[Tensor]| {
                let w = w.clone();
                let inner = checkpoint(move |y| Ok(y[0].tanh() * &w), &[&(&x[0] * 2.0)])?;
                inner.try_exp()
            };
            checkpoint(outer, &[&p[0]]).unwrap().sum_all()
        };
        let g = |p: &[Tensor]| ((&p[0] * 2.0).tanh() * &p[0]).exp().sum_all();
        let (a, da) = value_and_grad(f, std::slice::from_ref(&w)).unwrap();
        let (b, db) = value_and_grad(g, std::slice::from_ref(&w)).unwrap();
        assert_eq!(a.item(), b.item());
        for (a, b) in da[0].to_f64_vec().iter().zip(db[0].to_f64_vec()) {
            assert!((a - b).abs() <= 1e-15, "{a} {b}");
        }
    }

    #[test]
    fn edges() {
        let x = Tensor::from([1.0f64]).parameter();
        // A result that is captured as it is, one that depends on nothing, and no recording at all.
        let captured = x.clone();
        let y = checkpoint(move |_| Ok(captured.clone()), &[]).unwrap();
        y.backward();
        assert_eq!(x.grad().unwrap().item(), 1.0);
        let y = checkpoint(|_| Ok(Tensor::scalar(2.0f64)), &[]).unwrap();
        assert!(!y.requires_grad());
        let y = no_grad(|| checkpoint(|x| x[0].try_exp(), &[&x]).unwrap());
        assert!(!y.requires_grad());
        // Integers may go in.
        let n = Tensor::from([2i64]);
        let y = checkpoint(|x| x[0].try_mul(&x[1]), &[&x, &n]).unwrap();
        x.zero_grad();
        y.backward();
        assert_eq!(x.grad().unwrap().item(), 2.0);
    }

    #[test]
    fn what_must_not_change() {
        let w = Tensor::from([1.0f64]).parameter().named("w");
        let x = Tensor::from([3.0f64]).parameter();
        let captured = w.clone();
        let y = checkpoint(move |x| x[0].try_mul(&captured), &[&x]).unwrap();
        w.set(&Tensor::from([5.0f64]));
        let error = y.try_backward().unwrap_err().to_string();
        assert!(error.starts_with("checkpoint: the parameter \"w\" f64 [1], which the function captured, was given a new value"));
        let runs = AtomicUsize::new(0);
        let y = checkpoint(
            move |x| match runs.fetch_add(1, Ordering::Relaxed) {
                0 => x[0].try_exp(),
                _ => x[0].try_sum_all(),
            },
            &[&x],
        )
        .unwrap();
        let error = y.try_backward().unwrap_err().to_string();
        assert!(error.contains("another shape or dtype when it was run again"), "{error}");
    }
}
