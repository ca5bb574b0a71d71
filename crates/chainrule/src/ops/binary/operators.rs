//! The operators `+ - * /` and the unary `-` for tensors and scalars, owned or borrowed.

use std::ops;

use crate::tensor::{IntoTensor, Tensor};

macro_rules! operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl<T: IntoTensor> ops::$trait<T> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            #[inline]
            fn $method(self, other: T) -> Tensor {
                Tensor::$method(self, other)
            }
        }
        impl<T: IntoTensor> ops::$trait<T> for Tensor {
            type Output = Tensor;
            #[track_caller]
            #[inline]
            fn $method(self, other: T) -> Tensor {
                Tensor::$method(&self, other)
            }
        }
        scalar_first!($trait $method f64 f32 i32 i64);
    )*};
}

macro_rules! scalar_first {
    ($trait:ident $method:ident $($scalar:ty)*) => {$(
        impl ops::$trait<&Tensor> for $scalar {
            type Output = Tensor;
            #[track_caller]
            #[inline]
            fn $method(self, other: &Tensor) -> Tensor {
                Tensor::$method(&other.like(self), other)
            }
        }
        impl ops::$trait<Tensor> for $scalar {
            type Output = Tensor;
            #[track_caller]
            #[inline]
            fn $method(self, other: Tensor) -> Tensor {
                Tensor::$method(&other.like(self), &other)
            }
        }
    )*};
}

operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl ops::Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    #[inline]
    fn neg(self) -> Tensor {
        Tensor::neg(self)
    }
}

impl ops::Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    #[inline]
    fn neg(self) -> Tensor {
        Tensor::neg(&self)
    }
}
