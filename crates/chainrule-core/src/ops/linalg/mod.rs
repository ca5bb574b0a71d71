//! Products, and with the feature `linalg` the decompositions of matrices.

pub(super) mod cdist;
#[cfg(feature = "linalg")]
pub(super) mod cholesky;
pub(super) mod cross;
#[cfg(feature = "linalg")]
pub(super) mod det;
pub(super) mod dot;
pub(super) mod einsum;
#[cfg(feature = "linalg")]
pub(super) mod inverse;
pub(super) mod kron;
pub(super) mod matmul;
#[cfg(feature = "linalg")]
pub(super) mod qr;
#[cfg(feature = "linalg")]
pub(super) mod solve;

include!(concat!(env!("OUT_DIR"), "/linalg.rs"));

#[cfg(feature = "linalg")]
mod dense;
