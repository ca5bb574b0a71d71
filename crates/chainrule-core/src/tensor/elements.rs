//! The elements of a tensor: read as numbers and as bytes, and tensors made of them.

use super::value::{Layout, Meta, Value};
use super::{Tensor, log, watch, widen};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result, raise};
use crate::shape::{IntoShape, MAX_RANK, Shape};

impl Tensor {
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
        let value = self.try_value_ref()?;
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
        let value = self.try_value_ref()?;
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
        self.try_with_bytes(<[u8]>::to_vec)
    }

    /// As [`Tensor::try_to_bytes`], of bytes that `take` reads where they are: a tensor that lies
    /// in row-major order is not copied.
    #[doc(hidden)]
    pub fn try_with_bytes<R>(&self, take: impl FnOnce(&[u8]) -> R) -> Result<R> {
        let value = self.try_value_ref()?;
        log::check_read("to_bytes", &value)?;
        watch::read(&value);
        let rows = value.row_major()?;
        if cfg!(target_endian = "little") {
            return Ok(take(rows.bytes()));
        }
        let mut bytes = rows.bytes().to_vec();
        low_first(&mut bytes, value.dtype());
        Ok(take(&bytes))
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
        let value = self.try_value_ref()?;
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
pub(super) fn low_first(bytes: &mut [u8], dtype: DType) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
}
