//! Products, and with the feature `linalg` the decompositions of matrices.

family! { Linalg:
    #[cfg(feature = "linalg")]
    cholesky
    cross
    #[cfg(feature = "linalg")]
    det
    dot
    einsum
    #[cfg(feature = "linalg")]
    inverse
    kron
    matmul
    #[cfg(feature = "linalg")]
    qr
    #[cfg(feature = "linalg")]
    solve
}

#[cfg(feature = "linalg")]
mod dense;
