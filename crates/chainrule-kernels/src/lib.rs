//! Loops over slices. They know nothing of tensors or gradients, and are the only place for vector
//! instructions. Nearly all `unsafe` stands here; the rest is the memory of values
//! (`tensor/arena.rs`, `tensor/foreign.rs`), the arena of planned programs and what the Python
//! package shares with other libraries. The other crates forbid it.
//!
//! Each loop is compiled for AVX-512, AVX2 and plain instructions by the macro in [`simd`] and
//! chosen at run time. Sums are taken in an order fixed by the sizes alone, so results do not
//! depend on the number of threads.
//!
//! Beside the loops are the small types that they and everything above them share: [`dtype`],
//! [`shape`], the parameters of an op as data ([`param`]) and the counter-based generator
//! ([`counter`]). The crate is a layer of `chainrule`, which re-exports what users need; its own
//! interface promises nothing.

pub mod attention;
pub mod cast;
pub mod chain;
pub mod conv;
pub mod copy;
pub mod count;
pub mod counter;
pub mod distance;
pub mod dtype;
pub mod gather;
pub mod gemm;
pub mod lstm;
pub mod map;
pub mod mask;
pub mod math;
pub mod moments;
pub mod norm;
pub mod optim;
pub mod pair;
pub mod param;
pub mod pool;
pub mod reduce;
pub mod remap;
pub mod resample;
pub mod scan;
pub mod shape;
pub mod simd;
pub mod softmax;
pub mod sort;
pub mod threads;
pub mod transpose;
