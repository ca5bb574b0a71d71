//! The page *Why is my gradient wrong?*, written from the catalogue: what is shown there was planted and computed.

use std::fmt::Write;

use super::example::{Example, of_general, of_op};
use super::topics::{ANY, TOPICS, Topic};
use super::{GENERAL, fault::entry};
use crate::error::Result;
use crate::ops::{Entry, table};

const HEAD: &str = r#"# Why is my gradient wrong?

<!-- Written by `check::why_wrong()` from the catalogue of mistakes. Do not edit: change the op's `ENTRY` or the topic, then run the
tests of the book with CHAINRULE_UPDATE_DOCS=1. -->

You wrote a backward pass, or a custom op, and it does not agree with autograd. Ask for the verdict:

```rust
use chainrule::{Tensor, check};

let x = Tensor::from([[0.3, 0.7], [-0.2, 0.1], [0.9, -0.4]]);
let w = Tensor::from([[1.0, -2.0], [0.5, 3.0]]).parameter().named("w");
let loss = x.matmul(&w).tanh().mean_all();
// The backward pass by hand. It forgot that the loss is a mean of six.
let h = x.matmul(&w).tanh();
let wrong = x.t().matmul(&(1.0 - &h * &h));

let verdict = check::verdict(&loss, &[(&w, &wrong)])?;
assert_eq!(verdict.explanations()[0].mistake(), "missing 1/n");
println!("{verdict}");
# Ok::<(), chainrule::Error>(())
```

The engine replays the backward pass with one classic mistake planted in one op at a time, and names the replay that gives your numbers: the op and
its line, the mistake, a number that you can compute again, the right formula, and what to change. A custom op is compared with the same function in
the engine's ops by `check::explain`, and one of which there is no such function by `check::explain_opaque`, which reads the numbers alone. Mistakes that
give the same numbers are listed together; what fits none is called unidentified.

This page lists the mistakes. Each table of numbers is the right gradient and the wrong one at the same element. The test of each is
`chainrule check mistakes --op NAME`, which plants it and sees whether it is [detected and named](mistakes.md).
Where every gradient is right and the model still does not learn, look at the [mistakes of the training loop](workflow.md).
"#;

const HARMLESS: &str = r#"
## Harmless

Some wrong gradients change nothing that is trained, and the verdict says so (`Verdict::is_harmless`).

- *The subtracted row maximum.* In `logits - max` the maximum cancels out of softmax, so its gradient is 0 up to rounding. Routing it to the wrong
  element, or leaving it out, changes no gradient of a parameter.
- *A bias before batch norm.* The mean takes it off again; its gradient is 0 up to rounding, whatever its backward does with it.

```rust
use chainrule::{Tensor, autograd, check};

let logits = Tensor::from([[2.0, 1.0], [0.5, 3.0]]).parameter();
let max = logits.max_axis(1, true).0;
let e = (&logits - &max).exp();
let loss = (&e / e.sum(1, true)).square().sum_all();
// By hand: 1 where 0 is due, and it does not matter.
let right = autograd::grad(&loss, &[&logits], false)?.remove(0).unwrap();
let verdict = check::verdict(&loss, &[(&logits, &right), (&max, &max.ones_like())])?;
assert!(!verdict.is_right() && verdict.is_harmless());
# Ok::<(), chainrule::Error>(())
```

## Every op

The mistakes of each op's own list. The numbers are those of one element of a gradient, in one of the op's samples.
"#;

/// The page in Markdown: every mistake of the catalogue with its signature, numbers, and the fix.
///
/// ```
/// let page = chainrule::check::why_wrong()?;
/// assert!(page.contains("## Missing 1/n") && page.contains("softmax treated as diagonal"));
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn why_wrong() -> Result<String> {
    let mut page = String::from(HEAD);
    for topic in TOPICS {
        section(&mut page, topic)?;
    }
    page.push_str(HARMLESS);
    for entry in table().filter(|e| !e.mistakes.is_empty()) {
        op(&mut page, entry)?;
    }
    Ok(page)
}

fn section(page: &mut String, topic: &Topic) -> Result<()> {
    let Topic { title, about, signature, fix, members } = topic;
    let _ = write!(
        page,
        "\n## {title}\n\n{about}\n\n- Signature: {signature}.\n- Fix: {fix}.\n- Mistakes:\n"
    );
    for (op, mistake) in *members {
        let _ = writeln!(page, "  - {op}, *{mistake}*: {}", escaped(what(op, mistake)));
    }
    let op = members.iter().find(|(op, _)| *op != ANY).map_or("add", |(op, _)| op);
    let _ = writeln!(page, "- Test: `chainrule check mistakes --op {op}`");
    if let Some((op, mistake)) = members.first() {
        let example = match *op {
            ANY => of_general(mistake)?,
            op => of_op(op, mistake)?,
        };
        if let Some(example) = example {
            numbers(page, op, mistake, &example);
        }
    }
    Ok(())
}

/// What was done instead of what.
fn what(op: &str, mistake: &str) -> &'static str {
    if op == ANY {
        return GENERAL.iter().find(|g| g.name == mistake).map_or("", |g| g.what);
    }
    let own = entry(op).map_or(&[][..], |e| e.mistakes);
    own.iter().find(|m| m.name == mistake).map_or("", |m| m.what)
}

/// How many elements are shown.
const SHOWN: usize = 6;

fn numbers(page: &mut String, op: &str, mistake: &str, example: &Example) {
    let _ = write!(page, "\nFor example {op}, *{mistake}*, {}:\n\n", example.place);
    let cells = |x: &[f64]| -> String {
        x.iter().take(SHOWN).map(|x| format!(" {} |", number(*x))).collect()
    };
    let shown = example.right.len().min(SHOWN);
    let titles: String = (0..shown).map(|i| format!(" `{:?}` |", example.index(i))).collect();
    let _ = writeln!(page, "| element |{titles}\n| --- |{}", " ---: |".repeat(shown));
    let _ = writeln!(page, "| right |{}", cells(&example.right));
    let _ = writeln!(page, "| wrong |{}", cells(&example.wrong));
    for reading in example.readings() {
        let _ = writeln!(page, "\nThe numbers show: {}.", escaped(&reading));
    }
}

fn op(page: &mut String, entry: &Entry) -> Result<()> {
    let _ = write!(page, "\n### {}\n\nRight: `{}`.\n\n", entry.name, entry.gradient);
    let _ =
        writeln!(page, "| mistake | what was done | right | wrong |\n| --- | --- | ---: | ---: |");
    let op = entry.name.split(", ").next().unwrap_or(entry.name);
    for mistake in entry.mistakes {
        let (name, what) = (escaped(mistake.name), escaped(mistake.what));
        let [right, wrong] = match of_op(op, mistake.name)? {
            Some(example) => example.worst().map(number),
            None => [String::new(), String::new()],
        };
        let _ = writeln!(page, "| {name} | {what} | {right} | {wrong} |");
    }
    Ok(())
}

/// A number with few digits, so that the page does not depend on the last ones, which differ between processors.
fn number(x: f64) -> String {
    match x.abs() {
        size if size < 1e-9 => "0".to_string(),
        size if !(1e-3..1e5).contains(&size) => format!("{x:.2e}"),
        _ => format!("{x:.4}"),
    }
}

/// Plain text, with what Markdown would take for its own made harmless.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\`*_<>[]|".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
