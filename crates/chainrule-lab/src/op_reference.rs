//! The reference page of all ops, written from the table.

use std::fmt::Write;

use crate::ops::{Entry, Family, table};

/// The text above the families.
const HEAD: &str = "\
# Op reference

<!-- Written by `chainrule_lab::op_reference()` from the op table. Do not edit: change the op's `ENTRY`, then run the tests of the book
with CHAINRULE_UPDATE_DOCS=1. -->

This page is generated from the op table. It cannot differ from the code: a test compares the two.

In the formulas `g` is the gradient that comes in from above, `y` the op's result, and `dx` the gradient that is passed on to the
input `x`. The gradient of a broadcast input is summed back to its shape afterwards, for all ops in the same way. *Edges* says
what happens where there is no derivative, or at the border of the domain. A *classic mistake* is a wrong version of the gradient
that people write; the tests plant each one and see that the checks catch it.

Every method has a twin `try_...` that returns the error instead of panicking. The full documentation of a method, with
its shapes, errors and an example, is in the library's documentation under `Tensor`.
";

/// The families in the order of the table: heading and what they have in common.
const FAMILIES: [(Family, &str, &str); 8] = [
    (Family::Unary, "Unary", "One tensor in, element by element."),
    (
        Family::Binary,
        "Binary",
        "Two or three tensors in, element by element, with broadcasting. Operands of different dtypes are promoted first.",
    ),
    (
        Family::Reduce,
        "Reductions",
        "Axes become one element each. The axes are a number, a list, or `..` for all; with `keepdim` they stay, with size 1.",
    ),
    (Family::Linalg, "Products", "Matrix products."),
    (
        Family::Shape,
        "Shapes",
        "Elements keep their values and get other places. The result is a view without a copy if memory allows it.",
    ),
    (
        Family::Index,
        "Indices",
        "Elements are picked by i64 indices, which count from 0. One that occurs several times gets the sum of its gradients.",
    ),
    (
        Family::Conv,
        "Convolution, pooling, resampling",
        "Images `[n, channels, h, w]`, or signals `[n, channels, l]`; the axis of examples may be missing. Strides, paddings and the like \
         mean what they mean in PyTorch.",
    ),
    (
        Family::Fused,
        "Fused",
        "Several steps as one kernel. Each carries its definition in primitive ops, which its kernels are tested against and which \
         gives its higher derivatives.",
    ),
];

/// The reference page of all ops in Markdown: for each op how it is called, what it computes, its
/// gradient, and what it does at its edges.
///
/// ```
/// let page = chainrule_lab::op_reference();
/// assert!(page.contains("### tanh") && page.contains("dx = g * (1 - tanh(x)^2)"));
/// ```
pub fn op_reference() -> String {
    let mut page = String::from(HEAD);
    for (family, title, about) in FAMILIES {
        // Writing to a string cannot fail.
        let _ = write!(page, "\n## {title}\n\n{about}\n");
        for entry in table().filter(|entry| entry.family == family) {
            section(&mut page, entry);
        }
    }
    page
}

fn section(page: &mut String, entry: &Entry) {
    let gradient = match entry.gradient {
        "" => "none".to_owned(),
        rule => code(rule),
    };
    let _ = write!(
        page,
        "\n### {}\n\n- Call: {}\n- Result: {}\n- Gradient: {gradient}\n",
        entry.name,
        code(entry.signature),
        code(entry.formula)
    );
    if !entry.at_kinks.is_empty() {
        let _ = writeln!(page, "- Edges: {}", escaped(entry.at_kinks));
    }
    for (name, what) in entry.classic_mistakes() {
        let _ = writeln!(page, "- Classic mistake, {}: {}", escaped(name), escaped(what));
    }
}

/// A formula, set as code. None has a backtick in it, which a test sees to.
fn code(formula: &str) -> String {
    format!("`{formula}`")
}

/// Plain text, with what Markdown would take for its own made harmless.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\`*_<>[]".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_is_on_the_page_once() {
        let page = op_reference();
        for entry in table() {
            let heading = format!("\n### {}\n", entry.name);
            assert_eq!(page.matches(&heading).count(), 1, "{}", entry.name);
        }
        assert_eq!(page.matches("\n### ").count(), table().count());
    }

    #[test]
    fn formulas_can_be_set_as_code() {
        for entry in table() {
            for text in [entry.name, entry.signature, entry.formula, entry.gradient] {
                assert!(!text.contains(['`', '\n']), "{}: {text}", entry.name);
            }
        }
    }

    #[test]
    fn signs_of_markdown_are_escaped() {
        assert_eq!(escaped("a*b <c>_d"), "a\\*b \\<c\\>\\_d");
        assert_eq!(escaped("0^0 = 1"), "0^0 = 1");
    }
}
