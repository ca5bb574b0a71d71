"""Functions whose first argument is a tensor. Written by `tools/functions.py`: change that."""

from .elementwise import (
    abs, absolute, acos, acosh, arccos, arccosh, arcsin, arcsinh, arctan, arctanh, asin, asinh, atan, atanh, bitwise_not, ceil, cholesky,
    cos, cosh, det, erf, erfc, erfinv, exp, exp2, expm1, fix, floor, frac, inverse, isfinite, isinf, isnan, log, log10, log1p, log2,
    logical_not, neg, negative, reciprocal, relu, rsqrt, selu, sigmoid, sign, sin, sinh, sqrt, square, t, tan, tanh, trace, trunc,
)
from .arithmetic import (
    add, allclose, arctan2, atan2, bitwise_and, bitwise_left_shift, bitwise_or, bitwise_right_shift, bitwise_xor, bmm, clamp, clamp_max,
    clamp_min, clip, copysign, div, divide, eq, floor_divide, fmod, ge, greater, greater_equal, gt, hypot, isclose, le, lerp, less,
    less_equal, logaddexp, logical_and, logical_or, logical_xor, lt, matmul, maximum, minimum, mm, mul, multiply, nan_to_num, ne, not_equal,
    pow, remainder, round, sub, subtract, true_divide,
)
from .reductions import (
    all, amax, amin, any, argmax, argmin, argsort, bincount, count_nonzero, cummax, cummin, cumprod, cumsum, log_softmax, logcumsumexp,
    logsumexp, max, mean, median, min, nonzero, norm, prod, softmax, sort, std, sum, topk, unique, var,
)
from .shapes import (
    chunk, diag, diag_embed, diagonal, flatten, flip, moveaxis, movedim, narrow, permute, ravel, repeat_interleave, reshape, roll, select,
    split, squeeze, swapaxes, swapdims, tile, transpose, tril, triu, unbind, unflatten, unsqueeze,
)
from .indexing_and_products import (
    addcdiv, addcmul, addmm, dot, gather, ger, index_add, index_copy, index_fill, index_select, kron, masked_fill, masked_select,
    multinomial, mv, outer, scatter, scatter_add, take, take_along_dim,
)

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "addcdiv", "addcmul", "addmm", "all", "allclose", "amax", "amin", "any", "arccos", "arccosh",
    "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort", "asin", "asinh", "atan", "atan2", "atanh",
    "bincount", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bmm", "ceil",
    "cholesky", "chunk", "clamp", "clamp_max", "clamp_min", "clip", "copysign", "cos", "cosh", "count_nonzero", "cummax", "cummin",
    "cumprod", "cumsum", "det", "diag", "diag_embed", "diagonal", "div", "divide", "dot", "eq", "erf", "erfc", "erfinv", "exp", "exp2",
    "expm1", "fix", "flatten", "flip", "floor", "floor_divide", "fmod", "frac", "gather", "ge", "ger", "greater", "greater_equal", "gt",
    "hypot", "index_add", "index_copy", "index_fill", "index_select", "inverse", "isclose", "isfinite", "isinf", "isnan", "kron", "le",
    "lerp", "less", "less_equal", "log", "log10", "log1p", "log2", "log_softmax", "logaddexp", "logcumsumexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "logsumexp", "lt", "masked_fill", "masked_select", "matmul", "max", "maximum", "mean", "median", "min",
    "minimum", "mm", "moveaxis", "movedim", "mul", "multinomial", "multiply", "mv", "nan_to_num", "narrow", "ne", "neg", "negative",
    "nonzero", "norm", "not_equal", "outer", "permute", "pow", "prod", "ravel", "reciprocal", "relu", "remainder", "repeat_interleave",
    "reshape", "roll", "round", "rsqrt", "scatter", "scatter_add", "select", "selu", "sigmoid", "sign", "sin", "sinh", "softmax", "sort",
    "split", "sqrt", "square", "squeeze", "std", "sub", "subtract", "sum", "swapaxes", "swapdims", "t", "take", "take_along_dim", "tan",
    "tanh", "tile", "topk", "trace", "transpose", "tril", "triu", "true_divide", "trunc", "unbind", "unflatten", "unique", "unsqueeze",
    "var",
]
