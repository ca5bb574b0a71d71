//! Traces, graphs, contributions, verdicts and programs as JSON, for other programs to read.
//!
//! The book's page on JSON gives every field. Numbers that are not finite are the words `"nan"`,
//! `"inf"` and `"-inf"`, since JSON has none. A tensor of up to [`INLINE`] elements has them in
//! `data`, in row-major order; a larger one has `null` there. Places in the user's code are
//! `{"file", "line"}`, or `null` where they are not known.
//!
//! ```
//! use chainrule::{Tensor, json};
//! let x = Tensor::scalar(3.0f64).parameter().named("x");
//! let loss = (&x * &x).named("loss");
//! let trace = json::trace(&loss.trace());
//! assert_eq!(trace["steps"][0]["tensor"], "loss");
//! assert_eq!(trace["steps"][1]["gradient"]["data"], serde_json::json!([6.0]));
//! ```

use std::panic::Location;

use serde_json::{Value, json};

use crate::Tensor;
use crate::autograd::{Contribution, Graph, Part, Trace};
#[cfg(feature = "check")]
use crate::check::compare::{Comparison, Standing};
#[cfg(feature = "check")]
use crate::check::{Diagnosis, Verdict};
#[cfg(feature = "program")]
use crate::program::{Cost, Explanation, Line, Phase, Place, Program};

/// Tensors of up to this many elements are given with them.
pub const INLINE: usize = 4096;

/// A number; one that is not finite as a word.
pub fn number(x: f64) -> Value {
    match x {
        x if x.is_nan() => json!("nan"),
        x if x == f64::INFINITY => json!("inf"),
        x if x == f64::NEG_INFINITY => json!("-inf"),
        x => json!(x),
    }
}

/// A list of [numbers](number).
pub fn numbers(of: &[f64]) -> Value {
    of.iter().map(|&x| number(x)).collect()
}

/// `shape`, `dtype` and, of a tensor of up to [`INLINE`] elements, `data`.
pub fn tensor(t: &Tensor) -> Value {
    tensor_up_to(t, INLINE)
}

/// As [`tensor`], with the elements of a tensor of up to `most`.
pub fn tensor_up_to(t: &Tensor, most: usize) -> Value {
    let data = (t.numel() <= most).then(|| numbers(&t.to_f64_vec()));
    json!({"shape": t.shape().to_vec(), "dtype": t.dtype().name(), "data": data})
}

fn location(of: Option<&Location<'_>>) -> Value {
    of.map_or(Value::Null, |at| json!({"file": at.file(), "line": at.line()}))
}

/// The steps of a backward pass, from the loss to the leaves: `{"steps": [...]}`, each with
/// `tensor`, `op`, `rule`, `location`, `shape`, `value`, `gradient`, and the parts that it
/// `received` and `sent`, each with `tensor`, `position` and `gradient`.
pub fn trace(of: &Trace) -> Value {
    let part = |part: &Part| json!({"tensor": part.tensor(), "position": part.position(), "gradient": tensor(part.gradient())});
    let steps = of.steps().iter().map(|step| {
        json!({
            "tensor": step.tensor(),
            "op": step.op(),
            "rule": step.rule(),
            "location": location(step.location()),
            "shape": step.shape().to_vec(),
            "value": step.value().map(tensor),
            "gradient": tensor(step.cotangent()),
            "received": step.received().iter().map(part).collect::<Vec<_>>(),
            "sent": step.sent().iter().map(part).collect::<Vec<_>>(),
        })
    });
    json!({"steps": steps.collect::<Vec<_>>()})
}

/// The graph, the loss first: `{"tensors": [...], "left_out"}`, each tensor with `name`, `op`,
/// `inputs` (places in the list), `requires_grad`, `value` and `gradient`.
pub fn graph(of: &Graph) -> Value {
    let tensors = of.tensors().iter().map(|t| {
        json!({
            "name": t.name,
            "op": t.op,
            "inputs": t.inputs,
            "requires_grad": t.requires_grad,
            "value": t.value.as_ref().map(tensor),
            "gradient": t.gradient.as_ref().map(tensor),
        })
    });
    json!({"tensors": tensors.collect::<Vec<_>>(), "left_out": of.left_out()})
}

/// The contributions to a gradient, the last use first: a list of `op`, `tensor`, `location`,
/// `position` and `gradient`.
pub fn contributions(of: &[Contribution]) -> Value {
    let one = |part: &Contribution| {
        json!({
            "op": part.op(),
            "tensor": part.tensor(),
            "location": location(part.location()),
            "position": part.position(),
            "gradient": tensor(part.gradient()),
        })
    };
    of.iter().map(one).collect()
}

/// A mistake that gives just the wrong numbers: `op`, `tensor`, `place`, `mistake` (its name in the
/// catalogue), `what`, `formula`, `fix`, `evidence` and `input`.
#[cfg(feature = "check")]
pub fn diagnosis(of: &Diagnosis) -> Value {
    json!({
        "op": of.op(),
        "tensor": of.tensor(),
        "place": place(of.place()),
        "mistake": of.mistake(),
        "what": of.what(),
        "formula": of.formula(),
        "fix": of.fix(),
        "evidence": of.evidence(),
        "input": of.input(),
    })
}

/// A verdict: `right`, `harmless`, the gradients that are `wrong` (`tensor`, `index`, `given`,
/// `right`), the `diagnoses`, the `deviations` in words, and the whole as `text`.
#[cfg(feature = "check")]
pub fn verdict(of: &Verdict) -> Value {
    let wrong = of.wrong().iter().map(|w| {
        json!({
            "tensor": w.tensor(),
            "index": w.index(),
            "given": number(w.given()),
            "right": number(w.right()),
        })
    });
    let deviation = |d: &crate::check::Deviation| json!({"op": d.op(), "tensor": d.tensor(), "place": place(d.place()), "text": d.text()});
    json!({
        "right": of.is_right(),
        "harmless": of.is_harmless(),
        "wrong": wrong.collect::<Vec<_>>(),
        "diagnoses": of.diagnoses().iter().map(diagnosis).collect::<Vec<_>>(),
        "deviations": of.deviations().iter().map(deviation).collect::<Vec<_>>(),
        "text": of.to_string(),
    })
}

/// Gradients by hand beside those of autograd: `passed`, the `rows` and the `verdict`, if there is
/// one. A row has `name`, `shape`, `standing` (`right`, `rounding`, `first`, `also_wrong`,
/// `consequence` or `not_compared`), `consequence_of`, the `difference` (`exact`, `approximate`,
/// `largest`, `at`, `by_hand`, `autograd`, `mean_relative`), or `why` there is none.
#[cfg(feature = "check")]
pub fn comparison(of: &Comparison) -> Value {
    let rows = of.rows.iter().map(|row| {
        let (standing, causes): (_, &[String]) = match &row.standing {
            Standing::Right => ("right", &[]),
            Standing::Rounding => ("rounding", &[]),
            Standing::First => ("first", &[]),
            Standing::AlsoWrong => ("also_wrong", &[]),
            Standing::Consequence(causes) => ("consequence", causes),
            _ => ("not_compared", &[]),
        };
        let difference = row.outcome.as_ref().ok().map(|d| {
            json!({
                "exact": d.exact,
                "approximate": d.approximate,
                "largest": number(d.largest),
                "at": d.at,
                "by_hand": number(d.by_hand),
                "autograd": number(d.autograd),
                "mean_relative": number(d.mean_relative),
            })
        });
        json!({
            "name": row.name,
            "shape": row.shape.map(|shape| shape.to_vec()),
            "standing": standing,
            "consequence_of": causes,
            "difference": difference,
            "why": row.outcome.as_ref().err().map(ToString::to_string),
        })
    });
    json!({
        "passed": of.passed(),
        "rows": rows.collect::<Vec<_>>(),
        "verdict": of.verdict().map(verdict),
    })
}

#[cfg(feature = "program")]
fn place(of: Option<&Place>) -> Value {
    of.map_or(Value::Null, |at| json!({"file": at.file(), "line": at.line()}))
}

/// The counted cost of a program: `instructions`, `flops` and `bytes`.
#[cfg(feature = "program")]
pub fn cost(of: Cost) -> Value {
    json!({"instructions": of.instructions, "flops": of.flops, "bytes": of.bytes})
}

/// A line of a program: `name`, `op`, `parameters`, `inputs`, `shape`, `dtype`, `phase`, `rule`,
/// `code` and `place`.
#[cfg(feature = "program")]
pub fn line(of: &Line<'_>) -> Value {
    json!({
        "name": of.name(),
        "op": of.op(),
        "parameters": of.parameters(),
        "inputs": of.inputs(),
        "shape": of.shape().to_vec(),
        "dtype": of.dtype().name(),
        "phase": of.phase().name(),
        "rule": of.rule(),
        "code": of.code(),
        "place": place(of.location()),
    })
}

/// A program: its `cost`, that of the `forward`, `backward` and `update` lines, its `outputs` and
/// its `lines`.
#[cfg(feature = "program")]
pub fn program(of: &Program) -> Value {
    json!({
        "cost": cost(of.cost()),
        "forward": cost(of.phase_cost(Phase::Forward)),
        "backward": cost(of.phase_cost(Phase::Backward)),
        "update": cost(of.phase_cost(Phase::Update)),
        "outputs": of.outputs().collect::<Vec<_>>(),
        "lines": of.lines().map(|of| line(&of)).collect::<Vec<_>>(),
    })
}

/// The map of the arena of a fused program: `planned` and `lower_bound` bytes, and the `blocks`,
/// each with `name`, `offset`, `bytes`, and the lines `from` and `to` over which it is kept.
#[cfg(feature = "program")]
pub fn arena(of: &Program) -> Value {
    let memory = of.memory();
    let blocks = of.arena().into_iter().map(|block| {
        json!({
            "name": block.name,
            "offset": block.offset,
            "bytes": block.bytes,
            "from": block.from,
            "to": block.to,
        })
    });
    json!({
        "planned": memory.planned,
        "lower_bound": memory.lower_bound,
        "blocks": blocks.collect::<Vec<_>>(),
    })
}

/// A derivation: the programs `traced`, `optimized` and `simplified`, the `steps` (`rule`, `at`,
/// `before`, `after`, `saved`) and the `memory` (`planned`, `lower_bound`).
#[cfg(feature = "program")]
pub fn explanation(of: &Explanation) -> Value {
    let steps = of.simplified.steps.iter().map(|step| {
        json!({
            "rule": step.rule,
            "at": step.at,
            "before": step.before,
            "after": step.after,
            "saved": step.saved,
        })
    });
    let memory = of.memory();
    json!({
        "traced": program(&of.traced),
        "optimized": program(&of.optimized),
        "simplified": program(&of.simplified.program),
        "steps": steps.collect::<Vec<_>>(),
        "memory": {"planned": memory.planned, "lower_bound": memory.lower_bound},
    })
}
