//! Loops over slices. They know nothing of tensors or gradients, and are the only place for vector instructions and `unsafe`.
//!
//! Each loop is compiled for AVX-512, AVX2 and plain instructions by the macro in [`simd`] and chosen at run time.
//! Sums are taken in an order fixed by the sizes alone, so results do not depend on the number of threads.

pub(crate) mod attention;
pub(crate) mod chain;
pub(crate) mod conv;
pub(crate) mod copy;
pub(crate) mod count;
pub(crate) mod gather;
pub(crate) mod gemm;
pub(crate) mod map;
pub(crate) mod mask;
pub(crate) mod math;
pub(crate) mod norm;
pub(crate) mod optim;
pub(crate) mod pair;
pub(crate) mod pool;
pub(crate) mod reduce;
pub(crate) mod remap;
pub(crate) mod resample;
pub(crate) mod scan;
pub(crate) mod simd;
pub(crate) mod softmax;
pub(crate) mod sort;
pub mod threads;
pub(crate) mod transpose;
