//! A backward pass by hand beside that of the tape, and programs beside programs.

use chainrule::check::compare::{ComparisonRow, Incomparable, Standing};
use chainrule::{Tensor, no_grad};
use chainrule_check::{Comparison, compare as beside};
use serde_json::{Value, json};

use super::session::Session;
use super::{error, json as values};
use crate::language::fault::{Fault, Outcome};
use crate::language::interpreter::Interpreter;
use crate::language::value::Data;

/// The most elements of a difference that is shown as a map.
const MAPPED: usize = 16_384;

/// The answer to `compare`: rows for all variables with a gradient, the last computed first. The
/// gradient of `logits` is expected as `dlogits`.
pub fn compare(session: &mut Session, code: &str) -> Outcome<Value> {
    let graded = session.graded();
    let mut hand = Interpreter::new(session.seed);
    for (name, value) in session.run.variables() {
        hand.set(name, detached(value));
    }
    // A root that is a sum made here has the gradient 1, too.
    let failed = no_grad(|| hand.run(code)).err();
    let mut claims: Vec<(String, Tensor, Tensor)> = Vec::new();
    for (name, t) in &graded {
        if let Some(gradient) = hand.variable(&format!("d{name}"))
            && !session.run.variables().any(|(known, _)| known == format!("d{name}"))
        {
            claims.push((name.clone(), t.clone(), gradient.floats()?));
        }
    }
    let mut answer = judged(session, &session.root, &claims)?;
    if let Some(name) = answer["finding"]["name"].as_str() {
        answer["finding"]["line"] = json!(hand.line_of(&format!("d{name}")));
    }
    if let Some(fault) = &failed {
        (answer["error"], answer["all"]) = (error(fault), json!(false));
    }
    Ok(answer)
}

/// Gradients by hand beside those of a root, which is that of the session or a copy: for each
/// variable its name, the tensor and its gradient. The line of the mistake is not known here.
pub fn judged(
    session: &Session,
    root: &Tensor,
    claims: &[(String, Tensor, Tensor)],
) -> Outcome<Value> {
    let comparison = beside(root, claims)?;
    let mut rows = Vec::new();
    for (name, t) in &session.graded() {
        let claim = claims.iter().find(|(claimed, ..)| claimed == name);
        let row = comparison.row(name).zip(claim);
        rows.push(match row {
            None => json!({
                "name": name,
                "verdict": "missing",
                "max_diff": null,
                "shape_found": null,
                "shape": t.shape().to_vec(),
                "difference": null,
            }),
            Some((row, (.., gradient))) => {
                let right = session.find(t).and_then(|place| session.gradient(place));
                one_row(row, t, gradient, right)
            }
        });
    }
    let right = |row: &Value| row["verdict"] == "exact" || row["verdict"] == "approximate";
    let all = rows.iter().all(right);
    Ok(json!({"rows": rows, "finding": finding(&comparison), "error": null, "all": all}))
}

fn detached(value: &Data) -> Data {
    match value {
        Data::Tensor(t) => Data::Tensor(t.detach()),
        Data::List(items) => Data::List(items.iter().map(detached).collect()),
        other => other.clone(),
    }
}

fn one_row(row: &ComparisonRow, t: &Tensor, found: &Tensor, right: Option<&Tensor>) -> Value {
    let (verdict, largest) = match (&row.outcome, &row.standing) {
        (Err(Incomparable::Shape { .. }), _) => ("shape", None),
        (Err(_), _) => ("wrong", None),
        (Ok(of), _) if of.exact => ("exact", Some(of.largest)),
        (Ok(of), Standing::Right | Standing::Rounding) => ("approximate", Some(of.largest)),
        (Ok(of), _) => ("wrong", Some(of.largest)),
    };
    // A difference of 0 has no map.
    let apart = right.filter(|_| largest.is_some_and(|largest| largest != 0.0));
    let apart = apart.and_then(|right| {
        let apart = no_grad(|| found.detach().try_sub(right.detach())).ok()?;
        Some(values::tensor_up_to(&apart, MAPPED))
    });
    let consequence = match &row.standing {
        Standing::Consequence(of) => json!(of),
        _ => json!([]),
    };
    let why = row.outcome.as_ref().err().map(ToString::to_string);
    json!({
        "name": row.name,
        "verdict": verdict,
        "max_diff": largest.map(values::number),
        "shape_found": found.shape().to_vec(),
        "shape": t.shape().to_vec(),
        "difference": apart,
        "consequence_of": consequence,
        "why": why,
    })
}

/// The first wrong line, and what is wrong with it as far as it can be told.
fn finding(comparison: &Comparison) -> Value {
    let Some(row) = comparison.mistakes().next() else { return Value::Null };
    let diagnosis = comparison.verdict().and_then(|verdict| verdict.diagnoses().first().cloned());
    match (diagnosis, &row.outcome) {
        (Some(found), _) => json!({
            "line": null,
            "name": row.name,
            "mistake": found.what(),
            "correction": found.fix(),
            "formula": found.formula(),
            "certain": true,
        }),
        (None, Err(why)) => json!({
            "line": null,
            "name": row.name,
            "mistake": why.to_string(),
            "correction": format!("d{} has the shape of {}", row.name, row.name),
            "certain": true,
        }),
        (None, Ok(_)) => json!({
            "line": null,
            "name": row.name,
            "mistake": format!("d{} is the first that is wrong", row.name),
            "correction": "",
            "certain": false,
        }),
    }
}

/// The answer to `hints`: a comment for each gradient that is to be written.
pub fn hints(session: &Session) -> Value {
    let rows = session.graded();
    let lines = rows.iter().map(|(name, t)| format!("# d{name}: {:?}\n", t.shape().to_vec()));
    json!({"template": lines.collect::<String>()})
}

/// The answer to `judge`: two programs after the same setup, wish by wish.
pub fn judge(
    setup: &str,
    reference: &str,
    attempt: &str,
    want: &[&str],
    seed: u64,
) -> Outcome<Value> {
    let mut right = Interpreter::new(seed);
    right.run(setup)?;
    right.run(reference)?;
    let mut tried = Interpreter::new(seed);
    tried.run(setup)?;
    let failed = tried.run(attempt).err();
    let mut rows = Vec::new();
    for wish in want {
        let due = right.evaluate(wish)?.floats()?;
        let found = tried.evaluate(wish).and_then(|found| found.floats());
        let (verdict, largest, shape, why) = match &found {
            Err(fault) => ("missing", None, None, Some(fault.message.clone())),
            Ok(found) if found.shape() != due.shape() => ("shape", None, Some(found.shape()), None),
            Ok(found) => {
                let (a, b) = (found.to_f64_vec(), due.to_f64_vec());
                let apart = a.iter().zip(&b).map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() });
                let largest = apart.fold(0.0, |m: f64, x| if x > m || x.is_nan() { x } else { m });
                let size = b.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
                let verdict = match largest {
                    0.0 => "exact",
                    x if x <= 1e-9 * size.max(1e-300) => "approximate",
                    _ => "wrong",
                };
                (verdict, Some(largest), Some(found.shape()), None)
            }
        };
        rows.push(json!({
            "name": wish,
            "verdict": verdict,
            "max_diff": largest.map(values::number),
            "shape_found": shape.map(|shape| shape.to_vec()),
            "shape": due.shape().to_vec(),
            "why": why,
        }));
    }
    let right = |row: &Value| row["verdict"] == "exact" || row["verdict"] == "approximate";
    let all = failed.is_none() && rows.iter().all(right);
    Ok(
        json!({"rows": rows, "all": all, "error": failed.as_ref().map(|fault: &Fault| error(fault))}),
    )
}
