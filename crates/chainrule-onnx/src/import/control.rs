//! Branches and loops.

use chainrule_core::Tensor;
use chainrule_core::error::Result;

use super::call::{Call, Made, axis, numbers};
use super::wrong;

/// The most steps of a loop without a bound, in which a condition that never ends would hang.
const MOST_STEPS: i64 = 1 << 24;

fn truth(t: &Tensor) -> Result<bool> {
    match numbers(t)?.as_slice() {
        [x] => Ok(*x != 0.0),
        all => Err(wrong(format!("a condition of {} values", all.len()))),
    }
}

pub(super) fn branch(c: &Call<'_>) -> Made {
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

pub(super) fn repeat(c: &Call<'_>) -> Made {
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

pub(super) fn scan(c: &Call<'_>) -> Made {
    if c.opset() < 9 {
        return Err(wrong("Scan of opset 8 is not known here; export the model with a later one"));
    }
    let body = c.graph("body")?;
    let all: Vec<Tensor> = c.inputs.iter().flatten().cloned().collect();
    let scanned = usize::try_from(c.int("num_scan_inputs", 0)).unwrap_or(0);
    let count = all.len().checked_sub(scanned).ok_or_else(|| wrong("inputs are missing"))?;
    let (first, rows) = all.split_at(count);
    let backwards = |name: &str, i: usize| c.ints(name).is_some_and(|all| all.get(i) == Some(&1));
    let at = |name: &str, i: usize| c.ints(name).and_then(|all| all.get(i).copied()).unwrap_or(0);
    let mut steps = None;
    let mut axes = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        let at = axis(at("scan_input_axes", i), row.rank())?;
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
            let from = if backwards("scan_input_directions", i) { steps - 1 - step } else { step };
            let at = axes[i] as i64;
            given.push(row.try_narrow(at, from, 1)?.try_squeeze(&[at][..])?);
        }
        let mut made = body.call(c.scope, given)?.into_iter();
        carried = made.by_ref().take(count).collect();
        made_rows.push(made.collect());
    }
    for i in 0..body.outputs.len().saturating_sub(count) {
        let mut rows = made_rows.clone();
        if backwards("scan_output_directions", i) {
            rows.reverse();
        }
        let at = at("scan_output_axes", i);
        carried.push(stacked(&rows, i, at)?);
    }
    Ok(carried)
}
