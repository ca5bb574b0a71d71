//! Progress of a run: a bar on a terminal, a plain line now and then elsewhere.
//!
//! A training step takes some 30 microseconds, so the bar must cost next to nothing: the clock is
//! not read at every step but after as many steps as lately passed in a twentieth of a second.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar is drawn again after this time: ten times a second.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// Between two looks at the clock as many steps are left out as take about this time.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The shown loss is the mean of the newest fiftieth of the run's losses, and of a hundred at most:
/// older ones would hide where the training is now.
const SHARE: u64 = 50;
const MOST_LOSSES: u64 = 100;

/// Display of a run on the standard error stream.
pub struct Progress {
    total: u64,
    view: View,
    loss: RecentLoss,
    pace: Pace,
    /// The step at which there is next something to look at.
    next: u64,
    /// Steps that an earlier run did.
    before: u64,
    /// Examples learned from since the start, if that is told.
    examples: u64,
    /// Unit of the examples.
    counted: &'static str,
    /// Time that went to measurements of the model.
    paused: Duration,
    /// The newest measure that people want to see, as text.
    measured: String,
}

enum View {
    Hidden,
    Bar(ProgressBar),
    /// A line about every tenth of the run.
    Lines(Box<dyn Write + Send>),
}

impl Progress {
    /// Counts and shows nothing, for `--quiet`.
    pub fn hidden(total: u64) -> Progress {
        Self::with_view(total, View::Hidden)
    }

    /// A bar if standard error is a terminal, and a plain line about every 10% if it is a file or a
    /// pipe.
    pub fn shown(total: u64) -> Progress {
        let view = if io::stderr().is_terminal() {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            View::Bar(ProgressBar::with_draw_target(Some(total), target).with_style(style()))
        } else {
            View::Lines(Box::new(io::stderr()))
        };
        Self::with_view(total, view)
    }

    fn with_view(total: u64, view: View) -> Progress {
        let next = match view {
            View::Hidden => u64::MAX,
            View::Bar(_) => 1,
            View::Lines(_) => tenth_after(0, total),
        };
        let (loss, pace) = (RecentLoss::of(total), Pace::start());
        let (counted, measured) = ("examples", String::new());
        let (before, examples, paused) = (0, 0, Duration::ZERO);
        Progress { total, view, loss, pace, next, before, examples, counted, paused, measured }
    }

    /// Calls the examples by this name: `tokens`.
    pub fn counting(self, counted: &'static str) -> Progress {
        Progress { counted, ..self }
    }

    /// Goes on after this many steps that an earlier run did.
    pub fn from(mut self, done: u64) -> Progress {
        self.before = done;
        if let View::Bar(bar) = &self.view {
            bar.set_position(done);
            bar.reset_eta();
        }
        if let View::Lines(_) = self.view {
            self.next = tenth_after(done, self.total);
        }
        self
    }

    /// Tells how many examples the next step learned from.
    #[inline]
    pub fn examples(&mut self, count: u64) {
        self.examples += count;
    }

    /// Shows this measure beside the loss from now on.
    pub fn measured(&mut self, name: &str, value: f64) {
        self.measured = format!("  {name} {}", crate::report::measure(value));
    }

    /// Tells that no step was taken for so long, while the model was measured.
    pub fn paused(&mut self, time: Duration) {
        self.paused = self.paused.saturating_add(time);
    }

    /// The time that the steps took.
    fn spent(&self) -> Duration {
        self.pace.began.elapsed().saturating_sub(self.paused)
    }

    /// Shows a line of its own.
    pub fn note(&mut self, text: &str) {
        let text = &*crate::output::plain(text);
        match &mut self.view {
            View::Hidden => {}
            View::Bar(bar) => bar.println(text),
            View::Lines(out) => {
                let _ = writeln!(out, "{text}");
            }
        }
    }

    /// Tells that `done` steps are finished, and the loss of the last one. Costs a few nanoseconds,
    /// save for the few steps at which something is drawn.
    #[inline]
    pub fn step(&mut self, done: u64, loss: f64) {
        self.loss.add(loss);
        if done >= self.next {
            self.look(done);
        }
    }

    /// Takes the bar away, so that results can be printed in its place.
    pub fn finish(self) {
        if let View::Bar(bar) = self.view {
            bar.finish_and_clear();
        }
    }

    #[cold]
    fn look(&mut self, done: u64) {
        let spent = self.spent();
        let pace = pace_text(self.examples, self.counted, spent);
        let message = format!("{}{}{pace}", self.loss.text(), self.measured);
        match &mut self.view {
            View::Hidden => {}
            View::Bar(bar) => {
                if self.pace.look(done) {
                    let times = step_and_rest(done, self.before, self.total, spent);
                    bar.set_prefix(times);
                    bar.set_message(message);
                    bar.set_position(done);
                }
                self.next = done.saturating_add(self.pace.stride);
            }
            View::Lines(out) => {
                let line = line(done, self.before, self.total, &message, spent);
                // A log that can no longer be written is no reason to end the run.
                let _ = writeln!(out, "{line}");
                self.next = tenth_after(done, self.total);
            }
        }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{wide_bar} {human_pos}/{human_len} steps  loss {msg}  {prefix}")
        .expect("the template is checked by a test")
}

/// The first step after `done` at which another tenth of `total` is full; never, after the last.
fn tenth_after(done: u64, total: u64) -> u64 {
    (1..=10u128)
        .map(|tenth| (u128::from(total) * tenth).div_ceil(10) as u64)
        .find(|&step| step > done)
        .unwrap_or(u64::MAX)
}

/// The plain line: `step 2000/20000 (10%)  loss 2.4012  30 us a step  1s left`.
fn line(done: u64, before: u64, total: u64, loss: &str, spent: Duration) -> String {
    let percent = done as f64 / total.max(1) as f64 * 100.0;
    let times = step_and_rest(done, before, total, spent);
    format!("step {done}/{total} ({percent:.0}%)  loss {loss}  {times}")
}

/// `30 us a step  1s left`
fn step_and_rest(done: u64, before: u64, total: u64, spent: Duration) -> String {
    let per_second = done.saturating_sub(before) as f64 / spent.as_secs_f64().max(1e-9);
    let left = total.saturating_sub(done) as f64 / per_second;
    format!("{} a step  {} left", step_time(per_second), duration(left))
}

/// `  54000 tokens/s`, if the examples are told.
fn pace_text(examples: u64, counted: &str, spent: Duration) -> String {
    match examples {
        0 => String::new(),
        n => format!("  {} {counted}/s", rate(n as f64 / spent.as_secs_f64().max(1e-9))),
    }
}

/// Time of a step at this many steps a second: `30.2 us`, `163 ms`, `2.5 s`.
fn step_time(per_second: f64) -> String {
    let seconds = 1.0 / per_second;
    let (value, unit) = match seconds {
        s if !s.is_finite() => return "?".to_owned(),
        s if s < 1e-3 => (s * 1e6, "us"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    format!("{} {unit}", rate(value))
}

/// A rate or a time in few digits: `0.25`, `7.3`, `33100`.
fn rate(value: f64) -> String {
    match value {
        r if r < 1.0 => format!("{r:.2}"),
        r if r < 100.0 => format!("{r:.1}"),
        r => format!("{r:.0}"),
    }
}

/// A time in seconds as a person says it: `4s`, `3m 05s`, `2h 10m`.
fn duration(seconds: f64) -> String {
    // `as` saturates, and makes 0 of NaN.
    let s = seconds.round() as u64;
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m {:02}s", s / 60, s % 60),
        _ => format!("{}h {:02}m", s / 3600, s / 60 % 60),
    }
}

/// Mean of the newest losses. Those that are not finite are told but leave the mean alone, which
/// would show nothing else for as long as they are in it.
#[derive(Debug)]
struct RecentLoss {
    /// The newest finite losses; once all places are full, the oldest one is replaced.
    newest: Vec<f64>,
    places: usize,
    next: usize,
    last_is_finite: bool,
}

impl RecentLoss {
    /// For a run of this many steps.
    fn of(steps: u64) -> RecentLoss {
        let places = (steps / SHARE).clamp(1, MOST_LOSSES) as usize;
        RecentLoss { newest: Vec::with_capacity(places), places, next: 0, last_is_finite: false }
    }

    #[inline]
    fn add(&mut self, loss: f64) {
        self.last_is_finite = loss.is_finite();
        if !self.last_is_finite {
            return;
        }
        match self.newest.get_mut(self.next) {
            Some(oldest) => *oldest = loss,
            None => self.newest.push(loss),
        }
        self.next = if self.next + 1 == self.places { 0 } else { self.next + 1 };
    }

    fn value(&self) -> f64 {
        let mean = || self.newest.iter().sum::<f64>() / self.newest.len() as f64;
        if self.last_is_finite { mean() } else { f64::NAN }
    }

    fn text(&self) -> String {
        match self.value() {
            mean if mean.is_nan() => "not finite".to_owned(),
            mean => crate::report::measure(mean),
        }
    }
}

/// Decides how many steps pass between two looks at the clock.
#[derive(Debug)]
struct Pace {
    began: Instant,
    stride: u64,
    last_step: u64,
    last_look: Instant,
    last_draw: Option<Instant>,
    looks: u64,
}

impl Pace {
    fn start() -> Pace {
        let now = Instant::now();
        Pace { began: now, stride: 1, last_step: 0, last_look: now, last_draw: None, looks: 0 }
    }

    /// Reads the clock, sets the next stride, and says whether it is time to draw.
    fn look(&mut self, done: u64) -> bool {
        let now = Instant::now();
        self.looks += 1;
        let steps = done.saturating_sub(self.last_step).max(1) as f64;
        let spent = (now - self.last_look).as_secs_f64().max(1e-9);
        let fitting = (steps * LOOK_EVERY.as_secs_f64() / spent) as u64;
        // Grown at most twofold, so that a few quick steps do not hide the slow ones after them.
        self.stride = fitting.clamp(1, self.stride.saturating_mul(2));
        (self.last_step, self.last_look) = (done, now);
        let due = self.last_draw.is_none_or(|last| now - last >= DRAW_EVERY);
        if due {
            self.last_draw = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines_of(total: u64) -> Vec<String> {
        let out = Shared::default();
        let mut progress = Progress::with_view(total, View::Lines(Box::new(out.clone())));
        for done in 1..=total {
            progress.step(done, 2.5);
        }
        progress.finish();
        let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn hidden_bar(total: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        Progress::with_view(total, View::Bar(bar.with_style(style())))
    }

    #[test]
    fn a_log_gets_ten_lines_at_every_tenth() {
        let lines = lines_of(20_000);
        assert_eq!(lines.len(), 10);
        for (tenth, line) in (1..).zip(&lines) {
            let start = format!("step {}/20000 ({}%)  loss 2.5000  ", tenth * 2_000, tenth * 10);
            assert!(line.starts_with(&start), "{line}");
            assert!(line.contains(" a step  ") && line.ends_with(" left"), "{line}");
        }
    }

    #[test]
    fn a_short_run_gets_a_line_a_step_and_none_twice() {
        assert_eq!(lines_of(1).len(), 1);
        assert_eq!(lines_of(3).len(), 3);
        assert_eq!(lines_of(10).len(), 10);
        let starts: Vec<_> =
            lines_of(11).iter().map(|l| l.split('/').next().unwrap().to_owned()).collect();
        assert_eq!(
            starts,
            ["2", "3", "4", "5", "6", "7", "8", "9", "10", "11"].map(|n| format!("step {n}"))
        );
        assert_eq!(tenth_after(u64::MAX - 1, u64::MAX), u64::MAX);
    }

    #[test]
    fn steps_that_are_told_in_leaps_get_one_line_a_leap() {
        let out = Shared::default();
        let mut progress = Progress::with_view(100, View::Lines(Box::new(out.clone())));
        for done in [35, 36, 99, 100, 100, 101] {
            progress.step(done, 1.0);
        }
        let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        let steps: Vec<_> = text.lines().map(|l| l.split(['/', ' ']).nth(1).unwrap()).collect();
        assert_eq!(steps, ["35", "99", "100"]);
    }

    #[test]
    fn times_and_rates_read_well() {
        let line = |done, ms| line(done, 0, 20_000, "2.4", Duration::from_millis(ms));
        assert_eq!(line(2_000, 100), "step 2000/20000 (10%)  loss 2.4  50.0 us a step  1s left");
        assert_eq!(line(200, 100_000), "step 200/20000 (1%)  loss 2.4  500 ms a step  2h 45m left");
        assert_eq!(line(20_000, 0), "step 20000/20000 (100%)  loss 2.4  0.00 us a step  0s left");
        assert_eq!(
            [duration(185.2), duration(59.6), duration(f64::NAN)],
            ["3m 05s", "1m 00s", "0s"]
        );
        assert_eq!([step_time(0.0), step_time(0.4)], ["?", "2.5 s"]);
        assert_eq!([rate(0.25), rate(7.34), rate(33_100.4)], ["0.25", "7.3", "33100"]);
    }

    #[test]
    fn the_shown_loss_is_the_mean_of_the_newest() {
        // A fiftieth of 150 steps are 3.
        let mut loss = RecentLoss::of(150);
        assert!(loss.value().is_nan());
        for (value, mean) in [(1.0, 1.0), (2.0, 1.5), (6.0, 3.0), (4.0, 4.0), (5.0, 5.0)] {
            loss.add(value);
            assert!((loss.value() - mean).abs() < 1e-12, "{} for {mean}", loss.value());
        }
        loss.add(f64::NAN);
        assert_eq!(loss.text(), "not finite");
        loss.add(3.0);
        assert_eq!(loss.text(), "4.0000");
        // The losses of the beginning leave no trace, however large they were.
        loss.add(1e300);
        (0..3).for_each(|_| loss.add(2.0));
        assert_eq!(loss.value(), 2.0);
        let windows = [1, 99, 400, 20_000, u64::MAX].map(|steps| RecentLoss::of(steps).places);
        assert_eq!(windows, [1, 1, 8, 100, 100]);
    }

    /// Measurements are no steps: neither the time of a step nor the rest of the run has them.
    #[test]
    fn measurements_are_not_in_the_time_of_a_step() {
        let mut progress = hidden_bar(10);
        progress.pace.began -= Duration::from_secs(30);
        assert!(progress.spent() > Duration::from_secs(29));
        progress.paused(Duration::from_secs(30));
        assert!(progress.spent() < Duration::from_secs(5));
        progress.paused(Duration::MAX);
        assert_eq!(progress.spent(), Duration::ZERO);
    }

    /// Drawing and the clock are what costs; a hundred thousand quick steps need few of them.
    #[test]
    fn quick_steps_rarely_look_at_the_clock() {
        let mut progress = hidden_bar(5_000_000);
        let began = Instant::now();
        for done in 1..=5_000_000 {
            progress.step(done, 2.5);
        }
        // Some thirty looks until the stride has doubled to its size, then one in about 50 ms, or
        // a few more after the machine paused.
        let most = 100.0 + 4.0 * began.elapsed().as_secs_f64() / LOOK_EVERY.as_secs_f64();
        assert!((progress.pace.looks as f64) < most, "{} looks", progress.pace.looks);
        progress.finish();
    }

    #[test]
    fn slow_steps_are_each_shown() {
        let mut progress = hidden_bar(4);
        for done in 1..=4 {
            std::thread::sleep(Duration::from_millis(110));
            progress.step(done, 2.5);
            let View::Bar(bar) = &progress.view else { unreachable!("made as a bar") };
            assert_eq!((bar.position(), bar.message().as_str()), (done, "2.5000"));
        }
        progress.finish();
    }

    #[test]
    fn a_hidden_one_counts_and_shows_nothing() {
        let mut progress = Progress::hidden(10);
        assert!(matches!(progress.view, View::Hidden));
        (1..=10).for_each(|done| progress.step(done, 4.0));
        assert_eq!(progress.loss.value(), 4.0);
        progress.finish();
    }
}
