//! The NumPy form of every op: what stands at the right of the `=`.
//!
//! `{0}` is the first input, `{*}` all of them, `{2*}` those from the third on; `{name}` the op's parameter of that name; `{shape}` and `{dtype}` those of the result; `{tensor}` the tensor among the parameters, or None. Names with an underscore are functions of
//! the files beside this one, which come into the script with what uses them. A form belongs to the name of the op, or else to that of its struct.

/// The form for an op of this name, made by a struct of that one.
pub(super) fn form(op: &str, made_by: &str) -> Option<&'static str> {
    let tables = [ELEMENTWISE, SLOPES, REDUCTIONS, SHAPES, INDICES, LAYERS, PRODUCTS, UPDATES];
    let find = |name: &str| {
        let mut all = tables.iter().flat_map(|table| table.iter());
        all.find(|(n, _)| *n == name).map(|(_, form)| *form)
    };
    find(op).or_else(|| find(made_by))
}

type Table = &'static [(&'static str, &'static str)];

const ELEMENTWISE: Table = &[
    ("add", "{0} + {1}"),
    ("sub", "{0} - {1}"),
    ("mul", "{0} * {1}"),
    ("div", "{0} / {1}"),
    ("pow", "{0} ** {1}"),
    ("neg", "-{0}"),
    ("abs", "np.abs({0})"),
    ("acos", "np.arccos({0})"),
    ("acosh", "np.arccosh({0})"),
    ("asin", "np.arcsin({0})"),
    ("asinh", "np.arcsinh({0})"),
    ("atan", "np.arctan({0})"),
    ("atan2", "np.arctan2({0}, {1})"),
    ("atanh", "np.arctanh({0})"),
    ("bitwise_and", "{0} & {1}"),
    ("bitwise_or", "{0} | {1}"),
    ("bitwise_xor", "{0} ^ {1}"),
    ("bitwise_left_shift", "{0} << {1}"),
    ("bitwise_right_shift", "{0} >> {1}"),
    ("bitwise_not", "~{0}"),
    ("ceil", "np.ceil({0})"),
    ("clamp_tensors", "np.minimum(np.maximum({0}, {1}), {2})"),
    ("Clamp", "_clamp({0}, {min}, {max})"),
    ("copysign", "np.copysign({0}, {1})"),
    ("cos", "np.cos({0})"),
    ("cosh", "np.cosh({0})"),
    ("dropout", "{0} * {1} * {kept}"),
    ("Elu", "_elu({0}, {alpha}, {scale}, {width})"),
    ("eq", "np.equal({0}, {1})"),
    ("erf", "_each(math.erf, {0})"),
    ("erfc", "_each(math.erfc, {0})"),
    ("erfinv", "_erfinv({0})"),
    ("exp", "np.exp({0})"),
    ("exp2", "np.exp2({0})"),
    ("expm1", "np.expm1({0})"),
    ("floor", "np.floor({0})"),
    ("floor_divide", "np.floor_divide({0}, {1})"),
    ("fmod", "np.fmod({0}, {1})"),
    ("frac", "{0} - np.trunc({0})"),
    ("ge", "np.greater_equal({0}, {1})"),
    ("gelu", "{0} * _normal({0})"),
    ("gelu_tanh", "{0} * (1 + np.tanh(_gelu_tanh_inner({0}))) / 2"),
    ("gt", "np.greater({0}, {1})"),
    ("hardsigmoid", "np.clip(({0} + 3) / 6, 0, 1)"),
    ("hardswish", "{0} * np.clip({0} + 3, 0, 6) / 6"),
    ("hypot", "np.hypot({0}, {1})"),
    ("isclose", "_isclose({0}, {1}, {rtol}, {atol}, {equal_nan})"),
    ("isfinite", "np.isfinite({0})"),
    ("isinf", "np.isinf({0})"),
    ("isnan", "np.isnan({0})"),
    ("le", "np.less_equal({0}, {1})"),
    ("leaky_relu", "np.where({0} > 0, {0}, {0} * {slope})"),
    ("lerp", "{0} + {2} * ({1} - {0})"),
    ("log", "np.log({0})"),
    ("log10", "np.log10({0})"),
    ("log1p", "np.log1p({0})"),
    ("log2", "np.log2({0})"),
    ("log_sigmoid", "np.minimum({0}, 0) - np.log1p(np.exp(-np.abs({0})))"),
    ("logaddexp", "np.logaddexp({0}, {1})"),
    ("logical_and", "np.logical_and({0}, {1})"),
    ("logical_not", "np.logical_not({0})"),
    ("logical_or", "np.logical_or({0}, {1})"),
    ("logical_xor", "np.logical_xor({0}, {1})"),
    ("lt", "np.less({0}, {1})"),
    ("maximum", "np.maximum({0}, {1})"),
    ("minimum", "np.minimum({0}, {1})"),
    ("mish", "_mish({0})"),
    ("nan_to_num", "np.nan_to_num({0}, nan={nan}, posinf={posinf}, neginf={neginf})"),
    ("ne", "np.not_equal({0}, {1})"),
    ("reciprocal", "1 / {0}"),
    ("relu", "np.maximum({0}, 0)"),
    ("remainder", "np.remainder({0}, {1})"),
    ("round", "np.round({0})"),
    ("rsqrt", "1 / np.sqrt({0})"),
    ("sigmoid", "_sigmoid({0})"),
    ("sign", "np.sign({0})"),
    ("silu", "{0} * _sigmoid({0})"),
    ("sin", "np.sin({0})"),
    ("sinh", "np.sinh({0})"),
    ("softplus", "_softplus({0}, {beta}, {threshold})"),
    ("softsign", "{0} / (1 + np.abs({0}))"),
    ("sqrt", "np.sqrt({0})"),
    ("square", "{0} * {0}"),
    ("tan", "np.tan({0})"),
    ("tanh", "np.tanh({0})"),
    ("to_dtype", "{0}.astype({dtype})"),
    ("trunc", "np.trunc({0})"),
    ("where", "np.where({0}, {1}, {2})"),
];

/// The backward of elementwise ops, from what they saved and the gradient.
const SLOPES: Table = &[
    ("abs_grad", "{1} * np.sign({0})"),
    ("celu_grad", "_elu_grad({0}, {1}, {alpha}, {scale}, {width})"),
    ("clamp_grad", "_clamp_grad({0}, {1}, {min}, {max})"),
    ("elu_grad", "_elu_grad({0}, {1}, {alpha}, {scale}, {width})"),
    ("erf_grad", "{1} * (2 / math.sqrt(math.pi)) * np.exp(-{0} * {0})"),
    ("exp2_grad", "{1} * ({0} * math.log(2))"),
    ("expm1_grad", "{1} * ({0} + 1)"),
    ("gelu_grad", "_gelu_grad({0}, {1})"),
    ("gelu_tanh_grad", "_gelu_tanh_grad({0}, {1})"),
    ("hardsigmoid_grad", "np.where(np.abs({0}) < 3, {1} / 6, 0)"),
    ("hardswish_grad", "_hardswish_grad({0}, {1})"),
    ("hardtanh_grad", "_clamp_grad({0}, {1}, {min}, {max})"),
    ("leaky_relu_grad", "np.where({0} > 0, {1}, {1} * {slope})"),
    ("log1p_grad", "{1} / ({0} + 1)"),
    ("log2_grad", "{1} / ({0} * math.log(2))"),
    ("maximum_grad", "_maximum_grad({0}, {1}, {2})"),
    ("pow_grad", "_pow_grad({0}, {1}, {2})"),
    ("reciprocal_grad", "-({1} * ({0} * {0}))"),
    ("relu6_grad", "_clamp_grad({0}, {1}, {min}, {max})"),
    ("relu_grad", "np.where({0} <= 0, 0, {1})"),
    ("rsqrt_grad", "{1} * (-0.5 * ({0} * {0} * {0}))"),
    ("selu_grad", "_elu_grad({0}, {1}, {alpha}, {scale}, {width})"),
    ("sigmoid_grad", "{1} * ({0} * (1 - {0}))"),
    ("silu_grad", "_silu_grad({0}, {1})"),
    ("softplus_grad", "_softplus_grad({0}, {1}, {beta}, {threshold})"),
    ("sqrt_grad", "{1} / ({0} + {0})"),
    ("square_grad", "{1} * ({0} + {0})"),
    ("tanh_grad", "{1} * ((1 - {0}) * (1 + {0}))"),
    ("var_grad", "{factor} * ({0} - {1}) * {2}"),
];

const REDUCTIONS: Table = &[
    ("all", "np.all({0}, axis={axes}, keepdims={keepdim})"),
    ("amax", "np.max({0}, axis={axes}, keepdims={keepdim})"),
    ("amin", "np.min({0}, axis={axes}, keepdims={keepdim})"),
    ("any", "np.any({0}, axis={axes}, keepdims={keepdim})"),
    ("argmax", "_arg(np.argmax, {0}, {axes}, {keepdim})"),
    ("argmin", "_arg(np.argmin, {0}, {axes}, {keepdim})"),
    ("cummax", "_cumulative_extreme({0}, {axis}, False)"),
    ("cummin", "_cumulative_extreme({0}, {axis}, True)"),
    ("cumprod", "_cumulate(np.multiply, {0}, {axis}, {reverse}, {exclusive})"),
    ("cumsum", "_cumulate(np.add, {0}, {axis}, {reverse}, {exclusive})"),
    ("logcumsumexp", "np.logaddexp.accumulate({0}, axis={axis})"),
    ("logsumexp", "_logsumexp({0}, {axes}, {keepdim})"),
    ("max", "np.max({0}, axis={axes}, keepdims={keepdim})"),
    ("max_axis", "_max_axis({0}, {axis}, {keepdim})"),
    ("mean", "np.mean({0}, axis={axes}, keepdims={keepdim})"),
    ("median", "_median({0}, {axis}, {keepdim})"),
    ("min", "np.min({0}, axis={axes}, keepdims={keepdim})"),
    ("min_axis", "_min_axis({0}, {axis}, {keepdim})"),
    ("norm", "_norm({0}, {p}, {axes}, {keepdim})"),
    ("pick", "np.take_along_axis({0}, {1}, {axis})"),
    ("place", "_place({0}, {1}, {axis}, {count})"),
    ("prod", "np.prod({0}, axis={axes}, keepdims={keepdim})"),
    ("recurrence", "_recurrence({0}, {1}, {axis}, {reverse}, {lagged})"),
    ("row_max", "np.max({0}, axis=-1, keepdims=True, initial=-np.inf)"),
    ("sort", "_sort({0}, {axis}, {descending}, None)"),
    ("std", "_std({0}, {axes}, {correction}, {keepdim})"),
    ("sum", "np.sum({0}, axis={axes}, keepdims={keepdim})"),
    ("topk", "_sort({0}, {axis}, {descending}, {count})"),
    ("var", "_var({0}, {axes}, {correction}, {keepdim})"),
];

const SHAPES: Table = &[
    ("cat", "np.concatenate([{*}], axis={axis})"),
    ("expand", "np.broadcast_to({0}, {shape})"),
    ("permute", "np.transpose({0}, {from})"),
    ("reshape", "np.reshape({0}, {shape})"),
    ("tril", "np.tril({0}, {diagonal})"),
    ("triu", "np.triu({0}, {diagonal})"),
    ("PadConstant", "_pad({0}, {amounts}, {value})"),
    ("Window", "_window({0}, {start}, {moves}, {shape})"),
    ("Unwindow", "_window_grad({0}, {start}, {moves}, {shape})"),
    ("Remap", "_remap({0}, {maps})"),
    ("Gathered", "_remap_grad({0}, {maps}, {shape})"),
    ("Resample", "_resample({0}, {rows}, {cols})"),
    ("PoolMax", "_max_pool({0}, {row_spans}, {row_step}, {col_spans}, {col_step})"),
    ("roll", "np.roll({0}, {shifts}, {roll_axes})"),
    ("slice", "{0}[{slice}]"),
    ("unslice", "_unslice({shape}, {parts})"),
];

const INDICES: Table = &[
    ("embedding", "{0}[{1}]"),
    ("embedding_grad", "_embedding_grad({0}, {1}, {rows}, {padding})"),
    ("gather", "{0}[_elements({1}, {axis})]"),
    ("gather_grad", "_gather_grad({0}, {1}, {axis}, {shape})"),
    ("index_select", "np.take({0}, {1}, axis={axis})"),
    ("index_select_grad", "_rows_grad({0}, {1}, {axis}, {shape})"),
    ("index_add", "_put({0}, {1}, {2}, {target_axis}, True, True)"),
    ("index_copy", "_put({0}, {1}, {2}, {target_axis}, True, False)"),
    ("one_hot", "np.equal({0}[..., None], np.arange({classes})).astype(np.int64)"),
    ("scatter", "_put({0}, {1}, {2}, {target_axis}, False, False)"),
    ("scatter_add", "_put({0}, {1}, {2}, {target_axis}, False, True)"),
    ("wrap", "np.where({0} < 0, {0} + {size}, {0})"),
    ("staying", "_staying({0}, {target_axis}, {shape})"),
    ("SearchSorted", "_searchsorted({0}, {1}, {right})"),
];

const COUNTING: &str = "{reduction}, {ignore_index}, {tensor}, {batch}";

const LAYERS: Table = &[
    ("attention", "_attention({arrays}, causal={causal}, scale={scale}, dropout={kept_weights})"),
    (
        "attention_grad",
        "_attention_grad({arrays}, causal={causal}, scale={scale}, dropout={kept_weights})",
    ),
    ("attention_keep", "_keep({shape}, {p}, int({0}), {dtype})"),
    (
        "batch_norm",
        "_batch_norm({*}, eps={eps}, correction={correction}, gain={gain}, bias={bias})",
    ),
    ("batch_norm_grad", "_batch_norm_grad({*}, correction={correction})"),
    ("cosine_similarity", "_cosine_similarity({0}, {1}, {eps})"),
    ("cosine_similarity_grad", "_cosine_similarity_grad({0}, {1}, {2}, {eps})"),
    ("cross_entropy", "_cross_entropy({0}, {1}, {counting}, {label_smoothing})"),
    ("cross_entropy_grad", "_cross_entropy_grad({0}, {1}, {2}, {counting}, {label_smoothing})"),
    (
        "cross_entropy_probabilities",
        "_soft_cross_entropy({0}, {1}, {reduction}, {tensor}, {batch}, {label_smoothing})",
    ),
    (
        "cross_entropy_probabilities_grad",
        "_soft_cross_entropy_grad({0}, {1}, {2}, {reduction}, {tensor}, {batch}, {label_smoothing}, {to_target})",
    ),
    ("linear", "_linear({*})"),
    ("linear_grad", "_linear_grad({*}, {wants})"),
    ("log_softmax", "_log_softmax({0})"),
    ("log_softmax_grad", "_log_softmax_grad({0}, {1})"),
    ("nll_loss", "_nll({0}, {1}, {counting})"),
    ("nll_loss_grad", "_nll_grad({0}, {1}, {shape}, {dtype}, {counting})"),
    ("RowNorm", "_row_norm({*}, norm={norm}, over={over}, eps={eps}, gain={gain}, bias={bias})"),
    ("RowNormGrad", "_row_norm_grad({*}, norm={norm}, over={over}, wants={wants})"),
    ("softmax", "_softmax({0})"),
    ("softmax_grad", "_softmax_grad({0}, {1})"),
];

const CONV: &str = "groups={groups}, input={input}, output={output}, kernel={kernel}, \
    stride={stride}, padding={padding}, dilation={dilation}";

const PRODUCTS: Table = &[
    ("matmul", "{0} @ {1}"),
    ("conv2d", "_conv2d({*}, {conv_sizes})"),
    ("conv2d_weight_grad", "_conv2d_weight_grad({*}, {conv_sizes})"),
    ("conv_transpose2d", "_conv_transpose2d({*}, {conv_sizes})"),
    ("cholesky", "np.linalg.cholesky({0})"),
    ("det", "_det({0})"),
    ("det_grad", "_cofactors({0})"),
    ("inverse", "np.linalg.inv({0})"),
    ("qr", "_qr({0})"),
    ("slogdet", "np.linalg.slogdet({0})[::-1]"),
    ("solve", "np.linalg.solve({0}, {1})"),
];

const UPDATES: Table = &[
    ("grad_norm", "_grad_norm({p}, {*})"),
    (
        "Sgd",
        "_sgd({update}, momentum={momentum}, dampening={dampening}, weight_decay={weight_decay}, nesterov={nesterov})",
    ),
    ("Adam", "_adam({update}, betas={betas}, eps={eps}, weight_decay={weight_decay})"),
    ("AdamW", "_adam_w({update}, betas={betas}, eps={eps}, weight_decay={weight_decay})"),
    (
        "RmsProp",
        "_rms_prop({update}, alpha={alpha}, eps={eps}, weight_decay={weight_decay}, momentum={momentum}, centered={centered})",
    ),
    ("Adagrad", "_adagrad({update}, lr_decay={lr_decay}, weight_decay={weight_decay}, eps={eps})"),
    ("Lion", "_lion({update}, betas={betas}, weight_decay={weight_decay})"),
    (
        "Muon",
        "_muon({update}, momentum={momentum}, nesterov={nesterov}, steps={steps}, weight_decay={weight_decay})",
    ),
];

/// Forms that are parts of others.
pub(super) fn part(name: &str) -> Option<&'static str> {
    match name {
        "counting" => Some(COUNTING),
        "conv_sizes" => Some(CONV),
        _ => None,
    }
}

/// Losses of pairs: the name, the loss, its slope, and its slope for the target.
const LOSSES: &[[&str; 4]] = &[
    ["bce", "_bce({0}, {1})", "_bce_slope({0}, {1})", "np.log1p(-{0}) - np.log({0})"],
    ["bce_with_logits", "_bce_with_logits({0}, {1})", "_sigmoid({0}) - {1}", "-{0}"],
    [
        "cosine_embedding",
        "_cosine_embedding({0}, {1}, {margin})",
        "_cosine_embedding_slope({0}, {1}, {margin})",
        "",
    ],
    [
        "hinge",
        "np.maximum(1 - {1} * {0}, 0)",
        "np.where(1 - {1} * {0} > 0, -{1}, 0)",
        "np.where(1 - {1} * {0} > 0, -{0}, 0)",
    ],
    [
        "hinge_embedding",
        "_hinge_embedding({0}, {1}, {margin})",
        "_hinge_embedding_slope({0}, {1}, {margin})",
        "",
    ],
    [
        "huber",
        "_huber({0}, {1}, {delta})",
        "np.clip({0} - {1}, -{delta}, {delta})",
        "np.clip({1} - {0}, -{delta}, {delta})",
    ],
    [
        "kl_div",
        "_kl_div({0}, {1}, {log_target})",
        "_kl_div_slope({0}, {1}, {log_target})",
        "_kl_div_target_slope({0}, {1}, {log_target})",
    ],
    ["l1_loss", "np.abs({0} - {1})", "np.sign({0} - {1})", "np.sign({1} - {0})"],
    ["mse", "({0} - {1}) ** 2", "2 * ({0} - {1})", "2 * ({1} - {0})"],
    [
        "smooth_l1",
        "_smooth_l1({0}, {1}, {beta})",
        "np.clip(({0} - {1}) / {beta}, -1, 1)",
        "np.clip(({1} - {0}) / {beta}, -1, 1)",
    ],
];

/// The form of a loss of pairs or of its backward.
pub(super) fn loss(op: &str, to_target: bool) -> Option<String> {
    let (name, backward) = match op.strip_suffix("_grad") {
        Some(name) => (name, true),
        None => (op, false),
    };
    let [_, value, slope, target] = LOSSES.iter().find(|[n, ..]| *n == name)?;
    Some(match (backward, to_target) {
        (false, _) => format!("_loss({value}, {{reduction}})"),
        (true, false) => format!("_loss_grad({slope}, {{2}}, {{reduction}})"),
        (true, true) => format!("_loss_grad({target}, {{2}}, {{reduction}})"),
    })
}
