//! Ops that reduce axes to one element each. Axes are one number, a list, or `..` for all; `keepdim` keeps them with size 1.

family! {
    argmax
    logsumexp
    max
    max_axis
    mean
    std
    sum
    var
}
