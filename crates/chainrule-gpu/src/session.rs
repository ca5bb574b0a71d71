//! Programs on a device: lasting values stay in its memory from run to run.

mod many;
mod steps;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chainrule_core::error::Result;
use chainrule_core::tensor::Tensor;
use chainrule_core::tensor::node::{Leaf, Source as Origin};
use chainrule_core::tensor::value::{Meta, Value};
use chainrule_program::Program;

use crate::device::{Device, DeviceCode, DeviceGraph, DeviceMemory, DeviceWork, fault};
use crate::module::{Buffer, DeviceLaunch, KernelModule, Source};
use crate::products::{Epilogues, Precision, Products};
use crate::rooms::Rooms;
use crate::shared::{Resident, SharedDevice, get};
use crate::words::{to_device, width};
use many::Many;
use steps::Persistent;

/// Programs on a device. Parameters, the optimizer's state and arguments live there. A value that a
/// program changed is fetched when it is read, or all at once by [`DeviceSession::fetch`]; one that
/// was changed outside since the last run is seen by the next one.
///
/// ```no_run
/// use chainrule::{Tensor, program::Program};
/// use chainrule_gpu::{DeviceName, DeviceSession};
/// let x = Tensor::from([1.0f32, 2.0]);
/// let program = Program::trace([("x", &x)], |args| Ok(vec![args[0].exp()]))?;
/// let mut session = DeviceSession::new(DeviceName::Wgpu(0).open()?);
/// let at = session.load(&program)?;
/// let y = session.run(at, &[&x])?;
/// assert!((y[0].to_vec::<f32>()[0] - 1f32.exp()).abs() < 1e-5);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub struct DeviceSession {
    device: Box<SharedDevice>,
    /// By their numbers; none where they were unloaded.
    programs: Vec<Option<Loaded>>,
    /// Leaves by their numbers, shared by all programs.
    residents: HashMap<u64, Resident>,
    seed: u64,
    runs: u64,
    precision: Precision,
    epilogues: Epilogues,
    /// Whether arguments and results are copied beside the work of the device.
    overlaps: bool,
    /// Whether first runs are compared.
    pub(crate) compares: bool,
}

/// A program on the device.
struct Loaded {
    arguments: Vec<Argument>,
    /// The leaf of each cell, whether it was trained, and whether a run changes it.
    cells: Vec<(u64, bool, bool)>,
    results: Vec<(DeviceMemory, Meta)>,
    draws: Option<DeviceMemory>,
    /// All memory but that of leaves.
    own: Vec<DeviceMemory>,
    code: DeviceCode,
    /// The program, until its first run was compared.
    first: Option<Program>,
    way: Way,
    /// Many steps at once, where each is a graph.
    many: Many,
}

/// How a program is run.
enum Way {
    /// A graph of launches, with its work by the names of what it computes.
    Graph(DeviceGraph, Vec<(String, DeviceWork)>),
    /// One kernel, for many steps in a launch.
    Persistent(Box<Persistent>),
}

struct Argument {
    name: String,
    meta: Meta,
    /// None where no kernel reads it.
    memory: Option<DeviceMemory>,
    /// The value that the memory holds.
    held: Option<Arc<Value>>,
}

/// Leaves get their values back on the processor.
impl Drop for DeviceSession {
    fn drop(&mut self) {
        // A leaf that cannot be fetched now reports why when it is read.
        let _ = self.fetch();
    }
}

impl DeviceSession {
    /// A session on a device, with nothing on it.
    pub fn new(device: Box<dyn Device>) -> DeviceSession {
        let device = Box::new(SharedDevice::new(device));
        let (programs, residents) = (Vec::new(), HashMap::new());
        let (precision, epilogues) = Default::default();
        DeviceSession {
            device,
            programs,
            residents,
            seed: 0,
            runs: 0,
            precision,
            epilogues,
            overlaps: true,
            compares: false,
        }
    }

    /// Whether arguments and results are copied while a step runs, if the device can; on by
    /// default. The bits are the same.
    pub fn set_overlap(&mut self, overlaps: bool) {
        self.overlaps = overlaps;
    }

    /// The epilogues of the product library in programs that are loaded from now on; only biases by
    /// default, as the others make no step faster.
    pub fn set_epilogues(&mut self, epilogues: Epilogues) {
        self.epilogues = epilogues;
    }

    /// The arithmetic of large f32 products in programs that are loaded from now on; f32 by
    /// default. Errors for another one on a device without a library of products.
    pub fn set_precision(&mut self, precision: Precision) -> Result<()> {
        if precision != Precision::F32 && !self.device.has_library() {
            let name = self.device.describe();
            return Err(fault(format!(
                "{name} has no library of products in {precision}; leave them in f32"
            )));
        }
        self.precision = precision;
        Ok(())
    }

    /// The seed of random numbers, which are functions of it, the number of the run and their
    /// position; 0 by default.
    pub fn with_seed(mut self, seed: u64) -> DeviceSession {
        self.seed = seed;
        self
    }

    /// The number of the next run, for a training that goes on with other random numbers.
    pub fn set_runs(&mut self, runs: u64) {
        self.runs = runs;
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Compiles a program for the device, and makes room for it: its number. Errors for what has no
    /// kernel, which it names, and where the memory of the device is full.
    pub fn load(&mut self, program: &Program) -> Result<usize> {
        let dialect = self.device.dialect();
        let module = match self.device.has_library() {
            true => self.with_library(program)?,
            false => KernelModule::new(program, dialect)?,
        };
        let mut own = Vec::new();
        let persistent = self.persistent(program, &module)?;
        let code = match &persistent {
            Some((_, code)) => *code,
            None => self.device.module(&module)?,
        };
        let loaded = match persistent {
            Some((kernel, code)) => self.fill_persistent(program, kernel, code, &mut own),
            None => self.fill(program, &module, code, &mut own),
        };
        if loaded.is_err() {
            self.device.forget(code);
            own.into_iter().for_each(|memory| self.device.free(memory));
            self.tidy();
        }
        let mut loaded = loaded?;
        let draws = program.list().iter().any(|i| i.op.generator().is_some());
        loaded.first = (self.compares && !draws).then(|| program.clone());
        for (number, ..) in &loaded.cells {
            self.residents.entry(*number).and_modify(|r| r.users += 1);
        }
        self.programs.push(Some(loaded));
        Ok(self.programs.len() - 1)
    }

    /// The kernels of a program with products of the library, and the epilogues that it has.
    fn with_library(&self, program: &Program) -> Result<KernelModule> {
        let (attention, precision) = (self.device.has_matrix_units(), self.precision);
        let epilogues = self.epilogues;
        let mut products = Products { precision, attention, epilogues, ..Products::default() };
        loop {
            let module = KernelModule::with_products(program, self.device.dialect(), products)?;
            let refused = module.launches.iter().find_map(|l| match l {
                DeviceLaunch::Product(p) if p.is_finished() => {
                    (!self.device.finishes(p, precision)).then_some(p)
                }
                _ => None,
            });
            let Some(refused) = refused else { return Ok(module) };
            products.epilogues = products.epilogues.without(refused);
        }
    }

    /// Frees what a program has on the device; leaves that no other program has are fetched. Its
    /// number is not used again.
    pub fn unload(&mut self, program: usize) -> Result<()> {
        let Some(loaded) = self.programs.get_mut(program).and_then(Option::take) else {
            return Ok(());
        };
        let fetched = self.fetch();
        loaded.own.into_iter().for_each(|memory| self.device.free(memory));
        if let Many::Graph(many) = &loaded.many {
            self.device.release(many.graph);
        }
        match loaded.way {
            Way::Graph(graph, _) => self.device.release(graph),
            Way::Persistent(persistent) => persistent.free(&mut *self.device),
        }
        self.device.forget(loaded.code);
        for (number, ..) in &loaded.cells {
            self.residents.entry(*number).and_modify(|r| r.users -= 1);
        }
        self.tidy();
        fetched
    }

    /// Frees the memory of leaves that no program has.
    fn tidy(&mut self) {
        let DeviceSession { device, residents, .. } = self;
        residents.retain(|_, resident| {
            if resident.users == 0 {
                resident.free(&mut **device);
            }
            resident.users > 0
        });
    }

    fn loaded(&self, program: usize) -> Result<&Loaded> {
        let found = self.programs.get(program).and_then(Option::as_ref);
        found.ok_or_else(|| fault(format!("there is no program {program} on the device")))
    }

    /// Allocates memory for a program and records its work. Memory other than leaves' goes into
    /// `own`.
    fn fill(
        &mut self,
        program: &Program,
        module: &KernelModule,
        code: DeviceCode,
        own: &mut Vec<DeviceMemory>,
    ) -> Result<Loaded> {
        let memory = self.memory(program, module, own)?;
        let mut kernels = 0;
        let launch = |l: &DeviceLaunch| match l {
            DeviceLaunch::Kernel(kernel) => {
                let arguments = kernel.arguments.iter().map(|&b| memory[b]).collect();
                kernels += 1;
                let work = DeviceWork::Launch { code, place: kernels - 1, arguments };
                (kernel.name.clone(), work)
            }
            DeviceLaunch::Product(p) => {
                let memory = p.matrices().iter().map(|m| memory[m.buffer]).collect();
                let (product, precision) = (p.clone(), module.precision);
                (p.label(), DeviceWork::Product { product, precision, memory })
            }
        };
        let mut work: Vec<(String, DeviceWork)> = module.launches.iter().map(launch).collect();
        let updates = self.updates(module, &memory, own)?;
        work.extend(updates.into_iter().map(|copy| ("copy".to_string(), copy)));
        let graph = self.device.graph(work.iter().map(|(_, w)| w.clone()).collect())?;
        let place = |i: usize| memory[i];
        let draws = module.buffers.iter().position(|b| b.source == Source::Draws).map(place);
        let infos = program.infos();
        let argument = |i: usize| {
            let at = module.buffers.iter().position(|b| b.source == Source::Argument(i));
            at.map(place)
        };
        let metas = program.results().map(|id| infos[id.index()].meta);
        Ok(Loaded {
            arguments: arguments(program, argument),
            cells: cells(program),
            results: module.results.iter().map(|&b| place(b)).zip(metas).collect(),
            draws,
            own: std::mem::take(own),
            code,
            first: None,
            way: Way::Graph(graph, work),
            many: Many::Unknown,
        })
    }

    /// Memory for each buffer. A leaf's is shared by all programs; what kernels write is given to
    /// another value after its last use.
    fn memory(
        &mut self,
        program: &Program,
        module: &KernelModule,
        own: &mut Vec<DeviceMemory>,
    ) -> Result<Vec<DeviceMemory>> {
        let size = |b: &Buffer| width(module.dialect, b.dtype) * b.dims.iter().product::<usize>();
        let mut memory = vec![None; module.buffers.len()];
        for (i, b) in module.buffers.iter().enumerate() {
            let bytes = size(b);
            let of = |e| named(e, &b.name, bytes);
            let at = match &b.source {
                Source::State(cell) => self.resident(program.leaf(*cell), bytes).map_err(of)?,
                Source::Kernel | Source::Over(_) => continue,
                _ => {
                    let at = self.device.allocate(bytes).map_err(of)?;
                    own.push(at);
                    at
                }
            };
            if let Source::Constant(given) = &b.source {
                self.device.write(at, &to_device(module.dialect, b.dtype, given)?)?;
            }
            memory[i] = Some(at);
        }
        let rooms = Rooms::of(module, size);
        let mut made = Vec::with_capacity(rooms.sizes.len());
        for (bytes, first) in &rooms.sizes {
            let of = |e| named(e, &module.buffers[*first].name, *bytes);
            let at = self.device.allocate(*bytes).map_err(of)?;
            own.push(at);
            made.push(at);
        }
        let find = |i: usize| match module.buffers[i].source {
            Source::Over(other) => memory[other].unwrap_or_else(|| made[rooms.of[other]]),
            _ => memory[i].unwrap_or_else(|| made[rooms.of[i]]),
        };
        Ok((0..memory.len()).map(find).collect())
    }

    /// The memory of a leaf, which is on the device from now on.
    fn resident(&mut self, leaf: &Arc<Leaf>, bytes: usize) -> Result<DeviceMemory> {
        if let Some(resident) = self.residents.get(&leaf.number) {
            return Ok(resident.memory);
        }
        let resident = Resident::new(&mut self.device, leaf.clone(), bytes)?;
        let memory = resident.memory;
        self.residents.insert(leaf.number, resident);
        Ok(memory)
    }

    /// The copies after a run that make new values those of the cells. A value that is another
    /// cell's old one is put aside first.
    fn updates(
        &mut self,
        module: &KernelModule,
        memory: &[DeviceMemory],
        own: &mut Vec<DeviceMemory>,
    ) -> Result<Vec<DeviceWork>> {
        let (mut aside, mut copies) = (Vec::new(), Vec::new());
        let over = |w: usize| matches!(module.buffers[w].source, Source::Over(_));
        let changed = module.states.iter().filter_map(|&(r, w)| Some((r, w?)));
        let changed: Vec<(usize, usize)> = changed.filter(|&(_, w)| !over(w)).collect();
        for &(read, write) in &changed {
            let b = &module.buffers[read];
            let bytes = width(module.dialect, b.dtype) * b.dims.iter().product::<usize>();
            let mut from = memory[write];
            if changed.iter().any(|&(other, _)| memory[other] == from) {
                let room = self.device.allocate(bytes)?;
                own.push(room);
                aside.push(DeviceWork::Copy { from, to: room, begins: [0, 0], bytes });
                from = room;
            }
            copies.push(DeviceWork::Copy { from, to: memory[read], begins: [0, 0], bytes });
        }
        aside.extend(copies);
        Ok(aside)
    }

    /// Why a loaded program is not for these arguments, if it is not.
    pub fn mismatch(&self, program: usize, arguments: &[&Tensor]) -> Option<String> {
        let loaded = match self.loaded(program) {
            Ok(loaded) => loaded,
            Err(e) => return Some(e.to_string()),
        };
        if loaded.arguments.len() != arguments.len() {
            let (n, m) = (loaded.arguments.len(), arguments.len());
            return Some(format!("the program takes {n} arguments, {m} were given"));
        }
        let switched = |(leaf, trained, _): &&(u64, bool, bool)| {
            let now = |r: &Resident| r.leaf.requires_grad.load(Ordering::Relaxed);
            self.residents.get(leaf).is_some_and(|r| now(r) != *trained)
        };
        if loaded.cells.iter().any(|c| switched(&c)) {
            return Some("a parameter was frozen or unfrozen since the trace".to_string());
        }
        let mut pairs = loaded.arguments.iter().zip(arguments);
        pairs.find(|(a, t)| a.meta != t.meta()).map(|(a, t)| {
            let (name, old) = (&a.name, a.meta);
            format!(
                "`{name}` has {} {} where the trace had {} {}",
                t.dtype(),
                t.shape(),
                old.dtype,
                old.shape
            )
        })
    }

    /// A run of a loaded program: its results, in order, which are fetched. New values of cells
    /// stay on the device until they are read.
    pub fn run(&mut self, program: usize, arguments: &[&Tensor]) -> Result<Vec<Tensor>> {
        let loaded = self.programs.get_mut(program).and_then(Option::as_mut);
        let Some(first) = loaded.and_then(|loaded| loaded.first.take()) else {
            return self.plain_run(program, arguments);
        };
        let results = self.compared_run(program, &first, arguments);
        // After an error the next run is compared, too.
        let loaded = self.programs.get_mut(program).and_then(Option::as_mut);
        if let (Err(_), Some(loaded)) = (&results, loaded) {
            loaded.first = Some(first);
        }
        results
    }

    pub(crate) fn plain_run(
        &mut self,
        program: usize,
        arguments: &[&Tensor],
    ) -> Result<Vec<Tensor>> {
        self.begin(program, arguments, false)?;
        (0..self.loaded(program)?.results.len()).map(|i| self.result(program, i)).collect()
    }

    /// As [`DeviceSession::run`], which neither waits nor fetches.
    pub fn start(&mut self, program: usize, arguments: &[&Tensor]) -> Result<()> {
        self.begin(program, arguments, self.overlaps)
    }

    /// Begins a run. Its arguments are copied during the run before, if they are to overlap; a run
    /// whose results are waited for has nothing to overlap with, and is faster without.
    fn begin(&mut self, program: usize, arguments: &[&Tensor], overlaps: bool) -> Result<()> {
        if let Some(why) = self.mismatch(program, arguments) {
            return Err(fault(why));
        }
        arguments.iter().try_for_each(|argument| argument.catch_up())?;
        if let Way::Persistent(_) = self.loaded(program)?.way {
            return self.start_persistent(program, &[arguments]);
        }
        self.put_cells(program)?;
        let Some(loaded) = &mut self.programs[program] else { return Ok(()) };
        let Way::Graph(graph, _) = loaded.way else { return Ok(()) };
        for (argument, tensor) in loaded.arguments.iter_mut().zip(arguments) {
            let (value, Some(memory)) = (tensor.value(), argument.memory) else { continue };
            if argument.held.as_ref().is_some_and(|held| Arc::ptr_eq(held, &value)) {
                continue;
            }
            argument.held = None;
            let rows = value.row_major()?;
            let bytes = to_device(self.device.dialect(), value.dtype(), rows.bytes())?;
            match overlaps {
                true => self.device.send(memory, &bytes)?,
                false => self.device.write(memory, &bytes)?,
            }
            argument.held = Some(value);
        }
        if let Some(draws) = loaded.draws {
            let words = [self.seed, self.runs].map(u64::to_le_bytes);
            self.device.write(draws, words.as_flattened())?;
        }
        self.runs += 1;
        self.device.launch(graph)?;
        self.changed(program);
        Ok(())
    }

    /// Copies to the device the cells that were set from outside.
    fn put_cells(&mut self, program: usize) -> Result<()> {
        let Some(loaded) = &self.programs[program] else { return Ok(()) };
        for (number, ..) in &loaded.cells {
            if let Some(resident) = self.residents.get(number) {
                resident.bring(&mut *self.device)?;
            }
        }
        Ok(())
    }

    /// Notes that the device has newer values of the cells that a program changes.
    pub(crate) fn changed(&mut self, program: usize) {
        let Some(loaded) = &self.programs[program] else { return };
        for (number, _, _) in loaded.cells.iter().filter(|c| c.2) {
            if let Some(resident) = self.residents.get(number) {
                resident.changed();
            }
        }
    }

    /// A result of the last run of a program, fetched.
    pub fn result(&mut self, program: usize, i: usize) -> Result<Tensor> {
        let loaded = self.loaded(program)?;
        if let (Way::Persistent(_), true) = (&loaded.way, i < loaded.results.len()) {
            return self.last_result(program, i);
        }
        let found = loaded.results.get(i).copied();
        let (memory, meta) = found.ok_or_else(|| fault(format!("there is no result {i}")))?;
        let value = get(&mut *self.device, memory, meta)?;
        Ok(Tensor::from_parts(value, Origin::None))
    }

    /// Gives parameters and other cells the values that they have on the device, as reading each of
    /// them does. One that was set from outside since the last run keeps that value.
    pub fn fetch(&mut self) -> Result<()> {
        let ahead = self.residents.values().filter(|r| r.is_ahead());
        ahead.into_iter().try_for_each(|resident| resident.leaf.value.catch_up())
    }

    /// As [`DeviceSession::fetch`], for one leaf.
    pub fn fetch_one(&mut self, leaf: &Tensor) -> Result<()> {
        leaf.catch_up()
    }

    pub(crate) fn precision(&self) -> Precision {
        self.precision
    }

    /// The value of a leaf on the device.
    pub(crate) fn resident_value(&mut self, leaf: u64) -> Result<Arc<Value>> {
        let found = self.residents.get(&leaf).map(Resident::value);
        found.unwrap_or_else(|| Err(fault("a leaf is not on the device".into())))
    }

    /// Notes that a leaf has this value on both sides.
    pub(crate) fn same_as(&mut self, leaf: u64, value: &Arc<Value>) {
        if let Some(resident) = self.residents.get(&leaf) {
            resident.same_as(value);
        }
    }

    /// Keeps a leaf as it is on the processor: the next run starts from that.
    pub(crate) fn put_back(&mut self, leaf: u64) {
        if let Some(resident) = self.residents.get(&leaf) {
            resident.put_back();
        }
    }

    /// A run whose pieces are measured one by one: the kernels, products and copies in order, with
    /// the microseconds that each took. Arguments are those of the last run.
    pub fn measure(&mut self, program: usize) -> Result<Vec<(String, f64)>> {
        let work = match &self.loaded(program)?.way {
            Way::Graph(_, work) => work.clone(),
            Way::Persistent(_) => return self.measure_persistent(program),
        };
        let (names, work): (Vec<String>, Vec<DeviceWork>) = work.into_iter().unzip();
        let times = self.device.measure(&work)?;
        self.changed(program);
        Ok(names.into_iter().zip(times).collect())
    }

    /// Waits for the end of all runs.
    pub fn wait(&mut self) -> Result<()> {
        self.device.wait()
    }
}

/// The arguments of a program, with the memory of each.
fn arguments(program: &Program, memory: impl Fn(usize) -> Option<DeviceMemory>) -> Vec<Argument> {
    let infos = program.infos();
    let argument = |(i, id): (usize, &chainrule_program::Id)| {
        let info = &infos[id.index()];
        let (name, meta) = (info.name.clone(), info.meta);
        Argument { name, meta, memory: memory(i), held: None }
    };
    program.arguments().iter().enumerate().map(argument).collect()
}

/// The leaf of each cell, whether it is trained, and whether a run changes it.
fn cells(program: &Program) -> Vec<(u64, bool, bool)> {
    let cell = |(i, (_, write, trained)): (usize, (_, Option<_>, bool))| {
        (program.leaf(i).number, trained, write.is_some())
    };
    program.states().enumerate().map(cell).collect()
}

/// The error of an allocation, with the value that it was for.
fn named(
    e: chainrule_core::error::Error,
    name: &str,
    bytes: usize,
) -> chainrule_core::error::Error {
    let mib = bytes as f64 / f64::from(1 << 20);
    fault(format!("no room for `{name}` of {mib:.1} MiB: {e}"))
}
