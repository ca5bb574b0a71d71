//! Memory shared with other programs: the memory of a tensor lent to them, and tensors over foreign
//! memory.
//!
//! This is the seam for bindings to other languages and for exchange without a copy. Nothing in the
//! library itself needs it.

mod lent;

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use super::node::{Mode, Source};
use super::value::{Layout, Meta, Value, by_size};
use super::{Tensor, log, watch};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::{IntoShape, MAX_RANK, Shape, Strides};

pub use self::lent::{Lent, check_lent};

/// The memory of a tensor, kept alive and unchanged as long as this is there.
pub struct Memory {
    value: Arc<Value>,
    strides: Strides,
}

impl Memory {
    /// Address of the first element. For a tensor without elements it may not be read.
    pub fn address(&self) -> *const u8 {
        let first = self.value.layout().offset;
        fn at<T: crate::dtype::Stored>(value: &Value, first: usize) -> *const u8 {
            let all = value.strided::<T>();
            all[first.min(all.len())..].as_ptr().cast()
        }
        by_size!(self.value.dtype(), |T| at::<T>(&self.value, first))
    }

    /// The sizes of the axes.
    pub fn shape(&self) -> &[usize] {
        self.value.shape().dims()
    }

    /// Elements between neighbours along each axis.
    pub fn strides(&self) -> &[isize] {
        &self.strides[..self.shape().len()]
    }

    /// The type of the elements; a bool is a byte of 0 or 1.
    pub fn dtype(&self) -> DType {
        self.value.dtype()
    }
}

/// Foreign memory, which is valid while `owner` lives.
pub struct Foreign {
    start: NonNull<u8>,
    /// Dropped last of all: gives the memory back.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the memory is only read, and the constructor's caller promised that it is not written.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl Foreign {
    #[inline]
    pub fn slice<T: crate::dtype::Stored>(&self, len: usize) -> &[T] {
        debug_assert!(self.start.cast::<T>().is_aligned());
        // SAFETY: `Tensor::from_foreign` was promised `len` elements of this type there, aligned,
        // and read-only while the owner lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), len) }
    }
}

impl Tensor {
    /// The memory of this tensor, to be read by other programs while the [`Memory`] lives. Errors
    /// while a program is traced.
    pub fn memory(&self) -> Result<Memory> {
        self.catch_up()?;
        let mut value = self.value();
        log::check_read("memory", &value)?;
        watch::read(&value);
        if value.is_planned() {
            value = value.copied()?.share();
        }
        let strides = value.layout().strides;
        Ok(Memory { value, strides })
    }

    /// Whether both tensors show elements of the same block of memory.
    pub fn shares_memory(&self, other: &Tensor) -> bool {
        let (a, b) = (self.value(), other.value());
        std::ptr::eq(a.block(), b.block())
    }

    /// The same place on the tape with another value of the same shape and dtype; of a constant or
    /// a leaf, that value as a constant.
    ///
    /// For bindings whose tensors can be written without the tape's knowledge, as by PyTorch's
    /// `.data`. Values that the tape saved before stay as they were.
    pub fn revalued(&self, value: &Tensor) -> Result<Tensor> {
        if value.meta() != self.meta() {
            let why = "a value written past the tape keeps shape and dtype";
            return Err(Error::shape("revalued", &[&self.shape(), &value.shape()], why));
        }
        value.catch_up()?;
        let source = match self.source() {
            Source::Node(node) => Source::Node(node.clone()),
            _ => Source::None,
        };
        Ok(Tensor::from_parts(value.value(), source))
    }

    /// Whether both handles hold one value, and not only equal ones.
    pub fn is_same_value(&self, other: &Tensor) -> bool {
        let both = self.try_value_ref().and_then(|own| Ok((own, other.try_value_ref()?)));
        both.is_ok_and(|(own, other)| Arc::ptr_eq(&own, &other))
    }

    /// A constant over foreign memory, without a copy. `strides` count elements.
    ///
    /// Bools with bytes other than 0 and 1 are true, and copied. Errors if the address does not
    /// suit the type or the sizes overflow.
    ///
    /// # Safety
    ///
    /// As long as `owner` lives, all memory from the lowest to the highest element that shape and
    /// strides reach from `first` must be readable and initialized, and must not be written.
    /// `first` must have provenance over all of that range, also over the memory before it where
    /// strides are negative: it must not come from a slice that begins at `first`.
    pub unsafe fn from_foreign(
        first: *const u8,
        shape: impl IntoShape,
        strides: &[isize],
        dtype: DType,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Tensor> {
        let op = "from_foreign";
        let shape = shape.into_shape(op)?;
        if strides.len() != shape.rank() {
            return Err(Error::shape(op, &[&shape], "there must be one stride for each axis"));
        }
        if shape.numel() == 0 {
            return Tensor::try_full(shape, 0.0, dtype);
        }
        let Some((before, len)) = reach(&shape, strides) else {
            return Err(Error::shape(op, &[&shape], "the strides overflow"));
        };
        let start = first.wrapping_sub(before * dtype.size()).cast_mut();
        let Some(start) =
            NonNull::new(start).filter(|p| p.addr().get().is_multiple_of(dtype.size()))
        else {
            return Err(Error::argument(op, format!("the address does not suit {dtype}; copy it")));
        };
        let foreign = Foreign { start, _owner: owner };
        let base = Value::foreign(Meta::new(Shape::new(&[len]), dtype), foreign).share();
        let mut all = [0isize; MAX_RANK];
        all[..strides.len()].copy_from_slice(strides);
        let layout = Layout { offset: before, strides: all };
        let base = if dtype == DType::Bool { plain_bools(base)? } else { base };
        Ok(Tensor::constant(Value::view(&base, shape, layout)))
    }
}

/// A value of bools in which each byte is 0 or 1, as kernels assume.
fn plain_bools(value: Arc<Value>) -> Result<Arc<Value>> {
    let bytes = value.strided::<u8>();
    if bytes.iter().all(|&byte| byte <= 1) {
        return Ok(value);
    }
    let plain = Value::build::<u8>("from_foreign", *value.shape(), |out| {
        out.iter_mut().zip(bytes).for_each(|(to, &byte)| *to = u8::from(byte != 0));
    });
    Ok(plain?.share())
}

/// Number of elements before the first, and from the lowest to the highest.
fn reach(shape: &Shape, strides: &[isize]) -> Option<(usize, usize)> {
    let (mut before, mut after) = (0usize, 0usize);
    for (&d, &s) in shape.iter().zip(strides) {
        let far = s.unsigned_abs().checked_mul(d - 1)?;
        let side = if s < 0 { &mut before } else { &mut after };
        *side = side.checked_add(far)?;
    }
    let len = before.checked_add(after)?.checked_add(1)?;
    (len <= isize::MAX as usize / 8).then_some((before, len))
}

/// Switches recording on this thread on or off until it is switched again, and returns whether it
/// was on.
///
/// For bindings, where the end of a block is not the end of a function; in Rust [`crate::no_grad`]
/// is safer.
pub fn set_grad_enabled(on: bool) -> bool {
    let mode = Mode::get();
    if on {
        mode.without(Mode::NO_GRAD).set()
    } else {
        mode.with(Mode::NO_GRAD).set()
    }
    !mode.has(Mode::NO_GRAD)
}

/// As [`set_grad_enabled`], for keeping every intermediate and its gradient: see
/// [`crate::record_all`].
pub fn set_record_all(on: bool) -> bool {
    let mode = Mode::get();
    if on {
        mode.with(Mode::RECORD_ALL).set()
    } else {
        mode.without(Mode::RECORD_ALL).set()
    }
    mode.has(Mode::RECORD_ALL)
}

/// As [`set_grad_enabled`], for an error where a gradient is NaN.
pub fn set_check_nan(on: bool) -> bool {
    let mode = Mode::get();
    if on {
        mode.with(Mode::CHECK_NAN).set()
    } else {
        mode.without(Mode::CHECK_NAN).set()
    }
    mode.has(Mode::CHECK_NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(data: Vec<f32>, at: usize, shape: &[usize], strides: &[isize]) -> Tensor {
        // Not of the slice that begins there: strides may reach before it.
        let first = data.as_ptr().wrapping_add(at).cast();
        // SAFETY: the vector moves into the owner, its elements stay where they are; the callers
        // stay inside it.
        unsafe { Tensor::from_foreign(first, shape, strides, DType::F32, Box::new(data)) }.unwrap()
    }

    #[test]
    fn any_strides() {
        let numbers: Vec<f32> = (0..6).map(|i| i as f32).collect();
        let rows = over(numbers.clone(), 0, &[2, 3], &[3, 1]);
        assert!(rows.is_contiguous());
        assert_eq!(rows.to_vec::<f32>(), numbers);
        let columns = over(numbers.clone(), 0, &[3, 2], &[1, 3]);
        assert_eq!((&columns + 1.0).to_vec::<f32>(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let back = over(numbers.clone(), 5, &[6], &[-1]);
        assert_eq!(back.to_vec::<f32>(), [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
        let same = over(numbers, 2, &[2, 2], &[0, 0]);
        assert_eq!(same.sum_all().item(), 8.0);
        for n in [0usize, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
            let x = over(vec![1.5; n + 1], 0, &[n], &[1]);
            assert_eq!(
                x.exp().sum_all().item(),
                Tensor::full([n], 1.5, DType::F32).exp().sum_all().item()
            );
        }
    }

    #[test]
    fn bools_of_any_byte_count_as_one() {
        let bytes = vec![0u8, 1, 2, 255, 0, 128];
        let first = bytes.as_ptr();
        // SAFETY: the vector moves into the owner, its elements stay where they are.
        let x = unsafe {
            Tensor::from_foreign(first, [3, 2], &[2, 1], DType::Bool, Box::new(bytes)).unwrap()
        };
        assert_eq!(x.to_vec::<bool>(), [false, true, true, true, false, true]);
        let numbers = x.to_dtype(DType::I64);
        assert_eq!((numbers.sum_all().item(), x.count_nonzero(0).sum_all().item()), (4.0, 4.0));
        assert_eq!(
            x.eq(Tensor::from([true, true])).to_vec::<bool>(),
            [false, true, true, true, false, true]
        );
    }

    /// A reader that writes, while it has the memory and after it gave it back.
    #[test]
    fn writes_into_lent_memory_are_told() {
        let write = |memory: &Memory, x: f32| {
            // SAFETY: unsound in general, which is the point of the test; nothing reads at the same
            // time.
            unsafe { memory.address().cast_mut().cast::<f32>().write_volatile(x) }
        };
        let x = Tensor::from([1.0f32, 2.0, 3.0]);
        let lent = Lent::new(x.memory().unwrap());
        assert!(check_lent().is_ok());
        write(lent.memory(), 7.0);
        assert!(check_lent().unwrap_err().to_string().contains("wrote into the read-only memory"));
        write(lent.memory(), 1.0);
        assert!(check_lent().is_ok());
        write(lent.memory(), 7.0);
        drop(lent);
        assert!(check_lent().is_err());
        assert!(check_lent().is_ok());
        drop(Lent::new(x.memory().unwrap()));
        assert!(check_lent().is_ok());
    }

    #[test]
    fn memory_is_what_was_given() {
        let x = over(vec![1.0, 2.0, 3.0, 4.0], 3, &[2, 2], &[-2, -1]);
        let memory = x.memory().unwrap();
        assert_eq!((memory.shape(), memory.strides()), (&[2usize, 2][..], &[-2isize, -1][..]));
        // SAFETY: an f32 of the vector above.
        assert_eq!(unsafe { *memory.address().cast::<f32>() }, 4.0);
        let row = x.t();
        assert!(row.shares_memory(&x) && !(&x + 0.0).shares_memory(&x));
        assert!(Tensor::zeros([0, 3]).memory().is_ok());
    }

    #[test]
    fn a_parameter_over_foreign_memory_is_changed_elsewhere() {
        let x = over(vec![1.0, 2.0], 0, &[2], &[1]).parameter();
        let before = x.memory().unwrap();
        x.set(&Tensor::from([5.0f32, 6.0]));
        assert_eq!(x.to_vec::<f32>(), [5.0, 6.0]);
        // SAFETY: as above; the memory is held.
        assert_eq!(unsafe { *before.address().cast::<f32>() }, 1.0);
    }

    #[test]
    fn a_value_behind_the_tape_keeps_its_place() {
        let w = Tensor::from([1.0f32, 2.0]).parameter();
        let y = &w * 3.0;
        let z = y.revalued(&Tensor::from([50.0f32, 60.0])).unwrap();
        assert!(z.is_same(&y) && !z.is_same_value(&y));
        (&z * &z).sum_all().backward();
        // By the new values from there on: 2 * z * 3.
        assert_eq!(w.grad().unwrap().to_vec::<f32>(), [300.0, 360.0]);
        assert!(y.revalued(&Tensor::from([1.0f32])).is_err());
        assert!(!w.revalued(&Tensor::from([1.0f32, 1.0])).unwrap().requires_grad());
    }

    #[test]
    fn a_gradient_that_was_used_up_stays_unknown_until_it_is_forgotten() {
        let w = Tensor::from([1.0f32]).parameter();
        w.lose_grad();
        assert!(w.has_lost_grad() && w.grad().is_none());
        (&w * 2.0).sum_all().backward();
        assert!(w.has_lost_grad() && w.grad().is_none());
        w.zero_grad();
        (&w * 2.0).sum_all().backward();
        assert_eq!(w.grad().unwrap().item(), 2.0);
    }

    #[test]
    fn impossible_memory_is_an_error() {
        let none = |shape: &[usize], strides: &[isize], at: usize| {
            // SAFETY: refused before anything is read.
            unsafe {
                let at = std::ptr::without_provenance(at);
                Tensor::from_foreign(at, shape, strides, DType::F64, Box::new(())).is_err()
            }
        };
        assert!(none(&[2], &[1, 1], 64));
        assert!(none(&[2], &[1], 3));
        assert!(none(&[3], &[isize::MAX], 64));
        assert!(none(&[1], &[1], 0));
    }
}
