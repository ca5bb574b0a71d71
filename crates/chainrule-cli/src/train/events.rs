//! A listener that writes event files of TensorBoard.

use std::time::{Duration, Instant};

use chainrule::monitor::EventFile;
use chainrule::train::{Event, Listener};

use crate::output;
use crate::run_folder::RunFolder;

/// Events reach the disk at least this often, for a TensorBoard that is open.
const FLUSH_EVERY: Duration = Duration::from_secs(2);

/// Scalars, histograms, texts and the graph of a run, in an event file in its folder; nothing where
/// none is wanted. A file that cannot be written is told once, and the training goes on.
pub struct Events {
    file: Option<EventFile>,
    flushed: Instant,
    has_graph: bool,
}

impl Events {
    /// A new file in the folder of the run, if it is wanted.
    pub fn of(is_wanted: bool, folder: &RunFolder) -> Events {
        let mut events = Events { file: None, flushed: Instant::now(), has_graph: false };
        if is_wanted {
            match EventFile::create(&folder.place()) {
                Ok(file) => events.file = Some(file),
                Err(why) => complain(&why),
            }
        }
        events
    }

    fn write(&mut self, event: &Event<'_>) -> std::io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        match event {
            Event::Step(s) => {
                file.scalar(s.step, "loss/training", s.loss)?;
                file.scalar(s.step, "lr", s.lr)?;
            }
            Event::Evaluated { step, metrics, .. } => {
                for (name, value) in *metrics {
                    let tag = match *name {
                        "val_loss" | "test_loss" => format!("loss/{name}"),
                        name => format!("measures/{name}"),
                    };
                    file.scalar(*step, &tag, *value)?;
                }
            }
            Event::Looked { monitor, .. } => {
                file.looked(monitor)?;
                if !self.has_graph && monitor.has_computation() {
                    self.has_graph = true;
                    file.computation(monitor)?;
                }
            }
            Event::Found { step, symptom } => {
                file.text(
                    *step,
                    &format!("findings/{}", symptom.kind.name()),
                    &symptom.to_string(),
                )?;
            }
            // Markdown would run the lines together.
            Event::Sampled { step, text } => {
                file.text(*step, "sample", &format!("    {}", text.replace('\n', "\n    ")))?;
            }
            Event::Ended { .. } => file.flush()?,
            _ => {}
        }
        if self.flushed.elapsed() >= FLUSH_EVERY {
            file.flush()?;
            self.flushed = Instant::now();
        }
        Ok(())
    }
}

fn complain(why: &std::io::Error) {
    output::complain(&format!("the events cannot be written: {why}; the training goes on without"));
}

impl Listener for Events {
    fn hear(&mut self, event: &Event<'_>) -> chainrule::Result<()> {
        if let Err(why) = self.write(event) {
            complain(&why);
            self.file = None;
        }
        Ok(())
    }
}
