//! The graph of a computation, its backward pass, and single tensors of it.

use chainrule::Tensor;
use chainrule_core::tensor::node::Source;
use serde_json::{Map, Value, json};

use super::request::Args;
use super::session::{Passed, Session, Step};
use super::{json as values, numbers, tex};
use crate::language::fault::{Fault, Outcome};
use crate::language::value::Data;

/// The answer to `open`; tensors of up to `most` elements come with them.
pub fn open(session: &Session, title: &str, most: usize) -> Value {
    let root = session.find(&session.root);
    let steps: Vec<(usize, usize)> =
        session.steps.iter().enumerate().map(|(i, step)| (step.place, i)).collect();
    let step_of = |place: usize| steps.iter().find(|(p, _)| *p == place).map(|(_, i)| *i);
    let nodes: Vec<Value> = session
        .places
        .iter()
        .enumerate()
        .map(|(id, place)| {
            let (op, kind) = match &place.source {
                _ if Some(id) == root => (op(&place.source), "root"),
                Source::Node(_) => (op(&place.source), "op"),
                Source::Leaf(_) => (None, "leaf"),
                Source::None => (None, "const"),
            };
            let meta = place.source.meta().or_else(|| place.value.as_ref().map(Tensor::meta));
            json!({
                "id": id,
                "name": place.name,
                "label": session.label(id),
                "op": op,
                "module": place.module,
                "shape": meta.map(|m| m.shape.to_vec()),
                "dtype": meta.map(|m| m.dtype.name()),
                "kind": kind,
                "source": place.line.map(|line| json!({"file": 0, "line": line})),
                "inputs": place.inputs,
                "requires_grad": place.source.requires_grad(),
                "value": place.value.as_ref().map(|value| values::tensor_up_to(value, most)),
                "backward": step_of(id),
            })
        })
        .collect();
    let lines: Vec<&str> = session.text.lines().collect();
    json!({
        "root": root,
        "nodes": nodes,
        "sources": [{"file": title, "lines": lines}],
        "variables": variables(session, most),
    })
}

fn op(source: &Source) -> Option<&'static str> {
    match source {
        Source::Node(node) => Some(node.op.name()),
        _ => None,
    }
}

fn variables(session: &Session, most: usize) -> Vec<Value> {
    let shown = |(name, value): (&str, &Data)| match value {
        Data::Tensor(t) => Some(json!({
            "name": name,
            "node": session.find(t),
            "shape": t.shape().to_vec(),
            "value": values::tensor_up_to(t, most),
        })),
        other => other.number().map(|x| {
            json!({
                "name": name,
                "node": null,
                "shape": [],
                "value": {"shape": [], "dtype": "f64", "data": [values::number(x)]},
            })
        }),
    };
    session.run.variables().filter_map(shown).collect()
}

/// The answer to `backward`; tensors of up to `most` elements come with them.
pub fn backward(session: &Session, most: usize) -> Value {
    let steps = session.steps.iter().map(|step| one_step(session, step, most));
    json!({ "steps": steps.collect::<Vec<_>>() })
}

fn one_step(session: &Session, step: &Step, most: usize) -> Value {
    let place = &session.places[step.place];
    let rule = match &place.source {
        Source::Node(node) => Some(match node.op.entry() {
            Some(entry) if !entry.gradient.is_empty() => entry.gradient.to_string(),
            _ => format!("the reverse rule of {}", node.op.name()),
        }),
        _ => None,
    };
    let outgoing = |part: &Passed| json!({"to": part.other, "position": part.position, "gradient": values::tensor_up_to(&part.gradient, most)});
    // Several are laid on one scale.
    let gradient = if step.received.len() > 1 { values::brief } else { values::tensor_up_to };
    let received = |part: &Passed| {
        json!({
            "from": part.other,
            "position": part.position,
            "line": session.places[part.other].line,
            "gradient": gradient(&part.gradient, most),
        })
    };
    json!({
        "node": step.place,
        "rule": rule,
        "rule_tex": rule.as_ref().map(|rule| tex::rule(rule, &|_| None)),
        "named_tex": rule.as_ref().map(|rule| tex::rule(rule, &|name| named(session, step, rule, name))),
        "numbers_tex": rule.as_ref().and_then(|rule| numbers::with_numbers(session, step, rule)),
        "incoming": values::sized(&step.incoming, &step.size, most),
        "received": step.received.iter().map(received).collect::<Vec<_>>(),
        "outgoing": step.sent.iter().map(outgoing).collect::<Vec<_>>(),
    })
}

/// The names of an op's inputs as its rule has them: `a` of `da = ...` is the first.
pub fn inputs_of(rule: &str) -> Vec<&str> {
    rule.split(';')
        .filter_map(|part| part.trim().split_once(" = ")?.0.strip_prefix('d'))
        .filter(|name| name.chars().all(char::is_alphanumeric))
        .collect()
}

/// The user's name for a name of a rule.
pub fn named(session: &Session, step: &Step, rule: &str, name: &str) -> Option<String> {
    let place = &session.places[step.place];
    let upright = |at: usize| match &session.places[at].name {
        Some(name) => tex::given(name),
        None => match &session.places[at].value {
            Some(value) if value.numel() == 1 && session.places[at].inputs.is_empty() => {
                tex::number(value.to_f64_vec()[0])
            }
            _ => tex::given(&session.label(at)),
        },
    };
    let inputs = inputs_of(rule);
    let input = |name: &str| inputs.iter().position(|known| *known == name);
    match name {
        "g" => Some(format!("\\mathrm{{d}}{}", upright(step.place))),
        "y" if !inputs.contains(&"y") => Some(upright(step.place)),
        _ => match name.strip_prefix('d').and_then(input) {
            Some(at) => Some(format!("\\mathrm{{d}}{}", upright(*place.inputs.get(at)?))),
            None => input(name).and_then(|at| place.inputs.get(at)).map(|&at| upright(at)),
        },
    }
}

/// A request of `tensor`.
pub struct Look {
    node: usize,
    of: String,
    step: Option<usize>,
    part: Option<usize>,
    most: usize,
}

impl Look {
    pub fn of(args: &Args<'_>) -> Outcome<Look> {
        let place = |name: &str| args.integer(name).ok().map(|n| n as usize);
        Ok(Look {
            node: args.integer("node")? as usize,
            of: args.maybe_text("of").unwrap_or("value").to_string(),
            step: place("step"),
            part: place("part"),
            most: place("max").unwrap_or(64),
        })
    }
}

/// The tensor that is asked for.
fn found<'a>(session: &'a Session, what: &Look) -> Outcome<&'a Tensor> {
    let none = || Fault::request(format!("node {} has no {}", what.node, what.of));
    let place = session.places.get(what.node).ok_or_else(none)?;
    let part = || {
        let step = session.steps.get(what.step?)?;
        step.received.get(what.part?).map(|part| &part.gradient)
    };
    let tensor = match what.of.as_str() {
        "value" => place.value.as_ref(),
        "gradient" => session.gradient(what.node),
        "part" => part(),
        _ => return Err(Fault::request("`of` is value, gradient or part")),
    };
    tensor.ok_or_else(none)
}

/// The answer to `slice`, whose number is `id`: elements as bytes.
pub fn slice(session: &Session, what: &Look, id: u32) -> Outcome<Vec<u8>> {
    Ok(values::slice(id, found(session, what)?, what.most))
}

/// The answer to `tensor`.
pub fn look(session: &Session, what: &Look) -> Outcome<Value> {
    let mut out = values::look(found(session, what)?, what.most);
    let uses = session.places.iter().enumerate();
    let uses: Vec<usize> =
        uses.filter(|(_, p)| p.inputs.contains(&what.node)).map(|(i, _)| i).collect();
    out["uses"] = json!(uses);
    Ok(out)
}

/// The answer to `eval`: a value for each wish, or what is wrong with it.
pub fn evaluate(session: &mut Session, want: &[String]) -> Value {
    let (mut found, mut errors) = (Map::new(), Map::new());
    for wish in want {
        match wanted(session, wish) {
            Ok(value) => found.insert(wish.clone(), value),
            Err(fault) => errors.insert(wish.clone(), json!(fault.message)),
        };
    }
    json!({"values": found, "errors": errors})
}

fn wanted(session: &mut Session, wish: &str) -> Outcome<Value> {
    let (name, rest) = match wish.split_once(".grad") {
        Some((name, rest)) if matches!(rest, "" | ".shape") => (name.trim(), rest),
        _ => return value_of(&session.run.evaluate(wish)?),
    };
    let Some(Data::Tensor(t)) = session.run.variable(name) else {
        return Err(Fault::request(format!("there is no tensor `{name}`")));
    };
    let gradient = session.find(t).and_then(|place| session.gradient(place));
    let gradient = gradient.ok_or_else(|| {
        Fault::request(format!(
            "`{name}` has no gradient: it is no leaf, or the result does not depend on it"
        ))
    })?;
    match rest {
        "" => Ok(values::tensor_up_to(gradient, values::ASKED)),
        _ => Ok(values::sizes(&gradient.shape())),
    }
}

fn value_of(data: &Data) -> Outcome<Value> {
    match data {
        Data::List(items) if items.iter().all(|item| item.whole().is_some()) => {
            let sizes = items.iter().filter_map(Data::whole).map(|n| n as usize);
            Ok(values::sizes(&sizes.collect::<Vec<_>>()))
        }
        other => Ok(values::tensor_up_to(&other.tensor()?, values::ASKED)),
    }
}
