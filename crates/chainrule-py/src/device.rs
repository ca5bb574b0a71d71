//! Devices that run compiled functions.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use chainrule::gpu::{DeviceName, DeviceSession};
use chainrule::program::Program;
use chainrule::{Error, Result, Tensor};
use chainrule_core::tensor::behind::NewerValue;
use chainrule_core::tensor::node::Source;
use chainrule_core::tensor::value::Value;
use pyo3::prelude::*;

use crate::error::run;
use crate::tensor::PyTensor;

/// The sessions of this process, by the names of their devices.
static SESSIONS: LazyLock<Mutex<HashMap<String, Shared>>> = LazyLock::new(Mutex::default);

/// A session and the process that opened its device: a fork of it has none.
#[derive(Clone)]
struct Shared {
    session: Arc<Mutex<DeviceSession>>,
    process: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    fn now(&self) -> Result<MutexGuard<'_, DeviceSession>> {
        if self.is_own() {
            return Ok(lock(&self.session));
        }
        let why = "the device was opened before this process was forked, and is that of the other \
                   one; start processes by spawn, or open it after the fork";
        Err(Error::argument("device", why))
    }
}

/// The session of a device, which is opened by the first that asks.
fn session(name: &str) -> Result<Shared> {
    let name: DeviceName = name.parse()?;
    let mut all = lock(&SESSIONS);
    if let Some(session) = all.get(&name.to_string()) {
        return Ok(session.clone());
    }
    let session = Arc::new(Mutex::new(DeviceSession::new(name.open()?)));
    let session = Shared { session, process: std::process::id() };
    all.insert(name.to_string(), session.clone());
    Ok(session)
}

/// Whether a name is that of a device that there is, other than the processor: its description.
#[pyfunction]
#[pyo3(signature = (name))]
pub fn _device(name: &str) -> PyResult<Option<String>> {
    run(|| match name.parse()? {
        DeviceName::Cpu => Ok(None),
        _ => Ok(Some(session(name)?.now()?.device().describe().to_string())),
    })
}

/// Fetches all that devices have newer values of, before the process is forked.
#[pyfunction]
pub fn _devices_fetch(py: Python<'_>) -> PyResult<()> {
    py.detach(|| {
        run(|| {
            let all: Vec<Shared> = lock(&SESSIONS).values().cloned().collect();
            all.iter().filter(|s| s.is_own()).try_for_each(|s| s.now()?.fetch())
        })
    })
}

/// The first float among single numbers of these results of steps that is not finite: the step, the
/// place among its results, and the number.
#[pyfunction]
pub fn _first_not_finite(steps: Vec<Vec<Bound<'_, PyTensor>>>) -> Option<(usize, usize, f64)> {
    let number = |t: &Bound<'_, PyTensor>| {
        let t = t.get().tensor();
        let is_loss = t.numel() == 1 && t.dtype().is_float();
        is_loss.then(|| t.try_item().ok()).flatten().filter(|x| !x.is_finite())
    };
    let in_step = |(n, results): (usize, &Vec<Bound<'_, PyTensor>>)| {
        let found = results.iter().enumerate().find_map(|(i, t)| Some((i, number(t)?)));
        found.map(|(i, x)| (n, i, x))
    };
    steps.iter().enumerate().find_map(in_step)
}

/// The place of a value on a device that was lost.
struct Lost;

impl NewerValue for Lost {
    fn read(&self) -> Result<Arc<Value>> {
        Err(Error::argument("device", "the device was lost"))
    }

    fn version(&self) -> u64 {
        0
    }

    fn taken(&self, _: &Arc<Value>) {}
}

/// Lets the newer value of a leaf lie on a device that was lost, so that a test sees what reading
/// it gives.
#[pyfunction]
pub fn _lose(leaf: &Bound<'_, PyTensor>) {
    if let Source::Leaf(leaf) = leaf.get().tensor().source() {
        let (lost, before): (Arc<dyn NewerValue>, _) = (Arc::new(Lost), leaf.now());
        leaf.value.fall_behind(&lost, Some(&before));
    }
}

/// The settings of a program on a device.
pub struct DeviceOptions<'a> {
    pub name: &'a str,
    pub precision: Option<&'a str>,
    pub compare_first: bool,
}

/// A program on a device.
pub struct OnDevice {
    session: Shared,
    at: usize,
}

impl OnDevice {
    pub fn load(options: &DeviceOptions<'_>, program: &Program) -> Result<OnDevice> {
        let session = session(options.name)?;
        let at = {
            let mut own = session.now()?;
            own.set_precision(options.precision.unwrap_or("f32").parse()?)?;
            own.compare_first(options.compare_first);
            own.load(program)?
        };
        Ok(OnDevice { session, at })
    }

    /// A run: its results. Changed values stay on the device until they are read.
    pub fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.session.now()?.run(self.at, inputs)
    }

    /// As [`OnDevice::run`] for each of these batches, with few launches.
    pub fn run_steps(&self, batches: &[Vec<&Tensor>]) -> Result<Vec<Vec<Tensor>>> {
        self.session.now()?.run_steps(self.at, batches)
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        // Nobody is there to hear of an error.
        if let Ok(mut session) = self.session.now() {
            let _ = session.unload(self.at);
        }
    }
}
