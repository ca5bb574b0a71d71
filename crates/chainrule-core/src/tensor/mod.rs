//! The tensor: a cheap handle of an immutable value, and how it was made.
//!
//! Here live the handle, the value and its memory, views, conversion and printing, the [`op::Op`]
//! trait, the node that records one use of an op, and the code that runs an op. The ops are the
//! business of `ops/`; walking the tape is that of `autograd/`.

pub mod arena;
pub mod buffer;
mod convert;
pub mod foreign;
mod leaf;
pub mod log;
mod map;
pub mod node;
pub mod op;
pub mod place;
mod print;
pub mod reading;
pub mod run;
pub mod value;
pub mod watch;
pub(crate) mod widen;
pub mod work;

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::dtype::{DType, Element, Stored};
use crate::error::{Error, Result, raise};
use crate::param::{Param, Parameters};
use crate::shape::{IntoShape, MAX_RANK, Shape};
use node::{HeldObject, Hook, Mode, Notes, Registered, Source, next_number};
use value::{Layout, Meta, Value};

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
    /// The address of the value: a parameter that is a tensor is a constant.
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

    /// Drops the tensor, and keeps the allocation of its value if nobody else holds it.
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

    /// The value without another count of its owners, where that is possible.
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
        self.value_ref().is_contiguous()
    }

    /// The op that made this tensor, if it was recorded.
    pub fn op_name(&self) -> Option<&'static str> {
        match &self.source {
            Source::Node(node) => Some(node.op.name()),
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
        self.source.notes()?.as_ref()?.grad.clone()
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
                let notes = notes.get_or_insert_default();
                (notes.grad, notes.lost) = (grad, false);
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
            (notes.grad, notes.lost) = (None, false);
        }
    }

    /// Says that a program computed the gradient and used it up: until it is set or forgotten it is
    /// unknown, whatever is added to it. For bindings, which must refuse to read it: see
    /// [`Tensor::has_lost_grad`].
    pub fn lose_grad(&self) {
        if let Some(mut notes) = self.source.notes() {
            let notes = notes.get_or_insert_default();
            (notes.grad, notes.lost) = (None, true);
        }
    }

    /// Whether [`Tensor::lose_grad`] was the last word about the gradient.
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

    /// Calls `hook` with the whole gradient of this tensor during each backward pass; what it
    /// returns replaces the gradient.
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

    // Elements

    /// The elements in row-major order. Panics if `E` does not match the dtype; i64, i32 and usize
    /// read every integer.
    #[track_caller]
    pub fn to_vec<E: Element>(&self) -> Vec<E> {
        match self.try_to_vec() {
            Ok(v) => v,
            Err(e) => raise(e),
        }
    }

    /// Like [`Tensor::to_vec`], but returns the error.
    pub fn try_to_vec<E: Element>(&self) -> Result<Vec<E>> {
        let value = self.value_ref();
        log::check_read("to_vec", &value)?;
        watch::read(&value);
        if !E::reads(value.dtype()) {
            let why = format!(
                "the elements are not {}; convert with to_dtype first",
                std::any::type_name::<E>()
            );
            return Err(Error::dtype("to_vec", &[value.dtype()], why));
        }
        let mut out = vec![E::Stored::default(); value.numel()];
        match value.dtype() == E::DTYPE {
            true => value.copy_to::<E::Stored>(&mut out),
            false => widen::cast(&value, E::DTYPE)?.copy_to::<E::Stored>(&mut out),
        }
        Ok(out.into_iter().map(E::load).collect())
    }

    /// The elements as f64, whatever the dtype, in row-major order.
    #[track_caller]
    pub fn to_f64_vec(&self) -> Vec<f64> {
        let value = self.value_ref();
        if let Err(e) = log::check_read("to_f64_vec", &value) {
            raise(e)
        }
        watch::read(&value);
        let mut out = vec![0.0; value.numel()];
        match value.dtype() {
            DType::F64 => value.copy_to(&mut out),
            _ => match widen::cast(&value, DType::F64) {
                Ok(wide) => wide.copy_to(&mut out),
                Err(e) => raise(e),
            },
        }
        out
    }

    /// The only element as an f64, whatever the dtype. Panics if there is not exactly one.
    #[track_caller]
    pub fn item(&self) -> f64 {
        match self.try_item() {
            Ok(x) => x,
            Err(e) => raise(e),
        }
    }

    /// Like [`Tensor::item`], but returns the error.
    pub fn try_item(&self) -> Result<f64> {
        let value = self.value_ref();
        log::check_read("item", &value)?;
        watch::read(&value);
        if value.numel() != 1 {
            let why = format!(
                "a tensor of {} elements has no single one; index or reduce it first",
                value.numel()
            );
            return Err(Error::shape("item", &[value.shape()], why));
        }
        Ok(match value.dtype() {
            DType::F32 => value.first::<f32>() as f64,
            DType::F64 => value.first::<f64>(),
            DType::I64 => value.first::<i64>() as f64,
            DType::Bool => value.first::<u8>() as f64,
            _ => widen::cast(&value, DType::F64)?.first::<f64>(),
        })
    }

    /// The element at this index. Panics if the index does not fit the shape or `E` the dtype.
    #[track_caller]
    pub fn at<E: Element>(&self, index: &[usize]) -> E {
        let value = self.value_ref();
        if let Err(e) = log::check_read("at", &value) {
            raise(e)
        }
        watch::read(&value);
        let shape = *value.shape();
        if index.len() != shape.rank() || index.iter().zip(shape.iter()).any(|(i, d)| i >= d) {
            raise(Error::shape("at", &[&shape], format!("there is no element {index:?}")));
        }
        if !E::reads(value.dtype()) {
            raise(Error::dtype("at", &[value.dtype()], "convert with to_dtype first"));
        }
        let layout = value.layout();
        let step: isize = index.iter().zip(layout.strides).map(|(&i, s)| i as isize * s).sum();
        let at = (layout.offset as isize + step) as usize;
        if value.dtype() != E::DTYPE {
            let element = Layout { offset: at, strides: [0; MAX_RANK] };
            let element = Value::view(&value, Shape::SCALAR, element);
            return match widen::cast(&element, E::DTYPE) {
                Ok(wide) => E::load(wide.first()),
                Err(e) => raise(e),
            };
        }
        E::load(value.strided::<E::Stored>()[at])
    }

    /// A tensor from its elements in row-major order.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let t = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]);
    /// assert_eq!(t.shape(), [2, 3]);
    /// ```
    #[track_caller]
    pub fn from_slice<E: Element>(elements: &[E], shape: impl IntoShape) -> Tensor {
        match Tensor::try_from_slice(elements, shape) {
            Ok(t) => t,
            Err(e) => raise(e),
        }
    }

    /// Like [`Tensor::from_slice`], but returns the error.
    pub fn try_from_slice<E: Element>(elements: &[E], shape: impl IntoShape) -> Result<Tensor> {
        let shape = shape.into_shape("from_slice")?;
        if shape.numel() != elements.len() {
            let why = format!(
                "the shape takes {} elements, the slice has {}",
                shape.numel(),
                elements.len()
            );
            return Err(Error::shape("from_slice", &[&shape], why));
        }
        let mut value = Value::uninit("from_slice", Meta::new(shape, E::DTYPE))?;
        for (o, &x) in value.elements_mut::<E::Stored>().iter_mut().zip(elements) {
            *o = x.store();
        }
        Ok(Tensor::constant(value))
    }

    /// The elements in row-major order as bytes, the low ones first; a bool is a byte of 0 or 1.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1u16, 258]).try_to_bytes()?, [1, 0, 2, 1]);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn try_to_bytes(&self) -> Result<Vec<u8>> {
        let value = self.value_ref();
        log::check_read("to_bytes", &value)?;
        watch::read(&value);
        let mut bytes = value.row_major()?.bytes().to_vec();
        low_first(&mut bytes, value.dtype());
        Ok(bytes)
    }

    /// A tensor of elements that lie in these bytes, as [`Tensor::try_to_bytes`] gives them. Errors
    /// if there are not as many as the shape takes. A bool is true for every byte but 0.
    pub fn try_from_bytes(bytes: &[u8], shape: impl IntoShape, dtype: DType) -> Result<Tensor> {
        let shape = shape.into_shape("from_bytes")?;
        let count = shape.checked_numel().and_then(|n| n.checked_mul(dtype.size()));
        if count != Some(bytes.len()) {
            let why = format!("the shape does not take {} bytes of {dtype}", bytes.len());
            return Err(Error::shape("from_bytes", &[&shape], why));
        }
        Tensor::try_filled(shape, dtype, |out| {
            out.copy_from_slice(bytes);
            Ok(())
        })
    }

    /// A tensor of elements that `fill` writes into its memory, as [`Tensor::try_to_bytes`] gives
    /// them: so a file is read without a second copy. `fill` finds left-over contents, and writes
    /// every byte.
    #[doc(hidden)]
    pub fn try_filled(
        shape: impl IntoShape,
        dtype: DType,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Tensor> {
        let shape = shape.into_shape("from_bytes")?;
        if shape.checked_numel().and_then(|n| n.checked_mul(dtype.size())).is_none() {
            return Err(Error::shape("from_bytes", &[&shape], "more elements than memory has"));
        }
        let mut value = Value::uninit("from_bytes", Meta::new(shape, dtype))?;
        let out = value.bytes_mut();
        fill(out)?;
        match dtype {
            DType::Bool => out.iter_mut().for_each(|b| *b = u8::from(*b != 0)),
            _ => low_first(out, dtype),
        }
        Ok(Tensor::constant(value))
    }

    /// A constant of the same elements in memory of its own.
    #[doc(hidden)]
    pub fn try_copied(&self) -> Result<Tensor> {
        let value = self.value_ref();
        log::check_read("copy", &value)?;
        watch::read(&value);
        value.copied().map(Tensor::constant)
    }

    /// A constant of one element and no axes.
    pub fn scalar<E: Element>(x: E) -> Tensor {
        Tensor::constant(Value::scalar(x))
    }
}

/// Turns elements of this machine to those whose low bytes come first, and back.
fn low_first(bytes: &mut [u8], dtype: DType) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
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
        if let Some(mut notes) = self.source.notes()
            && let Some(notes) = notes.as_mut()
        {
            notes.hooks.retain(|h| h.number != self.number);
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
