//! Products, and with the feature `linalg` the decompositions of matrices.

family! {
    #[cfg(feature = "linalg")]
    cholesky
    #[cfg(feature = "linalg")]
    det
    #[cfg(feature = "linalg")]
    inverse
    matmul
    #[cfg(feature = "linalg")]
    qr
    #[cfg(feature = "linalg")]
    solve
}

#[cfg(feature = "linalg")]
mod dense;
