//! The forward pass as a rule of differentiation sees it.

use std::sync::Arc;

use super::Tensor;
use super::node::{Node, SavedValues, Source};
use super::op::Op;
use super::value::Meta;
use crate::error::{Result, raise};
use crate::shape::Shape;

/// The forward pass as a rule sees it. With `link` the tensors are connected to the tape, so that
/// the rule's own operations are recorded.
///
/// Dtypes that are only stored are shown widened ([`DType::computing`](crate::DType::computing)),
/// unless the op takes them as they are ([`Op::takes_stored`]): a rule computes in f32 for halves,
/// and its gradients are rounded once.
pub struct Saved<'a> {
    pub(super) node: &'a Arc<Node>,
    pub(super) values: &'a SavedValues,
    pub(super) link: bool,
}

impl<'a> Saved<'a> {
    pub fn new(node: &'a Arc<Node>, values: &'a SavedValues, link: bool) -> Self {
        Saved { node, values, link }
    }

    /// Input `i` as it was. The op must have asked for it in [`Op::saves`].
    pub fn input(&self, i: usize) -> Tensor {
        let value = self.values.inputs.get(i).and_then(Option::as_ref);
        let value =
            value.unwrap_or_else(|| panic!("{}: input {i} was not saved", self.node.op.name()));
        let source = if self.link { self.node.inputs[i].clone() } else { Source::None };
        self.shown(Tensor::from_parts(value.clone(), source))
    }

    /// All inputs as they were.
    pub fn inputs(&self) -> Vec<Tensor> {
        (0..self.node.inputs.len()).map(|i| self.input(i)).collect()
    }

    /// The result as it was. The op must have asked for it.
    pub fn output(&self) -> Tensor {
        let value = self.values.output.as_ref();
        let value =
            value.unwrap_or_else(|| panic!("{}: the output was not saved", self.node.op.name()));
        let source = if self.link { Source::Node(self.node.clone()) } else { Source::None };
        self.shown(Tensor::from_parts(value.clone(), source))
    }

    /// Extra result `i` of the kernel; a constant for differentiation.
    pub fn extra(&self, i: usize) -> Tensor {
        Tensor::from_parts(self.values.extra[i].clone(), Source::None)
    }

    /// Whether the rule's own operations are recorded.
    pub fn is_linked(&self) -> bool {
        self.link
    }

    /// Shape and dtype of input `i`, which must be saved or have a wanted gradient.
    pub fn input_meta(&self, i: usize) -> Meta {
        let meta = match self.node.inputs[i].meta() {
            Some(meta) => meta,
            None => {
                self.values.inputs[i].as_ref().expect("a constant input that was not saved").meta
            }
        };
        shown_meta(&*self.node.op, meta)
    }

    /// The shape of input `i`.
    pub fn input_shape(&self, i: usize) -> Shape {
        self.input_meta(i).shape
    }

    /// Shape and dtype of the result.
    pub fn output_meta(&self) -> Meta {
        shown_meta(&*self.node.op, self.node.meta)
    }

    /// A tensor as rules see it.
    fn shown(&self, t: Tensor) -> Tensor {
        shown(&*self.node.op, t).unwrap_or_else(|e| raise(e))
    }
}

/// A tensor as the rules of `op` see it: widened, if its dtype is only stored.
#[inline]
pub fn shown(op: &dyn Op, t: Tensor) -> Result<Tensor> {
    if t.dtype().is_widened() && !op.takes_stored() { t.widened() } else { Ok(t) }
}

/// Shape and dtype of a tensor as the rules of `op` see it.
#[inline]
pub fn shown_meta(op: &dyn Op, meta: Meta) -> Meta {
    if op.takes_stored() { meta } else { Meta::new(meta.shape, meta.dtype.computing()) }
}
