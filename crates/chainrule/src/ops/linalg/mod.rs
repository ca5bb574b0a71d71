//! Products, and with the feature `linalg` the decompositions of matrices.

family! {
    matmul
    #[cfg(feature = "linalg")]
    cholesky
    #[cfg(feature = "linalg")]
    det
    #[cfg(feature = "linalg")]
    inverse
    #[cfg(feature = "linalg")]
    qr
    #[cfg(feature = "linalg")]
    solve
}

#[cfg(feature = "linalg")]
mod dense;
