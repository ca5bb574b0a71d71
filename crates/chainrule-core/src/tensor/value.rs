//! The immutable value behind a tensor: shape, dtype and elements.

use crate::param::Parameters;
use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use super::arena::ArenaPlace;
use super::buffer::Buffer;
use super::foreign::Foreign;
use crate::dtype::{DType, Element, Stored};
use crate::error::{Error, Result};
use crate::kernels::copy::{self, Places};
use crate::shape::{Shape, Strides};

/// Shape and dtype of a tensor, known without its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub struct Meta {
    /// The sizes of its axes.
    pub shape: Shape,
    /// The type of its elements.
    pub dtype: DType,
}

impl Meta {
    /// A shape and a dtype together.
    #[inline]
    pub fn new(shape: Shape, dtype: DType) -> Meta {
        Meta { shape, dtype }
    }
}

/// The expression with `T` as the unsigned integer that has the size of the dtype, for copies.
macro_rules! by_size {
    ($dtype:expr, |$T:ident| $run:expr) => {
        match $dtype.size() {
            1 => {
                type $T = u8;
                $run
            }
            2 => {
                type $T = u16;
                $run
            }
            4 => {
                type $T = u32;
                $run
            }
            _ => {
                type $T = u64;
                $run
            }
        }
    };
}
pub(crate) use by_size;

/// Elements with a shape; never changed once others can see it.
pub struct Value {
    pub meta: Meta,
    storage: Storage,
}

enum Storage {
    /// Elements of its own, row-major.
    Own(Buffer),
    /// Foreign memory, from the lowest element to the highest.
    Foreign(Foreign),
    /// A window on the elements of another value, which owns them.
    View { base: Arc<Value>, layout: Layout },
}

/// Layout of a view's elements in its base.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub offset: usize,
    pub strides: Strides,
}

impl Layout {
    /// The layout of a row-major array of this shape.
    #[inline]
    pub fn row_major(shape: &Shape) -> Layout {
        Layout { offset: 0, strides: shape.contiguous_strides() }
    }

    /// Whether it is the layout of a row-major array of this shape, from the first element on.
    #[inline]
    pub fn is_row_major(&self, shape: &Shape) -> bool {
        self.offset == 0 && contiguous(shape, &self.strides)
    }

    /// The same for kernels.
    #[inline]
    pub fn places(&self) -> Places<'_> {
        Places { offset: self.offset, strides: &self.strides }
    }
}

impl Value {
    /// A value whose elements `fill` writes, all of them.
    #[inline]
    pub fn build<T: Stored>(
        op: &'static str,
        shape: Shape,
        fill: impl FnOnce(&mut [T]),
    ) -> Result<Value> {
        let mut value = Value::uninit(op, Meta::new(shape, T::DTYPE))?;
        fill(value.elements_mut::<T>());
        Ok(value)
    }

    /// A value with arbitrary contents; the caller writes every element.
    pub fn uninit(op: &'static str, meta: Meta) -> Result<Value> {
        let too_big = |bytes| Error::OutOfMemory { op, shape: meta.shape, bytes };
        let numel = meta.shape.checked_numel().ok_or_else(|| too_big(usize::MAX))?;
        let bytes = numel * meta.dtype.size();
        let buffer = Buffer::new(bytes).ok_or_else(|| too_big(bytes))?;
        Ok(Value { meta, storage: Storage::Own(buffer) })
    }

    /// A value in an arena, with its present contents.
    pub fn placed(meta: Meta, place: ArenaPlace) -> Value {
        Value { meta, storage: Storage::Own(Buffer::at(place)) }
    }

    /// A single number.
    pub fn scalar<E: Element>(x: E) -> Value {
        let mut value =
            Value::uninit("scalar", Meta::new(Shape::SCALAR, E::DTYPE)).expect("64 bytes");
        value.elements_mut::<E::Stored>()[0] = x.store();
        value
    }

    /// Shares the value, reusing an allocation that was given to [`Value::recycle`], if there is
    /// one.
    pub fn share(self) -> Arc<Value> {
        let shell = SHELLS.try_with(|shells| shells.borrow_mut().pop()).ok().flatten();
        let Some(mut shell) = shell else { return Arc::new(self) };
        match Arc::get_mut(&mut shell) {
            Some(value) => *value = self,
            None => unreachable!("nobody else holds a shell"),
        }
        shell
    }

    /// Drops the value, but keeps its allocation for [`Value::share`] if it has no other owner. A
    /// program that runs again and again does this.
    pub fn recycle(mut this: Arc<Value>) {
        let Some(value) = Arc::get_mut(&mut this) else { return };
        let hollow = Meta::new(Shape::SCALAR, DType::Bool);
        let hollow = Value { meta: hollow, storage: Storage::Own(Buffer::NONE) };
        if let Storage::View { base, .. } = std::mem::replace(value, hollow).storage {
            Value::recycle(base);
        }
        let _ = SHELLS.try_with(|shells| {
            let mut shells = shells.borrow_mut();
            if shells.len() < MOST_SHELLS {
                shells.push(this);
            }
        });
    }

    /// A value over foreign memory.
    pub fn foreign(meta: Meta, memory: Foreign) -> Value {
        Value { meta, storage: Storage::Foreign(memory) }
    }

    /// The value whose memory holds the elements: itself, or the owner that it is a window of.
    pub fn block(&self) -> &Value {
        match &self.storage {
            Storage::View { base, .. } => base,
            _ => self,
        }
    }

    /// A window on `base` (or on the owner that `base` is itself a window of).
    pub fn view(base: &Arc<Value>, shape: Shape, layout: Layout) -> Value {
        let owner = match &base.storage {
            Storage::Own(_) | Storage::Foreign(_) => base,
            Storage::View { base, .. } => base,
        };
        let storage = Storage::View { base: owner.clone(), layout };
        Value { meta: Meta::new(shape, base.meta.dtype), storage }
    }

    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.meta.shape
    }

    #[inline]
    pub fn dtype(&self) -> DType {
        self.meta.dtype
    }

    #[inline]
    pub fn numel(&self) -> usize {
        self.meta.shape.numel()
    }

    /// Layout of its elements, within the elements that [`Value::strided`] gives.
    #[inline]
    pub fn layout(&self) -> Layout {
        match &self.storage {
            Storage::Own(_) | Storage::Foreign(_) => {
                Layout { offset: 0, strides: self.meta.shape.contiguous_strides() }
            }
            Storage::View { layout, .. } => *layout,
        }
    }

    /// Offset of the first element in the memory of the owner.
    #[inline]
    pub fn start(&self) -> usize {
        match &self.storage {
            Storage::Own(_) | Storage::Foreign(_) => 0,
            Storage::View { layout, .. } => layout.offset,
        }
    }

    /// Whether the elements are its own, rather than a window on another's.
    #[inline]
    pub fn owns(&self) -> bool {
        matches!(self.storage, Storage::Own(_))
    }

    /// Whether the elements are in the arena of a program, where they stay only briefly.
    pub fn is_planned(&self) -> bool {
        match &self.storage {
            Storage::Own(buffer) => buffer.is_planned(),
            Storage::Foreign(_) => false,
            Storage::View { base, .. } => base.is_planned(),
        }
    }

    /// Whether the elements lie in row-major order without gaps.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        match &self.storage {
            Storage::Own(_) | Storage::Foreign(_) => true,
            Storage::View { layout, .. } => contiguous(&self.meta.shape, &layout.strides),
        }
    }

    /// Whether its elements are laid out as those of another value of its shape and dtype.
    #[inline]
    pub fn lies_as(&self, other: &Value) -> bool {
        debug_assert_eq!(self.meta, other.meta);
        if self.numel() == 0 {
            return true;
        }
        let in_order = || {
            if self.is_contiguous() && other.is_contiguous() {
                return true;
            }
            let (a, b) = (self.layout(), other.layout());
            let mut axes = self.shape().iter().zip(a.strides.iter().zip(&b.strides));
            axes.all(|(&d, (a, b))| d == 1 || a == b)
        };
        self.address() == other.address() && in_order()
    }

    /// The address of the first element.
    fn address(&self) -> *const u8 {
        fn first<T: Stored>(value: &Value) -> *const u8 {
            value.strided::<T>()[value.start()..].as_ptr().cast()
        }
        by_size!(self.dtype(), |T| first::<T>(self))
    }

    /// The elements in row-major order, if they are stored so.
    #[inline]
    pub fn slice<T: Stored>(&self) -> Option<&[T]> {
        debug_assert!(T::stores(self.dtype()));
        match &self.storage {
            Storage::Own(buffer) => Some(buffer.as_slice(self.numel())),
            Storage::Foreign(memory) => Some(memory.slice(self.numel())),
            Storage::View { base, layout } => {
                contiguous(&self.meta.shape, &layout.strides).then(|| {
                    let all = base.owned::<T>();
                    let n = self.numel();
                    if n == 0 { &[] } else { &all[layout.offset..layout.offset + n] }
                })
            }
        }
    }

    /// The elements of a value that was made contiguous.
    #[inline]
    pub fn elements<T: Stored>(&self) -> &[T] {
        self.slice().expect("the array was made contiguous")
    }

    /// The bytes of the elements of a value that was made contiguous.
    pub fn bytes(&self) -> &[u8] {
        by_size!(self.dtype(), |T| bytemuck::cast_slice(self.elements::<T>()))
    }

    /// The bytes of a newly made value, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        by_size!(self.dtype(), |T| bytemuck::cast_slice_mut(self.elements_mut::<T>()))
    }

    /// All elements of the owner, among which [`Value::layout`] locates this value's.
    #[inline]
    pub fn strided<T: Stored>(&self) -> &[T] {
        debug_assert!(T::stores(self.dtype()));
        match &self.storage {
            Storage::Own(_) | Storage::Foreign(_) => self.owned(),
            Storage::View { base, .. } => base.owned(),
        }
    }

    #[inline]
    fn owned<T: Stored>(&self) -> &[T] {
        match &self.storage {
            Storage::Own(buffer) => buffer.as_slice(self.numel()),
            Storage::Foreign(memory) => memory.slice(self.numel()),
            Storage::View { base, .. } => base.owned(),
        }
    }

    /// The elements of a newly made value, to write.
    #[inline]
    pub fn elements_mut<T: Stored>(&mut self) -> &mut [T] {
        debug_assert!(T::stores(self.dtype()));
        let numel = self.numel();
        match &mut self.storage {
            Storage::Own(buffer) => buffer.as_mut_slice(numel),
            Storage::Foreign(_) | Storage::View { .. } => {
                unreachable!("only fresh values are written, and those own their elements")
            }
        }
    }

    /// Whether [`Value::unique`] gives the elements.
    #[inline]
    pub fn is_unique(this: &mut Arc<Value>) -> bool {
        let held = Arc::strong_count(this) == 1 && Arc::weak_count(this) == 0;
        held && matches!(this.storage, Storage::Own(_))
    }

    /// The elements, mutable, if nothing else holds this value or a view of it.
    #[inline]
    pub fn unique<T: Stored>(this: &mut Arc<Value>) -> Option<&mut [T]> {
        let value = Arc::get_mut(this)?;
        matches!(value.storage, Storage::Own(_)).then(|| value.elements_mut())
    }

    /// The same elements in row-major order: itself, or a copy.
    #[inline]
    pub fn contiguous(self: &Arc<Value>) -> Result<Arc<Value>> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.copied().map(Value::share) }
    }

    /// As [`Value::contiguous`], for a caller that needs it only briefly.
    #[inline]
    pub fn row_major(&self) -> Result<ValueCow<'_>> {
        self.copied_unless(self.is_contiguous())
    }

    /// Itself if it is `ready`, or a copy in row-major order.
    #[inline]
    pub fn copied_unless(&self, ready: bool) -> Result<ValueCow<'_>> {
        Ok(if ready { ValueCow::Borrowed(self) } else { ValueCow::Owned(self.copied()?) })
    }

    /// A copy of the elements in row-major order.
    pub fn copied(&self) -> Result<Value> {
        let mut out = Value::uninit("copy", self.meta)?;
        by_size!(self.dtype(), |T| self.copy_to::<T>(out.elements_mut()));
        Ok(out)
    }

    /// Writes the elements to `out` in row-major order.
    pub fn copy_to<T: Stored>(&self, out: &mut [T]) {
        match self.slice() {
            Some(all) => copy::line(all, out),
            None => {
                let layout = self.layout();
                copy::gather(self.strided(), layout.offset, &layout.strides, &self.meta.shape, out)
            }
        }
    }

    /// The element of a value that has only one.
    pub fn first<T: Stored>(&self) -> T {
        self.strided::<T>()[self.layout().offset]
    }
}

/// A value by reference, or a copy of it.
pub enum ValueCow<'a> {
    /// The value itself.
    Borrowed(&'a Value),
    /// A copy in row-major order.
    Owned(Value),
}

impl Deref for ValueCow<'_> {
    type Target = Value;

    #[inline]
    fn deref(&self) -> &Value {
        match self {
            ValueCow::Borrowed(value) => value,
            ValueCow::Owned(value) => value,
        }
    }
}

/// Number of allocations kept.
const MOST_SHELLS: usize = 1 << 12;

thread_local! {
    /// Allocations of dropped values.
    static SHELLS: RefCell<Vec<Arc<Value>>> = const { RefCell::new(Vec::new()) };
}

fn contiguous(shape: &Shape, strides: &Strides) -> bool {
    let mut step = 1isize;
    for (i, &d) in shape.iter().enumerate().rev() {
        if d == 0 {
            return true;
        }
        if d != 1 && strides[i] != step {
            return false;
        }
        step *= d as isize;
    }
    true
}
