//! A dynamic batch size, inferred from two graphs of different sizes.
//!
//! Both have the same nodes. A constant that differs depends on the batch size: affinely, as a
//! quotient by it, or as a range up to it. It is replaced by nodes that compute it from an
//! argument's shape.

use std::collections::HashMap;

use chainrule_core::dtype::DType;
use chainrule_core::error::{Error, Result};

use crate::export::Built;
use crate::graph::{Array, Attr, Graph};
use crate::proto::{DimProto, NodeProto, TensorProto};

/// Batch sizes of both graphs.
pub(crate) struct Batch {
    sizes: (i64, i64),
}

/// A size as an affine function of the batch size: factor and offset.
struct Linear {
    times: i64,
    plus: i64,
}

impl Batch {
    /// Makes `a` a graph for any batch size.
    pub fn merge(a: &mut Built, b: &Built) -> Result<Batch> {
        let dims = |built: &Built| built.inputs.iter().map(|x| x.dims.clone()).collect::<Vec<_>>();
        let (first, second) = (dims(a), dims(b));
        let found = first.iter().zip(&second).enumerate().find_map(|(i, (x, y))| {
            let pair = (*x.first()?, *y.first()?);
            (pair.0 != pair.1).then_some((i, pair))
        });
        let Some((input, sizes)) = found else {
            return Err(fault("no argument has another first size in the second program".into()));
        };
        let batch = Batch { sizes };
        if a.graph.nodes.len() != b.graph.nodes.len() {
            return Err(fault("it takes other steps for another size of the batch".into()));
        }
        let nodes = std::mem::take(&mut a.graph.nodes);
        a.graph.scope = "/batch".to_string();
        let size = batch.size(&mut a.graph, &a.inputs[input]);
        let (ours, theirs) = (constants(&a.graph), constants(&b.graph));
        let mut made: HashMap<(String, String), String> = HashMap::new();
        let mut out = Vec::new();
        for (mut node, other) in nodes.into_iter().zip(&b.graph.nodes) {
            batch.compare(&node, other)?;
            let from = a.graph.nodes.len();
            for (at, (x, y)) in node.input.clone().iter().zip(&other.input).enumerate() {
                let (Some(p), Some(q)) = (ours.get(x), theirs.get(y)) else { continue };
                if p.dims == q.dims && p.raw_data == q.raw_data {
                    continue;
                }
                let key = (x.clone(), y.clone());
                let shape = at == 1 && node.op_type.as_deref() == Some("Reshape");
                let name = match made.get(&key).filter(|_| !shape) {
                    Some(name) => name.clone(),
                    None => {
                        let name = batch.computed(&mut a.graph, &size, p, q, shape, &node)?;
                        if !shape {
                            made.insert(key, name.clone());
                        }
                        name
                    }
                };
                node.input[at] = name;
            }
            out.extend(a.graph.nodes.drain(from.min(a.graph.nodes.len())..));
            out.push(node);
        }
        let mut all = std::mem::take(&mut a.graph.nodes);
        all.extend(out);
        a.graph.nodes = all;
        Ok(batch)
    }

    /// Declared sizes: a multiple of the batch size is symbolic.
    pub fn declared(&self, dims: &[(i64, i64)]) -> Vec<DimProto> {
        let one = |&(x, y): &(i64, i64)| {
            let name = match self.linear(x, y) {
                _ if x == y => return DimProto { dim_value: Some(x), dim_param: None },
                Some(Linear { times: 1, plus: 0 }) => "batch".to_string(),
                Some(Linear { times, plus: 0 }) => format!("{times}_batch"),
                Some(Linear { times, plus }) => format!("{times}_batch_{plus}"),
                None => "size".to_string(),
            };
            DimProto { dim_value: None, dim_param: Some(name) }
        };
        dims.iter().map(one).collect()
    }

    fn linear(&self, x: i64, y: i64) -> Option<Linear> {
        let (a, b) = self.sizes;
        let times = (y - x) / (b - a);
        let plus = x - times * a;
        (times * b + plus == y).then_some(Linear { times, plus })
    }

    /// The batch size, as a vector of one element.
    fn size(&self, g: &mut Graph, input: &Array) -> Array {
        let attrs = vec![("start", Attr::Int(0)), ("end", Attr::Int(1))];
        g.node("Shape", &[input], attrs, DType::I64, vec![1])
    }

    fn compare(&self, node: &NodeProto, other: &NodeProto) -> Result<()> {
        if node.op_type == other.op_type && node.attribute == other.attribute {
            return Ok(());
        }
        Err(fault(format!(
            "`{}` depends on the size of the batch in a way that a graph cannot follow",
            node.name.as_deref().unwrap_or_default()
        )))
    }

    /// Name of a value that equals both constants, each at its batch size.
    fn computed(
        &self,
        g: &mut Graph,
        size: &Array,
        p: &TensorProto,
        q: &TensorProto,
        shape: bool,
        node: &NodeProto,
    ) -> Result<String> {
        let found = match p.data_type {
            _ if p.dims != q.dims && uniform(p).is_some() && uniform(p) == uniform(q) => {
                self.stretched(g, size, p, q)
            }
            Some(7) => self.integers(g, size, p, q, shape),
            Some(1 | 11) => self.float(g, size, p, q),
            _ => None,
        };
        found.map(|a| a.name).ok_or_else(|| {
            fault(format!(
                "a constant of `{}` depends on the size of the batch in a way that is not known",
                node.name.as_deref().unwrap_or_default()
            ))
        })
    }

    /// A constant fill of a shape that depends on the batch size: an initial state.
    fn stretched(
        &self,
        g: &mut Graph,
        size: &Array,
        p: &TensorProto,
        q: &TensorProto,
    ) -> Option<Array> {
        let dtype = [DType::F32, DType::F64, DType::I64, DType::Bool];
        let dtype = dtype.into_iter().find(|d| Some(crate::graph::number(*d)) == p.data_type)?;
        let one = g.constant(dtype, &[], uniform(p)?.to_vec().into());
        let mut parts = Vec::new();
        for (&x, &y) in p.dims.iter().zip(&q.dims) {
            let n = self.linear(x, y)?;
            parts.push(if x == y { g.ints(&[x]) } else { self.scaled(g, size, &n)? });
        }
        let (all, rank): (Vec<&Array>, _) = (parts.iter().collect(), parts.len() as i64);
        let shape = g.node("Concat", &all, vec![("axis", Attr::Int(0))], DType::I64, vec![rank]);
        Some(g.node("Expand", &[&one, &shape], vec![], dtype, p.dims.clone()))
    }

    fn integers(
        &self,
        g: &mut Graph,
        size: &Array,
        p: &TensorProto,
        q: &TensorProto,
        shape: bool,
    ) -> Option<Array> {
        let (x, y) = (integers(p)?, integers(q)?);
        if p.dims != q.dims {
            let counts = |all: &[i64]| all.iter().enumerate().all(|(i, &v)| v == i as i64);
            if !(counts(&x) && counts(&y) && p.dims.len() == 1 && q.dims.len() == 1) {
                return None;
            }
            let n = self.linear(x.len() as i64, y.len() as i64)?;
            let n = self.scaled(g, size, &n)?;
            let n = g.reshape(&n, &[]);
            let (zero, one) = (g.scalar(DType::I64, 0.0), g.scalar(DType::I64, 1.0));
            return Some(g.node("Range", &[&zero, &n, &one], vec![], DType::I64, vec![1]));
        }
        let moving = x.iter().zip(&y).filter(|(x, y)| x != y).count();
        if shape && moving == 1 && !x.contains(&0) {
            let fixed: Vec<i64> =
                x.iter().zip(&y).map(|(x, y)| if x == y { *x } else { -1 }).collect();
            return Some(g.ints(&fixed));
        }
        let mut parts = Vec::new();
        for (&x, &y) in x.iter().zip(&y) {
            let n = self.linear(x, y)?;
            parts.push(if x == y { g.ints(&[x]) } else { self.scaled(g, size, &n)? });
        }
        let all: Vec<&Array> = parts.iter().collect();
        let n = all.len() as i64;
        let row = g.node("Concat", &all, vec![("axis", Attr::Int(0))], DType::I64, vec![n]);
        Some(g.reshape(&row, &p.dims))
    }

    fn scaled(&self, g: &mut Graph, size: &Array, n: &Linear) -> Option<Array> {
        let times = g.ints(&[n.times]);
        let plus = g.ints(&[n.plus]);
        let product = g.pair("Mul", size, &times)?;
        g.pair("Add", &product, &plus)
    }

    /// A number that is a quotient by the batch size, or a multiple of it.
    fn float(
        &self,
        g: &mut Graph,
        size: &Array,
        p: &TensorProto,
        q: &TensorProto,
    ) -> Option<Array> {
        let dtype = if p.data_type == Some(1) { DType::F32 } else { DType::F64 };
        if !(p.dims.is_empty() && q.dims.is_empty()) {
            return None;
        }
        let (x, y) = (float(p)?, float(q)?);
        let (a, b) = (self.sizes.0 as f64, self.sizes.1 as f64);
        let near = |u: f64, v: f64| (u - v).abs() <= 1e-6 * u.abs().max(v.abs());
        let size = g.reshape(size, &[]);
        let size = g.cast(&size, dtype);
        if near(x * a, y * b) {
            // An integer divided by the batch size is exact.
            let top = if near((x * a).round(), x * a) { (x * a).round() } else { x * a };
            let top = g.scalar(dtype, top);
            return g.pair("Div", &top, &size);
        }
        let times = (y - x) / (b - a);
        if near(x - times * a + 1.0, 1.0) {
            let times = g.scalar(dtype, times);
            return g.pair("Mul", &size, &times);
        }
        let plus = g.scalar(dtype, (x - times * a).round());
        let whole = near(times, times.round()) && near(x - times * a, (x - times * a).round());
        whole.then(|| {
            let times = g.scalar(dtype, times.round());
            let product = g.pair("Mul", &size, &times)?;
            g.pair("Add", &product, &plus)
        })?
    }
}

/// Bytes of the element that all are, if there are several.
fn uniform(t: &TensorProto) -> Option<&[u8]> {
    let bytes = t.raw_data.as_deref()?;
    let count = usize::try_from(t.dims.iter().product::<i64>()).ok()?;
    let each = bytes.len().checked_div(count).filter(|each| *each > 0 && count > 1)?;
    let first = &bytes[..each];
    bytes.chunks_exact(each).all(|b| b == first).then_some(first)
}

fn constants(g: &Graph) -> HashMap<String, TensorProto> {
    g.constants.iter().filter_map(|t| Some((t.name.clone()?, t.clone()))).collect()
}

fn integers(t: &TensorProto) -> Option<Vec<i64>> {
    let bytes = t.raw_data.as_ref()?.chunks_exact(8);
    bytes.map(|b| Some(i64::from_le_bytes(b.try_into().ok()?))).collect()
}

fn float(t: &TensorProto) -> Option<f64> {
    let bytes = t.raw_data.as_ref()?;
    Some(match t.data_type {
        Some(1) => f64::from(f32::from_le_bytes(bytes[..].try_into().ok()?)),
        _ => f64::from_le_bytes(bytes[..].try_into().ok()?),
    })
}

fn fault(why: String) -> Error {
    Error::argument("onnx", format!("the batch cannot be left open: {why}"))
}
