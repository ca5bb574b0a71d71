//! The operators `+ - * /` and the unary `-` for tensors and scalars, owned or borrowed.
//!
//! A scalar on the right may be of any number type, one on the left a literal, an f64 or an i64.

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
        // One float and one integer type: with more of them `(1.0 - &x).sum_all()` would ask for
        // the literal's type.
        scalar_first!($trait $method f64 i64);
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

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    #[test]
    fn every_form_gives_the_operands_in_their_order() {
        let (a, b) = (Tensor::from([6.0f32]), Tensor::from([4.0f32]));
        let forms = [
            &a - &b,
            a.clone() - &b,
            &a - b.clone(),
            a.clone() - b.clone(),
            &a - 4,
            a.clone() - 4.0,
            6 - &b,
            6.0 - b.clone(),
            &a - 4usize,
            &a - 4f32,
        ];
        assert!(forms.iter().all(|x| x.item() == 2.0), "{forms:?}");
        assert_eq!((2.0 / &b).item(), 0.5);
        assert_eq!((&a / 4).item(), 1.5);
        assert_eq!((3 * &a + 1).item(), 19.0);
        assert_eq!((-&a - -b).item(), -2.0);
    }

    #[test]
    fn a_scalar_takes_the_dtype_of_the_tensor_unless_that_holds_no_fractions() {
        let wide = Tensor::from([1.0f64]) + 0.1;
        assert_eq!(wide.to_vec::<f64>(), [1.1]);
        let whole = Tensor::from([7i64]);
        assert_eq!((&whole * 2).to_vec::<i64>(), [14]);
        assert_eq!((&whole + 0.5).to_vec::<f32>(), [7.5]);
        assert_eq!((2 / &whole).dtype(), DType::F32);
        assert_eq!((1 - Tensor::from([true])).to_vec::<i64>(), [0]);
    }

    #[test]
    #[should_panic(expected = "the shapes do not broadcast")]
    fn an_operator_panics_with_the_message() {
        let _ = Tensor::zeros([2]) * Tensor::zeros([3]);
    }
}
