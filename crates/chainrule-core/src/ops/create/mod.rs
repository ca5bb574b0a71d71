//! Tensors made from scratch: constant, counting, random.

mod draw;

use crate::dtype::DType;
use crate::error::{Result, raise};
use crate::rng::Generator;
use crate::shape::IntoShape;
use crate::tensor::value::{Meta, Value, by_size};
use crate::tensor::{Tensor, widen};
pub(super) use draw::Draw;

impl Tensor {
    /// A tensor of zeros, in f32. See [`Tensor::full`] for other values and dtypes.
    #[track_caller]
    pub fn zeros(shape: impl IntoShape) -> Tensor {
        Tensor::full(shape, 0.0, DType::F32)
    }

    /// A tensor of ones, in f32.
    #[track_caller]
    pub fn ones(shape: impl IntoShape) -> Tensor {
        Tensor::full(shape, 1.0, DType::F32)
    }

    /// A tensor of one value, in the dtype asked for.
    ///
    /// ```
    /// use chainrule::{DType, Tensor};
    /// assert_eq!(Tensor::full([2], 7.0, DType::I64).to_vec::<i64>(), [7, 7]);
    /// ```
    #[track_caller]
    pub fn full(shape: impl IntoShape, value: f64, dtype: DType) -> Tensor {
        match Tensor::try_full(shape, value, dtype) {
            Ok(t) => t,
            Err(e) => raise(e),
        }
    }

    /// Like [`Tensor::full`], but returns the error.
    pub fn try_full(shape: impl IntoShape, value: f64, dtype: DType) -> Result<Tensor> {
        let shape = shape.into_shape("full")?;
        match dtype {
            DType::F32 => Value::build("full", shape, |out| out.fill(value as f32)),
            DType::F64 => Value::build("full", shape, |out| out.fill(value)),
            DType::I64 => Value::build("full", shape, |out| out.fill(value as i64)),
            DType::Bool => Value::build("full", shape, |out| out.fill((value != 0.0) as u8)),
            _ => {
                let one = widen::cast(&Value::scalar(value), dtype)?;
                let fill = |mut out: Value| {
                    by_size!(dtype, |T| out.elements_mut::<T>().fill(one.first::<T>()));
                    out
                };
                Value::uninit("full", Meta::new(shape, dtype)).map(fill)
            }
        }
        .map(Tensor::constant)
    }

    /// Uniform random numbers from 0 (included) to 1 (excluded): f32 or f64, drawn as PyTorch draws
    /// them.
    #[track_caller]
    pub fn rand(shape: impl IntoShape, dtype: DType, generator: &mut Generator) -> Tensor {
        match Tensor::try_rand(shape, dtype, generator) {
            Ok(t) => t,
            Err(e) => raise(e),
        }
    }

    /// Like [`Tensor::rand`], but returns the error.
    #[track_caller]
    pub fn try_rand(
        shape: impl IntoShape,
        dtype: DType,
        generator: &mut Generator,
    ) -> Result<Tensor> {
        let shape = shape.into_shape("rand")?;
        Draw::Uniform.tensor(Meta::new(shape, dtype), generator)
    }

    /// Normal random numbers of mean 0 and variance 1: f32 or f64, drawn as PyTorch draws them.
    #[track_caller]
    pub fn randn(shape: impl IntoShape, dtype: DType, generator: &mut Generator) -> Tensor {
        match Tensor::try_randn(shape, dtype, generator) {
            Ok(t) => t,
            Err(e) => raise(e),
        }
    }

    /// Like [`Tensor::randn`], but returns the error.
    #[track_caller]
    pub fn try_randn(
        shape: impl IntoShape,
        dtype: DType,
        generator: &mut Generator,
    ) -> Result<Tensor> {
        let shape = shape.into_shape("randn")?;
        Draw::Normal.tensor(Meta::new(shape, dtype), generator)
    }

    /// Random integers from `low` (included) to `high` (excluded), i64, drawn as PyTorch draws
    /// them.
    #[track_caller]
    pub fn randint(
        low: i64,
        high: i64,
        shape: impl IntoShape,
        generator: &mut Generator,
    ) -> Tensor {
        match Tensor::try_randint(low, high, shape, generator) {
            Ok(t) => t,
            Err(e) => raise(e),
        }
    }

    /// Like [`Tensor::randint`], but returns the error.
    #[track_caller]
    pub fn try_randint(
        low: i64,
        high: i64,
        shape: impl IntoShape,
        generator: &mut Generator,
    ) -> Result<Tensor> {
        let shape = shape.into_shape("randint")?;
        Draw::Integers { low, high }.tensor(Meta::new(shape, DType::I64), generator)
    }

    /// The numbers from 0 to `n` (excluded) in random order, i64, drawn as PyTorch draws them.
    #[track_caller]
    pub fn randperm(n: usize, generator: &mut Generator) -> Tensor {
        let drawn = n
            .into_shape("randperm")
            .and_then(|shape| Draw::Permutation.tensor(Meta::new(shape, DType::I64), generator));
        match drawn {
            Ok(t) => t,
            Err(e) => raise(e),
        }
    }

    /// The integers from `start` (included) to `end` (excluded), i64.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::arange(1, 4).to_vec::<i64>(), [1, 2, 3]);
    /// ```
    pub fn arange(start: i64, end: i64) -> Tensor {
        Tensor::from((start..end).collect::<Vec<i64>>())
    }

    /// `steps` numbers from `start` to `end`, both included, evenly spaced, in f64; with one step
    /// just `start`.
    pub fn linspace(start: f64, end: f64, steps: usize) -> Tensor {
        let step = (end - start) / (steps.max(2) - 1) as f64;
        // Computed from the nearer end, so that both are exact.
        let at = |i: usize| {
            if i < steps.div_ceil(2) {
                start + step * i as f64
            } else {
                end - step * (steps - 1 - i) as f64
            }
        };
        Tensor::from((0..steps).map(at).collect::<Vec<f64>>())
    }

    /// The unit matrix of `n` rows, in f32.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::eye(2).to_vec::<f32>(), [1.0, 0.0, 0.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn eye(n: usize) -> Tensor {
        let unit = |out: &mut [f32]| {
            out.fill(0.0);
            out.iter_mut().step_by(n + 1).for_each(|x| *x = 1.0);
        };
        match [n, n].into_shape("eye").and_then(|shape| Value::build("eye", shape, unit)) {
            Ok(value) => Tensor::constant(value),
            Err(e) => raise(e),
        }
    }

    /// Zeros of this tensor's shape and dtype.
    pub fn zeros_like(&self) -> Tensor {
        Tensor::full(self.shape(), 0.0, self.dtype())
    }

    /// Ones of this tensor's shape and dtype.
    pub fn ones_like(&self) -> Tensor {
        Tensor::full(self.shape(), 1.0, self.dtype())
    }
}
