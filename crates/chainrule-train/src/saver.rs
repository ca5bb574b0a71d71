//! Saves checkpoints while the training goes on.

use std::thread::JoinHandle;

use crate::error::{Error, Result};
use crate::io::{Checkpoint, CheckpointFolder};
use crate::nn::StateDict;

/// Writes one checkpoint at a time on a thread of its own: a disk may take as long as many steps.
pub(super) struct Saver {
    folder: CheckpointFolder,
    about: String,
    running: Option<(Save, JoinHandle<Result<()>>)>,
}

/// Kind of a checkpoint.
#[derive(Clone, Copy)]
pub(super) struct Save {
    pub step: u64,
    pub is_best: bool,
}

impl Saver {
    pub fn new(folder: CheckpointFolder, about: String) -> Saver {
        Saver { folder, about, running: None }
    }

    /// Begins to save this state. The one before must have been waited for.
    pub fn start(&mut self, save: Save, state: StateDict) -> Result<()> {
        debug_assert!(self.running.is_none(), "one at a time");
        let bytes = Checkpoint { about: self.about.clone(), state }.to_bytes()?;
        let folder = self.folder.clone();
        let work = move || match save.is_best {
            true => folder.save_best_bytes(&bytes),
            false => folder.save_bytes(&bytes),
        };
        let thread = std::thread::Builder::new().name("checkpoint".into()).spawn(work);
        let failed = |e| Error::argument("Trainer", format!("no thread to save on: {e}"));
        self.running = Some((save, thread.map_err(failed)?));
        Ok(())
    }

    /// The checkpoint that is saved by now, if one was begun.
    pub fn poll(&mut self) -> Result<Option<Save>> {
        match &self.running {
            Some((_, thread)) if thread.is_finished() => self.wait(),
            _ => Ok(None),
        }
    }

    /// Waits for the checkpoint that was begun, if there is one.
    pub fn wait(&mut self) -> Result<Option<Save>> {
        let Some((save, thread)) = self.running.take() else { return Ok(None) };
        let panicked = |_| Error::argument("Trainer", "the thread that saves has ended");
        thread.join().map_err(panicked)??;
        Ok(Some(save))
    }
}

impl Drop for Saver {
    /// A training that ends with an error still finishes the file that it writes.
    fn drop(&mut self) {
        let _ = self.wait();
    }
}
