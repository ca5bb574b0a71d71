//! A cause with its proof, as reports present it.

use serde_json::{Map, Value, json};

use crate::cause::Cause;

/// A cause, with its proof.
#[derive(Clone, Debug)]
pub struct Reason {
    /// The cause.
    pub cause: Cause,
    /// The place in the description, as a path.
    pub place: String,
    /// The step from which on it holds; 0 for the description itself.
    pub since: usize,
    /// From 0 to 1.
    pub confidence: f64,
    /// Observation, and result of the experiment.
    pub evidence: String,
    /// The evidence as numbers, by name.
    pub numbers: Vec<(&'static str, f64)>,
    /// How the training ends if nothing is fixed.
    pub end: String,
    /// The edits of the description that fix it.
    pub edit: Vec<Value>,
    /// Skill with the other changes but without this one.
    pub before: f64,
    /// Skill with it.
    pub after: f64,
}

/// Losses of a run, to describe how a training with each cause ends.
pub(crate) struct Losses<'a> {
    pub course: &'a [f32],
    /// The loss of the best constant answer, where there is such a number.
    pub constant: Option<f64>,
}

impl Losses<'_> {
    /// Adds the first and the last loss to the description of a cause's end, and to its numbers.
    pub fn tell(&self, cause: &mut Reason) {
        let (Some(&first), Some(&last)) = (self.course.first(), self.course.last()) else { return };
        let (first, last) = (f64::from(first), f64::from(last));
        cause.end += &format!("; the loss goes from {first:.4} to {last:.4}");
        cause.numbers.extend([("loss_at_the_start", first), ("loss_at_the_end", last)]);
        if let Some(constant) = self.constant {
            cause.end += &format!(", and the best constant answer has {constant:.4}");
            cause.numbers.push(("loss_of_a_constant", constant));
        }
    }
}

/// Two places, without a minus at zero.
pub(crate) fn short(x: f64) -> f64 {
    let short = (x * 1e4).round() / 1e4;
    if short == 0.0 || !short.is_finite() { 0.0 } else { short }
}

impl Reason {
    /// As text for people, with this number.
    pub(crate) fn text(&self, number: usize) -> String {
        let since = match self.since {
            0 => "from the start".to_string(),
            step => format!("since step {step}"),
        };
        let (kind, sure) = (self.cause.kind(), 100.0 * self.confidence);
        let mut out =
            vec![format!("\n{number}. {kind} ({sure:.0} % sure): {}.", self.cause.sentence())];
        out.push(format!("   where: {}, {since}", self.place));
        out.push(format!("   seen:  {}", self.evidence));
        out.push(format!("   end:   {}", self.end));
        for e in &self.edit {
            let value = match e["value"].as_str() {
                Some(text) if text.contains('\n') => "text, see --json".to_string(),
                _ => e["value"].to_string(),
            };
            let (op, path) = (e["op"].as_str().unwrap_or(""), e["path"].as_str().unwrap_or(""));
            out.push(match (e.as_str(), op) {
                (Some(words), _) => format!("   edit:  {words}"),
                (None, "set") => format!("   edit:  {path} = {value}"),
                _ => format!("   edit:  {op} {path} {value}"),
            });
        }
        out.join("\n")
    }

    /// As JSON, for the command's `--json`.
    pub fn json(&self) -> Value {
        json!({
            "kind": self.cause.kind(), "where": self.place, "since": self.since,
            "confidence": short(self.confidence), "evidence": self.evidence, "end": self.end,
            "numbers": self.numbers.iter().map(|(n, x)| ((*n).to_string(), json!(x))).collect::<Map<_, _>>(),
            "edit": self.edit, "skill_before": short(self.before), "skill_after": short(self.after),
        })
    }
}
