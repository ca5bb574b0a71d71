//! A mistake of the catalogue in the walk back, for the learner to find.

use chainrule::{Generator, no_grad};
use chainrule_check::catalogue::Fault as Mistake;
use chainrule_check::catalogue::Unbroadcast;
use chainrule_core::tensor::node::Source;
use chainrule_lab::mistakes::Planting;
use serde_json::{Value, json};

use super::json as values;
use super::session::{Place, Session, Step};
use crate::language::fault::{Fault, Outcome};

/// Wrong parts must differ by more than this from right ones, relative to the largest.
const VISIBLE: f64 = 1e-3;

/// A planted mistake, and where it is.
pub struct Hidden {
    node: usize,
    id: &'static str,
    words: String,
    correction: String,
    line: Option<usize>,
}

impl Hidden {
    /// The answer to `reveal`.
    pub fn reveal(&self) -> Value {
        json!({
            "id": self.id,
            "words": self.words,
            "correction": self.correction,
            "node": self.node,
            "line": self.line,
        })
    }

    /// The answer to `guess`.
    pub fn guess(&self, node: usize) -> Value {
        json!({"right": node == self.node})
    }
}

/// The answer to `mistakes`: those of the catalogue that can be made in this program.
pub fn kinds(session: &Session) -> Value {
    let mut known: Vec<(&'static str, String)> = Vec::new();
    for planting in candidates(session) {
        let name = planting.fault.name();
        if !known.iter().any(|(known, _)| *known == name) {
            known.push((name, words(&planting)));
        }
    }
    known.sort();
    let rows: Vec<Value> =
        known.iter().map(|(id, words)| json!({"id": id, "words": words})).collect();
    json!({ "mistakes": rows })
}

/// Plants a mistake that can be seen in some gradient, of this kind if one is given; the rows of
/// all variables as they come out.
pub fn plant(session: &Session, seed: u64, kind: Option<&str>) -> Outcome<(Hidden, Value)> {
    let mut all = candidates(session);
    all.retain(|planting| kind.is_none_or(|kind| planting.fault.name() == kind));
    let order = Generator::manual_seed(seed).randperm(all.len());
    let mut drawn: Vec<Planting> = Vec::new();
    let mut by_place: Vec<Option<Planting>> = all.drain(..).map(Some).collect();
    for i in order {
        drawn.extend(by_place[i as usize].take());
    }
    for planting in drawn {
        // A wrong rule may not fit these shapes; another is tried.
        let Ok(wrong) = session.walk(Some(&planting)) else { continue };
        if let Some(rows) = no_grad(|| rows(session, &wrong)) {
            return Ok((hidden(session, &planting), rows));
        }
    }
    Err(Fault::request(match kind {
        Some(kind) => format!("the mistake `{kind}` shows nowhere in this program"),
        None => "no mistake of the catalogue shows in this program".into(),
    }))
}

fn candidates(session: &Session) -> Vec<Planting> {
    let mut out = Vec::new();
    for place in &session.places {
        let Source::Node(node) = &place.source else { continue };
        let mut add = |mistake| out.push(Planting { place: node.number, fault: mistake });
        for mistake in node.op.entry().map_or(&[][..], |entry| entry.mistakes) {
            add(Mistake::Rule(mistake));
        }
        for input in 0..node.inputs.len() {
            let source = &node.inputs[input];
            if !source.requires_grad() {
                continue;
            }
            for factor in [-1.0, 2.0, 0.5] {
                add(Mistake::Factor { input, factor });
            }
            if source.meta().is_some_and(|meta| meta.shape != node.meta.shape) {
                for how in Unbroadcast::ALL {
                    add(Mistake::Unbroadcast { input, how });
                }
            }
            if let Some(bound) = bound(session, place, input) {
                add(Mistake::Clip { input, bound });
            }
        }
    }
    for step in &session.steps {
        if step.received.len() > 1 {
            let place = session.places[step.place].source.number();
            out.push(Planting { place, fault: Mistake::Overwrite { kept: 0 } });
        }
    }
    out
}

/// A bound that cuts off the larger half of the gradient at a place, so that clipping shows there.
fn bound(session: &Session, place: &Place, input: usize) -> Option<f64> {
    let number = place.source.number();
    let step =
        session.steps.iter().find(|step| session.places[step.place].source.number() == number)?;
    let sent = step.sent.iter().find(|sent| sent.position == input)?;
    let part = sent.gradient.to_f64_vec();
    let largest = part.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    (largest > 0.0 && largest.is_finite()).then_some(largest / 2.0)
}

/// The rows of the variables; `None` if all are right to the eye.
fn rows(session: &Session, wrong: &[Step]) -> Option<Value> {
    let mut seen = false;
    let mut rows = Vec::new();
    for (name, t) in session.graded() {
        let place = session.find(&t)?;
        let right = session.gradient(place)?;
        let found = wrong.iter().find(|step| step.place == place).map(|step| &step.incoming)?;
        let apart = found.try_sub(right).ok()?;
        let largest = apart.to_f64_vec().iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let size = right.to_f64_vec().iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let is_wrong = largest.is_nan() || largest > VISIBLE * size;
        seen |= is_wrong;
        rows.push(json!({
            "name": name,
            "verdict": if is_wrong { "wrong" } else { "exact" },
            "max_diff": values::number(largest),
            "shape_found": found.shape().to_vec(),
            "shape": t.shape().to_vec(),
            "difference": values::tensor(&apart),
        }));
    }
    seen.then(|| json!(rows))
}

fn hidden(session: &Session, planting: &Planting) -> Hidden {
    let at = |place: &super::session::Place| place.source.number() == planting.place;
    let node = session.places.iter().position(at).unwrap_or(0);
    let place = &session.places[node];
    let general = planting.fault.general();
    let rule = match &place.source {
        Source::Node(node) => node.op.entry().map_or("", |entry| entry.gradient),
        _ => "",
    };
    let correction = general.map_or(rule, |general| general.fix).to_string();
    Hidden { node, id: planting.fault.name(), words: words(planting), correction, line: place.line }
}

/// The mistake in words.
fn words(planting: &Planting) -> String {
    match (&planting.fault, planting.fault.general()) {
        (Mistake::Rule(mistake), _) => mistake.what.to_string(),
        (_, Some(general)) => general.what.to_string(),
        _ => planting.fault.name().to_string(),
    }
}
