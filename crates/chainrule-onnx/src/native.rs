//! Functions of the forms whose Python writes into arrays or walks elements: as nodes.

use chainrule_core::dtype::DType;

use crate::graph::{Array, Attr};
use crate::interpret::Interpreter;
use crate::ops::{Made, axis};
use crate::value::Val;

/// The result of a function that stands here; nothing for another.
pub(crate) fn call(
    at: &mut Interpreter,
    name: &str,
    args: &[Val],
    named: &[(String, Val)],
) -> Option<Made<Val>> {
    Some(match name {
        "_each" => each(at, args),
        "_linear_grad" => linear_grad(at, args, false),
        "_linear_grad_bf16" => linear_grad(at, args, true),
        "_bf16" => Some(bf16(at, &array(args, 0)?).into()),
        "_conv2d" => conv(at, args, named),
        "_conv2d_weight_grad" => conv_weight_grad(at, args, named),
        "_conv_transpose2d" => conv_transpose(at, args, named),
        "_max_pool" => max_pool(at, args),
        "_elements" => elements(args),
        "_place" => place(at, args),
        "_embedding_grad" => embedding_grad(at, args),
        "_rows_grad" => rows_grad(at, args),
        "_gather_grad" => gather_grad(at, args),
        "_unslice" => unslice(at, args),
        "_window" => window(at, args),
        "_window_grad" => window_grad(at, args),
        "_remap_grad" => remap_grad(at, args),
        "_pad" => pad(at, args),
        "_cumulate" => cumulate(at, args),
        "_order" => None,
        "_sort" => sort(at, args),
        "_taps" => taps(at, args),
        "_put" => put(at, args),
        "_grad_norm" => grad_norm(at, args),
        "_attention" if at.whole => Some(attention(at, args, named)?),
        "_attention_grad" if at.whole => Some(attention_grad(at, args, named)?),
        _ => return None,
    })
}

fn array(args: &[Val], i: usize) -> Made<Array> {
    match args.get(i)? {
        Val::Array(a) => Some(a.clone()),
        _ => None,
    }
}

fn ints(args: &[Val], i: usize) -> Made<Vec<i64>> {
    args.get(i)?.ints()
}

fn int(args: &[Val], i: usize) -> Made<i64> {
    args.get(i)?.int()
}

fn each(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let Val::Function(name) = args.first()? else { return None };
    let x = at.graph.float("Erf", args.get(1)?)?;
    match name.as_str() {
        "math.erf" => Some(x.into()),
        "math.erfc" => at.binary("-", Val::Float(1.0), x.into()),
        _ => None,
    }
}

/// The numbers rounded to bf16, in their own dtype.
fn bf16(at: &mut Interpreter, x: &Array) -> Array {
    let near = at.graph.cast(x, DType::BF16);
    at.graph.cast(&near, x.dtype)
}

/// The wanted gradients; `rounds` rounds the operands of products.
fn linear_grad(at: &mut Interpreter, args: &[Val], rounds: bool) -> Made<Val> {
    let (g, mut x, mut weight) = (array(args, 0)?, array(args, 1)?, array(args, 2)?);
    let mut near = g.clone();
    if rounds {
        [near, x, weight] = [g.clone(), x, weight].map(|operand| bf16(at, &operand));
    }
    let wants = args.get(3)?.row()?;
    let graph = &mut at.graph;
    let rows = x.dims[..x.dims.len().checked_sub(1)?].iter().product();
    let flat = graph.reshape(&near, &[rows, weight.dims[0]]);
    let x2 = graph.reshape(&x, &[rows, weight.dims[1]]);
    let mut out = Vec::new();
    for (i, wanted) in wants.iter().enumerate() {
        if !wanted.truth()? {
            continue;
        }
        let made = match i {
            0 => {
                let dx = graph.matmul(&flat.clone().into(), &weight.clone().into())?;
                graph.reshape(&dx, &x.dims)
            }
            1 => {
                let turned = graph.swap(&flat, 0, 1)?;
                graph.matmul(&turned.into(), &x2.clone().into())?
            }
            _ => {
                let whole = graph.reshape(&g, &[rows, weight.dims[0]]);
                graph.reduce("ReduceSum", &whole, Some(&[0]), false)?
            }
        };
        out.push(Val::from(made));
    }
    if out.len() == 1 { out.pop() } else { Some(Val::Row(out)) }
}

/// The norm of all arrays laid end to end, in f64.
fn grad_norm(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (p, gradients) = (args.first()?.number()?, args.get(1..)?);
    let power = |at: &mut Interpreter, x: Array, p: f64| at.binary("**", x.into(), Val::Float(p));
    let mut total: Option<Array> = None;
    for g in gradients {
        let Val::Array(g) = g else { return None };
        let g = at.graph.cast(g, DType::F64);
        let (part, join) = if p.is_infinite() {
            let size = at.graph.unary("Abs", &g);
            (at.graph.reduce("ReduceMax", &size, None, false)?, "Max")
        } else {
            let parts = match p {
                2.0 => at.binary("*", g.clone().into(), g.into())?,
                _ => {
                    let size = at.graph.unary("Abs", &g);
                    power(at, size, p)?
                }
            };
            let Val::Array(parts) = parts else { return None };
            (at.graph.reduce("ReduceSum", &parts, None, false)?, "Add")
        };
        total = Some(match total {
            Some(before) => at.graph.pair(join, &before, &part)?,
            None => part,
        });
    }
    match p {
        p if p.is_infinite() => Some(total?.into()),
        2.0 => Some(at.graph.unary("Sqrt", &total?).into()),
        _ => power(at, total?, 1.0 / p),
    }
}

/// The causal rule and the bits of the scale; nothing where weights are dropped.
fn attention_attrs(named: &[(String, Val)]) -> Option<Vec<(&'static str, Attr)>> {
    let of = |name: &str| named.iter().find(|(n, _)| n == name).map(|(_, v)| v);
    let (causal, scale) = (of("causal")?.truth()?, of("scale")?.number()?);
    let scale = Attr::Int(scale.to_bits().cast_signed());
    let kept = matches!(of("dropout")?, Val::None);
    kept.then(|| vec![("causal", Attr::Int(i64::from(causal))), ("scale", scale)])
}

/// Attention without a mask as one node, with the logarithms of the rows' sums beside it. Nothing
/// for any other, which is read as it is written.
fn attention(at: &mut Interpreter, args: &[Val], named: &[(String, Val)]) -> Made<Val> {
    let attrs = attention_attrs(named)?;
    let [q, k, v] = [array(args, 0)?, array(args, 1)?, array(args, 2)?];
    if args.len() > 3 {
        return None;
    }
    let (mut dims, dtype) = (q.dims.clone(), q.dtype);
    let logs = dims[..dims.len() - 1].to_vec();
    *dims.last_mut()? = *v.dims.last()?;
    let y = at.graph.node("Attention", &[&q, &k, &v], attrs, dtype, dims);
    let logs = at.graph.beside(dtype, logs);
    Some(Val::Row(vec![y.into(), logs.into()]))
}

fn attention_grad(at: &mut Interpreter, args: &[Val], named: &[(String, Val)]) -> Made<Val> {
    let attrs = attention_attrs(named)?;
    let all: Vec<Array> = (0..args.len()).map(|i| array(args, i)).collect::<Option<_>>()?;
    let [_, _, _, q, k, v] = &all[..] else { return None };
    let inputs: Vec<&Array> = all.iter().collect();
    let dq = at.graph.node("AttentionGrad", &inputs, attrs, q.dtype, q.dims.clone());
    let dk = at.graph.beside(k.dtype, k.dims.clone());
    let dv = at.graph.beside(v.dtype, v.dims.clone());
    Some(Val::Row(vec![dq.into(), dk.into(), dv.into()]))
}

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

    /// The padding after the last element that the windows need: negative where some is not seen.
    fn after(&self, i: usize) -> i64 {
        let seen =
            (self.output[i] - 1) * self.stride[i] + (self.kernel[i] - 1) * self.dilation[i] + 1;
        seen - self.padding[i] - self.input[i]
    }

    /// Cuts off what no window sees, so that the padding after is not negative.
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

fn conv(at: &mut Interpreter, args: &[Val], named: &[(String, Val)]) -> Made<Val> {
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
/// channels for images, strides for dilations, and the other way round.
fn conv_weight_grad(at: &mut Interpreter, args: &[Val], named: &[(String, Val)]) -> Made<Val> {
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

fn conv_transpose(at: &mut Interpreter, args: &[Val], named: &[(String, Val)]) -> Made<Val> {
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

/// All elements of each window beside one another, the last repeated where a window is smaller; the
/// positions are constants.
fn max_pool(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
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

fn elements(args: &[Val]) -> Made<Val> {
    Some(Val::Places(Box::new(args.first()?.clone()), int(args, 1)?))
}

fn place(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (x, index) = (array(args, 0)?, array(args, 1)?);
    let (along, count) = (axis(int(args, 2)?, x.rank())?, int(args, 3)?);
    let mut dims = x.dims.clone();
    dims[along as usize] = count;
    let zeros = at.graph.full(x.dtype, &dims, 0.0)?;
    Some(at.graph.add_elements(&zeros, &index, &x, along).into())
}

fn embedding_grad(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (g, index, rows) = (array(args, 0)?, array(args, 1)?, int(args, 2)?);
    let width = *g.dims.last()?;
    let zeros = at.graph.full(g.dtype, &[rows, width], 0.0)?;
    let out = add_rows(at, &zeros, &index, &g, width);
    match args.get(3)? {
        Val::None => Some(out.into()),
        v => {
            let rows: Vec<i64> = (0..rows).collect();
            let rows = at.graph.ints(&rows);
            let column = at.graph.reshape(&rows, &[-1, 1]);
            let padding = at.binary("==", column.into(), v.clone())?;
            Some(at.graph.choose(&padding, &Val::Float(0.0), &out.into())?.into())
        }
    }
}

/// Rows of `g` added to the rows of `x` that an index names.
fn add_rows(at: &mut Interpreter, x: &Array, index: &Array, g: &Array, width: i64) -> Array {
    let index = at.graph.reshape(index, &[index.size(), 1]);
    let g = at.graph.reshape(g, &[index.size(), width]);
    let add = vec![("reduction", Attr::Text("add"))];
    at.graph.node("ScatterND", &[x, &index, &g], add, x.dtype, x.dims.clone())
}

fn rows_grad(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (g, index, along) = (array(args, 0)?, array(args, 1)?, int(args, 2)?);
    let shape = ints(args, 3)?;
    if index.rank() != 1 {
        return None;
    }
    let zeros = at.graph.full(g.dtype, &shape, 0.0)?;
    spread(at, &zeros, &index, &g, along, true)
}

/// Rows put or added along an axis: the index is spread over the other axes.
fn spread(
    at: &mut Interpreter,
    x: &Array,
    index: &Array,
    g: &Array,
    along: i64,
    add: bool,
) -> Made<Val> {
    let mut dims = vec![1; g.dims.len()];
    dims[along as usize] = index.size();
    let index = at.graph.reshape(index, &dims);
    let index = at.graph.expand(&index, &g.dims)?;
    scatter(at, x, &index, g, along, add)
}

fn scatter(
    at: &mut Interpreter,
    x: &Array,
    index: &Array,
    g: &Array,
    along: i64,
    add: bool,
) -> Made<Val> {
    if add {
        return Some(at.graph.add_elements(x, index, g, along).into());
    }
    let attrs = vec![("axis", Attr::Int(along))];
    Some(at.graph.node("ScatterElements", &[x, index, g], attrs, x.dtype, x.dims.clone()).into())
}

fn gather_grad(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (g, index, along) = (array(args, 0)?, array(args, 1)?, int(args, 2)?);
    let zeros = at.graph.full(g.dtype, &ints(args, 3)?, 0.0)?;
    Some(at.graph.add_elements(&zeros, &index, &g, axis(along, g.rank())?).into())
}

fn put(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (x, source, index) = (array(args, 0)?, array(args, 1)?, array(args, 2)?);
    let (along, rows, add) = (int(args, 3)?, args.get(4)?.truth()?, args.get(5)?.truth()?);
    if rows {
        return if index.rank() == 1 { spread(at, &x, &index, &source, along, add) } else { None };
    }
    let cuts: Vec<_> = index.dims.iter().enumerate().map(|(i, &n)| (i as i64, 0, n, 1)).collect();
    let source = at.graph.slice(&source, &cuts);
    scatter(at, &x, &index, &source, along, add)
}

/// Slices put back among zeros.
fn unslice(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let shape = ints(args, 0)?;
    let mut sum: Option<Val> = None;
    for part in &args[1..] {
        let [index, g] = part.row()? else { return None };
        let Val::Array(g) = g else { return None };
        let places = places(index, &shape)?;
        let part: Val = match places.iter().all(|p| p.step == 1) {
            true => {
                let dims: Vec<i64> = places.iter().map(|p| p.count).collect();
                let g = at.graph.reshape(g, &dims);
                let amounts: Vec<_> = places
                    .iter()
                    .zip(&shape)
                    .map(|(p, n)| (p.start, n - p.start - p.count))
                    .collect();
                padded(at, &g, &amounts, 0.0)?.into()
            }
            false => at.graph.scattered(g, &flat_places(&places, &shape)?, &shape)?.into(),
        };
        sum = Some(match sum {
            Some(before) => at.binary("+", before, part)?,
            None => part,
        });
    }
    sum
}

/// Stretch of an axis.
struct Stretch {
    start: i64,
    count: i64,
    step: i64,
}

fn places(index: &Val, shape: &[i64]) -> Made<Vec<Stretch>> {
    let parts = match index {
        Val::Row(parts) => parts.clone(),
        one => vec![one.clone()],
    };
    let parts = parts.iter().filter(|p| !matches!(p, Val::None));
    let mut out = Vec::new();
    for (part, &n) in parts.zip(shape) {
        out.push(match part {
            Val::Int(start) => Stretch { start: *start, count: 1, step: 1 },
            Val::Slice(s) => {
                let part = |i: usize| s.get(i).copied().flatten();
                let step = part(2).unwrap_or(1);
                let start = part(0).unwrap_or(if step < 0 { n - 1 } else { 0 });
                let end = part(1).unwrap_or(if step < 0 { -1 } else { n });
                let count = (end - start + step - step.signum()).checked_div(step)?.max(0);
                Stretch { start, count, step }
            }
            _ => return None,
        });
    }
    out.extend(shape[out.len()..].iter().map(|&n| Stretch { start: 0, count: n, step: 1 }));
    Some(out)
}

/// The places in the flat array.
fn flat_places(places: &[Stretch], shape: &[i64]) -> Made<Vec<i64>> {
    let mut out = vec![0i64];
    for (p, n) in places.iter().zip(shape) {
        let steps = |before: i64| (0..p.count).map(move |i| before * n + p.start + i * p.step);
        out = out.into_iter().flat_map(steps).collect();
        if out.len() > 1 << 24 {
            return None;
        }
    }
    Some(out)
}

/// The places in the flat array that a window sees.
fn window_places(start: &[i64], moves: &Val, seen: &[i64], of: &[i64]) -> Made<Vec<i64>> {
    let strides: Vec<i64> = (0..of.len()).map(|i| of[i + 1..].iter().product()).collect();
    let mut steps = vec![0i64; seen.len()];
    for m in moves.row()? {
        let m = m.ints()?;
        steps[m[0] as usize] += m[2] * strides[m[1] as usize];
    }
    let first: i64 = start.iter().zip(&strides).map(|(a, b)| a * b).sum();
    let mut out = vec![first];
    for (&n, &step) in seen.iter().zip(&steps) {
        out = out.into_iter().flat_map(|a| (0..n).map(move |i| a + i * step)).collect();
        if out.len() > 1 << 24 {
            return None;
        }
    }
    Some(out)
}

fn window(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (x, shape) = (array(args, 0)?, ints(args, 3)?);
    let places = window_places(&ints(args, 1)?, args.get(2)?, &shape, &x.dims)?;
    let flat = at.graph.reshape(&x, &[-1]);
    let index = at.graph.ints(&places);
    let out = at.graph.gather(&flat, &index, 0)?;
    Some(at.graph.reshape(&out, &shape).into())
}

fn window_grad(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (g, shape) = (array(args, 0)?, ints(args, 3)?);
    let places = window_places(&ints(args, 1)?, args.get(2)?, &g.dims, &shape)?;
    at.graph.scattered(&g, &places, &shape).map(Val::from)
}

fn remap_grad(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (mut g, shape) = (array(args, 0)?, ints(args, 2)?);
    let Val::Dict(maps) = args.get(1)? else { return None };
    for (along, places) in maps {
        let along = along.int()?;
        let mut dims = g.dims.clone();
        dims[along as usize] = *shape.get(along as usize)?;
        let zeros = at.graph.full(g.dtype, &dims, 0.0)?;
        let index = at.graph.ints(&places.ints()?);
        let Val::Array(next) = spread(at, &zeros, &index, &g, along, true)? else { return None };
        g = next;
    }
    Some(g.into())
}

fn padded(at: &mut Interpreter, x: &Array, amounts: &[(i64, i64)], value: f64) -> Made<Array> {
    if amounts.iter().all(|a| *a == (0, 0)) {
        return Some(x.clone());
    }
    let dims = x.dims.iter().zip(amounts).map(|(n, (a, b))| n + a + b).collect();
    let pads: Vec<i64> = amounts.iter().map(|a| a.0).chain(amounts.iter().map(|a| a.1)).collect();
    let pads = at.graph.ints(&pads);
    let value = at.graph.scalar(x.dtype, value);
    Some(at.graph.node("Pad", &[x, &pads, &value], vec![], x.dtype, dims))
}

fn pad(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let x = array(args, 0)?;
    let amounts: Vec<(i64, i64)> = args
        .get(1)?
        .row()?
        .iter()
        .map(|a| Some((a.row()?.first()?.int()?, a.row()?.get(1)?.int()?)))
        .collect::<Option<_>>()?;
    padded(at, &x, &amounts, args.get(2)?.number()?).map(Val::from)
}

fn cumulate(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let Val::Function(f) = args.first()? else { return None };
    if f != "np.add" {
        return None;
    }
    let x = array(args, 1)?;
    let along = at.graph.scalar(DType::I64, axis(int(args, 2)?, x.rank())? as f64);
    let flag = |i: usize| Some(Attr::Int(i64::from(args.get(i)?.truth()?)));
    let attrs = vec![("reverse", flag(3)?), ("exclusive", flag(4)?)];
    Some(at.graph.node("CumSum", &[&x, &along], attrs, x.dtype, x.dims.clone()).into())
}

fn sort(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (x, down) = (array(args, 0)?, args.get(2)?.truth()?);
    let along = axis(int(args, 1)?, x.rank())?;
    let count = args.get(3)?.int().unwrap_or(x.dims[along as usize]);
    let k = at.graph.ints(&[count]);
    let mut dims = x.dims.clone();
    dims[along as usize] = count;
    let attrs = vec![("axis", Attr::Int(along)), ("largest", Attr::Int(i64::from(down)))];
    let y = at.graph.node("TopK", &[&x, &k], attrs, x.dtype, dims.clone());
    let places = at.graph.beside(DType::I64, dims);
    Some(Val::Row(vec![y.into(), places.into()]))
}

/// A matrix from the weights of each row.
fn taps(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let (size, starts) = (int(args, 0)?, ints(args, 1)?);
    let entries = args.get(2)?.row()?;
    let Val::DType(dtype) = args.get(3)? else { return None };
    let rows = starts.len().checked_sub(1)?;
    let mut out = vec![0.0; rows * usize::try_from(size).ok()?];
    for (i, ends) in starts.windows(2).enumerate() {
        for entry in entries.get(ends[0] as usize..ends[1] as usize)? {
            let [place, weight] = entry.row()? else { return None };
            *out.get_mut(i * size as usize + place.int()? as usize)? += weight.number()?;
        }
    }
    let bytes = out.iter().flat_map(|x| match dtype {
        DType::F64 => x.to_le_bytes().to_vec(),
        _ => (*x as f32).to_le_bytes().to_vec(),
    });
    let bytes = bytes.collect();
    Some(at.graph.constant(*dtype, &[rows as i64, size], bytes).into())
}
