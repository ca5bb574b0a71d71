//! A backward pass by hand for a computation of another program. Typed code runs in the page, on
//! copies of the values; gradients come back as numbers, and are compared where the tape is.

use std::sync::{Arc, Mutex, PoisonError};

use chainrule::{DType, Tensor, no_grad};
use serde_json::{Map, Value, json};

use super::replay::Replay;
use super::request::Args;
use super::session::Session;
use super::{compare, error, json as values};
use crate::language::fault::{Fault, Outcome};
use crate::language::interpreter::Interpreter;
use crate::language::value::Data;

/// The most elements that travel to a page in all.
const MOST: usize = 400_000;

/// Variables of another program, by which typed code is run.
pub struct Held(Vec<(String, Tensor)>);

/// The answer to `values`: the variables of a captured computation, those with gradients first.
pub fn values_of(session: &Session) -> Outcome<Value> {
    let mut named: Vec<(String, Tensor)> = Vec::new();
    for (name, t) in session.graded() {
        let known = session.find(&t).and_then(|place| session.places[place].value.clone());
        named.extend(known.map(|value| (name, value)));
    }
    let needed: usize = named.iter().map(|(_, t)| t.numel()).sum();
    if needed > MOST {
        return Err(Fault::request(format!(
            "the values with gradients have {needed} elements, and a page takes {MOST}: check this computation with `cr.check.compare`, or take a smaller batch"
        )));
    }
    let mut rest = MOST - needed;
    for (name, value) in session.run.variables() {
        if let Data::Tensor(t) = value
            && !t.requires_grad()
            && t.numel() <= rest
        {
            rest -= t.numel();
            named.push((name.to_string(), t.clone()));
        }
    }
    let all: Map<String, Value> =
        named.into_iter().map(|(name, t)| (name, values::tensor_up_to(&t, MOST))).collect();
    Ok(json!({ "values": all }))
}

/// Tensors of an object of names with `shape`, `dtype` and `data`.
fn tensors(of: &Map<String, Value>) -> Outcome<Vec<(String, Tensor)>> {
    of.iter().map(|(name, value)| Ok((name.clone(), tensor(name, value)?))).collect()
}

fn tensor(name: &str, value: &Value) -> Outcome<Tensor> {
    let bad = |what: &str| Fault::request(format!("`{name}` has no {what} that can be read"));
    let fields = value.as_object().ok_or_else(|| bad("object"))?;
    let shape = Args(fields).sizes("shape").map_err(|_| bad("shape"))?;
    let data = fields.get("data").and_then(Value::as_array).ok_or_else(|| bad("data"))?;
    let element = |x: &Value| match x.as_str() {
        Some("nan") => Some(f64::NAN),
        Some("inf") => Some(f64::INFINITY),
        Some("-inf") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => x.as_f64().or_else(|| x.as_bool().map(|is| f64::from(u8::from(is)))),
    };
    let data: Option<Vec<f64>> = data.iter().map(element).collect();
    let data = data.filter(|data| data.len() <= MOST).ok_or_else(|| bad("data"))?;
    let dtype = fields.get("dtype").and_then(Value::as_str);
    let dtype = dtype.and_then(|name| DType::ALL.into_iter().find(|dtype| dtype.name() == name));
    let all = Tensor::try_from_slice(&data, shape)?;
    Ok(all.try_to_dtype(dtype.ok_or_else(|| bad("dtype"))?)?)
}

impl Held {
    /// The variables of a request `hold`.
    pub fn of(args: &Args<'_>) -> Outcome<Held> {
        Ok(Held(tensors(args.object("values")?)?))
    }

    /// The answer to `written`: what code assigns to `dx` for each variable `x`, the lines that do,
    /// and what is wrong with the code.
    pub fn written(&self, code: &str) -> Value {
        let mut hand = Interpreter::new(0);
        for (name, t) in &self.0 {
            hand.set(name, Data::Tensor(t.clone()));
        }
        let failed = no_grad(|| hand.run(code)).err();
        let (mut claims, mut lines) = (Map::new(), Map::new());
        for (name, _) in &self.0 {
            let written = format!("d{name}");
            if self.0.iter().any(|(known, _)| *known == written) {
                continue;
            }
            if let Some(Ok(t)) = hand.variable(&written).map(Data::floats)
                && t.numel() <= MOST
            {
                claims.insert(name.clone(), values::tensor_up_to(&t.detach(), MOST));
                lines.insert(name.clone(), json!(hand.line_of(&written)));
            }
        }
        json!({"claims": claims, "lines": lines, "error": failed.as_ref().map(error)})
    }
}

/// Gradients that the user's own code computed, with their lines, from 1, and 0 for an unknown one;
/// the program that was captured adds them when it has them.
#[derive(Clone, Default)]
pub struct HandGradients(Arc<Mutex<Vec<HandGradient>>>);

type HandGradient = (String, Tensor, usize);

impl HandGradients {
    /// Sets the gradients, by the names of the tensors that they belong to.
    pub fn set(&self, all: Vec<HandGradient>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }

    fn get(&self) -> Vec<HandGradient> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The answer to `claims`: gradients that a page computed beside those of the tape.
pub fn claimed(session: &Session, args: &Args<'_>) -> Outcome<Value> {
    beside_tape(session, tensors(args.object("claims")?)?)
}

/// The answer to `own`: the gradients of the user's own code beside those of the tape; no rows if
/// there are none.
pub fn own(session: &Session, of: &HandGradients) -> Outcome<Value> {
    let given = of.get();
    if given.is_empty() {
        return Ok(json!({"rows": [], "finding": null, "error": null, "all": false}));
    }
    let lines: Vec<(String, usize)> =
        given.iter().map(|(name, _, line)| (name.clone(), *line)).collect();
    let claims = given.into_iter().map(|(name, gradient, _)| (name, gradient)).collect();
    let mut answer = beside_tape(session, claims)?;
    let of_finding =
        lines.iter().find(|(name, line)| answer["finding"]["name"] == **name && *line > 0);
    if let Some((_, line)) = of_finding {
        answer["finding"]["line"] = json!(line);
    }
    Ok(answer)
}

fn beside_tape(session: &Session, given: Vec<(String, Tensor)>) -> Outcome<Value> {
    // The leaves may have changed since, and the tape may be used up: the pass is that of copies.
    let replay = Replay::of(session, "")?;
    if let Some(of) = replay.unknown.first() {
        return Err(Fault::request(format!(
            "the tape does not keep {of}, which no gradient needs: compute the loss inside `cr.record_all()`"
        )));
    }
    let again = replay.values(&[])?;
    let at = |t: &Tensor| session.find(t).and_then(|place| again[place].clone());
    let root = at(&session.root).ok_or_else(|| Fault::request("the result is not on the tape"))?;
    let graded = session.graded();
    let mut claims = Vec::new();
    for (name, gradient) in given {
        let t = graded.iter().find(|(known, _)| *known == name).and_then(|(_, t)| at(t));
        let t = t.ok_or_else(|| Fault::request(format!("`{name}` has no gradient here")))?;
        claims.push((name, t, gradient));
    }
    compare::judged(session, &root, &claims)
}
