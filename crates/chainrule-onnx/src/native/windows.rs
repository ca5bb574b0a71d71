//! Convolutions, their gradients, and pooling, as nodes.

use chainrule_core::dtype::DType;

use super::{array, int, padded};
use crate::graph::{Array, Attr};
use crate::interpret::Interpreter;
use crate::ops::Made;
use crate::value::Val;

/// Sizes of a convolution.
struct Sizes {
    groups: i64,
    input: Vec<i64>,
    output: Vec<i64>,
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
}

impl Sizes {
    fn of(named: &[(String, Val)]) -> Made<Sizes> {
        let get = |name: &str| named.iter().find(|(k, _)| k == name).and_then(|(_, v)| v.ints());
        Some(Sizes {
            groups: *get("groups")?.first()?,
            input: get("input")?,
            output: get("output")?,
            kernel: get("kernel")?,
            stride: get("stride")?,
            padding: get("padding")?,
            dilation: get("dilation")?,
        })
    }

    /// Padding after the last element that the windows need: negative if some elements are unused.
    fn after(&self, i: usize) -> i64 {
        let seen =
            (self.output[i] - 1) * self.stride[i] + (self.kernel[i] - 1) * self.dilation[i] + 1;
        seen - self.padding[i] - self.input[i]
    }

    /// Crops elements that no window covers, so that the padding after is not negative.
    fn seen(&self, at: &mut Interpreter, x: &Array) -> (Array, Vec<i64>) {
        let cuts: Vec<_> =
            (0..2).map(|i| (i as i64 + 2, 0, self.input[i] + self.after(i).min(0), 1)).collect();
        let x = at.graph.slice(x, &cuts);
        let after = |i: usize| self.after(i).max(0);
        (x, vec![self.padding[0], self.padding[1], after(0), after(1)])
    }
}

fn attrs(s: &Sizes, pads: Vec<i64>) -> Vec<(&'static str, Attr)> {
    vec![
        ("group", Attr::Int(s.groups)),
        ("kernel_shape", Attr::Ints(s.kernel.clone())),
        ("strides", Attr::Ints(s.stride.clone())),
        ("pads", Attr::Ints(pads)),
        ("dilations", Attr::Ints(s.dilation.clone())),
    ]
}

pub(super) fn conv(at: &mut Interpreter, args: &[Val], named: &[(String, Val)]) -> Made<Val> {
    let s = Sizes::of(named)?;
    let (x, w) = (array(args, 0)?, array(args, 1)?);
    let dims = vec![x.dims[0], w.dims[0], s.output[0], s.output[1]];
    let (x, pads) = s.seen(at, &x);
    let bias = array(args, 2);
    let mut inputs = vec![&x, &w];
    inputs.extend(bias.as_ref());
    Some(at.graph.node("Conv", &inputs, attrs(&s, pads), x.dtype, dims).into())
}

/// The gradient of a kernel is a convolution of the image with the gradient of the result, with
/// channels and batch, strides and dilations swapped.
pub(super) fn conv_weight_grad(
    at: &mut Interpreter,
    args: &[Val],
    named: &[(String, Val)],
) -> Made<Val> {
    let s = Sizes::of(named)?;
    let (x, g) = (array(args, 0)?, array(args, 1)?);
    let (x, pads) = s.seen(at, &x);
    let (inner, outer) = (x.dims[1] / s.groups, g.dims[1] / s.groups);
    let mut parts = Vec::new();
    for group in 0..s.groups {
        let xs = at.graph.slice(&x, &[(1, group * inner, inner, 1)]);
        let gs = at.graph.slice(&g, &[(1, group * outer, outer, 1)]);
        let (xs, gs) = (at.graph.swap(&xs, 0, 1)?, at.graph.swap(&gs, 0, 1)?);
        let turned = Sizes {
            groups: 1,
            input: s.input.clone(),
            output: s.kernel.clone(),
            kernel: s.output.clone(),
            stride: s.dilation.clone(),
            padding: s.padding.clone(),
            dilation: s.stride.clone(),
        };
        let dims = vec![inner, outer, s.kernel[0], s.kernel[1]];
        let attrs = attrs(&turned, pads.clone());
        let w = at.graph.node("Conv", &[&xs, &gs], attrs, x.dtype, dims);
        parts.push(Val::from(at.graph.swap(&w, 0, 1)?));
    }
    if parts.len() == 1 { parts.pop() } else { at.graph.concat(&parts, 0).map(Val::from) }
}

pub(super) fn conv_transpose(
    at: &mut Interpreter,
    args: &[Val],
    named: &[(String, Val)],
) -> Made<Val> {
    let s = Sizes::of(named)?;
    let (g, w) = (array(args, 0)?, array(args, 1)?);
    let channels = s.groups * w.dims[1];
    let extra: Vec<i64> = (0..2).map(|i| (-s.after(i)).max(0)).collect();
    let pads = vec![s.padding[0], s.padding[1], s.after(0).max(0), s.after(1).max(0)];
    let mut attrs = attrs(&s, pads);
    let covered = extra.iter().zip(&s.stride).all(|(e, st)| e < st);
    let mut dims = vec![g.dims[0], channels, s.input[0], s.input[1]];
    if covered {
        attrs.push(("output_padding", Attr::Ints(extra)));
        return Some(at.graph.node("ConvTranspose", &[&g, &w], attrs, g.dtype, dims).into());
    }
    dims[2] -= extra[0];
    dims[3] -= extra[1];
    let out = at.graph.node("ConvTranspose", &[&g, &w], attrs, g.dtype, dims);
    padded(at, &out, &[(0, 0), (0, 0), (0, extra[0]), (0, extra[1])], 0.0).map(Val::from)
}

fn spans(v: &Val) -> Made<Vec<(i64, i64)>> {
    v.row()?.iter().map(|s| Some((s.row()?.first()?.int()?, s.row()?.get(1)?.int()?))).collect()
}

/// All elements of each window side by side, the last repeated where a window is smaller; the
/// indices are constants.
pub(super) fn max_pool(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let x = array(args, 0)?;
    let (rows, row_step) = (spans(args.get(1)?)?, int(args, 2)?);
    let (cols, col_step) = (spans(args.get(3)?)?, int(args, 4)?);
    let most = |s: &[(i64, i64)]| s.iter().map(|(_, n)| *n).max();
    let (tall, wide) = (most(&rows)?, most(&cols)?);
    let mut table = Vec::new();
    for (top, height) in &rows {
        for (left, width) in &cols {
            for i in 0..tall {
                for j in 0..wide {
                    let r = top + row_step * i.min(height - 1);
                    table.push(r * x.dims[3] + left + col_step * j.min(width - 1));
                }
            }
        }
    }
    let (n, c) = (x.dims[0], x.dims[1]);
    let (windows, each) = ((rows.len() * cols.len()) as i64, tall * wide);
    let g = &mut at.graph;
    let table = g.constant(
        DType::I64,
        &[windows, each],
        table.iter().flat_map(|v| v.to_le_bytes()).collect(),
    );
    let flat = g.reshape(&x, &[n, c, x.dims[2] * x.dims[3]]);
    let seen = g.gather(&flat, &table, 2)?;
    let first = vec![("axis", Attr::Int(3)), ("keepdims", Attr::Int(0))];
    let k = g.node("ArgMax", &[&seen], first, DType::I64, vec![n, c, windows]);
    let y = g.reduce("ReduceMax", &seen, Some(&[3]), false)?;
    let offsets = g.ints(&(0..windows).map(|w| w * each).collect::<Vec<_>>());
    let k = g.pair("Add", &k, &offsets)?;
    let table = g.reshape(&table, &[-1]);
    let place = g.gather(&table, &k, 0)?;
    let dims = [n, c, rows.len() as i64, cols.len() as i64];
    let (y, place) = (g.reshape(&y, &dims), g.reshape(&place, &dims));
    Some(Val::Row(vec![y.into(), place.into()]))
}
