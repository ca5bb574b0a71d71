//! The tensor: a cheap handle of an immutable value, and how it was made.
//!
//! This module has the handle, the value and its memory, views, conversion and printing, the
//! [`op::Op`] trait, the node that records one use of an op, and the code that runs an op. The ops
//! themselves are in `ops/`; walking the tape is in `autograd/`.

pub mod arena;
pub mod behind;
pub mod buffer;
mod convert;
mod elements;
pub mod foreign;
mod leaf;
pub mod log;
mod map;
pub mod memory;
pub mod node;
pub mod op;
pub mod place;
mod print;
pub mod reading;
pub mod role;
pub mod run;
mod saved;
pub mod scope;
pub mod shown;
mod tile;
pub mod value;
pub mod watch;
pub(crate) mod widen;
pub mod work;

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::dtype::{DType, Stored};
use crate::error::{Error, Result, raise};
use crate::param::{Param, Parameters};
use crate::shape::{Shape, Strides};
use node::{HeldObject, Hook, Mode, Notes, Registered, Source, next_number};
use value::{Meta, Value};

pub use convert::{Elements, IntoTensor};
pub use leaf::LeafGuard;

/// An array of numbers with up to eight axes, and the record of how it was computed.
///
/// A clone is another handle of the same tensor. Values never change; only a leaf made by
/// [`Tensor::parameter`] or [`Tensor::buffer`] can be given a new value. Operators and methods
/// panic on a mistake with the full message; each method has a twin `try_...` that returns it as an
/// [`Error`].
///
/// ```
/// use chainrule::Tensor;
/// let x = Tensor::from([2.0f64]).parameter();
/// let z = &x * &x * 3.0;
/// z.sum_all().backward();
/// assert_eq!(x.grad().unwrap().to_vec::<f64>(), [12.0]);
/// ```
#[derive(Clone)]
pub struct Tensor {
    /// `None` for a leaf, whose value is asked of the leaf.
    value: Option<Arc<Value>>,
    source: Source,
}

/// The value of a tensor: borrowed, except from a leaf, which may change.
pub enum ValueRef<'a> {
    Borrowed(&'a Arc<Value>),
    Owned(Arc<Value>),
}

impl Deref for ValueRef<'_> {
    type Target = Arc<Value>;
    #[inline]
    fn deref(&self) -> &Arc<Value> {
        match self {
            ValueRef::Borrowed(value) => value,
            ValueRef::Owned(value) => value,
        }
    }
}

impl Parameters for Tensor {
    /// The address of the value, since a parameter that is a tensor is a constant.
    fn parameters(&self) -> Param {
        Param::Tensor(Arc::as_ptr(&self.value_ref()).addr())
    }
}

impl Tensor {
    #[inline]
    #[doc(hidden)]
    pub fn from_parts(value: Arc<Value>, source: Source) -> Tensor {
        Tensor { value: Some(value), source }
    }

    /// Drops the tensor, and keeps the allocation of its value if it has no other owner.
    #[doc(hidden)]
    pub fn recycle(self) {
        if let Some(value) = self.value {
            Value::recycle(value);
        }
    }

    /// A constant.
    #[inline]
    #[doc(hidden)]
    pub fn constant(value: Value) -> Tensor {
        Tensor::from_parts(Arc::new(value), Source::None)
    }

    #[inline]
    #[doc(hidden)]
    pub fn value(&self) -> Arc<Value> {
        match (&self.value, &self.source) {
            (Some(value), _) => value.clone(),
            (None, Source::Leaf(leaf)) => leaf.value(),
            (None, _) => unreachable!("only a leaf keeps its value elsewhere"),
        }
    }

    /// Fetches the value of a leaf if a newer one is elsewhere, as on a device, so that a read
    /// cannot fail.
    #[inline]
    #[doc(hidden)]
    pub fn catch_up(&self) -> Result<()> {
        match (&self.value, &self.source) {
            (None, Source::Leaf(leaf)) => leaf.value.catch_up(),
            _ => Ok(()),
        }
    }

    /// As [`Tensor::value_ref`], with the error of fetching a newer value of a leaf.
    #[inline]
    #[doc(hidden)]
    pub fn try_value_ref(&self) -> Result<ValueRef<'_>> {
        self.catch_up()?;
        Ok(self.value_ref())
    }

    /// The value, without another reference where that is possible.
    #[inline]
    #[doc(hidden)]
    pub fn value_ref(&self) -> ValueRef<'_> {
        match &self.value {
            Some(value) => ValueRef::Borrowed(value),
            None => ValueRef::Owned(self.value()),
        }
    }

    /// The value to change in place, if this handle is the only one.
    #[inline]
    #[doc(hidden)]
    pub fn exclusive<T: Stored>(&mut self) -> Option<&mut [T]> {
        Value::unique(self.value.as_mut()?)
    }

    #[inline]
    #[doc(hidden)]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Shape and dtype.
    #[inline]
    #[doc(hidden)]
    pub fn meta(&self) -> Meta {
        match (&self.value, &self.source) {
            (Some(value), _) => value.meta,
            (None, Source::Leaf(leaf)) => leaf.meta,
            (None, _) => unreachable!("only a leaf keeps its value elsewhere"),
        }
    }

    /// The sizes of the axes.
    #[inline]
    pub fn shape(&self) -> Shape {
        self.meta().shape
    }

    /// The type of the elements.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.meta().dtype
    }

    /// The number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape().rank()
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.shape().numel()
    }

    /// The size of one axis; negative axes count from the end.
    #[track_caller]
    pub fn size(&self, axis: i64) -> usize {
        let shape = self.shape();
        match shape.axis("size", axis) {
            Ok(a) => shape[a],
            Err(e) => raise(e.into()),
        }
    }

    /// Whether the elements lie in memory in row-major order without gaps.
    pub fn is_contiguous(&self) -> bool {
        match self.try_value_ref() {
            Ok(value) => value.is_contiguous(),
            Err(_) => self.other_strides().is_none(),
        }
    }

    /// Its strides, if the elements do not lie in row-major order without gaps.
    #[inline]
    #[doc(hidden)]
    pub fn other_strides(&self) -> Option<Strides> {
        let of = |value: &Value| (!value.is_contiguous()).then(|| value.layout().strides);
        match (&self.value, &self.source) {
            (Some(value), _) => of(value),
            (None, Source::Leaf(leaf)) => {
                // The error comes from whatever reads the elements.
                let _ = leaf.value.catch_up();
                of(&leaf.value.here())
            }
            (None, _) => None,
        }
    }

    /// The op that made this tensor, if it was recorded.
    pub fn op_name(&self) -> Option<&'static str> {
        match &self.source {
            Source::Node(node) => Some(node.op.name()),
            _ => None,
        }
    }

    /// The row of the op that made this, if it was recorded and has one.
    #[doc(hidden)]
    pub fn op_id(&self) -> Option<crate::ops::OpId> {
        match &self.source {
            Source::Node(node) => node.op.id(),
            _ => None,
        }
    }

    /// Whether two handles are of the same leaf or the same recorded result.
    pub fn is_same(&self, other: &Tensor) -> bool {
        match (&self.source, &other.source) {
            (Source::Leaf(a), Source::Leaf(b)) => Arc::ptr_eq(a, b),
            (Source::Node(a), Source::Node(b)) => Arc::ptr_eq(a, b),
            (Source::None, Source::None) => match (&self.value, &other.value) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                _ => false,
            },
            _ => false,
        }
    }

    // Gradients

    /// The gradient that backward accumulated, or `None`: not computed is not zero.
    /// [`Tensor::try_grad`] says why there is none.
    pub fn grad(&self) -> Option<Tensor> {
        if log::is_on() {
            log::touch_gradient(&self.source, true);
        }
        self.source.notes()?.as_mut()?.grad_now()
    }

    /// The gradient, or an error with the reason why there is none.
    pub fn try_grad(&self) -> Result<Tensor> {
        if let Some(grad) = self.grad() {
            return Ok(grad);
        }
        let why = match &self.source {
            Source::None => {
                "the tensor is a constant: it was detached, made under no_grad, or comes from nothing that requires a gradient"
            }
            Source::Leaf(leaf) if !leaf.requires_grad.load(Ordering::Relaxed) => {
                "the leaf does not require a gradient; make it with parameter()"
            }
            Source::Leaf(_) => {
                "backward has not reached this leaf since zero_grad; is it used in the loss, and was backward called?"
            }
            Source::Node(_) => {
                "this is an intermediate: call retain_grad() on it, or compute inside record_all, before backward"
            }
        };
        Err(Error::gradient("grad", why))
    }

    /// Sets the gradient to this, or to none.
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        if let Some(grad) = &grad
            && grad.meta() != self.meta()
        {
            return Err(Error::shape(
                "set_grad",
                &[&self.shape(), &grad.shape()],
                format!(
                    "a gradient has the shape and dtype of its tensor ({}); this one is {}",
                    self.dtype(),
                    grad.dtype()
                ),
            ));
        }
        if log::is_on() {
            log::touch_gradient(&self.source, false);
        }
        match self.source.notes() {
            Some(mut notes) => {
                notes.get_or_insert_default().put_grad(grad)?;
            }
            None if grad.is_none() => {}
            None => {
                return Err(Error::gradient(
                    "set_grad",
                    "a constant has no gradient; call parameter() first",
                ));
            }
        }
        Ok(())
    }

    /// Forgets the gradient: the next backward starts anew instead of adding to it.
    pub fn zero_grad(&self) {
        if log::is_on() {
            log::touch_gradient(&self.source, false);
        }
        if let Some(mut notes) = self.source.notes()
            && let Some(notes) = notes.as_mut()
        {
            (notes.grad, notes.home, notes.lost) = (None, None, false);
        }
    }

    /// The leaf that holds the gradient, if there is one.
    #[doc(hidden)]
    pub fn grad_home(&self) -> Option<Tensor> {
        self.source.notes()?.as_ref()?.home.clone()
    }

    /// Keeps the gradient in a leaf, whose value it is now: gradients are added to it, or replace
    /// it, there, until it is cleared.
    #[doc(hidden)]
    pub fn keep_grad_in(&self, home: Tensor) -> Result<()> {
        self.zero_grad();
        self.set_grad(Some(home.detach()))?;
        if let Some(mut notes) = self.source.notes() {
            notes.get_or_insert_default().home = Some(home);
        }
        Ok(())
    }

    /// Records that a program computed the gradient and used it up: until it is set or cleared it
    /// is unknown, whatever is added to it. For bindings, which must refuse to read it: see
    /// [`Tensor::has_lost_grad`].
    pub fn lose_grad(&self) {
        if let Some(mut notes) = self.source.notes() {
            let notes = notes.get_or_insert_default();
            (notes.grad, notes.home, notes.lost) = (None, None, true);
        }
    }

    /// Whether [`Tensor::lose_grad`] was the last change of the gradient.
    pub fn has_lost_grad(&self) -> bool {
        self.source.notes().is_some_and(|notes| notes.as_ref().is_some_and(|n| n.lost))
    }

    /// Asks backward to keep the gradient of this intermediate. Without effect on leaves, which
    /// keep it anyway. Returns the tensor.
    pub fn retain_grad(&self) -> Tensor {
        if let Some(mut notes) = self.source.notes() {
            notes.get_or_insert_default().retain = true;
        }
        self.clone()
    }

    /// Names the tensor, for listings, tables and traces. A constant has no place for a name.
    /// Returns the tensor.
    pub fn named(&self, name: &str) -> Tensor {
        if log::is_on() {
            log::named(&self.value(), name);
        }
        if let Some(mut notes) = self.source.notes() {
            notes.get_or_insert_default().name = Some(name.to_string());
        }
        self.clone()
    }

    /// The name given by [`Tensor::named`].
    pub fn name(&self) -> Option<String> {
        self.source.name()
    }

    /// Calls `hook` with the whole gradient of this tensor during each backward pass; a returned
    /// tensor replaces the gradient.
    ///
    /// Errors for a constant, which gets no gradient. The handle that comes back removes the hook.
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Option<Tensor> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        self.registered(Arc::new(hook), None)
    }

    /// As [`Tensor::register_hook`], for a hook that holds an object of another language.
    #[doc(hidden)]
    pub fn register_hook_holding(
        &self,
        hook: impl Fn(&Tensor) -> Option<Tensor> + Send + Sync + 'static,
        held: Arc<dyn Any + Send + Sync>,
    ) -> Result<HookHandle> {
        self.registered(Arc::new(hook), Some(held))
    }

    /// Calls `visit` with each object that a hook holds and that is gone when this tensor is: for
    /// the collector of another language.
    #[doc(hidden)]
    pub fn visit_held(&self, visit: &mut dyn FnMut(&Arc<dyn Any + Send + Sync>)) {
        self.source.visit_held(visit);
    }

    fn registered(&self, hook: Hook, held: Option<HeldObject>) -> Result<HookHandle> {
        let number = next_number();
        let Some(mut notes) = self.source.notes() else {
            return Err(Error::gradient(
                "register_hook",
                "a constant gets no gradient; call parameter() first",
            ));
        };
        notes.get_or_insert_default().hooks.push(Registered::new(number, hook, held));
        drop(notes);
        Ok(HookHandle { source: self.source.clone(), number })
    }

    /// The same value, cut off from the tape: no gradient flows back through it.
    pub fn detach(&self) -> Tensor {
        Tensor::from_parts(self.value(), Source::None)
    }

    /// In the dtype that kernels compute with: itself, for most.
    pub(crate) fn widened(&self) -> Result<Tensor> {
        self.try_to_dtype(self.dtype().computing())
    }
}

/// Removes a hook.
pub struct HookHandle {
    source: Source,
    number: u64,
}

impl HookHandle {
    /// Removes the hook from its tensor.
    pub fn remove(self) {
        let mut next = Some(self.source);
        while let Some(source) = next {
            let Some(mut notes) = source.notes() else { return };
            let Some(notes) = notes.as_mut() else { return };
            notes.hooks.retain(|h| h.number != self.number);
            next = notes.heir.clone();
        }
    }
}

/// Runs `f` without recording: its results are constants for differentiation.
///
/// ```
/// use chainrule::{Tensor, no_grad};
/// let w = Tensor::from([1.0f32]).parameter();
/// let y = no_grad(|| &w * 2.0);
/// assert!(!y.requires_grad());
/// ```
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    let _guard = Mode::get().with(Mode::NO_GRAD).enter();
    f()
}

/// Runs `f` with recording on, also inside [`no_grad`].
pub fn enable_grad<R>(f: impl FnOnce() -> R) -> R {
    let _guard = Mode::get().without(Mode::NO_GRAD).enter();
    f()
}

/// Runs `f` with products of half precision, as PyTorch's `autocast`: `matmul`, `linear`, attention
/// and convolutions of f32 tensors, and what is made of them, as recurrent layers, round their
/// operands to `dtype`, and sum in f32. All values stay f32, so that weights, gradients and the
/// state of an optimizer need no copies of their own. Under the dtype f32 products are whole again,
/// also inside of another `autocast`.
///
/// Each product keeps its precision: its backward products round the gradient and the other operand
/// in the same way, wherever `backward` is called, and a program traced inside has them. Products
/// of f64 and of integers stay as they are.
///
/// Products of more than one row and column run on AVX512-BF16 if the processor has it: they take
/// subnormal numbers as zero. Elsewhere the rounded operands are multiplied in f32, which is not
/// faster than without `autocast`.
///
/// Errors for a dtype other than bf16 and f32.
///
/// ```
/// use chainrule::{DType, Tensor, try_autocast};
/// let x = Tensor::from([[1.00390625f32, 2.0]]);
/// let w = Tensor::from([[1.0f32], [0.0]]).parameter();
/// let y = try_autocast(DType::BF16, || x.matmul(&w))?;
/// // 1 + 1/256 lies between two numbers of bf16.
/// assert_eq!((y.dtype(), y.item()), (DType::F32, 1.0));
/// assert_eq!(x.matmul(&w).item(), 1.00390625);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn try_autocast<R>(dtype: DType, f: impl FnOnce() -> R) -> Result<R> {
    let mode = match dtype {
        DType::BF16 => Mode::get().with(Mode::BF16),
        DType::F32 => Mode::get().without(Mode::BF16),
        _ => {
            let why = "products are computed on bf16 or f32";
            return Err(Error::dtype("autocast", &[dtype], why));
        }
    };
    let _guard = mode.enter();
    Ok(f())
}

/// [`try_autocast`].
///
/// # Panics
///
/// For a dtype other than bf16 and f32.
#[track_caller]
pub fn autocast<R>(dtype: DType, f: impl FnOnce() -> R) -> R {
    try_autocast(dtype, f).unwrap_or_else(|e| panic!("{e}"))
}

/// The dtype of the operands of products on this thread, under [`try_autocast`].
pub fn autocast_dtype() -> Option<DType> {
    Mode::get().has(Mode::BF16).then_some(DType::BF16)
}

/// Whether ops are recorded at present on this thread.
pub fn is_grad_enabled() -> bool {
    !Mode::get().has(Mode::NO_GRAD)
}

/// Runs `f` so that every intermediate keeps its value and, after backward, its gradient.
///
/// ```
/// use chainrule::{Tensor, record_all};
/// let w = Tensor::from([3.0f32]).parameter();
/// let (h, loss) = record_all(|| {
///     let h = &w * 2.0;
///     let loss = (&h * &h).sum_all();
///     (h, loss)
/// });
/// loss.backward();
/// assert_eq!(h.grad().unwrap().item(), 12.0);
/// ```
pub fn record_all<R>(f: impl FnOnce() -> R) -> R {
    let _guard = Mode::get().with(Mode::RECORD_ALL).enter();
    f()
}

impl Notes {
    /// The hooks, to be called without the lock held.
    pub(crate) fn hooks(&self) -> Vec<Hook> {
        self.hooks.iter().map(|h| h.hook.clone()).collect()
    }
}
