//! A GPU by NVIDIA: the driver, NVRTC and graphs of launches. The libraries are loaded when a
//! device is opened, so that none is needed to build.

mod copies;
mod cublas;
mod persistent;

use std::sync::Arc;

use chainrule_core::error::{Error, Result};
use cudarc::driver::sys::CUresult as Code;
use cudarc::driver::{CudaContext, CudaEvent, CudaFunction, CudaGraph, CudaSlice, CudaStream};
use cudarc::driver::{DevicePtr, DriverError, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::{CompileError, CompileOptions, Ptx, compile_ptx_with_opts};

use self::copies::Copies;
use self::cublas::{Library, Plan};
use crate::device::{Device, DeviceCode, DeviceGraph, DeviceMemory, DeviceWork};
use crate::device::{DeviceRead, PersistentArgument, fault};
use crate::dialect::Dialect;
use crate::module::{DeviceLaunch, KernelLaunch, KernelModule};
use crate::persistent::PersistentKernel;
use crate::products::{Precision, ProductLaunch};

/// The oldest driver version that has everything used here.
const OLDEST: i32 = 12_000;

/// Launches of a graph of many steps; more take long to record.
const LONGEST: usize = 1920;

/// A GPU by NVIDIA.
pub(crate) struct Cuda {
    name: String,
    /// The kind of its processors: `compute_90`.
    architecture: String,
    /// Numbers of blocks that a cluster may have, the best first.
    clusters: &'static [usize],
    stream: Arc<CudaStream>,
    /// By the numbers of their memory; none where it was given back.
    buffers: Vec<Option<CudaSlice<u8>>>,
    modules: Vec<Vec<CudaKernel>>,
    graphs: Vec<Captured>,
    /// Products of matrices, where there is cuBLASLt.
    library: Option<Library>,
    copies: Copies,
}

struct CudaKernel {
    function: CudaFunction,
    blocks: u32,
    threads: u32,
    /// Bytes of a block's shared memory, beyond the arrays declared in the text.
    shared: u32,
}

/// A list of work as one graph; none where there is nothing to do.
struct Captured(Option<CudaGraph>);

// SAFETY: a graph may be used by any thread, by one at a time. It is reached through `&mut Cuda`
// alone, and each of its functions binds the context to the thread that calls it.
unsafe impl Send for Captured {}

impl Cuda {
    /// The device of this number.
    pub fn open(number: usize) -> Result<Cuda> {
        // SAFETY: looks whether a library of this name can be loaded, whose start-up code is the
        // vendor's.
        let driver = unsafe { cudarc::driver::sys::is_culib_present() };
        if !driver {
            let why = "there is no driver by NVIDIA (libcuda); install it, or use another device";
            return Err(fault(why.into()));
        }
        let of = |e: DriverError| fault(format!("cuda:{number}: {}", explained(e)));
        let version = version().map_err(of)?;
        if version < OLDEST {
            let (major, minor) = (version / 1000, version % 1000 / 10);
            return Err(fault(format!(
                "the driver by NVIDIA is for CUDA {major}.{minor}, which is too old; 12.0 or newer \
                 is needed"
            )));
        }
        has_compiler()?;
        let context = CudaContext::new(number).map_err(of)?;
        // SAFETY: all memory is allocated, used and freed on the one stream below, in its order,
        // but that of copies, which waits for its own events.
        unsafe { context.disable_event_tracking() };
        let (major, minor) = context.compute_capability().map_err(of)?;
        let name = format!("cuda:{number} ({})", context.name().map_err(of)?);
        let stream = context.new_stream().map_err(of)?;
        let architecture = format!("compute_{major}{minor}");
        let library = Library::open(&stream)?;
        let copies = Copies::new(&context).map_err(of)?;
        let (buffers, modules, graphs) = Default::default();
        let clusters = persistent::clusters(major);
        Ok(Cuda { name, architecture, clusters, stream, buffers, modules, graphs, library, copies })
    }

    fn error(&self, e: DriverError) -> Error {
        fault(format!("{}: {}", self.name, explained(e)))
    }

    fn buffer(&self, memory: DeviceMemory) -> Result<&CudaSlice<u8>> {
        let found = self.buffers.get(memory.0).and_then(Option::as_ref);
        found.ok_or_else(|| fault("memory that was given back is used".into()))
    }

    /// The address of memory.
    fn address(&self, memory: DeviceMemory) -> Result<sys::CUdeviceptr> {
        Ok(self.buffer(memory)?.device_ptr(&self.stream).0)
    }

    /// Products made ready; nothing for other work.
    fn plans(&self, work: &[DeviceWork]) -> Result<Vec<Option<Plan>>> {
        let plan = |w: &DeviceWork| {
            let DeviceWork::Product { product, precision, memory } = w else { return Ok(None) };
            let at = memory.iter().map(|&m| self.address(m)).collect::<Result<Vec<u64>>>()?;
            self.library()?.plan(product, *precision, &at).map(Some)
        };
        work.iter().map(plan).collect()
    }

    fn library(&self) -> Result<&Library> {
        let why = "there is no cuBLASLt (libcublasLt), which computes products";
        self.library.as_ref().ok_or_else(|| fault(why.into()))
    }

    fn begin(&self, work: &DeviceWork, plan: Option<&Plan>) -> Result<()> {
        match work {
            DeviceWork::Product { .. } => {
                if let Some(plan) = plan {
                    self.library()?.begin(plan)?;
                }
            }
            DeviceWork::Launch { code, place, arguments } => {
                let kernel = &self.modules[code.0][*place];
                let addresses =
                    arguments.iter().map(|&m| self.address(m)).collect::<Result<Vec<_>>>()?;
                let mut launch = self.stream.launch_builder(&kernel.function);
                addresses.iter().for_each(|address| {
                    launch.arg(address);
                });
                let shape = LaunchConfig {
                    grid_dim: (kernel.blocks, 1, 1),
                    block_dim: (kernel.threads, 1, 1),
                    shared_mem_bytes: kernel.shared,
                };
                // SAFETY: the kernel was printed for these buffers: as many, of these dtypes and
                // sizes, and it reads and writes nothing else.
                unsafe { launch.launch(shape) }.map_err(|e| self.error(e))?;
            }
            DeviceWork::Copy { from, to, begins, bytes } => {
                let [from, to] = [self.address(*from)?, self.address(*to)?];
                let [from, to] = [from + begins[0] as u64, to + begins[1] as u64];
                let stream = self.stream.cu_stream();
                // SAFETY: both have that many bytes, as whoever asks for the copy allocated them.
                let copied =
                    unsafe { cudarc::driver::result::memcpy_dtod_async(to, from, *bytes, stream) };
                copied.map_err(|e| self.error(e))?;
            }
        }
        Ok(())
    }
}

/// The version of the driver: 12040 for 12.4.
fn version() -> std::result::Result<i32, DriverError> {
    let mut version = 0;
    // SAFETY: the function writes one number to the place that it is given.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result()?;
    Ok(version)
}

/// An error of the driver in words.
fn explained(e: DriverError) -> String {
    let code = e.0;
    match code {
        Code::CUDA_ERROR_OUT_OF_MEMORY => "its memory is full".into(),
        Code::CUDA_ERROR_NO_DEVICE => "there is no GPU that the driver can use".into(),
        Code::CUDA_ERROR_INVALID_DEVICE => "there is no GPU of this number".into(),
        Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            "the driver is older than NVRTC; install a newer driver, or an older NVRTC".into()
        }
        Code::CUDA_ERROR_ILLEGAL_ADDRESS
        | Code::CUDA_ERROR_LAUNCH_FAILED
        | Code::CUDA_ERROR_ECC_UNCORRECTABLE
        | Code::CUDA_ERROR_HARDWARE_STACK_ERROR => {
            format!("the device was lost ({code:?}); what was on it is gone")
        }
        _ => format!("the driver reports {code:?}"),
    }
}

/// Errors where there is no NVRTC.
fn has_compiler() -> Result<()> {
    // SAFETY: looks whether a library of this name can be loaded, whose start-up code is the
    // vendor's.
    if unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        return Ok(());
    }
    let why = "there is no NVRTC (libnvrtc), which compiles the kernels; install CUDA's, or put the \
               folder of the wheel nvidia-cuda-nvrtc into LD_LIBRARY_PATH";
    Err(fault(why.into()))
}

/// The kernels of a text for an architecture such as `compute_90`.
pub(crate) fn compiled(text: &str, architecture: &str) -> Result<Ptx> {
    has_compiler()?;
    let options = CompileOptions {
        options: vec![format!("--gpu-architecture={architecture}")],
        ..Default::default()
    };
    compile_ptx_with_opts(text, options).map_err(|e| {
        let why = match e {
            CompileError::CompileError { log, .. } => {
                let log = log.to_string_lossy().into_owned();
                let mut lines = log.lines().filter(|l| l.contains("error"));
                lines.next().or(log.lines().next()).unwrap_or("no reason is given").to_string()
            }
            other => format!("{other:?}"),
        };
        fault(format!("NVRTC does not compile the kernels for {architecture}: {why}"))
    })
}

impl Device for Cuda {
    fn describe(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        Dialect::Cuda
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory> {
        // SAFETY: the contents are not read before a copy or a kernel wrote them.
        let slice = unsafe { self.stream.alloc::<u8>(bytes.max(4)) };
        self.buffers.push(Some(slice.map_err(|e| self.error(e))?));
        Ok(DeviceMemory(self.buffers.len() - 1))
    }

    fn free(&mut self, memory: DeviceMemory) {
        if let Some(slot) = self.buffers.get_mut(memory.0) {
            *slot = None;
        }
    }

    fn write(&mut self, to: DeviceMemory, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.buffer(to)?.len() < bytes.len() {
            return Err(fault("more bytes are written than there is room for".into()));
        }
        let stream = self.stream.clone();
        let slot = self.buffers[to.0].as_mut();
        let copied = slot.map_or(Ok(()), |slice| stream.memcpy_htod(bytes, slice));
        copied.map_err(|e| self.error(e))
    }

    fn read(&mut self, from: DeviceMemory, bytes: &mut [u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let slice = self.buffer(from)?;
        let view = slice.try_slice(0..bytes.len());
        let view = view.ok_or_else(|| fault("more bytes are read than there are".into()))?;
        self.stream.memcpy_dtoh(&view, bytes).map_err(|e| self.error(e))?;
        self.stream.synchronize().map_err(|e| self.error(e))
    }

    fn send(&mut self, to: DeviceMemory, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() || self.buffer(to)?.len() < bytes.len() {
            return self.write(to, bytes);
        }
        let at = self.address(to)?;
        match self.copies.send(&self.stream, at, bytes) {
            Ok(true) => Ok(()),
            Ok(false) => self.write(to, bytes),
            Err(e) => Err(self.error(e)),
        }
    }

    fn begin_read(&mut self, from: DeviceMemory, bytes: usize) -> Result<DeviceRead> {
        let at = self.address(from)?;
        let fits = bytes > 0 && self.buffer(from)?.len() >= bytes;
        let begun = match fits {
            true => self.copies.begin(&self.stream, at, bytes).map_err(|e| self.error(e))?,
            false => None,
        };
        if let Some(number) = begun {
            return Ok(DeviceRead::Begun(number, bytes));
        }
        let mut out = vec![0; bytes];
        self.read(from, &mut out)?;
        Ok(DeviceRead::Done(out))
    }

    fn end_read(&mut self, read: DeviceRead) -> Result<Vec<u8>> {
        match read {
            DeviceRead::Done(bytes) => Ok(bytes),
            DeviceRead::Begun(number, bytes) => {
                self.copies.end(number, bytes).map_err(|e| self.error(e))
            }
        }
    }

    fn module(&mut self, module: &KernelModule) -> Result<DeviceCode> {
        let code = compiled(&module.text(), &self.architecture)?;
        let loaded = self.stream.context().load_module(code).map_err(|e| self.error(e))?;
        let kernel = |l: &KernelLaunch| {
            let function = loaded.load_function(&l.name).map_err(|e| self.error(e))?;
            Ok(CudaKernel {
                function,
                blocks: l.blocks as u32,
                threads: l.threads as u32,
                shared: 0,
            })
        };
        let all = module.launches.iter().filter_map(DeviceLaunch::kernel);
        let kernels = all.map(kernel).collect::<Result<Vec<_>>>()?;
        self.modules.push(kernels);
        Ok(DeviceCode(self.modules.len() - 1))
    }

    fn has_library(&self) -> bool {
        self.library.is_some()
    }

    fn finishes(&self, product: &ProductLaunch, precision: Precision) -> bool {
        self.library.as_ref().is_some_and(|library| library.finishes(product, precision))
    }

    fn has_matrix_units(&self) -> bool {
        let number = self.architecture.trim_start_matches("compute_").parse();
        number.is_ok_and(|n: u32| n >= 80)
    }

    fn forget(&mut self, code: DeviceCode) {
        self.modules[code.0].clear();
    }

    fn release(&mut self, graph: DeviceGraph) {
        self.graphs[graph.0] = Captured(None);
    }

    fn graph(&mut self, work: Vec<DeviceWork>) -> Result<DeviceGraph> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        let plans = self.plans(&work)?;
        self.wait()?;
        self.stream.begin_capture(mode).map_err(|e| self.error(e))?;
        let mut pieces = work.iter().zip(&plans);
        let begun = pieces.try_for_each(|(piece, plan)| self.begin(piece, plan.as_ref()));
        // The capture ends in any case, so that the stream stays usable.
        let flags = sys::CUgraphInstantiate_flags(0);
        let captured = self.stream.end_capture(flags).map_err(|e| self.error(e));
        begun?;
        self.graphs.push(Captured(captured?));
        Ok(DeviceGraph(self.graphs.len() - 1))
    }

    fn measure(&mut self, work: &[DeviceWork]) -> Result<Vec<f64>> {
        let plans = self.plans(work)?;
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let mark = |cuda: &Cuda| cuda.stream.record_event(flags).map_err(|e| cuda.error(e));
        let mut marks = vec![mark(self)?];
        for (piece, plan) in work.iter().zip(&plans) {
            self.begin(piece, plan.as_ref())?;
            marks.push(mark(self)?);
        }
        self.wait()?;
        let between = |pair: &[CudaEvent]| {
            let ms = pair[0].elapsed_ms(&pair[1]).map_err(|e| self.error(e))?;
            Ok(f64::from(ms) * 1e3)
        };
        marks.windows(2).map(between).collect()
    }

    fn longest(&self) -> usize {
        LONGEST
    }

    fn launch(&mut self, graph: DeviceGraph) -> Result<()> {
        let Captured(graph) = &self.graphs[graph.0];
        graph.as_ref().map_or(Ok(()), CudaGraph::launch).map_err(|e| self.error(e))
    }

    fn clusters(&self) -> &[usize] {
        self.clusters
    }

    fn persistent(&mut self, kernel: &PersistentKernel) -> Result<Option<DeviceCode>> {
        self.compile_persistent(kernel)
    }

    fn launch_persistent(
        &mut self,
        code: DeviceCode,
        arguments: &[PersistentArgument],
    ) -> Result<()> {
        self.begin_persistent(code, arguments)?.map_err(|e| self.error(e))
    }

    fn tick(&self) -> f64 {
        let rate = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE;
        let kilohertz = self.stream.context().attribute(rate);
        kilohertz.map_or(1.0, |rate| 1e6 / f64::from(rate.max(1)))
    }

    fn wait(&mut self) -> Result<()> {
        self.stream.synchronize().map_err(|e| self.error(e))
    }
}
