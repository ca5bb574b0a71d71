//! Arguments of a rule: inputs and attributes of a node.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use super::plan::{Body, PlanScope, Step};
use super::wrong;

/// An attribute.
pub(super) enum CallAttr {
    Float(f64),
    Int(i64),
    Text(String),
    Tensor(Tensor),
    Graph(Body),
    Floats(Vec<f64>),
    Ints(Vec<i64>),
    Texts(Vec<String>),
}

/// A node with its inputs.
pub(super) struct Call<'a> {
    pub step: &'a Step,
    pub inputs: Vec<Option<Tensor>>,
    pub scope: &'a PlanScope<'a>,
}

/// The results of a node.
pub(super) type NodeResult = Result<Vec<Tensor>>;

/// One result.
pub(super) fn one(t: Tensor) -> NodeResult {
    Ok(vec![t])
}

impl Call<'_> {
    /// A required input.
    pub fn x(&self, i: usize) -> Result<&Tensor> {
        self.opt(i).ok_or_else(|| wrong(format!("its input {i} is missing")))
    }

    /// An optional input.
    pub fn opt(&self, i: usize) -> Option<&Tensor> {
        self.inputs.get(i)?.as_ref()
    }

    /// All inputs, none of which may be omitted.
    pub fn all(&self) -> Result<Vec<&Tensor>> {
        (0..self.inputs.len()).map(|i| self.x(i)).collect()
    }

    /// Whether the result of this index is used.
    pub fn wants(&self, i: usize) -> bool {
        self.step.outputs.get(i).is_some_and(|name| !name.is_empty())
    }

    pub fn opset(&self) -> i64 {
        self.step.opset
    }

    pub fn attr(&self, name: &str) -> Option<&CallAttr> {
        self.step.attrs.get(name)
    }

    pub fn int_or_none(&self, name: &str) -> Option<i64> {
        match self.attr(name) {
            Some(CallAttr::Int(n)) => Some(*n),
            _ => None,
        }
    }

    pub fn int(&self, name: &str, default: i64) -> i64 {
        self.int_or_none(name).unwrap_or(default)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.int(name, 0) != 0
    }

    pub fn float_or_none(&self, name: &str) -> Option<f64> {
        match self.attr(name) {
            Some(CallAttr::Float(x)) => Some(*x),
            Some(CallAttr::Int(n)) => Some(*n as f64),
            _ => None,
        }
    }

    pub fn float(&self, name: &str, default: f64) -> f64 {
        // Attributes are f32, and so are their defaults.
        self.float_or_none(name).unwrap_or(f64::from(default as f32))
    }

    pub fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        match self.attr(name) {
            Some(CallAttr::Text(text)) => text,
            _ => default,
        }
    }

    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.attr(name) {
            Some(CallAttr::Ints(all)) => Some(all.clone()),
            _ => None,
        }
    }

    pub fn sizes(&self, name: &str) -> Result<Option<Vec<usize>>> {
        self.ints(name).map(|all| sizes(&all)).transpose()
    }

    pub fn floats(&self, name: &str) -> Option<Vec<f64>> {
        match self.attr(name) {
            Some(CallAttr::Floats(all)) => Some(all.clone()),
            _ => None,
        }
    }

    pub fn graph(&self, name: &str) -> Result<&Body> {
        match self.attr(name) {
            Some(CallAttr::Graph(body)) => Ok(body),
            _ => Err(wrong(format!("its graph `{name}` is missing"))),
        }
    }

    /// Numbers from an input or, in older opsets, an attribute.
    pub fn ints_at(&self, i: usize, name: &str) -> Result<Option<Vec<i64>>> {
        match self.opt(i) {
            Some(t) => integers(t).map(Some),
            None => Ok(self.ints(name)),
        }
    }

    /// The scalar of an input.
    pub fn int_at(&self, i: usize) -> Result<Option<i64>> {
        let Some(t) = self.opt(i) else { return Ok(None) };
        match integers(t)?.as_slice() {
            [n] => Ok(Some(*n)),
            all => Err(wrong(format!("its input {i} has {} numbers instead of one", all.len()))),
        }
    }

    pub fn float_at(&self, i: usize) -> Result<Option<f64>> {
        let Some(t) = self.opt(i) else { return Ok(None) };
        match numbers(t)?.as_slice() {
            [x] => Ok(Some(*x)),
            all => Err(wrong(format!("its input {i} has {} numbers instead of one", all.len()))),
        }
    }

    /// An axis attribute, normalised.
    pub fn axis(&self, name: &str, default: i64, rank: usize) -> Result<usize> {
        axis(self.int(name, default), rank)
    }
}

/// An axis, normalised.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize> {
    let at = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    let at = at.and_then(|at| usize::try_from(at).ok()).filter(|&at| at < rank);
    at.ok_or_else(|| wrong(format!("axis {axis} of {rank} axes")))
}

/// The elements of an integer tensor, as sizes and indices.
pub(super) fn integers(t: &Tensor) -> Result<Vec<i64>> {
    t.try_to_dtype(DType::I64)?.try_to_vec::<i64>()
}

/// The elements of a tensor.
pub(super) fn numbers(t: &Tensor) -> Result<Vec<f64>> {
    t.try_to_dtype(DType::F64)?.try_to_vec::<f64>()
}

/// Sizes, which are not negative.
pub(super) fn sizes(all: &[i64]) -> Result<Vec<usize>> {
    let size = |&n: &i64| usize::try_from(n).map_err(|_| wrong(format!("a size of {n}")));
    all.iter().map(size).collect()
}

/// Limit on elements that a rule allocates for sizes in a file.
const MOST: usize = 1 << 28;

/// The number of elements of these sizes, within that limit.
pub(super) fn bounded(sizes: &[usize]) -> Result<usize> {
    let count = sizes.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    let count = count.filter(|&count| count <= MOST);
    count.ok_or_else(|| wrong(format!("sizes {sizes:?} are more than it can take")))
}

/// A vector of integers.
pub(super) fn row(all: &[i64]) -> Result<Tensor> {
    Tensor::try_from_slice(all, [all.len()])
}

/// A number of this dtype.
pub(super) fn scalar(x: f64, dtype: DType) -> Result<Tensor> {
    Tensor::try_full((), x, dtype)
}

/// The shape as a list.
pub(super) fn dims(t: &Tensor) -> Vec<usize> {
    t.shape().to_vec()
}

/// As [`dims`], with a sign.
pub(super) fn signed(t: &Tensor) -> Vec<i64> {
    t.shape().iter().map(|&d| d as i64).collect()
}
