//! Endless batches, in epochs or drawn at random, with a position that can be saved.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use super::dataset::{Batch, Dataset, RawBatch};
use crate::error::{Error, Result, raise};
use crate::nn::StateDict;
use crate::rng::{Generator, GeneratorState};
use crate::tensor::Tensor;

/// An endless source of batches.
pub trait Batches {
    /// The next batch.
    fn next_batch(&mut self) -> Result<Batch>;

    /// Batches of a step's `of` whose positions among them are in `own`, in order. The source moves
    /// past all of them.
    ///
    /// Ranks share the batches of a step this way; the sources of this library load only their own.
    fn next_of(&mut self, of: usize, own: Range<usize>) -> Result<Vec<Batch>> {
        let mut batches = Vec::new();
        for i in 0..of {
            let batch = self.next_batch()?;
            if own.contains(&i) {
                batches.push(batch);
            }
        }
        Ok(batches)
    }

    /// Batches per epoch, if there are epochs.
    fn per_epoch(&self) -> Option<u64> {
        None
    }

    /// The position, on which all further batches depend.
    fn state_dict(&self) -> StateDict;

    /// Moves to a position that [`Batches::state_dict`] gave: the same batches follow.
    fn load_state_dict(&mut self, state: &StateDict) -> Result<()>;
}

/// Options of a [`DataLoader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoaderOptions {
    /// Batch size.
    pub batch: usize,
    /// Seed of the shuffle, which differs in each epoch; `None` keeps the order of the dataset.
    pub shuffle: Option<u64>,
    /// Drops the last batch of an epoch if it is not full.
    pub drop_last: bool,
    /// Batches prefetched by a background thread; 0 loads each when it is asked for.
    pub prefetch: usize,
}

impl Default for LoaderOptions {
    /// Batch size 32, no shuffle, the last batch kept, two batches prefetched.
    fn default() -> Self {
        LoaderOptions { batch: 32, shuffle: None, drop_last: false, prefetch: 2 }
    }
}

/// Batches of a dataset, epoch after epoch.
///
/// The order of an epoch depends only on the seed and the epoch's number. The position can be saved
/// in the middle of an epoch; prefetched batches do not count.
///
/// ```
/// use std::sync::Arc;
/// use chainrule::data::{Batches, DataLoader, LoaderOptions, TensorDataset};
/// use chainrule::Tensor;
/// let set = TensorDataset::try_new(&Tensor::arange(0, 5), &Tensor::arange(0, 5))?;
/// let options = LoaderOptions { batch: 2, shuffle: Some(7), ..LoaderOptions::default() };
/// let mut loader = DataLoader::try_new(Arc::new(set), options)?;
/// assert_eq!(loader.per_epoch(), Some(3));
/// let place = { loader.next_batch()?; loader.state_dict() };
/// let second = loader.next_batch()?.x.to_vec::<i64>();
/// loader.load_state_dict(&place)?;
/// assert_eq!(loader.next_batch()?.x.to_vec::<i64>(), second);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub struct DataLoader {
    dataset: Arc<dyn Dataset>,
    options: LoaderOptions,
    /// Position after the batch that was returned last.
    epoch: u64,
    at: usize,
    group: BatchGroup,
    source: Source,
}

/// Batches to load: of each `of` in turn those in `own`.
#[derive(Clone, PartialEq)]
struct BatchGroup {
    of: usize,
    own: Range<usize>,
}

enum Source {
    /// Loaded on demand.
    Here(Cursor, RawBatch),
    Ahead(Worker),
    /// Not started, or moved.
    Idle,
}

impl DataLoader {
    /// Starts with epoch 0.
    #[track_caller]
    pub fn new(dataset: Arc<dyn Dataset>, options: LoaderOptions) -> DataLoader {
        DataLoader::try_new(dataset, options).unwrap_or_else(|e| raise(e))
    }

    /// As [`DataLoader::new`], but returns the error: for an empty dataset, a batch size of 0, and
    /// a dataset smaller than a batch if the last is dropped.
    pub fn try_new(dataset: Arc<dyn Dataset>, options: LoaderOptions) -> Result<DataLoader> {
        let fail = |why: String| Err(Error::argument("DataLoader", why));
        if options.batch == 0 || dataset.is_empty() {
            return fail("a batch and the set need one example at least".into());
        }
        if options.drop_last && dataset.len() < options.batch {
            return fail(format!(
                "{} examples do not fill a batch of {}; make the batch smaller",
                dataset.len(),
                options.batch
            ));
        }
        let group = BatchGroup { of: 1, own: 0..1 };
        Ok(DataLoader { dataset, options, epoch: 0, at: 0, group, source: Source::Idle })
    }

    /// Epoch of the next batch, from 0.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    fn batches(&self) -> usize {
        let (n, batch) = (self.dataset.len(), self.options.batch);
        if self.options.drop_last { n / batch } else { n.div_ceil(batch) }
    }
}

impl Batches for DataLoader {
    fn next_batch(&mut self) -> Result<Batch> {
        let batch = self.next_of(1, 0..1)?.pop();
        batch.ok_or_else(|| Error::argument("DataLoader", "no batch was made"))
    }

    fn next_of(&mut self, of: usize, own: Range<usize>) -> Result<Vec<Batch>> {
        let group = BatchGroup { of, own };
        if group != self.group {
            (self.group, self.source) = (group, Source::Idle);
        }
        if matches!(self.source, Source::Idle) {
            let cursor = Cursor::new(self.dataset.len(), self.options, self.epoch, self.at);
            // A thread with no batch to load would never wait.
            let makes_some = (0..of).any(|i| self.group.own.contains(&i));
            self.source = match self.options.prefetch {
                ahead if ahead > 0 && makes_some => {
                    let group = self.group.clone();
                    Source::Ahead(Worker::start(self.dataset.clone(), cursor, group, ahead)?)
                }
                _ => Source::Here(cursor, RawBatch::default()),
            };
        }
        let mut batches = Vec::new();
        for i in 0..of {
            let is_own = self.group.own.contains(&i);
            match &mut self.source {
                Source::Here(cursor, raw) => {
                    let rows = cursor.next_rows()?;
                    if is_own {
                        self.dataset.fill(rows, raw)?;
                        batches.push(raw.batch()?);
                    }
                }
                Source::Ahead(worker) if is_own => batches.push(worker.next_batch()?),
                Source::Ahead(_) => {}
                Source::Idle => unreachable!("begun above"),
            }
            self.at += 1;
            if self.at == self.batches() {
                (self.epoch, self.at) = (self.epoch + 1, 0);
            }
        }
        Ok(batches)
    }

    fn per_epoch(&self) -> Option<u64> {
        Some(self.batches() as u64)
    }

    fn state_dict(&self) -> StateDict {
        let LoaderOptions { batch, shuffle, drop_last, .. } = self.options;
        let numbers = [
            ("epoch", self.epoch as i64),
            ("at", self.at as i64),
            ("examples", self.dataset.len() as i64),
            ("batch", batch as i64),
            ("shuffle", shuffle.map_or(-1, |seed| seed as i64)),
            ("drop_last", i64::from(drop_last)),
        ];
        numbers.into_iter().map(|(name, n)| (name.to_string(), Tensor::scalar(n))).collect()
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        for (name, own) in self.state_dict() {
            let (own, given) = (own.to_vec::<i64>()[0], number(state, &name)?);
            if name != "epoch" && name != "at" && own != given {
                let why = format!("its place is one with {name} {given}, here {name} is {own}");
                return Err(Error::argument("DataLoader", why));
            }
        }
        let (epoch, at) = (number(state, "epoch")?, number(state, "at")?);
        if epoch < 0 || !(0..self.batches() as i64).contains(&at) {
            let why = format!("there is no batch {at} of epoch {epoch}");
            return Err(Error::argument("DataLoader", why));
        }
        (self.epoch, self.at, self.source) = (epoch as u64, at as usize, Source::Idle);
        Ok(())
    }
}

/// One integer of a state.
fn number(state: &StateDict, name: &str) -> Result<i64> {
    match state.get(name).map(|t| (t.numel(), t.try_to_vec::<i64>())) {
        Some((1, Ok(numbers))) => Ok(numbers[0]),
        _ => Err(Error::argument("DataLoader", format!("the state lacks the number `{name}`"))),
    }
}

/// A permutation of the examples, and the position in it.
struct Cursor {
    options: LoaderOptions,
    epoch: u64,
    at: usize,
    order: Vec<usize>,
    /// Epoch of the permutation.
    ordered: Option<u64>,
}

impl Cursor {
    fn new(len: usize, options: LoaderOptions, epoch: u64, at: usize) -> Cursor {
        Cursor { options, epoch, at, order: (0..len).collect(), ordered: None }
    }

    fn next_rows(&mut self) -> Result<&[usize]> {
        let LoaderOptions { batch, shuffle, drop_last, .. } = self.options;
        if let (Some(seed), true) = (shuffle, self.ordered != Some(self.epoch)) {
            // A generator for each epoch, so the order does not depend on the starting epoch.
            let seed = seed ^ self.epoch.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let order = Generator::manual_seed(seed).randperm(self.order.len());
            self.order.iter_mut().zip(order).for_each(|(to, row)| *to = row as usize);
            self.ordered = Some(self.epoch);
        }
        let (epoch_len, start) = (self.order.len(), self.at * batch);
        let end = (start + batch).min(epoch_len);
        self.at += 1;
        let left = epoch_len - end;
        if left == 0 || (drop_last && left < batch) {
            (self.epoch, self.at) = (self.epoch + 1, 0);
        }
        Ok(&self.order[start..end])
    }
}

/// A prefetching thread. The caller makes the tensors, since their memory returns to its pool.
struct Worker {
    full: Option<Receiver<Result<RawBatch>>>,
    used: Sender<RawBatch>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(
        dataset: Arc<dyn Dataset>,
        cursor: Cursor,
        group: BatchGroup,
        ahead: usize,
    ) -> Result<Worker> {
        let (full_in, full) = sync_channel(ahead);
        let (used, used_out) = channel();
        let work = move || make_ahead(&*dataset, cursor, &group, &full_in, &used_out);
        let thread = std::thread::Builder::new().name("batches".into()).spawn(work);
        let thread = thread
            .map_err(|e| Error::argument("DataLoader", format!("no thread for batches: {e}")))?;
        Ok(Worker { full: Some(full), used, thread: Some(thread) })
    }

    fn next_batch(&mut self) -> Result<Batch> {
        let full = self.full.as_ref().expect("there until it is dropped");
        let ended = |_| Error::argument("DataLoader", "the thread that makes batches has ended");
        let raw = full.recv().map_err(ended)??;
        let batch = raw.batch()?;
        // To be filled again; if the thread has ended, the next call reports it.
        let _ = self.used.send(raw);
        Ok(batch)
    }
}

/// Until the receiver is gone.
fn make_ahead(
    dataset: &dyn Dataset,
    mut cursor: Cursor,
    group: &BatchGroup,
    full: &SyncSender<Result<RawBatch>>,
    used: &Receiver<RawBatch>,
) {
    for i in (0..group.of.max(1)).cycle() {
        if !group.own.contains(&i) {
            // Skipped by index; nothing of it is loaded.
            if let Err(e) = cursor.next_rows() {
                let _ = full.send(Err(e));
                return;
            }
            continue;
        }
        let mut raw = used.try_recv().unwrap_or_default();
        let made = cursor.next_rows().and_then(|rows| dataset.fill(rows, &mut raw));
        if full.send(made.map(|()| raw)).is_err() {
            return;
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Without a receiver the thread's next batch is its last.
        self.full = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Batches sampled uniformly with replacement, as the lectures on names do it.
pub struct RandomBatches {
    dataset: Arc<dyn Dataset>,
    generator: Generator,
    picked: Vec<i64>,
    rows: Vec<usize>,
    raw: RawBatch,
}

impl RandomBatches {
    /// Batches of `batch` examples by `randint` of the generator.
    #[track_caller]
    pub fn new(dataset: Arc<dyn Dataset>, batch: usize, generator: Generator) -> RandomBatches {
        RandomBatches::try_new(dataset, batch, generator).unwrap_or_else(|e| raise(e))
    }

    /// As [`RandomBatches::new`], but returns the error: for an empty dataset or batch.
    pub fn try_new(
        dataset: Arc<dyn Dataset>,
        batch: usize,
        generator: Generator,
    ) -> Result<RandomBatches> {
        if dataset.is_empty() || batch == 0 {
            let why = "a batch and the set need one example at least";
            return Err(Error::argument("RandomBatches", why));
        }
        let (picked, rows) = (vec![0; batch], Vec::new());
        Ok(RandomBatches { dataset, generator, picked, rows, raw: RawBatch::default() })
    }

    /// Draws the indices of the next batch.
    fn pick(&mut self) -> Result<()> {
        Ok(self.generator.fill_randint(0, self.dataset.len() as i64, &mut self.picked)?)
    }

    /// The batch of the indices drawn last.
    fn picked(&mut self) -> Result<Batch> {
        self.rows.clear();
        self.rows.extend(self.picked.iter().map(|&row| row as usize));
        self.dataset.fill(&self.rows, &mut self.raw)?;
        self.raw.batch()
    }
}

impl Batches for RandomBatches {
    fn next_batch(&mut self) -> Result<Batch> {
        self.pick()?;
        self.picked()
    }

    fn next_of(&mut self, of: usize, own: Range<usize>) -> Result<Vec<Batch>> {
        let mut batches = Vec::new();
        for i in 0..of {
            self.pick()?;
            if own.contains(&i) {
                batches.push(self.picked()?);
            }
        }
        Ok(batches)
    }

    /// Batches after which each example was drawn once on average.
    fn per_epoch(&self) -> Option<u64> {
        Some(self.dataset.len().div_ceil(self.picked.len()) as u64)
    }

    fn state_dict(&self) -> StateDict {
        let state = generator_tensor(&self.generator.state());
        StateDict::from([("generator".to_string(), state)])
    }

    fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let state = state.get("generator").ok_or_else(|| {
            Error::argument(
                "RandomBatches",
                "the state lacks `generator`; was it saved by another source?",
            )
        })?;
        self.generator.set_state(&generator_state(state)?);
        Ok(())
    }
}

/// State of a generator as a tensor of integers.
#[doc(hidden)]
pub fn generator_tensor(state: &GeneratorState) -> Tensor {
    let bytes = state.to_bytes();
    let (words, _) = bytes.as_chunks::<8>();
    let words: Vec<i64> = words.iter().map(|&w| i64::from_le_bytes(w)).collect();
    Tensor::try_from_slice(&words, [words.len()]).expect("a few hundred numbers")
}

/// Generator state in a tensor of [`generator_tensor`].
#[doc(hidden)]
pub fn generator_state(t: &Tensor) -> Result<GeneratorState> {
    let words = t.try_to_vec::<i64>()?;
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    Ok(GeneratorState::from_bytes(&bytes)?)
}

#[cfg(test)]
mod tests;
