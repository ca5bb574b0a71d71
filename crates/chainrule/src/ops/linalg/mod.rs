//! Products.

family! {
    matmul
}
