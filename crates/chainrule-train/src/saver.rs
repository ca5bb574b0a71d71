//! Background saving of checkpoints.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::error::{Error, Result};
use crate::io::{CheckpointEntry, CheckpointFolder};
use crate::tensor::Tensor;

/// Limit on buffered bytes of other ranks: more would fill the memory of the writing rank, and less
/// would make all ranks wait for a slow disk.
const WAITING: usize = 64 << 20;

/// Writes one checkpoint at a time on a background thread, since a disk may take as long as many
/// steps.
pub(super) struct Saver {
    folder: CheckpointFolder,
    about: String,
    /// Text that differs from checkpoint to checkpoint.
    notes: Arc<Mutex<String>>,
    running: Option<(Save, JoinHandle<Result<()>>)>,
    pieces: Arc<Pieces>,
}

/// Kind of a checkpoint.
#[derive(Clone, Copy)]
pub(super) struct Save {
    pub step: u64,
    pub is_best: bool,
}

impl Saver {
    pub fn new(folder: CheckpointFolder, about: String) -> Saver {
        Saver { folder, about, notes: Arc::default(), running: None, pieces: Arc::default() }
    }

    pub fn with_notes(mut self, notes: Arc<Mutex<String>>) -> Saver {
        self.notes = notes;
        self
    }

    /// Starts to save these tensors, whose bytes follow by [`Saver::give`] in order, up to
    /// [`Saver::end`]. The previous checkpoint must have been waited for.
    pub fn start(&mut self, save: Save, entries: Vec<CheckpointEntry>) -> Result<()> {
        debug_assert!(self.running.is_none(), "one at a time");
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let (folder, about) = (self.folder.clone(), format!("{}{notes}", self.about));
        drop(notes);
        let pieces = Arc::new(Pieces::default());
        self.pieces = pieces.clone();
        let work = move || {
            let pieces = Taker(pieces);
            let mut next = || pieces.0.next();
            folder.save_pieces(&about, &entries, save.is_best, &mut next)
        };
        let thread = std::thread::Builder::new().name("checkpoint".into()).spawn(work);
        let failed = |e| Error::argument("Trainer", format!("no thread to save on: {e}"));
        self.running = Some((save, thread.map_err(failed)?));
        Ok(())
    }

    /// Gives a tensor of this rank, with its current bytes.
    pub fn give(&self, tensor: &Tensor) -> Result<()> {
        self.pieces.put(tensor.try_to_bytes()?);
        Ok(())
    }

    /// Gives the bytes of a tensor of another rank, once there is room.
    pub fn give_received(&self, bytes: Vec<u8>) {
        self.pieces.wait_for_room(bytes.len());
        self.pieces.put(bytes);
    }

    /// Marks the end of the tensors.
    pub fn end(&self) {
        self.pieces.end();
    }

    /// The checkpoint that has finished by now, if one was started.
    pub fn poll(&mut self) -> Result<Option<Save>> {
        match &self.running {
            Some((_, thread)) if thread.is_finished() => self.wait(),
            _ => Ok(None),
        }
    }

    /// Waits for the checkpoint in progress, if there is one.
    pub fn wait(&mut self) -> Result<Option<Save>> {
        self.end();
        let Some((save, thread)) = self.running.take() else { return Ok(None) };
        let panicked = |_| Error::argument("Trainer", "the thread that saves has ended");
        thread.join().map_err(panicked)??;
        Ok(Some(save))
    }
}

impl Drop for Saver {
    /// A run that ends with an error still finishes its file.
    fn drop(&mut self) {
        let _ = self.wait();
    }
}

/// A queue of tensor bytes on their way to disk.
#[derive(Default)]
struct Pieces {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    pieces: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether the sender is done.
    is_complete: bool,
    /// Whether the receiver is gone.
    is_left: bool,
}

impl Pieces {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, piece: Vec<u8>) {
        let mut queue = self.lock();
        if !queue.is_left {
            queue.bytes += piece.len();
            queue.pieces.push_back(piece);
        }
        self.changed.notify_all();
    }

    fn wait_for_room(&self, bytes: usize) {
        let is_full = |queue: &mut Queue| {
            !queue.is_left && queue.bytes > 0 && queue.bytes.saturating_add(bytes) > WAITING
        };
        drop(self.changed.wait_while(self.lock(), is_full));
    }

    fn end(&self) {
        self.lock().is_complete = true;
        self.changed.notify_all();
    }

    fn next(&self) -> io::Result<Vec<u8>> {
        let is_empty = |queue: &mut Queue| queue.pieces.is_empty() && !queue.is_complete;
        let waited = self.changed.wait_while(self.lock(), is_empty);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        let piece = queue.pieces.pop_front();
        let piece =
            piece.ok_or_else(|| io::Error::other("the training ended while it was saved"))?;
        queue.bytes -= piece.len();
        self.changed.notify_all();
        Ok(piece)
    }
}

/// Receiving end: once it is gone, senders no longer wait for room.
struct Taker(Arc<Pieces>);

impl Drop for Taker {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.is_left = true;
        queue.pieces.clear();
        queue.bytes = 0;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Kept;

    fn saver(name: &str) -> Saver {
        let path =
            std::env::temp_dir().join(format!("chainrule-saver-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Saver::new(CheckpointFolder::new(path), "a test".into())
    }

    fn entries(tensors: &[(&str, Tensor)]) -> Vec<CheckpointEntry> {
        tensors.iter().map(|(name, t)| CheckpointEntry::of(name, t)).collect()
    }

    /// Tensors in arbitrary order of names, given during the write; written a second time for the
    /// best.
    #[test]
    fn pieces_are_a_checkpoint() {
        let mut saver = saver("pieces");
        let tensors = [
            ("z", Tensor::from([1.5f32, -0.0])),
            ("a", Tensor::scalar(7i64)),
            ("none", Tensor::from([0.0f64; 0])),
        ];
        for (step, is_best) in [(1, true), (2, false)] {
            saver.start(Save { step, is_best }, entries(&tensors)).unwrap();
            saver.give(&tensors[0].1).unwrap();
            saver.give_received(tensors[1].1.try_to_bytes().unwrap());
            assert!(saver.poll().unwrap().is_none(), "one is missing");
            saver.give(&tensors[2].1).unwrap();
            saver.end();
            assert_eq!(saver.wait().unwrap().unwrap().step, step);
        }
        for which in [Kept::Last, Kept::Earlier, Kept::Best] {
            let read = saver.folder.load(which).unwrap();
            assert_eq!((read.about.as_str(), read.state.len()), ("a test", 3));
            assert_eq!(read.state["z"].to_vec::<f32>()[1].to_bits(), (-0.0f32).to_bits());
            assert_eq!(read.state["a"].to_vec::<i64>(), [7]);
        }
        let folder = saver.folder.file(Kept::Last).parent().unwrap().to_owned();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// A piece from another rank waits for the disk, and continues once the writer is gone.
    #[test]
    fn a_slow_disk_holds_up_no_more_than_fits() {
        let pieces = Arc::new(Pieces::default());
        pieces.put(vec![0; WAITING]);
        let other = pieces.clone();
        let waiting = std::thread::spawn(move || {
            other.wait_for_room(1);
            other.put(vec![1]);
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!waiting.is_finished());
        assert_eq!(pieces.next().unwrap().len(), WAITING);
        waiting.join().unwrap();
        assert_eq!(pieces.next().unwrap(), [1]);
        pieces.put(vec![0; WAITING]);
        let other = pieces.clone();
        let waiting = std::thread::spawn(move || other.wait_for_room(1));
        drop(Taker(pieces.clone()));
        waiting.join().unwrap();
    }

    /// A run that ends midway leaves the old file unchanged.
    #[test]
    fn half_a_checkpoint_is_none() {
        let mut saver = saver("half");
        let tensors = [("a", Tensor::scalar(1.0f32)), ("b", Tensor::scalar(2.0f32))];
        saver.start(Save { step: 1, is_best: false }, entries(&tensors)).unwrap();
        tensors.iter().for_each(|(_, t)| saver.give(t).unwrap());
        saver.wait().unwrap();
        saver.start(Save { step: 2, is_best: false }, entries(&tensors)).unwrap();
        saver.give(&Tensor::scalar(5.0f32)).unwrap();
        assert!(saver.wait().is_err_and(|e| e.to_string().contains("the training ended")));
        let read = saver.folder.load(Kept::Last).unwrap();
        assert_eq!(read.state["a"].to_vec::<f32>(), [1.0]);
        // A piece of the wrong length gives no file, either.
        saver.start(Save { step: 2, is_best: false }, entries(&tensors)).unwrap();
        saver.give_received(vec![0; 5]);
        assert!(saver.wait().is_err_and(|e| e.to_string().contains("`a` has 5 bytes")));
        std::fs::remove_dir_all(saver.folder.file(Kept::Last).parent().unwrap()).unwrap();
    }
}
