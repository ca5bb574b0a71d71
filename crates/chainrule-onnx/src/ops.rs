//! NumPy's primitive steps as nodes, with its promotion and broadcasting.

use chainrule_core::dtype::DType;

use crate::graph::{Array, Attr, Graph};
use crate::value::Val;

/// A step without nodes, or an error.
pub(crate) type Made<T> = Option<T>;

/// The broadcast shape of two.
pub(crate) fn broadcast(a: &[i64], b: &[i64]) -> Made<Vec<i64>> {
    let rank = a.len().max(b.len());
    let at = |s: &[i64], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |k| s[k]);
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y || y == 1 => Some(x),
            (1, y) => Some(y),
            _ => None,
        })
        .collect()
}

fn order(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        DType::F32 => 2,
        DType::F64 => 3,
        _ => 1,
    }
}

/// The promoted dtype of two.
fn promoted(a: DType, b: DType) -> DType {
    match (a, b) {
        (DType::F32, DType::I64) | (DType::I64, DType::F32) => DType::F64,
        _ if order(a) >= order(b) => a,
        _ => b,
    }
}

impl Graph {
    pub fn cast(&mut self, a: &Array, dtype: DType) -> Array {
        if a.dtype == dtype {
            return a.clone();
        }
        let to = i64::from(crate::graph::number(dtype));
        let mut out = self.node("Cast", &[a], vec![("to", Attr::Int(to))], dtype, a.dims.clone());
        out.weak = a.weak;
        out
    }

    /// A value as an array; a number gets this dtype.
    pub fn array(&mut self, v: &Val, dtype: Option<DType>) -> Made<Array> {
        match v {
            Val::Array(a) => Some(a.clone()),
            Val::Int(n) => Some(self.scalar(dtype.unwrap_or(DType::I64), *n as f64)),
            Val::Bool(b) => Some(self.scalar(dtype.unwrap_or(DType::Bool), f64::from(*b))),
            Val::Float(x) => Some(self.scalar(dtype.unwrap_or(DType::F64), *x)),
            Val::Row(items) => self.literal(items, dtype),
            _ => None,
        }
    }

    fn literal(&mut self, items: &[Val], dtype: Option<DType>) -> Made<Array> {
        let ints: Option<Vec<i64>> = items.iter().map(Val::int).collect();
        match (ints, dtype) {
            (Some(ints), None | Some(DType::I64)) => Some(self.ints(&ints)),
            _ => {
                let dtype = dtype.unwrap_or(DType::F64);
                let all: Vec<f64> = items.iter().map(Val::number).collect::<Option<_>>()?;
                let bytes = all.iter().flat_map(|x| match dtype {
                    DType::F64 => x.to_le_bytes().to_vec(),
                    DType::I64 => (*x as i64).to_le_bytes().to_vec(),
                    DType::Bool => vec![u8::from(*x != 0.0)],
                    _ => (*x as f32).to_le_bytes().to_vec(),
                });
                let bytes = bytes.collect();
                Some(self.constant(dtype, &[items.len() as i64], bytes))
            }
        }
    }

    /// Operands promoted to a common dtype. Python numbers adopt that of arrays, but a float among
    /// integers gives floats.
    pub fn together(&mut self, all: &[&Val]) -> Made<Vec<Array>> {
        let strong = all.iter().filter_map(|v| v.strong());
        let strong = strong.reduce(promoted);
        let weak = all.iter().filter_map(|v| v.weak()).reduce(promoted);
        let dtype = match (strong, weak) {
            (None, Some(weak)) => weak,
            (Some(s), Some(w)) if order(w) > order(s) && order(s) < 2 => match w {
                DType::I64 => DType::I64,
                _ => DType::F64,
            },
            (Some(s), _) => s,
            (None, None) => return None,
        };
        let mut out = Vec::new();
        for v in all {
            let array = self.array(v, Some(dtype))?;
            out.push(self.cast(&array, dtype));
        }
        if strong.is_none() {
            out.iter_mut().for_each(|a| a.weak = true);
        }
        Some(out)
    }

    pub fn unary(&mut self, op: &str, a: &Array) -> Array {
        let mut out = self.node(op, &[a], vec![], a.dtype, a.dims.clone());
        out.weak = a.weak;
        out
    }

    /// As [`Graph::unary`], for floats.
    pub fn float(&mut self, op: &str, v: &Val) -> Made<Array> {
        let a = self.array(v, None)?;
        let a = if a.dtype.is_float() { a } else { self.cast(&a, DType::F64) };
        Some(self.unary(op, &a))
    }

    /// A node of two operands.
    pub fn binary(&mut self, op: &str, a: &Val, b: &Val) -> Made<Array> {
        let all = self.together(&[a, b])?;
        self.pair(op, &all[0], &all[1])
    }

    /// As [`Graph::binary`], for operands of one dtype.
    pub fn pair(&mut self, op: &str, a: &Array, b: &Array) -> Made<Array> {
        let dims = broadcast(&a.dims, &b.dims)?;
        let compares =
            matches!(op, "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual");
        let dtype = if compares { DType::Bool } else { a.dtype };
        let (a, b) = match a.dtype {
            // These ops don't support bools.
            DType::Bool if !matches!(op, "And" | "Or" | "Xor" | "Equal") => {
                (self.cast(a, DType::I64), self.cast(b, DType::I64))
            }
            _ => (a.clone(), b.clone()),
        };
        let dtype = if compares { dtype } else { a.dtype };
        let mut out = self.node(op, &[&a, &b], vec![], dtype, dims);
        out.weak = a.weak && b.weak && !compares;
        Some(out)
    }

    pub fn choose(&mut self, test: &Val, yes: &Val, no: &Val) -> Made<Array> {
        let test = self.array(test, None)?;
        let test = self.cast(&test, DType::Bool);
        let all = self.together(&[yes, no])?;
        let dims = broadcast(&test.dims, &broadcast(&all[0].dims, &all[1].dims)?)?;
        let weak = all[0].weak;
        let mut out = self.node("Where", &[&test, &all[0], &all[1]], vec![], all[0].dtype, dims);
        out.weak = weak;
        Some(out)
    }

    pub fn reshape(&mut self, a: &Array, dims: &[i64]) -> Array {
        let mut dims = dims.to_vec();
        if let Some(at) = dims.iter().position(|d| *d == -1) {
            let rest: i64 = dims.iter().filter(|d| **d != -1).product();
            dims[at] = if rest == 0 { 0 } else { a.size() / rest };
        }
        if dims == a.dims {
            return a.clone();
        }
        let shape = self.ints(&dims);
        let zero = dims.contains(&0);
        let attrs = if zero { vec![("allowzero", Attr::Int(1))] } else { vec![] };
        let mut out = self.node("Reshape", &[a, &shape], attrs, a.dtype, dims);
        out.weak = a.weak;
        out
    }

    pub fn transpose(&mut self, a: &Array, from: &[i64]) -> Made<Array> {
        let pick = |&i: &i64| a.dims.get(axis(i, a.rank())? as usize).copied();
        let dims: Vec<i64> = from.iter().map(pick).collect::<Option<_>>()?;
        if from.iter().enumerate().all(|(i, &f)| i as i64 == f) {
            return Some(a.clone());
        }
        let perm = vec![("perm", Attr::Ints(from.to_vec()))];
        Some(self.node("Transpose", &[a], perm, a.dtype, dims))
    }

    pub fn swap(&mut self, a: &Array, x: i64, y: i64) -> Made<Array> {
        let mut from: Vec<i64> = (0..a.rank()).collect();
        from.swap(axis(x, a.rank())? as usize, axis(y, a.rank())? as usize);
        self.transpose(a, &from)
    }

    pub fn expand(&mut self, a: &Array, dims: &[i64]) -> Made<Array> {
        if a.dims == dims {
            return Some(a.clone());
        }
        if broadcast(&a.dims, dims)? != dims {
            return None;
        }
        let shape = self.ints(dims);
        Some(self.node("Expand", &[a, &shape], vec![], a.dtype, dims.to_vec()))
    }

    /// A reduction over these axes, or all.
    pub fn reduce(&mut self, op: &str, a: &Array, axes: Option<&[i64]>, keep: bool) -> Made<Array> {
        let rank = a.rank();
        let axes: Vec<i64> = match axes {
            Some(axes) => axes.iter().map(|&i| axis(i, rank)).collect::<Option<_>>()?,
            None => (0..rank).collect(),
        };
        if axes.is_empty() {
            return Some(a.clone());
        }
        let mut dims = a.dims.clone();
        axes.iter().for_each(|&i| dims[i as usize] = 1);
        if !keep {
            let kept = dims.iter().enumerate().filter(|(i, _)| !axes.contains(&(*i as i64)));
            dims = kept.map(|(_, d)| *d).collect();
        }
        let row = self.ints(&axes);
        let keep = vec![("keepdims", Attr::Int(i64::from(keep)))];
        Some(self.node(op, &[a, &row], keep, a.dtype, dims))
    }

    /// A matrix product, with NumPy's rules for vectors and stacks.
    pub fn matmul(&mut self, a: &Val, b: &Val) -> Made<Array> {
        let all = self.together(&[a, b])?;
        let (a, b) = (&all[0], &all[1]);
        let mut dims = match (a.dims.len(), b.dims.len()) {
            (0, _) | (_, 0) => return None,
            (1, 1) => vec![],
            (1, n) => b.dims[..n - 2].to_vec(),
            (n, 1) => a.dims[..n - 2].to_vec(),
            (n, m) => broadcast(&a.dims[..n - 2], &b.dims[..m - 2])?,
        };
        dims.extend((a.dims.len() > 1).then(|| a.dims[a.dims.len() - 2]));
        dims.extend((b.dims.len() > 1).then(|| b.dims[b.dims.len() - 1]));
        Some(self.node("MatMul", &[a, b], vec![], a.dtype, dims))
    }

    pub fn concat(&mut self, all: &[Val], at: i64) -> Made<Array> {
        let all = self.together(&all.iter().collect::<Vec<_>>())?;
        let at = axis(at, all.first()?.rank())?;
        let mut dims = all[0].dims.clone();
        dims[at as usize] = all.iter().map(|a| a.dims[at as usize]).sum();
        let parts: Vec<&Array> = all.iter().collect();
        Some(self.node("Concat", &parts, vec![("axis", Attr::Int(at))], all[0].dtype, dims))
    }

    /// Takes slices along an axis.
    pub fn gather(&mut self, a: &Array, index: &Array, at: i64) -> Made<Array> {
        let at = axis(at, a.rank())? as usize;
        let mut dims = a.dims[..at].to_vec();
        dims.extend(&index.dims);
        dims.extend(&a.dims[at + 1..]);
        let attrs = vec![("axis", Attr::Int(at as i64))];
        Some(self.node("Gather", &[a, index], attrs, a.dtype, dims))
    }

    /// Takes elements along an axis.
    pub fn elements(&mut self, a: &Array, index: &Array, at: i64) -> Made<Array> {
        let at = axis(at, a.rank())?;
        let attrs = vec![("axis", Attr::Int(at))];
        Some(self.node("GatherElements", &[a, index], attrs, a.dtype, index.dims.clone()))
    }

    /// A slice of each axis: start, end and step, with NumPy's ends where the step is negative.
    pub fn slice(&mut self, a: &Array, cuts: &[(i64, i64, i64, i64)]) -> Array {
        let mut dims = a.dims.clone();
        let (mut starts, mut ends, mut axes, mut steps) = (vec![], vec![], vec![], vec![]);
        for &(at, start, count, step) in cuts {
            let size = dims[at as usize];
            if (start, count, step) == (0, size, 1) {
                continue;
            }
            dims[at as usize] = count;
            let end = if count == 0 { start } else { start + step * count };
            starts.push(start);
            ends.push(if end < 0 { i64::MIN } else { end });
            axes.push(at);
            steps.push(step);
        }
        if axes.is_empty() {
            return a.clone();
        }
        let parts = [starts, ends, axes, steps].map(|p| self.ints(&p));
        let [s, e, x, t] = &parts;
        self.node("Slice", &[a, s, e, x, t], vec![], a.dtype, dims)
    }

    /// Scatter-adds elements at flat indices into zeros.
    pub fn scattered(&mut self, g: &Array, at: &[i64], dims: &[i64]) -> Made<Array> {
        let size: i64 = dims.iter().product();
        let zeros = self.full(g.dtype, &[size], 0.0)?;
        let index = self.ints(at);
        let flat = self.reshape(g, &[-1]);
        let out = self.add_elements(&zeros, &index, &flat, 0);
        Some(self.reshape(&out, dims))
    }

    pub fn add_elements(&mut self, x: &Array, index: &Array, g: &Array, at: i64) -> Array {
        let attrs = vec![("axis", Attr::Int(at)), ("reduction", Attr::Text("add"))];
        self.node("ScatterElements", &[x, index, g], attrs, x.dtype, x.dims.clone())
    }
}

/// An axis, normalised.
pub(crate) fn axis(at: i64, rank: i64) -> Made<i64> {
    let at = if at < 0 { at + rank } else { at };
    (0..rank).contains(&at).then_some(at)
}
