//! A device that a session shares with the leaves whose newer values are on it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use chainrule_core::error::Result;
use chainrule_core::tensor::behind::NewerValue;
use chainrule_core::tensor::node::{Leaf, lock};
use chainrule_core::tensor::value::{Meta, Value};

use crate::device::{
    Device, DeviceCode, DeviceGraph, DeviceMemory, DeviceRead, DeviceWork, PersistentArgument,
    fault,
};
use crate::dialect::Dialect;
use crate::module::KernelModule;
use crate::persistent::PersistentKernel;
use crate::products::{Precision, ProductLaunch};
use crate::words::{to_device, to_value, width};

/// A device behind a lock, which is held for one call at a time: no other lock is taken under it.
pub(crate) struct SharedDevice {
    device: Arc<Mutex<Box<dyn Device>>>,
    name: String,
    clusters: Vec<usize>,
}

impl SharedDevice {
    pub fn new(device: Box<dyn Device>) -> SharedDevice {
        let (name, clusters) = (device.describe().to_string(), device.clusters().to_vec());
        SharedDevice { device: Arc::new(Mutex::new(device)), name, clusters }
    }
}

/// Forwards each call. Methods with a default are listed too, since the default would be used
/// otherwise.
impl Device for SharedDevice {
    fn describe(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        lock(&self.device).dialect()
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory> {
        lock(&self.device).allocate(bytes)
    }

    fn free(&mut self, memory: DeviceMemory) {
        lock(&self.device).free(memory);
    }

    fn write(&mut self, to: DeviceMemory, bytes: &[u8]) -> Result<()> {
        lock(&self.device).write(to, bytes)
    }

    fn read(&mut self, from: DeviceMemory, bytes: &mut [u8]) -> Result<()> {
        lock(&self.device).read(from, bytes)
    }

    fn send(&mut self, to: DeviceMemory, bytes: &[u8]) -> Result<()> {
        lock(&self.device).send(to, bytes)
    }

    fn begin_read(&mut self, from: DeviceMemory, bytes: usize) -> Result<DeviceRead> {
        lock(&self.device).begin_read(from, bytes)
    }

    fn end_read(&mut self, read: DeviceRead) -> Result<Vec<u8>> {
        lock(&self.device).end_read(read)
    }

    fn has_library(&self) -> bool {
        lock(&self.device).has_library()
    }

    fn finishes(&self, product: &ProductLaunch, precision: Precision) -> bool {
        lock(&self.device).finishes(product, precision)
    }

    fn longest(&self) -> usize {
        lock(&self.device).longest()
    }

    fn has_matrix_units(&self) -> bool {
        lock(&self.device).has_matrix_units()
    }

    fn measure(&mut self, work: &[DeviceWork]) -> Result<Vec<f64>> {
        lock(&self.device).measure(work)
    }

    fn module(&mut self, module: &KernelModule) -> Result<DeviceCode> {
        lock(&self.device).module(module)
    }

    fn forget(&mut self, code: DeviceCode) {
        lock(&self.device).forget(code);
    }

    fn release(&mut self, graph: DeviceGraph) {
        lock(&self.device).release(graph);
    }

    fn graph(&mut self, work: Vec<DeviceWork>) -> Result<DeviceGraph> {
        lock(&self.device).graph(work)
    }

    fn launch(&mut self, graph: DeviceGraph) -> Result<()> {
        lock(&self.device).launch(graph)
    }

    fn clusters(&self) -> &[usize] {
        &self.clusters
    }

    fn persistent(&mut self, kernel: &PersistentKernel) -> Result<Option<DeviceCode>> {
        lock(&self.device).persistent(kernel)
    }

    fn launch_persistent(
        &mut self,
        code: DeviceCode,
        arguments: &[PersistentArgument],
    ) -> Result<()> {
        lock(&self.device).launch_persistent(code, arguments)
    }

    fn tick(&self) -> f64 {
        lock(&self.device).tick()
    }

    fn wait(&mut self) -> Result<()> {
        lock(&self.device).wait()
    }
}

/// A leaf whose value is on the device, possibly newer there: the leaf is then behind it, and the
/// next read fetches it.
pub(crate) struct Resident {
    pub leaf: Arc<Leaf>,
    pub memory: DeviceMemory,
    /// Loaded programs that have it.
    pub users: usize,
    there: Arc<There>,
    /// The same, as the leaf knows it.
    newer: Arc<dyn NewerValue>,
}

/// The value of a leaf on the device.
struct There {
    device: Arc<Mutex<Box<dyn Device>>>,
    memory: DeviceMemory,
    meta: Meta,
    /// The value of the leaf that is there, too.
    same: Mutex<Option<Arc<Value>>>,
    version: AtomicU64,
    /// Whether the memory was given back.
    is_gone: AtomicBool,
    /// The process that opened the device: a fork of it cannot read there.
    process: u32,
}

impl NewerValue for There {
    fn read(&self) -> Result<Arc<Value>> {
        if self.process != std::process::id() {
            let why = "the newer value of a leaf is on a device of the process that this one was \
                       forked from";
            return Err(fault(why.into()));
        }
        let mut device = lock(&self.device);
        if self.is_gone.load(Ordering::Acquire) {
            return Err(fault("the newer value of a leaf was lost with its program".into()));
        }
        get(&mut **device, self.memory, self.meta)
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn taken(&self, value: &Arc<Value>) {
        *lock(&self.same) = Some(value.clone());
    }
}

impl Resident {
    pub fn new(device: &mut SharedDevice, leaf: Arc<Leaf>, bytes: usize) -> Result<Resident> {
        let memory = device.allocate(bytes)?;
        let there = Arc::new(There {
            device: device.device.clone(),
            memory,
            meta: leaf.meta,
            same: Mutex::default(),
            version: AtomicU64::new(0),
            is_gone: AtomicBool::new(false),
            process: std::process::id(),
        });
        Ok(Resident { leaf, memory, users: 0, newer: there.clone(), there })
    }

    /// Whether the device has a newer value than the leaf.
    pub fn is_ahead(&self) -> bool {
        self.leaf.value.awaits(&self.newer)
    }

    /// Copies the value of the leaf to the device where that has another one.
    pub fn bring(&self, device: &mut dyn Device) -> Result<()> {
        if self.is_ahead() && !self.leaf.value.is_linked() {
            return Ok(());
        }
        let value = self.leaf.value.get()?;
        let same = lock(&self.there.same).take();
        if same.is_none_or(|same| !Arc::ptr_eq(&same, &value)) {
            put(device, self.memory, &value)?;
        }
        self.same_as(&value);
        Ok(())
    }

    /// Notes that the leaf has this value on both sides.
    pub fn same_as(&self, value: &Arc<Value>) {
        self.there.taken(value);
    }

    /// From now on the device has a newer value. A leaf that was set meanwhile keeps that value.
    pub fn changed(&self) {
        self.there.version.fetch_add(1, Ordering::AcqRel);
        let before = lock(&self.there.same).take();
        self.leaf.value.fall_behind(&self.newer, before.as_ref());
    }

    /// The value on the device.
    pub fn value(&self) -> Result<Arc<Value>> {
        self.there.read()
    }

    /// Keeps the leaf as it is on the processor: the next run starts from that.
    pub fn put_back(&self) {
        *lock(&self.there.same) = None;
        self.leaf.value.forget_newer(&self.newer);
    }

    /// Gives the memory back.
    pub fn free(&self, device: &mut dyn Device) {
        self.there.is_gone.store(true, Ordering::Release);
        device.free(self.memory);
    }
}

pub(crate) fn put(device: &mut dyn Device, memory: DeviceMemory, value: &Value) -> Result<()> {
    let rows = value.row_major()?;
    device.write(memory, &to_device(device.dialect(), value.dtype(), rows.bytes())?)
}

pub(crate) fn get(device: &mut dyn Device, memory: DeviceMemory, meta: Meta) -> Result<Arc<Value>> {
    let dialect = device.dialect();
    let mut bytes = vec![0; width(dialect, meta.dtype) * meta.shape.numel()];
    device.read(memory, &mut bytes)?;
    to_value(dialect, meta, &bytes)
}
