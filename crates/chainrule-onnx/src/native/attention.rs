//! Attention as one node where a device supports it, and its dropout factors.

use crate::graph::{Array, Attr};
use crate::interpret::Interpreter;
use crate::lower::Attended;
use crate::ops::Made;
use crate::value::Val;

/// Queries, keys and values.
const SIDES: usize = 3;

/// Operands and options of a call.
struct AttentionCall {
    /// Queries, keys, values and the mask, if any.
    operands: Vec<Array>,
    attrs: Vec<(&'static str, Attr)>,
    /// Drawn seed of the dropout.
    seed: Option<Array>,
}

impl AttentionCall {
    /// The call, if the device supports it: the same for an attention and its gradient.
    fn new(at: &Interpreter, operands: &[Val], named: &[(String, Val)]) -> Option<AttentionCall> {
        let takes = at.takes?;
        let of = |name: &str| named.iter().find(|(n, _)| n == name).map(|(_, v)| v);
        let (causal, scale) = (of("causal")?.truth()?, of("scale")?.number()?);
        let operands = operands.iter().map(array).collect::<Option<Vec<_>>>()?;
        if operands.len() < SIDES || operands.len() > SIDES + 1 {
            return None;
        }
        let types = operands.iter().map(|a| (a.dtype, a.dims.clone())).collect();
        if !takes(&Attended { operands: types, scale }) {
            return None;
        }
        let int = |n: u64| Attr::Int(n.cast_signed());
        let mut attrs = vec![("causal", int(u64::from(causal))), ("scale", int(scale.to_bits()))];
        let mut seed = None;
        match of("dropout")? {
            Val::None => {}
            dropout => {
                let [p, from] = dropout.row()? else { return None };
                attrs.push(("dropout", int(p.number()?.to_bits())));
                seed = seeded(from, &mut attrs)?;
            }
        }
        Some(AttentionCall { operands, attrs, seed })
    }

    /// Inputs of the node, after these.
    fn inputs<'a>(&'a self, before: &'a [Array]) -> Vec<&'a Array> {
        before.iter().chain(&self.operands).chain(&self.seed).collect()
    }
}

fn array(v: &Val) -> Option<Array> {
    match v {
        Val::Array(a) => Some(a.clone()),
        _ => None,
    }
}

/// A drawn seed, or the attribute of a known one.
fn seeded(from: &Val, attrs: &mut Vec<(&'static str, Attr)>) -> Option<Option<Array>> {
    match from {
        Val::Array(seed) => Some(Some(Array { weak: false, ..seed.clone() })),
        Val::Int(n) => {
            attrs.push(("seed", Attr::Int(*n)));
            Some(None)
        }
        _ => None,
    }
}

/// Attention as one node, with the largest score of each row and the log of its sum. `None` if it
/// is interpreted as written.
pub(super) fn forward(at: &mut Interpreter, args: &[Val], named: &[(String, Val)]) -> Made<Val> {
    let mut call = AttentionCall::new(at, args, named)?;
    let attrs = std::mem::take(&mut call.attrs);
    let (q, v) = (&call.operands[0], &call.operands[2]);
    let (mut dims, dtype) = (q.dims.clone(), q.dtype);
    let mut logs = dims.clone();
    *logs.last_mut()? = 2;
    *dims.last_mut()? = *v.dims.last()?;
    let y = at.graph.node("Attention", &call.inputs(&[]), attrs, dtype, dims);
    let logs = at.graph.beside(dtype, logs);
    Some(Val::Row(vec![y.into(), logs.into()]))
}

/// Its gradients, from the upstream one, the result and the logarithms.
pub(super) fn backward(at: &mut Interpreter, args: &[Val], named: &[(String, Val)]) -> Made<Val> {
    let mut call = AttentionCall::new(at, args.get(SIDES..)?, named)?;
    let attrs = std::mem::take(&mut call.attrs);
    let before = args[..SIDES].iter().map(array).collect::<Option<Vec<_>>>()?;
    let inputs = call.inputs(&before);
    let [q, k, v] = [0, 1, 2].map(|i| call.operands[i].clone());
    let dq = at.graph.node("AttentionGrad", &inputs, attrs, q.dtype, q.dims);
    let dk = at.graph.beside(k.dtype, k.dims);
    let dv = at.graph.beside(v.dtype, v.dims);
    Some(Val::Row(vec![dq.into(), dk.into(), dv.into()]))
}

/// Dropout factors of the weights, from a shape, a probability, a seed and a dtype.
pub(super) fn keep_factors(at: &mut Interpreter, args: &[Val]) -> Made<Val> {
    let [shape, p, from, Val::DType(dtype)] = args else { return None };
    let mut attrs = vec![("dropout", Attr::Int(p.number()?.to_bits().cast_signed()))];
    let seed = seeded(from, &mut attrs)?;
    let inputs: Vec<&Array> = seed.iter().collect();
    Some(at.graph.node("KeepFactors", &inputs, attrs, *dtype, shape.ints()?).into())
}
