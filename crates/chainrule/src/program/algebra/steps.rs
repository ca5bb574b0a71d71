//! What was done, in words.

use super::Applied;
use super::rules::{Is, rules};
use super::stage::Stage;
use super::term::{Before, T};
use crate::program::ir::Id;

/// A use of a rule at a value.
pub(super) struct Noted {
    pub rule: Is,
    pub at: Id,
    pub before: Before,
    pub after: T,
    pub saved: f64,
}

impl Stage {
    /// Takes the events of the instruction at hand, which together saved so much.
    pub(super) fn note_events(&mut self, at: usize, saved: f64) {
        let id = self.program.instructions[at].result();
        let events = std::mem::take(&mut self.terms.events);
        let last = events.len().saturating_sub(1);
        for (i, event) in events.into_iter().enumerate() {
            let saved = if i == last { saved } else { 0.0 };
            self.noted.push(Noted {
                rule: event.rule,
                at: id,
                before: event.before,
                after: event.after,
                saved,
            });
        }
    }

    pub(super) fn steps(&mut self) -> Vec<Applied> {
        let noted = std::mem::take(&mut self.noted);
        let text = |stage: &Stage, n: Noted| Applied {
            rule: rules()[n.rule as usize].name,
            at: stage.program.info(n.at).name.clone(),
            before: stage.before_text(&n.before),
            after: stage.text(n.after),
            saved: n.saved as i64,
        };
        noted.into_iter().map(|n| text(self, n)).collect()
    }
}
