//! Many steps at once: a persistent kernel takes the arguments of all of them, and writes their
//! results side by side.

use std::collections::VecDeque;
use std::sync::Arc;

use chainrule_core::error::Result;
use chainrule_core::tensor::Tensor;
use chainrule_core::tensor::node::Source as Origin;
use chainrule_core::tensor::value::{Meta, Value};
use chainrule_program::Program;

use super::{DeviceSession, Loaded, Many, Way, arguments, cells, named};
use crate::device::{Device, DeviceCode, DeviceMemory, DeviceRead, PersistentArgument, fault};
use crate::dialect::Dialect;
use crate::module::KernelModule;
use crate::persistent::{Parameter, PersistentKernel};
use crate::words::{to_device, to_value, width};

/// Most steps of a launch.
const MOST: usize = 1024;

/// Further steps that are begun before the results of one are waited for.
const AHEAD: usize = 1;

/// Steps that were begun together, and the copies of their results.
struct Begun {
    steps: usize,
    reads: Vec<DeviceRead>,
}

/// Most bytes of arguments and results of a launch, beyond those of one step.
const BYTES: usize = 64 << 20;

/// A program that is one kernel.
pub(super) struct Persistent {
    kernel: PersistentKernel,
    /// The memory of each parameter; none for arguments, results and numbers.
    fixed: Vec<Option<DeviceMemory>>,
    arguments: Vec<Room>,
    results: Vec<Room>,
    /// The arguments of the last launch.
    last: Vec<PersistentArgument>,
    /// Steps of the last launch.
    steps: usize,
}

/// Memory for the values of some steps, one after the other.
struct Room {
    memory: Option<DeviceMemory>,
    /// Bytes of one value.
    each: usize,
    /// Values that there is room for.
    slots: usize,
    /// The value stored there, if there is only one.
    held: Option<Arc<Value>>,
}

impl Room {
    fn new(meta: Meta) -> Room {
        let each = width(Dialect::Cuda, meta.dtype) * meta.shape.numel();
        Room { memory: None, each, slots: 0, held: None }
    }

    /// Memory for so many values.
    fn of(&mut self, device: &mut dyn Device, slots: usize) -> Result<DeviceMemory> {
        if let (Some(memory), true) = (self.memory, self.slots >= slots) {
            return Ok(memory);
        }
        self.free(device);
        let memory = device.allocate(self.each * slots)?;
        (self.memory, self.slots) = (Some(memory), slots);
        Ok(memory)
    }

    fn free(&mut self, device: &mut dyn Device) {
        if let Some(memory) = self.memory.take() {
            device.free(memory);
        }
        (self.slots, self.held) = (0, None);
    }

    /// Copies the values of steps to the device: the memory, and whether they are all the same.
    fn put(
        &mut self,
        device: &mut dyn Device,
        values: &[Arc<Value>],
    ) -> Result<(DeviceMemory, bool)> {
        let same = values.windows(2).all(|pair| Arc::ptr_eq(&pair[0], &pair[1]));
        let values = if same { &values[..1] } else { values };
        if same && self.held.as_ref().is_some_and(|held| Arc::ptr_eq(held, &values[0])) {
            return Ok((self.of(device, 1)?, same));
        }
        let memory = self.of(device, values.len())?;
        let mut bytes = Vec::with_capacity(self.each * values.len());
        for value in values {
            let rows = value.row_major()?;
            bytes.extend(to_device(Dialect::Cuda, value.dtype(), rows.bytes())?);
        }
        self.held = None;
        device.write(memory, &bytes)?;
        self.held = same.then(|| values[0].clone());
        Ok((memory, same))
    }
}

impl Persistent {
    pub fn free(mut self, device: &mut dyn Device) {
        let rooms = self.arguments.iter_mut().chain(&mut self.results);
        rooms.for_each(|room| room.free(device));
    }

    /// Steps of a launch.
    pub(super) fn most(&self) -> usize {
        let each: usize = self.arguments.iter().chain(&self.results).map(|r| r.each).sum();
        (BYTES / each.max(1)).clamp(1, MOST)
    }

    /// The arguments of a launch, whose memory is made and filled.
    fn prepare(
        &mut self,
        device: &mut dyn Device,
        batches: &[&[&Tensor]],
        [seed, run]: [u64; 2],
    ) -> Result<Vec<PersistentArgument>> {
        let steps = batches.len();
        let mut strides = vec![0; self.arguments.len()];
        let mut out = Vec::with_capacity(self.fixed.len());
        for (parameter, fixed) in self.kernel.parameters.iter().zip(&self.fixed) {
            out.push(match parameter {
                Parameter::Argument(i) => {
                    let values: Vec<Arc<Value>> = batches.iter().map(|b| b[*i].value()).collect();
                    let (memory, same) = self.arguments[*i].put(device, &values)?;
                    strides[*i] = if same { 0 } else { values[0].shape().numel() };
                    PersistentArgument::Memory(memory)
                }
                Parameter::Result(i) => {
                    PersistentArgument::Memory(self.results[*i].of(device, steps)?)
                }
                Parameter::Stride(i) => PersistentArgument::Int(strides[*i] as i32),
                Parameter::Seed => PersistentArgument::Long(seed),
                Parameter::Run => PersistentArgument::Long(run),
                Parameter::Steps => PersistentArgument::Int(steps as i32),
                _ => fixed.map_or(PersistentArgument::Null, PersistentArgument::Memory),
            });
        }
        (self.steps, self.last) = (steps, out.clone());
        Ok(out)
    }
}

impl DeviceSession {
    /// The persistent kernel of a program, if the device supports them and the program's steps are
    /// so small that this is faster.
    pub(super) fn persistent(
        &mut self,
        program: &Program,
        module: &KernelModule,
    ) -> Result<Option<(PersistentKernel, DeviceCode)>> {
        for blocks in self.device.clusters().to_vec() {
            let kernel = PersistentKernel::in_place_of(module, program, blocks)?;
            let Some(kernel) = kernel else { continue };
            if let Some(code) = self.device.persistent(&kernel)? {
                return Ok(Some((kernel, code)));
            }
        }
        Ok(None)
    }

    /// Makes room for a program that is one kernel.
    pub(super) fn fill_persistent(
        &mut self,
        program: &Program,
        kernel: PersistentKernel,
        code: DeviceCode,
        own: &mut Vec<DeviceMemory>,
    ) -> Result<Loaded> {
        let infos = program.infos();
        let metas: Vec<Meta> = program.results().map(|id| infos[id.index()].meta).collect();
        let bytes = |cell: usize| {
            let meta = program.leaf(cell).meta;
            width(Dialect::Cuda, meta.dtype) * meta.shape.numel()
        };
        let mut fixed = Vec::with_capacity(kernel.parameters.len());
        for parameter in &kernel.parameters {
            let size = match parameter {
                Parameter::State(cell) => {
                    let leaf = program.leaf(*cell);
                    fixed.push(Some(self.resident(leaf, bytes(*cell))?));
                    continue;
                }
                Parameter::Other(cell) => bytes(*cell),
                Parameter::Constant(given) => given.len(),
                Parameter::Scratch => kernel.scratch,
                _ => {
                    fixed.push(None);
                    continue;
                }
            };
            let memory = self.device.allocate(size).map_err(|e| named(e, &kernel.name, size))?;
            own.push(memory);
            fixed.push(Some(memory));
            if let Parameter::Constant(given) = parameter {
                self.device.write(memory, given)?;
            }
        }
        let arguments = arguments(program, |_| None);
        let rooms = arguments.iter().map(|a| Room::new(a.meta)).collect();
        let results = metas.iter().map(|meta| Room::new(*meta)).collect();
        let (last, steps) = (Vec::new(), 0);
        let persistent = Persistent { kernel, fixed, arguments: rooms, results, last, steps };
        Ok(Loaded {
            arguments,
            cells: cells(program),
            // Their memory is made for each launch.
            results: metas.into_iter().map(|meta| (DeviceMemory(usize::MAX), meta)).collect(),
            draws: None,
            own: std::mem::take(own),
            code,
            first: None,
            way: Way::Persistent(Box::new(persistent)),
            many: Many::Never,
        })
    }

    /// Begins a launch of a persistent kernel for these steps.
    pub(super) fn start_persistent(
        &mut self,
        program: usize,
        batches: &[&[&Tensor]],
    ) -> Result<()> {
        let mut all = batches.iter().copied().flatten();
        all.try_for_each(|argument| argument.catch_up())?;
        self.put_cells(program)?;
        let Some(loaded) = &mut self.programs[program] else { return Ok(()) };
        let Way::Persistent(persistent) = &mut loaded.way else { return Ok(()) };
        let numbers = [self.seed, self.runs];
        let arguments = persistent.prepare(&mut *self.device, batches, numbers)?;
        self.runs += batches.len() as u64;
        self.device.launch_persistent(loaded.code, &arguments)?;
        self.changed(program);
        Ok(())
    }

    /// Results of all steps of the last launch.
    fn persistent_results(&mut self, program: usize) -> Result<Vec<Vec<Tensor>>> {
        let Some(loaded) = &self.programs[program] else { return Ok(Vec::new()) };
        let Way::Persistent(persistent) = &loaded.way else { return Ok(Vec::new()) };
        let mut out = vec![Vec::with_capacity(loaded.results.len()); persistent.steps];
        for ((_, meta), room) in loaded.results.iter().zip(&persistent.results) {
            let Some(memory) = room.memory else { continue };
            let mut bytes = vec![0; room.each * persistent.steps];
            self.device.read(memory, &mut bytes)?;
            for (step, results) in out.iter_mut().enumerate() {
                let own = &bytes[step * room.each..][..room.each];
                let value = to_value(Dialect::Cuda, *meta, own)?;
                results.push(Tensor::from_parts(value, Origin::None));
            }
        }
        Ok(out)
    }

    /// A result of the last step.
    pub(super) fn last_result(&mut self, program: usize, i: usize) -> Result<Tensor> {
        let last = self.persistent_results(program)?.pop();
        let found =
            last.and_then(|mut results| (i < results.len()).then(|| results.swap_remove(i)));
        found.ok_or_else(|| fault(format!("there is no result {i}")))
    }

    /// Runs of a loaded program, one for each batch of arguments: the results of each, in order.
    /// They are those of as many calls of [`DeviceSession::run`], to the bit; small programs run
    /// many steps in one launch where the device has clusters of blocks.
    ///
    /// ```no_run
    /// use chainrule::{Tensor, program::Program};
    /// use chainrule_gpu::{DeviceName, DeviceSession};
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// let program = Program::trace([("x", &x)], |args| Ok(vec![args[0].exp()]))?;
    /// let mut session = DeviceSession::new(DeviceName::Cuda(0).open()?);
    /// let at = session.load(&program)?;
    /// let all = session.run_steps(at, &[vec![&x], vec![&x]])?;
    /// assert_eq!(all.len(), 2);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn run_steps(
        &mut self,
        program: usize,
        batches: &[Vec<&Tensor>],
    ) -> Result<Vec<Vec<Tensor>>> {
        let whys = batches.iter().find_map(|batch| self.mismatch(program, batch));
        if let Some(why) = whys {
            return Err(fault(why));
        }
        let most = match &self.loaded(program)?.way {
            Way::Persistent(persistent) => persistent.most(),
            Way::Graph(..) => return self.graph_steps(program, batches),
        };
        let mut out = Vec::with_capacity(batches.len());
        let mut batches = batches;
        if let ([first, rest @ ..], true) = (batches, self.loaded(program)?.first.is_some()) {
            out.push(self.run(program, first)?);
            batches = rest;
        }
        for some in batches.chunks(most) {
            let some: Vec<&[&Tensor]> = some.iter().map(Vec::as_slice).collect();
            self.start_persistent(program, &some)?;
            out.extend(self.persistent_results(program)?);
        }
        Ok(out)
    }

    /// Steps of a graph of launches: each is begun before the results of the one before are waited
    /// for, and some are one graph.
    fn graph_steps(
        &mut self,
        program: usize,
        batches: &[Vec<&Tensor>],
    ) -> Result<Vec<Vec<Tensor>>> {
        if !self.overlaps || batches.len() == 1 {
            return batches.iter().map(|batch| self.run(program, batch)).collect();
        }
        let mut out = Vec::with_capacity(batches.len());
        let mut begun = VecDeque::new();
        let done = self.begin_steps(program, batches, &mut begun, &mut out);
        // Copies that were begun are taken in any case.
        let rest: Vec<_> = begun.into_iter().map(|some| self.end_results(program, some)).collect();
        done?;
        for results in rest {
            out.extend(results?);
        }
        Ok(out)
    }

    fn begin_steps(
        &mut self,
        program: usize,
        batches: &[Vec<&Tensor>],
        begun: &mut VecDeque<Begun>,
        out: &mut Vec<Vec<Tensor>>,
    ) -> Result<()> {
        let mut batches = batches;
        if let ([first, rest @ ..], true) = (batches, self.loaded(program)?.first.is_some()) {
            out.push(self.run(program, first)?);
            batches = rest;
        }
        while let [batch, rest @ ..] = batches {
            begun.push_back(Begun { steps: 1, reads: Vec::new() });
            let Some(last) = begun.back_mut() else { return Ok(()) };
            let many = if rest.is_empty() { None } else { self.steps_of_graph(program) };
            match many.and_then(|steps| batches.split_at_checked(steps)) {
                Some((some, rest)) => {
                    last.steps = some.len();
                    self.start_many(program, some, &mut last.reads)?;
                    batches = rest;
                }
                None => {
                    self.start(program, batch)?;
                    self.begin_results(program, &mut last.reads)?;
                    batches = rest;
                }
            }
            if begun.len() > AHEAD
                && let Some(some) = begun.pop_front()
            {
                out.extend(self.end_results(program, some)?);
            }
        }
        Ok(())
    }

    /// Begins the copies of the results of the last run.
    fn begin_results(&mut self, program: usize, reads: &mut Vec<DeviceRead>) -> Result<()> {
        let dialect = self.device.dialect();
        let Some(loaded) = &self.programs[program] else { return Ok(()) };
        for (memory, meta) in &loaded.results {
            let bytes = width(dialect, meta.dtype) * meta.shape.numel();
            reads.push(self.device.begin_read(*memory, bytes)?);
        }
        Ok(())
    }

    /// The results of steps whose copies were begun.
    fn end_results(&mut self, program: usize, begun: Begun) -> Result<Vec<Vec<Tensor>>> {
        let metas: Vec<Meta> = self.loaded(program)?.results.iter().map(|r| r.1).collect();
        let dialect = self.device.dialect();
        let all: Vec<Result<Vec<u8>>> =
            begun.reads.into_iter().map(|read| self.device.end_read(read)).collect();
        let mut out = vec![Vec::with_capacity(metas.len()); begun.steps];
        for (meta, bytes) in metas.into_iter().zip(all) {
            let (bytes, each) = (bytes?, width(dialect, meta.dtype) * meta.shape.numel());
            for (step, results) in out.iter_mut().enumerate() {
                let value = to_value(dialect, meta, &bytes[step * each..][..each])?;
                results.push(Tensor::from_parts(value, Origin::None));
            }
        }
        Ok(out)
    }

    /// Whether many steps of a loaded program are one launch.
    pub fn is_persistent(&self, program: usize) -> bool {
        self.loaded(program).is_ok_and(|loaded| matches!(loaded.way, Way::Persistent(_)))
    }

    /// The microseconds between barriers in the last step of a launch like the last one.
    pub(super) fn measure_persistent(&mut self, program: usize) -> Result<Vec<(String, f64)>> {
        let Some(loaded) = &self.programs[program] else { return Ok(Vec::new()) };
        let Way::Persistent(persistent) = &loaded.way else { return Ok(Vec::new()) };
        let Persistent { kernel, last, .. } = &**persistent;
        let marks = kernel.stages.len() + 1;
        let memory = self.device.allocate(8 * marks)?;
        let with = |(parameter, argument): (&Parameter, &PersistentArgument)| match parameter {
            Parameter::Times => PersistentArgument::Memory(memory),
            _ => *argument,
        };
        let arguments: Vec<_> = kernel.parameters.iter().zip(last).map(with).collect();
        let mut bytes = vec![0; 8 * marks];
        let begun = self.device.launch_persistent(loaded.code, &arguments);
        let read = begun.and_then(|()| self.device.read(memory, &mut bytes));
        self.device.free(memory);
        read?;
        let clocks = bytes.as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b));
        let clocks: Vec<i64> = clocks.collect();
        let us = |pair: &[i64]| (pair[1] - pair[0]) as f64 * self.device.tick() / 1e3;
        let name = |(i, stage): (usize, &String)| {
            let short: String = stage.chars().take(60).collect();
            format!("{i:02} {short}")
        };
        let names = kernel.stages.iter().enumerate().map(name);
        let measured: Vec<_> = names.zip(clocks.windows(2).map(us)).collect();
        self.changed(program);
        Ok(measured)
    }
}
