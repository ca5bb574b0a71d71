//! The page beside a training.

use anyhow::Result;
use chainrule::optim::schedule::Schedule;
use chainrule_studio::{Hub, LiveRun, SteeredSchedule};

use crate::{commands, output};

/// A page that is open to a browser of this machine as long as the process lives.
pub struct Page {
    hub: Hub,
    run: LiveRun,
}

impl Page {
    /// Listens, and says where. Standard output stays for the results.
    pub fn open(title: &str) -> Result<Page> {
        let (hub, run, url) = commands::studio::beside(title)?;
        output::complain(&format!("the studio is at {url}"));
        Ok(Page { hub, run })
    }

    /// The run, as a listener.
    pub fn run(&self) -> LiveRun {
        self.run.clone()
    }

    /// Waits between two steps while the page holds the run.
    pub fn pass(&self, stop: &dyn Fn() -> bool) {
        self.run.pass(stop);
    }

    /// The rates of a schedule, until the page chooses another one.
    pub fn steered(page: Option<&Page>, schedule: Box<dyn Schedule>) -> Box<dyn Schedule> {
        match page {
            Some(page) => Box::new(SteeredSchedule::new(&page.run, schedule)),
            None => schedule,
        }
    }

    /// Shows the texts of the results, before the process ends.
    pub fn report(&self, steps: u64, lines: &[String]) {
        if !lines.is_empty() {
            self.run.text(steps, "results", &lines.join("\n"));
        }
        self.hub.drain();
    }
}
