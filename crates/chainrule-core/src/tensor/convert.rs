//! Tensors from nested arrays and vectors.

use half::{bf16, f16};

use super::value::Value;
use super::{Tensor, widen};
use crate::dtype::{DType, Element};
use crate::error::{Result, raise};
use crate::shape::{MAX_RANK, Shape};

/// An element or a nested array of them: `3.0`, `[1, 2]`, `[[1.0], [2.0]]`, ...
pub trait Elements {
    /// The innermost type.
    type Element: Element;
    /// The number of axes.
    const RANK: usize;
    /// Appends the sizes of the axes.
    fn sizes(&self, out: &mut Vec<usize>);
    /// Appends the elements in row-major order.
    fn flatten(&self, out: &mut Vec<Self::Element>);
}

macro_rules! elements {
    ($($ty:ty)*) => {$(
        impl Elements for $ty {
            type Element = $ty;
            const RANK: usize = 0;
            fn sizes(&self, _: &mut Vec<usize>) {}
            fn flatten(&self, out: &mut Vec<$ty>) {
                out.push(*self);
            }
        }
    )*};
}
elements!(f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool);

impl<T: Elements, const N: usize> Elements for [T; N] {
    type Element = T::Element;
    const RANK: usize = T::RANK + 1;
    fn sizes(&self, out: &mut Vec<usize>) {
        out.push(N);
        match self.first() {
            Some(inner) => inner.sizes(out),
            // The sizes of the inner axes of an empty array are unknown; they are taken as empty
            // too.
            None => out.extend(std::iter::repeat_n(0, T::RANK)),
        }
    }
    fn flatten(&self, out: &mut Vec<T::Element>) {
        self.iter().for_each(|inner| inner.flatten(out));
    }
}

impl<T: Elements> From<T> for Tensor {
    /// A constant with these elements; nested arrays give the axes, at most eight.
    #[track_caller]
    fn from(nested: T) -> Tensor {
        const { assert!(T::RANK <= MAX_RANK, "a tensor has at most eight axes") };
        let (mut sizes, mut elements) = (Vec::new(), Vec::new());
        nested.sizes(&mut sizes);
        nested.flatten(&mut elements);
        Tensor::from_slice(&elements, Shape::new(&sizes))
    }
}

impl<E: Element> From<Vec<E>> for Tensor {
    /// A constant of one axis.
    fn from(elements: Vec<E>) -> Tensor {
        Tensor::from_slice(&elements, [elements.len()])
    }
}

/// A tensor, or a scalar that becomes one with the dtype of the tensor that it meets.
pub trait IntoTensor {
    /// Whether it is a scalar: an argument that may be either is then a constant, without a
    /// gradient of its own.
    const SCALAR: bool = true;
    /// The tensor for use beside `other`.
    fn into_tensor(self, other: &Tensor) -> Result<Tensor>;
}

impl IntoTensor for &Tensor {
    const SCALAR: bool = false;

    #[inline]
    fn into_tensor(self, _: &Tensor) -> Result<Tensor> {
        Ok(self.clone())
    }
}

impl IntoTensor for Tensor {
    const SCALAR: bool = false;

    #[inline]
    fn into_tensor(self, _: &Tensor) -> Result<Tensor> {
        Ok(self)
    }
}

impl IntoTensor for f64 {
    /// With an integer or bool tensor a float scalar is an f32.
    fn into_tensor(self, other: &Tensor) -> Result<Tensor> {
        Ok(match other.dtype() {
            DType::F64 => Tensor::scalar(self),
            half if half.is_half() => Tensor::try_full((), self, half)?,
            _ => Tensor::scalar(self as f32),
        })
    }
}

impl IntoTensor for f32 {
    fn into_tensor(self, other: &Tensor) -> Result<Tensor> {
        (self as f64).into_tensor(other)
    }
}

macro_rules! integer_scalars {
    ($($ty:ty)*) => {$(
        impl IntoTensor for $ty {
            /// With a bool tensor an integer scalar is an i64.
            fn into_tensor(self, other: &Tensor) -> Result<Tensor> {
                Ok(match other.dtype() {
                    DType::F32 => Tensor::scalar(self as f32),
                    DType::F64 => Tensor::scalar(self as f64),
                    DType::I64 | DType::Bool => Tensor::scalar(self as i64),
                    // Beside a smaller integer it wraps around to that.
                    narrow => {
                        let value = widen::cast(&Value::scalar(self as i64), narrow)?;
                        Tensor::constant(value)
                    }
                })
            }
        }
    )*};
}
integer_scalars!(i32 i64 usize);

impl Tensor {
    /// `x` as a tensor of this one's dtype: as operators convert a scalar beside a tensor.
    #[track_caller]
    pub fn like(&self, x: impl IntoTensor) -> Tensor {
        match x.into_tensor(self) {
            Ok(t) => t,
            Err(e) => raise(e),
        }
    }
}
