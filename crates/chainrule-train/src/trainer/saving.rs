//! Checkpoints: state of this rank, and of the others one parameter at a time, so that no rank
//! holds all of it.

use chainrule_exchange::Exchange;

use super::average::on_first;
use super::engine::Engine;
use super::ranks::lock;
use super::{Listener, Rest};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::{self, CheckpointEntry};
use crate::nn::StateDict;
use crate::optim::Optimizer;
use crate::saver::{Save, Saver};
use crate::tensor::Tensor;
use crate::{Event, Task};

impl Rest {
    /// Starts to save a checkpoint, if there is a folder.
    pub(super) fn save(
        &mut self,
        task: &dyn Task,
        engine: &mut Engine<'_>,
        listener: &mut dyn Listener,
        is_best: bool,
    ) -> Result<()> {
        self.saved(listener, Saver::wait)?;
        let step = self.place.step;
        let Some(mut saver) = self.saver.take() else { return self.gather_shards(task, engine) };
        let saved = (|| {
            engine.fetch()?;
            listener.hear(&Event::Saving { step })?;
            let state = self.state_dict(task, engine.optimizer());
            let mut shared = self.shared_out(task, engine.optimizer())?;
            let received = match &mut shared {
                Some(shared) => shared.tables()?,
                None => Vec::new(),
            };
            let own = state.iter().map(|(name, t)| CheckpointEntry::of(name, t));
            let entries = own.chain(received.iter().map(|(_, _, entry)| entry.clone()));
            saver.start(Save { step, is_best }, entries.collect())?;
            state.values().try_for_each(|t| saver.give(t))?;
            drop(state);
            if let Some(shared) = &mut shared {
                shared.pieces(&received, |_, bytes| {
                    saver.give_received(bytes.to_vec());
                    Ok(())
                })?;
            }
            Ok(())
        })();
        saver.end();
        self.saver = Some(saver);
        saved
    }

    /// Gathers the sharded optimizer state on rank 0, if no checkpoint has it.
    pub(super) fn gather_shards(&mut self, task: &dyn Task, engine: &mut Engine<'_>) -> Result<()> {
        let optimizer = engine.optimizer();
        let Some(mut shared) = self.shared_out(task, optimizer)? else { return Ok(()) };
        let received = shared.tables()?;
        let mut others = StateDict::new();
        shared.pieces(&received, |entry, bytes| {
            if let Some(name) = entry.name.strip_prefix("optimizer.") {
                let tensor = Tensor::try_from_bytes(bytes, &entry.shape[..], entry.dtype)?;
                others.insert(name.to_owned(), tensor);
            }
            Ok(())
        })?;
        let is_first = shared.exchange.rank() == 0;
        drop(shared);
        if let Some(ranks) = self.ranks.as_mut().filter(|_| is_first) {
            others.extend(ranks.own_state(task, optimizer, optimizer.state_dict())?);
            ranks.whole = Some(others);
        }
        Ok(())
    }

    /// Gathers the average of weights on rank 0, for reads after the run.
    pub(super) fn gather_average(&mut self) -> Result<()> {
        match (&mut self.ema, &self.ranks) {
            (Some(ema), Some(ranks)) => ema.gather_on_first(ranks),
            _ => Ok(()),
        }
    }

    /// This rank's shard, if state is sharded.
    fn shared_out(&self, task: &dyn Task, optimizer: &dyn Optimizer) -> Result<Option<Shared<'_>>> {
        let Some(ranks) = self.ranks.as_ref().filter(|ranks| ranks.have_shards(self)) else {
            return Ok(None);
        };
        let count = optimizer.parameters().len();
        let averages = self.ema.as_ref().map_or(0, |ema| ema.count());
        let mut groups = vec![StateDict::new(); count + averages];
        for (name, t) in ranks.own_state(task, optimizer, optimizer.state_dict())? {
            let number = name.strip_prefix("state.").and_then(|name| name.split_once('.'));
            let number = number.and_then(|(number, _)| number.parse::<usize>().ok());
            if let Some(group) = number.filter(|&n| n < count).and_then(|n| groups.get_mut(n)) {
                group.insert(format!("optimizer.{name}"), t);
            }
        }
        for (i, average) in self.ema.iter().flat_map(|ema| ema.own_averages()) {
            groups[count + i].insert(format!("ema.average.{i}"), average.clone());
        }
        Ok(Some(Shared { exchange: lock(&ranks.exchange), groups }))
    }
}

/// This rank's sharded state, grouped by parameter.
struct Shared<'r> {
    exchange: std::sync::MutexGuard<'r, Box<dyn Exchange>>,
    groups: Vec<StateDict>,
}

/// A tensor of another rank: its group and rank.
type Received = (usize, usize, CheckpointEntry);

impl Shared<'_> {
    /// Tensors of all other ranks, on rank 0, in the order of arrival.
    fn tables(&mut self) -> Result<Vec<Received>> {
        let is_first = self.exchange.rank() == 0;
        let mut table = StateDict::new();
        for (group, tensors) in self.groups.iter().enumerate().filter(|_| !is_first) {
            for (name, t) in tensors {
                let dtype = DType::ALL.iter().position(|&dtype| dtype == t.dtype());
                let mut about = vec![group as i64, dtype.unwrap_or_default() as i64];
                about.extend(t.shape().iter().map(|&n| n as i64));
                table.insert(name.clone(), Tensor::try_from_slice(&about, [about.len()])?);
            }
        }
        let bytes = match is_first {
            true => Vec::new(),
            false => io::serialize(&table, &Default::default())?,
        };
        let tables = on_first(&mut **self.exchange, bytes)?;
        let mut received = Vec::new();
        for (peer, bytes) in tables.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
            for (name, about) in io::parse(bytes)? {
                let entry = entry(name, &about.try_to_vec::<i64>()?);
                let (group, entry) = entry.ok_or_else(|| other_state(peer))?;
                received.push((group, peer, entry));
            }
        }
        received.sort_by(|(g, p, a), (h, q, b)| (g, p, &a.name).cmp(&(h, q, &b.name)));
        Ok(received)
    }

    /// Sends this rank's tensors to rank 0, group by group; there `take` receives those of the
    /// others.
    fn pieces(
        &mut self,
        received: &[Received],
        mut take: impl FnMut(&CheckpointEntry, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let is_first = self.exchange.rank() == 0;
        let mut left = received;
        for (number, group) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            let mut own = Vec::new();
            for t in group.values().filter(|_| !is_first) {
                own.extend(t.try_to_bytes()?);
            }
            drop(group);
            let mut parts = on_first(&mut **self.exchange, own)?;
            while let Some(((of, peer, entry), rest)) = left.split_first()
                && *of == number
            {
                let part = parts.get_mut(*peer).ok_or_else(|| other_state(*peer))?;
                if part.len() < entry.bytes() {
                    return Err(other_state(*peer));
                }
                let more = part.split_off(entry.bytes());
                take(entry, &std::mem::replace(part, more))?;
                left = rest;
            }
            if let Some(peer) = parts.iter().position(|part| !part.is_empty()) {
                return Err(other_state(peer));
            }
        }
        match left.first() {
            Some((_, peer, _)) => Err(other_state(*peer)),
            None => Ok(()),
        }
    }
}

/// A table row: a tensor's group, and its place in a file.
fn entry(name: String, about: &[i64]) -> Option<(usize, CheckpointEntry)> {
    let (&[group, dtype], shape) = about.split_first_chunk()?;
    let dtype = *DType::ALL.get(usize::try_from(dtype).ok()?)?;
    let shape = shape.iter().map(|&n| usize::try_from(n).ok()).collect::<Option<_>>()?;
    Some((usize::try_from(group).ok()?, CheckpointEntry { name, dtype, shape }))
}

fn other_state(peer: usize) -> Error {
    let why = format!("rank {peer} has another state than it told; do all ranks run one program?");
    Error::argument("exchange", why)
}
