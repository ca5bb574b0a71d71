//! `chainrule watch`: a run in the terminal, while it goes on or afterwards.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, Result};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::widgets::Widget;

use crate::args::Watch;
use crate::output;
use crate::run_log::RunLog;
use crate::view::{RunView, text};

/// Time between two readings of the files.
const EVERY: Duration = Duration::from_millis(500);

/// The size of the picture where there is no terminal.
const SIZE: (u16, u16) = (100, 40);

const KEYS: &str = "q quit   l logarithmic   arrows scroll the layers";

/// Runs the command.
pub fn run(args: &Watch) -> Result<()> {
    let mut log = RunLog::open(&args.run)?;
    if args.once || !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let (width, height) = SIZE;
        let view = RunView { run: &log, is_log: args.log, skip: 0, keys: "" };
        return output::line(&text(width, height, |area, buffer| view.render(area, buffer)));
    }
    let mut terminal = ratatui::try_init().context("cannot draw on this terminal")?;
    let done = watch(&mut terminal, &mut log, args.log);
    ratatui::restore();
    done
}

fn watch(terminal: &mut DefaultTerminal, log: &mut RunLog, is_log: bool) -> Result<()> {
    let (mut is_log, mut skip) = (is_log, 0usize);
    loop {
        let view = RunView { run: log, is_log, skip, keys: KEYS };
        terminal.draw(|frame| frame.render_widget(view, frame.area()))?;
        if !event::poll(EVERY)? {
            while log.refresh()? {}
            continue;
        }
        let Event::Key(key) = event::read()? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        let last = log.layers.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
            KeyCode::Char('l') => is_log = !is_log,
            KeyCode::Down => skip = (skip + 1).min(last),
            KeyCode::Up => skip = skip.saturating_sub(1),
            _ => {}
        }
    }
}
