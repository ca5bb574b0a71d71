//! Ctrl-C: the first one ends the run in good order, the second one at once.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

/// Exit status of a program that Ctrl-C ended, as shells report it: 128 + 2, the number of SIGINT.
pub const EXIT_STATUS: i32 = 130;

/// Tells whether the user has asked the run to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens from now on for Ctrl-C, and on Unix for SIGTERM and SIGHUP as well.
    ///
    /// The first signal only makes [`Interrupt::asked`] true. A second one ends the process with
    /// status 130 at once, whatever it is doing.
    ///
    /// # Errors
    /// A process can listen only once; and the system may refuse.
    pub fn listen() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        let asked = Arc::clone(&interrupt.asked);
        ctrlc::set_handler(move || {
            if asked.swap(true, Ordering::Relaxed) {
                std::process::exit(EXIT_STATUS);
            }
            // One rank of several speaks.
            if crate::output::is_silent() {
                return;
            }
            // A closed terminal is no reason to fail here, as eprintln would.
            let _ = writeln!(
                std::io::stderr(),
                "\nstopping after this step and saving; press Ctrl-C again to stop at once"
            );
        })
        .context("cannot listen for Ctrl-C")?;
        Ok(interrupt)
    }

    /// Has the run stop, as the first Ctrl-C does.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the run is to stop. One load of a flag: cheap enough to ask at every step.
    #[inline]
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, ChildStdout, Command, Stdio};
    use std::time::Duration;

    /// Set for the copy of this test program that plays the run.
    const PLAYS_THE_RUN: &str = "CHAINRULE_TEST_PLAYS_THE_RUN";

    /// Not a test of its own: the run, when the tests below start this program a second time. It
    /// says "ready", then "asked" once it is asked to stop, and goes on for a while without
    /// stopping.
    #[test]
    #[ignore = "the run that the other tests start"]
    fn run() {
        if std::env::var_os(PLAYS_THE_RUN).is_none() {
            return;
        }
        let interrupt = Interrupt::listen().unwrap();
        assert!(!interrupt.asked());
        assert!(Interrupt::listen().is_err(), "only once");
        println!("\nready");
        while !interrupt.asked() {
            std::thread::sleep(Duration::from_millis(2));
        }
        println!("asked");
        std::thread::sleep(Duration::from_millis(1_500));
        std::process::exit(7);
    }

    fn start() -> (Child, BufReader<ChildStdout>) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .arg(format!("{}::run", module_path!().split_once("::").unwrap().1))
            .env(PLAYS_THE_RUN, "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        (child, out)
    }

    fn wait_for(word: &str, out: &mut BufReader<ChildStdout>) {
        let mut line = String::new();
        while line.trim() != word {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0, "ended before saying {word}");
        }
    }

    fn send(signal: &str, child: &Child) {
        let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    #[test]
    fn the_first_signal_asks_and_the_run_goes_on() {
        for signal in ["-INT", "-TERM"] {
            let (mut child, mut out) = start();
            wait_for("ready", &mut out);
            send(signal, &child);
            wait_for("asked", &mut out);
            assert_eq!(child.wait().unwrap().code(), Some(7), "{signal}");
        }
    }

    #[test]
    fn the_second_signal_ends_the_run_at_once_with_status_130() {
        let (mut child, mut out) = start();
        wait_for("ready", &mut out);
        send("-INT", &child);
        wait_for("asked", &mut out);
        send("-INT", &child);
        assert_eq!(child.wait().unwrap().code(), Some(EXIT_STATUS));
    }
}
