//! The page of the book with two explanations.

use super::formula;
use crate::error::Result;

const BEGIN: &str = "\
# How a backward pass is simplified

Differentiation works step by step, and so its backward pass is long: each small step of the forward pass has its rule. Put together, the rules often say
something short. `chainrule explain NAME` shows the way from the one to the other: the raw backward pass, each simplification with the rule that was
applied and what it saved, and the result, with instructions, operations and bytes before and after.

```text
chainrule explain --list                  what can be explained: models and formulas
chainrule explain softmax-ce              the derivation, as below
chainrule explain gpt-small --full        also parts that repeat, such as layers
chainrule explain batch-norm --python     the result as a NumPy script
chainrule explain names --python torch    as a script of PyTorch, or of jax
chainrule explain names --json            the data
chainrule explain names --checked         each rewrite evaluated on random numbers too
```

In Rust: `program.explain(\"a title\")?` for any [program](programs.md), and `program.simplified()?` for the simplified one.

An elementwise operation counts one for each element, whatever it computes, a product of matrices `2 m n k`, a reduction one for each element that it takes. Bytes are those that all
instructions read and write. Savings of a rule are counted in elementwise operations on whole values.
";

/// The page of the book that shows how two formulas are simplified, as `chainrule explain` prints
/// them.
///
/// Errors if one of them can not be traced or simplified.
pub fn explain_page() -> Result<String> {
    let mut out = BEGIN.to_string();
    for (name, title) in
        [("softmax-ce", "Softmax and cross-entropy"), ("batch-norm", "Batch normalisation")]
    {
        let formula = formula(name)?;
        let text = formula.trace()?.explain(format!("{name}: {}", formula.what))?;
        out.push_str(&format!(
            "\n## {title}\n\n```text\n$ chainrule explain {name}\n\n{}\n```\n",
            text.to_string().trim_end()
        ));
    }
    Ok(out)
}
