//! Running one op: shapes first, then the kernel, then the record of it.

use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use super::node::{Mode, Node, Source};
use super::op::{
    Array, Extent, Extra, Input, Kernel, MapKernel, Op, Outcome, Output, ReduceKernel,
};
use super::value::{Layout, Meta, Value};
use super::{Tensor, log, watch};
use crate::dtype::{DType, Stored};
use crate::error::Result;
use crate::kernels::map::{PIECE, Rows, SHARED};
use crate::kernels::threads;
use crate::shape::{Axes, MAX_RANK, Shape, Strides};

pub(crate) type Values = SmallVec<[Arc<Value>; 2]>;

/// Runs `op` on `inputs` and records it if a gradient can flow.
#[inline]
#[track_caller]
pub(crate) fn apply(op: impl Op, inputs: &[&Tensor]) -> Result<Tensor> {
    apply_extra(op, inputs).map(|(out, _)| out)
}

/// As [`apply`], with what the kernel gives beside the result.
#[track_caller]
pub(crate) fn apply_extra(op: impl Op, inputs: &[&Tensor]) -> Result<(Tensor, Extra)> {
    let location = Location::caller();
    let ran = run(&op, inputs, location)?;
    // All that is compiled for each op is where the op is kept.
    match ran.flow {
        Flow::Constant => Ok(ran.constant()),
        Flow::Gradient => Ok(ran.on_tape(Box::new(op), inputs, location)),
        Flow::Traced => Ok(ran.traced(Arc::new(op), inputs, location)),
    }
}

/// An op that ran: its inputs, what it gave, and what becomes of that.
struct Ran {
    values: Values,
    outcome: Outcome,
    flow: Flow,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// Nothing needs to be known of how it was made.
    Constant,
    /// A gradient can flow: it goes on the tape.
    Gradient,
    /// It goes into the log of a trace.
    Traced,
}

impl Ran {
    fn constant(self) -> (Tensor, Extra) {
        let Outcome { value, extra } = self.outcome;
        (Tensor::from_parts(value, Source::None), extra)
    }

    #[inline(never)]
    fn on_tape(
        self,
        op: Box<dyn Op>,
        inputs: &[&Tensor],
        location: &'static Location<'static>,
    ) -> (Tensor, Extra) {
        let Outcome { value, extra } = self.outcome;
        let node = Node::record(op, inputs, &self.values, &value, &extra, location);
        (Tensor::from_parts(value, Source::Node(node)), extra)
    }

    /// Puts the op into the log of the trace, and on the tape if a gradient can flow.
    #[cold]
    fn traced(
        self,
        op: Arc<dyn Op>,
        inputs: &[&Tensor],
        location: &'static Location<'static>,
    ) -> (Tensor, Extra) {
        log::applied(op.clone(), &self.values, &self.outcome, location);
        if !flows(&*op, inputs, &self.outcome.value) {
            return self.constant();
        }
        let (out, extra) = self.on_tape(Box::new(log::Shared(op)), inputs, location);
        if let Source::Node(node) = out.source() {
            log::numbered(node.number, &out.value());
        }
        (out, extra)
    }
}

/// The part of [`apply_extra`] that is the same for all ops, so that it is compiled once.
#[inline(never)]
fn run(op: &dyn Op, inputs: &[&Tensor], location: &'static Location<'static>) -> Result<Ran> {
    // Loops that push, here and below: collecting into a `SmallVec` is a call that is not inlined, and every op pays for it.
    let mut values = Values::new();
    for t in inputs {
        values.push(t.value());
    }
    let mode = Mode::get();
    if mode.has(Mode::TRACE) {
        // Ops that a kernel calls are its own affair.
        let _guard = mode.without(Mode::TRACE).enter();
        let outcome = compute(op, &values).map_err(|e| e.at(location))?;
        return Ok(Ran { values, outcome, flow: Flow::Traced });
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
    Ok(Ran { values, outcome, flow })
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
pub(crate) fn compute(op: &dyn Op, values: &[Arc<Value>]) -> Result<Outcome> {
    let mut metas: SmallVec<[Meta; 3]> = SmallVec::new();
    for v in values {
        metas.push(v.meta);
    }
    let out = op.infer(&metas)?;
    compute_as(op, values, out)
}

/// The result of `op`, which is known to be of this shape and dtype.
pub(crate) fn compute_as(op: &dyn Op, values: &[Arc<Value>], out: Meta) -> Result<Outcome> {
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

fn map(
    op: &'static str,
    kernel: &dyn MapKernel,
    values: &[Arc<Value>],
    meta: Meta,
) -> Result<Value> {
    let mut out = Value::uninit(op, meta)?;
    let numel = meta.shape.numel();
    if numel == 0 {
        return Ok(out);
    }
    let n = meta.shape.last().copied().unwrap_or(1);
    let mut windows: SmallVec<[Window; 3]> = SmallVec::new();
    let mut whole = true;
    for v in values {
        let Some(window) = row_window(v, &meta.shape, n, numel / n) else {
            broadcast(kernel, values, &mut out)?;
            return Ok(out);
        };
        whole &= window.step == n || (window.splat && window.step == 0);
        windows.push(window);
    }
    // Where every operand is whole or a single element, all rows are one.
    let (rows, n) = if whole { (1, numel) } else { (numel / n, n) };
    if whole {
        windows.iter_mut().for_each(|w| w.step = 0);
    }
    if numel < SHARED {
        let mut inputs: SmallVec<[Input<'_>; 3]> = SmallVec::new();
        for (v, w) in values.iter().zip(&windows) {
            inputs.push(input(v, w, 0, 0, n));
        }
        kernel.tile(&inputs, n, output(&mut out));
    } else {
        run_rows(kernel, values, &windows, rows, n, &mut out, 0);
    }
    Ok(out)
}

/// The operand as rows of `n` elements, if it is contiguous and the same for all rows, whole, or one element for each row.
fn row_window(v: &Value, shape: &Shape, n: usize, rows: usize) -> Option<Window> {
    let own = v.shape();
    let (step, splat) = if own == shape {
        (n, false)
    } else if v.numel() == 1 {
        (0, true)
    } else if v.numel() == n && own.last() == Some(&n) {
        (0, false)
    } else if v.numel() == rows && own.rank() == shape.rank() && own.last() == Some(&1) {
        (1, true)
    } else {
        return None;
    };
    v.is_contiguous().then_some(Window { offset: 0, step, splat })
}

/// Where the rows of one operand lie: see [`Rows`].
#[derive(Clone, Copy)]
struct Window {
    offset: usize,
    step: usize,
    splat: bool,
}

/// A map whose operands have different shapes: brought to as few axes as possible, then run two axes at a time.
fn broadcast(kernel: &dyn MapKernel, values: &[Arc<Value>], out: &mut Value) -> Result<()> {
    let shape = out.meta.shape;
    let values = values.iter().map(|v| v.contiguous()).collect::<Result<Values>>()?;
    let strides: SmallVec<[Strides; 3]> =
        values.iter().map(|v| stretched(v.shape(), &shape)).collect();
    let (dims, strides) = collapse(&shape, &strides);
    let rank = dims.len();
    let n = dims[rank - 1];
    let rows = if rank > 1 { dims[rank - 2] } else { 1 };
    let outer: usize = dims[..rank.saturating_sub(2)].iter().product();
    let mut index = [0usize; MAX_RANK];
    for block in 0..outer {
        let window = |s: &Strides| Window {
            offset: (0..rank.saturating_sub(2)).map(|a| index[a] * s[a] as usize).sum(),
            step: if rank > 1 { s[rank - 2] as usize } else { 0 },
            splat: s[rank - 1] == 0 && n != 1,
        };
        let windows: SmallVec<[Window; 3]> = strides.iter().map(window).collect();
        run_rows(kernel, &values, &windows, rows, n, out, block * rows * n);
        for a in (0..rank.saturating_sub(2)).rev() {
            index[a] += 1;
            if index[a] < dims[a] {
                break;
            }
            index[a] = 0;
        }
    }
    Ok(())
}

/// The strides of a row-major array of shape `from` when it is stretched to `to`.
fn stretched(from: &Shape, to: &Shape) -> Strides {
    let own = from.contiguous_strides();
    let lead = to.rank() - from.rank();
    let mut out = [0; MAX_RANK];
    for (i, &d) in from.iter().enumerate() {
        out[lead + i] = if d == 1 { 0 } else { own[i] };
    }
    out
}

/// Merges neighbouring axes that all operands step through as one, and leaves out those of size 1.
fn collapse(
    shape: &Shape,
    strides: &[Strides],
) -> (SmallVec<[usize; MAX_RANK]>, SmallVec<[Strides; 3]>) {
    let mut dims: SmallVec<[usize; MAX_RANK]> = SmallVec::new();
    let mut out: SmallVec<[Strides; 3]> = strides.iter().map(|_| [0; MAX_RANK]).collect();
    for (a, &d) in shape.iter().enumerate() {
        if d == 1 {
            continue;
        }
        let last = dims.len().wrapping_sub(1);
        let merges =
            !dims.is_empty() && strides.iter().zip(&out).all(|(s, o)| o[last] == s[a] * d as isize);
        if merges {
            dims[last] *= d;
            for (o, s) in out.iter_mut().zip(strides) {
                o[last] = s[a];
            }
        } else {
            for (o, s) in out.iter_mut().zip(strides) {
                o[dims.len()] = s[a];
            }
            dims.push(d);
        }
    }
    if dims.is_empty() {
        dims.push(1);
    }
    (dims, out)
}

/// Runs the kernel on `rows` rows of `n`, written from element `start` of `out` on; in pieces by several threads when large.
fn run_rows(
    kernel: &dyn MapKernel,
    values: &[Arc<Value>],
    windows: &[Window],
    rows: usize,
    n: usize,
    out: &mut Value,
    start: usize,
) {
    let total = rows * n;
    let dtype = out.dtype();
    let tile = |first_row: usize, first: usize, n: usize, out: Output<'_>| {
        let inputs: SmallVec<[Input<'_>; 3]> =
            values.iter().zip(windows).map(|(v, w)| input(v, w, first_row, first, n)).collect();
        kernel.tile(&inputs, n, out);
    };
    macro_rules! run {
        ($ty:ty, $variant:ident) => {{
            let out = &mut out.as_mut::<$ty>()[start..start + total];
            if total < SHARED {
                tile(0, 0, n, Output::$variant(out));
            } else if rows == 1 {
                threads::for_each(true, out.chunks_mut(PIECE).enumerate(), |(i, out)| {
                    tile(0, i * PIECE, out.len(), Output::$variant(out));
                });
            } else {
                let high = (PIECE / n).max(1);
                threads::for_each(true, out.chunks_mut(high * n).enumerate(), |(i, out)| {
                    tile(i * high, 0, n, Output::$variant(out));
                });
            }
        }};
    }
    match dtype {
        DType::F32 => run!(f32, F32),
        DType::F64 => run!(f64, F64),
        DType::I64 => run!(i64, I64),
        DType::Bool => run!(u8, Bool),
    }
}

/// The operand from row `row` and element `first` of the row on. A single row of `n` elements is cut to those: the kernels of unary maps take it
/// whole.
#[inline]
fn input<'a>(value: &'a Value, w: &Window, row: usize, first: usize, n: usize) -> Input<'a> {
    #[inline]
    fn rows<'a, T: Stored>(
        value: &'a Value,
        w: &Window,
        row: usize,
        first: usize,
        n: usize,
    ) -> Rows<'a, T> {
        let data = value.slice::<T>().expect("operands of a map are contiguous");
        let data = &data[w.offset + row * w.step + if w.splat { 0 } else { first }..];
        let whole = w.step == 0 && !w.splat;
        Rows { data: if whole { &data[..n] } else { data }, step: w.step, splat: w.splat }
    }
    match value.dtype() {
        DType::F32 => Input::F32(rows(value, w, row, first, n)),
        DType::F64 => Input::F64(rows(value, w, row, first, n)),
        DType::I64 => Input::I64(rows(value, w, row, first, n)),
        DType::Bool => Input::Bool(rows(value, w, row, first, n)),
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

/// The array with the reduced axes next to each other, as `[outer, count, inner]`: moved to the end if they are apart.
pub(crate) fn adjacent(x: &Arc<Value>, axes: Axes) -> Result<(Arc<Value>, Extent)> {
    let shape = *x.shape();
    let matters = |a: &usize| shape[*a] != 1;
    let Some(first) = axes.iter().find(matters) else {
        // Only axes of size 1 go: every element stands for itself.
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
pub(crate) fn array(value: &Value) -> Array<'_> {
    const WHY: &str = "the array was made contiguous";
    match value.dtype() {
        DType::F32 => Array::F32(value.slice().expect(WHY)),
        DType::F64 => Array::F64(value.slice().expect(WHY)),
        DType::I64 => Array::I64(value.slice().expect(WHY)),
        DType::Bool => Array::Bool(value.slice().expect(WHY)),
    }
}

/// All elements of a fresh value, to write.
#[inline]
pub(crate) fn output(value: &mut Value) -> Output<'_> {
    match value.dtype() {
        DType::F32 => Output::F32(value.as_mut()),
        DType::F64 => Output::F64(value.as_mut()),
        DType::I64 => Output::I64(value.as_mut()),
        DType::Bool => Output::Bool(value.as_mut()),
    }
}
