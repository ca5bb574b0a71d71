//! Diagnosis of a training in Python: the search is the library's, the runs are Python's.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use chainrule::diagnose::{Cause, Change, Course, Effort, Suspicion, Trainable, prove};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::run;

/// Losses, skill on the rows trained on, and on those kept back.
type Ran = Option<(Vec<f32>, f64, Option<f64>)>;

/// A training of Python: `run(changes, seed, seconds)`.
struct Loop {
    run: Py<PyAny>,
    /// Changes with the edit that makes each.
    offers: Vec<(Change, String)>,
    suspicions: Vec<Suspicion>,
    lr: f64,
    is_sgd: bool,
    is_chancy: bool,
    /// The first exception, after which nothing is run any more.
    failed: Mutex<Option<PyErr>>,
}

impl Loop {
    fn failed(&self) -> std::sync::MutexGuard<'_, Option<PyErr>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trainable for Loop {
    fn offers(&self) -> Vec<Change> {
        self.offers.iter().map(|(change, _)| *change).collect()
    }

    fn train(&self, changes: &[Change], seed: usize, deadline: Instant) -> Option<Course> {
        if self.failed().is_some() {
            return None;
        }
        let words: Vec<&str> = changes.iter().map(|c| c.kind()).collect();
        let left = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
        let ran = Python::attach(|py| {
            self.run.call1(py, (words, seed, left)).and_then(|ran| ran.extract::<Ran>(py))
        });
        match ran {
            Ok(ran) => ran.map(|(losses, fit, held)| Course { losses, fit, held }),
            Err(error) => {
                *self.failed() = Some(error);
                None
            }
        }
    }

    fn edit(&self, change: Change) -> String {
        let edit = self.offers.iter().find(|(c, _)| *c == change);
        edit.map_or_else(|| change.text().to_string(), |(_, edit)| edit.clone())
    }

    fn lr(&self) -> f64 {
        self.lr
    }

    fn is_sgd(&self) -> bool {
        self.is_sgd
    }

    fn findings(&self) -> Vec<Suspicion> {
        self.suspicions.clone()
    }

    fn is_chancy(&self) -> bool {
        self.is_chancy
    }
}

fn change(word: &str) -> PyResult<Change> {
    Change::of(word).ok_or_else(|| PyValueError::new_err(format!("diagnose: no change '{word}'")))
}

/// The cause, how strong the sign is, the place, the evidence, and the changes that would mend it.
type Told = (String, f64, String, String, Vec<String>);

fn suspicion((cause, strength, place, text, remedies): Told) -> PyResult<Suspicion> {
    let named = Cause::of(&cause);
    let cause = named
        .ok_or_else(|| PyValueError::new_err(format!("diagnose: there is no cause '{cause}'")))?;
    let remedies = remedies.iter().map(|w| change(w)).collect::<PyResult<_>>()?;
    Ok(Suspicion { cause, strength, place, since: 0, text, numbers: Vec::new(), remedies })
}

/// The diagnosis as JSON and as text.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "called from one place, which names them")]
pub fn _prove(
    run_one: Py<PyAny>,
    offers: Vec<(String, String)>,
    suspicions: Vec<Told>,
    lr: f64,
    is_sgd: bool,
    is_chancy: bool,
    runs: usize,
    seconds: f64,
) -> PyResult<(String, String)> {
    let offers = offers.into_iter().map(|(word, edit)| Ok((change(&word)?, edit)));
    let time = Duration::try_from_secs_f64(seconds.min(1e9)).map_err(|_| {
        PyValueError::new_err(format!("diagnose: {seconds} is no number of seconds"))
    })?;
    let training = Loop {
        run: run_one,
        offers: offers.collect::<PyResult<_>>()?,
        suspicions: suspicions.into_iter().map(suspicion).collect::<PyResult<_>>()?,
        lr,
        is_sgd,
        is_chancy,
        failed: Mutex::default(),
    };
    let told = run(|| {
        let proof = prove(&training, Effort { runs, time, threads: 1 });
        Ok((proof.json().to_string(), proof.text()))
    })?;
    let failed = training.failed().take();
    failed.map_or(Ok(told), Err)
}

/// The causes with their sentences.
#[pyfunction]
pub fn _causes() -> Vec<(&'static str, &'static str)> {
    Cause::all().map(|cause| (cause.kind(), cause.sentence())).collect()
}
