//! Products.

family! {
    cross
    dot
    einsum
    kron
    matmul
}
