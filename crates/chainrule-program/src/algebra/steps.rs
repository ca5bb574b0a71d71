//! The applied rules, as text.

use super::Applied;
use super::operations::{NodeId, Operation, Plan, RowSlope};
use super::rules::{RuleId, rules};
use super::stage::Stage;
use super::term::{Before, TermId};
use super::text;
use crate::ir::{Id, Instruction, Phase};

/// Deeper steps are written as dots.
const DEEPEST: usize = 10;

/// A use of a rule at a value.
pub(super) struct Noted {
    pub rule: RuleId,
    pub at: Id,
    pub before: Before,
    pub after: TermId,
    pub saved: f64,
    /// The operations that compute the result, if it is not written as a term.
    pub written: Option<String>,
}

impl Stage {
    /// Takes the events of the current instruction, which together saved this much.
    pub(super) fn note_events(&mut self, at: usize, saved: f64) {
        let id = self.program.instructions[at].result();
        let events = std::mem::take(&mut self.terms.events);
        // The forward pass stays as it is, so its events do not count.
        if self.program.instructions[at].phase != Phase::Backward {
            return;
        }
        let last = events.len().saturating_sub(1);
        for (i, event) in events.into_iter().enumerate() {
            let saved = if i == last { saved } else { 0.0 };
            self.noted.push(Noted {
                rule: event.rule,
                at: id,
                before: event.before,
                after: event.after,
                saved,
                written: None,
            });
        }
    }

    /// Notes the rules that shaped a plan.
    pub(super) fn note_plan(&mut self, at: Id, t: TermId, plan: &Plan, c: f64, root: NodeId) {
        let needed = plan.needed(root);
        let nodes =
            || plan.nodes.iter().zip(&needed).filter(|(_, n)| **n).map(|(n, _)| &n.operation);
        let composite = |id: &Id| !self.is_itself(self.values[id.index()], *id);
        let reuses = nodes().any(|s| matches!(s, Operation::Have(id, _) if composite(id)));
        let sum = |n: &NodeId| {
            matches!(plan.nodes[*n].operation, Operation::Add(..) | Operation::Sub(..))
        };
        let factors = nodes().any(|s| match s {
            Operation::Mul(a, b) | Operation::Div(a, b) => sum(a) || sum(b),
            Operation::Scale(a, _) => sum(a),
            _ => false,
        });
        let text = match self.tells {
            true => text::cut(self.plan_text(plan, c, root)),
            false => String::new(),
        };
        if self.tells && text == self.text(t) {
            return;
        }
        for (used, rule) in [(factors, RuleId::CommonFactor), (reuses, RuleId::Reuse)] {
            if used && self.terms.on(rule) {
                let (before, written) = (Before::Term(t), Some(text.clone()));
                self.noted.push(Noted { rule, at, before, after: t, saved: 0.0, written });
            }
        }
    }

    /// Notes that a coefficient moved to an operand in which the op is linear.
    pub(super) fn note_number(&mut self, at: Id, t: TermId, made: &Instruction) {
        let names: Vec<_> = match self.tells {
            true => made.inputs.iter().map(|id| self.program.info(*id).name.clone()).collect(),
            false => Vec::new(),
        };
        let written = Some(text::cut(format!("{}({})", made.op.name(), names.join(", "))));
        let (rule, before) = (RuleId::ConstantFactor, Before::Term(t));
        self.noted.push(Noted { rule, at, before, after: t, saved: 0.0, written });
    }

    fn plan_text(&self, plan: &Plan, c: f64, n: NodeId) -> String {
        let text = self.step_text(plan, n, c != 1.0, 0);
        match c {
            1.0 => text,
            -1.0 => format!("-{text}"),
            c => format!("{} * {text}", text::number(c)),
        }
    }

    /// A step in words; in brackets if it is a sum inside a product.
    fn step_text(&self, plan: &Plan, n: NodeId, tight: bool, depth: usize) -> String {
        if depth > DEEPEST {
            return "...".to_string();
        }
        let inner = |n: &NodeId, tight: bool| self.step_text(plan, *n, tight, depth + 1);
        let bracketed = |text: String| if tight { format!("({text})") } else { text };
        match &plan.nodes[n].operation {
            Operation::One => "1".to_string(),
            Operation::Have(id, _) => self.program.info(*id).name.clone(),
            Operation::Hot(b) => self.base_text(*b, 0, 0),
            Operation::Add(a, b) => bracketed(format!("{} + {}", inner(a, false), inner(b, false))),
            Operation::Sub(a, b) => bracketed(format!("{} - {}", inner(a, false), inner(b, true))),
            Operation::Mul(a, b) => format!("{} * {}", inner(a, true), inner(b, true)),
            Operation::Div(a, b) => format!("{} / ({})", inner(a, true), inner(b, false)),
            Operation::Scale(a, c) => {
                format!("{} * {}", text::number(f64::from_bits(*c)), inner(a, true))
            }
            Operation::Pow(a, e) => {
                format!("({})^({})", inner(a, false), text::number(f64::from_bits(*e)))
            }
            Operation::Apply(f, a) => format!("{}({})", text::fun(*f), inner(a, false)),
            Operation::Sum(a, _) => format!("sum({})", inner(a, false)),
            Operation::RowSlope(RowSlope::Softmax, p, g, _) => {
                let (p, g) = (inner(p, true), inner(g, true));
                format!("{p} * ({g} - sum({p} * {g}))")
            }
            Operation::RowSlope(RowSlope::LogSoftmax, l, g, _) => {
                let (l, g) = (inner(l, false), inner(g, false));
                bracketed(format!("{g} - exp({l}) * sum({g})"))
            }
            Operation::Pick(a, b) => {
                format!("pick({}, {})", inner(a, false), self.base_text(*b, 0, 0))
            }
        }
    }

    /// The rules that were applied, each once.
    pub(super) fn rules(&self) -> Vec<&'static str> {
        let mut all: Vec<_> = self.noted.iter().map(|n| rules()[n.rule as usize].name).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    pub(super) fn steps(&mut self) -> Vec<Applied> {
        let mut noted = std::mem::take(&mut self.noted);
        noted.sort_by_key(|n| self.position[n.at.index()]);
        let text = |stage: &Stage, n: Noted| Applied {
            rule: rules()[n.rule as usize].name,
            at: stage.program.info(n.at).name.clone(),
            before: stage.before_text(&n.before),
            after: n.written.unwrap_or_else(|| stage.text(n.after)),
            saved: n.saved.max(0.0) as i64,
        };
        noted.into_iter().map(|n| text(self, n)).collect()
    }
}
