//! Devices that run kernels: memory, compiled kernels, and lists of work.

use std::fmt;
use std::str::FromStr;

use chainrule_core::error::{Error, Result};

use crate::dialect::Dialect;
use crate::module::KernelModule;
use crate::persistent::PersistentKernel;
use crate::products::{Precision, ProductLaunch};

/// Memory of a device, by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceMemory(pub usize);

/// Compiled kernels of a module, by their number on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCode(pub usize);

/// Work that was recorded, by its number on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceGraph(pub usize);

/// A piece of work of a run.
#[derive(Clone, Debug)]
pub enum DeviceWork {
    /// A kernel of a module, by its place in [`KernelModule::launches`], with its arguments.
    Launch {
        /// The module.
        code: DeviceCode,
        /// The place of the kernel among those of [`KernelModule::launches`].
        place: usize,
        /// The buffers in the order of the kernel's arguments.
        arguments: Vec<DeviceMemory>,
    },
    /// A product by the device's library.
    Product {
        /// Sizes and strides.
        product: Box<ProductLaunch>,
        /// The arithmetic.
        precision: Precision,
        /// The memory of each of [`ProductLaunch::matrices`].
        memory: Vec<DeviceMemory>,
    },
    /// Bytes are copied from one memory to another.
    Copy {
        /// The memory that is read.
        from: DeviceMemory,
        /// The memory that is written.
        to: DeviceMemory,
        /// The first byte in each.
        begins: [usize; 2],
        /// The number of bytes.
        bytes: usize,
    },
}

/// Bytes that were requested from a device.
#[derive(Debug)]
pub enum DeviceRead {
    /// They are there.
    Done(Vec<u8>),
    /// The number of a copy that was started, and its bytes.
    Begun(usize, usize),
}

/// An argument of a persistent kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersistentArgument {
    /// Memory of the device.
    Memory(DeviceMemory),
    /// No memory.
    Null,
    /// 32 bits.
    Int(i32),
    /// 64 bits.
    Long(u64),
}

/// A device that runs kernels; its work is done in the order in which it is asked for.
///
/// Errors are one line each: memory that is full, a driver that is missing, a device that was lost.
/// After such an error the contents of the memory are not known.
pub trait Device: Send {
    /// Kind, number and name: `wgpu:0 (llvmpipe, Vulkan)`.
    fn describe(&self) -> &str;

    /// The language of the kernels.
    fn dialect(&self) -> Dialect;

    /// Memory of this many bytes; its contents are not known.
    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory>;

    /// Gives memory back.
    fn free(&mut self, memory: DeviceMemory);

    /// Copies bytes to the device.
    fn write(&mut self, to: DeviceMemory, bytes: &[u8]) -> Result<()>;

    /// Copies bytes from the device, after all work before.
    fn read(&mut self, from: DeviceMemory, bytes: &mut [u8]) -> Result<()>;

    /// Copies bytes to the device for work that starts from now on: in parallel with earlier work,
    /// where the device can.
    fn send(&mut self, to: DeviceMemory, bytes: &[u8]) -> Result<()> {
        self.write(to, bytes)
    }

    /// Starts a copy of bytes from the device, after all earlier work; work that starts from now on
    /// does not wait for it, where the device can. Each copy is taken by [`Device::end_read`].
    fn begin_read(&mut self, from: DeviceMemory, bytes: usize) -> Result<DeviceRead> {
        let mut out = vec![0; bytes];
        self.read(from, &mut out)?;
        Ok(DeviceRead::Done(out))
    }

    /// The bytes of a copy that was started.
    fn end_read(&mut self, read: DeviceRead) -> Result<Vec<u8>> {
        match read {
            DeviceRead::Done(bytes) => Ok(bytes),
            DeviceRead::Begun(..) => Err(fault("no copy was begun".into())),
        }
    }

    /// Whether it has a library of products.
    fn has_library(&self) -> bool {
        false
    }

    /// Whether its library computes a product with its epilogue.
    fn finishes(&self, _: &ProductLaunch, _: Precision) -> bool {
        false
    }

    /// Whether it has the units for matrices that kernels of attention need.
    fn has_matrix_units(&self) -> bool {
        false
    }

    /// The microseconds that each piece of work takes on its own, in order.
    fn measure(&mut self, work: &[DeviceWork]) -> Result<Vec<f64>> {
        let mut out = Vec::with_capacity(work.len());
        for piece in work {
            let graph = self.graph(vec![piece.clone()])?;
            self.wait()?;
            let began = std::time::Instant::now();
            self.launch(graph)?;
            self.wait()?;
            out.push(began.elapsed().as_secs_f64() * 1e6);
            self.release(graph);
        }
        Ok(out)
    }

    /// Compiles the kernels of a module.
    fn module(&mut self, module: &KernelModule) -> Result<DeviceCode>;

    /// Frees the kernels of a module.
    fn forget(&mut self, code: DeviceCode);

    /// Frees a graph.
    fn release(&mut self, graph: DeviceGraph);

    /// Records a list of work, to be launched many times.
    fn graph(&mut self, work: Vec<DeviceWork>) -> Result<DeviceGraph>;

    /// The most launches that a graph of many steps may have; none if each step is a graph of its
    /// own.
    fn longest(&self) -> usize {
        0
    }

    /// Starts the work of a graph, without waiting for its end.
    fn launch(&mut self, graph: DeviceGraph) -> Result<()>;

    /// Numbers of blocks that persistent kernels may have here, the best first.
    fn clusters(&self) -> &[usize] {
        &[]
    }

    /// Compiles a persistent kernel; none if the device has no room for its cluster.
    fn persistent(&mut self, _: &PersistentKernel) -> Result<Option<DeviceCode>> {
        Ok(None)
    }

    /// Starts a launch of a persistent kernel, without waiting for its end.
    fn launch_persistent(&mut self, _: DeviceCode, _: &[PersistentArgument]) -> Result<()> {
        Err(fault("the device has no persistent kernels".into()))
    }

    /// Nanoseconds of a tick of the clock that kernels read.
    fn tick(&self) -> f64 {
        1.0
    }

    /// Waits for the end of all work.
    fn wait(&mut self) -> Result<()>;
}

/// The kind of a device and its number among those of its kind.
///
/// ```
/// use chainrule_gpu::DeviceName;
/// assert_eq!("wgpu:1".parse::<DeviceName>()?, DeviceName::Wgpu(1));
/// let error = "tpu".parse::<DeviceName>().unwrap_err();
/// assert!(error.to_string().contains("cpu, cuda[:N] or wgpu[:N]"));
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// The processor, which needs no kernels.
    Cpu,
    /// A GPU by NVIDIA.
    Cuda(usize),
    /// A GPU by the system's graphics library.
    Wgpu(usize),
}

impl FromStr for DeviceName {
    type Err = Error;

    fn from_str(text: &str) -> Result<DeviceName> {
        let (kind, number) = text.split_once(':').unwrap_or((text, "0"));
        match (kind, number.parse()) {
            ("cpu", _) if text == "cpu" => Ok(DeviceName::Cpu),
            ("cuda", Ok(n)) => Ok(DeviceName::Cuda(n)),
            ("wgpu", Ok(n)) => Ok(DeviceName::Wgpu(n)),
            _ => {
                let why = format!("there is no `{text}`; a device is cpu, cuda[:N] or wgpu[:N]");
                Err(Error::argument("device", why))
            }
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceName::Cpu => f.write_str("cpu"),
            DeviceName::Cuda(n) => write!(f, "cuda:{n}"),
            DeviceName::Wgpu(n) => write!(f, "wgpu:{n}"),
        }
    }
}

impl DeviceName {
    /// The device. Errors where this build has no support for it, and where there is none.
    pub fn open(self) -> Result<Box<dyn Device>> {
        match self {
            DeviceName::Cpu => Err(fault("the processor runs programs without kernels".into())),
            #[cfg(feature = "wgpu")]
            DeviceName::Wgpu(n) => Ok(Box::new(crate::webgpu::WebGpu::open(n)?)),
            #[cfg(feature = "cuda")]
            DeviceName::Cuda(n) => Ok(Box::new(crate::cuda::Cuda::open(n)?)),
            #[cfg(not(all(feature = "wgpu", feature = "cuda")))]
            other => {
                let kind = if matches!(other, DeviceName::Cuda(_)) { "cuda" } else { "wgpu" };
                Err(fault(format!(
                    "this build cannot run on `{other}`; build it with the feature `{kind}`"
                )))
            }
        }
    }
}

/// An error of a device.
pub(crate) fn fault(why: String) -> Error {
    Error::argument("device", why)
}
