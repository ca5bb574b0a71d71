//! The catalogue by subject: which mistakes belong together, how one sees them in the numbers, and
//! what to do.

/// Mistakes of one kind.
pub(crate) struct Topic {
    pub title: &'static str,
    /// The mistake.
    pub about: &'static str,
    /// The look of the numbers.
    pub signature: &'static str,
    pub fix: &'static str,
    /// The op and the mistake; of the op [`ANY`] for those that belong to no op. The first is the
    /// example.
    pub members: &'static [(&'static str, &'static str)],
}

/// Stands for the op of a mistake that can be made at any op.
pub(crate) const ANY: &str = "any op";

pub(crate) const TOPICS: &[Topic] = &[
    Topic {
        title: "Missing 1/n",
        about: "The loss is a mean, and its gradient is that of a sum.",
        signature: "every element is n times the right one, and the ratio follows the batch size",
        fix: "divide by the number of elements, once",
        members: &[
            ("mean", "missing 1/n"),
            ("cross_entropy", "missing 1/n"),
            ("cross_entropy_probabilities", "missing 1/n"),
            ("nll_loss", "missing 1/n"),
            ("avg_pool1d", "missing 1/n"),
        ],
    },
    Topic {
        title: "Divided twice",
        about: "The loss has divided by n already, and the backward pass does it again.",
        signature: "every element is the right one over n, and the ratio follows the batch size",
        fix: "divide where the forward pass divides, and nowhere else",
        members: &[("mean", "divided twice"), ("cross_entropy", "divided twice")],
    },
    Topic {
        title: "Wrong sign",
        about: "A minus is forgotten, or there is one too many.",
        signature: "the ratio is -1 everywhere, in one tensor and in all below it",
        fix: "add the part with the sign that the rule gives it",
        members: &[
            (ANY, "sign"),
            ("sub", "sign"),
            ("neg", "sign"),
            ("div", "sign"),
            ("reciprocal", "sign"),
            ("cos", "sign"),
            ("cross_entropy", "sign"),
        ],
    },
    Topic {
        title: "Factor 2 lost or added",
        about: "The derivative of a square brings a 2; a tensor that is used twice gets two parts.",
        signature: "the ratio is 1/2 or 2 everywhere, whatever the batch size",
        fix: "derive the rule again, and count the uses",
        members: &[
            (ANY, "factor 2 lost"),
            (ANY, "factor 2 added"),
            (ANY, "wrong factor"),
            ("square", "missing factor"),
            ("var", "missing factor 2"),
            ("sqrt", "missing factor"),
        ],
    },
    Topic {
        title: "Missing unbroadcast",
        about: "An input was stretched in the forward pass, and its gradient is not summed over the copies.",
        signature: "a slice, a mean, or the sums along another axis stand where the sums along the stretched axis are due",
        fix: "sum the gradient over the axes along which the input was stretched",
        members: &[
            (ANY, "slice where a sum is due"),
            (ANY, "mean where a sum is due"),
            (ANY, "sum over the wrong axis"),
            (ANY, "sum over everything"),
            ("linear", "mean where a sum is due"),
            ("sum", "mean where a sum is due"),
        ],
    },
    Topic {
        title: "Overwritten instead of accumulated",
        about: "A tensor is used twice, or a row is looked up twice, and the second gradient replaces the first.",
        signature: "the gradient is one of the parts whose sum is due",
        fix: "`+=` for every use, from zeros; an index that occurs several times gets the sum",
        members: &[
            (ANY, "overwritten instead of accumulated"),
            ("embedding", "overwritten instead of accumulated"),
            ("index_select", "overwritten instead of accumulated"),
            ("gather", "overwritten instead of accumulated"),
        ],
    },
    Topic {
        title: "Operand not transposed, operands swapped",
        about: "For `y = a @ b` the gradients are `g @ b^T` and `a^T @ g`. With square matrices every other order fits, too.",
        signature: "the right elements in the order of the transposed matrix, or numbers that fit nothing where the shapes happen to fit",
        fix: "check by shapes, with sizes that are all different",
        members: &[
            ("matmul", "second operand not transposed"),
            ("matmul", "first operand not transposed"),
            ("matmul", "operands swapped"),
            ("matmul", "transposed product"),
            ("linear", "transposed product"),
            ("linear", "weight not transposed back"),
        ],
    },
    Topic {
        title: "Derivative at the wrong point",
        about: "tanh, sigmoid, exp and sqrt have derivatives that are written in the result. The input stands there, or the result where the input is due.",
        signature: "right where input and result are nearly equal, and wrong away from there",
        fix: "say in the code which of the two is meant: `y`, not `x`",
        members: &[
            ("tanh", "input for the output"),
            ("tanh", "derivative taken at the wrong point"),
            ("sigmoid", "input for the output"),
            ("sigmoid", "derivative taken at the wrong point"),
            ("exp", "input for the output"),
            ("exp", "derivative taken at the wrong point"),
            ("sqrt", "input for the output"),
            ("sqrt", "derivative taken at the wrong point"),
        ],
    },
    Topic {
        title: "Softmax treated as diagonal",
        about: "Each probability depends on every logit of its row, through the sum.",
        signature: "the rows of the gradient should sum to 0, and do not",
        fix: "dx = y * (g - sum(g * y))",
        members: &[
            ("softmax", "softmax treated as diagonal"),
            ("softmax", "normalisation forgotten"),
            ("log_softmax", "softmax treated as diagonal"),
        ],
    },
    Topic {
        title: "Log-softmax without the sum",
        about: "The logarithm of the sum of exponentials was taken for a constant.",
        signature: "the gradient is the incoming one; its rows do not sum to 0",
        fix: "dx = g - softmax(x) * sum(g)",
        members: &[
            ("log_softmax", "sum forgotten"),
            ("log_softmax", "upstream sum taken for 1"),
            ("logsumexp", "softmax forgotten"),
        ],
    },
    Topic {
        title: "Max routed to all ties or to the wrong one",
        about: "The gradient of a maximum goes to the place where it was found, and of several equal ones each gets its share or the first gets all.",
        signature: "rows whose sum is several times the incoming gradient, or the right number in the wrong place",
        fix: "keep the position in the forward pass and put the gradient there",
        members: &[
            ("max", "ties counted several times"),
            ("min", "ties counted several times"),
            ("max", "gradient to all"),
            ("max", "smallest for largest"),
            ("max_axis", "the wrong one"),
            ("max_axis", "gradient to all"),
            ("maximum", "tie counted twice"),
            ("maximum", "operands swapped"),
        ],
    },
    Topic {
        title: "The mask of relu",
        about: "The gradient passes where the input was positive. It is masked on the other side, not at all, or by its own sign.",
        signature: "zeros where there should be none, and the other way round",
        fix: "dx = g where x > 0, else 0",
        members: &[
            ("relu", "mask inverted"),
            ("relu", "mask from the gradient"),
            ("relu", "mask forgotten"),
            ("relu", "value for the slope"),
        ],
    },
    Topic {
        title: "Dropout: mask or scale forgotten",
        about: "A dropped element has no gradient, and a kept one was multiplied by 1 / (1 - p).",
        signature: "no zeros where elements were dropped; or a ratio of 1 - p everywhere",
        fix: "multiply by the same mask and the same scale",
        members: &[
            ("dropout", "mask forgotten"),
            ("dropout", "factor forgotten"),
            ("dropout", "another mask"),
        ],
    },
    Topic {
        title: "Batch norm: the paths through mean and variance",
        about: "Every row of the batch moves the mean and the variance, and so all other rows.",
        signature: "the columns of the gradient should sum to 0, and do not (mean); what is missing is a multiple of the normalised input (variance)",
        fix: "dx = gain / sqrt(var + eps) * (g - sum(g) / m - h * sum(g * h) / (m - correction))",
        members: &[
            ("batch_norm", "mean path forgotten"),
            ("batch_norm", "variance path forgotten"),
            ("batch_norm", "batch-norm coupling forgotten"),
            ("batch_norm", "gradient of the gain from the input"),
            ("group_norm", "coupling forgotten"),
            ("group_norm", "mean path forgotten"),
            ("group_norm", "variance path forgotten"),
        ],
    },
    Topic {
        title: "n instead of n - 1",
        about: "The forward pass divides the variance by n - 1 and the backward pass by n, or the other way round.",
        signature: "a small error that goes away as the batch grows; for a variance alone a ratio of n / (n - 1)",
        fix: "use one divisor in both",
        members: &[
            ("batch_norm", "wrong divisor of the variance"),
            ("var", "wrong correction"),
            ("std", "wrong correction"),
        ],
    },
    Topic {
        title: "Epsilon outside the root",
        about: "sqrt(var) + eps is not sqrt(var + eps).",
        signature: "a small error, the same factor along each column or row, that grows as the variance shrinks",
        fix: "divide by the very number that the forward pass divided by: keep it",
        members: &[
            ("batch_norm", "epsilon outside the root"),
            ("layer_norm", "epsilon outside the root"),
            ("group_norm", "epsilon outside the root"),
            ("rms_norm", "epsilon outside the root"),
        ],
    },
    Topic {
        title: "Layer norm reduced over the wrong axis",
        about: "The two means of the backward pass run along each row, as in the forward pass.",
        signature: "the rows of the gradient should sum to 0, and the columns do",
        fix: "reduce over the axes over which the forward pass did",
        members: &[
            ("layer_norm", "reduced over the wrong axis"),
            ("layer_norm", "mean path forgotten"),
            ("layer_norm", "variance path forgotten"),
            ("layer_norm", "statistics taken for constants"),
            ("rms_norm", "root taken for a constant"),
        ],
    },
    Topic {
        title: "One-hot subtracted wrongly",
        about: "`dlogits[range(n), y] =- 1` is an assignment of -1.",
        signature: "the elements of the targets are -1/n instead of (p - 1)/n; all others are right",
        fix: "`-= 1`, and only then divide by n",
        members: &[
            ("cross_entropy", "one-hot assigned, not subtracted"),
            ("cross_entropy", "target not subtracted"),
        ],
    },
    Topic {
        title: "ignore_index counted in the mean",
        about: "The mean is over the rows that count.",
        signature: "every element is too small by the share of the rows that count",
        fix: "divide by the number of rows that are not left out",
        members: &[
            ("cross_entropy", "ignored rows counted in the mean"),
            ("nll_loss", "ignored rows counted in the mean"),
        ],
    },
    Topic {
        title: "Attention: scale or mask forgotten",
        about: "The scores were multiplied by 1 / sqrt(d) and masked; so is their gradient.",
        signature: "a ratio of sqrt(d) in the gradients of queries and keys; gradients for keys that were hidden",
        fix: "multiply by the scale again, and use the weights of the forward pass",
        members: &[
            ("attention", "scale forgotten"),
            ("attention", "mask forgotten"),
            ("attention", "causal rule forgotten"),
            ("attention", "normalisation forgotten"),
        ],
    },
    Topic {
        title: "View where a permute is due",
        about: "A reshape leaves the elements in their order; a permute moves them. Shapes fit either way.",
        signature: "the right elements in the order of the transposed tensor",
        fix: "permute back by the inverse order, then reshape",
        members: &[("permute", "view where a permute is due"), ("permute", "order not inverted")],
    },
    Topic {
        title: "The exponent of pow",
        about: "In `a^b` both have gradients, `b * a^(b-1)` and `a^b * ln a`.",
        signature: "no gradient for the exponent",
        fix: "db = g * a^b * ln(a)",
        members: &[
            ("pow", "exponent forgotten"),
            ("pow", "logarithm forgotten"),
            ("pow", "missing factor"),
            ("pow", "power not lowered"),
        ],
    },
    Topic {
        title: "Leaks through the mask of where or masked_fill",
        about: "An element that was not taken has no influence on the result.",
        signature: "numbers where the right gradient has zeros; elsewhere it is right",
        fix: "g where the mask takes the branch, else 0. masked_fill is a where",
        members: &[("where", "leak through the mask"), ("where", "branches swapped")],
    },
    Topic {
        title: "cumsum not reversed",
        about: "An element counts in all sums from its place on.",
        signature: "the first element gets one part, and should get all",
        fix: "sum the gradient from the end",
        members: &[
            ("cumsum", "wrong direction"),
            ("cumsum", "own place only"),
            ("cumsum", "own place left out"),
        ],
    },
    Topic {
        title: "Clipped by value inside the rule",
        about: "A gradient that is cut off inside a rule is no longer the gradient of anything.",
        signature: "several elements of exactly the same magnitude, which no other one exceeds",
        fix: "clip after the whole backward pass, by the norm of all gradients",
        members: &[(ANY, "clipped by value")],
    },
    Topic {
        title: "Path forgotten",
        about: "An input was taken for a constant.",
        signature: "zeros, or one part of two missing",
        fix: "add what the rule gives for this input",
        members: &[(ANY, "path forgotten"), ("add", "one operand forgotten")],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_check::catalogue::GENERAL;
    use chainrule_check::catalogue::fault::entry;

    /// The catalogue, word by word, and where each mistake is.
    const CATALOGUE: &[(&str, &[(&str, &str)])] = &[
        ("missing 1/n", &[("mean", "missing 1/n"), ("cross_entropy", "missing 1/n")]),
        ("divided twice", &[("mean", "divided twice"), ("cross_entropy", "divided twice")]),
        ("wrong sign", &[(ANY, "sign")]),
        ("factor 2 lost", &[(ANY, "factor 2 lost")]),
        ("factor 2 added", &[(ANY, "factor 2 added")]),
        ("missing unbroadcast: slice", &[(ANY, "slice where a sum is due")]),
        ("missing unbroadcast: mean", &[(ANY, "mean where a sum is due")]),
        ("missing unbroadcast: wrong axis", &[(ANY, "sum over the wrong axis")]),
        ("overwritten: a tensor used twice", &[(ANY, "overwritten instead of accumulated")]),
        (
            "overwritten: repeated embedding rows",
            &[("embedding", "overwritten instead of accumulated")],
        ),
        (
            "operand not transposed",
            &[
                ("matmul", "first operand not transposed"),
                ("matmul", "second operand not transposed"),
            ],
        ),
        ("operands swapped", &[("matmul", "operands swapped"), ("maximum", "operands swapped")]),
        (
            "derivative at the input where the output is due",
            &[
                ("tanh", "input for the output"),
                ("sigmoid", "input for the output"),
                ("exp", "input for the output"),
                ("sqrt", "input for the output"),
            ],
        ),
        (
            "derivative at the output where the input is due",
            &[
                ("tanh", "derivative taken at the wrong point"),
                ("sigmoid", "derivative taken at the wrong point"),
                ("exp", "derivative taken at the wrong point"),
                ("sqrt", "derivative taken at the wrong point"),
            ],
        ),
        ("softmax treated as diagonal", &[("softmax", "softmax treated as diagonal")]),
        ("log-softmax without the sum", &[("log_softmax", "sum forgotten")]),
        (
            "max routed to all ties",
            &[("max", "ties counted several times"), ("min", "ties counted several times")],
        ),
        ("max routed to the wrong one", &[("max_axis", "the wrong one")]),
        ("relu mask with the wrong side", &[("relu", "mask inverted")]),
        ("relu mask from the gradient", &[("relu", "mask from the gradient")]),
        ("dropout mask forgotten", &[("dropout", "mask forgotten")]),
        ("dropout scale forgotten", &[("dropout", "factor forgotten")]),
        ("batch-norm mean path forgotten", &[("batch_norm", "mean path forgotten")]),
        ("batch-norm variance path forgotten", &[("batch_norm", "variance path forgotten")]),
        ("both batch-norm paths forgotten", &[("batch_norm", "batch-norm coupling forgotten")]),
        (
            "n instead of n-1",
            &[
                ("batch_norm", "wrong divisor of the variance"),
                ("var", "wrong correction"),
                ("std", "wrong correction"),
            ],
        ),
        (
            "epsilon outside the root",
            &[
                ("batch_norm", "epsilon outside the root"),
                ("layer_norm", "epsilon outside the root"),
            ],
        ),
        (
            "layer norm reduced over the wrong axis",
            &[("layer_norm", "reduced over the wrong axis")],
        ),
        ("one-hot subtracted wrongly", &[("cross_entropy", "one-hot assigned, not subtracted")]),
        (
            "ignore_index counted in the mean",
            &[
                ("cross_entropy", "ignored rows counted in the mean"),
                ("nll_loss", "ignored rows counted in the mean"),
            ],
        ),
        ("attention scale forgotten", &[("attention", "scale forgotten")]),
        (
            "attention mask forgotten",
            &[("attention", "mask forgotten"), ("attention", "causal rule forgotten")],
        ),
        ("view where a permute is due", &[("permute", "view where a permute is due")]),
        ("gradient of pow to the exponent forgotten", &[("pow", "exponent forgotten")]),
        ("where leaking through the mask", &[("where", "leak through the mask")]),
        ("cumsum not reversed", &[("cumsum", "wrong direction")]),
        ("gradient clipped by value inside the rule", &[(ANY, "clipped by value")]),
    ];

    fn exists(op: &str, mistake: &str) -> bool {
        match op {
            ANY => GENERAL.iter().any(|g| g.name == mistake),
            _ => entry(op).is_some_and(|e| e.classic_mistakes().any(|(name, _)| name == mistake)),
        }
    }

    #[test]
    fn every_mistake_of_the_catalogue_exists_and_is_on_the_page() {
        let mut failures = Vec::new();
        for (words, places) in CATALOGUE {
            for (op, mistake) in *places {
                let explained = TOPICS.iter().any(|t| t.members.contains(&(*op, *mistake)));
                if !exists(op, mistake) || !explained {
                    failures.push(format!("{words}: {op}, {mistake}, explained: {explained}"));
                }
            }
        }
        assert!(failures.is_empty(), "{failures:#?}");
    }

    #[test]
    fn every_member_of_a_topic_exists() {
        let all = TOPICS.iter().flat_map(|t| t.members);
        let missing: Vec<_> = all.filter(|(op, mistake)| !exists(op, mistake)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let general = |name: &str| TOPICS.iter().any(|t| t.members.contains(&(ANY, name)));
        let left: Vec<_> = GENERAL.iter().filter(|g| !general(g.name)).map(|g| g.name).collect();
        assert!(left.is_empty(), "in no topic: {left:?}");
    }
}
