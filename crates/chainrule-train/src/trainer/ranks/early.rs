//! Gradients sent during the backward pass.
//!
//! A hook on each parameter sees its gradient as soon as it is complete. In the first step hooks
//! only check that it is the final one, which fails for a loss that takes gradients inside; if so,
//! later steps send it at once. The time of sending changes no bit.

use std::sync::{Arc, Mutex};

use chainrule_exchange::{Exchange, ExchangeError, RankSum};

use super::{Parts, Ranks, error, lock};
use crate::error::{Error, Result};
use crate::rank_values::values;
use crate::tensor::{HookHandle, Tensor};

/// Hooks of a micro-batch.
pub(super) struct Early {
    hooks: Vec<HookHandle>,
    seen: Arc<Mutex<Seen>>,
    /// Whether gradients are sent, or only checked.
    sends: bool,
}

#[derive(Default)]
struct Seen {
    /// Calls of each parameter's hook, and the last gradient.
    gradients: Vec<(usize, Option<Tensor>)>,
    failure: Option<Failure>,
}

enum Failure {
    Exchange(ExchangeError),
    Tensor(Error),
}

impl Early {
    /// No hooks.
    pub fn none() -> Early {
        Early { hooks: Vec::new(), seen: Arc::default(), sends: false }
    }

    pub fn begin(parts: &Parts, sum: &Arc<Mutex<RankSum>>, ranks: &Ranks) -> Result<Early> {
        let sends = match ranks.early {
            Some(false) => return Ok(Early::none()),
            known => known.is_some(),
        };
        let gradients = vec![(0, None); parts.parameters.len()];
        let seen = Arc::new(Mutex::new(Seen { gradients, failure: None }));
        let mut hooks = Vec::new();
        for (i, p) in parts.parameters.iter().enumerate().filter(|(_, p)| p.requires_grad()) {
            let (seen, sum, exchange) = (seen.clone(), sum.clone(), ranks.exchange.clone());
            let place = parts.first_parameter() + i;
            hooks.push(p.register_hook(move |gradient| {
                let mut seen = lock(&seen);
                seen.gradients[i].0 += 1;
                if !sends {
                    seen.gradients[i].1 = Some(gradient.clone());
                } else if seen.failure.is_none() && seen.gradients[i].0 == 1 {
                    let sent = leave(&mut lock(&sum), &mut **lock(&exchange), place, gradient);
                    seen.failure = sent.err();
                }
                None
            })?);
        }
        Ok(Early { hooks, seen, sends })
    }

    /// Removes the hooks; returns which parameters' gradients were sent.
    pub fn end(self, parts: &Parts, ranks: &mut Ranks) -> Result<Vec<bool>> {
        if self.hooks.is_empty() {
            return Ok(Vec::new());
        }
        self.hooks.into_iter().for_each(HookHandle::remove);
        let mut seen = lock(&self.seen);
        match seen.failure.take() {
            Some(Failure::Exchange(e)) => return Err(error(e)),
            Some(Failure::Tensor(e)) => return Err(e),
            None => {}
        }
        if !self.sends {
            let mut is_whole = true;
            for (p, (times, last)) in parts.parameters.iter().zip(&seen.gradients) {
                is_whole &= match (p.grad(), last) {
                    (Some(grad), Some(last)) if *times == 1 => {
                        values(&grad)? == values(&last.try_to_dtype(grad.dtype())?)?
                    }
                    (None, None) => true,
                    _ => false,
                };
            }
            ranks.early = Some(is_whole);
            return Ok(Vec::new());
        }
        if seen.gradients.iter().any(|(times, _)| *times > 1) {
            let why = "the loss of this step makes gradients more than once, as that of the first \
                       step did not; let the first do so too";
            return Err(Error::argument("Trainer", why));
        }
        Ok(seen.gradients.iter().map(|(times, _)| *times == 1).collect())
    }
}

fn leave(
    sum: &mut RankSum,
    exchange: &mut dyn Exchange,
    place: usize,
    gradient: &Tensor,
) -> Result<(), Failure> {
    let value = values(gradient).map_err(Failure::Tensor)?;
    sum.push_one(place, value).map_err(Failure::Exchange)?;
    sum.send(exchange).map_err(Failure::Exchange)
}
