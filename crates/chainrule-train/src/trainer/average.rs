//! The moving average of weights: whole, or a rank's shard.

use chainrule_exchange::{Exchange, gather, owners};

use super::ranks::{Ranks, error, lock};
use crate::error::{Error, Result};
use crate::io;
use crate::nn::StateDict;
use crate::optim::Ema;
use crate::rank_values::{self, values};
use crate::tensor::Tensor;

/// Moving average of the weights, which is evaluated in their place. It is sharded with the
/// optimizer state, by whole parameters.
pub(crate) struct Average {
    decay: f64,
    /// All parameters without repeats.
    parameters: Vec<Tensor>,
    /// Owner rank of each average.
    owners: Vec<usize>,
    rank: usize,
    is_shared: bool,
    /// Averages of this rank.
    ema: Ema,
    /// All averages after a save, on rank 0 of several.
    whole: Option<Vec<Tensor>>,
}

impl Average {
    pub fn new(parameters: Vec<Tensor>, decay: f64) -> Result<Average> {
        let mut all: Vec<Tensor> = Vec::new();
        for p in parameters {
            if !all.iter().any(|q| q.is_same(&p)) {
                all.push(p);
            }
        }
        let ema = Ema::new(all.clone(), decay)?.warm_up();
        let owners = vec![0; all.len()];
        Ok(Average { decay, parameters: all, owners, rank: 0, is_shared: false, ema, whole: None })
    }

    /// Keeps only this rank's shard.
    pub fn share_out(&mut self, ranks: &Ranks) -> Result<()> {
        let state = self.ema.state_dict();
        let bytes: Vec<usize> =
            self.parameters.iter().map(|p| rank_values::layout(p).bytes()).collect();
        self.owners = owners(&bytes, ranks.size());
        self.rank = lock(&ranks.exchange).rank();
        self.is_shared = ranks.are_many();
        let own = self.own().map(|i| self.parameters[i].clone()).collect();
        self.ema = Ema::new(own, self.decay)?.warm_up();
        self.load_state_dict(&state)
    }

    /// Indices of the parameters whose averages are here, in order.
    fn own(&self) -> impl Iterator<Item = usize> {
        let owners = self.owners.iter().enumerate();
        owners.filter(|(_, owner)| **owner == self.rank).map(|(i, _)| i)
    }

    /// Number of all averages.
    pub fn count(&self) -> usize {
        self.parameters.len()
    }

    /// Averages of this rank, with their indices.
    pub fn own_averages(&self) -> impl Iterator<Item = (usize, &Tensor)> {
        self.own().zip(self.ema.averages())
    }

    /// Whether all ranks have everything, so that none waits for another.
    fn is_all_here(&self) -> bool {
        !self.is_shared
    }

    /// Updates the averages from the current weights.
    pub fn update(&mut self) -> Result<()> {
        self.whole = None;
        self.ema.update()
    }

    /// Runs `f` with the averages as weights on all ranks.
    pub fn averaged<R>(&mut self, ranks: &Option<Ranks>, f: impl FnOnce() -> R) -> Result<R> {
        if self.is_all_here() {
            return self.ema.averaged(f);
        }
        let all = match (&self.whole, ranks) {
            (Some(whole), _) => whole.clone(),
            (None, Some(ranks)) => self.gathered(ranks)?,
            (None, None) => return Err(apart()),
        };
        struct Back<'a>(Vec<(&'a Tensor, Tensor)>);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                // A tensor's own former values fit.
                self.0.iter().for_each(|(p, before)| drop(p.try_set(before)));
            }
        }
        let _back = Back(self.parameters.iter().map(|p| (p, p.detach())).collect());
        self.parameters.iter().zip(&all).try_for_each(|(p, average)| p.try_set(average))?;
        Ok(f())
    }

    /// All averages, from the ranks that own them.
    fn gathered(&self, ranks: &Ranks) -> Result<Vec<Tensor>> {
        let layouts: Vec<_> = self.parameters.iter().map(rank_values::layout).collect();
        let mut own: Vec<_> = self.parameters.iter().map(|_| None).collect();
        for (i, average) in self.own().zip(self.ema.averages()) {
            own[i] = Some(values(average)?);
        }
        let all = gather(&mut **lock(&ranks.exchange), &self.owners, &layouts, own);
        let all = all.map_err(error)?;
        all.iter().zip(&self.parameters).map(|(v, p)| rank_values::tensor(v, p)).collect()
    }

    /// Swaps the weights and the averages, if all of these are here.
    pub fn swap(&mut self) -> Result<()> {
        if self.is_all_here() {
            return self.ema.swap();
        }
        let whole = self.whole.as_mut().ok_or_else(apart)?;
        for (p, average) in self.parameters.iter().zip(whole) {
            let weights = p.detach();
            p.try_set(average)?;
            *average = weights;
        }
        Ok(())
    }

    /// Gathers the averages on rank 0, one at a time.
    pub fn gather_on_first(&mut self, ranks: &Ranks) -> Result<()> {
        if self.is_all_here() {
            return Ok(());
        }
        let mut exchange = lock(&ranks.exchange);
        let mut own = self.ema.averages().iter();
        let mut whole = Vec::new();
        for &owner in &self.owners {
            let mine = (owner == self.rank).then(|| own.next()).flatten();
            let bytes = match mine.filter(|_| self.rank > 0) {
                Some(average) => {
                    let named = [("average".to_string(), average.detach())];
                    io::serialize(&named.into(), &Default::default())?
                }
                None => Vec::new(),
            };
            let received = on_first(&mut **exchange, bytes)?;
            if self.rank > 0 {
                continue;
            }
            whole.push(match mine {
                Some(average) => average.detach(),
                None => match io::parse(&received[owner])?.into_iter().next() {
                    Some((_, average)) => average,
                    None => return Err(Error::argument("exchange", "an average is missing")),
                },
            });
        }
        self.whole = (self.rank == 0).then_some(whole);
        Ok(())
    }

    /// The averages here and the update count, named as by [`Ema::state_dict`].
    pub fn state_dict(&self) -> StateDict {
        let mut state = self.ema.state_dict();
        let updates = state.remove("updates");
        let numbered: StateDict = match &self.whole {
            Some(whole) => whole
                .iter()
                .enumerate()
                .map(|(i, t)| (format!("average.{i}"), t.detach()))
                .collect(),
            None => {
                let own = self.own().zip(self.ema.averages());
                own.map(|(i, t)| (format!("average.{i}"), t.detach())).collect()
            }
        };
        numbered.into_iter().chain(updates.map(|n| ("updates".to_string(), n))).collect()
    }

    /// Loads this rank's part of all averages. Errors as [`Ema::load_state_dict`].
    pub fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        self.whole = None;
        if self.is_all_here() {
            return self.ema.load_state_dict(state);
        }
        let mut own = StateDict::new();
        for (at, i) in self.own().enumerate() {
            let name = format!("average.{i}");
            let average = state.get(&name).ok_or_else(|| {
                Error::argument("Ema", format!("the state's `{name}` is missing"))
            })?;
            own.insert(format!("average.{at}"), average.clone());
        }
        own.extend(state.get("updates").map(|n| ("updates".to_string(), n.clone())));
        self.ema.load_state_dict(&own)
    }
}

/// Bytes per rank, on rank 0.
pub(super) fn on_first(exchange: &mut dyn Exchange, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
    let mut parts = vec![Vec::new(); exchange.size()];
    parts[0] = own;
    exchange.all_to_all(parts).map_err(error)
}

fn apart() -> Error {
    let why = "the average of the weights is shared out; rank 0 has all of it after Trainer::run";
    Error::argument("Trainer", why)
}
