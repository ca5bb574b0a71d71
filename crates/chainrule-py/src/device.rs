//! Devices that run compiled functions.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use chainrule::gpu::{DeviceName, DeviceSession};
use chainrule::program::Program;
use chainrule::{Result, Tensor};
use pyo3::prelude::*;

use crate::error::run;

/// The sessions of this process, by the names of their devices.
static SESSIONS: LazyLock<Mutex<HashMap<String, Shared>>> = LazyLock::new(Mutex::default);

type Shared = Arc<Mutex<DeviceSession>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The session of a device, which is opened by the first that asks.
fn session(name: &str) -> Result<Shared> {
    let name: DeviceName = name.parse()?;
    let mut all = lock(&SESSIONS);
    if let Some(session) = all.get(&name.to_string()) {
        return Ok(session.clone());
    }
    let session = Arc::new(Mutex::new(DeviceSession::new(name.open()?)));
    all.insert(name.to_string(), session.clone());
    Ok(session)
}

/// Whether a name is that of a device that there is, other than the processor: its description.
#[pyfunction]
#[pyo3(signature = (name))]
pub fn _device(name: &str) -> PyResult<Option<String>> {
    run(|| match name.parse()? {
        DeviceName::Cpu => Ok(None),
        _ => Ok(Some(lock(&*session(name)?).device().describe().to_string())),
    })
}

/// A program on a device.
pub struct OnDevice {
    session: Shared,
    at: usize,
}

impl OnDevice {
    pub fn load(name: &str, precision: Option<&str>, program: &Program) -> Result<OnDevice> {
        let session = session(name)?;
        let at = {
            let mut own = lock(&session);
            own.set_precision(precision.unwrap_or("f32").parse()?)?;
            own.load(program)?
        };
        Ok(OnDevice { session, at })
    }

    /// A run: its results. Changed values stay on the device until [`OnDevice::fetch`].
    pub fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        lock(&self.session).run(self.at, inputs)
    }

    pub fn fetch(&self) -> Result<()> {
        lock(&self.session).fetch()
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        // Nobody is there to hear of an error.
        let _ = lock(&self.session).unload(self.at);
    }
}
