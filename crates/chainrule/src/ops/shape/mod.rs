//! Ops that move elements without changing them. Where memory allows, the result is a view.

family! {
    cat
    expand
    permute
    reshape
    slice
    squeeze
}
