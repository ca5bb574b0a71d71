//! Running one op: shapes first, then the kernel, then the record of it.

use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use super::map::map;
use super::node::{Mode, Node, Source};
use super::op::{Array, Extent, Extra, Kernel, Op, Outcome, Output, ReduceKernel};
use super::place::of_user;
use super::value::{Layout, Meta, Value};
use super::{Tensor, log, watch, widen};
use crate::dtype::DType;
use crate::error::Result;
use crate::shape::{Axes, MAX_RANK, Shape};

pub(crate) type Values = SmallVec<[Arc<Value>; 2]>;

/// Runs `op` on `inputs` and records it if a gradient can flow.
#[track_caller]
pub fn apply(op: impl Op, inputs: &[&Tensor]) -> Result<Tensor> {
    apply_offered(&mut Some(op), inputs)
}

/// As [`apply`], with the extra results of the kernel.
#[track_caller]
pub fn apply_extra(op: impl Op, inputs: &[&Tensor]) -> Result<(Tensor, Extra)> {
    run_offered(&mut Some(op), inputs)
}

/// The result of an op for these values, computed again; nothing is recorded.
pub(crate) fn replay(op: &dyn Op, values: &Values) -> Result<Arc<Value>> {
    let _guard = Mode::get().without(Mode::TRACE).enter();
    Ok(compute(op, values)?.value)
}

/// An op that is about to run and may be kept. Only its methods are compiled for each op; the code
/// around them is independent of op types.
pub(crate) trait Offered {
    fn op(&self) -> &dyn Op;

    /// The op for the tape or for a trace, once.
    fn keep(&mut self) -> Arc<dyn Op>;
}

impl<O: Op> Offered for Option<O> {
    fn op(&self) -> &dyn Op {
        self.as_ref().expect("an op that was not kept yet")
    }

    fn keep(&mut self) -> Arc<dyn Op> {
        Arc::new(self.take().expect("an op that was not kept yet"))
    }
}

/// An op that is already on the tape.
impl Offered for Arc<dyn Op> {
    fn op(&self) -> &dyn Op {
        &**self
    }

    fn keep(&mut self) -> Arc<dyn Op> {
        self.clone()
    }
}

/// Runs an op of the tape once more, on other inputs, and records that as [`apply`] does.
#[track_caller]
pub fn apply_again(op: &Arc<dyn Op>, inputs: &[&Tensor]) -> Result<Tensor> {
    apply_offered(&mut op.clone(), inputs)
}

/// As [`apply`].
#[inline(never)]
#[track_caller]
pub(crate) fn apply_offered(op: &mut dyn Offered, inputs: &[&Tensor]) -> Result<Tensor> {
    run_offered(op, inputs).map(|(out, _)| out)
}

/// As [`apply_extra`].
#[track_caller]
fn run_offered(op: &mut dyn Offered, inputs: &[&Tensor]) -> Result<(Tensor, Extra)> {
    let location = of_user(Location::caller());
    let ran = run(op.op(), inputs, location)?;
    if ran.flow == Flow::Constant {
        return Ok(ran.constant());
    }
    Ok(ran.recorded(op.keep(), inputs, location))
}

/// An op that ran: its inputs, its outcome, and whether that goes on the tape.
struct OpRun {
    values: Values,
    outcome: Outcome,
    flow: Flow,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// Nothing about its making needs to be recorded.
    Constant,
    /// A gradient can flow: it goes on the tape.
    Gradient,
    /// It goes into the log of a trace.
    Traced,
}

impl OpRun {
    fn constant(self) -> (Tensor, Extra) {
        let Outcome { value, extra } = self.outcome;
        (Tensor::from_parts(value, Source::None), extra)
    }

    /// Puts the op on the tape if a gradient can flow, and into the log of a trace if there is one.
    #[inline(never)]
    fn recorded(
        self,
        op: Arc<dyn Op>,
        inputs: &[&Tensor],
        location: &'static Location<'static>,
    ) -> (Tensor, Extra) {
        let traced = self.flow == Flow::Traced;
        if traced {
            log::applied(op.clone(), &self.values, &self.outcome, location);
            if !flows(&*op, inputs, &self.outcome.value) {
                return self.constant();
            }
        }
        let Outcome { value, extra } = self.outcome;
        let node = Node::record(op, inputs, &self.values, &value, &extra, location);
        if traced {
            log::numbered(node.number, &value);
        }
        (Tensor::from_parts(value, Source::Node(node)), extra)
    }
}

/// The result, and whether it is recorded.
#[inline(never)]
fn run(op: &dyn Op, inputs: &[&Tensor], location: &'static Location<'static>) -> Result<OpRun> {
    // Loops that push, here and below: collecting into a `SmallVec` is a call that is not inlined,
    // and every op pays for it.
    let mut values = Values::new();
    for t in inputs {
        t.catch_up()?;
        values.push(t.value());
    }
    let mode = Mode::get();
    if mode.has(Mode::TRACE) {
        // Ops called by a kernel are internal to it.
        let _guard = mode.without(Mode::TRACE).enter();
        let outcome = compute(op, &values).map_err(|e| e.at(location))?;
        return Ok(OpRun { values, outcome, flow: Flow::Traced });
    }
    let outcome = compute(op, &values).map_err(|e| e.at(location))?;
    let flow = match flows(op, inputs, &outcome.value) {
        true => Flow::Gradient,
        false => Flow::Constant,
    };
    if mode.has(Mode::WATCHED) {
        let outputs = std::iter::once(&outcome.value).chain(&outcome.extra).cloned();
        watch::note(op, inputs, &values, outputs, matches!(flow, Flow::Gradient), location);
    }
    Ok(OpRun { values, outcome, flow })
}

/// Whether a gradient can flow through a result.
#[inline]
fn flows(op: &dyn Op, inputs: &[&Tensor], result: &Value) -> bool {
    op.is_differentiable()
        && !Mode::get().has(Mode::NO_GRAD)
        && result.dtype().is_float()
        && inputs.iter().any(|t| t.requires_grad())
}

/// The result of `op`, unrecorded.
pub fn compute(op: &dyn Op, values: &[Arc<Value>]) -> Result<Outcome> {
    let mut metas: SmallVec<[Meta; 3]> = SmallVec::new();
    for v in values {
        metas.push(v.meta);
    }
    let out = op.infer(&metas)?;
    compute_as(op, values, out)
}

/// The result of `op`, which is known to be of this shape and dtype.
pub fn compute_as(op: &dyn Op, values: &[Arc<Value>], out: Meta) -> Result<Outcome> {
    if widen::concerns(values, out) {
        return widen::compute(op, values, out);
    }
    compute_widened(op, values, out)
}

/// As [`compute_as`], of values in dtypes that kernels compute with (or of any, if the op is a
/// view).
pub(super) fn compute_widened(op: &dyn Op, values: &[Arc<Value>], out: Meta) -> Result<Outcome> {
    match op.kernel() {
        Kernel::Map(kernel) => map(op.name(), kernel, values, out).map(Outcome::from),
        Kernel::Reduce(axes, kernel) => {
            reduce(op.name(), axes, kernel, &values[0], out).map(Outcome::from)
        }
        Kernel::View(kernel) => {
            let input = &values[0];
            if let Some(layout) = kernel.view(input.shape(), &input.layout(), &out.shape) {
                return Ok(Value::view(input, out.shape, layout).into());
            }
            let copy = input.copied()?.share();
            let layout = kernel.view(copy.shape(), &copy.layout(), &out.shape);
            let layout = layout.expect("a row-major array can be viewed");
            Ok(Value::view(&copy, out.shape, layout).into())
        }
        Kernel::Whole(kernel) => kernel.run(values, out),
    }
}

fn reduce(
    op: &'static str,
    axes: Axes,
    kernel: &dyn ReduceKernel,
    x: &Arc<Value>,
    meta: Meta,
) -> Result<Value> {
    let (x, extent) = adjacent(x, axes)?;
    let mut out = Value::uninit(op, meta)?;
    kernel.reduce(array(&x), extent, output(&mut out));
    Ok(out)
}

/// The array with the reduced axes next to each other, as `[outer, count, inner]`: moved to the end
/// if they are apart.
pub(crate) fn adjacent(x: &Arc<Value>, axes: Axes) -> Result<(Arc<Value>, Extent)> {
    let shape = *x.shape();
    let matters = |a: &usize| shape[*a] != 1;
    let Some(first) = axes.iter().find(matters) else {
        // If only axes of size 1 go, every element stands for itself.
        return Ok((x.contiguous()?, Extent { outer: shape.numel(), count: 1, inner: 1 }));
    };
    let last = axes.iter().rfind(matters).unwrap_or(first);
    let count = axes.count(&shape);
    if (first..=last).all(|a| axes.contains(a) || shape[a] == 1) {
        let outer = shape[..first].iter().product();
        let inner = shape[last + 1..].iter().product();
        return Ok((x.contiguous()?, Extent { outer, count, inner }));
    }
    let kept = (0..shape.rank()).filter(|&a| !axes.contains(a));
    let order: SmallVec<[usize; MAX_RANK]> = kept.chain(axes.iter()).collect();
    let from = x.layout();
    let mut layout = Layout { offset: from.offset, strides: [0; MAX_RANK] };
    let mut dims: SmallVec<[usize; MAX_RANK]> = SmallVec::new();
    for (i, &a) in order.iter().enumerate() {
        layout.strides[i] = from.strides[a];
        dims.push(shape[a]);
    }
    let moved = Value::view(x, Shape::new(&dims), layout).share().contiguous()?;
    let kept = (0..shape.rank()).filter(|&a| !axes.contains(a));
    let outer = kept.map(|a| shape[a]).product();
    Ok((moved, Extent { outer, count, inner: 1 }))
}

/// All elements of a contiguous value.
#[inline]
pub fn array(value: &Value) -> Array<'_> {
    match value.dtype() {
        DType::F32 => Array::F32(value.elements()),
        DType::F64 => Array::F64(value.elements()),
        DType::I64 => Array::I64(value.elements()),
        DType::Bool => Array::Bool(value.elements()),
        other => unreachable!("{other} is widened before a kernel sees it"),
    }
}

/// All elements of a fresh value, to write.
#[inline]
pub fn output(value: &mut Value) -> Output<'_> {
    match value.dtype() {
        DType::F32 => Output::F32(value.elements_mut()),
        DType::F64 => Output::F64(value.elements_mut()),
        DType::I64 => Output::I64(value.elements_mut()),
        DType::Bool => Output::Bool(value.elements_mut()),
        other => unreachable!("{other} is widened before a kernel sees it"),
    }
}
