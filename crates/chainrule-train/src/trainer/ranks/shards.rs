//! Sharded optimizer state: each rank updates the parameters that it owns, and all gather them.

use chainrule_exchange::{Exchange, RankSum, Values, ValuesLayout, gather, gather_bytes, owners};

use super::{Parts, Programs, Ranks, Start, Step, error, lock};
use crate::Task;
use crate::error::Result;
use crate::nn::StateDict;
use crate::optim::Optimizer;
use crate::rank_values::{self, quotient, values};
use crate::tensor::Tensor;
use crate::trainer::Rest;
use crate::trainer::engine::Done;
use chainrule_core::kernels::optim::power_sum;

impl Step<'_> {
    /// Updates the owned parameters and gathers all; `None` if the step must be repeated.
    pub(super) fn sharded(
        &self,
        optimizer: &mut dyn Optimizer,
        rest: &mut Rest,
        ranks: &mut Ranks,
        sum: RankSum,
        programs: &mut Option<&mut Programs<'_>>,
    ) -> Result<Option<Done>> {
        let layouts = self.parts.layouts();
        let (first, exchange) = (self.parts.first_parameter(), ranks.exchange.clone());
        let mut exchange = lock(&exchange);
        let exchange = &mut **exchange;
        let rank = exchange.rank();
        let mut totals = sum.reduce_scatter(exchange).map_err(error)?;
        let gradients = totals.split_off(first);
        let (parameters, owners) = (&self.parts.parameters, &self.owners[first..]);
        let own = |(total, p): (Option<Values>, &Tensor)| {
            total.map(|total| quotient(&total, self.n, p)).transpose()
        };
        let mut gradients =
            gradients.into_iter().zip(parameters).map(own).collect::<Result<Vec<_>>>()?;
        // The squares travel with the header, which saves an exchange.
        let squares = match rest.options.clip {
            Some(_) => squares(&gradients)?,
            None => Vec::new(),
        };
        let count = first + squares.len();
        totals.extend(squares);
        let squared = vec![ValuesLayout::F64(1); count - first];
        let layouts_of_told = [&layouts[..first], &squared].concat();
        let told = gather(exchange, &self.owners[..count], &layouts_of_told, totals);
        let mut told = told.map_err(error)?;
        let squares = told.split_off(first);
        let told = self.told(rest.place.step, ranks, exchange, told, programs)?;
        let Some((done, used)) = told else { return Ok(None) };
        if !done.loss.is_finite() {
            return Ok(Some(done));
        }
        if ranks.wanted {
            gradients = gathered(exchange, owners, &layouts[first..], parameters, gradients)?;
        }
        for (i, (p, gradient)) in parameters.iter().zip(gradients).enumerate() {
            p.set_grad(gradient.filter(|_| used[i]))?;
        }
        rest.due().into_iter().for_each(|watch| watch.before(self.task.module()));
        let is_own = |i: usize| owners[i] == rank;
        for (i, p) in parameters.iter().enumerate() {
            if !is_own(i) {
                p.set_grad(None)?;
            }
        }
        if let Some(most) = rest.options.clip {
            let norm = norm(&squares, &used);
            shrink(parameters, most, norm)?;
            rest.grad_norm.iter().try_for_each(|kept| kept.try_set(&Tensor::scalar(norm)))?;
        }
        // A rank without gradients has no work; if none has one, the optimizer returns the error.
        if used.iter().enumerate().any(|(i, &used)| used && is_own(i)) || !used.contains(&true) {
            let optimizer: &mut dyn Optimizer = match &mut rest.unclipped {
                Some(unclipped) => unclipped,
                None => optimizer,
            };
            match programs {
                Some(programs) => programs.updates.step(optimizer, parameters)?,
                None => optimizer.step()?,
            }
        }
        self.share_parameters(exchange, owners, &used)?;
        rest.due().into_iter().for_each(|watch| watch.after(self.task.module()));
        Ok(Some(done))
    }

    /// Broadcasts the owned parameters and receives the others.
    fn share_parameters(
        &self,
        exchange: &mut dyn Exchange,
        owners: &[usize],
        used: &[bool],
    ) -> Result<()> {
        if exchange.size() == 1 {
            return Ok(());
        }
        let all = self.parts.parameters.iter().zip(owners).zip(used);
        let changed: Vec<(&Tensor, usize)> =
            all.filter(|(_, used)| **used).map(|((p, owner), _)| (p, *owner)).collect();
        let owners: Vec<usize> = changed.iter().map(|(_, owner)| *owner).collect();
        let sizes: Vec<usize> = changed.iter().map(|(p, _)| p.numel() * p.dtype().size()).collect();
        // Keeps the first error; the exchange continues, so that the ranks stay in step.
        let failure = std::cell::RefCell::new(Ok(()));
        let keep = |done: Result<()>| {
            let mut failure = failure.borrow_mut();
            if failure.is_ok() {
                *failure = done;
            }
        };
        let write = |i: usize, out: &mut Vec<u8>| {
            let written = changed[i].0.try_with_bytes(|bytes| out.extend_from_slice(bytes));
            if written.is_err() {
                out.resize(out.len() + sizes[i], 0);
            }
            keep(written);
        };
        let take = |i: usize, bytes: &[u8]| keep(changed[i].0.try_set_bytes(bytes));
        gather_bytes(exchange, &owners, &sizes, write, take).map_err(error)?;
        failure.into_inner()
    }
}

/// The gradients of all parameters, each from its owner.
fn gathered(
    exchange: &mut dyn Exchange,
    owners: &[usize],
    layouts: &[ValuesLayout],
    parameters: &[Tensor],
    own: Vec<Option<Tensor>>,
) -> Result<Vec<Option<Tensor>>> {
    let numbers = own.iter().map(|gradient| gradient.as_ref().map(values).transpose());
    let numbers = numbers.collect::<Result<Vec<_>>>()?;
    let all = gather(exchange, owners, layouts, numbers).map_err(error)?;
    let all = all.iter().zip(parameters).map(|(numbers, p)| rank_values::tensor(numbers, p));
    all.map(|gradient| gradient.map(Some)).collect()
}

/// Squared norms of the gradients on this rank.
fn squares(gradients: &[Option<Tensor>]) -> Result<Vec<Option<Values>>> {
    let square = |gradient: &Option<Tensor>| {
        let numbers = gradient.as_ref().map(values).transpose()?;
        let square = numbers.map(|numbers| match numbers {
            Values::F32(x) => power_sum(&x, 2.0),
            Values::F64(x) => power_sum(&x, 2.0),
        });
        Ok(square.map(|square| Values::F64(vec![square])))
    };
    gradients.iter().map(square).collect()
}

/// Norm of the concatenated gradients, from their squared norms in order.
fn norm(squares: &[Values], used: &[bool]) -> f64 {
    let of = |(square, used): (&Values, &bool)| match square {
        Values::F64(x) if *used => x.first().copied(),
        _ => None,
    };
    squares.iter().zip(used).filter_map(of).sum::<f64>().sqrt()
}

/// As [`clip_grad_norm`](crate::optim::clip_grad_norm) does, for a known norm.
fn shrink(parameters: &[Tensor], most: f64, norm: f64) -> Result<()> {
    let factor = most / (norm + 1e-6);
    if factor >= 1.0 {
        return Ok(());
    }
    for p in parameters {
        let Some(grad) = p.grad() else { continue };
        let wide = grad.try_to_dtype(grad.dtype().computing())?;
        p.set_grad(Some(wide.try_mul(factor)?.try_to_dtype(grad.dtype())?))?;
    }
    Ok(())
}

impl Ranks {
    /// Whether the optimizer state is sharded.
    pub fn have_shards(&self, rest: &Rest) -> bool {
        rest.options.sharded && self.are_many()
    }

    /// This rank's shard of the optimizer state.
    pub fn own_state(
        &self,
        task: &dyn Task,
        optimizer: &dyn Optimizer,
        mut state: StateDict,
    ) -> Result<StateDict> {
        let parts = Parts::of(&Start::of(task.module())?, optimizer.parameters().to_vec());
        let bytes: Vec<usize> = parts.layouts().iter().map(|layout| layout.bytes()).collect();
        let owners = owners(&bytes, self.size);
        let rank = lock(&self.exchange).rank();
        let owner_of = |name: &str| {
            let number = name.strip_prefix("state.")?.split_once('.')?.0.parse::<usize>().ok()?;
            owners.get(parts.first_parameter() + number).copied()
        };
        state.retain(|name, _| owner_of(name).is_none_or(|owner| owner == rank));
        Ok(state)
    }
}
