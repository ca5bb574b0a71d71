//! The state of an optimizer that is shared out to the ranks: each updates the parameters that it
//! owns, and all gather them.

use chainrule_exchange::{Exchange, RankSum, Values, ValuesLayout, gather, gather_bytes, owners};

use super::{Parts, Programs, Ranks, Start, Step, error, lock, mean};
use crate::Task;
use crate::error::Result;
use crate::nn::StateDict;
use crate::optim::Optimizer;
use crate::rank_values::values;
use crate::tensor::Tensor;
use crate::trainer::Rest;
use crate::trainer::engine::Done;
use chainrule_core::kernels::optim::power_sum;

impl Step<'_> {
    /// The update of the own parameters, which all ranks then get; nothing if the step is to be
    /// done again.
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
        let mut gradients = totals.split_off(first);
        let told = gather(exchange, &self.owners[..first], &layouts[..first], totals);
        let told = told.map_err(error)?;
        let told = self.told(rest.place.step, ranks, exchange, told, programs)?;
        let Some((done, used)) = told else { return Ok(None) };
        if !done.loss.is_finite() {
            return Ok(Some(done));
        }
        let owners = &self.owners[first..];
        if ranks.wanted {
            let all = gather(exchange, owners, &layouts[first..], gradients).map_err(error)?;
            gradients = all.into_iter().map(Some).collect();
        }
        let parameters = &self.parts.parameters;
        for (i, (p, total)) in parameters.iter().zip(gradients).enumerate() {
            let grad = total.filter(|_| used[i]).map(|total| mean(total, p, self.n));
            p.set_grad(grad.transpose()?)?;
        }
        rest.due().into_iter().for_each(|watch| watch.before(self.task.module()));
        let is_own = |i: usize| owners[i] == rank;
        for (i, p) in parameters.iter().enumerate() {
            if !is_own(i) {
                p.set_grad(None)?;
            }
        }
        if let Some(most) = rest.options.clip {
            let norm = norm(exchange, owners, parameters, &used)?;
            shrink(parameters, most, norm)?;
            rest.grad_norm.iter().try_for_each(|kept| kept.try_set(&Tensor::scalar(norm)))?;
        }
        // A rank without gradients has no work; if none has one, the optimizer says so.
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

    /// Sends the own parameters to all, and takes over theirs.
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
        // The first error; the exchange goes on, so that the ranks stay in step.
        let failure = std::cell::RefCell::new(Ok(()));
        let keep = |done: Result<()>| {
            let mut failure = failure.borrow_mut();
            if failure.is_ok() {
                *failure = done;
            }
        };
        let write = |i: usize, out: &mut Vec<u8>| match changed[i].0.try_to_bytes() {
            Ok(bytes) => out.extend_from_slice(&bytes),
            Err(e) => {
                out.resize(out.len() + sizes[i], 0);
                keep(Err(e));
            }
        };
        let take = |i: usize, bytes: &[u8]| {
            let p = changed[i].0;
            let new = Tensor::try_from_bytes(bytes, p.shape(), p.dtype());
            keep(new.and_then(|new| p.try_set(&new)));
        };
        gather_bytes(exchange, &owners, &sizes, write, take).map_err(error)?;
        failure.into_inner()
    }
}

/// The norm of all gradients laid end to end, from the sums of squares of each, in their order.
fn norm(
    exchange: &mut dyn Exchange,
    owners: &[usize],
    parameters: &[Tensor],
    used: &[bool],
) -> Result<f64> {
    let mut own = Vec::new();
    for p in parameters {
        own.push(match p.grad().map(|grad| values(&grad)).transpose()? {
            Some(Values::F32(x)) => Some(power_sum(&x, 2.0)),
            Some(Values::F64(x)) => Some(power_sum(&x, 2.0)),
            None => None,
        });
    }
    let rank = exchange.rank();
    let filled = own.into_iter().zip(owners).map(|(square, owner)| {
        (*owner == rank).then(|| Values::F64(vec![square.unwrap_or_default()]))
    });
    let layouts = vec![ValuesLayout::F64(1); parameters.len()];
    let squares = gather(exchange, owners, &layouts, filled.collect()).map_err(error)?;
    let of = |(square, used): (&Values, &bool)| match square {
        Values::F64(x) if *used => x.first().copied(),
        _ => None,
    };
    Ok(squares.iter().zip(used).filter_map(of).sum::<f64>().sqrt())
}

/// As [`clip_grad_norm`](crate::optim::clip_grad_norm) does, for a norm that is known.
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
    /// Whether each rank has but a part of the optimizer's state.
    pub fn have_shards(&self, rest: &Rest) -> bool {
        rest.options.sharded && self.are_many()
    }

    /// The part of an optimizer's state that is this rank's.
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
