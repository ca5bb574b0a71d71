//! The page beside a training.

use std::cell::RefCell;

use anyhow::Result;
use chainrule::optim::schedule::Schedule;
use chainrule_studio::{Hub, LiveRun, SteeredSchedule};

use super::branch::{self, Branches, Source};
use crate::args::train::Common;
use crate::interrupt::Interrupt;
use crate::{commands, output};

/// A page that is open to a browser of this machine as long as the process lives.
pub struct Page {
    hub: Hub,
    run: LiveRun,
    branches: RefCell<Branches>,
}

impl Page {
    /// The page that the options ask for.
    pub fn of(
        args: &Common,
        title: &str,
        is_alone: bool,
        interrupt: &Interrupt,
    ) -> Result<Option<Page>> {
        if args.dry_run || args.find_lr {
            return Ok(None);
        }
        let page = match (args.studio, args.steered) {
            (true, _) => Page::open(title)?,
            (false, true) => Page::of_another(title, interrupt)?,
            (false, false) => return Ok(None),
        };
        if is_alone && args.studio {
            page.run.allow_branches();
        }
        Ok(Some(page))
    }

    /// The page of the process that started this one, which sends its orders.
    fn of_another(title: &str, interrupt: &Interrupt) -> Result<Page> {
        let hub = Hub::new();
        let run = hub.begin(title);
        branch::obey(&run, interrupt)?;
        Ok(Page { hub, run, branches: RefCell::default() })
    }

    /// Listens, and says where. Standard output stays for the results.
    fn open(title: &str) -> Result<Page> {
        let (hub, run, url) = commands::studio::beside(title)?;
        output::complain(&format!("the studio is at {url}"));
        Ok(Page { hub, run, branches: RefCell::default() })
    }

    /// The run, as a listener.
    pub fn run(&self) -> LiveRun {
        self.run.clone()
    }

    /// Waits between two steps while the page holds the run; whether the training is to stop for
    /// an order that needs its state.
    pub fn pass(&self, stop: &dyn Fn() -> bool) -> bool {
        self.run.pass(stop);
        self.run.has_branch()
    }

    /// Carries out an order that needs the state, if there is one; whether there was. An order that
    /// fails is told, and the training goes on.
    pub fn branch(&self, of: &Source<'_>) -> bool {
        let Some(order) = self.run.take_branch() else { return false };
        let done = self.branches.borrow_mut().carry_out(&order, of, &self.hub, &self.run);
        if let Err(why) = done {
            let text = format!("{why:#}");
            output::complain(&format!("warning: {text}"));
            self.run.text(of.step, "not done", &text);
        }
        true
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
        self.branches.borrow_mut().wait();
        self.hub.drain();
    }
}
