//! The page *Why is my gradient wrong?*, written from the catalogue: what is shown there was
//! planted and computed.

use std::fmt::Write;

mod example;
mod topics;

use chainrule_check::catalogue::{GENERAL, fault::entry};
use example::{Example, of_general, of_op};
use topics::{ANY, TOPICS, Topic};

use crate::error::Result;
use chainrule_core::ops::{Entry, table};

const HEAD: &str = r#"# Why is my gradient wrong?

<!-- Written by `chainrule_lab::why_wrong()` from the catalogue of mistakes. Do not edit: change the op's `ENTRY` or the topic, then run the
tests of the book with CHAINRULE_UPDATE_DOCS=1. -->

You wrote a backward pass, and it does not agree with autograd. In Python, give the file to `chainrule check backward`: it runs your backward line by line, finds
the line that gives another value than is due, and says what the line should be.

```text
import torch

class Net(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w1, b1, w2):
        z = x @ w1 + b1
        h = torch.tanh(z)
        y = h @ w2
        ctx.save_for_backward(x, w1, w2, h)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w1, w2, h = ctx.saved_tensors
        dw2 = h.T @ dy
        dh = dy @ w2.T
        dz = (1 - h * h) * dh
        dw1 = x.T @ dh
        db1 = dz.sum(0)
        dx = dz @ w1.T
        return dx, dw1, db1, dw2

inputs = lambda: [torch.randn(5, 3), torch.randn(3, 4), torch.randn(4), torch.randn(4, 2)]
```

```console
$ chainrule check backward net.py
Net: 1 of 4 gradients are wrong, first that of `input 1`: 4.70983 for 0.826639 at [2, 0]
net.py:18  dw1 = x.T @ dh
                       ^^ is the gradient of `h`; due here is that of `z`
corrected  dw1 = x.T @ dz    right to 2e-16; all else of the backward is right
```

The same from a program: `chainrule.torch.gradcheck(Net, inputs)` for a `torch.autograd.Function`, a function or a module that applies one, and
`chainrule.check.backward(f, inputs)` for a `Function` of ours or of PyTorch's. A backward pass that is a plain function is given beside its forward:
`chainrule.check.backward(f, inputs, f_backward)`, where `f_backward(gradient, *inputs)` returns the gradients of the inputs. Inputs at a kink (`relu` at 0, a tie of
a maximum), where your backward takes one of the slopes there and autograd another, are no mistake: the passes are compared beside them, and the answer says so.

| what is given | what it must be |
| --- | --- |
| the function | a class with `forward(ctx, ...)` and `backward(ctx, ...)`, or two functions |
| the inputs | tensors of any shape, for two functions also arrays of NumPy, by which a backward of tensors may compute, too, and numbers and lists of Python; floats are taken in f64, also f32 and bf16; integers stay as they are |
| the source | in a file or a notebook, in the user's own code: not in an installed package |
| the file of the command | such classes, or functions `NAME` and `NAME_backward`; `example_inputs` of the class, or `inputs` of the file (a list, a dict by name, or a function that makes one) |

A file that is missing, cannot be imported or has no inputs is refused with one line that says what to do, and status 2; a wrong gradient is status 1.

## Two programs, side by side

There are two programs: the forward pass with its right gradients, and your backward. Both run at random inputs near yours, and every value in your lines is laid beside the values of the
right passes. Two that are equal (perhaps up to a constant factor or the order of the elements) are the same quantity, whatever they are called and however they were computed.

![The lines of a backward pass, each joined with the quantity that it computes](images/follow.svg)

`chainrule check backward net.py --picture net.svg` draws this picture of your own file, and `report.pictures` has it in Python. Two mistakes both stand out, and all that is made of
neither is joined with a quantity as before:

![A backward pass with two mistakes, in the lines of dz and db1](images/follow-two.svg)

In a loop a line has a value for each step. Here the gradient of the recurrent weights takes the state after a step in place of that before it:

![A recurrence in which one line reads the state of another step](images/follow-loop.svg)

Three things order the lines: which gradients depend on the value of a line (a mistake reaches all wrong ones and spoils no right one), whether all that the line reads is
known while its result is not, and whether its result is what its variable is named for (`dz` for the gradient of `z`). None of them is a proof: a line of a fused formula computes what no step of autograd
does, and is right. A line that runs several times, in a loop or in a function that is called for each layer, has a value for each run; what the mistake of one run spoils, the next ones
read, so of these runs only those count that read what is right.

The proof is that it works. Starting from the likeliest line, one expression at a time is edited in the ways in which one expression is written for another:

- another variable that fits, the two of a statement exchanged, a transposition, another axis, a kept axis, another index or slice, one step of time earlier or later,
  a running sum, a loop the other way round; before a reshape the order of axes that either pass puts beside one, or its inverse;
- another number: a sign or two, a factor that is solved for, `n - 1` for `n`, a power, a constant of the forward pass such as its epsilon or a bound;
- a factor, a term or a call too many; a factor or a term too few; an assignment in place of an accumulation; an expression of the forward pass in the place of one here;
- the line as another one of the function is written, with its own names (`dq` as `dk` is made), and the slope of another activation;
- where the value that is due can be solved for, for all runs of the line together, whatever product of the values at hand makes it, or sum of two; with what is due put there, so that
  what comes after it in a recurrence is what it should be. If several values would do, as in a gradient that a loop carries, the
  first run decides: it reads what is right. So a line that is missing, at the end of a loop (`ds = ds - de * k[t]`) or
  before the one that reads its variable (`du = du + K @ dk`), is found, and put in.

The edited backward runs. An edit after which every gradient is right, here and at two other points, and if the forward takes them also at other sizes (so that an 8 that is the batch is not taken for a constant), is a correction;
the smallest one is shown, with the factor by which the line was off where there is one: `7/8 = (n - 1) / n`. No random number of 16 digits fits by chance. If an edit brings some of the wrong gradients right, it is kept and the search goes on from there: so two mistakes are
found, and each gets its own block. An edit after which a variable is the gradient that it is named for is kept as well, even where the rest is still wrong. A pass that no edit of one line or of two makes right is called unidentified: nothing is named that was not seen to work.

The forward pass is taken at its word: it says what is due. So no line is corrected in a helper that both passes call if the forward pass would then give something else, and a line that stands in both
(`k = scores.shape[1]`) is suspected after those that only your backward has.

Gates and bounds may lie beyond the given inputs: `relu6`, `clamp`, a margin. Inputs that have both signs are therefore taken at larger values and with other signs, too; a backward that is right at
the given inputs and wrong there is told so. Inputs of one sign keep it, and where a value leaves the function's domain nothing is concluded.

A function with a backward beside it may detach values on purpose, as a straight-through estimator does. Gradients that are those of the forward pass with these values held fixed count as right;
the report says so, with the line that detaches, and that they are not the slopes of its values.

It takes about a second for a model of some forty lines, and some seconds until nothing is found. Your backward runs a thousand times, so it should not write files. Source that is typed into `python -c` cannot be read, and is judged by its numbers alone.

## A backward pass in Rust

The ops that run inside a custom op's backward are recorded with their lines, and run again with one of them edited. `check::backward` takes the op and inputs; the right gradients
are those of its own forward, which autograd differentiates:

```rust
use chainrule::{Tensor, autograd, check};

let layer = autograd::custom(
    "layer",
    |x| x[0].try_matmul(&x[1])?.try_tanh(),
    |ctx, dy| {
        let (x, w) = (&ctx.inputs()[0], &ctx.inputs()[1]);
        let dz = dy * (1.0 - ctx.output().square());
        let dw = x.t().matmul(dy);
        Ok(vec![Some(dz.matmul(&w.t())), Some(dw)])
    },
);
let x = Tensor::from([[0.3, 0.7], [-0.2, 0.1], [0.9, -0.4]]);
let w = Tensor::from([[1.0, -2.0, 0.3, 0.2], [0.5, 3.0, -0.4, 1.0]]);
let found = check::backward(&layer, &[x, w])?;
assert_eq!(found.wrong(), ["input 1"]);
println!("{found}");
# Ok::<(), chainrule::Error>(())
```

```text
1 of 2 gradients are wrong: input 1
layer.rs:8  let dw = x.t().matmul(dy);
                                  ^^ `dy` is the gradient of the result of `tanh` (layer.rs:5); due here is the gradient of the result of `matmul` (layer.rs:5)
corrected   let dw = x.t().matmul(dz);    right to 2e-16; all else of the backward is right
```

Gradients that are written out beside a loss are given with their code, `check::compare_code(&loss, || { ...; Ok(vec![("h", dh), ("w", dw)]) })`: the report is that of `check::compare`, with the wrong
line and its correction (`Comparison::corrections`). In Python `check.compare(loss, code)` takes a function that returns the gradients by name in the place of the gradients. A pass that draws random numbers, or reads elements out of tensors, cannot be followed and is judged by its gradients.

## Gradients without code

Sometimes only the numbers are there. Then ask for the verdict on the gradients:

```rust
use chainrule::{Tensor, check};

let x = Tensor::from([[0.3, 0.7], [-0.2, 0.1], [0.9, -0.4]]);
let w = Tensor::from([[1.0, -2.0], [0.5, 3.0]]).parameter().named("w");
let loss = x.matmul(&w).tanh().mean_all();
// The backward pass by hand. It forgot that the loss is a mean of six.
let h = x.matmul(&w).tanh();
let wrong = x.t().matmul(&(1.0 - &h * &h));

let verdict = check::verdict(&loss, &[(&w, &wrong)])?;
assert_eq!(verdict.diagnoses()[0].mistake(), "missing 1/n");
println!("{verdict}");
# Ok::<(), chainrule::Error>(())
```

The engine replays the right backward pass with one classic mistake planted in one op at a time, and names the replay that gives your numbers: the op and
its line, the mistake, a number that you can compute again, the right formula, and what to change. If no classic mistake does, the right pass itself is changed. These are the readings, in the order in
which they are tried; the first that gives all of your numbers is told:

| reading | for example |
| --- | --- |
| the gradient of another tensor, where one comes into an op | `dW1 = x.T @ dh` where `dz` is due |
| another value of the forward pass, or a gradient, where a rule takes one | `x` for the normalised `x`, `dh` for `h` |
| one of these, or a classic mistake, in each run of a line of a loop | a recurrence's weight that is never transposed, the state after a step for the one before, the gradient of the last step at every step |
| the softmax of something else | along another axis, of `x / 2` for `x` |
| parts multiplied by numbers, which are solved for | `7/8 = (n - 1) / n`, two gates off by a factor each |
| a gradient on the way that was rounded | the digits of f16 in f64 |
| the same numbers in another order | two axes read as if exchanged in memory, moved by a place, reversed, copies of a whole for copies of each element |
| other labels or indices | those of the next row, one more each, in the reverse order |
| whole columns where one element of each row is picked | `d[:, y] = -1 / n` for `d[range(n), y]` |
| a value as it is after an update, with the rate | `W2 - 0.1 * dW2` in the place of `W2` |
| the slope of another function | that of `silu` for `mish` |
| numbers of rows, columns or a few elements | a dropped row, one class with another sign, a weight for each sample |
| one instruction of the right pass edited, then two of them | an operand that is another one, a term more |

Here two lines are wrong at once, and only the gradients are at hand:

```rust
use chainrule::{Tensor, check};

let x = Tensor::from([[0.3, 0.7], [-0.2, 0.1], [0.9, -0.4]]);
let w = Tensor::from([[1.0, -2.0, 0.4], [0.5, 3.0, -1.1]]).parameter().named("w");
let v = Tensor::from([[0.2, -0.7], [1.3, 0.4], [-0.8, 0.6]]).parameter().named("v");
let loss = x.matmul(&w).tanh().matmul(&v).square().sum_all();
let z = x.matmul(&w);
let (h, v0) = (z.tanh(), v.detach());
let dy = 2.0 * h.matmul(&v0);
// The input of tanh in the place of its result, and then once more for the weights behind it.
let (dv, dw) = (z.t().matmul(&dy), x.t().matmul(&(dy.matmul(&v0.t()) * (1.0 - &z * &z))));

let verdict = check::verdict(&loss, &[(&w, &dw), (&v, &dv)])?;
assert_eq!(verdict.deviations().len(), 2);
println!("{verdict}");
# Ok::<(), chainrule::Error>(())
```

```text
2 of 2 gradients are wrong, first that of `v`: 16.7372 for 7.65129 at [1, 0]
no classic mistake; these numbers come out so:
  in the right backward pass, at `permute`: `the result of matmul (two.rs:6)` stands where `the result of tanh (two.rs:6)` is due, in `(the result of tanh (two.rs:6)).t()`
  in the right backward pass, at `tanh_grad`: `the result of matmul (two.rs:6)` stands where `the result of tanh (two.rs:6)` is due, in `(the result of tanh ...
```

A solution is believed only where there are far more numbers at hand than unknowns: that each element is off by a number of its own is true of any gradient, and is not said. The right gradients say where to look; a path that carries
nothing, as that through a maximum which is subtracted, may be left out. The same mistake in several ops of one path is one entry. If no reading gives all of your numbers, the verdict is *unidentified*: nothing is
named by a likeness. `Verdict::deviations` has the readings. `check::compare` asks for the verdict by itself where a gradient is wrong. A custom op is compared with the same function in
the engine's ops by `check::explain`, and one of which there is no such function by `check::explain_opaque`, which reads the numbers alone.

## The mistakes

Each table of numbers is the right gradient and the wrong one at the same element. The test of each is
`chainrule check mistakes --op NAME`, which plants it and sees whether it is [detected and named](mistakes.md).
If every gradient is right and the model still does not learn, look at the [mistakes of the training loop](workflow.md).
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
let right = autograd::grad(&loss, &[&logits])?.remove(0).unwrap();
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
/// let page = chainrule_lab::why_wrong()?;
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

/// The mistake in words: the wrong step, and the right one.
fn what(op: &str, mistake: &str) -> &'static str {
    if op == ANY {
        return GENERAL.iter().find(|g| g.name == mistake).map_or("", |g| g.what);
    }
    let own = entry(op).map_or(&[][..], |e| e.mistakes);
    own.iter().find(|m| m.name == mistake).map_or("", |m| m.what)
}

/// Number of elements shown.
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

/// A number with few digits, so that the page does not depend on the last ones, which differ
/// between processors.
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
