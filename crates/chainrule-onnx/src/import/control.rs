//! Branches and loops.

use chainrule_core::Tensor;
use chainrule_core::error::Result;

use super::call::{Call, NodeResult, axis, numbers, one};
use super::wrong;

/// Limit on steps of an unbounded loop, which would hang if its condition never fails.
const MOST_STEPS: i64 = 1 << 24;

fn truth(t: &Tensor) -> Result<bool> {
    match numbers(t)?.as_slice() {
        [x] => Ok(*x != 0.0),
        all => Err(wrong(format!("a condition of {} values", all.len()))),
    }
}

pub(super) fn branch(c: &Call<'_>) -> NodeResult {
    let name = if truth(c.x(0)?)? { "then_branch" } else { "else_branch" };
    c.graph(name)?.call(c.scope, Vec::new())
}

fn stacked(parts: &[Vec<Tensor>], i: usize, at: i64) -> Result<Tensor> {
    let all: Vec<&Tensor> = parts.iter().map(|row| &row[i]).collect();
    match all.is_empty() {
        true => Err(wrong("no step has run, so that what its steps give has no shape")),
        false => Tensor::try_stack(&all, at),
    }
}

pub(super) fn repeat(c: &Call<'_>) -> NodeResult {
    let body = c.graph("body")?;
    let most = c.int_at(0)?.unwrap_or(MOST_STEPS);
    let mut goes_on = c.opt(1).map_or(Ok(true), truth)?;
    let mut carried: Vec<Tensor> = c.inputs.iter().skip(2).flatten().cloned().collect();
    let count = carried.len();
    let mut rows: Vec<Vec<Tensor>> = Vec::new();
    let mut step = 0;
    while goes_on && step < most {
        if step == MOST_STEPS {
            return Err(wrong("it does not end"));
        }
        let start = [Tensor::scalar(step), Tensor::scalar(goes_on)];
        let given = start.into_iter().chain(carried).collect();
        let mut made = body.call(c.scope, given)?.into_iter();
        let next = made.next().ok_or_else(|| wrong("its body gives no condition"))?;
        goes_on = truth(&next)?;
        carried = made.by_ref().take(count).collect();
        if carried.len() < count {
            return Err(wrong("its body gives fewer values than it takes"));
        }
        rows.push(made.collect());
        step += 1;
    }
    let scans = body.outputs.len().saturating_sub(1 + count);
    for i in 0..scans {
        carried.push(stacked(&rows, i, 0)?);
    }
    Ok(carried)
}

pub(super) fn scan(c: &Call<'_>) -> NodeResult {
    let scanned = usize::try_from(c.int("num_scan_inputs", 0)).unwrap_or(0);
    let listed = |name: &str, i: usize| c.ints(name).and_then(|all| all.get(i).copied());
    if c.opset() < 9 {
        return batches(c, scanned, &|i| listed("directions", i) == Some(1));
    }
    let all: Vec<Tensor> = c.inputs.iter().flatten().cloned().collect();
    let order = Order {
        scanned,
        axis: &|i| listed("scan_input_axes", i).unwrap_or(0),
        backwards: &|i| listed("scan_input_directions", i) == Some(1),
        made_axis: &|i| listed("scan_output_axes", i).unwrap_or(0),
        made_backwards: &|i| listed("scan_output_directions", i) == Some(1),
    };
    scanned_by(c, &all, &order)
}

/// Opset 8 of Scan had a batch axis on all inputs, and sequence lengths.
fn batches(c: &Call<'_>, scanned: usize, backwards: &dyn Fn(usize) -> bool) -> NodeResult {
    if c.opt(0).is_some() {
        return Err(wrong("lengths of sequences are not known here; leave them out"));
    }
    let all: Vec<&Tensor> = c.inputs.iter().skip(1).flatten().collect();
    let size = all.first().and_then(|t| t.shape().first().copied()).unwrap_or(0);
    let order =
        Order { scanned, axis: &|_| 0, backwards, made_axis: &|_| 0, made_backwards: &|_| false };
    let mut made = Vec::new();
    for i in 0..size {
        let one = |t: &&Tensor| t.try_narrow(0, i, 1)?.try_squeeze(&[0i64][..]);
        let given = all.iter().map(one).collect::<Result<Vec<_>>>()?;
        made.push(scanned_by(c, &given, &order)?);
    }
    let count = made.first().map_or(0, Vec::len);
    (0..count).map(|i| stacked(&made, i, 0)).collect()
}

/// The scanned inputs, and axes and directions of these and of the outputs.
struct Order<'a> {
    scanned: usize,
    axis: &'a dyn Fn(usize) -> i64,
    backwards: &'a dyn Fn(usize) -> bool,
    made_axis: &'a dyn Fn(usize) -> i64,
    made_backwards: &'a dyn Fn(usize) -> bool,
}

fn scanned_by(c: &Call<'_>, all: &[Tensor], order: &Order<'_>) -> NodeResult {
    let body = c.graph("body")?;
    let count = all.len().checked_sub(order.scanned).ok_or_else(|| wrong("inputs are missing"))?;
    let (first, rows) = all.split_at(count);
    let mut steps = None;
    let mut axes = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        let at = axis((order.axis)(i), row.rank())?;
        axes.push(at);
        let size = row.shape()[at];
        if steps.is_some_and(|steps| steps != size) {
            return Err(wrong("its inputs have other numbers of steps"));
        }
        steps = Some(size);
    }
    let steps = steps.unwrap_or(0);
    let mut carried = first.to_vec();
    let mut made_rows: Vec<Vec<Tensor>> = Vec::new();
    for step in 0..steps {
        let mut given = carried;
        for (i, row) in rows.iter().enumerate() {
            let from = if (order.backwards)(i) { steps - 1 - step } else { step };
            let at = axes[i] as i64;
            given.push(row.try_narrow(at, from, 1)?.try_squeeze(&[at][..])?);
        }
        let mut made = body.call(c.scope, given)?.into_iter();
        carried = made.by_ref().take(count).collect();
        made_rows.push(made.collect());
    }
    for i in 0..body.outputs.len().saturating_sub(count) {
        let mut rows = made_rows.clone();
        if (order.made_backwards)(i) {
            rows.reverse();
        }
        carried.push(stacked(&rows, i, (order.made_axis)(i))?);
    }
    Ok(carried)
}

/// Whether an optional input is present.
pub(super) fn has_element(c: &Call<'_>) -> NodeResult {
    one(Tensor::scalar(c.opt(0).is_some()))
}
