//! Ops that reduce axes to one element each. Axes are one number, a list, or `..` for all;
//! `keepdim` keeps them with size 1.

family! { Reduce:
    amax
    amin
    any
    argmax
    argmin
    argsort
    bincount
    count_nonzero
    cummax
    cummin
    cumprod
    cumsum
    histogram
    logcumsumexp
    logsumexp
    max
    max_axis
    mean
    median
    min
    min_axis
    norm
    prod
    sort
    std
    sum
    topk
    unique
    var
}

pub(super) mod recurrence;
