//! Leaves: tensors whose value is given, and can be replaced.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use super::elements::low_first;
use super::memory::{LeafMemory, place};
use super::node::{Leaf, Source, lock};
use super::value::{Layout, Value};
use super::{Tensor, log};
use crate::dtype::Stored;
use crate::error::{Error, Result, raise};

/// The value of a leaf, exclusive while the guard lives.
#[doc(hidden)]
pub struct LeafGuard<'a> {
    value: Option<MutexGuard<'a, Arc<Value>>>,
    memory: &'a Arc<LeafMemory>,
}

impl LeafGuard<'_> {
    /// Its elements.
    #[inline]
    pub fn elements<T: Stored>(&mut self) -> &mut [T] {
        let value = self.value.as_mut().expect("it is there until the end");
        Value::unique(value).expect("it was made so")
    }
}

impl Drop for LeafGuard<'_> {
    fn drop(&mut self) {
        self.value = None;
        // If there is no memory for a copy, the others keep their value.
        let _ = self.memory.spread();
    }
}

impl Tensor {
    /// A leaf that requires a gradient, with this tensor's value. Its handles share one value and
    /// one gradient.
    ///
    /// Integers and bools have no gradients: they give an error.
    #[track_caller]
    pub fn parameter(&self) -> Tensor {
        match self.try_parameter() {
            Ok(t) => t,
            Err(e) => raise(e),
        }
    }

    /// Like [`Tensor::parameter`], but returns the error.
    pub fn try_parameter(&self) -> Result<Tensor> {
        if !self.dtype().is_float() {
            return Err(Error::dtype(
                "parameter",
                &[self.dtype()],
                "only f32 and f64 have gradients; convert with to_dtype first",
            ));
        }
        self.catch_up()?;
        Ok(Tensor { value: None, source: Source::Leaf(Arc::new(Leaf::new(self.value(), true))) })
    }

    /// A leaf without a gradient whose value can be replaced: running statistics, counters.
    pub fn buffer(&self) -> Tensor {
        Tensor { value: None, source: Source::Leaf(Arc::new(Leaf::new(self.value(), false))) }
    }

    /// A leaf that requires a gradient and shares its memory with this one: setting either sets
    /// both. Their gradients are separate.
    #[doc(hidden)]
    pub fn try_twin(&self) -> Result<Tensor> {
        let leaf = self.leaf("twin")?;
        if !self.dtype().is_float() {
            return self.try_parameter();
        }
        Ok(Tensor::over(leaf.value.clone()))
    }

    /// A leaf that requires a gradient and whose memory is the part of this leaf's that `view`
    /// shows: a write to either is seen by the other. None if the elements of the view are a copy,
    /// or some of them coincide.
    #[doc(hidden)]
    pub fn try_part(&self, view: &Tensor) -> Result<Option<Tensor>> {
        let leaf = self.leaf("part")?;
        if !self.dtype().is_float() || self.numel() == 0 {
            return Ok(None);
        }
        view.catch_up()?;
        let part = view.value();
        let layout = place(&*leaf.value.get()?, &part);
        Ok(layout.map(|layout| Tensor::over(leaf.value.part(part, layout))))
    }

    fn over(memory: Arc<LeafMemory>) -> Tensor {
        Tensor { value: None, source: Source::Leaf(Arc::new(Leaf::over(memory))) }
    }

    /// Takes the place of another leaf: its hooks, and the gradients that reach it in graphs from
    /// before.
    #[doc(hidden)]
    pub fn inherit(&self, old: &Tensor) {
        let Source::Leaf(heir) = &self.source else { return };
        let Some(mut left) = old.source.notes() else { return };
        let left = left.get_or_insert_default();
        let hooks = std::mem::take(&mut left.hooks);
        left.heir = Some(self.source.clone());
        if let Source::Leaf(old) = &old.source {
            old.left.store(true, Ordering::Release);
        }
        lock(&heir.notes).get_or_insert_default().hooks.extend(hooks);
    }

    /// Whether another leaf shares the memory of this one, or some of it.
    #[doc(hidden)]
    pub fn has_twin(&self) -> bool {
        match &self.source {
            Source::Leaf(leaf) => Arc::strong_count(&leaf.value) > 1 || leaf.value.is_linked(),
            _ => false,
        }
    }

    /// Position of its elements in memory shared with another leaf: a number that identifies the
    /// memory, all of its contents, and the layout.
    #[doc(hidden)]
    pub fn shared_place(&self) -> Option<(usize, Tensor, Layout)> {
        match &self.source {
            Source::Leaf(leaf) if self.value.is_none() && self.has_twin() => {
                let (memory, all, layout) = leaf.value.root_place();
                Some((memory, Tensor::from_parts(all, Source::None), layout))
            }
            _ => None,
        }
    }

    /// Whether its value can be given anew: it was made by [`Tensor::parameter`] or
    /// [`Tensor::buffer`].
    #[inline]
    pub fn is_changeable(&self) -> bool {
        self.value.is_none()
    }

    /// A handle of this leaf.
    #[doc(hidden)]
    pub fn of_leaf(leaf: &Arc<Leaf>) -> Tensor {
        Tensor { value: None, source: Source::Leaf(leaf.clone()) }
    }

    /// Whether this is a leaf: given, not computed.
    pub fn is_leaf(&self) -> bool {
        !matches!(self.source, Source::Node(_))
    }

    /// Whether gradients flow to or through this tensor.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        self.source.requires_grad()
    }

    /// Switches the gradient of a leaf on or off (to freeze a parameter).
    ///
    /// Errors for anything but a float leaf made by [`Tensor::parameter`] or [`Tensor::buffer`].
    pub fn set_requires_grad(&self, on: bool) -> Result<()> {
        match &self.source {
            Source::Leaf(leaf) if self.value.is_none() && (leaf.meta.dtype.is_float() || !on) => {
                leaf.requires_grad.store(on, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(Error::gradient(
                "set_requires_grad",
                "only a float leaf made by parameter() or buffer() can be switched; call parameter() on the tensor first",
            )),
        }
    }

    /// Gives a leaf a new value of the same shape and dtype. Other handles of the leaf see it;
    /// results already computed do not.
    #[track_caller]
    pub fn set(&self, value: &Tensor) {
        if let Err(e) = self.try_set(value) {
            raise(e)
        }
    }

    /// Like [`Tensor::set`], but returns the error.
    pub fn try_set(&self, value: &Tensor) -> Result<()> {
        let leaf = self.leaf("set")?;
        if value.meta() != leaf.meta {
            return Err(Error::shape(
                "set",
                &[&leaf.meta.shape, &value.shape()],
                format!(
                    "the new value must have the leaf's shape and dtype, {} {}; it has {} {}",
                    leaf.meta.dtype,
                    leaf.meta.shape,
                    value.dtype(),
                    value.shape()
                ),
            ));
        }
        value.catch_up()?;
        let new = value.value();
        if log::is_on() {
            // The value is kept as it is: a copy would be a value that no op made. Reading the leaf
            // first makes the log know it.
            leaf.value.catch_up()?;
            leaf.value();
            *leaf.value.here() = new;
            return Ok(());
        }
        leaf.put(new.contiguous()?)
    }

    /// As [`Tensor::try_set`] with a tensor of [`Tensor::try_from_bytes`], in the leaf's own memory
    /// if nothing else holds it.
    #[doc(hidden)]
    pub fn try_set_bytes(&self, bytes: &[u8]) -> Result<()> {
        let leaf = self.leaf("set")?;
        let (shape, dtype) = (&leaf.meta.shape, leaf.meta.dtype);
        if !log::is_on() && dtype.is_float() {
            let mut guard = leaf.value.hold()?;
            if let Some(value) = Arc::get_mut(&mut guard)
                && value.owns()
                && bytes.len() == value.numel() * dtype.size()
            {
                value.bytes_mut().copy_from_slice(bytes);
                low_first(value.bytes_mut(), dtype);
                drop(guard);
                return leaf.value.spread();
            }
        }
        self.try_set(&Tensor::try_from_bytes(bytes, shape, dtype)?)
    }

    /// The value of a leaf to change in place, locked; a copy of it if anybody else holds it.
    #[doc(hidden)]
    pub fn hold(&self, op: &'static str) -> Result<LeafGuard<'_>> {
        let leaf = self.leaf(op)?;
        if log::is_on() {
            let why = "it changes a parameter in place, which a trace cannot follow; give the new value by set(), or step an optimizer of this library";
            return Err(Error::argument(op, why));
        }
        let mut value = leaf.value.hold()?;
        if Arc::get_mut(&mut value).is_none_or(|value| !value.owns()) {
            *value = Arc::new(value.copied()?);
        }
        Ok(LeafGuard { value: Some(value), memory: &leaf.value })
    }

    fn leaf(&self, op: &'static str) -> Result<&Arc<Leaf>> {
        match (&self.source, &self.value) {
            (Source::Leaf(leaf), None) => Ok(leaf),
            _ => Err(Error::gradient(
                op,
                "only a leaf made by parameter() or buffer() can be given a new value",
            )),
        }
    }
}
